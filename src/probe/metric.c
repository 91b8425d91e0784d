#include "probe/metric.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct metric_info table[] = {
#define METRIC_ROW(id, name, unit, of, better, floor, words) [id] = {name, unit, words, of, better, floor},
    METRIC_LIST(METRIC_ROW)
#undef METRIC_ROW
};

const struct metric_info *metric_info(enum metric m)
{
    assert((unsigned)m < METRIC_COUNT);
    return &table[m];
}

enum metric metric_find(const char *name, size_t n)
{
    for (unsigned m = 0; m < METRIC_COUNT; m++)
        if (strlen(table[m].name) == n && memcmp(table[m].name, name, n) == 0)
            return (enum metric)m;
    return METRIC_COUNT;
}

uint32_t metric_milli(double value)
{
    if (!(value > 0))
        return 0;
    double milli = value * 1000.0 + 0.5;
    if (milli >= 4294967295.0)
        return UINT32_MAX;
    return milli < 1.0 ? 1 : (uint32_t)milli; /* measured, if hardly anything: not the same as not measured */
}

bool metric_worse(enum metric m, uint32_t a, uint32_t b)
{
    return metric_info(m)->better == METRIC_HIGHER ? a < b : a > b;
}

const char *metric_text(enum metric m, uint32_t milli, char to[METRIC_TEXT_MAX])
{
    const char *unit = metric_info(m)->unit;
    unsigned whole = milli / 1000;
    const char *gap = *unit ? " " : "";
    if (!milli)
        snprintf(to, METRIC_TEXT_MAX, "-");
    else if (milli < METRIC_SMALL && strcmp(unit, "GB/s") == 0)
        snprintf(to, METRIC_TEXT_MAX, "%u MB/s", milli);
    else if (whole >= 1000)
        snprintf(to, METRIC_TEXT_MAX, "%u%s%s", whole, gap, unit);
    else if (whole >= 10)
        snprintf(to, METRIC_TEXT_MAX, "%u.%u%s%s", whole, milli % 1000 / 100, gap, unit);
    else
        snprintf(to, METRIC_TEXT_MAX, "%u.%02u%s%s", whole, milli % 1000 / 10, gap, unit);
    return to;
}
