#include "ckpt/safetensors.h"

#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "util/array.h"
#include "util/json_limit.h"
#include "util/parse.h"
#include "util/sort.h"

/* Commas and brackets of SAFETENSORS_TENSORS_MAX tensors of the usual four dimensions. */
enum { VALUES_MAX = 12 * SAFETENSORS_TENSORS_MAX, DEPTH_MAX = 3 };

#define METADATA "__metadata__"

static const struct {
    const char *name;
    unsigned bits;
} dtypes[ST_DTYPES_COUNT] = {
#define X(name, bits) {#name, bits},
    SAFETENSORS_DTYPES(X)
#undef X
};

const char *safetensors_dtype_name(enum safetensors_dtype t)
{
    assert(t < ST_DTYPES_COUNT);
    return dtypes[t].name;
}

unsigned safetensors_dtype_bits(enum safetensors_dtype t)
{
    assert(t < ST_DTYPES_COUNT);
    return dtypes[t].bits;
}

enum safetensors_dtype safetensors_dtype_find(const char *name)
{
    unsigned t = 0;
    while (t < ST_DTYPES_COUNT && strcmp(dtypes[t].name, name) != 0)
        t++;
    return (enum safetensors_dtype)t;
}

bool safetensors_tensor_bytes(enum safetensors_dtype dtype, const uint64_t *shape, unsigned rank, uint64_t *bytes)
{
    uint64_t n = safetensors_dtype_bits(dtype);
    for (unsigned i = 0; i < rank; i++)
        if (__builtin_mul_overflow(n, shape[i], &n))
            return false;
    *bytes = n / 8;
    return n % 8 == 0;
}

int safetensors_header_bytes(const unsigned char prefix[SAFETENSORS_PREFIX], uint64_t file_bytes, size_t *header_bytes,
                             struct el_err *e)
{
    uint64_t n = 0;
    assert(file_bytes >= SAFETENSORS_PREFIX);
    for (unsigned i = SAFETENSORS_PREFIX; i-- > 0;)
        n = n << 8 | prefix[i];
    if (n > SAFETENSORS_HEADER_MAX)
        return ckpt_fail(e, CKPT_DAMAGED, "bytes 0-7 announce a header of %llu bytes; at most %u are allowed",
                         (unsigned long long)n, SAFETENSORS_HEADER_MAX);
    if (n > file_bytes - SAFETENSORS_PREFIX)
        return ckpt_fail(e, CKPT_DAMAGED, "truncated: the header ends at byte %llu, the file at byte %llu",
                         (unsigned long long)n + SAFETENSORS_PREFIX, (unsigned long long)file_bytes);
    *header_bytes = (size_t)n;
    return 0;
}

void safetensors_free(struct safetensors *s)
{
    el_free(s->mem, s->tensors);
    el_free(s->mem, s->pairs);
    el_free(s->mem, s->texts);
    el_free(s->mem, s->shapes);
    *s = (struct safetensors){0};
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name)
{
    for (size_t i = 0; i < s->tensors_n; i++)
        if (strcmp(s->tensors[i].name, name) == 0)
            return &s->tensors[i];
    return NULL;
}

const char *safetensors_pair(const struct safetensors *s, const char *key)
{
    for (size_t i = 0; i < s->pairs_n; i++)
        if (strcmp(s->pairs[i].key, key) == 0)
            return s->pairs[i].value;
    return NULL;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* What the tree will take in a struct safetensors. */
struct room {
    size_t tensors, pairs, texts, dims;
};

struct safetensors_reader {
    struct safetensors *s;
    char *text;     /* where the next one goes */
    uint64_t *dims; /* the same for shapes */
    struct el_err *e;
};

static int safetensors_no_memory(struct el_err *e)
{
    return el_fail(e, EL_EXIT_OSERR, "out of memory");
}

static void count_pairs(json_t *o, struct room *room)
{
    const char *key;
    json_t *v;
    json_object_foreach(o, key, v)
    {
        room->pairs++;
        room->texts += strlen(key) + 1 + (json_is_string(v) ? json_string_length(v) : 0) + 1;
    }
}

static void safetensors_count(json_t *tree, struct room *room)
{
    const char *name;
    json_t *v;
    json_object_foreach(tree, name, v)
    {
        if (strcmp(name, METADATA) == 0) {
            count_pairs(v, room);
            continue;
        }
        room->tensors++;
        room->texts += strlen(name) + 1;
        room->dims += json_array_size(json_object_get(v, "shape"));
    }
}

static const char *safetensors_keep_text(struct safetensors_reader *r, const char *s, size_t n)
{
    char *to = r->text;
    memcpy(to, s, n);
    to[n] = 0;
    r->text += n + 1;
    return to;
}

static int safetensors_read_metadata(struct safetensors_reader *r, json_t *o)
{
    char shown[EL_SHOW_MAX];
    const char *key;
    json_t *v;
    if (!json_is_object(o))
        return ckpt_fail(r->e, CKPT_DAMAGED, METADATA " is no object");
    json_object_foreach(o, key, v)
    {
        if (!json_is_string(v))
            return ckpt_fail(r->e, CKPT_DAMAGED, METADATA ": the value of \"%s\" is no string", el_show(key, shown));
        struct safetensors_pair *p = &r->s->pairs[r->s->pairs_n++];
        p->key = safetensors_keep_text(r, key, strlen(key));
        p->value = safetensors_keep_text(r, json_string_value(v), json_string_length(v));
    }
    return 0;
}

static bool safetensors_number(const json_t *v, uint64_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return false;
    *out = (uint64_t)json_integer_value(v);
    return true;
}

static int read_shape(struct safetensors_reader *r, struct safetensors_tensor *t, const json_t *a, const char *shown)
{
    if (!json_is_array(a))
        return ckpt_fail(r->e, CKPT_DAMAGED, "tensor \"%s\" has no shape", shown);
    if (json_array_size(a) > SAFETENSORS_RANK_MAX)
        return ckpt_fail(r->e, CKPT_UNSUPPORTED, "tensor \"%s\" has %zu dimensions; at most %d are supported", shown,
                         json_array_size(a), SAFETENSORS_RANK_MAX);
    t->rank = (unsigned)json_array_size(a);
    t->shape = r->dims;
    for (unsigned i = 0; i < t->rank; i++)
        if (!safetensors_number(json_array_get(a, i), r->dims++))
            return ckpt_fail(r->e, CKPT_DAMAGED, "tensor \"%s\": dimension %u of its shape is no size", shown, i);
    return 0;
}

static int safetensors_read_tensor(struct safetensors_reader *r, const char *name, json_t *o)
{
    char shown[EL_SHOW_MAX], type[EL_SHOW_MAX];
    struct safetensors_tensor *t = &r->s->tensors[r->s->tensors_n++];
    const json_t *offsets = json_object_get(o, "data_offsets");
    const char *dtype = json_string_value(json_object_get(o, "dtype"));
    uint64_t want;
    el_show(name, shown);
    t->name = safetensors_keep_text(r, name, strlen(name));
    if (!json_is_object(o) || !dtype)
        return ckpt_fail(r->e, CKPT_DAMAGED, "tensor \"%s\" has no dtype", shown);
    t->dtype = safetensors_dtype_find(dtype);
    if (t->dtype == ST_DTYPES_COUNT)
        return ckpt_fail(r->e, CKPT_UNSUPPORTED, "tensor \"%s\" has the unknown dtype %s", shown, el_show(dtype, type));
    if (read_shape(r, t, json_object_get(o, "shape"), shown))
        return -1;
    if (json_array_size(offsets) != 2 || !safetensors_number(json_array_get(offsets, 0), &t->begin) ||
        !safetensors_number(json_array_get(offsets, 1), &t->end) || t->end < t->begin)
        return ckpt_fail(r->e, CKPT_DAMAGED, "tensor \"%s\": data_offsets are no range", shown);
    if (!safetensors_tensor_bytes(t->dtype, t->shape, t->rank, &want))
        return ckpt_fail(r->e, CKPT_DAMAGED, "tensor \"%s\": its shape is no whole number of bytes", shown);
    if (want != t->end - t->begin)
        return ckpt_fail(r->e, CKPT_DAMAGED,
                         "tensor \"%s\": bytes %llu-%llu are %llu bytes, its shape and dtype want %llu", shown,
                         (unsigned long long)(r->s->data_at + t->begin), (unsigned long long)(r->s->data_at + t->end),
                         (unsigned long long)(t->end - t->begin), (unsigned long long)want);
    return 0;
}

static int safetensors_by_place(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Each tensor begins where the one before ends, and the last one ends with the file. */
static int check_places(struct safetensors *s, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    uint64_t at = 0;
    el_sort(s->tensors, s->tensors_n, sizeof *s->tensors, safetensors_by_place);
    for (size_t i = 0; i < s->tensors_n; i++) {
        const struct safetensors_tensor *t = &s->tensors[i];
        unsigned long long from = s->data_at + t->begin, to = s->data_at + t->end, before = s->data_at + at;
        el_show(t->name, shown);
        if (t->begin > at)
            return ckpt_fail(e, CKPT_DAMAGED, "bytes %llu-%llu in front of tensor \"%s\" belong to no tensor", before,
                             from, shown);
        if (t->begin < at)
            return ckpt_fail(e, CKPT_DAMAGED, "tensor \"%s\": bytes %llu-%llu overlap those of another, up to %llu",
                             shown, from, to, before);
        if (t->end > s->data_bytes)
            return ckpt_fail(e, CKPT_DAMAGED, "truncated: tensor \"%s\" has bytes %llu-%llu, the file ends at %llu",
                             shown, from, to, (unsigned long long)(s->data_at + s->data_bytes));
        at = t->end;
    }
    if (at != s->data_bytes)
        return ckpt_fail(e, CKPT_DAMAGED, "bytes %llu-%llu behind the last tensor belong to none",
                         (unsigned long long)(s->data_at + at), (unsigned long long)(s->data_at + s->data_bytes));
    return 0;
}

static int safetensors_read_tree(struct safetensors *s, json_t *tree, struct el_err *e)
{
    struct room room = {0};
    const char *name;
    json_t *v;
    safetensors_count(tree, &room);
    if (room.tensors > SAFETENSORS_TENSORS_MAX)
        return ckpt_fail(e, CKPT_UNSUPPORTED, "%zu tensors in one file; at most %u are supported", room.tensors,
                         SAFETENSORS_TENSORS_MAX);
    s->tensors = el_alloc(s->mem, room.tensors * sizeof *s->tensors);
    s->pairs = el_alloc(s->mem, room.pairs * sizeof *s->pairs);
    s->texts = el_alloc(s->mem, room.texts);
    s->shapes = el_alloc(s->mem, room.dims * sizeof *s->shapes);
    if (!s->tensors || !s->pairs || !s->texts || !s->shapes)
        return safetensors_no_memory(e);
    struct safetensors_reader r = {.s = s, .text = s->texts, .dims = s->shapes, .e = e};
    json_object_foreach(tree, name, v)
    {
        if (strcmp(name, METADATA) == 0 ? safetensors_read_metadata(&r, v) : safetensors_read_tensor(&r, name, v))
            return -1;
    }
    assert(r.text <= s->texts + room.texts && r.dims <= s->shapes + room.dims);
    return check_places(s, e);
}

int safetensors_parse(struct safetensors *s, struct el_mem *mem, const char *json, size_t n, uint64_t file_bytes,
                      struct el_err *e)
{
    json_error_t why;
    assert(file_bytes >= SAFETENSORS_PREFIX + n);
    *s = (struct safetensors){
        .mem = mem, .data_at = SAFETENSORS_PREFIX + n, .data_bytes = file_bytes - SAFETENSORS_PREFIX - n};
    if (!n)
        return ckpt_fail(e, CKPT_DAMAGED, "bytes 0-7 are zeros: there is no header");
    if (json[0] != '{')
        return ckpt_fail(e, CKPT_DAMAGED, "byte 8, where the header begins, is no '{': this is no safetensors file");
    if (!json_limit_holds(json, n, VALUES_MAX, DEPTH_MAX))
        return ckpt_fail(e, CKPT_UNSUPPORTED, "the header has more values than %d, or is nested deeper than %d",
                         (int)VALUES_MAX, (int)DEPTH_MAX);
    json_t *tree = json_loadb(json, n, JSON_REJECT_DUPLICATES, &why);
    enum json_error_code code = tree ? json_error_unknown : json_error_code(&why);
    if (code == json_error_null_character || code == json_error_null_byte_in_key) /* the format allows it */
        return ckpt_fail(e, CKPT_UNSUPPORTED, "the header has a name or a text with a zero byte: byte %d",
                         SAFETENSORS_PREFIX + why.position);
    if (!tree) {
        char shown[EL_SHOW_MAX];
        return ckpt_fail(e, CKPT_DAMAGED, "the header is no JSON object: byte %d: %s",
                         SAFETENSORS_PREFIX + why.position, el_show(why.text, shown));
    }
    int r = safetensors_read_tree(s, tree, e);
    json_decref(tree);
    if (r)
        safetensors_free(s);
    return r;
}

int safetensors_read(struct safetensors *s, struct el_mem *mem, const struct ckpt_bytes *file, struct el_err *e)
{
    unsigned char prefix[SAFETENSORS_PREFIX];
    size_t n = 0;
    *s = (struct safetensors){0};
    if (file->bytes < SAFETENSORS_PREFIX)
        return ckpt_fail(e, CKPT_DAMAGED, "%llu bytes are too few for a safetensors file",
                         (unsigned long long)file->bytes);
    if (file->read(file->ctx, 0, prefix, sizeof prefix, e) || safetensors_header_bytes(prefix, file->bytes, &n, e))
        return -1;
    char *json = el_alloc(mem, n);
    int r = json ? file->read(file->ctx, SAFETENSORS_PREFIX, json, n, e) : safetensors_no_memory(e);
    if (!r)
        r = safetensors_parse(s, mem, json, n, file->bytes, e);
    el_free(mem, json);
    return r;
}

int safetensors_read_memory(struct safetensors *s, struct el_mem *mem, const char *file, uint64_t header_bytes,
                            uint64_t file_bytes, struct el_err *e)
{
    unsigned char prefix[SAFETENSORS_PREFIX];
    size_t n;
    *s = (struct safetensors){0};
    memcpy(prefix, file, sizeof prefix);
    if (safetensors_header_bytes(prefix, file_bytes, &n, e) < 0)
        return -1;
    if (n + SAFETENSORS_PREFIX != header_bytes)
        return el_fail(e, EL_EXIT_PROTOCOL, "its header has %zu bytes, %llu were announced", n + SAFETENSORS_PREFIX,
                       (unsigned long long)header_bytes);
    char *json = el_alloc(mem, n);
    int r = json ? safetensors_parse(s, mem, memcpy(json, file + SAFETENSORS_PREFIX, n), n, file_bytes, e)
                 : safetensors_no_memory(e);
    el_free(mem, json);
    return r;
}
