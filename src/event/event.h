/* What happens to a job: one JSON line for each event, for programs (--events, man/elrun-events.5) and for hooks.
 * Every event stands once in EVENT_LIST; enum, structs, encoder and the check of the manual are made from it.  What the
 * coordinator says (NOTE_LIST) is an event of the same name. */
#ifndef EVENT_EVENT_H
#define EVENT_EVENT_H
#include <stdbool.h>
#include <stdint.h>

#include "event/notes.h"
#include "util/buf.h"
#include "util/time.h"

#define EVENT_VERSION  1
#define EVENT_LINE_MAX ((size_t)256 << 10) /* bytes of one line; an event that is longer loses its record */
#define EVENT_TEXT_MAX 2048                /* bytes of a text; the rest is cut, and "…" says so */

/* A field of struct T: F(T, kind, name).
 *   NUM   uint64_t             OPT  int64_t, -1: null
 *   STR   const char *, NULL: null; at most EVENT_TEXT_MAX bytes come out, as valid UTF-8
 *   FLAG  bool                 OBJ  const char *, a JSON object that is copied as it is, NULL: null */
#define EVENT_job_started_FIELDS(F, T)                                                                                 \
    F(T, NUM, nodes_min)                                                                                               \
    F(T, NUM, nodes_max)                                                                                               \
    F(T, NUM, max_restarts)
#define EVENT_agent_started_FIELDS(F, T)                                                                               \
    F(T, NUM, pid)                                                                                                     \
    F(T, NUM, workers)                                                                                                 \
    F(T, STR, script)                                                                                                  \
    F(T, STR, role)
#define EVENT_workers_starting_FIELDS(F, T)                                                                            \
    F(T, NUM, first_rank)                                                                                              \
    F(T, NUM, workers)                                                                                                 \
    F(T, NUM, world_size)                                                                                              \
    F(T, NUM, group_rank)                                                                                              \
    F(T, NUM, group_size)                                                                                              \
    F(T, NUM, restarts)
#define EVENT_worker_started_FIELDS(F, T)                                                                              \
    F(T, NUM, rank)                                                                                                    \
    F(T, NUM, local_rank)                                                                                              \
    F(T, NUM, pid)
#define EVENT_workers_started_FIELDS(F, T)                                                                             \
    F(T, NUM, workers)                                                                                                 \
    F(T, NUM, restarts)
#define EVENT_worker_ended_FIELDS(F, T)                                                                                \
    F(T, NUM, rank)                                                                                                    \
    F(T, NUM, local_rank)                                                                                              \
    F(T, NUM, pid)                                                                                                     \
    F(T, OPT, exit_code)                                                                                               \
    F(T, OPT, signal)                                                                                                  \
    F(T, STR, signal_name)                                                                                             \
    F(T, FLAG, core_dumped)                                                                                            \
    F(T, FLAG, stopped) /* elrun had signalled it */                                                                   \
    F(T, NUM, elapsed_us)
#define EVENT_incident_FIELDS(F, T)                                                                                    \
    F(T, NUM, rank)                                                                                                    \
    F(T, NUM, local_rank)                                                                                              \
    F(T, NUM, restarts)                                                                                                \
    F(T, FLAG, cause) /* of those of this node the one that came first */                                              \
    F(T, STR, class)                                                                                                   \
    F(T, STR, text) /* the verdict in one line */                                                                      \
    F(T, STR, advice)                                                                                                  \
    F(T, STR, dlrover)                                                                                                 \
    F(T, OBJ, record)
#define EVENT_workers_stopping_FIELDS(F, T)                                                                            \
    F(T, NUM, workers)                                                                                                 \
    F(T, STR, why)
#define EVENT_workers_stopped_FIELDS(F, T)                                                                             \
    F(T, NUM, failed)                                                                                                  \
    F(T, STR, why)                                                                                                     \
    F(T, FLAG, stuck)
#define EVENT_restart_FIELDS(F, T)                                                                                     \
    F(T, NUM, restarts)                                                                                                \
    F(T, NUM, max_restarts)                                                                                            \
    F(T, STR, why)
#define EVENT_checkpoint_FIELDS(F, T)                                                                                  \
    F(T, NUM, step)                                                                                                    \
    F(T, STR, state) /* "committed", "failed" */                                                                       \
    F(T, FLAG, emergency)                                                                                              \
    F(T, NUM, bytes)                                                                                                   \
    F(T, NUM, elapsed_us)                                                                                              \
    F(T, STR, text)
#define EVENT_replicas_differ_FIELDS(F, T)                                                                             \
    F(T, NUM, step)                                                                                                    \
    F(T, STR, part)                                                                                                    \
    F(T, STR, shard_id)                                                                                                \
    F(T, NUM, rank)                                                                                                    \
    F(T, NUM, other_rank)                                                                                              \
    F(T, NUM, tensors)                                                                                                 \
    F(T, STR, text) /* their names */
#define EVENT_node_bad_FIELDS(F, T)                                                                                    \
    F(T, STR, node)                                                                                                    \
    F(T, STR, class)                                                                                                   \
    F(T, STR, why)
#define EVENT_hook_ended_FIELDS(F, T)                                                                                  \
    F(T, STR, hook)                                                                                                    \
    F(T, STR, command)                                                                                                 \
    F(T, OPT, exit_code)                                                                                               \
    F(T, OPT, signal)                                                                                                  \
    F(T, FLAG, timed_out)                                                                                              \
    F(T, NUM, elapsed_us)
#define EVENT_account_FIELDS(F, T)                                                                                     \
    F(T, STR, text)                                                                                                    \
    F(T, OBJ, account)
#define EVENT_agent_ended_FIELDS(F, T)                                                                                 \
    F(T, NUM, status)                                                                                                  \
    F(T, STR, text)
#define EVENT_note_FIELDS(F, T)                                                                                        \
    F(T, STR, node)                                                                                                    \
    F(T, STR, text)                                                                                                    \
    F(T, OPT, status)

/* X(NAME, name): the fields are EVENT_<name>_FIELDS. */
#define EVENT_OWN(X)                                                                                                   \
    X(JOB_STARTED, job_started)                                                                                        \
    X(AGENT_STARTED, agent_started)                                                                                    \
    X(WORKERS_STARTING, workers_starting)                                                                              \
    X(WORKER_STARTED, worker_started)                                                                                  \
    X(WORKERS_STARTED, workers_started)                                                                                \
    X(WORKER_ENDED, worker_ended)                                                                                      \
    X(WORKERS_STOPPING, workers_stopping)                                                                              \
    X(WORKERS_STOPPED, workers_stopped)                                                                                \
    X(INCIDENT, incident)                                                                                              \
    X(RESTART, restart)                                                                                                \
    X(CHECKPOINT, checkpoint)                                                                                          \
    X(REPLICAS_DIFFER, replicas_differ)                                                                                \
    X(NODE_BAD, node_bad)                                                                                              \
    X(HOOK_ENDED, hook_ended)                                                                                          \
    X(ACCOUNT, account)                                                                                                \
    X(AGENT_ENDED, agent_ended)

enum event_type {
#define X(NAME, name) EVENT_##NAME,
    EVENT_OWN(X)
#undef X
#define X(NAME, name) EVENT_NOTE_##NAME,
        NOTE_LIST(X)
#undef X
            EVENT_TYPES
};

/* The event of what a coordinator says: u.note. */
#define EVENT_OF_NOTE(note) ((enum event_type)(EVENT_NOTE_JOINED + (note)))

#define EVENT_NUM(name)  uint64_t name;
#define EVENT_OPT(name)  int64_t name;
#define EVENT_STR(name)  const char *name;
#define EVENT_FLAG(name) bool name;
#define EVENT_OBJ(name)  const char *name;
#define F(T, kind, name) EVENT_##kind(name)
#define X(NAME, name)                                                                                                  \
    struct event_##name {                                                                                              \
        EVENT_##name##_FIELDS(F, event_##name)                                                                         \
    };
EVENT_OWN(X)
X(NOTE, note)
#undef X
#undef F

enum event_source { EVENT_AGENT, EVENT_COORDINATOR };

struct event {
    enum event_type type;
    enum event_source source;
    int64_t wall_usec; /* since 1970 */
    el_usec mono;      /* monotonic clock of the host */
    const char *run_id, *host;
    uint64_t round; /* 0: none */
    union {
#define X(NAME, name) struct event_##name name;
        EVENT_OWN(X)
#undef X
        struct event_note note;
    } u;
};

/* Appends the event as one line with its newline: valid JSON, whole or not at all.  -1: not even without what may be
 * left out (EVENT_LINE_MAX, or no memory). */
int event_encode(const struct event *ev, struct el_buf *out);

const char *event_name(enum event_type type);
/* Field i of this event behind the common ones, and what kind of value it is; NULL behind the last. */
const char *event_field(enum event_type type, unsigned i, const char **kind);
/* Common field i, in the order in which they stand in a line. */
const char *event_common(unsigned i, const char **kind);

#define EVENT_TIME_SIZE 28
/* RFC 3339 in UTC with microseconds: "2026-11-21T20:36:48.123456Z"; years 1970 to 9999. */
void event_time(int64_t wall_usec, char to[EVENT_TIME_SIZE]);

#endif
