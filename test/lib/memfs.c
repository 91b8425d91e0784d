#include "lib/memfs.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    int dir, node;
    char name[96];
};

struct tree {
    struct entry v[MEMFS_ENTRIES_MAX];
    int n;
};

static struct entry *entry_of(struct tree *t, int dir, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (t->v[i].dir == dir && strcmp(t->v[i].name, name) == 0)
            return &t->v[i];
    return NULL;
}

static void drop(struct tree *t, struct entry *x)
{
    if (x)
        *x = t->v[--t->n];
}

static void set(struct tree *t, int dir, const char *name, int node)
{
    drop(t, entry_of(t, dir, name));
    assert(t->n < MEMFS_ENTRIES_MAX);
    struct entry *x = &t->v[t->n++];
    *x = (struct entry){.dir = dir, .node = node};
    snprintf(x->name, sizeof x->name, "%s", name);
}

/* What the log makes.  A name whose making was lost is there again if its renaming was not: the file system that
 * remembers the second has remembered the first. */
static void replay(const struct memfs *m, struct tree *t)
{
    t->n = 0;
    for (unsigned i = 0; i < m->log_n; i++) {
        const struct memfs_done *d = &m->log[i];
        if (d->what == DONE_MAKE)
            set(t, d->dir, d->name, d->node);
        if (d->what == DONE_RENAME) {
            struct entry *x = entry_of(t, d->dir, d->name);
            if (x && x->node == d->node)
                drop(t, x);
            set(t, d->dir_to, d->name_to, d->node);
        }
        if (d->what == DONE_REMOVE)
            drop(t, entry_of(t, d->dir, d->name));
    }
}

/* The directory of a path and its last name.  -errno. */
static int walk(const struct memfs *m, struct tree *t, const char *path, const char **last)
{
    int dir = 0;
    replay(m, t);
    for (;;) {
        const char *slash = strchr(path, '/');
        char part[96];
        if (!slash) {
            *last = path;
            return m->is_dir[dir] ? dir : -ENOTDIR;
        }
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        struct entry *x = entry_of(t, dir, part);
        if (!x)
            return -ENOENT;
        dir = x->node;
        path = slash + 1;
    }
}

static int node_of(const struct memfs *m, struct tree *t, const char *path)
{
    const char *last;
    int dir = walk(m, t, path, &last);
    if (dir < 0 || !*last)
        return dir;
    struct entry *x = entry_of(t, dir, last);
    return x ? x->node : -ENOENT;
}

static size_t size_of(const struct memfs *m, int node)
{
    size_t n = 0;
    for (unsigned i = 0; i < m->log_n; i++)
        if (m->log[i].what == DONE_WRITE && m->log[i].node == node && m->log[i].at + m->log[i].n > n)
            n = m->log[i].at + m->log[i].n;
    return n;
}

static struct memfs_done *remember(struct memfs *m, struct memfs_done d)
{
    assert(m->log_n < MEMFS_LOG_MAX);
    m->log[m->log_n] = d;
    return &m->log[m->log_n++];
}

/* Whether this call happens at all. */
static int arrive(struct memfs *m, enum memfs_call call)
{
    if (m->stop_at >= 0 && m->calls >= m->stop_at)
        return -EINTR;
    m->calls++;
    if (m->fail_nth && m->fail_call == call && --m->fail_nth == 0)
        return -m->fail_errno;
    return 0;
}

static int take_file(struct memfs *m, int node)
{
    for (int i = 0; i < MEMFS_FILES_MAX; i++)
        if (!m->files[i]) {
            m->files[i] = node + 1;
            return i;
        }
    return -EMFILE;
}

static int fs_open(void *ctx, const char *path)
{
    struct tree t;
    int r = arrive(ctx, MEMFS_OPEN), node = r ? r : node_of(ctx, &t, path);
    return node < 0 ? node : take_file(ctx, node);
}

static int make(struct memfs *m, const char *path, bool dir)
{
    struct tree t;
    const char *last;
    int parent = walk(m, &t, path, &last);
    if (parent < 0)
        return parent;
    if (entry_of(&t, parent, last))
        return -EEXIST;
    assert(m->nodes_n < MEMFS_NODES_MAX && strlen(last) < 96);
    int node = m->nodes_n++;
    m->is_dir[node] = dir;
    struct memfs_done *d = remember(m, (struct memfs_done){.what = DONE_MAKE, .dir = parent, .node = node});
    snprintf(d->name, sizeof d->name, "%s", last);
    return node;
}

static int fs_create(void *ctx, const char *path)
{
    int r = arrive(ctx, MEMFS_CREATE), node = r ? r : make(ctx, path, false);
    return node < 0 ? node : take_file(ctx, node);
}

static int fs_mkdir(void *ctx, const char *path)
{
    int r = arrive(ctx, MEMFS_MKDIR), node = r ? r : make(ctx, path, true);
    return node < 0 ? node : 0;
}

static int fs_read(void *ctx, int file, uint64_t at, void *to, size_t n)
{
    struct memfs *m = ctx;
    int r = arrive(m, MEMFS_READ);
    if (r)
        return r;
    assert(m->files[file]);
    if (at + n > size_of(m, m->files[file] - 1))
        return -EIO;
    memset(to, 0, n);
    for (unsigned i = 0; i < m->log_n; i++) {
        const struct memfs_done *d = &m->log[i];
        if (d->what != DONE_WRITE || d->node != m->files[file] - 1)
            continue;
        size_t from = d->at > at ? d->at : (size_t)at, end = d->at + d->n < at + n ? d->at + d->n : (size_t)at + n;
        if (from < end)
            memcpy((char *)to + (from - at), d->bytes + (from - d->at), end - from);
    }
    return 0;
}

static int fs_reserve(void *ctx, int file, uint64_t bytes)
{
    (void)file;
    (void)bytes;
    return arrive(ctx, MEMFS_RESERVE);
}

static int fs_write(void *ctx, int file, uint64_t at, const void *bytes, size_t n)
{
    struct memfs *m = ctx;
    int r = arrive(m, MEMFS_WRITE);
    if (r)
        return r;
    assert(m->files[file]);
    struct memfs_done *d =
        remember(m, (struct memfs_done){.what = DONE_WRITE, .node = m->files[file] - 1, .at = (size_t)at, .n = n});
    d->bytes = malloc(n + 1);
    memcpy(d->bytes, bytes, n);
    return 0;
}

/* A sync that fails has lost what it should have written: as kernels do. */
static int fs_sync(void *ctx, int file)
{
    struct memfs *m = ctx;
    bool stopped = m->stop_at >= 0 && m->calls >= m->stop_at;
    int r = arrive(m, MEMFS_SYNC);
    for (unsigned i = 0; !stopped && i < m->log_n; i++) {
        struct memfs_done *d = &m->log[i];
        if (d->what != DONE_WRITE || d->node != m->files[file] - 1 || d->on_disk)
            continue;
        if (r)
            memset(d->bytes, 0, d->n);
        else
            d->on_disk = true;
    }
    return r;
}

static void fs_close(void *ctx, int file)
{
    ((struct memfs *)ctx)->files[file] = 0;
}

static int fs_stat(void *ctx, const char *path, struct fs_stat *to)
{
    struct tree t;
    struct memfs *m = ctx;
    int r = arrive(m, MEMFS_STAT), node = r ? r : node_of(m, &t, path);
    if (node < 0)
        return node;
    *to = (struct fs_stat){.kind = m->is_dir[node] ? FS_DIR : FS_FILE, .bytes = size_of(m, node), .changed_sec = 1000};
    return 0;
}

static int fs_list(void *ctx, const char *path, fs_entry_fn *each, void *arg)
{
    struct tree t;
    struct memfs *m = ctx;
    int r = arrive(m, MEMFS_LIST), node = r ? r : node_of(m, &t, path);
    if (node < 0)
        return node;
    for (int i = 0; i < t.n; i++)
        if (t.v[i].dir == node && (r = each(arg, t.v[i].name, m->is_dir[t.v[i].node] ? FS_DIR : FS_FILE)))
            return r;
    return 0;
}

static int has_entries(const struct tree *t, int node)
{
    for (int i = 0; i < t->n; i++)
        if (t->v[i].dir == node)
            return 1;
    return 0;
}

static int fs_rename(void *ctx, const char *from, const char *to, bool replace)
{
    struct tree t;
    struct memfs *m = ctx;
    const char *name, *name_to;
    int r = arrive(m, MEMFS_RENAME);
    int dir = r ? r : walk(m, &t, from, &name);
    int dir_to = dir < 0 ? dir : walk(m, &t, to, &name_to);
    if (dir_to < 0)
        return dir_to;
    struct entry *x = entry_of(&t, dir, name), *y = entry_of(&t, dir_to, name_to);
    if (!x)
        return -ENOENT;
    if (y && (!replace || has_entries(&t, y->node)))
        return -EEXIST;
    struct memfs_done *d =
        remember(m, (struct memfs_done){.what = DONE_RENAME, .dir = dir, .dir_to = dir_to, .node = x->node});
    snprintf(d->name, sizeof d->name, "%s", name);
    snprintf(d->name_to, sizeof d->name_to, "%s", name_to);
    return 0;
}

static int fs_remove(void *ctx, const char *path)
{
    struct tree t;
    struct memfs *m = ctx;
    const char *last;
    int r = arrive(m, MEMFS_REMOVE), dir = r ? r : walk(m, &t, path, &last);
    if (dir < 0)
        return dir;
    struct entry *x = entry_of(&t, dir, last);
    if (!x)
        return -ENOENT;
    if (has_entries(&t, x->node))
        return -ENOTEMPTY;
    struct memfs_done *d = remember(m, (struct memfs_done){.what = DONE_REMOVE, .dir = dir, .node = x->node});
    snprintf(d->name, sizeof d->name, "%s", last);
    return 0;
}

static int fs_sync_dir(void *ctx, const char *path)
{
    struct tree t;
    struct memfs *m = ctx;
    int r = arrive(m, MEMFS_SYNC_DIR), node = r ? r : node_of(m, &t, path);
    if (node < 0)
        return node;
    for (unsigned i = 0; i < m->log_n; i++) {
        struct memfs_done *d = &m->log[i];
        if (d->what != DONE_WRITE && (d->dir == node || (d->what == DONE_RENAME && d->dir_to == node)))
            d->on_disk = true;
    }
    return 0;
}

/* There are no links here. */
static int fs_target(void *ctx, const char *path, char *to, size_t room)
{
    (void)ctx, (void)path, (void)to, (void)room;
    return -EINVAL;
}

struct ckpt_fs memfs_table(struct memfs *m)
{
    return (struct ckpt_fs){.ctx = m,
                            .name = "memory",
                            .open = fs_open,
                            .create = fs_create,
                            .read = fs_read,
                            .reserve = fs_reserve,
                            .write = fs_write,
                            .sync = fs_sync,
                            .close = fs_close,
                            .stat = fs_stat,
                            .target = fs_target,
                            .list = fs_list,
                            .mkdir = fs_mkdir,
                            .rename = fs_rename,
                            .remove = fs_remove,
                            .sync_dir = fs_sync_dir};
}

void memfs_init(struct memfs *m)
{
    memset(m, 0, sizeof *m);
    m->is_dir[0] = true;
    m->nodes_n = 1;
    m->stop_at = -1;
}

void memfs_free(struct memfs *m)
{
    for (unsigned i = 0; i < m->log_n; i++)
        free(m->log[i].bytes);
    m->log_n = 0;
}

void memfs_restart(struct memfs *m)
{
    memset(m->files, 0, sizeof m->files);
    m->stop_at = -1;
    m->fail_nth = 0;
}

unsigned memfs_unsynced(const struct memfs *m)
{
    unsigned n = 0;
    for (unsigned i = 0; i < m->log_n; i++)
        n += !m->log[i].on_disk;
    return n;
}

void memfs_power_loss(struct memfs *m, uint64_t keep)
{
    unsigned kept = 0, unsynced = 0;
    memfs_restart(m);
    for (unsigned i = 0; i < m->log_n; i++) {
        struct memfs_done d = m->log[i];
        if (!d.on_disk && !(keep >> (unsynced++ % 64) & 1)) {
            free(d.bytes);
            continue;
        }
        d.on_disk = true;
        m->log[kept++] = d;
    }
    m->log_n = kept;
}

void memfs_copy(struct memfs *to, const struct memfs *from)
{
    *to = *from;
    for (unsigned i = 0; i < to->log_n; i++)
        if (from->log[i].bytes) {
            to->log[i].bytes = malloc(from->log[i].n + 1);
            memcpy(to->log[i].bytes, from->log[i].bytes, from->log[i].n);
        }
}

void memfs_flip(struct memfs *m, const char *path, size_t at)
{
    struct tree t;
    int node = node_of(m, &t, path);
    for (unsigned i = 0; i < m->log_n; i++) {
        struct memfs_done *d = &m->log[i];
        if (d->what == DONE_WRITE && d->node == node && at >= d->at && at < d->at + d->n)
            d->bytes[at - d->at] ^= 1;
    }
}
