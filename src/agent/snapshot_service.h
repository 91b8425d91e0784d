/* Snapshots of this node's workers: the socket at which they come, memory that is the agent's, and what they go back
 * to.  The shell of src/ckpt.  Without --ckpt-mem and --ckpt-dir there are no slots, only the socket and the status
 * pages, and without --boundary-wait none of it. */
#ifndef AGENT_SNAPSHOT_SERVICE_H
#define AGENT_SNAPSHOT_SERVICE_H
#include <stdint.h>

#include "conf/conf.h"
#include "agent/step_boundary.h"
#include "ckpt/layout.h"
#include "snapshot/load.h"
#include "snapshot/slot_pin.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "proc/reap.h"
#include "coord/restore.h"

#define SNAPSHOT_SERVICE_PATIENCE EL_SEC(30) /* so long a worker waits for others that take no snapshots */

struct snapshot_service;
struct slot_table;
struct slot_table_event;
struct slot_table_pair;
struct slot_table_reads;
struct shm_slots;
struct ckpt_fs;
struct wmsg_captured;

struct snapshot_service_conf {
    const struct run_conf *run;
    unsigned workers;
    const char *folder; /* for the socket */
    const struct reap *reap;
    bool live;    /* emergency checkpoint: what workers hold may be captured (emergency_io.c) */
    bool several; /* there may be other nodes */
};

struct snapshot_service_taken {
    uint64_t number, coord; /* of the round */
    struct slot_pin_told told;
    bool elsewhere;
};

struct snapshot_service_ops {
    /* All workers of this node ask what to go back to, and what they could read.  Answered by
     * snapshot_service_chosen(), at once or later. */
    void (*choose)(void *ctx, const struct restore_stock *stock);
    /* All of them have read that step (-1: nothing, they begin at the beginning).  Answered by
     * snapshot_service_confirmed(). */
    void (*confirm)(void *ctx, int64_t step);
    /* Bytes of that step come from disk: it takes its time, and goes on. */
    void (*reads)(void *ctx);
    struct step_boundary_ops stops; /* with the same ctx */
    /* A slot holds a whole snapshot now, or one turned out to be none.  May be called inside snapshots_…(). */
    void (*committed)(void *ctx, unsigned worker, unsigned slot);
    /* One of several nodes: which steps all its workers have, or may yet have, and each change of it.  Answered by
     * snapshot_service_common().  May be called inside snapshots_…(). */
    void (*taken)(void *ctx, const struct snapshot_service_taken *taken);
    /* Ranks of this node share a part and hold different ones; it is in the log. */
    void (*differ)(void *ctx, const struct slot_table_pair *x);
    /* There may be other nodes: a snapshot was summed, and its parts have digests and tables: SLOT_TABLE_EV_SUMMED. */
    void (*digested)(void *ctx, const struct slot_table_event *ev);
    /* Whether the coordinator has been away for so long that nobody waits for it. */
    bool (*away)(void *ctx);
    /* A worker has left out a step that the script wants on disk. */
    void (*unmet)(void *ctx, int64_t step, uint64_t lineage, const char *why);
    /* A worker may have gone by a step that is held for the disk. */
    void (*passed)(void *ctx);
    void (*absent)(void *ctx, unsigned rank);
    /* The script has gone back by itself: what is beyond step and not of that lineage is given up. */
    void (*went_back)(void *ctx, int64_t step, uint64_t lineage);
};

/* Makes the socket; checks --ckpt-mem against what this host has.  NULL and *e. */
struct snapshot_service *snapshot_service_new(struct loop *l, struct pool *p, const struct snapshot_service_conf *conf,
                                              const struct snapshot_service_ops *ops, void *ctx, struct el_err *e);
/* Steps that lie there count, too; it must stay.  0, or -1 and *e. */
int snapshot_service_resume(struct snapshot_service *s, struct pool *p, const struct ckpt_fs *from,
                            enum ckpt_layout layout, struct el_err *e);
/* After pool_free(). */
void snapshot_service_free(struct snapshot_service *s);

/* A round begins: workers of the last one are not heard any more; what they committed stays. */
void snapshot_service_round(struct snapshot_service *s, uint64_t number, uint64_t coord, unsigned rank_base);
/* A worker has ended: everything that it said is heard first. */
void snapshot_service_ended(struct snapshot_service *s, unsigned slot);

/* What was decided: its told, told_lineage and fresh.  text: why. */
void snapshot_service_chosen(struct snapshot_service *s, const struct restore_stock *decided, const char *text);
/* Every rank has read it, in this attempt of the agreement: the workers go on.  Says what was read from where.
 * Returns the lineage of what they train from then on. */
uint64_t snapshot_service_confirmed(struct snapshot_service *s, uint64_t attempt);
/* The agreement is repeated: choose() comes once more, when all workers ask. */
void snapshot_service_again(struct snapshot_service *s);
/* Slots are read, or not any more: what is to be told may have changed. */
void snapshot_service_news(struct snapshot_service *s);
/* All nodes have that step (RESTORE_NO_STEP: none); workers that do not wait take none below `from`.  Of these some
 * node does not have it, and never will. */
void snapshot_service_common(struct snapshot_service *s, struct slot_pin_step step, int64_t from,
                             const struct slot_pin_step *useless, unsigned n);

/* The newest step in memory (before snapshot_service_add_disk()) or on disk, where one on disk that cannot be used is
 * newer; -1: none is, or nothing is there. */
int64_t snapshot_service_passes_over(const struct restore_stock *stock, const struct load_found *disk);

/* The steps on disk among those in memory, newest first, but for those beyond left->step that are not of its lineage:
 * the script has left them behind (left->step RESTORE_NO_STEP: it has not).  Of more than RESTORE_STEPS_MAX the newest
 * half of so many, and some of the others. */
struct snapshot_service_left {
    int64_t step;
    uint64_t lineage;
};
void snapshot_service_add_disk(struct restore_stock *stock, const struct load_found *disk,
                               const struct snapshot_service_left *left);

/* The worker that a process is or descends from; -1: none of ours. */
int snapshot_service_whose(const struct snapshot_service *s, pid_t pid);
/* A worker has copied what it holds into the slot that slot_table_capture() gave, or could not. */
void snapshot_service_captured(struct snapshot_service *s, unsigned worker, const struct wmsg_captured *c);

/* Where the workers are and where they stop; NULL of none. */
struct step_boundary *snapshot_service_stops(const struct snapshot_service *s);
/* What is held, for those who write it to disk. */
struct slot_table *snapshot_service_keeper(struct snapshot_service *s);
struct shm_slots *snapshot_service_vault(struct snapshot_service *s);
/* Tells the workers of this node what became of a snapshot: "persisted", "committed", "failed". */
void snapshot_service_event(struct snapshot_service *s, const char *kind, int64_t step, const char *why);

/* ELRUN_SOCK of a worker. */
const char *snapshot_service_socket(const struct snapshot_service *s);

/* --ckpt-mem: "8G" or "25%" as bytes of this host (limit, left: of its cgroup).  0 and *bytes, or -1: more than there
 * is. */
int snapshot_service_budget(const struct run_conf *conf, uint64_t memory_bytes, uint64_t free_bytes,
                            uint64_t limit_bytes, uint64_t left_bytes, uint64_t *bytes, struct el_err *e);

#define SNAPSHOT_SERVICE_SOURCE_MAX 160
/* "memory, 1 of 4 ranks from disk": where ranks have read what they went back to. */
const char *snapshot_service_source(const struct slot_table_reads *x, char to[SNAPSHOT_SERVICE_SOURCE_MAX]);

#define SNAPSHOT_SERVICE_NAMED_MAX 8
#define SNAPSHOT_SERVICE_RANKS_MAX 320
/* "rank 3", "ranks 9, 10 and 11 (local ranks 1, 2 and 3)": n workers of a node whose first one has the rank `base`.  Of
 * more than SNAPSHOT_SERVICE_NAMED_MAX, which is all that local has room for, the others are counted. */
const char *snapshot_service_ranks(const unsigned *local, unsigned n, unsigned base,
                                   char to[SNAPSHOT_SERVICE_RANKS_MAX]);

/* Who has not called restore(), of this node whose first rank is base; returns how many. */
unsigned snapshot_service_silent(const struct slot_table *k, unsigned base, char to[SNAPSHOT_SERVICE_RANKS_MAX]);

/* "going back to step 4, from disk: 1.0 MiB in 0.009 s"; false: to nothing, and there is no line. */
#define SNAPSHOT_SERVICE_BACK_MAX 200
bool snapshot_service_back_text(const struct slot_table_reads *x, int64_t step, el_usec took,
                                char to[SNAPSHOT_SERVICE_BACK_MAX]);

#define SNAPSHOT_SERVICE_DIFFER_MAX 1200
/* The warning: which part, which ranks, which tensors, what it means and what to do. */
const char *snapshot_service_differ(const struct slot_table_pair *x, char to[SNAPSHOT_SERVICE_DIFFER_MAX]);

#define SNAPSHOT_SERVICE_OOM_RAISE 300
/* By how much the workers' oom_score_adj is raised.  Slots count as memory of the agent that maps them, and it would be
 * the largest process of a group that is out of memory, while the kernel must take a worker: so by the budget, in
 * thousandths of all there is, as the kernel counts, and by SNAPSHOT_SERVICE_OOM_RAISE more.  0: no snapshots are kept.
 */
unsigned snapshot_service_oom_raise(uint64_t budget_bytes, uint64_t memory_bytes, uint64_t limit_bytes);
unsigned snapshot_service_oom(const struct snapshot_service *s); /* the same for these; NULL: 0 */

#endif
