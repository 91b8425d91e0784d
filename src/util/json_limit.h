/* What a parser of JSON would have to allocate is known from commas and brackets alone: counted before anything that a
 * stranger sent is parsed. */
#ifndef UTIL_JSON_LIMIT_H
#define UTIL_JSON_LIMIT_H
#include <stdbool.h>
#include <stddef.h>

/* At most so many values (strings, numbers, literals, brackets), nested no deeper than that. */
bool json_limit_holds(const char *text, size_t n, unsigned values_max, unsigned depth_max);

#endif
