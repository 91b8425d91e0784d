/* What this node has to say of its snapshots, to the core of its membership. */
#include <stdio.h>

#include "member/membership_private.h"

void membership_stock(struct membership *m, const struct restore_stock *stock)
{
    m->stock = *stock;
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_STOCK, .stock = &m->stock});
}

void membership_read(struct membership *m)
{
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_READ});
}

void membership_reads(struct membership *m)
{
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_READS});
}

void membership_held(struct membership *m, const struct member_held *held)
{
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_HELD, .held = held});
}

el_usec membership_away(const struct membership *m)
{
    return m->core.away_since == EL_NEVER ? 0 : loop_clock() - m->core.away_since;
}

void membership_went_back(struct membership *m, int64_t step)
{
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_WENT_BACK, .step = step});
}

void membership_taken(struct membership *m, const struct member_taken *taken)
{
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_TAKEN, .taken = taken});
}

void membership_digests(struct membership *m, const struct member_digests *digests)
{
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_DIGESTS, .digests = digests});
}

void membership_stand(struct membership *m, const struct member_stand *stand)
{
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_STAND, .stand = stand});
}

void membership_saved(struct membership *m, bool good, bool existed, const char *why)
{
    snprintf(m->saved, sizeof m->saved, "%s", why);
    membership_feed(m,
                    &(struct member_event){.type = MEMBER_EV_SAVED, .ok = good, .existed = existed, .text = m->saved});
}

void membership_moved(struct membership *m, uint64_t bytes)
{
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_MOVED, .at = bytes});
}
