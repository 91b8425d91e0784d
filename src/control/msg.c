#include "control/msg.h"

#include <assert.h>
#include <string.h>

#include "control/msg_check.h"
#include "control/peer_ident.h"
#include "util/array.h"
#include "util/fields.h"

#define X(NAME, name, number, text)                                                                                    \
    static const struct el_field name##_fields[] = {MSG_##name##_FIELDS(EL_FIELD_ROW, msg_##name) EL_FIELD_END};
MSG_LIST(X)
#undef X

static const struct msg_row {
    unsigned type;
    const char *name, *sentence;
    const struct el_field *fields;
} rows[] = {
#define X(NAME, name, number, text) {number, #NAME, text, name##_fields},
    MSG_LIST(X)
#undef X
};

static const struct msg_row *msg_row_of(unsigned type)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].type == type)
            return &rows[i];
    return NULL;
}

const char *msg_name(unsigned type)
{
    if (type == MSG_HEARTBEAT || type == MSG_HEARTBEAT_ACK)
        return type == MSG_HEARTBEAT ? "HEARTBEAT" : "HEARTBEAT_ACK";
    const struct msg_row *row = msg_row_of(type);
    return row ? row->name : NULL;
}

const char *msg_sentence(unsigned type)
{
    const struct msg_row *row = msg_row_of(type);
    return row ? row->sentence : NULL;
}

const char *msg_field(unsigned type, unsigned i, const char **kind)
{
    const struct msg_row *row = msg_row_of(type);
    for (unsigned k = 0; row && row->fields[k].name; k++)
        if (k == i) {
            *kind = el_field_kind_name(row->fields[k].kind);
            return row->fields[k].name;
        }
    return NULL;
}

/* --- out --- */

static void msg_put_le(unsigned char *to, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (unsigned char)(v >> 8 * i);
}

static uint64_t msg_get_le(const unsigned char *from, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)from[i] << 8 * i;
    return v;
}

static int put_beat(struct el_buf *out, const struct msg_heartbeat *beat)
{
    unsigned char body[16];
    msg_put_le(body, beat->time, 8);
    msg_put_le(body + 8, beat->own, 8);
    return el_buf_put(out, body, sizeof body);
}

int msg_encode(const struct msg *m, struct el_buf *out)
{
    const struct msg_row *row = msg_row_of(m->type);
    bool beat = m->type == MSG_HEARTBEAT || m->type == MSG_HEARTBEAT_ACK;
    assert(row || beat);
    size_t start = out->len;
    unsigned char head[MSG_HEAD_SIZE] = {0};
    int bad = el_buf_put(out, head, sizeof head);
    if (!bad)
        bad = beat ? put_beat(out, &m->u.heartbeat) : el_fields_put(out, row->fields, &m->u);
    size_t size = out->len - start;
    if (bad || size > MSG_FRAME_MAX) {
        out->len = start;
        return -1;
    }
    msg_put_le(head, size - 4, 4);
    head[4] = MSG_VERSION;
    head[5] = beat ? (unsigned char)m->u.heartbeat.view : 0;
    msg_put_le(head + 6, (uint64_t)m->type, 2);
    memcpy(out->v + start, head, sizeof head);
    return 0;
}

/* --- in --- */

static int get_body(unsigned type, unsigned flags, const unsigned char *body, size_t n, struct msg *out,
                    struct el_err *e)
{
    const struct msg_row *row = msg_row_of(type);
    bool beat = type == MSG_HEARTBEAT || type == MSG_HEARTBEAT_ACK;
    out->type = (enum msg_type)type;
    if (flags >= (beat ? MSG_VIEWS : 1))
        return el_fail(e, EL_EXIT_PROTOCOL, "flags 0x%02x have no meaning with message type %u", flags, type);
    if (row && el_fields_get(row->name, row->fields, (const char *)body, n,
                             (struct el_fields_limit){MSG_VALUES_MAX, MSG_DEPTH_MAX}, &out->u, &out->tree, e) < 0)
        return -1;
    if (row)
        return msg_check(out, e);
    if (!beat)
        return el_fail(e, EL_EXIT_PROTOCOL, "message type %u is not known to protocol version %u", type, MSG_VERSION);
    if (n != 16)
        return el_fail(e, EL_EXIT_PROTOCOL, "%s of %zu bytes, 16 expected", msg_name(type), n);
    out->u.heartbeat = (struct msg_heartbeat){msg_get_le(body, 8), msg_get_le(body + 8, 8), (enum msg_view)flags};
    return 0;
}

static int not_ours(const char *bytes, size_t n, struct el_err *e)
{
    const char *name = peer_ident_name(bytes, n);
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
    uint64_t size = msg_get_le(b, 4) + 4;
    if (b[4] != MSG_VERSION)
        return el_fail(e, EL_EXIT_PROTOCOL, "protocol version %u, this is version %u", b[4], MSG_VERSION);
    if (size < MSG_HEAD_SIZE || size > MSG_FRAME_MAX)
        return el_fail(e, EL_EXIT_PROTOCOL, "frame of %llu bytes, %u to %u expected", (unsigned long long)size,
                       MSG_HEAD_SIZE, MSG_FRAME_MAX);
    if (n < size)
        return 0;
    if (get_body((unsigned)msg_get_le(b + 6, 2), b[5], b + MSG_HEAD_SIZE, (size_t)size - MSG_HEAD_SIZE, out, e) < 0) {
        msg_release(out);
        return -1;
    }
    return (long)size;
}

void msg_release(struct msg *m)
{
    el_fields_release(&m->tree);
}
