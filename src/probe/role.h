/* The hidden roles: elrun executed again by elrun, named by argv[0], so that `ps` tells what runs.  A role is told what
 * to do by one line on standard input and tells what it found on descriptor 3 (wire.h); it makes no loop.
 */
#ifndef PROBE_ROLE_H
#define PROBE_ROLE_H
#include "probe/wire.h"

/* X(NAME, word, function): argv[0] is the word. */
#define ROLE_LIST(X)                                                                                                   \
    X(PAIR, "elrun-pair", pair_tcp_role)                                                                               \
    X(CHECK, "elrun-check", check_role)

enum role {
#define X(NAME, word, function) ROLE_##NAME,
    ROLE_LIST(X) ROLES_COUNT
#undef X
};

const char *role_word(enum role role);

/* First thing in main: -1 if argv[0] names no role, else the exit status of the role. */
int role_run(char *const *argv);

/* Each role: 0 = it could do its work (whatever it found), else it could not. */
#define X(NAME, word, function) int function(const struct probe_wire *order);
ROLE_LIST(X)
#undef X

/* For roles: writes a line to WIRE_FD, whole.  Nobody reads any more: ends the process. */
void role_tell(const struct probe_wire *w);

/* The line {"t":"err",…}; class as in probe/child/child.h; code is an errno or -1. */
void role_tell_error(const char *stage, const char *class, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
