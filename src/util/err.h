/* Errors are values with context: the leaf says what, each level may say while doing what, cmd/ prints it once.
 * Fixed size, so that making one cannot fail. */
#ifndef UTIL_ERR_H
#define UTIL_ERR_H
#include "util/exit.h"

#include <stdbool.h>

struct el_err {
    int status;     /* exit status that fits, one of util/exit.h; 0 = no error yet */
    int sys;        /* errno of the system call that failed, 0 if none did */
    char text[512]; /* one line, no newline, no "elrun:" in front */
};

/* Fills *e (the first error wins; later ones are dropped) and returns -1.  e may be NULL. */
int el_fail(struct el_err *e, enum el_exit status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the text and returns -1. */
int el_prefix(struct el_err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* As el_fail, with ": No such file or directory" behind (err_io.c: strerror is not for the core), and what
 * to do where that is the limit of open files. */
int el_fail_sys(struct el_err *e, enum el_exit status, int sys, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Does this errno say that the system has none left (descriptors, memory), rather than that the request was wrong? */
bool el_sys_scarce(int sys);

#endif
