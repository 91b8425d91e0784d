#include "proc/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "loop/loop.h"
#include "sys/cgroup.h"
#include "proc/spawn.h"
#include "util/tree.h"

#define GUARD_RMDIR_TRIES 100
#define GUARD_RMDIR_MS    20

struct guard_record {
    int verb;
    int group;
    el_usec at; /* GUARD_FENCE */
};

struct guard {
    pid_t pid;
    int fd;      /* write end, non-blocking */
    int read_fd; /* only while forking */
    int kill_fd; /* cgroup.kill or -1; the cgroup's */
    const char *cgroup_path, *folder;
    unsigned room;
    pid_t *group;  /* the guard's own copy, after the fork */
    el_usec fence; /* told last; in the guard: EL_NEVER once it has acted */
};

static void guard_io_tell(int fd, const struct guard_record *r)
{
    ssize_t n;
    do
        n = write(fd, r, sizeof *r);
    while (n < 0 && errno == EINTR);
    /* A full pipe means a guard that stands still for thousands of records; the parent-death signal remains. */
}

void guard_tell(int fd, enum guard_verb verb, pid_t group)
{
    struct guard_record r = {.verb = (int)verb, .group = group};
    guard_io_tell(fd, &r);
}

/* --- the guard's side: no allocation, async-signal-safe calls only --- */

static void close_span(unsigned from, unsigned to)
{
    if (from > to || close_range(from, to, 0) == 0)
        return;
    for (unsigned fd = from; fd <= to && fd < 65536; fd++) /* kernels before 5.9 */
        close((int)fd);
}

/* a <= b: all descriptors but these two are closed, the inherited ones too. */
static void keep_only(int a, int b)
{
    if (a > 0)
        close_span(0, (unsigned)a - 1);
    if (b > a + 1)
        close_span((unsigned)a + 1, (unsigned)b - 1);
    close_span((unsigned)b + 1, ~0u);
}

static void guard_note(struct guard *g, const struct guard_record *r)
{
    unsigned free_at = g->room;
    for (unsigned i = 0; i < g->room; i++) {
        if (g->group[i] == r->group) {
            g->group[i] = r->verb == GUARD_ADD ? r->group : 0;
            return;
        }
        if (!g->group[i] && free_at == g->room)
            free_at = i;
    }
    if (r->verb == GUARD_ADD && free_at < g->room)
        g->group[free_at] = r->group;
}

static void kill_groups(const struct guard *g)
{
    for (unsigned i = 0; i < g->room; i++)
        if (g->group[i] > 1)
            kill(-g->group[i], SIGKILL);
}

/* Until there is something to read.  What was written before the fence fell is heard first.  Not by cgroup.kill: some
 * kernels kill whatever enters a cgroup after that, and elrun starts workers there again when it wakes. */
static void wait_fenced(struct guard *g)
{
    struct pollfd p = {.fd = g->read_fd, .events = POLLIN};
    for (;;) {
        el_usec now = loop_clock(), left_ms = g->fence > now ? (g->fence - now + 999) / 1000 : 0;
        int n = poll(&p, 1, g->fence == EL_NEVER ? -1 : (int)(left_ms < INT_MAX ? left_ms : INT_MAX));
        if (n > 0 || (n < 0 && errno != EINTR))
            return;
        if (n == 0 && g->fence <= loop_clock()) {
            kill_groups(g);
            g->fence = EL_NEVER;
        }
    }
}

/* False: elrun ends in good order. */
static bool obey(struct guard *g, const struct guard_record *r)
{
    if (r->verb == GUARD_FENCE)
        g->fence = r->at > loop_clock() ? r->at : EL_NEVER;
    else if (r->verb != GUARD_END)
        guard_note(g, r);
    return r->verb != GUARD_END;
}

static int guard_main(void *ctx)
{
    struct guard *g = ctx;
    prctl(PR_SET_NAME, "elrun-guard");
    if (g->fence <= loop_clock()) /* inherited from a guard that is gone */
        g->fence = EL_NEVER;
    if (g->kill_fd < 0)
        keep_only(g->read_fd, g->read_fd);
    else if (g->kill_fd < g->read_fd)
        keep_only(g->kill_fd, g->read_fd);
    else
        keep_only(g->read_fd, g->kill_fd);
    struct guard_record r[64];
    size_t have = 0;
    for (;;) {
        wait_fenced(g);
        ssize_t n = read(g->read_fd, (char *)r + have, sizeof r - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        have += (size_t)n;
        size_t whole = have / sizeof r[0];
        for (size_t i = 0; i < whole; i++)
            if (!obey(g, &r[i]))
                return 0;
        have -= whole * sizeof r[0];
        __builtin_memmove(r, r + whole, have);
    }
    if (g->kill_fd >= 0)
        cgroup_kill_by(g->kill_fd);
    kill_groups(g);
    /* The dead need a moment to leave the cgroup. */
    for (int i = 0; g->cgroup_path && i < GUARD_RMDIR_TRIES && rmdir(g->cgroup_path) < 0 && errno == EBUSY; i++)
        poll(NULL, 0, GUARD_RMDIR_MS);
    if (g->folder && *g->folder) /* not there any more where elrun came to its end and left what it could not kill */
        (void)tree_remove(g->folder);
    return 0;
}

/* --- elrun's side --- */

static int guard_start(struct guard *g, struct el_err *e)
{
    int fd[2];
    if (pipe2(fd, O_CLOEXEC) < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "guard: pipe");
    g->read_fd = fd[0];
    for (unsigned i = 0; i < g->room; i++)
        g->group[i] = 0;
    /* The guard may not hold a write end itself, or it would never see the end of file. */
    g->fd = -1;
    int keep = fd[1];
    fcntl(keep, F_SETFL, O_NONBLOCK);
    g->pid = spawn_function(guard_main, g, e);
    close(fd[0]);
    g->read_fd = -1;
    if (g->pid < 0) {
        close(keep);
        g->pid = 0;
        return el_prefix(e, "guard");
    }
    g->fd = keep;
    return 0;
}

struct guard *guard_new(unsigned slots, const struct cgroup *cgroup, const char *folder, struct el_err *e)
{
    struct guard *g = calloc(1, sizeof *g);
    if (g)
        /* Twice the slots: the groups of an old attempt linger while the new one starts. */
        g->group = calloc(g->room = slots * 2 + 8, sizeof *g->group);
    if (!g || !g->group) {
        free(g);
        el_fail(e, EL_EXIT_OSERR, "guard: out of memory");
        return NULL;
    }
    g->fd = -1;
    g->fence = EL_NEVER;
    g->kill_fd = cgroup ? cgroup_kill_fd(cgroup) : -1;
    g->cgroup_path = cgroup ? cgroup_path(cgroup) : NULL;
    g->folder = folder;
    if (guard_start(g, e) < 0) {
        free(g->group);
        free(g);
        return NULL;
    }
    return g;
}

void guard_free(struct guard *g)
{
    if (!g)
        return;
    if (g->fd >= 0) {
        guard_tell(g->fd, GUARD_END, 0);
        close(g->fd);
    }
    free(g->group);
    free(g);
}

pid_t guard_pid(const struct guard *g)
{
    return g->pid;
}

int guard_fd(const struct guard *g)
{
    return g->fd;
}

void guard_remove(struct guard *g, pid_t group)
{
    if (g->fd >= 0)
        guard_tell(g->fd, GUARD_REMOVE, group);
}

void guard_add(struct guard *g, pid_t group)
{
    if (g->fd >= 0)
        guard_tell(g->fd, GUARD_ADD, group);
}

void guard_fence(struct guard *g, el_usec at)
{
    struct guard_record r = {.verb = GUARD_FENCE, .at = at};
    g->fence = at; /* a replacement inherits it by the fork */
    if (g->fd >= 0)
        guard_io_tell(g->fd, &r);
}

int guard_replace(struct guard *g, struct el_err *e)
{
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
    return guard_start(g, e);
}
