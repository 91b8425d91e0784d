/* The bytes of a node's snapshots: memory of the slots, their checksums, and the threads that make and compare them.
 * Decisions are the keeper's (keeper.h); here is what takes time, and the budget: a slot grows in a thread, and for
 * loads that is where it is known how large it must be.  Called in the loop's thread only, and answers come there. */
#ifndef SNAPSHOT_VAULT_H
#define SNAPSHOT_VAULT_H
#include <stdbool.h>

#include "ckpt/fs.h"
#include "snapshot/keeper.h"
#include "ckpt/layout.h"
#include "snapshot/mem.h"
#include "loop/pool.h"

struct vault;

/* What a job came to, as the keeper wants to hear it:
 *   KEEPER_EV_GROWN, of vault_grow()     its text says why not
 *   KEEPER_EV_SHRUNK, of vault_shrink()
 *   KEEPER_EV_SUMMED, of vault_sum()     … which part is not what was said
 *   KEEPER_EV_COMPARED, of vault_compare(): how many tensors differ and the first of them; one for each call
 *   KEEPER_EV_LOADED, of vault_load()    … which file, and where it is not what its manifest says; or that there is no
 *                                        room
 *   KEEPER_EV_READ, of vault_verify()    … which part, and where its bytes are no longer what was summed; one for each
 *                                        call, also where the slots were released meanwhile: somebody counts them */
typedef void vault_told(void *ctx, const struct keeper_event *ev);

/* budget_bytes: of all slots together; both slots of a worker count as large as the larger one.  NULL: no memory. */
struct vault *vault_new(struct pool *p, unsigned workers, uint64_t budget_bytes, vault_told *told, void *ctx);

/* After pool_free(): nothing runs any more. */
void vault_free(struct vault *v);

/* Two slots for what the worker has declared to the keeper, without memory yet.  What it had before must have been
 * released.  -1 and *e. */
int vault_open(struct vault *v, const struct keeper *k, unsigned worker, struct el_err *e);

/* Makes room for so many bytes in a slot, whatever is in it and whoever reads it; then GROWN. */
void vault_grow(struct vault *v, unsigned worker, unsigned slot, uint64_t bytes, uint64_t gen);

/* Gives back what a slot has beyond so many bytes, in whole pages, which nobody reads or writes; then SHRUNK. */
void vault_shrink(struct vault *v, unsigned worker, unsigned slot, uint64_t bytes, uint64_t gen);

/* The slots are of no use any more; jobs that read them are waited for, in the background, and count until then. */
void vault_release(struct vault *v, unsigned worker);

/* Checks that each part of the slot is an image of the size that the keeper has of it, and sums it; then SUMMED.
 * digests: with the digest of each part, of what must be alike on all ranks (alike.h); tables: and the table of its
 * tensors. */
void vault_sum(struct vault *v, const struct keeper *k, unsigned worker, unsigned slot, uint64_t gen, bool digests,
               bool tables);

/* Compares what must be alike in one part of two slots, which are held by readers; then COMPARED. */
void vault_compare(struct vault *v, const struct keeper_pair *pair);

/* Reads a step from disk into the slot, as large as that must be for it, every byte compared with the manifest's sums,
 * and sums it; then LOADED. */
void vault_load(struct vault *v, const struct keeper *k, unsigned worker, unsigned slot, uint64_t gen, int64_t step,
                const struct ckpt_fs *from, enum ckpt_layout layout);

uint64_t vault_loaded_bytes(const struct vault *v); /* by all loads so far: it grows while one makes progress */

/* Compares a slot with its sums; then READ. */
void vault_verify(struct vault *v, unsigned worker, unsigned slot, uint64_t gen);

/* The descriptors of a worker's slots, for writing; and one of them for reading only, -1 and *e. */
void vault_descriptors(const struct vault *v, unsigned worker, int fds[KEEPER_SLOTS]);
int vault_reader(struct vault *v, unsigned worker, unsigned slot, struct el_err *e);

/* A reader of a worker's slots: their memory stays until vault_drop(), also when they are released meanwhile. */
struct chest *vault_hold(struct vault *v, unsigned worker);
void vault_drop(struct chest *c);

/* The first byte of a part in a committed slot. */
const void *vault_image(const struct vault *v, unsigned worker, unsigned slot, unsigned part);

/* Sums of a part of a slot: sums_count(its bytes) of them, valid while the slot is committed. */
const uint32_t *vault_sums(const struct vault *v, unsigned worker, unsigned slot, unsigned part);

#endif
