#include "probe/slow.h"

#include <assert.h>

static void slow_swap(uint32_t *a, uint32_t *b)
{
    uint32_t t = *a;
    *a = *b;
    *b = t;
}

/* Quickselect whose pivot is the middle of three: values of a probe are near each other, not chosen against us. */
uint32_t slow_select(uint32_t *value, unsigned n, unsigned k)
{
    assert(k < n);
    unsigned low = 0, high = n - 1;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (value[middle] < value[low])
            slow_swap(&value[middle], &value[low]);
        if (value[high] < value[low])
            slow_swap(&value[high], &value[low]);
        if (value[high] < value[middle])
            slow_swap(&value[high], &value[middle]);
        uint32_t pivot = value[middle];
        unsigned i = low, j = high;
        for (;;) {
            while (value[i] < pivot)
                i++;
            while (value[j] > pivot)
                j--;
            if (i >= j)
                break;
            slow_swap(&value[i++], &value[j--]);
        }
        if (k <= j)
            high = j;
        else
            low = j + 1;
    }
    return value[k];
}

uint32_t slow_median(uint32_t *value, unsigned n)
{
    if (!n)
        return 0;
    uint64_t upper = slow_select(value, n, n / 2);
    return (uint32_t)(n % 2 ? upper : (upper + slow_select(value, n, n / 2 - 1)) / 2);
}

static uint64_t slow_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The value that is worse by the margin; the worst there can be if that lies beyond. */
static uint32_t worse_by(enum metric m, uint32_t from, uint64_t margin)
{
    if (metric_info(m)->better == METRIC_HIGHER)
        return margin >= from ? 0 : (uint32_t)(from - margin);
    return from + margin > UINT32_MAX ? UINT32_MAX : (uint32_t)(from + margin);
}

static uint32_t nothing_is_slow(enum metric m)
{
    return metric_info(m)->better == METRIC_HIGHER ? 0 : UINT32_MAX;
}

/* The least difference from `from` that says anything.  Whatever the noise, who has less than a quarter, or needs more
 * than four times as long, is slow. */
static uint64_t usual(enum metric m, uint32_t from, uint32_t mad, uint32_t spread, const struct slow_conf *conf)
{
    const struct metric_info *info = metric_info(m);
    uint64_t least =
        slow_larger((uint64_t)from * conf->min_percent / 100, info->floor_milli > 0 ? (uint64_t)info->floor_milli : 0);
    uint64_t noise = slow_larger(mad, spread) * conf->k;
    uint64_t most = info->better == METRIC_HIGHER ? (uint64_t)from * 3 / 4 : (uint64_t)from * 3;
    return slow_larger(least, noise < most ? noise : most);
}

static void slow_compare(enum metric m, uint32_t *value, unsigned n, uint32_t spread, const struct slow_conf *conf,
                         struct slow_group *out)
{
    unsigned lucky = n / 6;
    out->best = slow_select(value, n, metric_info(m)->better == METRIC_HIGHER ? n - 1 - lucky : lucky);
    out->border = worse_by(m, out->best, usual(m, out->best, 0, spread, conf));
    for (unsigned i = 0; i < n; i++)
        out->behind += metric_worse(m, value[i], out->border);
    out->split = out->behind * 3 > n;
    out->median = slow_median(value, n);
    for (unsigned i = 0; i < n; i++) /* from here on these are distances */
        value[i] = value[i] > out->median ? value[i] - out->median : out->median - value[i];
    out->mad = slow_median(value, n);
    out->limit = worse_by(m, out->median, usual(m, out->median, out->mad, spread, conf));
}

void slow_judge(enum metric m, uint32_t *value, unsigned n, uint32_t spread, const struct slow_conf *conf,
                struct slow_group *out)
{
    *out = (struct slow_group){.n = n, .limit = nothing_is_slow(m), .border = nothing_is_slow(m)};
    if (metric_info(m)->floor_milli < 0)
        return;
    if (n >= SLOW_COMPARED_MIN)
        slow_compare(m, value, n, spread, conf, out);
    if (conf->reference) {
        uint32_t limit = worse_by(m, conf->reference, usual(m, conf->reference, 0, spread, conf));
        if (metric_worse(m, out->limit, limit))
            out->limit = limit;
    }
}
