/* Exit statuses are an API.  This is the only list; `elrun help exit-status` and elrun.1 are checked against it.
 * Source of the numbers: sysexits(3).  A worker's own status passes unchanged, 128+n stands for signal n. */
#ifndef UTIL_EXIT_H
#define UTIL_EXIT_H

#define EL_EXIT_LIST(X)                                                                                                \
    X(OK, 0, "the job is done")                                                                                        \
    X(USAGE, 2, "usage: an option or a value that elrun does not understand")                                          \
    X(NOINPUT, 66, "script or program not there, or not executable")                                                   \
    X(UNAVAILABLE, 69, "coordinator or store never reached, or too few nodes")                                         \
    X(SOFTWARE, 70, "a bug of elrun")                                                                                  \
    X(OSERR, 71, "the system refused: fork, memory, descriptors")                                                      \
    X(UNHEALTHY, 72, "this node was judged unhealthy")                                                                 \
    X(CANTCREAT, 73, "cannot create logs or files")                                                                    \
    X(IOERR, 74, "all workers succeeded, and the last checkpoint that they asked for is not on disk")                  \
    X(TEMPFAIL, 75, "temporary: start me again")                                                                       \
    X(PROTOCOL, 76, "the other side speaks another protocol or version")                                               \
    X(NOPERM, 77, "not allowed")                                                                                       \
    X(CONFIG, 78, "configuration contradicts the job or the surroundings")

enum el_exit {
#define X(name, number, text) EL_EXIT_##name = (number),
    EL_EXIT_LIST(X)
#undef X
};

/* What a shell would report of a process that ended by signal n. */
#define EL_EXIT_SIGNAL(n) (128 + (n))

#endif
