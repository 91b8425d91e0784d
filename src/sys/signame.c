#include "sys/signame.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stddef.h>

#include "util/array.h"

#define SIGNAME_LIST(X)                                                                                                \
    X(HUP, "hang-up: the terminal or the session went away")                                                           \
    X(INT, "interrupt, as from Ctrl-C")                                                                                \
    X(QUIT, "quit, as from Ctrl-\\")                                                                                   \
    X(ILL, "illegal instruction: often a library built for another processor")                                         \
    X(TRAP, "breakpoint or trace trap")                                                                                \
    X(ABRT, "abort: the program found itself in a state it must not be in")                                            \
    X(BUS, "bus error: memory that is mapped but not there, often a full /dev/shm or a shortened file")                \
    X(FPE, "arithmetic error, such as an integer division by zero")                                                    \
    X(KILL, "ended at once, which a program can neither catch nor ignore")                                             \
    X(USR1, "user signal 1, which the program did not handle")                                                         \
    X(SEGV, "segmentation fault: memory was touched that is not the program's")                                        \
    X(USR2, "user signal 2, which the program did not handle")                                                         \
    X(PIPE, "wrote to a pipe that nobody reads")                                                                       \
    X(ALRM, "alarm clock")                                                                                             \
    X(TERM, "asked to end")                                                                                            \
    X(STKFLT, "stack fault")                                                                                           \
    X(CHLD, "a child changed its state")                                                                               \
    X(CONT, "continued")                                                                                               \
    X(STOP, "stopped: cannot be caught")                                                                               \
    X(TSTP, "stopped from the terminal, as from Ctrl-Z")                                                               \
    X(TTIN, "read from the terminal in the background")                                                                \
    X(TTOU, "wrote to the terminal in the background")                                                                 \
    X(URG, "urgent data on a socket")                                                                                  \
    X(XCPU, "the limit of CPU time is used up (ulimit -t)")                                                            \
    X(XFSZ, "the limit of file size is reached (ulimit -f)")                                                           \
    X(VTALRM, "virtual alarm clock")                                                                                   \
    X(PROF, "profiling timer")                                                                                         \
    X(WINCH, "the terminal's size changed")                                                                            \
    X(IO, "input or output is possible")                                                                               \
    X(PWR, "power failure")                                                                                            \
    X(SYS, "system call that a filter forbids, as seccomp does")

/* SIGRTMIN is a function in glibc; the kernel's 32 and 33 are its own, so 34 is what every program sees. */
enum { RT_MIN = 34, RT_MAX = 64 };

static const struct signame_row {
    int number;
    const char *name, *meaning;
} rows[] = {
#define X(name, meaning) {SIG##name, "SIG" #name, meaning},
    SIGNAME_LIST(X)
#undef X
};

static const struct signame_row *signame_row_of(int number)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].number == number)
            return &rows[i];
    return NULL;
}

const char *signame(int number, char out[SIGNAME_MAX])
{
    assert(out);
    const struct signame_row *r = signame_row_of(number);
    if (r)
        snprintf(out, SIGNAME_MAX, "%s", r->name);
    else if (number == RT_MIN)
        snprintf(out, SIGNAME_MAX, "SIGRTMIN");
    else if (number > RT_MIN && number <= RT_MAX)
        snprintf(out, SIGNAME_MAX, "SIGRTMIN+%d", number - RT_MIN);
    else
        snprintf(out, SIGNAME_MAX, "signal %d", number % 100000);
    return out;
}

const char *signame_meaning(int number)
{
    const struct signame_row *r = signame_row_of(number);
    if (!r && number >= RT_MIN && number <= RT_MAX)
        return "real-time signal, which the program did not handle";
    return r ? r->meaning : "";
}

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* What is left of s behind the prefix, letter case ignored; NULL if it does not begin so. */
static const char *signame_after(const char *s, const char *prefix)
{
    for (; *prefix; s++, prefix++)
        if (upper(*s) != *prefix)
            return NULL;
    return s;
}

/* At most two digits and nothing else, else -1. */
static int small_number(const char *s)
{
    int n = 0, digits = 0;
    for (; *s >= '0' && *s <= '9' && digits < 3; s++, digits++)
        n = n * 10 + (*s - '0');
    return *s || !digits || digits > 2 ? -1 : n;
}

int signame_number(const char *name)
{
    assert(name);
    int n = small_number(name);
    if (n >= 0)
        return n >= 1 && n <= RT_MAX ? n : -1;
    const char *bare = signame_after(name, "SIG") ? signame_after(name, "SIG") : name;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *rest = signame_after(bare, rows[i].name + 3);
        if (rest && !*rest)
            return rows[i].number;
    }
    const char *plus = signame_after(bare, "RTMIN");
    if (plus && !*plus)
        return RT_MIN;
    n = plus && *plus == '+' ? small_number(plus + 1) : -1;
    return n >= 0 && n <= RT_MAX - RT_MIN ? RT_MIN + n : -1;
}
