#include "failure/caught.h"

#include <string.h>

/* Other lines came, and they are not about its end. */
static bool caught_is_at_work(const struct failure *f)
{
    return f->went_on && !f->gave_up;
}

static bool is_limit(const struct failure *f)
{
    return f->found.kind == TRACEBACK_FATAL && strcmp(f->found.type, "Timeout") == 0;
}

/* How long it may take from the last word to the end. */
static el_usec time_to_end(const struct failure *f)
{
    el_usec t = CAUGHT_END + f->elapsed / CAUGHT_LOADED;
    return t < CAUGHT_END_MOST ? t : CAUGHT_END_MOST;
}

bool caught_is_aside(const struct failure *f)
{
    const bool exited = f->end == FAILURE_EXIT;
    const bool python = f->found.kind == TRACEBACK_PYTHON || f->found.kind == TRACEBACK_GROUP;
    if (!f->stack || f->stack_from == FAILURE_FROM_FILE || f->by == FAILURE_BY_ELRUN || failure_was_left(f))
        return false;
    if (is_limit(f))
        return !exited || f->code != 1 || f->quiet > time_to_end(f);
    const bool lost = classify_is_follower(f->words);
    if (f->handler == HANDLER_GOES_ON && (!lost || f->words_private))
        return true;
    if (!python || f->quiet > CAUGHT_OLD)
        return python && !(lost && f->code == 1);
    if (lost)
        return false;
    if (f->end == FAILURE_SIGNAL && !failure_is_crash(f->code))
        return classify_class(f->words) != FAILURE_CLASS_OUTSIDE;
    if (f->end == FAILURE_SIGNAL)
        return caught_is_at_work(f) || f->quiet > time_to_end(f) + CAUGHT_SLOW;
    if (!exited)
        return false;
    if (f->code == 1)
        return caught_is_at_work(f) && f->quiet > time_to_end(f) + CAUGHT_SLOW;
    return caught_is_at_work(f) || f->quiet > time_to_end(f);
}

bool caught_is_old(const struct failure *f)
{
    if (f->handler == HANDLER_NONE)
        return false;
    return f->quiet && f->first && f->at - f->quiet + CAUGHT_NEAR < f->first;
}

bool caught_by_other(const struct failure *f, const struct failure *other)
{
    char mine[CLASSIFY_SIGN_MAX], theirs[CLASSIFY_SIGN_MAX] = "";
    traceback_put(mine, sizeof mine, &f->found);
    if (other->aside)
        traceback_put(theirs, sizeof theirs, &other->found);
    return f->raised && f->found.kind != TRACEBACK_NONE && other->by != FAILURE_BY_ELRUN &&
           (strcmp(mine, theirs) == 0 || strcmp(mine, other->earlier) == 0 || strcmp(mine, other->survived) == 0);
}
