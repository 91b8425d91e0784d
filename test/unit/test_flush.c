/* Which steps go to disk, and which slots are kept for them: ranks that commit one after the other, several wishes, a
 * rank that leaves a step out, workers that are dead, a write that fails; and in any order of events never a slot that
 * stays held, never half a step, never a wish of which nothing is heard. */
#include "snapshot/flush.h"

#include <string.h>

#include "lib/tap.h"
#include "util/rng.h"

#define WORKERS 3

static struct slot_table *k;
static struct flush *p;
static unsigned workers;
static uint32_t seq;
static bool same_shard;

static const struct slot_table_actions *event(struct slot_table_event ev)
{
    const struct slot_table_actions *did = slot_table_step(k, &ev);
    slot_table_check(k);
    return did;
}

static const struct slot_table_actions *say(unsigned worker, struct worker_msg m)
{
    m.seq = ++seq;
    return event((struct slot_table_event){.type = SLOT_TABLE_EV_MSG, .worker = worker, .msg = &m});
}

static void declare(unsigned worker)
{
    static const char *const names[] = {"r0", "r1", "r2"};
    say(worker,
        (struct worker_msg){.type = WORKER_MSG_HELLO,
                            .u.hello = {.proto = WORKER_MSG_PROTO, .rank = worker, .local_rank = worker, .round = 1}});
    for (unsigned i = 0; i < 2; i++)
        say(worker, (struct worker_msg){.type = WORKER_MSG_PART,
                                        .u.part = {.index = i,
                                                   .name = i ? "common" : "own",
                                                   .shard_id = i || same_shard ? "all" : names[worker],
                                                   .file = ""}});
    say(worker, (struct worker_msg){.type = WORKER_MSG_DECLARE, .u.declare = {.layout_id = "l", .parts = 2}});
    event((struct slot_table_event){.type = SLOT_TABLE_EV_OPENED, .worker = worker, .ok = true});
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++)
        event((struct slot_table_event){.type = SLOT_TABLE_EV_GROWN,
                                        .worker = worker,
                                        .slot = i,
                                        .ok = true,
                                        .capacity = 16384,
                                        .file_bytes = 16384});
}

static void open_all(unsigned n, bool same)
{
    struct slot_table_conf conf = {.workers = n, .budget_bytes = 1u << 30, .waits = true};
    workers = n;
    same_shard = same;
    k = slot_table_new(&conf, NULL);
    p = flush_new(k, n, NULL);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 1});
    for (unsigned i = 0; i < n; i++)
        declare(i);
}

static void close_all(void)
{
    flush_free(p);
    slot_table_free(k);
}

/* The slot that the worker gets for this step, -1: busy. */
static int begin(unsigned worker, int64_t step)
{
    const struct slot_table_actions *did =
        say(worker, (struct worker_msg){.type = WORKER_MSG_SNAP_BEGIN,
                                        .u.snap_begin = {.step = step, .images = "4096/8192 4096/8192"}});
    const struct worker_msg *m = NULL;
    for (unsigned i = 0; i < did->n; i++)
        m = did->v[i].type == SLOT_TABLE_DO_SEND ? slot_table_reply(k, did->v[i].reply) : m;
    return m && m->type == WORKER_MSG_SNAP_SLOT && !m->u.snap_slot.busy ? (int)m->u.snap_slot.slot : -1;
}

static void commit(unsigned worker, int slot, int64_t step, bool persist)
{
    say(worker, (struct worker_msg){.type = WORKER_MSG_SNAP_COMMIT,
                                    .u.snap_commit = {.slot = (uint64_t)slot, .step = step, .persist = persist}});
    event((struct slot_table_event){.type = SLOT_TABLE_EV_SUMMED,
                                    .worker = worker,
                                    .slot = (unsigned)slot,
                                    .gen = slot_table_slot(k, worker, (unsigned)slot)->gen,
                                    .ok = true});
    flush_committed(p, worker, (unsigned)slot);
    flush_check(p);
}

static bool snapshot(unsigned worker, int64_t step, bool persist)
{
    int slot = begin(worker, step);
    if (slot >= 0)
        commit(worker, slot, step, persist);
    return slot >= 0;
}

static bool next(enum flush_what what, int64_t step)
{
    struct flush_news news = flush_next(p);
    flush_check(p);
    if (news.what == what && (what == FLUSH_NOTHING || news.step == step) && (what != FLUSH_GIVEN_UP || news.text[0]))
        return true;
    printf("# got %d, step %lld: %s\n", (int)news.what, (long long)news.step, news.text);
    return false;
}

static unsigned sources(void)
{
    unsigned n;
    flush_sources(p, &n);
    return n;
}

static void test_plain(void)
{
    open_all(2, false);
    snapshot(0, 1, true);
    ok(next(FLUSH_NOTHING, 0), "one rank has committed, the other not yet: nothing is written");
    snapshot(0, 2, false);
    ok(!snapshot(0, 3, false), "the step that waits for the other rank is not written over");
    snapshot(1, 1, true);
    ok(next(FLUSH_WRITE, 1) && sources() == 3, "the other has: it is written, each piece once");
    ok(next(FLUSH_NOTHING, 0) && flush_writing(p) == 1, "once");
    ok(!snapshot(0, 3, false), "what is being written is not written over");
    flush_done(p, true, -1);
    ok(flush_on_disk(p) == 1 && flush_is_idle(p), "it is on disk");
    snapshot(1, 2, false);
    ok(snapshot(0, 3, false), "then the slot is free again, as soon as all have the next step");
    close_all();

    open_all(2, true);
    snapshot(1, 1, true);
    ok(next(FLUSH_WRITE, 1) && sources() == 2, "ranks that hold the same bytes: the first one will do");
    flush_done(p, true, -1);
    snapshot(0, 1, true);
    ok(next(FLUSH_WRITE, 1) || flush_on_disk(p) == 1, "a second one of the same step does no harm");
    close_all();
}

static void test_order(void)
{
    open_all(1, false);
    snapshot(0, 1, true);
    ok(next(FLUSH_WRITE, 1), "one is written");
    snapshot(0, 2, true);
    ok(next(FLUSH_NOTHING, 0), "the next one waits");
    ok(!snapshot(0, 3, true), "there is no third slot: the worker is told to wait or to leave it out");
    flush_done(p, true, -1);
    ok(next(FLUSH_WRITE, 2), "then it is written");
    snapshot(0, 3, true);
    flush_done(p, false, -1);
    ok(flush_on_disk(p) == 1, "what failed is not on disk");
    ok(next(FLUSH_WRITE, 3), "and the next one is tried");
    close_all();

    open_all(2, false);
    snapshot(0, 1, true), snapshot(1, 1, true);
    ok(next(FLUSH_WRITE, 1), "two ranks: one is written");
    snapshot(0, 2, true), snapshot(1, 2, false);
    flush_done(p, true, -1);
    ok(next(FLUSH_WRITE, 2), "one rank that wants it is enough");
    flush_done(p, true, -1);

    snapshot(0, 3, true);
    snapshot(1, 4, false);
    ok(next(FLUSH_GIVEN_UP, 3), "a rank has left the step out: it is given up");
    ok(snapshot(0, 4, false) && snapshot(0, 5, false), "and nobody is held up by it");
    close_all();

    open_all(2, false);
    snapshot(0, 1, true), snapshot(1, 1, true);
    flush_next(p);
    snapshot(0, 2, true);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = 1});
    ok(next(FLUSH_GIVEN_UP, 2), "a rank that has died will not commit it any more");
    close_all();
}

static unsigned wishes(int64_t *oldest)
{
    char text[400];
    unsigned n = 0;
    long long first = SLOT_TABLE_NO_STEP;
    flush_wishes_text(p, 8, text, sizeof text);
    sscanf(text, "%lld@", &first);
    for (const char *at = text; *at; at++)
        n += *at == '@';
    *oldest = first;
    return n;
}

/* Several are wished at once. */
static void test_queue(void)
{
    int64_t oldest;
    open_all(2, false);
    snapshot(0, 1, true), snapshot(0, 2, true);
    ok(next(FLUSH_NOTHING, 0) && wishes(&oldest) == 2 && oldest == 1, "one rank is ahead: two steps are wished");
    ok(begin(0, 3) < 0, "and both its slots held");
    snapshot(1, 1, true), snapshot(1, 2, true);
    ok(next(FLUSH_WRITE, 1), "the older one comes first");
    ok(begin(1, 3) < 0 && begin(0, 3) < 0, "the newer one is held meanwhile");
    flush_done(p, true, -1);
    ok(next(FLUSH_WRITE, 2), "then the newer one");
    flush_done(p, true, -1);
    ok(flush_is_idle(p) && flush_on_disk(p) == 2, "both are on disk");

    snapshot(0, 3, true), snapshot(1, 4, true);
    ok(next(FLUSH_GIVEN_UP, 3), "a rank leaves a step out: it is given up");
    snapshot(0, 4, true);
    ok(next(FLUSH_WRITE, 4), "the newer one is written");
    flush_done(p, false, -1);
    ok(flush_is_idle(p), "it fails, which who has written it knows");
    close_all();

    open_all(2, false);
    snapshot(0, 5, true), snapshot(0, 6, true);
    flush_round(p);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = 0});
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = 1});
    ok(next(FLUSH_GIVEN_UP, 5) && next(FLUSH_GIVEN_UP, 6) && next(FLUSH_NOTHING, 0),
       "the workers end before it is whole: each is given up by itself");
    close_all();

    /* What is still being summed when the workers end counts. */
    open_all(1, false);
    int slot = begin(0, 1);
    say(0, (struct worker_msg){.type = WORKER_MSG_SNAP_COMMIT,
                               .u.snap_commit = {.slot = (uint64_t)slot, .step = 1, .persist = true}});
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = 0});
    flush_round(p);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_SUMMED,
                                    .slot = (unsigned)slot,
                                    .gen = slot_table_slot(k, 0, (unsigned)slot)->gen,
                                    .ok = true});
    flush_committed(p, 0, (unsigned)slot);
    ok(next(FLUSH_WRITE, 1), "a worker ends right behind its commit: it is written");
    close_all();
}

static bool given_up(int64_t step, const char *why)
{
    struct flush_news news = flush_next(p);
    return news.what == FLUSH_GIVEN_UP && news.step == step && strcmp(news.text, why) == 0;
}

/* A rank has no room for what is wanted: that is said once, with the reason, whoever comes first. */
static void test_unmet(void)
{
    open_all(2, false);
    snapshot(0, 1, true);
    begin(1, 1);
    flush_unmet(p, 1, 0, "no room");
    ok(next(FLUSH_NOTHING, 0), "a rank is at the step: it is not given up");
    say(1, (struct worker_msg){.type = WORKER_MSG_SNAP_ABORT, .u.snap_abort = {.why = ""}});
    flush_unmet(p, 1, 0, "no room");
    flush_unmet(p, 1, 0, "no room");
    ok(given_up(1, "no room") && next(FLUSH_NOTHING, 0) && flush_is_idle(p), "it has no room: that is the reason");
    ok(slot_table_slot(k, 0, 0)->readers == 0, "and nothing is held for it");
    begin(1, 2);
    say(1, (struct worker_msg){.type = WORKER_MSG_SNAP_ABORT, .u.snap_abort = {.why = ""}});
    flush_unmet(p, 2, 0, "no room");
    ok(given_up(2, "no room"), "it comes first: that is said");
    snapshot(0, 2, true);
    ok(next(FLUSH_NOTHING, 0) && flush_is_idle(p), "once");
    begin(1, 3), begin(0, 3);
    snapshot(0, 4, true);
    snapshot(1, 4, true);
    ok(next(FLUSH_WRITE, 4), "and the next one is written");
    flush_done(p, true, -1);
    close_all();
}

/* One of several nodes: what is missing here others may have, and they say when it is over. */
static void test_deferred(void)
{
    int64_t oldest;
    struct slot_table_source from[4];
    open_all(2, false);
    flush_defer(p);
    snapshot(0, 1, true), snapshot(1, 2, true);
    ok(next(FLUSH_NOTHING, 0) && wishes(&oldest) == 2 && oldest == 1,
       "a rank has left it out, and others may hold its parts: nothing is given up here");
    unsigned n = slot_table_sources(k, 2, 0, from, 4);
    ok(n == 0, "of what is held here alone nothing can be said");
    ok(flush_over(p, 1, 0, false) && wishes(&oldest) == 1 && oldest == 2, "that one is over");
    snapshot(0, 2, true);
    n = slot_table_sources(k, 2, 0, from, 4);
    ok(flush_order(p, 2, 0, false, from, n), "an order to write the other one");
    flush_done(p, false, -1);
    ok(wishes(&oldest) == 1 && begin(0, 3) >= 0 && begin(1, 3) >= 0, "its bytes are written");
    for (unsigned w = 0; w < 2; w++) {
        int slot = begin(w, 3);
        commit(w, slot, 3, false);
        ok(begin(w, 4) < 0, "but its slots are held, for it is not over");
    }
    ok(flush_again(p, 2, 0) && wishes(&oldest) == 1, "the order came to nothing: it is still wished");
    ok(flush_over(p, 2, 0, true) && flush_on_disk(p) == 2 && flush_is_idle(p), "another node says that it is");
    ok(begin(0, 4) >= 0, "and its slots are free");
    snapshot(0, 4, true), snapshot(1, 4, true);
    flush_round(p);
    ok(next(FLUSH_NOTHING, 0) && wishes(&oldest) == 1, "the workers end: what is whole here is wished still");
    flush_went_back(p, 3, 0);
    ok(next(FLUSH_GIVEN_UP, 4) && flush_is_idle(p), "the job goes back behind it: which is said");
    snapshot(0, 5, true);
    flush_round(p);
    ok(given_up(5, "as far as this node knows: not every rank of it had committed it when its workers ended"),
       "the workers end, and one had it not: no more is said than what is known here");
    close_all();
}

static void test_emergency_captured(void)
{
    open_all(2, false);
    snapshot(0, 1, false), snapshot(1, 1, false);
    snapshot(0, 2, false), snapshot(1, 2, false);
    snapshot(0, 3, false);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = 0});
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = 1});
    ok(flush_want_newest(p, true) && next(FLUSH_WRITE, 2) && flush_is_emergency(p) && sources() == 3,
       "all workers have died: the newest step that both had is written");
    ok(!flush_want_newest(p, true), "once");
    flush_done(p, true, -1);
    ok(!flush_want_newest(p, true), "what is on disk is not written again");
    close_all();

    open_all(1, false);
    snapshot(0, 1, false), snapshot(0, 2, false);
    ok(flush_want_newest(p, true) && next(FLUSH_WRITE, 2), "a worker is dead");
    flush_done(p, false, 0);
    ok(flush_want_newest(p, true) && next(FLUSH_WRITE, 1), "its newest slot turns out to be broken: the one before");
    flush_done(p, false, -1);
    ok(!flush_want_newest(p, true), "the disk is full: nothing is tried for ever");
    close_all();

    open_all(2, false);
    snapshot(0, 5, false);
    ok(!flush_want_newest(p, true) && slot_table_covered(k) == SLOT_TABLE_NO_STEP, "a step of one rank alone is none");
    close_all();
}

/* Somebody has asked for a step that the script does not want on disk: what becomes of it is no promise to the script,
 * but that is forgotten with it. */
static void test_promises(void)
{
    open_all(1, false);
    snapshot(0, 4, true);
    ok(next(FLUSH_WRITE, 4) && flush_is_promised(p), "the script wants a step on disk: a promise");
    flush_done(p, true, -1);
    snapshot(0, 5, false);
    ok(flush_want_newest(p, false) && next(FLUSH_WRITE, 5) && !flush_is_promised(p), "somebody asks for one: none");
    flush_done(p, false, -1);
    flush_went_back(p, 4, 1);
    snapshot(0, 5, true);
    ok(next(FLUSH_WRITE, 5) && flush_is_promised(p), "the job goes back, and its script wants that step: a promise");
    flush_done(p, false, -1);
    snapshot(0, 6, false);
    ok(flush_want_newest(p, true) && next(FLUSH_WRITE, 6) && !flush_is_promised(p), "emergency checkpoint: none");
    flush_done(p, true, -1);
    close_all();

    open_all(2, false);
    snapshot(0, 5, false), snapshot(1, 5, false);
    snapshot(0, 6, true);
    ok(flush_want_newest(p, false) && next(FLUSH_WRITE, 5), "one was asked for while a promised one waits");
    int64_t step;
    bool promised;
    ok(flush_drop_wish(p, &step, &promised) && step == 5 && !promised && flush_drop_wish(p, &step, &promised) &&
           step == 6 && promised,
       "nothing is waited for any more: it is known which of them was promised");
    flush_done(p, false, -1);
    close_all();

    open_all(2, false);
    snapshot(0, 5, false), snapshot(1, 5, false);
    flush_want_newest(p, false);
    flush_went_back(p, 3, 0);
    struct flush_news news = flush_next(p);
    ok(news.what == FLUSH_GIVEN_UP && news.step == 5 && !news.promised, "given up: no promise either");
    flush_want_newest(p, false);
    flush_unmet(p, 9, 0, "why");
    while ((news = flush_next(p)).what == FLUSH_WRITE)
        flush_done(p, true, -1);
    ok(news.what == FLUSH_GIVEN_UP && news.step == 9 && news.promised, "the script's that was left out: one");
    close_all();
}

/* Any order: what is written is covered and held all the while; in the end no slot is held, and each wish was written
 * or given up, once. */
static bool storm(uint64_t start)
{
    struct el_rng rng = {start};
    int64_t step[WORKERS] = {0};
    enum { STEPS = 256 };
    static unsigned char wished[STEPS], heard[STEPS];
    memset(wished, 0, sizeof wished);
    memset(heard, 0, sizeof heard);
    open_all(1 + (unsigned)(start % WORKERS), start % 2);
    for (unsigned turn = 0; turn < 200; turn++) {
        unsigned w = (unsigned)(el_rng_next(&rng) % workers);
        switch (el_rng_next(&rng) % 8) {
        case 0:
            if (flush_writing(p) != SLOT_TABLE_NO_STEP)
                flush_done(p, el_rng_next(&rng) % 4, (int)(el_rng_next(&rng) % (sources() + 1)) - 1);
            break;
        case 1: flush_want_newest(p, true); break;
        case 2:
            event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = w});
            declare(w);
            break;
        case 3: step[w]++; break; /* left out */
        default: {
            bool wish = el_rng_next(&rng) % 3 == 0;
            if (!snapshot(w, step[w], wish))
                break;
            if (wish && flush_writing(p) != step[w])
                wished[step[w]] = 1, heard[step[w]] = 0;
            step[w]++;
        }
        }
        for (struct flush_news news; (news = flush_next(p)).what != FLUSH_NOTHING;) {
            if (news.what == FLUSH_WRITE &&
                slot_table_cover(k, news.step, slot_table_lineage(k, news.step)) != SLOT_TABLE_COVERED)
                return false;
            heard[news.step] = 1;
        }
        flush_check(p);
    }
    while (!flush_is_idle(p)) {
        if (flush_writing(p) != SLOT_TABLE_NO_STEP)
            flush_done(p, true, -1);
        flush_round(p);
        for (struct flush_news news; (news = flush_next(p)).what != FLUSH_NOTHING;)
            heard[news.step] = 1;
    }
    bool good = true;
    for (unsigned i = 0; i < STEPS; i++)
        good = good && (!wished[i] || heard[i]);
    for (unsigned i = 0; i < workers * SLOT_TABLE_SLOTS; i++)
        good = good && slot_table_slot(k, i / SLOT_TABLE_SLOTS, i % SLOT_TABLE_SLOTS)->readers == 0;
    close_all();
    return good;
}

/* The job goes back behind what is on disk, wanted or being written. */
static void test_went_back(void)
{
    open_all(1, false);
    snapshot(0, 7, true);
    ok(next(FLUSH_WRITE, 7), "a step is written");
    flush_went_back(p, 7, 0);
    flush_done(p, true, -1);
    is_num(flush_on_disk(p), 7, "the job goes on from it: it is on disk");
    flush_went_back(p, 3, 0);
    is_num(flush_on_disk(p), SLOT_TABLE_NO_STEP, "it goes back behind it: it is not");
    ok(flush_want_newest(p, true), "so a step of that number may be written once more");
    ok(next(FLUSH_WRITE, 7), "it is");
    flush_went_back(p, 3, 0);
    flush_done(p, true, -1);
    is_num(flush_on_disk(p), SLOT_TABLE_NO_STEP, "what was still being written does not count either");
    close_all();

    open_all(1, false);
    flush_defer(p);
    snapshot(0, 7, true);
    flush_went_back(p, 3, 0);
    ok(next(FLUSH_GIVEN_UP, 7), "what was wished is not any more, which is said");
    int64_t oldest;
    ok(flush_again(p, 7, 0), "an order that is no more: it is wished again");
    ok(flush_again(p, 7, 0) && wishes(&oldest) == 1 && oldest == 7, "once");
    ok(!flush_again(p, 8, 0), "but nothing that is not held");
    close_all();
}

int main(void)
{
    test_went_back();
    test_plain();
    test_order();
    test_queue();
    test_unmet();
    test_deferred();
    test_emergency_captured();
    test_promises();
    unsigned bad = 0;
    for (uint64_t s = 0; s < 2000; s++)
        if (!storm(s)) {
            printf("# start value %llu\n", (unsigned long long)s);
            bad++;
        }
    ok(bad == 0, "2000 orders of events: what is written is whole, and no slot stays held");
    return done();
}
