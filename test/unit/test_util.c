#include "lib/tap.h"
#include "util/buf.h"
#include "util/err.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/sip.h"

static void test_mem(void)
{
    struct el_mem m = EL_MEM_INIT(200);
    char *a = el_alloc(&m, 100);
    ok(a && a[0] == 0 && a[99] == 0, "memory is zeroed");
    ok(!el_alloc(&m, 100), "the limit refuses");
    a = el_realloc(&m, a, 150);
    is_num(m.used_bytes, 166, "what is out is counted, with 16 bytes a block");
    ok(!el_realloc(&m, a, 300), "the limit refuses to grow");
    el_free(&m, a);
    is_num(m.used_bytes, 0, "all came back");
    is_num(m.peak_bytes, 166, "the peak stays");
    m.fail_after = 1;
    void *p = el_alloc(&m, 1), *q = el_alloc(&m, 1);
    ok(p && !q, "the n-th allocation fails on demand");
    el_free(&m, p);
    ok(!el_alloc(NULL, (size_t)-1), "a size that wraps is refused");
}

/* Several of a kind have a limit together, beside their own. */
static void test_parent(void)
{
    struct el_mem all = EL_MEM_INIT(400), a = EL_MEM_INIT(300), b = EL_MEM_INIT(300);
    a.parent = b.parent = &all;
    void *p = el_alloc(&a, 234);
    is_num(all.used_bytes, 250, "what one takes is counted for all");
    ok(!el_alloc(&a, 134), "its own limit refuses");
    ok(!el_alloc(&b, 200) && b.used_bytes == 0, "so does that of all");
    void *q = el_alloc(&b, 134);
    ok(q && all.used_bytes == 400, "what is left of it is given out");
    ok(!el_realloc(&b, q, 135) && all.used_bytes == 400, "and not more by growing");
    el_free(&a, p);
    q = el_realloc(&b, q, 200);
    is_num(all.used_bytes, 216, "what comes back is free for the others");
    el_free(&b, q);
    is_num(all.used_bytes, 0, "all came back");
    a = (struct el_mem){.fail_after = -1, .parent = &all, .leaves_bytes = 100};
    p = el_alloc(&a, 284);
    ok(p && !el_realloc(&a, p, 285), "one leaves something of it to the others");
    q = el_alloc(&b, 84);
    ok(q && all.used_bytes == 400, "who have that, then");
    el_free(&b, q);
    el_free(&a, p);
    a.leaves_bytes = SIZE_MAX;
    ok(!el_alloc(&a, 1), "or all of it");
}

/* What may be taken back when memory is short. */
static void *spare;
static int asked;

static bool take_back(struct el_mem *m)
{
    bool had = spare != NULL;
    el_free(m, spare);
    spare = NULL;
    asked++;
    return had;
}

static void test_reclaim(void)
{
    struct el_mem m = EL_MEM_INIT(300);
    m.reclaim = take_back;
    spare = el_alloc(&m, 150);
    void *p = el_alloc(&m, 100);
    ok(spare && p && !asked, "nobody is asked while there is room");
    void *q = el_alloc(&m, 150);
    ok(q && !spare && asked == 1, "what was taken back is given out");
    ok(!el_alloc(&m, 100) && asked == 2, "nothing to take back: refused");
    ok(!el_alloc(&m, 400) && asked == 2, "what can never fit asks nobody");
    el_free(&m, p);
    el_free(&m, q);
    is_num(m.used_bytes, 0, "all came back");
}

static void test_buf(void)
{
    struct el_mem m = EL_MEM_INIT(0);
    struct el_buf b = EL_BUF_INIT(&m, 100);
    is_str(el_buf_cstr(&b), "", "empty buffer is an empty string");
    ok(el_buf_puts(&b, "hello") == 0 && el_buf_printf(&b, " %d", 42) == 0, "append");
    is_str(el_buf_cstr(&b), "hello 42", "content");
    el_buf_drop(&b, 6);
    is_str(el_buf_cstr(&b), "42", "drop from the front");
    char big[100];
    memset(big, 'x', sizeof big);
    ok(el_buf_put(&b, big, 99) == -1 && b.full, "over the maximum: nothing is appended");
    is_num(b.len, 2, "length unchanged");
    ok(el_buf_put(&b, big, 98) == 0 && b.len == 100, "exactly the maximum fits");
    el_buf_free(&b);
    is_num(m.used_bytes, 0, "freed");
    for (long n = 0; n < 3; n++) {
        m.fail_after = n;
        struct el_buf c = EL_BUF_INIT(&m, 0);
        int r = 0;
        for (int i = 0; i < 100 && !r; i++)
            r = el_buf_puts(&c, "0123456789");
        ok(r == -1 && c.len % 10 == 0, "allocation failure leaves whole appends");
        el_buf_free(&c);
    }
}

static void test_err(void)
{
    struct el_err e = {0};
    el_fail(&e, EL_EXIT_USAGE, "bad port %d", 70000);
    el_fail(&e, EL_EXIT_OSERR, "later");
    is_num(e.status, 2, "the first error wins");
    el_prefix(&e, "store");
    is_str(e.text, "store: bad port 70000", "context goes in front");
    is_num(el_fail(NULL, EL_EXIT_USAGE, "x"), -1, "no place for the text is fine");
}

static char last_line[64];
static void keep(void *ctx, enum el_level level, const char *text)
{
    *(int *)ctx = (int)level;
    snprintf(last_line, sizeof last_line, "%s", text);
}

static void test_log(void)
{
    int level = -1;
    el_log(EL_ERROR, "dropped");
    el_log_set(keep, &level, EL_INFO);
    el_log(EL_INFO, "n=%d", 7);
    is_str(last_line, "n=7", "a line reaches the sink");
    el_log(EL_DEBUG, "too quiet");
    is_str(last_line, "n=7", "below the level: dropped");
    el_log_set(NULL, NULL, EL_INFO);
}

/* SipHash-1-3 of 00 01 02 … by the key 00 … 0f.  Ports that a job's name decides, and journals, rely on it. */
static void test_sip(void)
{
    static const struct {
        size_t n;
        uint64_t hash;
    } want[] = {{0, 0xabac0158050fc4dc},  {1, 0xc9f49bf37d57ca93},  {7, 0xd3927d989bb11140}, {8, 0x369095118d299a8e},
                {15, 0xd320d86d2a519956}, {23, 0x525a0e7fdae6c123}, {63, 0x9d199062b7bbb3a8}};
    uint64_t seed[2];
    uint8_t key[16];
    for (uint8_t i = 0; i < sizeof key; i++)
        key[i] = i;
    memcpy(seed, key, sizeof seed);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        uint8_t *bytes = malloc(want[i].n + 1); /* a read beyond them is seen by a sanitizer */
        for (size_t k = 0; k < want[i].n; k++)
            bytes[k + 1] = (uint8_t)k;
        ok(el_sip(seed, bytes + 1, want[i].n) == want[i].hash, "hash of so many bytes");
        free(bytes);
    }
}

/* Keys as process groups make them, of every length, spread evenly over the places of a table. */
static void test_hash(void)
{
    enum { KEYS = 1 << 15, PLACES = 1 << 12, MEAN = KEYS / PLACES };
    static unsigned place[2][PLACES];
    static const uint64_t seeds[2][2] = {{0x243f6a8885a308d3, 0x13198a2e03707344},
                                         {0xa4093822299f31d0, 0x082efa98ec4e6c89}};
    unsigned most = 0, same = 0, changed = 0;
    for (int i = 0; i < KEYS; i++) {
        char key[64];
        uint64_t h[2];
        int n = snprintf(key, sizeof key, "%.*s%d", i % 40, "/default_pg/0//cpu//0/rank_of_that_group/", i);
        char *bytes = malloc((size_t)n); /* a read beyond it is seen by a sanitizer */
        memcpy(bytes, key, (size_t)n);
        for (int s = 0; s < 2; s++) {
            h[s] = el_hash(seeds[s], bytes, (size_t)n);
            unsigned now = ++place[s][h[s] % PLACES];
            most = now > most ? now : most;
        }
        same += h[0] == h[1];
        bytes[i % n] ^= (char)(1 << i % 8);
        changed += el_hash(seeds[0], bytes, (size_t)n) != h[0];
        free(bytes);
    }
    ok(most < 5 * MEAN, "no place is crowded");
    ok(same == 0, "another seed, another hash");
    is_num(changed, KEYS, "each bit counts");
    ok(el_hash(seeds[0], "", 0) != el_hash(seeds[0], "\0", 1), "and so does the length");
}

int main(void)
{
    test_mem();
    test_parent();
    test_reclaim();
    test_sip();
    test_hash();
    test_buf();
    test_err();
    test_log();
    return done();
}
