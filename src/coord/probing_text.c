/* What is said of a probe to people who wait for it. */
#include <stdio.h>

#include "coord/probing_private.h"

uint64_t probing_left_ms(const struct probing *p, el_usec now)
{
    return (p->until > now ? p->until - now : 0) / EL_MS(1) + 1;
}

static unsigned answered(const struct probing *p)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->conf.nodes; i++)
        n += p->node[i].done;
    return n;
}

void probing_text(const struct probing *p, el_usec now, char *to, size_t room)
{
    char rounds[32] = "";
    unsigned not_asked = p->conf.nodes - p->asked, done = answered(p);
    unsigned long long left = (probing_left_ms(p, now) + 999) / 1000;
    const char *what = p->kind == PROBING_PAIR    ? p->pairs_text
                       : p->kind == PROBING_LOCAL ? "each node by itself"
                                                  : "counters once more";
    if (p->over) {
        snprintf(to, room, "the health check is over");
        return;
    }
    if (p->kind == PROBING_PAIR && p->conf.rounds_max)
        snprintf(rounds, sizeof rounds, ", at most %u rounds", p->conf.rounds_max);
    snprintf(to, room, "health check: %s; %u of %u node%s %s answered, at most %llu s more%s", what, done - not_asked,
             p->asked, p->asked == 1 ? "" : "s", p->asked == 1 ? "has" : "have", left, rounds);
}

void probing_doing(const struct probing *p, unsigned node, char *to, size_t room)
{
    const struct probing_node *n = &p->node[node];
    if (p->over || n->done)
        snprintf(to, room, "probed, waits for the others");
    else if (p->kind != PROBING_PAIR)
        snprintf(to, room, "checks itself");
    else
        snprintf(to, room, "tries the network with %.40s",
                 p->node[n->guest ? p->pair[n->pair].a : p->pair[n->pair].b].host);
}
