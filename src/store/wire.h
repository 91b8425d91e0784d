/* The c10d wire format: bytes to requests, in both dialects, and requests to bytes.  Pure and incremental: however a
 * request was cut, a list is walked once, and elsewhere the lengths of at most three fields are read again; a length is
 * judged before anything is made room for. */
#ifndef STORE_WIRE_H
#define STORE_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/kv.h"
#include "util/buf.h"

/* What follows the opcode, in this order: bytes of a key, bytes of a value, bytes of another, a 64-bit number, a 32-bit
 * number; or a count and that many keys, or that many pairs of key and value. */
enum wire_shape {
    WIRE_ALONE = 0,
    WIRE_KEY = 1,
    WIRE_VALUE = 2,
    WIRE_SECOND = 4,
    WIRE_NUMBER = 8,
    WIRE_WORD = 16,
    WIRE_KEYS = 32,
    WIRE_PAIRS = 64
};

/* Name, code in the modern dialect (torch 2.2 and later), code in the legacy one (1.9 to 2.0; -1 = has none), shape. */
#define WIRE_OP_LIST(X)                                                                                                \
    X(VALIDATE, 0, -1, WIRE_WORD)                                                                                      \
    X(SET, 1, 0, WIRE_KEY | WIRE_VALUE)                                                                                \
    X(COMPARE_SET, 2, 1, WIRE_KEY | WIRE_VALUE | WIRE_SECOND)                                                          \
    X(GET, 3, 2, WIRE_KEY)                                                                                             \
    X(ADD, 4, 3, WIRE_KEY | WIRE_NUMBER)                                                                               \
    X(CHECK, 5, 4, WIRE_KEYS)                                                                                          \
    X(WAIT, 6, 5, WIRE_KEYS)                                                                                           \
    X(GETNUMKEYS, 7, 6, WIRE_ALONE)                                                                                    \
    X(DELETE_KEY, 8, 8, WIRE_KEY)                                                                                      \
    X(APPEND, 9, -1, WIRE_KEY | WIRE_VALUE)                                                                            \
    X(MULTI_GET, 10, -1, WIRE_KEYS)                                                                                    \
    X(MULTI_SET, 11, -1, WIRE_PAIRS)                                                                                   \
    X(CANCEL_WAIT, 12, -1, WIRE_ALONE)                                                                                 \
    X(PING, 13, -1, WIRE_WORD)                                                                                         \
    X(QUEUE_PUSH, 14, -1, WIRE_KEY | WIRE_VALUE)                                                                       \
    X(QUEUE_POP, 15, -1, WIRE_KEY)                                                                                     \
    X(QUEUE_LEN, 16, -1, WIRE_KEY)                                                                                     \
    X(LIST_KEYS, 17, -1, WIRE_ALONE)                                                                                   \
    X(BARRIER, 18, -1, WIRE_KEY | WIRE_NUMBER)                                                                         \
    X(WATCH_KEY, -1, 7, WIRE_KEY)

enum wire_op {
#define X(name, modern, legacy, shape) WIRE_##name,
    WIRE_OP_LIST(X)
#undef X
        WIRE_OPS,
};

enum wire_dialect { WIRE_MODERN, WIRE_LEGACY };

/* Reasons why a request is refused, as a person reads them. */
#define WIRE_ERROR_LIST(X)                                                                                             \
    X(NONE, "no error")                                                                                                \
    X(OPCODE, "an opcode that this protocol does not have")                                                            \
    X(TORCH_2_1, "an opcode of torch 2.1, whose dialect is not supported: use torch 2.2 or later, or 1.9 to 2.0")      \
    X(KEY_LENGTH, "a key of more than 8192 bytes")                                                                     \
    X(VALUE_LENGTH, "a value of more than 8 MiB")                                                                      \
    X(COUNT, "a list of more than 131072 keys")

enum wire_error {
#define X(name, text) WIRE_ERROR_##name,
    WIRE_ERROR_LIST(X)
#undef X
};

/* 00 CE F7 85 3C opens the modern dialect; torch's server has the same limits. */
#define WIRE_MAGIC     0x3C85F7CEu
#define WIRE_KEY_MAX   8192u
#define WIRE_VALUE_MAX (8u << 20)
#define WIRE_COUNT_MAX 131072u

/* Replies of one byte. */
enum { WIRE_READY = 0, WIRE_NOT_READY = 1, WIRE_STOP_WAITING = 0, WIRE_WAIT_CANCELED = 1, WIRE_REGISTERED = 3 };

/* A whole request; the views point into the bytes that were scanned. */
struct wire_request {
    enum wire_op op;
    struct kv_bytes key, value, second; /* COMPARE_SET: value is what is expected, second what is desired */
    int64_t number;
    uint32_t word;
    size_t count;         /* of keys or of pairs */
    struct kv_bytes list; /* what follows the count: walk it by wire_next() */
};

/* One connection's scan.  Zeroed and `dialect` set before the first byte; `ordinary` remembers that the connection
 * carried requests other than WATCH_KEY: only then is 7 torch 2.1's DELETE_KEY.  Of a request that is there in part: */
struct store_wire {
    enum wire_dialect dialect;
    bool ordinary;
    uint8_t error; /* enum wire_error */
    uint32_t left; /* keys and values of its list still to come */
    size_t walked; /* bytes of it that the walk of the list has behind it; 0 = that has not begun */
    size_t need;   /* no progress before this many of its bytes are there */
};

enum wire_scan { WIRE_MORE, WIRE_WHOLE, WIRE_BAD };

/* bytes: the request from its first byte on, as far as it is there; the same bytes plus more at the next call.
 * WIRE_WHOLE: *r is filled and *length says how long the request is; the scan stands at the next one.
 * WIRE_BAD: w->error says why; the connection is of no use any more. */
enum wire_scan wire_scan(struct store_wire *w, const char *bytes, size_t n, struct wire_request *r, size_t *length);

/* Takes the next key or value from the front of a list that wire_scan() has walked. */
struct kv_bytes wire_next(struct kv_bytes *list);

const char *wire_op_name(enum wire_op op);
const char *wire_error_text(enum wire_error error);

/* Writing, for clients and for replies: little endian; 0, or -1 if the buffer is full. */
int wire_put_op(struct el_buf *b, enum wire_dialect dialect, enum wire_op op);
int wire_put_u8(struct el_buf *b, uint8_t x);
int wire_put_u32(struct el_buf *b, uint32_t x);
int wire_put_u64(struct el_buf *b, uint64_t x);
int wire_put_bytes(struct el_buf *b, struct kv_bytes x);

/* Reading, for clients: n must be there. */
uint32_t wire_get_u32(const char *bytes);
uint64_t wire_get_u64(const char *bytes);

#endif
