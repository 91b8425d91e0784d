/* How a checkpoint comes to be, in an order in which a crash or a loss of power at any moment leaves the old one or the
 * new one, never half:
 *
 *   commit_open      coordinator: the root is one of ours; leftovers of a commit that was given up are out of the way
 *   commit_join      each writer: the stage is there (who comes first makes it)
 *   commit_write     each writer: reserve, write, sync the file and its directory; its checksums come back
 *   commit_publish   coordinator, when all files are reported: if they stand there, manifest, sync, rename to the final
 *                    name, sync: from here on it exists; last the hint which one is the latest.  What stands under
 *                    that name already stays if it is the same, byte by byte; else it is moved to the trash before,
 *                    but for another job's, and for what Megatron has written itself: that is an error
 *
 * COMMIT_MARKER is for stores on which the rename of a directory is not atomic: files go to the final directory at
 * once, and the manifest, written last, makes them a checkpoint.
 *
 * An error leaves the stage to gc and older checkpoints as they are. */
#ifndef SNAPSHOT_COMMIT_H
#define SNAPSHOT_COMMIT_H
#include <stdbool.h>

#include "ckpt/fs.h"
#include "ckpt/layout.h"
#include "ckpt/manifest.h"

enum commit_mode { COMMIT_RENAME, COMMIT_MARKER };

struct commit {
    const struct ckpt_fs *fs;
    struct el_mem *mem;
    enum ckpt_layout layout;
    enum commit_mode mode;
    int64_t step;
    uint64_t round;    /* its number, for the stage's name */
    const char *nonce; /* drawn for this commit, of letters and digits: two commits never share a stage */
    /* For who watches from another thread, NULL: nobody does.  done_bytes: counted up while files are written; stop:
     * once it is set the next piece is not written any more, and the file fails with ECANCELED. */
    _Atomic uint64_t *done_bytes;
    const _Atomic bool *stop;
    bool apart; /* the stage is this commit's alone, whatever the layout: several nodes write into it */
    bool local; /* … each into a root of its own: what stands there already stays only if it is of the same lineage */
};

/* Where the files go, and what the checkpoint will be called. */
void commit_paths(const struct commit *c, char stage[CKPT_PATH_MAX], char final[CKPT_PATH_MAX]);

/* The root says that it is elrun's.  -1: it cannot be written to, or is of another version. */
int commit_mark(const struct commit *c, struct el_err *e);

int commit_open(const struct commit *c, struct el_err *e);
int commit_join(const struct commit *c, struct el_err *e);

/* Writes n bytes as one file and fills *out (name is the caller's, chunks belongs to c->mem).  A failed sync makes the
 * file worthless: it is removed and written once more under another name.  No space is told with what to do. */
int commit_write(const struct commit *c, const char *name, const void *bytes, size_t n, struct manifest_file *out,
                 struct el_err *e);

struct commit_result {
    bool existed;           /* somebody else had committed this step: theirs is the same, and stands */
    struct el_err replaced; /* what was wrong with one that is in the trash now; status 0: there was none */
    struct el_err latest;   /* why the hint could not be written, though the checkpoint is there */
};

/* step, nonce and layout of m are filled in from c.  A file of m that the stage does not have: CKPT_INCOMPLETE. */
int commit_publish(const struct commit *c, struct manifest *m, struct commit_result *result, struct el_err *e);

/* Makes this file, CKPT_LATEST_FILE or CKPT_TRACKER_FILE, name this step. */
int commit_hint(const struct ckpt_fs *fs, const char *file, enum ckpt_layout layout, int64_t step, const char *nonce,
                struct el_err *e);

/* Writes text as path, by a temporary name, so that it is there whole or not at all. */
int commit_replace(const struct ckpt_fs *fs, const char *path, const char *nonce, const void *text, size_t n,
                   struct el_err *e);

#endif
