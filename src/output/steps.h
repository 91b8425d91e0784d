/* Which step a training script is at, read from the lines that one worker prints (--step-pattern), and how many of its
 * steps were new.  Pure: bytes in pieces of any size and the time go in, sums come out.
 *
 * A pattern is a piece of a line with one %d where the number stands: "step %d", "iteration %d/", "| %d/".  A blank
 * stands for one or more blanks or tabs, %% for a percent sign, everything else for itself.  The number is decimal,
 * blanks may stand before it.  A line ends at "\n" or "\r". */
#ifndef OUTPUT_STEPS_H
#define OUTPUT_STEPS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"
#include "util/time.h"

#define STEPS_TEXT_MAX  64  /* bytes of a pattern before and behind the number */
#define STEPS_CARRY_MAX 256 /* of a match that goes on in the next piece; one that is longer is none */
#define STEPS_BUCKETS   700 /* of step times: 16 for each power of two, up to a year in microseconds */

struct steps_pattern {
    char before[STEPS_TEXT_MAX], after[STEPS_TEXT_MAX];
    size_t before_len, after_len;
};

/* What the numbers come to. */
struct steps_sum {
    uint64_t made;    /* steps that had not been made before */
    uint64_t again;   /* steps made again after a restart: their numbers had been seen already */
    el_usec step;     /* median time of a step; 0 = not known (fewer than two numbers in a row) */
    uint64_t highest; /* number seen */
    bool any;         /* a number was seen at all */
    bool wraps;       /* numbers begin again within an attempt: what was made again cannot be told */
};

struct steps {
    struct steps_pattern pattern;
    struct steps_carry {
        size_t n;
        char v[2 * STEPS_CARRY_MAX];
    } carry[2]; /* stdout, stderr: the beginning of what may become a match */
    struct steps_sum sum;
    bool seen;      /* a number, in this attempt */
    uint64_t last;  /* the last one */
    uint64_t known; /* highest number of all attempts before this one; counts if before is set */
    bool before;
    uint64_t advanced; /* steps in the present piece */
    el_usec last_at;   /* when a step was last seen in this attempt; 0 = not yet */
    uint64_t count[STEPS_BUCKETS];
};

/* 0, or -1 and what would be right. */
int steps_pattern_parse(struct steps_pattern *p, const char *text, struct el_err *e);

void steps_init(struct steps *s, const struct steps_pattern *p);

/* A new attempt begins: its numbers may start again. highest: what others know of earlier rounds, 0 = nothing. */
void steps_attempt(struct steps *s, uint64_t highest);

/* Bytes of stdout (1) or stderr (2), read at `now`. */
void steps_feed(struct steps *s, int which, const char *bytes, size_t n, el_usec now);

/* Time of new steps and of repeated ones, at most `running` together. */
void steps_times(const struct steps_sum *sum, el_usec running, el_usec *effective, el_usec *repeated);

#endif
