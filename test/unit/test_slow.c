/* Values of metrics: their texts, and what is slow among them. */
#include <math.h>
#include <stdio.h>

#include "lib/tap.h"
#include "probe/slow.h"
#include "util/rng.h"

enum { VALUES_MAX = 200 };

static void test_metric(void)
{
    char text[METRIC_TEXT_MAX];
    is_num(metric_find("bw64m", 5), METRIC_BW64M, "a metric by its name");
    is_num(metric_find("bw64m", 4), METRIC_COUNT, "... but not by a part of it");
    is_num(metric_milli(3.1), 3100, "thousandths");
    is_num(metric_milli(0.0001), 1, "what was measured is never 0");
    is_num(metric_milli(-1) + metric_milli(NAN) + metric_milli(0), 0, "what is no value is 0");
    is_num(metric_milli(1e300), UINT32_MAX, "what is too large is the largest");
    is_str(metric_text(METRIC_BW64M, 47210, text), "47.2 GB/s", "a value with its unit");
    is_str(metric_text(METRIC_TCP_BW64M, 1, text), "1 MB/s", "... a small one with a smaller one");
    is_str(metric_text(METRIC_TCP_LOSS, 50, text), "0.05 %", "... where there is one");
    is_str(metric_text(METRIC_LAT, 1234, text), "1.23 us", "a small one");
    is_str(metric_text(METRIC_GPU_CLOCK, 1980000, text), "1980 MHz", "a large one");
    is_str(metric_text(METRIC_TCP_RETRANS, 3000, text), "3.00", "one without a unit");
    is_str(metric_text(METRIC_LAT, 0, text), "-", "none");
    ok(metric_worse(METRIC_BW64M, 1, 2) && metric_worse(METRIC_LAT, 2, 1) && !metric_worse(METRIC_LAT, 1, 1),
       "less bandwidth and more latency are worse");
}

/* Against sorting. */
static void test_select(void)
{
    struct el_rng rng = {7};
    unsigned wrong = 0;
    for (unsigned round = 0; round < 2000; round++) {
        uint32_t value[VALUES_MAX], sorted[VALUES_MAX];
        unsigned n = 1 + (unsigned)el_rng_below(&rng, VALUES_MAX), range = 1 + (unsigned)el_rng_below(&rng, 300);
        for (unsigned i = 0; i < n; i++) {
            value[i] = (uint32_t)el_rng_below(&rng, range);
            unsigned at = i;
            for (; at > 0 && sorted[at - 1] > value[i]; at--)
                sorted[at] = sorted[at - 1];
            sorted[at] = value[i];
        }
        unsigned k = (unsigned)el_rng_below(&rng, n);
        wrong += slow_select(value, n, k) != sorted[k];
        wrong += slow_median(value, n) != (n % 2 ? sorted[n / 2] : (sorted[n / 2] + sorted[n / 2 - 1]) / 2);
    }
    is_num(wrong, 0, "the k-th smallest and the median, as by sorting");
    is_num(slow_median(NULL, 0), 0, "the median of nothing");
}

static struct slow_group judge(enum metric m, const uint32_t *from, unsigned n, uint32_t spread, uint32_t reference)
{
    uint32_t value[VALUES_MAX];
    struct slow_group g;
    memcpy(value, from, n * sizeof *from);
    slow_judge(m, value, n, spread, &(struct slow_conf){.k = 3, .min_percent = 10, .reference = reference}, &g);
    return g;
}
#define JUDGE(m, spread, reference, ...)                                                                               \
    judge(m, (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / 4, spread, reference)

static void test_judge(void)
{
    struct slow_group g = JUDGE(METRIC_BW64M, 0, 0, 40000, 40000, 40000, 40000, 16000);
    is_num(g.median, 40000, "one slow of five moves no median");
    is_num(g.limit, 36000, "... and no limit");
    ok(!g.split && g.behind == 1, "... and is behind alone");
    g = JUDGE(METRIC_BW64M, 0, 0, 40000, 41000, 39000, 42000, 38000, 43000, 37000);
    is_num(g.mad, 2000, "MAD");
    is_num(g.limit, 34000, "three times the MAD, where that is more than a tenth");
    g = JUDGE(METRIC_BW64M, 3000, 0, 40000, 40000, 40000, 40000, 16000);
    is_num(g.limit, 31000, "three times the spread of a measurement, where that is more");
    g = JUDGE(METRIC_BW64M, 30000, 0, 40000, 40000, 40000, 40000, 9000);
    is_num(g.limit, 10000, "... but less than a quarter is slow in any noise");
    g = JUDGE(METRIC_LAT, 90000, 0, 100000, 100000, 100000);
    is_num(g.limit, 370000, "noise of latency");
    g = JUDGE(METRIC_LAT, 900000, 0, 100000, 100000, 100000);
    is_num(g.limit, 400000, "... four times the usual is slow in any noise");
    g = JUDGE(METRIC_LAT, 0, 0, 10000, 10000, 10000);
    is_num(g.limit, 15000, "a few microseconds are never held against anybody");
    g = JUDGE(METRIC_LAT, 0, 0, 100000, 100000, 100000);
    is_num(g.limit, 110000, "... for latency the limit lies above");
    g = JUDGE(METRIC_BW64M, 0, 0, 40000, 20000);
    is_num(g.limit, 0, "of two values none is slow");
    g = JUDGE(METRIC_BW64M, 0, 50000, 40000, 20000);
    is_num(g.limit, 45000, "... unless there is a reference");
    g = JUDGE(METRIC_BW64M, 0, 20000, 40000, 40000, 40000, 40000, 16000);
    is_num(g.limit, 36000, "a reference that is easier than the others are asks for no less");
    g = JUDGE(METRIC_LAT, 0, 0, 1, 2);
    is_num(g.limit, UINT32_MAX, "... nor is any latency");
    g = JUDGE(METRIC_BW64M, 0, 0, 40000, 40000, 20000, 20000);
    ok(g.split && g.behind == 2, "half and half are two kinds");
    g = JUDGE(METRIC_BW64M, 0, 0, 60000, 40000, 40000, 40000, 40000, 40000, 40000);
    ok(!g.split, "one lucky value makes no two kinds of the others");
    g = JUDGE(METRIC_TCP_RETRANS, 0, 0, 1000, 1000, 1000, 99000);
    is_num(g.limit, UINT32_MAX, "what is only told is not compared");
    g = JUDGE(METRIC_LAT, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX);
    is_num(g.limit, UINT32_MAX, "nothing overflows");
}

int main(void)
{
    test_metric();
    test_select();
    test_judge();
    return done();
}
