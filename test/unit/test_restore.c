/* Which step all ranks go back to: the decision against its definition for every stock of up to three nodes, its life,
 * time-outs, and when nothing is what there should be. */
#include "control/limits.h"
#include "coord/restore.h"

#include <string.h>

#include "lib/tap.h"

#define ROOM 4u

static struct restore r;
static const char *const names[ROOM] = {"a", "b", "c", "d"};

static const char *name(const void *ctx, unsigned seat)
{
    (void)ctx;
    return names[seat];
}

static void begin(unsigned seats, struct restore_conf conf)
{
    restore_free(&r, NULL);
    conf.room = ROOM;
    conf.name = name;
    if (restore_init(&r, &conf, NULL) < 0)
        return;
    restore_begin(&r, seats);
}

/* What a node says: steps as bits; how far it is with what it was told. */
static enum restore_news says(unsigned seat, uint64_t attempt, unsigned steps, enum restore_at at, int64_t told,
                              el_usec now)
{
    struct restore_stock s = {.attempt = attempt, .at = at, .told = told, .newest = RESTORE_NO_STEP};
    for (int64_t k = 9; k >= 0; k--)
        if (steps & 1u << k)
            s.step[s.n++] = k;
    enum restore_news news = restore_take(&r, seat, &s, now);
    restore_check(&r);
    return news;
}

static struct restore_word word(unsigned seat)
{
    struct restore_word w;
    return restore_word(&r, seat, &w) ? w : (struct restore_word){.what = RESTORE_WHATS, .step = -2};
}

static void test_every_stock(void)
{
    unsigned long wrong = 0, cases = 0;
    for (unsigned nodes = 1; nodes <= 3; nodes++)
        for (unsigned code = 0; code < 1u << 4 * nodes; code++, cases++) {
            unsigned all = 15;
            begin(nodes, (struct restore_conf){.timeout = EL_SEC(1)});
            for (unsigned k = 0; k < nodes; k++) {
                unsigned held = code >> 4 * k & 15;
                all &= held;
                wrong += (says(k, 1, held, RESTORE_AT_STOCK, -1, 0) == RESTORE_NEWS_ALL) != (k + 1 == nodes);
            }
            int64_t want = all & 8 ? 3 : all & 4 ? 2 : all & 2 ? 1 : all & 1 ? 0 : RESTORE_NO_STEP;
            for (unsigned k = 0; k < nodes; k++)
                wrong += word(k).what != RESTORE_READ || word(k).step != want;
        }
    char what[120];
    snprintf(what, sizeof what, "the newest step that every node can read, told to all, in all %lu stocks", cases);
    is_num(wrong, 0, what);
}

/* A node whose ranks get from others what those have, and one for which that holds of all. */
static void test_elsewhere(void)
{
    unsigned long wrong = 0, cases = 0;
    for (unsigned code = 0; code < 1u << 12; code++)
        for (unsigned shares = 1; shares < 8; shares++, cases++) {
            unsigned all = 15, any = 0;
            begin(3, (struct restore_conf){.timeout = EL_SEC(1), .allow_fresh = true});
            for (unsigned k = 0; k < 3; k++) {
                unsigned held = code >> 4 * k & 15;
                struct restore_stock s = {.attempt = 1, .newest = RESTORE_NO_STEP, .elsewhere = shares >> k & 1};
                for (int64_t step = 3; step >= 0; step--)
                    if (held & 1u << step)
                        s.step[s.n++] = step;
                any |= held;
                all &= s.elsewhere ? 15 : held;
                restore_take(&r, k, &s, 0);
            }
            all &= any;
            int64_t want = all & 8 ? 3 : all & 4 ? 2 : all & 2 ? 1 : all & 1 ? 0 : RESTORE_NO_STEP;
            for (unsigned k = 0; k < 3; k++)
                wrong += word(k).what != RESTORE_READ || word(k).step != want;
        }
    char what[120];
    snprintf(what, sizeof what, "with nodes that take what others have, in all %lu stocks", cases);
    is_num(wrong, 0, what);
}

/* A node that was away comes back with what the others have given up: its number is higher, and it is not the job's. */
static void test_elsewhere_given_up(void)
{
    struct restore_stock a = {.attempt = 1, .newest = 8, .elsewhere = true, .since = 3, .whole = true};
    struct restore_stock b = {.attempt = 1, .newest = 10, .elsewhere = true, .since = 1, .whole = true};
    a.step[a.n] = 8;
    a.lineage[a.n++] = 0xb;
    b.step[b.n] = 10;
    b.lineage[b.n++] = 0xa;
    begin(2, (struct restore_conf){.timeout = EL_SEC(1)});
    restore_take(&r, 0, &a, 0);
    restore_take(&r, 1, &b, 0);
    ok(word(1).step == 8 && word(1).lineage == 0xb, "who was not in the last agreement is not followed");
    a.n = 0;
    begin(2, (struct restore_conf){.timeout = EL_SEC(1)});
    restore_take(&r, 0, &a, 0);
    restore_take(&r, 1, &b, 0);
    ok(word(0).step == 10 && word(0).lineage == 0xa, "unless the others have nothing");
}

static void test_life(void)
{
    begin(2, (struct restore_conf){.timeout = EL_SEC(1)});
    is_num(says(0, 1, 1 << 5 | 1 << 4, RESTORE_AT_STOCK, -1, 10), RESTORE_NO_NEWS, "one speaks");
    ok(!restore_word(&r, 0, &(struct restore_word){0}) && !restore_word(&r, 1, &(struct restore_word){0}),
       "and nobody is told anything yet");
    is_num(restore_deadline(&r), 10 + EL_SEC(1), "the others have a second");
    says(1, 1, 1 << 5 | 1 << 4 | 1 << 3, RESTORE_AT_STOCK, -1, 20);
    is_num(word(0).step, 5, "both have: step 5");
    says(0, 1, 1 << 5 | 1 << 4, RESTORE_AT_READ, 5, 30);
    ok(!restore_word(&r, 0, &(struct restore_word){0}), "one has read it: it waits");
    says(1, 2, 1 << 4, RESTORE_AT_STOCK, -1, 40);
    is_num(word(0).what, RESTORE_TELL, "the other could not: all are asked again");
    is_num(word(0).attempt, 2, "for the next attempt");
    says(0, 2, 1 << 5 | 1 << 4, RESTORE_AT_STOCK, -1, 50);
    is_num(word(1).step, 4, "step 4 then");
    says(0, 2, 1 << 5 | 1 << 4, RESTORE_AT_READ, 4, 60);
    is_num(says(1, 2, 1 << 4, RESTORE_AT_READ, 4, 70), RESTORE_NEWS_ALL, "both have read it");
    ok(word(0).what == RESTORE_GO && word(1).what == RESTORE_GO, "both go on");
    is_num(restore_deadline(&r), EL_NEVER, "nothing is waited for");
    says(0, 2, 1 << 4, RESTORE_AT_GONE, 4, 80);
    ok(!restore_word(&r, 0, &(struct restore_word){0}), "who has gone is told nothing more");
}

static void test_unreadable(void)
{
    begin(2, (struct restore_conf){.timeout = EL_SEC(1)});
    unsigned attempts = 0;
    /* b can never read what it says, whatever it is told. */
    for (uint64_t attempt = 1; attempt < 20; attempt++, attempts++) {
        says(0, attempt, 7, RESTORE_AT_STOCK, -1, attempt);
        says(1, attempt, 7, RESTORE_AT_STOCK, -1, attempt);
        if (word(0).step == RESTORE_NO_STEP)
            break;
        says(0, attempt, 7, RESTORE_AT_READ, word(0).step, attempt);
    }
    is_num(attempts, 6, "three steps that cannot be read, two attempts for each, then it comes to an end");
}

/* A coordinator that has just begun decides what the one before it had. */
static void test_after_a_takeover(void)
{
    begin(3, (struct restore_conf){.timeout = EL_SEC(1)});
    says(0, 2, 1 << 5 | 1 << 4, RESTORE_AT_STOCK, -1, 10);
    says(1, 2, 1 << 5 | 1 << 4, RESTORE_AT_READ, 4, 20);
    ok(word(0).what == RESTORE_READ && word(0).step == 4, "a later stock gets the decision that another node was told");
    says(0, 2, 1 << 5 | 1 << 4, RESTORE_AT_READ, 4, 30);
    says(2, 2, 1 << 4, RESTORE_AT_GONE, 4, 40);
    ok(word(0).what == RESTORE_GO && word(1).what == RESTORE_GO, "one has gone on already: so do the others");
    begin(2, (struct restore_conf){.timeout = EL_SEC(1)});
    says(0, 1, 1 << 5, RESTORE_AT_STOCK, -1, 10);
    says(1, 1, 1 << 5, RESTORE_AT_STOCK, -1, 10);
    says(0, 1, 1 << 5, RESTORE_AT_READ, 3, 20);
    says(1, 1, 1 << 5, RESTORE_AT_READ, 5, 20);
    ok(word(1).what != RESTORE_GO, "nobody goes on from one step while another has read another");
}

/* Named long before the time is over, and once. */
static void test_waits(void)
{
    char text[RESTORE_TEXT_MAX + 1];
    begin(3, (struct restore_conf){.timeout = EL_SEC(600)});
    ok(!restore_waits(&r, EL_SEC(99), text), "nobody has asked: nobody is waited for");
    says(1, 1, 1, RESTORE_AT_STOCK, -1, EL_SEC(10));
    is_num(restore_deadline(&r), EL_SEC(10) + RESTORE_SAY, "the others have some seconds");
    ok(!restore_waits(&r, EL_SEC(10) + RESTORE_SAY - 1, text), "until then nothing is said");
    ok(restore_waits(&r, EL_SEC(10) + RESTORE_SAY, text), "then it is");
    is_str(text, "not every rank on a, c has called restore() yet, and 1 other node waits for them", "who");
    ok(!restore_waits(&r, EL_SEC(30), text), "once");
    is_num(restore_deadline(&r), EL_SEC(610), "and the time runs on");
    says(1, 2, 1, RESTORE_AT_STOCK, -1, EL_SEC(40));
    says(2, 2, 1, RESTORE_AT_STOCK, -1, EL_SEC(41));
    ok(restore_waits(&r, EL_SEC(50), text), "in the next attempt again");
    is_str(text, "not every rank on a has called restore() yet, and 2 other nodes wait for it", "for one");
    says(1, 3, 1, RESTORE_AT_STOCK, -1, EL_SEC(60));
    says(2, 3, 1, RESTORE_AT_STOCK, -1, EL_SEC(60));
    says(0, 3, 1, RESTORE_AT_STOCK, -1, EL_SEC(61));
    ok(!restore_waits(&r, EL_SEC(99), text), "all have asked in time: nothing");
    is_num(restore_deadline(&r), EL_SEC(661), "the time to read");
}

static void test_time_out(void)
{
    begin(3, (struct restore_conf){.timeout = EL_SEC(2)});
    says(1, 1, 1, RESTORE_AT_STOCK, -1, EL_SEC(10));
    is_num(restore_timeout(&r, EL_SEC(12) - 1), RESTORE_NO_NEWS, "not yet");
    is_num(restore_timeout(&r, EL_SEC(12)), RESTORE_NEWS_ALL, "two have not asked in time");
    ok(word(1).step == RESTORE_NO_STEP && !word(1).fresh, "nothing, and that is not a beginning");
    is_str(word(1).text,
           "2 of 3 nodes have not said within 2 s what they can go back to (--ckpt-restore-timeout): not every rank "
           "there has called restore(): a, c",
           "it says who");
    says(0, 1, 1, RESTORE_AT_STOCK, -1, EL_SEC(13));
    ok(word(0).what == RESTORE_READ && word(0).step == RESTORE_NO_STEP, "who comes late is told the same");
    begin(2, (struct restore_conf){.timeout = EL_SEC(2)});
    says(0, 1, 2, RESTORE_AT_STOCK, -1, 0);
    says(1, 1, 2, RESTORE_AT_STOCK, -1, 0);
    says(0, 1, 2, RESTORE_AT_READ, 1, 1);
    says(1, 1, 2, RESTORE_AT_TOLD, 1, 2);
    is_num(restore_timeout(&r, EL_SEC(2) - 1), RESTORE_NO_NEWS, "one does not read: there is time");
    is_num(restore_timeout(&r, EL_SEC(2)), RESTORE_NEWS_ALL, "and then there is none");
    begin(2, (struct restore_conf){.timeout = EL_SEC(2)});
    says(0, 1, 2, RESTORE_AT_STOCK, -1, 0);
    says(1, 1, 2, RESTORE_AT_STOCK, -1, 0);
    says(0, 1, 2, RESTORE_AT_TOLD, 1, 1);
    says(1, 1, 2, RESTORE_AT_READ, 1, 1);
    for (unsigned i = 1; i < 9; i++)
        is_num(says(0, 1, 2, RESTORE_AT_TOLD, 1, i * EL_SEC(1)), RESTORE_NO_NEWS, "who says again that it reads");
    is_num(restore_timeout(&r, EL_SEC(10) - 1), RESTORE_NO_NEWS, "is waited for");
    says(1, 1, 2, RESTORE_AT_READ, 1, EL_SEC(9));
    is_num(restore_timeout(&r, EL_SEC(10)), RESTORE_NEWS_ALL, "but who has read it puts nothing off");
    begin(2, (struct restore_conf){.timeout = EL_SEC(2)});
    says(0, 1, 2, RESTORE_AT_STOCK, -1, 0);
    says(1, 1, 2, RESTORE_AT_STOCK, -1, 0);
    says(0, 1, 2, RESTORE_AT_READ, 1, 1);
    says(1, 1, 2, RESTORE_AT_TOLD, 1, 2);
    restore_timeout(&r, EL_SEC(2));
    ok(word(0).what == RESTORE_TELL && word(1).what == RESTORE_TELL, "all are asked again");
    says(0, 2, 2, RESTORE_AT_STOCK, -1, EL_SEC(2));
    restore_timeout(&r, EL_SEC(4));
    ok(word(0).step == RESTORE_NO_STEP && word(0).what == RESTORE_READ, "and it is told that there is nothing");
}

/* One node's workers could read what was decided, and do not take it: an older step would not fit either. */
static void test_misfit(void)
{
    begin(2, (struct restore_conf){.timeout = EL_SEC(1), .allow_fresh = true});
    says(0, 1, 1 << 5 | 1 << 4, RESTORE_AT_STOCK, -1, 10);
    says(1, 1, 1 << 5 | 1 << 4, RESTORE_AT_STOCK, -1, 10);
    says(0, 1, 1 << 5 | 1 << 4, RESTORE_AT_READ, 5, 20);
    struct restore_stock s = {.attempt = 2,
                              .n = 2,
                              .step = {5, 4},
                              .newest = 5,
                              .told = RESTORE_NO_STEP,
                              .misfit = true,
                              .why = "rank 3, step 5: weight: [3] there, [4] here"};
    restore_take(&r, 1, &s, 30);
    is_num(word(0).what, RESTORE_TELL, "a node says so: the other one is asked again");
    struct restore_stock other = {
        .attempt = 2, .n = 1, .step = {5}, .newest = 5, .told = -1, .why = "a slot is broken"};
    restore_take(&r, 0, &other, 40);
    ok(word(0).what == RESTORE_READ && word(0).step == RESTORE_NO_STEP && word(1).step == RESTORE_NO_STEP,
       "and then both are told that there is nothing");
    ok(!word(0).fresh && !word(1).fresh, "which is no beginning, whatever is allowed");
    is_str(word(0).text, "b: rank 3, step 5: weight: [3] there, [4] here", "in that node's words");
    s.attempt = 3;
    s.misfit = false;
    restore_take(&r, 1, &s, 50);
    says(0, 3, 1 << 5 | 1 << 4, RESTORE_AT_STOCK, -1, 60);
    is_num(word(0).step, 5, "what was said then does not count in the next attempt");

    begin(2, (struct restore_conf){.timeout = EL_SEC(1)});
    other.attempt = s.attempt = 1;
    s.misfit = true;
    restore_take(&r, 0, &other, 10);
    restore_take(&r, 1, &s, 10);
    is_str(word(0).text, "b: rank 3, step 5: weight: [3] there, [4] here", "also behind another node's trouble");
}

struct node { /* what it knows of the past */
    uint64_t since;
    bool whole, on_disk;
};

/* Nobody can read anything: is it fresh? */
static bool fresh_of(const struct node *v, unsigned n, bool allow)
{
    begin(n, (struct restore_conf){.allow_fresh = allow});
    for (unsigned k = 0; k < n; k++)
        restore_take(&r, k,
                     &(struct restore_stock){.attempt = 1,
                                             .since = v[k].since,
                                             .whole = v[k].whole,
                                             .on_disk = v[k].on_disk,
                                             .newest = RESTORE_NO_STEP,
                                             .told = RESTORE_NO_STEP},
                     0);
    return word(0).fresh;
}

/* One has steps, of which the other has none. */
static const char *lacking(uint64_t since)
{
    begin(2, (struct restore_conf){0});
    for (unsigned k = 0; k < 2; k++)
        restore_take(&r, k,
                     &(struct restore_stock){.attempt = 1,
                                             .n = !k,
                                             .step = {7},
                                             .lineage = {1},
                                             .since = k ? since : 1,
                                             .whole = true,
                                             .newest = 7,
                                             .told = RESTORE_NO_STEP},
                     0);
    return word(0).text;
}

static void test_lacking(void)
{
    is_str(lacking(0),
           "no snapshot is left that every rank can have (b is new and has none; where all parts are alike "
           "restore(share=...) sends it one); --allow-fresh would begin at the beginning",
           "a node that is new has nothing: it is named, and what helps");
    is_str(lacking(1),
           "no snapshot is left that every rank can have (b has none); --allow-fresh would begin at the beginning",
           "a node that has lost what it had is named");
}

static void test_fresh(void)
{
    ok(fresh_of((struct node[]){{0, false, false}, {0, false, false}}, 2, false), "all are new: at the beginning");
    ok(!fresh_of((struct node[]){{1, true, false}, {1, true, false}}, 2, false), "all had a step: not silently");
    ok(!fresh_of((struct node[]){{1, true, false}, {0, false, false}}, 2, false),
       "a node was replaced, the other had a step: not silently");
    is_str(word(0).text, "no snapshot is left that every rank can have; --allow-fresh would begin at the beginning",
           "and said so");
    ok(fresh_of((struct node[]){{1, true, false}, {1, false, false}}, 2, false),
       "one of the two never had a step: there was none that all had");
    ok(!fresh_of((struct node[]){{4, true, false}, {1, false, false}}, 2, false),
       "what a node says that was not in the last agreement proves nothing");
    ok(!fresh_of((struct node[]){{0, false, true}, {0, false, false}}, 2, false), "the disk has something");
    ok(fresh_of((struct node[]){{1, true, true}, {0, false, false}}, 2, true), "--allow-fresh");
}

static void test_rollback(void)
{
    for (uint64_t max = 0; max <= 4; max++) {
        begin(1, (struct restore_conf){.max_rollback = max, .allow_fresh = true});
        restore_take(
            &r, 0, &(struct restore_stock){.attempt = 1, .n = 1, .step = {7}, .newest = 9, .told = RESTORE_NO_STEP}, 0);
        bool goes = word(0).step == 7;
        ok(goes == (max == 0 || max > 2), "2 steps would be lost");
        ok(goes || !word(0).fresh, "and if that is too much it does not begin anew");
    }
    begin(1, (struct restore_conf){.max_rollback = 2});
    restore_take(&r, 0, &(struct restore_stock){.attempt = 1, .n = 1, .step = {7}, .newest = 9, .told = -1}, 0);
    is_str(word(0).text,
           "the newest step that every rank can have is 7, and step 9 was reached: 2 steps would be lost, more than "
           "--ckpt-max-rollback=1",
           "said so");
    begin(2, (struct restore_conf){.max_rollback = 2});
    restore_take(&r, 0, &(struct restore_stock){.attempt = 1, .n = 1, .step = {7}, .newest = 7, .since = 4, .told = -1},
                 0);
    restore_take(&r, 1,
                 &(struct restore_stock){.attempt = 1, .n = 1, .step = {7}, .newest = 99, .since = 3, .told = -1}, 0);
    is_num(word(0).step, 7, "what a node reached that was not there when the others went back does not count as lost");
}

/* As says(), of two steps and what they are of. */
static void says_of(unsigned seat, uint64_t attempt, int64_t first, uint64_t lineage, int64_t second, uint64_t other)
{
    restore_take(&r, seat,
                 &(struct restore_stock){.attempt = attempt,
                                         .n = 2,
                                         .step = {first, second},
                                         .lineage = {lineage, other},
                                         .on_disk = true,
                                         .told = RESTORE_NO_STEP},
                 0);
    restore_check(&r);
}

static void test_lineages(void)
{
    begin(2, (struct restore_conf){0});
    says_of(0, 1, 7, 0x2, 5, 0x1);
    says_of(1, 1, 7, 0x3, 5, 0x1);
    ok(word(0).step == 5 && word(0).lineage == 0x1, "a number that two steps have is no step that all can read");
    begin(2, (struct restore_conf){0});
    says_of(0, 1, 7, 0x2, 7, 0x3);
    says_of(1, 1, 8, 0x2, 7, 0x3);
    ok(word(0).step == 7 && word(0).lineage == 0x3,
       "one node may have both: the one that the other has, too, is taken");
    struct restore_stock s = {.attempt = 1, .n = 1, .step = {7}, .at = RESTORE_AT_READ, .told = 7, .told_lineage = 0x2};
    restore_take(&r, 0, &s, 0);
    ok(word(0).what == RESTORE_READ && word(0).lineage == 0x3, "who was told the other one has to read again");
    begin(2, (struct restore_conf){0});
    restore_take(&r, 1, &s, 0);
    is_num((long)word(1).what, RESTORE_WHATS, "a new coordinator takes over what was decided,");
    says_of(0, 1, 7, 0x2, 5, 0x1);
    ok(word(0).step == 7 && word(0).lineage == 0x2, "with its lineage");
    begin(2, (struct restore_conf){0});
    says_of(0, 1, 7, 0x2, 6, 0x2);
    says_of(1, 1, 7, 0x3, 6, 0x3);
    ok(word(0).step == RESTORE_NO_STEP && !word(0).fresh, "nothing but numbers in common is nothing");
    is_str(
        word(0).text,
        "no snapshot is left that every rank can have (step 7 is of one history on a, of another on b); --allow-fresh "
        "would begin at the beginning",
        "and that is said");
}

/* Each has some, and none is on all of them: why, and what would help. */
static void test_apart(void)
{
    begin(3, (struct restore_conf){0});
    says_of(0, 1, 30, 0x1, 20, 0x1);
    says_of(1, 1, 30, 0x1, 20, 0x1);
    says_of(2, 1, 7, 0x1, 5, 0x1);
    is_str(word(2).text,
           "no snapshot is left that every rank can have (a has steps 20 to 30, c has none beyond 7; where all parts "
           "are alike restore(share=...) gives a node the state of the others); --allow-fresh would begin at the "
           "beginning",
           "one of them was away");
    begin(2, (struct restore_conf){.allow_fresh = true});
    says_of(0, 1, 8, 0x1, 5, 0x1);
    says_of(1, 1, 9, 0x1, 6, 0x1);
    is_str(word(0).text,
           "no snapshot is left that every rank can have (b has steps 6 to 9, a steps 5 to 8, and none is on all "
           "nodes; where all parts are alike restore(share=...) gives a node the state of the others): beginning at "
           "the beginning (--allow-fresh)",
           "they are of the same time");
    begin(2, (struct restore_conf){0});
    restore_take(&r, 0,
                 &(struct restore_stock){
                     .attempt = 1, .n = 1, .step = {9}, .on_disk = true, .told = RESTORE_NO_STEP, .why = "x is torn"},
                 0);
    says_of(1, 1, 7, 0x1, 5, 0x1);
    ok(strstr(word(0).text, " (a: x is torn); ") != NULL, "what a node says itself tells more");
}

static void test_lists(void)
{
    char text[RESTORE_LIST_MAX + 1];
    struct restore_stock s = {.n = 0};
    restore_list_put(&s, text);
    is_str(text, "", "nothing");
    for (unsigned i = 0; i < RESTORE_STEPS_MAX; i++)
        s.lineage[s.n] = UINT64_MAX - i, s.step[s.n++] = MSG_STEP_MAX - (int64_t)i;
    restore_list_put(&s, text);
    struct restore_stock back = {.n = 3};
    restore_list_get(&back, text);
    ok(back.n == s.n && memcmp(back.step, s.step, sizeof s.step) == 0 &&
           memcmp(back.lineage, s.lineage, sizeof s.lineage) == 0,
       "the largest steps, as many as there may be");
    restore_list_get(&back, "9@a 7@b 7@c 7@c 5@x 4@1");
    ok(back.n == 3 && back.lineage[0] == 0xa && back.step[2] == 7 && back.lineage[2] == 0xc,
       "one number with two lineages; what is no lineage ends it");
    restore_list_get(&back, " 9  7 7 8 5 x 3");
    ok(back.n == 3 && back.step[0] == 9 && back.step[1] == 7 && back.step[2] == 5,
       "what is not in order is passed over, and what is no number ends it");
    restore_list_get(&back, "1000000000000000 999999999999999");
    ok(back.n == 1 && back.step[0] == MSG_STEP_MAX, "what is larger than any step is passed over");
    restore_list_get(&back, "99999999999999999999");
    is_num(back.n, 0, "no step");
}

int main(void)
{
    test_every_stock();
    test_elsewhere();
    test_elsewhere_given_up();
    test_life();
    test_unreadable();
    test_misfit();
    test_after_a_takeover();
    test_waits();
    test_time_out();
    test_fresh();
    test_lacking();
    test_rollback();
    test_lineages();
    test_apart();
    test_lists();
    restore_free(&r, NULL);
    return done();
}
