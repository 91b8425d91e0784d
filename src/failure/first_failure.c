#include "failure/first_failure.h"

bool first_failure_sooner(const struct first_failure_entry *a, const struct first_failure_entry *b)
{
    if (a->elrun != b->elrun)
        return b->elrun;
    if (a->follower != b->follower)
        return b->follower;
    if (a->private_link != b->private_link)
        return a->private_link;
    if (a->follower && a->late != b->late)
        return a->late;
    return a->time != b->time ? a->time < b->time : a->rank < b->rank;
}

/* x came not before the root by its time; may it have, all the same? */
static bool may_be_first(const struct first_failure_entry *x, const struct first_failure_entry *root)
{
    el_usec between = x->time - root->time;
    if (x->node == root->node)
        return between < FIRST_FAILURE_ONE_NODE;
    return between <= x->error || between - x->error <= root->error;
}

struct first_failure_cause first_failure_cause(const struct first_failure_entry *all, unsigned n)
{
    struct first_failure_cause out = {.root = -1};
    for (unsigned i = 0; i < n; i++)
        if (!all[i].elrun && (out.root < 0 || first_failure_sooner(&all[i], &all[out.root])))
            out.root = (int)i;
    for (unsigned i = 0; out.root >= 0 && i < n; i++)
        if (!all[i].elrun && all[i].follower == all[out.root].follower &&
            all[i].private_link == all[out.root].private_link && all[i].late == all[out.root].late &&
            may_be_first(&all[i], &all[out.root]))
            out.among++;
    return out;
}
