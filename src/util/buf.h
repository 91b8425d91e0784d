/* Bytes with a maximum.  Invariants: len <= cap <= max; v is NULL only while cap is 0; v[len] is always readable as 0
 * after el_buf_cstr().  The memory belongs to the buffer until el_buf_free(); there is no way to take it out. */
#ifndef UTIL_BUF_H
#define UTIL_BUF_H
#include <stddef.h>

#include "util/mem.h"

struct el_buf {
    char *v;
    size_t len, cap, max; /* bytes; max 0 = no maximum */
    struct el_mem *mem;   /* who pays; may be NULL */
    int full;             /* an append was refused, by the maximum or by the allocator */
};

#define EL_BUF_INIT(payer, maximum) ((struct el_buf){.mem = (payer), .max = (maximum)})

/* Room for n more bytes at v+len, or NULL (and full is set).  The caller writes there and raises len itself.  What
 * takes memory is in el_buf_grow(), which nobody else calls. */
char *el_buf_grow(struct el_buf *b, size_t n);
static inline char *el_buf_reserve(struct el_buf *b, size_t n)
{
    return b->v && n <= b->cap - b->len ? b->v + b->len : el_buf_grow(b, n);
}

/* Append all of it or nothing: 0, or -1 and full is set. */
int el_buf_put(struct el_buf *b, const void *bytes, size_t n);
int el_buf_puts(struct el_buf *b, const char *s);
int el_buf_printf(struct el_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Drops n bytes from the front (n <= len). */
void el_buf_drop(struct el_buf *b, size_t n);

/* The content as a C string; "" if even one byte could not be had. */
const char *el_buf_cstr(struct el_buf *b);

void el_buf_free(struct el_buf *b);

#endif
