#include "agent/agent_io.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/node.h"
#include "sys/signame.h"
#include "util/env.h"
#include "util/file.h"
#include "conf/entry.h"
#include "conf/conf.h"

/* --- the core and its inbox --- */

static void agent_show_status(struct node *n)
{
    bool ended = n->core.state == AGENT_ENDED;
    const char *state = n->membership ? membership_state(n->membership) : agent_state_name(n->core.state);
    if (n->core.state == n->shown && n->status_line.restarts == n->core.restarts &&
        (ended || n->status_line.state == state))
        return;
    n->shown = n->core.state;
    n->status_line = (struct console_status){
        .state = ended ? NULL : state,
        .round = n->core.attempts,
        .restarts = n->core.restarts,
        .max_restarts = n->conf->max_restarts,
        .since = loop_clock(),
    };
    console_status(n->console, &n->status_line);
}

static void account_state(struct node *n, enum agent_state before)
{
    static const enum goodput_part part[] = {
        [AGENT_IDLE] = ACCOUNT_FORM,     [AGENT_PREPARING] = ACCOUNT_START, [AGENT_RUNNING] = ACCOUNT_RUN,
        [AGENT_STOPPING] = ACCOUNT_STOP, [AGENT_COLLECTING] = ACCOUNT_STOP, [AGENT_ENDED] = ACCOUNT_STOP,
    };
    if (n->core.state != before)
        goodput_enter(&n->account, part[n->core.state], loop_clock());
}

static void on_output_ready(void *ctx, const struct el_err *e);

/* The rank whose lines tell of steps may be on another node in each round. */
static void watch_steps(struct node *n)
{
    unsigned first = workers_rank(n, 0),
             world = n->membership ? (unsigned)membership_world(n->membership)->world_size : n->nproc;
    bool last = n->conf->step_rank == CONF_STEP_LAST;
    bool here = n->conf->steps_wanted && (last ? first + n->nproc == world : first == 0);
    if (here)
        steps_attempt(&n->steps, 0);
    n->steps_here = here;
    n->steps_before = n->steps.sum.made;
    output_watch_steps(n->output, !here ? -1 : last ? (int)n->nproc - 1 : 0, &n->steps);
}

static void agent_io_prepare(struct node *n)
{
    loop_timer_at(n->prepare_timer, loop_clock() + NODE_PREPARE_TIME);
    n->prepare_again = n->preparing; /* for an attempt that was halted meanwhile: one at a time */
    if (n->preparing)
        return;
    n->preparing = true;
    watch_steps(n);
    output_attempt_begin(n->output, n->core.restarts, n->core.attempts - 1, workers_rank(n, 0), on_output_ready, n);
}

static void on_output_ready(void *ctx, const struct el_err *e)
{
    struct node *n = ctx;
    n->preparing = false;
    if (n->core.state != AGENT_PREPARING)
        return; /* too late: the job has ended while a log folder stood still */
    if (n->prepare_again) {
        agent_io_prepare(n);
        return;
    }
    loop_timer_at(n->prepare_timer, EL_NEVER);
    if (e) {
        n->error = *e;
        node_feed(n, &(struct agent_event){.type = AGENT_EV_PREPARED, .ok = false});
        return;
    }
    if (n->membership)
        managed_prepared(n);
    if (!health_alone(n->health))
        emit_prepared(n);
}

void node_may_start(struct node *n, unsigned attempt, const char *trouble)
{
    struct el_err err = {0};
    if (n->core.state != AGENT_PREPARING || n->core.attempts != attempt)
        return; /* it took so long that nobody waits for it any more */
    if (trouble)
        el_fail(&err, EL_EXIT_UNHEALTHY, "%s", trouble);
    bool good = !trouble && workers_prepare(n, &err) == 0;
    if (good)
        ckpt_round(n);
    if (good)
        report_forget(n);
    else
        n->error = err;
    node_feed(n, &(struct agent_event){.type = AGENT_EV_PREPARED, .attempt = attempt, .ok = good});
}

static void on_prepare_late(void *ctx)
{
    struct node *n = ctx;
    n->error = (struct el_err){0};
    el_fail(&n->error, EL_EXIT_CANTCREAT, "the log folder could not be made within %u s: its file system stands still",
            (unsigned)(NODE_PREPARE_TIME / EL_SEC(1)));
    node_feed(n, &(struct agent_event){.type = AGENT_EV_PREPARED, .ok = false});
}

static void agent_io_act(struct node *n, const struct agent_action *a)
{
    switch (a->type) {
    case AGENT_DO_PREPARE:
        report_restart(n);
        agent_io_prepare(n);
        break;
    case AGENT_DO_WAIT: report_wait(n); break;
    case AGENT_DO_GROUP: workers_act(n, &a->group); break;
    case AGENT_DO_NOTE:
        report_note(n, a->slot);
        emergency_io_noted(n);
        if (n->membership)
            managed_note(n, a->slot);
        break;
    case AGENT_DO_LOOK: consequence_look(n, a->slot); break;
    case AGENT_DO_CAPTURE: emergency_io_begin(n); break;
    case AGENT_DO_COLLECT:
        flush_io_emergency(n);
        emergency_io_pass(n);
        workers_close(n);
        report_collect(n);
        break;
    case AGENT_DO_FORWARD: workers_forward(n, a->signal); break;
    case AGENT_DO_SUSPEND: workers_suspend(n); break;
    case AGENT_DO_END:
        emergency_io_noted(n);
        flush_io_leave(n, report_end);
        break;
    case AGENT_DO_UP: membership_started(n->membership); break;
    case AGENT_DO_RESULT: managed_result(n); break;
    }
}

static void agent_io_step(struct node *n, const struct agent_event *ev, struct agent_actions *out)
{
    enum agent_state before = n->core.state;
    bool held = agent_is_held(&n->core);
    agent_step(&n->core, ev, loop_clock(), out);
    agent_check(&n->core);
    account_state(n, before);
    agent_show_status(n);
    if (n->core.state != before)
        emit_moved(n, before);
    if ((n->core.state != before || held) && n->core.state == AGENT_STOPPING && !agent_is_held(&n->core)) {
        flush_io_emergency(n);
        emergency_io_pass(n);
    }
}

static void agent_drain(struct node *n)
{
    if (n->draining)
        return;
    n->draining = true;
    while (n->inbox_count) {
        struct agent_event ev = n->inbox[n->inbox_head];
        n->inbox_head = (n->inbox_head + 1) % NODE_INBOX_MAX;
        n->inbox_count--;
        struct agent_actions out = {0};
        agent_io_step(n, &ev, &out);
        for (unsigned i = 0; i < out.n; i++)
            agent_io_act(n, &out.v[i]);
    }
    n->draining = false;
    loop_timer_at(n->deadline, agent_deadline(&n->core));
}

void node_feed(struct node *n, const struct agent_event *ev)
{
    assert(n->inbox_count < NODE_INBOX_MAX);
    n->inbox[(n->inbox_head + n->inbox_count++) % NODE_INBOX_MAX] = *ev;
    agent_drain(n);
}

static void agent_on_deadline(void *ctx)
{
    node_feed(ctx, &(struct agent_event){.type = AGENT_EV_TIMEOUT});
}

/* --- children --- */

/* Still a zombie: its group is swept now; everything else the core orders waits until it is reaped, so that no worker
 * starts while the old one of its slot is there. */
static void agent_on_zombie(void *ctx, unsigned slot, pid_t pid, const struct reap_end *end)
{
    struct node *n = ctx;
    (void)pid;
    emergency_io_ended(n, slot);
    snapshot_service_ended(n->snapshots, slot); /* it may have said that it may end */
    assert(!n->draining && !n->inbox_count && !n->after_reap.n);
    report_ended(n, slot, end);
    struct agent_event ev = {.type = AGENT_EV_EXITED, .slot = slot, .code = end->code, .signal = end->signal};
    ev.typed = workers_typed(n);
    agent_io_step(n, &ev, &n->after_reap);
    struct agent_actions *out = &n->after_reap;
    unsigned now = 0;
    for (; now < out->n && out->v[now].type == AGENT_DO_GROUP && out->v[now].group.type != WORKER_GROUP_SWEEP_ALL;
         now++)
        agent_io_act(n, &out->v[now]);
    out->n -= now;
    memmove(out->v, out->v + now, out->n * sizeof out->v[0]);
}

static void agent_on_reaped(void *ctx, unsigned slot, pid_t pid)
{
    struct node *n = ctx;
    (void)pid;
    output_child_exited(n->output, slot);
    struct agent_actions out = n->after_reap;
    n->after_reap.n = 0;
    n->draining = true; /* answers queue up behind what is being done */
    for (unsigned i = 0; i < out.n; i++)
        agent_io_act(n, &out.v[i]);
    n->draining = false;
    agent_drain(n);
}

static void agent_on_orphan(void *ctx, pid_t pid)
{
    struct node *n = ctx;
    if (n->guard && pid == guard_pid(n->guard)) {
        struct el_err e = {0};
        el_log(EL_WARN, "the guard process (pid %d) has ended; another one takes its place", (int)pid);
        if (guard_replace(n->guard, &e) < 0)
            el_log(EL_WARN, "%s: workers are not guarded against a SIGKILL of elrun any more", e.text);
        for (unsigned i = 0; i < n->nproc; i++)
            if (n->worker[i].guarded)
                guard_add(n->guard, n->worker[i].pid);
        emit_guard(n);
        return;
    }
    node_feed(n, &(struct agent_event){.type = AGENT_EV_ORPHAN});
}

static void agent_on_helper(void *ctx, pid_t pid, const struct reap_end *end)
{
    struct node *n = ctx;
    if (!health_child(n->health, pid, end))
        hooks_child(n->hooks, pid, end);
}

static void agent_on_stopped(void *ctx, unsigned slot, pid_t pid)
{
    struct node *n = ctx;
    (void)slot, (void)pid;
    if (!n->core.hung) /* else we have done it */
        workers_suspend(n);
}

/* --- signals --- */

static void agent_io_on_signal(void *ctx, const struct signalfd_siginfo *si)
{
    struct node *n = ctx;
    int number = (int)si->ssi_signo;
    char name[SIGNAME_MAX];
    if (number == SIGCHLD) {
        workers_child(n);
        return;
    }
    if (number == SIGWINCH) {
        output_resized(n->output);
        return;
    }
    if (n->core.conf.handled[number])
        el_log(EL_INFO, "received %s%s", signame(number, name),
               n->conf->probe_only || (n->membership && membership_stays(n->membership)) ? ""
               : number == SIGINT && n->core.interrupts                                  ? " again: killing the workers"
                                                                                         : ": stopping the workers");
    if (n->core.state == AGENT_ENDED && n->core.conf.handled[number])
        hooks_abort(n->hooks); /* the last ones are all that is waited for */
    if (n->core.conf.handled[number])
        flush_io_signal(n, number);
    if (n->membership && n->core.conf.handled[number]) /* LEAVING goes first, the order to stop comes back */
        membership_signal(n->membership, number);
    else
        node_feed(n, &(struct agent_event){.type = AGENT_EV_SIGNAL, .signal = number});
}

static bool is_ignored(int signal)
{
    struct sigaction old;
    return sigaction(signal, NULL, &old) == 0 && old.sa_handler == SIG_IGN;
}

/* Which signals mean "leave", and which are taken from the process's default behaviour. */
static void choose_signals(struct node *n, struct agent_conf *core, sigset_t *set)
{
    static const int fatal[] = {SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT, SIGXCPU};
    static const int always[] = {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGTSTP, SIGWINCH, SIGTTOU};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        sigaddset(set, always[i]);
    for (int s = 1; s < CONF_SIGNAL_MAX; s++)
        core->handled[s] = n->conf->handled[s] && s != SIGKILL && s != SIGSTOP && s != SIGCHLD;
    core->handled[SIGTERM] = core->handled[SIGINT] = true;
    /* What would end elrun without a word: timers, limits, and whatever else has no meaning here. */
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        core->handled[fatal[i]] = !is_ignored(fatal[i]);
    for (int s = SIGRTMIN; s <= SIGRTMAX && s < CONF_SIGNAL_MAX; s++)
        core->handled[s] |= !is_ignored(s);
    if (is_ignored(SIGHUP))
        core->handled[SIGHUP] = false; /* nohup */
    for (int s = 1; s < CONF_SIGNAL_MAX; s++)
        if (core->handled[s]) {
            sigaddset(set, s);
            signal(s, SIG_DFL); /* a shell's `&` leaves SIGINT ignored; workers should see it as under torchrun */
        }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored, the kernel would reap the workers, and nobody would hear of their end */
}

/* --- beginning and end --- */

/* A program that opens a file while 0, 1 or 2 is closed would print into that file. */
static void open_closed_streams(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            int got = open("/dev/null", O_RDWR);
            if (got > 2)
                close(got);
        }
}

static void on_own_text(void *output)
{
    output_break_line(output);
}

static void start_output(struct node *n, struct el_err *e)
{
    struct output_conf conf = {
        .options = &n->conf->output,
        .role = n->conf->role,
        .run_id = workers_run_id(n),
        .nproc = n->nproc,
        .out = console_sink(n->console, 1),
        .err = console_sink(n->console, 2),
        .hostname = n->host,
        .tmpdir = env_get(n->env, "TMPDIR"),
        .drained = report_drained,
        .rank_drained = report_rank_drained,
        .ctx = n,
    };
    ssize_t got = getrandom(&conf.seed, sizeof conf.seed, 0);
    (void)got; /* the kernel's pool is ready long before anybody trains */
    n->output = output_new(n->loop, n->pool, &conf, e);
    if (n->output)
        console_before(n->console, on_own_text, n->output);
}

static int node_init(struct node *n, struct el_err *e)
{
    struct agent_conf core = {
        .slots = n->nproc,
        .max_restarts = n->conf->max_restarts,
        .restart_policy = n->conf->restart_policy,
        .max_fruitless = n->conf->max_fruitless,
        .restart_window = n->conf->restart_window,
        .grace = n->conf->shutdown_timeout,
        .consequence = n->conf->shutdown_timeout < AGENT_CONSEQUENCE ? n->conf->shutdown_timeout : AGENT_CONSEQUENCE,
        .managed = n->place.kind != ENDPOINT_ALONE,
        .captures = emergency_io_wanted(n),
        .captures_stay = n->conf->ckpt_dir != NULL,
    };
    if (core.managed)
        goodput_enter(&n->account, ACCOUNT_FORM, loop_clock());
    if (n->conf->steps_wanted)
        steps_init(&n->steps, &n->conf->step_pattern);
    struct console_conf talk = {
        .quiet = n->conf->quiet, .verbose = n->conf->verbose, .json = n->conf->log_json, .env = n->env};
    struct reap_ops ops = {.zombie = agent_on_zombie,
                           .reaped = agent_on_reaped,
                           .orphan = agent_on_orphan,
                           .helper = agent_on_helper,
                           .stopped = agent_on_stopped};
    sigset_t set;
    choose_signals(n, &core, &set);
    if (!(n->loop = loop_new(e)) || loop_signals(n->loop, &set, agent_io_on_signal, n, e) < 0)
        return -1;
    if (!(n->console = console_new(n->loop, &talk, e)) || !(n->pool = pool_new(n->loop, 4, e)) ||
        !(n->sources = pool_new(n->loop, 1, e)))
        return -1;
    workers_make_run_id(n);
    if (emit_init(n, e) < 0)
        return -1;
    start_output(n, e);
    if (!n->output || !(n->reap = reap_new(n->nproc, &ops, n, e)))
        return -1;
    n->deadline = loop_timer_new(n->loop, agent_on_deadline, n);
    n->prepare_timer = loop_timer_new(n->loop, on_prepare_late, n);
    if (!n->deadline || !n->prepare_timer || agent_init(&n->core, &core, NULL) < 0)
        return el_fail(e, EL_EXIT_OSERR, "out of memory for %u workers", n->nproc);
    if (!(n->health = health_new(n, e)))
        return -1;
    if (ckpt_folder(n, e) < 0 || workers_init(n, e) < 0 || report_init(n, e) < 0 || emit_hooks(n, e) < 0 ||
        hang_watch_init(n, e) < 0 || consequence_init(n, e) < 0 || last_running_init(n, e) < 0 ||
        cannot_exit_init(n, e) < 0)
        return -1;
    if (ckpt_init(n, e) < 0)
        return -1;
    return n->place.kind == ENDPOINT_ALONE ? 0 : managed_init(n, e);
}

/* Also right after a node_init() that broke off.  False: some thread stands in a write that does not return. */
static bool node_free(struct node *n)
{
    run_folder_remove(n->folder); /* also where a thread that still runs lets nothing be freed */
    const bool read = !n->sources || pool_free(n->sources);
    if ((n->pool && !pool_free(n->pool)) || !read)
        return false; /* its job still uses what would be freed; the guard tidies up when it sees the end of file */
    health_free(n->health);
    membership_free(n->membership);
    ckpt_asks_free(n);
    flush_io_free(n);
    ckpt_free(n);
    logs_free(n);
    emit_free(n);
    hang_watch_free(n);
    consequence_free(n);
    last_running_free(n);
    cannot_exit_free(n);
    incident_free(n);
    report_free(n); /* before the workers, whose failures it frees */
    workers_free(n);
    run_folder_free(n->folder);
    if (n->output) {
        console_before(n->console, NULL, NULL);
        output_free(n->output);
    }
    agent_free(&n->core, NULL);
    reap_free(n->reap);
    loop_timer_free(n->deadline);
    loop_timer_free(n->prepare_timer);
    bool clean = emit_close(n);
    clean = (!n->console || console_free(n->console)) && clean;
    if (clean)
        loop_free(n->loop);
    return clean;
}

/* Before anything is made: with fewer than elrun itself needs, even the tidying up at the end would fail. */
static int enough_files(const struct node *n, struct el_err *e)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= NODE_FILES_OWN)
        return 0;
    el_fail_sys(e, EL_EXIT_OSERR, EMFILE, "cannot start");
    report_files(n, e);
    return -1;
}

int agent_run(const struct run_conf *conf, char **env, struct el_err *e)
{
    struct node *n = calloc(1, sizeof *n);
    if (!n)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    n->conf = conf;
    n->env = env;
    n->kmsg_fd = n->port_fd = n->null_fd = n->terminal_fd = n->report_fd[0] = n->report_fd[1] = -1;
    n->fence_at = EL_NEVER;
    n->missing = EL_BUF_INIT(NULL, 8192);
    goodput_init(&n->account, loop_clock());
    mallopt(M_ARENA_MAX, 1); /* pool threads allocate little: no arena of 64 MiB for each */
    open_closed_streams();
    if (emit_open(n, e) < 0) {
        free(n);
        return -1;
    }
    (void)file_limit_raise(&n->old_files); /* if it is refused, what needs more says so */
    gethostname(n->host, sizeof n->host - 1);
    if (entry_nproc(conf, env, &n->nproc, e) < 0 || enough_files(n, e) < 0 || managed_find(n, e) < 0) {
        emit_close(n);
        free(n);
        return -1;
    }
    bool good = node_init(n, e) == 0;
    if (good) {
        emit_begin(n);
        if (n->membership)
            membership_begin(n->membership);
        else
            node_feed(n, &(struct agent_event){.type = AGENT_EV_START});
        loop_run(n->loop);
    }
    if (!good)
        report_files(n, e);
    int status = good ? n->status : -1;
    if (node_free(n))
        free(n);
    else if (good)
        _exit(status); /* a thread still stands on a dead file system, or is late: nothing of ours may go */
    return status;     /* what went wrong is not said yet */
}
