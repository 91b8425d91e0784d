#include "rdzv/msg.h"

#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "rdzv/stranger.h"
#include "util/auto.h"
#include "util/json_limit.h"
#include "util/scan.h"

enum kind { KIND_NUM, KIND_INT, KIND_HEX, KIND_STR, KIND_BOOL };

static const char *const kind_names[] = {"number", "number or -1", "hex", "string", "boolean"};

struct field {
    const char *name;
    enum kind kind;
    uint64_t limit;
    bool must;
    size_t offset;
};

/* A last row with name NULL: a message may have no fields of its own. */
#define F(T, field_kind, field, field_limit, field_must)                                                               \
    {#field, KIND_##field_kind, (uint64_t)(field_limit), field_must, offsetof(struct T, field)},
#define X(NAME, name, number, text)                                                                                    \
    static const struct field name##_fields[] = {MSG_##name##_FIELDS(F, msg_##name){NULL, KIND_NUM, 0, false, 0}};
MSG_LIST(X)
#undef X
#undef F

static const struct row {
    unsigned type;
    const char *name, *sentence;
    const struct field *fields;
} rows[] = {
#define X(NAME, name, number, text) {number, #NAME, text, name##_fields},
    MSG_LIST(X)
#undef X
};

static const struct row *row_of(unsigned type)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].type == type)
            return &rows[i];
    return NULL;
}

const char *msg_name(unsigned type)
{
    if (type == MSG_BEAT || type == MSG_BEAT_REPLY)
        return type == MSG_BEAT ? "BEAT" : "BEAT_REPLY";
    const struct row *row = row_of(type);
    return row ? row->name : NULL;
}

const char *msg_sentence(unsigned type)
{
    const struct row *row = row_of(type);
    return row ? row->sentence : NULL;
}

const char *msg_field(unsigned type, unsigned i, const char **kind)
{
    const struct row *row = row_of(type);
    for (unsigned k = 0; row && row->fields[k].name; k++)
        if (k == i) {
            *kind = kind_names[row->fields[k].kind];
            return row->fields[k].name;
        }
    return NULL;
}

/* --- out --- */

static void put_le(unsigned char *to, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (unsigned char)(v >> 8 * i);
}

static uint64_t get_le(const unsigned char *from, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)from[i] << 8 * i;
    return v;
}

/* Bytes of the UTF-8 character at s (n > 0 bytes are there), or 0 if it is none. */
static unsigned utf8_size(const unsigned char *s, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (s[0] < 0x80)
        return 1;
    unsigned size = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || size > n)
        return 0;
    uint32_t c = s[0] & (0xffu >> (size + 1));
    for (unsigned i = 1; i < size; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    return c < least[size] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : size;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* At most limit bytes arrive at the other side: whole characters only. */
static int put_string(struct el_buf *out, const char *text, size_t limit)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = strnlen(text, limit + 1), used = 0;
    int bad = el_buf_put(out, "\"", 1);
    for (size_t i = 0; i < n;) {
        size_t run = i; /* most text needs no look at each byte */
        while (run < n && used + (run - i) < limit && is_plain(s[run]))
            run++;
        if (run > i) {
            bad |= el_buf_put(out, s + i, run - i);
            used += run - i;
            i = run;
            continue;
        }
        unsigned size = utf8_size(s + i, n - i);
        size_t comes = size ? size : 3;
        if (used + comes > limit)
            break;
        if (!size)
            bad |= el_buf_puts(out, "\xef\xbf\xbd");
        else if (s[i] == '"' || s[i] == '\\')
            bad |= el_buf_printf(out, "\\%c", s[i]);
        else if (s[i] < 0x20 || s[i] == 0x7f)
            bad |= el_buf_printf(out, "\\u%04x", (unsigned)s[i]);
        else
            bad |= el_buf_put(out, s + i, size);
        used += comes;
        i += size ? size : 1;
    }
    return bad | el_buf_put(out, "\"", 1);
}

static int put_field(struct el_buf *out, const struct field *f, const char *at)
{
    switch (f->kind) {
    case KIND_NUM: {
        uint64_t v = *(const uint64_t *)(const void *)at;
        assert(v <= f->limit);
        return el_buf_printf(out, "%llu", (unsigned long long)v);
    }
    case KIND_INT: return el_buf_printf(out, "%lld", (long long)*(const int64_t *)(const void *)at);
    case KIND_HEX: return el_buf_printf(out, "\"%llx\"", (unsigned long long)*(const uint64_t *)(const void *)at);
    case KIND_BOOL: return el_buf_puts(out, *(const bool *)(const void *)at ? "true" : "false");
    case KIND_STR: break;
    }
    const char *text = *(const char *const *)(const void *)at;
    return put_string(out, text ? text : "", f->limit);
}

/* Nothing is said by 0, "" and false, where they may be missing. */
static bool is_silent(const struct field *f, const char *at)
{
    if (f->must)
        return false;
    if (f->kind == KIND_BOOL)
        return !*(const bool *)(const void *)at;
    if (f->kind != KIND_STR)
        return !*(const uint64_t *)(const void *)at;
    const char *text = *(const char *const *)(const void *)at;
    return !text || !*text;
}

static int put_object(struct el_buf *out, const struct row *row, const char *base)
{
    int bad = el_buf_puts(out, "{");
    bool first = true;
    for (const struct field *f = row->fields; f->name; f++) {
        if (is_silent(f, base + f->offset))
            continue;
        bad |= el_buf_printf(out, "%s\"%s\":", first ? "" : ",", f->name);
        bad |= put_field(out, f, base + f->offset);
        first = false;
    }
    return bad | el_buf_puts(out, "}");
}

static int put_beat(struct el_buf *out, const struct msg_beat *beat)
{
    unsigned char body[16];
    put_le(body, beat->time, 8);
    put_le(body + 8, beat->own, 8);
    return el_buf_put(out, body, sizeof body);
}

int msg_encode(const struct msg *m, struct el_buf *out)
{
    const struct row *row = row_of(m->type);
    bool beat = m->type == MSG_BEAT || m->type == MSG_BEAT_REPLY;
    assert(row || beat);
    size_t start = out->len;
    unsigned char head[MSG_HEAD_SIZE] = {0};
    int bad = el_buf_put(out, head, sizeof head);
    if (!bad)
        bad = beat ? put_beat(out, &m->u.beat) : put_object(out, row, (const char *)&m->u);
    size_t size = out->len - start;
    if (bad || size > MSG_FRAME_MAX) {
        out->len = start;
        return -1;
    }
    put_le(head, size - 4, 4);
    head[4] = MSG_VERSION;
    put_le(head + 6, (uint64_t)m->type, 2);
    memcpy(out->v + start, head, sizeof head);
    return 0;
}

/* --- in --- */

static int refuse_field(const struct row *row, const struct field *f, const char *why, struct el_err *e)
{
    return el_fail(e, EL_EXIT_PROTOCOL, "%s: \"%s\" %s (a %s up to %llu)", row->name, f->name, why, kind_names[f->kind],
                   (unsigned long long)f->limit);
}

static int get_number(const struct row *row, const struct field *f, const json_t *v, char *at, struct el_err *e)
{
    if (!json_is_integer(v))
        return refuse_field(row, f, "is not a whole number", e);
    json_int_t n = json_integer_value(v);
    if (n < (f->kind == KIND_INT ? -1 : 0) || (n > 0 && (uint64_t)n > f->limit))
        return refuse_field(row, f, "is out of range", e);
    if (f->kind == KIND_INT)
        *(int64_t *)(void *)at = n;
    else
        *(uint64_t *)(void *)at = (uint64_t)n;
    return 0;
}

static int get_string(const struct row *row, const struct field *f, const json_t *v, char *at, struct el_err *e)
{
    if (!json_is_string(v))
        return refuse_field(row, f, "is not a string", e);
    const char *text = json_string_value(v);
    if (f->kind == KIND_STR) {
        if (json_string_length(v) > f->limit)
            return refuse_field(row, f, "is too long", e);
        *(const char **)(void *)at = text;
        return 0;
    }
    const char *end = text;
    if (!scan_hex(&end, (uint64_t *)(void *)at) || *end || end - text > 16)
        return refuse_field(row, f, "is not 1 to 16 hexadecimal digits", e);
    return 0;
}

static int get_field(const struct row *row, const struct field *f, const json_t *v, char *base, struct el_err *e)
{
    char *at = base + f->offset;
    if (!v && f->must)
        return refuse_field(row, f, "is missing", e);
    if (f->kind == KIND_STR)
        *(const char **)(void *)at = "";
    if (!v)
        return 0;
    if (f->kind == KIND_NUM || f->kind == KIND_INT)
        return get_number(row, f, v, at, e);
    if (f->kind == KIND_STR || f->kind == KIND_HEX)
        return get_string(row, f, v, at, e);
    if (!json_is_boolean(v))
        return refuse_field(row, f, "is neither true nor false", e);
    *(bool *)(void *)at = json_is_true(v);
    return 0;
}

static int get_object(const struct row *row, const char *text, size_t n, struct msg *out, struct el_err *e)
{
    if (!json_limit_holds(text, n, MSG_VALUES_MAX, MSG_DEPTH_MAX))
        return el_fail(e, EL_EXIT_PROTOCOL, "%s: more than %u values, or nested deeper than %u", row->name,
                       MSG_VALUES_MAX, MSG_DEPTH_MAX);
    json_error_t where;
    json_t *tree = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
    if (!tree)
        return el_fail(e, EL_EXIT_PROTOCOL, "%s: not JSON at byte %d: %s", row->name, where.position, where.text);
    out->tree = tree;
    if (!json_is_object(tree))
        return el_fail(e, EL_EXIT_PROTOCOL, "%s: JSON, but not an object", row->name);
    for (const struct field *f = row->fields; f->name; f++) /* fields that are not known are a newer version's */
        if (get_field(row, f, json_object_get(tree, f->name), (char *)&out->u, e) < 0)
            return -1;
    return 0;
}

static int get_body(unsigned type, unsigned flags, const unsigned char *body, size_t n, struct msg *out,
                    struct el_err *e)
{
    const struct row *row = row_of(type);
    bool beat = type == MSG_BEAT || type == MSG_BEAT_REPLY;
    out->type = (enum msg_type)type;
    if (flags)
        return el_fail(e, EL_EXIT_PROTOCOL, "flags 0x%02x have no meaning with message type %u", flags, type);
    if (row)
        return get_object(row, (const char *)body, n, out, e);
    if (!beat)
        return el_fail(e, EL_EXIT_PROTOCOL, "message type %u is not known to protocol version %u", type, MSG_VERSION);
    if (n != 16)
        return el_fail(e, EL_EXIT_PROTOCOL, "%s of %zu bytes, 16 expected", msg_name(type), n);
    out->u.beat = (struct msg_beat){get_le(body, 8), get_le(body + 8, 8)};
    return 0;
}

static int not_ours(const char *bytes, size_t n, struct el_err *e)
{
    const char *name = stranger_name(bytes, n);
    if (name)
        return el_fail(e, EL_EXIT_PROTOCOL, "%s listens there, not a coordinator of elrun", name);
    return el_fail(e, EL_EXIT_PROTOCOL, "the other side does not speak elrun's control protocol");
}

long msg_consume(struct msg_decoder *d, const char *bytes, size_t n, struct msg *out, struct el_err *e)
{
    const unsigned char *b = (const unsigned char *)bytes;
    *out = (struct msg){.type = MSG_NONE};
    if (!d->greeted) {
        if (memcmp(bytes, MSG_PREAMBLE, n < MSG_PREAMBLE_SIZE ? n : MSG_PREAMBLE_SIZE) != 0)
            return not_ours(bytes, n, e);
        d->greeted = n >= MSG_PREAMBLE_SIZE;
        return d->greeted ? (long)MSG_PREAMBLE_SIZE : 0;
    }
    if (n < MSG_HEAD_SIZE)
        return 0;
    uint64_t size = get_le(b, 4) + 4;
    if (b[4] != MSG_VERSION)
        return el_fail(e, EL_EXIT_PROTOCOL, "protocol version %u, this is version %u", b[4], MSG_VERSION);
    if (size < MSG_HEAD_SIZE || size > MSG_FRAME_MAX)
        return el_fail(e, EL_EXIT_PROTOCOL, "frame of %llu bytes, %u to %u expected", (unsigned long long)size,
                       MSG_HEAD_SIZE, MSG_FRAME_MAX);
    if (n < size)
        return 0;
    if (get_body((unsigned)get_le(b + 6, 2), b[5], b + MSG_HEAD_SIZE, (size_t)size - MSG_HEAD_SIZE, out, e) < 0) {
        msg_release(out);
        return -1;
    }
    return (long)size;
}

void msg_release(struct msg *m)
{
    json_decref(m->tree);
    m->tree = NULL;
}
