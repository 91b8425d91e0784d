/* How often a job may begin again: restarts that cost (all, or those within a window), and rounds that brought nothing.
 */
#ifndef COORD_BUDGET_H
#define COORD_BUDGET_H
#include <stdbool.h>
#include <stdint.h>

#include "util/mem.h"
#include "util/time.h"

#define BUDGET_WINDOW_MAX 1024       /* restarts that a window can remember; options want no more */
#define BUDGET_FRUITLESS  EL_SEC(60) /* a round that ends sooner brought nothing, unless steps tell otherwise */

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

/* Would a charge be granted? */
bool budget_left(const struct budget *b, el_usec now);

/* A round ended because a worker failed: charges it and returns true, or false if nothing is left to charge. */
bool budget_charge(struct budget *b, el_usec now);

#define BUDGET_NO_STEPS UINT64_MAX /* the script does not say */

/* A round that was not stopped by plan lived so long and made so many new steps; false if this was one too many that
 * brought nothing.  Where steps are known they decide, else the time does. */
bool budget_lived(struct budget *b, el_usec lived, el_usec fruitless_below, uint64_t steps);

#endif
