/* SipHash-1-3 (Aumasson, Bernstein 2012): with a seed that nobody knows, nobody can make keys collide. */
#ifndef UTIL_SIP_H
#define UTIL_SIP_H
#include <stddef.h>
#include <stdint.h>

uint64_t el_sip(const uint64_t seed[2], const void *bytes, size_t n);

#endif
