/* Which step goes to disk: the newest that all nodes together hold, against its definition for every stock of up to
 * four nodes and three steps; who writes what; whoever fails, is lost or says nothing; a second coordinator. */
#include "unit/saving_stage.h"
#include "coord/emergency_ckpt.h"

/* --- every stock --- */

static const char *steps_text(unsigned code, unsigned bits, char to[64])
{
    size_t n = 0;
    to[0] = 0;
    for (unsigned step = 3; step-- > 0;) {
        unsigned has = code >> step * bits & ((1u << bits) - 1);
        if (has)
            n += (size_t)snprintf(to + n, 64 - n, "%s%u:%s", n ? " " : "", step + 1,
                                  bits == 1 || has == 3 ? "0-1"
                                  : has == 1            ? "0"
                                                        : "1");
    }
    return to;
}

/* Each node holds any of three steps (bits 1), or of each of them any of its two parts (bits 2); any may be lost. */
static void every_stock(unsigned nodes, unsigned bits, unsigned long *cases, unsigned long *wrong)
{
    char text[64];
    unsigned per = 3 * bits;
    for (unsigned code = 0; code < 1u << nodes * per; code++)
        for (unsigned lost = 0; lost < (bits == 1 ? 1u << nodes : 1u); lost++, ++*cases) {
            begin(CKPT_COMMIT_SHARED, nodes);
            for (unsigned k = 0; k < nodes; k++) {
                declares(k);
                says(k, .steps = steps_text(code >> k * per & ((1u << per) - 1), bits, text), .quiet = true);
            }
            for (unsigned k = 0; k < nodes; k++)
                if (lost >> k & 1) {
                    ckpt_commit_lost(s, k);
                    live--;
                }
            step_on();
            int64_t want = -1;
            for (unsigned step = 0; step < 3; step++) {
                bool own = true, common = false;
                for (unsigned k = 0; k < nodes; k++) {
                    unsigned has = code >> (k * per + step * bits) & ((1u << bits) - 1);
                    has = lost >> k & 1 ? 0 : bits == 1 ? has * 3 : has;
                    own = own && has & 1;
                    common = common || has & 2;
                }
                want = own && common ? (int64_t)step + 1 : want;
            }
            *wrong += ckpt_commit_covered(s) != want;
            ckpt_commit_settle(s, true, EL_SEC(25), now);
            step_on();
            *wrong += ckpt_commit_writing(s) != want || ckpt_commit_is_settled(s) != (want < 0);
        }
}

static void test_every_stock(void)
{
    unsigned long cases = 0, wrong = 0;
    for (unsigned nodes = 1; nodes <= 4; nodes++)
        every_stock(nodes, 1, &cases, &wrong);
    for (unsigned nodes = 1; nodes <= 3; nodes++)
        every_stock(nodes, 2, &cases, &wrong);
    is_num((long)wrong, 0, "the newest step that covers every shard");
    ok(cases > 300000, "of every stock");
}

/* --- a life --- */

/* Order k is carried out by both nodes to its end; both say what they still hold, and want. */
static void write_all(uint64_t k, const char *wishes)
{
    for (unsigned node = 0; node < 2; node++)
        for (unsigned i = 0; i < 2; i++)
            file(node, k, i);
    says(0, .steps = "14:0-1 12:0-1", .least = 14, .wishes = wishes, .order = k, .at = CKPT_COMMIT_AT_WRITTEN);
    says(1, .steps = "14:0-1 12:0-1", .least = 14, .wishes = wishes, .order = k, .at = CKPT_COMMIT_AT_WRITTEN);
    says(0, .steps = "14:0-1 12:0-1", .least = 14, .wishes = wishes, .order = k, .at = CKPT_COMMIT_AT_PUBLISHED,
         .got = 3);
}

static void two_hold(const char *steps, int64_t want)
{
    begin(CKPT_COMMIT_SHARED, 2);
    declares(0);
    declares(1);
    says(0, .steps = steps, .least = 12, .want = want);
    says(1, .steps = steps, .least = 12, .want = want);
}

static void test_life(void)
{
    begin(CKPT_COMMIT_SHARED, 2);
    declares(0);
    says(0, .steps = "12:0-1", .least = 12, .want = 12);
    is_str(word(0), "", "of one node it is not known what it holds: nothing is ordered");
    declares(1);
    says(1, .steps = "11:0-1", .least = 11);
    is_str(word(0), "", "one has not come so far");
    says(1, .steps = "12:0-1 11:0-1", .least = 12, .want = 12);
    is_num(ckpt_commit_writing(s), 12, "all of it is held: it is written");
    is_str(word(0), "WRITE 12: 1=1 0=2", "each its own, and one of them what both have");
    is_str(word(1), "WRITE 12: 0=3", "the other one");
    is_str(word(0), "WRITE 12: 1=1 0=2", "said again, for it may be lost");
    says(0, .steps = "12:0-1", .least = 12, .order = 1, .at = CKPT_COMMIT_AT_WRITING);
    is_str(word(0), "", "until it says that it knows");
    says(1, .steps = "12:0-1", .least = 12, .order = 1, .at = CKPT_COMMIT_AT_WRITING);
    file(0, 1, 0);
    file(0, 1, 1);
    says(0, .steps = "12:0-1", .least = 12, .order = 1, .at = CKPT_COMMIT_AT_WRITTEN);
    is_str(word(0), "", "the other one still writes");
    file(1, 1, 0);
    file(1, 1, 0);
    says(1, .steps = "12:0-1", .least = 12, .order = 1, .at = CKPT_COMMIT_AT_WRITTEN);
    is_str(word(0), "FILE common all; FILE model r0; FILE model r1; PUBLISH 12 of 3", "one makes it a checkpoint");
    is_str(word(0), "", "told once on a connection");
    is_str(word(1), "", "the other one waits");
    says(0, .steps = "12:0-1", .least = 12, .order = 1, .at = CKPT_COMMIT_AT_PUBLISHING, .got = 3);
    says(0, .steps = "13:0-1", .least = 13, .order = 1, .at = CKPT_COMMIT_AT_PUBLISHED, .got = 3);
    is_num(ckpt_commit_on_disk(s), 12, "it is on disk");
    ok(last()->good && last()->bytes == 21, "with so many bytes");
    is_str(word(0), "OVER 12 good", "both hear of it");
    is_str(word(1), "OVER 12 good", "the other one, too");
    says(0, .steps = "13:0-1", .least = 13);
    is_str(word(0), "", "and that is that");
}

static void test_wants(void)
{
    begin(CKPT_COMMIT_SHARED, 2);
    declares(0);
    declares(1);
    says(0, .steps = "12:0-1", .least = 12, .want = 12);
    says(1, .steps = "13:0-1 11:0-1", .least = 13);
    is_str(word(0), "OVER 12 no node that is left holds part \"model\" of it (shard \"r1\")",
           "a rank has left it out: whoever holds it is told at once");
    says(0, .steps = "13:0-1 12:0-1", .least = 13, .want = 13);
    is_num(ckpt_commit_writing(s), 13, "the next one is another matter");

    two_hold("12:0-1", 12);
    says(0, .steps = "13:0-1 12:0-1", .least = 13, .want = 13, .order = 1, .at = CKPT_COMMIT_AT_WRITING);
    is_num(ckpt_commit_writing(s), 12, "a newer wish waits for the older one");
    says(1, .steps = "13:0-1 12:0-1", .least = 13, .want = 13, .order = 1, .at = CKPT_COMMIT_AT_FAILED,
         .text = "no space");
    is_num(ckpt_commit_writing(s), 13, "which fails: now it is the newer one's turn");
    ok(!last()->good, "it is not on disk");
    has(last()->text, "b: no space", "why it has failed");

    begin(CKPT_COMMIT_SHARED, 2);
    declares(0);
    declares(1);
    says(0, .steps = "12:0-1", .least = 12, .want = 12);
    says(1, .steps = "");
    is_num(ckpt_commit_deadline(s) == CKPT_COMMIT_WORD, 1, "it waits");
    is_num(ckpt_commit_late(s)->serial, 0, "and nothing is said yet");
    now = CKPT_COMMIT_WORD;
    step_on();
    is_num(ckpt_commit_late(s)->serial, 1, "it is said once");
    is_num(ckpt_commit_late(s)->step, 12, "of which step");
    is_str(ckpt_commit_late(s)->text, "no node holds part \"model\" of it yet (shard \"r1\", of b)",
           "and for whom it waits");
    is_num(ckpt_commit_deadline(s) == CKPT_COMMIT_STALL, 1, "it is not waited for for ever");
    now = CKPT_COMMIT_STALL;
    step_on();
    has(word(0),
        "OVER 12 not every rank has committed it within 600 s: no node holds part \"model\" of it yet (shard \"r1\", "
        "of b)",
        "and then it is said, with what is missing");
}

/* Several steps are wanted at once: each is written, or it is said why not. */
static void test_queue(void)
{
    begin(CKPT_COMMIT_SHARED, 2);
    declares(0);
    declares(1);
    says(0, .steps = "14:0-1 13:0-1", .least = 14, .wishes = "13 14");
    is_num(ckpt_commit_writing(s), -1, "two steps are wanted, and one node has neither");
    is_str(word(0), "", "both are waited for");
    says(1, .steps = "14:0-1 13:0-1", .least = 14, .wishes = "13 14");
    is_num(ckpt_commit_writing(s), 13, "the older one comes first");
    write_all(1, "13 14");
    ok(last()->good && last()->step == 13, "it is on disk");
    says(1, .steps = "14:0-1 13:0-1", .least = 14, .wishes = "13 14");
    is_str(word(1), "OVER 13 good", "which is said");
    says(0, .steps = "14:0-1 13:0-1", .least = 14, .wishes = "13 14");
    is_num(ckpt_commit_writing(s), 14, "and the newer one is written");
    is_str(word(0), "OVER 13 good", "who still wants the older one hears that it is there");
    says(0, .steps = "14:0-1", .least = 14, .wishes = "14");
    is_str(word(0), "WRITE 14: 1=1 0=2", "and then has its order");
    says(0, .steps = "14:0-1", .least = 14, .wishes = "14", .order = 2, .at = CKPT_COMMIT_AT_FAILED,
         .text = "no space");
    says(0, .steps = "14:0-1", .least = 14, .wishes = "14");
    has(word(0), "OVER 14 a: no space", "that one fails");
    says(0, .steps = "14:0-1", .least = 14);
    is_num(ckpt_commit_on_disk(s), 13, "and the older one is the newest on disk");

    begin(CKPT_COMMIT_SHARED, 2);
    declares(0);
    declares(1);
    says(0, .steps = "13:0-1 12:0-1", .least = 13, .wishes = "12 13");
    says(1, .steps = "13:0-1 11:0-1", .least = 13, .wishes = "13");
    is_num(ckpt_commit_writing(s), 13, "a node has left the older one out, so that the newer one is written at once");
    ok(!ckpt_commit_result(s, 1)->good && ckpt_commit_result(s, 1)->step == 12,
       "and it is said that the other one is not");
    ok(!ckpt_commit_result(s, 0) && !ckpt_commit_result(s, 2), "that is all that was said");

    begin(CKPT_COMMIT_SHARED, 1);
    declares(0);
    says(0, .steps = "11:0-1", .least = 11, .wishes = "12 13 14");
    ckpt_commit_give_up(s, now, "the job has ended");
    ok(ckpt_commit_results(s) == 3, "a job ends: it is said of each that it is not on disk");
    is_str(word(0), "OVER 12 the job has ended", "and why");

    /* More are wanted than there is room for. */
    unsigned denied = 0, taken = 0;
    begin(CKPT_COMMIT_SHARED, 8);
    for (unsigned k = 0; k < 8; k++) {
        declares(k);
        says(k, .steps = "", .wishes = "");
    }
    for (int64_t first = 100; first < 1000; first += 8) {
        char text[80];
        size_t n = 0;
        for (int64_t step = first; step < first + 8; step++)
            n += (size_t)snprintf(text + n, sizeof text - n, " %lld", (long long)step);
        says((unsigned)(first / 8 % 8), .steps = "", .wishes = text);
        taken += 8;
    }
    ckpt_commit_give_up(s, now, "the job has ended");
    for (uint64_t i = 1; i <= ckpt_commit_results(s); i++)
        denied += ckpt_commit_result(s, i) && !ckpt_commit_result(s, i)->good;
    ok(denied == 64 && taken > 800, "and no more than so many");
}

/* A part that is a rank's own: it is written where it is held, and decides nothing. */
static void test_own(void)
{
    begin(CKPT_COMMIT_SHARED, 2);
    for (unsigned k = 0; k < 2; k++) {
        part(k, 0, "m", "all");
        part_of(k, 1, "m@rank", k ? "rank1" : "rank0", true);
    }
    says(0, .steps = "12:0-1", .least = 12, .want = 12);
    says(1, .steps = "11:0-1", .least = 11);
    is_num(ckpt_commit_writing(s), CKPT_COMMIT_NO_STEP,
           "what the other rank has of its own may yet come: it is waited for");
    says(1, .steps = "12:0", .least = 12, .want = 12);
    is_num(ckpt_commit_writing(s), 12, "one rank has nothing of its own: the step is as good without it");
    is_str(word(0), "WRITE 12: 1=2", "who holds its own part writes it");
    is_str(word(1), "WRITE 12: 0=1", "the other one what both have");
    is_num(ckpt_commit_live_level(s, 12), EMERGENCY_CKPT_HAS, "for an emergency checkpoint, too");
    says(1, .steps = "11:0-1", .least = 11);
    says(0, .steps = "", .least = 12);
    is_num(ckpt_commit_covered(s), 11, "a node that has nothing of it");
    is_num(ckpt_commit_live_level(s, 11), EMERGENCY_CKPT_HAS, "its part is held by the other one");
    is_num(ckpt_commit_live_level(s, 12), EMERGENCY_CKPT_NO, "an older step is not there any more");

    begin(CKPT_COMMIT_LOCAL, 2);
    for (unsigned k = 0; k < 2; k++) {
        part(k, 0, "m", "all");
        part_of(k, 1, "m@rank", k ? "rank1" : "rank0", true);
    }
    says(0, .steps = "12:0-1", .least = 12, .want = 12);
    says(1, .steps = "12:0", .least = 12, .want = 12);
    is_str(word(0), "WRITE 12: 0=1 1=2", "each node into a directory of its own: what it holds");
    is_str(word(1), "WRITE 12: 0=1", "and no more");
    is_num(ckpt_commit_live_level(s, 12), EMERGENCY_CKPT_HAS, "for an emergency checkpoint, too");

    begin(CKPT_COMMIT_SHARED, 2);
    part_of(0, 0, "m", "all", true);
    part_of(1, 0, "m", "all", false);
    says(0, .parts = 1, .steps = "12:0", .least = 12, .want = 12);
    says(1, .parts = 1, .steps = "", .quiet = true);
    ckpt_commit_lost(s, 0);
    live = 1;
    step_on();
    is_num(ckpt_commit_covered(s), -1, "what one node needs is needed, whatever others say of it");
}

/* --- whoever fails --- */

static void test_failures(void)
{
    /* What both have is the other one's when its writer fails. */
    begin(CKPT_COMMIT_SHARED, 2);
    for (unsigned k = 0; k < 2; k++) {
        part(k, 0, "common", "all");
        says(k, .parts = 1, .steps = "12:0", .least = 12, .want = 12);
    }
    unsigned writer = *word(0) ? 0 : 1;
    is_str(word(writer), "WRITE 12: 0=1", "one writes what both have");
    says(writer, .parts = 1, .steps = "12:0", .order = 1, .at = CKPT_COMMIT_AT_FAILED, .text = "Input/output error");
    is_str(word(!writer), "WRITE 12: 0=1", "it cannot: the other one does, as another order");
    has(word(writer), "OVER -1", "the first one is told that its order is no more");
    says(!writer, .parts = 1, .steps = "12:0", .order = 2, .at = CKPT_COMMIT_AT_FAILED, .text = "no space");
    ok(!last()->good, "it is not on disk");
    has(last()->text, "Input/output error", "nobody can: it is said why");
    is_num(ckpt_commit_writing(s), -1, "and left");
    says(writer, .parts = 1, .steps = "12:0", .want = 12);
    is_num(ckpt_commit_writing(s), -1, "for good");

    /* A node is lost while it writes, and while it publishes. */
    two_hold("12:0-1", 12);
    ckpt_commit_lost(s, 1);
    live = 1;
    step_on();
    ok(!last()->good, "it is not on disk");
    has(last()->text, "b was lost; no node that is left holds part \"model\"",
        "a writer is lost, and with it its part");
    begin(CKPT_COMMIT_SHARED, 2);
    for (unsigned k = 0; k < 2; k++) {
        part(k, 0, "common", "all");
        says(k, .parts = 1, .steps = "12:0", .least = 12, .want = 12);
    }
    writer = *word(0) ? 0 : 1;
    says(writer, .parts = 1, .steps = "12:0", .order = 1, .at = CKPT_COMMIT_AT_WRITING);
    file(writer, 1, 0);
    says(writer, .parts = 1, .steps = "12:0", .order = 1, .at = CKPT_COMMIT_AT_WRITTEN);
    is_str(word(writer), "FILE common all; PUBLISH 12 of 1", "it publishes");
    ckpt_commit_lost(s, writer);
    live = 1;
    step_on();
    is_str(word(!writer), "WRITE 12: 0=1", "and is lost: the other one begins anew, in another directory");
    says(!writer, .parts = 1, .steps = "12:0", .order = 2, .at = CKPT_COMMIT_AT_WRITING);
    now += CKPT_COMMIT_STALL;
    step_on();
    has(last()->text, "no byte of it was written for 600 s", "a disk that stands still");

    two_hold("12:0-1", 12);
    says(0, .steps = "12:0-1", .order = 1, .at = CKPT_COMMIT_AT_WRITTEN);
    has(last()->text, "a has not told all of its files", "written, but what?");
}

static void test_coordinators(void)
{
    /* A node still works for another coordinator: first that ends. */
    begin(CKPT_COMMIT_SHARED, 1);
    declares(0);
    says(0, .steps = "12:0-1", .least = 12, .want = 12, .order = 4, .old = true, .at = CKPT_COMMIT_AT_WRITING);
    is_num(ckpt_commit_writing(s), 12, "this one gives an order of its own");
    is_str(word(0), "OVER -1 the order to write it is no more", "when the other's is over");
    says(0, .steps = "12:0-1", .least = 12, .want = 12);
    is_str(word(0), "WRITE 12: 1=1 0=2", "now");
    says(0, .steps = "12:0-1", .least = 12, .order = 1, .at = CKPT_COMMIT_AT_WRITING);
    file(0, 1, 0);
    file(0, 1, 1);
    says(0, .steps = "12:0-1", .least = 12, .order = 1, .at = CKPT_COMMIT_AT_WRITTEN);
    says(0, .steps = "12:0-1", .least = 12, .order = 1, .at = CKPT_COMMIT_AT_PUBLISHED, .existed = true, .got = 2);
    ok(last()->good && last()->existed, "the other one was faster: that is as good");

    /* What was said about another round does not count. */
    begin(CKPT_COMMIT_SHARED, 1);
    ckpt_commit_round(s, ROUND + 1, COORD, 1);
    declares(0);
    says(0, .steps = "12:0-1", .least = 12, .want = 12);
    is_num(ckpt_commit_writing(s), -1, "a round that is over");

    /* A new round begins while an order is carried out. */
    two_hold("12:0-1", 12);
    ckpt_commit_round(s, ROUND + 1, COORD, 2);
    step_on();
    is_num(ckpt_commit_writing(s), 12, "it goes on");
    file(0, 1, 0);
    file(0, 1, 1);
    file(1, 1, 0);
    says(0, .order = 1, .at = CKPT_COMMIT_AT_WRITTEN);
    is_str(word(0), "FILE common all; FILE model r0; FILE model r1; PUBLISH 12 of 3", "to its end");
}

/* An operator asks a node for the newest step on disk: that is the newest of all nodes. */
static void test_asks(void)
{
    begin(CKPT_COMMIT_SHARED, 2);
    declares(0);
    declares(1);
    says(0, .steps = "13:0-1 12:0-1", .least = 13, .ask = 1);
    is_str(word(0), "OVER -1 no step is in memory that all nodes together hold", "nothing is held by all");
    says(0, .steps = "13:0-1 12:0-1", .least = 13);
    is_str(word(0), "", "it has heard that");
    says(1, .steps = "12:0-1", .least = 12);
    says(0, .steps = "13:0-1 12:0-1", .least = 13, .ask = 2);
    is_num(ckpt_commit_writing(s), 12, "a node that is behind is not waited for");
    says(0, .steps = "13:0-1 12:0-1", .least = 13, .ask = 2, .order = 1, .at = CKPT_COMMIT_AT_WRITING);
    says(1, .steps = "12:0-1", .least = 12, .order = 1, .at = CKPT_COMMIT_AT_FAILED, .text = "no space");
    is_str(word(0), "OVER 12 b: no space; no node that is left holds part \"model\" of it (shard \"r1\")",
           "it fails: its order is over");
    says(0, .steps = "13:0-1 12:0-1", .least = 13, .ask = 2);
    has(word(0), "OVER 12 b: no space", "and who has asked hears why");
    says(0, .steps = "13:0-1 12:0-1", .least = 13);
    says(1, .steps = "12:0-1", .least = 12);
    is_num(ckpt_commit_writing(s), -1, "nobody tries again by itself");
    says(1, .steps = "12:0-1", .least = 12, .ask = 1);
    is_num(ckpt_commit_writing(s), 12, "unless somebody asks once more");
    write_all(2, "");
    says(1, .steps = "12:0-1", .least = 12, .ask = 1);
    is_str(word(1), "OVER 12 good", "it is on disk");
    says(1, .steps = "12:0-1", .least = 12, .ask = 2);
    is_str(word(1), "OVER 12 good", "once more: it is there");
    is_num(ckpt_commit_writing(s), -1, "and not written again");
}

/* The job goes back: what was beyond is of another history, on disk as well as on its way there. */
static void test_went_back(void)
{
    two_hold("12:0-1", 12);
    is_num(ckpt_commit_writing(s), 12, "a step is being written");
    ckpt_commit_went_back(s, 12, 0, now);
    is_num(ckpt_commit_writing(s), 12, "the job goes on from that one");
    ckpt_commit_went_back(s, 11, 0, now);
    step_on();
    is_num(ckpt_commit_writing(s), -1, "the job goes back behind it: it is not written any more");
    is_str(last()->text, "the job has gone back behind it", "which is said");

    two_hold("12:0-1", 12);
    write_all(1, "");
    is_num(ckpt_commit_on_disk(s), 12, "a step is on disk");
    ckpt_commit_went_back(s, 11, 0, now);
    is_num(ckpt_commit_on_disk(s), -1, "the job goes back behind it: what is on disk is not known");
    says(0, .steps = "11:0-1", .least = 11, .done = 12);
    is_num(ckpt_commit_on_disk(s), -1, "nor told by a node that has not heard of that");
    is_str(word(1), "OVER 12 the job has gone back behind it", "who comes late does not hear that the step is on disk");
    says(1, .steps = "11:0-1", .least = 11);
    says(0, .steps = "11:0-1", .least = 11, .want = 11);
    is_num(ckpt_commit_writing(s), 11, "not even that the step is that it goes on from");
    says(0, .steps = "11:0-1", .least = 11, .want = 13);
    says(1, .steps = "11:0-1", .least = 11, .want = 12);
    is_str(word(1), "WRITE 11: 1=1 0=3", "the new step 12 is another one: it is not answered for the old one");
    ckpt_commit_went_back(s, 11, 0, now);
    step_on();
    is_num(last()->step, 12, "the wishes are of a history that was given up, too");
    is_str(last()->text, "the job has gone back behind it", "which is said");
}

/* The last coordinator's order is over when the nodes hear of this one: they want the step again, and that counts. */
static void test_settling_of_an_older_order(void)
{
    begin(CKPT_COMMIT_SHARED, 1);
    declares(0);
    says(0, .steps = "12:0-1", .least = 12, .quiet = true, .order = 4, .old = true, .at = CKPT_COMMIT_AT_WRITTEN);
    ckpt_commit_settle(s, false, EL_NEVER, now);
    step_on();
    ok(!ckpt_commit_is_settled(s), "who speaks of an older order may want its step again");
    is_str(word(0), "OVER -1 the order to write it is no more", "when it has heard that it is over");
    says(0, .steps = "12:0-1", .least = 12, .quiet = true, .want = 12);
    is_num(ckpt_commit_writing(s), 12, "and so it is written");
    begin(CKPT_COMMIT_SHARED, 1);
    declares(0);
    says(0, .steps = "12:0-1", .least = 12, .quiet = true, .order = 4, .old = true, .at = CKPT_COMMIT_AT_WRITING);
    ckpt_commit_settle(s, false, EL_NEVER, now);
    now = CKPT_COMMIT_QUIET;
    step_on();
    ok(ckpt_commit_is_settled(s), "it is not waited for longer than for a last word");
}

static void test_settling(void)
{
    two_hold("12:0-1", 0);
    ckpt_commit_settle(s, true, EL_SEC(25), now);
    step_on();
    ok(!ckpt_commit_is_settled(s) && ckpt_commit_writing(s) < 0, "the emergency checkpoint of all is waited for");
    says(0, .steps = "13:0-1 12:0-1", .least = 13, .quiet = true);
    says(1, .steps = "12:0-1", .least = 12, .quiet = true);
    is_str(word(0), "WRITE 12 emergency: 1=1 0=2", "then the newest that all have");
    now = EL_SEC(25);
    step_on();
    ok(ckpt_commit_is_settled(s), "no longer than the limit");
    is_num(ckpt_commit_writing(s), 12, "it goes on beside");
    ckpt_commit_give_up(s, now, "the job has ended");
    ok(ckpt_commit_writing(s) < 0 && !last()->good, "unless the job ends");

    two_hold("12:0-1", 0);
    ckpt_commit_settle(s, true, EL_SEC(60), now);
    says(0, .steps = "12:0-1", .least = 12, .quiet = true);
    now = CKPT_COMMIT_QUIET;
    step_on();
    is_num(ckpt_commit_writing(s), 12, "a node says nothing more: not longer than 30 s");

    two_hold("12:0-1", 12);
    ckpt_commit_settle(s, false, EL_NEVER, now);
    says(0, .steps = "12:0-1", .least = 12, .want = 12, .quiet = true);
    says(1, .steps = "12:0-1", .least = 12, .want = 12, .quiet = true);
    ok(!ckpt_commit_is_settled(s), "a job that ends well waits for what was wanted");
    begin(CKPT_COMMIT_SHARED, 2);
    declares(0);
    says(0, .steps = "12:0-1", .least = 12, .quiet = true, .want = 12);
    says(1, .parts = -1, .quiet = true);
    ckpt_commit_settle(s, true, EL_SEC(25), now);
    step_on();
    ok(ckpt_commit_is_settled(s), "nobody will say any more what the other one held: nothing is waited for");
    is_num(ckpt_commit_writing(s), -1, "and nothing written");
}

int main(void)
{
    test_every_stock();
    test_life();
    test_wants();
    test_queue();
    test_own();
    test_failures();
    test_coordinators();
    test_went_back();
    test_asks();
    test_settling_of_an_older_order();
    test_settling();
    ckpt_commit_free(s);
    return done();
}
