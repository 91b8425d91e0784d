#include "ckpt/inspect.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/sniff.h"
#include "util/parse.h"
#include "util/sort.h"

enum { SNIFFED_MAX = 64 };

/* --- files below a directory -------------------------------------------------------------------------------------- */

struct inspect_walk {
    struct inspect *l;
    char path[CKPT_PATH_MAX]; /* below the root */
    size_t below;             /* where in it names of this look begin */
    unsigned depth;
    int failed;
};

static int inspect_grow(struct inspect *l)
{
    if (l->n < l->room)
        return 0;
    size_t room = l->room ? 2 * l->room : 64;
    char **names = el_realloc(l->mem, l->names, room * sizeof *names);
    l->names = names ? names : l->names;
    uint64_t *sizes = names ? el_realloc(l->mem, l->sizes, room * sizeof *sizes) : NULL;
    l->sizes = sizes ? sizes : l->sizes;
    char **reals = sizes ? el_realloc(l->mem, l->reals, room * sizeof *reals) : NULL;
    l->reals = reals ? reals : l->reals;
    l->room = reals ? room : l->room;
    return reals ? 0 : -ENOMEM;
}

/* real: NULL for what is no link. */
static int inspect_keep(struct inspect *l, const char *name, const char *real, const struct fs_stat *st)
{
    if (inspect_grow(l))
        return -ENOMEM;
    l->reals[l->n] = real ? el_strndup(l->mem, real, strlen(real)) : NULL;
    l->names[l->n] = el_strndup(l->mem, name, strlen(name));
    l->sizes[l->n] = st->bytes;
    l->n++; /* also half made: inspect_close() */
    l->bytes += st->bytes;
    if (!l->names[l->n - 1] || (real && !l->reals[l->n - 1]))
        return -ENOMEM;
    return l->n > INSPECT_FILES_MAX ? -EFBIG : 0;
}

static int keep_link(struct inspect *l, const char *below, bool dangles)
{
    l->others++;
    if (l->links_n == INSPECT_LINKS_MAX)
        return 0;
    l->links[l->links_n] = el_strndup(l->mem, below, strlen(below));
    if (!l->links[l->links_n])
        return -ENOMEM;
    l->dangles[l->links_n++] = dangles;
    return 0;
}

/* Where it leads, below the root; false: out of it. */
static bool inspect_follow(const struct inspect *l, const char *path, char real[CKPT_PATH_MAX])
{
    char target[CKPT_PATH_MAX];
    size_t root = strlen(l->fs->name);
    if (l->fs->target(l->fs->ctx, path, target, sizeof target) < 0)
        return false;
    if (*target != '/')
        return ckpt_link_path(path, target, real);
    return strncmp(target, l->fs->name, root) == 0 && target[root] == '/' &&
           ckpt_link_path("", target + root + 1, real);
}

/* A link of a hub's cache leads to one of its blobs, and nowhere else.  What is here already, under its own name, need
 * not be told twice. */
static int walk_link(struct inspect_walk *w, const char *below)
{
    struct inspect *l = w->l;
    char real[CKPT_PATH_MAX];
    struct fs_stat st;
    size_t n = strlen(l->blobs);
    bool leads = inspect_follow(l, w->path, real);
    bool blob = leads && l->hub && strncmp(real, l->blobs, n) == 0 && !strchr(real + n, '/');
    bool inside = leads && !l->hub && strncmp(real, w->path, w->below) == 0;
    int r = leads ? l->fs->stat(l->fs->ctx, real, &st) : -ELOOP;
    if (!r && inside && (st.kind == FS_FILE || st.kind == FS_DIR)) {
        l->others++;
        return 0;
    }
    if (r || !blob || st.kind != FS_FILE)
        return keep_link(l, below, r == -ENOENT || r == -ENOTDIR);
    l->changed_sec = st.changed_sec > l->changed_sec ? st.changed_sec : l->changed_sec;
    return inspect_keep(l, below, real, &st);
}

static int walk_entry(void *arg, const char *name, enum fs_kind kind)
{
    struct inspect_walk *w = arg;
    struct fs_stat st;
    size_t before = strlen(w->path);
    int n = snprintf(w->path + before, sizeof w->path - before, "%s%s", before ? "/" : "", name);
    int r = n < 0 || (size_t)n >= sizeof w->path - before ? -ENAMETOOLONG : 0;
    const char *below = w->path + w->below;
    if (!r && kind == FS_DIR && strcmp(name, ".git") == 0) {
        /* Of a hub's repository: the same files once more, and what was being fetched. */
    } else if (!r && kind == FS_DIR && w->depth == CKPT_DEPTH_MAX) {
        w->l->deeper = true;
    } else if (!r && kind == FS_DIR) {
        w->depth++;
        r = w->l->fs->list(w->l->fs->ctx, w->path, walk_entry, w);
        w->depth--;
        r = r == -ENOENT ? 0 : r; /* gone in the meantime */
    } else if (!r && kind == FS_FILE) {
        r = w->l->fs->stat(w->l->fs->ctx, w->path, &st);
        bool ours = strcmp(below, CKPT_MANIFEST_FILE) == 0 || strcmp(below, CKPT_MANIFEST_TEMP) == 0;
        if (!r && st.changed_sec > w->l->changed_sec)
            w->l->changed_sec = st.changed_sec;
        r = r == -ENOENT ? 0 : !r && !ours ? inspect_keep(w->l, below, NULL, &st) : r;
    } else if (!r && kind == FS_LINK) {
        r = walk_link(w, below);
    } else if (!r) {
        w->l->others++;
    }
    w->path[before] = 0;
    return r;
}

struct inspect_entry {
    char *name, *real;
    uint64_t size;
};

static int inspect_by_name(const void *a, const void *b)
{
    return strcmp(((const struct inspect_entry *)a)->name, ((const struct inspect_entry *)b)->name);
}

static int sort_names(struct inspect *l)
{
    struct inspect_entry *v = el_alloc(l->mem, l->n * sizeof *v);
    if (!v)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++)
        v[i] = (struct inspect_entry){l->names[i], l->reals[i], l->sizes[i]};
    el_sort(v, l->n, sizeof *v, inspect_by_name);
    for (size_t i = 0; i < l->n; i++) {
        l->names[i] = v[i].name;
        l->reals[i] = v[i].real;
        l->sizes[i] = v[i].size;
    }
    el_free(l->mem, v);
    return 0;
}

static int inspect_gather(struct inspect *l, const char *file)
{
    struct inspect_walk w = {.l = l};
    struct fs_stat st;
    snprintf(w.path, sizeof w.path, "%s", l->dir);
    w.below = *l->dir ? strlen(l->dir) + 1 : 0;
    int r = l->fs->stat(l->fs->ctx, l->dir, &st);
    if (r < 0)
        return r;
    if (st.kind != FS_DIR)
        return st.kind == FS_LINK ? -ELOOP : -ENOTDIR;
    l->changed_sec = st.changed_sec;
    if (file)
        r = walk_entry(&w, file, FS_FILE);
    else
        r = l->fs->list(l->fs->ctx, l->dir, walk_entry, &w);
    return r < 0 ? r : sort_names(l);
}

int inspect_sniff(const struct ckpt_fs *fs, const char *path, struct sniff *to)
{
    char head[SNIFF_BYTES];
    struct fs_stat st;
    if (fs->stat(fs->ctx, path, &st) < 0 || st.kind != FS_FILE)
        return -1;
    size_t n = st.bytes < sizeof head ? (size_t)st.bytes : sizeof head;
    int file = fs->open(fs->ctx, path), r = file < 0 ? file : fs->read(fs->ctx, file, 0, head, n);
    if (file >= 0)
        fs->close(fs->ctx, file);
    if (r >= 0)
        sniff(to, head, n);
    return r < 0 ? -1 : 0;
}

/* Of files without a suffix, or with one of somebody's own: the first few are asked. */
static enum ckpt_format format_by_content(const struct inspect *l)
{
    char path[CKPT_PATH_MAX];
    struct sniff s;
    for (size_t i = 0; i < l->n && i < SNIFFED_MAX; i++) {
        if (fmt_kind(l->names[i]) == FMT_LEFTOVER && !l->one)
            continue;
        if (inspect_path(l, l->names[i], path) < 0 || inspect_sniff(l->fs, path, &s))
            continue;
        if (s.kind == SNIFF_SAFETENSORS)
            return CKPT_FORMAT_SAFETENSORS;
        if (s.kind == SNIFF_OLD || (s.kind == SNIFF_ZIP && s.torch))
            return CKPT_FORMAT_TORCH;
    }
    return CKPT_FORMAT_NONE;
}

static enum ckpt_format format_of(const struct inspect *l)
{
    if (!l->why.status)
        for (unsigned f = 0; f < CKPT_FORMATS_COUNT; f++)
            if (strcmp(ckpt_format_word((enum ckpt_format)f), l->manifest.m.layout) == 0)
                return (enum ckpt_format)f;
    enum ckpt_format by_name = fmt_detect((const char *const *)l->names, l->n);
    return by_name == CKPT_FORMAT_NONE ? format_by_content(l) : by_name;
}

/* Where that is a cache of the Hugging Face hub. */
static void find_blobs(struct inspect *l)
{
    struct fs_stat st;
    size_t n = ckpt_hub_of(l->dir);
    if (n == SIZE_MAX ||
        snprintf(l->blobs, sizeof l->blobs, "%.*s" CKPT_HUB_BLOBS, (int)n, l->dir) + 1 >= (int)sizeof l->blobs)
        return;
    l->hub = l->fs->stat(l->fs->ctx, l->blobs, &st) == 0 && st.kind == FS_DIR;
    strcat(l->blobs, "/");
}

static int blob_entry(void *arg, const char *name, enum fs_kind kind)
{
    struct inspect *l = arg;
    size_t n = strlen(name), k = strlen(".incomplete");
    l->unfetched |= kind == FS_FILE && n > k && strcmp(name + n - k, ".incomplete") == 0;
    return 0;
}

int inspect_open(struct inspect *l, const struct ckpt_fs *fs, struct el_mem *mem, const char *dir, const char *file,
                 struct el_err *e)
{
    enum ckpt_layout layout;
    *l = (struct inspect){.fs = fs, .mem = mem, .one = file != NULL};
    if (snprintf(l->dir, sizeof l->dir, "%s", dir) >= (int)sizeof l->dir)
        return fs_fail(fs, -ENAMETOOLONG, "read", "", e);
    find_blobs(l);
    int r = inspect_gather(l, file);
    if (r < 0)
        return fs_fail(fs, r, "read", dir, e);
    if (file)
        ckpt_fail(&l->why, CKPT_INCOMPLETE, "one file has no manifest");
    else
        check_open(&l->manifest, fs, mem, dir, &l->why);
    const char *last = strrchr(dir, '/');
    last = last ? last + 1 : dir;
    if (!l->why.status)
        l->step = l->manifest.m.step;
    else if (!ckpt_step_of(last, &layout, &l->step))
        l->step = l->hub ? -1 : ckpt_number_of(last); /* a revision only looks like one */
    l->format = format_of(l);
    if (l->hub && l->format == CKPT_FORMAT_NONE) {
        l->blobs[strlen(l->blobs) - 1] = 0;
        l->fs->list(l->fs->ctx, l->blobs, blob_entry, l);
        strcat(l->blobs, "/");
    }
    return 0;
}

int inspect_call(struct inspect *l, const char *called, const char *real, struct el_err *e)
{
    if (l->n != 1 || strcmp(called, real) == 0 || fmt_kind(called) == FMT_OTHER)
        return 0;
    char *name = el_strndup(l->mem, called, strlen(called)), *at = el_strndup(l->mem, real, strlen(real));
    if (!name || !at) {
        el_free(l->mem, name);
        el_free(l->mem, at);
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    }
    el_free(l->mem, l->names[0]);
    el_free(l->mem, l->reals[0]);
    l->names[0] = name;
    l->reals[0] = at;
    l->format = format_of(l);
    return 0;
}

int inspect_path(const struct inspect *l, const char *name, char path[CKPT_PATH_MAX])
{
    size_t i = l->hub || l->one ? inspect_find(l, name) : SIZE_MAX;
    const char *real = i != SIZE_MAX ? l->reals[i] : NULL;
    int n = real ? snprintf(path, CKPT_PATH_MAX, "%s%s%s", l->one ? l->dir : "", l->one && *l->dir ? "/" : "", real)
                 : snprintf(path, CKPT_PATH_MAX, "%s%s%s", l->dir, *l->dir ? "/" : "", name);
    return n < 0 || n >= CKPT_PATH_MAX ? -ENAMETOOLONG : 0;
}

bool inspect_is_part(const struct inspect *l)
{
    const struct manifest *m = &l->manifest.m;
    return l->format == CKPT_FORMAT_ELRUN && !l->why.status && m->files_n && *m->files[0].node;
}

void inspect_close(struct inspect *l)
{
    for (size_t i = 0; i < l->n; i++) {
        el_free(l->mem, l->names[i]);
        el_free(l->mem, l->reals[i]);
    }
    for (unsigned i = 0; i < l->links_n; i++)
        el_free(l->mem, l->links[i]);
    el_free(l->mem, l->names);
    el_free(l->mem, l->reals);
    el_free(l->mem, l->sizes);
    check_close(&l->manifest);
    l->names = l->reals = NULL;
    l->links_n = 0;
    l->sizes = NULL;
    l->n = 0;
}

static int inspect_with_name(const void *item, const void *name)
{
    return strcmp(*(char *const *)item, name);
}

size_t inspect_find(const struct inspect *l, const char *name)
{
    size_t i = el_first(l->names, l->n, sizeof *l->names, name, inspect_with_name);
    return i < l->n && strcmp(l->names[i], name) == 0 ? i : SIZE_MAX;
}

/* --- one file ----------------------------------------------------------------------------------------------------- */

static int inspect_read_bytes(void *ctx, uint64_t at, void *to, size_t n, struct el_err *e)
{
    struct inspect_file *f = ctx;
    assert(at + n <= f->bytes.bytes);
    int r = f->fs->read(f->fs->ctx, f->file, f->base + at, to, n);
    if (r < 0)
        return el_fail_sys(e, (enum el_exit)CKPT_DAMAGED, -r, "bytes %llu-%llu cannot be read",
                           (unsigned long long)(f->base + at), (unsigned long long)(f->base + at + n));
    if (f->done)
        atomic_fetch_add_explicit(f->done, n, memory_order_relaxed);
    return 0;
}

int inspect_file_open(struct inspect_file *f, const struct inspect *l, const char *name, _Atomic uint64_t *done,
                      struct el_err *e)
{
    char path[CKPT_PATH_MAX];
    struct fs_stat st;
    *f = (struct inspect_file){.fs = l->fs, .file = -1, .done = done};
    int r = inspect_path(l, name, path);
    if (r >= 0)
        r = l->fs->stat(l->fs->ctx, path, &st);
    if (r >= 0)
        r = f->file = fs_open_fresh(l->fs, path);
    if (r < 0)
        return fs_fail(l->fs, r, "read", path, e);
    f->bytes = (struct ckpt_bytes){f, st.bytes, inspect_read_bytes};
    return 0;
}

void inspect_file_slice(struct inspect_file *f, uint64_t at, uint64_t n)
{
    f->base = at;
    f->bytes.bytes = n;
}

void inspect_file_close(struct inspect_file *f)
{
    if (f->file >= 0)
        f->fs->close(f->fs->ctx, f->file);
    f->file = -1;
}
