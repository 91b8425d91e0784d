#include "util/wrap.h"

#include <stdint.h>

#include "util/array.h"
#include "util/utf8.h"

/* What stands at p: its bytes, at least 1, and its columns. */
struct glyph {
    size_t n;
    unsigned columns;
};

static uint32_t decode(const char *p, size_t n)
{
    const unsigned char *u = (const unsigned char *)p;
    switch (n) {
    case 2: return (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu);
    case 3: return (u[0] & 0x0fu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
    case 4: return (u[0] & 0x07u) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
    default: return u[0];
    }
}

static unsigned width(uint32_t c)
{
    static const struct {
        uint32_t from, to;
        unsigned columns;
    } odd[] = {
        {0x0300, 0x036f, 0}, {0x1100, 0x115f, 2},   {0x200b, 0x200f, 0},   {0x20d0, 0x20ff, 0},   {0x2e80, 0xa4cf, 2},
        {0xac00, 0xd7a3, 2}, {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},   {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},
        {0xffe0, 0xffe6, 2}, {0x1f300, 0x1f64f, 2}, {0x1f680, 0x1faff, 2}, {0x20000, 0x3fffd, 2},
    };
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        if (c >= odd[i].from && c <= odd[i].to)
            return odd[i].columns;
    return 1;
}

static struct glyph wrap_look(const char *p, size_t n)
{
    if (n > 1 && p[0] == '\033' && p[1] == '[') {
        size_t i = 2;
        while (i < n && (p[i] < '@' || p[i] > '~'))
            i++;
        return (struct glyph){i < n ? i + 1 : n, 0};
    }
    size_t len = el_utf8(p, n);
    return len ? (struct glyph){len, width(decode(p, len))} : (struct glyph){1, 1};
}

size_t el_columns(const char *p, size_t n)
{
    size_t columns = 0;
    for (struct glyph g; n; p += g.n, n -= g.n) {
        g = wrap_look(p, n);
        columns += g.columns;
    }
    return columns;
}

static void wrap_blanks(struct el_buf *out, size_t n)
{
    while (n--)
        el_buf_puts(out, " ");
}

static size_t run_of(const char *p, size_t n, int blank)
{
    size_t i = 0;
    while (i < n && (p[i] == ' ') == blank)
        i++;
    return i;
}

void el_wrap(struct el_buf *out, const char *p, size_t n, unsigned columns, unsigned first, unsigned hang)
{
    wrap_blanks(out, first);
    if (!columns) {
        el_buf_put(out, n ? p : "", n);
        return;
    }
    size_t at = first, begins = first;
    while (n) {
        size_t gap = run_of(p, n, 1), word = run_of(p + gap, n - gap, 0), wide = el_columns(p + gap, word);
        if (word && at > begins && at + gap + wide > columns) {
            el_buf_puts(out, "\n");
            wrap_blanks(out, hang);
            at = begins = hang;
        } else if (word) {
            wrap_blanks(out, gap);
            at += gap;
        }
        el_buf_put(out, p + gap, word);
        at += wide;
        p += gap + word;
        n -= gap + word;
    }
}

void el_cut(struct el_buf *out, const char *p, size_t n, unsigned columns)
{
    if (!columns || el_columns(p, n) <= columns) {
        el_buf_put(out, n ? p : "", n);
        return;
    }
    size_t used = 0;
    for (struct glyph g; n; p += g.n, n -= g.n) {
        g = wrap_look(p, n);
        if (g.columns && used + g.columns + 1 > columns)
            break;
        used += g.columns;
        el_buf_put(out, p, g.n);
    }
    el_buf_puts(out, "…");
}

void el_cut_front(struct el_buf *out, const char *p, size_t n, unsigned columns)
{
    size_t wide = el_columns(p, n);
    if (columns && wide > columns) {
        for (struct glyph g; n && wide + 1 > columns; p += g.n, n -= g.n) {
            g = wrap_look(p, n);
            wide -= g.columns;
        }
        el_buf_puts(out, "…");
    }
    el_buf_put(out, n ? p : "", n);
}
