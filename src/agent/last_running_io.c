/* Ranks that end with 0 while others go on.  Those that remain may wait for them: who they are is said while they run,
 * and who had left before is said when they fail. */
#include <string.h>

#include "agent/node.h"
#include "util/ranges.h"

#define SAY_AFTER EL_SEC(5) /* ranks of one job end within moments of each other, as a rule */

static void last_running_on_timer(void *ctx)
{
    struct node *n = ctx;
    for (unsigned i = 0; i < n->nproc; i++)
        if (n->worker[i].started && !n->worker[i].ended)
            el_log(EL_INFO, "rank %u of %u is still running; the others%s have ended", workers_rank(n, i),
                   n->membership ? (unsigned)membership_world(n->membership)->world_size : n->nproc,
                   n->membership ? " of this node" : "");
}

int last_running_init(struct node *n, struct el_err *e)
{
    n->last_one = loop_timer_new(n->loop, last_running_on_timer, n);
    return n->last_one ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
}

void last_running_free(struct node *n)
{
    loop_timer_free(n->last_one);
}

void last_running_ended(struct node *n, unsigned slot)
{
    unsigned left = 0;
    for (unsigned i = 0; i < n->nproc; i++)
        left += n->worker[i].started && !n->worker[i].ended;
    bool alone = left == 1 && !n->worker[slot].bad && n->core.state == AGENT_RUNNING;
    loop_timer_at(n->last_one, alone ? loop_clock() + SAY_AFTER : EL_NEVER);
}

static double last_running_seconds(el_usec t)
{
    return (double)t / (double)EL_SEC(1);
}

/* Nobody had ended with 0 before; one that tears down slowly does it only then, if it does: "rank 1 ended with 0, 1.5 s
 * after". */
static void put_left_after(const struct node *n, el_usec from, struct el_buf *out)
{
    struct el_buf ranks = EL_BUF_INIT(NULL, 400);
    struct el_ranges s = {0};
    el_usec first = EL_NEVER;
    unsigned count = 0;
    for (unsigned i = 0; i < n->nproc; i++) {
        const struct worker *w = &n->worker[i];
        if (!w->ended || w->bad || report_was_signalled(n, i))
            continue;
        el_ranges_add(&s, &ranks, workers_rank(n, i));
        first = w->ended_at < first ? w->ended_at : first;
        count++;
    }
    el_ranges_end(&s, &ranks);
    if (count)
        el_buf_printf(out, "rank%s %s ended with 0, %.1f s after", count == 1 ? "" : "s", el_buf_cstr(&ranks),
                      last_running_seconds(first - from));
    el_buf_free(&ranks);
}

/* "rank 1 had ended with 0, 3.2 s before"; nothing if nobody had. */
static void last_running_put_left(const struct node *n, el_usec before, struct el_buf *out)
{
    struct el_buf ranks = EL_BUF_INIT(NULL, 400);
    struct el_ranges s = {0};
    el_usec first = before, last = 0;
    unsigned count = 0;
    for (unsigned i = 0; i < n->nproc; i++) {
        const struct worker *w = &n->worker[i];
        if (!w->ended || w->bad || w->ended_at >= before)
            continue;
        el_ranges_add(&s, &ranks, workers_rank(n, i));
        first = w->ended_at < first ? w->ended_at : first;
        last = w->ended_at > last ? w->ended_at : last;
        count++;
    }
    el_ranges_end(&s, &ranks);
    if (count == 1)
        el_buf_printf(out, "rank %s had ended with 0, %.1f s before", el_buf_cstr(&ranks),
                      last_running_seconds(before - first));
    else if (count)
        el_buf_printf(out, "ranks %s had ended with 0, %.1f s to %.1f s before", el_buf_cstr(&ranks),
                      last_running_seconds(before - first), last_running_seconds(before - last));
    el_buf_free(&ranks);
}

void last_running_explain(struct node *n)
{
    for (unsigned i = 0; i < n->nproc; i++) {
        struct failure *f = &n->worker[i].failure;
        struct el_buf text = EL_BUF_INIT(NULL, 600);
        if (n->worker[i].bad && failure_is_own(f) && (f->follower || f->hung))
            last_running_put_left(n, f->at, &text);
        if (!text.len && n->worker[i].bad && failure_is_own(f) && f->follower)
            put_left_after(n, f->at, &text);
        if (text.len)
            failure_set_line(f, &f->left, el_buf_cstr(&text), NULL);
        el_buf_free(&text);
    }
}
