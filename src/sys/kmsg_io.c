#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sys/kmsg.h"

/* The number of the first pid namespace's inode: part of the kernel's interface since 3.8. */
static const char first_namespace[] = "pid:[4026531836]";

static bool sees_all_pids(void)
{
    char name[64];
    ssize_t n = readlink("/proc/self/ns/pid", name, sizeof name);
    return n == (ssize_t)strlen(first_namespace) && memcmp(name, first_namespace, (size_t)n) == 0;
}

int kmsg_open(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -1;
    /* Some containers have a console, a file or /dev/null under this name. */
    bool real = fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 11);
    if (real && lseek(fd, 0, SEEK_END) >= 0)
        return fd;
    close(fd);
    return -1;
}

void kmsg_rewind(int fd)
{
    lseek(fd, 0, SEEK_SET);
}

void kmsg_skip(int fd)
{
    lseek(fd, 0, SEEK_END);
}

void kmsg_read(int fd, struct kmsg_log *log)
{
    char record[KMSG_RECORD_MAX];
    log->whole = true;
    log->pids_ours = sees_all_pids();
    for (unsigned i = 0; i < KMSG_RECORDS_MAX; i++) {
        ssize_t n = read(fd, record, sizeof record);
        if (n > 0)
            kmsg_add(log, record, (size_t)n);
        else if (n < 0 && errno == EPIPE)
            log->whole = false; /* overwritten before we came; the next read goes on behind the gap */
        else if (n < 0 && errno == EAGAIN)
            return;
        else if (n == 0 || errno != EINTR)
            break;
    }
    log->whole = false;
}
