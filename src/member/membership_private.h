/* What membership_io.c and membership_store_io.c share; nobody else's. */
#ifndef MEMBER_MEMBERSHIP_PRIVATE_H
#define MEMBER_MEMBERSHIP_PRIVATE_H
#include "member/coordinator_host.h"
#include "member/membership.h"
#include "member/lease_server.h"
#include "control/link.h"
#include "control/peer_ident.h"
#include "store/server.h"

#define MEMBERSHIP_QUEUE_MAX 16
#define MEMBERSHIP_NO_ROUND  "no round has its store here"

struct membership {
    struct membership_conf conf;
    struct membership_ops ops;
    void *ctx;
    struct loop *loop;
    struct pool *pool;
    struct member core;
    struct member_event queue[MEMBERSHIP_QUEUE_MAX]; /* answers that came while a step was being carried out */
    unsigned queued;
    bool stepping;
    struct restore_stock stock;    /* what an event that waits in the queue points to */
    struct member_incident failed; /* the same: an attempt has one */
    const struct msg_probe *probe; /* the order that is being fed */
    const struct msg *order;       /* the same, of any kind */
    char saved[MSG_TEXT_MAX + 1];  /* what an answer that waits in the queue points to */
    struct loop_timer *deadline, *staying;

    struct link *link, *lease;
    bool lease_held; /* LEASE_GRANTED has come */
    struct lease_server *tenants;
    struct store_server *store; /* of the round; may be `port` */
    struct coordinator_host *hosting;
    char store_addr[EL_ADDR_TEXT_MAX]; /* what an answer that waits in the queue points to */
    struct el_err store_error;
    bool exiting;                /* the coordinator is what we stay for */
    unsigned asked;              /* by signals, since then */
    el_usec say_at;              /* that it stays; 0: has been said */
    bool answered;               /* a coordinator, if only to refuse */
    struct peer_ident *stranger; /* being asked what it is */
    bool is_store;               /* its answer */
    el_usec began;
    char trouble[256]; /* said last; see say_trouble() */
    el_usec fence;     /* told last */
};

/* membership_io.c: one step of the core, and what it orders. */
void membership_feed(struct membership *m, const struct member_event *ev);

/* The core hears what the coordinator's host has got. */
void membership_look(struct membership *m);

/* membership_store_io.c: the store of the round, and who may use it. */
bool membership_knocks(void *ctx, const struct msg_lease_request *k); /* lease_server_ops */
void membership_tenant_heard(void *ctx, const struct msg *msg);
void membership_tenant_reply(void *ctx, const struct msg_heartbeat *beat, struct msg *out);
void membership_knock(void *ctx, int fd, const struct el_addr *peer, const char *bytes,
                      size_t n); /* coordinator_host_ops */
bool membership_admits(void *ctx, const struct el_addr *peer);
void membership_open_store(struct membership *m); /* the core hears STORE */
void membership_close_store(struct membership *m);

#endif
