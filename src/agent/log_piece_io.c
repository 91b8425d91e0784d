#include "agent/log_piece.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/logs.h"

static ssize_t log_piece_read_at(int fd, char *to, size_t n, off_t at)
{
    ssize_t got;
    do
        got = pread(fd, to, n, at);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Where the last lines begin. */
static off_t find_start(struct log_piece *p, off_t size)
{
    uint64_t lines = p->lines;
    off_t end = size;
    if (lines == LOG_PIECE_ALL_LINES)
        return 0;
    while (lines && end > 0 && size - end < LOG_PIECE_BACK_BYTES) {
        off_t from = end > (off_t)sizeof p->scan ? end - (off_t)sizeof p->scan : 0;
        ssize_t n = log_piece_read_at(p->fd, p->scan, (size_t)(end - from), from);
        if (n != end - from)
            return end; /* it was cut meanwhile */
        bool last_newline = end == size && p->scan[n - 1] == '\n';
        size_t found = logs_back(p->scan, (size_t)n - last_newline, &lines);
        if (found != SIZE_MAX)
            return from + (off_t)found;
        end = from;
    }
    return end;
}

static int log_piece_open_file(struct log_piece *p)
{
    struct stat st;
    /* Non-blocking: what stands under the name may have become a pipe. */
    p->fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    /* Watched before its size is asked for: what is appended in between is not missed. */
    p->watched = p->fd >= 0 && p->notify >= 0 && inotify_add_watch(p->notify, p->path, IN_MODIFY) >= 0;
    if (p->fd < 0 || fstat(p->fd, &st) < 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return EINVAL;
    p->at = find_start(p, st.st_size);
    p->end = p->follow ? INT64_MAX : st.st_size;
    return 0;
}

void log_piece_read(struct log_piece *p)
{
    struct stat st;
    p->n = 0;
    p->sys = p->fd < 0 ? log_piece_open_file(p) : 0;
    if (p->sys)
        return;
    if (fstat(p->fd, &st) == 0 && st.st_size < p->at)
        p->at = 0; /* somebody has emptied it */
    size_t most = p->end - p->at < (off_t)sizeof p->bytes ? (size_t)(p->end - p->at) : sizeof p->bytes;
    ssize_t n = log_piece_read_at(p->fd, p->bytes, most, p->at);
    p->sys = n < 0 ? errno : 0;
    p->n = n > 0 ? (size_t)n : 0;
}
