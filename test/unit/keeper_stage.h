/* One keeper on a stage: what test_keeper*.c share.  Messages of workers go in, the answers and orders of the last step
 * stand in "did". */
#ifndef TEST_UNIT_KEEPER_STAGE_H
#define TEST_UNIT_KEEPER_STAGE_H
#include "snapshot/slot_table.h"
#include "ckpt/layout.h"

#include "lib/tap.h"

#define MIB ((uint64_t)1 << 20)

static struct slot_table *k;
static el_usec now = 1;
static const struct slot_table_actions *did;

/* What the vault would hold: slots are made where there are none, and given back where there are. */
static bool chest[4];
static unsigned long doubled;

/* How large the next snapshots of each worker are. */
static uint64_t image_bytes[4] = {MIB, MIB, MIB, MIB};

static inline void follow_vault(void)
{
    for (unsigned i = 0; i < did->n; i++) {
        if (did->v[i].type == SLOT_TABLE_DO_RELEASE)
            chest[did->v[i].worker] = false;
        if (did->v[i].type != SLOT_TABLE_DO_OPEN)
            continue;
        doubled += chest[did->v[i].worker];
        chest[did->v[i].worker] = true;
    }
}

static inline void open_with(const struct slot_table_conf *conf)
{
    if (k)
        slot_table_free(k);
    k = slot_table_new(conf, NULL);
    memset(chest, 0, sizeof chest);
    did = slot_table_step(k, &(struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 1});
}

static inline void open_keeper(unsigned workers, uint64_t budget_bytes)
{
    open_with(&(struct slot_table_conf){.workers = workers, .budget_bytes = budget_bytes});
}

static inline void event(struct slot_table_event ev)
{
    did = slot_table_step(k, &ev);
    follow_vault();
    slot_table_check(k);
}

static inline void say(unsigned worker, struct worker_msg m)
{
    event((struct slot_table_event){.type = SLOT_TABLE_EV_MSG, .worker = worker, .now = now, .msg = &m});
}

/* The action of this type in what was done last, NULL. */
static inline const struct slot_table_action *found(enum slot_table_action_type type)
{
    for (unsigned i = 0; i < did->n; i++)
        if (did->v[i].type == type)
            return &did->v[i];
    return NULL;
}

/* The last answer, if it has this type. */
static inline const struct worker_msg *answered(enum worker_msg_type type)
{
    const struct slot_table_action *a = NULL;
    for (unsigned i = 0; i < did->n; i++)
        if (did->v[i].type == SLOT_TABLE_DO_SEND)
            a = &did->v[i];
    return a && slot_table_reply(k, a->reply)->type == type ? slot_table_reply(k, a->reply) : NULL;
}

static inline bool refused(const char *code)
{
    const struct worker_msg *m = answered(WORKER_MSG_REFUSED);
    return m && strcmp(m->u.refused.code, code) == 0 && m->u.refused.text[0];
}

static inline void hello_in(unsigned worker, uint64_t round)
{
    say(worker, (struct worker_msg){
                    .type = WORKER_MSG_HELLO,
                    .u.hello = {.proto = WORKER_MSG_PROTO, .rank = worker, .local_rank = worker, .round = round}});
}

static inline void name_piece(unsigned worker, unsigned index, const char *name, const char *shard_id, bool own)
{
    say(worker,
        (struct worker_msg){.type = WORKER_MSG_PART,
                            .u.part = {.index = index, .name = name, .shard_id = shard_id, .file = "", .own = own}});
}

static inline void name_part(unsigned worker, unsigned index, const char *name)
{
    name_piece(worker, index, name, "all", false);
}

static inline void declared(unsigned worker, unsigned parts)
{
    say(worker, (struct worker_msg){.type = WORKER_MSG_DECLARE, .u.declare = {.layout_id = "l", .parts = parts}});
}

static inline void opened(unsigned worker, bool is_good)
{
    event((struct slot_table_event){
        .type = SLOT_TABLE_EV_OPENED, .worker = worker, .ok = is_good, .text = is_good ? "" : "no memory"});
}

static inline void declare_as(unsigned worker, const char *name)
{
    name_part(worker, 0, name);
    declared(worker, 1);
}

static inline void join_as(unsigned worker, uint64_t round, const char *name)
{
    hello_in(worker, round);
    declare_as(worker, name);
    if (found(SLOT_TABLE_DO_OPEN))
        opened(worker, true);
}

static inline void join(unsigned worker, uint64_t round)
{
    join_as(worker, round, "model");
}

/* The vault has made room. */
static inline void grown(const struct slot_table_action *a)
{
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GROWN,
                                    .worker = a->worker,
                                    .slot = a->slot,
                                    .gen = a->gen,
                                    .ok = true,
                                    .capacity = a->bytes,
                                    .file_bytes = a->bytes + a->bytes / 8});
}

/* Asks for a slot for these images.  What is answered at once stands in "did". */
static inline void ask(unsigned worker, int64_t step, const char *images)
{
    say(worker, (struct worker_msg){.type = WORKER_MSG_SNAP_BEGIN, .u.snap_begin = {.step = step, .images = images}});
}

/* The slot that was given out, or -1; where it was too small it has grown.  For one part of tensors. */
static inline int begin(unsigned worker, int64_t step)
{
    char images[IMAGE_SIZES_ENTRY_MAX + 1];
    image_sizes_put(&(uint64_t){4096}, &image_bytes[worker], 1, images);
    ask(worker, step, images);
    int slot = -1;
    for (;;) {
        const struct slot_table_action *grow = found(SLOT_TABLE_DO_GROW);
        for (unsigned i = 0; i < did->n; i++) {
            const struct worker_msg *m =
                did->v[i].type == SLOT_TABLE_DO_SEND ? slot_table_reply(k, did->v[i].reply) : NULL;
            if (m && m->type == WORKER_MSG_SNAP_SLOT && !m->u.snap_slot.busy)
                slot = (int)m->u.snap_slot.slot;
        }
        if (!grow)
            return slot;
        grown(grow);
    }
}

static inline void commit(unsigned worker, int slot, int64_t step)
{
    say(worker,
        (struct worker_msg){.type = WORKER_MSG_SNAP_COMMIT, .u.snap_commit = {.slot = (uint64_t)slot, .step = step}});
}

static inline void summed(unsigned worker, bool is_right)
{
    const struct slot_table_action a = *found(SLOT_TABLE_DO_SUM);
    event((struct slot_table_event){
        .type = SLOT_TABLE_EV_SUMMED, .worker = worker, .slot = a.slot, .gen = a.gen, .ok = is_right});
}

static inline void snapshot(unsigned worker, int64_t step)
{
    commit(worker, begin(worker, step), step);
    summed(worker, true);
}

static inline bool holds(unsigned worker, int64_t step)
{
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++)
        if (slot_table_slot(k, worker, i)->state == SLOT_TABLE_COMMITTED && slot_table_slot(k, worker, i)->step == step)
            return true;
    return false;
}

static inline void query(unsigned worker)
{
    say(worker, (struct worker_msg){.type = WORKER_MSG_RESTORE_QUERY, .u.restore_query = {.layout_id = "l"}});
}

static inline void restored(unsigned worker, int64_t step, bool is_read)
{
    say(worker, (struct worker_msg){.type = WORKER_MSG_RESTORE_DONE,
                                    .u.restore_done = {.step = step, .ok = is_read, .why = ""}});
}

/* What a worker was offered in the last step; NULL: nothing. */
static inline const struct worker_msg *offered(unsigned worker)
{
    for (unsigned i = 0; i < did->n; i++)
        if (did->v[i].type == SLOT_TABLE_DO_SEND && did->v[i].worker == worker &&
            slot_table_reply(k, did->v[i].reply)->type == WORKER_MSG_RESTORE_OFFER)
            return slot_table_reply(k, did->v[i].reply);
    return NULL;
}

#endif
