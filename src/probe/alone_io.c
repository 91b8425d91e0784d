#include "probe/alone.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "loop/sink.h"
#include "util/log.h"

#define LINES_LIMIT (64u << 10)
#define FLUSH_LIMIT EL_SEC(1) /* for a terminal that is stopped */
#define SHOW_EACH   EL_MS(500)

struct alone_alone {
    const struct alone_conf *conf;
    struct alone_result *result;
    struct loop *loop;
    struct reap *reap;
    struct probe_node *node;
    struct loop_timer *deadline, *show;
    struct sink *sink; /* NULL: no progress is shown */
    el_usec began;
    char what[96]; /* that began last */
    bool last;
};

/* --- the line at the bottom --- */

static void alone_show(void *ctx)
{
    struct alone_alone *a = ctx;
    char line[160];
    if (!a->sink)
        return;
    struct winsize size;
    size_t columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
    unsigned n = probe_node_running(a->node);
    snprintf(line, sizeof line, "elrun: %s, %.0f s: %s%s", a->last ? "last look" : "checks",
             (double)(loop_clock() - a->began) / 1e6, a->what, n > 1 ? " and others" : "");
    if (strlen(line) >= columns) /* what is wider cannot be wiped */
        line[columns - 1] = 0;
    sink_footer(a->sink, STDERR_FILENO, line);
    loop_timer_at(a->show, loop_clock() + SHOW_EACH);
}

static void on_progress(void *ctx, const char *what)
{
    struct alone_alone *a = ctx;
    snprintf(a->what, sizeof a->what, "%s", what);
    alone_show(a);
}

static void alone_on_log(void *ctx, enum el_level level, const char *text)
{
    struct alone_alone *a = ctx;
    char line[2100];
    int n = snprintf(line, sizeof line, "elrun: %s%s\n", level == EL_WARN ? "warning: " : "", text);
    sink_put(a->sink, STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static void alone_on_flushed(void *ctx, size_t left_bytes)
{
    (void)left_bytes;
    loop_stop(((struct alone_alone *)ctx)->loop);
}

static void alone_end(struct alone_alone *a)
{
    loop_timer_at(a->show, EL_NEVER);
    loop_timer_at(a->deadline, EL_NEVER);
    a->result->elapsed = loop_clock() - a->began;
    if (a->sink)
        sink_flush(a->sink, loop_clock() + FLUSH_LIMIT, alone_on_flushed, a);
    else
        loop_stop(a->loop);
}

/* --- what happens --- */

static void on_local_done(void *ctx, bool last)
{
    struct alone_alone *a = ctx;
    a->last = true;
    if (last || a->result->signal || a->result->timed_out)
        alone_end(a);
    else
        probe_node_local(a->node, true);
}

static void alone_on_deadline(void *ctx)
{
    struct alone_alone *a = ctx;
    a->result->timed_out = true;
    probe_node_stop(a->node);
}

static void alone_on_signal(void *ctx, const struct signalfd_siginfo *si)
{
    struct alone_alone *a = ctx;
    if (si->ssi_signo == SIGCHLD) {
        reap_scan(a->reap);
        return;
    }
    if (a->result->signal) /* once more: somebody is in a hurry, and the children die with us */
        _exit(EL_EXIT_SIGNAL((int)si->ssi_signo));
    a->result->signal = (int)si->ssi_signo;
    probe_node_stop(a->node);
}

static void alone_on_helper(void *ctx, pid_t pid, const struct reap_end *e)
{
    struct alone_alone *a = ctx;
    probe_node_child(a->node, pid, e);
}

/* There are no workers, and nobody is adopted who could matter. */
static void alone_on_zombie(void *ctx, unsigned slot, pid_t pid, const struct reap_end *e)
{
    (void)ctx, (void)slot, (void)pid, (void)e;
}
static void alone_on_reaped(void *ctx, unsigned slot, pid_t pid)
{
    (void)ctx, (void)slot, (void)pid;
}
static void alone_on_orphan(void *ctx, pid_t pid)
{
    (void)ctx, (void)pid;
}

static void no_id(void *ctx, unsigned rail, const char *id)
{
    (void)ctx, (void)rail, (void)id;
}
static void no_pair(void *ctx, unsigned rail, const struct rail_result *r)
{
    (void)ctx, (void)rail, (void)r;
}

/* --- life --- */

static int alone_prepare(struct alone_alone *a, struct el_err *e)
{
    static const struct reap_ops ops = {alone_on_zombie, alone_on_reaped, alone_on_orphan, alone_on_helper, NULL};
    struct probe_node_conf node = a->conf->node;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (!(a->loop = loop_new(e)) || !(a->reap = reap_new(1, &ops, a, e)) ||
        loop_signals(a->loop, &set, alone_on_signal, a, e) < 0)
        return -1;
    a->deadline = loop_timer_new(a->loop, alone_on_deadline, a);
    a->show = loop_timer_new(a->loop, alone_show, a);
    if (!a->deadline || !a->show)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    if (a->conf->progress && !(a->sink = sink_new(a->loop, LINES_LIMIT, e)))
        return -1;
    node.loop = a->loop;
    node.reap = a->reap;
    node.progress = on_progress;
    node.local_done = on_local_done;
    node.pair_id = no_id;
    node.pair_done = no_pair;
    node.ctx = a;
    return (a->node = probe_node_new(&node, e)) ? 0 : -1;
}

int alone_run(const struct alone_conf *conf, struct found *found, struct alone_result *r, struct el_err *e)
{
    struct alone_alone a = {.conf = conf, .result = r, .began = loop_clock()};
    int bad = alone_prepare(&a, e);
    *r = (struct alone_result){.signal = 0};
    if (!bad) {
        if (a.sink)
            el_log_set(alone_on_log, &a, el_log_level());
        if (conf->timeout)
            loop_timer_at(a.deadline, a.began + conf->timeout);
        probe_node_local(a.node, false);
        loop_run(a.loop);
        *found = *probe_node_found(a.node);
    }
    probe_node_free(a.node);
    a.node = NULL; /* the end of a helper that it has killed may be told yet */
    if (a.reap)
        reap_end_orphans(a.reap, 0); /* what libraries of the helpers have started in sessions of their own */
    if (a.sink)
        sink_free(a.sink);
    loop_timer_free(a.show);
    loop_timer_free(a.deadline);
    reap_free(a.reap);
    loop_free(a.loop);
    return bad;
}
