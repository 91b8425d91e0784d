/* Time as the cores know it: microseconds of a monotonic clock that somebody else read. */
#ifndef UTIL_TIME_H
#define UTIL_TIME_H
#include <stdint.h>

typedef uint64_t el_usec;

#define EL_NEVER  UINT64_MAX /* a deadline that does not exist */
#define EL_MS(n)  ((el_usec)(n)*1000u)
#define EL_SEC(n) ((el_usec)(n)*1000000u)

#endif
