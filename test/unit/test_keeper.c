/* The keeper of snapshots: who may write where and what a death leaves; and that no order of messages, honest or not,
 * gives away the last whole snapshot.  What is offered afterwards: test_keeper_restore.c. */
#include "unit/keeper_stage.h"
#include "util/auto.h"
#include "util/rng.h"

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
    test_hostile();
    test_comes_again();
    test_wrong_workers();
    test_files();
    test_any_order();
    keeper_free(k);
    return done();
}
