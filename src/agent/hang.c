#include "agent/hang.h"

#include <assert.h>

int hang_init(struct hang *h, unsigned slots, el_usec timeout, struct el_mem *mem)
{
    *h = (struct hang){.timeout = timeout, .slots = slots};
    if (!timeout)
        return 0;
    h->worker = el_alloc(mem, slots * sizeof *h->worker);
    return h->worker ? 0 : -1;
}

void hang_free(struct hang *h, struct el_mem *mem)
{
    el_free(mem, h->worker);
    h->worker = NULL;
}

void hang_begin(struct hang *h, el_usec now)
{
    if (!h->timeout)
        return;
    for (unsigned i = 0; i < h->slots; i++)
        h->worker[i] = (struct hang_worker){.up = true, .still_since = now};
    h->looked_at = now;
    h->watching = true;
}

void hang_end(struct hang *h)
{
    h->watching = false;
}

static el_usec every(const struct hang *h)
{
    return h->timeout / HANG_LOOKS + 1;
}

el_usec hang_sample_due(const struct hang *h)
{
    return h->watching ? h->looked_at + every(h) : EL_NEVER;
}

/* Since it was last seen alive, not since the last look: little by little, work adds up. */
static bool used_little(const struct hang_worker *w, uint64_t cpu_usec, el_usec now)
{
    uint64_t allowed = (now - w->still_since) / HANG_SHARE;
    if (allowed < HANG_CPU_GRAIN)
        allowed = HANG_CPU_GRAIN;
    return cpu_usec >= w->cpu_usec && cpu_usec - w->cpu_usec <= allowed;
}

void hang_saw(struct hang *h, unsigned slot, uint64_t printed_bytes, uint64_t cpu_usec, el_usec now)
{
    assert(slot < h->slots && now >= h->looked_at);
    struct hang_worker *w = &h->worker[slot];
    if (w->sampled && printed_bytes == w->printed_bytes && used_little(w, cpu_usec, now))
        return;
    *w = (struct hang_worker){true, true, printed_bytes, cpu_usec, now};
}

void hang_gone(struct hang *h, unsigned slot, el_usec now)
{
    assert(slot < h->slots);
    if (!h->worker || !h->worker[slot].up)
        return;
    h->worker[slot].up = false;
    for (unsigned i = 0; i < h->slots; i++)
        h->worker[i].still_since = now;
}

bool hang_judge(struct hang *h, el_usec now)
{
    bool late = now - h->looked_at > 3 * every(h); /* nobody looked: perhaps all of us stood still */
    unsigned up = 0, still = 0;
    h->looked_at = now;
    for (unsigned i = 0; i < h->slots; i++) {
        struct hang_worker *w = &h->worker[i];
        if (late)
            w->still_since = now;
        up += w->up;
        still += w->up && now - w->still_since >= h->timeout;
    }
    return h->watching && up && still == up;
}
