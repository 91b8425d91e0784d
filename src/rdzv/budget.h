/* How often a job may begin again: restarts that cost (all, or those within a window), and rounds that brought nothing.
 */
#ifndef RDZV_BUDGET_H
#define RDZV_BUDGET_H
#include <stdbool.h>
#include <stdint.h>

#include "util/mem.h"
#include "util/time.h"

struct budget {
    uint64_t max, max_fruitless;
    el_usec window;     /* 0: restarts count for ever */
    uint64_t used;      /* of all times: TORCHELASTIC_RESTART_COUNT */
    uint64_t fruitless; /* in a row */
    el_usec *when;      /* ring of the last `room` charges, with a window only */
    unsigned room, n, head;
};

/* 0, or -1 when memory is refused.  used, fruitless: what the journal knew. */
int budget_init(struct budget *b, uint64_t max, el_usec window, uint64_t max_fruitless, uint64_t used,
                uint64_t fruitless, el_usec now, struct el_mem *mem);
void budget_free(struct budget *b, struct el_mem *mem);

/* A round ended because a worker failed: charges it and returns true, or false if nothing is left to charge. */
bool budget_charge(struct budget *b, el_usec now);

/* A round that was not stopped by plan lived so long; false if this was one too many that brought nothing. */
bool budget_lived(struct budget *b, el_usec lived, el_usec fruitless_below);

#endif
