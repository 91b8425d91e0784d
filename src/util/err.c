#include "util/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int el_fail(struct el_err *e, enum el_exit status, const char *fmt, ...)
{
    if (!e || e->status)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    e->status = (int)status;
    e->sys = 0;
    return -1;
}

int el_prefix(struct el_err *e, const char *fmt, ...)
{
    if (!e)
        return -1;
    char old[sizeof e->text];
    memcpy(old, e->text, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    int room = (int)sizeof e->text - 3 - n;
    if (n >= 0 && room > 0)
        snprintf(e->text + n, sizeof e->text - (size_t)n, ": %.*s", room, old);
    return -1;
}
