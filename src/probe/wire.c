#include "probe/wire.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "util/text.h"
#include "util/array.h"
#include "util/utf8.h"

static const struct el_fields_limit limit = {.values_max = 64, .depth_max = 2};

#define X(NAME, name, word)                                                                                            \
    static const struct el_field name##_fields[] = {WIRE_##NAME##_FIELDS(EL_FIELD_ROW, wire_##name) EL_FIELD_END};
WIRE_LIST(X)
#undef X

static const struct wire_row {
    const char *word;
    const struct el_field *fields;
} rows[] = {
#define X(NAME, name, word) [WIRE_##NAME] = {word, name##_fields},
    WIRE_LIST(X)
#undef X
};

#define TYPE_FIELDS(F, T) F(T, STR, t, 32, 1)
struct type {
    TYPE_FIELDS(EL_FIELD_MEMBER, type)
};
static const struct el_field type_fields[] = {TYPE_FIELDS(EL_FIELD_ROW, type) EL_FIELD_END};

const char *wire_name(enum wire_type type)
{
    return type < COUNT_OF(rows) && rows[type].word ? rows[type].word : "nothing";
}

void wire_init(struct probe_wire *w, enum wire_type type)
{
    assert(type > WIRE_NONE && type < COUNT_OF(rows));
    *w = (struct probe_wire){.type = type};
    for (const struct el_field *f = rows[type].fields; f->name; f++) {
        void *at = (char *)&w->u + f->offset;
        if (f->must == 2 && f->kind == EL_FIELD_INT)
            *(int64_t *)at = -1;
        else if (f->must == 2)
            *(double *)at = NAN;
        else if (f->kind == EL_FIELD_STR)
            *(const char **)at = "";
    }
}

int wire_encode(const struct probe_wire *w, struct el_buf *out)
{
    assert(w->type > WIRE_NONE && w->type < COUNT_OF(rows));
    size_t start = out->len, head;
    int bad = el_buf_printf(out, "{\"t\":\"%s\"", rows[w->type].word);
    head = out->len;
    bad |= el_fields_put(out, rows[w->type].fields, &w->u);
    bad |= el_buf_puts(out, "\n");
    if (bad) {
        out->len = start;
        return -1;
    }
    /* The object's "{" becomes "," behind the type, or goes where nothing follows. */
    if (out->v[head + 1] != '}')
        out->v[head] = ',';
    else {
        memmove(out->v + head, out->v + head + 1, out->len - head - 1);
        out->len--;
    }
    return 0;
}

/* The word of "t" is read first: it says what the fields are. */
static enum wire_type type_of(const char *line, size_t n, struct el_err *e)
{
    struct type type = {0};
    void *tree;
    enum wire_type found = WIRE_NONE;
    if (el_fields_get("line", type_fields, line, n, limit, &type, &tree, e) == 0)
        for (size_t i = 1; i < COUNT_OF(rows); i++)
            if (strcmp(rows[i].word, type.t) == 0)
                found = (enum wire_type)i;
    if (!found && !e->status)
        el_fail(e, EL_EXIT_PROTOCOL, "a line of a kind that is not known");
    el_fields_release(&tree);
    return found;
}

int wire_decode(const char *line, size_t n, struct probe_wire *out, struct el_err *e)
{
    enum wire_type type = type_of(line, n, e);
    *out = (struct probe_wire){.type = WIRE_NONE};
    if (!type)
        return -1;
    wire_init(out, type);
    if (el_fields_get(rows[type].word, rows[type].fields, line, n, limit, &out->u, &out->tree, e) == 0)
        return 0;
    wire_release(out);
    return -1;
}

void wire_release(struct probe_wire *w)
{
    el_fields_release(&w->tree);
    *w = (struct probe_wire){.type = WIRE_NONE};
}

char *wire_text(char *to, size_t room_bytes, const char *from)
{
    text_copy(to, room_bytes, from, strlen(from));
    for (size_t i = 0, size; to[i]; i += size) {
        size = el_utf8(to + i, room_bytes - i);
        size = size ? size : 1;
        if (el_utf8_steers(to + i, size))
            memset(to + i, '?', size);
    }
    return to;
}

size_t wire_feed(struct wire_reader *r, const char *bytes, size_t n, size_t *line_len)
{
    const char *end = memchr(bytes, '\n', n);
    size_t take = end ? (size_t)(end - bytes) : n, used = take + (end != NULL);
    *line_len = 0;
    if (take > sizeof r->line - r->len) {
        r->dropped += !r->skipping;
        r->skipping = true;
    }
    if (!r->skipping) {
        memcpy(r->line + r->len, bytes, take);
        r->len += take;
    }
    if (end) {
        *line_len = r->skipping ? 0 : r->len;
        r->len = 0;
        r->skipping = false;
    }
    return used;
}
