#include "output/line.h"

#include <assert.h>
#include <string.h>

void line_init(struct line *l, struct el_mem *mem, const char *prefix, size_t max)
{
    assert(max > 0);
    *l = (struct line){.prefix = prefix, .prefix_len = strlen(prefix), .max = max, .held = EL_BUF_INIT(mem, max)};
}

/* A piece of a line; the prefix goes in front of its first one. */
static int line_emit(struct line *l, const char *bytes, size_t n, struct el_buf *out)
{
    if (!el_buf_reserve(out, l->prefix_len + l->held.len + n))
        return -1;
    if (!l->mid)
        el_buf_put(out, l->prefix, l->prefix_len);
    el_buf_put(out, l->held.v, l->held.len);
    el_buf_put(out, bytes, n);
    l->held.len = 0;
    return 0;
}

int line_feed(struct line *l, const char *bytes, size_t n, struct el_buf *out)
{
    const char *end = bytes + n;
    size_t whole = n;
    while (!l->prefix_len && whole && bytes[whole - 1] != '\n')
        whole--;
    if (!l->prefix_len && whole) { /* nothing is put between lines: all that are whole go as one piece */
        if (line_emit(l, bytes, whole, out) < 0)
            return -1;
        l->mid = false;
        bytes += whole;
    }
    for (const char *nl; bytes < end && (nl = memchr(bytes, '\n', (size_t)(end - bytes))); bytes = nl + 1) {
        if (line_emit(l, bytes, (size_t)(nl + 1 - bytes), out) < 0)
            return -1;
        l->mid = false;
    }
    n = (size_t)(end - bytes);
    assert(!l->mid || l->held.len == 0);
    if (!n)
        return 0;
    if (!l->mid && n <= l->max - l->held.len)
        return el_buf_put(&l->held, bytes, n);
    if (line_emit(l, bytes, n, out) < 0)
        return -1;
    l->mid = true;
    return 0;
}

int line_pass(struct line *l, struct el_buf *out)
{
    if (!l->held.len)
        return 0;
    if (line_emit(l, NULL, 0, out) < 0)
        return -1;
    l->mid = true;
    return 0;
}

int line_end(struct line *l, bool newline, struct el_buf *out)
{
    int r = line_pass(l, out);
    if (l->mid && newline && el_buf_put(out, "\n", 1) < 0)
        r = -1;
    l->mid = false;
    return r;
}

void line_free(struct line *l)
{
    el_buf_free(&l->held);
}
