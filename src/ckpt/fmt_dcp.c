/* .metadata of torch.distributed.checkpoint: which piece of which tensor lies where. */
#include <assert.h>
#include <string.h>

#include "ckpt/fmt.h"
#include "util/buf.h"
#include "util/parse.h"
#include "util/sort.h"

/* A few bytes can name one long text, or one place of many dimensions, a million times: what is sorted has bounds. */
enum { RANK_MAX = 64, NAME_MAX = 64 << 10 };
#define WORK_MAX ((uint64_t)4 << 30)

/* One entry of storage_data. */
struct stored {
    const struct pickle_node *fqn, *offset; /* offset: NULL for what is no piece of a tensor */
    const struct pickle_node *path;
    uint64_t at, bytes;
    bool told;
};

struct fmt_dcp_dcp {
    struct stored *v;
    size_t n;
    struct el_buf name, file; /* ended by 0 */
    uint64_t work;            /* bytes of names and places that were looked at */
    size_t pieces;
    int (*each)(void *arg, const struct fmt_dcp_item *item);
    void *arg;
    struct el_err *e;
};

static int compare_text(const struct pickle_node *a, const struct pickle_node *b)
{
    size_t n = a->text_n < b->text_n ? a->text_n : b->text_n;
    int c = n ? memcmp(a->text, b->text, n) : 0;
    return c ? c : a->text_n < b->text_n ? -1 : a->text_n > b->text_n;
}

/* rank: -1 for what is no piece of a tensor; then at is not looked at. */
struct fmt_dcp_place {
    int rank;
    uint64_t at[RANK_MAX];
};

static int fmt_dcp_compare_places(const struct fmt_dcp_place *x, const struct fmt_dcp_place *y)
{
    int c = x->rank < y->rank ? -1 : x->rank > y->rank;
    for (int i = 0; !c && i < x->rank; i++)
        c = x->at[i] < y->at[i] ? -1 : x->at[i] > y->at[i];
    return c;
}

static void read_place(const struct stored *s, struct fmt_dcp_place *to)
{
    to->rank = pickle_sizes(s->offset, to->at, RANK_MAX);
}

static int by_fqn_and_place(const void *a, const void *b)
{
    const struct stored *x = a, *y = b;
    struct fmt_dcp_place p, q;
    int c = compare_text(x->fqn, y->fqn);
    if (!c) {
        read_place(x, &p);
        read_place(y, &q);
        c = fmt_dcp_compare_places(&p, &q);
    }
    return c ? c : x->at < y->at ? -1 : x->at > y->at;
}

static int fmt_dcp_bad(struct fmt_dcp_dcp *d, const char *what)
{
    return ckpt_fail(d->e, CKPT_DAMAGED, ".metadata: %s", what);
}

/* Of what is looked at for one entry, or one piece. */
static int spend(struct fmt_dcp_dcp *d, const struct pickle_node *fqn, const struct pickle_node *place)
{
    const struct pickle_node *list = place && place->kind == PICKLE_CALL ? pickle_item(place->args, 0) : place;
    d->work += 64 + fqn->text_n + 8 * (list && list->items_n < RANK_MAX ? list->items_n : 0);
    if (fqn->text_n > NAME_MAX)
        return ckpt_fail(d->e, CKPT_UNSUPPORTED, ".metadata: a name of %zu bytes", fqn->text_n);
    return d->work > WORK_MAX ? ckpt_fail(d->e, CKPT_UNSUPPORTED,
                                          ".metadata: its names and places are more than %d GiB", (int)(WORK_MAX >> 30))
                              : 0;
}

static bool fmt_dcp_is_none(const struct pickle_node *x)
{
    return !x || x->kind == PICKLE_NONE;
}

/* An object of a class of torch's is of this one; of a stranger's it is what it has. */
static bool fmt_dcp_is_other(const struct pickle_node *x, const char *class)
{
    return !x || x->kind != PICKLE_CALL || x->fn->kind != PICKLE_GLOBAL ||
           (fmt_dcp_is_torch(x->fn->text) && strcmp(x->fn->text, class) != 0);
}

/* (dtype, layout, …): the layout is pickled with its name. */
static int check_layout(struct fmt_dcp_dcp *d, const struct pickle_node *state)
{
    static const char *const layouts[] = {"torch.strided",    "torch.sparse_coo", "torch.sparse_csr",
                                          "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_bsc",
                                          "torch.jagged",     "torch._mkldnn"};
    const struct pickle_node *x = pickle_item(state, 1),
                             *name = x && x->kind == PICKLE_CALL ? pickle_item(x->args, 0) : 0;
    for (size_t i = 0; x && i < sizeof layouts / sizeof layouts[0]; i++)
        if (pickle_is_text(name, layouts[i]))
            return 0;
    return x ? fmt_dcp_bad(d, "the layout of a tensor is none") : 0;
}

static int read_stored(struct fmt_dcp_dcp *d, const struct pickle_node *key, const struct pickle_node *info,
                       struct stored *s)
{
    const struct pickle_node *at = pickle_get(info, "offset"), *length = pickle_get(info, "length");
    *s = (struct stored){.fqn = pickle_get(key, "fqn"), .path = pickle_get(info, "relative_path")};
    const struct pickle_node *offset = pickle_get(key, "offset");
    s->offset = fmt_dcp_is_none(offset) ? NULL : offset;
    if (fmt_dcp_is_other(key, FMT_DCP_MODULE " MetadataIndex") ||
        fmt_dcp_is_other(info, "torch.distributed.checkpoint.filesystem _StorageInfo"))
        return fmt_dcp_bad(d, "an entry of storage_data is of another class");
    if (!s->fqn || s->fqn->kind != PICKLE_TEXT || !s->path || s->path->kind != PICKLE_TEXT || !at ||
        at->kind != PICKLE_INT || at->number < 0 || !length || length->kind != PICKLE_INT || length->number < 0)
        return fmt_dcp_bad(d, "an entry of storage_data has no name, file or place");
    if (!fmt_dcp_is_none(pickle_get(info, "transform_descriptors")))
        return ckpt_fail(d->e, CKPT_UNSUPPORTED, ".metadata: items are stored with a transformation (compressed)");
    s->at = (uint64_t)at->number;
    s->bytes = (uint64_t)length->number;
    return spend(d, s->fqn, s->offset);
}

static const char *as_text(struct el_buf *b, const struct pickle_node *x)
{
    b->len = 0;
    el_buf_put(b, x->text, x->text_n);
    return el_buf_cstr(b);
}

static int fmt_dcp_tell(struct fmt_dcp_dcp *d, struct stored *s, struct fmt_dcp_item *item)
{
    s->told = true;
    item->name = as_text(&d->name, s->fqn);
    item->file = as_text(&d->file, s->path);
    item->at = s->at;
    item->bytes = s->bytes;
    if (d->name.full || d->file.full || strlen(item->name) != s->fqn->text_n || strlen(item->file) != s->path->text_n)
        return ckpt_fail(d->e, CKPT_UNSUPPORTED, ".metadata: a name that is too long or has a zero byte");
    return d->each(d->arg, item);
}

struct sought {
    const struct pickle_node *fqn;
    const struct fmt_dcp_place *place; /* NULL: anywhere */
};

static int with_place(const void *item, const void *key)
{
    const struct stored *s = item;
    const struct sought *want = key;
    struct fmt_dcp_place at;
    int c = compare_text(s->fqn, want->fqn);
    if (c || !want->place)
        return c;
    read_place(s, &at);
    return fmt_dcp_compare_places(&at, want->place);
}

/* The first entry of this name in the sorted table, and with a place the first that is there or behind it; d->n if
 * there is none. */
static size_t fmt_dcp_first_of(const struct fmt_dcp_dcp *d, const struct pickle_node *fqn,
                               const struct fmt_dcp_place *place)
{
    size_t from = el_first(d->v, d->n, sizeof *d->v, &(struct sought){fqn, place}, with_place);
    return from < d->n && compare_text(d->v[from].fqn, fqn) == 0 ? from : d->n;
}

static int fmt_dcp_find_piece(struct fmt_dcp_dcp *d, const struct pickle_node *fqn, const struct fmt_dcp_place *place,
                              struct stored **to)
{
    struct fmt_dcp_place at;
    char shown[EL_SHOW_MAX];
    size_t i = fmt_dcp_first_of(d, fqn, place);
    if (i < d->n) {
        read_place(&d->v[i], &at);
        if (fmt_dcp_compare_places(&at, place) == 0)
            return *to = &d->v[i], 0;
    }
    return ckpt_fail(d->e, CKPT_INCOMPLETE, ".metadata: a piece of tensor \"%s\" is stored in no file",
                     el_show(as_text(&d->name, fqn), shown));
}

static int fmt_dcp_read_tensor(struct fmt_dcp_dcp *d, const struct pickle_node *fqn, const struct pickle_node *meta)
{
    uint64_t shape[RANK_MAX], size[RANK_MAX];
    struct fmt_dcp_place from;
    int rank = pickle_sizes(pickle_get(meta, "size"), shape, RANK_MAX);
    const struct pickle_node *chunks = pickle_get(meta, "chunks"), *properties = pickle_get(meta, "properties"), *chunk;
    /* Properties are a tuple since torch 2.0, whose first is the type. */
    const struct pickle_node *state = properties ? properties->state : NULL;
    const struct pickle_node *type = pickle_item(state, 0);
    const char *dtype = fmt_torch_dtype(type ? type : pickle_get(properties, "dtype"));
    char shown[EL_SHOW_MAX];
    if (rank < 0 || !chunks || chunks->kind != PICKLE_LIST)
        return fmt_dcp_bad(d, "a tensor has no size or no list of pieces");
    if (fmt_dcp_is_other(meta, FMT_DCP_MODULE " TensorStorageMetadata") ||
        fmt_dcp_is_other(properties, FMT_DCP_MODULE " TensorProperties"))
        return fmt_dcp_bad(d, "the description of a tensor is of another class");
    if (pickle_item(state, 3) && fmt_dcp_is_other(pickle_item(state, 3), FMT_DCP_MODULE " _MEM_FORMAT_ENCODING"))
        return fmt_dcp_bad(d, "the memory format of a tensor is none");
    if (check_layout(d, state))
        return -1;
    if (!dtype)
        return ckpt_fail(d->e, CKPT_UNSUPPORTED, ".metadata: tensor \"%s\" is of an unknown type",
                         el_show(as_text(&d->name, fqn), shown));
    for (size_t i = 0; (chunk = pickle_item(chunks, i)); i++) {
        struct stored *s = NULL;
        if (spend(d, fqn, pickle_get(chunk, "offsets")))
            return -1;
        if (fmt_dcp_is_other(chunk, FMT_DCP_MODULE " ChunkStorageMetadata"))
            return fmt_dcp_bad(d, "a piece of a tensor is of another class");
        if (d->pieces++ == d->n) /* each is stored for itself */
            return fmt_dcp_bad(d, "there are more pieces of tensors than are stored");
        from.rank = pickle_sizes(pickle_get(chunk, "offsets"), from.at, RANK_MAX);
        if (from.rank != rank || pickle_sizes(pickle_get(chunk, "sizes"), size, RANK_MAX) != rank)
            return fmt_dcp_bad(d, "a piece of a tensor has no place in it");
        if (fmt_dcp_find_piece(d, fqn, &from, &s))
            return -1;
        struct fmt_dcp_item item = {
            .dtype = dtype, .rank = (unsigned)rank, .shape = shape, .from = from.at, .size = size};
        int r = fmt_dcp_tell(d, s, &item);
        if (r)
            return r;
    }
    return 0;
}

static int fmt_dcp_read_all(struct fmt_dcp_dcp *d, const struct pickle_node *root, const struct pickle_node *storage)
{
    const struct pickle_node *names = pickle_get(root, "state_dict_metadata");
    if (!names || names->kind != PICKLE_DICT)
        return fmt_dcp_bad(d, "there is no state_dict_metadata");
    for (size_t i = 0; i + 1 < storage->items_n; i += 2, d->n++)
        if (read_stored(d, storage->items[i], storage->items[i + 1], &d->v[d->n]))
            return -1;
    el_sort(d->v, d->n, sizeof *d->v, by_fqn_and_place);
    for (size_t i = 0; i + 1 < names->items_n; i += 2) {
        const struct pickle_node *fqn = names->items[i], *meta = names->items[i + 1];
        if (fqn->kind != PICKLE_TEXT)
            return fmt_dcp_bad(d, "a name is no text");
        int r = 0;
        if (pickle_get(meta, "chunks") ||
            (meta->kind == PICKLE_CALL && pickle_is_global(meta->fn, FMT_DCP_MODULE " TensorStorageMetadata"))) {
            r = fmt_dcp_read_tensor(d, fqn, meta);
        } else {
            struct fmt_dcp_item item = {0};
            size_t at = fmt_dcp_first_of(d, fqn, NULL);
            char shown[EL_SHOW_MAX];
            r = at < d->n ? fmt_dcp_tell(d, &d->v[at], &item)
                          : ckpt_fail(d->e, CKPT_INCOMPLETE, ".metadata: \"%s\" is stored in no file",
                                      el_show(as_text(&d->name, fqn), shown));
        }
        if (r)
            return r;
    }
    /* What is described nowhere has a place all the same. */
    for (size_t i = 0; i < d->n; i++) {
        struct fmt_dcp_item item = {0};
        int r = d->v[i].told ? 0 : fmt_dcp_tell(d, &d->v[i], &item);
        if (r)
            return r;
    }
    return 0;
}

int fmt_dcp(const struct pickle *p, struct el_mem *mem, int (*each)(void *arg, const struct fmt_dcp_item *item),
            void *arg, struct el_err *e)
{
    const struct pickle_node *storage = pickle_get(p->root, "storage_data");
    if (fmt_dcp_names(p, e) || fmt_dcp_paths(pickle_get(p->root, "planner_data"), e))
        return -1;
    struct fmt_dcp_dcp d = {
        .name = EL_BUF_INIT(mem, 64 << 10), .file = EL_BUF_INIT(mem, 4096), .each = each, .arg = arg, .e = e};
    if (!storage || storage->kind != PICKLE_DICT)
        return fmt_dcp_bad(&d, "there is no storage_data");
    d.v = el_alloc(mem, storage->items_n / 2 * sizeof *d.v);
    int r = d.v ? fmt_dcp_read_all(&d, p->root, storage) : el_fail(e, EL_EXIT_OSERR, "out of memory");
    el_free(mem, d.v);
    el_buf_free(&d.name);
    el_buf_free(&d.file);
    return r;
}
