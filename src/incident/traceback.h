/* Why did this program end?  Looks for the answer in the last bytes of its stderr.
 * The input is clean text (incident/text.h), of which the beginning may be cut off. */
#ifndef INCIDENT_TRACEBACK_H
#define INCIDENT_TRACEBACK_H
#include <stdbool.h>
#include <stddef.h>

#include "incident/text.h"

enum traceback_kind {
    TRACEBACK_NONE,   /* nothing of the kind: span is the last lines, message the last one */
    TRACEBACK_PYTHON, /* "Traceback (most recent call last):", also chained, also in a box of rich */
    TRACEBACK_GROUP,  /* an exception group */
    TRACEBACK_SYNTAX, /* SyntaxError of the script itself, which has no header */
    TRACEBACK_FATAL,  /* "Fatal Python error: …", faulthandler's stacks */
    TRACEBACK_CPLUS,  /* "terminate called …", also when faulthandler's stacks follow */
    TRACEBACK_ABORT,  /* a line of the C library or of assert() */
};

#define TRACEBACK_LAST_LINES 20 /* what TRACEBACK_NONE keeps */

struct traceback {
    enum traceback_kind kind;
    size_t start, end; /* span in the input, whole lines, end after the last one's newline */
    char type[128];    /* "ValueError", "torch.OutOfMemoryError", "Fatal Python error"; "" for NONE */
    char message[512]; /* one line; "" = none */
    char file[256];    /* the user's own innermost frame (else the innermost); "" = no frame */
    char function[64];
    unsigned line;
    bool user_frame; /* file is not an installed package's or Python's own */
    bool headless;   /* the beginning was cut off */
    bool chained;    /* more than one exception: type is the last one's */
    bool nested;     /* below it a launcher's ChildFailedError: this worker was itself a launcher */
    bool in_thread;  /* of a thread or a child process, not of the main thread */
};

/* Never fails; n may be 0. */
void traceback_find(struct traceback *t, const char *text, size_t n);

#endif
