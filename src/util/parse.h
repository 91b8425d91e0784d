/* Text to numbers, strictly: the whole text is the number, in decimal, or it is refused.  No sign but "-" where a sign
 * makes sense, no white space, no octal, no "1e3", nothing that wraps.  All return 0, or -1 and leave *out alone. */
#ifndef UTIL_PARSE_H
#define UTIL_PARSE_H
#include <stddef.h>
#include <stdint.h>

#include "util/time.h"

int el_parse_u64(const char *s, uint64_t *out);
int el_parse_i64(const char *s, int64_t *out);

/* The same over the first n bytes, for parts of a list. */
int el_parse_u64n(const char *s, size_t n, uint64_t *out);

/* A time span in seconds, with a fraction or a unit if wanted: "30", "0.5", ".5", "500ms", "30s", "5m", "2h", "1d".
 * What is finer than a microsecond is refused, not rounded. */
int el_parse_duration(const char *s, el_usec *out);

/* A number of bytes: "4096", "64K", "64KiB", "10M", "2G", "1T"; the units are powers of 1024. */
int el_parse_size(const char *s, uint64_t *out);

/* The usual words for yes and no, in any case: 1 true t yes y, 0 false f no n.  *out is 0 or 1. */
int el_parse_bool(const char *s, size_t n, int *out);

#define EL_SHOW_MAX 96 /* bytes that el_show() needs at most, with its 0 */

/* Words of a stranger, fit for a message of one line: control bytes and invalid UTF-8 become \xNN, what is too long
 * ends in
 * "...".  Returns out. */
const char *el_show(const char *s, char out[EL_SHOW_MAX]);

#define EL_PATH_MAX                                                                                                    \
    320 /* bytes for a path in a message: it is no use cut short, but the rest of the line is there too */

/* The same with more room, for file names. */
const char *el_show_path(const char *s, char *out, size_t room);

#endif
