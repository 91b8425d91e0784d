#include "util/ranges.h"

#include <assert.h>

void el_ranges_end(struct el_ranges *s, struct el_buf *out)
{
    if (!s->open)
        return;
    el_buf_printf(out, "%s%u", s->any ? "," : "", s->first);
    if (s->last > s->first)
        el_buf_printf(out, "-%u", s->last);
    s->any = true;
    s->open = false;
}

void el_ranges_add(struct el_ranges *s, struct el_buf *out, unsigned number)
{
    assert(!s->open || number > s->last);
    if (s->open && number == s->last + 1) {
        s->last = number;
        return;
    }
    el_ranges_end(s, out);
    *s = (struct el_ranges){number, number, true, s->any};
}
