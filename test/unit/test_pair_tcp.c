/* One end of a tcp pair: where it is, what is sent, how much of it on which link, what is made of the times. */
#include "probe/pair_tcp.h"

#include "lib/tap.h"
#include "util/rng.h"

static void test_ids(void)
{
    struct pair_id a = {.addr.port = 4711}, b;
    char text[300];
    for (unsigned i = 0; i < PAIR_TOKEN_BYTES; i++)
        a.token[i] = (uint8_t)(i * 17);
    el_addr_parse("10.0.0.5", a.addr.ip);
    pair_id_text(&a, text, sizeof text);
    is_str(text, "10.0.0.5:4711:00112233445566778899aabbccddeeff", "where the host end is");
    ok(pair_id_parse(text, &b) && memcmp(&a, &b, sizeof a) == 0, "and back");
    el_addr_parse("fe80::1", a.addr.ip);
    pair_id_text(&a, text, sizeof text);
    is_str(text, "[fe80::1]:4711:00112233445566778899aabbccddeeff", "by IPv6");
    ok(pair_id_parse(text, &b) && memcmp(&a, &b, sizeof a) == 0, "and back");
    static const char *const bad[] = {
        "",
        ":",
        "::",
        "10.0.0.5",
        "10.0.0.5:4711",
        "10.0.0.5:4711:",
        "10.0.0.5:0:00112233445566778899aabbccddeeff",
        "10.0.0.5:65536:00112233445566778899aabbccddeeff",
        "10.0.0.5:4711:00112233445566778899aabbccddeef",
        "10.0.0.5:4711:00112233445566778899aabbccddeeff0",
        "10.0.0.5:4711:00112233445566778899aabbccddeefg",
        "node-1:4711:00112233445566778899aabbccddeeff",
        "fe80::1:4711:00112233445566778899aabbccddeeff",
        "[10.0.0.5]:4711:00112233445566778899aabbccddeeff",
        "[:4711:00112233445566778899aabbccddeeff",
    };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ok(!pair_id_parse(bad[i], &b), bad[i]);
}

static void test_bytes(void)
{
    static uint8_t one[PAIR_BLOCK_BYTES], two[PAIR_BLOCK_BYTES];
    uint8_t token[PAIR_TOKEN_BYTES] = {7}, other[PAIR_TOKEN_BYTES] = {8}, raw[PAIR_HELLO_BYTES], back[PAIR_HELLO_BYTES];
    struct pair_header h = {PAIR_EXCHANGE, 24, 64u << 20}, got;
    pair_hello(token, false, raw);
    pair_hello(token, true, back);
    ok(memcmp(raw, back, sizeof raw) != 0, "an echo is no host");
    pair_header_put(&h, raw);
    ok(pair_header_get(raw, &got) && got.kind == h.kind && got.count == 24 && got.bytes == h.bytes, "a header");
    h.bytes++;
    pair_header_put(&h, raw);
    ok(!pair_header_get(raw, &got), "part of a block is refused");
    h = (struct pair_header){(enum pair_kind)9, 0, 0};
    pair_header_put(&h, raw);
    ok(!pair_header_get(raw, &got), "and what is not known");
    pair_fill(token, true, one);
    pair_fill(token, false, two);
    ok(memcmp(one, two, sizeof one) != 0, "the two directions differ");
    pair_fill(other, true, two);
    ok(memcmp(one, two, sizeof one) != 0, "so do two pairs");
    pair_fill(token, true, two);
    ok(memcmp(one, two, sizeof one) == 0, "the same is the same");
    pair_stamp(one, 3, 1);
    pair_stamp(two, 3, 2);
    ok(memcmp(one, two, sizeof one) != 0, "two blocks of an exchange differ");
    pair_stamp(two, 4, 1);
    ok(memcmp(one, two, sizeof one) != 0, "and the same block of two exchanges");
}

/* A link of so many bytes per second: how long all of it takes, exchanges that count and their size. */
static el_usec over_link(double rate, uint64_t bytes, unsigned count, el_usec spend, unsigned *counted, uint64_t *size)
{
    struct pair_pace p;
    el_usec all = 0;
    *counted = 0;
    pair_pace_init(&p, bytes, count, spend);
    for (uint64_t n; (n = pair_pace_next(&p));) {
        el_usec took = (el_usec)((double)n / rate * 1e6);
        *counted += pair_pace_counts(&p);
        *size = n;
        all += took;
        pair_pace_took(&p, took);
    }
    return all;
}

static void test_loss(void)
{
    ok(pair_loss_percent(0, 0, 0) > 0, "nothing sent: measured all the same");
    ok(pair_loss_percent(1000, 0, 0) < 0.01, "nothing lost");
    ok(pair_loss_percent(1000, 120, 0) == 12.0, "an eighth lost");
    ok(pair_loss_percent(1000, 120, 100) == 2.0, "what arrived twice was not lost");
    ok(pair_loss_percent(1000, 100, 120) < 0.01, "more of that than was sent again");
    ok(pair_loss_percent(10, 25, 0) == 100.0, "sent again and again");
}

static void test_slow_way(void)
{
    struct pair_pace p;
    pair_pace_init(&p, 64u << 20, 20, EL_SEC(1));
    pair_pace_took(&p, EL_MS(500));
    ok(pair_pace_counts(&p), "a way too slow for a warm-up: the next exchange counts");
    is_num(pair_pace_next(&p), PAIR_BLOCK_BYTES, "and is small");
    pair_pace_took(&p, EL_MS(600));
    is_num(pair_pace_next(&p), PAIR_BLOCK_BYTES, "there is time for another one");
    pair_pace_took(&p, EL_MS(600));
    is_num(pair_pace_next(&p), 0, "then it is enough");
}

static void test_pace(void)
{
    unsigned n;
    uint64_t size = 0;
    el_usec took = over_link(40e9, 64u << 20, 20, EL_SEC(8), &n, &size);
    ok(n == 20 && size == 64u << 20, "a fast link: everything, in full size");
    took = over_link(12.5e6, 64u << 20, 20, EL_SEC(8), &n, &size);
    ok(n == 20 && size < 8u << 20 && took < EL_SEC(16), "100 Mb/s: smaller");
    took = over_link(125e3, 64u << 20, 20, EL_SEC(8), &n, &size);
    ok(n >= 1 && size == PAIR_BLOCK_BYTES && took < EL_SEC(24), "1 Mb/s: fewer, as small as can be");
    took = over_link(1e9, 1000, 3, EL_SEC(1), &n, &size);
    ok(n == 3 && size == PAIR_BLOCK_BYTES, "never less than a block");
    struct el_rng rng = {.state = 5};
    unsigned good = 0;
    for (int i = 0; i < 2000; i++) {
        el_usec spend = EL_MS(100) + el_rng_below(&rng, EL_SEC(20));
        uint64_t bytes = el_rng_below(&rng, 1u << 30);
        double rate = 1e6 + (double)el_rng_below(&rng, 1000000) * 1e4;
        unsigned count = 1 + (unsigned)el_rng_below(&rng, 30);
        double block = PAIR_BLOCK_BYTES / rate * 1e6;
        took = over_link(rate, bytes, count, spend, &n, &size);
        good += n >= 1 && n <= count && size % PAIR_BLOCK_BYTES == 0 && (double)took < 6.5 * (double)spend + 30 * block;
    }
    is_num(good, 2000, "on any link: at least one that counts, and about as much time as was meant");
}

static void test_times(void)
{
    struct pair_times t = {.n = 0};
    struct pair_summary s = pair_times_of(&t);
    ok(!s.n, "nothing was measured");
    for (int i = 100; i > 0; i--)
        pair_times_add(&t, i);
    s = pair_times_of(&t);
    ok(s.n == 100 && (int)(s.min * 10) == 10 && (int)(s.median * 10) == 505 && (int)s.p95 == 95, "of 1 to 100");
    t.n = 0;
    pair_times_add(&t, 4);
    s = pair_times_of(&t);
    ok((int)s.min == 4 && (int)s.median == 4 && (int)s.p95 == 4, "one alone");
    for (int i = 0; i < 2 * PAIR_COUNT_MAX; i++)
        pair_times_add(&t, 1);
    is_num(t.n, PAIR_COUNT_MAX, "there is an end to what is kept");
}

static void test_clock(void)
{
    struct pair_clock c;
    pair_clock_init(&c, EL_SEC(10));
    is_num(pair_clock_at(&c, EL_SEC(10) + EL_MS(200)), EL_SEC(10) + EL_MS(200), "it runs");
    is_num(pair_clock_at(&c, EL_SEC(31)), EL_SEC(10) + EL_MS(450), "but not while we are stopped");
    is_num(c.slept, EL_SEC(31) - EL_SEC(10) - EL_MS(450), "which is known");
    is_num(pair_clock_at(&c, EL_SEC(30)), EL_SEC(10) + EL_MS(450), "and never backwards");
}

int main(void)
{
    test_ids();
    test_bytes();
    test_pace();
    test_slow_way();
    test_loss();
    test_times();
    test_clock();
    return done();
}
