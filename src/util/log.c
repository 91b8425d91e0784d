#include "util/log.h"

#include <stdarg.h>
#include <stdio.h>

static struct {
    el_log_sink *sink;
    void *ctx;
    enum el_level most;
} logger = {.most = EL_INFO};

void el_log_set(el_log_sink *sink, void *ctx, enum el_level most)
{
    logger.sink = sink;
    logger.ctx = ctx;
    logger.most = most;
}

enum el_level el_log_level(void)
{
    return logger.most;
}

void el_log(enum el_level level, const char *fmt, ...)
{
    if (!logger.sink || level > logger.most)
        return;
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    logger.sink(logger.ctx, level, text);
}
