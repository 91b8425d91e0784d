#include "util/ranges.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "util/scan.h"

enum { RUN_MAX = 32, MARK_BYTES = 4 }; /* ",…" */

static void end_run(struct el_ranges *s, struct el_buf *out)
{
    char text[RUN_MAX];
    if (!s->open)
        return;
    s->open = false;
    int n = snprintf(text, sizeof text, s->last > s->first ? "%s%u-%u" : "%s%u", s->any ? "," : "", s->first, s->last);
    if (s->left_out || (out->max && out->len + (size_t)n + MARK_BYTES > out->max)) {
        s->left_out++;
        return;
    }
    el_buf_put(out, text, (size_t)n);
    s->any = true;
}

void el_ranges_add(struct el_ranges *s, struct el_buf *out, unsigned number)
{
    assert(!s->open || number > s->last);
    if (s->open && number == s->last + 1) {
        s->last = number;
        return;
    }
    end_run(s, out);
    s->first = s->last = number;
    s->open = true;
}

void el_ranges_end(struct el_ranges *s, struct el_buf *out)
{
    end_run(s, out);
    if (s->left_out)
        el_buf_puts(out, s->any ? ",…" : "…");
}

bool el_ranges_next(const char **at, unsigned *first, unsigned *last)
{
    const char *p = *at;
    uint64_t a, b;
    if (!scan_span(&p, &a, &b) || b > UINT_MAX)
        return false;
    if (*p && (*p != ',' || !p[1]))
        return false;
    *at = *p ? p + 1 : p;
    *first = (unsigned)a;
    *last = (unsigned)b;
    return true;
}
