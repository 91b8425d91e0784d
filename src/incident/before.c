#include "incident/before.h"

#include "incident/classify.h"
#include "incident/survived.h"

enum { LINES_BEHIND_MAX = 4 }; /* "make: *** [all] Error 1" */

static unsigned count_lines(struct text t)
{
    struct text line;
    unsigned lines = 0;
    while (text_line(&t, &line))
        lines += line.n > 0;
    return lines;
}

bool before_ends_with(struct traceback *t, struct traceback_chain *chain, struct text all)
{
    traceback_find_chain(t, chain, all.n ? all.p : "", all.n);
    if (t->kind == TRACEBACK_NONE || !chain->n)
        return false;
    /* Words may have several lines, and be followed by others that look like theirs. */
    unsigned lines =
        count_lines(chain->v[chain->n - 1].words) + count_lines((struct text){all.p + t->end, all.n - t->end});
    return lines <= 1 + LINES_BEHIND_MAX || survived_is_end(t, chain, all);
}

bool before_is_loss(struct traceback *t, struct traceback_chain *chain, struct text *all)
{
    struct classify c;
    if (!before_ends_with(t, chain, *all)) {
        struct text rest = *all, line, last = {0};
        while (text_line(&rest, &line))
            last = line.n ? line : last;
        *all = (struct text){last.n ? last.p : "", last.n};
        traceback_find_chain(t, chain, all->p, all->n);
    }
    classify_words(&c, t, chain, *all);
    return classify_is_told_again(c.rule) && !c.private_link;
}
