/* What the keeper makes of the rule of slot_pin.h: workers that leave a step out, or wait for it, and not for ever;
 * what the coordinator says of several nodes; and a script that goes back by itself. */
#include "unit/keeper_stage.h"

#include "ckpt/lineage.h"

static void open_two(bool waits, bool several)
{
    open_with(&(struct slot_table_conf){
        .workers = 2, .budget_bytes = 64 * MIB, .waits = waits, .several = several, .patience = EL_SEC(10)});
    now = 1;
    join_as(0, 1, "a");
    join_as(1, 1, "b");
}

/* Of the last answer: busy, and whether it is to be asked again. */
static bool is_busy(bool waits)
{
    const struct worker_msg *m = answered(WORKER_MSG_SNAP_SLOT);
    return m && m->u.snap_slot.busy && m->u.snap_slot.give_up != waits && m->u.snap_slot.text[0];
}

static int64_t common(void)
{
    return slot_table_common(k).step;
}

static void test_leaves_out(void)
{
    open_two(false, false);
    snapshot(0, 1);
    is_num(common(), SLOT_TABLE_NO_STEP, "one of two workers has a step");
    snapshot(1, 1);
    is_num(common(), 1, "both have");
    snapshot(0, 2);
    is_num(begin(0, 3), -1, "the step that all have is not given away for one that not all have yet");
    ok(is_busy(false), "and the worker goes on");
    snapshot(1, 2);
    ok(common() == 2 && holds(0, 1), "the other one comes to it");
    int slot = begin(0, 4);
    ok(slot >= 0 && !holds(0, 1), "now the older one is given away");
    commit(0, slot, 4);
    is_num(begin(0, 5), -1, "while a snapshot is summed");
    is_num(begin(1, 5), -1, "what one of them cannot take the other one leaves out, too");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_SUMMED,
                                    .slot = (unsigned)slot,
                                    .gen = slot_table_slot(k, 0, (unsigned)slot)->gen,
                                    .ok = true});
    ok(common() == 2 && begin(1, 6) >= 0, "the next one may be taken by both again");
    ok(begin(0, 6) >= 0 && !holds(0, 4) && holds(0, 2), "for step 4, which one has left out, is of no use any more");
}

static void test_waits(void)
{
    open_two(true, false);
    snapshot(0, 1), snapshot(1, 1), snapshot(0, 2);
    is_num(begin(0, 3), -1, "a worker that waits");
    ok(is_busy(true), "is told to ask again");
    now += EL_SEC(9);
    ok(begin(0, 3) < 0 && is_busy(true), "and again");
    snapshot(1, 2);
    ok(begin(0, 3) >= 0, "until the other one has come to the step");

    /* The other one never comes to a snapshot any more. */
    open_two(true, false);
    snapshot(0, 1), snapshot(1, 1);
    now += EL_SEC(1);
    snapshot(0, 2);
    ok(begin(0, 3) < 0 && is_busy(true), "the other one does not come");
    now += EL_SEC(10);
    ok(begin(0, 3) < 0 && is_busy(true) && begin(0, 3) >= 0, "it is not waited for for ever");
    ok(holds(0, 1) && !holds(0, 2) && common() == 1, "and what all have stays");
    begin(1, 2);
    ok(begin(0, 4) >= 0, "when it comes it counts again");

    /* A step that is wanted on disk is waited for, whatever the option says, and for the disk as long as that takes. */
    open_two(false, true);
    snapshot(0, 1), snapshot(1, 1), snapshot(0, 2);
    const struct worker_msg m = {.type = WORKER_MSG_SNAP_BEGIN,
                                 .u.snap_begin = {.step = 3, .images = "4096/1048576", .persist = true}};
    say(0, m);
    ok(is_busy(true) && !found(SLOT_TABLE_DO_UNMET), "a step that is wanted on disk is waited for");
    slot_table_take(k, 0, 0);
    now += EL_SEC(100);
    say(0, m);
    ok(is_busy(true), "as long as a slot is read");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_MSG, .now = now, .away = true, .msg = &m});
    const struct slot_table_action *unmet = found(SLOT_TABLE_DO_UNMET);
    ok(is_busy(false) && unmet && unmet->step == 3, "but not while the coordinator is away: it is said that it is not");
    now += SLOT_TABLE_WAIT_MAX - EL_SEC(101);
    say(0, m);
    ok(is_busy(true), "and not for longer than half an hour");
    now += EL_SEC(1);
    say(0, m);
    unmet = found(SLOT_TABLE_DO_UNMET);
    ok(is_busy(false) && unmet && unmet->text[0], "then it is left out, and it is said why");
    slot_table_give(k, 0, 0, slot_table_slot(k, 0, 0)->gen, true);
    open_two(true, true);
    snapshot(0, 1), snapshot(1, 1), snapshot(0, 2);
    const struct worker_msg next = {.type = WORKER_MSG_SNAP_BEGIN,
                                    .u.snap_begin = {.step = 3, .images = "4096/1048576"}};
    event((struct slot_table_event){.type = SLOT_TABLE_EV_MSG, .now = now, .away = true, .msg = &next});
    ok(is_busy(false) && !found(SLOT_TABLE_DO_UNMET) && holds(0, 1) && holds(0, 2), "any other is left out then");
}

/* Slots that are held for the disk, of steps that another rank has not come to, are not read yet. */
static void test_held_for_disk(void)
{
    const struct worker_msg m = {.type = WORKER_MSG_SNAP_BEGIN,
                                 .u.snap_begin = {.step = 3, .images = "4096/1048576", .persist = true}};
    open_two(false, false);
    snapshot(0, 1), snapshot(0, 2);
    slot_table_take(k, 0, 0), slot_table_take(k, 0, 1);
    say(0, m);
    ok(is_busy(true), "both slots wait for the other rank");
    now += EL_SEC(9);
    say(0, m);
    ok(is_busy(true) && !found(SLOT_TABLE_DO_ABSENT), "for a while");
    now += EL_SEC(1);
    say(0, m);
    const struct slot_table_action *absent = found(SLOT_TABLE_DO_ABSENT);
    ok(absent && absent->worker == 1, "not for ever: it is said who has not come");
    ok(slot_table_cover(k, 1, slot_table_lineage(k, 1)) == SLOT_TABLE_HOPELESS, "and that step will not be on disk");
    slot_table_give(k, 0, 0, slot_table_slot(k, 0, 0)->gen, true);
    slot_table_give(k, 0, 1, slot_table_slot(k, 0, 1)->gen, true);
    say(0, m);
    ok(answered(WORKER_MSG_SNAP_SLOT) && !answered(WORKER_MSG_SNAP_SLOT)->u.snap_slot.busy &&
           !found(SLOT_TABLE_DO_ABSENT),
       "the next one has a slot, and it is said once");
}

static bool is_hopeless(int64_t step)
{
    return slot_table_cover(k, step, 0) == SLOT_TABLE_HOPELESS;
}

/* A slot of worker 0 is held for the disk, and worker 1 has what all have. */
static void hold_two(void)
{
    open_two(false, false);
    snapshot(0, 1), snapshot(1, 1), snapshot(0, 2);
    slot_table_take(k, 0, 1);
    ok(!found(SLOT_TABLE_DO_PASSED) && !is_hopeless(2), "a slot is held until the other rank has come to its step");
}

/* Whoever passes it by is seen at once: nothing else may happen any more. */
static void test_passes(void)
{
    const struct worker_msg big = {.type = WORKER_MSG_SNAP_BEGIN,
                                   .u.snap_begin = {.step = 2, .images = "4096/8388608", .persist = true}};
    hold_two();
    ok(begin(1, 3) < 0 && found(SLOT_TABLE_DO_PASSED) && is_hopeless(2), "it comes to a higher step: that is told");
    ok(begin(1, 4) < 0 && found(SLOT_TABLE_DO_PASSED), "and each time");
    ok(begin(0, 5) < 0 && is_busy(false), "while it is held");
    now += EL_SEC(10);
    ok(begin(1, 6) < 0 && begin(0, 6) < 0 && strstr(answered(WORKER_MSG_SNAP_SLOT)->u.snap_slot.text, "not every rank"),
       "a slot that waits in vain is not at work");
    slot_table_give(k, 0, 1, slot_table_slot(k, 0, 1)->gen, true);
    ok(begin(0, 7) >= 0 && begin(1, 7) >= 0 && !found(SLOT_TABLE_DO_PASSED),
       "when it is given back both take the next one");

    hold_two();
    say(1, big);
    const struct slot_table_action *grow = found(SLOT_TABLE_DO_GROW);
    ok(grow && !found(SLOT_TABLE_DO_UNMET), "it asks for more than there is");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GROWN,
                                    .worker = 1,
                                    .slot = grow->slot,
                                    .gen = grow->gen,
                                    .need_bytes = 16 * MIB,
                                    .text = "no room"});
    const struct slot_table_action *unmet = found(SLOT_TABLE_DO_UNMET);
    ok(refused("NOMEM") || answered(WORKER_MSG_REFUSED), "which is refused");
    ok(unmet && unmet->step == 2 && strstr(unmet->text, "--ckpt-mem"), "that the disk lacks it is told, and why");
    ok(found(SLOT_TABLE_DO_PASSED) && is_hopeless(2), "and that it has passed the step by");

    hold_two();
    int slot = begin(1, 2);
    ok(slot >= 0 && !is_hopeless(2), "it is at the step");
    say(1, (struct worker_msg){.type = WORKER_MSG_SNAP_ABORT,
                               .u.snap_abort = {.slot = (uint64_t)slot, .why = "an exception"}});
    ok(found(SLOT_TABLE_DO_PASSED) && is_hopeless(2), "and gives it up");

    hold_two();
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = 1});
    ok(found(SLOT_TABLE_DO_PASSED) && is_hopeless(2), "it ends");
}

/* What others judge a node by is how far its workers have gone, whether or not they hold it. */
static void test_least(void)
{
    open_two(false, false);
    snapshot(0, 1), snapshot(1, 1), snapshot(0, 2);
    is_num(slot_table_least(k), 1, "the other rank may come to step 2");
    begin(1, 3);
    begin(1, 4);
    is_num(slot_table_least(k), 2, "it holds nothing of it, and has passed it by");
    int slot = begin(1, 5);
    ok(slot >= 0 && slot_table_least(k) == 2, "it is at one that it may hold");
    commit(1, slot, 5);
    begin(1, 6);
    is_num(slot_table_least(k), 2, "which it may yet, wherever it has gone");
    open_two(false, false);
    snapshot(0, 1), snapshot(1, 1), snapshot(0, 2);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = 1});
    ok(found(SLOT_TABLE_DO_PASSED) && slot_table_least(k) == 2,
       "whoever has ended comes to none, and that is told although nothing is held");
}

static void told(enum slot_table_event_type type, int64_t step, uint64_t lineage, uint64_t from)
{
    event((struct slot_table_event){.type = type, .step = step, .lineage = lineage, .number = from});
}

static void test_several(void)
{
    struct slot_pin_told t;
    open_two(false, true);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2, .lineage = 0x22});
    join_as(0, 2, "a");
    join_as(1, 2, "b");
    snapshot(0, 1), snapshot(1, 1);
    is_num(common(), SLOT_TABLE_NO_STEP, "what all workers of a node have the others may not have");
    snapshot(0, 2);
    slot_table_tell(k, &t);
    ok(t.whole == 1 && t.is_whole[0].step == 1 && t.is_whole[0].lineage == 0x22 && t.coming == 1 &&
           t.is_coming[0].step == 2,
       "it is told, and what is coming");
    ok(t.era == 0 && t.passed == 1 && t.begun == 2 && t.ready, "and how far they are");
    snapshot(1, 2);
    is_num(begin(0, 3), -1, "neither is given away before the coordinator has spoken");
    told(SLOT_TABLE_EV_COMMON, 1, 0x22, 0);
    is_num(begin(0, 4), -1, "step 1 is common");
    told(SLOT_TABLE_EV_COMMON, 2, 0x22, 6);
    is_num(common(), 2, "step 2 is");
    is_num(begin(0, 5), -1, "no step is begun before the one from which on all may");
    slot_table_tell(k, &t);
    ok(t.ready && t.whole == 1 && t.is_whole[0].step == 2, "both could take one");
    snapshot(0, 6);
    snapshot(1, 6);
    is_num(begin(0, 7), -1, "and hold it until it is known what others have");
    told(SLOT_TABLE_EV_USELESS, 6, 0x22, 0);
    slot_table_tell(k, &t);
    ok(t.whole == 1 && !t.coming && t.passed >= 6, "some node cannot have it: it is not spoken of any more");
    ok(begin(0, 8) >= 0 && holds(0, 2) && !holds(0, 6), "and given away");
    told(SLOT_TABLE_EV_USELESS, 2, 0x22, 0);
    ok(begin(1, 8) >= 0 && holds(1, 2), "the common step is not, whatever is said of it");
}

/* The script goes back by itself. */
static void test_goes_back(void)
{
    open_two(true, false);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2, .lineage = 0x22});
    join_as(0, 2, "a");
    join_as(1, 2, "b");
    snapshot(0, 10), snapshot(1, 10), snapshot(0, 12), snapshot(1, 12);
    int slot = begin(0, 6);
    ok(slot >= 0 && holds(0, 12) && !holds(0, 10), "a worker goes back: the last step that all have stays");
    commit(0, slot, 6);
    summed(0, true);
    const uint64_t line = lineage_back(0x22, 6);
    ok(common() == 12 && !found(SLOT_TABLE_DO_WENT_BACK), "and is what counts while the other one has not followed");
    is_num((long)(slot_table_slot(k, 0, (unsigned)slot)->lineage == line), 1, "what it trains is of another lineage");
    is_num(slot_table_cover(k, 6, line), SLOT_TABLE_INCOMPLETE, "to which the other one may come");
    is_num(slot_table_cover(k, 13, 0x22), SLOT_TABLE_HOPELESS, "but none of them to more of the old one");
    ok(slot_table_take(k, 1, (unsigned)slot_table_newest(k, 1)), "somebody reads the old one");
    slot = begin(1, 6);
    commit(1, slot, 6);
    summed(1, true);
    const struct slot_table_action *back = found(SLOT_TABLE_DO_WENT_BACK);
    ok(back && back->step == 5 && back->lineage == line, "all have gone back: what lies beyond is given up");
    ok(common() == 6 && !holds(0, 12) && !holds(1, 12), "and forgotten");
    is_num(slot_table_slot(k, 1, !slot)->state, SLOT_TABLE_BROKEN, "once nobody reads it");
    is_num(slot_table_reached(k), 6, "the job has come so far");
    int64_t steps[4];
    uint64_t lineages[4];
    ok(slot_table_readable(k, steps, lineages, 4) == 1 && steps[0] == 6 && lineages[0] == line,
       "a restart goes back to the new one");
}

/* The same step once more, perhaps with another state: it is not going back, and not the same, either. */
static void test_takes_twice(void)
{
    int64_t steps[4];
    uint64_t lineages[4];
    open_two(false, false);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2, .lineage = 0x22});
    join_as(0, 2, "a"), join_as(1, 2, "b");
    snapshot(0, 3), snapshot(1, 3);
    uint64_t again = lineage_again(0x22, 3, 1);
    int slot = begin(0, 3);
    commit(0, slot, 3), summed(0, true);
    ok(slot_table_slot(k, 0, (unsigned)slot)->lineage == again && slot_table_common(k).lineage == 0x22,
       "a step that one rank takes twice: what all have counts");
    ok(slot_table_readable(k, steps, lineages, 4) == 1 && steps[0] == 3 && lineages[0] == 0x22,
       "and that alone is offered");
    is_num(slot_table_cover(k, 3, again), SLOT_TABLE_INCOMPLETE, "the other rank may take it once more, too");
    ok(begin(0, 4) < 0, "until then there is no slot for more");
    slot = begin(1, 4);
    ok(slot >= 0 && slot_table_cover(k, 3, again) == SLOT_TABLE_HOPELESS,
       "it goes on instead, and the first one may, too");
    snapshot(1, 5), snapshot(0, 5);
    ok(common() == 5 && slot_table_common(k).lineage == 0x22 && !found(SLOT_TABLE_DO_WENT_BACK),
       "so does the first, and what they train is of one lineage still");
    snapshot(0, 5), snapshot(1, 5);
    again = lineage_again(0x22, 5, 1);
    ok(common() == 5 && slot_table_common(k).lineage == again && !found(SLOT_TABLE_DO_WENT_BACK),
       "all take a step twice");
    ok(slot_table_readable(k, steps, lineages, 4) == 2 && lineages[0] == again, "then the later take comes first");
    snapshot(0, 5), snapshot(1, 5);
    ok(slot_table_common(k).lineage == lineage_again(0x22, 5, 2), "and a third time");
    for (unsigned i = 0; i < 2; i++)
        query(i);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 5, .lineage = lineage_again(0x22, 5, 2)});
    restored(0, 5, true), restored(1, 5, true);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CONFIRMED, .lineage = 0x33});
    ok(holds(0, 5) && slot_table_readable(k, steps, lineages, 4) == 1, "who goes back to one forgets the others");
    snapshot(0, 6);
    ok(begin(0, 7) < 0 && holds(0, 5) && holds(1, 5), "and keeps that until all have a newer one");
    snapshot(1, 6);
    ok(common() == 6 && begin(0, 8) >= 0, "as ever");

    /* What was left out and is asked for again is no second take. */
    open_two(false, false);
    snapshot(0, 1), snapshot(1, 1), snapshot(0, 2);
    ok(begin(0, 3) < 0 && begin(1, 2) >= 0, "a step is left out");
    commit(1, (int)slot_table_slot(k, 1, 0)->step == 2 ? 0 : 1, 2), summed(1, true);
    slot = begin(0, 3);
    ok(slot >= 0 && slot_table_slot(k, 0, (unsigned)slot)->take == 0, "and asked for again: that is its first take");
}

/* "while not snapshot(): sleep()": what is left out is asked for again, and others must not give it away meanwhile. */
static void test_asks_again(void)
{
    struct slot_pin_told t;
    open_two(false, true);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2, .lineage = 0x22});
    join_as(0, 2, "a"), join_as(1, 2, "b");
    snapshot(0, 1), snapshot(1, 1), snapshot(0, 2), snapshot(1, 2);
    told(SLOT_TABLE_EV_COMMON, 2, 0x22, 4);
    is_num(begin(0, 3), -1, "a step is left out");
    slot_table_tell(k, &t);
    is_num(t.passed, 2, "but it may be asked for once more: it is not told as one that will never come");
    ok(begin(0, 3) >= 0 && begin(1, 3) < 0 && begin(1, 3) >= 0, "it is, and taken");
    told(SLOT_TABLE_EV_USELESS, 3, 0x22, 4);
    for (unsigned i = 0; i < 2; i++)
        commit(i, (int)slot_table_slot(k, i, 0)->step == 3 ? 0 : 1, 3), summed(i, true);
    slot_table_tell(k, &t);
    ok(t.passed >= 3 && t.whole == 1 && t.is_whole[0].step == 2, "what was given up while it was written is not told");
    ok(begin(0, 4) >= 0 && begin(1, 4) >= 0 && holds(0, 2) && holds(1, 2), "nor does it hold the slot");

    open_two(false, true);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2, .lineage = 0x22});
    join_as(0, 2, "a"), join_as(1, 2, "b");
    told(SLOT_TABLE_EV_COMMON, SLOT_TABLE_NO_STEP, 0, 9);
    is_num(begin(0, 3), -1, "another script leaves it out");
    is_num(begin(0, 4), -1, "and goes on");
    is_num(slot_table_cover(k, 4, 0x22), SLOT_TABLE_HOPELESS, "from then on what it leaves out is never to come");
    is_num(begin(1, 4), -1, "nor what the other one does, which runs the same script");
    slot_table_tell(k, &t);
    is_num(t.passed, 4, "and that is told");
}

int main(void)
{
    test_leaves_out();
    test_waits();
    test_held_for_disk();
    test_passes();
    test_least();
    test_several();
    test_goes_back();
    test_takes_twice();
    test_asks_again();
    slot_table_free(k);
    return done();
}
