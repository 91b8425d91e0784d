/* What went wrong, in words: evidence of failed workers, the report, the last lines. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/node.h"
#include "agent/report_private.h"
#include "failure/termination_msg.h"
#include "failure/hang_report.h"
#include "failure/usage_error.h"
#include "failure/summary.h"
#include "sys/signame.h"

static void report_on_note(void *ctx);

int report_init(struct node *n, struct el_err *e)
{
    n->failures = calloc(n->nproc, sizeof *n->failures);
    n->evidence_timer = loop_timer_new(n->loop, report_evidence_late, n);
    n->note_timer = loop_timer_new(n->loop, report_on_note, n);
    if (!n->failures || !n->evidence_timer || !n->note_timer)
        return el_fail(e, EL_EXIT_OSERR, "out of memory for %u workers", n->nproc);
    evidence_oom_open(&n->oom, "/proc");
    return postmortem_init(n, e);
}

void report_free(struct node *n)
{
    for (unsigned i = 0; n->worker && n->before && i < n->nproc; i++) {
        failure_free(&n->worker[i].failure, NULL);
        failure_free(&n->before[i].failure, NULL);
    }
    loop_timer_free(n->evidence_timer);
    loop_timer_free(n->note_timer);
    el_buf_free(&n->missing);
    el_buf_free(&n->termination_text);
    for (unsigned i = 0; i < n->evidence_count; i++)
        free(n->evidence[i]); /* the pool and the output are done with them, or never come back to them */
    postmortem_free(n);
    free(n->failures);
}

/* --- one worker's end --- */

bool report_was_signalled(const struct node *n, unsigned slot)
{
    return n->worker[slot].fenced || (n->core.group.slot[slot].signalled && !n->worker[slot].gone_first);
}

/* Ended by elrun because of another one: its evidence tells nothing. */
bool report_was_stopped(const struct node *n, unsigned slot)
{
    return report_was_signalled(n, slot) && !n->worker[slot].failure.hung;
}

void report_ended(struct node *n, unsigned slot, const struct reap_end *end)
{
    struct worker *w = &n->worker[slot];
    struct failure *f = &w->failure;
    w->fenced = end->signal == SIGKILL && (n->fence_fell || loop_clock() >= n->fence_at);
    emit_worker_ended(n, slot, end);
    w->ended = true;
    w->ended_at = loop_clock();
    w->bad = end->code != 0;
    last_running_ended(n, slot);
    if (!w->bad)
        return;
    f->rank = workers_rank(n, slot);
    f->local_rank = slot;
    f->pid = (int)w->pid;
    f->role = n->conf->role;
    f->program = n->conf->entry == CONF_PROGRAM
                     ? NULL
                     : usage_error_program(n->conf->script, n->conf->args, n->conf->args_count);
    f->host = n->host;
    f->restart = n->core.restarts;
    f->round = n->membership ? membership_world(n->membership)->number : n->core.attempts;
    f->node_rank = n->membership ? (unsigned)membership_world(n->membership)->group_rank : 0;
    f->end = end->signal > 0 ? FAILURE_SIGNAL : end->code > 0 ? FAILURE_EXIT : FAILURE_UNKNOWN;
    f->code = end->signal > 0 ? end->signal : end->code;
    f->core_dumped = end->core;
    f->at = loop_clock();
    f->wall_usec = loop_wall_usec();
    f->elapsed = f->at - w->started;
    emergency_io_amend(n, slot, f);
    evidence_time_text(f->wall_usec, f->time_text);
    if (report_was_stopped(n, slot))
        return;
    goodput_failed(&n->account, loop_clock());
    worker_store_note_missing(n);
}

static void how_it_ended(const struct node *n, unsigned slot, char *how, size_t size)
{
    const struct failure *f = &n->worker[slot].failure;
    char name[SIGNAME_MAX];
    if (n->worker[slot].fenced)
        snprintf(how, size, "killed by elrun's guard: this elrun stood still, and others may get its rank");
    else if (f->end == FAILURE_SIGNAL)
        snprintf(how, size, "ended by signal %d (%s)", f->code, signame(f->code, name));
    else if (f->end == FAILURE_EXIT)
        snprintf(how, size, "exit code %d", f->code);
    else
        snprintf(how, size, "exit status unknown");
}

/* The report is near, and tells it with the reason.  Here it is told only where the others take their time to end. */
void report_note(struct node *n, unsigned slot)
{
    const struct failure *f = &n->worker[slot].failure;
    char how[96];
    if (n->core.hung)
        return; /* the verdict has said it */
    how_it_ended(n, slot, how, sizeof how);
    emit_worker_failed(n, how, slot);
    el_log(EL_DEBUG, "rank %u (pid %d) failed: %s", f->rank, f->pid, how);
    n->note_slot = slot;
    n->note_due = true;
    loop_timer_at(n->note_timer, loop_clock() + NODE_NOTE_TIME);
}

static void report_io_announce(struct node *n, unsigned left)
{
    char how[96], waits[64] = "";
    how_it_ended(n, n->note_slot, how, sizeof how);
    if (left)
        snprintf(waits, sizeof waits, "; waiting for %u other%s to end", left, left == 1 ? "" : "s");
    el_log(EL_INFO, "rank %u has failed (%s)%s", workers_rank(n, n->note_slot), how, waits);
    n->note_due = false;
}

void report_announce(struct node *n)
{
    if (n->note_due)
        report_io_announce(n, 0);
}

void report_stopping(struct node *n)
{
    if (n->stop_due)
        el_log(EL_INFO, "stopping: %s", n->stop_why);
    n->stop_said |= n->stop_due;
    n->stop_due = false;
}

static void report_on_note(void *ctx)
{
    struct node *n = ctx;
    report_stopping(n);
    unsigned left = n->core.state == AGENT_STOPPING ? n->core.group.up : 0;
    if (n->note_due && (left || n->membership)) /* of several nodes the report is the coordinator's, who may be away */
        report_io_announce(n, left);
}

/* --- what is to be told --- */

/* Where there is something to look at; a temporary folder in which nothing was written is gone by now. */
const char *report_logs(const struct node *n)
{
    return n->conf->output.log_dir ? output_log_dir(n->output) : n->kept_logs[0] ? n->kept_logs : NULL;
}

/* A worker failed, and what should have been its restart could not even be prepared. */
bool report_restart_refused(const struct node *n)
{
    bool unmade = n->core.cause == AGENT_PREPARE_FAILED || n->core.cause == AGENT_SPAWN_FAILED;
    return unmade && n->core.restarts && !n->membership;
}

/* Those whose failures are to be told. */
static struct worker *told_workers(const struct node *n)
{
    return report_restart_refused(n) && n->core.cause == AGENT_SPAWN_FAILED ? n->before : n->worker;
}

/* The job ends because of a worker: the report tells of it, and the exit status is its own. */
bool report_worker_failed(const struct node *n)
{
    return n->core.cause == AGENT_WORKER_FAILED || report_restart_refused(n);
}

struct failure_report report_make(struct node *n)
{
    struct worker *worker = told_workers(n);
    unsigned count = 0;
    for (unsigned i = 0; i < n->nproc; i++)
        if (worker[i].bad)
            n->failures[count++] = &worker[i].failure;
    return (struct failure_report){
        .stderr_shown = n->nproc == 1 && !n->membership && worker[0].stderr_shown,
        .script = n->conf->script,
        .failures = n->failures,
        .failures_count = count,
        .restarts =
            n->core.restarts - (report_restart_refused(n) || n->core.state == AGENT_PREPARING), /* those before it */
        .restarts_max = n->conf->max_restarts,
        .no_restart = n->membership ? "" : n->core.verdict.why,
        .log_dir = report_logs(n),
    };
}

const struct failure *report_cause_of(struct node *n, const struct failure_report *r)
{
    int cause = failure_cause(r->failures, r->failures_count);
    return cause >= 0 ? r->failures[cause] : &told_workers(n)[n->core.cause_slot].failure;
}

static void say_restart(struct node *n)
{
    struct failure_report r = report_make(n);
    struct el_buf text = EL_BUF_INIT(NULL, 4096);
    r.again = true;
    if (!n->report_said)
        report_print(n, &r);
    n->report_said = false;
    summary_verdict(&r, &text);
    emit_restart(n, el_buf_cstr(&text));
    el_buf_free(&text);
}

/* Another attempt is decided: what made the last one fail has to pass. */
void report_wait(struct node *n)
{
    struct failure_report r = report_make(n);
    r.again = n->report_said = true;
    goodput_enter(&n->account, ACCOUNT_WAIT, loop_clock());
    report_print(n, &r);
    el_log(EL_INFO, "this may pass by itself: restart %u of %u in %u s", n->core.restarts + 1, n->conf->max_restarts,
           (unsigned)(n->core.verdict.wait / EL_SEC(1)));
}

void report_restart(struct node *n)
{
    if (n->core.restarts && !n->membership)
        say_restart(n);
    else if (n->membership && incident_printed_before(n)) /* the summary of the round before stands here */
        emit_time_so_far(n);
    n->error = (struct el_err){0};
}

void report_forget(struct node *n)
{
    for (unsigned i = 0; i < n->nproc; i++) {
        failure_free(&n->before[i].failure, NULL);
        n->before[i] = n->worker[i];
        n->worker[i] = (struct worker){0};
    }
    n->note_due = false;
    report_evidence_forget(n);
    consequence_forget(n);
    n->missing.len = 0;
    postmortem_attempt(n);
    n->oom_before = evidence_oom_count(&n->oom);
}

void report_files(const struct node *n, struct el_err *e)
{
    size_t used = strlen(e->text);
    unsigned each = NODE_FILES_EACH + (n->snapshots ? NODE_FILES_SNAP : 0);
    if (e->sys == EMFILE)
        snprintf(e->text + used, sizeof e->text - used, "; about %u are needed for %u worker%s",
                 NODE_FILES_OWN + each * n->nproc, n->nproc, n->nproc == 1 ? "" : "s");
}

void report_print(struct node *n, const struct failure_report *r)
{
    struct el_buf text = EL_BUF_INIT(NULL, 1u << 20);
    n->note_due = n->stop_due = false;
    if (console_is_json(n->console)) {
        if (summary_json(r, &text) == 0)
            el_buf_puts(&text, "\n");
    } else {
        summary_write(r, &text, console_has_colour(n->console) ? &summary_colour : &summary_plain,
                      console_columns(n->console));
    }
    console_write(n->console, text.v, text.len);
    el_buf_free(&text);
}

void report_verdict(struct node *n, struct el_buf *out)
{
    struct failure_report r = report_make(n);
    summary_verdict(&r, out);
}

int report_failure_status(struct node *n)
{
    struct failure_report r = report_make(n);
    return failure_exit_status(report_cause_of(n, &r), n->conf->exit_code);
}
