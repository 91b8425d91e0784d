/* Nodes that share a part: which digests are compared, who is asked for tensors, and what is told, how often.
 * Seen to fail: a comparison of two steps or of two histories, a part that is told twice in a round, a question that is
 * not asked again on a new connection, one that waits for ever for a node that does not answer, a count of keys without
 * a bound. */
#include "coord/replica_check.h"

#include <stdio.h>
#include <string.h>

#include "lib/tap.h"

#define ROUND 5u
#define COORD 0xabcu

static struct replica_check *c;
static struct el_mem sums = EL_MEM_INIT(64 << 20);
static el_usec now;
static bool asks;

static void begin(unsigned seats)
{
    replica_check_free(c);
    c = replica_check_new(8, NULL, &sums);
    now = 0;
    replica_check_round(c, ROUND, COORD, seats);
}

static void take(unsigned seat, const struct msg *m)
{
    replica_check_take(c, seat, m);
    replica_check_check(c);
    asks = replica_check_advance(c, now);
    replica_check_check(c);
}

static void digests_of(unsigned seat, uint64_t number, int64_t step, uint64_t lineage, const char *text)
{
    const struct msg m = {.type = MSG_CKPT_DIGESTS, .u.ckpt_digests = {number, COORD, step, lineage, text}};
    take(seat, &m);
}

static void digests(unsigned seat, int64_t step, uint64_t lineage, const char *text)
{
    digests_of(seat, ROUND, step, lineage, text);
}

static void lose(unsigned seat)
{
    replica_check_lost(c, seat);
    replica_check_check(c);
}

/* Of part 1 at step 7 of lineage 1; rank 2 * seat. */
static struct msg tensors(unsigned seat, const char *after, const char *lines, bool more)
{
    return (struct msg){.type = MSG_CKPT_TENSORS,
                        .u.ckpt_tensors = {.number = ROUND,
                                           .coord = COORD,
                                           .step = 7,
                                           .lineage = 1,
                                           .key = 1,
                                           .after = after,
                                           .held = true,
                                           .named = true,
                                           .part = "model",
                                           .shard = "all",
                                           .rank = 2 * seat,
                                           .lines = lines,
                                           .more = more}};
}

static void answers(unsigned seat, const char *after, const char *lines, bool more)
{
    struct msg m = tensors(seat, after, lines, more);
    take(seat, &m);
}

static bool nothing(void)
{
    struct replica_check_difference x;
    unsigned seats[2];
    return !replica_check_next(c, &x) && !replica_check_asks(c, seats);
}

/* "7@1 1 behind a": what a seat is asked. */
static const char *word(unsigned seat, uint64_t conn)
{
    static char text[160];
    struct msg m;
    if (!replica_check_word(c, seat, conn, &m))
        return "";
    const struct msg_ckpt_differ *d = &m.u.ckpt_differ;
    ok(m.type == MSG_CKPT_DIFFER && d->number == ROUND && d->coord == COORD, "it is asked about this round");
    snprintf(text, sizeof text, "%lld@%llx %llx behind %s", (long long)d->step, (unsigned long long)d->lineage,
             (unsigned long long)d->key, d->after);
    return text;
}

static bool says(unsigned a, unsigned b, uint64_t n, const char *names)
{
    struct replica_check_difference x;
    bool there = replica_check_next(c, &x);
    replica_check_check(c);
    if (there)
        is_str(x.names, names, "which tensors");
    return there && x.seat[0] == a && x.seat[1] == b && x.rank[0] == 2 * a && x.rank[1] == 2 * b && x.step == 7 &&
           x.tensors == n && strcmp(x.part, "model") == 0 && strcmp(x.shard, "all") == 0;
}

static void differ(unsigned a, unsigned b)
{
    digests(a, 7, 1, "1=a 2=5");
    digests(b, 7, 1, "1=b 2=5");
}

static void test_alike(void)
{
    static const char *const wrong[] = {"", "1", "1=", "x", "=8", "1=x 1=8", "2=5,1=8", "1 =8"};
    begin(3);
    digests(0, 7, 1, "1=a 2=5");
    digests(1, 7, 1, "2=5 1=a");
    digests(0, 8, 1, "1=c");
    ok(nothing(), "digests of one step are alike");
    digests(2, 7, 1, "1=77");
    digests(2, 8, 2, "1=77");
    digests(0, 8, 1, "1=c");
    ok(nothing(), "neither two steps nor two histories are compared");
    digests(2, 8, 1, "3=1");
    ok(nothing(), "nor a part that one node has alone, or has no digest of");
    digests(2, 8, 1, "1=0");
    ok(nothing(), "nor nothing");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        digests(2, 8, 1, wrong[i]);
    ok(nothing(), "nor what cannot be read");
    digests_of(2, ROUND - 1, 8, 1, "1=9");
    ok(nothing(), "nor what is of another round");
    digests(7, 8, 1, "1=9");
    ok(nothing(), "nor a seat that the round does not have");
    digests(0, 8, 1, "1=d");
    ok(nothing(), "nor a node with itself");
}

static void test_differ(void)
{
    begin(3);
    differ(0, 2);
    ok(asks, "two digests of one step: both nodes are asked");
    is_str(word(1, 9), "", "no other one is");
    is_str(word(0, 9), "7@1 1 behind ", "for the tensors of that part");
    is_str(word(2, 9), "7@1 1 behind ", "the other one, too");
    is_str(word(0, 9), "", "once on a connection");
    is_str(word(0, 10), "7@1 1 behind ", "and again on another one");
    answers(0, "", "1 a\n2 b\n3 c\n", false);
    answers(0, "", "1 a\n2 b\n4 c\n", false);
    answers(1, "", "1 a\n2 b\n4 c\n", false);
    answers(2, "x", "1 a\n2 b\n4 c\n", false);
    struct msg other = tensors(2, "", "", false);
    other.u.ckpt_tensors.key = 2;
    take(2, &other);
    struct replica_check_difference x;
    ok(!replica_check_next(c, &x), "who was not asked does not answer, and none answers twice or something else");
    is_str(word(0, 11), "", "who has answered is not asked again");
    answers(2, "", "1 a\n2 b\n4 c\n", false);
    ok(says(0, 2, 1, "\"c\""), "which ranks of which nodes, and what");
    ok(nothing(), "that is all");
    differ(0, 1);
    digests(1, 8, 1, "1=e");
    digests(2, 8, 1, "1=f");
    ok(nothing(), "it is told once in a round");
    replica_check_round(c, ROUND + 1, COORD, 3);
    digests_of(0, ROUND + 1, 8, 1, "1=e");
    digests_of(1, ROUND + 1, 8, 1, "1=f");
    ok(!nothing(), "and in the next one anew");
}

static void test_pieces(void)
{
    begin(2);
    differ(0, 1);
    word(0, 9);
    word(1, 9);
    answers(0, "", "1 a\n1 b\n", true);
    answers(1, "", "1 a\n1 c\n", true);
    ok(asks, "there is more: both are asked again");
    is_str(word(0, 9), "7@1 1 behind b", "up to the name that both have told");
    is_str(word(1, 9), "7@1 1 behind b", "by both");
    answers(1, "b", "1 c\n", false);
    answers(0, "b", "1 d\n", false);
    ok(says(0, 1, 3, "\"b\", \"c\", \"d\""), "what differs is found in all pieces");
    begin(2);
    differ(0, 1);
    answers(0, "", "1 a\n", false);
    answers(1, "", "1 a\n", false);
    ok(nothing(), "no tensor differs: nothing is told");
    begin(2);
    differ(0, 1);
    answers(0, "", "rubbish", true);
    answers(1, "", "1 a\n", true);
    ok(!asks && nothing(), "what cannot be read ends it");
    begin(2);
    differ(0, 1);
    unsigned pieces = 0;
    for (char after[16] = "", name[16], line[24]; pieces < 2 * REPLICA_CHECK_PIECES_MAX; pieces++) {
        snprintf(name, sizeof name, "%08u", pieces);
        snprintf(line, sizeof line, "1 %s\n", name);
        answers(0, after, line, true);
        answers(1, after, line, true);
        memcpy(after, name, sizeof after);
        if (!asks)
            break;
    }
    ok(pieces <= REPLICA_CHECK_PIECES_MAX && nothing(), "a table without end comes to one");
}

static void test_missing(void)
{
    struct msg m;
    begin(3);
    differ(0, 1);
    m = tensors(0, "", "", false);
    m.u.ckpt_tensors.named = false;
    take(0, &m);
    answers(1, "", "1 a\n", false);
    ok(says(0, 1, 0, ""), "a node does not know its tensors: the part is told");
    begin(3);
    differ(0, 1);
    m = tensors(0, "", "", false);
    m.u.ckpt_tensors.held = false;
    take(0, &m);
    answers(1, "", "1 a\n", false);
    ok(nothing(), "it does not know that step any more: nothing is told");
    digests(0, 8, 1, "1=1");
    digests(1, 8, 1, "1=2");
    ok(asks, "before it differs at another one");
    begin(3);
    differ(0, 1);
    ok(replica_check_deadline(c) == REPLICA_CHECK_PATIENCE, "an answer is waited for");
    now = REPLICA_CHECK_PATIENCE;
    asks = replica_check_advance(c, now);
    ok(!asks && nothing() && replica_check_deadline(c) == EL_NEVER, "for so long");
    begin(3);
    differ(0, 1);
    lose(1);
    ok(nothing(), "a node that is lost while it is asked is not told of");
    digests(2, 7, 1, "1=a");
    digests(0, 7, 1, "1=a");
    ok(nothing(), "nor compared");
    digests(2, 8, 1, "1=a");
    lose(2);
    digests(0, 8, 1, "1=b");
    ok(nothing(), "nor one that was lost before");
    begin(3);
    digests(0, 7, 1, "1=a 2=a");
    digests(1, 7, 1, "1=b 2=b");
    lose(0);
    ok(nothing(), "with two parts, neither of them");
}

static void test_two_parts(void)
{
    struct replica_check_difference x;
    begin(2);
    digests(0, 7, 1, "1=a 2=a");
    digests(1, 7, 1, "1=b 2=b");
    answers(0, "", "1 a\n", false);
    answers(1, "", "2 a\n", false);
    ok(says(0, 1, 1, "\"a\"") && replica_check_advance(c, now), "one after the other");
    is_str(word(0, 9), "7@1 2 behind ", "the second");
    ok(!replica_check_next(c, &x), "is not told before it is known");
}

static void test_bound(void)
{
    char text[REPLICA_CHECK_DIGESTS_TEXT + 1];
    uint64_t key = 1;
    begin(2);
    for (unsigned i = 0; key < 2 * REPLICA_CHECK_KEYS_MAX; i++) {
        size_t n = 0;
        while (n < sizeof text - 40)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%llx=1", n ? " " : "", (unsigned long long)key++);
        replica_check_take(c, 0, &(struct msg){.type = MSG_CKPT_DIGESTS, .u.ckpt_digests = {ROUND, COORD, 7, 1, text}});
    }
    digests(0, 7, 1, "fffffff1=5");
    digests(1, 7, 1, "fffffff1=6");
    ok(nothing(), "of more parts than it holds none is compared");
    digests(1, 7, 1, "1=6");
    ok(!nothing(), "those before are");
    int64_t step;
    unsigned compared;
    ok(replica_check_left_out(c, &step, &compared) && step == 7 && compared == REPLICA_CHECK_KEYS_MAX, "which is said");
    ok(!replica_check_left_out(c, &step, &compared), "once");
    is_num(sums.used_bytes < (size_t)16 << 20, 1, "16 MiB are the most that one job takes");
    begin(2);
    is_num(sums.used_bytes, 0, "and a round that has said nothing takes none");
}

/* Jobs share what they are remembered with: who has no room compares what it has, and the next round has its own. */
static void test_shared(void)
{
    char text[REPLICA_CHECK_DIGESTS_TEXT + 1];
    struct replica_check *other = replica_check_new(8, NULL, &sums);
    size_t n = 0;
    int64_t step;
    unsigned compared;
    replica_check_round(other, ROUND, COORD, 2);
    for (uint64_t key = 0x1000; n < sizeof text - 40; key++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%llx=1", n ? " " : "", (unsigned long long)key);
    begin(2);
    digests(0, 7, 1, "1=5");
    ok(!replica_check_left_out(c, &step, &compared), "there is room");
    sums.limit_bytes = sums.used_bytes;
    replica_check_take(other, 0, &(struct msg){.type = MSG_CKPT_DIGESTS, .u.ckpt_digests = {ROUND, COORD, 7, 1, text}});
    ok(replica_check_left_out(other, &step, &compared) && step == 7 && compared == 0,
       "another job has none, and says so");
    digests(1, 7, 1, "1=6");
    ok(!nothing(), "what was there before is compared");
    sums.limit_bytes = 64 << 20;
    replica_check_round(other, ROUND + 1, COORD, 2);
    const struct msg m = {.type = MSG_CKPT_DIGESTS, .u.ckpt_digests = {ROUND + 1, COORD, 7, 1, text}};
    replica_check_take(other, 0, &m);
    ok(sums.used_bytes > 4096, "a later round finds room again");
    replica_check_free(other);
}

int main(void)
{
    test_alike();
    test_differ();
    test_pieces();
    test_missing();
    test_two_parts();
    test_bound();
    test_shared();
    replica_check_free(c);
    is_num(sums.used_bytes, 0, "nothing is left");
    return done();
}
