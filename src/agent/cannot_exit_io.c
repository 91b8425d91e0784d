/* Looks every second whether a worker stands that has raised (cannot_exit.h).  Of /proc two files are read, of such a
 * one.
 */
#include <stdlib.h>

#include "agent/node.h"
#include "agent/cannot_exit.h"
#include "failure/exiting.h"
#include "util/text.h"

#define EVERY   EL_SEC(1)
#define SETTLED EL_SEC(2) /* who prints more often than that is not looked at */

struct cannot_exit_watch {
    struct cannot_exit *worker; /* nproc */
    struct loop_timer *timer;
};

static bool has_raised(struct node *n, unsigned slot, char *text, size_t size)
{
    char path[PATH_MAX], *bytes = malloc(OUTPUT_KEPT_BYTES);
    struct failure words;
    size_t len;
    if (!bytes)
        return false;
    failure_init(&words);
    output_kept(n->output, slot, 2, path, sizeof path, bytes, &len);
    if (!text_find((struct text){bytes, len}, "Traceback (most")) /* most have none: no parser then */
        len = 0;
    failure_add_stderr(&words, bytes, len, NULL);
    bool raised = exiting_raised(&words);
    if (raised)
        exiting_text(&words, text, size);
    failure_free(&words, NULL);
    free(bytes);
    return raised;
}

static void cannot_exit_say(const struct node *n, unsigned slot, const char *text)
{
    el_usec since = loop_clock() - output_said_at(n->output, slot, 2);
    el_log(
        EL_WARN,
        "rank %u (pid %d) raised %s %u s ago and does not exit, by what it printed: if nothing caught that, a thread "
        "that is no daemon keeps it from exiting",
        workers_rank(n, slot), (int)n->worker[slot].pid, text, (unsigned)(since / EL_SEC(1)));
}

/* What all ranks have printed, each of them has likely caught: a package that is not there. */
static bool cannot_exit_is_alone(const struct node *n, unsigned slot)
{
    for (unsigned i = 0; i < n->nproc; i++)
        if (i != slot && n->worker[i].started && !n->worker[i].ended && !n->unended->worker[i].raised)
            return true;
    return false;
}

static void cannot_exit_look(struct node *n, unsigned slot)
{
    struct cannot_exit *u = &n->unended->worker[slot];
    char text[CLASSIFY_SIGN_MAX] = "";
    bool held;
    const el_usec at = output_said_at(n->output, slot, 2);
    if (!at || loop_clock() - at < SETTLED)
        return;
    bool news = cannot_exit_is_news(u, output_read_bytes(n->output, slot, &held));
    bool raised = !held && (u->raised || news) && has_raised(n, slot, text, sizeof text);
    struct proc_sample_one one = {.doing = PROC_SAMPLE_UNSEEN};
    if (raised)
        proc_sample_look(&one, "/proc", n->worker[slot].pid);
    if (cannot_exit_saw(u, raised, &one, loop_clock()) && cannot_exit_is_alone(n, slot))
        cannot_exit_say(n, slot, text);
}

static void cannot_exit_on_timer(void *ctx)
{
    struct node *n = ctx;
    if (n->core.state != AGENT_RUNNING)
        return;
    for (unsigned i = 0; i < n->nproc; i++)
        if (n->worker[i].started && !n->worker[i].ended)
            cannot_exit_look(n, i);
    loop_timer_at(n->unended->timer, loop_clock() + EVERY);
}

int cannot_exit_init(struct node *n, struct el_err *e)
{
    struct cannot_exit_watch *w = n->unended = calloc(1, sizeof *w);
    if (w)
        w->worker = calloc(n->nproc, sizeof *w->worker);
    if (!w || !w->worker || !(w->timer = loop_timer_new(n->loop, cannot_exit_on_timer, n)))
        return el_fail(e, EL_EXIT_OSERR, "out of memory for %u workers", n->nproc);
    return 0;
}

void cannot_exit_begin(struct node *n)
{
    for (unsigned i = 0; i < n->nproc; i++)
        n->unended->worker[i] = (struct cannot_exit){0};
    loop_timer_at(n->unended->timer, loop_clock() + EVERY);
}

void cannot_exit_free(struct node *n)
{
    if (!n->unended)
        return;
    loop_timer_free(n->unended->timer);
    free(n->unended->worker);
    free(n->unended);
}
