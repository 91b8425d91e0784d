/* What the files of the coordinator core share.  Nobody else includes this, except tests that look inside. */
#ifndef COORD_RDZV_PRIVATE_H
#define COORD_RDZV_PRIVATE_H
#include "failure/restart_policy.h"
#include "failure/failure.h"
#include "failure/first_failure.h"
#include "coord/budget.h"
#include "coord/common_step.h"
#include "coord/replica_check.h"
#include "coord/emergency_ckpt.h"
#include "coord/health_check.h"
#include "control/notice.h"
#include "coord/rdzv.h"
#include "coord/restore.h"
#include "coord/ckpt_commit.h"
#include "coord/id_table.h"

enum rdzv_phase {
    RDZV_FREE,
    RDZV_READY, /* holds no workers */
    RDZV_BUSY,  /* has a seat in the present round, from WORLD until the round is closed */
    RDZV_STRAY, /* holds workers of another round; told to stop them */
};

struct rdzv_link { /* neighbours in a list, by member number */
    uint32_t prev, next;
};

struct rdzv_list {
    uint32_t first, last;
};

#define RDZV_REMOTE_MAX 56 /* an address in text, without a port */

struct rdzv_member {
    enum rdzv_phase phase;
    uint64_t instance, connection, pid;
    uint64_t conn; /* 0: closed, within its grace */
    char host[MSG_NAME_MAX + 1], addr[MSG_ADDR_MAX + 1], domain[MSG_NAME_MAX];
    char remote[RDZV_REMOTE_MAX]; /* of its connection: what it says of its address gives it no right */
    int node_rank;
    unsigned slots, role;
    bool same_host; /* as the coordinator */
    bool leaving;   /* said so, or drained: never chosen again */
    bool drained;
    bool excluded;              /* by a health check; drained, too */
    bool verdict_untold;        /* … of which it has not been told the verdict */
    bool stuck, doubted, aside; /* any: chosen only if min cannot be had otherwise */
    bool no_knock;              /* could not reach the present round's store */
    bool started, aware, at_boundary, acked;
    bool lives; /* STEP_REPORT of the present ask of a notice has come: */
    int64_t live_step;
    uint32_t seat;             /* in the present or last round; RDZV_NONE */
    uint64_t number, coord;    /* STRAY: of what it holds */
    uint64_t held, held_coord; /* the round, over for us, whose workers it holds back; 0: none */
    uint32_t prober;           /* node of the health check that runs; RDZV_NONE */
    uint32_t judged;           /* node of the last that is over; RDZV_NONE */
    uint64_t probed;           /* the wish of the last one that has judged it */
    uint64_t picked;           /* the forming of rounds that took it last */
    el_usec heard;             /* last sign of life */
    el_usec gone_until;        /* while conn is 0 */
    struct rdzv_link arrival;  /* all members, oldest first */
    struct rdzv_link quiet;    /* connected ones by `heard`, or gone ones by `gone_until` */
};

struct rdzv_seat {
    uint32_t member; /* RDZV_NONE: lost, or (rebuilding) not heard */
    uint64_t instance;
    int node_rank;
    unsigned slots, role;
    unsigned rank_base, role_base;
    unsigned reported_base;                    /* rank_base, as its node has it; 0: nobody has reported it */
    bool stopped, succeeded, failed, stopping; /* the last two: as reported while rebuilding */
    bool latest;                               /* … nothing was ordered behind it when the coordinator went */
    bool digested;                             /* its DIGEST has been counted */
    char remote[RDZV_REMOTE_MAX];              /* where its member comes from */
};

struct rdzv_incident {
    struct first_failure_entry order; /* node: the seat */
    unsigned local_rank;
    int code, signal; /* one of them -1 */
    bool judged;      /* INCIDENT has come: class, type and order.follower are known */
    bool absent;      /* elrun stopped it, and others waited for it in vain */
    enum failure_class class;
    char type[MSG_EXCEPTION_MAX + 1];
    char host[MSG_NAME_MAX + 1], text[MSG_TEXT_MAX + 1];
    char *document; /* paid by rdzv.documents; NULL: none, or others were rather the cause */
};

#define X(name, text, status) +1
enum { RDZV_CLASSES = 0 FAILURE_CLASS_LIST(X) };
#undef X

/* What the failures of a round say.  The counts grow while it runs; the rest is there once rdzv_close() has begun. */
struct rdzv_findings {
    uint64_t number, coord; /* of which round */
    unsigned world, reader; /* its workers; the member that is sent the report */
    uint64_t rank0;         /* instance of its node; 0: that was lost */
    int root;               /* of rdzv.incident; -1: no worker failed by itself */
    uint64_t restarts;      /* made before it */
    unsigned among;         /* so many may have been the first, the root included */
    uint64_t failed, by_class[RDZV_CLASSES];
    unsigned nodes, nodes_like_root; /* of those kept: with a failure; whose first one has the root's class and type */
};

/* A host that is set aside. */
struct rdzv_aside {
    el_usec until; /* EL_NEVER: the job's end */
    char host[MSG_NAME_MAX + 1], why[RDZV_WHY_MAX + 1];
};

struct rdzv_suspect { /* its hardware, by what a worker of this round said */
    uint32_t seat;
    char why[RDZV_WHY_MAX + 1];
};

struct rdzv_health {
    bool wanted;                  /* before the next round */
    uint64_t wish;                /* number of that wish: who was looked at for it, is not again */
    unsigned tries;               /* checks for it so far */
    uint64_t probe;               /* number of the last check */
    struct health_check *probing; /* that runs; NULL: none does */
    struct health_check *last;    /* that is over; NULL: none is */
    uint32_t *member;             /* by its nodes: who that is; RDZV_NONE: lost */
    uint64_t *instance;
    unsigned nodes, excluded;
    uint64_t banned[RDZV_ASIDE_MAX]; /* instances that were excluded, the last ones; bans: how many there were */
    unsigned bans;
    bool paused;             /* we stood still during the check */
    uint32_t reader;         /* the member that prints all of it, if nobody here does; RDZV_NONE */
    struct el_buf report[2]; /* for people, as JSON */
    unsigned kind;           /* which of them is being paged */
    size_t paged;            /* bytes of it, so far */
    el_usec took;
    char page[MSG_STREAM_MAX + 1];
    char first_bad[MSG_TEXT_MAX + 1], verdict_text[MSG_TEXT_MAX + 1], summary[MSG_TEXT_MAX + 1];
};

/* Why a round is not completed yet. */
enum rdzv_wait {
    RDZV_GO,
    RDZV_WAIT_MIN,
    RDZV_WAIT_UNIT,
    RDZV_WAIT_STRAYS,
    RDZV_WAIT_SETTLE,
    RDZV_WAIT_REPLACE,
    RDZV_WAIT_RETRY,
};

struct rdzv_verdict {
    enum rdzv_wait wait;
    el_usec until;   /* when it would change by itself */
    unsigned target; /* members of the round, if it goes now; 0 if it cannot */
};

struct rdzv {
    struct rdzv_conf conf;
    unsigned unchecked; /* steps since the last rdzv_check() */
    uint64_t min, max;  /* in force: as configured, or as scaled */
    enum rdzv_state state;
    struct el_rng rng;
    struct el_mem *mem;
    struct budget budget;

    struct rdzv_member *member; /* conf.room */
    unsigned room_used;         /* numbers ever used are below */
    unsigned free_head;         /* of a list through arrival.next */
    struct id_table by_instance, by_node_rank;
    struct rdzv_list arrival, quiet, gone;
    char role[RDZV_ROLES_MAX][MSG_NAME_MAX + 1];
    unsigned role_world[RDZV_ROLES_MAX];
    unsigned roles;

    /* Tallies, kept by rdzv_tally(). */
    unsigned members, good, resort, strays, survivors, aware, lives, at_boundary, unacked;

    uint64_t number, coord; /* of the present or last round */
    uint64_t seen;          /* highest number known to anybody */
    bool recorded;          /* the journal knew the job when this coordinator began */
    uint64_t token;
    struct rdzv_seat *seat; /* conf.room */
    uint32_t *scratch, *scratch2;
    unsigned size;       /* seats */
    unsigned open_seats; /* neither stopped nor lost */
    unsigned lost_seats, succeeded_seats, no_knocks;
    unsigned abandons;               /* rounds that could not be opened since waiting began */
    el_usec open_at;                 /* after several of them: not before */
    char no_store[MSG_TEXT_MAX + 1]; /* why the last one could not */
    unsigned unheard;                /* rebuilding */
    bool ran;                        /* a node has started the workers of a round that this coordinator formed */
    bool unstarted;                  /* the present round ended by a node that had not */
    bool formed;                     /* this coordinator has formed or adopted a round */
    char master_addr[MSG_ADDR_MAX + 1], self_addr[MSG_ADDR_MAX + 1];
    unsigned master_port;
    unsigned world, world_first, world_previous, world_last;
    char why[MSG_TEXT_MAX + 1]; /* of the round */
    char successors[4 * (MSG_ADDR_MAX + 1)];
    char stop_text[MSG_TEXT_MAX + 1];
    bool late;              /* … only says that the time of a collective ran out, and no node had come to its end */
    uint64_t restarts_told; /* of the round's WORLD */
    el_usec waited;         /* before this round, since what made the last one fail had to pass */

    bool failed, membership, planned; /* how the present round ends */
    bool noticed;
    unsigned notice_change; /* enum notice_why */
    unsigned notice_ask;    /* how often the nodes were asked for their steps */
    int64_t boundary;       /* RDZV_NO_STEP: they are being asked */
    uint64_t charged;       /* number of the last round that cost a restart */
    bool stop_job;
    bool deserted; /* it ends because nobody is left who could be told */
    el_usec stop_grace;
    unsigned status;
    char end_text[MSG_TEXT_MAX + 1], end_cause[MSG_TEXT_MAX + 1];

    struct rdzv_incident incident[RDZV_INCIDENTS_MAX];
    unsigned incident_count;     /* of this round, kept */
    struct rdzv_incident silent; /* judged: one that said nothing while the time of others ran out on other nodes */
    uint64_t incidents;          /* of the job */
    struct rdzv_findings findings;
    struct el_mem documents;
    uint8_t *fate; /* by rank, bits; fates are in use */
    unsigned fates, fates_room;
    char missing[MSG_MISSING_MAX + 1], classes[MSG_TEXT_MAX + 1];
    struct el_buf stopped_ranks, rest_ranks; /* of the report */

    struct restart_digest digest; /* of the present round, as far as its nodes have told */
    struct restart_history history;
    struct rdzv_aside aside[RDZV_ASIDE_MAX];
    unsigned asides;
    struct rdzv_suspect suspect[RDZV_ASIDE_MAX]; /* of the present round */
    unsigned suspects;
    char aside_text[MSG_TEXT_MAX + 1];
    struct rdzv_health health;
    struct restore restore;    /* of the present round */
    struct common_step common; /* of the present round; */
    char useless[2 * COMMON_STEP_STEPS_TEXT + 1];
    struct replica_check *comparing;    /* of the present round; */
    struct emergency_ckpt emergency;    /* and this */
    bool emergency_due, emergency_over; /* something has changed; what came of it is said */
    struct ckpt_commit *saving;         /* NULL: nothing is saved */
    bool saving_due;                    /* something has changed */
    bool saving_ends;                   /* … of this round: its workers are gone */
    struct rdzv_newest {
        int64_t step; /* CKPT_COMMIT_NO_STEP: none */
        el_usec since;
    } held, on_disk;      /* newest snapshot that all nodes hold, newest checkpoint; and since when that is known */
    uint64_t saving_told; /* serial of the last result that was said */
    uint64_t ckpt_commit_late; /* … of the last step of which it was said that it waits */

    uint64_t serial; /* of the last JOURNAL */
    bool serial_waits;
    el_usec started_at, stopped_at, waiting_since, last_join, min_since, lost_at, rebuild_until;
    el_usec store_until, stop_until, notice_until, end_until, journal_at, tell_at;
    el_usec last_turn, hold_until; /* silence: one's own loop was late */
    el_usec wake;                  /* of the verdict and of growing */
    el_usec spent[RDZV_STATES], state_since;
    bool closed;                    /* a round was, in this step */
    bool tell;                      /* waiting members do not know the news */
    uint64_t changes, told_changes; /* of what they are told: who is here, and rounds that could not be opened */

    struct rdzv_note note[RDZV_NOTES_MAX];
    unsigned notes;
    struct msg answer;
    char answer_text[MSG_TEXT_MAX + 1];
    char text[MSG_TEXT_MAX + 1];
};

/* rdzv.c */
struct rdzv_action *rdzv_act(struct rdzv_actions *out, enum rdzv_action_type type);
static inline const char *rdzv_plural(unsigned n)
{
    return n == 1 ? "" : "s";
}

void rdzv_move(struct rdzv *r, enum rdzv_state to, el_usec now);
void rdzv_say(struct rdzv *r, struct rdzv_actions *out, enum note_type type, unsigned member, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void rdzv_journal(struct rdzv *r, struct rdzv_actions *out);
void rdzv_refuse(struct rdzv *r, struct rdzv_actions *out, uint64_t conn, unsigned status, bool retry,
                 const char *format, ...) __attribute__((format(printf, 6, 7)));

/* roster.c: members, their lists and tallies. */
static inline bool rdzv_may_be_chosen(const struct rdzv_member *m)
{
    return m->phase == RDZV_READY && m->conn && !m->leaving;
}
int rdzv_roster_init(struct rdzv *r);
void rdzv_roster_free(struct rdzv *r);
unsigned rdzv_roster_add(struct rdzv *r, uint64_t instance, int node_rank, el_usec now); /* RDZV_NONE: full */
void rdzv_roster_remove(struct rdzv *r, unsigned i);
void rdzv_roster_heard(struct rdzv *r, unsigned i, el_usec now);
void rdzv_roster_connect(struct rdzv *r, unsigned i, uint64_t conn, el_usec now);
void rdzv_roster_gone(struct rdzv *r, unsigned i, el_usec until);
/* Around each change of a member that is counted: tally(-1), change, tally(+1). */
void rdzv_tally(struct rdzv *r, const struct rdzv_member *m, int sign);
void rdzv_roster_check(const struct rdzv *r);
el_usec rdzv_silence_limit(const struct rdzv *r);

/* choose.c */
struct rdzv_verdict rdzv_verdict(const struct rdzv *r, el_usec now);
void rdzv_choose(struct rdzv *r, unsigned target);
void rdzv_order_members(struct rdzv *r, unsigned n); /* the first n of r->scratch: by node rank, then as they are */
void rdzv_count_world(struct rdzv *r);               /* rank bases from the seats */
bool rdzv_is_enough(const struct rdzv *r);           /* nodes that are no last resort, for the smallest round */
bool rdzv_would_change(const struct rdzv *r, const char **why);

/* round.c: from the chosen to the end. */
void rdzv_open(struct rdzv *r, const struct rdzv_verdict *v, el_usec now, struct rdzv_actions *out);
void rdzv_abandon(struct rdzv *r, el_usec now);
void rdzv_launch(struct rdzv *r, el_usec now, struct rdzv_actions *out);
void rdzv_stop(struct rdzv *r, el_usec now, struct rdzv_actions *out, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void rdzv_close(struct rdzv *r, el_usec now, struct rdzv_actions *out);
void rdzv_end(struct rdzv *r, el_usec now, struct rdzv_actions *out, unsigned status, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void rdzv_wait_again(struct rdzv *r, el_usec now);
void rdzv_seat_stopped(struct rdzv *r, unsigned seat);
void rdzv_seat_succeeded(struct rdzv *r, unsigned seat);
void rdzv_lose(struct rdzv *r, unsigned i, el_usec now, struct rdzv_actions *out, const char *why);

/* hello.c */
void rdzv_hello(struct rdzv *r, const struct rdzv_event *ev, el_usec now, struct rdzv_actions *out);
void rdzv_unhear(struct rdzv *r, unsigned seat);
void rdzv_rebuilt(struct rdzv *r, el_usec now, struct rdzv_actions *out);

/* report.c: what members say about a round; commands. */
void rdzv_message(struct rdzv *r, unsigned i, const struct msg *msg, el_usec now, struct rdzv_actions *out);
void rdzv_command(struct rdzv *r, const struct rdzv_event *ev, el_usec now, struct rdzv_actions *out);

/* notice.c: a planned change waits for a step boundary */
#define RDZV_NO_STEP INT64_C(-1)
bool rdzv_is_listened(const struct rdzv *r); /* notices make sense */
void rdzv_plan(struct rdzv *r, enum notice_why change, el_usec now, struct rdzv_actions *out, const char *why);
void rdzv_notice_order(const struct rdzv *r, el_usec now, struct msg *out);
void rdzv_notice_message(struct rdzv *r, struct rdzv_member *m, const struct msg *msg, struct rdzv_actions *out);
bool rdzv_notice_stopped(const struct rdzv *r, const struct rdzv_member *m, bool fenced); /* … as planned */
void rdzv_notice_advance(struct rdzv *r, el_usec now, struct rdzv_actions *out);

/* quarantine.c: nodes whose hardware is suspect. */
static inline bool rdzv_is_last_resort(const struct rdzv_member *m)
{
    return m->stuck || m->doubted || m->aside;
}
void rdzv_suspect(struct rdzv *r, const struct rdzv_member *m, const char *evidence);
void rdzv_set_aside(struct rdzv *r, el_usec now, struct rdzv_actions *out); /* the suspects among the seats */
bool rdzv_is_aside(const struct rdzv *r, const char *host);
const char *rdzv_aside_why(const struct rdzv *r, const char *host);
void rdzv_aside_expire(struct rdzv *r, el_usec now, struct rdzv_actions *out);
void rdzv_aside_list(const struct rdzv *r, char *to, size_t size); /* for the journal */
void rdzv_aside_take(struct rdzv *r, const char *list, el_usec now);
el_usec rdzv_aside_deadline(const struct rdzv *r);
const char *rdzv_aside_text(struct rdzv *r, el_usec now);   /* for status; "" if none is */
el_usec rdzv_quarantine(const struct rdzv *r, el_usec now); /* the end of one that begins now */
/* False: there are too many. */
bool rdzv_keep_aside(struct rdzv *r, const char *host, const char *why, el_usec until);
/* It stays, set aside until the job ends; false: no room. */
bool rdzv_park(struct rdzv *r, struct rdzv_member *m, const char *why);

/* health.c: the health check between WAITING and OPENING */
void rdzv_health_init(struct rdzv *r);
void rdzv_health_free(struct rdzv *r);
bool rdzv_health_due(const struct rdzv *r);
void rdzv_health_begin(struct rdzv *r, el_usec now, struct rdzv_actions *out);
void rdzv_health_launched(struct rdzv *r);
void rdzv_health_closed(struct rdzv *r);
void rdzv_health_message(struct rdzv *r, unsigned i, const struct msg *msg, el_usec now, struct rdzv_actions *out);
void rdzv_health_lost(struct rdzv *r, unsigned i, el_usec now, struct rdzv_actions *out);
void rdzv_health_leaves(struct rdzv *r, unsigned i, el_usec now, struct rdzv_actions *out);
void rdzv_health_joined(struct rdzv *r, unsigned i);
void rdzv_health_gap(struct rdzv *r, el_usec gap);
void rdzv_health_timeout(struct rdzv *r, el_usec now, struct rdzv_actions *out);
el_usec rdzv_health_deadline(const struct rdzv *r);
void rdzv_health_abandon(struct rdzv *r, el_usec now);
bool rdzv_health_order(struct rdzv *r, const struct rdzv_member *m, el_usec now, struct msg *out);
unsigned rdzv_health_status(struct rdzv *r, unsigned member);
/* `elrun probe` is over, and this node had come too late for it. */
bool rdzv_health_missed(const struct rdzv *r, unsigned member);
void rdzv_health_render(struct rdzv *r); /* health_view.c: for rdzv_probe_page() */

/* incident.c */
void rdzv_incidents_forget(struct rdzv *r); /* a round begins */
void rdzv_incidents_free(struct rdzv *r);
void rdzv_incidents_adopt(struct rdzv *r);                 /* the world of a round that was rebuilt is known */
void rdzv_incidents_insert(struct rdzv *r, unsigned rank); /* … but for those from here on, until now */
/* False: it was known. */
bool rdzv_worker_failed(struct rdzv *r, const struct rdzv_member *m, const struct msg_worker_failed *f, el_usec now);
void rdzv_incident(struct rdzv *r, const struct rdzv_member *m, const struct msg_incident *f, el_usec now);
void rdzv_stopped_ranks(struct rdzv *r, unsigned seat, const struct msg_stopped *s);
void rdzv_find(struct rdzv *r); /* fills the findings */
const struct rdzv_incident *rdzv_root(const struct rdzv *r);
void rdzv_incidents_check(const struct rdzv *r);

/* restore_round.c: which step the workers of the present round go back to */
int rdzv_restore_init(struct rdzv *r);
void rdzv_restore_stock(struct rdzv *r, unsigned i, const struct msg_ckpt_inventory *s, el_usec now,
                        struct rdzv_actions *out);
void rdzv_restore_timeout(struct rdzv *r, el_usec now, struct rdzv_actions *out);
el_usec rdzv_restore_deadline(const struct rdzv *r);

/* ckpt_commit_round.c: which steps go to disk */
int rdzv_saving_init(struct rdzv *r);
void rdzv_saving_round(struct rdzv *r);
void rdzv_saving_message(struct rdzv *r, unsigned i, const struct msg *msg, el_usec now, struct rdzv_actions *out);
void rdzv_saving_advance(struct rdzv *r, el_usec now, struct rdzv_actions *out);
void rdzv_saving_lost(struct rdzv *r, unsigned i);
void rdzv_saving_timeout(struct rdzv *r, el_usec now, struct rdzv_actions *out);
el_usec rdzv_saving_deadline(const struct rdzv *r);
bool rdzv_saving_holds(struct rdzv *r, bool well, el_usec now, struct rdzv_actions *out);
void rdzv_saving_end(struct rdzv *r, el_usec now, struct rdzv_actions *out);

/* common_step_round.c: the step that all nodes hold */
int rdzv_common_init(struct rdzv *r);
void rdzv_common_taken(struct rdzv *r, unsigned i, const struct msg_ckpt_taken *m, el_usec now,
                       struct rdzv_actions *out);
void rdzv_common_timeout(struct rdzv *r, el_usec now, struct rdzv_actions *out);
el_usec rdzv_common_deadline(const struct rdzv *r);

/* replica_check_round.c: whether nodes that share a part hold the same */
int rdzv_comparing_init(struct rdzv *r);
void rdzv_comparing_message(struct rdzv *r, unsigned i, const struct msg *msg);
void rdzv_comparing_advance(struct rdzv *r, el_usec now, struct rdzv_actions *out);
el_usec rdzv_comparing_deadline(const struct rdzv *r);

/* emergency_ckpt_round.c: what live workers hold, before they are stopped */
int rdzv_emergency_init(struct rdzv *r); /* behind rdzv_saving_init() */
void rdzv_emergency_round(struct rdzv *r);
void rdzv_emergency_gone(struct rdzv *r, unsigned seat, bool lost);
void rdzv_emergency_stop(struct rdzv *r, el_usec now); /* the round stops, or its end need not wait any more */
void rdzv_emergency_say(struct rdzv *r, struct rdzv_actions *out);
void rdzv_emergency_stand(struct rdzv *r, unsigned i, const struct msg_emergency_state *m, el_usec now,
                          struct rdzv_actions *out);
/* True: all are told. */
bool rdzv_emergency_advance(struct rdzv *r, el_usec now, struct rdzv_actions *out);
void rdzv_emergency_timeout(struct rdzv *r, el_usec now, struct rdzv_actions *out);
el_usec rdzv_emergency_deadline(const struct rdzv *r);

/* orders.c */
/* Of an instance, for people: with the number itself its place could be taken. */
uint64_t rdzv_told_instance(uint64_t instance);

#define RDZV_LABEL_MAX (MSG_NAME_MAX + 72)
const char *rdzv_label(const struct rdzv_member *m, char to[RDZV_LABEL_MAX]); /* tells two agents of a host apart */
bool rdzv_addr_is_local(const char *addr);
void rdzv_name_successors(struct rdzv *r);

#endif
