/* A hash for tables in memory: quick for short keys, by multiplications of 64 by 64 bits that are folded.  Who neither
 * knows the seed, 16 unguessable bytes, nor sees hashes cannot make keys collide on purpose.  Not for what is written
 * down or sent, and no signature: el_sip() is for that. */
#ifndef UTIL_HASH_H
#define UTIL_HASH_H
#include <stddef.h>
#include <stdint.h>

uint64_t el_hash(const uint64_t seed[2], const void *bytes, size_t n);

#endif
