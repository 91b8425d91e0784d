/* The end: the exit status, the error file for the launcher, what is said last. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/node.h"
#include "agent/report_private.h"
#include "agent/say_once.h"
#include "failure/termination_msg.h"
#include "failure/summary.h"
#include "util/env.h"
#include "sys/signame.h"

/* Of several nodes the coordinator and the one of rank 0 print the report; this one too, if it never heard the end. */
static void say_own_failure(struct node *n)
{
    struct failure_report r = report_make(n);
    struct el_buf text = EL_BUF_INIT(NULL, 4096);
    bool elsewhere = n->membership && membership_was_told(n->membership);
    if (n->membership && incident_is_printed(n))
        return;
    if (!elsewhere) {
        report_print(n, &r);
        report_missing(n);
        return;
    }
    n->note_due = false;
    summary_verdict(&r, &text);
    const struct failure *f = report_cause_of(n, &r);
    el_log(EL_ERROR, "%s%s%s", el_buf_cstr(&text), f->log_file ? "; its stderr: " : "", f->log_file ? f->log_file : "");
    el_buf_free(&text);
}

static int status_of_job(struct node *n)
{
    bool as_torchrun = n->conf->exit_code == FAILURE_AS_TORCHRUN;
    if (n->membership) /* the job's, or why this node is no part of it any more */
        return as_torchrun ? n->status != 0 : n->status;
    switch (n->core.cause) {
    case AGENT_SUCCESS: return 0;
    case AGENT_WORKER_FAILED: return report_failure_status(n);
    case AGENT_LEAVING: return as_torchrun ? 1 : EL_EXIT_SIGNAL(n->core.leave_signal);
    case AGENT_SPAWN_FAILED:
    case AGENT_PREPARE_FAILED:
        return report_restart_refused(n) ? report_failure_status(n) : as_torchrun ? 1 : n->error.status;
    case AGENT_HALTED: return n->status;
    case AGENT_STUCK: return as_torchrun ? 1 : EL_EXIT_OSERR;
    case AGENT_NO_CAUSE: break;
    }
    return EL_EXIT_SOFTWARE;
}

/* A job that has done all but keep what was promised is none that went well. */
static int report_end_status_of(struct node *n)
{
    int status = status_of_job(n);
    if (status || !flush_io_owes(n, n->owed))
        return status;
    n->owes = true;
    return n->conf->exit_code == FAILURE_AS_TORCHRUN ? 1 : EL_EXIT_IOERR;
}

/* How it ended, and where its time went; nothing of an end as it should be. */
static void say_time(struct node *n)
{
    char line[400];
    bool failed = report_worker_failed(n);
    n->account.steps = n->steps.sum;
    goodput_text(&n->account, loop_clock(), line, sizeof line);
    if ((failed || n->membership) && n->status && !n->conf->probe_only)
        el_log(EL_INFO, "ended with status %d after %s", n->status, line);
    else
        el_log(n->core.restarts ? EL_INFO : EL_DEBUG, "time: %s", line);
}

static void report_end_say_trouble(struct node *n)
{
    if (n->publish_late)
        el_log(EL_WARN, "error file %s: could not be written within %u s", env_get(n->env, "TORCHELASTIC_ERROR_FILE"),
               (unsigned)(NODE_PUBLISH_TIME / EL_SEC(1)));
    else if (n->publish_error.status)
        el_log(EL_WARN, "%s", n->publish_error.text);
    if (n->core.group.stuck)
        report_stuck(n);
    if (report_restart_refused(n))
        el_log(EL_ERROR, "restart %u of %u could not be made: %s", n->core.restarts, n->conf->max_restarts,
               n->error.text);
}

/* What has been said of a worker of this node, as the coordinator would say it. */
static void own_cause(struct node *n, struct el_buf *to)
{
    if (!n->membership || n->core.cause != AGENT_WORKER_FAILED)
        return;
    struct failure_report r = report_make(n);
    const struct failure *f = report_cause_of(n, &r);
    el_buf_printf(to, "rank %u on %s failed: ", f->rank, n->host);
    summary_ending(f, to);
}

/* The coordinator's, without the cause that stands above it. */
static void say_farewell(struct node *n)
{
    char line[sizeof n->farewell];
    struct el_buf own = EL_BUF_INIT(NULL, 0);
    snprintf(line, sizeof line, "%s", n->farewell);
    own_cause(n, &own);
    bool reported = n->membership && incident_is_printed(n);
    /* A worker of this node was named since then: all of it once more. */
    bool between = report_worker_failed(n);
    bool left =
        reported ? incident_cut(n, line) : say_once_cut(line, n->stop_said && !between ? n->stop_why : NULL, false);
    if (left)
        left = say_once_cut(line, el_buf_cstr(&own), true);
    if (left)
        el_log(n->status && !n->owes ? EL_ERROR : EL_INFO, "%s", line);
    el_buf_free(&own);
}

static void say_last_lines(struct node *n)
{
    char name[SIGNAME_MAX];
    bool failed = report_worker_failed(n), json = console_is_json(n->console); /* there the report is the last object */
    if (failed && !json)
        say_own_failure(n);
    if (report_logs(n) && !failed) /* the report names them itself */
        el_log(EL_INFO, "logs: %s", report_logs(n));
    report_end_say_trouble(n);
    say_time(n);
    if (failed && json)
        say_own_failure(n);
    else if (failed)
        ; /* all is said */
    else if (n->core.cause == AGENT_SPAWN_FAILED || n->core.cause == AGENT_PREPARE_FAILED)
        el_log(EL_ERROR, "%s", n->error.text);
    else if (n->core.cause == AGENT_LEAVING)
        el_log(EL_INFO, "ended by %s", signame(n->core.leave_signal, name));
    else if (n->core.restarts && !n->membership)
        el_log(EL_INFO, "succeeded after %u restart%s", n->core.restarts, n->core.restarts == 1 ? "" : "s");
    report_stopping(n);
    if (n->farewell[0])
        say_farewell(n);
    if (n->owes) /* of a node that is alone why has been said */
        el_log(EL_ERROR, "%.*s", (int)(n->membership ? strlen(n->owed) : strcspn(n->owed, ":")), n->owed);
}

/* Of an end that is none as it should be, in one line; NULL of another. */
static void tell_how_it_ended(struct node *n)
{
    struct el_buf verdict = EL_BUF_INIT(NULL, 0);
    char name[SIGNAME_MAX];
    const char *why = NULL;
    if (report_worker_failed(n)) {
        report_verdict(n, &verdict);
        why = el_buf_cstr(&verdict);
    } else if (n->core.cause == AGENT_SPAWN_FAILED || n->core.cause == AGENT_PREPARE_FAILED) {
        why = n->error.text;
    } else if (n->core.cause == AGENT_LEAVING) {
        why = signame(n->core.leave_signal, name);
    } else if (n->core.cause == AGENT_STUCK) {
        why = "a process survives SIGKILL";
    }
    emit_end(n, n->owes ? n->owed : n->farewell[0] ? n->farewell : why);
    el_buf_free(&verdict);
}

static void report_end_on_flushed(void *ctx, size_t left_bytes)
{
    struct node *n = ctx;
    (void)left_bytes; /* nobody is there to be told */
    loop_stop(n->loop);
}

static void report_end_on_told(void *node)
{
    struct node *n = node;
    console_finish(n->console, loop_clock() + NODE_FLUSH_TIME, report_end_on_flushed, n);
}

static void on_output_finished(void *ctx, const char *kept)
{
    struct node *n = ctx;
    snprintf(n->kept_logs, sizeof n->kept_logs, "%s", kept ? kept : "");
    console_status(n->console, NULL);
    say_last_lines(n);
    emit_finish(n, report_end_on_told);
}

static void finish_output(void *node)
{
    output_finish(((struct node *)node)->output, loop_clock() + NODE_FLUSH_TIME, on_output_finished, node);
}

/* In the pool.  Nothing else looks at the failures then. */
static void report_end_publish(void *ctx)
{
    struct node *n = ctx;
    const char *to = env_get(n->env, "TORCHELASTIC_ERROR_FILE"), *log = env_get(n->env, "ELRUN_TERMINATION_LOG");
    if (n->termination_text.len)
        evidence_farewell(log && *log ? log : "/dev/termination-log", n->termination_text.v, n->termination_text.len);
    if (n->publish_cause && to && *to)
        evidence_publish(n->publish_cause, to, &n->publish_error);
}

void report_published(struct node *n, bool late)
{
    if (!n->publishing)
        return; /* too late: the job has ended without it */
    n->publish_late = late;
    n->publishing = false;
    loop_timer_at(n->evidence_timer, EL_NEVER);
    health_settle(n->health, loop_clock() + NODE_PUBLISH_TIME, finish_output, n);
}

static void report_end_on_published(void *ctx)
{
    report_published(ctx, false);
}

void report_end(struct node *n)
{
    struct failure_report r = report_make(n);
    struct el_err e = {0};
    report_files(n, &n->error);
    n->status = report_end_status_of(n);
    tell_how_it_ended(n);
    n->publish = (struct pool_job){.work = report_end_publish, .done = report_end_on_published, .ctx = n};
    n->publish_cause = report_worker_failed(n) ? report_cause_of(n, &r) : NULL;
    if (n->status && n->core.cause != AGENT_LEAVING) {
        termination_msg_text(n->end_why[0] ? n->end_why : "elrun has failed", n->publish_cause, TERMINATION_MSG_MAX,
                             &n->termination_text);
        n->publishing = pool_run(n->pool, &n->publish, &e) == 0;
    }
    if (n->publishing)
        loop_timer_at(n->evidence_timer, loop_clock() + NODE_PUBLISH_TIME);
    else
        health_settle(n->health, loop_clock() + NODE_PUBLISH_TIME, finish_output, n);
}
