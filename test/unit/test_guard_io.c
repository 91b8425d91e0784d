#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tap.h"
#include "loop/loop.h"
#include "proc/guard.h"

/* A process that leads its own group. */
static pid_t sleeper(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        for (;;)
            pause();
    }
    setpgid(pid, pid);
    return pid;
}

static int ended_by(pid_t pid)
{
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

/* Ended by a fence; one that has passed when the guard hears of it means nothing, so on a busy host it is set again. */
static int ended_by_fence(struct guard *g, pid_t pid)
{
    for (int i = 0; i < 200; i++) {
        int status = 0;
        guard_fence(g, loop_clock() + EL_MS(5));
        for (int k = 0; k < 20; k++, usleep(5000))
            if (waitpid(pid, &status, WNOHANG) == pid)
                return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
    }
    kill(pid, SIGKILL);
    ended_by(pid);
    return -1;
}

static int lives(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

int main(void)
{
    struct el_err e = {0};
    signal(SIGPIPE, SIG_IGN); /* as elrun does */
    struct guard *g = guard_new(3, NULL, NULL, &e);
    ok(g != NULL, "a guard");
    pid_t a = sleeper(), b = sleeper(), c = sleeper(), d = sleeper();

    guard_add(g, a);
    guard_add(g, b);
    guard_fence(g, 1); /* long ago: kills nobody */
    guard_remove(g, b);
    is_num(ended_by_fence(g, a), SIGKILL, "when the fence falls, groups are killed");
    ok(lives(b), "not those that were removed, nor by a fence that fell before it was heard of");

    guard_add(g, b);
    is_num(ended_by_fence(g, b), SIGKILL, "a second fence falls as the first did");

    guard_add(g, c);
    guard_fence(g, loop_clock() + EL_SEC(60));
    guard_fence(g, EL_NEVER);
    kill(guard_pid(g), SIGKILL);
    is_num(ended_by(guard_pid(g)), SIGKILL, "the guard is killed");
    guard_fence(g, loop_clock() + EL_MS(100));
    is_num(guard_replace(g, &e), 0, "and replaced");
    guard_add(g, d);
    is_num(ended_by(d), SIGKILL, "the replacement knows the fence");
    ok(lives(c), "and only the groups that it was told");

    pid_t last = guard_pid(g);
    guard_free(g);
    int status = -1;
    ok(waitpid(last, &status, 0) == last && status == 0, "it goes in good order");
    ok(lives(c), "and kills nobody then");
    kill(c, SIGKILL);
    is_num(ended_by(c), SIGKILL, "the test's own process");
    return done();
}
