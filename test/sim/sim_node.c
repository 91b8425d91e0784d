/* sim_node: thousands of lives of one node, each drawn from a seed.
 *
 *   sim_node --seconds N       the first seeds, twice each, then fresh ones until the time is over; with --known the
 * next ones, the same in every run sim_node --seeds N         seeds 1 … N sim_node --seed S [--steps]  one seed;
 * --steps prints every step
 *
 * One line at the end; a failure prints the command that repeats it and the last steps. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "sim/world.h"

#define FIXED_SEEDS 1000 /* the same in each run: their digest is printed and must not depend on the compiler */

static struct world world;
static const char *program;

static void report(const char *why)
{
    printf("sim_node: seed %" PRIu64 ", step %" PRIu64 ", %.3f s: %s\n", world.seed, world.steps,
           (double)world.now / 1e6, why);
    printf("sim_node: again: %s --seed %" PRIu64 " --steps\n", program, world.seed);
    world_print_trace(&world);
    fflush(stdout);
}

/* An assertion of the core: what failed is on stderr already; here is what led to it. */
static void on_abort(int sig)
{
    (void)sig;
    report("an assertion of the core failed");
    _exit(1);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct sum {
    uint64_t seeds, steps, digest;
};

/* False: a failure was reported. */
static bool one(struct sum *sum, uint64_t seed, bool twice)
{
    for (unsigned i = 0; i < 1u + twice; i++) {
        uint64_t before = world.hash;
        if (!world_run(&world, seed)) {
            report(world.why);
            return false;
        }
        sum->steps += world.steps;
        if (i && world.hash != before) {
            report("the same seed gave another trace");
            return false;
        }
    }
    sum->seeds++;
    if (seed <= FIXED_SEEDS)
        sum->digest = (sum->digest ^ world.hash) * 0x100000001b3u;
    return true;
}

static bool number(const char *text, uint64_t *to)
{
    char *end;
    *to = text ? strtoull(text, &end, 10) : 0;
    return text && *text >= '0' && *text <= '9' && !*end;
}

static int usage(void)
{
    fprintf(stderr, "usage: sim_node [--seconds N [--known] | --seeds N | --seed S] [--steps]\n");
    return 2;
}

int main(int argc, char **argv)
{
    uint64_t limit_s = 5, seeds = 0, only = 0;
    bool known = false;
    program = argv[0];
    world_init(&world);
    for (int i = 1; i < argc; i++) {
        uint64_t *to = !strcmp(argv[i], "--seconds") ? &limit_s
                       : !strcmp(argv[i], "--seeds") ? &seeds
                       : !strcmp(argv[i], "--seed")  ? &only
                                                     : NULL;
        if (!strcmp(argv[i], "--steps"))
            world.print = true;
        else if (!strcmp(argv[i], "--known"))
            known = true;
        else if (!to || !number(argv[++i], to))
            return usage();
    }
    signal(SIGABRT, on_abort);
    struct sum sum = {0};
    double start = seconds();
    bool good = true;
    if (only) {
        good = one(&sum, only, false);
    } else {
        uint64_t fresh, fixed = seeds ? seeds : FIXED_SEEDS;
        for (uint64_t s = 1; good && s <= fixed; s++)
            good = one(&sum, s, s <= FIXED_SEEDS);
        if (known)
            fresh = 0;
        else if (getrandom(&fresh, sizeof fresh, 0) != sizeof fresh)
            fresh = (uint64_t)time(NULL) << 20;
        for (fresh = fresh / 2 + FIXED_SEEDS + 1; good && !seeds && seconds() - start < (double)limit_s; fresh++)
            good = one(&sum, fresh, false);
    }
    double wall = seconds() - start;
    printf("sim_node: %s, %" PRIu64 " seeds, %" PRIu64 " steps, %.1f M steps/s, digest %016" PRIx64 "\n",
           good ? "ok" : "FAILED", sum.seeds, sum.steps, (double)sum.steps / 1e6 / (wall > 0 ? wall : 1), sum.digest);
    world_free(&world);
    return !good;
}
