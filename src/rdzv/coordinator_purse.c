/* Who pays for a job: its address, for all of its jobs together. */
#include <assert.h>
#include <string.h>

#include "rdzv/coordinator_private.h"

struct purse *purse_of(struct coordinator *c, const struct el_addr *addr)
{
    struct purse *of = c->purses;
    while (of && memcmp(of->ip, addr->ip, sizeof of->ip) != 0)
        of = of->next;
    if (!of && (of = el_alloc(&c->mem, sizeof *of))) {
        memcpy(of->ip, addr->ip, sizeof of->ip);
        of->mem = EL_MEM_INIT(COORDINATOR_MEMORY_ONE);
        of->mem.parent = &c->mem;
        of->sums = EL_MEM_INIT(COORDINATOR_SUMS_ONE);
        of->sums.parent = &of->mem;
        of->next = c->purses;
        c->purses = of;
    }
    if (of)
        of->jobs++;
    return of;
}

void purse_leave(struct coordinator *c, struct purse *of)
{
    struct purse **at = &c->purses;
    if (!of || --of->jobs)
        return;
    while (*at != of)
        at = &(*at)->next;
    *at = of->next;
    assert(of->mem.used_bytes == 0);
    el_free(&c->mem, of);
}
