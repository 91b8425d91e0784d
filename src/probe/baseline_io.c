#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "probe/baseline.h"
#include "util/file.h"
#include "util/parse.h"

int baseline_read(struct baseline *b, const char *path, struct el_err *e)
{
    struct el_buf text = EL_BUF_INIT(NULL, 0);
    char shown[EL_PATH_MAX];
    char *room = el_buf_reserve(&text, BASELINE_FILE_MAX + 2);
    ssize_t n = room ? file_read(path, room, BASELINE_FILE_MAX + 2) : -1;
    int bad = 0;
    el_show_path(path, shown, sizeof shown);
    if (n < 0)
        bad = el_fail_sys(e, EL_EXIT_NOINPUT, room ? errno : ENOMEM, "baseline: cannot read %s", shown);
    else if ((bad = baseline_decode(b, room, (size_t)n, e)))
        el_prefix(e, "%s", shown);
    el_buf_free(&text);
    return bad ? -1 : 0;
}

static int write_whole(int fd, const struct el_buf *text)
{
    for (size_t at = 0; at < text->len;) {
        ssize_t n = write(fd, text->v + at, text->len - at);
        if (n < 0 && errno != EINTR)
            return -1;
        at += n > 0 ? (size_t)n : 0;
    }
    return fsync(fd);
}

int baseline_write(const struct baseline *b, const char *path, struct el_err *e)
{
    struct el_buf text = EL_BUF_INIT(NULL, 0);
    char shown[EL_PATH_MAX], beside[4096];
    int fd = -1, sys = 0;
    if (baseline_encode(b, &text))
        sys = ENOMEM;
    else if ((size_t)snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid()) >= sizeof beside)
        sys = ENAMETOOLONG;
    else if ((fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644)) < 0)
        sys = errno;
    else if (write_whole(fd, &text) || rename(beside, path))
        sys = errno;
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && sys)
        unlink(beside);
    el_buf_free(&text);
    return sys ? el_fail_sys(e, EL_EXIT_CANTCREAT, sys, "baseline: cannot write %s",
                             el_show_path(path, shown, sizeof shown))
               : 0;
}
