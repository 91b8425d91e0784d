#include "store/kv_private.h"

#include <assert.h>
#include <string.h>

#include "util/hash.h"

/* SAFE_DIGITS: as many decimal digits can't overflow 63 bits. */
enum { SLOTS_MIN = 16, NUMBER_TEXT_MAX = 24, SAFE_DIGITS = 18 };

/* --- table -------------------------------------------------------------------------------------------------------- */

/* The slot that holds the key, or the free one where it would go. */
static inline struct slot *kv_slot_of(const struct kv *kv, struct kv_bytes key, uint64_t hash)
{
    for (size_t mask = kv->cap - 1, i = hash & mask;; i = (i + 1) & mask) {
        struct slot *slot = &kv->slots[i];
        const struct kv_entry *e = slot->entry;
        if (!e || (slot->hash == hash && e->key_n == key.n && !memcmp(e->key, key.v, key.n)))
            return slot;
    }
}

struct kv_entry *kv_find(const struct kv *kv, struct kv_bytes key)
{
    return kv_slot_of(kv, key, el_hash(kv->seed, key.v, key.n))->entry;
}

static bool resize(struct kv *kv, size_t cap)
{
    assert(cap >= SLOTS_MIN && kv->used < cap);
    struct slot *slots = el_alloc(kv->mem, cap * sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < kv->cap; i++) {
        if (!kv->slots[i].entry)
            continue;
        size_t at = kv->slots[i].hash & (cap - 1);
        while (slots[at].entry)
            at = (at + 1) & (cap - 1);
        slots[at] = kv->slots[i];
    }
    el_free(kv->mem, kv->slots);
    kv->slots = slots;
    kv->cap = cap;
    return true;
}

struct kv_entry *kv_obtain(struct kv *kv, struct kv_bytes key)
{
    uint64_t hash = el_hash(kv->seed, key.v, key.n);
    struct slot *slot = kv_slot_of(kv, key, hash);
    if (slot->entry)
        return slot->entry;
    if ((kv->used + 1) * 4 > kv->cap * 3) {
        if (!resize(kv, kv->cap * 2))
            return NULL;
        slot = kv_slot_of(kv, key, hash);
    }
    struct kv_entry *e = el_alloc(kv->mem, sizeof *e + key.n);
    if (!e)
        return NULL;
    e->hash = hash;
    e->key_n = key.n;
    memcpy(e->key, key.v, key.n);
    *slot = (struct slot){hash, e};
    kv->used++;
    return e;
}

void kv_settle(struct kv *kv, struct kv_entry *e)
{
    if (e->value || e->queue || e->first)
        return;
    size_t mask = kv->cap - 1, hole = e->hash & mask;
    while (kv->slots[hole].entry != e)
        hole = (hole + 1) & mask;
    for (size_t i = (hole + 1) & mask; kv->slots[i].entry; i = (i + 1) & mask) {
        /* May move back if its home does not lie between the hole and itself. */
        if (((i - kv->slots[i].hash) & mask) < ((i - hole) & mask))
            continue;
        kv->slots[hole] = kv->slots[i];
        hole = i;
    }
    kv->slots[hole].entry = NULL;
    kv->used--;
    el_free(kv->mem, e);
    if (kv->cap > SLOTS_MIN && kv->used * 8 < kv->cap)
        resize(kv, kv->cap / 2); /* refused: it stays large */
}

struct kv *kv_new(struct el_mem *mem, const uint8_t seed[16])
{
    struct kv *kv = el_alloc(mem, sizeof *kv);
    if (!kv)
        return NULL;
    kv->mem = mem;
    memcpy(kv->seed, seed, sizeof kv->seed);
    if (!resize(kv, SLOTS_MIN)) {
        el_free(mem, kv);
        return NULL;
    }
    return kv;
}

static struct kv_block *block_of(const struct kv_entry *e)
{
    return (struct kv_block *)(void *)e->value - 1;
}

static void value_drop(struct kv *kv, struct kv_entry *e)
{
    if (e->value)
        kv_drop_block(kv, block_of(e));
    e->value = NULL;
}

static void queue_free(struct kv *kv, struct queue *q)
{
    while (q && q->head) {
        struct item *item = q->head;
        q->head = item->next;
        el_free(kv->mem, item);
    }
    el_free(kv->mem, q);
}

void kv_free(struct kv *kv)
{
    if (!kv)
        return;
    assert(!kv->pending_first && !kv->woken_first && !kv->listers);
    for (size_t i = 0; i < kv->cap; i++) {
        struct kv_entry *e = kv->slots[i].entry;
        if (!e)
            continue;
        value_drop(kv, e);
        queue_free(kv, e->queue);
        el_free(kv->mem, e);
    }
    el_free(kv->mem, kv->slots);
    el_free(kv->mem, kv);
}

/* --- the map ------------------------------------------------------------------------------------------------------ */

bool kv_get(const struct kv *kv, struct kv_bytes key, struct kv_bytes *value)
{
    const struct kv_entry *e = kv_find(kv, key);
    if (!e || !e->value)
        return false;
    *value = (struct kv_bytes){e->value, e->value_n};
    return true;
}

bool kv_has(const struct kv *kv, struct kv_bytes key)
{
    const struct kv_entry *e = kv_find(kv, key);
    return e && (e->value || e->queue);
}

static void valued_add(struct kv *kv, struct kv_entry *e)
{
    e->value_prev = NULL;
    e->value_next = kv->valued_first;
    if (e->value_next)
        e->value_next->value_prev = e;
    kv->valued_first = e;
    e->born = ++kv->births;
    kv->count++;
}

static void valued_remove(struct kv *kv, struct kv_entry *e)
{
    if (kv->listers)
        kv_tell_listers(kv, e);
    *(e->value_prev ? &e->value_prev->value_next : &kv->valued_first) = e->value_next;
    if (e->value_next)
        e->value_next->value_prev = e->value_prev;
    kv->count--;
}

/* A block of its own for the value, of which the first `keep` bytes stay. */
static bool value_move(struct kv *kv, struct kv_entry *e, size_t keep, size_t want)
{
    bool alone = e->value && block_of(e)->refs == 1;
    struct kv_block *block = keep && alone ? el_realloc(kv->mem, block_of(e), sizeof *block + want)
                                           : el_alloc(kv->mem, sizeof *block + want);
    if (!block)
        return false;
    if (!(keep && alone)) {
        *block = (struct kv_block){.refs = 1};
        if (keep)
            memcpy(block + 1, e->value, keep);
        if (e->value)
            kv_drop_block(kv, block_of(e));
        else
            valued_add(kv, e);
    }
    e->value = (char *)(block + 1);
    e->value_cap = want;
    return true;
}

/* Room for a value of n bytes of which the first `keep` stay: all that there are, or none.  A large block that became
 * much too large is given back; what somebody holds is not written over. */
static bool value_room(struct kv *kv, struct kv_entry *e, size_t keep, size_t n)
{
    size_t want = n ? n : 1;
    bool mine = e->value && (keep || block_of(e)->refs == 1);
    if (mine && e->value_cap >= want && (e->value_cap < 1024 || e->value_cap / 4 < want))
        return true;
    size_t more = keep && want < e->value_cap + e->value_cap / 2 ? e->value_cap + e->value_cap / 2 : want;
    if (value_move(kv, e, keep, more) || (more > want && value_move(kv, e, keep, want)))
        return true;
    return mine && e->value_cap >= n;
}

static enum kv_result value_store(struct kv *kv, struct kv_entry *e, struct kv_bytes value)
{
    if (!value_room(kv, e, 0, value.n)) {
        kv_settle(kv, e);
        return KV_NO_MEMORY;
    }
    if (value.n)
        memcpy(e->value, value.v, value.n);
    e->value_n = value.n;
    return KV_DONE;
}

enum kv_result kv_set(struct kv *kv, struct kv_bytes key, struct kv_bytes value)
{
    struct kv_entry *e = kv_obtain(kv, key);
    if (!e || value_store(kv, e, value) != KV_DONE)
        return KV_NO_MEMORY;
    kv_wake_all(kv, e);
    return KV_DONE;
}

enum kv_result kv_append(struct kv *kv, struct kv_bytes key, struct kv_bytes value)
{
    struct kv_entry *e = kv_obtain(kv, key);
    if (!e)
        return KV_NO_MEMORY;
    size_t keep = e->value ? e->value_n : 0;
    if (value.n > SIZE_MAX / 4 - keep || !value_room(kv, e, keep, keep + value.n)) {
        kv_settle(kv, e);
        return KV_NO_MEMORY;
    }
    if (value.n)
        memcpy(e->value + keep, value.v, value.n);
    e->value_n = keep + value.n;
    kv_wake_all(kv, e);
    return KV_DONE;
}

/* Like strtoll base 10: blanks, a sign, digits, then anything.  False: no digits, or out of range. */
static bool number_parse(struct kv_bytes text, int64_t *number)
{
    size_t i = 0;
    while (i < text.n && (text.v[i] == ' ' || (text.v[i] >= '\t' && text.v[i] <= '\r')))
        i++;
    bool negative = i < text.n && text.v[i] == '-';
    if (i < text.n && (text.v[i] == '-' || text.v[i] == '+'))
        i++;
    size_t first = i, safe = text.n - i > SAFE_DIGITS ? i + SAFE_DIGITS : text.n;
    uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX, sum = 0, digit;
    for (; i < safe && (digit = (unsigned char)text.v[i] - (uint64_t)'0') <= 9; i++)
        sum = sum * 10 + digit;
    for (; i < text.n && (digit = (unsigned char)text.v[i] - (uint64_t)'0') <= 9; i++)
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, digit, &sum) || sum > limit)
            return false;
    *number = (int64_t)(negative ? 0 - sum : sum);
    return i > first;
}

/* Adds without waking anybody.  A sum out of range wraps around, as it does in the reference. */
static enum kv_result kv_entry_add(struct kv *kv, struct kv_entry *e, int64_t delta, int64_t *sum)
{
    int64_t old = 0;
    if (e->value && !number_parse((struct kv_bytes){e->value, e->value_n}, &old))
        return KV_NOT_NUMBER;
    char text[NUMBER_TEXT_MAX];
    int64_t total = (int64_t)((uint64_t)old + (uint64_t)delta);
    uint64_t rest = total < 0 ? 0 - (uint64_t)total : (uint64_t)total;
    size_t at = sizeof text;
    do {
        text[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (total < 0)
        text[--at] = '-';
    *sum = total;
    return value_store(kv, e, (struct kv_bytes){text + at, sizeof text - at});
}

enum kv_result kv_add(struct kv *kv, struct kv_bytes key, int64_t delta, int64_t *sum)
{
    struct kv_entry *e = kv_obtain(kv, key);
    enum kv_result r = e ? kv_entry_add(kv, e, delta, sum) : KV_NO_MEMORY;
    if (r == KV_DONE)
        kv_wake_all(kv, e);
    return r;
}

enum kv_result kv_compare_set(struct kv *kv, struct kv_bytes key, struct kv_bytes expected, struct kv_bytes desired,
                              struct kv_bytes *reply)
{
    struct kv_entry *e = kv_find(kv, key);
    bool there = e && e->value;
    bool same = there ? e->value_n == expected.n && !memcmp(e->value, expected.n ? expected.v : "", expected.n)
                      : expected.n == 0;
    if (same) {
        *reply = desired;
        return kv_set(kv, key, desired);
    }
    *reply = expected;
    if (there) {
        *reply = (struct kv_bytes){e->value, e->value_n};
        kv_wake_all(kv, e);
    }
    return KV_DONE;
}

enum kv_result kv_barrier(struct kv *kv, struct kv_bytes key, int64_t world_size, bool *open)
{
    struct kv_entry *e = kv_obtain(kv, key);
    int64_t sum = 0;
    enum kv_result r = e ? kv_entry_add(kv, e, 1, &sum) : KV_NO_MEMORY;
    if (r != KV_DONE)
        return r;
    *open = sum >= world_size;
    if (*open)
        kv_wake_all(kv, e);
    return KV_DONE;
}

bool kv_delete(struct kv *kv, struct kv_bytes key)
{
    struct kv_entry *e = kv_find(kv, key);
    if (!e || !e->value)
        return false;
    value_drop(kv, e);
    e->value_n = e->value_cap = 0;
    valued_remove(kv, e);
    kv_settle(kv, e);
    return true;
}

size_t kv_count(const struct kv *kv)
{
    return kv->count;
}

/* --- queues ------------------------------------------------------------------------------------------------------- */

enum kv_result kv_queue_push(struct kv *kv, struct kv_bytes key, struct kv_bytes value)
{
    struct kv_entry *e = kv_obtain(kv, key);
    if (!e)
        return KV_NO_MEMORY;
    struct item *item = el_alloc(kv->mem, sizeof *item + value.n);
    struct queue *q = item && !e->queue ? el_alloc(kv->mem, sizeof *q) : e->queue;
    if (!item || !q) {
        el_free(kv->mem, item);
        kv_settle(kv, e);
        return KV_NO_MEMORY;
    }
    item->block.refs = 1;
    item->n = value.n;
    if (value.n)
        memcpy(item->v, value.v, value.n);
    e->queue = q;
    if (q->tail)
        q->tail->next = item;
    else
        q->head = item;
    q->tail = item;
    q->n++;
    kv_wake_one(kv, e);
    return KV_DONE;
}

size_t kv_queue_length(const struct kv *kv, struct kv_bytes key)
{
    const struct kv_entry *e = kv_find(kv, key);
    return e && e->queue ? e->queue->n : 0;
}
