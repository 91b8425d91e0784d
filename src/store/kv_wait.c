#include <assert.h>

#include "store/kv_private.h"

static void waits_append(struct kv_wait **first, struct kv_wait **last, struct kv_wait *w)
{
    w->next = NULL;
    w->prev = *last;
    if (*last)
        (*last)->next = w;
    else
        *first = w;
    *last = w;
}

static void waits_remove(struct kv_wait **first, struct kv_wait **last, struct kv_wait *w)
{
    if (w->prev)
        w->prev->next = w->next;
    else
        *first = w->next;
    if (w->next)
        w->next->prev = w->prev;
    else
        *last = w->prev;
    w->prev = w->next = NULL;
}

static void link_add(struct kv *kv, struct kv_entry *e, struct kv_link *link, struct kv_wait *w)
{
    *link = (struct kv_link){.entry = e, .wait = w, .prev = e->last};
    if (e->last) {
        e->last->next = link;
    } else {
        e->first = link;
        e->report_at = 0;
        e->next = NULL;
        e->prev = kv->awaited_last;
        if (kv->awaited_last)
            kv->awaited_last->next = e;
        else
            kv->awaited_first = e;
        kv->awaited_last = e;
    }
    e->last = link;
    e->waiters++;
}

/* The entry may be gone afterwards, unless it has a value. */
static void link_remove(struct kv *kv, struct kv_link *link)
{
    struct kv_entry *e = link->entry;
    if (!e)
        return;
    if (link->prev)
        link->prev->next = link->next;
    else
        e->first = link->next;
    if (link->next)
        link->next->prev = link->prev;
    else
        e->last = link->prev;
    *link = (struct kv_link){0};
    e->waiters--;
    if (e->first)
        return;
    if (e->prev)
        e->prev->next = e->next;
    else
        kv->awaited_first = e->next;
    if (e->next)
        e->next->prev = e->prev;
    else
        kv->awaited_last = e->prev;
    kv_settle(kv, e);
}

static void links_free(struct kv *kv, struct kv_wait *w)
{
    if (w->links != &w->one)
        el_free(kv->mem, w->links);
    w->links = NULL;
    w->links_n = 0;
}

enum kv_result kv_wait_begin(struct kv *kv, struct kv_wait *w, size_t n)
{
    assert(w->state == KV_WAIT_NONE && n > 0 && n <= UINT32_MAX);
    w->links = n == 1 ? &w->one : el_alloc(kv->mem, n * sizeof *w->links);
    if (!w->links)
        return KV_NO_MEMORY;
    w->links_n = 0;
    w->missing = 0;
    w->since = 0;
    w->state = KV_WAIT_PENDING;
    waits_append(&kv->pending_first, &kv->pending_last, w);
    return KV_DONE;
}

enum kv_result kv_wait_for(struct kv *kv, struct kv_wait *w, struct kv_bytes key)
{
    assert(w->state == KV_WAIT_PENDING);
    struct kv_entry *e = kv_obtain(kv, key);
    if (!e) {
        kv_wait_cancel(kv, w);
        return KV_NO_MEMORY;
    }
    link_add(kv, e, &w->links[w->links_n++], w);
    w->missing++;
    return KV_DONE;
}

void kv_wait_cancel(struct kv *kv, struct kv_wait *w)
{
    if (w->state == KV_WAIT_PENDING) {
        for (uint32_t i = 0; i < w->links_n; i++)
            link_remove(kv, &w->links[i]);
        waits_remove(&kv->pending_first, &kv->pending_last, w);
        links_free(kv, w);
    } else if (w->state == KV_WAIT_WOKEN) {
        waits_remove(&kv->woken_first, &kv->woken_last, w);
    }
    w->state = KV_WAIT_NONE;
}

struct kv_wait *kv_woken(struct kv *kv)
{
    struct kv_wait *w = kv->woken_first;
    if (!w)
        return NULL;
    waits_remove(&kv->woken_first, &kv->woken_last, w);
    w->state = KV_WAIT_NONE;
    return w;
}

/* One missing key has come.  True if that was the last one. */
static bool link_fulfil(struct kv *kv, struct kv_link *link)
{
    struct kv_wait *w = link->wait;
    assert(w->state == KV_WAIT_PENDING && w->missing > 0);
    link_remove(kv, link);
    if (--w->missing)
        return false;
    links_free(kv, w);
    waits_remove(&kv->pending_first, &kv->pending_last, w);
    waits_append(&kv->woken_first, &kv->woken_last, w);
    w->state = KV_WAIT_WOKEN;
    return true;
}

/* Those that miss other keys too have this one now, but they are not the one that is released. */
void kv_wake_one(struct kv *kv, struct kv_entry *e)
{
    assert(e->value || e->queue);
    while (e->first && !link_fulfil(kv, e->first))
        ;
}

void kv_wake_all(struct kv *kv, struct kv_entry *e)
{
    assert(e->value);
    while (e->first)
        link_fulfil(kv, e->first);
}

/* --- reports and checks ------------------------------------------------------------------------------------------- */

struct kv_entry *kv_awaited_first(const struct kv *kv)
{
    return kv->awaited_first;
}

struct kv_entry *kv_awaited_next(const struct kv_entry *e)
{
    return e->next;
}

struct kv_awaited kv_awaited_look(struct kv_entry *e)
{
    return (struct kv_awaited){{e->key, e->key_n}, e->first, e->waiters, &e->report_at};
}

void kv_check(const struct kv *kv)
{
    size_t used = 0, count = 0, links = 0, missing = 0, awaited = 0, listed = 0, valued = 0;
    for (size_t i = 0; i < kv->cap; i++) {
        const struct kv_entry *e = kv->slots[i].entry;
        if (!e)
            continue;
        used++;
        count += e->value != NULL;
        awaited += e->first != NULL;
        assert(e->value || e->queue || e->first);
        assert(!e->queue || (e->queue->n && e->queue->head));
        assert(kv_find(kv, (struct kv_bytes){e->key, e->key_n}) == e);
        size_t n = 0;
        for (const struct kv_link *l = e->first; l; l = l->next, n++)
            assert(l->entry == e && l->wait->state == KV_WAIT_PENDING);
        assert(n == e->waiters);
        links += n;
    }
    for (const struct kv_wait *w = kv->pending_first; w; w = w->next)
        missing += w->missing;
    for (const struct kv_entry *e = kv->awaited_first; e; e = e->next)
        listed++;
    for (const struct kv_entry *e = kv->valued_first; e; e = e->value_next, valued++)
        assert(e->value && (!e->value_next || e->value_next->value_prev == e));
    assert(used == kv->used && count == kv->count && count == valued && links == missing && awaited == listed);
}
