/* What a store's sessions hold: values of the largest size, no memory, who is shed, how much output waits. */
#include "unit/store_stage.h"

/* Limits are limits: exactly that many pass. */
static void test_limits_pass(void)
{
    struct peer p;
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    open_kv();
    peer_open(&p);
    char *big = calloc(1, WIRE_VALUE_MAX);
    memset(big, 'x', WIRE_VALUE_MAX);
    wire_put_u8(&b, 0);
    wire_put_u32(&b, WIRE_MAGIC);
    wire_put_op(&b, WIRE_MODERN, WIRE_SET);
    wire_put_bytes(&b, (struct kv_bytes){big, WIRE_KEY_MAX});
    wire_put_bytes(&b, (struct kv_bytes){big, WIRE_VALUE_MAX});
    wire_put_op(&b, WIRE_MODERN, WIRE_CHECK);
    wire_put_u64(&b, WIRE_COUNT_MAX);
    for (unsigned i = 0; i < WIRE_COUNT_MAX; i++)
        wire_put_bytes(&b, (struct kv_bytes){big, i ? 0 : WIRE_KEY_MAX});
    for (size_t at = 0; at < b.len; at += 60000)
        feed(&p, b.v + at, b.len - at < 60000 ? b.len - at : 60000);
    ok(p.last == SESSION_MORE && got(&p, "< 01"), "a key of 8192 bytes, a value of 8 MiB, a list of 131072 keys");
    is_num(p.s.in.cap, 0, "a connection that owes nothing holds no memory");
    b.len = 0;
    wire_put_op(&b, WIRE_MODERN, WIRE_GET);
    wire_put_bytes(&b, (struct kv_bytes){big, WIRE_KEY_MAX});
    feed(&p, b.v, b.len);
    ok(p.out.len == 8 + WIRE_VALUE_MAX && !memcmp(p.out.v + 8, big, WIRE_VALUE_MAX), "the value comes back");
    free(big);
    el_buf_free(&b);
    peer_close(&p);
    close_kv();
}

/* A long value is read to where it will stay, in pieces of any size. */
static void test_room(void)
{
    struct peer p;
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    open_kv();
    peer_open(&p);
    char *big = calloc(1, 1 << 20);
    for (size_t i = 0; i < 1 << 20; i++)
        big[i] = (char)(i * 7 >> 3);
    vector_bytes("00 ce f7 85 3c", big, 5);
    el_buf_put(&b, big, 5);
    wire_put_op(&b, WIRE_MODERN, WIRE_SET);
    wire_put_bytes(&b, KV_BYTES("k"));
    wire_put_bytes(&b, (struct kv_bytes){big, 1 << 20});
    wire_put_op(&b, WIRE_MODERN, WIRE_GETNUMKEYS);
    size_t rooms = 0, used = 0, piece = 5;
    for (size_t at = 0; at < b.len; at += used, piece = piece * 3 % 50021 + 1) {
        size_t n = 0, left = b.len - at;
        char *to = session_room(&p.s, &n);
        n = !to || n > piece ? piece : n;
        n = n > left ? left : n;
        if (to)
            memcpy(to, b.v + at, n);
        rooms += to != NULL;
        p.last = session_feed(&p.s, to ? to : b.v + at, n, &used, &p.out);
        ok(p.s.in.cap <= 2 * at + (64 << 10) + 64, "room follows what has come, not what was announced");
    }
    ok(rooms > 5 && p.last == SESSION_MORE && got(&p, "< 01 00.."), "pieces land in the room they are given");
    b.len = 0;
    wire_put_op(&b, WIRE_MODERN, WIRE_GET);
    wire_put_bytes(&b, KV_BYTES("k"));
    feed(&p, b.v, b.len);
    ok(p.out.len == 8 + (1 << 20) && !memcmp(p.out.v + 8, big, 1 << 20), "and the value is whole");
    free(big);
    el_buf_free(&b);
    peer_close(&p);
    close_kv();
}

/* Whatever allocation fails, one connection ends and the map stays whole. */
static void test_no_memory(void)
{
    static const char *const scripts[] = {
        "> 00 01 00.. 'k' 03 00.. 'abc'",
        "> 03 01 00.. 'k' 01 00..",
        "> 01 01 00.. 'k' 00 00.. 01 00.. 'x'",
        "> 05 03 00.. 01 00.. 'a' 01 00.. 'b' 01 00.. 'c'",
        "> 05 01 00.. 01 00.. 'a'",
        "> 00 ce f7 85 3c 09 01 00.. 'k' 01 00.. 'x'",
        "> 00 ce f7 85 3c 0e 01 00.. 'k' 01 00.. 'x'",
        "> 00 ce f7 85 3c 0b 02 00.. 01 00.. 'k' 01 00.. 'x' 01 00.. 'l' 01 00.. 'y'",
        "> 00 ce f7 85 3c 12 01 00.. 'k' 02 00..",
    };
    int ended = 0, good = 1;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        for (long n = 0; n < 8; n++) {
            struct peer p;
            open_kv();
            peer_open(&p);
            mem.fail_after = n;
            send_line(&p, scripts[i]);
            mem.fail_after = -1;
            if (p.last == SESSION_END) {
                ended++;
                good &= p.s.end == SESSION_END_NO_MEMORY && kv_count(kv) <= 1;
            }
            peer_close(&p);
            close_kv();
        }
    ok(good && ended >= 20, "the n-th allocation fails: that connection ends, the map is whole");
}

/* The memory of the half of a request, taken for somebody else, in the middle of whatever asks for memory. */
static struct peer shed_peer;
static int shed_yes, shed_no;

static bool shed(struct el_mem *m)
{
    (void)m;
    bool yes = shed_peer.s.in.cap && session_shed(&shed_peer.s);
    *(yes ? &shed_yes : &shed_no) += 1;
    return yes;
}

static void test_shed(void)
{
    struct peer p;
    static char big[256 << 10];
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    size_t n = 0;
    open_kv();
    peer_open(&shed_peer);
    peer_open(&p);
    send_line(&p, "> 00 ce f7 85 3c");
    send_line(&shed_peer, "> 00 ce f7 85 3c");
    wire_put_op(&b, WIRE_MODERN, WIRE_SET);
    wire_put_bytes(&b, KV_BYTES("k"));
    wire_put_bytes(&b, (struct kv_bytes){big, sizeof big});
    /* Its own growth, and the change that its bytes make, must not take them away. */
    feed(&shed_peer, b.v, 100000);
    mem.reclaim = shed;
    mem.limit_bytes = mem.used_bytes;
    ok(!session_room(&shed_peer.s, &n) && shed_no == 1, "room for a request is not had by taking its own beginning");
    mem.limit_bytes = 0;
    feed(&shed_peer, b.v + 100000, b.len - 100001);
    mem.limit_bytes = mem.used_bytes;
    feed(&shed_peer, b.v + b.len - 1, 1);
    ok(shed_peer.last == SESSION_END && shed_peer.s.end == SESSION_END_NO_MEMORY && shed_no >= 2 && !shed_yes,
       "nor is room for its value");
    peer_close(&shed_peer);
    mem.limit_bytes = 0;
    peer_open(&shed_peer);
    send_line(&shed_peer, "> 00 ce f7 85 3c");
    feed(&shed_peer, b.v, b.len - 1);
    mem.limit_bytes = mem.used_bytes;
    send_line(&p, "> 01 01 00.. 'x' 01 00.. 'y' 03 01 00.. 'x'");
    ok(p.last == SESSION_MORE && got(&p, "< 01 00.. 'y'") && shed_yes == 1 && !shed_peer.s.in.cap,
       "another's request goes on with it");
    mem.limit_bytes = 0;
    mem.reclaim = NULL;
    el_buf_free(&b);
    peer_close(&shed_peer);
    peer_close(&p);
    close_kv();
}

static void test_soft_output(void)
{
    struct peer p;
    open_kv();
    peer_open(&p);
    static char many[64 << 10];
    memset(many, 6, sizeof many); /* GETNUMKEYS */
    size_t used = 0;
    enum session_step step = session_feed(&p.s, many, sizeof many, &used, &p.out);
    ok(step == SESSION_FLUSH && used == SESSION_OUT_SOFT_BYTES / 8, "output is to be sent before it grows large");
    p.out.len = 0;
    step = session_feed(&p.s, many + used, sizeof many - used, &used, &p.out);
    ok(step == SESSION_MORE && p.out.len == (sizeof many * 8 - SESSION_OUT_SOFT_BYTES), "then it goes on");
    peer_close(&p);
    close_kv();
}

int main(void)
{
    test_limits_pass();
    test_room();
    test_no_memory();
    test_shed();
    test_soft_output();
    return done();
}
