#include "store/answer.h"

#include <assert.h>

#include "store/wire.h"

static struct answer *new (struct kv *kv, struct el_mem *mem, size_t n)
{
    struct answer *a = el_alloc(mem, sizeof *a + n * sizeof a->hold[0]);
    if (!a)
        return NULL;
    a->kv = kv;
    a->mem = mem;
    a->n = n;
    return a;
}

struct answer *answer_of_values(struct kv *kv, struct el_mem *mem, size_t n)
{
    return new (kv, mem, n);
}

struct answer *answer_of_keys(struct kv *kv, struct el_mem *mem)
{
    struct answer *a = new (kv, mem, 0);
    if (!a)
        return NULL;
    a->lists = true;
    kv_list_begin(kv, &a->lister);
    return a;
}

void answer_free(struct answer *a)
{
    if (!a)
        return;
    if (a->lists)
        kv_list_end(a->kv, &a->lister);
    for (; a->at < a->n; a->at++)
        kv_release(a->kv, &a->hold[a->at]);
    el_free(a->mem, a);
}

size_t answer_costs(const struct answer *a)
{
    size_t sum = sizeof *a + a->n * sizeof a->hold[0] + (a->lists ? kv_list_costs(a->kv, &a->lister) : 0);
    for (size_t i = a->at; i < a->n; i++)
        sum += kv_hold_costs(&a->hold[i]);
    return sum;
}

static enum answer_step put_keys(struct answer *a, struct el_buf *out)
{
    struct kv_bytes key;
    if (!a->measured && wire_put_u64(out, a->lister.left))
        return ANSWER_NO_MEMORY;
    a->measured = true;
    while (out->len < ANSWER_SOFT_BYTES) {
        if (!kv_list_next(a->kv, &a->lister, &key))
            return a->lister.torn ? ANSWER_NO_MEMORY : ANSWER_OVER;
        if (wire_put_bytes(out, key))
            return ANSWER_NO_MEMORY;
    }
    return ANSWER_MORE;
}

static void next(struct answer *a)
{
    kv_release(a->kv, &a->hold[a->at++]);
    a->measured = false;
    a->sent = 0;
}

/* The value at hand is long: its length, then where the rest of it lies. */
static enum answer_step show(struct answer *a, struct el_buf *out, struct kv_bytes *piece)
{
    struct kv_bytes all = a->hold[a->at].bytes;
    if (!a->measured && wire_put_u64(out, all.n))
        return ANSWER_NO_MEMORY;
    a->measured = true;
    *piece = (struct kv_bytes){all.v + a->sent, all.n - a->sent};
    return ANSWER_MORE;
}

enum answer_step answer_step(struct answer *a, struct el_buf *out, struct kv_bytes *piece)
{
    *piece = (struct kv_bytes){NULL, 0};
    if (a->lists)
        return put_keys(a, out);
    while (a->at < a->n) {
        if (a->measured || a->hold[a->at].bytes.n > ANSWER_COPY_BYTES)
            return show(a, out, piece);
        if (out->len >= ANSWER_SOFT_BYTES)
            return ANSWER_MORE;
        if (wire_put_bytes(out, a->hold[a->at].bytes))
            return ANSWER_NO_MEMORY;
        next(a);
    }
    return ANSWER_OVER;
}

void answer_took(struct answer *a, size_t n)
{
    assert(!n || (a->measured && !a->lists && n <= a->hold[a->at].bytes.n - a->sent));
    a->sent += n;
    if (n && a->sent == a->hold[a->at].bytes.n)
        next(a);
}
