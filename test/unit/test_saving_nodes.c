/* What nodes hold of a step, and that it is one: histories, layouts, a directory for each node, and lists that are told
 * in pieces. */
#include "unit/saving_stage.h"

/* Two histories: one node has gone back, the other one has still to hear of it. */
static void test_lineages(void)
{
    struct msg m;
    begin(CKPT_COMMIT_SHARED, 2);
    declares(0);
    declares(1);
    says(0, .steps = "12@2:0-1 11@1:0-1", .least = 12, .wishes = "12@2");
    says(1, .steps = "13@1:0-1 12@1:0-1", .least = 13);
    is_num(ckpt_commit_writing(s), -1, "step 12 of two histories is nothing to be written");
    is_num(ckpt_commit_covered(s), -1, "and not covered");
    is_str(word(0), "", "but who is behind may come to have it: nobody is told that it will not be");
    says(1, .steps = "11@1:0-1", .least = 11);
    is_num(ckpt_commit_writing(s), -1, "it has heard, and has not come so far");
    is_num(ckpt_commit_covered(s), 11, "what they went on from is of one history");
    says(1, .steps = "12@2:0-1 11@1:0-1", .least = 12);
    ok(ckpt_commit_word(s, 1, 7, 0, &m) && m.type == MSG_CKPT_WRITE && m.u.ckpt_write.lineage == 2,
       "now it is written, and the order says of which history");

    begin(CKPT_COMMIT_LOCAL, 2);
    declares(0);
    declares(1);
    says(0, .steps = "12@2:0-1", .least = 12, .wishes = "12@2");
    says(1, .steps = "12@1:0-1", .least = 12);
    is_num(ckpt_commit_writing(s), -1, "each node its own: the same");
    says(1, .steps = "12@2:0-1", .least = 12);
    is_num(ckpt_commit_writing(s), 12, "and the same when they are at one");

    begin(CKPT_COMMIT_SHARED, 2);
    declares(0);
    declares(1);
    says(0, .steps = "12@2:0-1", .least = 12, .wishes = "12@2");
    says(1, .steps = "12@x:0-1", .least = 12, .quiet = true);
    is_num(ckpt_commit_writing(s), -1, "what is no lineage is no step");
}

static void test_layouts(void)
{
    begin(CKPT_COMMIT_SHARED, 2);
    declares(0);
    declares(1);
    struct msg m = {.type = MSG_CKPT_STATE,
                    .u.ckpt_state = {.number = ROUND,
                                     .coord = COORD,
                                     .list = 1,
                                     .parts = 2,
                                     .layout = "other",
                                     .steps = "12:0-1",
                                     .least = 12,
                                     .wishes = "12",
                                     .done = -1,
                                     .text = ""}};
    says(0, .steps = "12:0-1", .least = 12);
    ckpt_commit_take(s, 1, 1, &m, now);
    step_on();
    has(last()->text, "a has declared layout world, b layout other", "two layouts");
    m.u.ckpt_state.layout = "all";
    for (unsigned turn = 0; turn < 2; turn++) {
        begin(CKPT_COMMIT_SHARED, 2);
        declares(0);
        declares(1);
        if (turn)
            says(0, .steps = "12:0-1", .least = 12, .want = 12);
        ckpt_commit_take(s, 1, 1, &m, now);
        step_on();
        if (!turn)
            says(0, .steps = "12:0-1", .least = 12, .want = 12);
        is_num(ckpt_commit_writing(s), 12, "one node has only what is alike everywhere: that goes with any layout");
    }
}

static void test_local(void)
{
    begin(CKPT_COMMIT_LOCAL, 2);
    declares(0);
    declares(1);
    says(0, .steps = "12:0-1", .least = 12, .want = 12);
    says(1, .steps = "12:0-1", .least = 12, .want = 12);
    is_str(word(0), "WRITE 12: 0=1 1=2", "a directory for each node: each writes all that it needs");
    is_str(word(1), "WRITE 12: 0=1 1=2", "the other one, too");
    for (unsigned k = 0; k < 2; k++) {
        file(k, 1, 0);
        file(k, 1, 1);
        says(k, .steps = "12:0-1", .least = 12, .order = 1, .at = CKPT_COMMIT_AT_WRITTEN);
    }
    is_str(word(0), "PUBLISH 12 of 0", "each publishes its own");
    is_str(word(1), "PUBLISH 12 of 0", "when all have written");
    says(0, .steps = "12:0-1", .order = 1, .at = CKPT_COMMIT_AT_PUBLISHED);
    is_num(ckpt_commit_on_disk(s), -1, "it is on disk when all have");
    says(1, .steps = "12:0-1", .order = 1, .at = CKPT_COMMIT_AT_PUBLISHED);
    is_num(ckpt_commit_on_disk(s), 12, "now");

    begin(CKPT_COMMIT_LOCAL, 2);
    declares(0);
    declares(1);
    says(1, .steps = "11:0-1", .least = 11);
    says(0, .steps = "12:0-1", .least = 12, .want = 12);
    ckpt_commit_lost(s, 1);
    live = 1;
    step_on();
    has(last()->text, "1 of 2 nodes are gone, and with --ckpt-store=local each has to write its own", "a node is gone");
}

/* Files are told in batches: what is on its way to a node is bounded. */
static void test_batches(void)
{
    static char sums[CKPT_COMMIT_SUMS_TEXT + 1];
    struct msg m, out;
    memset(sums, '0', 100000);
    begin(CKPT_COMMIT_SHARED, 1);
    for (unsigned i = 0; i < 5; i++) {
        char shard[8];
        snprintf(shard, sizeof shard, "%u", i);
        part(0, i, "m", shard);
    }
    says(0, .parts = 5, .steps = "12:0-4", .least = 12, .want = 12);
    says(0, .parts = 5, .steps = "12:0-4", .order = 1, .at = CKPT_COMMIT_AT_WRITING);
    for (unsigned i = 0; i < 5; i++) {
        m = (struct msg){.type = MSG_CKPT_FILE,
                         .u.ckpt_file = {.giver = 0x99, .order = 1, .index = i, .name = "f", .size = 1, .sums = sums}};
        ckpt_commit_take(s, 0, 0, &m, now);
    }
    says(0, .parts = 5, .steps = "12:0-4", .order = 1, .at = CKPT_COMMIT_AT_WRITTEN);
    is_str(word(0), "FILE m 0; FILE m 1 .", "so many");
    is_str(word(0), "", "and no more before it answers");
    says(0, .parts = 5, .steps = "12:0-4", .order = 1, .at = CKPT_COMMIT_AT_WRITTEN, .got = 2);
    is_str(word(0), "FILE m 2; FILE m 3 .", "the next ones");
    ok(ckpt_commit_word(s, 0, 8, 0, &out), "on another connection they are said again");
    says(0, .parts = 5, .steps = "12:0-4", .order = 1, .at = CKPT_COMMIT_AT_WRITTEN, .got = 4);
    is_str(word(0), "FILE m 4; PUBLISH 12 of 5", "and the last one");
}

int main(void)
{
    test_lineages();
    test_layouts();
    test_local();
    test_batches();
    ckpt_commit_free(s);
    return done();
}
