/* Whole lines out of a stream of bytes, each with a prefix.  A line that is not finished is held back, so that lines of
 * different workers never meet in one; a line longer than the maximum passes in pieces, with the prefix once.  Bytes
 * are bytes: NUL and invalid UTF-8 pass unchanged, only '\n' ends a line.  What comes out depends on the bytes alone,
 * never on how they were cut. */
#ifndef OUTPUT_LINE_H
#define OUTPUT_LINE_H
#include <stdbool.h>
#include <stddef.h>

#include "util/buf.h"

struct line {
    const char *prefix; /* the caller's, alive as long as this */
    size_t prefix_len;
    size_t max; /* bytes of an unfinished line that are held */
    struct el_buf held;
    bool mid; /* the beginning of the present line has been passed on already */
};

/* Allocates nothing until a line is held. */
void line_init(struct line *l, struct el_mem *mem, const char *prefix, size_t max);

/* Appends to out what may be passed on now.  -1: out of memory; then bytes are missing from out. */
int line_feed(struct line *l, const char *bytes, size_t n, struct el_buf *out);

/* Passes on what is held, as a piece: the line goes on later (for streams whose reader must not wait). */
int line_pass(struct line *l, struct el_buf *out);

/* The stream has ended: what is held goes out; with newline an unfinished line gets its end, so that nothing is glued
 * to it. */
int line_end(struct line *l, bool newline, struct el_buf *out);

void line_free(struct line *l);

#endif
