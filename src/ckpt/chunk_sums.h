/* Checksums of an image in memory: a CRC32C for each 4 MiB, so that damage has a place, a transfer can go on where it
 * stopped, and the sum of the whole follows from its pieces. */
#ifndef CKPT_CHUNK_SUMS_H
#define CKPT_CHUNK_SUMS_H
#include <stddef.h>
#include <stdint.h>

#define CHUNK_SUMS_CHUNK ((uint64_t)4 << 20) /* bytes; the manifest's unit too */

/* Chunks of an image: the last one may be shorter, an empty image has none. */
static inline size_t chunk_sums_count(uint64_t bytes)
{
    return (size_t)((bytes + CHUNK_SUMS_CHUNK - 1) / CHUNK_SUMS_CHUNK);
}

/* Fills chunk_sums_count(bytes) sums; returns the CRC32C of the whole. */
uint32_t chunk_sums_make(const void *image, uint64_t bytes, uint32_t *sums);

/* The offset of the first chunk that is not what was summed, or bytes: all is as it was. */
uint64_t chunk_sums_check(const void *image, uint64_t bytes, const uint32_t *sums);

#endif
