#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loop/loop.h"
#include "proc/ctrl_c.h"

struct ctrl_c {
    pid_t pid;                /* 0 = none */
    _Atomic(uint64_t) *heard; /* shared with the listener */
};

struct ctrl_c *ctrl_c_new(void)
{
    struct ctrl_c *t = calloc(1, sizeof *t);
    void *at = t ? mmap(NULL, sizeof *t->heard, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    if (at == MAP_FAILED) {
        free(t);
        return NULL;
    }
    t->heard = at;
    return t;
}

/* It must hold no end of a worker's pipe. */
static void ctrl_c_close_all(void)
{
#ifdef CLOSE_RANGE_CLOEXEC
    if (close_range(0, ~0u, 0) == 0)
        return;
#endif
    struct rlimit nofile;
    int most = getrlimit(RLIMIT_NOFILE, &nofile) == 0 && nofile.rlim_cur < 65536 ? (int)nofile.rlim_cur : 65536;
    for (int fd = 0; fd < most; fd++)
        close(fd);
}

static void __attribute__((noreturn)) ctrl_c_listen_in(const struct ctrl_c *t, pid_t group, pid_t parent)
{
    sigset_t typed;
    siginfo_t si;
    sigemptyset(&typed);
    sigaddset(&typed, SIGINT);
    sigaddset(&typed, SIGQUIT);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "elrun-typed");
    if (getppid() != parent || setpgid(0, group) < 0)
        _exit(1);
    ctrl_c_close_all();
    for (;;)
        if (sigwaitinfo(&typed, &si) > 0 && si.si_code == SI_KERNEL) /* the terminal's, not kill()'s */
            atomic_store(t->heard, loop_clock());
}

pid_t ctrl_c_listen(struct ctrl_c *t, pid_t group)
{
    sigset_t all, old;
    pid_t parent = getpid();
    ctrl_c_end(t);
    atomic_store(t->heard, 0);
    sigfillset(&all); /* in the child from the first moment on */
    sigprocmask(SIG_SETMASK, &all, &old);
    pid_t pid = fork();
    if (pid == 0)
        ctrl_c_listen_in(t, group, parent);
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (pid > 0)
        setpgid(pid, group); /* both sides do it, so that neither can be too late */
    t->pid = pid > 0 ? pid : 0;
    return pid;
}

void ctrl_c_end(struct ctrl_c *t)
{
    if (t->pid)
        kill(t->pid, SIGKILL);
    t->pid = 0;
}

el_usec ctrl_c_at(const struct ctrl_c *t)
{
    return (el_usec)atomic_load(t->heard);
}

void ctrl_c_free(struct ctrl_c *t)
{
    if (!t)
        return;
    ctrl_c_end(t);
    munmap(t->heard, sizeof *t->heard);
    free(t);
}
