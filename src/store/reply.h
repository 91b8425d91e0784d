/* An answer that is too long to be made in one go: what it consists of is fixed when it is asked for, and its bytes
 * come piece by piece as they can be sent.  Values are not copied for it but held (kv_hold), so that it costs 24 bytes
 * for each, and what has been replaced or deleted meanwhile.  Pure. */
#ifndef STORE_REPLY_H
#define STORE_REPLY_H
#include "store/kv.h"
#include "util/buf.h"

/* Output beyond which an answer is not made further before that is sent: some thousand keys, a millisecond. */
#define REPLY_SOFT_BYTES (64u << 10)

/* A longer value is not copied: it is sent from where it lies. */
#define REPLY_COPY_BYTES (64u << 10)

struct reply {
    struct kv *kv;
    struct el_mem *mem;
    bool lists;
    struct kv_lister lister;
    size_t n, at;  /* values: of all, and behind us */
    bool measured; /* the length of the one at hand is out */
    size_t sent;   /* and so many of its bytes */
    struct kv_hold hold[];
};

/* Of n values, each of which the caller fills in; or of all keys.  NULL: no memory. */
struct reply *reply_of_values(struct kv *kv, struct el_mem *mem, size_t n);
struct reply *reply_of_keys(struct kv *kv, struct el_mem *mem);
void reply_free(struct reply *a);

enum reply_step {
    REPLY_OVER, /* `out` has the rest of it, and *piece is empty */
    REPLY_MORE, /* send `out`, then of *piece what can be sent, say how much that was (reply_took), and call again */
    REPLY_NO_MEMORY,
};
enum reply_step reply_step(struct reply *a, struct el_buf *out, struct kv_bytes *piece);
void reply_took(struct reply *a, size_t n);

/* What would be free without it. */
size_t reply_costs(const struct reply *a);

#endif
