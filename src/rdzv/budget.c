#include "rdzv/budget.h"

#include <assert.h>
#include <stddef.h>

#define ROOM_MAX 1024u /* a window with more restarts than this allows is unlimited in practice */

int budget_init(struct budget *b, uint64_t max, el_usec window, uint64_t max_fruitless, uint64_t used,
                uint64_t fruitless, el_usec now, struct el_mem *mem)
{
    *b = (struct budget){
        .max = max, .window = window, .max_fruitless = max_fruitless, .used = used, .fruitless = fruitless};
    b->room = max < ROOM_MAX ? (unsigned)max : ROOM_MAX;
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

static uint64_t counted(struct budget *b, el_usec now)
{
    if (!b->window)
        return b->used;
    while (b->n && b->when[b->head] + b->window <= now) {
        b->head = (b->head + 1) % b->room;
        b->n--;
    }
    return b->n;
}

bool budget_charge(struct budget *b, el_usec now)
{
    if (counted(b, now) >= b->max)
        return false;
    b->used++;
    if (b->window) {
        if (b->n == b->room) { /* more than the ring remembers: the oldest is forgotten */
            b->head = (b->head + 1) % b->room;
            b->n--;
        }
        b->when[(b->head + b->n++) % b->room] = now;
    }
    assert(b->n <= b->room);
    return true;
}

bool budget_lived(struct budget *b, el_usec lived, el_usec fruitless_below)
{
    assert(fruitless_below > 0);
    b->fruitless = lived < fruitless_below ? b->fruitless + 1 : 0;
    return b->fruitless <= b->max_fruitless;
}
