#include "failure/log_traceback.h"

#include <string.h>

#include "failure/traceback_line.h"
#include "util/wrap.h"

#define HEADER     "Traceback (most recent call last)"
#define HEADER_CUT "Traceback (most recent c" /* in a box that is narrow */

static size_t log_traceback_blanks(struct text t)
{
    size_t i = 0;
    while (i < t.n && t.p[i] == ' ')
        i++;
    return i;
}

static struct text log_traceback_skip(struct text t, size_t n)
{
    return (struct text){t.p + n, t.n - n};
}

/* --- JSON --- */

/* The string's end, at its quote; from is behind the first one. */
static const char *log_traceback_string_end(const char *from, const char *end)
{
    while (from < end && *from != '"')
        from += *from == '\\' && from + 1 < end ? 2 : 1;
    return from < end ? from : NULL;
}

static unsigned hex(const char *p)
{
    unsigned v = 0;
    for (unsigned i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *at = p[i] ? strchr(digits, p[i] | 0x20) : NULL;
        v = v * 16 + (at ? (unsigned)(at - digits) : 0);
    }
    return v;
}

static int put_utf8(struct el_buf *out, unsigned c)
{
    if (c < 0x80)
        return el_buf_printf(out, "%c", c >= 0x20 || c == '\t' ? (int)c : ' ');
    if (c < 0x800)
        return el_buf_printf(out, "%c%c", (int)(0xc0 | c >> 6), (int)(0x80 | (c & 0x3f)));
    if (c >= 0xd800 && c < 0xe000) /* half of a pair: nothing that names an error */
        return el_buf_puts(out, "?");
    return el_buf_printf(out, "%c%c%c", (int)(0xe0 | c >> 12), (int)(0x80 | (c >> 6 & 0x3f)), (int)(0x80 | (c & 0x3f)));
}

/* A JSON string's inside; its control characters are gone, as everywhere in the text. */
static int log_traceback_put_string(struct el_buf *out, const char *p, const char *end)
{
    int bad = 0;
    for (; p < end; p++) {
        if (*p != '\\' || p + 1 >= end) {
            bad |= el_buf_put(out, p, 1);
            continue;
        }
        p++;
        switch (*p) {
        case 'n': bad |= el_buf_puts(out, "\n"); break;
        case 't': bad |= el_buf_puts(out, "\t"); break;
        case 'r':
        case 'b':
        case 'f': break;
        case 'u':
            if (end - p < 5)
                return bad;
            bad |= put_utf8(out, hex(p + 1));
            p += 4;
            break;
        default: bad |= el_buf_put(out, p, 1);
        }
    }
    return bad;
}

/* The value's first byte behind "key": in t; NULL = no such key. */
static const char *log_traceback_value_of(struct text t, const char *key)
{
    for (const char *at; (at = text_find(t, key));) {
        t = log_traceback_skip(t, (size_t)(at - t.p) + strlen(key));
        struct text rest = log_traceback_skip(t, log_traceback_blanks(t));
        if (rest.n && rest.p[0] == ':') {
            rest = log_traceback_skip(rest, 1);
            return rest.p + log_traceback_blanks(rest);
        }
    }
    return NULL;
}

/* Puts the string value of a key; false if it has none. */
static bool log_traceback_put_value(struct el_buf *out, struct text t, const char *key)
{
    const char *v = log_traceback_value_of(t, key), *end = t.p + t.n, *close;
    if (!v || v >= end || *v != '"' || !(close = log_traceback_string_end(v + 1, end)))
        return false;
    log_traceback_put_string(out, v + 1, close);
    return true;
}

/* "… Traceback (most recent call last):\n  File \"…": the string in which it stands. */
static bool log_traceback_string(struct el_buf *out, struct text line)
{
    const char *at = text_find(line, HEADER ":\\n"), *end = line.p + line.n, *open = at, *close;
    while (open && open > line.p && !(open[-1] == '"' && (open < line.p + 2 || open[-2] != '\\')))
        open--;
    if (!open || open == line.p || !(close = log_traceback_string_end(at, end)))
        return false;
    log_traceback_put_string(out, open, close);
    el_buf_puts(out, "\n");
    return true;
}

/* structlog's dict_tracebacks: a list, the exception that was raised last first. */
static bool log_traceback_frames(struct el_buf *out, struct text line)
{
    const char *type = text_find(line, "\"exc_type\""), *frames = type ? text_find(line, "\"frames\"") : NULL;
    if (!frames || frames < type)
        return false;
    struct text head = {type, (size_t)(frames - type)}, rest = log_traceback_skip(line, (size_t)(frames - line.p));
    el_buf_puts(out, HEADER ":\n");
    const char *next = text_find(rest, "\"exc_type\"");
    rest.n = next ? (size_t)(next - rest.p) : rest.n;
    for (const char *at; (at = text_find(rest, "\"filename\""));) {
        rest = log_traceback_skip(rest, (size_t)(at - rest.p));
        const char *number = log_traceback_value_of(rest, "\"lineno\"");
        el_buf_puts(out, "  File \"");
        log_traceback_put_value(out, rest, "\"filename\"");
        el_buf_puts(out, "\", line ");
        for (; number && number < rest.p + rest.n && *number >= '0' && *number <= '9'; number++)
            el_buf_put(out, number, 1);
        el_buf_puts(out, ", in ");
        log_traceback_put_value(out, rest, "\"name\"");
        el_buf_puts(out, "\n");
        rest = log_traceback_skip(rest, 1);
    }
    log_traceback_put_value(out, head, "\"exc_type\"");
    el_buf_puts(out, ": ");
    log_traceback_put_value(out, head, "\"exc_value\"");
    el_buf_puts(out, "\n");
    return true;
}

/* Elastic's schema: frames without header, type and message beside them. */
static bool log_traceback_ecs(struct el_buf *out, struct text line)
{
    const char *error = log_traceback_value_of(line, "\"error\""), *flat = text_find(line, "\"error.stack_trace\"");
    const char *stack = log_traceback_value_of(line, flat ? "\"error.stack_trace\"" : "\"stack_trace\"");
    if ((!error && !flat) || !stack ||
        !text_starts(log_traceback_skip(line, (size_t)(stack - line.p)), "\"  File \\\""))
        return false;
    struct text in = flat ? line : log_traceback_skip(line, (size_t)(error - line.p));
    el_buf_puts(out, HEADER ":\n");
    log_traceback_put_value(out, line, flat ? "\"error.stack_trace\"" : "\"stack_trace\"");
    if (out->len && out->v[out->len - 1] != '\n')
        el_buf_puts(out, "\n");
    log_traceback_put_value(out, in, flat ? "\"error.type\"" : "\"type\"");
    el_buf_puts(out, ": ");
    log_traceback_put_value(out, in, flat ? "\"error.message\"" : "\"message\"");
    el_buf_puts(out, "\n");
    return true;
}

/* --- rich's boxes --- */

static bool opens_box(struct text t)
{
    return text_starts(t, "╭") && text_find(t, " " HEADER_CUT);
}

/* What stands in the box's line; *full: up to its right edge, so that it may go on in the next. */
static bool in_box(struct text t, struct text *inside, bool *full)
{
    static const char bar[] = "│";
    size_t n = sizeof bar - 1;
    while (t.n && t.p[t.n - 1] == ' ')
        t.n--;
    if (t.n < 2 * n + 2 || !text_starts(t, bar) || memcmp(t.p + t.n - n, bar, n) != 0)
        return false;
    if (t.p[n] != ' ' || t.p[t.n - n - 1] != ' ') /* none of rich's: perhaps half of a character */
        return false;
    *inside = (struct text){t.p + n + 1, t.n - 2 * n - 2};
    *full = inside->n && inside->p[inside->n - 1] != ' ';
    while (inside->n && inside->p[inside->n - 1] == ' ')
        inside->n--;
    return true;
}

static bool ends_in(struct text t)
{
    return t.n > 3 && memcmp(t.p + t.n - 3, " in", 3) == 0;
}

/* A frame's line: "/home/me/train.py:5 in main"; a path or a name that does not fit goes on in the next line. */
static int put_box_line(struct el_buf *out, struct text line, struct text *rest, size_t indent)
{
    struct text inside, more, next, after;
    bool full = false;
    if (!in_box(line, &inside, &full) || !inside.n || (inside.p[0] != '/' && inside.p[0] != '<'))
        return el_buf_put(out, line.p, line.n);
    if (!ends_in(inside) && !(full && !text_find(inside, " in ")))
        return el_buf_put(out, line.p, line.n);
    int bad = el_buf_puts(out, "│ ") | el_buf_put(out, inside.p, inside.n);
    for (unsigned i = 0; i < 8 && (ends_in(inside) || (full && !text_find(inside, " in "))); i++) {
        after = *rest;
        if (!text_line(&after, &next) || log_traceback_blanks(next) < indent ||
            !in_box(log_traceback_skip(next, indent), &more, &full) || !more.n)
            break;
        bad |= el_buf_puts(out, ends_in(inside) ? " " : "") | el_buf_put(out, more.p, more.n);
        inside = more;
        *rest = after;
    }
    return bad | el_buf_puts(out, " │");
}

/* "The above exception was the direct cause of the following exception:", which narrow columns wrap. */
static int log_traceback_put_link(struct el_buf *out, struct text line, struct text *rest, size_t indent)
{
    struct text next;
    int bad = el_buf_put(out, line.p, line.n);
    for (unsigned i = 0; i < 4 && line.n && line.p[line.n - 1] != ':' && text_line(rest, &next); i++) {
        line = log_traceback_skip(next, log_traceback_blanks(next) < indent ? log_traceback_blanks(next) : indent);
        while (line.n && line.p[line.n - 1] == ' ')
            line.n--;
        bad |= el_buf_puts(out, " ") | el_buf_put(out, line.p, line.n);
    }
    return bad | el_buf_puts(out, "\n");
}

static struct text log_traceback_trimmed(struct text t)
{
    while (t.n && t.p[t.n - 1] == ' ')
        t.n--;
    return t;
}

static bool log_traceback_is_edge(struct text t)
{
    return text_starts(t, "╭") || text_starts(t, "╰") || text_starts(t, "│");
}

/* Printed by whoever else: a logger, torch. */
static bool log_traceback_is_other(struct text t)
{
    return line_is_foreign(t) || line_is_record(t) || text_starts(t, "[rank");
}

/* The exception below the box is wrapped at the box's width: where the next word would have fitted it is not. */
static int log_traceback_put_wrapped(struct el_buf *out, size_t width, struct text *rest, size_t indent)
{
    struct text line, next, ahead = *rest;
    bool open = false;
    int bad = 0;
    for (unsigned i = 0; i < 20 && width >= 20 && text_line(&ahead, &line) && log_traceback_blanks(line) >= indent;
         i++) {
        struct text after = ahead;
        size_t word = 0, columns;
        line = log_traceback_trimmed(log_traceback_skip(line, indent));
        if (!line.n || log_traceback_is_edge(line))
            break;
        columns = el_columns(line.p, line.n);
        bad |= el_buf_put(out, line.p, line.n);
        open = true;
        *rest = ahead;
        if (!text_line(&after, &next) || log_traceback_blanks(next) < indent)
            break;
        next = log_traceback_trimmed(log_traceback_skip(next, indent));
        while (word < next.n && next.p[word] != ' ')
            word++;
        if (!word || log_traceback_is_edge(next) || log_traceback_is_other(next) ||
            columns + 1 + el_columns(next.p, word) <= width)
            break;
        /* A word that is longer than a line is broken. */
        bad |= el_buf_puts(out, memchr(line.p, ' ', line.n) || columns < width ? " " : "");
    }
    return bad | (open ? el_buf_puts(out, "\n") : 0);
}

/* The box, and what is indented as it is. */
static int log_traceback_box(struct el_buf *out, struct text line, struct text *rest)
{
    static const char edge[] = "╭─ " HEADER " ─╮\n";
    size_t indent = log_traceback_blanks(line);
    bool whole = !indent && text_find(line, " " HEADER " ");
    int bad = whole ? el_buf_put(out, line.p, line.n) | el_buf_puts(out, "\n") : el_buf_puts(out, edge);
    struct text next, ahead = *rest;
    line = log_traceback_trimmed(log_traceback_skip(line, indent));
    const size_t width = el_columns(line.p, line.n);
    while (text_line(&ahead, &next) && log_traceback_blanks(next) >= indent &&
           (indent || log_traceback_is_edge(next))) {
        *rest = ahead;
        next = log_traceback_trimmed(log_traceback_skip(next, indent));
        if (text_starts(next, "The above exception was") || text_starts(next, "During handling of the above"))
            bad |= log_traceback_put_link(out, next, rest, indent);
        else if (opens_box(next)) /* of the exception that this one led to */
            bad |= el_buf_puts(out, edge);
        else if (text_starts(next, "╰"))
            bad |= el_buf_put(out, next.p, next.n) | el_buf_puts(out, "\n") |
                   log_traceback_put_wrapped(out, width, rest, indent);
        else
            bad |= put_box_line(out, next, rest, indent) | el_buf_puts(out, "\n");
        ahead = *rest;
    }
    return bad;
}

/* The length of "[rank1]: ", which torch has in front of each line of what a handler of exceptions prints. */
static size_t rank_in(struct text t)
{
    size_t i = 5;
    if (!text_starts(t, "[rank"))
        return 0;
    while (i < t.n && t.p[i] >= '0' && t.p[i] <= '9')
        i++;
    return i > 5 && text_starts(log_traceback_skip(t, i), "]: ") ? i + 3 : 0;
}

/* Boxes without that, and what follows them. */
static int put_unranked(struct el_buf *out, struct text t)
{
    struct text line, mark = {0};
    int bad = 0;
    while (text_line(&t, &line)) {
        size_t n = rank_in(line);
        if (n && opens_box(log_traceback_skip(line, n)))
            mark = (struct text){line.p, n};
        bool same = mark.n && line.n + 1 >= mark.n && memcmp(line.p, mark.p, mark.n - 1) == 0;
        mark.n = same ? mark.n : 0;
        /* Its blank is lost where the line is empty; any other byte in that place belongs to what follows. */
        n = mark.n && !(line.n >= mark.n && line.p[mark.n - 1] == ' ') ? mark.n - 1 : mark.n;
        bad |= el_buf_put(out, line.n ? line.p + n : "", line.n - n) | el_buf_puts(out, "\n");
    }
    return bad;
}

bool log_traceback_needed(struct text t)
{
    return text_find(t, HEADER ":\\n") || text_find(t, "\"exc_type\"") || text_find(t, "stack_trace\"") ||
           (text_find(t, "╭") && text_find(t, HEADER_CUT));
}

int unfold(struct el_buf *out, struct text t)
{
    struct el_buf bare = EL_BUF_INIT(out->mem, 0);
    struct text line;
    int bad = 0;
    if (text_find(t, "]: ╭")) {
        bad = put_unranked(&bare, t);
        t = (struct text){bare.len ? bare.v : "", bare.len};
    }
    while (text_line(&t, &line) && !bad) {
        if (opens_box(log_traceback_skip(line, log_traceback_blanks(line))))
            bad |= log_traceback_box(out, line, &t);
        else if (!log_traceback_string(out, line) && !log_traceback_frames(out, line) && !log_traceback_ecs(out, line))
            bad |= el_buf_put(out, line.p, line.n) | el_buf_puts(out, "\n");
    }
    el_buf_free(&bare);
    return bad | (out->full ? -1 : 0);
}
