/* Which of the messages of a connection the other side's host has acknowledged, by their places in the stream. */
#ifndef CONTROL_ACK_TRACKER_H
#define CONTROL_ACK_TRACKER_H
#include <stdint.h>

#include "util/time.h"

#define ACK_TRACKER_MARKS_MAX                                                                                          \
    16 /* messages under way that are told apart; of more, the youngest count as their oldest */

struct ack_tracker {
    uint64_t total; /* bytes */
    el_usec acked_at;
    unsigned first, n;
    struct {
        uint64_t end; /* of the message, in the stream */
        el_usec at;
    } mark[ACK_TRACKER_MARKS_MAX];
};

/* So many bytes more were sent at `at`; EL_NEVER: they are no message. */
void ack_tracker_add(struct ack_tracker *s, uint64_t bytes, el_usec at);

/* When the last message was sent of which nothing is among the last so many bytes, which are not acknowledged; 0: there
 * is none. */
el_usec ack_tracker_acked(struct ack_tracker *s, uint64_t unacknowledged_bytes);

#endif
