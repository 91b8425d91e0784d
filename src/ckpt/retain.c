#include "ckpt/retain.h"

#include <assert.h>

/* How many valid ones of its run are newer. */
static size_t retain_newer(const struct retain_item *items, size_t n, const struct retain_item *x)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += items[i].valid && !items[i].behind && items[i].run == x->run && items[i].step > x->step;
    return found;
}

static const char *reason(const struct retain_item *items, size_t n, const struct retain_item *x,
                          const struct retain_rule *rule)
{
    if (!x->ours)
        return "of another run";
    if (!x->valid)
        return "not valid";
    if (x->pinned)
        return "pinned";
    if (x->leased)
        return "being read";
    if (retain_newer(items, n, x) < rule->keep_last)
        return x->behind ? "a lower step was written later, and its run is not as far again" : "among the newest";
    if (rule->keep_every && (uint64_t)x->step % rule->keep_every == 0)
        return "kept by its number";
    return NULL;
}

size_t retain_choose(struct retain_item *items, size_t n, const struct retain_rule *rule)
{
    size_t go = 0;
    assert(rule->keep_last >= 1);
    for (size_t i = 0; i < n; i++) {
        items[i].why = items[i].step < 0 ? "without a step" : reason(items, n, &items[i], rule);
        go += !items[i].why;
    }
    return go;
}
