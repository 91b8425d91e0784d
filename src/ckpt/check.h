/* Whether a directory with a manifest is what the manifest says. */
#ifndef CKPT_CHECK_H
#define CKPT_CHECK_H
#include "ckpt/fs.h"
#include "ckpt/manifest.h"

/* Reads dir's manifest: 0; -1 and *e as of manifest_read(), CKPT_INCOMPLETE if there is none, 66 if it cannot be read.
 * check_close() also after an error. */
struct checked {
    struct manifest m;
    struct el_mem *mem;
};
int check_open(struct checked *c, const struct ckpt_fs *fs, struct el_mem *mem, const char *dir, struct el_err *e);
void check_close(struct checked *c);

/* All files of the manifest are there with their sizes.  -1: the first that is not, CKPT_INCOMPLETE (missing) or
 * CKPT_DAMAGED (another size). */
int check_sizes(const struct ckpt_fs *fs, const char *dir, const struct manifest *m, struct el_err *e);

/* Chunks [from, to) of a file against their checksums; bytes_done (may be NULL) is counted up.  -1: the first bytes
 * that differ, CKPT_DAMAGED, with *bad their chunk. */
int check_chunks(const struct ckpt_fs *fs, const char *dir, const struct manifest_file *f, size_t from, size_t to,
                 struct el_mem *mem, size_t *bad, _Atomic uint64_t *bytes_done, struct el_err *e);

/* Manifest and sizes, and that it is the manifest of this step (-1: of any).  Why not: *e. */
bool check_is_valid(const struct ckpt_fs *fs, struct el_mem *mem, const char *dir, int64_t step, struct el_err *e);

#endif
