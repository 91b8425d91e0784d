/* The only caller of wait*: every child, ours or adopted, ends here and becomes an event.
 * For each SIGCHLD: waitid(P_ALL, WNOWAIT) until nothing is left.  A pid of the table is announced while it still is a
 * zombie (its group can be signalled: the number cannot be reused), then reaped, then announced again. */
#ifndef PROC_REAP_H
#define PROC_REAP_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "util/err.h"

struct reap;

struct reap_end {
    int code;   /* 0…255, or -1 */
    int signal; /* that ended it, or -1 */
    bool core;  /* the kernel dumped a core */
};

struct reap_ops {
    void (*zombie)(void *ctx, unsigned slot, pid_t pid, const struct reap_end *end); /* not reaped yet */
    void (*reaped)(void *ctx, unsigned slot, pid_t pid);                             /* now it is */
    void (*orphan)(void *ctx, pid_t pid);                                            /* adopted, or the guard */
    /* reap_help(): reaped, and what was left of its group and session is killed; may be NULL */
    void (*helper)(void *ctx, pid_t pid, const struct reap_end *end);
    void (*stopped)(void *ctx, unsigned slot, pid_t pid); /* the watched leader was stopped (Ctrl-Z); may be NULL */
};

/* Makes this process the child subreaper.  slots: size of the table. */
struct reap *reap_new(unsigned slots, const struct reap_ops *ops, void *ctx, struct el_err *e);
void reap_free(struct reap *r);

/* A leader that spawn_worker() made; at most one a slot. */
void reap_add(struct reap *r, unsigned slot, pid_t pid);

/* A child that leads a session and is no worker (a hook): its end is told, and while it runs neither it nor what
 * belongs to its session is an orphan.  At most REAP_HELPERS_MAX at a time; the end of one more is not told. */
#define REAP_HELPERS_MAX 64
void reap_help(struct reap *r, pid_t pid);

/* The unreaped leader of a slot, 0 if there is none; or the slot of a pid, -1 if it is not a leader. */
pid_t reap_pid(const struct reap *r, unsigned slot);
int reap_slot(const struct reap *r, pid_t pid);

/* Has the leader of the slot ended, though its end has not been told yet? */
bool reap_has_ended(const struct reap *r, unsigned slot);

/* The one leader whose stops are told: the rank that has the terminal. */
void reap_watch_stops(struct reap *r, unsigned slot);

/* Call at each SIGCHLD. */
void reap_scan(struct reap *r);

/* Orphans: children of ours that are neither leaders, helpers nor `spare` (the guard).  Signals those whose session is
 * `session` (0: all) by pid, if signal is not 0.  Returns how many there are, zombies not counted; 0 without a /proc.
 */
unsigned reap_orphans(struct reap *r, pid_t session, int signal, pid_t spare);

/* Kills all orphans, and those that come to us by that, for a second at most. */
void reap_end_orphans(struct reap *r, pid_t spare);

/* A line about one orphan or leader that will not die: `python (pid 7, state D in nfs_wait)`.  Returns its length. */
int reap_describe(pid_t pid, char *to, size_t size);

#endif
