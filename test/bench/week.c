/* week [RESULTS.md [RESULTS-nodes.md]]: the week that DLRover's authors published (1,000 GPUs, 0.27 % failures per GPU
 * and day), simulated with elrun's measured constants.  A model, not a measurement: it prints what it assumes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/week.h"

#define WEEKS 1000

/* Published: without and with DLRover. */
static const double running[] = {0.608, 0.836}, effective[] = {0.329, 0.589};

/* The median in the row "| what | 9.15 ms (…", in seconds; -1: there is none. */
static double median(const char *path, const char *what)
{
    char line[1024], unit[8] = "", number[32];
    double v = -1;
    FILE *f = path ? fopen(path, "r") : NULL;
    size_t n = strlen(what);
    while (f && v < 0 && fgets(line, sizeof line, f)) {
        size_t k = 0;
        if (strncmp(line, "| ", 2) != 0 || strncmp(line + 2, what, n) != 0 || strncmp(line + 2 + n, " | ", 3) != 0)
            continue;
        const char *at = line + 5 + n;
        for (; *at && *at != ' ' && k + 1 < sizeof number; at++)
            if (*at != ',')
                number[k++] = *at;
        number[k] = 0;
        if (sscanf(at, " %7[a-z]", unit) == 1)
            v = atof(number) * (strcmp(unit, "ms") == 0 ? 1e-3 : strcmp(unit, "us") == 0 ? 1e-6 : 1);
    }
    if (f)
        fclose(f);
    return v;
}

static double constant(const char *path, const char *what, double budget)
{
    double v = median(path, what);
    printf("  %8.3f s  %s (%s)\n", v < 0 ? budget : v, what,
           v < 0 ? "not measured yet: the budget of the design" : "measured");
    return v < 0 ? budget : v;
}

static void mean_of(const struct week_conf *c, struct week *sum, double *least, double *most)
{
    memset(sum, 0, sizeof *sum);
    *least = 1;
    *most = 0;
    for (uint64_t seed = 1; seed <= WEEKS; seed++) {
        struct week w;
        week_run(c, seed, &w);
        double share = week_effective_share(&w);
        *least = share < *least ? share : *least;
        *most = share > *most ? share : *most;
        sum->failures += w.failures;
        sum->stopped += w.stopped / WEEKS;
        sum->saving += w.saving / WEEKS;
        sum->repeated += w.repeated / WEEKS;
        sum->effective += w.effective / WEEKS;
    }
}

static void row(const char *who, double run, double eff, const char *remark)
{
    printf("  %-44s %7.1f %% %9.1f %%  %s\n", who, 100 * run, 100 * eff, remark);
}

int main(int argc, char **argv)
{
    const char *one = argc > 1 ? argv[1] : "test/bench/RESULTS.md";
    const char *nodes = argc > 2 ? argv[2] : "test/bench/RESULTS-nodes.md";
    struct week_conf c = {.gpus = 1000, .per_gpu_day = 0.0027, .node_share = 0.5, .silent_share = 0.5};
    struct week w;
    double least, most;
    char remark[96];
    printf("elrun, of "
           "%s and %s:\n",
           one, nodes);
    c.worker_restart = constant(one, "worker's death to all 8 running again", 0.015);
    c.node_restart = constant(nodes, "one of three agents killed, workers notice nothing (torchrun: never)", 0.3);
    c.silence = constant(nodes, "cable of one of two hosts pulled (torchrun: never)", 6) - c.node_restart;
    c.script_start = 300;
    c.replace = 0;
    c.checkpoint = 1800;
    c.save = 10;
    printf(
        "Assumed, and nothing of it measured by elrun:\n"
        "  %.0f s from a worker's start to its first step: imports, collectives of 1,000 ranks, the checkpoint read\n"
        "  a checkpoint each %.0f s that holds training up for %.0f s; a failure takes back what was done since the "
        "last\n"
        "  %.0f %% of the failures take a node with them, half of these silently; a spare node waits\n"
        "  failures are independent, at a constant rate; every second of a step counts; steps are short\n",
        c.script_start, c.checkpoint, c.save, 100 * c.node_share);
    mean_of(&c, &w, &least, &most);
    printf("\n%-46s %9s %11s\n", "A week of 1,000 GPUs", "running", "effective");
    row("published, without DLRover", running[0], effective[0], "");
    row("published, with DLRover", running[1], effective[1], "");
    snprintf(remark, sizeof remark, "effective %.1f to %.1f %% in %d weeks", 100 * least, 100 * most, WEEKS);
    row("elrun, simulated under these assumptions", week_running_share(&w), week_effective_share(&w), remark);
    /* Only the stops replaced: what the published job lost while it ran is kept as it was. */
    double kept = running[1] - effective[1];
    row("the same, but losing as much while it runs", week_running_share(&w), week_running_share(&w) - kept,
        "as the published job did with DLRover");
    printf("\nOf the week: %.2f %% stopped, %.2f %% saving, %.2f %% repeated; %.1f failures.\n",
           100 * w.stopped / WEEK_SEC, 100 * w.saving / WEEK_SEC, 100 * w.repeated / WEEK_SEC,
           (double)w.failures / WEEKS);
    printf("Each failure cost, by the published shares, %.1f h of standing still without DLRover and %.1f h with it; "
           "here\n"
           "%.0f s, of which elrun itself needs less than %.0f s.  So the difference is mostly one of assumptions: a "
           "script\n"
           "that starts in minutes, a spare that is there, nobody who has to be woken.  What this shows is that the "
           "launcher\n"
           "need not be what a job waits for; it does not show what a cluster of 1,000 GPUs would do.\n",
           week_per_failure(&c, 1 - running[0]) / 3600, week_per_failure(&c, 1 - running[1]) / 3600,
           w.stopped / ((double)w.failures / WEEKS + 1), c.node_restart + c.silence + 1);
    return 0;
}
