/* Two workers that say anything in any order, with any sizes, to the keeper of their snapshots, and a vault that grows
 * their slots as far as a budget allows: nobody is given a slot that is too small, or offered what is not in one. */
#include <stdlib.h>
#include <string.h>

#include "ckpt/keeper.h"

#define WORKERS 2u
#define BUDGET  ((uint64_t)1 << 30)

struct stage {
    struct keeper *k;
    const unsigned char *at, *end;
    uint64_t capacity[WORKERS][KEEPER_SLOTS];
    unsigned pending; /* orders of the vault that have no answer yet */
    struct keeper_action order[64];
};

static unsigned next(struct stage *s)
{
    return s->at < s->end ? *s->at++ : 0;
}

/* Up to the next byte that is not one of a list of sizes, and no further than the room. */
static const char *next_text(struct stage *s, char to[WMSG_IMAGES_MAX + 1])
{
    size_t n = 0;
    while (s->at < s->end && n < WMSG_IMAGES_MAX && *s->at >= ' ' && *s->at <= '9')
        to[n++] = (char)*s->at++;
    to[n] = 0;
    return to;
}

static void look_at_answer(struct stage *s, const struct keeper_action *a)
{
    const struct wmsg *m = keeper_reply(s->k, a->reply);
    uint64_t header_bytes[WMSG_PARTS_MAX], bytes[WMSG_PARTS_MAX];
    if (m->type == WMSG_SNAP_SLOT && !m->u.snap_slot.busy) {
        const struct keeper_slot *slot = keeper_slot(s->k, a->worker, (unsigned)m->u.snap_slot.slot);
        if (slot->bytes > s->capacity[a->worker][m->u.snap_slot.slot] || m->u.snap_slot.slot_bytes < slot->bytes)
            abort();
    }
    if (m->type == WMSG_RESTORE_OFFER && m->u.restore_offer.step >= 0 && !m->u.restore_offer.elsewhere) {
        unsigned parts = keeper_parts(s->k, a->worker);
        if (images_get(m->u.restore_offer.images, parts, header_bytes, bytes) ||
            images_bytes(bytes, parts) != m->u.restore_offer.slot_bytes ||
            m->u.restore_offer.slot_bytes > s->capacity[a->source][a->slot])
            abort();
    }
}

static void step(struct stage *s, const struct keeper_event *ev)
{
    const struct keeper_actions *did = keeper_step(s->k, ev);
    keeper_check(s->k);
    for (unsigned i = 0; i < did->n; i++) {
        const struct keeper_action *a = &did->v[i];
        if (a->type == KEEPER_DO_SEND)
            look_at_answer(s, a);
        if (a->type == KEEPER_DO_RELEASE)
            memset(s->capacity[a->worker], 0, sizeof s->capacity[a->worker]);
        bool is_job = a->type == KEEPER_DO_GROW || a->type == KEEPER_DO_SHRINK || a->type == KEEPER_DO_SUM ||
                      a->type == KEEPER_DO_LOAD || a->type == KEEPER_DO_OPEN;
        if (is_job && s->pending < 64)
            s->order[s->pending++] = *a;
    }
}

/* One order of the vault has its result, in any order. */
static void settle(struct stage *s)
{
    static const uint64_t bytes[WMSG_PARTS_MAX] = {8192, 100}, header_bytes[WMSG_PARTS_MAX] = {4096, 64};
    unsigned i = s->pending ? next(s) % s->pending : 0, luck = next(s);
    if (!s->pending)
        return;
    struct keeper_action a = s->order[i];
    s->order[i] = s->order[--s->pending];
    uint64_t *capacity = &s->capacity[a.worker][a.slot], want = a.type == KEEPER_DO_LOAD ? 16384 : a.bytes;
    struct keeper_event ev = {.worker = a.worker,
                              .slot = a.slot,
                              .gen = a.gen,
                              .ok = luck % 8 != 0 && want <= BUDGET / 4,
                              .part_bytes = bytes,
                              .part_header_bytes = header_bytes,
                              .need_bytes = luck % 2,
                              .text = "no"};
    ev.type = a.type == KEEPER_DO_GROW     ? KEEPER_EV_GROWN
              : a.type == KEEPER_DO_SHRINK ? KEEPER_EV_SHRUNK
              : a.type == KEEPER_DO_SUM    ? KEEPER_EV_SUMMED
              : a.type == KEEPER_DO_LOAD   ? KEEPER_EV_LOADED
                                           : KEEPER_EV_OPENED;
    if (ev.ok && (a.type == KEEPER_DO_GROW || a.type == KEEPER_DO_LOAD) && *capacity < want)
        *capacity = want;
    if (ev.ok && a.type == KEEPER_DO_SHRINK && *capacity > a.bytes)
        *capacity = a.bytes;
    ev.capacity = ev.file_bytes = *capacity;
    step(s, &ev);
}

static void say(struct stage *s, unsigned w, unsigned what)
{
    static char images[WMSG_IMAGES_MAX + 1];
    static const char *const names[] = {"model", "model@rank", "optim", ""}, *const shards[] = {"all", "rank0",
                                                                                                "rank1"};
    struct wmsg m = {.type = WMSG_HELLO, .u.hello = {.proto = WMSG_PROTO, .rank = w, .local_rank = w, .round = 1}};
    unsigned x = next(s);
    switch (what) {
    case 1:
        m = (struct wmsg){.type = WMSG_PART,
                          .u.part = {.index = x % 4,
                                     .name = names[x / 4 % 4],
                                     .shard_id = shards[x / 16 % 3],
                                     .file = x >= 240 ? "f.pt" : "",
                                     .own = x / 48 % 2}};
        break;
    case 2: m = (struct wmsg){.type = WMSG_DECLARE, .u.declare = {.layout_id = "all", .parts = x % 4}}; break;
    case 3:
        m = (struct wmsg){.type = WMSG_SNAP_BEGIN,
                          .u.snap_begin = {.step = x % 8, .images = next_text(s, images), .persist = x / 8 % 2}};
        break;
    case 4: m = (struct wmsg){.type = WMSG_SNAP_COMMIT, .u.snap_commit = {.slot = x % 2, .step = x / 2 % 8}}; break;
    case 5: m = (struct wmsg){.type = WMSG_SNAP_ABORT, .u.snap_abort = {.slot = x % 2, .why = ""}}; break;
    case 6: m = (struct wmsg){.type = WMSG_RESERVE, .u.reserve = {.bytes = (uint64_t)x << x % 40}}; break;
    case 7:
        m = (struct wmsg){.type = WMSG_RESTORE_QUERY, .u.restore_query = {.layout_id = "all", .elsewhere = x % 2}};
        break;
    case 8:
        m = (struct wmsg){.type = WMSG_RESTORE_DONE,
                          .u.restore_done = {.step = x / 4 % 8, .ok = x % 2, .misfit = x / 2 % 2, .why = "no"}};
        break;
    default: break;
    }
    step(s, &(struct keeper_event){.type = KEEPER_EV_MSG, .worker = w, .msg = &m});
}

static void happen(struct stage *s, unsigned w, unsigned what)
{
    static char images[WMSG_IMAGES_MAX + 1];
    unsigned x = next(s);
    int slot = -1;
    struct keeper_event ev = {.type = KEEPER_EV_GONE, .worker = w};
    switch (what) {
    case 9: ev = (struct keeper_event){.type = KEEPER_EV_ROUND, .number = 1, .lineage = x}; break;
    case 10:
        ev = (struct keeper_event){
            .type = KEEPER_EV_CHOSEN, .step = x % 8 - 1, .lineage = x / 8 % 4, .on_disk = x / 32 % 2};
        break;
    case 11: ev = (struct keeper_event){.type = KEEPER_EV_CONFIRMED, .lineage = x}; break;
    case 12: ev = (struct keeper_event){.type = x % 2 ? KEEPER_EV_AGAIN : KEEPER_EV_LATE}; break;
    case 13:
        slot = keeper_capture(s->k, w, x % 8, x / 8 % 8);
        if (slot < 0)
            return;
        ev = (struct keeper_event){.type = KEEPER_EV_CAPTURED,
                                   .worker = w,
                                   .slot = (unsigned)slot,
                                   .ok = x / 64 != 0,
                                   .images = next_text(s, images)};
        break;
    case 14: keeper_captures_end(s->k, x % 8 - 1); return;
    default: break;
    }
    step(s, &ev);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct keeper_conf conf = {.workers = WORKERS, .budget_bytes = BUDGET, .live = true};
    struct stage s = {.at = data, .end = data + size};
    conf.files = next(&s) % 2;
    s.k = keeper_new(&conf, NULL);
    step(&s, &(struct keeper_event){.type = KEEPER_EV_ROUND, .number = 1});
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
    keeper_free(s.k);
    return 0;
}
