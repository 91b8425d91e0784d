#include "output/filter.h"

#include <assert.h>
#include <string.h>

static int end_needle(struct filter *f, size_t start)
{
    size_t len = f->text.len - start;
    if (!len)
        return 0;
    if (f->count == FILTER_NEEDLES_MAX)
        return -1;
    f->needle[f->count++] = (struct filter_needle){.at = start, .len = len};
    return 0;
}

int filter_parse(struct filter *f, struct el_mem *mem, const char *list)
{
    *f = (struct filter){.text = EL_BUF_INIT(mem, 0)};
    size_t start = 0;
    for (; *list; list++) {
        if (list[0] == ',' && list[1] != ',') {
            if (end_needle(f, start) < 0)
                return -1;
            start = f->text.len;
            continue;
        }
        if (el_buf_put(&f->text, list, 1) < 0)
            return -1;
        list += list[0] == ',';
    }
    return end_needle(f, start);
}

void filter_free(struct filter *f)
{
    el_buf_free(&f->text);
    f->count = 0;
}

static bool filter_contains(const char *hay, size_t n, const char *needle, size_t len)
{
    for (const char *at; n >= len && (at = memchr(hay, needle[0], n - len + 1));) {
        if (memcmp(at, needle, len) == 0)
            return true;
        n -= (size_t)(at + 1 - hay);
        hay = at + 1;
    }
    return false;
}

bool filter_match(const struct filter *f, const char *line, size_t n)
{
    for (unsigned i = 0; i < f->count; i++)
        if (filter_contains(line, n, f->text.v + f->needle[i].at, f->needle[i].len))
            return true;
    return false;
}

void filter_stream_init(struct filter_stream *s, struct el_mem *mem, const struct filter *f, const char *prefix,
                        size_t max)
{
    assert(max > 0);
    *s = (struct filter_stream){
        .filter = f, .prefix = prefix, .prefix_len = strlen(prefix), .max = max, .held = EL_BUF_INIT(mem, max)};
}

/* Judges the line by what is held of it and passes that on. */
static int filter_judge(struct filter_stream *s, struct el_buf *out)
{
    bool take = filter_match(s->filter, s->held.v, s->held.len);
    s->judged = take ? FILTER_TAKE : FILTER_SKIP;
    int r = 0;
    if (take && (el_buf_put(out, s->prefix, s->prefix_len) < 0 || el_buf_put(out, s->held.v, s->held.len) < 0))
        r = -1;
    s->held.len = 0;
    return r;
}

/* Bytes of one line, its end included if `ends`. */
static int filter_feed_line(struct filter_stream *s, const char *bytes, size_t n, bool ends, struct el_buf *out)
{
    size_t text = n - ends; /* without the newline */
    if (s->judged == FILTER_START) {
        size_t room = s->max - s->held.len, k = text < room ? text : room;
        if (el_buf_put(&s->held, bytes, k) < 0)
            return -1;
        bytes += k;
        n -= k;
        if ((ends || s->held.len == s->max) && filter_judge(s, out) < 0)
            return -1;
    }
    if (s->judged == FILTER_TAKE && el_buf_put(out, bytes, n) < 0)
        return -1;
    if (ends)
        s->judged = FILTER_START;
    return 0;
}

int filter_feed(struct filter_stream *s, const char *bytes, size_t n, struct el_buf *out)
{
    const char *end = bytes + n;
    while (bytes < end) {
        const char *nl = memchr(bytes, '\n', (size_t)(end - bytes));
        const char *stop = nl ? nl + 1 : end;
        if (filter_feed_line(s, bytes, (size_t)(stop - bytes), nl != NULL, out) < 0)
            return -1;
        bytes = stop;
    }
    return 0;
}

int filter_end(struct filter_stream *s, struct el_buf *out)
{
    int r = 0;
    if (s->held.len)
        r = filter_judge(s, out);
    if (s->judged == FILTER_TAKE && el_buf_put(out, "\n", 1) < 0)
        r = -1;
    s->judged = FILTER_START;
    return r;
}

void filter_stream_free(struct filter_stream *s)
{
    el_buf_free(&s->held);
}
