/* Files that each rank writes: is there one of every rank, and do their pieces make whole parameters? */
#include <stdio.h>
#include <string.h>

#include "ckpt/pickle_index.h"
#include "ckpt/verify_private.h"
#include "util/parse.h"

enum { META_MAX = 256 << 20, DIMS = 3, GRID_MAX = 100000, FILES_MAX = 16, TOLD_MAX = 20 };

/* --- ATorch ---------------------------------------------------------------------------------------------------------
 */

/* ATorch: files of another world beside them are what another run has left, and nobody notices when loading. */
static void verify_ranks_check_worlds(struct verify *v, const struct inspect *l)
{
    uint64_t world = 0;
    for (size_t i = 0; i < l->n; i++) {
        struct fmt_member m;
        if (strncmp(l->names[i], "flat_", 5) != 0 && strncmp(l->names[i], "optim_param.", 12) != 0)
            continue;
        if (!fmt_member(l->names[i], &m))
            continue;
        if (world && m.n != world) {
            verify_find(v, CKPT_DAMAGED, l->names[i], "it is of another world size than its neighbours");
            return;
        }
        world = m.n;
    }
}

/* What one flat_meta says of each parameter, as a piece: where it lies in this rank's flat tensor. */
static int add_piece(struct verify *v, struct tensors *to, const char *file, const char *name,
                     const struct pickle_node *meta, struct el_err *e)
{
    const struct pickle_node *numel = pickle_get(meta, "param_numels"), *unit = pickle_get(meta, "striped_fsdp_name");
    char key[CKPT_PATH_MAX], text[700], shown[EL_SHOW_MAX], unit_shown[EL_SHOW_MAX], flat[CKPT_PATH_MAX],
        flat_shown[EL_PATH_MAX];
    uint64_t at[2], whole, size, from;
    if (!numel || numel->kind != PICKLE_INT || numel->number < 0 || !unit || unit->kind != PICKLE_TEXT ||
        unit->text_n >= sizeof key || pickle_sizes(pickle_get(meta, "param_offsets"), at, 2) != 2 || at[0] > at[1]) {
        snprintf(text, sizeof text, "parameter \"%s\" has no length or no place", el_show(name, shown));
        verify_find(v, CKPT_DAMAGED, file, text);
        return 0;
    }
    snprintf(key, sizeof key, "%.*s", (int)unit->text_n, unit->text);
    snprintf(flat, sizeof flat, "flat_param%.900s", file + strlen("flat_meta"));
    size_t i = verify_first_of(&v->tensors, key);
    while (i < v->tensors.n && strcmp(v->tensors.v[i]->name, key) == 0 && strcmp(v->tensors.v[i]->file, flat) != 0)
        i++;
    bool there = i < v->tensors.n && strcmp(v->tensors.v[i]->name, key) == 0;
    if (!there || v->tensors.v[i]->rank != 1 || at[1] > v->tensors.v[i]->size[0]) {
        snprintf(text, sizeof text, "parameter \"%s\" is elements %llu-%llu of \"%s\" in %.60s, which %s",
                 el_show(name, shown), (unsigned long long)at[0], (unsigned long long)at[1], el_show(key, unit_shown),
                 el_show_path(flat, flat_shown, sizeof flat_shown), there ? "ends before" : "is not there");
        verify_find(v, there ? CKPT_DAMAGED : CKPT_INCOMPLETE, file, text);
    }
    whole = (uint64_t)numel->number;
    size = at[1] - at[0];
    from = at[0];
    return tensors_add(to,
                       &(struct tensor){.name = name,
                                        .dtype = "",
                                        .file = file,
                                        .rank = 1,
                                        .shape = &whole,
                                        .size = &size,
                                        .from = &from,
                                        .place = TENSOR_ODD,
                                        .bytes = size},
                       e);
}

/* Units whose parameters are experts: each group of ranks has its own. */
static bool has_experts(struct pickle_index *units, const struct pickle_node *meta)
{
    return pickle_get(pickle_index_get(units, pickle_get(meta, "striped_fsdp_name")), "expert_ranks") != NULL;
}

static int read_meta(struct verify *v, const struct inspect *l, const char *file, struct tensors *to, struct el_err *e)
{
    struct pickle p = {0};
    struct el_err why = {0};
    char *text, name[CKPT_PATH_MAX];
    size_t n;
    int bad = verify_read(l, file, META_MAX, v->mem, &text, &n);
    if (bad < 0) {
        verify_unreadable(v, l, file, bad);
        return 0;
    }
    if (pickle_read(&p, v->mem, text, n, &why))
        verify_find(v, why.status, file, why.text);
    const struct pickle_node *all = pickle_get(p.root, "param_meta");
    all = why.status ? NULL : all ? all : p.root; /* version 0 has nothing around it */
    struct pickle_index units;
    if (pickle_index_make(&units, v->mem, all ? pickle_get(p.root, "flat_param_meta") : NULL))
        el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (size_t i = 0; all && all->kind == PICKLE_DICT && i + 1 < all->items_n && !e->status; i += 2) {
        const struct pickle_node *key = all->items[i];
        if (key->kind != PICKLE_TEXT || key->text_n >= sizeof name || has_experts(&units, all->items[i + 1]))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)key->text_n, key->text);
        add_piece(v, to, file, name, all->items[i + 1], e);
    }
    pickle_index_free(&units);
    pickle_free(&p);
    el_free(v->mem, text);
    return e->status ? -1 : 0;
}

/* The pieces of all ranks, one behind the other, are the parameter: as many elements as it has. */
static void check_parameters(struct verify *v, const struct tensors *t)
{
    char text[700], shown[EL_SHOW_MAX];
    unsigned told = 0;
    for (size_t i = 0, end; i < t->n && told < TOLD_MAX; i = end) {
        uint64_t sum = 0, whole = t->v[i]->shape[0];
        bool same = true;
        end = tensors_group(t, i);
        for (size_t k = i; k < end; k++) {
            same = same && t->v[k]->shape[0] == whole;
            if (__builtin_add_overflow(sum, t->v[k]->size[0], &sum))
                sum = UINT64_MAX;
        }
        if (same && sum == whole)
            continue;
        el_show(t->v[i]->name, shown);
        if (same)
            snprintf(text, sizeof text, "parameter \"%s\" has %llu elements, its pieces have %llu", shown,
                     (unsigned long long)whole, (unsigned long long)sum);
        else
            snprintf(text, sizeof text, "the ranks do not agree on how many elements parameter \"%s\" has", shown);
        verify_find(v, same && sum < whole ? CKPT_INCOMPLETE : CKPT_DAMAGED, "", text);
        told++;
    }
}

static int check_atorch(struct verify *v, const struct inspect *l, struct el_err *e)
{
    struct tensors pieces = {.mem = v->mem};
    int r = 0;
    verify_ranks_check_worlds(v, l);
    for (size_t i = 0; !r && i < l->n; i++)
        if (strncmp(l->names[i], "flat_meta.", 10) == 0)
            r = read_meta(v, l, l->names[i], &pieces, e);
    tensors_sort(&pieces);
    if (!r)
        check_parameters(v, &pieces);
    tensors_free(&pieces);
    return r;
}

/* --- Megatron -------------------------------------------------------------------------------------------------------
 */

/* Digits, as the number of a rank has. */
static bool verify_ranks_take_number(const char **at, unsigned *number)
{
    unsigned digits = 0;
    for (*number = 0; **at >= '0' && **at <= '9' && digits < 5; (*at)++, digits++)
        *number = 10 * *number + (unsigned)(**at - '0');
    return digits > 0;
}

/* mp_rank_TT[_PPP][_EEE]/file, of NeMo tp_rank_TT_pp_rank_PPP/file: the numbers, and how many there are; 0: another
 * name. */
static unsigned verify_ranks_place_of(const char *name, unsigned at[DIMS], const char **file)
{
    unsigned n = 0;
    bool nemo = strncmp(name, "tp_rank_", 8) == 0;
    if (!nemo && strncmp(name, "mp_rank_", 8) != 0)
        return 0;
    for (name += 7; *name == '_' && n < DIMS; n++) {
        name++;
        if (nemo && n == 1 && strncmp(name, "pp_rank_", 8) == 0)
            name += 8;
        if (!verify_ranks_take_number(&name, &at[n]))
            return 0;
    }
    *file = name + 1;
    return *name == '/' ? n : 0;
}

/* The different names of files in these folders, as far as there is room. */
static unsigned files_of(const struct inspect *l, const char *files[FILES_MAX])
{
    unsigned n = 0, at[DIMS];
    const char *file;
    for (size_t i = 0; i < l->n && n < FILES_MAX; i++) {
        unsigned k = 0;
        if (!verify_ranks_place_of(l->names[i], at, &file))
            continue;
        while (k < n && strcmp(files[k], file) != 0)
            k++;
        files[k] = file;
        n += k == n;
    }
    return n;
}

/* How many numbers the names have, and the highest of each; 0: none, or not all the same. */
static unsigned grid_of(struct verify *v, const struct inspect *l, unsigned most[DIMS])
{
    unsigned at[DIMS], dims = 0;
    const char *file;
    for (size_t i = 0; i < l->n; i++) {
        unsigned n = verify_ranks_place_of(l->names[i], at, &file);
        if (n && dims && n != dims) {
            verify_find(v, CKPT_DAMAGED, l->names[i], "its name has not as many numbers as its neighbours' have");
            return 0;
        }
        dims = n ? n : dims;
        for (unsigned d = 0; d < n; d++)
            most[d] = at[d] > most[d] ? at[d] : most[d];
    }
    return dims;
}

/* Their arguments say how many ranks there were: the last of them may be the one that is missing. */
static void reach(const struct verify *v, const struct inspect *l, unsigned dims, unsigned most[DIMS])
{
    unsigned at[DIMS];
    const char *file;
    for (size_t i = 0; i < l->n; i++) {
        const struct fmt_counts *c = &v->counts[i];
        if (!c->tensor || !verify_ranks_place_of(l->names[i], at, &file))
            continue;
        bool deep = c->pipeline > 1;
        uint64_t want[DIMS] = {c->tensor, deep ? c->pipeline : c->expert, deep ? c->expert : 0};
        for (unsigned d = 0; d < dims; d++)
            if (want[d] > most[d] + 1ull && want[d] <= GRID_MAX)
                most[d] = (unsigned)(want[d] - 1);
    }
}

static bool is_nemo(const struct inspect *l)
{
    unsigned at[DIMS];
    const char *file;
    for (size_t i = 0; i < l->n; i++)
        if (verify_ranks_place_of(l->names[i], at, &file))
            return l->names[i][0] == 't';
    return false;
}

/* Tensor, pipeline and expert parallel ranks make a grid without gaps, and all of its places have the same files. */
static void check_grid(struct verify *v, const struct inspect *l)
{
    const char *files[FILES_MAX];
    unsigned at[DIMS], most[DIMS] = {0}, told = 0, files_n = files_of(l, files), dims = grid_of(v, l, most);
    char name[64], path[CKPT_PATH_MAX], text[600], shown[EL_PATH_MAX];
    uint64_t places = dims != 0;
    bool nemo = dims && is_nemo(l);
    reach(v, l, dims, most);
    for (unsigned d = 0; d < dims; d++)
        places *= most[d] + 1ull;
    if (places > GRID_MAX) {
        verify_find(v, CKPT_UNSUPPORTED, "", "its ranks make a grid of more than 100000 places, which is not checked");
        return;
    }
    for (uint64_t place = 0; place < places && told < TOLD_MAX; place++) {
        uint64_t left = place;
        unsigned missing = 0, first = 0;
        for (unsigned d = dims; d-- > 0; left /= most[d] + 1ull)
            at[d] = (unsigned)(left % (most[d] + 1ull));
        int n = snprintf(name, sizeof name, "%cp_rank_%02u", nemo ? 't' : 'm', at[0]);
        for (unsigned d = 1; d < dims; d++)
            n += snprintf(name + n, sizeof name - (size_t)n, "%s_%03u", nemo && d == 1 ? "_pp_rank" : "", at[d]);
        for (unsigned i = 0; i < files_n; i++) {
            bool fits = snprintf(path, sizeof path, "%s/%s", name, files[i]) < (int)sizeof path;
            bool gone = fits && inspect_find(l, path) == SIZE_MAX;
            first = gone && !missing ? i : first;
            missing += gone;
        }
        if (!missing)
            continue;
        told++;
        int k = snprintf(text, sizeof text, "%s%s%.100s is missing", name, missing == files_n ? "" : "/",
                         missing == files_n ? "" : el_show_path(files[first], shown, sizeof shown));
        if (missing > 1 && missing < files_n)
            snprintf(text + k, sizeof text - (size_t)k, ", and so %s %u more of its files", missing > 2 ? "are" : "is",
                     missing - 1);
        verify_find(v, CKPT_INCOMPLETE, "", text);
    }
}

static bool verify_ranks_ends(const char *name, const char *with)
{
    size_t n = strlen(name), k = strlen(with);
    return n >= k && strcmp(name + n - k, with) == 0;
}

/* With --use-distributed-optimizer the state of the optimizer is in files of its own.  That the first of them is
 * missing is told by the grid if there is any other. */
static void check_apart(struct verify *v, const struct inspect *l)
{
    unsigned at[DIMS];
    const char *file;
    size_t says = SIZE_MAX;
    for (size_t i = 0; i < l->n; i++) {
        if (!verify_ranks_place_of(l->names[i], at, &file))
            continue;
        if (verify_ranks_ends(file, "optim.pt"))
            return;
        says = says == SIZE_MAX && v->counts[i].apart ? i : says;
    }
    if (says == SIZE_MAX)
        return;
    char path[CKPT_PATH_MAX];
    verify_ranks_place_of(l->names[says], at, &file);
    snprintf(path, sizeof path, "%.*sdistrib_optim.pt", (int)(file - l->names[says]), l->names[says]);
    verify_find(v, CKPT_INCOMPLETE, path, "it is missing: the optimizer is distributed, as the file beside it says");
}

int verify_ranks(struct verify *v, const struct inspect *l, struct el_err *e)
{
    check_grid(v, l);
    check_apart(v, l);
    return l->format == CKPT_FORMAT_ATORCH ? check_atorch(v, l, e) : 0;
}
