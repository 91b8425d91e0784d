/* Whether ranks that share a part hold the same: a digest of the tensors that must be alike on all of them, and which
 * ones differ where two digests do.
 *
 * The header of the part lists these tensors under REPLICA_DIGEST_KEY of its __metadata__, by their numbers in the
 * order of their bytes, in ascending spans: "0-147,150".  Parameters and moments of an optimizer are listed; what may
 * be each rank's own (statistics of a batch normalisation, random numbers, all that is pickled) is not.  A list that is
 * not written so counts as none.  Pure. */
#ifndef SNAPSHOT_REPLICA_DIGEST_H
#define SNAPSHOT_REPLICA_DIGEST_H
#include "ckpt/safetensors.h"

#define REPLICA_DIGEST_KEY "elrun_alike"

/* A part as it lies in memory: its header, and its bytes from the first of the header on. */
struct replica_digest_image {
    const struct safetensors *st;
    const char *bytes;
};

/* Of names, types, shapes and bytes, whatever the order of the tensors is.  0: no tensor is listed, or there is no
 * memory.  table: NULL, or it becomes a table of the tensors (replica_table.h), or NULL where there is no memory for
 * it; then el_free(NULL, table). */
uint64_t replica_digest_digest(const struct replica_digest_image *image, char **table);

/* The listed tensors that only one of the two has, or that differ in type, shape or bytes: how many, and the first
 * ones by name as text: "a", "b", "c" and 4 more.  0, and "": none, or there is no memory. */
size_t replica_digest_compare(const struct replica_digest_image *a, const struct replica_digest_image *b, char *text,
                              size_t size);

#endif
