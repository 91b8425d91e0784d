/* SHA-256 (FIPS 180-4), for files whose name is theirs: some 300 MB/s. */
#ifndef CKPT_SHA256_H
#define CKPT_SHA256_H
#include <stddef.h>
#include <stdint.h>

#define SHA256_HEX 65 /* its text, with the 0 */

struct sha256 {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char block[64];
};

void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t n);
void sha256_end(struct sha256 *s, char hex[SHA256_HEX]);

#endif
