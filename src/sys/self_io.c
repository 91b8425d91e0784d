#include "sys/self.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#define ABOVE 10 /* out of the way of everything that has a fixed number */

static int fd = -1, sys;

static int open_above(const char *path)
{
    int low = open(path, O_RDONLY | O_CLOEXEC);
    int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, ABOVE);
    sys = low >= 0 && errno == EINVAL ? EMFILE : errno; /* EINVAL: the limit of open files lies below */
    if (low >= 0)
        close(low);
    return high;
}

void self_open(void)
{
    fd = open_above("/proc/self/exe");
    const char *path = (const char *)getauxval(AT_EXECFN); // NOLINT(performance-no-int-to-ptr): the kernel's own
    if (fd < 0 && path)
        fd = open_above(path);
}

int self_fd(struct el_err *e)
{
    if (fd < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, sys, "cannot open elrun's own program");
    return fd;
}
