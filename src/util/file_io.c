#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

ssize_t file_read(const char *path, char *to, size_t room_bytes)
{
    to[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return -1;
    size_t n = 0;
    ssize_t got = 1;
    while (n + 1 < room_bytes && got) {
        got = read(fd, to + n, room_bytes - 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        n += (size_t)got;
    }
    int sys = errno;
    close(fd);
    errno = sys;
    to[got < 0 ? 0 : n] = 0;
    return got < 0 ? -1 : (ssize_t)n;
}

ssize_t file_readf(char *to, size_t room_bytes, const char *root, const char *fmt, ...)
{
    char path[4096];
    va_list ap;
    va_start(ap, fmt);
    int n = snprintf(path, sizeof path, "%s", root);
    if (n >= 0 && (size_t)n < sizeof path)
        n += vsnprintf(path + n, sizeof path - (size_t)n, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof path) {
        to[0] = 0;
        errno = ENAMETOOLONG;
        return -1;
    }
    return file_read(path, to, room_bytes);
}

int file_print(FILE *to, const char *where, struct el_buf *text, struct el_err *e)
{
    int bad = text->full ? el_fail(e, EL_EXIT_OSERR, "out of memory") : 0;
    /* An empty buffer has no memory, and fwrite() must not be given NULL even for no bytes. */
    if (!bad && ((text->len && fwrite(text->v, 1, text->len, to) != text->len) || fflush(to)))
        bad = el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "cannot write to %s", where);
    el_buf_free(text);
    return bad;
}

void file_streams_hold(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            /* The wrong way round: EBADF from read() and from write().  The lowest free number is this one. */
            int got = open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
            if (got > 2)
                close(got);
        }
}

int file_limit_raise(struct rlimit *before)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return -1;
    if (before)
        *before = r;
    if (r.rlim_cur == r.rlim_max)
        return 0;
    r.rlim_cur = r.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &r);
}
