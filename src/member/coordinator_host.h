/* The coordinator in this process, if there is one: its port, and the mark of it on this host (coordinator_mark.h).  Of
 * several agents on the endpoint's host the one that has the port hosts it; when that one dies, the others find the
 * port free with their next attempt to connect, and one of them takes it over. */
#ifndef MEMBER_COORDINATOR_HOST_H
#define MEMBER_COORDINATOR_HOST_H
#include <stdbool.h>

#include "conf/conf.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "coord/coordinator.h"
#include "store/server.h"
#include "util/addr.h"
#include "util/err.h"

#define COORDINATOR_HOST_MARK_LIMIT EL_SEC(1)  /* the mark is waited for; then somebody may be on his way back */
#define COORDINATOR_HOST_LOOK_LIMIT EL_MS(500) /* a look that is older says nothing any more */

struct coordinator_host;

/* Strings stay the caller's, and stay. */
struct coordinator_host_conf {
    int port;
    bool here_only; /* nobody from elsewhere is expected */
    const char *run_id, *command;
    uint64_t instance; /* of this agent */
    struct report_look look;
    el_usec silence;             /* the keep-alive limit */
    el_usec keep;                /* members wait so long for a coordinator that is gone */
    bool own_user;               /* as store_server_conf's */
    const struct el_cidr *allow; /* networks that connections may come from; the caller's */
    size_t allow_n;              /* 0: anywhere */
    const char *c10d_refused;    /* why the port serves no store */
};

struct coordinator_host_ops {
    /* Answer to coordinator_host_begin(): the coordinator is here (*e is 0), or another process of this host has the
     * port (taken), or it cannot be here at all (*e). */
    void (*begun)(void *ctx, bool taken, const struct el_err *e);
    /* As coordinator_conf's. */
    void (*note)(void *ctx, const char *run_id, const struct rdzv_note *note, int status);
    void (*report)(void *ctx, const char *run_id, const struct msg *msg);
    void (*job_began)(void *ctx, const char *run_id, const struct rdzv_settings *set);
    void (*ended)(void *ctx, const char *run_id, unsigned status);
    void (*knock)(void *ctx, int fd, const struct el_addr *peer, const char *bytes, size_t n);
    bool (*admits)(void *ctx, const struct el_addr *peer); /* to the store, while the port serves one */
};

struct coordinator_host *coordinator_host_new(struct loop *l, struct pool *p, const struct coordinator_host_conf *conf,
                                              const struct coordinator_host_ops *ops, void *ctx, struct el_err *e);
void coordinator_host_free(struct coordinator_host *h);

/* This host is the endpoint's.  The answer is begun(), in a later turn. */
void coordinator_host_begin(struct coordinator_host *h);

/* Tries to take the port over, at once: members of the coordinator that had it may come.  True: it is here now; or was
 * already.  What is in the way is said, once; that another process has the port is not in the way.  world: of the last
 * round, NULL: none; if it names a process of this host that is dead, the new coordinator does not wait for that. */
bool coordinator_host_take_over(struct coordinator_host *h, const struct msg_world *world);

/* This process ends in good order: nobody is left who could come back. */
void coordinator_host_end(struct coordinator_host *h);

/* NULL while it is not here. */
struct coordinator *coordinator_host_coordinator(const struct coordinator_host *h);
struct store_server *coordinator_host_port(const struct coordinator_host *h);

#endif
