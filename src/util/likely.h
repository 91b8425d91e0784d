/* For the few functions that run with each request to a store: what is rare is moved out of the way, and the path that
 * is left takes fewer lines of the instruction cache, which the kernel empties between any two system calls. */
#ifndef UTIL_LIKELY_H
#define UTIL_LIKELY_H

#define EL_LIKELY(x)   __builtin_expect((x) != 0, 1)
#define EL_UNLIKELY(x) __builtin_expect((x) != 0, 0)
#define EL_COLD        __attribute__((cold, noinline))

#endif
