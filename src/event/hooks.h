/* The shell of hook.h: runs `/bin/sh -c CMD` with the event's line on standard input, in a session of its own, and
 * passes what it prints on to the log.  spawn_io forks, reap_io waits; the guard knows its group. */
#ifndef EVENT_HOOKS_H
#define EVENT_HOOKS_H
#include <sys/resource.h>
#include <sys/types.h>

#include "loop/loop.h"
#include "proc/reap.h"
#include "event/event.h"
#include "event/hook.h"

#define HOOKS_OUTPUT_MAX 16384 /* bytes of output of one command that reach the log */
#define HOOKS_LINE_MAX   1024  /* of one line; a longer one comes in pieces */

struct hooks;

/* How one command ended. */
struct hooks_end {
    enum hook_kind kind;
    const char *command;
    int code, signal; /* -1: none */
    bool timed_out;
    el_usec elapsed;
};

struct hooks_conf {
    const struct hook_command *commands; /* stay the caller's */
    unsigned count;
    el_usec timeout;
    char *const *env;
    const struct rlimit *files;           /* as spawn_conf's */
    int (*guard_fd)(void *ctx);           /* now; -1: there is no guard */
    void (*gone)(void *ctx, pid_t group); /* the guard may forget it */
    void (*ended)(void *ctx, const struct hooks_end *end);
    /* All commands for an event of this kind are done.  trouble: NULL, or why not in one line. */
    void (*done)(void *ctx, enum hook_kind kind, unsigned tag, const char *trouble);
    void (*idle)(void *ctx); /* once, after hooks_finish() */
    void *ctx;
};

struct hooks *hooks_new(struct loop *l, struct reap *r, const struct hooks_conf *conf, struct el_err *e);
void hooks_free(struct hooks *h); /* kills what still runs */

/* h may be NULL in all that follows: nobody asked for hooks. */

/* tag comes back with done(), which may be called before this returns. */
void hooks_fire(struct hooks *h, enum hook_kind kind, const struct event *ev, unsigned tag);
void hooks_cancel(struct hooks *h, enum hook_kind kind);

/* From reap_ops.helper. */
void hooks_child(struct hooks *h, pid_t pid, const struct reap_end *end);

/* Tells a new guard of the groups that there are. */
void hooks_guard(struct hooks *h, void (*add)(void *ctx, pid_t group));

/* `end` is the last event; then idle(), in bounded time, also in this call. */
void hooks_finish(struct hooks *h, const struct event *ev);
/* Somebody is impatient: everything is told to end. */
void hooks_abort(struct hooks *h);

#endif
