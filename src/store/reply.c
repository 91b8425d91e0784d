#include "store/reply.h"

#include <assert.h>

#include "store/wire.h"

static struct reply *new (struct kv *kv, struct el_mem *mem, size_t n)
{
    struct reply *a = el_alloc(mem, sizeof *a + n * sizeof a->hold[0]);
    if (!a)
        return NULL;
    a->kv = kv;
    a->mem = mem;
    a->n = n;
    return a;
}

struct reply *reply_of_values(struct kv *kv, struct el_mem *mem, size_t n)
{
    return new (kv, mem, n);
}

struct reply *reply_of_keys(struct kv *kv, struct el_mem *mem)
{
    struct reply *a = new (kv, mem, 0);
    if (!a)
        return NULL;
    a->lists = true;
    kv_list_begin(kv, &a->lister);
    return a;
}

void reply_free(struct reply *a)
{
    if (!a)
        return;
    if (a->lists)
        kv_list_end(a->kv, &a->lister);
    for (; a->at < a->n; a->at++)
        kv_release(a->kv, &a->hold[a->at]);
    el_free(a->mem, a);
}

size_t reply_costs(const struct reply *a)
{
    size_t sum = sizeof *a + a->n * sizeof a->hold[0] + (a->lists ? kv_list_costs(a->kv, &a->lister) : 0);
    for (size_t i = a->at; i < a->n; i++)
        sum += kv_hold_costs(&a->hold[i]);
    return sum;
}

static enum reply_step reply_put_keys(struct reply *a, struct el_buf *out)
{
    struct kv_bytes key;
    if (!a->measured && wire_put_u64(out, a->lister.left))
        return REPLY_NO_MEMORY;
    a->measured = true;
    while (out->len < REPLY_SOFT_BYTES) {
        if (!kv_list_next(a->kv, &a->lister, &key))
            return a->lister.torn ? REPLY_NO_MEMORY : REPLY_OVER;
        if (wire_put_bytes(out, key))
            return REPLY_NO_MEMORY;
    }
    return REPLY_MORE;
}

static void next(struct reply *a)
{
    kv_release(a->kv, &a->hold[a->at++]);
    a->measured = false;
    a->sent = 0;
}

/* The value at hand is long: its length, then where the rest of it lies. */
static enum reply_step reply_show(struct reply *a, struct el_buf *out, struct kv_bytes *piece)
{
    struct kv_bytes all = a->hold[a->at].bytes;
    if (!a->measured && wire_put_u64(out, all.n))
        return REPLY_NO_MEMORY;
    a->measured = true;
    *piece = (struct kv_bytes){all.v + a->sent, all.n - a->sent};
    return REPLY_MORE;
}

enum reply_step reply_step(struct reply *a, struct el_buf *out, struct kv_bytes *piece)
{
    *piece = (struct kv_bytes){NULL, 0};
    if (a->lists)
        return reply_put_keys(a, out);
    while (a->at < a->n) {
        if (a->measured || a->hold[a->at].bytes.n > REPLY_COPY_BYTES)
            return reply_show(a, out, piece);
        if (out->len >= REPLY_SOFT_BYTES)
            return REPLY_MORE;
        if (wire_put_bytes(out, a->hold[a->at].bytes))
            return REPLY_NO_MEMORY;
        next(a);
    }
    return REPLY_OVER;
}

void reply_took(struct reply *a, size_t n)
{
    assert(!n || (a->measured && !a->lists && n <= a->hold[a->at].bytes.n - a->sent));
    a->sent += n;
    if (n && a->sent == a->hold[a->at].bytes.n)
        next(a);
}
