/* All checkpoints below a root, whoever wrote them, and what else a root holds. */
#ifndef CKPT_SCAN_H
#define CKPT_SCAN_H
#include "ckpt/fs.h"
#include "ckpt/layout.h"
#include "ckpt/inspect.h"
#include "ckpt/rank_files.h"
#include "ckpt/usual_files.h"

#define SCAN_ENTRIES_MAX 100000u
#define SCAN_LEASE_SEC   3600 /* a lease that was not touched for so long is nobody's */
#define SCAN_STAGE_SEC   3600 /* a stage in which nothing was written for so long is of a commit that was given up */

#define SCAN_STATES(X)                                                                                                 \
    X(VALID, "valid")     /* manifest, and all files with their sizes */                                               \
    X(PARTIAL, "partial") /* ours by name, without a manifest or with files missing */                                 \
    X(DAMAGED, "damaged") /* its manifest or a size is wrong */                                                        \
    X(STAGE, "stage")     /* a commit under way */                                                                     \
    X(STALE, "stale-stage")                                                                                            \
    X(ASIDE, "aside")     /* of a history that was given up (CKPT_ASIDE_DIR) */                                        \
    X(FOREIGN, "foreign") /* of a known format, without a manifest */

enum scan_state {
#define X(NAME, word) SCAN_##NAME,
    SCAN_STATES(X)
#undef X
};

const char *scan_state_word(enum scan_state s);

struct scan_entry {
    char *name; /* below the root */
    enum scan_state state;
    enum ckpt_format format;
    int64_t step;              /* -1: unknown */
    int64_t changed_sec;       /* when it was committed, else when a file of it was written last */
    uint64_t created, lineage; /* as its manifest says; 0 */
    uint64_t world, bytes;
    size_t files;
    struct rank_sets sets;    /* of a checkpoint that is not elrun's own */
    struct usual_files usual; /* the same, unless it is of a hub */
    bool emergency, pinned, leased, latest;
    bool part;              /* one node's: inspect_is_part() */
    bool proved, refused;   /* gc: it was found whole before anything went because of it; it was not */
    char *lone;             /* gc: why it stays, where no newer one has all its files; NULL */
    char *run_id;           /* "" if nobody says */
    size_t run;             /* the first entry of the same run */
    bool behind;            /* a lower step of its run was written later: the job has gone back behind it (load.h) */
    uint64_t number, coord; /* the round that wrote it; 0: nobody says */
    char *why;              /* it is not valid; "" */
};

struct scan {
    struct el_mem *mem;
    struct scan_entry *v; /* by step, then by name */
    size_t n, room;
    bool marked; /* the root is elrun's */
    int64_t now_sec;
    char latest[CKPT_PATH_MAX];
};

/* now_sec: the time of day.  -1: the root cannot be read.  scan_close() also then. */
int scan_open(struct scan *s, const struct ckpt_fs *fs, struct el_mem *mem, int64_t now_sec, struct el_err *e);
void scan_close(struct scan *s);

/* Looks again, at any later time: under this path (of its name, or of where that was moved to) still is what was found
 * there.  *other, may be NULL: something else that is whole by its manifest is. */
bool scan_is_same(const struct scan *s, const struct ckpt_fs *fs, const struct scan_entry *x, const char *path,
                  bool *other);
/* The same of pins and leases. */
void scan_hold(const struct scan *s, const struct ckpt_fs *fs, const struct scan_entry *x, bool *pinned, bool *leased);

/* The newest valid one of the run that committed last, of those that are not behind if there are any, or NULL. */
const struct scan_entry *scan_newest(const struct scan *s);

/* Whether a directory is a root of checkpoints (and not one itself). */
bool scan_is_root(const struct ckpt_fs *fs, struct el_mem *mem);

#endif
