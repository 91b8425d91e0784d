/* A week of a large job, simulated: failures come at random with a published rate; each costs what elrun was measured
 * to need, and what is assumed about hardware and script.  Nothing but arithmetic: week.c reads the constants and
 * prints, test/unit/test_week.c checks the sums. */
#ifndef TEST_BENCH_WEEK_H
#define TEST_BENCH_WEEK_H
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "util/rng.h"

#define WEEK_DAYS 7
#define WEEK_SEC  (WEEK_DAYS * 86400.0)

struct week_conf {
    double gpus, per_gpu_day; /* failures */
    double node_share;        /* of the failures take a whole node with them */
    double silent_share;      /* of those are silent: no connection closes */
    /* measured, in seconds */
    double worker_restart; /* a worker's death to all workers of its node running again */
    double node_restart;   /* an agent's death to the others' new workers */
    double silence;        /* a silent loss until it is noticed */
    /* assumed, in seconds */
    double script_start; /* from exec to the first step: imports, collectives, the checkpoint read */
    double replace;      /* waiting for another node where there is no spare; 0: there is */
    double checkpoint;   /* from one to the next; what was done since then is lost */
    double save;         /* a checkpoint holds training up so long */
};

struct week {
    unsigned failures;
    double stopped;   /* no workers, or workers that make no step yet */
    double saving;    /* steps wait for a checkpoint */
    double repeated;  /* steps that a failure took back */
    double effective; /* the rest: new steps */
};

static inline double week_running_share(const struct week *w)
{
    return 1 - w->stopped / WEEK_SEC;
}

static inline double week_effective_share(const struct week *w)
{
    return w->effective / WEEK_SEC;
}

static inline double week_chance(struct el_rng *rng)
{
    return ((double)(el_rng_next(rng) >> 11) + 0.5) / 9007199254740992.0; /* in (0, 1) */
}

/* From a failure to the first new step. */
static inline double week_outage(const struct week_conf *c, struct el_rng *rng)
{
    double t = c->script_start;
    if (week_chance(rng) >= c->node_share)
        return t + c->worker_restart;
    t += c->node_restart + c->replace;
    return week_chance(rng) < c->silent_share ? t + c->silence : t;
}

/* Of `up` seconds of training behind a checkpoint: how much is saving, and how much lies behind the last checkpoint. */
static inline double week_saved(const struct week_conf *c, double up, double *saving)
{
    double cycle = c->checkpoint + c->save, whole = floor(up / cycle), rest = up - whole * cycle;
    double in_save = rest > c->checkpoint ? rest - c->checkpoint : 0;
    *saving = whole * c->save + in_save;
    return rest - in_save; /* a checkpoint that is not whole saves nothing */
}

static inline void week_run(const struct week_conf *c, uint64_t seed, struct week *w)
{
    struct el_rng rng = {.state = seed};
    const double mean = 86400.0 / (c->gpus * c->per_gpu_day);
    memset(w, 0, sizeof *w);
    double outage = c->script_start; /* the start of the week is one too */
    for (double now = 0; now < WEEK_SEC;) {
        double until = now - mean * log(week_chance(&rng));
        double end = until < WEEK_SEC ? until : WEEK_SEC, saving;
        double stopped = outage < end - now ? outage : end - now;
        double up = end - now - stopped, lost = week_saved(c, up, &saving);
        w->stopped += stopped;
        w->saving += saving;
        w->repeated += until < WEEK_SEC ? lost : 0;
        w->effective += up - saving - (until < WEEK_SEC ? lost : 0);
        w->failures += until < WEEK_SEC;
        /* A failure in an outage begins a new one. */
        outage = week_outage(c, &rng);
        now = end;
    }
    assert(fabs(w->stopped + w->saving + w->repeated + w->effective - WEEK_SEC) < 1e-3);
}

/* What a published share of the week means for each failure, in seconds. */
static inline double week_per_failure(const struct week_conf *c, double share_lost)
{
    return share_lost * WEEK_SEC / (c->gpus * c->per_gpu_day * WEEK_DAYS);
}

#endif
