#include "ckpt/chunk_sums.h"

#include "ckpt/crc32c.h"

static uint64_t chunk_at(uint64_t bytes, uint64_t at)
{
    return bytes - at < CHUNK_SUMS_CHUNK ? bytes - at : CHUNK_SUMS_CHUNK;
}

uint32_t chunk_sums_make(const void *image, uint64_t bytes, uint32_t *sums)
{
    uint32_t whole = 0;
    for (uint64_t at = 0; at < bytes; at += CHUNK_SUMS_CHUNK) {
        uint64_t n = chunk_at(bytes, at);
        uint32_t sum = crc32c(0, (const char *)image + at, n);
        sums[at / CHUNK_SUMS_CHUNK] = sum;
        whole = crc32c_combine(whole, sum, n);
    }
    return whole;
}

uint64_t chunk_sums_check(const void *image, uint64_t bytes, const uint32_t *sums)
{
    for (uint64_t at = 0; at < bytes; at += CHUNK_SUMS_CHUNK)
        if (crc32c(0, (const char *)image + at, chunk_at(bytes, at)) != sums[at / CHUNK_SUMS_CHUNK])
            return at;
    return bytes;
}
