/* What listens where a coordinator was expected: told by the first bytes that it says, or asked whether it is a store.
 */
#ifndef CONTROL_PEER_IDENT_H
#define CONTROL_PEER_IDENT_H
#include <stdbool.h>
#include <stddef.h>

/* Of whoever closes, or is silent, before it has said anything. */
#define PEER_IDENT_MUTE "not a coordinator of elrun (PyTorch's own store does so, and a store of workers)"
/* The same, once it has answered as a store. */
#define PEER_IDENT_STORE "a c10d store (PyTorch's TCPStore) listens there, not a coordinator of elrun"

/* "an HTTP server", or NULL: not known by its bytes. */
const char *peer_ident_name(const char *bytes, size_t n);

struct pool;
struct peer_ident;

/* Says PING to it in c10d's protocol, in the pool; answered() follows, later.  NULL: nobody is asked. */
struct peer_ident *peer_ident_ask(struct pool *p, const char *host, int port,
                                  void (*answered)(void *ctx, bool is_store), void *ctx);
/* Of each that was asked, also in answered(), which does not come any more then.  NULL is fine. */
void peer_ident_forget(struct peer_ident *s);

#endif
