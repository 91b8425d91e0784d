#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tap.h"
#include "sys/cgroup.h"

/* A process in its own session, so that nothing but the cgroup finds it; it is in the cgroup when this returns. */
static pid_t sleeper(const struct cgroup *g)
{
    int joined[2];
    char byte;
    if (pipe(joined) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        int procs = openat(cgroup_folder_fd(g), "cgroup.procs", O_WRONLY);
        if (setsid() < 0 || write(procs, "0", 1) != 1 || write(joined[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(joined[1]);
    ssize_t got = read(joined[0], &byte, 1);
    close(joined[0]);
    return got == 1 ? pid : -1;
}

static int wait_populated(const struct cgroup *g, int want)
{
    for (int i = 0; i < 2000 && cgroup_populated(g) != want; i++)
        usleep(5000);
    return cgroup_populated(g) == want;
}

static int ended_by(pid_t pid)
{
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

int main(void)
{
    char name[64];
    snprintf(name, sizeof name, "elrun-test-%ld", (long)getpid());
    struct cgroup *g = cgroup_new(name);
    if (!g) {
        skip("cgroups", "none of version 2 can be made here");
        return done();
    }
    printf("# %s\n", cgroup_path(g));
    is_num(cgroup_populated(g), 0, "a new cgroup is empty");
    ok(!cgroup_new(name), "the name is taken");
    ok(!cgroup_new("a/b"), "a name is one component");
    ok(fcntl(cgroup_folder_fd(g), F_GETFD) & FD_CLOEXEC, "its descriptor is closed at exec");
    pid_t one = sleeper(g), two = sleeper(g);
    ok(wait_populated(g, 1), "children join");
    is_num(cgroup_kill(g), 0, "and are killed");
    ok(ended_by(one) == SIGKILL && ended_by(two) == SIGKILL, "both, in their own sessions");
    ok(wait_populated(g, 0), "it is empty again");
    one = sleeper(g);
    ok(wait_populated(g, 1) && waitpid(one, NULL, WNOHANG) == 0, "who is born into it later lives");
    ok(cgroup_kill(g) == 0 && ended_by(one) == SIGKILL && wait_populated(g, 0), "until it is killed");
    if (cgroup_kill_fd(g) >= 0) {
        one = sleeper(g);
        ok(wait_populated(g, 1) && cgroup_kill_by(cgroup_kill_fd(g)) == 0, "the guard's way, by a descriptor");
        is_num(ended_by(one), SIGKILL, "works too");
    } else {
        skip("cgroup.kill", "kernel before 5.14");
    }
    char path[CGROUP_PATH_MAX];
    snprintf(path, sizeof path, "%s", cgroup_path(g));
    cgroup_free(g);
    ok(access(path, F_OK) != 0, "the folder is gone");
    cgroup_free(NULL);
    return done();
}
