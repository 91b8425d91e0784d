/* What is usual among the values of one metric, and what is slow: median and MAD, which a few odd values cannot move.
 * Whole numbers only (metric.h). */
#ifndef PROBE_SLOW_H
#define PROBE_SLOW_H
#include <stdbool.h>
#include <stdint.h>

#include "probe/metric.h"

#define SLOW_COMPARED_MIN 3 /* with fewer values nothing is compared */

struct slow_conf {
    unsigned k;           /* so many times the MAD are usual, and the spread of measurements */
    unsigned min_percent; /* so much of the median is usual at least */
    uint32_t reference;   /* what the same hardware did before; 0: not known */
};

struct slow_group {
    unsigned n; /* values */
    uint32_t median, mad;
    uint32_t limit;  /* what is worse is slow; where nothing is slow: the worst there can be */
    uint32_t best;   /* of a large group the best sixth does not count: one lucky measurement is no standard */
    uint32_t border; /* what is worse is behind the best by more than is usual */
    unsigned behind; /* so many are */
    bool split;      /* more than a third are: there are two kinds, and no stragglers */
};

/* Judges n values, none of them 0; their order is lost.  spread: how far a single measurement usually lies from its own
 * median; k times that is usual, too. */
void slow_judge(enum metric m, uint32_t *value, unsigned n, uint32_t spread, const struct slow_conf *conf,
                struct slow_group *out);

/* The k-th smallest (k < n).  The order of the values is lost. */
uint32_t slow_select(uint32_t *value, unsigned n, unsigned k);
/* The median, rounded down; 0 of none. */
uint32_t slow_median(uint32_t *value, unsigned n);

#endif
