/* The coordinator's shell: connections of agents and commands, one core (rdzv.h) for each job, the journal.  Whoever
 * listens hands it the connections that speak the control protocol (store_server_conf.control). */
#ifndef COORD_COORDINATOR_H
#define COORD_COORDINATOR_H
#include <stdbool.h>
#include <stddef.h>

#include "loop/loop.h"
#include "loop/pool.h"
#include "coord/rdzv.h"
#include "util/addr.h"
#include "util/err.h"

#define COORDINATOR_JOBS_MAX     256
#define COORDINATOR_JOBS_ONE     128                /* … that were begun from one address and are not over */
#define COORDINATOR_NEW_MAX      1024               /* connections whose first message has not come */
#define COORDINATOR_HELLO_LIMIT  EL_SEC(10)         /* how long that may take */
#define COORDINATOR_HELLO_BYTES  ((size_t)4 << 10)  /* of the first message */
#define COORDINATOR_WATCHERS_MAX 64                 /* `elrun status --watch`, */
#define COORDINATOR_WATCHERS_ONE 16                 /* … of one address */
#define COORDINATOR_READERS_MAX  64                 /* `elrun logs` */
#define COORDINATOR_READER_LIMIT EL_SEC(60)         /* how long one of them may take nothing */
#define COORDINATOR_UNSENT_BYTES ((size_t)1 << 20)  /* more for one connection: it does not read, and is closed */
#define COORDINATOR_MEMORY_BYTES ((size_t)1 << 30)  /* all jobs and connections, */
#define COORDINATOR_MEMORY_ONE   ((size_t)1 << 29)  /* … of which jobs of one address, */
#define COORDINATOR_SUMS_ONE     ((size_t)64 << 20) /* … of which what is remembered to compare their parts */
#define COORDINATOR_CONNS_ONE    ((size_t)64 << 20) /* what connections of one address have half sent or do not read */
#define COORDINATOR_KEEP_ENDED   EL_SEC(600)

struct coordinator;

/* Zeroed fields mean the default. */
struct coordinator_conf {
    const char *state_dir;    /* folder of the journal; NULL: none is kept */
    const char *name;         /* in front of log lines; NULL = "coordinator" */
    bool one_job;             /* inside an agent: log lines need not name the job */
    el_usec reader_limit;     /* whoever has asked and takes nothing is closed then */
    el_usec keep_ended;       /* a job that has ended is known so long: who asks is told how it ended */
    bool own_user;            /* of the users of this host it listens to its own and to root */
    const char *only_run_id;  /* an agent's coordinator lives as long as its job and is for no other; NULL: any job */
    const char *only_command; /* … which runs that, for the one who is refused */
    /* No member of an earlier coordinator can be there (the agent that hosts this one knows).  Else, and without a
     * journal, nothing is completed before a keep-alive limit has passed since it began to listen. */
    bool surely_new;
    /* What happens, besides the log line; status: of the job, -1 before its end. */
    void (*note)(void *ctx, const char *run_id, const struct rdzv_note *note, int status);
    void (*began)(void *ctx, const char *run_id, const struct rdzv_settings *set); /* a job's first node is here */
    /* A round with failures is closed: REPORT, then its rows.  It is sent to the node of rank 0, too, unless that is
     * own_instance: the agent of this process (0: there is none). */
    void (*report)(void *ctx, const char *run_id, const struct msg *msg);
    uint64_t own_instance;
    const char *own_process;         /* coordinator_mark_self() of this process; NULL: no agent is here */
    uint64_t dead_number, dead_rank; /* as in rdzv_conf */
    struct report_look look;         /* of the terminal on which that agent prints */
    void (*ended)(void *ctx, const char *run_id, unsigned status); /* everybody knows, or the time for that is over */
    /* A connection whose first message is LEASE_REQUEST: the host of a store that shares the port.  As `control` of the
     * store's server.  NULL: refused. */
    void (*knock)(void *ctx, int fd, const struct el_addr *peer, const char *bytes, size_t n);
    void *ctx;
};

/* NULL and *e.  conf and what it points to are copied; pool may be NULL if there is no state_dir. */
struct coordinator *coordinator_new(struct loop *l, struct pool *p, const struct coordinator_conf *conf,
                                    struct el_err *e);

/* Cuts all connections without a word: agents take it for a crash, and ride through. */
void coordinator_free(struct coordinator *c);

/* The descriptor is the coordinator's from here on; bytes begin with the preamble. */
void coordinator_accept(struct coordinator *c, int fd, const struct el_addr *peer, const char *bytes, size_t n);

unsigned coordinator_jobs(const struct coordinator *c);    /* known, ended ones included */
bool coordinator_busy(const struct coordinator *c);        /* some job is not over */
unsigned coordinator_members(const struct coordinator *c); /* of all jobs that are not over */
unsigned coordinator_readers(const struct coordinator *c); /* commands that are being sent a worker's output */

#endif
