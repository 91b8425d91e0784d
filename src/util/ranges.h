/* Ascending numbers as people write them: "0-2,4,7-9". */
#ifndef UTIL_RANGES_H
#define UTIL_RANGES_H
#include <stdbool.h>

#include "util/buf.h"

/* Starts as {0}. */
struct el_ranges {
    unsigned first, last;
    bool open, any;
    unsigned left_out; /* runs for which the buffer had no room: the text ends with "…" then */
};

/* Numbers must ascend.  The text is whole after el_ranges_end(). */
void el_ranges_add(struct el_ranges *s, struct el_buf *out, unsigned number);
void el_ranges_end(struct el_ranges *s, struct el_buf *out);

/* The next run of such a text that somebody sent; false at its end, or where it is none (*at is not "" then). */
bool el_ranges_next(const char **at, unsigned *first, unsigned *last);

#endif
