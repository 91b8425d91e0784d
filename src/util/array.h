/* Arrays. */
#ifndef UTIL_ARRAY_H
#define UTIL_ARRAY_H

/* How many elements an array has; not for pointers. */
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
