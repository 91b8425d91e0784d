/* Ranks of a node that share a part: which snapshots get digests, which two are compared because theirs differ, what is
 * told and how often.
 * Seen to fail: digests that depend on a worker's own count, a comparison of two steps or of two histories, one that
 * does not hold its slots, a part that is told twice in a round or never again in the next. */
#include "unit/keeper_stage.h"

static void open_pair(unsigned workers)
{
    open_with(&(struct slot_table_conf){.workers = workers, .budget_bytes = 100 * MIB, .compares = true});
    for (unsigned w = 0; w < workers; w++)
        join(w, 1);
}

/* A snapshot whose one part has this digest; whether it was asked for. */
static bool take(unsigned worker, int64_t step, uint64_t digest)
{
    commit(worker, begin(worker, step), step);
    const struct slot_table_action a = *found(SLOT_TABLE_DO_SUM);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_SUMMED,
                                    .worker = worker,
                                    .slot = a.slot,
                                    .gen = a.gen,
                                    .ok = true,
                                    .part_digest = a.digests ? &digest : NULL});
    return a.digests;
}

static void compared(uint64_t tensors, const char *names)
{
    event((struct slot_table_event){.type = SLOT_TABLE_EV_COMPARED, .ok = true, .number = tensors, .text = names});
}

static unsigned readers(void)
{
    unsigned n = 0;
    for (unsigned w = 0; w < slot_table_workers(k); w++)
        for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++)
            n += slot_table_slot(k, w, i)->readers;
    return n;
}

static void test_which_steps(void)
{
    unsigned drawn = 0;
    open_pair(2);
    ok(take(0, 7, 1) && take(0, 8, 1) && !take(0, 9, 1), "of the first two steps of a round digests are made");
    ok(take(1, 8, 1) && !take(1, 9, 1) && !take(1, 10, 1), "of the same by all workers, whichever they have skipped");
    for (int64_t step = 99; step < 100000; step += 100)
        drawn += take(0, step, 1);
    ok(drawn > 5 && drawn < 40, "then now and then, at any distance between snapshots");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2});
    join(0, 2);
    ok(take(0, 11, 1), "and the first ones of the next round");
    open_keeper(1, 100 * MIB);
    join(0, 1);
    ok(!take(0, 7, 1), "a rank that is alone: none");
}

static void test_differ(void)
{
    open_pair(3);
    take(0, 7, 5);
    take(1, 7, 5);
    ok(!found(SLOT_TABLE_DO_COMPARE), "alike: nothing is compared");
    take(2, 7, 6);
    ok(found(SLOT_TABLE_DO_COMPARE) != NULL, "one differs: it is compared");
    const struct slot_table_pair *x = slot_table_compared(k);
    ok(x->of[0].worker == 0 && x->of[1].worker == 2 && x->step == 7 && readers() == 2,
       "with one other, and both are held");
    take(0, 8, 5);
    take(2, 8, 6);
    ok(!found(SLOT_TABLE_DO_COMPARE), "one at a time");
    compared(4, "\"w\" and 3 more");
    ok(found(SLOT_TABLE_DO_DIFFER) && !found(SLOT_TABLE_DO_COMPARE) && !readers(),
       "it is told, once, and the slots are given back");
    x = slot_table_differs(k);
    is_num(x->tensors, 4, "how many");
    is_str(x->names, "\"w\" and 3 more", "which");
    ok(x->of[1].rank == 2 && strcmp(x->part, "model") == 0 && strcmp(x->shard_id, "all") == 0, "of what, and whose");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2, .lineage = 9});
    for (unsigned w = 0; w < 3; w++)
        join(w, 2);
    take(0, 9, 5);
    ok(!found(SLOT_TABLE_DO_COMPARE), "another round: what is left of the one before is not told again");
    take(1, 9, 6);
    ok(found(SLOT_TABLE_DO_COMPARE) != NULL, "what differs anew is");
    compared(0, "");
    ok(!found(SLOT_TABLE_DO_DIFFER) && !readers(), "they turn out to be alike: nothing is told");
}

static void test_not_comparable(void)
{
    open_pair(2);
    take(0, 7, 5);
    take(1, 8, 6);
    ok(!found(SLOT_TABLE_DO_COMPARE), "two steps are not compared");
    open_pair(2);
    take(0, 7, 5);
    take(1, 7, 0);
    ok(!found(SLOT_TABLE_DO_COMPARE), "nothing in it need be alike: it is not compared");
    open_pair(2);
    take(0, 7, 5);
    take(1, 7, 6);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = 1});
    name_part(1, 0, "other");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2});
    join_as(1, 2, "other");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_COMPARED, .ok = false, .text = ""});
    ok(found(SLOT_TABLE_DO_DIFFER) && strcmp(slot_table_differs(k)->part, "model") == 0 && !readers(),
       "a slot is given up while it is compared: its name is still known");
}

int main(void)
{
    test_which_steps();
    test_differ();
    test_not_comparable();
    slot_table_free(k);
    return done();
}
