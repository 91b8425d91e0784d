#include "ckpt/check.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/crc32c.h"
#include "ckpt/layout.h"
#include "util/parse.h"

/* "dir/name", or "name" where dir is "". */
static int check_join(char out[CKPT_PATH_MAX], const char *dir, const char *name)
{
    int n = snprintf(out, CKPT_PATH_MAX, "%s%s%s", dir, *dir ? "/" : "", name);
    return n < 0 || n >= CKPT_PATH_MAX ? -ENAMETOOLONG : 0;
}

int check_open(struct checked *c, const struct ckpt_fs *fs, struct el_mem *mem, const char *dir, struct el_err *e)
{
    char path[CKPT_PATH_MAX];
    char *text = NULL;
    size_t n = 0;
    *c = (struct checked){.mem = mem};
    int r = check_join(path, dir, CKPT_MANIFEST_FILE);
    if (r >= 0)
        r = fs_read_small(fs, path, MANIFEST_BYTES_MAX, mem, &text, &n);
    if (r == -ENOENT)
        return ckpt_fail(e, CKPT_INCOMPLETE, "there is no " CKPT_MANIFEST_FILE);
    if (r < 0)
        return fs_fail(fs, r, "read", path, e);
    struct el_err why = {0};
    r = manifest_read(&c->m, mem, text, n, &why);
    el_free(mem, text); /* strings are those of the tree */
    if (r) {
        manifest_free(&c->m);
        return el_fail(e, (enum el_exit)why.status, CKPT_MANIFEST_FILE ": %s", why.text);
    }
    return 0;
}

void check_close(struct checked *c)
{
    manifest_free(&c->m);
}

int check_sizes(const struct ckpt_fs *fs, const char *dir, const struct manifest *m, struct el_err *e)
{
    char path[CKPT_PATH_MAX], shown[EL_PATH_MAX];
    for (size_t i = 0; i < m->files_n; i++) {
        const struct manifest_file *f = &m->files[i];
        struct fs_stat st;
        int r = check_join(path, dir, f->name);
        if (r >= 0)
            r = fs->stat(fs->ctx, path, &st);
        el_show_path(f->name, shown, sizeof shown);
        if (r == -ENOENT || r == -ENOTDIR)
            return ckpt_fail(e, CKPT_INCOMPLETE, "%s is missing", shown);
        if (r < 0)
            return fs_fail(fs, r, "look at", path, e);
        if (st.kind != FS_FILE)
            return ckpt_fail(e, CKPT_DAMAGED, "%s is no file", shown);
        if (st.bytes != f->size)
            return ckpt_fail(e, CKPT_DAMAGED, "%s has %llu bytes, the manifest says %llu", shown,
                             (unsigned long long)st.bytes, (unsigned long long)f->size);
    }
    return 0;
}

int check_chunks(const struct ckpt_fs *fs, const char *dir, const struct manifest_file *f, size_t from, size_t to,
                 struct el_mem *mem, size_t *bad, _Atomic uint64_t *bytes_done, struct el_err *e)
{
    char path[CKPT_PATH_MAX], shown[EL_PATH_MAX];
    int r = check_join(path, dir, f->name);
    int file = r < 0 ? r : fs_open_fresh(fs, path);
    if (file < 0)
        return fs_fail(fs, file, "read", path, e);
    size_t room = f->size < f->chunk ? (size_t)f->size : (size_t)f->chunk;
    char *piece = el_alloc(mem, room);
    if (!piece)
        el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (size_t i = from; piece && i < to; i++) {
        uint64_t at = i * f->chunk, left = f->size - at;
        size_t n = left < f->chunk ? (size_t)left : (size_t)f->chunk;
        r = fs_read_fresh(fs, path, &file, at, piece, n);
        if (r < 0) {
            *bad = i;
            el_show_path(f->name, shown, sizeof shown);
            el_fail_sys(e, (enum el_exit)CKPT_DAMAGED, -r, "%s: bytes %llu-%llu cannot be read", shown,
                        (unsigned long long)at, (unsigned long long)(at + n));
            break;
        }
        uint32_t crc = crc32c(0, piece, n);
        if (crc != f->chunks[i]) {
            *bad = i;
            ckpt_fail(e, CKPT_DAMAGED, "%s: bytes %llu-%llu have CRC32C %08x, the manifest says %08x",
                      el_show_path(f->name, shown, sizeof shown), (unsigned long long)at, (unsigned long long)(at + n),
                      crc, f->chunks[i]);
            break;
        }
        if (bytes_done)
            atomic_fetch_add_explicit(bytes_done, n, memory_order_relaxed);
    }
    el_free(mem, piece);
    fs->close(fs->ctx, file);
    return e->status ? -1 : 0;
}

bool check_is_valid(const struct ckpt_fs *fs, struct el_mem *mem, const char *dir, int64_t step, struct el_err *e)
{
    struct checked c;
    struct el_err why = {0};
    int r = check_open(&c, fs, mem, dir, &why);
    if (!r && step >= 0 && c.m.step != step)
        r = ckpt_fail(&why, CKPT_DAMAGED, CKPT_MANIFEST_FILE " is of step %lld", (long long)c.m.step);
    if (!r)
        r = check_sizes(fs, dir, &c.m, &why);
    check_close(&c);
    if (r && e)
        *e = why;
    return r == 0;
}
