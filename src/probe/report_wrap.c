/* Lines that are longer than the terminal is wide, broken between words. */
#include <string.h>

#include "probe/report_private.h"

/* Columns of the n bytes: colours take none, and a character of several bytes takes one. */
static unsigned report_wrap_width_of(const char *s, size_t n)
{
    unsigned width = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\033')
            while (i < n && s[i] != 'm')
                i++;
        else
            width += ((unsigned char)s[i] & 0xc0) != 0x80;
    }
    return width;
}

/* Where the second column of a table stands, or what an arrow points at; else a bit more than the line itself. */
static unsigned indent_of(const char *s, size_t n)
{
    size_t first = 0, at;
    while (first < n && s[first] == ' ')
        first++;
    for (at = first; at + 2 < n; at++) {
        if (s[at] == '-' && s[at + 1] == '>')
            return report_wrap_width_of(s, at) + 3;
        if (s[at] == ' ' && s[at + 1] == ' ') {
            while (at < n && s[at] == ' ')
                at++;
            return report_wrap_width_of(s, at);
        }
    }
    return (unsigned)first + 2;
}

/* How many bytes of it go into the line: up to a space, whole characters and colours. */
static size_t report_wrap_piece_of(const char *s, size_t n, unsigned columns)
{
    size_t last = 0;
    for (size_t i = 1; i < n; i++)
        if (s[i] == ' ' && s[i - 1] != ' ') {
            if (report_wrap_width_of(s, i) > columns)
                break;
            last = i;
        }
    return last;
}

static void wrap_line(const char *s, size_t n, unsigned columns, struct el_buf *out)
{
    unsigned indent = indent_of(s, n), used = 0;
    if (indent + 20 > columns)
        indent = 2;
    while (report_wrap_width_of(s, n) + used > columns) {
        size_t k = report_wrap_piece_of(s, n, columns - used);
        size_t blank = 0;
        while (blank < k && s[blank] == ' ')
            blank++;
        if (!k || blank == k)
            break; /* a word that is longer than the line */
        el_buf_printf(out, "%.*s\n%*s", (int)k, s, (int)indent, "");
        used = indent;
        while (k < n && s[k] == ' ')
            k++;
        s += k;
        n -= k;
    }
    el_buf_put(out, s, n);
}

void report_wrap(const char *text, unsigned columns, struct el_buf *out)
{
    while (*text) {
        const char *end = strchr(text, '\n');
        size_t n = end ? (size_t)(end - text) : strlen(text);
        if (report_wrap_width_of(text, n) <= columns)
            el_buf_put(out, text, n);
        else
            wrap_line(text, n, columns, out);
        if (!end)
            return;
        el_buf_puts(out, "\n");
        text = end + 1;
    }
}
