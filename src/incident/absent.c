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
    bool late =
        !waited || (waited->follower && !waited->private_link && !waited->left && classify_is_late(waited->rule));
    bool spoke = classify_is_follower(f->words) || (f->raised && f->spoke_first);
    return late && f->by == FAILURE_BY_ELRUN && !f->hung && !f->absent && f->watch != FAILURE_WATCH_NOT_LOOKED &&
           !spoke;
}

static const char *said_by(const struct failure *f)
{
    return f->found.message[0] ? f->found.message : f->message ? f->message : "";
}

static void explain(struct failure *f, const struct failure *accuser)
{
    snprintf(f->sign, sizeof f->sign, "rank %u: %.*s", accuser->rank, (int)sizeof f->sign - 20, said_by(accuser));
}

void absent_mark(struct failure *f, const struct failure *accuser)
{
    assert(f->by == FAILURE_BY_ELRUN && (absent_is_silent(f, accuser) || absent_names(accuser, f->rank)));
    f->absent = f->follower = f->private_link = true;
    f->class = FAILURE_CLASS_HANG;
    f->rule = accuser ? accuser->rule : CLASSIFY_NONE;
    f->sign[0] = 0;
    if (f->rule == CLASSIFY_MONITORED)
        text_copy(f->sign, sizeof f->sign, said_by(accuser), strlen(said_by(accuser)));
    else if (accuser)
        explain(f, accuser);
}

void absent_explain(struct failure *f, const struct failure *const *all, unsigned n)
{
    for (unsigned i = 0; f->absent && !f->sign[0] && i < n; i++)
        if (all[i]->follower && !all[i]->absent && classify_is_late(all[i]->rule))
            explain(f, all[i]);
}
