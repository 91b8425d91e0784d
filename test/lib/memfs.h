/* A file system in memory that can stop at any call, refuse one, and lose what was not synced.
 *
 * It keeps a log of what was done, and its state is what the log makes when it is read from the beginning.  An entry of
 * the log is on the disk once its file (for what was written) or one of its directories (for names) has been synced.  A
 * loss of power keeps those and any of the others: which, the caller says. */
#ifndef TEST_LIB_MEMFS_H
#define TEST_LIB_MEMFS_H
#include "ckpt/fs.h"

enum { MEMFS_LOG_MAX = 512, MEMFS_ENTRIES_MAX = 256, MEMFS_NODES_MAX = 256, MEMFS_FILES_MAX = 16 };

enum memfs_call {
    MEMFS_OPEN,
    MEMFS_CREATE,
    MEMFS_READ,
    MEMFS_RESERVE,
    MEMFS_WRITE,
    MEMFS_SYNC,
    MEMFS_STAT,
    MEMFS_LIST,
    MEMFS_MKDIR,
    MEMFS_RENAME,
    MEMFS_REMOVE,
    MEMFS_SYNC_DIR,
    MEMFS_CALLS
};

struct memfs_done {
    enum { DONE_MAKE, DONE_RENAME, DONE_REMOVE, DONE_WRITE } what;
    int node, dir, dir_to; /* dir: the node of the directory */
    char name[96], name_to[96];
    size_t at, n;
    char *bytes; /* DONE_WRITE */
    bool on_disk;
};

struct memfs {
    struct memfs_done log[MEMFS_LOG_MAX];
    unsigned log_n;
    bool is_dir[MEMFS_NODES_MAX];
    int nodes_n;
    int files[MEMFS_FILES_MAX]; /* node + 1; 0: closed */
    long calls;                 /* so far; those that only read count, too */
    long stop_at;               /* this call and all later ones do nothing and fail; -1: never */
    enum memfs_call fail_call;  /* the fail_nth call (from 1) of this kind fails with fail_errno, once */
    long fail_nth;
    int fail_errno;
};

void memfs_init(struct memfs *m);
void memfs_free(struct memfs *m);
struct ckpt_fs memfs_table(struct memfs *m);

/* The process has ended: handles are gone, calls work again. */
void memfs_restart(struct memfs *m);

/* How many entries of the log a loss of power may take. */
unsigned memfs_unsynced(const struct memfs *m);

/* The power goes: of the unsynced entries those stay whose bit in `keep` is set (the first is bit 0; those beyond 63
 * share bits). */
void memfs_power_loss(struct memfs *m, uint64_t keep);

/* A copy, for another fate. */
void memfs_copy(struct memfs *to, const struct memfs *from);

/* Flips one bit of a file. */
void memfs_flip(struct memfs *m, const char *path, size_t at);

#endif
