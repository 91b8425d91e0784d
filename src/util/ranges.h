/* Ascending numbers as people write them: "0-2,4,7-9". */
#ifndef UTIL_RANGES_H
#define UTIL_RANGES_H
#include <stdbool.h>

#include "util/buf.h"

/* Starts as {0}. */
struct el_ranges {
    unsigned first, last;
    bool open, any;
};

/* Numbers must ascend.  The text is whole after el_ranges_end(). */
void el_ranges_add(struct el_ranges *s, struct el_buf *out, unsigned number);
void el_ranges_end(struct el_ranges *s, struct el_buf *out);

#endif
