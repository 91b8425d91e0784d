#include "sys/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/file.h"
#include "util/log.h"
#include "util/scan.h"

#define KILL_ROUNDS 100 /* of the fallback: a process may fork between the list and the kill */

struct cgroup {
    char path[CGROUP_PATH_MAX];
    int folder_fd, kill_fd;
};

int cgroup_texts_read(struct cgroup_texts *x, const char *proc)
{
    static const size_t mountinfo_max = 1 << 20;
    x->self[0] = 0;
    x->mountinfo = malloc(mountinfo_max);
    bool good = x->mountinfo && file_readf(x->mountinfo, mountinfo_max, proc, "/self/mountinfo") > 0 &&
                file_readf(x->self, sizeof x->self, proc, "/self/cgroup") > 0;
    return good ? 0 : -1;
}

void cgroup_texts_free(struct cgroup_texts *x)
{
    free(x->mountinfo);
}

static int own_folder(char *path, size_t room)
{
    struct cgroup_texts x;
    int r = cgroup_texts_read(&x, "/proc") == 0 ? cgroup_own(x.mountinfo, x.self, path, room) : -1;
    cgroup_texts_free(&x);
    return r;
}

static int open_in(const struct cgroup *g, const char *file, int flags)
{
    char path[CGROUP_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", g->path, file);
    return open(path, flags | O_CLOEXEC);
}

struct cgroup *cgroup_new(const char *name)
{
    char own[CGROUP_PATH_MAX];
    if (own_folder(own, sizeof own)) {
        el_log(EL_DEBUG, "no cgroup of version 2 here: workers are killed by their groups");
        return NULL;
    }
    struct cgroup *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->folder_fd = g->kill_fd = -1;
    int n = snprintf(g->path, sizeof g->path, "%s/%s", own, name);
    if (n < 0 || (size_t)n >= sizeof g->path || strchr(name, '/') || mkdir(g->path, 0755)) {
        el_log(EL_DEBUG, "no cgroup for the workers: cannot make %.1000s/%.200s: %s", own, name, strerror(errno));
        free(g);
        return NULL;
    }
    g->folder_fd = open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g->kill_fd = open_in(g, "cgroup.kill", O_WRONLY);
    if (g->folder_fd < 0 || faccessat(g->folder_fd, "cgroup.procs", W_OK, 0)) {
        el_log(EL_DEBUG, "no cgroup for the workers: cannot write %.1000s/cgroup.procs: %s", g->path, strerror(errno));
        cgroup_free(g);
        return NULL;
    }
    return g;
}

const char *cgroup_path(const struct cgroup *g)
{
    return g->path;
}

int cgroup_folder_fd(const struct cgroup *g)
{
    return g->folder_fd;
}

int cgroup_kill_fd(const struct cgroup *g)
{
    return g->kill_fd;
}

int cgroup_kill_by(int kill_fd)
{
    return write(kill_fd, "1", 1) == 1 ? 0 : errno;
}

int cgroup_populated(const struct cgroup *g)
{
    char text[256];
    if (file_readf(text, sizeof text, g->path, "/cgroup.events") < 0)
        return -1;
    const char *at = scan_field(text, "populated");
    return at && (*at == '0' || *at == '1') ? *at - '0' : -1;
}

/* SIGKILL to all that cgroup.procs lists (it has no zombies): how many there were, or -1. */
static int kill_listed(const struct cgroup *g)
{
    static const size_t text_max = 1 << 18;
    char *text = malloc(text_max);
    if (!text || file_readf(text, text_max, g->path, "/cgroup.procs") < 0) {
        free(text);
        return -1;
    }
    int listed = 0, pid;
    for (const char *at = text; scan_int(&at, &pid); at += *at == '\n') {
        listed++;
        if (pid > 1 && pid != getpid())
            kill(pid, SIGKILL);
    }
    free(text);
    return listed;
}

int cgroup_kill(struct cgroup *g)
{
    int before = -1, now = kill_listed(g);
    /* A process that forked between the list and its kill shows as one more: what has the signal cannot fork again. */
    for (int round = 0; round < KILL_ROUNDS && now > 0 && now != before; round++) {
        before = now;
        now = kill_listed(g);
    }
    return now < 0 ? -1 : 0;
}

void cgroup_free(struct cgroup *g)
{
    if (!g)
        return;
    if (g->folder_fd >= 0)
        close(g->folder_fd);
    if (g->kill_fd >= 0)
        close(g->kill_fd);
    if (rmdir(g->path))
        el_log(EL_DEBUG, "cgroup %.1000s stays: %s", g->path, strerror(errno));
    free(g);
}
