/* A long traceback, made short enough to be read at once: of each stack the user's own innermost frames and the last
 * ones of the libraries below them stay, of each message its beginning and its end; what is left out is counted. */
#ifndef FAILURE_FOLD_H
#define FAILURE_FOLD_H
#include "util/text.h"
#include "util/buf.h"

enum {
    FOLD_USER_FRAMES = 4,
    FOLD_OTHER_FRAMES = 2,
    FOLD_BOX_FRAMES = 8,    /* of a box of rich, whosever they are */
    FOLD_MESSAGE_FIRST = 6, /* lines of a message or of a C++ stack */
    FOLD_MESSAGE_LAST = 2,
};

/* Appends t, folded if it has more than `most` lines (it may still have more then: a chain of many exceptions).  0, or
 * -1 and out->full. */
int fold_stack(struct text t, unsigned most, struct el_buf *out);

#endif
