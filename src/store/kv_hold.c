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
    kv->listers_n++;
}

static void gone_unref(struct kv *kv, struct kv_gone *gone)
{
    if (!gone)
        return;
    assert(gone->refs && kv->gone_refs);
    kv->gone_refs--;
    if (--gone->refs)
        return;
    kv->gone_bytes -= gone->n;
    el_free(kv->mem, gone);
}

/* NULL: there is none. */
static struct kv_gone *gone_next(struct kv_lister *l)
{
    struct kv_gone *gone = NULL;
    if (l->gone_at == l->gone.len)
        return NULL;
    memcpy(&gone, l->gone.v + l->gone_at, sizeof gone);
    l->gone_at += sizeof gone;
    return gone;
}

bool kv_list_next(struct kv *kv, struct kv_lister *l, struct kv_bytes *key)
{
    gone_unref(kv, l->shown);
    l->shown = NULL;
    if (l->torn || !l->left)
        return false;
    l->left--;
    if (l->at) {
        *key = (struct kv_bytes){l->at->key, l->at->key_n};
        l->at = l->at->value_next;
        return true;
    }
    l->shown = gone_next(l);
    assert(l->shown);
    *key = (struct kv_bytes){l->shown->key, l->shown->n};
    return true;
}

void kv_list_end(struct kv *kv, struct kv_lister *l)
{
    gone_unref(kv, l->shown);
    for (struct kv_gone *gone; (gone = gone_next(l));)
        gone_unref(kv, gone);
    *(l->prev ? &l->prev->next : &kv->listers) = l->next;
    if (l->next)
        l->next->prev = l->prev;
    kv->listers_n--;
    el_buf_free(&l->gone);
    *l = (struct kv_lister){0};
}

size_t kv_lists(const struct kv *kv)
{
    return kv->listers_n;
}

size_t kv_list_costs(const struct kv *kv, const struct kv_lister *l)
{
    size_t refs = (l->gone.len - l->gone_at) / sizeof(struct kv_gone *);
    return l->gone.cap + (kv->gone_refs ? kv->gone_bytes / kv->gone_refs * refs : 0);
}

static struct kv_gone *gone_new(struct kv *kv, const struct kv_entry *e)
{
    struct kv_gone *gone = el_alloc(kv->mem, sizeof *gone + e->key_n);
    if (!gone)
        return NULL;
    gone->n = e->key_n;
    memcpy(gone->key, e->key, e->key_n);
    kv->gone_bytes += gone->n;
    gone->refs = 1;
    kv->gone_refs++;
    return gone;
}

/* One more list has to name it.  False: no memory. */
static bool gone_put(struct kv *kv, struct kv_lister *l, struct kv_gone *gone)
{
    if (!gone || el_buf_put(&l->gone, &gone, sizeof gone))
        return false;
    gone->refs++;
    kv->gone_refs++;
    return true;
}

/* The list of values has the newest in front, and they are walked from there: what was born no later than the next is
 * still to come. */
void kv_tell_listers(struct kv *kv, const struct kv_entry *e)
{
    struct kv_gone *gone = NULL;
    kv->telling = true;
    for (struct kv_lister *l = kv->listers; l; l = l->next) {
        if (!l->at || e->born > l->at->born)
            continue;
        if (l->at == e)
            l->at = e->value_next;
        if (!l->torn && !gone)
            gone = gone_new(kv, e);
        l->torn = l->torn || !gone_put(kv, l, gone);
    }
    gone_unref(kv, gone);
    kv->telling = false;
}

bool kv_is_telling(const struct kv *kv)
{
    return kv->telling;
}
