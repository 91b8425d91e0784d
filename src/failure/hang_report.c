#include "failure/hang_report.h"

#include <string.h>

#include "failure/stacks.h"

static struct text printed(const struct failure *f)
{
    const char *s = f->stack ? f->stack : f->tail ? f->tail : "";
    return (struct text){s, strlen(s)};
}

/* Puts one more rank in its place.  What other nodes and files tell comes in any order, and a rank may be told of
 * twice: in full, and as one of which only the end is known. */
static unsigned hang_report_place(struct stacks_rank *v, unsigned n, struct stacks_rank x)
{
    unsigned i = n;
    while (i > 0 && v[i - 1].rank > x.rank)
        i--;
    if (i > 0 && v[i - 1].rank == x.rank) {
        if (!v[i - 1].output.n)
            v[i - 1] = x;
        return n;
    }
    memmove(v + i + 1, v + i, (n - i) * sizeof *v);
    v[i] = x;
    return n + 1;
}

/* Of those that hung; -1 if memory was refused. */
static int hang_report_group(struct stacks *s, const struct failure *const *all, unsigned n, struct el_mem *mem)
{
    unsigned count = 0;
    int got = -1;
    struct stacks_rank *v = el_alloc(mem, (n + 1) * sizeof *v);
    for (unsigned i = 0; v && i < n; i++)
        if (all[i]->hung)
            count = hang_report_place(v, count, (struct stacks_rank){all[i]->rank, printed(all[i])});
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

int hang_report_odd(const struct failure *const *all, unsigned n, struct el_mem *mem)
{
    struct stacks s;
    const struct stacks_group *least = NULL;
    unsigned most = 0;
    for (unsigned i = 0; i < n; i++)
        if (all[i]->hung && all[i]->odd)
            return (int)i;
    if (hang_report_group(&s, all, n, mem) < 0)
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

int hang_report_text(struct el_buf *out, const struct failure *const *all, unsigned n)
{
    struct stacks s;
    if (hang_report_group(&s, all, n, out->mem) < 0)
        return -1;
    if (s.groups_count)
        stacks_line(&s, out);
    stacks_free(&s, out->mem);
    return out->full ? -1 : 0;
}
