/* What workers may say to their agent, each message well formed with each value at its limits, through the wire to the
 * keeper of their snapshots, with a coordinator and a vault that may answer anything that they may say.  Whatever a
 * worker says, nothing fails but its own snapshot: no slot is too small for what is in it, and every answer is one that
 * the worker's decoder takes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/keeper.h"
#include "util/auto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORKERS = 3 };
#define BUDGET ((uint64_t)1 << 40)

#define X(NAME, name, number, fds, text)                                                                               \
    static const struct el_field name##_fields[] = {WMSG_##name##_FIELDS(EL_FIELD_ROW, wmsg_##name) EL_FIELD_END};
WMSG_LIST(X)
#undef X

static const struct {
    enum wmsg_type type;
    const struct el_field *fields;
} rows[] = {
#define X(NAME, name, number, fds, text) {WMSG_##NAME, name##_fields},
    WMSG_LIST(X)
#undef X
};

struct tape {
    const uint8_t *at, *end;
};

static unsigned take(struct tape *t)
{
    return t->at < t->end ? *t->at++ : 0;
}

struct stage {
    struct tape *t;
    struct keeper *k;
    el_usec now;
    uint64_t number, capacity[WORKERS][KEEPER_SLOTS];
    unsigned pending; /* orders that have no answer yet */
    struct keeper_action order[64];
};

/* --- values at their limits --- */

static int64_t step_of(unsigned pick)
{
    static const int64_t steps[] = {
        0, 1, 2, 3, 4, -1, -2, INT64_MAX, INT64_MAX - 1, INT64_MIN, 999999999999999, 1000000000000000};
    return steps[pick % 8 ? pick / 8 % 5 : pick / 8 % COUNT_OF(steps)];
}

static uint64_t number_of(const struct el_field *f, unsigned pick)
{
    const uint64_t values[] = {
        0, 1, 2, f->limit, f->limit - 1, f->limit / 2, (uint64_t)1 << 32, (uint64_t)1 << 53, INT64_MAX};
    uint64_t v = values[pick % COUNT_OF(values)];
    return v > f->limit ? f->limit : v;
}

static const char *text_of(const struct el_field *f, unsigned pick)
{
    static char longest[WMSG_IMAGES_MAX + 1], many[WMSG_IMAGES_MAX + 1];
    static const char *const texts[] = {"all", "a", "model", "", "../x", "f.pt", "rank0", "\x1b[2J", ".", "a/b"};
    static const char *const images[] = {"64/8192",
                                         "64/8192 64/100",
                                         "64/8192 64/100 0/17",
                                         "8/8",
                                         "0/0",
                                         "7/8",
                                         "9/8",
                                         "64/70368744177664",
                                         "64/70368744173568",
                                         "64/35184372088832 64/35184372088832",
                                         "64/18446744073709551615",
                                         "18446744073709551615/18446744073709551616",
                                         "",
                                         "x",
                                         "64/",
                                         "64/8192 ",
                                         "0/17",
                                         "064/100"};
    if (strcmp(f->name, "images") == 0 && pick < 230)
        return images[pick % COUNT_OF(images)];
    if (strcmp(f->name, "images") == 0 && pick < 245) { /* of as many parts as there may be */
        size_t n = 0;
        for (int i = 0; i < WMSG_PARTS_MAX; i++)
            n += (size_t)snprintf(many + n, sizeof many - n, "%s64/100", i ? " " : "");
        return many;
    }
    if (pick < 245)
        return texts[pick < 160 ? pick % 3 : pick % COUNT_OF(texts)];
    memset(longest, 'x', sizeof longest - 1);
    longest[f->limit < WMSG_IMAGES_MAX ? f->limit : WMSG_IMAGES_MAX] = 0;
    return longest;
}

static void fill(const struct stage *s, const struct el_field *f, char *base, unsigned w)
{
    char *at = base + f->offset;
    unsigned pick = take(s->t);
    bool own = pick < 224;
    if (own && (strcmp(f->name, "rank") == 0 || strcmp(f->name, "local_rank") == 0))
        *(uint64_t *)(void *)at = w;
    else if (own && strcmp(f->name, "proto") == 0)
        *(uint64_t *)(void *)at = WMSG_PROTO;
    else if (own && strcmp(f->name, "round") == 0)
        *(uint64_t *)(void *)at = s->number;
    else if (own && (strcmp(f->name, "parts") == 0 || strcmp(f->name, "index") == 0))
        *(uint64_t *)(void *)at = pick % 4;
    else if (f->kind == EL_FIELD_NUM)
        *(uint64_t *)(void *)at = number_of(f, pick);
    else if (f->kind == EL_FIELD_INT)
        *(int64_t *)(void *)at = step_of(pick);
    else if (f->kind == EL_FIELD_BOOL)
        *(bool *)(void *)at = pick & 1;
    else if (f->kind == EL_FIELD_STR)
        *(const char **)(void *)at = text_of(f, pick);
    else
        abort(); /* a kind that this does not fill */
}

/* --- as it comes from the wire --- */

static bool over_the_wire(const struct wmsg *m, struct wmsg *out, struct el_err *e)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    bool good = wmsg_encode(m, &b) == 0 && wmsg_decode(b.v, b.len, out, e) == 0;
    el_buf_free(&b);
    return good;
}

static void look_at_answer(struct stage *s, const struct keeper_action *a)
{
    const struct wmsg *m = keeper_reply(s->k, a->reply);
    struct wmsg out;
    struct el_err e = {0};
    if (!over_the_wire(m, &out, &e)) {
        fprintf(stderr, "says what is refused: %s: %s\n", wmsg_name(m->type), e.text);
        abort();
    }
    wmsg_release(&out);
    if (m->type == WMSG_SNAP_SLOT && !m->u.snap_slot.busy &&
        keeper_slot(s->k, a->worker, (unsigned)m->u.snap_slot.slot)->bytes >
            s->capacity[a->worker][m->u.snap_slot.slot])
        abort();
    if (m->type == WMSG_RESTORE_OFFER && m->u.restore_offer.step >= 0 && !m->u.restore_offer.elsewhere &&
        m->u.restore_offer.slot_bytes > s->capacity[a->source][a->slot])
        abort();
}

static void feed(struct stage *s, const struct keeper_event *ev)
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
        if (is_job && s->pending < COUNT_OF(s->order))
            s->order[s->pending++] = *a;
    }
}

/* --- what happens --- */

static void say(struct stage *s, unsigned w)
{
    unsigned row = take(s->t) % COUNT_OF(rows);
    struct wmsg m = {.type = rows[row].type, .seq = take(s->t)}, got;
    struct el_err e = {0};
    for (const struct el_field *f = rows[row].fields; f->name; f++)
        fill(s, f, (char *)&m.u, w);
    if (!over_the_wire(&m, &got, &e))
        return;
    feed(s, &(struct keeper_event){
                .type = KEEPER_EV_MSG, .worker = w, .now = s->now, .away = take(s->t) > 250, .msg = &got});
    wmsg_release(&got);
}

/* What a script does that has not lost its way, so that there is something to lose. */
static void declare(struct stage *s, unsigned w)
{
    const struct wmsg said[] = {
        {.type = WMSG_HELLO, .u.hello = {.proto = WMSG_PROTO, .rank = w, .local_rank = w, .round = s->number}},
        {.type = WMSG_PART, .u.part = {.index = 0, .name = "model", .shard_id = "all", .file = ""}},
        {.type = WMSG_DECLARE, .u.declare = {.layout_id = "all", .parts = 1}}};
    for (size_t i = 0; i < COUNT_OF(said); i++)
        feed(s, &(struct keeper_event){.type = KEEPER_EV_MSG, .worker = w, .now = s->now, .msg = &said[i]});
}

/* One order of the vault has its result, in any order. */
static void settle(struct stage *s)
{
    static const uint64_t bytes[WMSG_PARTS_MAX] = {8192, 100}, header_bytes[WMSG_PARTS_MAX] = {4096, 64};
    unsigned i = s->pending ? take(s->t) % s->pending : 0, luck = take(s->t);
    if (!s->pending)
        return;
    struct keeper_action a = s->order[i];
    s->order[i] = s->order[--s->pending];
    uint64_t *capacity = &s->capacity[a.worker][a.slot], want = a.type == KEEPER_DO_LOAD ? 16384 : a.bytes;
    struct keeper_event ev = {
        .worker = a.worker, .slot = a.slot, .gen = a.gen, .now = s->now, .ok = luck % 8 != 0 && want <= BUDGET};
    ev.part_bytes = bytes;
    ev.part_header_bytes = header_bytes;
    ev.need_bytes = luck % 2;
    ev.text = "no";
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
    feed(s, &ev);
}

static void happens(struct stage *s, unsigned w)
{
    unsigned what = take(s->t) % 8, x = take(s->t);
    struct keeper_event ev = {.type = KEEPER_EV_GONE, .worker = w, .now = s->now};
    switch (what) {
    case 0: s->now += EL_SEC(60); return;
    case 1: ev.type = KEEPER_EV_ROUND, ev.number = ++s->number, ev.lineage = x; break;
    case 2:
        ev.type = KEEPER_EV_CHOSEN, ev.step = step_of(x) < -1 ? -1 : step_of(x), ev.lineage = x % 4, ev.on_disk = x & 1;
        break;
    case 3: ev.type = KEEPER_EV_CONFIRMED, ev.lineage = x; break;
    case 4: ev.type = x % 2 ? KEEPER_EV_AGAIN : KEEPER_EV_LATE, ev.text = "late"; break;
    case 5: {
        struct el_field f = {.name = "images", .limit = WMSG_IMAGES_MAX};
        int slot = keeper_capture(s->k, w, step_of(x), x % 4);
        if (slot < 0)
            return;
        ev.type = KEEPER_EV_CAPTURED, ev.slot = (unsigned)slot, ev.ok = x & 1, ev.images = text_of(&f, x), ev.text = "";
        break;
    }
    case 6: keeper_captures_end(s->k, step_of(x)); return;
    default: break;
    }
    feed(s, &ev);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tape t = {data, data + size};
    unsigned how = take(&t);
    struct keeper_conf conf = {.workers = WORKERS, .budget_bytes = how % 8 ? BUDGET : 0, .live = true};
    conf.files = how & 8;
    conf.waits = how & 16;
    conf.disk = how & 32;
    conf.several = how & 64;
    conf.compares = how & 128;
    conf.patience = EL_SEC(300);
    struct el_mem mem = EL_MEM_INIT((size_t)64 << 20);
    struct stage s = {.t = &t, .now = EL_SEC(1), .number = 1};
    s.k = keeper_new(&conf, &mem);
    feed(&s, &(struct keeper_event){.type = KEEPER_EV_ROUND, .number = 1});
    while (t.at < t.end) {
        unsigned what = take(&t), w = what % WORKERS;
        if (what < 128)
            say(&s, w);
        else if (what < 144)
            declare(&s, w);
        else if (what < 184)
            happens(&s, w);
        else
            settle(&s);
    }
    keeper_free(s.k);
    if (mem.used_bytes)
        abort();
    return 0;
}
