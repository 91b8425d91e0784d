/* What happens on this node, as events (event/event.h); of a job of one node also what happens to the job, which
 * otherwise its coordinator says. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/node.h"
#include "failure/dlrover.h"
#include "failure/record.h"
#include "failure/summary.h"
#include "util/text.h"
#include "output/logtree.h"
#include "sys/signame.h"
#include "coord/health.h"

static struct event emit_event_of(const struct node *n, enum event_type type)
{
    return (struct event){
        .type = type,
        .wall_usec = loop_wall_usec(),
        .mono = loop_clock(),
        .run_id = workers_run_id(n),
        .host = n->host,
        .round = n->membership ? membership_world(n->membership)->number : n->core.attempts,
    };
}

static void emit_tell(struct node *n, const struct event *ev)
{
    event_log_put(n->trace, ev);
    event_log_put(n->log_trace, ev);
}

/* The same for those who asked for a command to be run. */
static void emit_hook(struct node *n, enum hook_kind kind, const struct event *ev)
{
    hooks_fire(n->hooks, kind, ev, n->core.attempts);
}

/* --- of the job --- */

static void emit_emit_alone(struct node *n, enum note_type type, const char *text, int64_t status)
{
    struct event ev = emit_event_of(n, EVENT_OF_NOTE(type));
    if (n->membership)
        return;
    ev.u.note = (struct event_note){.node = type == NOTE_FAILED ? n->host : NULL, .text = text, .status = status};
    emit_tell(n, &ev);
}

void emit_job_note(void *node, const char *run_id, const struct rdzv_note *note, int status)
{
    struct node *n = node;
    struct event ev = emit_event_of(n, EVENT_OF_NOTE(note->type));
    ev.source = EVENT_COORDINATOR;
    ev.run_id = run_id;
    ev.round = note->number;
    ev.u.note = (struct event_note){.node = note->host[0] ? note->host : NULL, .text = note->text, .status = status};
    emit_tell(n, &ev);
}

static void job_began(struct node *n, enum event_source source, const struct event_job_started *job)
{
    struct event ev = emit_event_of(n, EVENT_JOB_STARTED);
    ev.source = source;
    ev.round = 0;
    ev.u.job_started = *job;
    emit_tell(n, &ev);
}

void emit_job_began(void *node, const char *run_id, const struct rdzv_settings *set)
{
    (void)run_id; /* a coordinator in an agent has one job */
    struct node *n = node;
    n->job = (struct event_job_started){set->min, set->max, set->max_restarts};
    n->job_known = true;
    job_began(n, EVENT_COORDINATOR, &n->job);
}

/* --- of this node --- */

int emit_open(struct node *n, struct el_err *e)
{
    if (!n->conf->events)
        return 0;
    n->trace = event_log_open(n->conf->events, e);
    return n->trace ? 0 : -1;
}

int emit_init(struct node *n, struct el_err *e)
{
    return event_log_start(n->trace, n->loop, e);
}

static void emit_began(struct node *n)
{
    struct event ev = emit_event_of(n, EVENT_AGENT_STARTED);
    ev.wall_usec = n->began_wall_usec;
    ev.mono = n->began;
    ev.round = 0;
    ev.u.agent_started = (struct event_agent_started){
        .pid = (uint64_t)getpid(), .workers = n->nproc, .script = n->conf->script, .role = n->conf->role};
    emit_tell(n, &ev);
    if (!n->membership)
        job_began(n, EVENT_AGENT, &(struct event_job_started){1, 1, n->conf->max_restarts});
}

void emit_begin(struct node *n)
{
    n->began = loop_clock();
    n->began_wall_usec = loop_wall_usec();
    emit_began(n);
}

/* The run's folder is there: its file begins with what has been told elsewhere already. */
static void begin_log(struct node *n)
{
    struct el_err e = {0};
    struct event_log *other = n->trace;
    char path[PATH_MAX];
    int fd = output_take_events(n->output);
    if (fd < 0)
        return;
    snprintf(path, sizeof path, "%s/%s", output_log_dir(n->output), LOGTREE_EVENTS);
    n->log_trace = event_log_adopt(fd, path, n->loop, &e);
    if (!n->log_trace)
        el_log(EL_WARN, "events: %s: %s", path, e.text);
    n->trace = NULL;
    emit_began(n);
    if (n->job_known)
        job_began(n, EVENT_COORDINATOR, &n->job);
    n->trace = other;
}

static const char *cause_word(const struct node *n)
{
    static const char *const words[] = {
        [AGENT_SUCCESS] = "success",
        [AGENT_WORKER_FAILED] = "worker failed",
        [AGENT_SPAWN_FAILED] = "spawn failed",
        [AGENT_PREPARE_FAILED] = "prepare failed",
        [AGENT_LEAVING] = "leaving",
        [AGENT_HALTED] = "halted",
        [AGENT_STUCK] = "stuck",
        [AGENT_NO_CAUSE] = NULL,
    };
    return n->core.group.stuck && n->core.cause != AGENT_LEAVING ? words[AGENT_STUCK] : words[n->core.cause];
}

void emit_moved(struct node *n, enum agent_state before)
{
    enum agent_state now = n->core.state;
    char text[128];
    struct event ev;
    if (now == AGENT_STOPPING) {
        ev = emit_event_of(n, EVENT_WORKERS_STOPPING);
        ev.u.workers_stopping = (struct event_workers_stopping){.workers = n->core.group.up, .why = cause_word(n)};
        if (n->core.group.up) { /* else only leftovers are still there */
            emit_tell(n, &ev);
            emit_hook(n, HOOK_PRE_STOP, &ev);
        }
        snprintf(text, sizeof text, "round %u stops: %s", n->core.attempts, cause_word(n));
        emit_emit_alone(n, NOTE_STOPPING, text, -1);
    } else if (now == AGENT_COLLECTING) {
        assert(before == AGENT_RUNNING || before == AGENT_STOPPING);
        ev = emit_event_of(n, EVENT_WORKERS_STOPPED);
        ev.u.workers_stopped = (struct event_workers_stopped){
            .failed = n->core.group.failed, .why = cause_word(n), .stuck = n->core.group.stuck};
        emit_tell(n, &ev);
        emit_hook(n, HOOK_POST_STOP, &ev);
        snprintf(text, sizeof text, "round %u is closed: %s", n->core.attempts, cause_word(n));
        emit_emit_alone(n, NOTE_CLOSED, text, -1);
    } else if (before == AGENT_PREPARING && now != AGENT_RUNNING) {
        hooks_cancel(n->hooks, HOOK_PRE_START);
    }
}

void emit_prepared(struct node *n)
{
    const struct msg_world *w = n->membership ? membership_world(n->membership) : NULL;
    char text[128];
    begin_log(n);
    snprintf(text, sizeof text, "round %u: 1 node, %u worker%s", n->core.attempts, n->nproc, n->nproc == 1 ? "" : "s");
    emit_emit_alone(n, NOTE_FORMED, text, -1);
    struct event ev = emit_event_of(n, EVENT_WORKERS_STARTING);
    ev.u.workers_starting = (struct event_workers_starting){
        .first_rank = workers_rank(n, 0),
        .workers = n->nproc,
        .world_size = w ? w->world_size : n->nproc,
        .group_rank = w ? w->group_rank : 0,
        .group_size = w ? w->group_size : 1,
        .restarts = n->core.restarts,
    };
    emit_tell(n, &ev);
    emit_hook(n, HOOK_ROUND, &ev);
    if (n->hooks)
        emit_hook(n, HOOK_PRE_START, &ev); /* without a command too: it waits for post-stop */
    else
        node_may_start(n, n->core.attempts, NULL);
}

void emit_worker_started(struct node *n, unsigned slot)
{
    struct event ev = emit_event_of(n, EVENT_WORKER_STARTED);
    ev.u.worker_started = (struct event_worker_started){
        .rank = workers_rank(n, slot), .local_rank = slot, .pid = (uint64_t)n->worker[slot].pid};
    emit_tell(n, &ev);
}

void emit_all_started(struct node *n)
{
    struct event ev = emit_event_of(n, EVENT_WORKERS_STARTED);
    ev.u.workers_started = (struct event_workers_started){.workers = n->nproc, .restarts = n->core.restarts};
    emit_tell(n, &ev);
    emit_hook(n, HOOK_POST_START, &ev);
}

void emit_worker_ended(struct node *n, unsigned slot, const struct reap_end *end)
{
    struct event ev = emit_event_of(n, EVENT_WORKER_ENDED);
    char name[SIGNAME_MAX];
    ev.u.worker_ended = (struct event_worker_ended){
        .rank = workers_rank(n, slot),
        .local_rank = slot,
        .pid = (uint64_t)n->worker[slot].pid,
        .exit_code = end->code,
        .signal = end->signal,
        .signal_name = end->signal > 0 ? signame(end->signal, name) : NULL,
        .core_dumped = end->core,
        .stopped = report_was_signalled(n, slot),
        .elapsed_us = ev.mono - n->worker[slot].started,
    };
    emit_tell(n, &ev);
}

void emit_worker_failed(struct node *n, const char *how, unsigned slot)
{
    char text[512];
    snprintf(text, sizeof text, "rank %u on %s: %s", workers_rank(n, slot), n->host, how);
    emit_emit_alone(n, NOTE_FAILED, text, -1);
}

/* Whether the node is set aside is the coordinator's business; who cordons nodes wants to hear of it in any case. */
static void emit_node_bad(struct node *n, const char *class, const char *why)
{
    struct event ev = emit_event_of(n, EVENT_NODE_BAD);
    ev.u.node_bad = (struct event_node_bad){.node = n->host, .class = class, .why = why};
    emit_tell(n, &ev);
    emit_hook(n, HOOK_NODE_BAD, &ev);
}

void emit_unfit(struct node *n, const char *why)
{
    emit_node_bad(n, "health check", why);
}

static void emit_incident(struct node *n, const struct failure *f, bool cause)
{
    struct event ev = emit_event_of(n, EVENT_INCIDENT);
    struct failure_report alone = {.script = n->conf->script, .failures = &f, .failures_count = 1};
    struct el_buf text = EL_BUF_INIT(NULL, EVENT_TEXT_MAX * 2), record = EL_BUF_INIT(NULL, 0),
                  dlrover = EL_BUF_INIT(NULL, EVENT_TEXT_MAX);
    summary_verdict(&alone, &text);
    bool whole = record_write(f, RECORD_BYTES_MAX, &record) == 0;
    bool line = dlrover_line(ev.run_id, n->host, f->restart, &f, 1, &dlrover) == 0;
    ev.u.incident = (struct event_incident){
        .rank = f->rank,
        .local_rank = f->local_rank,
        .restarts = f->restart,
        .cause = cause,
        .class = failure_class_text(f->class),
        .text = el_buf_cstr(&text),
        .advice = failure_advice(f)[0] ? failure_advice(f) : NULL,
        .dlrover = line ? el_buf_cstr(&dlrover) : NULL,
        .record = whole ? el_buf_cstr(&record) : NULL,
    };
    emit_tell(n, &ev);
    if (cause)
        emit_hook(n, HOOK_INCIDENT, &ev);
    if (cause && f->class == FAILURE_CLASS_HARDWARE && f->witnessed)
        emit_node_bad(n, failure_class_text(f->class), el_buf_cstr(&text));
    el_buf_free(&text);
    el_buf_free(&record);
    el_buf_free(&dlrover);
}

/* Those whose evidence was read, at most NODE_EVIDENCE_MAX; of the others their end has been told. */
void emit_incidents(struct node *n, const struct failure *cause)
{
    for (unsigned i = 0; i < n->evidence_count; i++) {
        const struct failure *f = &n->worker[n->evidence[i]->slot].failure;
        if (failure_is_own(f))
            emit_incident(n, f, f == cause);
    }
}

void emit_time_so_far(struct node *n)
{
    char line[400];
    n->account.steps = n->steps.sum;
    goodput_text(&n->account, loop_clock(), line, sizeof line);
    el_log(EL_INFO, "time so far: %s", line);
}

void emit_checkpoint(struct node *n, const struct event_checkpoint *c)
{
    struct event ev = emit_event_of(n, EVENT_CHECKPOINT);
    ev.u.checkpoint = *c;
    emit_tell(n, &ev);
}

void emit_differ(struct node *n, const struct slot_table_pair *x)
{
    struct event ev = emit_event_of(n, EVENT_REPLICAS_DIFFER);
    ev.u.replicas_differ = (struct event_replicas_differ){.step = (uint64_t)x->step,
                                                          .part = x->part,
                                                          .shard_id = x->shard_id,
                                                          .rank = x->of[0].rank,
                                                          .other_rank = x->of[1].rank,
                                                          .tensors = x->tensors,
                                                          .text = x->names};
    emit_tell(n, &ev);
}

void emit_restart(struct node *n, const char *why)
{
    char line[400];
    n->account.steps = n->steps.sum;
    goodput_text(&n->account, loop_clock(), line, sizeof line);
    el_log(EL_INFO, "restart %u of %u; time so far: %s", n->core.restarts, n->conf->max_restarts, line);
    struct event ev = emit_event_of(n, EVENT_RESTART);
    ev.u.restart =
        (struct event_restart){.restarts = n->core.restarts, .max_restarts = n->conf->max_restarts, .why = why};
    emit_tell(n, &ev);
}

static void emit_account(struct node *n)
{
    struct event ev = emit_event_of(n, EVENT_ACCOUNT);
    struct el_buf numbers = EL_BUF_INIT(NULL, 0);
    char text[400];
    n->account.steps = n->steps.sum;
    goodput_text(&n->account, ev.mono, text, sizeof text);
    bool whole = goodput_json(&n->account, ev.mono, &numbers) == 0;
    ev.u.account = (struct event_account){.text = text, .account = whole ? el_buf_cstr(&numbers) : NULL};
    emit_tell(n, &ev);
    el_buf_free(&numbers);
}

static struct event end_event(const struct node *n)
{
    struct event ev = emit_event_of(n, EVENT_AGENT_ENDED);
    ev.u.agent_ended =
        (struct event_agent_ended){.status = (uint64_t)n->status, .text = n->end_why[0] ? n->end_why : NULL};
    return ev;
}

void emit_end(struct node *n, const char *why)
{
    char text[sizeof n->end_why + 32];
    text_copy(n->end_why, sizeof n->end_why, why ? why : "", why ? strlen(why) : 0);
    snprintf(text, sizeof text, "status %d: %s", n->status, why ? n->end_why : "success");
    emit_account(n);
    emit_emit_alone(n, NOTE_ENDED, text, n->status);
    struct event ev = end_event(n);
    emit_tell(n, &ev);
}

/* --- hooks --- */

static int guard_now(void *ctx)
{
    const struct node *n = ctx;
    return n->guard ? guard_fd(n->guard) : -1;
}

static void guard_forget(void *ctx, pid_t group)
{
    struct node *n = ctx;
    guard_remove(n->guard, group);
}

static void guard_tell_again(void *ctx, pid_t group)
{
    struct node *n = ctx;
    guard_add(n->guard, group);
}

void emit_guard(struct node *n)
{
    hooks_guard(n->hooks, guard_tell_again);
}

static void on_hook_ended(void *ctx, const struct hooks_end *end)
{
    struct node *n = ctx;
    struct event ev = emit_event_of(n, EVENT_HOOK_ENDED);
    ev.u.hook_ended = (struct event_hook_ended){.hook = hook_name(end->kind),
                                                .command = end->command,
                                                .exit_code = end->code,
                                                .signal = end->signal,
                                                .timed_out = end->timed_out,
                                                .elapsed_us = end->elapsed};
    emit_tell(n, &ev);
}

static void on_hook_done(void *ctx, enum hook_kind kind, unsigned tag, const char *trouble)
{
    if (kind == HOOK_PRE_START)
        node_may_start(ctx, tag, trouble);
}

static void on_first_written(void *ctx)
{
    struct node *n = ctx;
    event_log_finish(n->log_trace, loop_clock() + NODE_EVENTS_TIME, n->told, n);
}

static void write_out(struct node *n)
{
    event_log_finish(n->trace, loop_clock() + NODE_EVENTS_TIME, on_first_written, n);
}

/* What a hook, or a library of a health check's helpers, has put into another session and left behind: elrun has
 * adopted it. */
static void emit_sweep(void *ctx)
{
    struct node *n = ctx;
    unsigned left = reap_orphans(n->reap, 0, SIGKILL, guard_pid(n->guard));
    if (left && n->sweeps++ < NODE_SWEEPS_MAX)
        loop_timer_at(n->sweep_timer, loop_clock() + NODE_SWEEP_EVERY);
    else
        write_out(n);
}

int emit_hooks(struct node *n, struct el_err *e)
{
    struct hooks_conf conf = {
        .commands = n->conf->hooks,
        .count = n->conf->hooks_count,
        .timeout = n->conf->hook_timeout,
        .env = n->env,
        .files = &n->old_files,
        .guard_fd = guard_now,
        .gone = guard_forget,
        .ended = on_hook_ended,
        .done = on_hook_done,
        .idle = emit_sweep,
        .ctx = n,
    };
    bool sweeps = conf.count || n->conf->health_check != HEALTH_OFF;
    if (sweeps && !(n->sweep_timer = loop_timer_new(n->loop, emit_sweep, n)))
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    if (!conf.count)
        return 0;
    n->hooks = hooks_new(n->loop, n->reap, &conf, e);
    return n->hooks ? 0 : -1;
}

void emit_free(struct node *n)
{
    hooks_free(n->hooks);
    loop_timer_free(n->sweep_timer);
}

void emit_finish(struct node *n, void (*told)(void *node))
{
    struct event ev = end_event(n);
    n->told = told;
    if (n->hooks)
        hooks_finish(n->hooks, &ev);
    else if (n->sweep_timer)
        emit_sweep(n);
    else
        write_out(n);
}

bool emit_close(struct node *n)
{
    bool clean = event_log_free(n->trace);
    return event_log_free(n->log_trace) && clean;
}
