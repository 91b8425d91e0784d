/* Which of a node's failures came first. */
#include "failure/exiting.h"
#include "failure/failure.h"

/* An exception had been printed, and its status says that this ended it, or its source: what came between was the
 * clean-up. */
static el_usec raised_at(const struct failure *f)
{
    bool ended = (f->end == FAILURE_SIGNAL && failure_was_left(f)) || (f->end == FAILURE_EXIT && f->code == 1);
    if (f->handler == HANDLER_NONE && f->raised && ended && !f->aside && !f->absent && !f->follower &&
        f->by == FAILURE_BY_ITSELF && f->said_at && f->said_at <= f->at)
        return f->said_at;
    bool own = exiting_raised(f) && !f->aside && f->end == FAILURE_EXIT && f->code == 1;
    own = own && (f->stop_wall_usec < 0 || f->stop_wall_usec >= f->wall_usec); /* the signal found a zombie */
    return own && f->said_at && f->said_at <= f->at && f->at - f->said_at <= FAILURE_ENDING ? f->said_at : f->at;
}

el_usec failure_at(const struct failure *f)
{
    if (f->failed_at)
        return f->failed_at;
    el_usec at = raised_at(f);
    if (f->file_sec < 0 || f->wall_usec < 0)
        return at;
    int64_t late = f->wall_usec - ((f->file_sec + 1) * 1000000 - 1);
    if (late <= 0 || (el_usec)late > f->at || (f->elapsed && (el_usec)late > f->elapsed))
        return at; /* a stamp from before its own start: a clock was set, or the file is somebody else's */
    return f->at - (el_usec)late < at ? f->at - (el_usec)late : at;
}

static bool failure_first_sooner(const struct failure *a, const struct failure *b)
{
    if (a->follower != b->follower)
        return b->follower;
    if (a->private_link != b->private_link)
        return a->private_link;
    if (a->follower && (a->class == FAILURE_CLASS_HANG) != (b->class == FAILURE_CLASS_HANG))
        return a->class == FAILURE_CLASS_HANG;
    if (a->hung != b->hung)
        return b->hung; /* one that ended by itself explains why the others stood */
    if (a->hung && !a->unended[0] != !b->unended[0])
        return a->unended[0] != 0;
    if (a->hung && !a->thread[0] != !b->thread[0])
        return a->thread[0] != 0;
    if (a->absent && b->absent)
        return a->rank < b->rank; /* elrun ended them, one as soon as the other */
    if (a->hung && a->odd != b->odd)
        return a->odd;
    if (a->hung)
        return a->rank < b->rank; /* in which order they died of SIGABRT means nothing */
    if (failure_at(a) != failure_at(b))
        return failure_at(a) < failure_at(b);
    return a->at != b->at ? a->at < b->at : a->rank < b->rank;
}

bool failure_is_own(const struct failure *f)
{
    return f->by != FAILURE_BY_ELRUN || f->hung || f->absent;
}

int failure_cause(const struct failure *const *all, unsigned n)
{
    int cause = -1;
    for (unsigned i = 0; i < n; i++)
        if (failure_is_own(all[i]) && (cause < 0 || failure_first_sooner(all[i], all[cause])))
            cause = (int)i;
    return cause;
}
