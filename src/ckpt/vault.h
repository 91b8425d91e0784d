/* The bytes of a node's snapshots: memory of the slots, their checksums, and the threads that make and compare them.
 * Decisions are the keeper's (keeper.h); here is what takes time.  Called in the loop's thread only, and answers come
 * there. */
#ifndef CKPT_VAULT_H
#define CKPT_VAULT_H
#include <stdbool.h>

#include "ckpt/fs.h"
#include "ckpt/keeper.h"
#include "ckpt/layout.h"
#include "ckpt/mem.h"
#include "loop/pool.h"

struct vault;

struct vault_ops {
    /* Of vault_allocate(): text says why not. */
    void (*allocated)(void *ctx, unsigned worker, bool ok, const char *text);
    /* Of vault_sum(): text says which part is not what was declared. */
    void (*summed)(void *ctx, unsigned worker, unsigned slot, uint64_t gen, bool ok, const char *text);
    /* Of vault_load(): bytes has how many each part has; text says which file, and where it is not what its manifest
     * says. */
    void (*loaded)(void *ctx, unsigned worker, unsigned slot, uint64_t gen, bool ok, uint64_t consumed_samples,
                   const uint64_t *bytes, const char *text);
    /* Of vault_verify(), one for each call, also where the slots were released meanwhile: somebody counts them.  text
     * says which part, and where its bytes are no longer what was summed. */
    void (*verified)(void *ctx, unsigned worker, unsigned slot, uint64_t gen, bool ok, const char *text);
};

/* NULL: no memory. */
struct vault *vault_new(struct pool *p, unsigned workers, const struct vault_ops *ops, void *ctx);

/* After pool_free(): nothing runs any more. */
void vault_free(struct vault *v);

/* Two slots for what the worker has declared to the keeper, every page present; then allocated().  What it had before
 * must have been released. */
void vault_allocate(struct vault *v, const struct keeper *k, unsigned worker);

/* The slots are of no use any more; jobs that read them are waited for, in the background. */
void vault_release(struct vault *v, unsigned worker);

/* Checks that each part of the slot is the image that was declared and sums it; then summed(). */
void vault_sum(struct vault *v, const struct keeper *k, unsigned worker, unsigned slot, uint64_t gen);

/* Reads a step from disk into the slot, every byte compared with the manifest's sums, and sums it; then loaded(). */
void vault_load(struct vault *v, const struct keeper *k, unsigned worker, unsigned slot, uint64_t gen, int64_t step,
                const struct ckpt_fs *from, enum ckpt_layout layout);

uint64_t vault_loaded_bytes(const struct vault *v); /* by all loads so far: it grows while one makes progress */

/* Compares a slot with its sums; then verified(). */
void vault_verify(struct vault *v, const struct keeper *k, unsigned worker, unsigned slot, uint64_t gen);

/* The descriptors of a worker's slots, for writing; and one of them for reading only, -1 and *e. */
void vault_descriptors(const struct vault *v, unsigned worker, int fds[KEEPER_SLOTS]);
int vault_reader(struct vault *v, unsigned worker, unsigned slot, struct el_err *e);

/* A reader of a worker's slots: their memory stays until vault_drop(), also when they are released meanwhile. */
struct chest *vault_hold(struct vault *v, unsigned worker);
void vault_drop(struct chest *c);

/* The first byte of a part in a slot. */
const void *vault_image(const struct vault *v, unsigned worker, unsigned slot, unsigned part);

/* Sums of a part of a slot: sums_count(its bytes) of them, valid while the slot is committed. */
const uint32_t *vault_sums(const struct vault *v, unsigned worker, unsigned slot, unsigned part);

#endif
