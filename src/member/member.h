/* The node's side of the rendezvous, pure: it turns the coordinator's orders and what happens on this node into the
 * next thing to do (doc/design.md, "The cores, and who drives them").
 *
 *     connecting -> joining -> parked | starting -> running -> stopping -> leaving | joining | finishing -> ended
 *
 * Three machines beside each other: the *place* above, the *link* to the coordinator and the *lease* (the knock
 * connection to the host of the round's store).  It sits above the node core (agent.h): the core's conf has `managed`
 * set, so that it starts an attempt when told (AGENT_EV_ATTEMPT), never restarts by itself, and hands each end up:
 *
 *     MEMBER_DO_START   -> feed AGENT_EV_ATTEMPT (after env has the world: member_world())
 *     MEMBER_DO_STOP    -> feed AGENT_EV_HALT with signal and grace (grace 0 = SIGKILL at once)
 *     AGENT_DO_NOTE     -> MEMBER_EV_WORKER_FAILED (the core waits for hindsight before it says NOTE)
 *     AGENT_DO_UP       -> MEMBER_EV_STARTED: every worker has been forked
 *     AGENT_DO_RESULT   -> MEMBER_EV_CLOSED with core.cause: AGENT_SUCCESS | WORKER_FAILED | … ; stuck =
 * core.group.stuck a handled signal  -> MEMBER_EV_SIGNAL only (not the core: LEAVING goes first, then MEMBER_DO_STOP
 * comes back); SIGUSR1, SIGUSR2 and others still go to the core MEMBER_DO_EXIT    -> feed AGENT_EV_FINISH: the core
 * ends (its state must be idle, which it is then)
 *
 * Single-node runs do not use this file. */
#ifndef MEMBER_MEMBER_H
#define MEMBER_MEMBER_H
#include <stdbool.h>

#include "failure/restart_policy.h"
#include "coord/restore.h"
#include "coord/rdzv.h"
#include "util/rng.h"
#include "util/time.h"

#define MEMBER_ACTIONS_MAX   16
#define MEMBER_BACKOFF_MIN   EL_MS(10) /* first retry of a connection; doubles, with jitter */
#define MEMBER_BACKOFF_MAX   EL_SEC(1)
#define MEMBER_CONNECT_LIMIT EL_SEC(5) /* one attempt to connect, name look-up included */
#define MEMBER_HELLO_LIMIT   EL_SEC(5) /* HELLO to the first order: else the other side is no coordinator */
#define MEMBER_LEASE_LIMIT   EL_SEC(5)
#define MEMBER_NO_STEP       INT64_C(-1)
#define MEMBER_LEAVE_LIMIT   EL_SEC(1) /* LEAVING to LEAVE_ACK */
#define MEMBER_SAVE_MARGIN   EL_SEC(5) /* beyond the coordinator's own limit for an emergency checkpoint */
#define MEMBER_BURST         3   /* heartbeats soon after a connection: the clocks are compared before anybody fails */
#define MEMBER_DRIFT_PPM     100 /* two hosts' clocks go apart by so much at most */

enum member_place {
    MEMBER_CONNECTING, /* never told anything yet by this coordinator's predecessors or itself */
    MEMBER_JOINING,    /* connected, no order yet; no workers */
    MEMBER_PARKED,
    MEMBER_PROBING,  /* a stage of a health check was ordered */
    MEMBER_STARTING, /* store, knock, exec */
    MEMBER_RUNNING,
    MEMBER_STOPPING,  /* until the attempt is closed */
    MEMBER_FINISHING, /* its workers have succeeded; waits for the others */
    MEMBER_LEAVING,   /* asked to go */
    MEMBER_ENDED,
    MEMBER_PLACES,
};

enum member_link { MEMBER_LINK_DOWN, MEMBER_LINK_TRYING, MEMBER_LINK_HELLO, MEMBER_LINK_UP };
enum member_lease { MEMBER_LEASE_NONE, MEMBER_LEASE_DOWN, MEMBER_LEASE_TRYING, MEMBER_LEASE_UP };

struct member_conf {
    char run_id[MSG_RUN_ID_MAX + 1], host[MSG_NAME_MAX + 1], role[MSG_NAME_MAX + 1], addr[MSG_ADDR_MAX + 1];
    char domain[MSG_NAME_MAX]; /* --probe-domain; "": none */
    char command[MSG_TEXT_MAX + 1], elrun[MSG_NAME_MAX + 1];
    uint64_t instance;
    uint64_t uid, pid;
    int node_rank; /* -1: none */
    unsigned slots;
    struct rdzv_settings set;
    el_usec coordinator_timeout; /* 0: as join time-out */
    bool hosts_coordinator;      /* in this process: it is never silent, and what it does not know nobody knows */
};

enum member_event_type {
    MEMBER_EV_START,
    MEMBER_EV_CONNECTED,       /* the link is up; the preamble of the other side need not be there yet */
    MEMBER_EV_CONNECT_FAILED,  /* refused: somebody answered, but nobody listens; text: why */
    MEMBER_EV_LINK_CLOSED,     /* text: why */
    MEMBER_EV_MSG,             /* msg from the coordinator, HEARTBEAT_ACK included */
    MEMBER_EV_DELIVERED,       /* at: all that was said on the link until then has reached the coordinator's host, which
                                  keeps it for the coordinator even if that stands still */
    MEMBER_EV_LEASE_DELIVERED, /* at: the same of the lease and the store's host */
    MEMBER_EV_STORE,           /* answer to OPEN_STORE: ok, addr ("" = see MSG_store_ready), port; or text */
    MEMBER_EV_LEASE_GRANTED,   /* answers to LEASE_REQUEST */
    MEMBER_EV_LEASE_FAILED,    /* refused, text */
    MEMBER_EV_LEASE_CLOSED,
    MEMBER_EV_LEASE_MSG,   /* msg: HEARTBEAT_ACK or ROUND_OVER on our lease */
    MEMBER_EV_TENANT,      /* host of the store: msg that came on another node's lease: HEARTBEAT (answer it with
                              member_lease_reply()) or ROUND_OVER */
    MEMBER_EV_STARTED,     /* all workers of the attempt are there */
    MEMBER_EV_SUBSCRIBED,  /* a worker listens to notices */
    MEMBER_EV_STEP_REPORT, /* answer to NOTICE: step, deaf, past; or later past: a worker is beyond the boundary */
    MEMBER_EV_AT_BOUNDARY,
    MEMBER_EV_STOCK,         /* stock: all workers ask what to go back to, and could read that */
    MEMBER_EV_READ,          /* all of them have read what they were offered */
    MEMBER_EV_READS,         /* not yet, but bytes of it come from disk */
    MEMBER_EV_STAND,         /* stand: the workers are held back, and where; and each change of it */
    MEMBER_EV_TAKEN,         /* taken: which steps all workers have, or may yet have; and each change of it */
    MEMBER_EV_DIGESTS,       /* digests: of the last step that has some; and each change of it */
    MEMBER_EV_WENT_BACK,     /* step: the script has gone back to it by itself */
    MEMBER_EV_HELD,          /* held: what the workers have committed, or want on disk; and each change of it */
    MEMBER_EV_SAVED,         /* the order to write or to publish is carried out: ok, existed; or text */
    MEMBER_EV_MOVED,         /* at: bytes written so far */
    MEMBER_EV_PROBE_ID,      /* a rail of the ordered pair has its id */
    MEMBER_EV_PROBED,        /* the ordered stage is done */
    MEMBER_EV_WORKER_FAILED, /* incident */
    MEMBER_EV_CLOSED,        /* the attempt is closed: result, stuck, status, text, digest, incidents, ranks, missing */
    MEMBER_EV_SIGNAL,        /* signal: leave; again: faster */
    MEMBER_EV_TIMEOUT,
};

enum member_result { MEMBER_SUCCESS, MEMBER_FAILED, MEMBER_STOPPED, MEMBER_UNABLE /* cannot start workers here */ };

struct member_incident {
    el_usec time; /* this node's clock */
    unsigned local_rank;
    int code, signal; /* one of them -1 */
    bool oom;
    bool late; /* it only says that the time of a collective ran out, and none of this node had left */
    char text[MSG_TEXT_MAX + 1];
};

/* What this node's workers have left in memory; the shell's, until the next one is told. */
struct member_held {
    uint64_t number, coord; /* the round that they are in, or were last */
    uint64_t list;          /* number of the list of their parts; MEMBER_DO_PARTS tells it */
    int64_t parts;          /* in it; -1: not all have declared theirs */
    const char *layout, *steps;
    const char *wishes; /* "12@9f3a 15@9f3a": steps that the script wants on disk */
    int64_t least;      /* MEMBER_NO_STEP */
    uint64_t ask;       /* an operator's wish, until it is answered; 0: none */
    bool quiet;
};

/* Where this node's live workers stand (coord/emergency_ckpt.h); the shell's, until the next one is told. */
struct member_stand {
    uint64_t number, coord, serial, list;
    const char *steps, *why;
    int64_t limit, step;
    bool copied, busy, ends, elsewhere;
    unsigned copies;
    uint64_t bytes;
};

/* Which steps this node's workers have (coord/common_step.h); the shell's, until the next one is told. */
struct member_taken {
    uint64_t number, coord;
    const char *whole, *coming;
    int64_t era, passed, begun;
    bool ready, stuck, elsewhere;
};

/* Digests of what ranks of other nodes must have alike (coord/replica_check.h); the shell's, until the next one is
 * told. */
struct member_digests {
    uint64_t number, coord, lineage;
    int64_t step;
    const char *text;
};

struct member_event {
    enum member_event_type type;
    const struct member_digests *digests;
    const struct member_taken *taken;
    const struct member_stand *stand;
    const struct member_held *held;
    bool existed;
    const struct msg *msg;
    const struct member_incident *incident;
    const struct restore_stock *stock;   /* what the node knows by itself: attempt, at and what was told are ours */
    const struct restart_digest *digest; /* NULL: says nothing */
    enum member_result result;
    el_usec at;
    bool ok, refused, stuck;
    int64_t step; /* STEP_REPORT: the highest that a worker has begun, -1: none */
    bool deaf, past;
    int signal;
    unsigned status; /* CLOSED with FAILED or UNABLE: what this node would exit with */
    unsigned port;
    const char *addr, *text;
    /* CLOSED: workers failed by themselves, MEMBER_DO_INCIDENTS can tell of them; for STOPPED, until the next attempt:
     */
    bool incidents;
    const char *ranks, *missing;
};

enum member_action_type {
    MEMBER_DO_CONNECT,       /* resolve the endpoint anew and connect; answer CONNECTED or CONNECT_FAILED */
    MEMBER_DO_DISCONNECT,    /* close the link, or stop trying; no LINK_CLOSED is expected */
    MEMBER_DO_SEND,          /* member_message(m, what) on the link */
    MEMBER_DO_INCIDENTS,     /* send INCIDENT for each worker of the last attempt that failed by itself */
    MEMBER_DO_OPEN_STORE,    /* of member_round(); answer STORE */
    MEMBER_DO_CLOSE_STORE,   /* and every lease in it */
    MEMBER_DO_LEASE_REQUEST, /* connect to member_world()'s master and show the token; answer LEASE_GRANTED or
                                KNOCK_FAILED */
    MEMBER_DO_LEASE_RELEASE, /* close the lease, or stop trying */
    MEMBER_DO_LEASE_SEND,    /* HEARTBEAT or ROUND_OVER (`what`) on our lease */
    MEMBER_DO_TENANTS_SEND,  /* host of the store: ROUND_OVER to every lease */
    MEMBER_DO_START,         /* an attempt with member_world() */
    MEMBER_DO_STOP,          /* the attempt: signal, grace (0 = SIGKILL) */
    MEMBER_DO_PROBE,         /* the stage of m->probe; the message's other fields are new ids, or none; answer PROBED */
    MEMBER_DO_RESTOCK,       /* the agreement is repeated: STOCK anew, as soon as all workers ask */
    MEMBER_DO_RESTORE,       /* offer m->restore's step to all workers; READ, or STOCK if one could not */
    MEMBER_DO_GO,            /* every rank of the job has read it: the workers may go on */
    MEMBER_DO_PARTS,         /* send CKPT_PART for each part of the list */
    MEMBER_DO_FILES,         /* send CKPT_FILE for each file that was written */
    MEMBER_DO_WORDS, /* the message that is fed, about an emergency checkpoint; hold the workers back, answer STAND */
    MEMBER_DO_WORDS_LOST, /* there is nobody to agree with: what is not being copied will not be */
    MEMBER_DO_COMMON,     /* the message that is fed: which step all nodes have, */
    MEMBER_DO_DIFFER,     /* … or which tensors of a part are to be told: send CKPT_TENSORS */
    MEMBER_DO_WRITE,      /* the message that is fed; hold what it names, answer SAVED */
    MEMBER_DO_FILE,       /* the message that is fed: one of those to publish */
    MEMBER_DO_PUBLISH,    /* the message that is fed; answer SAVED */
    MEMBER_DO_UNSAVE,     /* stop writing, then SAVED as ever; or, if nothing is written, forget the order */
    MEMBER_DO_SAVED,      /* m->save: what has become of over_step */
    MEMBER_DO_PROBE_STOP, /* end what runs of it, forget what it brought */
    MEMBER_DO_PROBE_TELL, /* `what`: send PROBE_ID for each id, or PROBE_RESULT for all that the stage has brought */
    MEMBER_DO_NOTICE, /* m->notice and m->text: without a boundary no worker may begin a step, answer STEP_REPORT; with
                         one: tell the workers, answer AT_BOUNDARY when all that listen are there */
    MEMBER_DO_UNNOTICE,   /* forget it: the workers run on */
    MEMBER_DO_SAY,        /* m->text: a line for the person who waits */
    MEMBER_DO_SAY_FENCED, /* member_fence_text() */
    MEMBER_DO_EXIT,       /* with m->status and m->text; a last message sent before is flushed first */
};

struct member_action {
    enum member_action_type type;
    enum msg_type what;
    int signal;
    el_usec grace;
};

struct member_actions {
    unsigned n;
    struct member_action v[MEMBER_ACTIONS_MAX];
};

struct member_round {
    uint64_t number, coord;
};

struct member_stage { /* of a health check */
    uint64_t number, coord, probe, stage;
};

struct member_restore { /* the agreement about what the workers of `round` go back to, as far as this node has got */
    bool stocked;       /* `stock` is of the present attempt */
    struct restore_stock stock;
    char steps[RESTORE_LIST_MAX + 1], text[RESTORE_TEXT_MAX + 1];
};

struct member_save {                /* saving a step */
    const struct member_held *held; /* NULL: nothing has been said yet */
    uint64_t list;                  /* that was told */
    uint64_t giver, order;          /* that is carried out; 0: none */
    enum ckpt_commit_at at;
    int64_t step, done; /* done: newest that is on disk */
    uint64_t got, moved;
    bool existed, over; /* over: the order is, and the disk has not answered yet */
    char text[MSG_TEXT_MAX + 1];
    int64_t over_step; /* of MEMBER_DO_SAVED */
    uint64_t over_lineage;
    bool over_good, over_ours;
    bool over_unknown; /* the order came to nothing; of the step that is not known yet, or not any more */
    uint64_t over_ask, over_bytes, over_ms; /* over_ask: the operator's wish that this answers; 0: none */
    bool over_existed, over_emergency;
    char over_text[MSG_TEXT_MAX + 1];
    el_usec free_at; /* it does not leave before, unless the round is closed; 0: it may */
};

struct member_notice { /* of a planned change */
    unsigned why;      /* enum notice_why */
    uint64_t ask;
    int64_t boundary; /* MEMBER_NO_STEP: not known yet */
    el_usec until;
};

struct member_live {
    bool told, deaf, past;
    int64_t step;
};

struct member {
    struct member_conf conf;
    struct el_rng rng;
    enum member_place place;
    enum member_link link;
    enum member_lease lease;
    uint64_t connection; /* counter of HELLO */

    struct member_round round;   /* the last one we held a WORLD of; 0: none */
    struct member_round store;   /* whose store is open here; 0: none */
    struct member_round stopped; /* what STOPPED speaks of */
    uint64_t seen;               /* highest number told */
    struct msg_world world;      /* of `round`; its strings are the copies below */
    char master_addr[MSG_ADDR_MAX + 1], rank0_host[MSG_NAME_MAX + 1], why[MSG_TEXT_MAX + 1];
    char successors[MSG_TEXT_MAX + 1], coordinator_process[MSG_PROCESS_MAX + 1];
    uint64_t token; /* of `store` */
    char store_addr[MSG_ADDR_MAX + 1];
    unsigned store_port;

    bool parked;  /* the last order was to wait */
    bool probing; /* … was this stage of a health check: */
    struct member_stage probe;
    bool probed, probe_ids;    /* it is done; it has ids */
    uint64_t probe_told;       /* the connection on which the results were told last */
    bool entering;             /* WORLD is accepted, the store is not reached yet */
    bool opening, store_ready; /* of `store` */
    bool over_told;            /* a lease said that `round` is over */
    bool stopping;             /* the attempt was told to stop */
    bool attempt;              /* workers may exist: from MEMBER_DO_START to MEMBER_EV_CLOSED */
    bool up;                   /* STARTED was seen */
    bool aware, at_boundary, noticed;
    struct member_notice notice;          /* of `noticed` */
    struct member_live live;              /* our answer */
    const struct member_taken *taken;     /* of MEMBER_EV_TAKEN; NULL: none yet */
    const struct member_digests *digests; /* of MEMBER_EV_DIGESTS; NULL: none yet */
    const struct member_stand *stand;     /* of MEMBER_EV_STAND; NULL: none yet */
    bool stand_lost;                      /* WORDS_LOST was said of it */
    bool stand_over;                      /* the coordinator has said that it is over */
    bool succeeded;                       /* of `round`, and not stopped since */
    bool latest; /* nothing was ordered behind `round` when a coordinator closed the last connection that reached it */
    bool failed, fenced, stuck; /* how `round` ended here: told again in each HELLO */
    struct member_incident incident;
    bool incident_open; /* the round is not known to be closed: each coordinator is told of it, this one may be new */
    struct restart_digest digest; /* of `round`, for DIGEST */
    unsigned refused_status;      /* the coordinator answers, but refuses us for now; 0: it does not */
    bool incidents, end_due;      /* it has some; there is something to say of it, and STOPPED, on each connection */
    const char *ranks, *missing;  /* of STOPPED; the shell's */
    bool late;                    /* the attempt was stopped because somebody elsewhere was `late` */
    unsigned failed_status;       /* of this node's own failure, for the case that nobody says more */

    el_usec connect_at, tried_at, try_until, hello_until; /* those that do not run are EL_NEVER */
    el_usec beat_at;                                      /* the next HEARTBEAT on the link */
    el_usec asked,
        asked_last;      /* the first HEARTBEAT on the link that is not answered yet, or EL_NEVER; the last one sent */
    el_usec coord_heard; /* sending time of the last thing the coordinator answered */
    el_usec delivered;   /* … of the last that its host has for it */
    el_usec refused;     /* … of the last attempt to connect that its host refused */
    el_usec away_since;  /* no link since; EL_NEVER while up */
    el_usec backoff, lease_backoff;
    el_usec knock_at, knocked_at, knock_until, enter_until;
    el_usec lease_asked;     /* the last HEARTBEAT on the lease, or what counts as that; EL_NEVER: no lease is up */
    el_usec lease_heard;     /* sending time of the last one that was answered */
    el_usec lease_delivered; /* … of the last message that the store's host has */
    el_usec lease_echo;      /* the host's clock in its last answer */
    bool lease_here;         /* the coordinator is in the process of the store's host */
    el_usec taken_since;     /* known since then: the coordinator's host has the HEARTBEAT of `asked`; or EL_NEVER */
    el_usec still;           /* until then, as another node has told us, the coordinator answered nobody */
    el_usec refused_too;     /* until then, as another node has told us, its host refused that node, too */
    el_usec others_hear;     /* host of the store: until then, as another node says, the coordinator answers */
    el_usec join_until;      /* never a link so far: give up then */
    el_usec leave_until;     /* LEAVE_ACK is waited for */
    el_usec depart_at;       /* it has come: the order to stop is waited for */
    int leave_signal;
    unsigned leaves;               /* signals so far */
    int64_t clock_offset;          /* coordinator's clock minus ours, microseconds */
    el_usec clock_error, clock_at; /* so far off was that when it was measured, at most; EL_NEVER: not yet */
    unsigned burst;                /* heartbeats that come faster */
    bool ever;                     /* a coordinator has answered */
    bool end_told;                 /* END was received */
    bool ended; /* END was received, or nothing is left to wait for: exit once the workers are gone */
    bool leaving;
    bool leave_told; /* LEAVING was answered, or nobody is there to answer */

    struct member_restore restore;
    struct member_save save;
    unsigned status;
    char text[MSG_TEXT_MAX + 1];    /* with SAY, NOTICE and EXIT */
    char trouble[MSG_TEXT_MAX + 1]; /* why the last connection failed */
};

void member_init(struct member *m, const struct member_conf *conf, uint64_t rng_start);
void member_step(struct member *m, const struct member_event *ev, el_usec now, struct member_actions *out);
el_usec member_deadline(const struct member *m);

/* When the workers that run here must be dead unless a later step says otherwise: the others may hold their ranks from
 * then on.  EL_NEVER if none run, or if nobody else can decide that.  The guard acts on it when this process cannot. */
el_usec member_fence_at(const struct member *m);
void member_check(const struct member *m);

/* Why the fence has killed the workers here; returns to. */
const char *member_fence_text(const struct member *m, char to[MSG_TEXT_MAX + 1]);

/* Fills the message that a SEND action names; strings live in *m. */
void member_message(const struct member *m, enum msg_type what, el_usec now, struct msg *out);

/* A moment of this node's clock on the coordinator's, for time_us and error_us of a message. */
void member_on_clock(const struct member *m, el_usec at, el_usec now, uint64_t *time_us, uint64_t *error_us);

/* The answer to a HEARTBEAT that came on a lease to this node. */
void member_lease_reply(const struct member *m, const struct msg_heartbeat *beat, el_usec now, struct msg *out);

/* The world to run (from WORLD), and the round whose store is to be opened. */
const struct msg_world *member_world(const struct member *m);
struct member_round member_store_round(const struct member *m);

const char *member_place_name(enum member_place p);

#endif
