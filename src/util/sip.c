#include "util/sip.h"

#include <string.h>

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t s[4])
{
    s[0] += s[1];
    s[1] = rotate(s[1], 13) ^ s[0];
    s[0] = rotate(s[0], 32);
    s[2] += s[3];
    s[3] = rotate(s[3], 16) ^ s[2];
    s[0] += s[3];
    s[3] = rotate(s[3], 21) ^ s[0];
    s[2] += s[1];
    s[1] = rotate(s[1], 17) ^ s[2];
    s[2] = rotate(s[2], 32);
}

uint64_t el_sip(const uint64_t seed[2], const void *bytes, size_t n)
{
    const uint8_t *v = bytes;
    uint64_t s[4] = {seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du, seed[0] ^ 0x6c7967656e657261u,
                     seed[1] ^ 0x7465646279746573u};
    size_t i = 0;
    for (uint64_t word; i + 8 <= n; i += 8) {
        memcpy(&word, v + i, 8);
        s[3] ^= word;
        sip_round(s);
        s[0] ^= word;
    }
    uint64_t last = (uint64_t)n << 56;
    for (unsigned shift = 0; i < n; i++, shift += 8)
        last |= (uint64_t)v[i] << shift;
    s[3] ^= last;
    sip_round(s);
    s[0] ^= last;
    s[2] ^= 0xff;
    sip_round(s);
    sip_round(s);
    sip_round(s);
    return s[0] ^ s[1] ^ s[2] ^ s[3];
}
