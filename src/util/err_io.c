#include "util/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

int el_fail_sys(struct el_err *e, enum el_exit status, int sys, const char *fmt, ...)
{
    if (!e || e->status)
        return -1;
    char reason[128];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof e->text)
        n += snprintf(e->text + n, sizeof e->text - (size_t)n, ": %s", strerror_r(sys, reason, sizeof reason));
    struct rlimit r;
    if (sys == EMFILE && n >= 0 && (size_t)n < sizeof e->text && getrlimit(RLIMIT_NOFILE, &r) == 0)
        snprintf(e->text + n, sizeof e->text - (size_t)n, " (%llu are allowed: raise ulimit -n)",
                 (unsigned long long)r.rlim_cur);
    e->status = (int)status;
    e->sys = sys;
    return -1;
}

bool el_sys_scarce(int sys)
{
    return sys == EMFILE || sys == ENFILE || sys == ENOBUFS || sys == ENOMEM;
}
