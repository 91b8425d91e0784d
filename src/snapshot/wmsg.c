#include "snapshot/wmsg.h"

#include <assert.h>
#include <string.h>

#include "util/auto.h"

#define WMSG_VALUES_MAX 64u
#define WMSG_DEPTH_MAX  4u

#define X(NAME, name, number, fds, text)                                                                               \
    static const struct el_field name##_fields[] = {WMSG_##name##_FIELDS(EL_FIELD_ROW, wmsg_##name) EL_FIELD_END};
WMSG_LIST(X)
#undef X

static const struct row {
    unsigned type, descriptors;
    const char *name;
    const struct el_field *fields;
} rows[] = {
#define X(NAME, name, number, fds, text) {number, fds, #NAME, name##_fields},
    WMSG_LIST(X)
#undef X
};

static const struct row *row_of(unsigned type)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].type == type)
            return &rows[i];
    return NULL;
}

const char *wmsg_name(unsigned type)
{
    const struct row *row = row_of(type);
    return row ? row->name : NULL;
}

unsigned wmsg_descriptors(unsigned type)
{
    const struct row *row = row_of(type);
    return row ? row->descriptors : 0;
}

/* On the machines that elrun runs on a struct of these fields is little endian already; the assertion says so. */
struct head {
    uint32_t magic;
    uint16_t type, flags;
    uint32_t seq, length;
};
_Static_assert(sizeof(struct head) == WMSG_HEAD_SIZE, "the head has no holes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the head is written as it lies in memory");

int wmsg_encode(const struct wmsg *m, struct el_buf *out)
{
    const struct row *row = row_of(m->type);
    assert(row);
    size_t start = out->len;
    struct head head = {.magic = WMSG_MAGIC, .type = (uint16_t)m->type, .seq = m->seq};
    int bad = el_buf_put(out, &head, sizeof head);
    if (!bad)
        bad = el_fields_put(out, row->fields, &m->u);
    size_t size = out->len - start;
    if (bad || size > WMSG_PACKET_MAX) {
        out->len = start;
        return -1;
    }
    head.length = (uint32_t)(size - WMSG_HEAD_SIZE);
    memcpy(out->v + start, &head, sizeof head);
    return 0;
}

int wmsg_decode(const void *packet, size_t n, struct wmsg *out, struct el_err *e)
{
    struct head head;
    memset(out, 0, sizeof *out);
    if (n < sizeof head || n > WMSG_PACKET_MAX)
        return el_fail(e, EL_EXIT_PROTOCOL, "packet of %zu bytes, %u to %u expected", n, WMSG_HEAD_SIZE,
                       WMSG_PACKET_MAX);
    memcpy(&head, packet, sizeof head);
    if (head.magic != WMSG_MAGIC)
        return el_fail(e, EL_EXIT_PROTOCOL, "the packet does not begin with ELC1: not elrun.py's protocol");
    if (head.length != n - sizeof head || head.flags)
        return el_fail(e, EL_EXIT_PROTOCOL, "packet of %zu bytes that says it has %zu, flags 0x%x", n,
                       (size_t)head.length + sizeof head, head.flags);
    const struct row *row = row_of(head.type);
    if (!row)
        return el_fail(e, EL_EXIT_PROTOCOL, "message type %u is not known to protocol %u", head.type, WMSG_PROTO);
    out->type = (enum wmsg_type)head.type;
    out->seq = head.seq;
    const char *body = (const char *)packet + sizeof head;
    int bad = el_fields_get(row->name, row->fields, body, head.length,
                            (struct el_fields_limit){WMSG_VALUES_MAX, WMSG_DEPTH_MAX}, &out->u, &out->tree, e);
    if (bad)
        wmsg_release(out);
    return bad;
}

void wmsg_release(struct wmsg *m)
{
    el_fields_release(&m->tree);
}
