/* Folders that a job writes to: room, and a small file that is made durable.  A file system that does not answer stops
 * this process in the kernel: that is for whoever started it to find. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "probe/collect.h"

enum { FILE_BYTES = 65536 };

static double collect_disk_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A file without a name, so that nothing stays behind whatever happens; where that is unknown (NFS), one whose name is
 * taken away at once. */
static int collect_disk_open_file(const char *folder)
{
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT))
        return fd;
    snprintf(path, sizeof path, "%s/.elrun-probe.%ld", folder, (long)getpid());
    fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* A write that is cut short does not say why; the next one does. */
static int collect_disk_write_file(int fd)
{
    static char bytes[FILE_BYTES];
    memset(bytes, 0x5a, sizeof bytes);
    for (size_t at = 0; at < sizeof bytes;) {
        ssize_t n = pwrite(fd, bytes + at, sizeof bytes - at, (off_t)at);
        if (n == 0)
            return ENOSPC;
        if (n < 0 && errno != EINTR)
            return errno;
        at += n > 0 ? (size_t)n : 0;
    }
    return fsync(fd) == 0 ? 0 : errno;
}

static void one_folder(const struct collect *c, const char *folder)
{
    struct statvfs s;
    if (statvfs(folder, &s) == 0 && s.f_blocks)
        collect_value(c, CHECK_DISK_FREE, folder, 100.0 * (double)s.f_bavail / (double)s.f_blocks);
    double begin = collect_disk_seconds();
    int fd = collect_disk_open_file(folder), sys = fd < 0 ? errno : collect_disk_write_file(fd);
    double took = collect_disk_seconds() - begin;
    if (fd >= 0)
        close(fd);
    struct finding f = finding_value(CHECK_DISK_WRITABLE, folder, !sys);
    if (sys)
        finding_say(&f, "%s", strerror(sys));
    c->finding(c->ctx, &f);
    if (!sys)
        collect_value(c, CHECK_DISK_WRITE, folder, took);
}

void collect_disk(const struct collect *c)
{
    if (c->ckpt_dir && *c->ckpt_dir)
        one_folder(c, c->ckpt_dir);
    if (c->tmp_dir && *c->tmp_dir && !(c->ckpt_dir && strcmp(c->ckpt_dir, c->tmp_dir) == 0))
        one_folder(c, c->tmp_dir);
}
