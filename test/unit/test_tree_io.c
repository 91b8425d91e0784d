/* A folder goes with all that is in it, and nothing else does; and the guard of a process that was killed removes one.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tap.h"
#include "proc/guard.h"
#include "util/tree.h"

static char root[] = "/tmp/test-tree.XXXXXX", path[200];

static const char *in_root(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void make_file(const char *name)
{
    int fd = open(in_root(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

/* What a run leaves: the package, caches of it, a socket's name, a link; many names, more than one look returns. */
static void make_tree(void)
{
    static const char *const folder[] = {"run", "run/py", "run/py/elrun", "run/py/elrun/__pycache__"};
    char name[60], target[100];
    for (unsigned i = 0; i < 4; i++)
        mkdir(in_root(folder[i]), 0700);
    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "run/py/elrun/__pycache__/module-%03u.cpython-312.pyc", i);
        make_file(name);
    }
    make_file("run/sock");
    snprintf(target, sizeof target, "%s/beside", root);
    if (symlink(target, in_root("run/link")) < 0)
        ok(0, "no link can be made");
}

static int is_there(const char *name)
{
    return access(in_root(name), F_OK) == 0;
}

static int is_gone(const char *name)
{
    for (unsigned i = 0; i < 1000 && is_there(name); i++)
        usleep(10000);
    return !is_there(name);
}

/* A process with a guard that ends as told. */
static void live(int killed)
{
    struct el_err e = {0};
    char folder[200];
    snprintf(folder, sizeof folder, "%s", in_root("run"));
    pid_t pid = fork();
    if (pid == 0) {
        struct guard *g = guard_new(1, NULL, folder, &e);
        if (killed)
            kill(getpid(), SIGKILL);
        pid_t guard = guard_pid(g);
        guard_free(g);
        _exit(waitpid(guard, NULL, 0) != guard);
    }
    waitpid(pid, NULL, 0);
}

int main(void)
{
    if (!mkdtemp(root))
        return 1;
    mkdir(in_root("beside"), 0700);
    make_file("beside/file");

    make_tree();
    is_num(tree_remove(in_root("run")), 0, "a tree is removed");
    ok(!is_there("run"), "and is gone");
    ok(is_there("beside/file"), "what a link in it names is not");
    is_num(tree_remove(in_root("run")), 0, "one that is not there is removed already");

    make_tree();
    live(0);
    ok(is_there("run/sock"), "the guard of a process that ends in good order leaves its folder");
    live(1);
    ok(is_gone("run"), "that of one which is killed removes it");

    is_num(tree_remove(root), 0, "all of it");
    return done();
}
