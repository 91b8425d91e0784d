#include "store/wire.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *name, *shape;
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

/* From code to operation.  A code of -1 becomes a label that no byte has. */
#define LABEL(code, name) ((code) < 0 ? 256 + (int)WIRE_##name : (code))

static enum wire_op op_of_modern(int code)
{
    switch (code) {
#define X(name, modern, legacy, shape)                                                                                 \
    case LABEL(modern, name): return WIRE_##name;
        WIRE_OP_LIST(X)
#undef X
    default: return WIRE_OPS;
    }
}

static enum wire_op op_of_legacy(int code)
{
    switch (code) {
#define X(name, modern, legacy, shape)                                                                                 \
    case LABEL(legacy, name): return WIRE_##name;
        WIRE_OP_LIST(X)
#undef X
    default: return WIRE_OPS;
    }
}

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
    uint8_t b[4];
    memcpy(b, bytes, sizeof b);
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

uint64_t wire_get_u64(const char *bytes)
{
    return wire_get_u32(bytes) | (uint64_t)wire_get_u32(bytes + 4) << 32;
}

static enum wire_scan bad(struct wire *w, enum wire_error why)
{
    w->error = (uint8_t)why;
    return WIRE_BAD;
}

static enum wire_scan begin(struct wire *w, uint8_t code)
{
    enum wire_op op = w->dialect == WIRE_MODERN ? op_of_modern(code) : op_of_legacy(code);
    if (w->dialect == WIRE_LEGACY) {
        /* Torch 2.1 numbers its operations otherwise from 7 up; 8 cannot be told apart and is the legacy one. */
        if ((code >= 9 && code <= 11) || (op == WIRE_WATCH_KEY && w->ordinary))
            return bad(w, WIRE_ERROR_TORCH_2_1);
        w->ordinary |= code <= 6;
    }
    if (op == WIRE_OPS)
        return bad(w, WIRE_ERROR_OPCODE);
    w->op = (uint8_t)op;
    w->at = 1;
    w->field = 0;
    w->in_list = false;
    return WIRE_WHOLE;
}

/* Steps over `n` fixed bytes. */
static enum wire_scan skip(struct wire *w, size_t there, size_t n)
{
    if (there - w->at < n) {
        w->need = w->at + n;
        return WIRE_MORE;
    }
    w->at += n;
    return WIRE_WHOLE;
}

/* Steps over a length and that many bytes, or stays in front of both. */
static enum wire_scan skip_string(struct wire *w, const char *bytes, size_t there, bool is_key)
{
    if (there - w->at < 8) {
        w->need = w->at + 8;
        return WIRE_MORE;
    }
    uint64_t n = wire_get_u64(bytes + w->at);
    if (n > (is_key ? WIRE_KEY_MAX : WIRE_VALUE_MAX))
        return bad(w, is_key ? WIRE_ERROR_KEY_LENGTH : WIRE_ERROR_VALUE_LENGTH);
    return skip(w, there, 8 + (size_t)n);
}

static enum wire_scan skip_list(struct wire *w, const char *bytes, size_t there, bool pairs)
{
    if (!w->in_list) {
        if (there - w->at < 8) {
            w->need = w->at + 8;
            return WIRE_MORE;
        }
        uint64_t count = wire_get_u64(bytes + w->at);
        if (count > WIRE_COUNT_MAX)
            return bad(w, WIRE_ERROR_COUNT);
        w->at += 8;
        w->left = (uint32_t)count * (pairs ? 2 : 1);
        w->in_list = true;
    }
    for (; w->left; w->left--) {
        bool is_key = !pairs || w->left % 2 == 0;
        enum wire_scan r = skip_string(w, bytes, there, is_key);
        if (r != WIRE_WHOLE)
            return r;
    }
    return WIRE_WHOLE;
}

static enum wire_scan skip_field(struct wire *w, char kind, const char *bytes, size_t n)
{
    switch (kind) {
    case 's': return skip_string(w, bytes, n, true);
    case 'v': return skip_string(w, bytes, n, false);
    case 'i': return skip(w, n, 8);
    case 'u': return skip(w, n, 4);
    case 'S': return skip_list(w, bytes, n, false);
    default: assert(kind == 'P'); return skip_list(w, bytes, n, true);
    }
}

static struct kv_bytes string_at(const char *at)
{
    return (struct kv_bytes){at + 8, (size_t)wire_get_u64(at)};
}

/* The fields of a request whose end is w->at. */
static void fill(const struct wire *w, const char *bytes, struct wire_request *r)
{
    const char *shape = ops[w->op].shape;
    r->op = w->op;
    for (unsigned i = 0; shape[i]; i++) {
        const char *at = bytes + w->start[i];
        switch (shape[i]) {
        case 's': r->key = string_at(at); break;
        case 'v': *(i == 1 ? &r->value : &r->second) = string_at(at); break;
        case 'i': r->number = (int64_t)wire_get_u64(at); break;
        case 'u': r->word = wire_get_u32(at); break;
        default: r->count = (size_t)wire_get_u64(at); r->list = (struct kv_bytes){at + 8, w->at - w->start[i] - 8};
        }
    }
}

enum wire_scan wire_scan(struct wire *w, const char *bytes, size_t n, struct wire_request *r, size_t *length)
{
    assert(n >= w->at);
    if (!n) {
        w->need = 1;
        return WIRE_MORE;
    }
    if (!w->at && begin(w, (uint8_t)bytes[0]) != WIRE_WHOLE)
        return WIRE_BAD;
    for (const char *shape = ops[w->op].shape; shape[w->field]; w->field++) {
        if (!w->in_list)
            w->start[w->field] = w->at;
        enum wire_scan scan = skip_field(w, shape[w->field], bytes, n);
        if (scan != WIRE_WHOLE)
            return scan;
    }
    fill(w, bytes, r);
    *length = w->at;
    w->at = 0;
    return WIRE_WHOLE;
}

struct kv_bytes wire_next(struct kv_bytes *list)
{
    assert(list->n >= 8);
    struct kv_bytes x = string_at(list->v);
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

int wire_put_u8(struct el_buf *b, uint8_t x)
{
    return el_buf_put(b, &x, 1);
}

int wire_put_u32(struct el_buf *b, uint32_t x)
{
    uint8_t v[4];
    for (unsigned i = 0; i < 4; i++)
        v[i] = (uint8_t)(x >> 8 * i);
    return el_buf_put(b, v, sizeof v);
}

int wire_put_u64(struct el_buf *b, uint64_t x)
{
    uint8_t v[8];
    for (unsigned i = 0; i < 8; i++)
        v[i] = (uint8_t)(x >> 8 * i);
    return el_buf_put(b, v, sizeof v);
}

int wire_put_bytes(struct el_buf *b, struct kv_bytes x)
{
    char *at = el_buf_reserve(b, 8 + x.n); /* all of it or nothing */
    return !at || wire_put_u64(b, x.n) || el_buf_put(b, x.v, x.n) ? -1 : 0;
}
