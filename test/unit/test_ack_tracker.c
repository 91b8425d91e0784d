#include "control/ack_tracker.h"

#include "lib/tap.h"

int main(void)
{
    struct ack_tracker s = {0};
    ack_tracker_add(&s, 4, EL_NEVER);
    is_num((long)ack_tracker_acked(&s, 0), 0, "what is no message is never delivered");
    ack_tracker_add(&s, 24, EL_MS(10));
    ack_tracker_add(&s, 24, EL_MS(20));
    is_num((long)ack_tracker_acked(&s, 48), 0, "nothing is acknowledged");
    is_num((long)ack_tracker_acked(&s, 25), 0, "a piece of the first");
    is_num((long)ack_tracker_acked(&s, 24), EL_MS(10), "the first, while the second is under way");
    is_num((long)ack_tracker_acked(&s, 48), EL_MS(10), "that stays so");
    is_num((long)ack_tracker_acked(&s, 1000), EL_MS(10), "more than was sent is all of it");
    is_num((long)ack_tracker_acked(&s, 0), EL_MS(20), "both");
    for (unsigned i = 0; i < 3 * ACK_TRACKER_MARKS_MAX; i++)
        ack_tracker_add(&s, 1, EL_MS(100 + i));
    is_num((long)ack_tracker_acked(&s, 2 * ACK_TRACKER_MARKS_MAX + 1), EL_MS(100 + ACK_TRACKER_MARKS_MAX - 2),
           "many under way");
    is_num((long)ack_tracker_acked(&s, 1), EL_MS(100 + ACK_TRACKER_MARKS_MAX - 2), "the youngest are not told apart");
    is_num((long)ack_tracker_acked(&s, 0), EL_MS(100 + ACK_TRACKER_MARKS_MAX - 1), "and count as older than they are");
    ack_tracker_add(&s, 1, EL_MS(500));
    is_num((long)ack_tracker_acked(&s, 0), EL_MS(500), "later ones are");
    return done();
}
