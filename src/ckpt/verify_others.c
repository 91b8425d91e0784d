/* Where nothing in a checkpoint counts the files of its ranks, those of other steps do: one with as many speaks for it,
 * one with more against it. */
#include <stdio.h>
#include <string.h>

#include "ckpt/verify.h"
#include "util/parse.h"

/* As many of each set that nothing counts. */
static bool speaks_for(const struct verify *v, const struct scan_entry *of, const struct scan_entry *x)
{
    bool there = x->state == SCAN_VALID || x->state == SCAN_FOREIGN;
    if (!there || of->step < 0 || x->step < 0 || x->step == of->step || x->format != of->format)
        return false;
    for (size_t i = 0; i < v->sets.n; i++) {
        const struct rank_set *mine = &v->sets.v[i];
        const struct rank_set *its = mine->uncounted ? ranked_find(&x->sets, x->step, mine, of->step) : NULL;
        if (mine->uncounted && (!its || its->n != mine->n || its->most != mine->most))
            return false;
    }
    return true;
}

/* More of a set; or, where it has one that nothing counts here, another of which nothing at all is here. */
static bool speaks_against(const struct verify *v, const struct scan_entry *of, const struct scan_entry *x,
                           struct verify_others *to)
{
    bool kin = false;
    for (size_t i = 0; i < v->sets.n; i++) {
        to->mine = &v->sets.v[i];
        to->its = to->mine->counted ? NULL : ranked_find(&x->sets, x->step, to->mine, of->step);
        if (to->its && ranked_lacks(to->mine, to->its))
            return true;
        kin = kin || (to->its && to->mine->uncounted);
    }
    to->mine = NULL;
    for (size_t i = 0; kin && x->format == of->format && i < x->sets.n; i++) {
        to->its = &x->sets.v[i];
        if (to->its->zero && to->its->many && !ranked_find(&v->sets, of->step, to->its, x->step))
            return true;
    }
    return false;
}

void verify_others(const struct verify *v, const struct scan *s, const char *name, struct verify_others *to)
{
    const struct scan_entry *of = NULL;
    *to = (struct verify_others){0};
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].name, name) == 0)
            of = &s->v[i];
    if (!of || ckpt_hub_of(name) != SIZE_MAX) /* revisions of a hub are no steps of one run */
        return;
    for (size_t i = 0; i < s->n && !to->more; i++) {
        const struct scan_entry *x = &s->v[i];
        if (x != of && speaks_against(v, of, x, to))
            to->more = x;
        if (x != of && v->uncounted && speaks_for(v, of, x))
            to->like = x;
    }
    to->like = to->more ? NULL : to->like;
}

void verify_others_put(const struct verify_others *o, char *text, size_t n)
{
    char shown[EL_SHOW_MAX], file[EL_SHOW_MAX];
    el_show(o->more->name, shown);
    el_show(o->its->name, file);
    if (!o->mine)
        snprintf(text, n, "complete cannot be proved: %s has %s, of whose set nothing is here", shown, file);
    else if (o->its->n > o->mine->n)
        snprintf(text, n, "complete cannot be proved: %s has %llu files of its set, this one has %llu", shown,
                 (unsigned long long)o->its->n, (unsigned long long)o->mine->n);
    else
        snprintf(text, n, "complete cannot be proved: the set goes on in %s, up to %s", shown, file);
}
