#include "incident/absent.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "incident/text.h"

static bool take(struct text *t, const char *what)
{
    size_t n = strlen(what);
    if (!text_starts(*t, what))
        return false;
    *t = (struct text){t->p + n, t->n - n};
    return true;
}

static bool take_number(struct text *t, unsigned *number)
{
    size_t i = 0;
    *number = 0;
    for (; i < t->n && i < 9 && t->p[i] >= '0' && t->p[i] <= '9'; i++)
        *number = *number * 10 + (unsigned)(t->p[i] - '0');
    *t = (struct text){t->p + i, t->n - i};
    return i > 0;
}

static bool line_names(struct text line, unsigned speaker, unsigned rank)
{
    const char *at = text_find(line, "[Rank ");
    unsigned number;
    bool named = false;
    if (!at)
        return false;
    struct text t = {at, line.n - (size_t)(at - line.p)};
    if (!take(&t, "[Rank ") || !take_number(&t, &number) || number != speaker || !take(&t, "]: Rank"))
        return false;
    take(&t, "s");
    if (!take(&t, " "))
        return false;
    do {
        if (!take_number(&t, &number))
            return false;
        named |= number == rank;
    } while (take(&t, ", "));
    return take(&t, " failed to pass monitoredBarrier") && named;
}

bool absent_names(const struct failure *f, unsigned rank)
{
    const char *said[] = {f->message, f->found.message};
    for (size_t i = 0; f->follower && i < sizeof said / sizeof *said; i++)
        if (said[i] && line_names((struct text){said[i], strlen(said[i])}, f->rank, rank))
            return true;
    return false;
}

bool absent_is_silent(const struct failure *f, const struct failure *waited)
{
    bool late = waited->follower && !waited->private_link && !waited->left && classify_is_late(waited->rule);
    bool spoke = classify_is_follower(f->words) || (f->raised && f->spoke_first);
    return late && f->by == FAILURE_BY_ELRUN && !f->hung && !f->absent && f->watch != FAILURE_WATCH_NOT_LOOKED &&
           !spoke;
}

void absent_mark(struct failure *f, const struct failure *accuser)
{
    const char *said = accuser->found.message[0] ? accuser->found.message : accuser->message;
    assert(f->by == FAILURE_BY_ELRUN && (absent_names(accuser, f->rank) || absent_is_silent(f, accuser)));
    f->absent = f->follower = f->private_link = true;
    f->class = FAILURE_CLASS_HANG;
    f->rule = accuser->rule;
    if (accuser->rule == CLASSIFY_MONITORED)
        text_copy(f->sign, sizeof f->sign, said, strlen(said));
    else
        snprintf(f->sign, sizeof f->sign, "rank %u: %.*s", accuser->rank, (int)sizeof f->sign - 20, said);
}
