/* The keeper of snapshots: what ranks that share a part have of their own, which is wanted, and done without. */
#include "unit/keeper_stage.h"

static const uint64_t whole_on_disk[1]; /* no rank's own piece is missing there */

/* Two ranks of a replica: each with a piece of its own. */
static void join_with_own(unsigned workers, uint64_t round, uint64_t lineage)
{
    static const char *const ranks[] = {"rank0", "rank1", "rank2"};
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = round, .lineage = lineage});
    for (unsigned w = 0; w < workers; w++) {
        hello_in(w, round);
        name_part(w, 0, "model");
        name_piece(w, 1, "model@rank", ranks[w], true);
        declared(w, 2);
        if (found(SLOT_TABLE_DO_OPEN))
            opened(w, true);
    }
}

static void snapshot_of(unsigned worker, int64_t step, const char *images)
{
    ask(worker, step, images);
    for (const struct slot_table_action *a; (a = found(SLOT_TABLE_DO_GROW)) != NULL;)
        grown(a);
    for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++)
        if (slot_table_slot(k, worker, s)->state == SLOT_TABLE_WRITING) {
            commit(worker, (int)s, step);
            summed(worker, true);
            return;
        }
}

static struct slot_table_event loaded_of(const struct slot_table_action *a, const uint64_t bytes[2])
{
    static const uint64_t header_bytes[2] = {4096, 64};
    return (struct slot_table_event){.type = SLOT_TABLE_EV_LOADED,
                                     .worker = a->worker,
                                     .slot = a->slot,
                                     .gen = a->gen,
                                     .ok = true,
                                     .capacity = MIB,
                                     .file_bytes = MIB,
                                     .part_bytes = bytes,
                                     .part_header_bytes = header_bytes};
}

/* A rank's own piece of a replica is wanted, and never needed. */
static void test_own(void)
{
    int64_t step[4];
    uint64_t lineage[4];
    struct slot_table_source from[4];
    open_keeper(2, 64 * MIB);
    join_with_own(2, 2, 0x11);
    snapshot_of(0, 5, "4096/8192 64/100");
    is_num(slot_table_cover(k, 5, slot_table_lineage(k, 5)), SLOT_TABLE_INCOMPLETE,
           "one of two replicas has a step: the other's own piece may yet come");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = 1});
    is_num(slot_table_cover(k, 5, slot_table_lineage(k, 5)), SLOT_TABLE_COVERED,
           "and is done without when its worker has gone");
    hello_in(1, 2);
    name_part(1, 0, "model");
    name_piece(1, 1, "model@rank", "rank1", true);
    declared(1, 2);
    ok(slot_table_sources(k, 5, slot_table_lineage(k, 5), from, 4) == 2 && from[1].worker == 0 && from[1].part == 1,
       "to be written there is the replica, and its own piece");
    ok(slot_table_readable(k, step, lineage, 4) == 1 && step[0] == 5, "and both can read it");
    is_num(slot_table_pieces(k, false, from, 4), 3, "three pieces are declared");
    ok(slot_table_piece(k, &from[1], 5, 0x11, &from[3]) && !slot_table_piece(k, &from[2], 5, 0x11, &from[3]),
       "one rank's own is held, the other's is not");
    snapshot_of(1, 5, "4096/8192 0/0");
    is_num(slot_table_sources(k, 5, slot_table_lineage(k, 5), from, 4), 2, "a piece of no bytes is nothing to write");
    from[2] = (struct slot_table_source){1, 0, 1};
    ok(!slot_table_piece(k, &from[2], 5, 0x11, &from[3]), "nor is it held");
    query(0);
    query(1);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 5, .lineage = 0x11});
    ok(did->n == 2 && did->v[0].source == 0 && did->v[1].source == 1, "each is offered its own slot");
    is_str(offered(0)->u.restore_offer.images, "4096/8192 64/100", "with what is in it");
    is_str(offered(1)->u.restore_offer.images, "4096/8192 0/0", "for each");
    is_num(offered(0)->u.restore_offer.slot_bytes, 3 * 4096, "up to its last page");
    restored(0, 5, true);
    restored(1, 5, false);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 5, .lineage = 0x11});
    ok(did->n == 2 && did->v[1].source == 0,
       "one whose own slot is broken reads the other one's, its own piece and all");
    is_str(offered(1)->u.restore_offer.images, "4096/8192 64/100", "which has its own sizes");
}

static void test_own_live(void)
{
    const enum slot_table_live live[] = {SLOT_TABLE_LIVE_NOT, SLOT_TABLE_LIVE_IS};
    bool copies[2];
    unsigned lacks;
    open_keeper(2, 64 * MIB);
    join_with_own(2, 2, 0x11);
    ok(slot_table_live_cover(k, 5, live, false, copies, &lacks) == SLOT_TABLE_COVERED && !copies[0] && copies[1],
       "a live replica stands in for a dead one, whatever each has of its own");
    name_part(0, 0, "other");
    join_with_own(2, 3, 0x22);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 4, .lineage = 0x33});
    hello_in(0, 4);
    name_part(0, 0, "model");
    name_piece(0, 1, "model@rank", "rank0", true);
    name_piece(0, 2, "loader@rank", "rank0", true);
    declared(0, 3);
    opened(0, true);
    ok(slot_table_live_cover(k, 5, live, false, copies, &lacks) == SLOT_TABLE_HOPELESS && lacks == 0,
       "but not for one that calls its pieces differently");
    ok(slot_table_live_cover(k, 5, live, true, copies, &lacks) == SLOT_TABLE_COVERED,
       "unless there is a disk for what is shared");
}

/* Ranks of a node that has others now: what they hold is theirs still, by another name. */
static void test_own_renamed(void)
{
    struct slot_table_source from[4];
    open_keeper(1, 64 * MIB);
    join_with_own(1, 2, 0x11);
    snapshot_of(0, 5, "4096/8192 64/100");
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 3, .rank_base = 7, .lineage = 0x22});
    say(0,
        (struct worker_msg){.type = WORKER_MSG_HELLO, .u.hello = {.proto = WORKER_MSG_PROTO, .rank = 7, .round = 3}});
    name_part(0, 0, "model");
    name_piece(0, 1, "model@rank", "rank7", true);
    declared(0, 2);
    ok(answered(WORKER_MSG_GRANT) && !found(SLOT_TABLE_DO_OPEN) && holds(0, 5),
       "the same parts, of another rank: the same slots");
    ok(slot_table_pieces(k, false, from, 4) == 2 && strcmp(slot_table_part(k, 0, 1)->shard_id, "rank7") == 0,
       "and what comes next is that rank's");
}

/* A worker that has another rank now, with its former one's piece in memory: its own is on disk, or is not. */
static void move_to(unsigned rank, const char *own, uint64_t round)
{
    event((struct slot_table_event){
        .type = SLOT_TABLE_EV_ROUND, .number = round, .rank_base = rank, .lineage = 0x11 * round});
    say(0, (struct worker_msg){.type = WORKER_MSG_HELLO,
                               .u.hello = {.proto = WORKER_MSG_PROTO, .rank = rank, .round = round}});
    name_part(0, 0, "model");
    name_piece(0, 1, "model@rank", own, true);
    declared(0, 2);
    query(0);
}

static void test_own_moved(void)
{
    static const uint64_t there[2] = {8192, 50}, lacks_own[1] = {1};
    const struct slot_table_source piece = {0, 0, 1};
    struct slot_table_source from;
    open_keeper(1, 64 * MIB);
    join_with_own(1, 2, 0x22);
    snapshot_of(0, 4, "4096/8192 64/100");
    snapshot_of(0, 5, "4096/8192 64/100");
    move_to(7, "rank7", 3);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 5, .lineage = 0x22});
    ok(offered(0) && strcmp(offered(0)->u.restore_offer.from, "own memory") == 0,
       "a worker has another rank now: with no disk its former rank's piece will do");
    restored(0, 5, true);
    move_to(7, "rank7", 4);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 5, .lineage = 0x22, .on_disk = lacks_own});
    ok(!found(SLOT_TABLE_DO_LOAD) && offered(0), "nor is it read from a disk that has no piece of that rank");
    restored(0, 5, true);

    move_to(7, "rank7", 5);
    event(
        (struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 5, .lineage = 0x22, .on_disk = whole_on_disk});
    ok(found(SLOT_TABLE_DO_LOAD) && !offered(0), "one that has it is read, though the step is held");
    struct slot_table_action a = *found(SLOT_TABLE_DO_LOAD);
    ok(holds(0, 5), "into the other slot");
    event((struct slot_table_event){
        .type = SLOT_TABLE_EV_LOADED, .worker = 0, .slot = a.slot, .gen = a.gen, .text = "differs"});
    ok(offered(0) && strcmp(offered(0)->u.restore_offer.from, "own memory") == 0,
       "where that fails there is what is held");
    restored(0, 5, true);

    move_to(7, "rank7", 6);
    event(
        (struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 5, .lineage = 0x22, .on_disk = whole_on_disk});
    a = *found(SLOT_TABLE_DO_LOAD);
    event(loaded_of(&a, there));
    is_str(offered(0)->u.restore_offer.images, "4096/8192 64/50", "else it is offered its own");
    is_str(offered(0)->u.restore_offer.from, "disk", "from there");
    is_num(slot_table_reads(k).disk, 1, "and so it is told");
    restored(0, 5, true);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CONFIRMED, .lineage = 0x77});
    ok(slot_table_piece(k, &piece, 5, 0x22, &from) && from.slot == a.slot && holds(0, 5),
       "its own is what is held of the step from then on");
    is_num(slot_table_slot(k, 0, !a.slot)->state, SLOT_TABLE_FREE, "and its former rank's is not");

    move_to(7, "rank7", 7);
    event(
        (struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 5, .lineage = 0x22, .on_disk = whole_on_disk});
    ok(!found(SLOT_TABLE_DO_LOAD) && offered(0), "it stays that rank: memory will do");
    restored(0, 5, true);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CONFIRMED, .lineage = 0x88});
    snapshot_of(0, 6, "4096/8192 64/100");
    move_to(7, "rank7", 8);
    event(
        (struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 6, .lineage = 0x88, .on_disk = whole_on_disk});
    ok(!found(SLOT_TABLE_DO_LOAD) && offered(0), "as it does for what it has written as such");
}

/* The step is one that not all nodes held, as with an emergency checkpoint: what they do hold stays. */
static void test_own_moved_beyond(void)
{
    static const uint64_t there[2] = {8192, 50};
    for (unsigned is_good = 0; is_good < 2; is_good++) {
        open_with(&(struct slot_table_conf){.workers = 1, .budget_bytes = 64 * MIB, .several = true});
        join_with_own(1, 2, 0x22);
        snapshot_of(0, 4, "4096/8192 64/100");
        event((struct slot_table_event){.type = SLOT_TABLE_EV_COMMON, .step = 4, .lineage = 0x22});
        snapshot_of(0, 5, "4096/8192 64/100");
        move_to(7, "rank7", 3);
        event((struct slot_table_event){
            .type = SLOT_TABLE_EV_CHOSEN, .step = 5, .lineage = 0x22, .on_disk = whole_on_disk});
        ok(found(SLOT_TABLE_DO_LOAD) && holds(0, 4) && !holds(0, 5), "its own is read in place of its former rank's");
        const struct slot_table_action a = *found(SLOT_TABLE_DO_LOAD);
        struct slot_table_event loaded = loaded_of(&a, there);
        loaded.ok = is_good;
        event(loaded);
        if (is_good)
            is_str(offered(0)->u.restore_offer.from, "disk", "and offered");
        else
            ok(found(SLOT_TABLE_DO_CHOOSE) && *slot_table_lost(k), "where that fails, all choose anew, and it is said");
    }
}

/* Ranks that share all, and have nothing of their own: whichever they are. */
static void test_moved_alike(void)
{
    open_keeper(1, 64 * MIB);
    join(0, 1);
    snapshot(0, 5);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 2, .rank_base = 7});
    say(0,
        (struct worker_msg){.type = WORKER_MSG_HELLO, .u.hello = {.proto = WORKER_MSG_PROTO, .rank = 7, .round = 2}});
    declare_as(0, "model");
    query(0);
    event((struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 5, .on_disk = whole_on_disk});
    ok(!found(SLOT_TABLE_DO_LOAD) && offered(0), "without pieces of their own ranks read nothing that is held");
}

static void test_own_from_disk(void)
{
    static const uint64_t first[2] = {8192, 100}, second[2] = {8192, 0};
    open_keeper(3, 64 * MIB);
    join_with_own(3, 2, 0x11);
    snapshot_of(2, 7, "4096/8192 64/100");
    for (unsigned w = 0; w < 3; w++)
        query(w);
    event(
        (struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 7, .lineage = 0x11, .on_disk = whole_on_disk});
    ok(did->n == 2 && did->v[0].type == SLOT_TABLE_DO_LOAD && did->v[1].type == SLOT_TABLE_DO_LOAD &&
           did->v[0].worker == 0 && did->v[1].worker == 1,
       "each rank that has a piece of its own, and lacks it, reads its own from disk");
    const struct slot_table_action a = did->v[0], b = did->v[1];
    event(loaded_of(&a, first));
    is_num(did->n, 0, "all wait for the last one");
    struct slot_table_event bad = {
        .type = SLOT_TABLE_EV_LOADED, .worker = 1, .slot = b.slot, .gen = b.gen, .text = "differs"};
    event(bad);
    ok(did->n == 3 && did->v[0].source == 0 && did->v[1].source == 2 && did->v[2].source == 2,
       "who cannot takes another one's, which will do");
    is_str(offered(0)->u.restore_offer.from, "disk", "one from disk");
    is_str(offered(1)->u.restore_offer.from, "memory of another rank of this node", "one from another rank");
    is_str(offered(2)->u.restore_offer.from, "own memory", "one its own");

    open_keeper(1, 64 * MIB);
    join_with_own(1, 2, 0x11);
    query(0);
    event(
        (struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN, .step = 7, .lineage = 0x11, .on_disk = whole_on_disk});
    const struct slot_table_action c = *found(SLOT_TABLE_DO_LOAD);
    event(loaded_of(&c, second));
    is_num(slot_table_slot(k, 0, c.slot)->capacity, MIB, "the slot is as large as the load has made it");
    is_num(offered(0)->u.restore_offer.slot_bytes, 8192, "and a piece that nobody has takes none of it");
}

int main(void)
{
    test_own();
    test_own_live();
    test_own_renamed();
    test_own_moved();
    test_own_moved_beyond();
    test_moved_alike();
    test_own_from_disk();
    slot_table_free(k);
    return done();
}
