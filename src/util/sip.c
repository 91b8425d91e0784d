#include "util/sip.h"

#include <string.h>

/* The state stands in four locals, so that it stays in registers: a key is hashed with each request to a store. */
#define ROTATE(x, by) ((x) << (by) | (x) >> (64 - (by)))
#define ROUND(a, b, c, d)                                                                                              \
    do {                                                                                                               \
        (a) += (b), (c) += (d);                                                                                        \
        (b) = ROTATE(b, 13) ^ (a), (d) = ROTATE(d, 16) ^ (c);                                                          \
        (a) = ROTATE(a, 32);                                                                                           \
        (a) += (d), (c) += (b);                                                                                        \
        (d) = ROTATE(d, 21) ^ (a), (b) = ROTATE(b, 17) ^ (c);                                                          \
        (c) = ROTATE(c, 32);                                                                                           \
    } while (0)

/* The k < 8 bytes at the end of what ends at `end`, the first of them lowest.  `long_enough`: 8 bytes can be read. */
static inline uint64_t sip_rest(const uint8_t *end, size_t k, int long_enough)
{
    uint64_t word = 0;
    if (long_enough) {
        memcpy(&word, end - 8, 8);
        return word >> 8 >> (56 - 8 * k);
    }
    for (const uint8_t *at = end - k; end > at; end--)
        word = word << 8 | end[-1];
    return word;
}

uint64_t el_sip(const uint64_t seed[2], const void *bytes, size_t n)
{
    const uint8_t *v = bytes, *end = v + n;
    uint64_t a = seed[0] ^ 0x736f6d6570736575u, b = seed[1] ^ 0x646f72616e646f6du, c = seed[0] ^ 0x6c7967656e657261u,
             d = seed[1] ^ 0x7465646279746573u, word;
    for (; end - v >= 8; v += 8) {
        memcpy(&word, v, 8);
        d ^= word;
        ROUND(a, b, c, d);
        a ^= word;
    }
    word = sip_rest(end, (size_t)(end - v), n >= 8) | (uint64_t)n << 56;
    d ^= word;
    ROUND(a, b, c, d);
    a ^= word;
    c ^= 0xff;
    ROUND(a, b, c, d);
    ROUND(a, b, c, d);
    ROUND(a, b, c, d);
    return a ^ b ^ c ^ d;
}
