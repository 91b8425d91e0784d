/* Deletes checkpoints that are not needed any more: renamed away first, so that nobody meets half of one. */
#ifndef CKPT_GC_H
#define CKPT_GC_H
#include "ckpt/retain.h"
#include "ckpt/scan.h"

struct gc {
    const struct ckpt_fs *fs;
    struct el_mem *mem;
    struct retain_rule rule;
    bool dry_run;
    bool foreign;       /* also runs other than the one that committed last; each for itself */
    const char *run_id; /* the run that is meant; NULL: the one that committed last */
    const char *nonce;
    /* Before anything goes: that the newest of a run, because of which its older ones go, is whole, and of one node's
     * parts also the one before it.  -1 and *e: it is not, or cannot be read, and nothing is deleted at all.  NULL: the
     * caller knows. */
    int (*prove)(void *ctx, const struct scan_entry *x, struct el_err *e);
    /* Writes a small file so that it is there whole or not at all: commit_replace(). */
    int (*replace)(const struct ckpt_fs *fs, const char *path, const char *nonce, const void *text, size_t n,
                   struct el_err *e);
    /* tells what happens to an entry, why NULL: it goes (a stage, too). */
    void (*each)(void *ctx, const struct scan_entry *x, const char *why);
    void *ctx;
    /* what was done */
    size_t gone, kept;
    uint64_t bytes;
};

/* What was chosen stays if it, or what it would go because of, is not what it was any more when its turn comes, or if
 * it is pinned or read now.  Hints, `latest` and Megatron's tracker, name the newest of its run before what they name
 * goes, and at the end the newest of all if they name nothing.
 *
 * The scan's valid entries are checked; those that prove() was asked about are marked there.  -1: something is not
 * whole, or could not be deleted: *e names it; what was deleted before is gone. */
int gc_run(struct gc *g, struct scan *s, struct el_err *e);

/* Deletes a directory with all that is in it; links are removed, not followed. */
int gc_remove(const struct ckpt_fs *fs, const char *path);

#endif
