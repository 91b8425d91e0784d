#include "probe/stage.h"

#include <assert.h>

#include "util/array.h"

const char *stage_outcome_word(enum stage_outcome o)
{
    static const char *const words[] = {
#define X(NAME, word) word,
        STAGE_OUTCOME_LIST(X)
#undef X
    };
    return words[o];
}

static void stage_put(struct stage_actions *out, struct stage_action a)
{
    assert(out->n < COUNT_OF(out->v));
    out->v[out->n++] = a;
}

void stage_init(struct stage *s, el_usec now)
{
    *s = (struct stage){.seen = now};
}

int stage_add(struct stage *s, el_usec limit, el_usec now)
{
    unsigned i = 0;
    while (i < STAGE_CHILDREN_MAX && s->child[i].state)
        i++;
    if (i == STAGE_CHILDREN_MAX)
        return -1;
    if (!s->running++)
        s->seen = now;
    s->child[i] = (struct stage_slot){.state = STAGE_RUNNING, .deadline = now + limit};
    return (int)i;
}

void stage_forget(struct stage *s, unsigned child)
{
    assert(s->child[child].state == STAGE_RUNNING && s->running > 0);
    s->child[child] = (struct stage_slot){.state = STAGE_FREE};
    s->running--;
}

void stage_heard_end(struct stage *s, unsigned child, bool good, el_usec now)
{
    struct stage_slot *c = &s->child[child];
    assert(c->state);
    c->ended = true;
    c->good = good;
    if (c->state == STAGE_RUNNING && c->deadline > now + STAGE_LEAVE)
        c->deadline = now + STAGE_LEAVE;
}

/* The place is free again.  What a child has said itself counts more than how it went: a library that hangs while it
 * cleans up behind a good result is no bad result. */
static void stage_leave(struct stage *s, unsigned child, enum stage_outcome otherwise, struct stage_actions *out)
{
    struct stage_slot *c = &s->child[child];
    enum stage_outcome o = !c->ended ? otherwise : c->good ? STAGE_DONE : STAGE_FAILED;
    stage_put(out, (struct stage_action){.type = STAGE_DO_TELL, .child = child, .outcome = o});
    *c = (struct stage_slot){.state = STAGE_FREE};
    assert(s->running > 0);
    s->running--;
}

void stage_exited(struct stage *s, unsigned child, int code, struct stage_actions *out)
{
    const struct stage_slot *c = &s->child[child];
    assert(c->state);
    enum stage_outcome o = c->stopped     ? STAGE_STOPPED
                           : c->timed_out ? STAGE_TIMEOUT
                           : code < 0     ? STAGE_CRASHED
                           : code > 0     ? STAGE_FAILED
                                          : STAGE_SILENT;
    stage_leave(s, child, o, out);
}

void stage_woke(struct stage *s, el_usec now)
{
    el_usec gap = now > s->seen + STAGE_LOOK + STAGE_GAP ? now - s->seen - STAGE_LOOK : 0;
    for (unsigned i = 0; gap && i < STAGE_CHILDREN_MAX; i++)
        if (s->child[i].state)
            s->child[i].deadline += gap;
    s->slept += gap;
    s->seen = now > s->seen ? now : s->seen;
}

static void stage_kill_child(struct stage_slot *c, unsigned child, el_usec now, struct stage_actions *out)
{
    c->state = STAGE_KILLED;
    c->deadline = now + STAGE_REAP;
    stage_put(out, (struct stage_action){.type = STAGE_DO_KILL, .child = child});
}

void stage_timeout(struct stage *s, el_usec now, struct stage_actions *out)
{
    for (unsigned i = 0; i < STAGE_CHILDREN_MAX; i++) {
        struct stage_slot *c = &s->child[i];
        if (!c->state || c->deadline > now)
            continue;
        if (c->state == STAGE_KILLED) {
            c->ended = false; /* whatever it has said: this must be told */
            stage_leave(s, i, STAGE_STUCK, out);
        } else {
            c->timed_out = true;
            stage_kill_child(c, i, now, out);
        }
    }
}

void stage_stop(struct stage *s, int child, el_usec now, struct stage_actions *out)
{
    for (unsigned i = 0; i < STAGE_CHILDREN_MAX; i++) {
        struct stage_slot *c = &s->child[i];
        if (c->state != STAGE_RUNNING || (child >= 0 && (unsigned)child != i))
            continue;
        c->stopped = true;
        stage_kill_child(c, i, now, out);
    }
}

el_usec stage_deadline(const struct stage *s)
{
    if (!s->running)
        return EL_NEVER;
    el_usec next = s->seen + STAGE_LOOK;
    for (unsigned i = 0; i < STAGE_CHILDREN_MAX; i++)
        if (s->child[i].state && s->child[i].deadline < next)
            next = s->child[i].deadline;
    return next;
}

void stage_check(const struct stage *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < STAGE_CHILDREN_MAX; i++) {
        const struct stage_slot *c = &s->child[i];
        n += c->state != STAGE_FREE;
        assert(c->state != STAGE_KILLED || c->timed_out || c->stopped);
        assert(c->state != STAGE_RUNNING || (!c->timed_out && !c->stopped));
        assert(c->state || !c->deadline);
    }
    assert(n == s->running);
}
