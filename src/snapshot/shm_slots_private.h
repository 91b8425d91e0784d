/* Shared by vault*_io.c alone. */
#ifndef SNAPSHOT_SHM_SLOTS_PRIVATE_H
#define SNAPSHOT_SHM_SLOTS_PRIVATE_H
#include <pthread.h>

#include "snapshot/shm_slots.h"

#define SHM_SLOTS_ROOM_LEAST ((uint64_t)64 << 20) /* of addresses for a slot: with less nothing is begun */

/* One part of a snapshot, as the threads need it; their own copy. */
struct image {
    uint64_t offset, bytes, header_bytes;
    size_t sums; /* in the slot's */
};

struct chest_slot {
    struct shm mem;
    pthread_mutex_t growing;   /* held while it does: who comes then finds it grown */
    _Atomic uint64_t capacity; /* so much memory is there; changed with `growing` held, and read while it is summed */
    uint64_t wanted;           /* … or is being made; under the vault's lock */
    struct image *image;       /* of what was summed last */
    uint32_t *sums;
    size_t sums_room;
};

/* Slots of one worker, until nobody reads them any more. */
struct chest {
    struct shm_slots *vault;
    struct chest_slot slot[SLOT_TABLE_SLOTS];
    unsigned parts, jobs;
    bool released;
    uint64_t charged; /* of the budget; under the vault's lock */
    char (*name)[64]; /* of the parts, cut: for messages */
};

struct shm_slots {
    struct pool *pool;
    shm_slots_told *told;
    void *ctx;
    unsigned workers;
    uint64_t budget_bytes, room; /* room: of addresses for a slot */
    bool room_is_short;
    struct chest **chest; /* by worker; NULL: none */
    pthread_mutex_t lock;
    uint64_t charged; /* by all chests */
    _Atomic uint64_t loaded_bytes;
};

enum job_kind { JOB_GROW, JOB_SHRINK, JOB_SUM, JOB_VERIFY, JOB_LOAD, JOB_COMPARE };

struct shm_slots_job {
    struct pool_job job;
    struct shm_slots *vault;
    struct chest *chest, *other; /* other: COMPARE */
    enum job_kind kind;
    unsigned worker, slot;
    uint64_t gen;
    uint64_t room_bytes; /* GROW, SHRINK: to so many */
    bool digests;        /* SUM: of each part, what must be alike on all ranks, */
    bool tables;         /* … and for other nodes of each tensor of it */
    struct slot_table_pair pair;
    int64_t step; /* LOAD: this one, */
    uint64_t lineage;
    const struct ckpt_fs *from;
    enum ckpt_layout layout;
    struct load_part *parts; /* … these, with names of their own */
    bool bad;
    struct el_err error;
    uint64_t capacity, file_bytes, need_bytes, have_bytes, consumed_samples; /* (slot_table.h) */
    size_t differing; /* COMPARE: so many tensors; the first are named */
    char names[SLOT_TABLE_NAMES_MAX];
    uint64_t *bytes, *header_bytes, *digest; /* of each part, in this snapshot */
    char **table;                            /* the same, if tables; what is not NULL is freed with the job */
    uint64_t numbers[];
};

/* shm_slots_room_io.c: the budget, and what slots have of it. */
void shm_slots_find_room(struct shm_slots *v);
/* Whole pages, in a thread.  What the slot holds stays. */
int shm_slots_room(struct shm_slots_job *j, uint64_t bytes);
void shm_slots_shorten(struct shm_slots_job *j, uint64_t bytes); /* what lies beyond is of no use to anybody */

#endif
