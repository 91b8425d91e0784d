#include "output/head.h"

#include <stdio.h>
#include <string.h>

#define HEADER      "Traceback (most recent call last)"
#define HEADER_LEN  (sizeof HEADER - 1)
#define HEAD_SOON   EL_SEC(2)        /* a message is printed at once, whatever its length */
#define LATER_BYTES (16u * 1024u)    /* more output than this behind it, and it did not end the program */
#define CHAIN_BYTES (HEAD_BYTES / 2) /* an exception that led to another one stands so near in front of it */
#define PREFIX_MAX  200u             /* "[rank1]: ", and what a log puts in front */

static char byte_at(const struct ring *r, uint64_t at)
{
    return r->v[(r->at + RING_BYTES - (size_t)(r->total - at)) % RING_BYTES];
}

static uint64_t head_first_of(const struct ring *r)
{
    return r->total - r->len;
}

/* Where the line begins in which the header stands, at `at`, which may lie in the bytes that come next. */
static uint64_t head_line_start(const struct ring *r, const char *bytes, uint64_t at)
{
    for (unsigned i = 0; i < PREFIX_MAX && at > head_first_of(r); i++, at--) {
        char c = at > r->total ? bytes[at - 1 - r->total] : byte_at(r, at - 1);
        if (c == '\n' || c == '\r')
            break;
    }
    return at;
}

static void head_mark(struct head *h, const struct ring *r, const char *bytes, uint64_t at, el_usec now)
{
    uint64_t line = head_line_start(r, bytes, at);
    if (h->marked && line - h->mark < CHAIN_BYTES && now - h->mark_at < HEAD_SOON)
        return;
    h->marked = true;
    h->mark = line;
    h->mark_at = now;
}

/* The headers in these bytes, one that began in the last ones among them. */
static void head_look(struct head *h, const struct ring *r, const char *bytes, size_t n, el_usec now)
{
    const char *from = bytes, *end = bytes + n;
    unsigned more = 0;
    while (h->matched && more < n && h->matched + more < HEADER_LEN && bytes[more] == HEADER[h->matched + more])
        more++;
    if (h->matched && h->matched + more == HEADER_LEN)
        head_mark(h, r, bytes, r->total - h->matched, now);
    h->matched = h->matched && more == n && h->matched + more < HEADER_LEN ? h->matched + more : 0;
    if (h->matched)
        return;
    for (const char *at; (at = memmem(from, (size_t)(end - from), HEADER, HEADER_LEN)); from = at + HEADER_LEN)
        head_mark(h, r, bytes, r->total + (uint64_t)(at - bytes), now);
    for (unsigned k = HEADER_LEN - 1; k && !h->matched; k--) /* 'T' stands in it once only */
        if (k <= n && memcmp(end - k, HEADER, k) == 0)
            h->matched = k;
}

/* Is the ring about to lose it? */
static void rescue(struct head *h, const struct ring *r, const char *bytes, size_t n)
{
    bool kept = h->len && h->from == h->mark;
    if (!h->marked || kept || !r->v || h->mark < head_first_of(r) || h->mark >= r->total ||
        r->total + n <= h->mark + RING_BYTES)
        return;
    if (!h->v && !(h->v = el_alloc(h->mem, HEAD_BYTES)))
        return;
    h->from = h->mark;
    for (h->len = 0; h->len < HEAD_BYTES && h->from + h->len < r->total; h->len++)
        h->v[h->len] = byte_at(r, h->from + h->len);
    size_t more = n < HEAD_BYTES - h->len ? n : HEAD_BYTES - h->len;
    memcpy(h->v + h->len, bytes, more);
    h->len += more;
}

void head_put(struct head *h, const struct ring *r, const char *bytes, size_t n, el_usec now)
{
    rescue(h, r, bytes, n);
    head_look(h, r, bytes, n, now);
    rescue(h, r, bytes, n); /* a header that the last chunk broke off */
    if (h->marked && now - h->mark_at <= HEAD_SOON)
        h->mark_soon = r->total + n;
    if (h->len && h->from == h->mark)
        h->soon = h->mark_soon;
}

size_t head_join(const struct head *h, const struct ring *r, char *to)
{
    uint64_t first = head_first_of(r);
    size_t n = 0;
    if (h->len && h->from < first && r->total <= h->soon + LATER_BYTES) {
        n = h->from + h->len > first ? (size_t)(first - h->from) : h->len;
        memcpy(to, h->v, n);
        uint64_t gap = first - h->from - n;
        if (gap)
            n += (size_t)snprintf(to + n, HEAD_NOTE_BYTES, "\n\t[... %llu bytes left out ...]\n\t",
                                  (unsigned long long)gap);
    }
    return n + ring_copy(r, to + n);
}

void head_free(struct head *h)
{
    el_free(h->mem, h->v);
    *h = (struct head){.mem = h->mem};
}

/* --- of a whole text --- */

static bool is_indented(const char *line, size_t n, const char *prefix, size_t prefix_len)
{
    if (n >= prefix_len && memcmp(line, prefix, prefix_len) == 0) {
        line += prefix_len;
        n -= prefix_len;
    }
    return !n || line[0] == ' ' || line[0] == '\t' || line[0] == '\r';
}

/* From the header's line on: one line alone is not indented, the exception's own; so nothing else was printed. */
static bool reaches_end(const char *line, const char *header, const char *end)
{
    size_t prefix = (size_t)(header - line);
    unsigned plain = 0;
    for (const char *at = line, *nl; at < end && plain < 3; at = nl + 1) {
        nl = memchr(at, '\n', (size_t)(end - at));
        if (!nl)
            nl = end;
        plain += at != line && !is_indented(at, (size_t)(nl - at), line, prefix);
    }
    return plain < 2;
}

long head_find(const char *text, size_t n)
{
    const char *last = NULL, *end = text + n;
    for (const char *at = text; (at = memmem(at, (size_t)(end - at), HEADER, HEADER_LEN)); at += HEADER_LEN)
        last = at;
    if (!last)
        return -1;
    const char *line = last;
    while (line > text && line[-1] != '\n')
        line--;
    return last - line <= PREFIX_MAX && reaches_end(line, last, end) ? line - text : -1;
}
