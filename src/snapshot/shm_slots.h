/* The bytes of a node's snapshots: memory of the slots, their checksums, and the threads that make and compare them.
 * Decisions are the keeper's (slot_table.h); here is what takes time, and the budget: a slot grows in a thread, and for
 * loads that is where it is known how large it must be.  Called in the loop's thread only, and answers come there. */
#ifndef SNAPSHOT_SHM_SLOTS_H
#define SNAPSHOT_SHM_SLOTS_H
#include <stdbool.h>

#include "ckpt/fs.h"
#include "snapshot/slot_table.h"
#include "ckpt/layout.h"
#include "snapshot/shm.h"
#include "loop/pool.h"

struct shm_slots;

/* What a job came to, as the keeper wants to hear it:
 *   SLOT_TABLE_EV_GROWN, of shm_slots_grow()     its text says why not
 *   SLOT_TABLE_EV_SHRUNK, of shm_slots_shrink()
 *   SLOT_TABLE_EV_SUMMED, of shm_slots_sum()     … which part is not what was said
 *   SLOT_TABLE_EV_COMPARED, of shm_slots_compare(): how many tensors differ and the first of them; one for each call
 *   SLOT_TABLE_EV_LOADED, of shm_slots_load()    … which file, and where it is not what its manifest says; or that
 * there is no room SLOT_TABLE_EV_READ, of shm_slots_verify()    … which part, and where its bytes are no longer what
 * was summed; one for each call, also where the slots were released meanwhile: somebody counts them */
typedef void shm_slots_told(void *ctx, const struct slot_table_event *ev);

/* budget_bytes: of all slots together; both slots of a worker count as large as the larger one.  NULL: no memory. */
struct shm_slots *shm_slots_new(struct pool *p, unsigned workers, uint64_t budget_bytes, shm_slots_told *told,
                                void *ctx);

/* After pool_free(): nothing runs any more. */
void shm_slots_free(struct shm_slots *v);

/* Two slots for what the worker has declared to the keeper, without memory yet.  What it had before must have been
 * released.  -1 and *e. */
int shm_slots_open(struct shm_slots *v, const struct slot_table *k, unsigned worker, struct el_err *e);

/* Makes room for so many bytes in a slot, whatever is in it and whoever reads it; then GROWN. */
void shm_slots_grow(struct shm_slots *v, unsigned worker, unsigned slot, uint64_t bytes, uint64_t gen);

/* Gives back what a slot has beyond so many bytes, in whole pages, which nobody reads or writes; then SHRUNK. */
void shm_slots_shrink(struct shm_slots *v, unsigned worker, unsigned slot, uint64_t bytes, uint64_t gen);

/* The slots are of no use any more; jobs that read them are waited for, in the background, and count until then. */
void shm_slots_release(struct shm_slots *v, unsigned worker);

/* Checks that each part of the slot is an image of the size that the keeper has of it, and sums it; then SUMMED.
 * digests: with the digest of each part, of what must be alike on all ranks (replica_digest.h); tables: and the table
 * of its tensors. */
void shm_slots_sum(struct shm_slots *v, const struct slot_table *k, unsigned worker, unsigned slot, uint64_t gen,
                   bool digests, bool tables);

/* Compares what must be alike in one part of two slots, which are held by readers; then COMPARED. */
void shm_slots_compare(struct shm_slots *v, const struct slot_table_pair *pair);

/* Reads a step from disk into the slot, as large as that must be for it, every byte compared with the manifest's sums,
 * and sums it; then LOADED. */
void shm_slots_load(struct shm_slots *v, const struct slot_table *k, unsigned worker, unsigned slot, uint64_t gen,
                    int64_t step, const struct ckpt_fs *from, enum ckpt_layout layout);

uint64_t shm_slots_loaded_bytes(const struct shm_slots *v); /* by all loads so far: it grows while one makes progress */

/* Compares a slot with its sums; then READ. */
void shm_slots_verify(struct shm_slots *v, unsigned worker, unsigned slot, uint64_t gen);

/* The descriptors of a worker's slots, for writing; and one of them for reading only, -1 and *e. */
void shm_slots_descriptors(const struct shm_slots *v, unsigned worker, int fds[SLOT_TABLE_SLOTS]);
int shm_slots_reader(struct shm_slots *v, unsigned worker, unsigned slot, struct el_err *e);

/* A reader of a worker's slots: their memory stays until shm_slots_drop(), also when they are released meanwhile. */
struct chest *shm_slots_hold(struct shm_slots *v, unsigned worker);
void shm_slots_drop(struct chest *c);

/* The first byte of a part in a committed slot. */
const void *shm_slots_image(const struct shm_slots *v, unsigned worker, unsigned slot, unsigned part);

/* Sums of a part of a slot: chunk_sums_count(its bytes) of them, valid while the slot is committed. */
const uint32_t *shm_slots_sums(const struct shm_slots *v, unsigned worker, unsigned slot, unsigned part);

#endif
