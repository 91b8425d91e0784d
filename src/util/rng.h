/* Chance whose state the caller owns: splitmix64 (Steele, Lea, Flood 2014).  Same start value, same numbers,
 * everywhere. */
#ifndef UTIL_RNG_H
#define UTIL_RNG_H
#include <stdint.h>

struct el_rng {
    uint64_t state;
};

static inline uint64_t el_rng_next(struct el_rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* 0 … n-1 (n > 0); the bias of the modulo is below 2^-32 for the sizes used here. */
static inline uint64_t el_rng_below(struct el_rng *r, uint64_t n)
{
    return el_rng_next(r) % n;
}

#endif
