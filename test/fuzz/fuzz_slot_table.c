/* Two workers that say anything in any order, with any sizes, to the keeper of their snapshots, and a vault that grows
 * their slots as far as a budget allows: nobody is given a slot that is too small, or offered what is not in one. */
#include <stdlib.h>
#include <string.h>

#include "snapshot/slot_table.h"
#include "fuzz/shm_slots.h"

#define WORKERS 2u
#define BUDGET  ((uint64_t)1 << 30)

struct stage {
    struct slot_table *k;
    const unsigned char *at, *end;
    struct shm_slots vault;
};

static unsigned next(struct stage *s)
{
    return s->at < s->end ? *s->at++ : 0;
}

/* Up to the next byte that is not one of a list of sizes, and no further than the room. */
static const char *next_text(struct stage *s, char to[WORKER_MSG_IMAGES_MAX + 1])
{
    size_t n = 0;
    while (s->at < s->end && n < WORKER_MSG_IMAGES_MAX && *s->at >= ' ' && *s->at <= '9')
        to[n++] = (char)*s->at++;
    to[n] = 0;
    return to;
}

static void look_at_answer(struct stage *s, const struct slot_table_action *a)
{
    const struct worker_msg *m = slot_table_reply(s->k, a->reply);
    uint64_t header_bytes[WORKER_MSG_PARTS_MAX], bytes[WORKER_MSG_PARTS_MAX];
    shm_slots_judge(&s->vault, s->k, a);
    if (m->type == WORKER_MSG_RESTORE_OFFER && m->u.restore_offer.step >= 0 && !m->u.restore_offer.elsewhere) {
        unsigned parts = slot_table_parts(s->k, a->worker);
        if (image_sizes_get(m->u.restore_offer.images, parts, header_bytes, bytes) ||
            image_sizes_bytes(bytes, parts) != m->u.restore_offer.slot_bytes)
            abort();
    }
}

static void step(struct stage *s, const struct slot_table_event *ev)
{
    const struct slot_table_actions *did = slot_table_step(s->k, ev);
    slot_table_check(s->k);
    for (unsigned i = 0; i < did->n; i++) {
        const struct slot_table_action *a = &did->v[i];
        if (a->type == SLOT_TABLE_DO_SEND)
            look_at_answer(s, a);
        shm_slots_take(&s->vault, a);
    }
}

static void settle(struct stage *s)
{
    unsigned pick = next(s), luck = next(s);
    struct slot_table_event ev;
    if (shm_slots_settle(&s->vault, pick, luck, &ev))
        step(s, &ev);
}

static void say(struct stage *s, unsigned w, unsigned what)
{
    static char images[WORKER_MSG_IMAGES_MAX + 1];
    static const char *const names[] = {"model", "model@rank", "optim", ""}, *const shards[] = {"all", "rank0",
                                                                                                "rank1"};
    struct worker_msg m = {.type = WORKER_MSG_HELLO,
                           .u.hello = {.proto = WORKER_MSG_PROTO, .rank = w, .local_rank = w, .round = 1}};
    unsigned x = next(s);
    switch (what) {
    case 1:
        m = (struct worker_msg){.type = WORKER_MSG_PART,
                                .u.part = {.index = x % 4,
                                           .name = names[x / 4 % 4],
                                           .shard_id = shards[x / 16 % 3],
                                           .file = x >= 240 ? "f.pt" : "",
                                           .own = x / 48 % 2}};
        break;
    case 2:
        m = (struct worker_msg){.type = WORKER_MSG_DECLARE, .u.declare = {.layout_id = "all", .parts = x % 4}};
        break;
    case 3:
        m = (struct worker_msg){.type = WORKER_MSG_SNAP_BEGIN,
                                .u.snap_begin = {.step = x % 8, .images = next_text(s, images), .persist = x / 8 % 2}};
        break;
    case 4:
        m = (struct worker_msg){.type = WORKER_MSG_SNAP_COMMIT, .u.snap_commit = {.slot = x % 2, .step = x / 2 % 8}};
        break;
    case 5: m = (struct worker_msg){.type = WORKER_MSG_SNAP_ABORT, .u.snap_abort = {.slot = x % 2, .why = ""}}; break;
    case 6: m = (struct worker_msg){.type = WORKER_MSG_RESERVE, .u.reserve = {.bytes = (uint64_t)x << x % 40}}; break;
    case 7:
        m = (struct worker_msg){.type = WORKER_MSG_RESTORE_QUERY,
                                .u.restore_query = {.layout_id = "all", .elsewhere = x % 2}};
        break;
    case 8:
        m = (struct worker_msg){.type = WORKER_MSG_RESTORE_DONE,
                                .u.restore_done = {.step = x / 4 % 8, .ok = x % 2, .misfit = x / 2 % 2, .why = "no"}};
        break;
    default: break;
    }
    step(s, &(struct slot_table_event){.type = SLOT_TABLE_EV_MSG, .worker = w, .msg = &m});
}

static void happen(struct stage *s, unsigned w, unsigned what)
{
    static char images[WORKER_MSG_IMAGES_MAX + 1];
    static const uint64_t lacks_own[4] = {0, 1, 2, 3};
    unsigned x = next(s);
    int slot = -1;
    struct slot_table_event ev = {.type = SLOT_TABLE_EV_GONE, .worker = w};
    switch (what) {
    case 9: ev = (struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 1, .lineage = x}; break;
    case 10:
        ev = (struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN,
                                       .step = x % 8 - 1,
                                       .lineage = x / 8 % 4,
                                       .on_disk = x / 32 % 2 ? &lacks_own[x / 64] : NULL};
        break;
    case 11: ev = (struct slot_table_event){.type = SLOT_TABLE_EV_CONFIRMED, .lineage = x}; break;
    case 12: ev = (struct slot_table_event){.type = x % 2 ? SLOT_TABLE_EV_AGAIN : SLOT_TABLE_EV_LATE}; break;
    case 13:
        slot = slot_table_capture(s->k, w, x % 8, x / 8 % 8);
        if (slot < 0)
            return;
        ev = (struct slot_table_event){.type = SLOT_TABLE_EV_CAPTURED,
                                       .worker = w,
                                       .slot = (unsigned)slot,
                                       .ok = x / 64 != 0,
                                       .images = next_text(s, images)};
        break;
    case 14: slot_table_captures_end(s->k, x % 8 - 1); return;
    default: break;
    }
    step(s, &ev);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct slot_table_conf conf = {.workers = WORKERS, .budget_bytes = BUDGET, .live = true};
    struct stage s = {.at = data, .end = data + size, .vault = {.budget = BUDGET / 4}};
    conf.files = next(&s) % 2;
    s.k = slot_table_new(&conf, NULL);
    step(&s, &(struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 1});
    while (s.at < s.end) {
        unsigned what = next(&s), w = what / 32 % WORKERS;
        what %= 32;
        if (what < 9)
            say(&s, w, what);
        else if (what < 16)
            happen(&s, w, what);
        else
            settle(&s);
    }
    slot_table_free(s.k);
    return 0;
}
