/* Where nothing in a checkpoint counts the files of its ranks, those of other steps do: one with as many speaks for it,
 * one with more against it.  Of other files those count that earlier checkpoints have. */
#include <stdio.h>
#include <string.h>

#include "ckpt/file_kinds.h"
#include "ckpt/verify.h"
#include "util/parse.h"

enum { BEFORE_MAX = 256 };

/* As many of each set that nothing counts. */
static bool speaks_for(const struct verify *v, const struct scan_entry *of, const struct scan_entry *x)
{
    bool there = x->state == SCAN_VALID || x->state == SCAN_FOREIGN;
    if (!there || of->step < 0 || x->step < 0 || x->step == of->step || x->format != of->format)
        return false;
    for (size_t i = 0; i < v->sets.n; i++) {
        const struct rank_set *mine = &v->sets.v[i];
        const struct rank_set *its = mine->uncounted ? rank_files_find(&x->sets, x->step, mine, of->step) : NULL;
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
        to->its = to->mine->counted ? NULL : rank_files_find(&x->sets, x->step, to->mine, of->step);
        if (to->its && rank_files_lacks(to->mine, to->its))
            return true;
        kin = kin || (to->its && to->mine->uncounted);
    }
    to->mine = NULL;
    for (size_t i = 0; kin && x->format == of->format && i < x->sets.n; i++) {
        to->its = &x->sets.v[i];
        if (to->its->zero && to->its->many && !rank_files_find(&v->sets, of->step, to->its, x->step))
            return true;
    }
    return false;
}

/* --- files that are no rank's ------------------------------------------------------------------------------------- */

/* An earlier one of the same job: it has a file that is called as one here is.  In a later one there may be more, for a
 * script may begin to write another file. */
static bool is_before(const struct scan_entry *of, const struct scan_entry *x)
{
    if (of->step < 0 || x->step < 0 || x->step >= of->step)
        return false;
    if (*of->run_id && *x->run_id && strcmp(of->run_id, x->run_id) != 0)
        return false;
    for (size_t i = 0; i < of->sets.n; i++)
        if (rank_files_find(&x->sets, x->step, &of->sets.v[i], of->step))
            return true;
    return usual_files_kin(&of->usual, &x->usual);
}

/* Earlier ones, the latest first. */
struct before {
    const struct scan_entry *v[BEFORE_MAX];
    size_t n;
};

/* How many of them have it; and whether it comes and goes: one that is between two of those has none. */
struct having {
    size_t n;
    bool gap, goes;
};

static void verify_others_add(struct having *h, bool has)
{
    h->goes = h->goes || (has && h->gap);
    h->gap = h->n && (h->gap || !has);
    h->n += has;
}

/* More files that are called so. */
static struct having have_more(const struct scan_entry *of, const struct before *b, const char *name)
{
    struct having h = {0};
    size_t here = usual_files_count(&of->usual, name);
    for (size_t i = 0; i < b->n; i++)
        verify_others_add(&h, usual_files_count(&b->v[i]->usual, name) > here);
    return h;
}

static struct having have_set(const struct before *b, const struct scan_entry *its, const struct rank_set *set)
{
    struct having h = {0};
    for (size_t i = 0; i < b->n; i++)
        verify_others_add(&h, rank_files_find(&b->v[i]->sets, b->v[i]->step, set, its->step) != NULL);
    return h;
}

/* It is not here: at least half of them have it, so it is lost; or few, or it comes and goes, and it may be that the
 * script did not write it. */
static void tell_lost(struct verify_others *to, const struct scan_entry *in, const char *name, struct having h)
{
    bool lost = 2 * h.n >= to->before && !h.goes;
    if (lost && to->lost_n++) {
        if (to->lost_n - 2 < sizeof to->also / sizeof to->also[0])
            to->also[to->lost_n - 2] = name;
    } else if (lost) {
        to->more = in;
        to->file = to->lost = name;
        to->have = h.n;
    } else if (!to->once) {
        to->once = in;
        to->gone = name;
    }
}

/* What one that was written before it has. */
static void find_lost(const struct scan_entry *of, const struct before *b, const struct scan_entry *in,
                      struct verify_others *to)
{
    const char *name;
    for (size_t k = 0; (name = usual_files_lacks(&in->usual, &of->usual, &k));)
        if (!file_kinds_random(of, name))
            tell_lost(to, in, name, have_more(of, b, name));
    for (size_t k = 0; k < in->sets.n; k++) {
        const struct rank_set *set = &in->sets.v[k];
        if (set->zero && set->many && !rank_files_find(&of->sets, of->step, set, in->step) &&
            !file_kinds_random(of, set->name))
            tell_lost(to, in, set->name, have_set(b, in, set));
    }
}

static void others_before(const struct scan *s, const struct scan_entry *of, struct verify_others *to)
{
    struct before b = {.n = 0};
    for (size_t i = (size_t)(of - s->v); i-- > 0 && b.n < BEFORE_MAX;) /* they are sorted by step */
        if (is_before(of, &s->v[i]))
            b.v[b.n++] = &s->v[i];
    to->before = b.n;
    for (size_t i = 0; i < b.n && !to->more; i++)
        find_lost(of, &b, b.v[i], to);
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

void verify_others(const struct verify *v, const struct scan *s, const char *name, struct verify_others *to)
{
    const struct scan_entry *of = NULL;
    *to = (struct verify_others){.file = ""};
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
    to->file = to->more && to->mine ? to->mine->name : "";
    if (!to->more)
        others_before(s, of, to);
    to->like = to->more ? NULL : to->like;
    to->once = to->more ? NULL : to->once;
}

void verify_others_put(const struct verify_others *o, char *text, size_t n)
{
    char shown[EL_SHOW_MAX], file[EL_SHOW_MAX];
    size_t at = 0, also = sizeof o->also / sizeof o->also[0];
    el_show(o->more->name, shown);
    el_show(o->lost ? o->lost : o->its->name, file);
    if (o->lost)
        at = (size_t)snprintf(text, n, "complete cannot be proved: it is not here, but in %s%s", shown,
                              o->have < 2            ? ""
                              : o->have == o->before ? ", and in all others before this one"
                                                     : ", and in most others before this one");
    else if (!o->mine)
        snprintf(text, n, "complete cannot be proved: %s has %s, of whose set nothing is here", shown, file);
    else if (o->its->n > o->mine->n)
        snprintf(text, n, "complete cannot be proved: %s has %llu files of its set, this one has %llu", shown,
                 (unsigned long long)o->its->n, (unsigned long long)o->mine->n);
    else
        snprintf(text, n, "complete cannot be proved: the set goes on in %s, up to %s", shown, file);
    for (size_t i = 0; i + 1 < o->lost_n && i < also && at < n; i++)
        at += (size_t)snprintf(text + at, n - at, "%s%s",
                               i               ? ", "
                               : o->lost_n > 2 ? "; nor are "
                                               : "; nor is ",
                               el_show(o->also[i], file));
    if (o->lost_n > also + 1 && at < n)
        snprintf(text + at, n - at, " and %zu more", o->lost_n - also - 1);
}
