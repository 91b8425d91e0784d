/* A long traceback, made short enough to be read at once: of each stack the user's own innermost frames and the last
 * ones of the libraries below them stay, of each message its beginning and its end; what is left out is counted. */
#ifndef FAILURE_TRACEBACK_TRIM_H
#define FAILURE_TRACEBACK_TRIM_H
#include "util/text.h"
#include "util/buf.h"

enum {
    TRACEBACK_TRIM_USER_FRAMES = 4,
    TRACEBACK_TRIM_OTHER_FRAMES = 2,
    TRACEBACK_TRIM_BOX_FRAMES = 8,    /* of a box of rich, whosever they are */
    TRACEBACK_TRIM_MESSAGE_FIRST = 6, /* lines of a message or of a C++ stack */
    TRACEBACK_TRIM_MESSAGE_LAST = 2,
};

/* Appends t, folded if it has more than `most` lines (it may still have more then: a chain of many exceptions).  0, or
 * -1 and out->full. */
int traceback_trim_stack(struct text t, unsigned most, struct el_buf *out);

#endif
