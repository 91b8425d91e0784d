#include "agent/flush_results.h"

#include <stdio.h>
#include <string.h>

static void flush_results_drop(struct flush_results *f, unsigned i)
{
    memmove(&f->v[i], &f->v[i + 1], (--f->n - i) * sizeof *f->v);
}

void flush_results_add(struct flush_results *f, const char *kind, int64_t step, const char *why)
{
    if (strcmp(kind, "persisted") == 0)
        return;
    for (unsigned i = f->n; i-- > 0;)
        if (f->v[i].step == step)
            flush_results_drop(f, i);
    if (f->n == FLUSH_RESULTS_MAX)
        flush_results_drop(f, 0);
    struct fate *x = &f->v[f->n++];
    x->step = step;
    snprintf(x->kind, sizeof x->kind, "%s", kind);
    snprintf(x->why, sizeof x->why, "%s", why);
}

void flush_results_forget_behind(struct flush_results *f, int64_t step)
{
    for (unsigned i = f->n; i-- > 0;)
        if (f->v[i].step > step)
            flush_results_drop(f, i);
}
