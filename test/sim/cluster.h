/* A cluster that does not exist: one coordinator with a journal, many agents, links between them, workers that run,
 * fail and die badly; virtual time, faults drawn from a seed.  The cores are the binary's own objects; everything here
 * only carries their actions out and lets things go wrong.  It has no rule of its own about rounds.
 *
 * cluster.c: time, hosts and workers · cluster_coord.c: the coordinator's shell · agenda.c · faults.c · net.c:
 * connections · storm.c: failures · probes.c: health checks · restores.c: steps to go back to · saves.c: steps
 * on their way to disk · captures.c: what live workers hold · judge_cluster.c: what
 * must hold · sim_cluster.c: main. */
#ifndef TEST_SIM_CLUSTER_H
#define TEST_SIM_CLUSTER_H
#include <stdbool.h>
#include <stdint.h>

#include "member/member.h"
#include "coord/health_check.h"
#include "coord/rdzv.h"
#include "util/rng.h"
#include "coord/restore.h"
#include "snapshot/slot_pin.h"

#define CLUSTER_TRACE_MAX 60
#define CLUSTER_COORD     UINT32_MAX /* as a party of a connection, and as whom a trace line speaks of */

enum cluster_kind {
    CLUSTER_TIMER,     /* who: its core's deadline may have come */
    CLUSTER_ARRIVE,    /* a message or the end of a connection reaches a side */
    CLUSTER_ACKED,     /* the kernel of the coordinator's host, or a proxy, has said that it has got what was sent */
    CLUSTER_GUARD,     /* the fence of an agent falls: its guard acts if it cannot */
    CLUSTER_CONNECTED, /* the answer to CONNECT */
    CLUSTER_LOCAL,     /* a result of this host for its agent's core */
    CLUSTER_DIE,       /* the processes of an attempt end */
    CLUSTER_WALK,      /* the coordinator goes on with ORDER_EACH */
    CLUSTER_JOURNAL,   /* a record is durable */
    CLUSTER_COMMIT,    /* a step is trained */
    CLUSTER_FAULT,     /* the next fault */
    CLUSTER_BOOT,      /* an agent, or the coordinator, starts */
    CLUSTER_STOPS,     /* has everybody been told to stop? */
    CLUSTER_OVERLAP,   /* two held one rank for a moment: has the older one gone? */
    CLUSTER_JUDGE,     /* everything should be well by now */
};

struct cluster_item {
    enum cluster_kind kind;
    uint32_t who;
    uint64_t conn; /* ARRIVE, CONNECTED */
    bool to_coord; /* ARRIVE: at which side (lease: at the host's) */
    bool fin;
    bool ok;
    uint64_t life;    /* of who: later lives do not get it */
    uint64_t attempt; /* LOCAL, DIE: of which attempt, 0: of none */
    enum member_event_type event;
    enum member_result result;
    bool stuck, refused;
    bool taken;     /* CONNECTED: by a proxy, whoever listens behind it */
    uint64_t stage; /* LOCAL: of a health check */
    uint64_t peer_life;
    bool met, late;  /* … and its pair: the other end was there; it should be by now */
    bool parted;     /* … the other end was over first */
    bool guard;      /* LOCAL: it was the guard who killed */
    uint64_t serial; /* ARRIVE: its place in its direction; GUARD: the fence */
    el_usec sent_at; /* ARRIVE, ACKED */
    unsigned kept;   /* CLUSTER_JOURNAL: which record */
    struct msg msg;
    char steps[256];   /* of a CKPT_INVENTORY */
    char words[4][96]; /* of CKPT_PART and the like */
};

/* A TCP connection: in order, nothing lost from the middle, closed or cut as a whole. */
struct cluster_conn {
    bool open[2]; /* 0: the agent's end, 1: the coordinator's, or the lease host's */
    bool lease;
    uint32_t agent, host;
    uint64_t agent_life, host_life;
    unsigned member;          /* at the coordinator, after BIND */
    uint64_t sent[2], got[2]; /* so many things went in this direction, and have arrived */
    uint64_t kept;            /* so many of the agent's the coordinator's kernel has */
    el_usec last[2];          /* last arrival in each direction */
    el_usec ordered;          /* the coordinator's last order on it */
};

struct cluster_probe { /* what an agent does for a health check */
    bool on, has_id, met, done;
    uint64_t serial;
    struct msg_probe order; /* strings are not to be looked at */
    uint32_t peer;
    enum health_check_outcome outcome;
};

#define CLUSTER_DISK_MAX    4
#define CLUSTER_STAGE_MAX   32
#define CLUSTER_BROUGHT_MAX 64 /* who stands still, which is 10 s at most, hears of no order that is so long over */

/* A directory of files, each of a shard: what was trained in which round.  Shard 0 is everybody's. */
struct cluster_dir {
    char nonce[32];
    int64_t step;
    el_usec at; /* it became a checkpoint */
    unsigned n;
    struct {
        unsigned shard, shards; /* of so many */
        uint64_t origin, made, line;
    } file[64];
};

struct cluster_order {
    uint64_t giver, order;
};

struct cluster_save { /* what a node has to do with saving a step */
    struct member_held held;
    char steps[96];
    uint64_t list, serial;
    int64_t wish[2]; /* their slots are held, the lowest first, */
    uint64_t wish_line[2];
    unsigned wishes;
    el_usec wished_at; /* when it began to wait for the lowest */
    char wished[80];
    uint64_t giver, order;
    int64_t step;
    uint64_t origin; /* … of this round, as rank of size */
    uint64_t made;   /* … trained in this one, */
    uint64_t line;   /* … of this lineage */
    unsigned rank, size;
    char nonce[32];
    bool part[3]; /* that it writes */
    unsigned got;
    struct cluster_dir files; /* that it is to publish */
    bool busy, stop;
};

struct cluster_restore {                   /* what a node holds of the training */
    int64_t held[2], newest, bad, offered; /* bad: it cannot be read from disk here */
    uint64_t offered_line;
    unsigned n;
    uint64_t since, said; /* said: counts what its workers were to say */
    uint64_t origin[2];   /* of `held`: the round in which it was trained, or all went back to it */
    uint64_t made[2];     /* … in which it was trained: the same on all nodes, or it is of two histories */
    uint64_t line[2];     /* … its lineage, by which elrun knows that */
    uint64_t trains;      /* the lineage of what is trained now */
    bool whole;
    bool misfit;           /* its workers have read what was offered, and do not take it: so it says until it is told */
    el_usec started, gone; /* gone: its workers went on; 0: not yet */
};

#define CLUSTER_TAKEN_MAX 16u

struct cluster_common { /* which steps a node keeps, and says that it has */
    struct slot_pin pin;
    struct slot_pin_worker w;
    struct slot_pin_step passed, common, useless[2 * SLOT_PIN_TOLD];
    unsigned useless_n;
    int64_t from;
    bool stuck;
    struct slot_pin_step taken[CLUSTER_TAKEN_MAX]; /* the last ones, since all went on together */
    unsigned taken_n;
    struct slot_pin_told told;
    struct member_taken said;
    char whole[96], coming[96];
};

enum captures_what { CAPTURES_TELL, CAPTURES_COPIED, CAPTURES_CANNOT, CAPTURES_LATE };

struct cluster_capture { /* emergency checkpoint of live workers */
    bool running, over;  /* they are held back; not any more */
    bool out, copying, lost;
    bool dies, fails; /* what comes behind it */
    el_usec dies_after, since;
    enum member_result dies_as;
    int64_t live, inside; /* the step that they are behind, -2: not even that; that they are in, -1: none */
    int64_t limit, step, kept;
    uint64_t serial;
    char text[96];
    struct member_stand said;
};

struct cluster_agent {
    struct member m;
    struct cluster_capture capture;
    struct cluster_restore restore;
    struct cluster_save save;
    struct cluster_common common;
    bool up;   /* the process runs */
    bool gone; /* it has exited by itself, or will not be started again */
    uint64_t life;
    el_usec timer_at;
    el_usec paused_until, fence;
    el_usec acked;      /* what was sent on its link until then has been acknowledged; 0: nothing */
    el_usec cut[2][2];  /* until when: [coordinator, lease][away from the agent, towards it] */
    el_usec rejects[2]; /* until when a firewall answers what it sends with resets: [1] to other nodes */
    el_usec swallow;    /* until when a proxy takes what is said to the coordinator, and passes nothing on or back */
    el_usec fault_at;   /* the last time that something was done to it */
    uint64_t link, lease;
    uint64_t attempt; /* number of the present attempt in this agent's life */
    bool alive;       /* processes of it live */
    bool stuck;       /* and SIGKILL does not end them */
    bool stubborn, told, killed;
    uint64_t number, coord;
    unsigned rank;
    bool succeeded; /* that attempt has */
    unsigned status;
    uint64_t sent;
    uint64_t top, top_coord;
    struct cluster_probe probe;
    bool bad, bad_alone, bad_late; /* its hardware; seen by itself at once, or by its counters at the end only */
    bool checked, condemned;
    uint64_t checked_life, condemned_life, condemned_term;
    int node_rank;
};

struct cluster_round {
    uint64_t number, coord;
    unsigned size, world, port, restarts;
    uint64_t token;
    uint32_t *holder; /* by group rank: agent, or CLUSTER_COORD: not told yet */
    uint64_t *read;   /* by group rank: the step that it has read, plus 2 */
    uint64_t went;    /* the step from which its nodes go on, plus 2, */
    uint64_t made;    /* … and in which round it was trained */
    uint64_t life;    /* of the coordinator, when its nodes went on */
    bool unread;      /* some node could not read what it was told */
    uint8_t *done;    /* by group rank: its workers all exited 0 */
    bool failed;      /* some worker failed by itself, first that of group rank `first` */
    bool reported;    /* a coordinator has closed it; the next one may not know that, and nobody tells it all again */
    unsigned first;
    uint32_t first_who;
    uint64_t first_life;
};

struct cluster {
    uint64_t seed;
    struct el_rng rng, faults, words, hardware,
        stocks;    /* words, hardware, stocks: of what workers said, so that the rest stays as it was */
    bool restores; /* workers go back to steps */
    bool saves;    /* … which the nodes save together */
    bool captures; /* … and not each of which they hold, unless it is captured */
    struct el_rng lives;
    uint64_t captured_round, captures_done; /* the last in which a step was captured; such steps */
    struct el_rng stores;
    struct cluster_dir saved[CLUSTER_DISK_MAX], stage[CLUSTER_STAGE_MAX]; /* saved: the last ones, as they came */
    struct cluster_order brought[CLUSTER_BROUGHT_MAX];                    /* what was published last was for these */
    unsigned saved_n, stage_next;
    uint64_t commons;                             /* words about steps that all hold */
    uint64_t saves_done, saves_failed, saves_due; /* due: so often was it looked whether any came */
    el_usec saved_at;
    int64_t disk[4];       /* steps on the disk that all share, */
    uint64_t disk_made[4]; /* … and in which rounds they were trained */
    uint64_t disk_line[4];
    unsigned disk_n;
    el_usec now, faults_until, judge_at;
    bool quiet;  /* no faults: the profile that measures */
    bool codec;  /* messages travel as bytes */
    bool unkept; /* the coordinator keeps no journal, as one in an agent: what was before it learns from the nodes */
    uint64_t journaled; /* … and the serial to be answered */
    unsigned n;
    struct cluster_agent *agent;
    el_usec delay, jitter, training;

    struct rdzv *r;
    struct el_mem mem; /* the coordinator's */
    size_t mem_base;
    struct rdzv_conf conf;
    bool coord_up;
    uint64_t coord_life;
    el_usec coord_timer, coord_paused_until, coord_fault_at;
    struct rdzv_record journal, kept[16];
    bool has_journal;
    unsigned kept_next;
    el_usec journal_last;
    unsigned walk, walk_life;
    bool walking;
    uint64_t scaled_max, scaled_min;

    struct cluster_conn *conn;
    uint64_t conns, conns_room;

    struct {
        el_usec at;
        uint64_t seq;
        uint32_t item;
    } * heap;
    size_t heap_n, heap_room;
    struct cluster_item *item;
    uint32_t item_free, items, items_room;
    uint64_t seq;

    struct cluster_round *round;
    unsigned rounds, rounds_room;
    uint32_t *rank_holder; /* by group rank: agent whose processes live, or CLUSTER_COORD */
    bool ended_well;
    bool over;
    unsigned same; /* nodes that told of the same exception */
    unsigned hellos;
    uint32_t bad_link[2];
    uint64_t probe_serial, check_coord, check_number;
    el_usec checked_from, hung_at;
    unsigned hangs; /* each looks like a fault of either end */
    unsigned checks, checked, verdicts, fair_checks, patience;
    bool fair; /* the last check had what it needs to be exact, and nothing has disturbed it */
    const struct msg_probe *probe_order; /* that is being fed */
    const struct msg *save_order;        /* … or of saving a step */

    uint64_t steps, hash;
    char trace[CLUSTER_TRACE_MAX][200];
    uint64_t trace_n;
    bool failed, verbose;
};

/* One run.  True if everything held. */
bool cluster_run(struct cluster *c, uint64_t seed, unsigned agents, bool quiet);
void cluster_free(struct cluster *c);
void cluster_print_failure(const struct cluster *c);

/* Says what does not hold, once. */
void cluster_fail(struct cluster *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cluster_note(struct cluster *c, uint32_t who, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* agenda.c; pop: the item's number, and c->now is its time */
uint32_t cluster_pop(struct cluster *c);
struct cluster_item *cluster_push(struct cluster *c, el_usec at, enum cluster_kind kind, uint32_t who);

/* cluster.c */
void cluster_feed(struct cluster *c, uint32_t who, const struct member_event *ev);
el_usec cluster_delay(struct cluster *c);
uint64_t cluster_below(struct cluster *c, uint64_t n);
bool cluster_one_in(struct cluster *c, uint64_t n);
void cluster_mix(struct cluster *c, uint64_t v); /* into the digest of the run */
void cluster_set_timer(struct cluster *c, uint32_t who);
void cluster_again_at(struct cluster *c, const struct cluster_item *it, el_usec at);
void cluster_die_after(struct cluster *c, uint32_t who, el_usec after, enum member_result result);
void cluster_kill_agent(struct cluster *c, uint32_t who, bool power);

/* cluster_coord.c */
void cluster_boot_coord(struct cluster *c);
void cluster_feed_coord(struct cluster *c, const struct rdzv_event *ev);
void cluster_walk(struct cluster *c); /* goes on with ORDER_EACH */
void cluster_journaled(struct cluster *c, const struct cluster_item *it);
void cluster_kill_coord(struct cluster *c);

/* faults.c: one, and when the next one comes */
void cluster_fault(struct cluster *c);

/* net.c */
void net_connect(struct cluster *c, uint32_t who, bool lease);
void net_connected(struct cluster *c, const struct cluster_item *it);
void net_send(struct cluster *c, uint64_t conn, bool from_agent, const struct msg *m);
void net_close(struct cluster *c, uint64_t conn, bool by_agent, bool silently);
void net_arrive(struct cluster *c, struct cluster_item *it);
void net_acked(struct cluster *c, const struct cluster_item *it);
void net_look(struct cluster *c, uint32_t who); /* the core hears what has been acknowledged */
void net_agent_died(struct cluster *c, uint32_t who, bool silently);
void net_tenants(struct cluster *c, uint32_t host, enum msg_type what); /* ROUND_OVER, or MSG_NONE: close */

/* storm.c */
void storm_tell(struct cluster *c, uint32_t who);
void storm_begin(struct cluster *c);
void storm_failed(struct cluster *c, uint32_t who);
void storm_report(struct cluster *c);
void storm_memory(struct cluster *c);
void storm_stopping(struct cluster *c);
void storm_stops(struct cluster *c, const struct cluster_item *it);

/* probes.c */
void probes_set_up(struct cluster *c);
const char *probes_host(const char *host);
void probes_order(struct cluster *c, uint32_t who, const struct msg_probe *o);
void probes_stop(struct cluster *c, uint32_t who);
bool probes_local(struct cluster *c, const struct cluster_item *it);
void probes_tell(struct cluster *c, uint32_t who, enum msg_type what);
void probes_ordered(struct cluster *c, uint32_t who, const struct msg_probe *o);
void probes_over(struct cluster *c);
void probes_verdict(struct cluster *c, uint32_t who, uint64_t life, const struct msg_probe_verdict *v);
void probes_world(struct cluster *c, uint32_t who, const struct msg_world *w);

/* restores.c */
bool restores_says(const struct cluster *c, const struct cluster_item *it);
void restores_boot(struct cluster *c, uint32_t who);
void restores_started(struct cluster *c, uint32_t who);
void restores_stock(struct cluster *c, uint32_t who, struct restore_stock *out);
void restores_offer(struct cluster *c, uint32_t who, int64_t step, uint64_t line);
void restores_read(struct cluster *c, uint32_t who);
void restores_again(struct cluster *c, uint32_t who);
void restores_go(struct cluster *c, uint32_t who);
void restores_commit(struct cluster *c, const struct cluster_item *it);
uint64_t restores_makes(struct cluster *c, uint32_t who);
void restores_hold(struct cluster_restore *x, int64_t step, uint64_t origin, uint64_t made, uint64_t line);
void restores_all_is_well(struct cluster *c);

/* commons.c */
void commons_boot(struct cluster *c, uint32_t who);
void commons_begin(struct cluster *c, uint32_t who, int64_t step, uint64_t line);
int commons_slot(struct cluster *c, uint32_t who, int64_t step); /* -1: it is left out, -2: it waits, 2: a free one */
void commons_committed(struct cluster *c, uint32_t who, int64_t step, uint64_t line);
void commons_check(struct cluster *c, uint32_t who);
void commons_order(struct cluster *c, uint32_t who, const struct msg_ckpt_common *m);
bool commons_local(struct cluster *c, const struct cluster_item *it, struct member_event *ev);

/* captures.c */
bool captures_trained(struct cluster *c, const struct cluster_item *it);
void captures_went(struct cluster *c, uint32_t who, int64_t step);
void captures_round(struct cluster *c, uint32_t who);
bool captures_hold(struct cluster *c, uint32_t who, el_usec after, enum member_result as);
bool captures_fails(struct cluster *c, uint32_t who);
bool captures_holds(const struct cluster *c, uint32_t who);
void captures_order(struct cluster *c, uint32_t who, const struct msg_ckpt_capture *o);
void captures_lost(struct cluster *c, uint32_t who);
bool captures_local(struct cluster *c, const struct cluster_item *it, struct member_event *ev);
void captures_check(struct cluster *c);

/* saves.c */
bool saves_is_broken(const struct cluster *c, uint32_t who, int64_t step);
void saves_pack(struct cluster_item *it);
void saves_unpack(struct cluster_item *it);
void saves_boot(struct cluster *c, uint32_t who);
bool saves_wished(const struct cluster_agent *a, int64_t step); /* its slot is held */
void saves_round(struct cluster *c, uint32_t who);
void saves_closed(struct cluster *c, uint32_t who);
void saves_went(struct cluster *c, uint32_t who, int64_t step, uint64_t made, uint64_t line);
void saves_committed(struct cluster *c, uint32_t who, int64_t step);
bool saves_local(struct cluster *c, const struct cluster_item *it, struct member_event *ev);
void saves_order(struct cluster *c, uint32_t who, const struct msg *m);
void saves_act(struct cluster *c, uint32_t who, enum member_action_type what);
bool saves_came(const struct cluster *c, int64_t step, el_usec since); /* it was brought to disk since then */
const struct cluster_dir *saves_find(const struct cluster *c, int64_t step,
                                     unsigned shards); /* that can be read; NULL */
void saves_set_aside(struct cluster *c, int64_t step);
void saves_all_is_well(struct cluster *c);

/* judge_cluster.c */
void judge_world(struct cluster *c, uint32_t who, const struct msg_world *w);
void judge_start(struct cluster *c, uint32_t who);
void judge_gone(struct cluster *c, uint32_t who);
void judge_overlap(struct cluster *c, const struct cluster_item *it);
void judge_end(struct cluster *c, unsigned status);
void judge_lost(struct cluster *c, const char *text);
void judge_failed(struct cluster *c);
void judge_all_is_well(struct cluster *c);
void judge_last(struct cluster *c);
struct cluster_round *judge_round(struct cluster *c, uint64_t number, uint64_t coord);

#endif
