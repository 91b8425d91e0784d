/* The keeper of snapshots, going back: what ranks are offered of what is held in memory, elsewhere or on disk; and what
 * is told to who waits for one that does not read. */
#include "unit/keeper_stage.h"

static void test_going_back(void)
{
    open_keeper(2, 64 * MIB);
    join(0, 1, MIB);
    join(1, 1, MIB);
    snapshot(0, 1);
    snapshot(1, 1);
    snapshot(0, 2);
    event((struct keeper_event){.type = KEEPER_EV_ROUND, .number = 2});
    join(0, 2, MIB);
    join(1, 2, MIB);
    query(0);
    ok(!found(KEEPER_DO_CHOOSE), "nothing is chosen before all have asked");
    query(1);
    ok(found(KEEPER_DO_CHOOSE), "then it is");
    event((struct keeper_event){.type = KEEPER_EV_CHOSEN, .step = 1});
    is_num(did->n, 2, "both are answered");
    ok(did->v[0].source == 0 && did->v[1].source == 1 && keeper_reply(k, 0)->u.restore_offer.step == 1,
       "each with its own slot, both with one step");
    restored(0, 1, true);
    ok(!found(KEEPER_DO_CONFIRM), "the first who has read waits");
    restored(1, 1, false);
    ok(found(KEEPER_DO_CHOOSE) && !holds(1, 1), "one who cannot read: the slot is broken, all choose anew");
    event((struct keeper_event){.type = KEEPER_EV_CHOSEN, .step = 2});
    ok(did->v[1].source == 0, "a rank without a whole slot reads that of another with the same shards");
    restored(0, 2, true);
    restored(1, 2, true);
    ok(found(KEEPER_DO_CONFIRM) && found(KEEPER_DO_CONFIRM)->step == 2, "all have read");
    event((struct keeper_event){.type = KEEPER_EV_CONFIRMED});
    is_num(did->n, 2, "and go on");
    query(0);
    query(1);
    event((struct keeper_event){.type = KEEPER_EV_CHOSEN, .step = KEEPER_NO_STEP, .text = "nothing was ever saved"});
    ok(keeper_reply(k, 0)->u.restore_offer.step == KEEPER_NO_STEP && keeper_reply(k, 1)->u.restore_offer.text[0],
       "nothing: said with its reason");
}

/* A node that is new: its workers take what ranks elsewhere have, and are told so. */
static void test_elsewhere(void)
{
    open_keeper(2, 64 * MIB);
    join(0, 1, MIB);
    join(1, 1, MIB);
    query(0);
    ok(!keeper_takes_elsewhere(k), "nobody has said so");
    for (unsigned w = 0; w < 2; w++)
        say(w, (struct wmsg){.type = WMSG_RESTORE_QUERY, .u.restore_query = {.layout_id = "all", .elsewhere = true}});
    ok(keeper_takes_elsewhere(k) && found(KEEPER_DO_CHOOSE), "all have");
    event((struct keeper_event){.type = KEEPER_EV_CHOSEN, .step = 7});
    const struct wmsg_restore_offer *to = &keeper_reply(k, 1)->u.restore_offer;
    ok(did->n == 2 && to->step == 7 && to->elsewhere && !to->fresh, "the step, and nothing to read");
    restored(0, 7, true);
    restored(1, 7, true);
    ok(found(KEEPER_DO_CONFIRM) && found(KEEPER_DO_CONFIRM)->step == 7, "they go on with the others");
    event((struct keeper_event){.type = KEEPER_EV_CONFIRMED});
    is_num(did->n, 2, "and are told");
    snapshot(0, 8);
    ok(holds(0, 8), "their own snapshots come next");
    query(0);
    query(1);
    event((struct keeper_event){.type = KEEPER_EV_CHOSEN, .step = 7});
    ok(keeper_reply(k, 0)->u.restore_offer.step == KEEPER_NO_STEP,
       "who does not take it is not offered what is not here");
}

static void test_late(void)
{
    /* One does not say whether it could read. */
    open_keeper(3, 64 * MIB);
    for (unsigned w = 0; w < 3; w++) {
        join(w, 1, MIB);
        snapshot(w, 3);
    }
    for (unsigned w = 0; w < 3; w++)
        query(w);
    event((struct keeper_event){.type = KEEPER_EV_CHOSEN, .step = 3});
    restored(0, 3, true);
    event((struct keeper_event){.type = KEEPER_EV_LATE, .text = "rank 1 sleeps"});
    is_num(did->n, 1, "a rank that does not read what it was offered: who waits is told, and nobody else");
    ok(answered(WMSG_RESTORE_OFFER) && answered(WMSG_RESTORE_OFFER)->u.restore_offer.step == KEEPER_NO_STEP &&
           !answered(WMSG_RESTORE_OFFER)->u.restore_offer.fresh &&
           strcmp(answered(WMSG_RESTORE_OFFER)->u.restore_offer.text, "rank 1 sleeps") == 0,
       "that there is nothing, and why; not that it may begin anew");
    restored(1, 3, true);
    ok(refused("STATE"), "its word that comes then is too late");
    event((struct keeper_event){.type = KEEPER_EV_ROUND, .number = 2});
    for (unsigned w = 0; w < 3; w++) {
        hello_in(w, 2);
        declare(w, MIB);
        query(w);
    }
    ok(found(KEEPER_DO_CHOOSE) && holds(1, 3), "the next round asks again, for what is still there");
}

static const struct wmsg *offered(unsigned worker)
{
    for (unsigned i = 0; i < did->n; i++)
        if (did->v[i].type == KEEPER_DO_SEND && did->v[i].worker == worker &&
            keeper_reply(k, did->v[i].reply)->type == WMSG_RESTORE_OFFER)
            return keeper_reply(k, did->v[i].reply);
    return NULL;
}

/* A step that is on disk: read once for ranks that hold the same, offered when it is there, not at all if it cannot be.
 */
static void test_from_disk(void)
{
    open_keeper(2, 64 * MIB);
    join(0, 1, MIB);
    join(1, 1, MIB);
    for (unsigned w = 0; w < 2; w++)
        say(w, (struct wmsg){.type = WMSG_RESTORE_QUERY, .u.restore_query = {.layout_id = "l"}});
    ok(found(KEEPER_DO_CHOOSE) != NULL, "all ask");
    event((struct keeper_event){.type = KEEPER_EV_CHOSEN, .step = 7, .on_disk = true});
    const struct keeper_action *a = found(KEEPER_DO_LOAD);
    ok(a && a->step == 7 && did->n == 1, "it is loaded, once, and nothing is offered yet");
    struct keeper_event loaded = {.type = KEEPER_EV_LOADED, .worker = a->worker, .slot = a->slot, .gen = a->gen};
    loaded.text = "differs";
    event(loaded);
    ok(found(KEEPER_DO_CHOOSE) && !offered(0), "it cannot be read: agreed upon anew");
    is_str(keeper_lost(k), "differs", "and why is kept");
    event((struct keeper_event){.type = KEEPER_EV_CHOSEN, .step = 6, .on_disk = true});
    a = found(KEEPER_DO_LOAD);
    loaded = (struct keeper_event){
        .type = KEEPER_EV_LOADED, .worker = a->worker, .slot = a->slot, .gen = a->gen, .ok = true, .number = 99};
    event(loaded);
    ok(offered(0) && offered(0)->u.restore_offer.step == 6 && offered(1) && offered(1)->u.restore_offer.step == 6,
       "the one before: both are offered it");
    is_num(offered(1)->u.restore_offer.consumed_samples, 99, "with what the manifest says of samples");
    is_num(keeper_reads(k).disk, 2, "both from disk");
    for (unsigned w = 0; w < 2; w++)
        say(w, (struct wmsg){.type = WMSG_RESTORE_DONE, .u.restore_done = {.step = 6, .ok = true, .why = ""}});
    ok(found(KEEPER_DO_CONFIRM) != NULL, "both have read it");
    event((struct keeper_event){.type = KEEPER_EV_CONFIRMED});
    int64_t step;
    ok(keeper_readable(k, &step, 1) == 1 && step == 6, "from now on it is in memory");
    event(loaded);
    ok(did->n == 0, "a result that comes twice is passed over");
}

/* The job has gone back behind what is held here, without this node. */
static void test_forget(void)
{
    open_keeper(1, 64 * MIB);
    join(0, 1, MIB);
    snapshot(0, 4);
    snapshot(0, 5);
    event((struct keeper_event){.type = KEEPER_EV_ROUND, .number = 4});
    join(0, 4, MIB);
    query(0);
    event((struct keeper_event){.type = KEEPER_EV_FORGET, .number = 3, .step = 4});
    ok(holds(0, 4) && !holds(0, 5), "what is beyond that step is forgotten");
    ok(keeper_since(k) == 3 && keeper_reached(k) == 4, "and that it was ever reached");
    event((struct keeper_event){.type = KEEPER_EV_AGAIN});
    int64_t step;
    ok(found(KEEPER_DO_CHOOSE) && keeper_readable(k, &step, 1) == 1 && step == 4, "it says anew what it has");
}

int main(void)
{
    test_going_back();
    test_elsewhere();
    test_late();
    test_from_disk();
    test_forget();
    keeper_free(k);
    return done();
}
