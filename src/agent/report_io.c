/* What went wrong, in words: evidence of failed workers, the report, the last lines. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/node.h"
#include "incident/farewell.h"
#include "incident/hung.h"
#include "incident/summary.h"
#include "proc/signame.h"

static void on_evidence_late(void *ctx);
static void published(void *ctx);
static struct report make_report(struct node *n);

int report_init(struct node *n, struct el_err *e)
{
    n->failures = calloc(n->nproc, sizeof *n->failures);
    n->evidence_timer = loop_timer_new(n->loop, on_evidence_late, n);
    if (!n->failures || !n->evidence_timer)
        return el_fail(e, EL_EXIT_OSERR, "out of memory for %u workers", n->nproc);
    evidence_oom_open(&n->oom, "/proc");
    return witness_init(n, e);
}

void report_free(struct node *n)
{
    for (unsigned i = 0; n->worker && n->before && i < n->nproc; i++) {
        failure_free(&n->worker[i].failure, NULL);
        failure_free(&n->before[i].failure, NULL);
    }
    loop_timer_free(n->evidence_timer);
    el_buf_free(&n->missing);
    el_buf_free(&n->last_words);
    for (unsigned i = 0; i < n->evidence_count; i++)
        free(n->evidence[i]); /* the pool and the output are done with them, or never come back to them */
    witness_free(n);
    free(n->failures);
}

/* --- one worker's end --- */

bool report_was_signalled(const struct node *n, unsigned slot)
{
    return n->worker[slot].fenced || (n->core.group.slot[slot].signalled && !n->worker[slot].gone_first);
}

/* Ended by elrun because of another one: its evidence tells nothing. */
static bool was_stopped(const struct node *n, unsigned slot)
{
    return report_was_signalled(n, slot) && !n->worker[slot].failure.hung;
}

void report_ended(struct node *n, unsigned slot, const struct reap_end *end)
{
    struct worker *w = &n->worker[slot];
    struct failure *f = &w->failure;
    w->fenced = end->signal == SIGKILL && (n->fence_fell || loop_clock() >= n->fence_at);
    tell_worker_ended(n, slot, end);
    w->ended = true;
    w->ended_at = loop_clock();
    w->bad = end->code != 0;
    last_one_ended(n, slot);
    if (!w->bad)
        return;
    f->rank = workers_rank(n, slot);
    f->local_rank = slot;
    f->pid = (int)w->pid;
    f->role = n->conf->role;
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
    words_amend(n, slot, f);
    evidence_time_text(f->wall_usec, f->time_text);
    if (was_stopped(n, slot))
        return;
    account_failed(&n->account, loop_clock());
    meet_note_missing(n);
}

void report_note(struct node *n, unsigned slot)
{
    const struct failure *f = &n->worker[slot].failure;
    unsigned others = n->core.group.up;
    if (n->core.hung)
        return; /* the verdict has said it */
    char how[96], name[SIGNAME_MAX];
    if (n->worker[slot].fenced)
        snprintf(how, sizeof how, "killed by elrun's guard: this elrun stood still, and others may get its rank");
    else if (f->end == FAILURE_SIGNAL)
        snprintf(how, sizeof how, "ended by signal %d (%s)", f->code, signame(f->code, name));
    else if (f->end == FAILURE_EXIT)
        snprintf(how, sizeof how, "exit code %d", f->code);
    else
        snprintf(how, sizeof how, "exit status unknown");
    tell_worker_failed(n, how, slot);
    if (others)
        el_log(EL_INFO, "rank %u (pid %d) failed: %s; stopping %s", f->rank, f->pid, how,
               n->nproc == 2 ? "the other one"
               : others == 1 ? "the last one"
                             : "the others");
    else
        el_log(EL_INFO, "rank %u (pid %d) failed: %s", f->rank, f->pid, how);
}

/* --- evidence --- */

static bool evidence_complete(const struct node *n)
{
    for (unsigned i = 0; i < n->evidence_count; i++)
        if (n->evidence[i]->reading || n->evidence[i]->tailing || !n->evidence[i]->tail_asked)
            return false;
    return true;
}

/* The first one first: the digest keeps its place and time. */
static void make_digest(struct node *n)
{
    n->digest = (struct decide_digest){.kind = DECIDE_SILENT};
    if (n->core.cause == AGENT_WORKER_FAILED)
        decide_add(&n->digest, &n->worker[n->core.cause_slot].failure, n->coord);
    for (unsigned i = 0; i < n->nproc; i++)
        if (n->worker[i].ended && !n->worker[i].bad)
            decide_passed(&n->digest);
        else if (n->worker[i].bad && (n->core.cause != AGENT_WORKER_FAILED || i != n->core.cause_slot))
            decide_add(&n->digest, &n->worker[i].failure, n->coord);
    n->digest.steps_known = n->steps_here && n->steps.sum.any && !n->steps.sum.wraps;
    if (n->digest.steps_known)
        n->digest.steps = n->steps.sum.made - n->steps_before;
}

static void judge(struct node *n, unsigned slot, bool oom_rose)
{
    struct failure *f = &n->worker[slot].failure;
    failure_judge(f, report_was_signalled(n, slot), oom_rose);
    f->witnessed |= n->conf->on_text_suspect == CONF_TEXT_ACT;
}

static void collected(struct node *n)
{
    n->collecting = false;
    loop_timer_at(n->evidence_timer, EL_NEVER);
    int64_t oom = evidence_oom_count(&n->oom), kills = oom >= 0 && n->oom_before >= 0 ? oom - n->oom_before : 0;
    witness_tell(n, kills);
    for (unsigned i = 0; i < n->nproc; i++)
        if (n->worker[i].bad)
            judge(n, i, kills > 0);
    last_one_explain(n);
    struct report r = make_report(n);
    int odd = hung_odd(r.failures, r.failures_count, NULL);
    if (odd >= 0)
        n->worker[r.failures[odd]->local_rank].failure.odd = true;
    int cause = failure_cause(r.failures, r.failures_count);
    tell_incidents(n, cause < 0 ? NULL : r.failures[cause]);
    make_digest(n);
    node_feed(n, &(struct agent_event){.type = AGENT_EV_COLLECTED, .digest = &n->digest});
}

static void maybe_collected(struct node *n)
{
    if (n->collecting && evidence_complete(n) && witness_complete(n) && output_drained(n->output))
        collected(n);
}

static void on_evidence_late(void *ctx)
{
    struct node *n = ctx;
    if (n->publishing) {
        n->publish_late = true;
        published(n);
    }
    if (!n->collecting)
        return;
    el_log(EL_WARN, "some output or error files could not be read within %u s; going on without them",
           (unsigned)(NODE_EVIDENCE_TIME / EL_SEC(1)));
    collected(n);
}

static void read_file(void *ctx)
{
    struct evidence_job *job = ctx;
    evidence_read_errfile(job->path, &job->file);
}

/* True if nobody waits for the job any more. */
static bool forgotten(struct evidence_job *job)
{
    if (job->node)
        return false;
    if (!job->reading && !job->tailing)
        free(job);
    return true;
}

static void forget_evidence(struct node *n)
{
    for (unsigned i = 0; i < n->evidence_count; i++) {
        n->evidence[i]->node = NULL;
        forgotten(n->evidence[i]);
    }
    n->evidence_count = 0;
}

static void file_read(void *ctx)
{
    struct evidence_job *job = ctx;
    struct node *n = job->node;
    job->reading = false;
    if (forgotten(job) || !n->collecting)
        return;
    failure_add_file(&n->worker[job->slot].failure, &job->file, NULL);
    maybe_collected(n);
}

static void on_tails(void *ctx, unsigned slot, const struct output_tail *out, const struct output_tail *err)
{
    struct evidence_job *job = ctx;
    struct node *n = job->node;
    job->tailing = false;
    if (forgotten(job) || !n->collecting)
        return;
    struct failure *f = &n->worker[slot].failure;
    f->watch = err->from == OUTPUT_TAIL_READ || err->from == OUTPUT_TAIL_FILE ? FAILURE_WATCH_YES
               : err->from == OUTPUT_TAIL_TERMINAL                            ? FAILURE_WATCH_TERMINAL
                                                                              : FAILURE_WATCH_NO;
    if (err->path)
        failure_set_line(f, &f->log_file, err->path, NULL);
    if (err->len)
        failure_add_stderr(f, err->bytes, err->len, NULL);
    if (out->len)
        failure_add_stdout(f, out->bytes, out->len, NULL);
    maybe_collected(n);
}

static void ask_tails(struct node *n, struct evidence_job *job)
{
    job->tail_asked = true;
    job->tailing = output_tails_collect(n->output, job->slot, loop_clock() + NODE_EVIDENCE_TIME, on_tails, job) == 0;
}

static void gather(struct node *n, unsigned slot)
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
        job->job = (struct pool_job){.work = read_file, .done = file_read, .ctx = job};
        job->reading = pool_run(n->pool, &job->job, &e) == 0;
    }
    if (output_rank_drained(n->output, slot))
        ask_tails(n, job);
}

void report_rank_drained(void *node, unsigned slot)
{
    struct node *n = node;
    consequence_drained(n, slot);
    for (unsigned i = 0; n->collecting && i < n->evidence_count; i++)
        if (n->evidence[i]->slot == slot && !n->evidence[i]->tail_asked)
            ask_tails(n, n->evidence[i]);
    maybe_collected(n);
}

void report_drained(void *node)
{
    maybe_collected(node);
}

/* Those that elrun has stopped are looked at, too, where the failure that stopped them is another one's consequence. */
static bool is_evidence(const struct node *n, unsigned slot)
{
    bool open = n->core.follows || n->core.hung || n->core.cause == AGENT_HALTED;
    return n->worker[slot].bad && (open || !was_stopped(n, slot));
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
        gather(n, (unsigned)i);
        i = next_cause(n, n->worker[i].failure.at, (unsigned)i);
    }
    witness_collect(n);
    unsigned failed = 0;
    for (unsigned i = 0; i < n->nproc; i++)
        failed += n->worker[i].bad && !was_stopped(n, i);
    if (failed > NODE_EVIDENCE_MAX)
        el_log(EL_INFO, "%u workers failed; error files and last output were read of the first %d", failed,
               NODE_EVIDENCE_MAX);
    maybe_collected(n);
}

/* --- the last words --- */

/* Where there is something to look at; a temporary folder in which nothing was written is gone by now. */
const char *report_logs(const struct node *n)
{
    return n->conf->log_dir ? output_log_dir(n->output) : n->kept_logs[0] ? n->kept_logs : NULL;
}

/* A worker failed, and what should have been its restart could not even be prepared. */
static bool restart_refused(const struct node *n)
{
    bool unmade = n->core.cause == AGENT_PREPARE_FAILED || n->core.cause == AGENT_SPAWN_FAILED;
    return unmade && n->core.restarts && !n->membership;
}

/* Those whose failures are to be told. */
static struct worker *told_workers(const struct node *n)
{
    return restart_refused(n) && n->core.cause == AGENT_SPAWN_FAILED ? n->before : n->worker;
}

/* The job ends because of a worker: the report tells of it, and the exit status is its own. */
static bool worker_failed(const struct node *n)
{
    return n->core.cause == AGENT_WORKER_FAILED || restart_refused(n);
}

static struct report make_report(struct node *n)
{
    struct worker *worker = told_workers(n);
    unsigned count = 0;
    for (unsigned i = 0; i < n->nproc; i++)
        if (worker[i].bad)
            n->failures[count++] = &worker[i].failure;
    return (struct report){
        .script = n->conf->script,
        .failures = n->failures,
        .failures_count = count,
        .restarts = n->core.restarts - (restart_refused(n) || n->core.state == AGENT_PREPARING), /* those before it */
        .restarts_max = n->conf->max_restarts,
        .no_restart = n->membership ? "" : n->core.verdict.why,
        .log_dir = report_logs(n),
    };
}

static const struct failure *cause_of(struct node *n, const struct report *r)
{
    int cause = failure_cause(r->failures, r->failures_count);
    return cause >= 0 ? r->failures[cause] : &told_workers(n)[n->core.cause_slot].failure;
}

static void say_restart(struct node *n)
{
    struct report r = make_report(n);
    struct el_buf text = EL_BUF_INIT(NULL, 4096);
    report_print(n, &r);
    summary_verdict(&r, &text);
    el_log(EL_INFO, "restart %u of %u: %s", n->core.restarts, n->conf->max_restarts, el_buf_cstr(&text));
    tell_restart(n, el_buf_cstr(&text));
    el_buf_free(&text);
}

void report_restart(struct node *n)
{
    if (n->core.restarts && !n->membership)
        say_restart(n);
    n->error = (struct el_err){0};
}

void report_forget(struct node *n)
{
    for (unsigned i = 0; i < n->nproc; i++) {
        failure_free(&n->before[i].failure, NULL);
        n->before[i] = n->worker[i];
        n->worker[i] = (struct worker){0};
    }
    forget_evidence(n);
    consequence_forget(n);
    n->missing.len = 0;
    witness_attempt(n);
    n->oom_before = evidence_oom_count(&n->oom);
}

void report_files(const struct node *n, struct el_err *e)
{
    size_t used = strlen(e->text);
    if (e->sys == EMFILE)
        snprintf(e->text + used, sizeof e->text - used, "; about %u are needed for %u worker%s",
                 NODE_FILES_OWN + NODE_FILES_EACH * n->nproc, n->nproc, n->nproc == 1 ? "" : "s");
}

void report_print(struct node *n, const struct report *r)
{
    struct el_buf text = EL_BUF_INIT(NULL, 1u << 20);
    if (console_is_json(n->console)) {
        if (summary_json(r, &text) == 0)
            el_buf_puts(&text, "\n");
    } else {
        summary_write(r, &text, console_has_colour(n->console) ? &summary_colour : &summary_plain);
    }
    console_write(n->console, text.v, text.len);
    el_buf_free(&text);
}

/* Of several nodes the coordinator and the one of rank 0 print the report; this one too, if it never heard the end. */
static void say_own_failure(struct node *n)
{
    struct report r = make_report(n);
    struct el_buf text = EL_BUF_INIT(NULL, 4096);
    bool elsewhere = n->membership && membership_was_told(n->membership);
    if (n->membership && incident_is_printed(n))
        return;
    if (!elsewhere) {
        report_missing(n);
        report_print(n, &r);
        return;
    }
    summary_verdict(&r, &text);
    const struct failure *f = cause_of(n, &r);
    el_log(EL_ERROR, "%s%s%s", el_buf_cstr(&text), f->log_file ? "; its stderr: " : "", f->log_file ? f->log_file : "");
    el_buf_free(&text);
}

void report_verdict(struct node *n, struct el_buf *out)
{
    struct report r = make_report(n);
    summary_verdict(&r, out);
}

int report_failure_status(struct node *n)
{
    struct report r = make_report(n);
    return failure_exit_status(cause_of(n, &r), n->conf->exit_code);
}

static int status_of(struct node *n)
{
    bool as_torchrun = n->conf->exit_code == FAILURE_AS_TORCHRUN;
    if (n->membership) /* the job's, or why this node is no part of it any more */
        return as_torchrun ? n->status != 0 : n->status;
    switch (n->core.cause) {
    case AGENT_SUCCESS: return 0;
    case AGENT_WORKER_FAILED: return report_failure_status(n);
    case AGENT_LEAVING: return as_torchrun ? 1 : EL_EXIT_SIGNAL(n->core.leave_signal);
    case AGENT_SPAWN_FAILED:
    case AGENT_PREPARE_FAILED: return restart_refused(n) ? report_failure_status(n) : as_torchrun ? 1 : n->error.status;
    case AGENT_HALTED: return n->status;
    case AGENT_STUCK: return as_torchrun ? 1 : EL_EXIT_OSERR;
    case AGENT_NO_CAUSE: break;
    }
    return EL_EXIT_SOFTWARE;
}

static void say_last_words(struct node *n)
{
    char line[400], name[SIGNAME_MAX];
    bool failed = worker_failed(n);
    n->account.steps = n->steps.sum;
    account_text(&n->account, loop_clock(), line, sizeof line);
    el_log(failed || n->core.restarts || (n->membership && n->status && !n->conf->probe_only) ? EL_INFO : EL_DEBUG,
           "time: %s", line);
    if (report_logs(n) && !failed) /* the report names them itself */
        el_log(EL_INFO, "logs: %s", report_logs(n));
    if (n->publish_late)
        el_log(EL_WARN, "error file %s: could not be written within %u s", env_get(n->env, "TORCHELASTIC_ERROR_FILE"),
               (unsigned)(NODE_PUBLISH_TIME / EL_SEC(1)));
    else if (n->publish_error.status)
        el_log(EL_WARN, "%s", n->publish_error.text);
    if (n->core.group.stuck)
        report_stuck(n);
    if (restart_refused(n))
        el_log(EL_ERROR, "restart %u of %u could not be made: %s", n->core.restarts, n->conf->max_restarts,
               n->error.text);
    if (failed)
        say_own_failure(n);
    else if (n->core.cause == AGENT_SPAWN_FAILED || n->core.cause == AGENT_PREPARE_FAILED)
        el_log(EL_ERROR, "%s", n->error.text);
    else if (n->core.cause == AGENT_LEAVING)
        el_log(EL_INFO, "ended by %s", signame(n->core.leave_signal, name));
    else if (n->core.restarts && !n->membership)
        el_log(EL_INFO, "succeeded after %u restart%s", n->core.restarts, n->core.restarts == 1 ? "" : "s");
    if (n->farewell[0])
        el_log(n->status ? EL_ERROR : EL_INFO, "%s", n->farewell);
}

/* Of an end that is none as it should be, in one line; NULL of another. */
static void tell_how_it_ended(struct node *n)
{
    struct el_buf verdict = EL_BUF_INIT(NULL, 0);
    char name[SIGNAME_MAX];
    const char *why = NULL;
    if (worker_failed(n)) {
        report_verdict(n, &verdict);
        why = el_buf_cstr(&verdict);
    } else if (n->core.cause == AGENT_SPAWN_FAILED || n->core.cause == AGENT_PREPARE_FAILED) {
        why = n->error.text;
    } else if (n->core.cause == AGENT_LEAVING) {
        why = signame(n->core.leave_signal, name);
    } else if (n->core.cause == AGENT_STUCK) {
        why = "a process survives SIGKILL";
    }
    tell_end(n, n->farewell[0] ? n->farewell : why);
    el_buf_free(&verdict);
}

static void on_flushed(void *ctx, size_t left_bytes)
{
    struct node *n = ctx;
    (void)left_bytes; /* nobody is there to be told */
    loop_stop(n->loop);
}

static void on_told(void *node)
{
    struct node *n = node;
    console_finish(n->console, loop_clock() + NODE_FLUSH_TIME, on_flushed, n);
}

static void on_output_finished(void *ctx, const char *kept)
{
    struct node *n = ctx;
    snprintf(n->kept_logs, sizeof n->kept_logs, "%s", kept ? kept : "");
    console_status(n->console, NULL);
    say_last_words(n);
    tell_finish(n, on_told);
}

static void finish_output(void *node)
{
    output_finish(((struct node *)node)->output, loop_clock() + NODE_FLUSH_TIME, on_output_finished, node);
}

/* In the pool.  Nothing else looks at the failures then. */
static void publish(void *ctx)
{
    struct node *n = ctx;
    const char *to = env_get(n->env, "TORCHELASTIC_ERROR_FILE"), *log = env_get(n->env, "ELRUN_TERMINATION_LOG");
    if (n->last_words.len)
        evidence_farewell(log && *log ? log : "/dev/termination-log", n->last_words.v, n->last_words.len);
    if (n->publish_cause && to && *to)
        evidence_publish(n->publish_cause, to, &n->publish_error);
}

static void published(void *ctx)
{
    struct node *n = ctx;
    if (!n->publishing)
        return; /* too late: the job has ended without it */
    n->publishing = false;
    loop_timer_at(n->evidence_timer, EL_NEVER);
    health_settle(n->health, loop_clock() + NODE_PUBLISH_TIME, finish_output, n);
}

void report_end(struct node *n)
{
    struct report r = make_report(n);
    struct el_err e = {0};
    report_files(n, &n->error);
    n->status = status_of(n);
    tell_how_it_ended(n);
    n->publish = (struct pool_job){.work = publish, .done = published, .ctx = n};
    n->publish_cause = worker_failed(n) ? cause_of(n, &r) : NULL;
    if (n->status && n->core.cause != AGENT_LEAVING) {
        farewell_text(n->end_why[0] ? n->end_why : "elrun has failed", n->publish_cause, FAREWELL_MAX, &n->last_words);
        n->publishing = pool_run(n->pool, &n->publish, &e) == 0;
    }
    if (n->publishing)
        loop_timer_at(n->evidence_timer, loop_clock() + NODE_PUBLISH_TIME);
    else
        health_settle(n->health, loop_clock() + NODE_PUBLISH_TIME, finish_output, n);
}
