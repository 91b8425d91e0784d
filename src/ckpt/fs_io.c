#include <errno.h>
#include <string.h>
#include <time.h>

#include "ckpt/fs.h"
#include "util/parse.h"
#include "util/time.h"

#define STALE_PAUSE EL_MS(100)
#define STALE_TRIES (EL_SEC(30) / STALE_PAUSE)
#define MOVE_TRIES  10

int fs_fail(const struct ckpt_fs *fs, int result, const char *what, const char *path, struct el_err *e)
{
    char shown[EL_PATH_MAX], root[EL_PATH_MAX];
    int sys = -result;
    enum el_exit status =
        sys == ENOENT || sys == EIO || sys == ENOTDIR || sys == EFBIG || sys == ENXIO    ? EL_EXIT_NOINPUT
        : sys == EACCES || sys == EPERM || sys == ELOOP || sys == EXDEV || sys == EINVAL ? EL_EXIT_NOPERM
                                                                                         : EL_EXIT_CANTCREAT;
    el_show_path(path, shown, sizeof shown);
    el_show_path(fs->name, root, sizeof root);
    if (sys == ELOOP || sys == EXDEV)
        return el_fail(e, status, "%s %s/%s: a component of this path is a link or leads out of %s", what, root, shown,
                       root);
    if (sys == ENXIO)
        return el_fail(e, status, "%s %s%s%s: it is no regular file", what, root, *path ? "/" : "", shown);
    return el_fail_sys(e, status, sys, "%s %s%s%s", what, root, *path ? "/" : "", shown);
}

int fs_open_fresh(const struct ckpt_fs *fs, const char *path)
{
    const struct timespec pause = {.tv_nsec = STALE_PAUSE * (1000000000 / EL_SEC(1))};
    int file = fs->open(fs->ctx, path);
    for (el_usec i = 0; file == -ESTALE && i < STALE_TRIES; i++) {
        nanosleep(&pause, NULL);
        file = fs->open(fs->ctx, path);
    }
    return file;
}

int fs_read_fresh(const struct ckpt_fs *fs, const char *path, int *file, uint64_t at, void *to, size_t n)
{
    int r = fs->read(fs->ctx, *file, at, to, n);
    if (r != -ESTALE)
        return r;
    int again = fs_open_fresh(fs, path);
    if (again < 0)
        return again;
    fs->close(fs->ctx, *file);
    *file = again;
    return fs->read(fs->ctx, again, at, to, n);
}

int fs_read_small(const struct ckpt_fs *fs, const char *path, size_t max, struct el_mem *mem, char **text, size_t *n)
{
    struct fs_stat st;
    *text = NULL;
    int r = fs->stat(fs->ctx, path, &st);
    if (r < 0)
        return r;
    if (st.kind != FS_FILE)
        return st.kind == FS_DIR ? -EISDIR : st.kind == FS_LINK ? -ELOOP : -ENXIO;
    if (st.bytes > max)
        return -EFBIG;
    int file = fs_open_fresh(fs, path);
    if (file < 0)
        return file;
    char *to = el_alloc(mem, (size_t)st.bytes + 1);
    r = to ? fs_read_fresh(fs, path, &file, 0, to, (size_t)st.bytes) : -ENOMEM;
    fs->close(fs->ctx, file);
    if (r < 0) {
        el_free(mem, to);
        return r;
    }
    *text = to;
    *n = (size_t)st.bytes;
    return 0;
}

int fs_move_into(const struct ckpt_fs *fs, const char *path, const char *dir, const char *to)
{
    int r = -ENOENT;
    for (int tries = 0; tries < MOVE_TRIES; tries++) {
        struct fs_stat st;
        r = fs->rename(fs->ctx, path, to, false);
        if (r != -ENOENT)
            return r;
        if (fs->stat(fs->ctx, path, &st) == -ENOENT)
            return 1;
        int made = fs->mkdir(fs->ctx, dir);
        if (made < 0 && made != -EEXIST)
            return made;
    }
    return r;
}
