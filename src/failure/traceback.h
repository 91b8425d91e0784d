/* Why did this program end?  Looks for the answer in the last bytes of its stderr.
 * The input is clean text (util/text.h), of which the beginning may be cut off. */
#ifndef FAILURE_TRACEBACK_H
#define FAILURE_TRACEBACK_H
#include <stdbool.h>
#include <stddef.h>

#include "util/text.h"

enum traceback_kind {
    TRACEBACK_NONE,   /* nothing of the kind: span is the last lines, message the last one */
    TRACEBACK_PYTHON, /* "Traceback (most recent call last):", also chained, also in a box of rich */
    TRACEBACK_GROUP,  /* an exception group */
    TRACEBACK_SYNTAX, /* SyntaxError of the script itself, which has no header */
    TRACEBACK_FATAL,  /* "Fatal Python error: …", faulthandler's stacks */
    TRACEBACK_CPLUS,  /* "terminate called …", also when faulthandler's stacks follow */
    TRACEBACK_ABORT,  /* a line of the C library or of assert() */
    TRACEBACK_PANIC,  /* of Rust or Go */
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
    bool in_process; /* of the latter: a child process of multiprocessing */
};

enum { TRACEBACK_CHAIN_MAX = 6 };

/* How an exception of a chain led to the next one. */
enum traceback_link {
    TRACEBACK_LAST,    /* none follows */
    TRACEBACK_CAUSE,   /* "the direct cause of": raise … from */
    TRACEBACK_CONTEXT, /* the next one was raised while this one was handled: perhaps not because of it */
    TRACEBACK_INNER,   /* the next one is told inside the words of this one: a worker process's own */
};

struct traceback_exception {
    enum traceback_link link;
    struct text type,
        words; /* words: from the type to the end of the message, whole lines; they point into the input */
};

/* The exceptions of what was found, in the order in which they stand; where there are too many, the oldest are left
 * out. n is 0 where nothing was found. */
struct traceback_chain {
    unsigned n;
    struct traceback_exception v[TRACEBACK_CHAIN_MAX];
};

/* "KeyError: 'x' (a.py:3)" */
void traceback_put(char *to, size_t size, const struct traceback *t);

/* Never fails; n may be 0. */
void traceback_find(struct traceback *t, const char *text, size_t n);
void traceback_find_chain(struct traceback *t, struct traceback_chain *c, const char *text, size_t n);

#endif
