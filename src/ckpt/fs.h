/* What src/ckpt asks of a file system, as one table: root_io.c answers with system calls below one directory, the tests
 * with a file system in memory that stops at any call and loses what was not synced.
 *
 * Paths are relative to the root.  No component may lead out of it: a link, "..", an absolute path are refused with
 * -ELOOP, -EXDEV or -EINVAL.  All calls return 0 or more, or -errno.  Calls that only read may come from several
 * threads at once. */
#ifndef CKPT_FS_H
#define CKPT_FS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt/ckpt.h"
#include "util/mem.h"

enum fs_kind { FS_FILE, FS_DIR, FS_LINK, FS_OTHER };

struct fs_stat {
    enum fs_kind kind;
    uint64_t bytes;
    int64_t changed_sec; /* since 1970, by the clock of the file system */
};

typedef int fs_entry_fn(void *arg, const char *name, enum fs_kind kind); /* not 0: stop, and list() returns it */

struct ckpt_fs {
    void *ctx;
    const char *name;                                                  /* of the root, for messages */
    int (*open)(void *ctx, const char *path);                          /* for reading: a handle; -ENXIO: no file */
    int (*create)(void *ctx, const char *path);                        /* for writing; -EEXIST if it is there */
    int (*read)(void *ctx, int file, uint64_t at, void *to, size_t n); /* all n bytes; less: -EIO */
    int (*reserve)(void *ctx, int file, uint64_t bytes);               /* -ENOSPC now, not half-way */
    int (*write)(void *ctx, int file, uint64_t at, const void *bytes, size_t n); /* all of them */
    int (*sync)(void *ctx, int file);                                            /* content and size are on the disk */
    void (*close)(void *ctx, int file);
    int (*stat)(void *ctx, const char *path, struct fs_stat *to);           /* not through a link */
    int (*target)(void *ctx, const char *path, char *to, size_t room);      /* of a link, with its 0; -ENAMETOOLONG */
    int (*list)(void *ctx, const char *path, fs_entry_fn *each, void *arg); /* in any order, without . and .. */
    int (*mkdir)(void *ctx, const char *path);
    int (*rename)(void *ctx, const char *from, const char *to, bool replace); /* else -EEXIST if `to` is there */
    int (*remove)(void *ctx, const char *path);                               /* a file or an empty directory */
    int (*sync_dir)(void *ctx, const char *path);                             /* its entries are on the disk */
};

/* Fills *e with "what root/path: No such file or directory" for a negative result, and returns -1.  Its status is 66
 * for what is missing or cannot be read, 77 for what is not allowed, 73 for what cannot be written. */
int fs_fail(const struct ckpt_fs *fs, int result, const char *what, const char *path, struct el_err *e);

/* Opens, and reads, as the calls of the table do.  What another host has replaced may be stale here for a while (NFS):
 * then it is looked for by its path again, for up to 30 s.  Never in the loop's thread. */
int fs_open_fresh(const struct ckpt_fs *fs, const char *path);
int fs_read_fresh(const struct ckpt_fs *fs, const char *path, int *file, uint64_t at, void *to, size_t n);

/* Renames path to `to`, a name in dir, which is made if it is not there, also where another process removes it at this
 * moment.  0; 1: there is no path (any more); or -errno.  Nothing is synced. */
int fs_move_into(const struct ckpt_fs *fs, const char *path, const char *dir, const char *to);

/* The whole of a small file, at most `max` bytes (more: -EFBIG); ends with a 0 that is not counted.  *text is the
 * caller's, by el_free(mem).  0 or -errno. */
int fs_read_small(const struct ckpt_fs *fs, const char *path, size_t max, struct el_mem *mem, char **text, size_t *n);

#endif
