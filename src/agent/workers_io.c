/* The worker processes of this node: what each is given, starting, signalling, sweeping. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "conf/argv.h"
#include "agent/node.h"
#include "sys/procstat.h"
#include "proc/ctrl_c.h"
#include "util/file.h"
#include "conf/entry.h"
#include "conf/worker_env.h"

/* --- once --- */

static void take_reports(struct node *n)
{
    struct spawn_report r;
    while (read(n->report_fd[0], &r, sizeof r) == (ssize_t)sizeof r) {
        if (r.slot >= n->nproc || n->worker[r.slot].pid != r.pid || n->worker[r.slot].ended)
            continue; /* of an attempt that is over */
        n->error = (struct el_err){0};
        spawn_explain(&r, n->program, &n->error);
        node_feed(n, &(struct agent_event){.type = AGENT_EV_SPAWN_FAILED, .slot = r.slot, .forked = true});
    }
}

static void workers_on_report(void *ctx, unsigned events)
{
    (void)events;
    take_reports(ctx);
}

/* The terminal goes to local rank 0 if the user says so, or if one worker is all there is and everything is a terminal.
 */
static void choose_terminal(struct node *n)
{
    bool all = isatty(0) && isatty(1) && isatty(2);
    if (n->conf->interactive == CONF_YES || (n->conf->interactive == CONF_AUTO && n->nproc == 1 && all))
        n->terminal_fd = 0;
}

static int find_program(struct node *n, struct el_err *e)
{
    if (entry_check(n->conf, n->env, n->program, e) < 0)
        return -1;
    if (n->conf->entry == CONF_PROGRAM)
        return 0;
    if (host_python_find(&n->python, n->env, e) < 0)
        return -1;
    snprintf(n->program, sizeof n->program, "%s", n->python.path);
    return 0;
}

/* The job's name where the user gave none: a UUID of version 4, as torchrun draws one. */
void workers_make_run_id(struct node *n)
{
    uint64_t chance[3] = {loop_clock(), (uint64_t)getpid(), loop_clock()};
    ssize_t got = getrandom(chance, sizeof chance, 0);
    (void)got; /* the kernel's pool is ready long before anybody trains */
    n->coord = chance[0];
    if (n->conf->run_id_random)
        snprintf(n->run_id, sizeof n->run_id, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(chance[1] >> 32),
                 (unsigned)(chance[1] >> 16 & 0xffff), (unsigned)(chance[1] & 0xfff),
                 (unsigned)(0x8000 | (chance[2] >> 48 & 0x3fff)), (unsigned long long)(chance[2] & 0xffffffffffff));
}

const char *workers_run_id(const struct node *n)
{
    if (n->place.kind != ENDPOINT_ALONE)
        return n->place.run_id;
    return n->run_id[0] ? n->run_id : n->conf->rdzv_id;
}

int workers_init(struct node *n, struct el_err *e)
{
    n->worker = calloc(n->nproc, sizeof *n->worker);
    n->before = calloc(n->nproc, sizeof *n->before);
    if (!n->worker || !n->before)
        return el_fail(e, EL_EXIT_OSERR, "out of memory for %u workers", n->nproc);
    choose_terminal(n);
    if (n->terminal_fd >= 0 && !isatty(n->terminal_fd))
        return el_fail(e, EL_EXIT_CONFIG,
                       "--interactive gives standard input to local rank 0 as its terminal, but it is none");
    if (find_program(n, e) < 0)
        return -1;
    if (n->conf->numa != NUMA_OFF && !(n->numa = numa_plans_new(n->conf->numa, n->nproc, n->env, e)))
        return -1;
    n->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (n->null_fd < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "/dev/null");
    if (pipe2(n->report_fd, O_CLOEXEC) < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "pipe");
    fcntl(n->report_fd[0], F_SETFL, O_NONBLOCK);
    n->report_watch = loop_fd_new(n->loop, n->report_fd[0], LOOP_READ, workers_on_report, n);
    if (!n->report_watch)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    char name[64];
    snprintf(name, sizeof name, "elrun-%d", (int)getpid());
    n->cgroup = cgroup_new(name);
    n->own_group = getpgrp();
    n->has_proc = access("/proc/self/stat", R_OK) == 0;
    if (n->terminal_fd >= 0)
        reap_watch_stops(n->reap, 0);
    if (n->terminal_fd >= 0 && n->nproc == 1)
        n->typed = ctrl_c_new();
    return (n->guard = guard_new(n->nproc + HOOK_KINDS, n->cgroup, run_folder_path(n->folder), e)) ? 0 : -1;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void workers_free(struct node *n)
{
    if (!n->core.group.stuck) /* what is left is the guard's: it sees the end of file */
        guard_free(n->guard);
    cgroup_free(n->cgroup);
    loop_fd_free(n->report_watch);
    close_fd(&n->report_fd[0]);
    close_fd(&n->report_fd[1]);
    close_fd(&n->null_fd);
    worker_store_close(n);
    free(n->numa);
    free(n->worker);
    free(n->before);
}

/* --- one attempt --- */

int workers_prepare(struct node *n, struct el_err *e)
{
    return n->membership ? 0 : worker_store_open(n, e); /* else the round has brought its store */
}

unsigned workers_rank(const struct node *n, unsigned slot)
{
    return (n->membership ? (unsigned)membership_world(n->membership)->rank_base : 0) + slot;
}

/* What the round says of this node. */
static void place_in_round(const struct node *n, struct worker_place *p)
{
    const struct msg_world *w = membership_world(n->membership);
    p->rank = (unsigned)w->rank_base + p->local_rank;
    p->role_rank = (unsigned)w->role_rank_base + p->local_rank;
    p->world = (unsigned)w->world_size;
    p->group_rank = (unsigned)w->group_rank;
    p->group_world = (unsigned)w->group_size;
    p->role_world = (unsigned)w->role_world_size;
    p->master_addr = w->master_addr;
    p->master_port = (unsigned)w->master_port;
    p->restart_count = (unsigned)w->restarts;
    p->use_agent_store = true;
    p->round = w->number;
    p->coord = w->coord;
    p->world_first = (unsigned)w->world_size_first;
    p->world_previous = (unsigned)w->world_size_previous;
}

static struct worker_place workers_place_of(const struct node *n, unsigned slot, const char *error_file)
{
    struct worker_place place = {
        .rank = slot,
        .local_rank = slot,
        .role_rank = slot,
        .world = n->nproc,
        .local_world = n->nproc,
        .group_world = 1,
        .role_world = n->nproc,
        .role = n->conf->role,
        .master_addr = worker_store_address(n),
        .master_port = (unsigned)n->port,
        .restart_count = n->core.restarts,
        .max_restarts = n->conf->max_restarts,
        .run_id = workers_run_id(n),
        .error_file = error_file && error_file[0] ? error_file : NULL,
        .use_agent_store = n->store != NULL,
        .signals_to_handle = n->conf->signals_to_handle,
        .virtual_local_rank = n->conf->virtual_local_rank,
        .round = n->core.attempts,
        .coord = n->coord,
        .world_first = n->nproc,
        .world_previous = n->nproc,
        .snapshot_socket = snapshot_service_socket(n->snapshots),
        .python_path = run_folder_python_path(n->folder),
    };
    if (n->membership)
        place_in_round(n, &place);
    return place;
}

/* To the terminal of a worker that has it alone. */
static void workers_listen_in(struct node *n, pid_t group)
{
    pid_t pid = n->typed ? ctrl_c_listen(n->typed, group) : -1;
    if (pid > 0)
        reap_help(n->reap, pid);
}

bool workers_typed(struct node *n)
{
    if (!n->typed)
        return false;
    el_usec at = ctrl_c_at(n->typed);
    ctrl_c_end(n->typed);
    return at && loop_clock() - at <= n->conf->shutdown_timeout;
}

static int spawn_slot(struct node *n, unsigned slot, struct el_err *e)
{
    const char *error_file = "";
    int fd[3] = {-1, -1, -1};
    if (output_child_fds(n->output, slot, fd, &error_file, e) < 0)
        return -1;
    struct worker_place place = workers_place_of(n, slot, error_file);
    struct argv_plan plan = {
        .entry = n->conf->entry, .python = n->python.path, .script = n->conf->script, .args = n->conf->args};
    char **env = worker_env_new(NULL, n->env, &place, e);
    char **argv = env ? argv_worker(NULL, &plan, slot, e) : NULL;
    pid_t pid = -1;
    if (argv) {
        struct spawn_conf sc = {
            .slot = slot,
            .path = n->program,
            .argv = argv,
            .envp = env,
            .fd = {slot == 0 ? -1 : n->null_fd, fd[1], fd[2]},
            .report_fd = n->report_fd[1],
            .guard_fd = guard_fd(n->guard),
            .cgroup_fd = n->cgroup ? cgroup_folder_fd(n->cgroup) : -1,
            .terminal_fd = slot == 0 ? n->terminal_fd : -1,
            .files = &n->old_files,
            .numa = n->numa ? &n->numa[slot] : NULL,
            .oom_raise = snapshot_service_oom(n->snapshots),
        };
        pid = spawn_worker(&sc, e);
    }
    el_free(NULL, argv);
    el_free(NULL, env);
    if (pid > 0) {
        n->worker[slot] = (struct worker){.pid = pid, .guarded = true};
        failure_init(&n->worker[slot].failure);
        n->worker[slot].started = loop_clock();
        failure_set_line(&n->worker[slot].failure, &n->worker[slot].failure.error_file, place.error_file, NULL);
        reap_add(n->reap, slot, pid);
        workers_listen_in(n, pid);
        worker_store_worker(n, slot);
        emit_worker_started(n, slot);
    }
    output_child_started(n->output, slot);
    if (pid <= 0)
        output_child_exited(n->output, slot);
    return pid > 0 ? 0 : -1;
}

static void all_started(struct node *n)
{
    goodput_started(&n->account, loop_clock());
    emit_all_started(n);
    postmortem_started(n);
    hang_watch_begin(n);
    cannot_exit_begin(n);
    console_status_hide(n->console, output_terminal_shared(n->output));
    if (!n->said_threads && worker_env_limits_threads(n->env, n->nproc))
        el_log(EL_INFO, "OMP_NUM_THREADS is not set: each worker gets 1, so that %u of them do not overload this host",
               n->nproc);
    n->said_threads = true;
}

static void spawn_next(struct node *n, unsigned slot)
{
    struct agent_event ev = {.type = AGENT_EV_SPAWNED, .slot = slot};
    n->error = (struct el_err){0};
    if (spawn_slot(n, slot, &n->error) < 0)
        ev.type = AGENT_EV_SPAWN_FAILED;
    else if (slot + 1 == n->nproc)
        all_started(n);
    node_feed(n, &ev);
}

/* --- signals and sweeping --- */

static void signal_groups(const struct node *n, int signal)
{
    for (unsigned i = 0; i < n->nproc; i++)
        if (reap_pid(n->reap, i))
            kill(-reap_pid(n->reap, i), signal);
}

static void workers_signal_all(struct node *n, int signal)
{
    int64_t wall = loop_wall_usec();
    postmortem_before_signal(n, signal);
    /* Of hung workers none must run on because another one is gone already: its stack would show something else. */
    if (signal == SIGABRT)
        signal_groups(n, SIGSTOP);
    for (unsigned i = 0; i < n->nproc; i++) {
        pid_t pid = reap_pid(n->reap, i);
        if (!pid)
            continue;
        if (n->worker[i].failure.stop_wall_usec < 0) {
            n->worker[i].failure.stop_wall_usec = wall; /* an error file that is older is the worker's own */
            /* Several ended before this process could look, or wait to be captured. */
            n->worker[i].gone_first = reap_has_ended(n->reap, i) || emergency_io_has_failed(n, i);
        }
        if (kill(-pid, signal) < 0 && errno == ESRCH)
            kill(pid, signal); /* between fork and setsid the group is not there yet */
        if (signal != SIGKILL && signal != SIGABRT)
            kill(-pid, SIGCONT); /* one that is stopped would not hear it */
    }
    if (signal == SIGABRT)
        signal_groups(n, SIGCONT);
    goodput_signalled(&n->account, loop_clock());
    postmortem_after_signal(n);
}

static void forget_group(struct node *n, unsigned slot)
{
    if (n->worker[slot].guarded)
        guard_remove(n->guard, n->worker[slot].pid);
    n->worker[slot].guarded = false;
}

static void sweep_slot(struct node *n, unsigned slot, int signal)
{
    pid_t pid = n->worker[slot].pid;
    if (reap_pid(n->reap, slot) == pid) {
        /* Without a /proc nothing could be found later: then the rest of the group goes with its leader. */
        kill(-pid, n->has_proc ? signal : SIGKILL);
        return;
    }
    reap_orphans(n->reap, pid, signal, guard_pid(n->guard));
    forget_group(n, slot);
}

static void sweep_all(struct node *n, int signal)
{
    if (signal == SIGKILL && n->cgroup)
        cgroup_kill(n->cgroup);
    unsigned left = reap_orphans(n->reap, 0, signal, guard_pid(n->guard));
    node_feed(n, &(struct agent_event){.type = AGENT_EV_SWEPT, .left = left});
}

void workers_act(struct node *n, const struct worker_group_action *a)
{
    switch (a->type) {
    case WORKER_GROUP_SPAWN: spawn_next(n, a->slot); break;
    case WORKER_GROUP_SIGNAL_ALL: workers_signal_all(n, a->signal); break;
    case WORKER_GROUP_SWEEP_SLOT: sweep_slot(n, a->slot, a->signal); break;
    case WORKER_GROUP_SWEEP_ALL: sweep_all(n, a->signal); break;
    }
}

void workers_close(struct node *n)
{
    hang_watch_end(n);
    for (unsigned i = 0; i < n->nproc; i++)
        forget_group(n, i);
    worker_store_close(n);
    if (n->terminal_fd >= 0)
        tcsetpgrp(n->terminal_fd, n->own_group);
    ctrl_c_free(n->typed);
    n->typed = NULL;
}

void workers_child(struct node *n)
{
    take_reports(n); /* why an exec failed is known before its exit is seen */
    reap_scan(n->reap);
}

static bool catches(pid_t pid, int signal)
{
    char text[4096];
    struct procstat_status st;
    return file_readf(text, sizeof text, "/proc", "/%d/status", (int)pid) > 0 && procstat_status(&st, text) == 0 &&
           procstat_catches(&st, signal);
}

void workers_forward(struct node *n, int signal)
{
    unsigned told = 0, deaf = 0;
    for (unsigned i = 0; i < n->nproc; i++) {
        pid_t pid = reap_pid(n->reap, i);
        if (!pid)
            continue;
        if (catches(pid, signal)) {
            kill(pid, signal);
            told++;
        } else {
            deaf++;
        }
    }
    el_log(EL_INFO, "received SIG%s: forwarded to %u worker%s; %u without a handler left alone", sigabbrev_np(signal),
           told, told == 1 ? "" : "s", deaf);
}

/* The status line is gone: the next line on the screen is the shell's. */
static void stand_still(void *ctx)
{
    struct node *n = ctx;
    if (n->core.state == AGENT_ENDED)
        return; /* meanwhile the job has come to its end: there is nothing left to stop */
    bool terminal = n->terminal_fd >= 0 && reap_pid(n->reap, 0);
    if (terminal)
        tcsetpgrp(n->terminal_fd, n->own_group);
    kill(getpid(), SIGSTOP);
    /* Somebody has sent SIGCONT. */
    if (terminal && tcgetpgrp(n->terminal_fd) == n->own_group)
        tcsetpgrp(n->terminal_fd, reap_pid(n->reap, 0));
    n->suspending = false;
    signal_groups(n, SIGCONT);
    console_resume(n->console);
}

/* Ctrl-Z, to us or to the rank that has the terminal: the workers stand, then elrun; the shell takes over until fg. */
void workers_suspend(struct node *n)
{
    if (n->suspending || n->core.state == AGENT_ENDED)
        return; /* that a worker of ours stands is no news */
    n->suspending = true;
    signal_groups(n, SIGSTOP);
    console_pause(n->console, loop_clock() + NODE_WIPE_TIME, stand_still, n);
}
