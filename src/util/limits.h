/* Limits that several modules share. */
#ifndef UTIL_LIMITS_H
#define UTIL_LIMITS_H

#define EL_SLOTS_MAX 4096 /* workers of one node */

#endif
