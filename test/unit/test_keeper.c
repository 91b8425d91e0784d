/* The keeper of snapshots: who may write where, what a death leaves, what is offered afterwards; and that no order of
 * messages, honest or not, gives away the last whole snapshot. */
#include "ckpt/keeper.h"
#include "ckpt/layout.h"

#include "lib/tap.h"
#include "util/auto.h"
#include "util/rng.h"

#define MIB ((uint64_t)1 << 20)

static struct keeper *k;
static const struct keeper_actions *did;

/* What the vault would hold: slots are made where there are none, and given back where there are. */
static bool chest[4];
static unsigned long doubled;

static void follow_vault(void)
{
    for (unsigned i = 0; i < did->n; i++) {
        if (did->v[i].type == KEEPER_DO_RELEASE)
            chest[did->v[i].worker] = false;
        if (did->v[i].type != KEEPER_DO_ALLOCATE)
            continue;
        doubled += chest[did->v[i].worker];
        chest[did->v[i].worker] = true;
    }
}

static void open_with(const struct keeper_conf *conf)
{
    if (k)
        keeper_free(k);
    k = keeper_new(conf, NULL);
    memset(chest, 0, sizeof chest);
    did = keeper_step(k, &(struct keeper_event){.type = KEEPER_EV_ROUND, .number = 1});
}

static void open_keeper(unsigned workers, uint64_t budget_bytes)
{
    open_with(&(struct keeper_conf){.workers = workers, .budget_bytes = budget_bytes});
}

static void event(struct keeper_event ev)
{
    did = keeper_step(k, &ev);
    follow_vault();
    keeper_check(k);
}

static void say(unsigned worker, struct wmsg m)
{
    event((struct keeper_event){.type = KEEPER_EV_MSG, .worker = worker, .msg = &m});
}

/* The action of this type in what was done last, NULL. */
static const struct keeper_action *found(enum keeper_action_type type)
{
    for (unsigned i = 0; i < did->n; i++)
        if (did->v[i].type == type)
            return &did->v[i];
    return NULL;
}

/* The last answer, if it has this type. */
static const struct wmsg *answered(enum wmsg_type type)
{
    const struct keeper_action *a = NULL;
    for (unsigned i = 0; i < did->n; i++)
        if (did->v[i].type == KEEPER_DO_SEND)
            a = &did->v[i];
    return a && keeper_reply(k, a->reply)->type == type ? keeper_reply(k, a->reply) : NULL;
}

static bool refused(const char *code)
{
    const struct wmsg *m = answered(WMSG_REFUSED);
    return m && strcmp(m->u.refused.code, code) == 0 && m->u.refused.text[0];
}

static void hello_in(unsigned worker, uint64_t round)
{
    say(worker, (struct wmsg){.type = WMSG_HELLO,
                              .u.hello = {.proto = WMSG_PROTO, .rank = worker, .local_rank = worker, .round = round}});
}

static void name_part(unsigned worker, unsigned index, const char *name, uint64_t bytes)
{
    say(worker, (struct wmsg){.type = WMSG_PART,
                              .u.part = {.index = index,
                                         .name = name,
                                         .shard_id = "all",
                                         .file = "",
                                         .header_bytes = 4096,
                                         .bytes = bytes,
                                         .sig = 7}});
}

static void declare(unsigned worker, uint64_t bytes)
{
    name_part(worker, 0, "model", bytes);
    say(worker, (struct wmsg){.type = WMSG_DECLARE, .u.declare = {.layout_id = "l", .parts = 1}});
}

static void join(unsigned worker, uint64_t round, uint64_t bytes)
{
    hello_in(worker, round);
    declare(worker, bytes);
    if (found(KEEPER_DO_ALLOCATE))
        event((struct keeper_event){.type = KEEPER_EV_ALLOCATED, .worker = worker, .ok = true});
}

/* The slot that was given out, or -1. */
static int begin(unsigned worker, int64_t step)
{
    say(worker, (struct wmsg){.type = WMSG_SNAP_BEGIN, .u.snap_begin = {.step = step}});
    const struct wmsg *m = answered(WMSG_SNAP_SLOT);
    return m && !m->u.snap_slot.busy ? (int)m->u.snap_slot.slot : -1;
}

static void commit(unsigned worker, int slot, int64_t step)
{
    say(worker, (struct wmsg){.type = WMSG_SNAP_COMMIT, .u.snap_commit = {.slot = (uint64_t)slot, .step = step}});
}

static void summed(unsigned worker, bool is_right)
{
    const struct keeper_action a = *found(KEEPER_DO_SUM);
    event((struct keeper_event){
        .type = KEEPER_EV_SUMMED, .worker = worker, .slot = a.slot, .gen = a.gen, .ok = is_right});
}

static void snapshot(unsigned worker, int64_t step)
{
    commit(worker, begin(worker, step), step);
    summed(worker, true);
}

static bool holds(unsigned worker, int64_t step)
{
    for (unsigned i = 0; i < KEEPER_SLOTS; i++)
        if (keeper_slot(k, worker, i)->state == KEEPER_COMMITTED && keeper_slot(k, worker, i)->step == step)
            return true;
    return false;
}

static void query(unsigned worker)
{
    say(worker, (struct wmsg){.type = WMSG_RESTORE_QUERY, .u.restore_query = {.layout_id = "l"}});
}

static void restored(unsigned worker, int64_t step, bool is_read)
{
    say(worker, (struct wmsg){.type = WMSG_RESTORE_DONE, .u.restore_done = {.step = step, .ok = is_read, .why = ""}});
}

static void test_two_slots(void)
{
    open_keeper(1, 64 * MIB);
    join(0, 1, MIB);
    ok(answered(WMSG_GRANT) && answered(WMSG_GRANT)->u.grant.slot_bytes == MIB && !answered(WMSG_GRANT)->u.grant.warm,
       "slots are granted when they are there");
    snapshot(0, 1);
    ok(found(KEEPER_DO_COMMITTED) && answered(WMSG_SNAP_ACK), "a snapshot counts when it is summed");
    int slot = begin(0, 2);
    ok(slot >= 0 && holds(0, 1), "the next one goes into the other slot");
    commit(0, slot, 2);
    ok(begin(0, 3) < 0 && answered(WMSG_SNAP_SLOT)->u.snap_slot.retry_ms > 0,
       "while it is summed no slot is free: busy, come back");
    open_keeper(1, 64 * MIB);
    join(0, 1, MIB);
    snapshot(0, 1);
    snapshot(0, 2);
    snapshot(0, 3);
    ok(holds(0, 2) && holds(0, 3), "the last two are held");
    ok(keeper_take(k, 0, 0) && keeper_take(k, 0, 1) && begin(0, 4) < 0, "slots that are being read are not given out");
}

static void test_death(void)
{
    open_keeper(1, 64 * MIB);
    join(0, 1, MIB);
    snapshot(0, 5);
    begin(0, 6);
    event((struct keeper_event){.type = KEEPER_EV_GONE});
    ok(holds(0, 5), "a worker that dies while it writes loses what it was writing, no more");
    join(0, 1, MIB);
    ok(answered(WMSG_GRANT) && answered(WMSG_GRANT)->u.grant.warm && !found(KEEPER_DO_ALLOCATE),
       "its successor with the same parts gets the same slots");
    commit(0, begin(0, 6), 6);
    const struct keeper_action sum = *found(KEEPER_DO_SUM);
    event((struct keeper_event){.type = KEEPER_EV_GONE});
    event((struct keeper_event){.type = KEEPER_EV_SUMMED, .slot = sum.slot, .gen = sum.gen, .ok = true});
    ok(holds(0, 6), "a worker that dies behind SNAP_COMMIT loses nothing");
    event((struct keeper_event){.type = KEEPER_EV_SUMMED, .slot = sum.slot, .gen = sum.gen - 1, .ok = false});
    ok(holds(0, 6), "a result of an older snapshot is passed over");
    event((struct keeper_event){.type = KEEPER_EV_ROUND, .number = 2});
    join(0, 2, 2 * MIB);
    ok(answered(WMSG_GRANT) && !answered(WMSG_GRANT)->u.grant.warm && !holds(0, 6), "other sizes get other slots");
}

static void test_death_while_slots_are_made(void)
{
    open_keeper(1, 64 * MIB);
    hello_in(0, 1);
    declare(0, MIB);
    event((struct keeper_event){.type = KEEPER_EV_GONE});
    hello_in(0, 1);
    declare(0, MIB);
    is_num(did->n, 0, "the successor of a worker that died while its slots were made waits for them");
    event((struct keeper_event){.type = KEEPER_EV_ALLOCATED, .ok = true});
    ok(answered(WMSG_GRANT) != NULL, "and gets them");

    open_keeper(1, 64 * MIB);
    hello_in(0, 1);
    declare(0, MIB);
    event((struct keeper_event){.type = KEEPER_EV_GONE});
    hello_in(0, 1);
    declare(0, 3 * MIB);
    ok(found(KEEPER_DO_RELEASE) && found(KEEPER_DO_ALLOCATE), "with other sizes it gets others");
    is_num(keeper_used_bytes(k), 6 * MIB, "and what was being made is given back");
}

static void test_refusals(void)
{
    open_keeper(2, 4 * MIB);
    hello_in(0, 9);
    ok(refused("ROUND") && found(KEEPER_DO_CLOSE), "a worker of another round");
    say(0, (struct wmsg){.type = WMSG_HELLO, .u.hello = {.proto = WMSG_PROTO, .local_rank = 1, .round = 1}});
    ok(refused("RANK"), "a worker that says it is another");
    say(0, (struct wmsg){.type = WMSG_HELLO, .u.hello = {.proto = 99, .round = 1}});
    ok(refused("PROTO"), "another protocol");
    declare(0, MIB);
    ok(refused("STATE") && found(KEEPER_DO_CLOSE), "anything before HELLO");
    hello_in(0, 1);
    hello_in(0, 1);
    ok(refused("STATE"), "HELLO twice");
    query(0);
    ok(refused("STATE"), "a question before anything is declared");
    ok(begin(0, 1) < 0 && refused("STATE"), "a snapshot before anything is declared");
    declare(0, 3 * MIB);
    ok(refused("NOMEM") && answered(WMSG_REFUSED)->u.refused.need_bytes == 6 * MIB &&
           answered(WMSG_REFUSED)->u.refused.have_bytes == 4 * MIB,
       "more than the budget: what is needed and what is there");
    open_keeper(1, 4096);
    hello_in(0, 1);
    declare(0, 4096);
    ok(refused("NOMEM") && strstr(answered(WMSG_REFUSED)->u.refused.text, "two slots of 1 MiB are needed and 0 MiB"),
       "of little, not that nothing is needed");
    open_keeper(2, 4 * MIB);
    hello_in(0, 1);
    name_part(0, 0, "a", MIB);
    name_part(0, 1, "a", MIB);
    say(0, (struct wmsg){.type = WMSG_DECLARE, .u.declare = {.layout_id = "l", .parts = 2}});
    ok(refused("PARTS") && strstr(answered(WMSG_REFUSED)->u.refused.text, "same name"), "one name twice");
    name_part(0, 1, "a", MIB);
    say(0, (struct wmsg){.type = WMSG_DECLARE, .u.declare = {.layout_id = "l", .parts = 1}});
    ok(refused("PARTS"), "a gap");
    name_part(0, 0, "a", MIB);
    say(0, (struct wmsg){.type = WMSG_DECLARE, .u.declare = {.layout_id = "l", .parts = 2}});
    ok(refused("PARTS") && strstr(answered(WMSG_REFUSED)->u.refused.text, "2 parts are declared, 1 were named"),
       "a number that is not what was named");
    say(0, (struct wmsg){.type = WMSG_PART, .u.part = {.name = "f", .shard_id = "s", .file = "x.pt", .bytes = 10}});
    say(0, (struct wmsg){.type = WMSG_DECLARE, .u.declare = {.layout_id = "l", .parts = 1}});
    ok(refused("PARTS") && strstr(answered(WMSG_REFUSED)->u.refused.text, "megatron"),
       "a file without the layout for it");
    declare(0, MIB);
    event((struct keeper_event){.type = KEEPER_EV_ALLOCATED, .ok = true});
    declare(0, MIB / 2);
    ok(refused("DECLARED"), "other sizes in the same round");
    declare(0, MIB);
    ok(answered(WMSG_GRANT) != NULL, "the same again is granted again");
    join(1, 1, 2 * MIB);
    ok(refused("NOMEM"), "the budget is one for all workers of the node");
    commit(0, 0, 1);
    ok(refused("STATE"), "commit without begin");
    commit(0, begin(0, 1), 2);
    ok(refused("STATE"), "commit of another step");
    commit(0, begin(0, 1), 1);
    summed(0, false);
    ok(refused("IMAGE") && !holds(0, 1), "an image that is not what was declared is no snapshot");
    open_keeper(1, 0);
    hello_in(0, 1);
    ok(answered(WMSG_WELCOME) && !answered(WMSG_WELCOME)->u.welcome.snapshots,
       "without memory the rest still works, and is said so");
    declare(0, MIB);
    ok(refused("OFF"), "a declaration then names the options");
}

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

/* Whatever is said in whatever order: what was committed last and whole stays until a newer one is, or it is broken, or
 * other parts are declared. */
static void test_hostile(void)
{
    const struct keeper_action *a;
    /* A slot is lent to another rank, and its owner comes again with other parts. */
    open_keeper(2, 64 * MIB);
    join(0, 1, MIB);
    join(1, 1, MIB);
    snapshot(0, 3);
    query(0);
    query(1);
    event((struct keeper_event){.type = KEEPER_EV_CHOSEN, .step = 3});
    a = found(KEEPER_DO_SEND);
    ok(a && keeper_reply(k, 1)->u.restore_offer.step == 3 && did->v[1].source == 0, "a rank reads another one's slot");
    is_num(keeper_reading(k, 0), 0, "both read");
    event((struct keeper_event){.type = KEEPER_EV_GONE});
    is_num(keeper_reading(k, 0), 1, "one has gone");
    join(0, 1, 2 * MIB);
    restored(1, 3, true);
    restored(1, 3, false);
    ok(refused("STATE"), "its owner declares other parts meanwhile: nothing breaks");
    event((struct keeper_event){.type = KEEPER_EV_GONE, .worker = 1});
}

static void test_comes_again(void)
{
    open_keeper(1, 64 * MIB);
    join(0, 1, MIB);
    say(0, (struct wmsg){.type = WMSG_SNAP_ACK});
    ok(refused("STATE") && found(KEEPER_DO_CLOSE), "an agent's word ends a worker's connection");
    hello_in(0, 1);
    ok(answered(WMSG_WELCOME) != NULL, "it may come again");
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

static void test_wrong_workers(void)
{
    /* Slots that could not be made are given back, so that others can be asked for. */
    open_keeper(1, 64 * MIB);
    hello_in(0, 1);
    declare(0, MIB);
    event((struct keeper_event){.type = KEEPER_EV_ALLOCATED, .ok = false, .text = "no memory"});
    ok(found(KEEPER_DO_RELEASE) && refused("NOMEM"), "slots that could not be made are given back");
    declare(0, MIB / 2);
    ok(found(KEEPER_DO_ALLOCATE) && !found(KEEPER_DO_RELEASE), "smaller ones may be asked for");

    open_keeper(2, 64 * MIB);
    event((struct keeper_event){.type = KEEPER_EV_ROUND, .number = 2, .rank_base = 6});
    hello_in(1, 2);
    ok(refused("RANK") && found(KEEPER_DO_CLOSE), "a worker that says it is another rank is refused");
    say(1, (struct wmsg){.type = WMSG_HELLO, .u.hello = {.proto = WMSG_PROTO, .rank = 7, .local_rank = 1, .round = 2}});
    ok(answered(WMSG_WELCOME) != NULL, "ranks of a node begin where its round says");
    declare(1, MIB);
    event((struct keeper_event){.type = KEEPER_EV_ALLOCATED, .worker = 1, .ok = true});
    is_num(begin(1, -1), -1, "a snapshot of step -1");
    ok(refused("STATE"), "is refused: nothing could ever go back to it");
    is_num(begin(1, CKPT_STEP_MAX + 1), -1, "a snapshot of a step that is a time in nanoseconds");
    ok(refused("STATE"), "is refused: no directory could have its name");
    ok(begin(1, CKPT_STEP_MAX) >= 0, "the last step that has a name");

    /* Two snapshots of one step: the later one counts. */
    snapshot(1, 4);
    int later = begin(1, 4);
    commit(1, later, 4);
    summed(1, true);
    event((struct keeper_event){.type = KEEPER_EV_ROUND, .number = 3, .rank_base = 6});
    hello_in(0, 3);
    say(0, (struct wmsg){.type = WMSG_HELLO, .u.hello = {.proto = WMSG_PROTO, .rank = 6, .round = 3}});
    declare(0, MIB);
    event((struct keeper_event){.type = KEEPER_EV_ALLOCATED, .ok = true});
    say(1, (struct wmsg){.type = WMSG_HELLO, .u.hello = {.proto = WMSG_PROTO, .rank = 7, .local_rank = 1, .round = 3}});
    declare(1, MIB);
    query(0);
    query(1);
    event((struct keeper_event){.type = KEEPER_EV_CHOSEN, .step = 4});
    ok(did->n == 2 && did->v[1].slot == (unsigned)later, "of two snapshots of one step the later one is read");
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

static void test_any_order(void)
{
    struct el_rng rng = {2026};
    unsigned long lost = 0, commits = 0, others = 0;
    for (unsigned life = 0; life < 2000; life++) {
        uint64_t round = 1;
        open_keeper(2, 64 * MIB);
        join(0, 1, MIB);
        join(1, 1, MIB);
        for (unsigned i = 0; i < 250; i++) {
            unsigned w = (unsigned)(el_rng_next(&rng) % 2), slot = (unsigned)(el_rng_next(&rng) % 2);
            int64_t before = KEEPER_NO_STEP, step = (int64_t)(el_rng_next(&rng) % 6);
            for (unsigned n = 0; n < KEEPER_SLOTS; n++) {
                const struct keeper_slot *s = keeper_slot(k, w, n);
                if (s->state == KEEPER_COMMITTED &&
                    (before == KEEPER_NO_STEP || s->gen > keeper_slot(k, w, 1 - n)->gen ||
                     keeper_slot(k, w, 1 - n)->state != KEEPER_COMMITTED))
                    before = s->step;
            }
            bool may_lose = false;
            switch (el_rng_next(&rng) % 13) {
            case 0: hello_in(w, round); break;
            case 1:
                declare(w, step == 1 ? 2 * MIB : MIB);
                may_lose = found(KEEPER_DO_RELEASE) != NULL; /* what was held fits nobody any more */
                others += may_lose;
                break;
            case 2: event((struct keeper_event){.type = KEEPER_EV_ALLOCATED, .worker = w, .ok = step != 0}); break;
            case 3:
                if (step == 0)
                    event((struct keeper_event){.type = KEEPER_EV_GONE, .worker = w});
                break;
            case 4: begin(w, step); break;
            case 5:
            case 6:
                commit(w, (int)slot, keeper_slot(k, w, slot)->step < 0 ? step : keeper_slot(k, w, slot)->step);
                break;
            case 7:
            case 8:
                event((struct keeper_event){.type = KEEPER_EV_SUMMED,
                                            .worker = w,
                                            .slot = slot,
                                            .gen = keeper_slot(k, w, slot)->gen,
                                            .ok = step != 0});
                commits += found(KEEPER_DO_COMMITTED) != NULL;
                may_lose = found(KEEPER_DO_COMMITTED) != NULL;
                break;
            case 9: query(w); break;
            case 10: event((struct keeper_event){.type = KEEPER_EV_CHOSEN, .step = step}); break;
            case 11:
                if (step == 0)
                    event((struct keeper_event){.type = KEEPER_EV_LATE});
                break;
            default:
                if (step == 5)
                    event((struct keeper_event){.type = KEEPER_EV_ROUND, .number = ++round});
                else {
                    restored(w, step, step != 4);
                    may_lose = true;
                }
            }
            lost += before != KEEPER_NO_STEP && !may_lose && !holds(w, before);
        }
    }
    printf("# %lu snapshots committed\n", commits);
    ok(commits > 1000 && others > 100, "the walk commits snapshots, and declares other sizes");
    is_num(doubled, 0, "slots are never made where there are some");
    is_num(lost, 0, "and never loses the last whole one");
}

static void declare_file(const char *file, uint64_t bytes)
{
    say(0, (struct wmsg){.type = WMSG_PART, .u.part = {.name = "f", .shard_id = "s", .file = file, .bytes = bytes}});
    say(0, (struct wmsg){.type = WMSG_DECLARE, .u.declare = {.layout_id = "l", .parts = 1}});
}

static void test_files(void)
{
    static const char *const wrong[] = {"../x.pt", "a/../../x.pt", "/tmp/x.pt", "a//x.pt", "a/x.pt/", "MANIFEST.json"};
    open_with(&(struct keeper_conf){.workers = 1, .budget_bytes = 4 * MIB, .files = true});
    hello_in(0, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        declare_file(wrong[i], 1000);
        ok(refused("PARTS") && strstr(answered(WMSG_REFUSED)->u.refused.text, "below the directory"), wrong[i]);
    }
    declare_file("a/b.pt", 1000);
    ok(found(KEEPER_DO_ALLOCATE) != NULL, "a file that may be written");
}

int main(void)
{
    test_two_slots();
    test_death();
    test_death_while_slots_are_made();
    test_refusals();
    test_going_back();
    test_elsewhere();
    test_hostile();
    test_comes_again();
    test_late();
    test_wrong_workers();
    test_from_disk();
    test_files();
    test_any_order();
    keeper_free(k);
    return done();
}
