/* Two connections to one map, from raw bytes, cut at random places: whatever comes, the map stays whole, nothing leaks,
 * and the answers do not depend on where the bytes were cut. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct peer {
    struct session s;
    struct el_buf out;
    int ended;
};

static const uint8_t seed[16];

static void drain(struct kv *kv)
{
    for (struct kv_wait *w; (w = kv_woken(kv));) {
        struct peer *p = (struct peer *)((char *)session_of(w) - offsetof(struct peer, s));
        wire_put_u8(&p->out, WIRE_STOP_WAITING);
    }
}

static void feed(struct kv *kv, struct peer *p, const uint8_t *bytes, size_t n)
{
    for (size_t at = 0, used = 0; at < n && !p->ended; at += used) {
        enum session_step step = session_feed(&p->s, (const char *)bytes + at, n - at, &used, &p->out);
        assert(used <= n - at && (step != SESSION_MORE || used == n - at));
        drain(kv);
        for (struct kv_bytes piece; step == SESSION_HELD;) {
            step = session_piece(&p->s, &p->out, &piece);
            size_t take = piece.n < 77 ? piece.n : 77;
            el_buf_put(&p->out, piece.v, take);
            if (step == SESSION_HELD)
                session_took(&p->s, take);
        }
        p->ended = step == SESSION_END;
    }
}

/* The first half of the bytes goes to one connection, the second to the other, in turns of `step` bytes; 0 = at once.
 */
static void run(const uint8_t *data, size_t n, size_t step, struct el_mem *mem, struct el_buf out[2])
{
    struct kv *kv = kv_new(mem, seed);
    struct peer p[2] = {{.out = EL_BUF_INIT(NULL, 0)}, {.out = EL_BUF_INIT(NULL, 0)}};
    const uint8_t *half[2] = {data, data + n / 2};
    size_t left[2] = {n / 2, n - n / 2};
    if (!kv)
        return;
    session_init(&p[0].s, kv, mem);
    session_init(&p[1].s, kv, mem);
    for (int i = 0; left[0] || left[1]; i = step ? !i : 1) {
        size_t take = !step || step > left[i] ? left[i] : step;
        feed(kv, &p[i], half[i], take);
        half[i] += take;
        left[i] -= take;
        kv_check(kv);
    }
    for (int i = 0; i < 2; i++) {
        session_close(&p[i].s);
        out[i] = p[i].out;
    }
    kv_check(kv);
    kv_free(kv);
    assert(mem->used_bytes == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct el_buf a[2] = {{0}};
    /* Interleaved, with an allocation that fails or a small limit. */
    struct el_mem mem = EL_MEM_INIT(64 << 10);
    mem.fail_after = data[1] < 128 ? data[1] : -1;
    run(data + 2, size - 2, (size_t)data[0] % 23 + 1, &mem, a);
    el_buf_free(&a[0]);
    el_buf_free(&a[1]);
    /* One after the other, at once and byte by byte. */
    struct el_mem large = EL_MEM_INIT(1 << 20);
    run(data + 2, size - 2, 0, &large, a);
    struct el_mem again = EL_MEM_INIT(1 << 20);
    struct kv *kv = kv_new(&again, seed);
    struct peer p[2] = {{.out = EL_BUF_INIT(NULL, 0)}, {.out = EL_BUF_INIT(NULL, 0)}};
    size_t n = size - 2;
    for (int i = 0; i < 2; i++)
        session_init(&p[i].s, kv, &again);
    for (size_t at = 0; at < n; at++)
        feed(kv, &p[at >= n / 2], data + 2 + at, 1);
    for (int i = 0; i < 2; i++) {
        assert(p[i].out.len == a[i].len && (!a[i].len || !memcmp(p[i].out.v, a[i].v, a[i].len)));
        session_close(&p[i].s);
        el_buf_free(&p[i].out);
        el_buf_free(&a[i]);
    }
    kv_free(kv);
    assert(again.used_bytes == 0);
    return 0;
}
