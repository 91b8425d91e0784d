/* The map of a c10d store: keys, values, queues and who waits for what.  Pure: no clock, no sockets; memory comes from
 * one counted allocator, and a change that does not fit there is refused as a whole.
 *
 * Waiting: whoever waits embeds a struct kv_wait.  A change that completes waits moves them to the list of the woken,
 * from which kv_woken() hands them out, in the order in which they began to wait.  Nothing is called back. */
#ifndef STORE_KV_H
#define STORE_KV_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/mem.h"
#include "util/time.h"

struct kv;
struct kv_entry;

/* Bytes that belong to somebody else. */
struct kv_bytes {
    const char *v;
    size_t n;
};
#define KV_BYTES(literal) ((struct kv_bytes){(literal), sizeof(literal) - 1})

enum kv_result {
    KV_DONE,
    KV_NO_MEMORY,  /* refused, nothing changed */
    KV_NOT_NUMBER, /* ADD or BARRIER on a value that strtoll would refuse; nothing changed */
};

/* One key that one wait still misses. */
struct kv_link {
    struct kv_entry *entry;
    struct kv_wait *wait;
    struct kv_link *prev, *next; /* the other links of this key, oldest first */
};

enum kv_wait_state { KV_WAIT_NONE, KV_WAIT_PENDING, KV_WAIT_WOKEN };

/* Zeroed by its owner before the first use; must be cancelled before it goes away. */
struct kv_wait {
    enum kv_wait_state state;
    uint32_t links_n;
    uint32_t missing;
    struct kv_link *links;       /* &one, or an array of links_n */
    struct kv_wait *prev, *next; /* pending: all pending ones; woken: all woken ones */
    el_usec since;               /* when it began, for reports: its owner fills it in; 0 at the beginning */
    struct kv_link one;
};

/* seed: any 16 bytes; unguessable ones keep a stranger from making keys collide.  (A client that lists the keys might
 * learn how; it may as well delete them all.)  NULL: no memory. */
struct kv *kv_new(struct el_mem *mem, const uint8_t seed[16]);

/* All waits must be cancelled by then. */
void kv_free(struct kv *kv);

/* Views that are handed out are valid until the next change of the map. */
bool kv_get(const struct kv *kv, struct kv_bytes key, struct kv_bytes *value);

/* In the map, or a queue that is not empty. */
bool kv_has(const struct kv *kv, struct kv_bytes key);

/* Bytes of a value that stay as they are now, whatever becomes of the key: for who sends them piece by piece.  Zeroed,
 * it holds nothing.  The memory is that of the map, until the key has another value. */
struct kv_hold {
    struct kv_block *block;
    struct kv_bytes bytes;
};

/* False: too many hold it already.  A key that is not there is held as empty. */
bool kv_hold(const struct kv *kv, struct kv_bytes key, struct kv_hold *hold);
void kv_release(struct kv *kv, struct kv_hold *hold);

/* This hold's share of memory that nobody but holders needs. */
size_t kv_hold_costs(const struct kv_hold *hold);

/* Changes wake the waiters of the key. */
enum kv_result kv_set(struct kv *kv, struct kv_bytes key, struct kv_bytes value);
enum kv_result kv_append(struct kv *kv, struct kv_bytes key, struct kv_bytes value);
enum kv_result kv_add(struct kv *kv, struct kv_bytes key, int64_t delta, int64_t *sum);

/* *reply is what the client is told; it may point into `expected` or `desired`. */
enum kv_result kv_compare_set(struct kv *kv, struct kv_bytes key, struct kv_bytes expected, struct kv_bytes desired,
                              struct kv_bytes *reply);

/* Counts one arrival at key.  *open: the world is complete, and the key's waiters were woken; else the caller waits for
 * the key by kv_wait_for(). */
enum kv_result kv_barrier(struct kv *kv, struct kv_bytes key, int64_t world_size, bool *open);

/* True if it was there.  Touches neither waiters nor queues. */
bool kv_delete(struct kv *kv, struct kv_bytes key);

/* Number of keys in the map; queues are not counted. */
size_t kv_count(const struct kv *kv);

/* The keys that there are when it begins, piece by piece, whatever changes meanwhile.  Zeroed by its owner; must be
 * ended before it goes away. */
struct kv_lister {
    struct kv_lister *prev, *next; /* all that are under way */
    const struct kv_entry *at;     /* the next key */
    size_t left;                   /* keys that are to come */
    struct el_buf gone;            /* pointers to keys that were deleted before it came to them */
    size_t gone_at;
    struct kv_gone *shown; /* the last one of those that was handed out */
    bool torn;             /* one of those was lost, for want of memory */
};
void kv_list_begin(struct kv *kv, struct kv_lister *l);
/* The view is valid until the next call or change.  False: that was all, or it is torn. */
bool kv_list_next(struct kv *kv, struct kv_lister *l, struct kv_bytes *key);
void kv_list_end(struct kv *kv, struct kv_lister *l);
size_t kv_lists(const struct kv *kv); /* how many are under way: as many hear of a key that is deleted */
/* What deleted keys it keeps, one alone or with others. */
size_t kv_list_costs(const struct kv *kv, const struct kv_lister *l);
/* True while a change tells those who list of a key: within an allocation that this makes, no list may end. */
bool kv_is_telling(const struct kv *kv);

/* Queues have a name space of their own.  A push releases at most one waiter. */
enum kv_result kv_queue_push(struct kv *kv, struct kv_bytes key, struct kv_bytes value);
size_t kv_queue_length(const struct kv *kv, struct kv_bytes key);
bool kv_queue_head(const struct kv *kv, struct kv_bytes key, struct kv_bytes *value);
/* Takes the first out of it, to be released.  False: there is none. */
bool kv_queue_take(struct kv *kv, struct kv_bytes key, struct kv_hold *hold);

/* Registers `wait` for `n` keys, of which it is known that they are missing: kv_wait_begin, then exactly n times
 * kv_wait_for.  If one of them is refused, the wait is cancelled. */
enum kv_result kv_wait_begin(struct kv *kv, struct kv_wait *wait, size_t n);
enum kv_result kv_wait_for(struct kv *kv, struct kv_wait *wait, struct kv_bytes key);
void kv_wait_cancel(struct kv *kv, struct kv_wait *wait);

/* The next wait that was released, NULL if none; its state is KV_WAIT_NONE then. */
struct kv_wait *kv_woken(struct kv *kv);

/* Keys somebody waits for, for reports: NULL at the end.  Those whose waiters came first come first, roughly. */
struct kv_awaited {
    struct kv_bytes key;
    struct kv_link *first; /* oldest waiter; walk by ->next */
    size_t waiters;
    el_usec *report_at; /* for the reporter's own use; 0 when the first waiter comes */
};
struct kv_entry *kv_awaited_first(const struct kv *kv);
struct kv_entry *kv_awaited_next(const struct kv_entry *e);
struct kv_awaited kv_awaited_look(struct kv_entry *e);

/* Asserts what must hold, for tests, simulators and fuzzers, which call it after each request.  The store does not: it
 * walks the whole map, and a million keys would hold up the loop for a tenth of a second. */
void kv_check(const struct kv *kv);

#endif
