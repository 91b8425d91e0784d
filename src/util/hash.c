#include "util/hash.h"

#include <string.h>

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_word(const uint8_t *at, size_t n)
{
    uint64_t w = 0;
    memcpy(&w, at, n);
    return w;
}

uint64_t el_hash(const uint64_t seed[2], const void *bytes, size_t n)
{
    const uint8_t *v = bytes, *end = v + n;
    uint64_t h = seed[0], first = 0, last = 0;
    for (; end - v > 16; v += 16)
        h = fold(h ^ hash_word(v, 8), seed[1] ^ hash_word(v + 8, 8));
    /* The rest, of 16 bytes at most, as two words that may overlap. */
    size_t rest = (size_t)(end - v);
    if (n >= 16) {
        first = hash_word(end - 16, 8);
        last = hash_word(end - 8, 8);
    } else if (rest >= 8) {
        first = hash_word(v, 8);
        last = hash_word(end - 8, 8);
    } else if (rest >= 4) {
        first = hash_word(v, 4);
        last = hash_word(end - 4, 4);
    } else if (rest) {
        first = (uint64_t)v[0] << 16 | (uint64_t)v[rest / 2] << 8 | end[-1];
    }
    h = fold(h ^ first, seed[1] ^ last);
    return fold(h ^ seed[1], n ^ seed[0]);
}
