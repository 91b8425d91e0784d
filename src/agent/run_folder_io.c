#include "agent/run_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/env.h"
#include "client/client.h"
#include "loop/pool.h"
#include "util/array.h"
#include "util/time.h"
#include "util/tree.h"

#define PARENT_MAX 60        /* bytes of the folder above: the path of a socket may have 107 */
#define PATH_ROOM  80        /* with its own name */
#define DISK_TIME  EL_SEC(5) /* to make it, and to remove it: a file system may stand still */

struct run_folder {
    char path[PATH_ROOM]; /* "": it is gone */
    char *python_path;
    int locked; /* the folder itself */
};

/* --- what may take its time --- */

struct making {
    char under[PARENT_MAX + 1], path[PATH_ROOM];
    int locked; /* -1: it could not be made, and e says why */
    struct el_err e;
};

static int run_folder_write_file(int folder, const struct client_file *x)
{
    int fd = openat(folder, x->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const char *at = x->text;
    bool bad = fd < 0;
    while (!bad && at < x->end) { /* what did not fit says why with the next call */
        ssize_t n = write(fd, at, (size_t)(x->end - at));
        bad = n <= 0;
        at += bad ? 0 : n;
    }
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return bad ? -1 : 0;
}

static int write_package(const char *under, struct el_err *e)
{
    char path[PATH_ROOM + 16];
    snprintf(path, sizeof path, "%s/py", under);
    int bad = mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/py/elrun", under);
    int folder = bad || mkdir(path, 0700) ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "%s", path);
    for (const struct client_file *x = client_files; x->name && !bad; x++)
        if ((bad = run_folder_write_file(folder, x)) != 0)
            el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "%s/%s", path, x->name);
    close(folder);
    return bad;
}

static void work_make(void *ctx)
{
    struct making *m = ctx;
    snprintf(m->path, sizeof m->path, "%s/elrun-XXXXXX", m->under);
    if (!mkdtemp(m->path)) {
        el_fail_sys(&m->e, EL_EXIT_CANTCREAT, errno, "a folder for sockets and the Python module, %s", m->path);
        return;
    }
    if (write_package(m->path, &m->e) < 0 || (m->locked = open(m->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        el_fail_sys(&m->e, EL_EXIT_CANTCREAT, errno, "%s", m->path);
        tree_remove(m->path);
        return;
    }
    /* Whoever removes what is old from /tmp leaves a locked folder alone (systemd-tmpfiles): a job may run for weeks
     * before it imports the module once more. */
    (void)flock(m->locked, LOCK_SH | LOCK_NB);
}

static void work_remove(void *ctx)
{
    tree_remove(ctx);
}

/* What is memory wherever it is there is waited for; what may be a disk, or lie behind a network, only so long: then
 * ctx is the thread's for good.  The thread would cost more than all the rest. */
static bool do_in_time(const char *where, void (*work)(void *ctx), void *ctx)
{
    bool made = false, memory = strncmp(where, "/dev/shm/", 9) == 0 || strncmp(where, "/run/", 5) == 0;
    if (!memory && pool_await(work, ctx, DISK_TIME, &made))
        return true;
    if (!made)
        work(ctx);
    return !made;
}

/* A relative one would be another one where a worker changes its folder, and ":" divides PYTHONPATH. */
static bool is_fit(const char *under)
{
    return under && *under == '/' && strlen(under) <= PARENT_MAX && !strchr(under, ':');
}

static int make_under(struct run_folder *f, const char *under, struct el_err *e)
{
    char place[PARENT_MAX + 2];
    struct making *m = is_fit(under) ? calloc(1, sizeof *m) : NULL;
    if (!m)
        return -1;
    m->locked = -1;
    snprintf(m->under, sizeof m->under, "%s", under);
    snprintf(place, sizeof place, "%s/", under);
    if (!do_in_time(place, work_make, m))
        return el_fail(e, EL_EXIT_CANTCREAT,
                       "%s: a folder for sockets and the Python module could not be made within %u s: its file system "
                       "stands still",
                       under, (unsigned)(DISK_TIME / EL_SEC(1)));
    if (m->locked < 0 && !e->status)
        *e = m->e;
    if (m->locked >= 0)
        memcpy(f->path, m->path, sizeof f->path);
    f->locked = m->locked;
    free(m);
    return f->locked < 0 ? -1 : 0;
}

struct run_folder *run_folder_new(char *const *env, struct el_err *e)
{
    const char *inherited = env_get(env, "PYTHONPATH");
    const char *under[] = {env_get(env, "XDG_RUNTIME_DIR"), "/dev/shm", env_get(env, "TMPDIR"), "/tmp"};
    struct run_folder *f = calloc(1, sizeof *f);
    bool made = false;
    if (!f) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    f->locked = -1;
    for (size_t i = 0; !made && i < COUNT_OF(under); i++)
        made = make_under(f, under[i], e) == 0;
    if (made && asprintf(&f->python_path, "%s/py%s%s", f->path, inherited && *inherited ? ":" : "",
                         inherited ? inherited : "") >= 0)
        return f;
    if (made) {
        f->python_path = NULL;
        *e = (struct el_err){0};
    }
    el_fail(e, EL_EXIT_OSERR, "out of memory"); /* else it says why already */
    run_folder_free(f);
    return NULL;
}

void run_folder_remove(struct run_folder *f)
{
    char *path = f && f->path[0] ? strdup(f->path) : NULL;
    if (!path)
        return;
    if (do_in_time(f->path, work_remove, path))
        free(path);
    f->path[0] = 0;
}

void run_folder_free(struct run_folder *f)
{
    if (!f)
        return;
    run_folder_remove(f);
    if (f->locked >= 0)
        close(f->locked);
    free(f->python_path);
    free(f);
}

const char *run_folder_path(const struct run_folder *f)
{
    return f ? f->path : NULL;
}

const char *run_folder_python_path(const struct run_folder *f)
{
    return f ? f->python_path : NULL;
}
