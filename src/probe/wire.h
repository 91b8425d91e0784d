/* What the children of a probe (role.h, the GPU helper) are told and what they tell: one flat JSON object a line.  An
 * order comes as the one line of standard input; results go out on descriptor 3.  Every kind stands once in WIRE_LIST
 * and its fields once below; encoder, decoder and struct come from there.  Pure. */
#ifndef PROBE_WIRE_H
#define PROBE_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/err.h"
#include "util/fields.h"

#define WIRE_FD       3     /* where results go */
#define WIRE_LINE_MAX 16384 /* bytes of a line with its newline */
#define WIRE_ID_MAX   260

/* X(NAME, name, word): struct wire_<name>, {"t":"<word>", …}.  The last two are orders. */
#define WIRE_LIST(X)                                                                                                   \
    X(HELLO, hello, "hello")                                                                                           \
    X(ID, id, "id")                                                                                                    \
    X(INIT, init, "init")                                                                                              \
    X(M, m, "m")                                                                                                       \
    X(CHECK, check, "check")                                                                                           \
    X(FACT, fact, "fact")                                                                                              \
    X(ERR, err, "err")                                                                                                 \
    X(END, end, "end")                                                                                                 \
    X(PAIR_ORDER, pair_order, "pair_order")                                                                            \
    X(CHECK_ORDER, check_order, "check_order")

/* F(T, kind, field, limit, must): util/fields.h. */

/* The libraries and the device of a GPU helper; driver: in words, where no device was opened. */
#define WIRE_HELLO_FIELDS(F, T)                                                                                        \
    F(T, NUM, pid, INT32_MAX, 0)                                                                                       \
    F(T, INT, gpu, 4096, 2)                                                                                            \
    F(T, STR, bus, 32, 0)                                                                                              \
    F(T, STR, uuid, 64, 0)                                                                                             \
    F(T, STR, cudart, 1024, 0)                                                                                         \
    F(T, NUM, cudart_version, INT32_MAX, 0)                                                                            \
    F(T, NUM, driver_version, INT32_MAX, 0)                                                                            \
    F(T, STR, driver, 96, 0)                                                                                           \
    F(T, STR, nccl, 1024, 0)                                                                                           \
    F(T, NUM, nccl_version, INT32_MAX, 0)
/* What the guest end of a pair must know: 128 bytes in hex, or ADDRESS:PORT:TOKEN. */
#define WIRE_ID_FIELDS(F, T) F(T, STR, id, WIRE_ID_MAX, 1)
/* The two ends have met. */
#define WIRE_INIT_FIELDS(F, T)                                                                                         \
    F(T, REAL, ms, 0, 2)                                                                                               \
    F(T, STR, interface, 64, 0)                                                                                        \
    F(T, STR, local, 64, 0)                                                                                            \
    F(T, STR, remote, 64, 0)                                                                                           \
    F(T, NUM, mss, INT32_MAX, 0)
/* A metric by its name (metric.h); rail: or the GPU. */
#define WIRE_M_FIELDS(F, T)                                                                                            \
    F(T, STR, name, 32, 1)                                                                                             \
    F(T, INT, rail, 4096, 2)                                                                                           \
    F(T, NUM, n, INT32_MAX, 0)                                                                                         \
    F(T, REAL, min, 0, 2)                                                                                              \
    F(T, REAL, median, 0, 2)                                                                                           \
    F(T, REAL, p95, 0, 2)                                                                                              \
    F(T, STR, unit, 16, 0)
/* A single-node check (check.h).  With a value it is judged by whoever reads it; without one `state` is what counts. */
#define WIRE_CHECK_FIELDS(F, T)                                                                                        \
    F(T, STR, name, 48, 1)                                                                                             \
    F(T, STR, state, 16, 0)                                                                                            \
    F(T, INT, gpu, 4096, 2)                                                                                            \
    F(T, STR, on, 96, 0)                                                                                               \
    F(T, REAL, value, 0, 2)                                                                                            \
    F(T, REAL, limit, 0, 2)                                                                                            \
    F(T, STR, unit, 16, 0)                                                                                             \
    F(T, STR, text, 512, 0)                                                                                            \
    F(T, STR, advice, 512, 0)
/* Something to compare over nodes (versions). */
#define WIRE_FACT_FIELDS(F, T)                                                                                         \
    F(T, STR, name, 96, 1)                                                                                             \
    F(T, STR, value, 1024, 0)
/* What went wrong: while doing what, a code of the library and its name, in words; class: probe/child/child.h,
 * FAULT_LIST. */
#define WIRE_ERR_FIELDS(F, T)                                                                                          \
    F(T, STR, stage, 32, 0)                                                                                            \
    F(T, INT, code, INT32_MAX, 2)                                                                                      \
    F(T, STR, name, 64, 0)                                                                                             \
    F(T, STR, text, 1024, 0)                                                                                           \
    F(T, STR, class, 16, 0)                                                                                            \
    F(T, STR, advice, 512, 0)
/* The last line. */
#define WIRE_END_FIELDS(F, T) F(T, BOOL, ok, 0, 0)

/* One end of one rail of a tcp pair. */
#define WIRE_PAIR_ORDER_FIELDS(F, T)                                                                                   \
    F(T, BOOL, guest, 0, 0)       /* false: host end, which makes the id */                                            \
    F(T, STR, id, WIRE_ID_MAX, 0) /* guest only */                                                                     \
    F(T, STR, local, 64, 0)       /* numeric address or interface to use; "" for a guest: any */                       \
    F(T, STR, peer, 256, 0)       /* the other node, for messages */                                                   \
    F(T, NUM, rail, 4096, 0)                                                                                           \
    F(T, NUM, latency_count, 100000, 0)                                                                                \
    F(T, NUM, bytes, (uint64_t)1 << 40, 0) /* of one iteration */                                                      \
    F(T, NUM, count, 100000, 0)                                                                                        \
    F(T, NUM, meet_ms, 86400000, 0)  /* until the two ends must have met */                                            \
    F(T, NUM, quiet_ms, 86400000, 0) /* so long nothing may come */                                                    \
    F(T, NUM, spend_ms, 86400000, 0) /* on the bandwidth: smaller or fewer iterations where it is slow */              \
    F(T, NUM, limit_ms, 86400000, 0) /* on all of it */
/* A group of single-node checks (check.h). */
#define WIRE_CHECK_ORDER_FIELDS(F, T)                                                                                  \
    F(T, STR, group, 32, 1)                                                                                            \
    F(T, STR, ckpt_dir, 1024, 0)                                                                                       \
    F(T, STR, tmp_dir, 1024, 0)                                                                                        \
    F(T, BOOL, quick, 0, 0)

enum wire_type {
    WIRE_NONE,
#define X(NAME, name, word) WIRE_##NAME,
    WIRE_LIST(X)
#undef X
};

#define X(NAME, name, word)                                                                                            \
    struct wire_##name {                                                                                               \
        WIRE_##NAME##_FIELDS(EL_FIELD_MEMBER, )                                                                        \
    };
WIRE_LIST(X)
#undef X

struct probe_wire {
    enum wire_type type;
    void *tree; /* what a decoded line's strings point into; NULL: they are somebody else's */
    union {
#define X(NAME, name, word) struct wire_##name name;
        WIRE_LIST(X)
#undef X
    } u;
};

/* Type, and not known where that is possible. */
void wire_init(struct probe_wire *w, enum wire_type type);

/* Appends the line with its newline; strings that are longer than their field are cut.  0, or -1 and out->full. */
int wire_encode(const struct probe_wire *w, struct el_buf *out);

/* One line of n bytes, with or without its newline.  -1 and *e: no such line; *out is of type WIRE_NONE and needs no
 * release then. */
int wire_decode(const char *line, size_t n, struct probe_wire *out, struct el_err *e);
void wire_release(struct probe_wire *w);

/* Copies words of a child as far as they fit; what would steer a terminal becomes '?'.  Returns to. */
char *wire_text(char *to, size_t room_bytes, const char *from);

const char *wire_name(enum wire_type type);

/* Lines out of a stream of bytes: next() takes one off; longer ones than WIRE_LINE_MAX are dropped and counted. */
struct wire_reader {
    char line[WIRE_LINE_MAX];
    size_t len;
    bool skipping;
    unsigned dropped;
};

/* Takes bytes up to the end of a line.  How many were used; *line_len > 0 if a line (without newline, in r->line, valid
 * until the next call) is there. */
size_t wire_feed(struct wire_reader *r, const char *bytes, size_t n, size_t *line_len);

#endif
