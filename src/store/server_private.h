/* What the files of the server share: server_io.c (connections, memory, time), server_serve_io.c
 * (bytes) and server_log_io.c (what it says).  Nobody
 * else includes it. */
#ifndef STORE_SERVER_PRIVATE_H
#define STORE_SERVER_PRIVATE_H
#include <stdbool.h>

#include "loop/conn.h"
#include "store/listen.h"
#include "store/server.h"
#include "store/session.h"
#include "util/log.h"

/* Lines that strangers can cause: so many a second, then they are counted. */
struct brake {
    el_usec second;
    unsigned lines, dropped;
};

/* Clients that are waited for, oldest first: those that have not greeted, and those that do not read. */
struct silent {
    struct client *first, *last;
    size_t n;
};

struct client {
    struct client *prev, *next; /* all clients */
    struct client *silent_prev, *silent_next;
    struct client *turn_prev, *turn_next;
    bool queued;        /* for its turn */
    struct silent *in;  /* NULL: it has greeted, and has read what there was */
    el_usec since;      /* when it came; when it has read something */
    struct el_buf rest; /* that was read, and comes after the answer that is being sent */
    size_t rest_at;
    bool feeding; /* from there, or to there: it gives up nothing meanwhile */
    struct conn conn;
    struct store_server *server; /* from here on what each request touches stands together */
    struct session session;
};

/* Clients that are owed an answer and whose sockets have room, in the order in which they are served. */
struct turns {
    struct client *first, *last;
};

struct listener {
    struct store_server *server;
    struct loop_fd *watch;
    int fd;
};

struct store_server {
    struct loop *loop;
    struct el_mem mem, kv_mem; /* kv_mem: of the first, but for what answers need */
    struct kv *kv;             /* NULL: c10d is refused */
    struct store_server_conf conf;
    struct el_cidr *allow;
    char name[128];
    int port;
    struct listener listeners[LISTEN_MAX];
    unsigned listeners_n;
    struct client *clients;
    size_t clients_n;
    struct silent fresh, quiet; /* quiet: for longer than STORE_HELLO_MAX */
    struct silent slow;         /* something waits for them to read */
    struct turns turns;
    struct loop_chore *chore; /* while somebody is among those */
    struct el_buf reply;      /* of the request at hand */
    struct loop_timer *timer;
    el_usec resume_at, report_at;      /* EL_NEVER: accepting; nobody waits */
    el_usec no_hoards_at;              /* the turn in which nobody was found who hoards memory */
    struct brake brakes[EL_DEBUG + 1]; /* by level: the gossip of one must not hide the other */
    uint32_t *worker_pid;              /* by rank */
    unsigned workers_n;
    bool full; /* descriptors have run out, and that has been said */
};

/* Never reached: while something is unsent no request is looked at, and the answers to those before it are bounded
 * softly, but for the echo of a COMPARE_SET, which is a value. */
#define SERVER_UNSENT_MAX (16 << 20)

/* What keys and values leave of --max-memory, at most an eighth of it: in a store that they fill somebody can still
 * connect, ask and be answered, and so take some of them away. */
#define STORE_LEAVES_BYTES ((size_t)256 << 10)

extern const struct conn_ops server_client_ops;

/* The only way for a client to go. */
void server_client_free(struct client *c);
void server_silent_add(struct silent *in, struct client *c);
void server_silent_remove(struct client *c);
void server_turn_leave(struct client *c);
void server_turn(void *ctx); /* the chore */
/* Asked when the first bytes come: the store of a round may have begun since the connection did. */
bool server_admits(const struct store_server *s, const struct client *c);

/* The one timer: for silent clients, for those that do not read, for accepting again, for reports, for lines that were
 * left out. */
void server_set_timer(struct store_server *s);

/* A line of the log, unless there were too many of this level within this second: those are counted, and their number
 * is said when the second is over. */
__attribute__((format(printf, 3, 4))) void server_say(struct store_server *s, enum el_level level, const char *fmt,
                                                      ...);
void server_say_closed(struct client *c, enum el_level level, const char *why);
void server_say_dropped(struct store_server *s);
el_usec server_dropped_at(const struct store_server *s); /* when that is due; EL_NEVER: nothing was left out */

/* Says which waits are due, and sets report_at. */
void server_report(struct store_server *s);

#endif
