#include "store/wire.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "util/likely.h"

static const struct {
    const char *name;
    uint8_t shape;  /* bits of enum wire_shape */
    int8_t code[2]; /* by dialect */
} ops[WIRE_OPS] = {
#define X(name, modern, legacy, shape) {#name, shape, {modern, legacy}},
    WIRE_OP_LIST(X)
#undef X
};

static const char *const error_texts[] = {
#define X(name, text) text,
    WIRE_ERROR_LIST(X)
#undef X
};

/* From code to operation, by dialect: 1 + enum wire_op, 0 = there is none.  What a dialect does not have stands behind
 * the codes. */
enum { CODES = 32 };
#define PLACE(code, name) ((code) < 0 ? CODES + (int)WIRE_##name : (code))

static const uint8_t op_of[2][CODES + WIRE_OPS] = {
#define X(name, modern, legacy, shape) [PLACE(modern, name)] = 1 + WIRE_##name,
    {WIRE_OP_LIST(X)},
#undef X
#define X(name, modern, legacy, shape) [PLACE(legacy, name)] = 1 + WIRE_##name,
    {WIRE_OP_LIST(X)},
#undef X
};

const char *wire_op_name(enum wire_op op)
{
    assert(op < WIRE_OPS);
    return ops[op].name;
}

const char *wire_error_text(enum wire_error error)
{
    return error_texts[error];
}

uint32_t wire_get_u32(const char *bytes)
{
    uint32_t x;
    memcpy(&x, bytes, sizeof x);
    return le32toh(x);
}

uint64_t wire_get_u64(const char *bytes)
{
    uint64_t x;
    memcpy(&x, bytes, sizeof x);
    return le64toh(x);
}

static EL_COLD enum wire_scan wire_bad(struct store_wire *w, enum wire_error why)
{
    w->error = (uint8_t)why;
    return WIRE_BAD;
}

/* Torch 2.1 numbers its operations otherwise from 7 up; 8 cannot be told apart and is the legacy one. */
static EL_COLD bool is_torch_2_1(struct store_wire *w, uint8_t code)
{
    w->ordinary |= code <= 6;
    return (code >= 9 && code <= 11) || (code == 7 && w->ordinary);
}

/* What is there of a request, and how far the fields have been taken. */
struct cursor {
    const char *bytes;
    size_t n, at;
};

/* Are the next n bytes not there yet? */
static inline bool lacks(struct store_wire *w, const struct cursor *c, size_t n)
{
    if (EL_LIKELY(c->n - c->at >= n))
        return false;
    w->need = c->at + n;
    return true;
}

/* Takes a length and that many bytes, or stays in front of both. */
static inline enum wire_scan take_string(struct store_wire *w, struct cursor *c, bool is_key, struct kv_bytes *x)
{
    if (lacks(w, c, 8))
        return WIRE_MORE;
    uint64_t n = wire_get_u64(c->bytes + c->at);
    if (n > (is_key ? WIRE_KEY_MAX : WIRE_VALUE_MAX))
        return wire_bad(w, is_key ? WIRE_ERROR_KEY_LENGTH : WIRE_ERROR_VALUE_LENGTH);
    if (lacks(w, c, 8 + (size_t)n))
        return WIRE_MORE;
    *x = (struct kv_bytes){c->bytes + c->at + 8, (size_t)n};
    c->at += 8 + (size_t)n;
    return WIRE_WHOLE;
}

/* A list may have many elements and come in many pieces: how far it has been walked is kept in *w. */
static enum wire_scan take_list(struct store_wire *w, struct cursor *c, bool pairs, struct wire_request *r)
{
    size_t start = c->at;
    struct kv_bytes x;
    if (lacks(w, c, 8))
        return WIRE_MORE;
    uint64_t count = wire_get_u64(c->bytes + start);
    if (count > WIRE_COUNT_MAX)
        return wire_bad(w, WIRE_ERROR_COUNT);
    if (!w->walked) {
        w->left = (uint32_t)count * (pairs ? 2 : 1);
        w->walked = start + 8;
    }
    for (c->at = w->walked; w->left; w->left--, w->walked = c->at) {
        enum wire_scan scan = take_string(w, c, !pairs || w->left % 2 == 0, &x);
        if (scan != WIRE_WHOLE)
            return scan;
    }
    w->walked = 0;
    r->count = (size_t)count;
    r->list = (struct kv_bytes){c->bytes + start + 8, c->at - start - 8};
    return WIRE_WHOLE;
}

static inline enum wire_scan take_fields(struct store_wire *w, struct cursor *c, unsigned shape, struct wire_request *r)
{
    enum wire_scan scan = WIRE_WHOLE;
    if (shape & WIRE_KEY && (scan = take_string(w, c, true, &r->key)) != WIRE_WHOLE)
        return scan;
    if (shape & WIRE_VALUE && (scan = take_string(w, c, false, &r->value)) != WIRE_WHOLE)
        return scan;
    if (shape & WIRE_SECOND)
        return take_string(w, c, false, &r->second);
    if (shape & WIRE_NUMBER) {
        if (lacks(w, c, 8))
            return WIRE_MORE;
        r->number = (int64_t)wire_get_u64(c->bytes + c->at);
        c->at += 8;
    }
    if (shape & WIRE_WORD) {
        if (lacks(w, c, 4))
            return WIRE_MORE;
        r->word = wire_get_u32(c->bytes + c->at);
        c->at += 4;
    }
    if (shape & (WIRE_KEYS | WIRE_PAIRS))
        return take_list(w, c, shape & WIRE_PAIRS, r);
    return WIRE_WHOLE;
}

enum wire_scan wire_scan(struct store_wire *w, const char *bytes, size_t n, struct wire_request *r, size_t *length)
{
    struct cursor c = {bytes, n, 1};
    if (!n) {
        w->need = 1;
        return WIRE_MORE;
    }
    uint8_t code = (uint8_t)bytes[0];
    if (w->dialect == WIRE_LEGACY && is_torch_2_1(w, code))
        return wire_bad(w, WIRE_ERROR_TORCH_2_1);
    if (code >= CODES || !op_of[w->dialect][code])
        return wire_bad(w, WIRE_ERROR_OPCODE);
    r->op = op_of[w->dialect][code] - 1u;
    enum wire_scan scan = take_fields(w, &c, ops[r->op].shape, r);
    if (scan == WIRE_WHOLE)
        *length = c.at;
    return scan;
}

struct kv_bytes wire_next(struct kv_bytes *list)
{
    assert(list->n >= 8);
    struct kv_bytes x = {list->v + 8, (size_t)wire_get_u64(list->v)};
    assert(x.n <= list->n - 8);
    list->v += 8 + x.n;
    list->n -= 8 + x.n;
    return x;
}

int wire_put_op(struct el_buf *b, enum wire_dialect dialect, enum wire_op op)
{
    assert(op < WIRE_OPS && ops[op].code[dialect] >= 0);
    return wire_put_u8(b, (uint8_t)ops[op].code[dialect]);
}

/* Room for n bytes that will be written, or NULL. */
static inline char *extend(struct el_buf *b, size_t n)
{
    char *at = el_buf_reserve(b, n);
    b->len += at ? n : 0;
    return at;
}

int wire_put_u8(struct el_buf *b, uint8_t x)
{
    char *at = extend(b, 1);
    return at ? (*at = (char)x, 0) : -1;
}

int wire_put_u32(struct el_buf *b, uint32_t x)
{
    char *at = extend(b, sizeof x);
    x = htole32(x);
    return at ? (memcpy(at, &x, sizeof x), 0) : -1;
}

int wire_put_u64(struct el_buf *b, uint64_t x)
{
    char *at = extend(b, sizeof x);
    x = htole64(x);
    return at ? (memcpy(at, &x, sizeof x), 0) : -1;
}

int wire_put_bytes(struct el_buf *b, struct kv_bytes x)
{
    uint64_t n = htole64(x.n);
    char *at = extend(b, sizeof n + x.n); /* all of it or nothing */
    if (!at)
        return -1;
    memcpy(at, &n, sizeof n);
    if (x.n)
        memcpy(at + sizeof n, x.v, x.n);
    return 0;
}
