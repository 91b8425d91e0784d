/* The vectors of the protocol, at once, byte by byte and cut at every place; then what the vectors do not say. */
#include "unit/store_stage.h"

static const char *const legacy[] = {
    "> 03 05 00.. 'init/' 01 00..",
    "< 01 00..",
    "> 00 03 00.. '/k1' 03 00.. 'abc'",
    "> 05 01 00.. 03 00.. '/k1'",
    "< 00",
    "> 02 03 00.. '/k1'",
    "< 03 00.. 'abc'",
    "> 03 04 00.. '/cnt' 05 00..",
    "< 05 00..",
    "> 03 04 00.. '/cnt' fe ff ff ff ff ff ff ff",
    "< 03 00..",
    "> 05 01 00.. 04 00.. '/cnt'",
    "< 00",
    "> 02 04 00.. '/cnt'",
    "< 01 00.. '3'",
    "> 01 03 00.. '/cs' 00 00.. 02 00.. 'v1'",
    "< 02 00.. 'v1'",
    "> 01 06 00.. '/nokey' 02 00.. 'zz' 02 00.. 'v3'",
    "< 02 00.. 'zz'",
    "> 06",
    "< 04 00..",
    "> 08 03 00.. '/cs'",
    "< 01 00..",
    "> 08 03 00.. '/cs'",
    "< 00 00..",
    "> 06",
    "< 03 00..",
    "> 05 02 00.. 03 00.. '/k1' 04 00.. '/cnt'",
    "< 00",
    "> 04 01 00.. 03 00.. '/k1'",
    "< 00",
    "> 04 02 00.. 03 00.. '/k1' 02 00.. '/b'",
    "< 01",
    "> 04 00 00..",
    "< 00",
    "> 05 00 00..",
    "< 00",
    "> 05 01 00.. 06 00.. '/never'",
    NULL,
};

static const char *const modern[] = {
    "> 00 ce f7 85 3c",
    "> 0d 67 12 00 00",
    "< 67 12 00 00",
    "> 04 05 00.. 'init/' 01 00..",
    "< 01 00..",
    "> 01 02 00.. '/k' 01 00.. 'v'",
    "> 06 01 00.. 02 00.. '/k'",
    "< 00",
    "> 03 02 00.. '/k'",
    "< 01 00.. 'v'",
    "> 06 01 00.. 03 00.. '/no'",
    "> 0c",
    "< 01",
    "> 05 01 00.. 03 00.. '/no'",
    "< 01",
    "> 0a 01 00.. 02 00.. '/k'",
    "< 01 00.. 'v'",
    "> 0a 03 00.. 02 00.. '/k' 03 00.. '/no' 02 00.. '/k'",
    "< 01 00.. 'v' 00 00.. 01 00.. 'v'",
    "> 0f 02 00.. '/q'",
    "< 00 00..",
    "> 0e 02 00.. '/q' 01 00.. 'x'",
    "> 10 02 00.. '/q'",
    "< 01 00..",
    "> 05 01 00.. 02 00.. '/q'",
    "< 00",
    "> 0f 02 00.. '/q'",
    "< 01 00.. 01 00.. 'x'",
    "> 12 02 00.. '/b' 01 00..",
    "< 00",
    "> 03 02 00.. '/b'",
    "< 01 00.. '1'",
    "> 0b 02 00.. 02 00.. '/m' 01 00.. '1' 02 00.. '/n' 00 00..",
    "> 09 02 00.. '/m' 02 00.. '23'",
    "> 03 02 00.. '/m'",
    "< 03 00.. '123'",
    "> 08 02 00.. '/n'",
    "< 01 00..",
    "> 08 02 00.. '/m'",
    "< 01 00..",
    "> 08 02 00.. '/b'",
    "< 01 00..",
    "> 08 02 00.. '/k'",
    "< 01 00..",
    "> 07",
    "< 01 00..",
    "> 11",
    "< 01 00.. 05 00.. 'init/'",
    "> 03 02 00.. '/k'",
    "< 00 00..",
    NULL,
};

static size_t multi_get(char *to, unsigned count)
{
    size_t n = 0;
    to[n++] = 0x0a;
    memset(to + n, 0, 8);
    to[n] = (char)(count & 255);
    to[n + 1] = (char)(count >> 8);
    n += 8;
    for (unsigned i = 0; i < count; i++) {
        memset(to + n, 0, 8);
        to[n] = 2;
        memcpy(to + n + 8, "/k", 2);
        n += 10;
    }
    return n;
}

static int all_are(const struct el_buf *out, size_t count, char c, size_t n)
{
    int good = out->len == count * (n + 8);
    for (size_t i = 0; i < count && good; i++)
        good = wire_get_u64(out->v + i * (n + 8)) == n && out->v[i * (n + 8) + 8] == c &&
               !memcmp(out->v + i * (n + 8) + 8, out->v + i * (n + 8) + 9, n - 1);
    return good;
}

/* A request of a few bytes that asks for a thousand times as many: others have their turn between its pieces, it holds
 * no copy of them, and what it gets is what there was when it asked. */
static void test_long_answer(void)
{
    enum { COUNT = 600, LONG = 100 << 10 };
    static char request[1 << 14], values[2][1 << 20];
    static const size_t sizes[] = {LONG, 1000};
    memset(values[0], 'a', sizeof values[0]);
    memset(values[1], 'b', sizeof values[1]);
    for (size_t i = 0; i < 2; i++) {
        struct peer p, q;
        size_t n = multi_get(request, COUNT), used, most = 0, before;
        open_two(&p, &q);
        kv_set(kv, (struct kv_bytes){"/k", 2}, (struct kv_bytes){values[0], sizes[i]});
        send_line(&p, "> 00 ce f7 85 3c");
        send_line(&q, "> 00 ce f7 85 3c");
        before = mem.used_bytes;
        p.last = session_feed(&p.s, request, n, &used, &p.out);
        ok(p.last == SESSION_HELD && used == n && p.out.len <= SESSION_OUT_SOFT_BYTES + 1008, "it is begun");
        ok(mem.used_bytes - before < COUNT * 24 + 1024, "and nothing is copied for what is to come");
        send_line(&q, "> 03 02 00.. '/n'");
        ok(got(&q, "< 00 00.."), "another is served between its pieces");
        kv_set(kv, (struct kv_bytes){"/k", 2}, (struct kv_bytes){values[1], sizes[i]});
        is_num(session_costs(&p.s) >= sizes[i], 1, "what was replaced meanwhile is at its cost");
        kv_append(kv, (struct kv_bytes){"/k", 2}, (struct kv_bytes){values[1], 1 << 20});
        kv_delete(kv, (struct kv_bytes){"/k", 2});
        size_t calls = take_held(&p, &most);
        ok(p.last == SESSION_MORE && all_are(&p.out, COUNT, 'a', sizes[i]), "all values are those of the asking");
        ok(most <= SESSION_OUT_SOFT_BYTES + 1008 && calls > COUNT * sizes[i] / (SESSION_OUT_SOFT_BYTES * 2),
           "each piece is bounded");
        p.out.len = 0;
        send_line(&p, "> 03 02 00.. '/n'");
        ok(got(&p, "< 00 00.."), "then it goes on");
        close_two(&p, &q);
    }
}

/* One value, however it is asked for: by reference if it is long, and whoever goes in the middle leaves nothing. */
static void test_long_value(void)
{
    static char value[200 << 10], line[256];
    static const char *const asks[] = {"> 03 02 00.. '/k'", "> 0f 02 00.. '/q'",
                                       "> 02 02 00.. '/k' 01 00.. 'a' 01 00.. 'b'", "> 0a 01 00.. 02 00.. '/k'"};
    memset(value, 'v', sizeof value);
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
        for (int whole = 0; whole < 2; whole++) {
            struct peer p;
            open_kv();
            peer_open(&p);
            kv_set(kv, (struct kv_bytes){"/k", 2}, (struct kv_bytes){value, sizeof value});
            kv_queue_push(kv, (struct kv_bytes){"/q", 2}, (struct kv_bytes){value, sizeof value});
            send_line(&p, "> 00 ce f7 85 3c");
            long n = vector_bytes(asks[i], line, sizeof line);
            size_t used, before = mem.used_bytes, skip = i == 1 ? 8 : 0;
            p.last = session_feed(&p.s, line, (size_t)n, &used, &p.out);
            ok(p.last == SESSION_HELD && p.out.len == skip && mem.used_bytes <= before + 1024, "nothing is copied");
            if (whole)
                take_held(&p, NULL);
            ok(!whole || (p.out.len == skip + 8 + sizeof value && wire_get_u64(p.out.v + skip) == sizeof value &&
                          !memcmp(p.out.v + skip + 8, value, sizeof value)),
               "the value comes whole, or its client goes in between");
            is_num(kv_queue_length(kv, (struct kv_bytes){"/q", 2}), i != 1, "a queue's head is taken by its POP");
            peer_close(&p);
            close_kv();
        }
}

/* A list of keys is that of its instant, whatever comes and goes before it is sent. */
static void test_long_list(void)
{
    enum { COUNT = 40000 };
    static char seen[COUNT];
    char key[32];
    struct peer p;
    size_t used, most = 0;
    open_kv();
    peer_open(&p);
    send_line(&p, "> 00 ce f7 85 3c");
    for (int i = 0; i < COUNT; i++)
        kv_set(kv, (struct kv_bytes){key, (size_t)snprintf(key, sizeof key, "%029d", i)}, (struct kv_bytes){"", 0});
    p.last = session_feed(&p.s, "\x11", 1, &used, &p.out);
    struct kv_bytes piece;
    p.last = session_piece(&p.s, &p.out, &piece);
    ok(p.last == SESSION_HELD && p.out.len <= REPLY_SOFT_BYTES + 64, "a long list is begun");
    for (int i = 0; i < COUNT; i += 3)
        kv_delete(kv, (struct kv_bytes){key, (size_t)snprintf(key, sizeof key, "%029d", i)});
    for (int i = 0; i < COUNT; i += 6)
        kv_set(kv, (struct kv_bytes){key, (size_t)snprintf(key, sizeof key, "%029d", i)}, (struct kv_bytes){"x", 1});
    kv_set(kv, KV_BYTES("new"), KV_BYTES("x"));
    take_held(&p, &most);
    int good = p.last == SESSION_MORE && p.out.len == 8 + COUNT * 37 && wire_get_u64(p.out.v) == COUNT;
    for (size_t at = 8; good && at < p.out.len; at += 37) {
        int i = atoi(memcpy(key, p.out.v + at + 8, 29));
        good = wire_get_u64(p.out.v + at) == 29 && i < COUNT && !seen[i]++;
    }
    ok(good, "each key that there was comes once");
    ok(most <= REPLY_SOFT_BYTES + 64, "in pieces");
    p.out.len = 0;
    send_line(&p, "> 07");
    ok(p.out.len == 8 && wire_get_u64(p.out.v) == kv_count(kv), "then it goes on");
    p.last = session_feed(&p.s, "\x11", 1, &used, &p.out);
    peer_close(&p);
    close_kv();
}

/* Who deletes keys while many list them: it takes little memory for each, others are heard in between, and each list is
 * that of its instant. */
static void test_deletes_under_lists(void)
{
    enum { LISTS = 200, KEYS = 300, LONG = 400, TOLD = 8 + 8 };
    static struct peer lists[LISTS];
    struct peer p;
    char key[LONG + 1];
    struct el_buf asks = EL_BUF_INIT(NULL, 0);
    size_t used = 0, most = 0, turns = 0;
    open_kv();
    peer_open(&p);
    send_line(&p, "> 00 ce f7 85 3c");
    for (int i = 0; i < KEYS; i++) {
        struct kv_bytes name = {key, (size_t)snprintf(key, sizeof key, "%0*d", LONG, i)};
        kv_set(kv, name, (struct kv_bytes){"", 0});
        wire_put_op(&asks, WIRE_MODERN, WIRE_DELETE_KEY);
        wire_put_bytes(&asks, name);
    }
    for (int i = 0; i < LISTS; i++) {
        peer_open(&lists[i]);
        send_line(&lists[i], "> 00 ce f7 85 3c");
        lists[i].last = session_feed(&lists[i].s, "\x11", 1, &used, &lists[i].out);
    }
    size_t before = mem.used_bytes;
    p.last = SESSION_FLUSH;
    for (size_t at = 0; p.last == SESSION_FLUSH; at += used, turns++) {
        size_t answered = p.out.len;
        p.last = session_feed(&p.s, asks.v + at, asks.len - at, &used, &p.out);
        most = p.out.len - answered > most ? p.out.len - answered : most;
    }
    ok(p.last == SESSION_MORE && p.out.len == KEYS * 8 && !kv_count(kv), "all keys are deleted");
    ok(turns > 1 && most / 8 * LISTS <= SESSION_TOIL_SOFT + LISTS, "others are heard before all lists know of all");
    ok(mem.used_bytes < before + LISTS * KEYS * TOLD, "what is told to many is kept once");
    ok(session_costs(&lists[0].s) >= KEYS * LONG / LISTS, "at the cost of those who have not read it");
    for (int i = 0; i < LISTS; i += LISTS - 1) {
        take_held(&lists[i], NULL);
        int good = lists[i].out.len == 8 + KEYS * (8 + LONG) && wire_get_u64(lists[i].out.v) == KEYS;
        for (size_t k = 0; good && k < KEYS; k++)
            good = atoi(memcpy(key, lists[i].out.v + 8 + k * (8 + LONG) + 8, LONG)) == (int)k;
        ok(good, "a list has each of them");
    }
    for (int i = 0; i < LISTS; i++)
        peer_close(&lists[i]);
    peer_close(&p);
    el_buf_free(&asks);
    close_kv();
}

static void run_vectors(const char *const *lines, const char *name)
{
    static char in[8192], want[8192];
    size_t in_n = 0, want_n = 0;
    char what[128];
    for (; *lines; lines++) {
        long n = **lines == '>' ? vector_bytes(*lines, in + in_n, sizeof in - in_n)
                                : vector_bytes(*lines, want + want_n, sizeof want - want_n);
        if (n < 0)
            printf("Bail out! %s\n", *lines), exit(1);
        *(**lines == '>' ? &in_n : &want_n) += (size_t)n;
    }
    for (size_t step = 1; step <= 40; step++) {
        struct peer p;
        open_kv();
        peer_open(&p);
        for (size_t at = 0; at < in_n; at += step)
            feed(&p, in + at, in_n - at < step ? in_n - at : step);
        snprintf(what, sizeof what, "%s vectors in pieces of %zu bytes", name, step);
        ok(p.out.len == want_n && !memcmp(p.out.v, want, want_n) && p.last == SESSION_MORE, what);
        peer_close(&p);
        close_kv();
    }
    int good = 1;
    for (size_t cut = 0; cut <= in_n; cut++) {
        struct peer p;
        open_kv();
        peer_open(&p);
        feed(&p, in, cut);
        feed(&p, in + cut, in_n - cut);
        good &= p.out.len == want_n && !memcmp(p.out.v, want, want_n);
        peer_close(&p);
        close_kv();
    }
    snprintf(what, sizeof what, "%s vectors cut in two at every place", name);
    ok(good, what);
}

static const struct {
    const char *name, *request;
} wakers[] = {
    {"SET", "> 01 02 00.. '/w' 01 00.. '1'"},
    {"ADD", "> 04 02 00.. '/w' 00 00.."},
    {"APPEND", "> 09 02 00.. '/w' 00 00.."},
    {"MULTI_SET", "> 0b 01 00.. 02 00.. '/w' 00 00.."},
    {"COMPARE_SET", "> 02 02 00.. '/w' 00 00.. 01 00.. 'x'"},
    {"QUEUE_PUSH", "> 0e 02 00.. '/w' 01 00.. 'x'"},
    {"the last BARRIER", "> 12 02 00.. '/w' 01 00.."},
};

static void test_wake(void)
{
    char what[96];
    for (size_t i = 0; i < sizeof wakers / sizeof *wakers; i++) {
        struct peer a, b;
        open_two(&a, &b);
        send_line(&a, "> 00 ce f7 85 3c 06 02 00.. 02 00.. '/w' 02 00.. '/k'");
        send_line(&b, "> 00 ce f7 85 3c 01 02 00.. '/k' 00 00..");
        ok(got(&a, "<"), "one of two keys does not release");
        send_line(&b, wakers[i].request);
        snprintf(what, sizeof what, "a WAIT is released by %s", wakers[i].name);
        ok(got(&a, "< 00"), what);
        send_line(&b, wakers[i].request);
        send_line(&a, "> 0c");
        ok(got(&a, "< 01"), "released once; CANCEL_WAIT with nothing pending is answered");
        close_two(&a, &b);
    }
}

static void test_compare_set_wakes_nobody(void)
{
    struct peer a, b;
    open_two(&a, &b);
    send_line(&a, "> 00 ce f7 85 3c 06 01 00.. 02 00.. '/w'");
    send_line(&b, "> 00 ce f7 85 3c 02 02 00.. '/w' 01 00.. 'a' 01 00.. 'x'");
    ok(got(&a, "<") && got(&b, "< 01 00.. 'a'"), "a COMPARE_SET that stores nothing releases nobody");
    send_line(&b, "> 01 02 00.. '/w' 00 00.. 0d 01 00 00 00");
    send_line(&a, "> 0c");
    ok(got(&a, "< 00 01"), "a cancel that comes too late is answered after the release");
    close_two(&a, &b);
}

static void test_queue_wakes_one(void)
{
    struct peer p[3];
    open_kv();
    for (int i = 0; i < 3; i++) {
        peer_open(&p[i]);
        send_line(&p[i], "> 00 ce f7 85 3c");
    }
    send_line(&p[0], "> 06 02 00.. 02 00.. '/q' 02 00.. '/r'");
    send_line(&p[1], "> 06 01 00.. 02 00.. '/q'");
    send_line(&p[2], "> 0e 02 00.. '/q' 01 00.. 'x'");
    ok(got(&p[0], "<") && got(&p[1], "< 00"), "a push passes one who misses more, and releases the next");
    send_line(&p[1], "> 06 01 00.. 02 00.. '/s'");
    send_line(&p[0], "> 0c 06 01 00.. 02 00.. '/s'");
    ok(got(&p[0], "< 01"), "cancelled");
    send_line(&p[2], "> 0e 02 00.. '/s' 01 00.. 'x'");
    ok(got(&p[1], "< 00") && got(&p[0], "<"), "a push releases one waiter, the oldest");
    for (int i = 0; i < 3; i++)
        peer_close(&p[i]);
    close_kv();
}

static void test_barrier(void)
{
    struct peer p[3];
    open_kv();
    for (int i = 0; i < 3; i++) {
        peer_open(&p[i]);
        send_line(&p[i], "> 00 ce f7 85 3c 12 02 00.. '/b' 03 00..");
        ok(i == 2 || got(&p[i], "<"), "waits");
    }
    ok(got(&p[0], "< 00") && got(&p[1], "< 00") && got(&p[2], "< 00"), "the third opens the barrier");
    send_line(&p[0], "> 12 02 00.. '/b' 03 00..");
    ok(got(&p[0], "< 00"), "a used barrier is open");
    for (int i = 0; i < 3; i++)
        peer_close(&p[i]);
    close_kv();
}

/* Torch 1.13 gives up a wait without a word; its server then shifts all later answers. */
static void test_legacy_abandoned_wait(void)
{
    struct peer a, b;
    open_two(&a, &b);
    send_line(&a, "> 00 02 00.. '/x' 01 00.. '7'");
    send_line(&a, "> 05 01 00.. 06 00.. '/never'");
    send_line(&a, "> 05 01 00.. 02 00.. '/x' 02 02 00.. '/x'");
    ok(got(&a, "< 00 01 00.. '7'"), "the next request ends the wait");
    send_line(&b, "> 00 06 00.. '/never' 00 00..");
    send_line(&a, "> 03 02 00.. '/c' 03 00.. 05 01 00.. 02 00.. '/x'");
    ok(got(&a, "< 03 00.. 00"), "answers are not shifted by a key that came later");
    close_two(&a, &b);
}

static const struct {
    const char *what, *bytes;
    enum session_end end;
    enum wire_error error;
    const char *reply;
} refused[] = {
    {"HTTP GET", "'GET / HTTP/1.1'", SESSION_END_HTTP, 0, ""},
    {"HTTP POST", "'POST /x'", SESSION_END_HTTP, 0, ""},
    {"HTTP/2", "'PRI * HTTP/2.0'", SESSION_END_HTTP, 0, ""},
    {"TLS hello", "16 03 01 02 00 01", SESSION_END_TLS, 0, ""},
    {"control protocol", "'ELR1'", SESSION_END_CONTROL, 0, ""},
    {"almost HTTP", "'GETX'", SESSION_END_STRANGER, 0, ""},
    {"SSH", "'SSH-2.0-x'", SESSION_END_STRANGER, 0, ""},
    {"ff", "ff", SESSION_END_STRANGER, 0, ""},
    {"modern: unknown opcode", "00 ce f7 85 3c 13", SESSION_END_WIRE, WIRE_ERROR_OPCODE, ""},
    {"modern: hello twice", "00 ce f7 85 3c 00 ce f7 85 3c", SESSION_END_HELLO_AGAIN, 0, ""},
    {"legacy: 9", "09", SESSION_END_WIRE, WIRE_ERROR_TORCH_2_1, ""},
    {"legacy: 10", "06 0a", SESSION_END_WIRE, WIRE_ERROR_TORCH_2_1, "< 00 00.."},
    {"legacy: 11", "06 0b", SESSION_END_WIRE, WIRE_ERROR_TORCH_2_1, "< 00 00.."},
    {"legacy: 7 after ordinary requests", "06 07", SESSION_END_WIRE, WIRE_ERROR_TORCH_2_1, "< 00 00.."},
    {"legacy: 12", "0c", SESSION_END_STRANGER, 0, ""},
    {"legacy: 12 later", "06 0c", SESSION_END_WIRE, WIRE_ERROR_OPCODE, "< 00 00.."},
    {"magic with another end", "00 ce f7 85 3d 00 00 00 00", SESSION_END_WIRE, WIRE_ERROR_KEY_LENGTH, ""},
    {"key of 8193", "03 01 20 00 00 00 00 00 00", SESSION_END_WIRE, WIRE_ERROR_KEY_LENGTH, ""},
    {"key of 2^63", "02 00 00 00 00 00 00 00 80", SESSION_END_WIRE, WIRE_ERROR_KEY_LENGTH, ""},
    {"key of 2^32", "02 00 00 00 00 01 00 00 00", SESSION_END_WIRE, WIRE_ERROR_KEY_LENGTH, ""},
    {"value of 8 MiB + 1", "00 01 00.. 'k' 01 00 80 00 00 00 00 00", SESSION_END_WIRE, WIRE_ERROR_VALUE_LENGTH, ""},
    {"value of 2^64 - 1", "00 01 00.. 'k' ff ff ff ff ff ff ff ff", SESSION_END_WIRE, WIRE_ERROR_VALUE_LENGTH, ""},
    {"131073 keys", "05 01 00 02 00 00 00 00 00", SESSION_END_WIRE, WIRE_ERROR_COUNT, ""},
    {"2^63 pairs", "00 ce f7 85 3c 0b 00 00 00 00 00 00 00 80", SESSION_END_WIRE, WIRE_ERROR_COUNT, ""},
    {"ADD on text", "00 01 00.. 'k' 01 00.. 'x' 03 01 00.. 'k' 01 00..", SESSION_END_NOT_NUMBER, 0, ""},
    {"ADD on nothing", "00 01 00.. 'k' 00 00.. 03 01 00.. 'k' 01 00..", SESSION_END_NOT_NUMBER, 0, ""},
    {"ADD on a lonely sign", "00 01 00.. 'k' 01 00.. '-' 03 01 00.. 'k' 01 00..", SESSION_END_NOT_NUMBER, 0, ""},
    {"ADD on 2^63", "00 01 00.. 'k' 13 00.. '9223372036854775808' 03 01 00.. 'k' 01 00..", SESSION_END_NOT_NUMBER, 0,
     ""},
    {"ADD on -2^63-1", "00 01 00.. 'k' 14 00.. '-9223372036854775809' 03 01 00.. 'k' 01 00..", SESSION_END_NOT_NUMBER,
     0, ""},
    {"BARRIER on text", "00 ce f7 85 3c 01 01 00.. 'k' 01 00.. 'x' 12 01 00.. 'k' 01 00..", SESSION_END_NOT_NUMBER, 0,
     ""},
};

static void test_refused(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct peer p, q;
        size_t before = mem.peak_bytes = mem.used_bytes;
        open_two(&p, &q);
        send_line(&q, "> 00 ce f7 85 3c");
        send_line(&p, refused[i].bytes);
        char what[128];
        snprintf(what, sizeof what, "%s: closed (%s)", refused[i].what, session_end_text(&p.s));
        ok(p.last == SESSION_END && p.s.end == refused[i].end && p.s.wire.error == refused[i].error, what);
        ok(got(&p, refused[i].reply), "what was asked before is answered");
        ok(mem.peak_bytes - before < 4096, "nothing is allocated by a length that a peer sent");
        send_line(&q, "> 05 00 00..");
        ok(got(&q, "< 00"), "the others are served");
        close_two(&p, &q);
    }
}

static const struct {
    const char *text, *delta, *sum, *after;
} sums[] = {
    {"02 00.. '10'", "01 00..", "0b 00..", "02 00.. '11'"},
    {"07 00.. '  12abc'", "01 00..", "0d 00..", "02 00.. '13'"},
    {"02 00.. '-5'", "05 00..", "00 00..", "01 00.. '0'"},
    {"03 00.. '+07'", "f8 ff ff ff ff ff ff ff", "ff ff ff ff ff ff ff ff", "02 00.. '-1'"},
    {"14 00.. '00000000000000000041'", "01 00..", "2a 00..", "02 00.. '42'"},
    {"13 00.. '9223372036854775807'", "01 00..", "00 00 00 00 00 00 00 80", "14 00.. '-9223372036854775808'"},
    {"14 00.. '-9223372036854775808'", "ff ff ff ff ff ff ff ff", "ff ff ff ff ff ff ff 7f",
     "13 00.. '9223372036854775807'"},
};

static void test_sums(void)
{
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        struct peer p;
        char line[256], want[256];
        open_kv();
        peer_open(&p);
        snprintf(line, sizeof line, "> 00 01 00.. 'k' %s 03 01 00.. 'k' %s 02 01 00.. 'k'", sums[i].text,
                 sums[i].delta);
        snprintf(want, sizeof want, "< %s %s", sums[i].sum, sums[i].after);
        send_line(&p, line);
        snprintf(line, sizeof line, "ADD on %s", sums[i].text);
        ok(got(&p, want), line);
        peer_close(&p);
        close_kv();
    }
}

int main(void)
{
    run_vectors(legacy, "legacy");
    run_vectors(modern, "modern");
    test_wake();
    test_compare_set_wakes_nobody();
    test_queue_wakes_one();
    test_barrier();
    test_long_answer();
    test_long_value();
    test_long_list();
    test_deletes_under_lists();
    test_legacy_abandoned_wait();
    test_refused();
    test_sums();
    return done();
}
