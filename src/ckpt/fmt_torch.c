/* The tensors of a torch.save archive and of torch's distributed checkpoints, from their pickles. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/fmt.h"
#include "util/buf.h"
#include "util/parse.h"

enum { RANK_MAX = 64, PICKLE_MAX = 512 << 20, KEY_MAX = 512, NAMES_MAX = 64 << 20 };

static const struct {
    const char *torch, *storage, *dtype;
} types[] = {
    {"torch float32", "torch FloatStorage", "F32"},
    {"torch float64", "torch DoubleStorage", "F64"},
    {"torch float16", "torch HalfStorage", "F16"},
    {"torch bfloat16", "torch BFloat16Storage", "BF16"},
    {"torch int64", "torch LongStorage", "I64"},
    {"torch int32", "torch IntStorage", "I32"},
    {"torch int16", "torch ShortStorage", "I16"},
    {"torch int8", "torch CharStorage", "I8"},
    {"torch uint8", "torch ByteStorage", "U8"},
    {"torch bool", "torch BoolStorage", "BOOL"},
    {"torch complex64", "torch ComplexFloatStorage", "C64"},
    {"torch uint16", "", "U16"},
    {"torch uint32", "", "U32"},
    {"torch uint64", "", "U64"},
    {"torch float8_e4m3fn", "", "F8_E4M3"},
    {"torch float8_e5m2", "", "F8_E5M2"},
    {"torch float8_e8m0fnu", "", "F8_E8M0"},
    {"torch float8_e4m3fnuz", "", "F8_E4M3FNUZ"},
    {"torch float8_e5m2fnuz", "", "F8_E5M2FNUZ"},
    {"torch complex128", "torch ComplexDoubleStorage", "C128"}, /* safetensors has none */
};

const char *fmt_torch_dtype(const struct pickle_node *x)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (pickle_is_global(x, types[i].torch))
            return types[i].dtype;
    return NULL;
}

static const char *storage_dtype(const struct pickle_node *x)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (pickle_is_global(x, types[i].storage))
            return types[i].dtype;
    return NULL;
}

struct walk {
    struct tensors *to;
    const char *file;
    uint64_t base;
    const struct ckpt_bytes *bytes;
    const struct zip *z;
    const char *archive; /* the name that torch puts in front of those of all members */
    int archive_n;
    struct el_buf path;
    size_t names; /* bytes of all names up to now */
    size_t left;  /* nodes that may still be looked at: shared nodes are met more than once */
    struct el_err *e;
};

/* Row-major, without holes; sizes of 0 and 1 do not matter. */
static bool row_major(const uint64_t *size, const uint64_t *stride, unsigned rank)
{
    uint64_t want = 1;
    for (unsigned i = rank; i-- > 0;) {
        if (size[i] != 1 && stride[i] != want)
            return false;
        if (__builtin_mul_overflow(want, size[i] ? size[i] : 1, &want))
            return false;
    }
    return true;
}

static bool bytes_of(const uint64_t *size, unsigned rank, unsigned bits, uint64_t *bytes)
{
    uint64_t n = bits;
    for (unsigned i = 0; i < rank; i++)
        if (__builtin_mul_overflow(n, size[i], &n))
            return false;
    *bytes = n / 8;
    return true;
}

static const struct zip_member *storage_member(const struct walk *w, const struct pickle_node *key)
{
    char name[KEY_MAX];
    if (!key || key->kind != PICKLE_TEXT || (size_t)w->archive_n + key->text_n > KEY_MAX - 10)
        return NULL;
    snprintf(name, sizeof name, "%.*s/data/%.*s", w->archive_n, w->archive, (int)key->text_n, key->text);
    return zip_find(w->z, name);
}

/* _rebuild_tensor_v2(storage, offset, size, stride, …) and _v3, which has the type as its seventh.  Not a part of
 * visit(): that calls itself as deep as PICKLE_DEPTH_MAX, on the 256 KiB of a thread of the pool. */
__attribute__((noinline)) static int take_tensor(struct walk *w, const struct pickle_node *args)
{
    uint64_t size[RANK_MAX], stride[RANK_MAX], at = 0;
    const struct pickle_node *id = pickle_item(args, 0), *offset = pickle_item(args, 1);
    const struct pickle_node *storage = id && id->kind == PICKLE_PERSISTENT ? id->args : NULL;
    int rank = pickle_sizes(pickle_item(args, 2), size, RANK_MAX);
    const char *dtype = fmt_torch_dtype(pickle_item(args, 6));
    if (!dtype)
        dtype = storage_dtype(pickle_item(storage, 1));
    const char *name = el_buf_cstr(&w->path);
    w->names += strlen(name);
    if (w->names > NAMES_MAX) /* a few bytes of the pickle can say "the same once more, under a long name" */
        return ckpt_fail(w->e, CKPT_UNSUPPORTED, "the names of its tensors are more than %d MiB", NAMES_MAX >> 20);
    char shown[EL_SHOW_MAX];
    el_show(name, shown);
    if (rank < 0 || pickle_sizes(pickle_item(args, 3), stride, RANK_MAX) != rank || !offset ||
        offset->kind != PICKLE_INT || offset->number < 0)
        return ckpt_fail(w->e, CKPT_DAMAGED, "tensor \"%s\" has no shape", shown);
    if (!dtype)
        return ckpt_fail(w->e, CKPT_UNSUPPORTED, "tensor \"%s\" is of an unknown type", shown);
    const struct zip_member *m = storage_member(w, pickle_item(storage, 2));
    if (!m)
        return ckpt_fail(w->e, CKPT_INCOMPLETE, "the storage of tensor \"%s\" is not in the archive", shown);
    uint64_t n, begin;
    unsigned bits = strcmp(dtype, "C128") == 0 ? 128 : st_dtype_bits(st_dtype_find(dtype));
    bool plain = row_major(size, stride, (unsigned)rank) && m->method == 0;
    if (zip_place(w->z, w->bytes, m, &at, w->e))
        return -1;
    if (!bytes_of(size, (unsigned)rank, bits, &n) ||
        __builtin_mul_overflow((uint64_t)offset->number, bits / 8, &begin) ||
        (plain && (begin > m->bytes || n > m->bytes - begin)))
        return ckpt_fail(w->e, CKPT_DAMAGED, "tensor \"%s\" is larger than its storage of %llu bytes", shown,
                         (unsigned long long)m->bytes);
    struct tensor t = {.name = name,
                       .dtype = dtype,
                       .file = w->file,
                       .rank = (unsigned)rank,
                       .size = size,
                       .place = plain ? TENSOR_RAW : TENSOR_ODD,
                       .at = w->base + at + begin,
                       .bytes = n};
    return tensors_add(w->to, &t, w->e);
}

static int visit(struct walk *w, const struct pickle_node *x, unsigned depth);

static int visit_member(struct walk *w, const struct pickle_node *key, size_t i, const struct pickle_node *x,
                        unsigned depth)
{
    size_t before = w->path.len;
    const char *dot = before ? "." : "";
    if (key && key->kind == PICKLE_TEXT)
        el_buf_printf(&w->path, "%s%.*s", dot, (int)key->text_n, key->text);
    else if (key && key->kind == PICKLE_INT)
        el_buf_printf(&w->path, "%s%lld", dot, (long long)key->number);
    else
        el_buf_printf(&w->path, "%s%zu", dot, i);
    int r =
        w->path.full ? ckpt_fail(w->e, CKPT_UNSUPPORTED, "a name in the pickle is too long") : visit(w, x, depth + 1);
    w->path.len = before;
    return r;
}

static bool rebuilds_tensor(const struct pickle_node *fn)
{
    return pickle_is_global(fn, "torch._utils _rebuild_tensor_v2") ||
           pickle_is_global(fn, "torch._utils _rebuild_tensor_v3");
}

/* _rebuild_from_type_v2(function, type, its arguments, state): a tensor with attributes, or one of a type that wraps
 * another, such as DTensor: then the piece of this rank is what is listed. */
static int visit_typed(struct walk *w, const struct pickle_node *args, unsigned depth)
{
    const struct pickle_node *fn = pickle_item(args, 0), *inner = pickle_item(args, 2), *state = pickle_item(args, 3);
    const struct pickle_node *local = pickle_get(state, "_local_tensor");
    for (size_t i = 0; !local && i < 2; i++)
        local = pickle_get(pickle_item(state, i), "_local_tensor");
    if (rebuilds_tensor(fn))
        return take_tensor(w, inner);
    if (pickle_is_global(fn, "torch._utils _rebuild_parameter"))
        local = pickle_item(inner, 0);
    return local ? visit(w, local, depth + 1) : 0;
}

static int visit(struct walk *w, const struct pickle_node *x, unsigned depth)
{
    if (depth > PICKLE_DEPTH_MAX || !w->left--)
        return ckpt_fail(w->e, CKPT_UNSUPPORTED, "the pickle is nested deeper than %d, or contains itself",
                         PICKLE_DEPTH_MAX);
    if (x->kind == PICKLE_CALL && rebuilds_tensor(x->fn))
        return take_tensor(w, x->args);
    if (x->kind == PICKLE_CALL && pickle_is_global(x->fn, "torch._tensor _rebuild_from_type_v2"))
        return visit_typed(w, x->args, depth);
    if (x->kind == PICKLE_CALL && pickle_is_global(x->fn, "torch._utils _rebuild_parameter") && pickle_item(x->args, 0))
        return visit(w, pickle_item(x->args, 0), depth + 1);
    bool pairs = x->kind == PICKLE_DICT || (x->kind == PICKLE_CALL && x->pairs);
    bool list = x->kind == PICKLE_LIST || x->kind == PICKLE_TUPLE || x->kind == PICKLE_CALL;
    int r = 0;
    for (size_t i = 0; !r && pairs && i + 1 < x->items_n; i += 2)
        r = visit_member(w, x->items[i], i / 2, x->items[i + 1], depth);
    for (size_t i = 0; !r && !pairs && list && i < x->items_n; i++)
        r = visit_member(w, NULL, i, x->items[i], depth);
    /* An object's members; what OrderedDict keeps beside its items is none of ours. */
    if (!r && x->kind == PICKLE_CALL && !x->items_n && x->state)
        r = visit(w, x->state, depth + 1);
    return r;
}

int fmt_torch_tensors(struct tensors *to, const char *file, uint64_t base, const struct ckpt_bytes *bytes,
                      const struct zip *z, struct el_err *e)
{
    const struct zip_member *m = zip_find_end(z, "/data.pkl");
    struct pickle p = {0};
    uint64_t at;
    if (!m)
        return ckpt_fail(e, CKPT_UNSUPPORTED, "a zip archive, but not of torch.save: it has no data.pkl");
    if (m->method != 0 || m->bytes > PICKLE_MAX)
        return ckpt_fail(e, CKPT_UNSUPPORTED, "data.pkl is compressed, or larger than %d bytes", PICKLE_MAX);
    if (zip_place(z, bytes, m, &at, e))
        return -1;
    char *text = el_alloc(to->mem, (size_t)m->bytes);
    int r = text ? bytes->read(bytes->ctx, at, text, (size_t)m->bytes, e) : el_fail(e, EL_EXIT_OSERR, "out of memory");
    if (!r && pickle_read(&p, to->mem, text, (size_t)m->bytes, e))
        r = el_prefix(e, "data.pkl");
    struct walk w = {.to = to,
                     .file = file,
                     .base = base,
                     .bytes = bytes,
                     .z = z,
                     .archive = m->name,
                     .archive_n = (int)(strlen(m->name) - strlen("/data.pkl")),
                     .e = e,
                     .path = EL_BUF_INIT(to->mem, 64 << 10),
                     .left = 2 * PICKLE_NODES_MAX};
    if (!r)
        r = visit(&w, p.root, 0);
    el_buf_free(&w.path);
    pickle_free(&p);
    el_free(to->mem, text);
    return r;
}
