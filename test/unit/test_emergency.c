/* Emergency checkpoint of live workers: every way in which up to four of them can stand at three steps, against the
 * rule said in other words; and the single cases that it does not show. */
#include "snapshot/emergency.h"
#include "ckpt/layout.h"

#include <string.h>

#include "lib/tap.h"

#define WORKERS 4
#define LIMIT   EL_SEC(1000)

static struct slot_table *k;
static struct emergency *c;
static unsigned n;
static el_usec now;
static uint64_t room_bytes = 16384; /* that each slot has when it is declared for */

/* How a worker stands: dead; behind a step; behind it, and silent; in a step that it ends within a second; in one for
 * ever; failed in one. */
enum kind { DEAD, STABLE, SILENT, LATE, STUCK, FAILED };
struct way {
    enum kind kind;
    int64_t step; /* that it is behind, or in */
};
static const struct way ways[] = {{DEAD, 0},   {STABLE, 1}, {STABLE, 2}, {STABLE, 3}, {SILENT, 2},
                                  {SILENT, 3}, {LATE, 2},   {LATE, 3},   {STUCK, 3},  {FAILED, 3}};
#define WAYS (sizeof ways / sizeof ways[0])

/* Whose state is the same: all alike, each its own, two and two. */
enum shape { ALIKE, OWN, PAIRS };

static unsigned group_of(enum shape shape, unsigned worker)
{
    return shape == ALIKE ? 0 : shape == OWN ? worker : worker / 2;
}

static const struct slot_table_actions *event(struct slot_table_event ev)
{
    const struct slot_table_actions *did = slot_table_step(k, &ev);
    slot_table_check(k);
    return did;
}

static const struct slot_table_actions *say(unsigned worker, struct worker_msg m)
{
    return event((struct slot_table_event){.type = SLOT_TABLE_EV_MSG, .worker = worker, .msg = &m});
}

static void name(unsigned worker, unsigned index, const char *part, const char *shard)
{
    say(worker, (struct worker_msg){.type = WORKER_MSG_PART,
                                    .u.part = {.index = index, .name = part, .shard_id = shard, .file = ""}});
}

static void hello(unsigned worker)
{
    say(worker,
        (struct worker_msg){.type = WORKER_MSG_HELLO,
                            .u.hello = {.proto = WORKER_MSG_PROTO, .rank = worker, .local_rank = worker, .round = 1}});
}

static void declared(unsigned worker, unsigned parts)
{
    say(worker, (struct worker_msg){.type = WORKER_MSG_DECLARE, .u.declare = {.layout_id = "l", .parts = parts}});
    event((struct slot_table_event){.type = SLOT_TABLE_EV_OPENED, .worker = worker, .ok = true});
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++)
        event((struct slot_table_event){.type = SLOT_TABLE_EV_GROWN,
                                        .worker = worker,
                                        .slot = i,
                                        .ok = true,
                                        .capacity = room_bytes,
                                        .file_bytes = room_bytes});
}

static void open_bare(unsigned workers, bool disk)
{
    const struct slot_table_conf conf = {.workers = workers, .budget_bytes = 1u << 30, .live = true};
    n = workers;
    k = slot_table_new(&conf, NULL);
    c = emergency_new(k, disk, NULL);
    now = 0;
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 1});
    for (unsigned i = 0; i < n; i++)
        hello(i);
}

static void open_all(unsigned workers, enum shape shape, bool disk)
{
    static const char *const shards[] = {"s0", "s1", "s2", "s3"};
    open_bare(workers, disk);
    for (unsigned i = 0; i < n; i++) {
        name(i, 0, "state", shards[group_of(shape, i)]);
        declared(i, 1);
    }
}

static void close_all(void)
{
    emergency_free(c);
    slot_table_free(k);
}

static void summed(unsigned worker, unsigned slot)
{
    event((struct slot_table_event){.type = SLOT_TABLE_EV_SUMMED,
                                    .worker = worker,
                                    .slot = slot,
                                    .gen = slot_table_slot(k, worker, slot)->gen,
                                    .ok = true});
}

/* Of as many parts as it has declared. */
static const char *images_of(unsigned worker)
{
    static const char *const all = "4096/8192 4096/8192";
    return slot_table_parts(k, worker) == 2 ? all : all + 10;
}

static int begin(unsigned worker, int64_t step)
{
    const struct slot_table_actions *did =
        say(worker, (struct worker_msg){.type = WORKER_MSG_SNAP_BEGIN,
                                        .u.snap_begin = {.step = step, .images = images_of(worker)}});
    const struct worker_msg *m = slot_table_reply(k, did->v[did->n - 1].reply);
    return m->u.snap_slot.busy ? -1 : (int)m->u.snap_slot.slot;
}

static void commit(unsigned worker, int slot, int64_t step)
{
    say(worker,
        (struct worker_msg){.type = WORKER_MSG_SNAP_COMMIT, .u.snap_commit = {.slot = (uint64_t)slot, .step = step}});
}

static void snapshot(unsigned worker, int64_t step)
{
    int slot = begin(worker, step);
    commit(worker, slot, step);
    summed(worker, (unsigned)slot);
}

static void captured(const struct emergency_order *o, bool is_good)
{
    emergency_said(c, o->worker, is_good, "no");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CAPTURED,
                                    .worker = o->worker,
                                    .slot = o->slot,
                                    .ok = is_good,
                                    .images = images_of(o->worker)});
    if (is_good)
        summed(o->worker, o->slot);
}

static struct emergency_stand stand_of(struct way w)
{
    bool inside = w.kind == STUCK || w.kind == FAILED || (w.kind == LATE && now < EL_SEC(1));
    struct emergency_stand s = {.answers = w.kind != DEAD, .ends = w.kind == FAILED};
    s.page = (struct worker_status_stand){
        .listens = true, .stable = !inside, .live = inside ? w.step - 1 : w.step, .begun = w.step};
    return s;
}

/* --- every way --- */

static unsigned long ran, wrong, slow, got_some;

static bool could(const struct way *w, int64_t step)
{
    return (w->kind == STABLE || w->kind == LATE) && w->step == step;
}

/* The newest step that somebody of each group could give; held: all have a snapshot of step 1. */
static int64_t expected(const struct way *w, enum shape shape, bool held)
{
    for (int64_t step = 3; step > held; step--) {
        bool all = true;
        for (unsigned i = 0; i < n; i++) {
            bool any = false;
            for (unsigned j = 0; j < n; j++)
                any |= group_of(shape, i) == group_of(shape, j) && could(&w[j], step);
            all &= any;
        }
        if (all)
            return step;
    }
    return SLOT_TABLE_NO_STEP;
}

/* Nobody is there for whom to wait. */
static bool all_is_plain(const struct way *w)
{
    for (unsigned i = 0; i < n; i++)
        if (w[i].kind != DEAD && w[i].kind != FAILED)
            return false;
    return true;
}

static bool all_have(enum shape shape, int64_t step)
{
    for (unsigned i = 0; i < n; i++) {
        bool any = false;
        for (unsigned j = 0; j < n; j++)
            for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++)
                any |= group_of(shape, i) == group_of(shape, j) && slot_table_slot(k, j, s)->step == step &&
                       slot_table_slot(k, j, s)->state == SLOT_TABLE_COMMITTED;
        if (!any)
            return false;
    }
    return true;
}

static void run(const struct way *w)
{
    struct emergency_stand stand[WORKERS];
    emergency_begin(c, 0, LIMIT);
    for (now = 0; now < EL_SEC(200); now += EL_MS(2500)) {
        const struct emergency_order *order;
        for (unsigned i = 0; i < n; i++)
            stand[i] = stand_of(w[i]);
        unsigned orders = emergency_step(c, stand, now, &order);
        emergency_check(c);
        for (unsigned i = 0; i < orders; i++)
            if (w[order[i].worker].kind != SILENT)
                captured(&order[i], true);
        if (!emergency_is_busy(c))
            return;
    }
}

static void one(const struct way *w, unsigned workers, enum shape shape, bool disk, bool held)
{
    open_all(workers, shape, disk);
    for (unsigned i = 0; i < n && held; i++)
        snapshot(i, 1);
    run(w);
    int64_t want = expected(w, shape, held);
    struct emergency_end end = emergency_end(c);
    bool good = !emergency_is_busy(c) && end.step == want && end.instead == (held ? 1 : SLOT_TABLE_NO_STEP) &&
                (want == SLOT_TABLE_NO_STEP || (all_have(shape, want) && end.copies && end.copies <= n));
    ran++;
    got_some += want != SLOT_TABLE_NO_STEP;
    slow += all_is_plain(w) && now > 0;
    if (!good && !wrong++) {
        printf("# shape %d, disk %d, held %d: got %lld, want %lld, %s:", (int)shape, disk, held, (long long)end.step,
               (long long)want, end.why);
        for (unsigned i = 0; i < n; i++)
            printf(" %d at %lld", (int)w[i].kind, (long long)w[i].step);
        printf("\n");
    }
    close_all();
}

static void test_every_way(void)
{
    for (unsigned workers = 1; workers <= WORKERS; workers++) {
        unsigned all = 1;
        for (unsigned i = 0; i < workers; i++)
            all *= WAYS;
        for (unsigned at = 0; at < all; at++) {
            struct way w[WORKERS];
            for (unsigned i = 0, rest = at; i < workers; i++, rest /= WAYS)
                w[i] = ways[rest % WAYS];
            for (unsigned x = 0; x < 6; x++)
                one(w, workers, (enum shape)(x / 2), x % 2, at % 3 == 0);
        }
    }
    is_num(wrong, 0, "the newest step that all can have is captured, and none that they cannot");
    is_num(slow, 0, "and nobody waits where all are dead or have failed");
    ok(ran == 6 * (10 + 100 + 1000 + 10000) && got_some > ran / 10, "of every way in which four can stand");
}

/* --- single cases --- */

static const struct way behind3 = {STABLE, 3}, dead = {DEAD, 0};
static struct emergency_stand stand[WORKERS];
static const struct emergency_order *order;

static unsigned look(void)
{
    unsigned orders = emergency_step(c, stand, now, &order);
    emergency_check(c);
    return orders;
}

static void stand_all(struct way a, struct way b)
{
    stand[0] = stand_of(a);
    stand[1] = stand_of(b);
}

static void test_no(void)
{
    open_all(2, ALIKE, false);
    stand_all(behind3, behind3);
    emergency_begin(c, 0, LIMIT);
    ok(look() == 1 && order[0].worker == 0 && order[0].step == 3, "one of two that hold the same is asked");
    captured(order, false);
    ok(look() == 1 && order[0].worker == 1, "it says no: the other one");
    stand[1].answers = false;
    look();
    look();
    ok(!emergency_is_busy(c) && emergency_end(c).step == SLOT_TABLE_NO_STEP, "that one dies: there is nobody else");
    is_str(emergency_end(c).why, "step 3 of rank 0 is held by nobody: no", "and it is said what the first one said");
    close_all();
}

/* The other slot holds what counts if this comes to nothing. */
static void test_snapshot_meanwhile(void)
{
    open_all(2, OWN, false);
    stand_all(behind3, behind3);
    for (unsigned i = 0; i < 2; i++)
        snapshot(i, 1);
    emergency_begin(c, 0, LIMIT);
    ok(look() == 2, "two are asked, one of which takes a snapshot meanwhile");
    struct emergency_order o[2] = {order[0], order[1]};
    is_num((unsigned long)begin(0, 3), (unsigned long)-1, "while it copies there is no slot");
    captured(&o[0], true);
    look();
    is_num((unsigned long)begin(0, 3), (unsigned long)-1, "nor when its copy counts");
    captured(&o[1], false);
    look();
    look();
    ok(!emergency_is_busy(c) && emergency_end(c).instead == 1, "the other one cannot: step 1 it is");
    is_num((unsigned long)begin(0, 4), o[0].slot, "the next snapshot goes where the copy is that came to nothing");
    ok(slot_table_slot(k, 0, !o[0].slot)->state == SLOT_TABLE_COMMITTED && slot_table_slot(k, 0, !o[0].slot)->step == 1,
       "and what counts is there");
    close_all();
}

static void test_snapshot_behind_it(void)
{
    open_all(1, OWN, false);
    snapshot(0, 1);
    stand_all(behind3, dead);
    emergency_begin(c, 0, LIMIT);
    look();
    struct emergency_order o = *order;
    captured(&o, true);
    look();
    ok(!emergency_is_busy(c) && emergency_end(c).step == 3, "a step is captured");
    is_num((unsigned long)begin(0, 4), !o.slot, "the next snapshot does not go where it is");
    close_all();
}

/* The dead one lacks step 2, whose only piece of it another one holds: that needs the disk, which may yet fail. */
static void test_kept_in_memory(void)
{
    open_bare(2, true);
    name(0, 0, "state", "all");
    declared(0, 1);
    name(1, 0, "state", "all");
    name(1, 1, "more", "s1");
    declared(1, 2);
    snapshot(0, 1);
    snapshot(1, 1);
    snapshot(1, 2);
    stand_all(dead, behind3);
    emergency_begin(c, 0, LIMIT);
    is_num(look(), 0, "what all hold in memory is not given out for what only a disk could have");
    ok(!emergency_is_busy(c) && emergency_end(c).step == SLOT_TABLE_NO_STEP && emergency_end(c).instead == 2,
       "and nobody waits for that");
    close_all();
}

static void test_died_behind_it(void)
{
    open_all(1, ALIKE, false);
    stand_all(behind3, dead);
    emergency_begin(c, 0, LIMIT);
    ok(look() == 1, "asked");
    struct emergency_order o = *order;
    event((struct slot_table_event){
        .type = SLOT_TABLE_EV_CAPTURED, .worker = 0, .slot = o.slot, .ok = true, .images = images_of(0)});
    stand[0].answers = false;
    look();
    ok(emergency_is_busy(c), "a worker that dies when it has copied loses nothing: it is being summed");
    summed(0, o.slot);
    look();
    is_num((unsigned long)emergency_end(c).step, 3, "and counts");
    close_all();
}

static void test_wrong_image(void)
{
    open_all(1, ALIKE, false);
    stand_all(behind3, dead);
    emergency_begin(c, 0, LIMIT);
    look();
    struct emergency_order o = *order;
    const struct slot_table_actions *did = event((struct slot_table_event){
        .type = SLOT_TABLE_EV_CAPTURED, .worker = 0, .slot = o.slot, .ok = true, .images = images_of(0)});
    struct slot_table_action sum = did->v[0];
    did = event(
        (struct slot_table_event){.type = SLOT_TABLE_EV_SUMMED, .slot = sum.slot, .gen = sum.gen, .text = "no header"});
    is_num(did->n, 0, "what it copied is not what it had declared: the script is not told, it has not asked");
    look();
    look();
    ok(!emergency_is_busy(c) && emergency_end(c).step == SLOT_TABLE_NO_STEP, "and it does not count");
    close_all();
}

/* What it says it has copied cannot be in the slot: it had less room, or is no list at all. */
static void test_too_large(void)
{
    static const char *const lists[] = {"4096/8192", "", "4096/4097", "0/4096", NULL};
    for (unsigned i = 0; lists[i]; i++) {
        room_bytes = i == 1 ? 16384 : 4096;
        open_all(1, ALIKE, false);
        stand_all(behind3, dead);
        emergency_begin(c, now = 0, LIMIT);
        look();
        struct emergency_order o = *order;
        const struct slot_table_actions *did = event((struct slot_table_event){
            .type = SLOT_TABLE_EV_CAPTURED, .worker = 0, .slot = o.slot, .ok = true, .images = lists[i]});
        is_num(did->n, 0, "a copy that is larger than its slot, or of sizes that are none, is not even summed");
        look();
        look();
        ok(!emergency_is_busy(c) && emergency_end(c).step == SLOT_TABLE_NO_STEP, "and does not count");
        close_all();
    }
    room_bytes = 16384;
}

/* What was copied is what counts, not how large the slot is. */
static void test_bytes(void)
{
    open_all(1, ALIKE, false);
    stand_all(behind3, dead);
    emergency_begin(c, now = 0, LIMIT);
    look();
    captured(order, true);
    look();
    is_num(emergency_end(c).bytes, 8192, "how much was captured");
    close_all();
}

static void test_slow_but_alive(void)
{
    open_all(1, ALIKE, false);
    stand_all(behind3, dead);
    emergency_begin(c, 0, EL_SEC(60));
    look();
    for (; now < EL_SEC(59); now += EL_SEC(3)) {
        stand[0].page.beat++;
        look();
    }
    ok(emergency_is_busy(c), "who gives signs of life may copy for long");
    now = EL_SEC(60);
    look();
    ok(!emergency_is_busy(c) && strstr(emergency_end(c).why, "--emergency-timeout"), "but not beyond the limit");
    close_all();
}

static void test_busy_slots(void)
{
    open_all(1, ALIKE, false);
    snapshot(0, 1);
    int slot = begin(0, 2);
    commit(0, slot, 2);
    stand_all(behind3, dead);
    emergency_begin(c, 0, LIMIT);
    ok(look() == 0 && emergency_is_busy(c), "a snapshot is being summed: its slot may be free in a moment");
    summed(0, (unsigned)slot);
    ok(look() == 1 && (int)order[0].slot != slot, "then the other one is");
    ok(begin(0, 4) == -1, "which the script does not get meanwhile");
    captured(order, true);
    look();
    ok(emergency_end(c).step == 3, "the step is there");
    close_all();

    open_all(1, ALIKE, false);
    snapshot(0, 1);
    commit(0, slot = begin(0, 3), 3);
    emergency_begin(c, 0, LIMIT);
    ok(look() == 0 && emergency_is_busy(c), "the snapshot that is being summed is of that step");
    summed(0, (unsigned)slot);
    look();
    ok(emergency_end(c).step == 3 && !emergency_end(c).copies, "so nothing need be copied");
    close_all();
}

/* Ranks that have left out other snapshots than each other share the older slot alone. */
static void test_last_in_common(void)
{
    for (unsigned busy = 0; busy < 2; busy++) {
        open_all(2, OWN, false);
        snapshot(0, 1);
        snapshot(1, 1);
        snapshot(0, 2);
        if (!busy)
            snapshot(1, 2);
        stand_all(behind3, behind3);
        emergency_begin(c, now = 0, LIMIT);
        is_num(look(), 2,
               busy ? "a step that not all have is given away for one that they may have"
                    : "where all have the newest the older one is");
        ok(all_have(OWN, busy ? 1 : 2), "and what all have is there still");
        close_all();
    }
}

static void test_round(void)
{
    open_all(1, ALIKE, false);
    stand_all(behind3, dead);
    emergency_begin(c, 0, LIMIT);
    look();
    struct emergency_order o = *order;
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = 0});
    ok(slot_table_slot(k, 0, o.slot)->state == SLOT_TABLE_CAPTURING,
       "a worker that may yet write keeps its slot when it is gone");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2});
    ok(slot_table_slot(k, 0, o.slot)->state == SLOT_TABLE_FREE, "until the round is over");
    emergency_begin(c, now, LIMIT);
    ok(!emergency_is_busy(c), "before all have declared there is nothing to be had");
    close_all();
}

/* Rank 0 has what 1 and 2 have together. */
static void test_pieces(void)
{
    for (unsigned disk = 0; disk < 2; disk++) {
        open_bare(3, disk);
        name(0, 0, "a", "all");
        name(0, 1, "b", "all");
        declared(0, 2);
        name(1, 0, "a", "all");
        declared(1, 1);
        name(2, 0, "b", "all");
        declared(2, 1);
        stand_all(dead, behind3);
        stand[2] = stand_of(behind3);
        emergency_begin(c, 0, LIMIT);
        is_num(look(), disk ? 2 : 0,
               disk ? "its pieces are held by others: enough for what goes to disk"
                    : "its pieces are held by others, and nobody could fill it from memory");
        close_all();
    }
}

/* --- the page --- */

/* A step that no snapshot can have, proposed by other nodes or claimed by a worker, ends nothing. */
static void test_no_step(void)
{
    static const int64_t none[] = {CKPT_STEP_MAX + 1, INT64_MAX - 1, INT64_MAX};
    for (unsigned i = 0; i < 3; i++) {
        open_all(1, ALIKE, false);
        stand_all(behind3, dead);
        stand[0].page.live = stand[0].page.begun = none[i];
        emergency_begin(c, now = 0, LIMIT);
        ok(!look() && !look() && !emergency_is_busy(c), "a step that is none is copied by nobody");
        emergency_begin_shared(c, now, LIMIT);
        emergency_told(c, none[i], SLOT_TABLE_NO_STEP);
        ok(!look() && emergency_is_out(c, 0), "nor if other nodes have proposed it");
        close_all();
    }
}

int main(void)
{
    test_every_way();
    test_no();
    test_snapshot_meanwhile();
    test_snapshot_behind_it();
    test_kept_in_memory();
    test_died_behind_it();
    test_wrong_image();
    test_too_large();
    test_bytes();
    test_slow_but_alive();
    test_busy_slots();
    test_last_in_common();
    test_round();
    test_pieces();
    test_no_step();
    return done();
}
