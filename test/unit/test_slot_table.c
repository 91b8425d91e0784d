/* The keeper of snapshots: who may write where and what a death leaves; and that no order of messages, honest or not,
 * gives away the last whole snapshot.  What is offered afterwards: test_keeper_restore.c. */
#include "unit/keeper_stage.h"
#include "util/array.h"
#include "util/rng.h"

static void test_two_slots(void)
{
    open_keeper(1, 64 * MIB);
    join(0, 1);
    ok(answered(WORKER_MSG_GRANT) && answered(WORKER_MSG_GRANT)->u.grant.slots == 2,
       "slots are granted when they are there");
    is_num(slot_table_used_bytes(k), 0, "and take no memory before there is something to hold");
    snapshot(0, 1);
    ok(found(SLOT_TABLE_DO_COMMITTED) && answered(WORKER_MSG_SNAP_ACK), "a snapshot counts when it is summed");
    int slot = begin(0, 2);
    ok(slot >= 0 && holds(0, 1), "the next one goes into the other slot");
    commit(0, slot, 2);
    ok(begin(0, 3) < 0 && answered(WORKER_MSG_SNAP_SLOT)->u.snap_slot.retry_ms > 0,
       "while it is summed no slot is free: busy, come back");
    open_keeper(1, 64 * MIB);
    join(0, 1);
    snapshot(0, 1);
    snapshot(0, 2);
    snapshot(0, 3);
    ok(holds(0, 2) && holds(0, 3), "the last two are held");
    ok(slot_table_take(k, 0, 0) && slot_table_take(k, 0, 1) && begin(0, 4) < 0,
       "slots that are being read are not given out");
}

static void test_death(void)
{
    open_keeper(1, 64 * MIB);
    join(0, 1);
    snapshot(0, 5);
    begin(0, 6);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE});
    ok(holds(0, 5), "a worker that dies while it writes loses what it was writing, no more");
    join(0, 1);
    ok(answered(WORKER_MSG_GRANT) && !found(SLOT_TABLE_DO_OPEN),
       "its successor with the same parts gets the same slots");
    commit(0, begin(0, 6), 6);
    const struct slot_table_action sum = *found(SLOT_TABLE_DO_SUM);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE});
    event((struct slot_table_event){.type = SLOT_TABLE_EV_SUMMED, .slot = sum.slot, .gen = sum.gen, .ok = true});
    ok(holds(0, 6), "a worker that dies behind SNAP_COMMIT loses nothing");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_SUMMED, .slot = sum.slot, .gen = sum.gen - 1, .ok = false});
    ok(holds(0, 6), "a result of an older snapshot is passed over");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2});
    join_as(0, 2, "weights");
    ok(answered(WORKER_MSG_GRANT) && !holds(0, 6), "other parts get other slots");
}

static void test_death_while_slots_are_made(void)
{
    open_keeper(1, 64 * MIB);
    hello_in(0, 1);
    declare_as(0, "model");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE});
    hello_in(0, 1);
    declare_as(0, "model");
    is_num(did->n, 0, "the successor of a worker that died while its slots were made waits for them");
    opened(0, true);
    ok(answered(WORKER_MSG_GRANT) != NULL, "and gets them");

    open_keeper(1, 64 * MIB);
    hello_in(0, 1);
    declare_as(0, "model");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE});
    hello_in(0, 1);
    declare_as(0, "weights");
    ok(found(SLOT_TABLE_DO_RELEASE) && found(SLOT_TABLE_DO_OPEN), "with other parts it gets others");
}

/* A slot is as large as what is to be written into it, and grows before it is. */
static void test_room(void)
{
    open_keeper(1, 64 * MIB);
    join(0, 1);
    ask(0, 1, "4096/1048576");
    const struct slot_table_action *a = found(SLOT_TABLE_DO_GROW);
    ok(did->n == 1 && a && a->bytes == MIB, "the first snapshot: room is made, and nothing is answered yet");
    is_num(slot_table_slot(k, 0, a->slot)->state, SLOT_TABLE_GROWING, "nothing is written meanwhile");
    unsigned slot = a->slot;
    grown(a);
    const struct worker_msg *m = slot_table_reply(k, 0);
    ok(m->type == WORKER_MSG_SNAP_SLOT && m->u.snap_slot.slot == slot && m->u.snap_slot.slot_bytes == MIB + MIB / 8,
       "then the slot is given out, with the length of its file");
    a = found(SLOT_TABLE_DO_GROW);
    ok(a && a->slot == !slot && a->bytes == MIB, "and the other one follows, in the background");
    grown(a);
    is_num(did->n, 0, "of which nothing is said");
    is_num(slot_table_used_bytes(k), 2 * MIB, "both count");
    commit(0, (int)slot, 1);
    summed(0, true);
    ask(0, 2, "4096/1048000");
    ok(!found(SLOT_TABLE_DO_GROW) && answered(WORKER_MSG_SNAP_SLOT), "one that fits is given its slot at once");
    commit(0, (int)answered(WORKER_MSG_SNAP_SLOT)->u.snap_slot.slot, 2);
    summed(0, true);
    ask(0, 3, "4096/1048577");
    ok(found(SLOT_TABLE_DO_GROW) && found(SLOT_TABLE_DO_GROW)->bytes == MIB + 4096, "one byte more: whole pages");
    a = found(SLOT_TABLE_DO_GROW);
    ok(!slot_table_has_free(k, 0, SLOT_TABLE_NO_STEP), "while it grows it is given to nobody else");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GROWN,
                                    .slot = a->slot,
                                    .gen = a->gen,
                                    .text = "there is no more",
                                    .need_bytes = 5,
                                    .have_bytes = 3});
    ok(refused("NOMEM") && answered(WORKER_MSG_REFUSED)->u.refused.need_bytes == 5 &&
           answered(WORKER_MSG_REFUSED)->u.refused.have_bytes == 3,
       "there is none: what is needed and what is there");
    is_str(answered(WORKER_MSG_REFUSED)->u.refused.text, "there is no more", "in the vault's words");
    ok(holds(0, 2) && !holds(0, 1), "the newest snapshot stays, the one whose slot it was does not");
    ok(begin(0, 4) >= 0, "a smaller one is taken");
}

static void test_reserve(void)
{
    open_keeper(1, 64 * MIB);
    say(0, (struct worker_msg){.type = WORKER_MSG_RESERVE, .u.reserve = {.bytes = MIB}});
    ok(refused("STATE"), "room is reserved by a worker that has said HELLO");
    hello_in(0, 1);
    say(0, (struct worker_msg){.type = WORKER_MSG_RESERVE, .u.reserve = {.bytes = MIB}});
    is_num(did->n, 0, "… and declared its parts");
    declare_as(0, "model");
    opened(0, true);
    say(0, (struct worker_msg){.type = WORKER_MSG_RESERVE, .u.reserve = {.bytes = MIB}});
    ok(did->n == 2 && did->v[0].type == SLOT_TABLE_DO_GROW && did->v[1].type == SLOT_TABLE_DO_GROW &&
           did->v[0].slot != did->v[1].slot,
       "both slots grow, and nothing is answered");
    const struct slot_table_action one = did->v[0], two = did->v[1];
    ask(0, 1, "4096/1048576");
    const struct slot_table_action own = *found(SLOT_TABLE_DO_GROW);
    grown(&one);
    is_num(did->n, 0, "a snapshot that comes meanwhile waits for its own word");
    grown(&own);
    ok(answered(WORKER_MSG_SNAP_SLOT) != NULL || found(SLOT_TABLE_DO_GROW) != NULL, "and then goes on");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GROWN, .slot = two.slot, .gen = two.gen, .text = "no"});
    is_num(did->n, 0, "a refusal is passed over");
    say(0, (struct worker_msg){.type = WORKER_MSG_RESERVE, .u.reserve = {.bytes = MIB}});
    is_num(did->n, 1, "what is there is not asked for again");
}

static void shrunk(const struct slot_table_action *a)
{
    event((struct slot_table_event){.type = SLOT_TABLE_EV_SHRUNK,
                                    .worker = a->worker,
                                    .slot = a->slot,
                                    .gen = a->gen,
                                    .ok = true,
                                    .capacity = a->bytes});
}

/* Worker 1 has no room for what it holds. */
static void no_room(int64_t step)
{
    ask(1, step, "4096/12582912");
    const struct slot_table_action grow = *found(SLOT_TABLE_DO_GROW);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GROWN,
                                    .worker = 1,
                                    .slot = grow.slot,
                                    .gen = grow.gen,
                                    .text = "there is no more",
                                    .need_bytes = 24 * MIB,
                                    .have_bytes = 16 * MIB});
}

/* What one worker has reserved and does not need another one may have. */
static void test_gives_back(void)
{
    open_keeper(2, 64 * MIB);
    join_as(0, 1, "a");
    join_as(1, 1, "b");
    say(0, (struct worker_msg){.type = WORKER_MSG_RESERVE, .u.reserve = {.bytes = 24 * MIB}});
    const struct slot_table_action one = did->v[0], two = did->v[1];
    grown(&one), grown(&two);
    no_room(1);
    ok(refused("NOMEM") && !found(SLOT_TABLE_DO_SHRINK),
       "what is reserved is kept until the size of a snapshot is known");
    snapshot(0, 2), snapshot(1, 2), snapshot(0, 3);
    no_room(3);
    const struct slot_table_action first = did->v[0], second = did->v[1];
    ok(first.type == SLOT_TABLE_DO_SHRINK && second.type == SLOT_TABLE_DO_SHRINK && first.slot != second.slot &&
           first.worker == 0 && second.worker == 0 && first.bytes == MIB && second.bytes == MIB,
       "then the rest of both slots is given back");
    ok(answered(WORKER_MSG_SNAP_SLOT) && answered(WORKER_MSG_SNAP_SLOT)->u.snap_slot.busy,
       "the other worker has to come again");
    ok(holds(0, 2) && holds(0, 3), "the snapshots stay");
    say(0, (struct worker_msg){.type = WORKER_MSG_RESERVE, .u.reserve = {.bytes = 32 * MIB}});
    ok(!found(SLOT_TABLE_DO_GROW) && !slot_table_has_free(k, 0, SLOT_TABLE_NO_STEP),
       "meanwhile the slots do not grow, nor are given out");
    shrunk(&first);
    shrunk(&second);
    is_num(slot_table_slot_bytes(k, 0), MIB, "both are");
    no_room(4);
    ok(refused("NOMEM") && !found(SLOT_TABLE_DO_SHRINK), "if that is not enough there is no more");
    ask(1, 4, "4096/12582912");
    grown(found(SLOT_TABLE_DO_GROW));
    ok(found(SLOT_TABLE_DO_SEND) && found(SLOT_TABLE_DO_GROW), "else it has its slot, and the other one follows");
}

/* A worker that dies while its slot grows: the slot is its successor's. */
static void test_death_while_growing(void)
{
    open_keeper(1, 64 * MIB);
    join(0, 1);
    ask(0, 1, "4096/1048576");
    const struct slot_table_action a = *found(SLOT_TABLE_DO_GROW);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE});
    grown(&a);
    is_num(did->n, 0, "nobody is told");
    is_num(slot_table_slot(k, 0, a.slot)->capacity, MIB, "but the room is there");
    join(0, 1);
    ask(0, 1, "4096/1048576");
    ok(answered(WORKER_MSG_SNAP_SLOT) != NULL, "for its successor");
    ask(0, 2, "4096/2097152");
    const struct slot_table_action b = *found(SLOT_TABLE_DO_GROW);
    ask(0, 3, "4096/3145728");
    const struct slot_table_action c = *found(SLOT_TABLE_DO_GROW);
    grown(&b);
    is_num(did->n, 0, "a snapshot that was given up for another one is not answered");
    grown(&c);
    ok(slot_table_reply(k, 0)->type == WORKER_MSG_SNAP_SLOT && slot_table_slot(k, 0, c.slot)->step == 3,
       "the other one is");
}

static void test_images(void)
{
    static const char *const wrong[] = {"",
                                        "4096",
                                        "4096/8192 0/0",
                                        "4096/4095",
                                        "7/4096",
                                        "0/8192",
                                        "4096/8192 ",
                                        " 4096/8192",
                                        "04096/8192",
                                        "4096/8192x",
                                        "-1/4096",
                                        "8/0x10",
                                        "0/0",
                                        "8/70368744177665",
                                        "8/18446744073709551616",
                                        "8/18446744073709551615"};
    unsigned taken = 0;
    open_keeper(1, 64 * MIB);
    join(0, 1);
    snapshot(0, 1);
    snapshot(0, 2);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        ask(0, 3, wrong[i]);
        taken += !refused("IMAGE");
    }
    is_num(taken, 0, "lists of sizes that are none are refused");
    ok(holds(0, 1) && holds(0, 2), "and nothing is given away for them");
    hello_in(0, 1);
    open_keeper(1, 64 * MIB);
    hello_in(0, 1);
    name_part(0, 0, "model");
    name_piece(0, 1, "model@rank", "rank0", true);
    declared(0, 2);
    opened(0, true);
    ask(0, 3, "4096/8192 0/0");
    ok(found(SLOT_TABLE_DO_GROW) != NULL, "a rank's own piece may be empty");
    ask(0, 3, "4096/8192 0/17");
    ok(refused("IMAGE"), "but no more than any other one without a header");
    ask(0, 3, "4096/8192 16/17");
    ok(found(SLOT_TABLE_DO_GROW) && found(SLOT_TABLE_DO_GROW)->bytes == 3 * 4096, "each image begins at a page");
    open_with(&(struct slot_table_conf){.workers = 1, .budget_bytes = 4 * MIB, .files = true});
    hello_in(0, 1);
    say(0, (struct worker_msg){.type = WORKER_MSG_PART,
                               .u.part = {.name = "f", .shard_id = "s", .file = "a.pt", .own = true}});
    declared(0, 1);
    ok(refused("PARTS") && strstr(answered(WORKER_MSG_REFUSED)->u.refused.text, "own piece"),
       "a file is no rank's own piece of something");
    say(0, (struct worker_msg){.type = WORKER_MSG_PART, .u.part = {.name = "f", .shard_id = "s", .file = "a.pt"}});
    declared(0, 1);
    opened(0, true);
    ask(0, 3, "8/17");
    ok(refused("IMAGE"), "a file has no header");
    ask(0, 3, "0/0");
    ok(answered(WORKER_MSG_SNAP_SLOT) != NULL, "and may be empty");
}

static void test_refusals(void)
{
    open_keeper(2, 4 * MIB);
    hello_in(0, 9);
    ok(refused("ROUND") && found(SLOT_TABLE_DO_CLOSE), "a worker of another round");
    say(0, (struct worker_msg){.type = WORKER_MSG_HELLO,
                               .u.hello = {.proto = WORKER_MSG_PROTO, .local_rank = 1, .round = 1}});
    ok(refused("RANK"), "a worker that says it is another");
    say(0, (struct worker_msg){.type = WORKER_MSG_HELLO, .u.hello = {.proto = 99, .round = 1}});
    ok(refused("PROTO"), "another protocol");
    declare_as(0, "model");
    ok(refused("STATE") && found(SLOT_TABLE_DO_CLOSE), "anything before HELLO");
    hello_in(0, 1);
    hello_in(0, 1);
    ok(refused("STATE"), "HELLO twice");
    query(0);
    ok(refused("STATE"), "a question before anything is declared");
    ok(begin(0, 1) < 0 && refused("STATE"), "a snapshot before anything is declared");
    open_keeper(2, 4 * MIB);
    hello_in(0, 1);
    name_part(0, 0, "a");
    name_part(0, 1, "a");
    declared(0, 2);
    ok(refused("PARTS") && strstr(answered(WORKER_MSG_REFUSED)->u.refused.text, "same name"), "one name twice");
    name_part(0, 1, "a");
    declared(0, 1);
    ok(refused("PARTS"), "a gap");
    name_part(0, 0, "a");
    declared(0, 2);
    ok(refused("PARTS") && strstr(answered(WORKER_MSG_REFUSED)->u.refused.text, "2 parts are declared, 1 were named"),
       "a number that is not what was named");
    say(0, (struct worker_msg){.type = WORKER_MSG_PART, .u.part = {.name = "f", .shard_id = "s", .file = "x.pt"}});
    declared(0, 1);
    ok(refused("PARTS") && strstr(answered(WORKER_MSG_REFUSED)->u.refused.text, "megatron"),
       "a file without the layout for it");
    declare_as(0, "model");
    opened(0, true);
    declare_as(0, "weights");
    ok(refused("DECLARED"), "other parts in the same round");
    declare_as(0, "model");
    ok(answered(WORKER_MSG_GRANT) != NULL, "the same again are granted again");
    commit(0, 0, 1);
    ok(refused("STATE"), "commit without begin");
    commit(0, begin(0, 1), 2);
    ok(refused("STATE"), "commit of another step");
    commit(0, begin(0, 1), 1);
    summed(0, false);
    ok(refused("IMAGE") && !holds(0, 1), "an image that is not what was said is no snapshot");
    open_keeper(1, 0);
    hello_in(0, 1);
    ok(answered(WORKER_MSG_WELCOME) && !answered(WORKER_MSG_WELCOME)->u.welcome.snapshots,
       "without memory the rest still works, and is said so");
    declare_as(0, "model");
    ok(refused("OFF"), "a declaration then names the options");
}

static void test_hostile(void)
{
    const struct slot_table_action *a;
    /* A slot is lent to another rank, and its owner comes again with other parts. */
    open_keeper(2, 64 * MIB);
    join(0, 1);
    join(1, 1);
    snapshot(0, 3);
    query(0);
    query(1);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 3});
    a = found(SLOT_TABLE_DO_SEND);
    ok(a && slot_table_reply(k, 1)->u.restore_offer.step == 3 && did->v[1].source == 0,
       "a rank reads another one's slot");
    is_num(slot_table_reading(k, 0), 0, "both read");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE});
    is_num(slot_table_reading(k, 0), 1, "one has gone");
    join_as(0, 1, "weights");
    restored(1, 3, true);
    restored(1, 3, false);
    ok(refused("STATE"), "its owner declares other parts meanwhile: nothing breaks");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = 1});
}

static void test_comes_again(void)
{
    open_keeper(1, 64 * MIB);
    join(0, 1);
    say(0, (struct worker_msg){.type = WORKER_MSG_SNAP_ACK});
    ok(refused("STATE") && found(SLOT_TABLE_DO_CLOSE), "an agent's word ends a worker's connection");
    hello_in(0, 1);
    ok(answered(WORKER_MSG_WELCOME) != NULL, "it may come again");
}

/* The log is the agent's: what a worker has to say to people stands there with its rank. */
static void test_note(void)
{
    open_with(&(struct slot_table_conf){.workers = 1, .budget_bytes = MIB, .check = 5});
    say(0, (struct worker_msg){.type = WORKER_MSG_NOTE, .u.note = {.error = true, .text = "weights differ"}});
    ok(refused("STATE") && !found(SLOT_TABLE_DO_NOTE), "nothing of somebody who has not said HELLO");
    hello_in(0, 1);
    is_num(answered(WORKER_MSG_WELCOME)->u.welcome.check, 5,
           "a worker is told how often it looks whether a snapshot is true");
    say(0, (struct worker_msg){.type = WORKER_MSG_NOTE, .u.note = {.error = true, .text = "weights differ"}});
    const struct slot_table_action *a = found(SLOT_TABLE_DO_NOTE);
    ok(did->n == 1 && a && a->error && strcmp(a->text, "weights differ") == 0, "and may say that one is not");
}

static void test_wrong_workers(void)
{
    /* Slots that could not be made are given back, so that others can be asked for. */
    open_keeper(1, 64 * MIB);
    hello_in(0, 1);
    declare_as(0, "model");
    opened(0, false);
    ok(found(SLOT_TABLE_DO_RELEASE) && refused("NOMEM"), "slots that could not be made are given back");
    declare_as(0, "model");
    ok(found(SLOT_TABLE_DO_OPEN) && !found(SLOT_TABLE_DO_RELEASE), "they may be asked for again");

    open_keeper(2, 64 * MIB);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2, .rank_base = 6});
    hello_in(1, 2);
    ok(refused("RANK") && found(SLOT_TABLE_DO_CLOSE), "a worker that says it is another rank is refused");
    say(1, (struct worker_msg){.type = WORKER_MSG_HELLO,
                               .u.hello = {.proto = WORKER_MSG_PROTO, .rank = 7, .local_rank = 1, .round = 2}});
    ok(answered(WORKER_MSG_WELCOME) != NULL, "ranks of a node begin where its round says");
    declare_as(1, "model");
    opened(1, true);
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
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 3, .rank_base = 6});
    hello_in(0, 3);
    say(0,
        (struct worker_msg){.type = WORKER_MSG_HELLO, .u.hello = {.proto = WORKER_MSG_PROTO, .rank = 6, .round = 3}});
    declare_as(0, "model");
    opened(0, true);
    say(1, (struct worker_msg){.type = WORKER_MSG_HELLO,
                               .u.hello = {.proto = WORKER_MSG_PROTO, .rank = 7, .local_rank = 1, .round = 3}});
    declare_as(1, "model");
    query(0);
    query(1);
    event((struct slot_table_event){
        .type = SLOT_TABLE_EV_CHOSEN, .step = 4, .lineage = slot_table_slot(k, 1, (unsigned)later)->lineage});
    ok(did->n == 2 && did->v[1].slot == (unsigned)later, "of two snapshots of one step the later one is read");
}

/* Workers that hold it. */
static unsigned holders(struct slot_pin_step of)
{
    unsigned n = 0;
    for (unsigned w = 0; w < slot_table_workers(k); w++) {
        bool held = false;
        for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++) {
            const struct slot_table_slot *s = slot_table_slot(k, w, i);
            held |= s->state == SLOT_TABLE_COMMITTED && s->step == of.step && s->lineage == of.lineage;
        }
        n += held;
    }
    return n;
}

static unsigned long commits, others;

/* Something is said to the keeper, by this worker or about it.  True: what it has committed may be lost by that. */
static bool say_something(struct el_rng *rng, unsigned w, unsigned slot, int64_t step, uint64_t *round)
{
    const struct slot_table_slot *s = slot_table_slot(k, w, slot);
    switch (el_rng_next(rng) % 14) {
    case 0: hello_in(w, *round); break;
    case 1:
        declare_as(w, step == 1 ? "weights" : "model");
        others += found(SLOT_TABLE_DO_RELEASE) != NULL;
        return found(SLOT_TABLE_DO_RELEASE) != NULL; /* what was held fits nobody any more */
    case 2: opened(w, step != 0); break;
    case 3:
        if (step == 0)
            event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = w});
        break;
    case 4:
        image_bytes[w] = MIB * (1 + el_rng_next(rng) % 4);
        if (step == 0)
            ask(w, step, "4096/9000000");
        else
            begin(w, step);
        break;
    case 5: /* of a slot that grows, or does not, or of long ago */
        event((struct slot_table_event){.type = SLOT_TABLE_EV_GROWN,
                                        .worker = w,
                                        .slot = slot,
                                        .gen = s->gen - (step == 1),
                                        .ok = step != 0,
                                        .capacity = 9 * MIB,
                                        .file_bytes = 10 * MIB});
        break;
    case 6:
    case 7: commit(w, (int)slot, s->step < 0 ? step : s->step); break;
    case 8:
    case 9:
        event((struct slot_table_event){
            .type = SLOT_TABLE_EV_SUMMED, .worker = w, .slot = slot, .gen = s->gen, .ok = step != 0});
        commits += found(SLOT_TABLE_DO_COMMITTED) != NULL;
        return found(SLOT_TABLE_DO_COMMITTED) != NULL;
    case 10: query(w); break;
    case 11: event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = step}); break;
    case 12:
        if (step == 0)
            event((struct slot_table_event){.type = SLOT_TABLE_EV_LATE});
        break;
    default:
        if (step != 5) {
            restored(w, step, step != 4);
            return true;
        }
        event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = ++*round});
    }
    return false;
}

/* Whatever is said in whatever order: what all have stays until they have a newer one, or it is broken, or other parts
 * are declared. */
static void test_any_order(void)
{
    struct el_rng rng = {2026};
    unsigned long lost = 0;
    for (unsigned life = 0; life < 2000; life++) {
        uint64_t round = 1;
        open_keeper(2, 64 * MIB);
        join(0, 1);
        join(1, 1);
        for (unsigned i = 0; i < 250; i++) {
            unsigned w = (unsigned)(el_rng_next(&rng) % 2), slot = (unsigned)(el_rng_next(&rng) % 2);
            int64_t step = (int64_t)(el_rng_next(&rng) % 6);
            struct slot_pin_step common = slot_table_common(k);
            unsigned before = holders(common);
            bool may_lose = say_something(&rng, w, slot, step, &round);
            bool same = slot_table_common(k).step == common.step && slot_table_common(k).lineage == common.lineage;
            lost += same && !may_lose && before == 2 && holders(common) < 2;
        }
    }
    printf("# %lu snapshots committed\n", commits);
    ok(commits > 1000 && others > 100, "the walk commits snapshots, and declares other parts");
    is_num(doubled, 0, "slots are never made where there are some");
    is_num(lost, 0, "and never loses what all have");
}

static void declare_file(const char *file)
{
    say(0, (struct worker_msg){.type = WORKER_MSG_PART, .u.part = {.name = "f", .shard_id = "s", .file = file}});
    declared(0, 1);
}

static void test_files(void)
{
    static const char *const wrong[] = {"../x.pt", "a/../../x.pt", "/tmp/x.pt", "a//x.pt", "a/x.pt/", "MANIFEST.json"};
    open_with(&(struct slot_table_conf){.workers = 1, .budget_bytes = 4 * MIB, .files = true});
    hello_in(0, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        declare_file(wrong[i]);
        ok(refused("PARTS") && strstr(answered(WORKER_MSG_REFUSED)->u.refused.text, "below the directory"), wrong[i]);
    }
    declare_file("a/b.pt");
    ok(found(SLOT_TABLE_DO_OPEN) != NULL, "a file that may be written");
}

int main(void)
{
    test_two_slots();
    test_death();
    test_death_while_slots_are_made();
    test_room();
    test_reserve();
    test_gives_back();
    test_death_while_growing();
    test_images();
    test_note();
    test_refusals();
    test_hostile();
    test_comes_again();
    test_wrong_workers();
    test_files();
    test_any_order();
    slot_table_free(k);
    return done();
}
