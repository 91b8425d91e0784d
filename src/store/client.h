/* A c10d client of the modern dialect, one call at a time: for the command line and for tests, not for the loop.  Works
 * with elrun's store and with PyTorch's (2.5 and later). */
#ifndef STORE_CLIENT_H
#define STORE_CLIENT_H
#include <stdint.h>

#include "store/kv.h"
#include "util/buf.h"
#include "util/err.h"
#include "util/time.h"

struct store_client;

/* What a call came to.  ERROR: *e is filled (69: gone or silent, 76: an answer that makes no sense). */
enum store_answer { STORE_ERROR = -1, STORE_YES, STORE_NO };

/* endpoint: "host:port", "[::1]:29400", "host" alone (port 29400).  Each address of the name is tried until `limit` has
 * passed; the same limit holds for each answer that is not waited for.  NULL and *e (2: malformed; 69: not reached). */
struct store_client *store_client_open(const char *endpoint, el_usec limit, struct el_err *e);
void store_client_free(struct store_client *c);

/* Keys are taken as they are on the wire.  NO: waited `timeout` in vain. */
enum store_answer store_client_wait(struct store_client *c, const struct kv_bytes *keys, size_t n, el_usec timeout,
                                    struct el_err *e);

/* NO: a key is missing now. */
enum store_answer store_client_check(struct store_client *c, const struct kv_bytes *keys, size_t n, struct el_err *e);

/* Appends the value; one that is missing reads as empty. */
enum store_answer store_client_get(struct store_client *c, struct kv_bytes key, struct el_buf *value, struct el_err *e);

/* Returns when the store has it. */
enum store_answer store_client_set(struct store_client *c, struct kv_bytes key, struct kv_bytes value,
                                   struct el_err *e);
enum store_answer store_client_add(struct store_client *c, struct kv_bytes key, int64_t delta, int64_t *sum,
                                   struct el_err *e);

/* NO: it was not there. */
enum store_answer store_client_delete(struct store_client *c, struct kv_bytes key, struct el_err *e);
enum store_answer store_client_num_keys(struct store_client *c, int64_t *n, struct el_err *e);

/* Calls fn for each key, in no order. */
enum store_answer store_client_keys(struct store_client *c, void (*fn)(void *ctx, struct kv_bytes key), void *ctx,
                                    struct el_err *e);

/* How long an echo took. */
enum store_answer store_client_ping(struct store_client *c, el_usec *took, struct el_err *e);

#endif
