/* Values and lists of keys that are sent piece by piece, and stay as they were when they were asked for. */
#include <assert.h>
#include <string.h>

#include "store/kv_private.h"

/* --- values ------------------------------------------------------------------------------------------------------- */

static void unref(struct kv *kv, struct kv_block *block)
{
    assert(block->refs);
    if (!--block->refs)
        el_free(kv->mem, block);
}

void kv_drop_block(struct kv *kv, struct kv_block *block)
{
    block->gone = true;
    unref(kv, block);
}

bool kv_hold(const struct kv *kv, struct kv_bytes key, struct kv_hold *hold)
{
    struct kv_entry *e = kv_find(kv, key);
    *hold = (struct kv_hold){0};
    if (!e || !e->value)
        return true;
    struct kv_block *block = (struct kv_block *)(void *)e->value - 1;
    if (block->refs == UINT32_MAX)
        return false;
    block->refs++;
    *hold = (struct kv_hold){block, {e->value, e->value_n}};
    return true;
}

void kv_release(struct kv *kv, struct kv_hold *hold)
{
    if (hold->block)
        unref(kv, hold->block);
    *hold = (struct kv_hold){0};
}

size_t kv_hold_costs(const struct kv_hold *hold)
{
    return hold->block && hold->block->gone ? hold->bytes.n / hold->block->refs : 0;
}

bool kv_queue_head(const struct kv *kv, struct kv_bytes key, struct kv_bytes *value)
{
    const struct kv_entry *e = kv_find(kv, key);
    if (!e || !e->queue)
        return false;
    *value = (struct kv_bytes){e->queue->head->v, e->queue->head->n};
    return true;
}

bool kv_queue_take(struct kv *kv, struct kv_bytes key, struct kv_hold *hold)
{
    struct kv_entry *e = kv_find(kv, key);
    if (!e || !e->queue)
        return false;
    struct item *item = e->queue->head;
    *hold = (struct kv_hold){&item->block, {item->v, item->n}};
    item->block.gone = true; /* its reference is the holder's from here on */
    e->queue->head = item->next;
    e->queue->n--;
    if (!e->queue->head) {
        el_free(kv->mem, e->queue);
        e->queue = NULL;
        kv_settle(kv, e);
    }
    return true;
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

void kv_list_begin(struct kv *kv, struct kv_lister *l)
{
    *l = (struct kv_lister){
        .next = kv->listers, .at = kv->valued_first, .left = kv->count, .gone = EL_BUF_INIT(kv->mem, 0)};
    if (l->next)
        l->next->prev = l;
    kv->listers = l;
}

bool kv_list_next(struct kv_lister *l, struct kv_bytes *key)
{
    if (l->torn || !l->left)
        return false;
    l->left--;
    if (l->at) {
        *key = (struct kv_bytes){l->at->key, l->at->key_n};
        l->at = l->at->value_next;
        return true;
    }
    assert(l->gone_at < l->gone.len);
    memcpy(&key->n, l->gone.v + l->gone_at, sizeof key->n);
    key->v = l->gone.v + l->gone_at + sizeof key->n;
    l->gone_at += sizeof key->n + key->n;
    return true;
}

void kv_list_end(struct kv *kv, struct kv_lister *l)
{
    *(l->prev ? &l->prev->next : &kv->listers) = l->next;
    if (l->next)
        l->next->prev = l->prev;
    el_buf_free(&l->gone);
    *l = (struct kv_lister){0};
}

/* The list of values has the newest in front, and they are walked from there: what was born no later than the next is
 * still to come. */
void kv_tell_listers(struct kv *kv, const struct kv_entry *e)
{
    kv->telling = true;
    for (struct kv_lister *l = kv->listers; l; l = l->next) {
        if (!l->at || e->born > l->at->born)
            continue;
        if (l->at == e)
            l->at = e->value_next;
        l->torn |= el_buf_put(&l->gone, &e->key_n, sizeof e->key_n) || el_buf_put(&l->gone, e->key, e->key_n);
    }
    kv->telling = false;
}

bool kv_is_telling(const struct kv *kv)
{
    return kv->telling;
}
