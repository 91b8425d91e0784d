#include "snapshot/worker_msg.h"

#include <assert.h>
#include <string.h>

#include "util/array.h"

#define WORKER_MSG_VALUES_MAX 64u
#define WORKER_MSG_DEPTH_MAX  4u

#define X(NAME, name, number, fds, text)                                                                               \
    static const struct el_field name##_fields[] = {WORKER_MSG_##name##_FIELDS(EL_FIELD_ROW, wmsg_##name) EL_FIELD_END};
WORKER_MSG_LIST(X)
#undef X

static const struct worker_msg_row {
    unsigned type, descriptors;
    const char *name;
    const struct el_field *fields;
} rows[] = {
#define X(NAME, name, number, fds, text) {number, fds, #NAME, name##_fields},
    WORKER_MSG_LIST(X)
#undef X
};

static const struct worker_msg_row *worker_msg_row_of(unsigned type)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].type == type)
            return &rows[i];
    return NULL;
}

const char *worker_msg_name(unsigned type)
{
    const struct worker_msg_row *row = worker_msg_row_of(type);
    return row ? row->name : NULL;
}

/* On the machines that elrun runs on a struct of these fields is little endian already; the assertion says so. */
struct worker_msg_head {
    uint32_t magic;
    uint16_t type, flags;
    uint32_t seq, length;
};
_Static_assert(sizeof(struct worker_msg_head) == WORKER_MSG_HEAD_SIZE, "the head has no holes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the head is written as it lies in memory");

int worker_msg_encode(const struct worker_msg *m, struct el_buf *out)
{
    const struct worker_msg_row *row = worker_msg_row_of(m->type);
    assert(row);
    size_t start = out->len;
    struct worker_msg_head head = {.magic = WORKER_MSG_MAGIC, .type = (uint16_t)m->type, .seq = m->seq};
    int bad = el_buf_put(out, &head, sizeof head);
    if (!bad)
        bad = el_fields_put(out, row->fields, &m->u);
    size_t size = out->len - start;
    if (bad || size > WORKER_MSG_PACKET_MAX) {
        out->len = start;
        return -1;
    }
    head.length = (uint32_t)(size - WORKER_MSG_HEAD_SIZE);
    memcpy(out->v + start, &head, sizeof head);
    return 0;
}

int worker_msg_decode(const void *packet, size_t n, struct worker_msg *out, struct el_err *e)
{
    struct worker_msg_head head;
    memset(out, 0, sizeof *out);
    if (n < sizeof head || n > WORKER_MSG_PACKET_MAX)
        return el_fail(e, EL_EXIT_PROTOCOL, "packet of %zu bytes, %u to %u expected", n, WORKER_MSG_HEAD_SIZE,
                       WORKER_MSG_PACKET_MAX);
    memcpy(&head, packet, sizeof head);
    if (head.magic != WORKER_MSG_MAGIC)
        return el_fail(e, EL_EXIT_PROTOCOL, "the packet does not begin with ELC1: not elrun.py's protocol");
    if (head.length != n - sizeof head || head.flags)
        return el_fail(e, EL_EXIT_PROTOCOL, "packet of %zu bytes that says it has %zu, flags 0x%x", n,
                       (size_t)head.length + sizeof head, head.flags);
    const struct worker_msg_row *row = worker_msg_row_of(head.type);
    if (!row)
        return el_fail(e, EL_EXIT_PROTOCOL, "message type %u is not known to protocol %u", head.type, WORKER_MSG_PROTO);
    out->type = (enum worker_msg_type)head.type;
    out->seq = head.seq;
    const char *body = (const char *)packet + sizeof head;
    int bad =
        el_fields_get(row->name, row->fields, body, head.length,
                      (struct el_fields_limit){WORKER_MSG_VALUES_MAX, WORKER_MSG_DEPTH_MAX}, &out->u, &out->tree, e);
    if (bad)
        worker_msg_release(out);
    return bad;
}

void worker_msg_release(struct worker_msg *m)
{
    el_fields_release(&m->tree);
}
