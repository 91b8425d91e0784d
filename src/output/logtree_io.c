#include "output/logtree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/rng.h"

#define NAME_TRIES  64
#define DEPTH_MAX   6
#define PROBE_BYTES 4096

static int logtree_cannot(struct el_err *e, int sys, const char *what, const char *path)
{
    if (sys == ENOTDIR || sys == EEXIST)
        return el_fail_sys(e, EL_EXIT_CANTCREAT, ENOTDIR, "log directory %s", path);
    return el_fail_sys(e, EL_EXIT_CANTCREAT, sys, "log directory: cannot %s %s", what, path);
}

/* mkdir -p */
static int logtree_make_path(const char *path, struct el_err *e)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof part)
        return logtree_cannot(e, ENAMETOOLONG, "make", path);
    for (size_t i = 1; i <= n; i++) {
        if (i < n && path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        struct stat st;
        if (mkdir(part, 0700) == 0 || (errno == EEXIST && stat(part, &st) == 0 && S_ISDIR(st.st_mode)))
            continue;
        /* A directory that exists may refuse mkdir for other reasons: read-only, an automounter. */
        int sys = errno;
        if (sys != EEXIST && stat(part, &st) == 0 && S_ISDIR(st.st_mode))
            continue;
        return logtree_cannot(e, sys, "make", part);
    }
    return 0;
}

/* Directories cost nothing on some full disks: only bytes show whether logs have a place. */
static int probe_room(const char *dir, struct el_err *e)
{
    char path[PATH_MAX];
    static const char zeros[PROBE_BYTES];
    if (snprintf(path, sizeof path, "%s/.room", dir) >= (int)sizeof path)
        return logtree_cannot(e, ENAMETOOLONG, "write to", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return logtree_cannot(e, errno, "write to", dir);
    ssize_t n = write(fd, zeros, sizeof zeros);
    int sys = n < 0 ? errno : ENOSPC;
    if (close(fd) < 0 && n == PROBE_BYTES) {
        n = -1;
        sys = errno;
    }
    unlink(path);
    return n == PROBE_BYTES ? 0 : logtree_cannot(e, sys, "write to", dir);
}

typedef size_t name_fn(char to[LOGTREE_NAME_MAX], const char *run_id, uint64_t chance);

static size_t temporary_name(char to[LOGTREE_NAME_MAX], const char *run_id, uint64_t chance)
{
    (void)run_id;
    return logtree_temporary_name(to, chance);
}

/* A directory with a fresh name in parent; the path is the caller's. */
static char *make_fresh(const char *parent, name_fn *fn, const char *run_id, uint64_t chance, mode_t mode,
                        struct el_err *e)
{
    char name[LOGTREE_NAME_MAX], path[PATH_MAX];
    struct el_rng rng = {.state = chance};
    for (int i = 0; i < NAME_TRIES; i++) {
        fn(name, run_id, el_rng_next(&rng));
        if (snprintf(path, sizeof path, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name) >= (int)sizeof path)
            return logtree_cannot(e, ENAMETOOLONG, "make a directory in", parent), NULL;
        if (mkdir(path, mode) == 0) {
            char *copy = strdup(path);
            if (!copy)
                logtree_cannot(e, ENOMEM, "make", path);
            return copy;
        }
        if (errno != EEXIST)
            return logtree_cannot(e, errno, "make a directory in", parent), NULL;
    }
    return logtree_cannot(e, EEXIST, "make a directory in", parent), NULL;
}

int logtree_make_run(const char *base, const char *tmpdir, const char *run_id, uint64_t chance, char **run_dir,
                     char **temporary, struct el_err *e)
{
    *run_dir = *temporary = NULL;
    char real[PATH_MAX];
    const char *parent = base;
    if (!base) {
        const char *in = tmpdir && tmpdir[0] ? tmpdir : "/tmp";
        if (!realpath(in, real))
            logtree_cannot(e, errno, "use", in);
        else
            *temporary = make_fresh(real, temporary_name, NULL, chance, 0700, e);
        if (!*temporary)
            return in == tmpdir ? el_prefix(e, "TMPDIR") : -1;
        parent = *temporary;
    } else {
        if (logtree_make_path(base, e) < 0)
            return -1;
        if (!realpath(base, real))
            return logtree_cannot(e, errno, "use", base);
        parent = real;
    }
    *run_dir = make_fresh(parent, logtree_run_name, run_id, chance, 0700, e);
    if (*run_dir && probe_room(*run_dir, e) == 0)
        return 0;
    if (*run_dir)
        rmdir(*run_dir);
    if (*temporary)
        rmdir(*temporary);
    free(*run_dir);
    free(*temporary);
    *run_dir = *temporary = NULL;
    return -1;
}

/* A link that is replaced in one step: whoever follows it finds the old or the new attempt, never nothing. */
static int point_latest(const char *run_dir, const char *attempt)
{
    char link[PATH_MAX], fresh[PATH_MAX];
    if (snprintf(link, sizeof link, "%s/latest", run_dir) >= (int)sizeof link ||
        snprintf(fresh, sizeof fresh, "%s/.latest", run_dir) >= (int)sizeof fresh)
        return -1;
    unlink(fresh);
    return symlink(attempt, fresh) == 0 ? rename(fresh, link) : -1;
}

int logtree_make_attempt(const char *run_dir, const char *attempt, unsigned nproc, struct el_err *e)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", run_dir, attempt);
    if (n < 0 || n + 16 >= (int)sizeof path)
        return logtree_cannot(e, ENAMETOOLONG, "make a directory in", run_dir);
    /* Somebody may have cleared the log directory since the last attempt: that must not keep the job from restarting.
     */
    if (logtree_make_path(path, e) < 0)
        return -1;
    for (unsigned rank = 0; rank < nproc; rank++) {
        snprintf(path + n, sizeof path - (size_t)n, "/%u", rank);
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return logtree_cannot(e, errno, "make", path);
    }
    /* Some file systems know no links; the logs are there without it. */
    (void)point_latest(run_dir, attempt);
    return 0;
}

int logtree_open(const char *path, struct el_err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
    if (fd < 0)
        el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "log file %s", path);
    return fd;
}

/* One entry of a directory: a file with bytes, an empty one, … */
enum logtree_entry { ENTRY_DIR, ENTRY_EMPTY, ENTRY_CONTENT };

static enum logtree_entry logtree_entry_kind(int dir, const char *name)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return ENTRY_CONTENT;
    if (S_ISDIR(st.st_mode))
        return ENTRY_DIR;
    bool empty = (S_ISREG(st.st_mode) && st.st_size == 0) || (S_ISLNK(st.st_mode) && strcmp(name, "latest") == 0);
    return empty ? ENTRY_EMPTY : ENTRY_CONTENT;
}

/* Walks the directory fd, which it takes over.  False if something is worth keeping; with `sweep` what is empty goes.
 */
static bool walk(int fd, bool sweep, int depth)
{
    DIR *d = fd >= 0 && depth < DEPTH_MAX ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    bool empty = true;
    for (struct dirent *at; empty && (at = readdir(d));) {
        if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0)
            continue;
        enum logtree_entry kind = logtree_entry_kind(fd, at->d_name);
        if (kind == ENTRY_DIR)
            empty = walk(openat(fd, at->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), sweep, depth + 1);
        else
            empty = kind == ENTRY_EMPTY;
        if (empty && sweep)
            empty = unlinkat(fd, at->d_name, kind == ENTRY_DIR ? AT_REMOVEDIR : 0) == 0;
    }
    closedir(d);
    return empty;
}

static int open_dir(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool logtree_remove_empty(const char *temporary)
{
    /* Looks first, so that a tree that is kept stays whole. */
    return walk(open_dir(temporary), false, 0) && walk(open_dir(temporary), true, 0) && rmdir(temporary) == 0;
}

static long logtree_read_end(int fd, char *to, size_t size, uint64_t *total_bytes)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    *total_bytes = (uint64_t)st.st_size;
    off_t from = (uint64_t)st.st_size > size ? st.st_size - (off_t)size : 0;
    size_t got = 0;
    while (got < size) {
        ssize_t n = pread(fd, to + got, size - got, from + (off_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (long)got;
}

long logtree_tail(const char *path, char *to, size_t size, uint64_t *total_bytes)
{
    /* Non-blocking: what stands under the name may have become a pipe. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return -1;
    long got = logtree_read_end(fd, to, size, total_bytes);
    int sys = errno;
    close(fd);
    errno = sys;
    return got;
}
