#include "control/ack_tracker.h"

void ack_tracker_add(struct ack_tracker *s, uint64_t bytes, el_usec at)
{
    s->total += bytes;
    if (at == EL_NEVER)
        return;
    if (s->n == ACK_TRACKER_MARKS_MAX) { /* never earlier than it is true */
        s->mark[(s->first + s->n - 1) % ACK_TRACKER_MARKS_MAX].end = s->total;
        return;
    }
    unsigned i = (s->first + s->n++) % ACK_TRACKER_MARKS_MAX;
    s->mark[i].end = s->total;
    s->mark[i].at = at;
}

el_usec ack_tracker_acked(struct ack_tracker *s, uint64_t unacknowledged_bytes)
{
    uint64_t acked = unacknowledged_bytes < s->total ? s->total - unacknowledged_bytes : 0;
    while (s->n && s->mark[s->first].end <= acked) {
        s->acked_at = s->mark[s->first].at;
        s->first = (s->first + 1) % ACK_TRACKER_MARKS_MAX;
        s->n--;
    }
    return s->acked_at;
}
