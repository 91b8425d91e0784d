#include "loop/unix_listener.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/log.h"

#define PAUSE EL_MS(100)

struct unix_listener {
    struct loop *loop;
    unix_listener_fn *come;
    void *ctx;
    int fd;
    bool full; /* descriptors have run out, which was said */
    struct loop_fd *watch;
    struct loop_timer *again;
    char path[UNIX_LISTENER_PATH_MAX];
};

static void unix_listener_on_connection(void *ctx, unsigned events)
{
    struct unix_listener *g = ctx;
    (void)events;
    int fd = accept4(g->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        g->full = false;
        g->come(g->ctx, fd);
        return;
    }
    if (!el_sys_scarce(errno)) /* nobody is there, or who was has gone */
        return;
    if (!g->full)
        el_log(EL_WARN, "%s: not accepting for a moment: %s", g->path, strerror(errno));
    g->full = true;
    loop_fd_set(g->watch, 0);
    loop_timer_at(g->again, loop_clock() + PAUSE);
}

static void on_again(void *ctx)
{
    struct unix_listener *g = ctx;
    loop_fd_set(g->watch, LOOP_READ);
}

static int listen_at(struct unix_listener *g, const char *path, int type, int backlog, struct el_err *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path)
        return el_fail(e, EL_EXIT_OSERR,
                       "%s: too long for a socket (%zu bytes at most): set TMPDIR to a shorter folder", path,
                       sizeof at.sun_path - 1);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    g->fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (g->fd < 0 || bind(g->fd, (struct sockaddr *)&at, sizeof at) < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "%s", path);
    snprintf(g->path, sizeof g->path, "%s", path);
    if (listen(g->fd, backlog) < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "%s", path);
    g->watch = loop_fd_new(g->loop, g->fd, LOOP_READ, unix_listener_on_connection, g);
    g->again = loop_timer_new(g->loop, on_again, g);
    return g->watch && g->again ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
}

struct unix_listener *unix_listener_new(struct loop *l, const char *path, int type, int backlog, unix_listener_fn *come,
                                        void *ctx, struct el_err *e)
{
    struct unix_listener *g = calloc(1, sizeof *g);
    if (!g) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    *g = (struct unix_listener){.loop = l, .come = come, .ctx = ctx, .fd = -1};
    if (listen_at(g, path, type, backlog, e) == 0)
        return g;
    unix_listener_free(g);
    return NULL;
}

void unix_listener_free(struct unix_listener *g)
{
    if (!g)
        return;
    loop_timer_free(g->again);
    loop_fd_free(g->watch);
    if (g->fd >= 0)
        close(g->fd);
    if (g->path[0])
        unlink(g->path);
    free(g);
}
