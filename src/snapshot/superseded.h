/* Checkpoints that the job does not go on from any more.  They may not stand under their names: another node may hold
 * in memory what was trained instead, with the same numbers.  And they may not be lost: perhaps they were only out of
 * sight when it was agreed what to go back to, on one node's disk that was not mounted.  So they are moved, and whoever
 * has seen what went wrong moves them back. */
#ifndef SNAPSHOT_SUPERSEDED_H
#define SNAPSHOT_SUPERSEDED_H
#include "ckpt/fs.h"
#include "ckpt/layout.h"

/* To dir/<last name of path>.<nonce>: out of sight at once, for good also after a loss of power.  0 also where there is
 * nothing; then *to is "". */
int superseded_move(const struct ckpt_fs *fs, const char *path, const char *dir, char to[CKPT_PATH_MAX],
                    struct el_err *e);

/* To CKPT_ASIDE_DIR. */
int superseded_set(const struct ckpt_fs *fs, const char *path, struct el_err *e);

/* Those of this run beyond a step (-1: all of them), of this layout; said: what there is to be said of it, or "".  But
 * not those of that lineage (0: none): they are what was trained from that step on, written by another node before this
 * one came to it.  If `latest`, or Megatron's tracker with its layout, names what is not there then, it is made to name
 * the newest whole step of this run that is left, or is removed. */
void superseded_set_later(const struct ckpt_fs *fs, enum ckpt_layout layout, const char *run_id, int64_t step,
                          uint64_t lineage, char *said, size_t size);

#endif
