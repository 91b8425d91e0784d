/* What the files of the map share: kv.c (table, values, queues) and kv_wait.c (who waits).  Nobody else includes it. */
#ifndef STORE_KV_PRIVATE_H
#define STORE_KV_PRIVATE_H
#include "store/kv.h"

/* At the front of a block whose bytes may be held (kv_hold): it is freed by the last who needs it. */
struct kv_block {
    uint32_t refs; /* the map's own, while it is there, and one for each hold */
    bool gone;     /* from the map */
};

/* A deleted key that some list still has to name: once for all of them, however many they are. */
struct kv_gone {
    size_t refs, n;
    char key[];
};

struct item {
    struct kv_block block;
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
    uint64_t born;                            /* when it got its value, as a number that grows */
    el_usec report_at;
    size_t waiters;
    struct kv_link *last;
    struct queue *queue; /* NULL or not empty */
    uint64_t hash;
    size_t value_cap;
    struct kv_link *first; /* from here on what each request looks at stands together */
    char *value;           /* NULL: not in the map; behind a struct kv_block */
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
    uint64_t births;
    struct kv_lister *listers;
    size_t listers_n;
    size_t gone_refs, gone_bytes; /* of all keys that are kept for them: pointers, and bytes without those */
    bool telling;
    struct kv_wait *pending_first, *pending_last;
    struct kv_wait *woken_first, *woken_last;
    struct kv_entry *awaited_first, *awaited_last;
};

/* The entry of the key; kv_obtain makes it if it is not there (NULL: no memory). */
struct kv_entry *kv_find(const struct kv *kv, struct kv_bytes key);
struct kv_entry *kv_obtain(struct kv *kv, struct kv_bytes key);

/* kv_hold.c: the map needs the block no more. */
void kv_drop_block(struct kv *kv, struct kv_block *block);

/* The entry loses its value: who lists the keys and has not come to it shall have it all the same. */
void kv_tell_listers(struct kv *kv, const struct kv_entry *e);

/* Frees the entry if nothing needs it any more. */
void kv_settle(struct kv *kv, struct kv_entry *e);

/* Releases one waiter of the key, or all of them.  The entry must have a value or a queue: it outlives them. */
void kv_wake_one(struct kv *kv, struct kv_entry *e);
void kv_wake_all(struct kv *kv, struct kv_entry *e);

#endif
