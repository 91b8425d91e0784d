#include "util/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

char *el_buf_grow(struct el_buf *b, size_t n)
{
    assert(b->len <= b->cap);
    if (n > SIZE_MAX / 4 - b->len || (b->max && n > b->max - b->len))
        return b->full = 1, NULL;
    size_t want = b->len + n, cap = b->cap + b->cap / 2 < want ? want : b->cap + b->cap / 2;
    if (cap < 64)
        cap = 64;
    if (b->max && cap > b->max)
        cap = b->max;
    char *v = el_realloc(b->mem, b->v, cap);
    if (!v && cap > want)
        v = el_realloc(b->mem, b->v, cap = want);
    if (!v)
        return b->full = 1, NULL;
    b->v = v;
    b->cap = cap;
    return b->v + b->len;
}

int el_buf_put(struct el_buf *b, const void *bytes, size_t n)
{
    if (!n)
        return 0;
    char *at = el_buf_reserve(b, n);
    if (!at)
        return -1;
    memcpy(at, bytes, n);
    b->len += n;
    return 0;
}

int el_buf_puts(struct el_buf *b, const char *s)
{
    return el_buf_put(b, s, strlen(s));
}

int el_buf_printf(struct el_buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    /* One byte more than counts: vsnprintf ends with a 0.  It is reserved, not kept. */
    char *at = n < 0 ? NULL : el_buf_reserve(b, (size_t)n + 1);
    if (at) {
        vsnprintf(at, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    return at ? 0 : -1;
}

void el_buf_drop(struct el_buf *b, size_t n)
{
    assert(n <= b->len);
    if (!n)
        return;
    memmove(b->v, b->v + n, b->len - n);
    b->len -= n;
}

const char *el_buf_cstr(struct el_buf *b)
{
    char *at = el_buf_reserve(b, 1);
    if (!at)
        return "";
    *at = 0;
    return b->v;
}

void el_buf_free(struct el_buf *b)
{
    el_free(b->mem, b->v);
    b->v = NULL;
    b->len = b->cap = 0;
    b->full = 0;
}
