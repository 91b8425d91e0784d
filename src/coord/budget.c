#include "coord/budget.h"

#include <assert.h>
#include <stddef.h>

int budget_init(struct budget *b, uint64_t max, el_usec window, uint64_t max_fruitless, uint64_t used,
                uint64_t fruitless, el_usec now, struct el_mem *mem)
{
    *b = (struct budget){
        .max = max, .window = window, .max_fruitless = max_fruitless, .used = used, .fruitless = fruitless};
    b->room = max < BUDGET_WINDOW_MAX ? (unsigned)max : BUDGET_WINDOW_MAX;
    b->when = el_alloc(mem, (b->room + 1) * sizeof *b->when);
    if (!b->when)
        return -1;
    /* When they were charged is not known any more: now, which is never too generous. */
    for (b->n = 0; b->n < b->room && b->n < used; b->n++)
        b->when[b->n] = now;
    return 0;
}

void budget_free(struct budget *b, struct el_mem *mem)
{
    el_free(mem, b->when);
    b->when = NULL;
}

/* Charges at the front of the ring that are too old to count. */
static unsigned expired(const struct budget *b, el_usec now)
{
    unsigned old = 0;
    while (old < b->n && b->when[(b->head + old) % b->room] + b->window <= now)
        old++;
    return old;
}

static void budget_forget(struct budget *b, unsigned n)
{
    if (n)
        b->head = (b->head + n) % b->room;
    b->n -= n;
}

bool budget_left(const struct budget *b, el_usec now)
{
    return (b->window ? b->n - expired(b, now) : b->used) < b->max;
}

bool budget_charge(struct budget *b, el_usec now)
{
    if (!budget_left(b, now))
        return false;
    b->used++;
    if (b->window) {
        budget_forget(b, expired(b, now));
        budget_forget(b, b->n == b->room); /* more than the ring remembers: the oldest */
        b->when[(b->head + b->n++) % b->room] = now;
    }
    assert(b->n <= b->room);
    return true;
}

bool budget_lived(struct budget *b, el_usec lived, el_usec fruitless_below, uint64_t steps)
{
    assert(fruitless_below > 0);
    bool fruitless = steps == BUDGET_NO_STEPS ? lived < fruitless_below : !steps;
    b->fruitless = fruitless ? b->fruitless + 1 : 0;
    return b->fruitless <= b->max_fruitless;
}
