/* --duplicate-stdout-filters: lines that contain any of some strings.  A line longer than the maximum is judged by its
 * first `max` bytes; the rest of it goes the same way. */
#ifndef OUTPUT_FILTER_H
#define OUTPUT_FILTER_H
#include <stdbool.h>
#include <stddef.h>

#include "util/buf.h"

#define FILTER_NEEDLES_MAX 256u

struct filter {
    struct el_buf text; /* the needles, one behind the other */
    unsigned count;
    struct filter_needle {
        size_t at, len;
    } needle[FILTER_NEEDLES_MAX];
};

/* A comma list in which ",," is a comma; empty items do not count.  0; -1: more than FILTER_NEEDLES_MAX, or no memory.
 */
int filter_parse(struct filter *f, struct el_mem *mem, const char *list);
void filter_free(struct filter *f);

bool filter_match(const struct filter *f, const char *line, size_t n);

/* One stream on its way through a filter. */
struct filter_stream {
    const struct filter *filter;
    const char *prefix;
    size_t prefix_len, max;
    struct el_buf held;
    enum { FILTER_START, FILTER_TAKE, FILTER_SKIP } judged; /* of the present line */
};
void filter_stream_init(struct filter_stream *s, struct el_mem *mem, const struct filter *f, const char *prefix,
                        size_t max);
/* Appends the lines that match, each with the prefix in front.  -1: out of memory. */
int filter_feed(struct filter_stream *s, const char *bytes, size_t n, struct el_buf *out);
/* The stream has ended: an unfinished line is judged too, and gets a newline. */
int filter_end(struct filter_stream *s, struct el_buf *out);
void filter_stream_free(struct filter_stream *s);

#endif
