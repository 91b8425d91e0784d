/* A c10d store on a port: the shell around kv and session.  One thread, the loop's. */
#ifndef STORE_SERVER_H
#define STORE_SERVER_H
#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"
#include "util/addr.h"
#include "util/buf.h"
#include "util/err.h"

#define STORE_HELLO_MAX          EL_SEC(10) /* who has begun to speak and has not shown that it is c10d is closed then */
#define STORE_READ_MAX           EL_SEC(60)   /* who reads none of its answers for so long is closed */
#define STORE_TURN_BYTES         (512u << 10) /* of long answers in a turn of the loop, whoever asked for them */
#define STORE_PIECE_BYTES        (64u << 10)  /* of a long value, then it is the next client's turn */
#define STORE_MEMORY_MAX_DEFAULT ((size_t)1 << 30)

struct store_server;

/* Zeroed fields mean the default. */
struct store_server_conf {
    const char *bind;            /* numeric address; NULL = 127.0.0.1 and, where there is one, ::1 */
    int port;                    /* 0 = a free one */
    const struct el_cidr *allow; /* who may connect, besides this host; none = everybody */
    size_t allow_n;
    size_t memory_max_bytes; /* keys, waits and buffers together */
    unsigned clients_max;    /* 0 = as many as descriptors allow */
    el_usec read_max;        /* STORE_READ_MAX */
    el_usec wait_report;     /* a wait that is older is reported; 0 = never */
    unsigned world_size;     /* how many ranks are expected; 0 = not known */
    const char *name;        /* in front of log lines; NULL = "store" */
    /* A connection that speaks elrun's control protocol: the descriptor is the callee's from here on, with the bytes
     * that were read (valid during the call; they begin with `ELR1`).  NULL: such connections are closed with a line.
     */
    void (*control)(void *ctx, int fd, const struct el_addr *peer, const char *bytes, size_t n);
    /* May c10d be spoken from this address?  Asked when its first bytes come; who may not can still speak the control
     * protocol.  NULL: `allow` is all. */
    bool (*admits)(void *ctx, const struct el_addr *peer);
    bool own_user;            /* c10d is for this user: who is another one on this host is refused */
    void *control_ctx;        /* of both */
    const char *c10d_refused; /* not NULL: begin as after store_server_c10d() with this reason */
};

/* Listens at once; *conf and what it points to are copied.  NULL and *e if it cannot. */
struct store_server *store_server_new(struct loop *l, const struct store_server_conf *conf, struct el_err *e);

/* Cuts all connections. */
void store_server_free(struct store_server *s);

int store_server_port(const struct store_server *s);

/* why NULL: clients of c10d are served from here on, from an empty store.  Else they are closed with this reason (a
 * string that stays).  Those that were served before are cut. */
int store_server_c10d(struct store_server *s, const char *why, struct el_err *e);

/* How many are connected now. */
size_t store_server_clients(const struct store_server *s);

/* So many ranks are expected from here on, none of which is known yet.  Without the memory for it reports name no
 * absent ranks. */
void store_server_world(struct store_server *s, unsigned size);

/* Worker `rank` is this process on this host: its connections are known by the process id that torch names in its
 * hello (2.5 and later), so that reports can say which ranks have come.  A new pid replaces the old one. */
void store_server_worker(struct store_server *s, uint32_t pid, unsigned rank);

/* Appends what is waited for now, a line for each key with '\n' behind: which key, how many wait, since when, who, and
 * which of the expected ranks have not come.  Nothing if nobody waits. */
void store_server_missing(struct store_server *s, struct el_buf *out);

#endif
