/* Hooks (--hook EVENT=CMD), pure: what runs when, and for how long.
 *
 * Each event has a lane of its own: its commands run one at a time, in the order of the events and of the command line;
 * lanes do not wait for each other, but for two rules: what begins a start (pre-start) waits until everything that
 * tidies up (post-stop) is done, and the last one (end) until nothing else runs.  A lane holds HOOK_WAITING_MAX events;
 * what comes then is left out and counted: the oldest are kept, since the first incident is the one that matters.
 *
 * The shell (hook_io.c) performs the actions and says how they ended; payloads are its own. */
#ifndef EVENT_HOOK_H
#define EVENT_HOOK_H
#include <stdbool.h>

#include "util/time.h"

#define HOOK_LIST(X)                                                                                                   \
    X(PRE_START, "pre-start")                                                                                          \
    X(POST_START, "post-start")                                                                                        \
    X(PRE_STOP, "pre-stop")                                                                                            \
    X(POST_STOP, "post-stop")                                                                                          \
    X(ROUND, "round")                                                                                                  \
    X(INCIDENT, "incident")                                                                                            \
    X(NODE_BAD, "node-bad")                                                                                            \
    X(END, "end")

enum hook_kind {
#define X(NAME, name) HOOK_##NAME,
    HOOK_LIST(X)
#undef X
        HOOK_KINDS
};

#define HOOK_COMMANDS_MAX 32
#define HOOK_WAITING_MAX  16
#define HOOK_KILL_AFTER                                                                                                \
    EL_SEC(1) /* from SIGTERM, when its time is over, to SIGKILL; and from there to giving it up                       \
               */
#define HOOK_ACTIONS_MAX (HOOK_KINDS * (HOOK_WAITING_MAX + 4))

/* One --hook of the command line. */
struct hook_command {
    enum hook_kind kind;
    const char *text;
};

enum hook_action_type {
    HOOK_DO_START,  /* kind, command, payload; answer hooks_ended() if it cannot be started */
    HOOK_DO_SIGNAL, /* kind, signal: to the group of what runs in this lane */
    HOOK_DO_FORGET, /* kind: what runs survives SIGKILL; nobody waits for it any more */
    HOOK_DO_DONE,   /* kind, payload, good: all commands of this event are done, or it is given up */
};

struct hook_action {
    enum hook_action_type type;
    enum hook_kind kind;
    unsigned command; /* index in the list that hook_init() was given */
    int signal;
    void *payload;
    bool good;
};

struct hook_actions {
    unsigned n;
    struct hook_action v[HOOK_ACTIONS_MAX];
};

enum hook_state { HOOK_IDLE, HOOK_RUNNING, HOOK_TERMED, HOOK_KILLED };

struct hook_lane {
    unsigned command[HOOK_COMMANDS_MAX], commands;
    void *payload[HOOK_WAITING_MAX + 1]; /* the first one is the one that runs */
    unsigned events;
    enum hook_state state;
    unsigned at;     /* index in command of what runs */
    el_usec until;   /* TERM, KILL or FORGET is due then */
    bool timed_out;  /* what runs was told to end because its time was over */
    bool good;       /* no command of this event has failed */
    bool given_up;   /* nothing more of this event */
    unsigned missed; /* events for which there was no room */
};

struct hook_core {
    el_usec timeout;
    struct hook_lane lane[HOOK_KINDS];
    el_usec finish_at; /* then everything but the last one is killed; EL_NEVER */
};

void hook_init(struct hook_core *h, const struct hook_command *commands, unsigned n, el_usec timeout);

/* out->n is not reset by any of these.  An event of a kind without commands is done as soon as it may begin.
 * False: there is no room, and the payload is still the caller's. */
bool hook_event(struct hook_core *h, enum hook_kind kind, void *payload, el_usec now, struct hook_actions *out);

/* What was started has ended, good or not; or it could not be started. */
void hook_ended(struct hook_core *h, enum hook_kind kind, bool good, el_usec now, struct hook_actions *out);

/* What waits is given up, what runs is told to end. */
void hook_cancel(struct hook_core *h, enum hook_kind kind, el_usec now, struct hook_actions *out);

/* Nothing but `end` comes any more: the rest has as much time as one command. */
void hook_finish(struct hook_core *h, el_usec now);

void hook_timeout(struct hook_core *h, el_usec now, struct hook_actions *out);
el_usec hook_deadline(const struct hook_core *h);

bool hook_idle(const struct hook_core *h);
void hook_check(const struct hook_core *h);

const char *hook_name(enum hook_kind kind);
/* HOOK_KINDS if there is none of this name; n bytes. */
enum hook_kind hook_kind_of(const char *name, unsigned n);

#endif
