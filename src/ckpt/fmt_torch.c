/* The tensors of a torch.save archive and of torch's distributed checkpoints, from their pickles. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/fmt.h"
#include "ckpt/sniff.h"
#include "util/buf.h"
#include "util/parse.h"
#include "util/sort.h"

enum { RANK_MAX = 64, PICKLE_MAX = 512 << 20, KEY_MAX = 512, NAMES_MAX = 64 << 20, PATHS_MAX = 1 << 30 };

/* What may be looked at: each node is met once by the scripts of people, and what they share, a parameter that is tied
 * for example, a few times.  A pickle of a hundred bytes can ask for more than a life is long. */
enum { VISITS_FREE = 1 << 20, VISITS_A_NODE = 4 };

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

struct fmt_torch_walk {
    struct tensors *to;
    const char *file;
    uint64_t base;
    const struct ckpt_bytes *bytes;
    const struct zip *z;
    const char *archive; /* the name that torch puts in front of those of all members */
    int archive_n;
    const struct old_storage *old; /* without an archive: sorted by key */
    size_t old_n;
    struct el_buf path;
    size_t names; /* bytes of all names up to now */
    size_t paths; /* and of all paths, also to what is no tensor */
    size_t left;  /* nodes that may still be looked at: shared nodes are met more than once */
    struct el_err *e;
};

/* A storage of the old format. */
struct old_storage {
    const struct pickle_node *key;
    const char *dtype;
    uint64_t elements, at, bytes;
    bool there;
};

/* Where the bytes of a storage are. */
struct fmt_torch_place {
    uint64_t at, bytes;
    bool plain; /* as they are, not compressed */
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

static const struct zip_member *storage_member(const struct fmt_torch_walk *w, const struct pickle_node *key)
{
    char name[KEY_MAX];
    if ((size_t)w->archive_n + key->text_n > KEY_MAX - 10)
        return NULL;
    snprintf(name, sizeof name, "%.*s/data/%.*s", w->archive_n, w->archive, (int)key->text_n, key->text);
    return zip_find(w->z, name);
}

static int compare_keys(const struct pickle_node *a, const struct pickle_node *b)
{
    size_t n = a->text_n < b->text_n ? a->text_n : b->text_n;
    int c = n ? memcmp(a->text, b->text, n) : 0;
    return c ? c : a->text_n < b->text_n ? -1 : a->text_n > b->text_n;
}

static int fmt_torch_with_key(const void *item, const void *key)
{
    return compare_keys(((const struct old_storage *)item)->key, key);
}

static struct old_storage *old_find(const struct old_storage *v, size_t n, const struct pickle_node *key)
{
    size_t i = el_first(v, n, sizeof *v, key, fmt_torch_with_key);
    return i < n && compare_keys(v[i].key, key) == 0 ? (struct old_storage *)(uintptr_t)&v[i] : NULL;
}

/* 0; 1: it is nowhere; -1 and the error. */
static int find_storage(struct fmt_torch_walk *w, const struct pickle_node *key, struct fmt_torch_place *to)
{
    if (!key || key->kind != PICKLE_TEXT || key->text_n > KEY_MAX)
        return 1;
    if (!w->z) {
        const struct old_storage *s = old_find(w->old, w->old_n, key);
        if (s)
            *to = (struct fmt_torch_place){s->at, s->bytes, true};
        return !s || !s->there;
    }
    const struct zip_member *m = storage_member(w, key);
    if (!m)
        return 1;
    *to = (struct fmt_torch_place){0, m->bytes, m->method == 0};
    return zip_place(w->z, w->bytes, m, &to->at, w->e);
}

/* _rebuild_tensor_v2(storage, offset, size, stride, …) and _v3, which has the type as its seventh.  Not a part of
 * visit(): that calls itself as deep as PICKLE_DEPTH_MAX, on the 256 KiB of a thread of the pool. */
__attribute__((noinline)) static int take_tensor(struct fmt_torch_walk *w, const struct pickle_node *args)
{
    uint64_t size[RANK_MAX], stride[RANK_MAX];
    struct fmt_torch_place m = {0};
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
    int missing = find_storage(w, pickle_item(storage, 2), &m);
    if (missing)
        return missing < 0 ? -1
                           : ckpt_fail(w->e, CKPT_INCOMPLETE, "the storage of tensor \"%s\" is not in the %s", shown,
                                       w->z ? "archive" : "file");
    uint64_t n, begin;
    unsigned bits = strcmp(dtype, "C128") == 0 ? 128 : safetensors_dtype_bits(safetensors_dtype_find(dtype));
    bool plain = row_major(size, stride, (unsigned)rank) && m.plain;
    if (!bytes_of(size, (unsigned)rank, bits, &n) ||
        __builtin_mul_overflow((uint64_t)offset->number, bits / 8, &begin) ||
        (plain && (begin > m.bytes || n > m.bytes - begin)))
        return ckpt_fail(w->e, CKPT_DAMAGED, "tensor \"%s\" is larger than its storage of %llu bytes", shown,
                         (unsigned long long)m.bytes);
    struct tensor t = {.name = name,
                       .dtype = dtype,
                       .file = w->file,
                       .rank = (unsigned)rank,
                       .size = size,
                       .place = plain ? TENSOR_RAW : TENSOR_ODD,
                       .at = w->base + m.at + begin,
                       .bytes = n};
    return tensors_add(w->to, &t, w->e);
}

static int visit(struct fmt_torch_walk *w, const struct pickle_node *x, unsigned depth);

static int visit_member(struct fmt_torch_walk *w, const struct pickle_node *key, size_t i, const struct pickle_node *x,
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
    int r = 0;
    w->paths += w->path.len - before;
    if (w->path.full)
        r = ckpt_fail(w->e, CKPT_UNSUPPORTED, "a name in the pickle is too long");
    else if (w->paths > PATHS_MAX)
        r = ckpt_fail(w->e, CKPT_UNSUPPORTED, "the names in the pickle are more than %d MiB", PATHS_MAX >> 20);
    else
        r = visit(w, x, depth + 1);
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
static int visit_typed(struct fmt_torch_walk *w, const struct pickle_node *args, unsigned depth)
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

static int visit(struct fmt_torch_walk *w, const struct pickle_node *x, unsigned depth)
{
    if (depth > PICKLE_DEPTH_MAX)
        return ckpt_fail(w->e, CKPT_UNSUPPORTED, "the pickle is nested deeper than %d, or contains itself",
                         PICKLE_DEPTH_MAX);
    if (!w->left--)
        return ckpt_fail(w->e, CKPT_UNSUPPORTED, "the pickle has the same values in too many places to look at all");
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

/* --- counts ------------------------------------------------------------------------------------------------------- */

static uint64_t fmt_torch_whole(const struct pickle_node *x)
{
    /* An enumeration is called with its value. */
    if (x && x->kind == PICKLE_CALL)
        x = pickle_item(x->args, 0);
    return x && x->kind == PICKLE_INT && x->number > 0 ? (uint64_t)x->number : 0;
}

/* A number, or the largest of a list of them: experts are divided among fewer ranks than the rest. */
static uint64_t largest(const struct pickle_node *x)
{
    uint64_t most = fmt_torch_whole(x), one;
    for (size_t i = 0; pickle_item(x, i); i++) {
        one = fmt_torch_whole(pickle_item(x, i));
        most = one > most ? one : most;
    }
    return most;
}

static bool is_true(const struct pickle_node *x)
{
    return x && x->kind == PICKLE_BOOL && x->number;
}

/* As scripts call it. */
static uint64_t world(const struct pickle_node *root)
{
    static const char *const names[] = {"world_size", "world", "num_ranks", "nranks", "n_ranks", "num_processes"};
    uint64_t n = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !n; i++)
        n = fmt_torch_whole(pickle_get(root, names[i]));
    return n;
}

static void read_counts(struct fmt_counts *to, const struct pickle_node *root)
{
    const struct pickle_node *optimizer = pickle_get(root, "optimizer_state_dict"), *args = pickle_get(root, "args");
    *to = (struct fmt_counts){
        .data_ranks = fmt_torch_whole(pickle_get(root, "dp_world_size")),
        .model_ranks = fmt_torch_whole(pickle_get(root, "mp_world_size")),
        .partitions = largest(pickle_get(optimizer, "partition_count")),
        .zero_stage =
            fmt_torch_whole(pickle_get(pickle_get(pickle_get(root, "ds_config"), "zero_optimization"), "stage")),
        .tensor = fmt_torch_whole(pickle_get(args, "tensor_model_parallel_size")),
        .pipeline = fmt_torch_whole(pickle_get(args, "pipeline_model_parallel_size")),
        .expert = fmt_torch_whole(pickle_get(args, "expert_model_parallel_size")),
        .apart = is_true(pickle_get(args, "use_distributed_optimizer")) && !is_true(pickle_get(args, "no_save_optim")),
        .processes = fmt_torch_whole(pickle_get(pickle_get(root, "distributed_state"), "num_processes")),
        .world = world(root),
        .rank = pickle_get(root, "rank") != NULL};
    if (!to->zero_stage)
        to->zero_stage = fmt_torch_whole(pickle_get(optimizer, "zero_stage"));
}

/* --- a file ------------------------------------------------------------------------------------------------------- */

static int walk_all(struct fmt_torch_walk *w, const struct pickle *p, struct fmt_counts *counts)
{
    if (counts)
        read_counts(counts, p->root);
    w->path = EL_BUF_INIT(w->to->mem, 64 << 10);
    w->left = VISITS_FREE + VISITS_A_NODE * p->nodes;
    int r = visit(w, p->root, 0);
    el_buf_free(&w->path);
    return r;
}

int fmt_torch_tensors(struct tensors *to, const char *file, uint64_t base, const struct ckpt_bytes *bytes,
                      const struct zip *z, struct fmt_counts *counts, struct el_err *e)
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
    struct fmt_torch_walk w = {.to = to,
                               .file = file,
                               .base = base,
                               .bytes = bytes,
                               .z = z,
                               .archive = m->name,
                               .archive_n = (int)(strlen(m->name) - strlen("/data.pkl")),
                               .e = e};
    if (!r)
        r = walk_all(&w, &p, counts);
    pickle_free(&p);
    el_free(to->mem, text);
    return r;
}

/* --- the old format ------------------------------------------------------------------------------------------------
 */

enum { OLD_WINDOW = 1 << 20, OLD_PICKLES = 5 }; /* magic number, version, kind of machine; the object; its keys */

/* The five pickles at the beginning.  1: the window ends in them. */
static int read_old_pickles(struct pickle *object, struct pickle *keys, struct el_mem *mem, const char *text, size_t n,
                            uint64_t *end, struct el_err *e)
{
    size_t at = 0;
    int r = 0;
    bool cut = false;
    for (int i = 0; !r && i < OLD_PICKLES; i++) {
        struct pickle p = {0}, *one = i == OLD_PICKLES - 2 ? object : i == OLD_PICKLES - 1 ? keys : &p;
        r = pickle_read(one, mem, text + at, n - at, e);
        cut = one->cut;
        at += one->used;
        if (one == &p)
            pickle_free(one);
    }
    *end = at;
    return r && cut ? 1 : r;
}

static int fmt_torch_by_key(const void *a, const void *b)
{
    return compare_keys(((const struct old_storage *)a)->key, ((const struct old_storage *)b)->key);
}

/* What the tree says of its storages: ("storage", type, key, location, elements, view). */
static size_t list_old(const struct pickle *object, struct old_storage *v)
{
    size_t n = 0, once = 0;
    for (size_t i = 0; i < object->persistent_n; i++) {
        const struct pickle_node *id = object->persistent[i]->args, *key = pickle_item(id, 2),
                                 *elements = pickle_item(id, 4);
        const char *dtype = storage_dtype(pickle_item(id, 1));
        if (key && key->kind == PICKLE_TEXT && key->text_n <= KEY_MAX && elements && elements->kind == PICKLE_INT &&
            elements->number >= 0 && dtype)
            v[n++] = (struct old_storage){.key = key, .dtype = dtype, .elements = (uint64_t)elements->number};
    }
    el_sort(v, n, sizeof *v, fmt_torch_by_key);
    for (size_t i = 0; i < n; i++)
        if (!i || compare_keys(v[i].key, v[once - 1].key) != 0)
            v[once++] = v[i];
    return once;
}

/* A second object may be saved into the same file, and begins as the first does, or is an archive. */
static int check_behind(uint64_t at, const struct ckpt_bytes *bytes, struct el_err *e)
{
    char b[SNIFF_PAGE];
    if (at >= bytes->bytes)
        return 0;
    size_t n = bytes->bytes - at < sizeof b ? (size_t)(bytes->bytes - at) : sizeof b;
    if (bytes->read(bytes->ctx, at, b, n, e))
        return -1;
    return b[0] == '\x80' || sniff_padding(b, n)
               ? 0
               : ckpt_fail(e, CKPT_DAMAGED, "bytes %llu-%llu behind the last storage belong to none",
                           (unsigned long long)at, (unsigned long long)bytes->bytes);
}

/* Storages stand in the order of the list of keys, each behind its number of elements. */
static int place_old(const struct pickle *keys, struct old_storage *v, size_t n, uint64_t at,
                     const struct ckpt_bytes *bytes, struct el_err *e)
{
    const struct pickle_node *key;
    for (size_t i = 0; (key = pickle_item(keys->root, i)); i++) {
        char number[8];
        uint64_t elements = 0, size;
        struct old_storage *s = key->kind == PICKLE_TEXT ? old_find(v, n, key) : NULL;
        if (!s)
            return ckpt_fail(e, CKPT_UNSUPPORTED, "storage %zu is of an unknown type", i);
        unsigned bits = strcmp(s->dtype, "C128") == 0 ? 128 : safetensors_dtype_bits(safetensors_dtype_find(s->dtype));
        if (at > bytes->bytes || bytes->bytes - at < sizeof number ||
            __builtin_mul_overflow(s->elements, (uint64_t)bits / 8, &size) || size > bytes->bytes - at - sizeof number)
            return ckpt_fail(e, CKPT_DAMAGED,
                             "truncated: storage %zu of %zu begins at byte %llu, the file ends at %llu", i,
                             keys->root->items_n, (unsigned long long)at, (unsigned long long)bytes->bytes);
        if (bytes->read(bytes->ctx, at, number, sizeof number, e))
            return -1;
        for (unsigned k = sizeof number; k-- > 0;)
            elements = elements << 8 | (unsigned char)number[k];
        if (elements != s->elements)
            return ckpt_fail(e, CKPT_DAMAGED, "storage %zu at byte %llu has %llu elements, its tensor says %llu", i,
                             (unsigned long long)at, (unsigned long long)elements, (unsigned long long)s->elements);
        s->at = at + sizeof number;
        s->bytes = size;
        s->there = true;
        at = s->at + size;
    }
    return check_behind(at, bytes, e);
}

static int take_old(struct fmt_torch_walk *w, const struct pickle *object, const struct pickle *keys, uint64_t at,
                    struct fmt_counts *counts)
{
    struct old_storage *v = el_alloc(w->to->mem, object->persistent_n * sizeof *v);
    int r = v ? 0 : el_fail(w->e, EL_EXIT_OSERR, "out of memory");
    w->old = v;
    w->old_n = v ? list_old(object, v) : 0;
    if (!r)
        r = place_old(keys, v, w->old_n, at, w->bytes, w->e);
    if (!r)
        r = walk_all(w, object, counts);
    el_free(w->to->mem, v);
    return r;
}

int fmt_old_tensors(struct tensors *to, const char *file, const struct ckpt_bytes *bytes, struct fmt_counts *counts,
                    struct el_err *e)
{
    struct fmt_torch_walk w = {.to = to, .file = file, .bytes = bytes, .e = e};
    int r = 1;
    for (size_t window = OLD_WINDOW; r == 1; window *= 8) {
        size_t n = window < bytes->bytes ? window : (size_t)bytes->bytes;
        struct pickle object = {0}, keys = {0};
        uint64_t end = 0;
        char *text = el_alloc(to->mem, n);
        *e = (struct el_err){0};
        r = text ? bytes->read(bytes->ctx, 0, text, n, e) : el_fail(e, EL_EXIT_OSERR, "out of memory");
        if (!r)
            r = read_old_pickles(&object, &keys, to->mem, text, n, &end, e);
        if (r == 1) /* perhaps of the window alone */
            *e = (struct el_err){0};
        if (r == 1 && n == bytes->bytes)
            r = ckpt_fail(e, CKPT_DAMAGED, "truncated: the file ends at byte %llu, within its pickles",
                          (unsigned long long)bytes->bytes);
        else if (r == 1 && n > PICKLE_MAX)
            r = ckpt_fail(e, CKPT_UNSUPPORTED, "its pickles are larger than %d bytes", PICKLE_MAX);
        if (!r)
            r = take_old(&w, &object, &keys, end, counts);
        pickle_free(&keys);
        pickle_free(&object);
        el_free(to->mem, text);
    }
    return r;
}
