#include "ckpt/root.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ckpt/layout.h"

/* --- opening below the root --------------------------------------------------------------------------------------- */

static int open_parts(const struct root *r, const char *path, int flags, mode_t mode)
{
    char part[CKPT_PATH_MAX];
    int dir = r->fd;
    for (const char *at = path;;) {
        const char *slash = strchr(at, '/');
        size_t n = slash ? (size_t)(slash - at) : strlen(at);
        int how = slash ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC : flags | O_NOFOLLOW;
        if (!n || n >= sizeof part || (n == 2 && memcmp(at, "..", 2) == 0)) {
            if (dir != r->fd)
                close(dir);
            return n && n < sizeof part ? -EXDEV : -EINVAL;
        }
        memcpy(part, at, n);
        part[n] = 0;
        int fd = openat(dir, part, how, mode), sys = errno;
        struct stat st;
        /* A link where a directory is wanted is "not a directory" to the kernel, but not to people. */
        if (fd < 0 && sys == ENOTDIR && fstatat(dir, part, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
            sys = ELOOP;
        if (dir != r->fd)
            close(dir);
        if (fd < 0)
            return -sys;
        if (!slash)
            return fd;
        dir = fd;
        at = slash + 1;
    }
}

static int open_beneath(struct root *r, const char *path, int flags, mode_t mode)
{
    flags |= O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY);
    if (!*path)
        return (flags & O_CREAT) ? -EINVAL : (flags = openat(r->fd, ".", flags)) < 0 ? -errno : flags;
    if (!r->by_parts) {
        struct open_how how = {.flags = (unsigned)flags,
                               .mode = flags & O_CREAT ? mode : 0,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
        long fd;
        do
            fd = syscall(SYS_openat2, r->fd, path, &how, sizeof how);
        while (fd < 0 && (errno == EINTR || errno == EAGAIN));
        if (fd >= 0)
            return (int)fd;
        if (errno != ENOSYS && errno != EPERM) /* EPERM: of a filter of system calls that is older than the call */
            return -errno;
        r->by_parts = errno == ENOSYS;
    }
    return open_parts(r, path, flags, mode);
}

/* The directory in which the last name of a path stands. */
static int open_parent(struct root *r, const char *path, const char **last)
{
    char dir[CKPT_PATH_MAX];
    const char *slash = strrchr(path, '/');
    *last = slash ? slash + 1 : path;
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (!**last || strcmp(*last, "..") == 0 || n >= sizeof dir)
        return -EINVAL;
    memcpy(dir, path, n);
    dir[n] = 0;
    return open_beneath(r, dir, O_PATH | O_DIRECTORY, 0);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static int root_open_file(void *ctx, const char *path)
{
    struct stat st;
    int fd = open_beneath(ctx, path, O_RDONLY | O_NONBLOCK, 0); /* a FIFO must not hold us up */
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    close(fd);
    return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
}

static int root_create(void *ctx, const char *path)
{
    struct root *r = ctx;
    int flags = O_WRONLY | O_CREAT | O_EXCL, fd = -EINVAL;
    if (!r->no_direct)
        fd = open_beneath(r, path, flags | O_DIRECT, 0644);
    if (fd != -EINVAL)
        return fd;
    /* Some file systems make the file and refuse the flag then. */
    const char *last;
    int dir = r->no_direct ? -1 : open_parent(r, path, &last);
    if (dir >= 0) {
        unlinkat(dir, last, 0);
        close(dir);
    }
    return open_beneath(r, path, flags, 0644);
}

static int root_read(void *ctx, int file, uint64_t at, void *to, size_t n)
{
    (void)ctx;
    for (char *p = to; n;) {
        ssize_t got = pread(file, p, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        p += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

static int root_reserve(void *ctx, int file, uint64_t bytes)
{
    int r;
    (void)ctx;
    if (!bytes)
        return 0;
    do
        r = fallocate(file, 0, 0, (off_t)bytes);
    while (r < 0 && errno == EINTR);
    /* Where it cannot be asked, a full disk is met while writing. */
    return r == 0 || errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
}

static int root_write_all(int file, uint64_t at, const char *p, size_t n)
{
    while (n) {
        ssize_t put = pwrite(file, p, n, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return put < 0 ? -errno : -ENOSPC;
        p += put;
        at += (uint64_t)put;
        n -= (size_t)put;
    }
    return 0;
}

static int root_write(void *ctx, int file, uint64_t at, const void *bytes, size_t n)
{
    const char *p = bytes;
    int flags = fcntl(file, F_GETFL);
    (void)ctx;
    if (flags >= 0 && (flags & O_DIRECT)) {
        size_t direct = (uintptr_t)p % ROOT_DIRECT_BYTES || at % ROOT_DIRECT_BYTES ? 0 : n - n % ROOT_DIRECT_BYTES;
        int r = root_write_all(file, at, p, direct);
        if (r < 0 && r != -EINVAL)
            return r;
        if (r == 0 && direct == n)
            return 0;
        if (r == 0) {
            p += direct;
            at += direct;
            n -= direct;
        }
        if (fcntl(file, F_SETFL, flags & ~O_DIRECT) < 0)
            return -errno;
    }
    return root_write_all(file, at, p, n);
}

/* What went through the page cache leaves it: a checkpoint must not push out what the training uses. */
static int root_sync(void *ctx, int file)
{
    int r;
    (void)ctx;
    do
        r = fsync(file);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return -errno;
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    return 0;
}

static void root_close_file(void *ctx, int file)
{
    (void)ctx;
    close(file);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static enum fs_kind kind_of(mode_t mode)
{
    return S_ISREG(mode) ? FS_FILE : S_ISDIR(mode) ? FS_DIR : S_ISLNK(mode) ? FS_LINK : FS_OTHER;
}

static int root_stat(void *ctx, const char *path, struct fs_stat *to)
{
    struct root *r = ctx;
    struct stat st;
    const char *last = "";
    int dir = *path ? open_parent(r, path, &last) : dup(r->fd);
    if (dir < 0)
        return *path ? dir : -errno;
    int bad = fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0 ? -errno : 0;
    close(dir);
    if (bad)
        return bad;
    *to = (struct fs_stat){kind_of(st.st_mode), (uint64_t)st.st_size, st.st_mtim.tv_sec};
    return 0;
}

static int root_target(void *ctx, const char *path, char *to, size_t room)
{
    const char *last;
    int dir = open_parent(ctx, path, &last);
    if (dir < 0)
        return dir;
    ssize_t n = readlinkat(dir, last, to, room);
    int r = n < 0 ? -errno : (size_t)n >= room ? -ENAMETOOLONG : 0;
    close(dir);
    if (!r)
        to[n] = 0;
    return r;
}

static enum fs_kind root_entry_kind(DIR *d, const struct dirent *x)
{
    struct stat st;
    if (x->d_type == DT_UNKNOWN) /* some file systems do not say */
        return fstatat(dirfd(d), x->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? FS_OTHER : kind_of(st.st_mode);
    return kind_of((mode_t)DTTOIF(x->d_type));
}

static int root_list(void *ctx, const char *path, fs_entry_fn *each, void *arg)
{
    int fd = open_beneath(ctx, path, O_RDONLY | O_DIRECTORY, 0), r = 0;
    if (fd < 0)
        return fd;
    DIR *d = fdopendir(fd);
    if (!d) {
        r = -errno;
        close(fd);
        return r;
    }
    for (;;) {
        errno = 0;
        const struct dirent *x = readdir(d);
        if (!x) {
            r = -errno;
            break;
        }
        if (strcmp(x->d_name, ".") == 0 || strcmp(x->d_name, "..") == 0)
            continue;
        if ((r = each(arg, x->d_name, root_entry_kind(d, x))))
            break;
    }
    closedir(d);
    return r;
}

static int root_mkdir(void *ctx, const char *path)
{
    const char *last;
    int dir = open_parent(ctx, path, &last);
    if (dir < 0)
        return dir;
    struct stat st;
    int r = mkdirat(dir, last, 0755) < 0 ? -errno : 0;
    /* Something is there: fine for a directory, and for nothing else. */
    if (r == -EEXIST && fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
        r = S_ISLNK(st.st_mode) ? -ELOOP : -ENOTDIR;
    close(dir);
    return r;
}

static int root_rename(void *ctx, const char *from, const char *to, bool replace)
{
    const char *name, *name_to;
    int dir = open_parent(ctx, from, &name);
    if (dir < 0)
        return dir;
    int dir_to = open_parent(ctx, to, &name_to);
    if (dir_to < 0) {
        close(dir);
        return dir_to;
    }
    int r = renameat2(dir, name, dir_to, name_to, replace ? 0 : RENAME_NOREPLACE) < 0 ? -errno : 0;
    /* A file system without the flag: a directory still replaces only an empty one. */
    if (r == -EINVAL && !replace)
        r = renameat(dir, name, dir_to, name_to) < 0 ? -errno : 0;
    close(dir);
    close(dir_to);
    return r;
}

static int root_remove(void *ctx, const char *path)
{
    const char *last;
    int dir = open_parent(ctx, path, &last);
    if (dir < 0)
        return dir;
    int r = unlinkat(dir, last, 0) < 0 ? -errno : 0;
    if (r == -EISDIR || r == -EPERM)
        r = unlinkat(dir, last, AT_REMOVEDIR) < 0 ? -errno : 0;
    close(dir);
    return r;
}

static int root_sync_dir(void *ctx, const char *path)
{
    int fd = open_beneath(ctx, path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    int r = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return r == -EINVAL ? 0 : r; /* a file system that has nothing to sync */
}

/* --- the root itself ---------------------------------------------------------------------------------------------- */

static int root_make_path(const char *path)
{
    char part[4096];
    if (strlen(path) >= sizeof part)
        return errno = ENAMETOOLONG, -1;
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return -1;
        *slash = '/';
    }
    return mkdir(part, 0755) < 0 && errno != EEXIST ? -1 : 0;
}

int root_open(struct root *r, const char *path, bool make, struct el_err *e)
{
    *r = (struct root){.fd = -1};
    if (make && root_make_path(path) < 0)
        return el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "%s", path);
    r->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC); /* to look into it is asked when somebody does */
    if (r->fd < 0)
        return el_fail_sys(e, errno == EACCES || errno == EPERM ? EL_EXIT_NOPERM : EL_EXIT_NOINPUT, errno, "%s", path);
    r->name = strdup(path);
    if (!r->name) {
        root_close(r);
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    }
    for (size_t n = strlen(r->name); n > 1 && r->name[n - 1] == '/';)
        r->name[--n] = 0;
    return 0;
}

void root_close(struct root *r)
{
    if (r->fd >= 0)
        close(r->fd);
    free(r->name);
    *r = (struct root){.fd = -1};
}

int root_stands(const struct root *r, struct el_err *e)
{
    struct stat named, ours;
    if (stat(r->name, &named) < 0)
        return el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "%s", r->name);
    if (fstat(r->fd, &ours) == 0 && named.st_dev == ours.st_dev && named.st_ino == ours.st_ino)
        return 0;
    return el_fail(e, EL_EXIT_CANTCREAT, "%s is another directory than it was at the start: it was moved or replaced",
                   r->name);
}

struct ckpt_fs root_table(struct root *r)
{
    return (struct ckpt_fs){.ctx = r,
                            .name = r->name,
                            .open = root_open_file,
                            .create = root_create,
                            .read = root_read,
                            .reserve = root_reserve,
                            .write = root_write,
                            .sync = root_sync,
                            .close = root_close_file,
                            .stat = root_stat,
                            .target = root_target,
                            .list = root_list,
                            .mkdir = root_mkdir,
                            .rename = root_rename,
                            .remove = root_remove,
                            .sync_dir = root_sync_dir};
}
