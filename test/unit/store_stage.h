/* One store and its peers, fed with lines of bytes: what test_store_session.c and test_store_memory.c share. */
#ifndef TEST_UNIT_STORE_STAGE_H
#define TEST_UNIT_STORE_STAGE_H
#include <stdint.h>

#include "lib/tap.h"
#include "lib/vector.h"
#include "store/session.h"

static const uint8_t seed[16] = "unit test's seed";

struct peer {
    struct session s;
    struct el_buf out;
    enum session_step last;
};

static struct el_mem mem = EL_MEM_INIT(0);
static struct kv *kv;

static inline void drain(void)
{
    for (struct kv_wait *w; (w = kv_woken(kv));) {
        struct peer *p = (struct peer *)((char *)session_of(w) - offsetof(struct peer, s));
        wire_put_u8(&p->out, WIRE_STOP_WAITING);
    }
}

static inline void peer_open(struct peer *p)
{
    *p = (struct peer){.out = EL_BUF_INIT(NULL, 0)};
    session_init(&p->s, kv, &mem);
}

static inline void peer_close(struct peer *p)
{
    session_close(&p->s);
    el_buf_free(&p->out);
}

/* Sends on what is held, as a socket would that takes some bytes at a time.  How many calls that took; `most` becomes
 * what one of them put out at most, and what it showed does not count. */
static inline size_t take_held(struct peer *p, size_t *most)
{
    size_t calls = 0;
    while (p->last == SESSION_HELD) {
        struct kv_bytes piece;
        size_t before = p->out.len, n;
        struct el_buf out = EL_BUF_INIT(NULL, 0);
        p->last = session_piece(&p->s, &out, &piece);
        n = piece.n < 100001 ? piece.n : 100001;
        el_buf_put(&p->out, out.v, out.len);
        el_buf_put(&p->out, piece.v, n);
        el_buf_free(&out);
        if (p->last == SESSION_HELD)
            session_took(&p->s, n);
        if (most && p->out.len - n - before > *most)
            *most = p->out.len - n - before;
        calls++;
    }
    return calls;
}

/* Feeds a copy whose end is guarded by a sanitizer. */
static inline void feed(struct peer *p, const char *bytes, size_t n)
{
    char *copy = malloc(n ? n : 1);
    memcpy(copy, bytes, n);
    for (size_t at = 0, used = 0; at < n || !n; at += used) {
        p->last = session_feed(&p->s, copy + at, n - at, &used, &p->out);
        drain();
        bool held = p->last == SESSION_HELD;
        take_held(p, NULL);
        if (p->last != SESSION_FLUSH && !(held && p->last == SESSION_MORE))
            break;
    }
    free(copy);
    kv_check(kv);
}

static inline void send_line(struct peer *p, const char *line)
{
    static char bytes[1 << 16];
    long n = vector_bytes(line, bytes, sizeof bytes);
    if (n < 0)
        printf("Bail out! malformed vector: %s\n", line), exit(1);
    feed(p, bytes, (size_t)n);
}

/* The output so far equals the line; it is taken. */
static inline int got(struct peer *p, const char *line)
{
    char want[4096];
    long n = vector_bytes(line, want, sizeof want);
    int same = n >= 0 && p->out.len == (size_t)n && !memcmp(p->out.v ? p->out.v : "", want, (size_t)n);
    if (!same) {
        printf("# want %s\n#  got", line);
        for (size_t i = 0; i < p->out.len && i < 64; i++)
            printf(" %02x", (unsigned char)p->out.v[i]);
        printf("\n");
    }
    p->out.len = 0;
    return same;
}

static inline void open_kv(void)
{
    kv = kv_new(&mem, seed);
}

static inline void close_kv(void)
{
    kv_check(kv);
    kv_free(kv);
    if (mem.used_bytes)
        printf("Bail out! %zu bytes leaked\n", mem.used_bytes), exit(1);
}

/* A store with two clients. */
static inline void open_two(struct peer *a, struct peer *b)
{
    open_kv();
    peer_open(a);
    peer_open(b);
}

static inline void close_two(struct peer *a, struct peer *b)
{
    peer_close(a);
    peer_close(b);
    close_kv();
}

#endif
