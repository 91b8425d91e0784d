#include "util/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/utf8.h"

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Length of the escape sequence at p (p[0] is ESC), at least 1; a sequence that breaks off reaches to the end. */
static size_t escape_len(const char *p, size_t n)
{
    if (n < 2)
        return n;
    size_t i = 2;
    if (p[1] == '[') { /* CSI: parameters, then one final byte; anything else means it was none */
        while (i < n && i < 64 && p[i] >= 0x20 && p[i] <= 0x3f)
            i++;
        return i < n && p[i] >= 0x40 && p[i] <= 0x7e ? i + 1 : i;
    }
    if (p[1] == ']') { /* OSC: up to BEL or ESC \, never over a line's end */
        while (i < n && p[i] != '\a' && p[i] != '\n' && p[i] != 0x1b)
            i++;
        if (i < n && p[i] == '\a')
            return i + 1;
        return i + 1 < n && p[i] == 0x1b && p[i + 1] == '\\' ? i + 2 : i;
    }
    return p[1] >= 0x30 && p[1] <= 0x7e ? 2 : 1;
}

/* Bytes from p on that stay as they are; *line_at: behind the last line end among them, 0 = there is none. */
static size_t plain_run(const char *p, size_t n, size_t *line_at)
{
    size_t i = 0;
    *line_at = 0;
    for (; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c == '\n')
            *line_at = i + 1;
        else if ((c < 0x20 && c != '\t') || c >= 0x7f)
            break;
    }
    return i;
}

int text_clean(struct el_buf *out, const char *bytes, size_t n)
{
    size_t line = out->len; /* where the present line begins in out */
    for (size_t i = 0, line_at; i < n;) {
        unsigned char c = (unsigned char)bytes[i];
        size_t len = plain_run(bytes + i, n - i, &line_at);
        int r = 0;
        if (len) {
            line = line_at ? out->len + line_at : line;
            if (el_buf_put(out, bytes + i, len))
                return -1;
            i += len;
            continue;
        }
        len = 1;
        if (c == 0x1b) {
            len = escape_len(bytes + i, n - i);
        } else if (c == '\r') {
            while (i + len < n && bytes[i + len] == '\r')
                len++;
            /* What follows overwrites the line, unless nothing does. */
            if (i + len < n && bytes[i + len] != '\n')
                out->len = line;
        } else if (c >= 0x80) {
            len = el_utf8(bytes + i, n - i);
            if (!len)
                r = el_buf_put(out, replacement, 3);
            else if (!el_utf8_steers(bytes + i, len))
                r = el_buf_put(out, bytes + i, len);
            len = len ? len : 1;
        } /* else a control character: left out */
        if (r)
            return -1;
        i += len;
    }
    return 0;
}

int text_json(struct el_buf *out, const char *bytes, size_t n)
{
    int r = el_buf_put(out, "\"", 1);
    for (size_t i = 0; i < n && !r;) {
        unsigned char c = (unsigned char)bytes[i];
        size_t len = el_utf8(bytes + i, n - i);
        if (!len)
            r = el_buf_put(out, replacement, 3);
        else if (c == '"' || c == '\\')
            r = el_buf_printf(out, "\\%c", c);
        else if (c == '\n')
            r = el_buf_puts(out, "\\n");
        else if (c == '\t')
            r = el_buf_puts(out, "\\t");
        else if (c < 0x20 || c == 0x7f)
            r = el_buf_printf(out, "\\u%04x", c);
        else
            r = el_buf_put(out, bytes + i, len);
        i += len ? len : 1;
    }
    return r ? r : el_buf_put(out, "\"", 1);
}

void text_copy(char *out, size_t size, const char *bytes, size_t n)
{
    assert(size > 4);
    size_t keep = n;
    bool cut = n > size - 1;
    if (cut) {
        keep = size - 1 - 3;
        while (keep && ((unsigned char)bytes[keep] & 0xc0) == 0x80)
            keep--;
    }
    if (keep)
        memcpy(out, bytes, keep);
    if (cut) {
        memcpy(out + keep, "\xe2\x80\xa6", 3); /* … */
        keep += 3;
    }
    out[keep] = 0;
}

bool text_line(struct text *rest, struct text *line)
{
    if (!rest->n)
        return false;
    const char *nl = memchr(rest->p, '\n', rest->n);
    size_t len = nl ? (size_t)(nl - rest->p) : rest->n;
    *line = (struct text){rest->p, len};
    size_t taken = nl ? len + 1 : len;
    rest->p += taken;
    rest->n -= taken;
    return true;
}

bool text_starts(struct text t, const char *with)
{
    size_t n = strlen(with);
    return t.n >= n && memcmp(t.p, with, n) == 0;
}

const char *text_find(struct text t, const char *what)
{
    size_t n = strlen(what);
    assert(n > 0);
    while (t.n >= n) {
        const char *at = memchr(t.p, what[0], t.n - n + 1);
        if (!at)
            return NULL;
        if (memcmp(at, what, n) == 0)
            return at;
        t.n -= (size_t)(at + 1 - t.p);
        t.p = at + 1;
    }
    return NULL;
}
