#include "incident/hung.h"

#include <string.h>

#include "incident/stacks.h"

static struct text printed(const struct failure *f)
{
    const char *s = f->stack ? f->stack : f->tail ? f->tail : "";
    return (struct text){s, strlen(s)};
}

/* Of those that hung; -1 if memory was refused. */
static int group(struct stacks *s, const struct failure *const *all, unsigned n, struct el_mem *mem)
{
    unsigned count = 0;
    int got = -1;
    struct stacks_rank *v = el_alloc(mem, (n + 1) * sizeof *v);
    for (unsigned i = 0; v && i < n; i++)
        if (all[i]->hung)
            v[count++] = (struct stacks_rank){all[i]->rank, printed(all[i])};
    if (v)
        got = stacks_group(s, v, count, mem);
    el_free(mem, v);
    return got;
}

static int index_of(const struct failure *const *all, unsigned n, unsigned rank)
{
    for (unsigned i = 0; i < n; i++)
        if (all[i]->rank == rank)
            return (int)i;
    return -1;
}

int hung_odd(const struct failure *const *all, unsigned n, struct el_mem *mem)
{
    struct stacks s;
    const struct stacks_group *least = NULL;
    unsigned most = 0;
    for (unsigned i = 0; i < n; i++)
        if (all[i]->hung && all[i]->odd)
            return (int)i;
    if (group(&s, all, n, mem) < 0)
        return -1;
    for (unsigned i = 0; i < s.groups_count; i++) {
        const struct stacks_group *g = &s.group[i];
        if (g->kind == STACKS_OTHER)
            continue;
        if (!least || g->ranks_count < least->ranks_count)
            least = g;
        most = g->ranks_count > most ? g->ranks_count : most;
    }
    int odd = least && least->ranks_count < most ? index_of(all, n, least->ranks[0]) : -1;
    stacks_free(&s, mem);
    return odd;
}

int hung_text(struct el_buf *out, const struct failure *const *all, unsigned n)
{
    struct stacks s;
    if (group(&s, all, n, out->mem) < 0)
        return -1;
    if (s.groups_count)
        stacks_line(&s, out);
    stacks_free(&s, out->mem);
    return out->full ? -1 : 0;
}
