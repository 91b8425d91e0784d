/* A vault for a keeper that is fuzzed: it grows slots as far as a budget allows, and its orders have their results in
 * any order.  It knows how much memory each slot really has. */
#ifndef TEST_FUZZ_SHM_SLOTS_H
#define TEST_FUZZ_SHM_SLOTS_H
#include <stdlib.h>
#include <string.h>

#include "snapshot/slot_table.h"

enum { SHM_SLOTS_WORKERS = 3 };

struct shm_slots {
    uint64_t budget; /* of one slot */
    uint64_t capacity[SHM_SLOTS_WORKERS][SLOT_TABLE_SLOTS];
    unsigned pending; /* orders that have no result yet */
    struct slot_table_action order[64];
};

/* Nobody is given a slot that is too small, or offered what is not in one. */
static inline void shm_slots_judge(const struct shm_slots *v, const struct slot_table *k,
                                   const struct slot_table_action *a)
{
    const struct worker_msg *m = slot_table_reply(k, a->reply);
    if (m->type == WORKER_MSG_SNAP_SLOT && !m->u.snap_slot.busy) {
        const struct slot_table_slot *slot = slot_table_slot(k, a->worker, (unsigned)m->u.snap_slot.slot);
        if (slot->bytes > v->capacity[a->worker][m->u.snap_slot.slot] || m->u.snap_slot.slot_bytes < slot->bytes)
            abort();
    }
    if (m->type == WORKER_MSG_RESTORE_OFFER && m->u.restore_offer.step >= 0 && !m->u.restore_offer.elsewhere) {
        const struct slot_table_slot *slot = slot_table_slot(k, a->source, a->slot);
        if (slot->state != SLOT_TABLE_COMMITTED || slot->step != m->u.restore_offer.step ||
            m->u.restore_offer.slot_bytes > v->capacity[a->source][a->slot])
            abort();
    }
}

static inline void shm_slots_take(struct shm_slots *v, const struct slot_table_action *a)
{
    if (a->type == SLOT_TABLE_DO_RELEASE)
        memset(v->capacity[a->worker], 0, sizeof v->capacity[a->worker]);
    bool is_job = a->type == SLOT_TABLE_DO_GROW || a->type == SLOT_TABLE_DO_SHRINK || a->type == SLOT_TABLE_DO_SUM ||
                  a->type == SLOT_TABLE_DO_LOAD || a->type == SLOT_TABLE_DO_OPEN;
    if (is_job && v->pending < sizeof v->order / sizeof v->order[0])
        v->order[v->pending++] = *a;
}

/* The result of order `pick`; false: there is none. */
static inline bool shm_slots_settle(struct shm_slots *v, unsigned pick, unsigned luck, struct slot_table_event *ev)
{
    static const uint64_t bytes[WORKER_MSG_PARTS_MAX] = {8192, 100}, header_bytes[WORKER_MSG_PARTS_MAX] = {4096, 64};
    if (!v->pending)
        return false;
    unsigned i = pick % v->pending;
    struct slot_table_action a = v->order[i];
    v->order[i] = v->order[--v->pending];
    uint64_t *capacity = &v->capacity[a.worker][a.slot], want = a.type == SLOT_TABLE_DO_LOAD ? 16384 : a.bytes;
    *ev = (struct slot_table_event){.worker = a.worker,
                                    .slot = a.slot,
                                    .gen = a.gen,
                                    .ok = luck % 8 != 0 && want <= v->budget,
                                    .part_bytes = bytes,
                                    .part_header_bytes = header_bytes,
                                    .need_bytes = luck % 2,
                                    .text = "no"};
    ev->type = a.type == SLOT_TABLE_DO_GROW     ? SLOT_TABLE_EV_GROWN
               : a.type == SLOT_TABLE_DO_SHRINK ? SLOT_TABLE_EV_SHRUNK
               : a.type == SLOT_TABLE_DO_SUM    ? SLOT_TABLE_EV_SUMMED
               : a.type == SLOT_TABLE_DO_LOAD   ? SLOT_TABLE_EV_LOADED
                                                : SLOT_TABLE_EV_OPENED;
    if (ev->ok && (a.type == SLOT_TABLE_DO_GROW || a.type == SLOT_TABLE_DO_LOAD) && *capacity < want)
        *capacity = want;
    if (ev->ok && a.type == SLOT_TABLE_DO_SHRINK && *capacity > a.bytes)
        *capacity = a.bytes;
    ev->capacity = ev->file_bytes = *capacity;
    return true;
}

#endif
