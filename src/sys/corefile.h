/* Where the kernel puts a core: the text of /proc/sys/kernel/core_pattern, and what is known of the process (core(5)).
 * corefile.c is pure; corefile_io.c looks whether the file is there. */
#ifndef SYS_COREFILE_H
#define SYS_COREFILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COREFILE_PATTERN_MAX 256  /* the kernel takes 127 bytes */
#define COREFILE_PATH_MAX    4096 /* with the 0 */

enum corefile_kind {
    COREFILE_UNKNOWN, /* the pattern could not be read, or is none */
    COREFILE_FILE,
    COREFILE_PIPE,   /* a program gets it: helper */
    COREFILE_SOCKET, /* a server gets it: helper is its address */
};

struct corefile_facts {
    int pid;
    bool pid_global;  /* that is its pid in the first namespace, too */
    bool uses_pid;    /* sysctl kernel.core_uses_pid */
    int signal;       /* that ended it */
    const char *host; /* nodename */
    const char *cwd;  /* where it was started; a worker may have gone elsewhere since */
};

struct corefile {
    enum corefile_kind kind;
    char helper[COREFILE_PATTERN_MAX];   /* base name of the program, or the socket's path */
    char folder[COREFILE_PATH_MAX];      /* "" = not known */
    char name[COREFILE_PATTERN_MAX * 4]; /* COREFILE_ANY stands for what is not known */
    bool names_pid;                      /* else others may have written to the same name */
};
#define COREFILE_ANY '\001'

/* pattern: as read, with or without its newline. */
void corefile_plan(struct corefile *c, const char *pattern, const struct corefile_facts *f);

/* Whether a file's name may be what the plan's became. */
bool corefile_match(const char *plan, const char *name);

/* --- corefile_io.c --- */

/* One line about the core that this process left: its path, or who has it, or why that is not known.  started: since
 * when it can have been written, on the wall clock.  May block: for a pool thread.  proc is "/proc" but in tests. */
void corefile_describe(const char *proc, const struct corefile_facts *f, int64_t started_wall_usec, char *to,
                       size_t size);

#endif
