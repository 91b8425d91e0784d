#include "incident/hung.h"

#include <string.h>

#include "util/ranges.h"

static bool knows_place(const struct failure *f)
{
    return f->hung && f->found.file[0];
}

static bool is_same(const struct failure *a, const struct failure *b)
{
    return a->found.line == b->found.line && strcmp(a->found.file, b->found.file) == 0 &&
           strcmp(a->found.function, b->found.function) == 0;
}

/* How many stand where all[i] stands; 0 if an earlier one does, too, or all[i] is not of these. */
static unsigned place_size(const struct failure *const *all, unsigned n, unsigned i)
{
    unsigned size = 0;
    if (!knows_place(all[i]))
        return 0;
    for (unsigned k = 0; k < n; k++) {
        if (!knows_place(all[k]) || !is_same(all[i], all[k]))
            continue;
        if (k < i)
            return 0;
        size++;
    }
    return size;
}

int hung_odd(const struct failure *const *all, unsigned n)
{
    unsigned least = n + 1, most = 0, least_at = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned size = place_size(all, n, i);
        if (all[i]->hung && all[i]->odd)
            return (int)i;
        if (size && size < least) {
            least = size;
            least_at = i;
        }
        most = size > most ? size : most;
    }
    return least < most ? (int)least_at : -1;
}

static void put_place(struct el_buf *out, const struct failure *const *all, unsigned n, unsigned first, unsigned size)
{
    struct el_ranges ranks = {0};
    const struct traceback *t = &all[first]->found;
    const char *slash = strrchr(t->file, '/');
    el_buf_puts(out, size == 1 ? "rank " : "ranks ");
    for (unsigned k = first; k < n; k++)
        if (knows_place(all[k]) && is_same(all[first], all[k]))
            el_ranges_add(&ranks, out, all[k]->rank);
    el_ranges_end(&ranks, out);
    el_buf_printf(out, " stood in %s (%s:%u)", t->function, slash ? slash + 1 : t->file, t->line);
}

int hung_text(struct el_buf *out, const struct failure *const *all, unsigned n)
{
    unsigned told = 0, places = 0, known = 0;
    for (unsigned i = 0; i < n; i++)
        known += knows_place(all[i]);
    for (unsigned size = known; size > 0; size--)
        for (unsigned i = 0; i < n; i++) {
            if (place_size(all, n, i) != size)
                continue;
            if (places++ >= HUNG_PLACES_MAX)
                continue;
            el_buf_puts(out, told++ ? "; " : "");
            put_place(out, all, n, i, size);
        }
    if (places > told)
        el_buf_printf(out, "; others in %u more places", places - told);
    return out->full ? -1 : 0;
}
