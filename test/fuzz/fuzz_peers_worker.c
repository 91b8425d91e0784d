/* What workers may say to their agent, each message well formed with each value at its limits, through the wire to the
 * keeper of their snapshots, with a coordinator and a vault that may answer anything that they may say.  Whatever a
 * worker says, nothing fails but its own snapshot: no slot is too small for what is in it, and every answer is one that
 * the worker's decoder takes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/slot_table.h"
#include "ckpt/layout.h"
#include "fuzz/tape.h"
#include "fuzz/shm_slots.h"
#include "util/array.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORKERS = SHM_SLOTS_WORKERS };
#define BUDGET ((uint64_t)1 << 40)

#define X(NAME, name, number, fds, text)                                                                               \
    static const struct el_field name##_fields[] = {WORKER_MSG_##name##_FIELDS(EL_FIELD_ROW, wmsg_##name) EL_FIELD_END};
WORKER_MSG_LIST(X)
#undef X

static const struct {
    enum worker_msg_type type;
    const struct el_field *fields;
} rows[] = {
#define X(NAME, name, number, fds, text) {WORKER_MSG_##NAME, name##_fields},
    WORKER_MSG_LIST(X)
#undef X
};

struct stage {
    struct tape *t;
    struct slot_table *k;
    el_usec now;
    uint64_t number;
    struct shm_slots vault;
    bool compares;
    bool many; /* have been declared: once, for it takes its time */
    struct {
        unsigned worker, slot;
        uint64_t gen;
        bool released; /* its worker has declared other parts: the memory is the reader's, the slot is another one */
    } read[4];         /* slots that are being read, for a disk or another node */
    unsigned reads;
    bool given[WORKERS][SLOT_TABLE_SLOTS]; /* to be written by its worker, or by who captures */
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
    static char longest[WORKER_MSG_IMAGES_MAX + 1], many[WORKER_MSG_IMAGES_MAX + 1];
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
        for (int i = 0; i < WORKER_MSG_PARTS_MAX; i++)
            n += (size_t)snprintf(many + n, sizeof many - n, "%s64/100", i ? " " : "");
        return many;
    }
    if (pick < 245)
        return texts[pick < 160 ? pick % 3 : pick % COUNT_OF(texts)];
    memset(longest, 'x', sizeof longest - 1);
    longest[f->limit < WORKER_MSG_IMAGES_MAX ? f->limit : WORKER_MSG_IMAGES_MAX] = 0;
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
        *(uint64_t *)(void *)at = WORKER_MSG_PROTO;
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

static bool over_the_wire(const struct worker_msg *m, struct worker_msg *out, struct el_err *e)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    bool good = worker_msg_encode(m, &b) == 0 && worker_msg_decode(b.v, b.len, out, e) == 0;
    el_buf_free(&b);
    return good;
}

static void look_at_answer(struct stage *s, const struct slot_table_action *a)
{
    const struct worker_msg *m = slot_table_reply(s->k, a->reply);
    struct worker_msg out;
    struct el_err e = {0};
    if (!over_the_wire(m, &out, &e)) {
        fprintf(stderr, "says what is refused: %s: %s\n", worker_msg_name(m->type), e.text);
        abort();
    }
    worker_msg_release(&out);
    shm_slots_judge(&s->vault, s->k, a);
    if (m->type == WORKER_MSG_SNAP_SLOT && !m->u.snap_slot.busy)
        s->given[a->worker][m->u.snap_slot.slot] = true;
}

/* What is summed was given out to be written, once. */
static void look_at_sum(struct stage *s, const struct slot_table_action *a)
{
    if (!s->given[a->worker][a->slot])
        abort();
    s->given[a->worker][a->slot] = false;
}

/* What has no name on disk is nowhere, whoever announced it. */
static void look_at_slots(const struct stage *s)
{
    for (unsigned w = 0; w < WORKERS; w++)
        for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++) {
            const struct slot_table_slot *slot = slot_table_slot(s->k, w, i);
            bool named = slot->step >= 0 && slot->step <= CKPT_STEP_MAX;
            bool empty = slot->state == SLOT_TABLE_FREE || slot->state == SLOT_TABLE_BROKEN;
            if ((!named && !empty) || slot->bytes > WORKER_MSG_BYTES_MAX)
                abort();
        }
}

static void feed(struct stage *s, const struct slot_table_event *ev)
{
    const struct slot_table_actions *did = slot_table_step(s->k, ev);
    slot_table_check(s->k);
    for (unsigned i = 0; i < did->n; i++) {
        const struct slot_table_action *a = &did->v[i];
        if (a->type == SLOT_TABLE_DO_SEND)
            look_at_answer(s, a);
        if (a->type == SLOT_TABLE_DO_SUM)
            look_at_sum(s, a);
        for (unsigned n = 0; n < s->reads && a->type == SLOT_TABLE_DO_RELEASE; n++)
            s->read[n].released |= s->read[n].worker == a->worker;
        shm_slots_take(&s->vault, a);
    }
    look_at_slots(s);
}

/* --- what happens --- */

static void tell(struct stage *s, unsigned w, const struct worker_msg *m, bool away)
{
    struct worker_msg got;
    struct el_err e = {0};
    if (!over_the_wire(m, &got, &e))
        return;
    feed(s,
         &(struct slot_table_event){.type = SLOT_TABLE_EV_MSG, .worker = w, .now = s->now, .away = away, .msg = &got});
    worker_msg_release(&got);
}

static void say(struct stage *s, unsigned w)
{
    unsigned row = take(s->t) % COUNT_OF(rows);
    struct worker_msg m = {.type = rows[row].type, .seq = take(s->t)};
    for (const struct el_field *f = rows[row].fields; f->name; f++)
        fill(s, f, (char *)&m.u, w);
    tell(s, w, &m, take(s->t) > 250);
}

/* With a new round nobody reads but those whom the keeper does not know, unless it compares. */
static void look_at_readers(const struct stage *s)
{
    for (unsigned w = 0; w < WORKERS; w++)
        for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++) {
            unsigned readers = 0;
            for (unsigned n = 0; n < s->reads; n++)
                readers += s->read[n].worker == w && s->read[n].slot == i && !s->read[n].released;
            if (slot_table_slot(s->k, w, i)->readers != readers)
                abort();
        }
}

/* Somebody begins to read a slot, or has read it. */
static void read_slot(struct stage *s, unsigned w, unsigned x)
{
    if (x % 2 && s->reads < COUNT_OF(s->read) && slot_table_take(s->k, w, x / 2 % SLOT_TABLE_SLOTS)) {
        unsigned slot = x / 2 % SLOT_TABLE_SLOTS;
        s->read[s->reads].worker = w;
        s->read[s->reads].slot = slot;
        s->read[s->reads].released = false;
        s->read[s->reads++].gen = slot_table_slot(s->k, w, slot)->gen;
    } else if (x % 2 == 0 && s->reads) {
        unsigned i = x / 2 % s->reads;
        struct slot_table_event ev = {.type = SLOT_TABLE_EV_READ, .now = s->now, .ok = x < 240};
        ev.worker = s->read[i].worker, ev.slot = s->read[i].slot, ev.gen = s->read[i].gen;
        if (!s->read[i].released && slot_table_slot(s->k, ev.worker, ev.slot)->gen != ev.gen)
            abort(); /* it was written meanwhile */
        s->read[i] = s->read[--s->reads];
        feed(s, &ev);
    }
}

/* What a script does that has not lost its way, so that there is something to lose. */
static void declare(struct stage *s, unsigned w)
{
    const struct worker_msg said[] = {
        {.type = WORKER_MSG_HELLO,
         .u.hello = {.proto = WORKER_MSG_PROTO, .rank = w, .local_rank = w, .round = s->number}},
        {.type = WORKER_MSG_PART, .u.part = {.index = 0, .name = "model", .shard_id = "all", .file = ""}},
        {.type = WORKER_MSG_PART, .u.part = {.index = 1, .name = "optim", .shard_id = "all", .file = ""}},
        {.type = WORKER_MSG_DECLARE, .u.declare = {.layout_id = "all", .parts = 2}},
        {.type = WORKER_MSG_DECLARE, .u.declare = {.layout_id = "all", .parts = 1}}};
    bool both = take(s->t) % 2;
    for (size_t i = 0; i < COUNT_OF(said); i++)
        if (both ? i < 4 : i != 2 && i != 3)
            tell(s, w, &said[i], false);
}

/* The slot of this worker that it may write to, with its step. */
static int slot_given(const struct stage *s, unsigned w)
{
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++)
        if (slot_table_slot(s->k, w, i)->state == SLOT_TABLE_WRITING)
            return (int)i;
    return -1;
}

/* What such a script says next; the values are often those that fit. */
static void behave(struct stage *s, unsigned w)
{
    static const char *const sizes[] = {
        "64/8192",           "64/100", "64/1048576",     "64/549755813888",
        "64/70368744177664", "8/8",    "64/8192 64/100", "64/70368744177664 64/70368744177664",
        "64/8192 64/1048576"};
    unsigned what = take(s->t), x = take(s->t);
    int slot = slot_given(s, w);
    struct worker_msg m = {.type = WORKER_MSG_RESTORE_QUERY, .seq = what};
    m.u.restore_query = (struct wmsg_restore_query){.layout_id = "all"};
    if (what % 4 == 1) {
        m.type = WORKER_MSG_SNAP_BEGIN;
        m.u.snap_begin = (struct wmsg_snap_begin){
            .step = step_of(x), .images = sizes[what / 4 % COUNT_OF(sizes)], .persist = what > 192};
    } else if (what % 4 == 2) {
        m.type = WORKER_MSG_SNAP_COMMIT;
        m.u.snap_commit = (struct wmsg_snap_commit){.slot = slot < 0 ? x % 2 : (unsigned)slot};
        m.u.snap_commit.step = slot_table_slot(s->k, w, (unsigned)m.u.snap_commit.slot)->step;
    } else if (what % 4 == 3) {
        m.type = WORKER_MSG_RESTORE_DONE;
        m.u.restore_done = (struct wmsg_restore_done){.step = step_of(x), .ok = what > 64, .why = "no"};
    }
    tell(s, w, &m, false);
}

static const uint64_t lacks_own[4] = {0, 1, 2, 3}; /* of what is on disk */

/* All go back to what one of them holds, or did. */
static void go_back(struct stage *s)
{
    const struct slot_table_slot *slot = slot_table_slot(s->k, take(s->t) % WORKERS, take(s->t) % SLOT_TABLE_SLOTS);
    feed(s, &(struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN,
                                       .now = s->now,
                                       .step = slot->step < 0 ? SLOT_TABLE_NO_STEP : slot->step,
                                       .lineage = slot->lineage,
                                       .on_disk = take(s->t) % 4 ? NULL : &lacks_own[take(s->t) % 4]});
}

/* As many parts as there may be, and one more. */
static void declare_many(struct stage *s, unsigned w)
{
    char name[16];
    struct worker_msg m = {.type = WORKER_MSG_PART, .u.part = {.name = name, .shard_id = "all", .file = ""}};
    s->many = true;
    for (unsigned i = 0; i <= WORKER_MSG_PARTS_MAX + 1; i++) {
        m.u.part.index = i < WORKER_MSG_PARTS_MAX ? i : WORKER_MSG_PARTS_MAX - 1;
        snprintf(name, sizeof name, "p%u", i);
        tell(s, w, &m, false);
    }
}

static void settle(struct stage *s)
{
    unsigned pick = take(s->t), luck = take(s->t);
    struct slot_table_event ev;
    if (!shm_slots_settle(&s->vault, pick, luck, &ev))
        return;
    ev.now = s->now;
    feed(s, &ev);
}

static void happens(struct stage *s, unsigned w)
{
    unsigned what = take(s->t) % 9, x = take(s->t);
    struct slot_table_event ev = {.type = SLOT_TABLE_EV_GONE, .worker = w, .now = s->now};
    switch (what) {
    case 0: s->now += EL_SEC(60); return;
    case 1: ev.type = SLOT_TABLE_EV_ROUND, ev.number = ++s->number, ev.lineage = x; break;
    case 2:
        ev.type = SLOT_TABLE_EV_CHOSEN, ev.step = step_of(x) < -1 ? -1 : step_of(x), ev.lineage = x % 4,
        ev.on_disk = x & 1 ? &lacks_own[x / 4 % 4] : NULL;
        break;
    case 3: ev.type = SLOT_TABLE_EV_CONFIRMED, ev.lineage = x; break;
    case 4: ev.type = x % 2 ? SLOT_TABLE_EV_AGAIN : SLOT_TABLE_EV_LATE, ev.text = "late"; break;
    case 5: {
        struct el_field f = {.name = "images", .limit = WORKER_MSG_IMAGES_MAX};
        int slot = slot_table_capture(s->k, w, step_of(x), x % 4);
        if (slot < 0)
            return;
        s->given[w][slot] = true;
        ev.type = SLOT_TABLE_EV_CAPTURED, ev.slot = (unsigned)slot, ev.ok = x & 1, ev.images = text_of(&f, x),
        ev.text = "";
        break;
    }
    case 6: slot_table_captures_end(s->k, step_of(x)); return;
    case 7: read_slot(s, w, x); return;
    default: break;
    }
    feed(s, &ev);
    if (what == 1 && !s->compares)
        look_at_readers(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tape t = {data, data + size};
    unsigned how = take(&t);
    struct slot_table_conf conf = {.workers = WORKERS, .budget_bytes = how % 8 ? BUDGET : 0, .live = true};
    conf.files = how & 8;
    conf.waits = how & 16;
    conf.disk = how & 32;
    conf.several = how & 64;
    conf.compares = how & 128;
    conf.patience = EL_SEC(300);
    struct el_mem mem = EL_MEM_INIT((size_t)64 << 20);
    struct stage s = {.t = &t, .now = EL_SEC(1), .number = 1, .vault = {.budget = BUDGET}};
    s.compares = conf.compares;
    s.k = slot_table_new(&conf, &mem);
    feed(&s, &(struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 1});
    while (t.at < t.end) {
        unsigned what = take(&t), w = what % WORKERS;
        if (what < 48)
            say(&s, w);
        else if (what < 120)
            behave(&s, w);
        else if (what < 128)
            go_back(&s);
        else if (what < 143)
            declare(&s, w);
        else if (what < 144 && !s.many)
            declare_many(&s, w);
        else if (what < 184)
            happens(&s, w);
        else
            settle(&s);
    }
    slot_table_free(s.k);
    if (mem.used_bytes)
        abort();
    return 0;
}
