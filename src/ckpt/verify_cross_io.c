/* Rules that concern several files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/crc32c.h"
#include "ckpt/sniff.h"
#include "ckpt/verify_private.h"
#include "util/parse.h"
#include "util/sort.h"

enum { GAPS_MAX = 20, FILES_TOLD = 20 };

#define INDEX_MAX    ((size_t)256 << 20)
#define METADATA_MAX ((size_t)1 << 30)

int verify_read(const struct inspect *l, const char *name, size_t max, struct el_mem *mem, char **text, size_t *n)
{
    char path[CKPT_PATH_MAX];
    int r = inspect_path(l, name, path);
    return r < 0 ? r : fs_read_small(l->fs, path, max, mem, text, n);
}

void verify_unreadable(struct verify *v, const struct inspect *l, const char *name, int r)
{
    struct el_err e = {0};
    fs_fail(l->fs, r, "read", name, &e);
    verify_find(v, e.status, name, e.text);
}

/* --- Hugging Face index ------------------------------------------------------------------------------------------- */

/* Files that are missing, by a digest of their names: each is told once, with the first that is in it, and a thousand
 * are no more news than these. */
struct verify_cross_told {
    uint32_t v[FILES_TOLD];
    unsigned n;
};

static bool verify_cross_is_news(struct verify_cross_told *t, const char *name)
{
    uint32_t digest = crc32c(0, name, strlen(name));
    for (unsigned i = 0; i < t->n; i++)
        if (t->v[i] == digest)
            return false;
    if (t->n == FILES_TOLD)
        return false;
    t->v[t->n++] = digest;
    return true;
}

struct index {
    struct verify *v;
    const struct inspect *l;
    char folder[CKPT_PATH_MAX]; /* in which the index lies, with its slash */
    const char *name;
    struct verify_cross_told missing;
    unsigned lacking; /* so many tensors are not in their file */
};

static int verify_cross_with_name(const void *item, const void *name)
{
    return strcmp((*(struct tensor *const *)item)->name, name);
}

size_t verify_first_of(const struct tensors *t, const char *name)
{
    return el_first(t->v, t->n, sizeof *t->v, name, verify_cross_with_name);
}

static int index_entry(void *arg, const char *tensor, const char *file)
{
    struct index *x = arg;
    const struct tensors *t = &x->v->tensors;
    char path[CKPT_PATH_MAX], text[700], name[EL_SHOW_MAX], shown[EL_PATH_MAX];
    if (ckpt_path_fault(file) || snprintf(path, sizeof path, "%s%s", x->folder, file) >= (int)sizeof path) {
        snprintf(text, sizeof text, "it names a file that leads out of the directory: %s",
                 el_show_path(file, shown, sizeof shown));
        verify_find(x->v, CKPT_DAMAGED, x->name, text);
        return 1;
    }
    size_t at = inspect_find(x->l, path);
    el_show_path(file, shown, sizeof shown);
    for (size_t i = verify_first_of(t, tensor); i < t->n && strcmp(t->v[i]->name, tensor) == 0; i++)
        if (at != SIZE_MAX && strcmp(t->v[i]->file, path) == 0)
            return 0;
    bool missing = at == SIZE_MAX;
    /* Colossal-AI lists an optimizer by the numbers of parameters, each of which may have several tensors, or none. */
    const char *last = strrchr(x->name, '/');
    if (!missing && strstr(last ? last : x->name, "optim"))
        return 0;
    if (missing ? !verify_cross_is_news(&x->missing, file) : x->lacking++ >= FILES_TOLD)
        return 0;
    snprintf(text, sizeof text, missing ? "%s is missing, with tensor \"%s\"" : "%s has no tensor \"%s\"", shown,
             el_show(tensor, name));
    verify_find(x->v, missing ? CKPT_INCOMPLETE : CKPT_DAMAGED, x->name, text);
    return 0;
}

static int check_index(struct verify *v, const struct inspect *l, const char *name)
{
    struct index x = {.v = v, .l = l, .name = name};
    const char *slash = strrchr(name, '/');
    struct el_err e = {0};
    char *text;
    size_t n;
    snprintf(x.folder, sizeof x.folder, "%.*s", slash ? (int)(slash - name + 1) : 0, name);
    int r = verify_read(l, name, INDEX_MAX, v->mem, &text, &n);
    if (r < 0) {
        verify_unreadable(v, l, name, r);
        return 0;
    }
    if (fmt_index(text, n, index_entry, &x, &e) && e.status)
        verify_find(v, e.status, name, e.text);
    el_free(v->mem, text);
    return 0;
}

/* --- sets of files ------------------------------------------------------------------------------------------------ */

static void verify_cross_tell_gap(void *arg, const char *name, const struct fmt_missing *missing, uint64_t total)
{
    char text[200], numbers[FMT_MISSING_TEXT];
    bool one = missing->n == 1;
    snprintf(text, sizeof text, "number%s %s of this set of %llu files %s missing", one ? "" : "s",
             fmt_missing_put(missing, numbers), (unsigned long long)total, one ? "is" : "are");
    verify_find(arg, CKPT_INCOMPLETE, name, text);
}

/* --- pieces ------------------------------------------------------------------------------------------------------- */

/* Each tensor is whole; only for formats in which a name means one tensor in the whole directory. */
static void check_cover(struct verify *v, const struct inspect *l)
{
    bool model = l->format == CKPT_FORMAT_HF || l->format == CKPT_FORMAT_TRAINER;
    if (!model && l->format != CKPT_FORMAT_ELRUN && l->format != CKPT_FORMAT_DCP)
        return;
    /* torch keeps what it merges in a folder beside the result: only the files at the top are the model, those of a
     * set: beside them there may be files of each rank, or other models, with the same names. */
    struct tensors top = {.mem = v->mem, .v = el_alloc(v->mem, v->tensors.n * sizeof *top.v)};
    struct fmt_member m;
    for (size_t i = 0; top.v && i < v->tensors.n; i++)
        if (!strchr(v->tensors.v[i]->file, '/') &&
            (!model || (fmt_kind(v->tensors.v[i]->file) == FMT_SAFETENSORS && fmt_member(v->tensors.v[i]->file, &m))))
            top.v[top.n++] = v->tensors.v[i];
    for (size_t i = 0, end; i < top.n; i = end) {
        struct el_err e = {0};
        end = tensors_group(&top, i);
        /* A shard of ours has what its rank declared, beside pieces of one tensor what only has the same name. */
        if (l->format == CKPT_FORMAT_ELRUN && tensors_copies(&top, i, end))
            continue;
        size_t once = l->format == CKPT_FORMAT_ELRUN ? tensors_once(&top, i, end) : end;
        if (tensors_cover(&top, i, once, &e) && !(e.status == CKPT_INCOMPLETE && inspect_is_part(l)))
            verify_find(v, e.status, "", e.text);
    }
    el_free(v->mem, top.v);
}

int verify_cross(struct verify *v, const struct inspect *l, struct el_err *e)
{
    bool damaged = v->verdict == CKPT_DAMAGED; /* a file that cannot be read leaves gaps that are no news */
    bool dcp = false;
    tensors_sort(&v->tensors);
    for (size_t i = 0; i < l->n; i++)
        dcp |= fmt_kind(l->names[i]) == FMT_DCP_METADATA;
    if (!dcp) /* whose shapes are told */
        tensors_infer(&v->tensors);
    if (fmt_gaps((const char *const *)l->names, l->n, v->mem, verify_cross_tell_gap, v, e))
        return -1;
    for (size_t i = 0; i < l->n; i++)
        if (fmt_kind(l->names[i]) == FMT_INDEX && !damaged)
            check_index(v, l, l->names[i]);
    if (!damaged)
        check_cover(v, l);
    verify_counts(v, l);
    return verify_ranks(v, l, e);
}

/* --- torch.distributed.checkpoint --------------------------------------------------------------------------------- */

/* Where an item lies: in which file of the look, and its bytes. */
struct verify_cross_span {
    size_t file;
    uint64_t from, to;
};

struct verify_cross_dcp {
    struct verify *v;
    const struct inspect *l;
    const char *folder;
    struct el_err *e;
    struct verify_cross_span *spans;
    size_t spans_n, room;
    struct verify_cross_told missing;
};

static int add_span(struct verify_cross_dcp *d, size_t file, uint64_t from, uint64_t bytes)
{
    if (d->spans_n == d->room) {
        size_t room = d->room ? 2 * d->room : 64;
        struct verify_cross_span *more = el_realloc(d->v->mem, d->spans, room * sizeof *more);
        if (!more)
            return el_fail(d->e, EL_EXIT_OSERR, "out of memory");
        d->spans = more;
        d->room = room;
    }
    d->spans[d->spans_n++] = (struct verify_cross_span){file, from, from + bytes};
    return 0;
}

static int verify_cross_by_place(const void *a, const void *b)
{
    const struct verify_cross_span *x = a, *y = b;
    int c = x->file < y->file ? -1 : x->file > y->file;
    return c ? c : x->from < y->from ? -1 : x->from > y->from;
}

/* An archive is an item that another rank has written, too, and whose place .metadata names there. */
static bool is_innocent(const struct verify_cross_dcp *d, size_t file, uint64_t from, uint64_t to)
{
    char b[SNIFF_PAGE];
    size_t n = to - from < sizeof b ? (size_t)(to - from) : sizeof b;
    struct inspect_file f;
    struct el_err e = {0};
    if (inspect_file_open(&f, d->l, d->l->names[file], &d->v->done, &e))
        return true; /* which is told elsewhere */
    int r = f.bytes.read(f.bytes.ctx, from, b, n, &e);
    inspect_file_close(&f);
    return r || sniff_padding(b, n);
}

/* torch writes item behind item: what lies between two, or behind the last, was put there by somebody else. */
static void check_between(struct verify_cross_dcp *d, size_t file, uint64_t from, uint64_t to, const char *where)
{
    char text[160];
    if (from >= to || is_innocent(d, file, from, to))
        return;
    snprintf(text, sizeof text, "bytes %llu-%llu %s belong to none", (unsigned long long)from, (unsigned long long)to,
             where);
    verify_find(d->v, CKPT_DAMAGED, d->l->names[file], text);
}

static void check_spans(struct verify_cross_dcp *d)
{
    el_sort(d->spans, d->spans_n, sizeof *d->spans, verify_cross_by_place);
    for (size_t i = 0; i < d->spans_n;) {
        size_t file = d->spans[i].file;
        uint64_t at = 0;
        unsigned gaps = 0;
        for (; i < d->spans_n && d->spans[i].file == file; i++) {
            if (d->spans[i].from > at && gaps++ < GAPS_MAX)
                check_between(d, file, at, d->spans[i].from, at ? "between two items" : "in front of the first item");
            at = d->spans[i].to > at ? d->spans[i].to : at;
        }
        check_between(d, file, at, d->l->sizes[file], "behind the last item");
    }
}

static int dcp_item(void *arg, const struct fmt_dcp_item *item)
{
    struct verify_cross_dcp *d = arg;
    char path[CKPT_PATH_MAX], text[400], shown[EL_SHOW_MAX];
    el_show(item->name, shown);
    if (ckpt_path_fault(item->file) || snprintf(path, sizeof path, "%s%s", d->folder, item->file) >= (int)sizeof path) {
        verify_find(d->v, CKPT_DAMAGED, ".metadata", "it names a file that leads out of the directory");
        return 0;
    }
    size_t at = inspect_find(d->l, path);
    if (at == SIZE_MAX) {
        if (verify_cross_is_news(&d->missing, path)) {
            snprintf(text, sizeof text, "it is missing, with \"%s\"", shown);
            verify_find(d->v, CKPT_INCOMPLETE, path, text);
        }
        return 0;
    }
    if (item->at > d->l->sizes[at] || item->bytes > d->l->sizes[at] - item->at) {
        snprintf(text, sizeof text, "truncated: \"%s\" has bytes %llu-%llu, the file ends at %llu", shown,
                 (unsigned long long)item->at, (unsigned long long)(item->at + item->bytes),
                 (unsigned long long)d->l->sizes[at]);
        verify_find(d->v, CKPT_DAMAGED, path, text);
        return 0;
    }
    if (add_span(d, at, item->at, item->bytes))
        return -1;
    if (!item->dtype)
        return 0;
    struct tensor t = {.name = item->name,
                       .dtype = item->dtype,
                       .file = d->l->names[at],
                       .rank = item->rank,
                       .shape = item->shape,
                       .size = item->size,
                       .from = item->from,
                       .place = TENSOR_ZIP,
                       .at = item->at,
                       .bytes = item->bytes};
    return tensors_add(&d->v->tensors, &t, d->e);
}

static int verify_cross_read_metadata(struct verify *v, const struct inspect *l, const char *name, struct el_err *e)
{
    char folder[CKPT_PATH_MAX];
    const char *slash = strrchr(name, '/');
    struct verify_cross_dcp d = {.v = v, .l = l, .folder = folder, .e = e};
    struct pickle p = {0};
    struct el_err why = {0};
    char *text;
    size_t n, before = v->findings_n;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - name + 1) : 0, name);
    int r = verify_read(l, name, METADATA_MAX, v->mem, &text, &n);
    if (r < 0) {
        verify_unreadable(v, l, name, r);
        return 0;
    }
    bool pickle = n && text[0] == '\x80'; /* else verify_file() tells, unless a manifest vouches for it */
    if (!pickle && !l->why.status && manifest_find(&l->manifest.m, name))
        verify_find(v, CKPT_DAMAGED, name, "it is no pickle, as torch writes it");
    if (pickle && pickle_read(&p, v->mem, text, n, &why) == 0)
        fmt_dcp(&p, v->mem, dcp_item, &d, &why);
    if (pickle && !why.status && p.used < n)
        ckpt_fail(&why, CKPT_DAMAGED, "its pickle ends at byte %zu, the file at %zu", p.used, n);
    if (why.status && why.status != EL_EXIT_OSERR)
        verify_find(v, why.status, name, why.text);
    else if (pickle && !e->status && v->findings_n == before) /* else what is wrong is told already */
        check_spans(&d);
    el_free(v->mem, d.spans);
    pickle_free(&p);
    el_free(v->mem, text);
    return e->status ? -1 : why.status == EL_EXIT_OSERR ? el_fail(e, EL_EXIT_OSERR, "%s", why.text) : 0;
}

/* A folder with .distcp files has its .metadata; a Trainer's has one for the model and one for the optimizer. */
static void check_folders(struct verify *v, const struct inspect *l)
{
    char path[CKPT_PATH_MAX], last[CKPT_PATH_MAX] = "/";
    for (size_t i = 0; i < l->n; i++) {
        const char *slash = strrchr(l->names[i], '/');
        int n = slash ? (int)(slash - l->names[i] + 1) : 0;
        if (fmt_kind(l->names[i]) != FMT_DCP_DATA || l->one ||
            snprintf(path, sizeof path, "%.*s.metadata", n, l->names[i]) >= (int)sizeof path || strcmp(path, last) == 0)
            continue;
        snprintf(last, sizeof last, "%s", path);
        if (inspect_find(l, path) == SIZE_MAX)
            verify_find(v, CKPT_INCOMPLETE, n ? path : "",
                        "there is no .metadata, without which .distcp files cannot be read");
    }
}

/* Items lie one behind the other: more of them than there are bytes are an invention, and to read them all could take
 * for ever. */
static int check_room(struct verify *v, const struct inspect *l, struct el_err *e)
{
    uint64_t *used = el_alloc(v->mem, l->n * sizeof *used);
    if (!used)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (size_t i = 0; i < l->n; i++)
        used[i] = 0;
    bool bad = false;
    for (size_t i = 0; i < v->tensors.n && !bad; i++) {
        size_t at = inspect_find(l, v->tensors.v[i]->file);
        bad = at != SIZE_MAX &&
              (__builtin_add_overflow(used[at], v->tensors.v[i]->bytes, &used[at]) || used[at] > l->sizes[at]);
        if (bad)
            verify_find(v, CKPT_DAMAGED, l->names[at], ".metadata says that it has more items than fit into it");
    }
    if (bad)
        tensors_free(&v->tensors);
    el_free(v->mem, used);
    return 0;
}

int verify_dcp(struct verify *v, const struct inspect *l, struct el_err *e)
{
    for (size_t i = 0; i < l->n; i++)
        if (fmt_kind(l->names[i]) == FMT_DCP_METADATA && verify_cross_read_metadata(v, l, l->names[i], e))
            return -1;
    check_folders(v, l);
    tensors_sort(&v->tensors);
    return check_room(v, l, e);
}

/* --- hints of a root ---------------------------------------------------------------------------------------------- */

static bool is_dir(const struct ckpt_fs *fs, const char *name)
{
    struct fs_stat st;
    return fs->stat(fs->ctx, name, &st) == 0 && st.kind == FS_DIR;
}

static void verify_cross_check_latest(struct verify *v, const struct ckpt_fs *fs)
{
    char *text, words[300], shown[EL_SHOW_MAX];
    size_t n;
    if (fs_read_small(fs, CKPT_LATEST_FILE, CKPT_PATH_MAX, v->mem, &text, &n) < 0)
        return;
    text[n && text[n - 1] == '\n' ? n - 1 : n] = 0;
    if (ckpt_path_fault(text) || !is_dir(fs, text)) {
        snprintf(words, sizeof words, "it names \"%s\", which is not there", el_show(text, shown));
        verify_find(v, CKPT_INCOMPLETE, CKPT_LATEST_FILE, words);
    }
    el_free(v->mem, text);
}

/* verl has a tracker of the same name, and other folders. */
static bool is_verl(const struct ckpt_fs *fs, uint64_t step)
{
    char name[40];
    snprintf(name, sizeof name, "global_step_%llu", (unsigned long long)step);
    return is_dir(fs, name);
}

static void check_tracker(struct verify *v, const struct ckpt_fs *fs)
{
    char *text, words[300], shown[EL_SHOW_MAX], name[CKPT_PATH_MAX];
    size_t n;
    uint64_t step;
    if (fs_read_small(fs, CKPT_TRACKER_FILE, 64, v->mem, &text, &n) < 0)
        return;
    while (n && (text[n - 1] == '\n' || text[n - 1] == ' ' || text[n - 1] == '\r'))
        text[--n] = 0;
    bool number = el_parse_u64(text, &step) == 0 && step <= CKPT_STEP_MAX;
    if (number)
        ckpt_step_name(CKPT_LAYOUT_MEGATRON, (int64_t)step, name);
    else
        snprintf(name, sizeof name, "release");
    if (!number && strcmp(text, "release") != 0) {
        snprintf(words, sizeof words, "\"%s\" is no iteration", el_show(text, shown));
        verify_find(v, CKPT_DAMAGED, CKPT_TRACKER_FILE, words);
    } else if (!is_dir(fs, name) && !(number && is_verl(fs, step))) {
        snprintf(words, sizeof words, "it names iteration %s, but there is no %.100s", el_show(text, shown), name);
        verify_find(v, CKPT_INCOMPLETE, CKPT_TRACKER_FILE, words);
    }
    el_free(v->mem, text);
}

void verify_hints(struct verify *v, const struct ckpt_fs *fs)
{
    v->end = v->end ? v->end : &v->findings;
    verify_cross_check_latest(v, fs);
    check_tracker(v, fs);
}
