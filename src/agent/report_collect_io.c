/* What is known of the failed workers of an attempt: their error files and last output are read, then it is judged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/node.h"
#include "agent/report_private.h"
#include "failure/absent.h"
#include "failure/caught.h"
#include "failure/hang_report.h"

static bool evidence_complete(const struct node *n)
{
    for (unsigned i = 0; i < n->evidence_count; i++)
        if (n->evidence[i]->reading || n->evidence[i]->handled.reading || n->evidence[i]->tailing ||
            !n->evidence[i]->tail_asked)
            return false;
    return true;
}

/* The first one first: the digest keeps its place and time. */
static void make_digest(struct node *n)
{
    n->digest = (struct restart_digest){.kind = RESTART_SILENT};
    if (n->core.cause == AGENT_WORKER_FAILED)
        restart_add(&n->digest, &n->worker[n->core.cause_slot].failure, n->coord);
    for (unsigned i = 0; i < n->nproc; i++)
        if (n->worker[i].ended && !n->worker[i].bad)
            restart_passed(&n->digest);
        else if (n->worker[i].bad && (n->core.cause != AGENT_WORKER_FAILED || i != n->core.cause_slot))
            restart_add(&n->digest, &n->worker[i].failure, n->coord);
    n->digest.steps_known = n->steps_here && n->steps.sum.any && !n->steps.sum.wraps;
    if (n->digest.steps_known)
        n->digest.steps = n->steps.sum.made - n->steps_before;
}

/* When the first one failed, at the earliest.  0: not known, or the others only ran out of time, for which who stands
 * is a reason however long ago it raised. */
static el_usec first_failed(const struct node *n, unsigned slot)
{
    const struct failure *f = &n->worker[slot].failure;
    el_usec first = EL_NEVER;
    for (unsigned i = 0; i < n->nproc; i++)
        if (n->worker[i].bad && !report_was_signalled(n, i) && n->worker[i].failure.at < first)
            first = n->worker[i].failure.at;
    if (n->core.group.stuck || (first == EL_NEVER && n->membership && membership_is_late(n->membership)) ||
        consequence_is_late(n))
        return 0;
    if (first != EL_NEVER || !n->membership || f->stop_wall_usec < 0 || f->stop_wall_usec > f->wall_usec)
        return first == EL_NEVER ? 0 : first;
    el_usec ago =
        (el_usec)(f->wall_usec - f->stop_wall_usec) + n->core.conf.consequence; /* it may have waited for us */
    return f->at > ago ? f->at - ago : 0;
}

static void report_collect_judge(struct node *n, unsigned slot, bool oom_rose)
{
    struct failure *f = &n->worker[slot].failure;
    f->first = first_failed(n, slot);
    failure_judge(f, report_was_signalled(n, slot), oom_rose);
    f->witnessed |= n->conf->on_text_suspect == CONF_TEXT_ACT;
}

/* A rank that elrun stopped had printed why it failed; or so it seemed, until another one had survived the same. */
static void judge_again(struct node *n, unsigned slot, bool oom_rose)
{
    struct failure *f = &n->worker[slot].failure;
    for (unsigned i = 0; i < n->nproc && f->raised && report_was_signalled(n, slot); i++)
        if (n->worker[i].bad && !report_was_signalled(n, i) && caught_by_other(f, &n->worker[i].failure)) {
            f->raised = false;
            report_collect_judge(n, slot, oom_rose);
        }
}

/* Where all stood is known of the moment in which the first one failed. */
static void take_scene(struct failure *f, const struct failure_report *r)
{
    for (unsigned i = 0; i < r->failures_count && !f->siblings; i++)
        if (r->failures[i]->siblings)
            failure_set_line(f, &f->siblings, r->failures[i]->siblings, NULL);
}

/* Nobody failed by itself, and the words of one name another one. */
static void find_absent(struct node *n)
{
    struct failure_report r = report_make(n);
    int cause = failure_cause(r.failures, r.failures_count);
    if (cause < 0 || !r.failures[cause]->follower)
        return;
    for (unsigned i = 0; i < r.failures_count; i++) {
        bool here = !absent_is_told(r.failures[i]);
        for (unsigned k = 0; k < n->nproc; k++) {
            struct failure *f = &n->worker[k].failure;
            if (!n->worker[k].bad || f->by != FAILURE_BY_ELRUN || !absent_names(r.failures[i], f->rank))
                continue;
            here = true;
            if (f->absent) /* another one has named it before */
                continue;
            absent_mark(f, r.failures[i]);
            take_scene(f, &r);
        }
        if (!here) /* it is on another node: of those that wait, who names it says most */
            n->worker[r.failures[i]->local_rank].failure.private_link = true;
    }
}

/* Nobody failed by itself, and the time of a collective ran out: who said nothing did not take part in it; of several
 * one at least. */
static void report_collect_find_silent(struct node *n)
{
    struct failure_report r = report_make(n);
    int cause = failure_cause(r.failures, r.failures_count);
    unsigned silent = 0;
    for (unsigned k = 0; cause >= 0 && k < n->nproc; k++)
        silent += n->worker[k].bad && absent_is_silent(&n->worker[k].failure, r.failures[cause]);
    for (unsigned k = 0; cause >= 0 && k < n->nproc; k++) {
        struct failure *f = &n->worker[k].failure;
        if (!n->worker[k].bad || !absent_is_silent(f, r.failures[cause]))
            continue;
        absent_mark(f, r.failures[cause]);
        f->perhaps_late = silent > 1;
        take_scene(f, &r);
    }
}

static void collected(struct node *n)
{
    n->collecting = false;
    loop_timer_at(n->evidence_timer, EL_NEVER);
    int64_t oom = evidence_oom_count(&n->oom), kills = oom >= 0 && n->oom_before >= 0 ? oom - n->oom_before : 0;
    postmortem_tell(n, kills);
    for (unsigned i = 0; i < n->nproc; i++)
        if (n->worker[i].bad)
            report_collect_judge(n, i, kills > 0);
    for (unsigned i = 0; i < n->nproc; i++)
        if (n->worker[i].bad)
            judge_again(n, i, kills > 0);
    find_absent(n);
    last_running_explain(n);
    report_collect_find_silent(n);
    struct failure_report r = report_make(n);
    int odd = hang_report_odd(r.failures, r.failures_count, NULL);
    if (odd >= 0)
        n->worker[r.failures[odd]->local_rank].failure.odd = true;
    int cause = failure_cause(r.failures, r.failures_count);
    emit_incidents(n, cause < 0 ? NULL : r.failures[cause]);
    make_digest(n);
    node_feed(n, &(struct agent_event){.type = AGENT_EV_COLLECTED, .digest = &n->digest});
}

static void maybe_collected(struct node *n)
{
    if (n->collecting && evidence_complete(n) && postmortem_complete(n) && output_drained(n->output))
        collected(n);
}

void report_evidence_late(void *node)
{
    struct node *n = node;
    if (n->publishing)
        report_published(n, true);
    if (!n->collecting)
        return;
    el_log(EL_WARN, "some output or error files could not be read within %u s; going on without them",
           (unsigned)(NODE_EVIDENCE_TIME / EL_SEC(1)));
    collected(n);
}

static void report_collect_read_file(void *ctx)
{
    struct evidence_job *job = ctx;
    evidence_read_errfile(job->path, &job->file);
}

/* True if nobody waits for the job any more. */
static bool forgotten(struct evidence_job *job)
{
    if (job->node)
        return false;
    if (!job->reading && !job->tailing && !job->handled.reading)
        free(job);
    return true;
}

void report_evidence_forget(struct node *n)
{
    for (unsigned i = 0; i < n->evidence_count; i++) {
        n->evidence[i]->node = NULL;
        forgotten(n->evidence[i]);
    }
    n->evidence_count = 0;
}

static void report_collect_file_read(void *ctx)
{
    struct evidence_job *job = ctx;
    struct node *n = job->node;
    job->reading = false;
    if (forgotten(job) || !n->collecting)
        return;
    failure_add_file(&n->worker[job->slot].failure, &job->file, NULL);
    maybe_collected(n);
}

static void report_collect_source_read(void *ctx)
{
    struct evidence_job *job = ctx;
    struct node *n = job->node;
    if (forgotten(job) || !n->collecting)
        return;
    struct failure *f = &n->worker[job->slot].failure;
    handled_tell(&job->handled, f);
    if (f->quiet > NODE_LAST_LINE_TIME)
        failure_silent_since(f);
    maybe_collected(n);
}

static void report_collect_on_tails(void *ctx, unsigned slot, const struct output_tail *out,
                                    const struct output_tail *err)
{
    struct evidence_job *job = ctx;
    struct node *n = job->node;
    job->tailing = false;
    if (forgotten(job) || !n->collecting)
        return;
    struct failure *f = &n->worker[slot].failure;
    n->worker[slot].stderr_shown = err->from == OUTPUT_TAIL_READ && output_on_console(n->output, slot, 2);
    f->watch = err->from == OUTPUT_TAIL_READ || err->from == OUTPUT_TAIL_FILE ? FAILURE_WATCH_YES
               : err->from == OUTPUT_TAIL_TERMINAL                            ? FAILURE_WATCH_TERMINAL
                                                                              : FAILURE_WATCH_NO;
    if (err->path)
        failure_set_line(f, &f->log_file, err->path, NULL);
    if (n->membership && n->conf->output.log_dir)
        failure_set_line(f, &f->log_dir, output_log_dir(n->output), NULL);
    f->said_at = err->at;
    f->spoke_first = err->at && f->wall_usec - ((int64_t)f->at - (int64_t)err->at) <= f->stop_wall_usec;
    if (err->len)
        failure_add_stderr(f, err->bytes, err->len, NULL);
    if (out->len)
        failure_add_stdout(f, out->bytes, out->len, NULL);
    el_usec at = f->tail_from == FAILURE_FROM_STDOUT ? out->at : err->at;
    if (at && f->at > at + NODE_LAST_LINE_TIME)
        failure_silent_since(f);
    failure_add_times(f, err->at, out->at);
    if (err->at && f->at > err->at + NODE_LINGER_TIME && f->stop_wall_usec < 0)
        failure_lingered(f);
    handled_ask(n, &job->handled, f, report_collect_source_read, job);
    maybe_collected(n);
}

static void report_collect_ask_tails(struct node *n, struct evidence_job *job)
{
    job->tail_asked = true;
    job->tailing = output_tails_collect(n->output, job->slot, loop_clock() + NODE_EVIDENCE_TIME,
                                        report_collect_on_tails, job) == 0;
}

static void report_collect_gather(struct node *n, unsigned slot)
{
    struct evidence_job *job = calloc(1, sizeof *job);
    const char *path = n->worker[slot].failure.error_file;
    struct el_err e = {0};
    if (!job)
        return; /* the exit status is known without it */
    n->evidence[n->evidence_count++] = job;
    job->node = n;
    job->slot = slot;
    if (path) {
        snprintf(job->path, sizeof job->path, "%s", path);
        job->job = (struct pool_job){.work = report_collect_read_file, .done = report_collect_file_read, .ctx = job};
        job->reading = pool_run(n->pool, &job->job, &e) == 0;
    }
    if (output_rank_drained(n->output, slot))
        report_collect_ask_tails(n, job);
}

void report_rank_drained(void *node, unsigned slot)
{
    struct node *n = node;
    consequence_drained(n, slot);
    for (unsigned i = 0; n->collecting && i < n->evidence_count; i++)
        if (n->evidence[i]->slot == slot && !n->evidence[i]->tail_asked)
            report_collect_ask_tails(n, n->evidence[i]);
    maybe_collected(n);
}

void report_drained(void *node)
{
    maybe_collected(node);
}

/* Those that elrun has stopped are looked at, too, where the failure that stopped them is another one's consequence;
 * and those that ended as one does after an exception, which may have been printed in the same moment as the first
 * one's. */
static bool is_evidence(const struct node *n, unsigned slot)
{
    const struct failure *f = &n->worker[slot].failure;
    bool open = n->core.follows || n->core.hung || n->core.cause == AGENT_HALTED;
    bool near = n->core.cause == AGENT_WORKER_FAILED && f->at - n->core.stopped < EL_SEC(1);
    return n->worker[slot].bad && (open || near || !report_was_stopped(n, slot));
}

/* The earliest failures first: one of them is the cause. */
static int next_cause(const struct node *n, el_usec after, unsigned after_slot)
{
    int best = -1;
    for (unsigned i = 0; i < n->nproc; i++) {
        const struct worker *w = &n->worker[i];
        if (!is_evidence(n, i))
            continue;
        if (w->failure.at < after || (w->failure.at == after && i <= after_slot && after))
            continue;
        if (best < 0 || w->failure.at < n->worker[best].failure.at)
            best = (int)i;
    }
    return best;
}

void report_collect(struct node *n)
{
    n->collecting = true;
    loop_timer_at(n->evidence_timer, loop_clock() + NODE_EVIDENCE_TIME);
    for (int i = next_cause(n, 0, 0); i >= 0 && n->evidence_count < NODE_EVIDENCE_MAX;) {
        report_collect_gather(n, (unsigned)i);
        i = next_cause(n, n->worker[i].failure.at, (unsigned)i);
    }
    postmortem_collect(n);
    unsigned failed = 0;
    for (unsigned i = 0; i < n->nproc; i++)
        failed += n->worker[i].bad && !report_was_stopped(n, i);
    if (failed > NODE_EVIDENCE_MAX)
        el_log(EL_INFO, "%u workers failed; error files and last output were read of the first %d", failed,
               NODE_EVIDENCE_MAX);
    maybe_collected(n);
}
