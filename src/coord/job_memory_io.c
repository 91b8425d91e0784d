/* Who pays for a job and for what a connection holds: its address, for all of them together.  And who makes room. */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "coord/coordinator_private.h"
#include "util/log.h"
#include "util/parse.h"
#include "util/sip.h"

static size_t job_memory_held(const struct peer *p)
{
    return p->in.cap + conn_held(&p->conn);
}

/* The connections of an address hold all that they may: the one that holds most goes, unless it is the one that asks.
 * It is only broken off here; the loop closes it later. */
static bool job_memory_reclaim(struct el_mem *mem)
{
    struct purse *of = (struct purse *)((char *)mem - offsetof(struct purse, conns));
    const struct coordinator *c = of->c;
    struct peer *most = NULL;
    for (unsigned i = 0; i < c->slots; i++) {
        struct peer *p = c->slot[i];
        if (p && p->purse == of && job_memory_held(p) > (most ? job_memory_held(most) : 0))
            most = p;
    }
    if (!most || most == c->hearing || !conn_shed(&most->conn))
        return false;
    el_buf_free(&most->in);
    return true;
}

static struct purse **list_of(struct coordinator *c, const uint8_t ip[16])
{
    while (!c->purse_seed[0])
        c->purse_seed[0] = el_rng_next(&c->rng);
    return &c->purses[el_sip(c->purse_seed, ip, 16) % COORDINATOR_PURSES];
}

static struct purse *job_memory_new(struct coordinator *c, const uint8_t ip[16])
{
    struct purse *of = el_alloc(&c->mem, sizeof *of);
    if (!of)
        return NULL;
    of->c = c;
    memcpy(of->ip, ip, sizeof of->ip);
    of->mem = EL_MEM_INIT(COORDINATOR_MEMORY_ONE);
    of->mem.parent = &c->mem;
    of->sums = EL_MEM_INIT(COORDINATOR_SUMS_ONE);
    of->sums.parent = &of->mem;
    of->conns = EL_MEM_INIT(COORDINATOR_CONNS_ONE);
    of->conns.parent = &c->mem;
    of->conns.reclaim = job_memory_reclaim;
    return of;
}

struct purse *job_memory_of(struct coordinator *c, const struct el_addr *addr)
{
    struct purse **list = list_of(c, addr->ip), *of = *list;
    while (of && memcmp(of->ip, addr->ip, sizeof of->ip) != 0)
        of = of->next;
    if (!of && (of = job_memory_new(c, addr->ip))) {
        of->next = *list;
        *list = of;
    }
    if (of)
        of->users++;
    return of;
}

void job_memory_leave(struct purse *of)
{
    if (!of || --of->users)
        return;
    struct purse **at = list_of(of->c, of->ip);
    while (*at != of)
        at = &(*at)->next;
    *at = of->next;
    assert(of->mem.used_bytes == 0 && of->conns.used_bytes == 0);
    el_free(&of->c->mem, of);
}

/* --- room for others ---------------------------------------------------------------------------------------------- */

/* Of those that never formed a round, of the address that has begun most of them: the oldest. */
static size_t least_missed(const struct coordinator *c)
{
    size_t least = c->jobs;
    unsigned best = 0;
    for (size_t i = 0; i < c->jobs; i++) {
        unsigned n = 0;
        for (size_t k = 0; k < c->jobs; k++)
            n += !rdzv_has_formed(c->job[k]->r) && c->job[k]->purse == c->job[i]->purse;
        if (rdzv_has_formed(c->job[i]->r) || n <= best)
            continue;
        best = n;
        least = i;
    }
    return least;
}

/* Whoever waits at a console has a line, and asks again. */
static void tell_members(struct coordinator *c, const struct job *job, const char *what)
{
    char text[128];
    struct msg m = {.type = MSG_REFUSED, .u.refused = {.status = EL_EXIT_TEMPFAIL, .retry = true, .text = text}};
    snprintf(text, sizeof text, "the coordinator gave this job up, which had not formed a round: others need its %s",
             what);
    for (unsigned i = 0; i < rdzv_room_used(job->r); i++) {
        struct peer *p = peer_find(c, rdzv_conn(job->r, i));
        if (!p)
            continue;
        peer_send(p, &m);
        peer_finish(p);
    }
}

bool job_memory_give_up_one(struct coordinator *c, const char *what)
{
    size_t i = least_missed(c);
    char shown[EL_SHOW_MAX];
    if (i == c->jobs)
        return false;
    coordinator_say(c, EL_WARN, "job %s is given up: it never formed a round, and others need the %s",
                    el_show(rdzv_run_id(c->job[i]->r), shown), what);
    tell_members(c, c->job[i], what);
    coordinator_job_free(c, i);
    return true;
}
