#include "proc/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/guard.h"
#include "sys/numa.h"
#include "sys/exec_error.h"
#include "util/parse.h"

#define OOM_ADJ_MAX 1000

/* --- the child's side: async-signal-safe calls only --- */

struct spawn_child {
    const struct spawn_conf *conf;
    int report_fd, exec_fd; /* may have moved */
};

static void __attribute__((noreturn)) child_fail(const struct spawn_child *c, enum spawn_stage stage)
{
    struct spawn_report r = {.slot = c->conf->slot, .pid = getpid(), .stage = (int)stage, .sys = errno};
    ssize_t n = write(c->report_fd, &r, sizeof r);
    (void)n; /* if even this fails the exit status is all there is */
    _exit(SPAWN_FAILED_STATUS);
}

/* Everything but the standard streams (and the result's) is closed by exec; descriptors that elrun itself inherited,
 * too. */
static void child_close_rest(int from)
{
#ifdef CLOSE_RANGE_CLOEXEC
    if (close_range((unsigned)from, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
        return;
#endif
    struct rlimit nofile;
    int most = getrlimit(RLIMIT_NOFILE, &nofile) == 0 && nofile.rlim_cur < 65536 ? (int)nofile.rlim_cur : 65536;
    for (int fd = from; fd < most; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void child_raise_oom_score(unsigned raise)
{
    char text[16] = {0};
    int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return; /* no /proc: nothing to do about it */
    int now = 0, sign = 1;
    if (read(fd, text, sizeof text - 1) > 0) {
        const char *s = text;
        if (*s == '-')
            sign = -1, s++;
        for (; *s >= '0' && *s <= '9'; s++)
            now = now * 10 + (*s - '0');
    }
    int want = sign * now + (int)raise;
    if (want > OOM_ADJ_MAX)
        want = OOM_ADJ_MAX;
    char digits[16];
    int n = 0, at = 0;
    if (want < 0)
        text[at++] = '-', want = -want;
    do
        digits[n++] = (char)('0' + want % 10);
    while ((want /= 10) != 0);
    while (n)
        text[at++] = digits[--n];
    ssize_t put = pwrite(fd, text, (size_t)at, 0);
    (void)put;
    close(fd);
}

/* Whoever started elrun may have blocked or ignored what a worker needs.  Python's subprocess, and so torchrun, puts
 * right what its own interpreter ignores; a SIGHUP that nohup ignores stays ignored. */
static void child_reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The streams may name each other (fd[2] == 1, say): first all move above 3, then down to their places. */
static int child_streams(struct spawn_child *c)
{
    enum { STREAMS = 4 };
    const struct spawn_conf *s = c->conf;
    int want[STREAMS] = {s->fd[0], s->fd[1], s->fd[2], s->result_fd > 0 ? s->result_fd : -1}, high[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        high[i] = want[i] < 0 ? -1 : fcntl(want[i], F_DUPFD_CLOEXEC, STREAMS);
        if (want[i] >= 0 && high[i] < 0)
            return -1;
    }
    if (want[3] >= 0) { /* what lies at 3 is wanted later */
        int report = fcntl(c->report_fd, F_DUPFD_CLOEXEC, STREAMS);
        c->report_fd = report < 0 ? c->report_fd : report;
        if (c->exec_fd > 0 && (c->exec_fd = fcntl(c->exec_fd, F_DUPFD_CLOEXEC, STREAMS)) < 0)
            return -1;
    }
    for (int i = 0; i < STREAMS; i++)
        if (high[i] >= 0 && dup2(high[i], i) < 0)
            return -1;
    return 0;
}

static void __attribute__((noreturn)) child_run(const struct spawn_conf *c, pid_t parent)
{
    struct spawn_child self = {.conf = c, .report_fd = c->report_fd, .exec_fd = c->exec_fd};
    /* SIGKILL of elrun reaches this process by the kernel; if elrun died before the call, by the comparison. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(SPAWN_FAILED_STATUS);
    if (c->terminal_fd < 0 ? setsid() < 0 : setpgid(0, 0) < 0)
        child_fail(&self, SPAWN_STAGE_GROUP);
    if (c->terminal_fd >= 0 && tcsetpgrp(c->terminal_fd, getpid()) < 0)
        child_fail(&self, SPAWN_STAGE_TERMINAL);
    if (c->guard_fd >= 0)
        guard_tell(c->guard_fd, GUARD_ADD, getpid());
    if (c->oom_raise)
        child_raise_oom_score(c->oom_raise);
    if (c->numa && (errno = numa_apply(c->numa)) != 0)
        child_fail(&self, SPAWN_STAGE_NUMA);
    if (child_streams(&self) < 0)
        child_fail(&self, SPAWN_STAGE_STREAMS);
    child_close_rest(c->result_fd > 0 ? 4 : 3);
    if (c->files)
        setrlimit(RLIMIT_NOFILE, c->files);
    child_reset_signals();
    if (self.exec_fd > 0)
        syscall(SYS_execveat, self.exec_fd, "", c->argv, c->envp, AT_EMPTY_PATH);
    else
        execve(c->path, c->argv, c->envp);
    child_fail(&self, SPAWN_STAGE_EXEC);
}

/* --- the parent's side --- */

/* Born in the cgroup: joining it later by cgroup.procs waits for the whole machine, 10 ms and more (measured).  Kernels
 * that cannot (before 5.7, or a folder that does not want it): an ordinary fork, and the guard still knows the group.
 */
static pid_t fork_into(int cgroup_fd)
{
    if (cgroup_fd >= 0) {
        struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (unsigned)cgroup_fd};
        long pid = syscall(SYS_clone3, &args, sizeof args);
        if (pid >= 0 || errno == EAGAIN || errno == ENOMEM)
            return (pid_t)pid;
    }
    return fork();
}

pid_t spawn_worker(const struct spawn_conf *c, struct el_err *e)
{
    pid_t parent = getpid(), pid = fork_into(c->cgroup_fd);
    if (pid == 0)
        child_run(c, parent);
    if (pid < 0 && c->name)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "cannot start %s: fork", c->name);
    if (pid < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "cannot start worker %u: fork", c->slot);
    if (c->terminal_fd >= 0)
        setpgid(pid, pid); /* both sides do it, so that neither can be too late */
    return pid;
}

pid_t spawn_function(int (*fn)(void *ctx), void *ctx, struct el_err *e)
{
    pid_t pid = fork();
    if (pid < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "fork");
    if (pid > 0)
        return pid;
    setsid();
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    _exit(fn(ctx));
}

void spawn_explain(const struct spawn_report *r, const char *path, struct el_err *e)
{
    static const char *const stage[] = {
#define X(name, text) [SPAWN_STAGE_##name] = (text),
        SPAWN_STAGE_LIST(X)
#undef X
    };
    char shown[EL_PATH_MAX];
    el_show_path(path, shown, sizeof shown);
    size_t n = r->stage >= 0 && (size_t)r->stage < sizeof stage / sizeof stage[0] ? (size_t)r->stage : SPAWN_STAGE_EXEC;
    char reason[400];
    if (r->stage == SPAWN_STAGE_EXEC && exec_error_explain(path, r->sys, reason, sizeof reason))
        el_fail(e, EL_EXIT_NOINPUT, "cannot execute \"%s\": %s", shown, reason);
    else if (r->stage == SPAWN_STAGE_EXEC && r->sys == ENOEXEC)
        el_fail(e, EL_EXIT_NOINPUT, "cannot execute \"%s\": neither a program nor a script with a #! line", shown);
    else if (r->stage == SPAWN_STAGE_EXEC && r->sys == E2BIG)
        el_fail(e, EL_EXIT_OSERR, "cannot execute \"%s\": arguments and environment are larger than the kernel takes",
                shown);
    else
        el_fail_sys(e, r->stage == SPAWN_STAGE_EXEC ? EL_EXIT_NOINPUT : EL_EXIT_OSERR, r->sys, "%s \"%s\"", stage[n],
                    shown);
}
