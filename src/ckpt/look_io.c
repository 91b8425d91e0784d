#include "ckpt/look.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "util/parse.h"
#include "util/sort.h"

/* --- files below a directory -------------------------------------------------------------------------------------- */

struct walk {
    struct look *l;
    char path[CKPT_PATH_MAX]; /* below the root */
    size_t below;             /* where in it names of this look begin */
    unsigned depth;
    int failed;
};

static int keep(struct look *l, const char *name, const struct fs_stat *st)
{
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        char **names = el_realloc(l->mem, l->names, room * sizeof *names);
        if (names)
            l->names = names;
        uint64_t *sizes = names ? el_realloc(l->mem, l->sizes, room * sizeof *sizes) : NULL;
        if (!sizes)
            return -ENOMEM;
        l->sizes = sizes;
        l->room = room;
    }
    l->names[l->n] = el_strndup(l->mem, name, strlen(name));
    if (!l->names[l->n])
        return -ENOMEM;
    l->sizes[l->n++] = st->bytes;
    l->bytes += st->bytes;
    return l->n > LOOK_FILES_MAX ? -EFBIG : 0;
}

static int walk_entry(void *arg, const char *name, enum fs_kind kind)
{
    struct walk *w = arg;
    struct fs_stat st;
    size_t before = strlen(w->path);
    int n = snprintf(w->path + before, sizeof w->path - before, "%s%s", before ? "/" : "", name);
    int r = n < 0 || (size_t)n >= sizeof w->path - before ? -ENAMETOOLONG : 0;
    const char *below = w->path + w->below;
    if (!r && kind == FS_DIR && w->depth == CKPT_DEPTH_MAX) {
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
        r = r == -ENOENT ? 0 : !r && !ours ? keep(w->l, below, &st) : r;
    } else if (!r) {
        w->l->others++;
    }
    w->path[before] = 0;
    return r;
}

struct pair {
    char *name;
    uint64_t size;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

static int sort_names(struct look *l)
{
    struct pair *v = el_alloc(l->mem, l->n * sizeof *v);
    if (!v)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++)
        v[i] = (struct pair){l->names[i], l->sizes[i]};
    el_sort(v, l->n, sizeof *v, by_name);
    for (size_t i = 0; i < l->n; i++) {
        l->names[i] = v[i].name;
        l->sizes[i] = v[i].size;
    }
    el_free(l->mem, v);
    return 0;
}

static int gather(struct look *l, const char *file)
{
    struct walk w = {.l = l};
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

static enum ckpt_format format_of(const struct look *l)
{
    if (!l->why.status)
        for (unsigned f = 0; f < CKPT_FORMATS_COUNT; f++)
            if (strcmp(ckpt_format_word((enum ckpt_format)f), l->manifest.m.layout) == 0)
                return (enum ckpt_format)f;
    return fmt_detect((const char *const *)l->names, l->n);
}

int look_open(struct look *l, const struct ckpt_fs *fs, struct el_mem *mem, const char *dir, const char *file,
              struct el_err *e)
{
    enum ckpt_layout layout;
    *l = (struct look){.fs = fs, .mem = mem, .one = file != NULL};
    if (snprintf(l->dir, sizeof l->dir, "%s", dir) >= (int)sizeof l->dir)
        return fs_fail(fs, -ENAMETOOLONG, "read", "", e);
    int r = gather(l, file);
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
        l->step = ckpt_number_of(last);
    l->format = format_of(l);
    return 0;
}

int look_call(struct look *l, const char *called, const char *real, struct el_err *e)
{
    if (l->n != 1 || strcmp(called, real) == 0 || fmt_kind(called) == FMT_OTHER)
        return 0;
    char *name = el_strndup(l->mem, called, strlen(called));
    if (!name)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    el_free(l->mem, l->names[0]);
    l->names[0] = name;
    l->real = real;
    l->format = format_of(l);
    return 0;
}

int look_path(const struct look *l, const char *name, char path[CKPT_PATH_MAX])
{
    int n = snprintf(path, CKPT_PATH_MAX, "%s%s%s", l->dir, *l->dir ? "/" : "", l->real ? l->real : name);
    return n < 0 || n >= CKPT_PATH_MAX ? -ENAMETOOLONG : 0;
}

void look_close(struct look *l)
{
    for (size_t i = 0; i < l->n; i++)
        el_free(l->mem, l->names[i]);
    el_free(l->mem, l->names);
    el_free(l->mem, l->sizes);
    check_close(&l->manifest);
    l->names = NULL;
    l->sizes = NULL;
    l->n = 0;
}

static int with_name(const void *item, const void *name)
{
    return strcmp(*(char *const *)item, name);
}

size_t look_find(const struct look *l, const char *name)
{
    size_t i = el_first(l->names, l->n, sizeof *l->names, name, with_name);
    return i < l->n && strcmp(l->names[i], name) == 0 ? i : SIZE_MAX;
}

/* --- one file ----------------------------------------------------------------------------------------------------- */

static int read_bytes(void *ctx, uint64_t at, void *to, size_t n, struct el_err *e)
{
    struct look_file *f = ctx;
    assert(at + n <= f->bytes.bytes);
    int r = f->fs->read(f->fs->ctx, f->file, f->base + at, to, n);
    if (r < 0)
        return el_fail_sys(e, (enum el_exit)CKPT_DAMAGED, -r, "bytes %llu-%llu cannot be read",
                           (unsigned long long)(f->base + at), (unsigned long long)(f->base + at + n));
    if (f->done)
        atomic_fetch_add_explicit(f->done, n, memory_order_relaxed);
    return 0;
}

int look_file_open(struct look_file *f, const struct look *l, const char *name, _Atomic uint64_t *done,
                   struct el_err *e)
{
    char path[CKPT_PATH_MAX];
    struct fs_stat st;
    *f = (struct look_file){.fs = l->fs, .file = -1, .done = done};
    int r = look_path(l, name, path);
    if (r >= 0)
        r = l->fs->stat(l->fs->ctx, path, &st);
    if (r >= 0)
        r = f->file = fs_open_fresh(l->fs, path);
    if (r < 0)
        return fs_fail(l->fs, r, "read", path, e);
    f->bytes = (struct ckpt_bytes){f, st.bytes, read_bytes};
    return 0;
}

void look_file_slice(struct look_file *f, uint64_t at, uint64_t n)
{
    f->base = at;
    f->bytes.bytes = n;
}

void look_file_close(struct look_file *f)
{
    if (f->file >= 0)
        f->fs->close(f->fs->ctx, f->file);
    f->file = -1;
}
