#include "control/sent.h"

void sent_add(struct sent *s, uint64_t bytes, el_usec at)
{
    s->total += bytes;
    if (at == EL_NEVER)
        return;
    if (s->n == SENT_MARKS_MAX) { /* never earlier than it is true */
        s->mark[(s->first + s->n - 1) % SENT_MARKS_MAX].end = s->total;
        return;
    }
    unsigned i = (s->first + s->n++) % SENT_MARKS_MAX;
    s->mark[i].end = s->total;
    s->mark[i].at = at;
}

el_usec sent_acked(struct sent *s, uint64_t unacknowledged_bytes)
{
    uint64_t acked = unacknowledged_bytes < s->total ? s->total - unacknowledged_bytes : 0;
    while (s->n && s->mark[s->first].end <= acked) {
        s->acked_at = s->mark[s->first].at;
        s->first = (s->first + 1) % SENT_MARKS_MAX;
        s->n--;
    }
    return s->acked_at;
}
