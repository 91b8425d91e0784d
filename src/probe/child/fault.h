/* What went wrong, as a line "err": the library's code, its name, what it means for the verdict, and what to do. */
#ifndef CHILD_FAULT_H
#define CHILD_FAULT_H
#include "child.h"

enum fault_lib { LIB_CUDA, LIB_NCCL, LIB_NVML };

/* Code -> name and meaning; a code that is not in the table is FAULT_INTERNAL, with a name that says so. */
struct fault_row {
    int code;
    const char *name;
    enum fault fault;
    const char *advice;
};
const struct fault_row *fault_find(enum fault_lib lib, int code);

/* The library's words are more precise than its code ("unhandled system error: Connection refused"): the first known
 * phrase in them, or NULL. */
const struct fault_row *fault_phrase(const char *text);

const char *fault_word(enum fault f);

/* Prints the line and ends the process with status 1.  text: the library's own words, NULL if it has none. */
void __attribute__((noreturn)) fault_die(const char *stage, enum fault_lib lib, int code, const char *text);

/* The same for what no library has a code for; advice may be NULL. */
void __attribute__((noreturn, format(printf, 4, 5)))
fault_die_plain(const char *stage, enum fault f, const char *advice, const char *fmt, ...);

/* The line alone. */
void fault_say(const char *stage, int code, const char *name, enum fault f, const char *text, const char *advice);

#endif
