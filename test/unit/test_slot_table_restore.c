/* The keeper of snapshots, going back: what ranks are offered of what is held in memory, elsewhere or on disk; and what
 * is told to who waits for one that does not read. */
#include "unit/keeper_stage.h"

static const uint64_t whole_on_disk[1]; /* no rank's own piece is missing there */

static void test_going_back(void)
{
    open_keeper(2, 64 * MIB);
    join(0, 1);
    join(1, 1);
    snapshot(0, 1);
    snapshot(1, 1);
    snapshot(0, 2);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2});
    join(0, 2);
    join(1, 2);
    query(0);
    ok(!found(SLOT_TABLE_DO_CHOOSE), "nothing is chosen before all have asked");
    query(1);
    ok(found(SLOT_TABLE_DO_CHOOSE), "then it is");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 1});
    is_num(did->n, 2, "both are answered");
    ok(did->v[0].source == 0 && did->v[1].source == 1 && slot_table_reply(k, 0)->u.restore_offer.step == 1,
       "each with its own slot, both with one step");
    restored(0, 1, true);
    ok(!found(SLOT_TABLE_DO_CONFIRM), "the first who has read waits");
    restored(1, 1, false);
    ok(found(SLOT_TABLE_DO_CHOOSE) && !holds(1, 1), "one who cannot read: the slot is broken, all choose anew");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 2});
    ok(did->v[1].source == 0, "a rank without a whole slot reads that of another with the same shards");
    restored(0, 2, true);
    restored(1, 2, true);
    ok(found(SLOT_TABLE_DO_CONFIRM) && found(SLOT_TABLE_DO_CONFIRM)->step == 2, "all have read");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CONFIRMED});
    is_num(did->n, 2, "and go on");
    query(0);
    query(1);
    event((struct slot_table_event){
        .type = SLOT_TABLE_EV_CHOSEN, .step = SLOT_TABLE_NO_STEP, .text = "nothing was ever saved"});
    ok(slot_table_reply(k, 0)->u.restore_offer.step == SLOT_TABLE_NO_STEP &&
           slot_table_reply(k, 1)->u.restore_offer.text[0],
       "nothing: said with its reason");
}

/* A node that is new: its workers take what ranks elsewhere have, and are told so. */
static void test_elsewhere(void)
{
    open_keeper(2, 64 * MIB);
    join(0, 1);
    join(1, 1);
    query(0);
    ok(!slot_table_takes_elsewhere(k), "nobody has said so");
    for (unsigned w = 0; w < 2; w++)
        say(w, (struct worker_msg){.type = WORKER_MSG_RESTORE_QUERY,
                                   .u.restore_query = {.layout_id = "all", .elsewhere = true}});
    ok(slot_table_takes_elsewhere(k) && found(SLOT_TABLE_DO_CHOOSE), "all have");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 7});
    const struct wmsg_restore_offer *to = &slot_table_reply(k, 1)->u.restore_offer;
    ok(did->n == 2 && to->step == 7 && to->elsewhere && !to->fresh, "the step, and nothing to read");
    restored(0, 7, true);
    restored(1, 7, true);
    ok(found(SLOT_TABLE_DO_CONFIRM) && found(SLOT_TABLE_DO_CONFIRM)->step == 7, "they go on with the others");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CONFIRMED});
    is_num(did->n, 2, "and are told");
    snapshot(0, 8);
    ok(holds(0, 8), "their own snapshots come next");
    query(0);
    query(1);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 7});
    ok(slot_table_reply(k, 0)->u.restore_offer.step == SLOT_TABLE_NO_STEP,
       "who does not take it is not offered what is not here");
}

static void test_late(void)
{
    /* One does not say whether it could read. */
    open_keeper(3, 64 * MIB);
    for (unsigned w = 0; w < 3; w++) {
        join(w, 1);
        snapshot(w, 3);
    }
    for (unsigned w = 0; w < 3; w++)
        query(w);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 3});
    restored(0, 3, true);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_LATE, .text = "rank 1 sleeps"});
    is_num(did->n, 1, "a rank that does not read what it was offered: who waits is told, and nobody else");
    ok(answered(WORKER_MSG_RESTORE_OFFER) &&
           answered(WORKER_MSG_RESTORE_OFFER)->u.restore_offer.step == SLOT_TABLE_NO_STEP &&
           !answered(WORKER_MSG_RESTORE_OFFER)->u.restore_offer.fresh &&
           strcmp(answered(WORKER_MSG_RESTORE_OFFER)->u.restore_offer.text, "rank 1 sleeps") == 0,
       "that there is nothing, and why; not that it may begin anew");
    restored(1, 3, true);
    ok(refused("STATE"), "its word that comes then is too late");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2});
    for (unsigned w = 0; w < 3; w++) {
        hello_in(w, 2);
        declare_as(w, "model");
        query(w);
    }
    ok(found(SLOT_TABLE_DO_CHOOSE) && holds(1, 3), "the next round asks again, for what is still there");
}

/* An alarm has interrupted its restore(), and it asks again when the others have read. */
static void test_asked_again(void)
{
    open_keeper(2, 64 * MIB);
    for (unsigned w = 0; w < 2; w++) {
        join(w, 1);
        snapshot(w, 3);
    }
    query(0);
    query(1);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 3});
    restored(0, 3, true);
    query(1);
    ok(found(SLOT_TABLE_DO_CHOOSE), "who asks again behind all others has all choose anew");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 3});
    ok(offered(0) && offered(0)->u.restore_offer.step == 3 && offered(1) && offered(1)->u.restore_offer.step == 3,
       "and all are offered it again");
    query(0);
    ok(!found(SLOT_TABLE_DO_CHOOSE), "while another one reads nothing is chosen");
    restored(1, 3, true);
    ok(found(SLOT_TABLE_DO_CHOOSE), "but when it has");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 3});
    restored(0, 3, true);
    restored(1, 3, true);
    ok(found(SLOT_TABLE_DO_CONFIRM) && found(SLOT_TABLE_DO_CONFIRM)->step == 3, "all have read");
}

/* The same while it named its parts: it begins with the first one again. */
static void test_named_again(void)
{
    open_keeper(1, 64 * MIB);
    hello_in(0, 1);
    name_part(0, 0, "model");
    name_part(0, 1, "ema");
    name_part(0, 0, "model");
    name_part(0, 1, "ema");
    declared(0, 2);
    ok(found(SLOT_TABLE_DO_OPEN), "the first part again begins the list anew");
    open_keeper(1, 64 * MIB);
    hello_in(0, 1);
    name_part(0, 0, "model");
    name_part(0, 2, "ema");
    name_part(0, 0, "model");
    declared(0, 1);
    ok(found(SLOT_TABLE_DO_OPEN), "also behind what was wrong in the one before");
}

/* A step that is on disk: read once for ranks that hold the same, offered when it is there, not at all if it cannot be.
 */
static void test_from_disk(void)
{
    open_keeper(2, 64 * MIB);
    join(0, 1);
    join(1, 1);
    for (unsigned w = 0; w < 2; w++)
        say(w, (struct worker_msg){.type = WORKER_MSG_RESTORE_QUERY, .u.restore_query = {.layout_id = "l"}});
    ok(found(SLOT_TABLE_DO_CHOOSE) != NULL, "all ask");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 7, .on_disk = whole_on_disk});
    const struct slot_table_action *a = found(SLOT_TABLE_DO_LOAD);
    ok(a && a->step == 7 && did->n == 1, "it is loaded, once, and nothing is offered yet");
    struct slot_table_event loaded = {
        .type = SLOT_TABLE_EV_LOADED, .worker = a->worker, .slot = a->slot, .gen = a->gen};
    loaded.text = "differs";
    event(loaded);
    ok(found(SLOT_TABLE_DO_CHOOSE) && !offered(0), "it cannot be read: agreed upon anew");
    is_str(slot_table_lost(k), "differs", "and why is kept");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 6, .on_disk = whole_on_disk});
    a = found(SLOT_TABLE_DO_LOAD);
    loaded = (struct slot_table_event){.type = SLOT_TABLE_EV_LOADED,
                                       .worker = a->worker,
                                       .slot = a->slot,
                                       .gen = a->gen,
                                       .ok = true,
                                       .number = 99,
                                       .capacity = MIB,
                                       .file_bytes = MIB,
                                       .part_bytes = &(uint64_t){5000},
                                       .part_header_bytes = &(uint64_t){4096}};
    event(loaded);
    ok(offered(0) && offered(0)->u.restore_offer.step == 6 && offered(1) && offered(1)->u.restore_offer.step == 6,
       "the one before: both are offered it");
    is_num(offered(1)->u.restore_offer.consumed_samples, 99, "with what the manifest says of samples");
    is_str(offered(1)->u.restore_offer.images, "4096/5000", "and how large it is there");
    is_num(offered(1)->u.restore_offer.slot_bytes, 8192, "in whole pages");
    is_num(slot_table_reads(k).disk, 2, "both from disk");
    for (unsigned w = 0; w < 2; w++)
        say(w,
            (struct worker_msg){.type = WORKER_MSG_RESTORE_DONE, .u.restore_done = {.step = 6, .ok = true, .why = ""}});
    ok(found(SLOT_TABLE_DO_CONFIRM) != NULL, "both have read it");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CONFIRMED});
    int64_t step;
    uint64_t lineage;
    ok(slot_table_readable(k, &step, &lineage, 1) == 1 && step == 6, "from now on it is in memory");
    event(loaded);
    ok(did->n == 0, "a result that comes twice is passed over");
}

/* The bytes are fine, but the script has other tensors now: nothing older is tried. */
static void test_misfit(void)
{
    open_keeper(2, 64 * MIB);
    for (unsigned w = 0; w < 2; w++) {
        join(w, 1);
        snapshot(w, 3);
        snapshot(w, 4);
    }
    query(0);
    query(1);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 4});
    say(1, (struct worker_msg){.type = WORKER_MSG_RESTORE_DONE,
                               .u.restore_done = {.step = 4, .misfit = true, .why = "weight: [3] there, [4] here"}});
    ok(did->n == 0 && *slot_table_misfit(k), "a rank does not take it: who reads is heard first");
    restored(0, 4, true);
    ok(found(SLOT_TABLE_DO_CHOOSE) && !found(SLOT_TABLE_DO_CONFIRM), "then it is agreed upon once more");
    is_str(slot_table_misfit(k),
           "what was saved does not fit what rank 1 declares (step 4): weight: [3] there, [4] here",
           "with what it said");
    ok(holds(1, 4) && !*slot_table_lost(k), "nothing is wrong with its slot");
    event((struct slot_table_event){
        .type = SLOT_TABLE_EV_CHOSEN, .step = SLOT_TABLE_NO_STEP, .text = slot_table_misfit(k)});
    ok(offered(0) && offered(1) && offered(0)->u.restore_offer.step == SLOT_TABLE_NO_STEP &&
           strstr(offered(0)->u.restore_offer.text, "weight: [3] there"),
       "both are told that there is nothing, and why");
    ok(!*slot_table_misfit(k), "once");
    say(1, (struct worker_msg){.type = WORKER_MSG_RESTORE_DONE,
                               .u.restore_done = {.step = SLOT_TABLE_NO_STEP, .misfit = true, .why = "nothing"}});
    ok(!*slot_table_misfit(k), "nothing is no misfit");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2});
    for (unsigned w = 0; w < 2; w++) {
        join(w, 2);
        query(w);
    }
    ok(found(SLOT_TABLE_DO_CHOOSE) && holds(1, 4), "the next round asks again, for what is still there");
}

/* What is on disk is larger than --ckpt-mem. */
static void test_no_room_for_disk(void)
{
    open_keeper(1, 64 * MIB);
    join(0, 1);
    query(0);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 7, .on_disk = whole_on_disk});
    const struct slot_table_action a = *found(SLOT_TABLE_DO_LOAD);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_LOADED,
                                    .slot = a.slot,
                                    .gen = a.gen,
                                    .text = "two slots of 9 MiB are needed",
                                    .need_bytes = 18 * MIB});
    ok(found(SLOT_TABLE_DO_CHOOSE) != NULL, "it is agreed upon once more");
    is_str(slot_table_misfit(k), "rank 0: step 7 on disk: two slots of 9 MiB are needed",
           "and nothing older is taken for it");
}

static void next_round(unsigned workers, uint64_t number, uint64_t lineage)
{
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = number, .lineage = lineage});
    for (unsigned w = 0; w < workers; w++)
        join(w, number);
}

static bool holds_of(unsigned worker, int64_t step, uint64_t lineage)
{
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++)
        if (slot_table_slot(k, worker, i)->state == SLOT_TABLE_COMMITTED &&
            slot_table_slot(k, worker, i)->step == step && slot_table_slot(k, worker, i)->lineage == lineage)
            return true;
    return false;
}

/* Two steps of one number: what was trained before, and what is trained since all went on from an earlier one. */
static void test_lineage(void)
{
    int64_t step[4];
    uint64_t lineage[4];
    const struct slot_table_source piece = {0, 0, 0};
    struct slot_table_source from;
    open_keeper(1, 64 * MIB);
    next_round(1, 2, 0x11);
    snapshot(0, 4);
    snapshot(0, 5);
    ok(slot_table_readable(k, step, lineage, 4) == 2 && lineage[0] == 0x11 && lineage[1] == 0x11,
       "what is written in a round has its lineage");
    next_round(1, 3, 0x22);
    query(0);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 4, .lineage = 0x11});
    restored(0, 4, true);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CONFIRMED, .lineage = 0x33});
    ok(holds_of(0, 4, 0x11), "what is restored keeps the one that it was written with");
    snapshot(0, 5);
    ok(holds_of(0, 5, 0x33), "and what is trained from there has another one");
    ok(slot_table_piece(k, &piece, 4, 0x11, &from) && slot_table_piece(k, &piece, 5, 0x33, &from) &&
           !slot_table_piece(k, &piece, 5, 0x11, &from),
       "both are of the history that is trained now, and nothing else by their numbers");

    next_round(1, 4, 0x44);
    query(0);
    event(
        (struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 5, .lineage = 0x11, .on_disk = whole_on_disk});
    const struct slot_table_action *a = found(SLOT_TABLE_DO_LOAD);
    ok(a && a->step == 5, "a step of that number in memory is not the one that was chosen: it is read from disk");
}

/* A script that never goes back: what one worker has left of a round is not completed by another one's of the next. */
static void test_lineage_of_parts(void)
{
    int64_t step[4];
    uint64_t lineage[4];
    open_keeper(2, 64 * MIB);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2, .lineage = 0x11});
    for (unsigned w = 0; w < 2; w++) {
        hello_in(w, 2);
        declare_as(w, w ? "optimizer" : "model");
        opened(w, true);
    }
    snapshot(0, 5);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 3, .lineage = 0x22});
    for (unsigned w = 0; w < 2; w++) {
        hello_in(w, 3);
        declare_as(w, w ? "optimizer" : "model");
    }
    snapshot(1, 5);
    is_num(slot_table_readable(k, step, lineage, 4), 0, "step 5 of two rounds is not one that all can read");
    snapshot(0, 5);
    ok(slot_table_readable(k, step, lineage, 4) == 1 && step[0] == 5 && lineage[0] == 0x22, "step 5 of one round is");
}

/* Each of two workers has a part that the other one has not. */
static void round_unlike(uint64_t number, uint64_t lineage)
{
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = number, .lineage = lineage});
    for (unsigned w = 0; w < 2; w++) {
        hello_in(w, number);
        name_part(w, 0, w ? "optimizer" : "model");
        say(w, (struct worker_msg){.type = WORKER_MSG_DECLARE, .u.declare = {.layout_id = "l", .parts = 1}});
        if (found(SLOT_TABLE_DO_OPEN))
            opened(w, true);
    }
}

/* A script that goes back to a step and takes a snapshot of the same number: when not all have come so far, what all
 * hold is that from which they went on. */
static void test_lineage_again(void)
{
    int64_t step[4];
    uint64_t lineage[4];
    struct slot_table_source from[2];
    open_keeper(2, 64 * MIB);
    round_unlike(2, 0x11);
    snapshot(0, 5);
    snapshot(1, 5);
    round_unlike(3, 0x22);
    query(0);
    query(1);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 5, .lineage = 0x11});
    restored(0, 5, true);
    restored(1, 5, true);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CONFIRMED, .lineage = 0x33});
    snapshot(0, 5);
    ok(slot_table_readable(k, step, lineage, 4) == 1 && step[0] == 5 && lineage[0] == 0x11,
       "one rank took its step again: all can read it as it was");
    ok(slot_table_cover(k, 5, slot_table_lineage(k, 5)) == SLOT_TABLE_INCOMPLETE && slot_table_lineage(k, 5) == 0x33,
       "to be written, the other's is waited for");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = 1});
    ok(slot_table_cover(k, 5, slot_table_lineage(k, 5)) == SLOT_TABLE_COVERED && slot_table_lineage(k, 5) == 0x11 &&
           slot_table_sources(k, 5, slot_table_lineage(k, 5), from, 2) == 2 &&
           slot_table_slot(k, 0, from[0].slot)->lineage == 0x11,
       "that one has died: it is written as it was");
    hello_in(1, 3);
    name_part(1, 0, "optimizer");
    say(1, (struct worker_msg){.type = WORKER_MSG_DECLARE, .u.declare = {.layout_id = "l", .parts = 1}});
    snapshot(1, 5);
    ok(slot_table_readable(k, step, lineage, 4) == 2 && step[0] == 5 && lineage[0] == 0x33 && step[1] == 5 &&
           lineage[1] == 0x11,
       "all have taken it again: both can be read, the later one is said first");
    ok(slot_table_lineage(k, 5) == 0x33, "and that one is written");
}

/* What a worker has left of a round before does not say that it has passed this step in the present one. */
static void test_lineage_ahead(void)
{
    open_keeper(2, 64 * MIB);
    round_unlike(2, 0x11);
    for (unsigned w = 0; w < 2; w++) {
        snapshot(w, 8);
        snapshot(w, 9);
    }
    round_unlike(3, 0x22);
    snapshot(0, 5);
    is_num(slot_table_cover(k, 5, slot_table_lineage(k, 5)), SLOT_TABLE_INCOMPLETE,
           "a step that one has come to, and the other may yet");
    snapshot(1, 5);
    is_num(slot_table_cover(k, 5, slot_table_lineage(k, 5)), SLOT_TABLE_COVERED, "now it has");
}

/* Emergency checkpoint of that script: what is live does not go with what is left of a round before. */
static void test_lineage_of_captures(void)
{
    const enum slot_table_live live[] = {SLOT_TABLE_LIVE_IS};
    bool copies[1] = {false};
    unsigned lacks;
    open_keeper(1, 64 * MIB);
    next_round(1, 2, 0x11);
    snapshot(0, 5);
    next_round(1, 3, 0x22);
    ok(slot_table_live_cover(k, 5, live, false, copies, &lacks) == SLOT_TABLE_COVERED && copies[0],
       "a worker that stands at step 5 is copied, whatever it held of an earlier step 5");
    snapshot(0, 5);
    ok(slot_table_live_cover(k, 5, live, false, copies, &lacks) == SLOT_TABLE_COVERED && !copies[0],
       "and is not when it has taken that one");
}

int main(void)
{
    test_going_back();
    test_elsewhere();
    test_late();
    test_asked_again();
    test_named_again();
    test_from_disk();
    test_misfit();
    test_no_room_for_disk();
    test_lineage();
    test_lineage_of_parts();
    test_lineage_of_captures();
    test_lineage_again();
    test_lineage_ahead();
    slot_table_free(k);
    return done();
}
