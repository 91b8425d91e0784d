/* The machine of one connection to a store: bytes in, calls of the map, bytes out.  Pure.
 *
 * However few bytes ask for however many, what one call makes is bounded: beside SESSION_OUT_SOFT_BYTES, a value of
 * REPLY_COPY_BYTES, or a COMPARE_SET's own words.  So is the time that it takes: a key that is deleted is told to each
 * who lists the keys, and after SESSION_TOIL_SOFT of those others are heard.
 *
 * Replies are appended to a buffer in the order of the requests; a pending WAIT is answered by whoever drains
 * kv_woken(): one byte, WIRE_STOP_WAITING, at the end of that connection's output. */
#ifndef STORE_SESSION_H
#define STORE_SESSION_H
#include "store/reply.h"
#include "store/kv.h"
#include "store/wire.h"
#include "util/addr.h"
#include "util/buf.h"

/* Why a connection is of no use any more.  The texts follow "closed: ". */
#define SESSION_END_LIST(X)                                                                                            \
    X(NONE, "nothing is wrong")                                                                                        \
    X(WIRE, "a request that is refused")                                                                               \
    X(HELLO_AGAIN, "the hello of a c10d client in the middle of the stream")                                           \
    X(NOT_NUMBER, "an addition to a value that is no number, or none of 64 bits")                                      \
    X(NO_MEMORY, "the store's memory limit is reached (--max-memory)")                                                 \
    X(CONTROL, "an elrun agent asks for the control protocol, which this port does not speak")                         \
    X(REFUSED, "a c10d client, but no store is served on this port")                                                   \
    X(HTTP, "an HTTP request; this port speaks c10d")                                                                  \
    X(TLS, "a TLS hello; this port speaks plain c10d")                                                                 \
    X(STRANGER, "not a c10d client: the first bytes are unknown")

enum session_end {
#define X(name, text) SESSION_END_##name,
    SESSION_END_LIST(X)
#undef X
};

enum session_state { SESSION_NEW, SESSION_LEGACY_NEW, SESSION_OPEN, SESSION_ENDED };

/* So many lists that were told of deleted keys: a millisecond. */
#define SESSION_TOIL_SOFT 4096u

/* Output beyond which session_feed() wants it sent before it goes on. */
#define SESSION_OUT_SOFT_BYTES (256u << 10)

#define SESSION_HELLO_MAX 5

struct session {
    uint8_t state; /* enum session_state */
    uint8_t end;   /* enum session_end, once SESSION_ENDED */
    bool busy;     /* with `in` or `answer`, which must stay where they are */
    struct kv *kv;
    struct store_wire wire;
    struct el_buf in;     /* the beginning of a request whose rest has not come; no memory while there is none */
    struct reply *answer; /* to the last request: what is too long to be sent with the others */
    size_t toil;          /* of the last session_feed(): lists that were told of keys that it deleted */
    struct kv_wait wait;
    uint8_t hello_n;
    char hello[SESSION_HELLO_MAX]; /* first bytes, until they say what this is */
    int32_t rank;                  /* of the worker behind it, -1 while unknown; a guess from the keys it sets */
    uint32_t pid;                  /* its process id, as it names itself (torch 2.5 and later); 0 = unknown */
    struct el_addr peer;           /* its owner's, for reports */
};

/* kv NULL: a client of c10d is ended as REFUSED before its first request. */
void session_init(struct session *s, struct kv *kv, struct el_mem *mem);

/* Cancels its wait and frees its memory.  The session may be initialised again. */
void session_close(struct session *s);

enum session_step {
    SESSION_MORE,  /* all bytes are taken */
    SESSION_FLUSH, /* *used of them are taken; send `out`, then call again with the rest */
    SESSION_HELD,  /* as FLUSH, but behind `out` session_piece() is to be sent until that is over */
    SESSION_END,   /* s->end says why; what is in `out` may still be sent */
};

/* Takes bytes, appends replies.  Then the caller drains kv_woken(). */
enum session_step session_feed(struct session *s, const char *bytes, size_t n, size_t *used, struct el_buf *out);

/* The next of a long answer: what it appends to `out`, then as much of *piece as can be sent, of which session_took()
 * is told.  SESSION_HELD: there is more, or *piece is not empty.  SESSION_MORE: with `out` that is all. */
enum session_step session_piece(struct session *s, struct el_buf *out, struct kv_bytes *piece);
void session_took(struct session *s, size_t n);

/* Where the next bytes may be read to, so that a long value is not copied once more: at most *n bytes, which are then
 * fed from there.  NULL: anywhere. */
char *session_room(struct session *s, size_t *n);

/* What would be free without the request whose rest has not come, and without the answer whose rest was not sent. */
size_t session_costs(const struct session *s);

/* Gives both up; the connection is of no use then, and fed no more.  May be called from within any allocation.  False:
 * they are at hand (session_busy). */
bool session_shed(struct session *s);
bool session_busy(const struct session *s);

/* The session that embeds this wait. */
struct session *session_of(struct kv_wait *w);

/* True once it has shown that it is a c10d client. */
bool session_greeted(const struct session *s);

/* The rank of whoever sets this key, as process groups name keys: "...default_pg/0/.../3", ".../rank_3".  -1: it does
 * not say. */
int32_t session_rank_of_key(struct kv_bytes key);

/* One line, without names of peers. */
const char *session_end_text(const struct session *s);

#endif
