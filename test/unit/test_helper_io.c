/* helper_open: a program that can be executed comes out of it wherever the kernel lets it, and nothing stays behind. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tap.h"
#include "probe/helper.h"
#include "proc/spawn.h"

static char top[] = "/tmp/test_helper.XXXXXX";

static char *dir_of(const char *name)
{
    static char path[3][128];
    static unsigned next;
    char *p = path[next++ % 3];
    snprintf(p, sizeof path[0], "%s/%s", top, name);
    mkdir(p, 0755);
    return p;
}

/* Executes it with a word that is none; its status, -1 if it could not be started. */
static int try_run(int fd)
{
    int report[2], status;
    char *argv[] = {(char *)HELPER_NAME, (char *)"nothing", NULL}, *envp[] = {NULL};
    int quiet = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (pipe2(report, O_CLOEXEC) < 0)
        return -1;
    struct spawn_conf c = {.name = HELPER_NAME,
                           .path = HELPER_NAME,
                           .exec_fd = fd,
                           .argv = argv,
                           .envp = envp,
                           .fd = {quiet, quiet, quiet},
                           .result_fd = quiet,
                           .report_fd = report[1],
                           .guard_fd = -1,
                           .cgroup_fd = -1,
                           .terminal_fd = -1};
    struct el_err e = {0};
    pid_t pid = spawn_worker(&c, &e);
    close(report[0]);
    close(report[1]);
    close(quiet);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

/* Where the open file lies: "/memfd:…", "/tmp/…". */
static const char *place(int fd)
{
    static char target[256];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, target, sizeof target - 1);
    target[n > 0 ? n : 0] = 0;
    return target;
}

static bool is_empty(const char *dir)
{
    return rmdir(dir) == 0 && mkdir(dir, 0755) == 0;
}

static void test_memory(void)
{
    struct el_err e = {0};
    int fd = helper_open(NULL, &e);
    ok(fd >= 0 && strncmp(place(fd), "/memfd:", 7) == 0, "first choice: a memory file");
    is_num(try_run(fd), 2, "which runs");
    ok(write(fd, "x", 1) < 0 && errno == EPERM, "and which nobody can change");
    ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "it is closed at exec");
    close(fd);
}

static void test_dir(void)
{
    struct el_err e = {0};
    char *dir = dir_of("given");
    int fd = helper_open(dir, &e);
    ok(fd >= 0 && strncmp(place(fd), dir, strlen(dir)) == 0, "a file in the folder that was named");
    is_num(try_run(fd), 2, "which runs");
    ok(is_empty(dir), "and has no name");
    close(fd);
    ok(helper_open("/nowhere/at/all", &e) < 0, "a folder that is not there");
    is_str(e.text, "cannot put the GPU helper into \"/nowhere/at/all\": No such file or directory", "is named");
}

/* A folder whose file system knows no nameless files, and in which somebody is quick to put a file in place of ours. */
static const char *swapped; /* that folder; NULL: nobody does */

int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if (swapped && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int fchmod(int fd, mode_t mode)
{
    char aside[160], name[256];
    snprintf(name, sizeof name, "%s", place(fd));
    if (swapped && strncmp(name, swapped, strlen(swapped)) == 0) {
        snprintf(aside, sizeof aside, "%s/aside", swapped);
        int other = rename(name, aside) == 0 ? open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0755) : -1;
        close(other);
    }
    return (int)syscall(SYS_fchmod, fd, mode);
}

static void test_swapped(void)
{
    struct el_err e = {0};
    char aside[160];
    swapped = dir_of("given");
    ok(helper_open(swapped, &e) < 0 && strstr(e.text, "Stale file handle") != NULL,
       "a file that was put in its place is not executed");
    snprintf(aside, sizeof aside, "%s/aside", swapped);
    ok(unlink(aside) == 0 && is_empty(swapped), "nor left there");
    swapped = NULL;
}

/* In a child of its own pid namespace, whose setting vm.memfd_noexec is: prints the rest of the TAP there. */
static int in_namespace(void)
{
    struct el_err e = {0};
    int set = open("/proc/sys/vm/memfd_noexec", O_WRONLY | O_CLOEXEC);
    if (set < 0) {
        ok(1, "this kernel has no vm.memfd_noexec");
        return tap_failed;
    }
    ok(pwrite(set, "1", 1, 0) == 1, "vm.memfd_noexec=1 in this namespace");
    int fd = helper_open(NULL, &e);
    ok(fd >= 0 && strncmp(place(fd), "/memfd:", 7) == 0 && try_run(fd) == 2, "a memory file still runs");
    close(fd);
    ok(pwrite(set, "2", 1, 0) == 1, "vm.memfd_noexec=2 in this namespace");
    char *noexec = dir_of("noexec"), *good = dir_of("good"), *third = dir_of("third");
    ok(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", noexec, "tmpfs", MS_NOEXEC, "size=1m") == 0,
       "a folder from which nothing may be executed");
    setenv("XDG_RUNTIME_DIR", noexec, 1);
    setenv("TMPDIR", good, 1);
    fd = helper_open(NULL, &e);
    ok(fd >= 0 && strncmp(place(fd), good, strlen(good)) == 0, "the first folder that may be executed from");
    is_num(try_run(fd), 2, "and it runs there");
    close(fd);
    setenv("XDG_RUNTIME_DIR", third, 1);
    fd = helper_open(NULL, &e);
    ok(fd >= 0 && strncmp(place(fd), third, strlen(third)) == 0,
       "the user's runtime folder comes before the temporary one");
    close(fd);
    ok(helper_open(noexec, &e) < 0 && strstr(e.text, "Permission denied") != NULL, "a named folder is not passed over");
    ok(is_empty(good) && is_empty(third), "nothing is left in the folders");
    return tap_failed;
}

static int status_of(pid_t pid)
{
    int status = -1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A process whose pid namespace has lost its first member can have no children any more: so a child makes it, whose
 * child is that member. */
static void test_noexec(void)
{
    enum { FAILED = 100, IMPOSSIBLE };
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWPID) < 0)
            _exit(IMPOSSIBLE);
        if ((pid = fork()) == 0) {
            int failed = in_namespace();
            fflush(stdout);
            _exit(failed ? FAILED : tap_count); /* so the parent counts on */
        }
        int status = status_of(pid);
        _exit(status < 0 ? FAILED : status);
    }
    int status = status_of(pid);
    if (status == IMPOSSIBLE)
        skip("memory files that may not be executed", "no pid namespaces for this user");
    else if (status > 0 && status < FAILED)
        tap_count = status;
    else
        tap_failed++;
}

static void test_argv(void)
{
    static struct helper_argv a;
    struct el_err e = {0};
    struct helper_order o = {
        .role = HELPER_PAIR, .gpu = 3, .rail = 3, .id = "ab", .purelib = "/lib dir", .quick = true, .step_ms = 7};
    const char *const want[] = {HELPER_NAME,        "pair",  "gpu=3",   "rail=3",
                                "purelib=/lib dir", "id=ab", "quick=1", "step_ms=7"};
    is_num(helper_argv(&o, &a, &e), 0, "a command line");
    bool same = true;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        same = same && a.argv[i] && strcmp(a.argv[i], want[i]) == 0;
    ok(same && !a.argv[sizeof want / sizeof want[0]], "word by word");
    static char huge[8000];
    memset(huge, 'x', sizeof huge - 1);
    o.nccl = huge;
    is_num(helper_argv(&o, &a, &e), -1, "a path that is too long");
    is_str(e.text, "a library path for the GPU probe is too long", "is told");
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
    test_memory();
    test_dir();
    test_swapped();
    test_argv();
    test_noexec();
    for (const char *const *d = (const char *const[]){"given", "noexec", "good", "third", NULL}; *d; d++)
        rmdir(dir_of(*d));
    rmdir(top);
    return done();
}
