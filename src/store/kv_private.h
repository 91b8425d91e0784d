/* What the files of the map share: kv.c (table, values, queues) and kv_wait.c (who waits).  Nobody else includes it. */
#ifndef STORE_KV_PRIVATE_H
#define STORE_KV_PRIVATE_H
#include "store/kv.h"

struct item {
    struct item *next;
    size_t n;
    char v[];
};

struct queue {
    struct item *head, *tail;
    size_t n;
};

/* An entry lives while it has a value, a queue or a waiter. */
struct kv_entry {
    struct kv_entry *prev, *next;             /* all entries with waiters */
    struct kv_entry *value_prev, *value_next; /* all entries with a value */
    el_usec report_at;
    size_t waiters;
    struct kv_link *last;
    struct queue *queue; /* NULL or not empty */
    uint64_t hash;
    size_t value_cap;
    struct kv_link *first; /* from here on what each request looks at stands together */
    char *value;           /* NULL: not in the map */
    size_t value_n, key_n;
    char key[];
};

struct slot {
    uint64_t hash;
    struct kv_entry *entry;
};

/* Open addressing with linear probing; cap is a power of two, at most three quarters are used. */
struct kv {
    struct el_mem *mem;
    uint64_t seed[2];
    struct slot *slots;
    size_t cap, used;
    struct kv_entry
        *valued_first; /* so that a list of keys costs as much as it is long, however many are only awaited */
    size_t count;      /* entries with a value */
    struct kv_wait *pending_first, *pending_last;
    struct kv_wait *woken_first, *woken_last;
    struct kv_entry *awaited_first, *awaited_last;
};

/* The entry of the key; kv_obtain makes it if it is not there (NULL: no memory). */
struct kv_entry *kv_find(const struct kv *kv, struct kv_bytes key);
struct kv_entry *kv_obtain(struct kv *kv, struct kv_bytes key);

/* Frees the entry if nothing needs it any more. */
void kv_settle(struct kv *kv, struct kv_entry *e);

/* Releases one waiter of the key, or all of them.  The entry must have a value or a queue: it outlives them. */
void kv_wake_one(struct kv *kv, struct kv_entry *e);
void kv_wake_all(struct kv *kv, struct kv_entry *e);

#endif
