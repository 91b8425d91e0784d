/* Requests that are well formed, or nearly, with each value at its limits, from a few clients of one store whose memory
 * is short: counts and lengths that are announced and not kept, waits, cancels, barriers, lists, values that are sent
 * while they are replaced, clients that do not read, whose memory others get.  Whatever they say, the map stays whole,
 * nobody is answered but in the order of his requests, nothing leaks, and what waits for who does not read is bounded.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/session.h"
#include "store/waiters.h"
#include "fuzz/tape.h"
#include "util/array.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PEERS = 4, MEMORY = 6 << 20 };

struct peer {
    struct session s;
    size_t unread; /* bytes that it was sent */
    bool ended, broken;
    bool legacy;
    struct el_buf rest; /* what it has said; from rest_at on it was not heard yet */
    size_t rest_at;
};

static const uint8_t seed[16];
static struct peer peers[PEERS];
static struct el_mem mem;
static struct kv *kv;
static el_usec now;
static char filler[WIRE_VALUE_MAX + 2];

/* --- values at their limits --- */

static uint64_t length_of(struct tape *t, bool is_key, uint64_t most)
{
    const uint64_t values[] = {0,
                               1,
                               2,
                               20,
                               WIRE_KEY_MAX - 1,
                               WIRE_KEY_MAX,
                               REPLY_COPY_BYTES,
                               REPLY_COPY_BYTES + 1,
                               REPLY_SOFT_BYTES,
                               (uint64_t)1 << 20,
                               WIRE_KEY_MAX + 1,
                               WIRE_VALUE_MAX,
                               WIRE_VALUE_MAX + 1,
                               (uint64_t)1 << 32,
                               (uint64_t)1 << 63,
                               UINT64_MAX};
    unsigned pick = take(t);
    uint64_t n = values[pick < 192 ? pick % (is_key ? 6 : 10) : pick % COUNT_OF(values)];
    return n > most && pick < 250 ? most : n;
}

static void put_string(struct tape *t, bool is_key, size_t *left, struct el_buf *b)
{
    static const char *const keys[] = {"", "/k", "/q", "/b", "init/", "/default_pg/0//cpu//0/rank_3", "/never"};
    static const char *const values[] = {"", "0", "-1", "9223372036854775807", "-9223372036854775808", " +7x", "text"};
    unsigned pick = take(t);
    if (pick < 224) {
        const char *text = is_key ? keys[pick % COUNT_OF(keys)] : values[pick % COUNT_OF(values)];
        wire_put_bytes(b, (struct kv_bytes){text, strlen(text)});
        return;
    }
    uint64_t n = length_of(t, is_key, *left);
    size_t there = n > *left ? *left : (size_t)n; /* announced, and not all of it comes */
    *left -= there;
    wire_put_u64(b, n);
    el_buf_put(b, filler, there);
}

static void put_list(struct tape *t, bool pairs, size_t *left, struct el_buf *b)
{
    static const uint64_t counts[] = {
        0, 1, 2, 3, 700, 5000, WIRE_COUNT_MAX, WIRE_COUNT_MAX + 1, (uint64_t)1 << 32, UINT64_MAX};
    unsigned pick = take(t);
    uint64_t n = counts[pick < 200 ? pick % 4 : pick % COUNT_OF(counts)];
    wire_put_u64(b, n);
    for (uint64_t i = 0; i < n && i<WIRE_COUNT_MAX && * left> 64; i++)
        if (i < 4) {
            put_string(t, true, left, b);
            if (pairs)
                put_string(t, false, left, b);
        } else { /* so many can only be alike */
            wire_put_bytes(b, KV_BYTES("/k"));
            if (pairs)
                wire_put_bytes(b, KV_BYTES("1"));
            *left -= 20;
        }
}

static int64_t number_of(unsigned pick)
{
    static const int64_t values[] = {0, 1, -1, 2, 3, INT64_MAX, INT64_MIN, INT64_MAX - 1, (int64_t)1 << 32, 4};
    return values[pick % COUNT_OF(values)];
}

static const struct {
    enum wire_op op;
    uint8_t shape;
    int8_t legacy;
} ops[] = {
#define X(name, modern, old, shape) {WIRE_##name, shape, old},
    WIRE_OP_LIST(X)
#undef X
};

static void put_request(struct tape *t, struct peer *p, struct el_buf *b)
{
    unsigned pick = take(t), row = pick % COUNT_OF(ops);
    size_t left = take(t) < 250 ? REPLY_COPY_BYTES + 1 : (size_t)2 << 20;
    if (ops[row].op == WIRE_VALIDATE || (p->legacy ? ops[row].legacy < 0 : ops[row].op == WIRE_WATCH_KEY)) {
        wire_put_u8(b, (uint8_t)pick); /* an opcode that there may be or not */
        return;
    }
    wire_put_op(b, p->legacy ? WIRE_LEGACY : WIRE_MODERN, ops[row].op);
    uint8_t shape = ops[row].shape;
    if (shape & WIRE_KEY)
        put_string(t, true, &left, b);
    if (shape & WIRE_VALUE)
        put_string(t, false, &left, b);
    if (shape & WIRE_SECOND)
        put_string(t, false, &left, b);
    if (shape & WIRE_NUMBER)
        wire_put_u64(b, (uint64_t)number_of(take(t)));
    if (shape & WIRE_WORD)
        wire_put_u32(b, (uint32_t)number_of(take(t)));
    if (shape & (WIRE_KEYS | WIRE_PAIRS))
        put_list(t, shape & WIRE_PAIRS, &left, b);
}

/* --- the store --- */

static void peer_close(struct peer *p)
{
    session_close(&p->s);
    el_buf_free(&p->rest);
}

static void peer_open(struct peer *p, bool legacy)
{
    *p = (struct peer){.legacy = legacy, .rest = EL_BUF_INIT(NULL, (size_t)4 << 20)};
    session_init(&p->s, kv, &mem);
    if (!legacy)
        wire_put_u8(&p->rest, 0), wire_put_u32(&p->rest, WIRE_MAGIC);
}

/* As server_io.c does it. */
static bool reclaim(struct el_mem *of)
{
    struct peer *most = NULL;
    size_t mosts = 0;
    for (int i = 0; i < PEERS; i++) {
        size_t n = peers[i].broken || peers[i].ended ? 0 : session_costs(&peers[i].s);
        most = n > mosts ? &peers[i] : most;
        mosts = n > mosts ? n : mosts;
    }
    (void)of;
    if (!most || !session_shed(&most->s))
        return false;
    return most->broken = true;
}

static void drain(void)
{
    for (struct kv_wait *w; (w = kv_woken(kv));)
        ((struct peer *)((char *)session_of(w) - offsetof(struct peer, s)))->unread++;
}

/* Its next piece, if it reads; then its next requests. */
static void serve(struct peer *p, size_t most)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    enum session_step step = SESSION_MORE;
    if (p->s.answer) {
        struct kv_bytes piece;
        step = session_piece(&p->s, &out, &piece);
        size_t n = piece.n < most ? piece.n : most;
        volatile char sum = 0; /* what is shown can be read */
        for (size_t i = 0; i < n; i += 4096)
            sum = (char)(sum + piece.v[i]);
        if (step == SESSION_HELD)
            session_took(&p->s, n);
    } else if (p->rest.len) {
        size_t left = p->rest.len - p->rest_at, n = left < most ? left : most, used = 0;
        step = session_feed(&p->s, p->rest.v + p->rest_at, n, &used, &out);
        drain();
        assert(used <= n && (step != SESSION_MORE || used == n));
        p->rest_at += used;
        if (p->rest_at == p->rest.len)
            p->rest.len = p->rest_at = 0;
    }
    assert(out.len <= REPLY_SOFT_BYTES + (WIRE_VALUE_MAX + 8) + 64);
    p->ended = step == SESSION_END;
    el_buf_free(&out);
}

static void report(void)
{
    static bool come[PEERS];
    struct waiters_world world = {PEERS, come};
    struct el_buf lines = EL_BUF_INIT(NULL, 64 << 10);
    waiters_report(kv, &world, now, EL_SEC(1), &lines);
    waiters_list(kv, &world, now, &lines);
    el_buf_free(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tape t = {data, data + size};
    now = EL_SEC(1);
    mem = EL_MEM_INIT(MEMORY);
    mem.reclaim = reclaim;
    kv = kv_new(&mem, seed);
    for (int i = 0; i < PEERS; i++)
        peer_open(&peers[i], i == 3);
    while (t.at < t.end) {
        unsigned what = take(&t);
        struct peer *p = &peers[what % PEERS];
        if (p->ended || p->broken || what >= 250) {
            peer_close(p);
            peer_open(p, take(&t) % 4 == 0);
        } else if (what >= 240) {
            now += EL_SEC(2);
            report();
        } else if (what >= 100 || p->rest.len > (size_t)1 << 20) {
            serve(p, what >= 200 ? take(&t) + 1 : 128 << 10);
        } else {
            put_request(&t, p, &p->rest);
            if (p->s.wait.state == KV_WAIT_PENDING && !p->s.wait.since)
                p->s.wait.since = now;
        }
        if (what % 32 == 0)
            kv_check(kv);
    }
    for (int i = 0; i < PEERS; i++)
        peer_close(&peers[i]);
    kv_check(kv);
    kv_free(kv);
    if (mem.used_bytes)
        abort();
    return 0;
}
