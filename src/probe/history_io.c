#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/history.h"

enum { READ_MAX = 4 << 20, LOCK_TRIES = 40, LOCK_PAUSE_US = 50000 };

static int history_fail(const char *what, const char *folder, struct el_err *e)
{
    return el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "%s %.300s/" HISTORY_FILE, what, folder);
}

/* Whole; of a file beyond all measure, its beginning. */
static int history_read_all(int fd, struct el_buf *to)
{
    for (;;) {
        char *room = to->len < READ_MAX ? el_buf_reserve(to, 65536) : NULL;
        ssize_t n = room ? pread(fd, room, 65536, (off_t)to->len) : 0;
        if (n > 0)
            to->len += (size_t)n;
        else if (n == 0)
            return 0;
        else if (errno != EINTR)
            return -1;
    }
}

static int history_write_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t did = write(fd, bytes, n);
        if (did < 0 && errno == EINTR)
            continue;
        if (did < 0)
            return -1;
        bytes += did;
        n -= (size_t)did;
    }
    return 0;
}

/* Others hold it for milliseconds, unless they stand still. */
static int lock(int fd)
{
    for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB); tries++) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || tries == LOCK_TRIES)
            return -1;
        usleep(LOCK_PAUSE_US);
    }
    return 0;
}

/* Locked, so that two probes at once do not tear each other's lines.  -1 and *e. */
static int history_open_file(const char *folder, struct el_err *e)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/" HISTORY_FILE, folder) >= sizeof path) {
        errno = ENAMETOOLONG;
        return history_fail("cannot open", folder, e);
    }
    if (mkdir(folder, 0700) && errno != EEXIST)
        return el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "cannot make %.300s", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return history_fail("cannot open", folder, e);
    if (lock(fd) == 0)
        return fd;
    if (errno == EWOULDBLOCK)
        el_fail(e, EL_EXIT_CANTCREAT, "another process has locked %.300s/" HISTORY_FILE " for %d s", folder,
                LOCK_TRIES * LOCK_PAUSE_US / 1000000);
    else
        history_fail("cannot lock", folder, e);
    close(fd);
    return -1;
}

int history_open(const char *folder, struct history *all, struct el_err *e)
{
    struct el_buf text = EL_BUF_INIT(NULL, 0);
    int fd = history_open_file(folder, e), bad = fd < 0;
    all->n = all->broken = 0;
    if (!bad && (bad = history_read_all(fd, &text)))
        history_fail("cannot read", folder, e);
    if (!bad)
        history_parse(all, text.v, text.len);
    el_buf_free(&text);
    if (fd >= 0)
        close(fd);
    return bad ? -1 : 0;
}

/* What is old goes when the file has grown.  In place: it is locked, and what a power loss may take here are words. */
static int shrink(int fd, const struct history *all)
{
    struct el_buf text = EL_BUF_INIT(NULL, 0);
    unsigned from = all->n > HISTORY_MAX / 2 ? all->n - HISTORY_MAX / 2 : 0;
    for (unsigned i = from; i < all->n; i++)
        history_encode(&all->v[i], &text);
    int bad = text.full || ftruncate(fd, 0) || history_write_all(fd, text.v, text.len);
    el_buf_free(&text);
    return bad;
}

int history_append(const char *folder, struct history *all, const struct history_entry *v, unsigned n, struct el_err *e)
{
    struct el_buf text = EL_BUF_INIT(NULL, 0);
    char end = '\n';
    struct stat st;
    int fd = history_open_file(folder, e), bad = 0;
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && st.st_size > 0 && pread(fd, &end, 1, st.st_size - 1) == 1 && end != '\n')
        el_buf_puts(&text, "\n"); /* a line that was torn stays alone */
    for (unsigned i = 0; i < n; i++) {
        bad |= history_encode(&v[i], &text);
        history_add(all, &v[i]);
    }
    bad = bad || history_write_all(fd, text.v, text.len);
    bad = bad || (fstat(fd, &st) == 0 && st.st_size > HISTORY_BYTES_MAX && shrink(fd, all)) || fsync(fd);
    if (bad)
        history_fail("cannot write", folder, e);
    el_buf_free(&text);
    close(fd);
    return bad ? -1 : 0;
}
