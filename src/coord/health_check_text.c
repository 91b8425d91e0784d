/* What is said of a probe to people who wait for it. */
#include <stdio.h>

#include "coord/health_check_private.h"

uint64_t health_check_left_ms(const struct health_check *p, el_usec now)
{
    return (p->until > now ? p->until - now : 0) / EL_MS(1) + 1;
}

static unsigned answered(const struct health_check *p)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->conf.nodes; i++)
        n += p->node[i].done;
    return n;
}

void health_check_text(const struct health_check *p, el_usec now, char *to, size_t room)
{
    char rounds[32] = "";
    unsigned not_asked = p->conf.nodes - p->asked, done = answered(p);
    unsigned long long left = (health_check_left_ms(p, now) + 999) / 1000;
    const char *what = p->kind == HEALTH_CHECK_PAIR    ? p->pairs_text
                       : p->kind == HEALTH_CHECK_LOCAL ? "each node by itself"
                                                       : "counters once more";
    if (p->over) {
        snprintf(to, room, "the health check is over");
        return;
    }
    if (p->kind == HEALTH_CHECK_PAIR && p->conf.rounds_max)
        snprintf(rounds, sizeof rounds, ", at most %u rounds", p->conf.rounds_max);
    snprintf(to, room, "health check: %s; %u of %u node%s %s answered, at most %llu s more%s", what, done - not_asked,
             p->asked, p->asked == 1 ? "" : "s", p->asked == 1 ? "has" : "have", left, rounds);
}
