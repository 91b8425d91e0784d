#include "store/client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/dial.h"
#include "loop/loop.h"
#include "store/wire.h"

enum { CHUNK_BYTES = 64 << 10 };

#define REPLY_MAX_BYTES ((uint64_t)4 << 30) /* of one value: more makes no sense */

struct store_client {
    int fd;
    el_usec limit;
    struct el_buf out;          /* the request that is being made */
    char where[DIAL_WHERE_MAX]; /* for messages */
    char in[CHUNK_BYTES];
    size_t in_n, in_at;
};

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static int gone(struct store_client *c, int sys, struct el_err *e)
{
    if (sys)
        return el_fail_sys(e, EL_EXIT_UNAVAILABLE, sys, "store at %s", c->where);
    return el_fail(e, EL_EXIT_UNAVAILABLE, "store at %s closed the connection; its log says why", c->where);
}

static int send_request(struct store_client *c, struct el_err *e)
{
    el_usec until = loop_clock() + c->limit;
    if (c->out.full)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (size_t at = 0; at < c->out.len;) {
        ssize_t n = send(c->fd, c->out.v + at, c->out.len - at, MSG_NOSIGNAL);
        if (n > 0)
            at += (size_t)n;
        else if (errno != EAGAIN && errno != EINTR)
            return gone(c, errno, e);
        else if (!dial_await(c->fd, POLLOUT, until))
            return el_fail(e, EL_EXIT_UNAVAILABLE, "store at %s takes nothing", c->where);
    }
    c->out.len = 0;
    return 0;
}

/* At least one byte in c->in: STORE_YES; STORE_NO: the time is over. */
static enum store_answer client_receive(struct store_client *c, el_usec until, struct el_err *e)
{
    while (c->in_at == c->in_n) {
        ssize_t n = recv(c->fd, c->in, sizeof c->in, 0);
        if (n > 0) {
            c->in_at = 0;
            c->in_n = (size_t)n;
        } else if (n == 0) {
            return gone(c, 0, e);
        } else if (errno != EAGAIN && errno != EINTR) {
            return gone(c, errno, e);
        } else if (!dial_await(c->fd, POLLIN, until)) {
            return STORE_NO;
        }
    }
    return STORE_YES;
}

static enum store_answer client_read_bytes(struct store_client *c, void *to, size_t n, el_usec until, struct el_err *e)
{
    char *at = to;
    while (n) {
        enum store_answer r = client_receive(c, until, e);
        if (r != STORE_YES)
            return r;
        size_t take = n < c->in_n - c->in_at ? n : c->in_n - c->in_at;
        memcpy(at, c->in + c->in_at, take);
        c->in_at += take;
        at += take;
        n -= take;
    }
    return STORE_YES;
}

/* As read_bytes, of an answer that should come at once. */
static enum store_answer client_answer(struct store_client *c, void *to, size_t n, struct el_err *e)
{
    enum store_answer r = client_read_bytes(c, to, n, loop_clock() + c->limit, e);
    return r == STORE_NO ? el_fail(e, EL_EXIT_UNAVAILABLE, "store at %s does not answer", c->where) : r;
}

static enum store_answer answer_u64(struct store_client *c, int64_t *x, struct el_err *e)
{
    char bytes[8];
    if (client_answer(c, bytes, sizeof bytes, e))
        return STORE_ERROR;
    *x = (int64_t)wire_get_u64(bytes);
    return STORE_YES;
}

/* Room grows with what has come, not with what was announced. */
static enum store_answer answer_value(struct store_client *c, struct el_buf *to, struct el_err *e)
{
    int64_t n = 0;
    if (answer_u64(c, &n, e))
        return STORE_ERROR;
    if (n < 0 || (uint64_t)n > REPLY_MAX_BYTES)
        return el_fail(e, EL_EXIT_PROTOCOL, "store at %s announces a value of %llu bytes", c->where,
                       (unsigned long long)n);
    for (uint64_t left = (uint64_t)n; left;) {
        size_t take = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
        char *room = el_buf_reserve(to, take);
        if (!room)
            return el_fail(e, EL_EXIT_OSERR, "out of memory");
        if (client_answer(c, room, take, e))
            return STORE_ERROR;
        to->len += take;
        left -= take;
    }
    return STORE_YES;
}

/* --- connecting --------------------------------------------------------------------------------------------------- */

struct store_client *store_client_open(const char *endpoint, el_usec limit, struct el_err *e)
{
    el_usec took;
    struct store_client *c = el_alloc(NULL, sizeof *c);
    if (!c) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    c->limit = limit;
    c->out = EL_BUF_INIT(NULL, 0);
    c->fd = dial(endpoint, "store", limit, c->where, e);
    if (c->fd >= 0) {
        wire_put_op(&c->out, WIRE_MODERN, WIRE_VALIDATE);
        wire_put_u32(&c->out, WIRE_MAGIC);
        if (store_client_ping(c, &took, e) == STORE_YES)
            return c;
    }
    store_client_free(c);
    return NULL;
}

void store_client_free(struct store_client *c)
{
    if (!c)
        return;
    if (c->fd >= 0)
        close(c->fd);
    el_buf_free(&c->out);
    el_free(NULL, c);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static void client_begin(struct store_client *c, enum wire_op op)
{
    wire_put_op(&c->out, WIRE_MODERN, op);
}

static void client_put_keys(struct store_client *c, const struct kv_bytes *keys, size_t n)
{
    wire_put_u64(&c->out, n);
    for (size_t i = 0; i < n; i++)
        wire_put_bytes(&c->out, keys[i]);
}

enum store_answer store_client_wait(struct store_client *c, const struct kv_bytes *keys, size_t n, el_usec timeout,
                                    struct el_err *e)
{
    char byte;
    client_begin(c, WIRE_WAIT);
    client_put_keys(c, keys, n);
    if (send_request(c, e))
        return STORE_ERROR;
    enum store_answer r = client_read_bytes(c, &byte, 1, timeout == EL_NEVER ? EL_NEVER : loop_clock() + timeout, e);
    if (r != STORE_NO)
        return r;
    client_begin(c, WIRE_CANCEL_WAIT);
    if (send_request(c, e) || client_answer(c, &byte, 1, e))
        return STORE_ERROR;
    if (byte == WIRE_WAIT_CANCELED)
        return STORE_NO;
    return client_answer(c, &byte, 1, e); /* the key came first: the cancel is answered too */
}

enum store_answer store_client_check(struct store_client *c, const struct kv_bytes *keys, size_t n, struct el_err *e)
{
    char byte;
    client_begin(c, WIRE_CHECK);
    client_put_keys(c, keys, n);
    if (send_request(c, e) || client_answer(c, &byte, 1, e))
        return STORE_ERROR;
    return byte == WIRE_READY ? STORE_YES : STORE_NO;
}

enum store_answer store_client_get(struct store_client *c, struct kv_bytes key, struct el_buf *value, struct el_err *e)
{
    client_begin(c, WIRE_GET);
    wire_put_bytes(&c->out, key);
    return send_request(c, e) ? STORE_ERROR : answer_value(c, value, e);
}

/* SET has no answer: the echo behind it tells that it was taken. */
enum store_answer store_client_set(struct store_client *c, struct kv_bytes key, struct kv_bytes value, struct el_err *e)
{
    el_usec took;
    client_begin(c, WIRE_SET);
    wire_put_bytes(&c->out, key);
    wire_put_bytes(&c->out, value);
    return store_client_ping(c, &took, e);
}

enum store_answer store_client_add(struct store_client *c, struct kv_bytes key, int64_t delta, int64_t *sum,
                                   struct el_err *e)
{
    client_begin(c, WIRE_ADD);
    wire_put_bytes(&c->out, key);
    wire_put_u64(&c->out, (uint64_t)delta);
    return send_request(c, e) ? STORE_ERROR : answer_u64(c, sum, e);
}

enum store_answer store_client_delete(struct store_client *c, struct kv_bytes key, struct el_err *e)
{
    int64_t n = 0;
    client_begin(c, WIRE_DELETE_KEY);
    wire_put_bytes(&c->out, key);
    if (send_request(c, e) || answer_u64(c, &n, e))
        return STORE_ERROR;
    return n ? STORE_YES : STORE_NO;
}

enum store_answer store_client_num_keys(struct store_client *c, int64_t *n, struct el_err *e)
{
    client_begin(c, WIRE_GETNUMKEYS);
    return send_request(c, e) ? STORE_ERROR : answer_u64(c, n, e);
}

enum store_answer store_client_keys(struct store_client *c, void (*fn)(void *ctx, struct kv_bytes key), void *ctx,
                                    struct el_err *e)
{
    int64_t n = 0;
    struct el_buf key = EL_BUF_INIT(NULL, 0);
    client_begin(c, WIRE_LIST_KEYS);
    enum store_answer r = send_request(c, e) ? STORE_ERROR : answer_u64(c, &n, e);
    for (; n > 0 && r == STORE_YES; n--) {
        key.len = 0;
        r = answer_value(c, &key, e);
        if (r == STORE_YES)
            fn(ctx, (struct kv_bytes){key.v, key.len});
    }
    el_buf_free(&key);
    return r;
}

enum store_answer store_client_ping(struct store_client *c, el_usec *took, struct el_err *e)
{
    char echo[4];
    uint32_t nonce = (uint32_t)getpid();
    client_begin(c, WIRE_PING);
    wire_put_u32(&c->out, nonce);
    el_usec start = loop_clock();
    if (send_request(c, e) || client_answer(c, echo, sizeof echo, e))
        return STORE_ERROR;
    *took = loop_clock() - start;
    if (wire_get_u32(echo) != nonce)
        return el_fail(e, EL_EXIT_PROTOCOL, "what answers at %s is no c10d store", c->where);
    return STORE_YES;
}
