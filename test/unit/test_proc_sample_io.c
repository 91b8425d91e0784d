/* Looking at real processes, and at a /proc that is none. */
#include "loop/loop.h"
#include "sys/proc_sample.h"

#include "lib/tap.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int pipe_fd[2];

static void *wait_there(void *ctx)
{
    (void)ctx;
    char c;
    ssize_t n = read(pipe_fd[0], &c, 1);
    (void)n;
    return NULL;
}

/* True as soon as it is seen doing this; a process needs a moment to get there. */
static bool comes_to(pid_t pid, enum proc_sample_doing doing)
{
    struct proc_sample_one one = {.id = 5};
    for (int i = 0; i < 5000; i++) {
        proc_sample_look(&one, "/proc", pid);
        if (one.id == 5 && one.doing == doing)
            return true;
        usleep(1000);
    }
    return false;
}

static void test_process(void)
{
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    ok(comes_to(pid, PROC_SAMPLE_SLEEPING), "asleep");
    kill(pid, SIGSTOP);
    ok(comes_to(pid, PROC_SAMPLE_STOPPED), "stopped");
    kill(pid, SIGKILL);
    ok(comes_to(pid, PROC_SAMPLE_ENDED), "a zombie");
    struct proc_sample_source kept;
    struct proc_sample_one last = {.id = 2};
    proc_sample_open(&kept, "/proc", pid);
    waitpid(pid, NULL, 0);
    proc_sample_look_open(&last, &kept);
    proc_sample_close(&kept);
    is_num(last.doing, PROC_SAMPLE_UNSEEN, "what was opened of it is not another one's");
    ok(comes_to(pid, PROC_SAMPLE_UNSEEN), "gone");
    struct proc_sample_one one = {.id = 1};
    struct proc_sample_source s;
    proc_sample_open(&s, "/nowhere", getpid());
    proc_sample_look_open(&one, &s);
    is_num(one.doing, PROC_SAMPLE_UNSEEN, "no /proc");
    proc_sample_close(&s);
    proc_sample_close(&s);
    is_num(s.stat_fd, -1, "closed, also twice");
}

static void test_threads(void)
{
    static struct proc_sample_one all[8];
    pthread_t thread[3];
    if (pipe(pipe_fd) < 0)
        return;
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, wait_there, NULL);
    unsigned n = 0, asleep = 0;
    for (int tries = 0; tries < 5000 && asleep < 3; tries++) {
        n = proc_sample_look_threads(all, 8, "/proc", getpid(), EL_NEVER);
        asleep = 0;
        for (unsigned i = 0; i < n; i++)
            asleep += all[i].doing == PROC_SAMPLE_SLEEPING && all[i].id == i;
    }
    ok(n == 4 && asleep == 3, "this one and three that wait");
    is_num(proc_sample_look_threads(all, 2, "/proc", getpid(), EL_NEVER), 2, "no more than there is room for");
    is_num(proc_sample_look_threads(all, 8, "/proc", getpid(), loop_clock()), 0, "nor after the deadline");
    is_num(proc_sample_look_threads(all, 8, "/nowhere", getpid(), EL_NEVER), 0, "no /proc");
    close(pipe_fd[1]);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    close(pipe_fd[0]);
}

int main(void)
{
    test_process();
    test_threads();
    return done();
}
