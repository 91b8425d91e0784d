/* CRC32C (Castagnoli), as checkpoints carry it: by the processor's own instruction where it has one, else by tables.
 * The check of nothing is 0, and crc32c(crc32c(0, a), b) is that of a and b together. */
#ifndef CKPT_CRC32C_H
#define CKPT_CRC32C_H
#include <stddef.h>
#include <stdint.h>

/* Continues the check of what came before over n bytes. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t n);

/* The check of a and b together from those of a and of b, which is b_bytes long: what pieces that were checked apart
 * give as a whole. */
uint32_t crc32c_combine(uint32_t a, uint32_t b, uint64_t b_bytes);

/* How it is computed here: "sse4.2", "armv8" or "table". */
const char *crc32c_way(void);

#endif
