#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "sys/exec_error.h"

bool exec_error_explain(const char *path, int sys, char *out, size_t size)
{
    char head[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head);
    if (fd >= 0)
        close(fd);
    return n > 0 && exec_error_reason(head, (size_t)n, sys, out, size);
}
