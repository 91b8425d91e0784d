/* Checkpoints that the job does not go on from any more.  Where each node has a directory of its own one of them may
 * have been out of sight when it was agreed what to go back to (a disk that was not mounted), and what the others hold
 * of later steps is not worth less for that: it is moved out of the way, and whoever has seen what went wrong moves it
 * back. */
#ifndef CKPT_ASIDE_H
#define CKPT_ASIDE_H
#include "ckpt/fs.h"
#include "ckpt/layout.h"

/* To dir/<last name of path>.<nonce>: out of sight at once, for good also after a loss of power.  0 also where there is
 * nothing; then *to is "". */
int aside_move(const struct ckpt_fs *fs, const char *path, const char *dir, char to[CKPT_PATH_MAX], struct el_err *e);

/* To CKPT_ASIDE_DIR. */
int aside_set(const struct ckpt_fs *fs, const char *path, struct el_err *e);

/* All of this layout beyond a step (-1: all of them); said: what there is to be said of it, or "". */
void aside_set_later(const struct ckpt_fs *fs, enum ckpt_layout layout, int64_t step, char *said, size_t size);

#endif
