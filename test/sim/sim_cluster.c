/* The swarm of clusters: runs seed after seed, repeats one now and then to see that it takes the same way, and stops at
 * the first run in which something did not hold, with the line that repeats it.
 *
 *     sim_cluster [--seconds S [--known] | --seeds N] [--seed FIRST] [--agents N] [--quiet] [--verbose]
 *
 * For a time it draws fresh seeds; with --known, or counted, they are always the same ones. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/cluster.h"

static struct cluster cluster;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A core's own assertion, or worse: the seed must not be lost. */
static void on_abort(int signal)
{
    cluster_fail(&cluster, signal == SIGABRT ? "an assertion of the core" : "a wild access of the core");
    cluster_print_failure(&cluster);
    fflush(stdout);
    _Exit(1);
}

struct args {
    double seconds;
    uint64_t seeds, first;
    unsigned agents;
    bool quiet;
};

static struct args parse(int argc, char **argv)
{
    struct args a = {.seconds = 60, .seeds = UINT64_MAX, .first = 1};
    bool seconds = false, known = false;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "0";
        if (strcmp(argv[i], "--seconds") == 0)
            a.seconds = strtod(value, NULL), seconds = true, i++;
        else if (strcmp(argv[i], "--seeds") == 0)
            a.seeds = strtoull(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--seed") == 0)
            a.first = strtoull(value, NULL, 10), known = true, i++;
        else if (strcmp(argv[i], "--known") == 0)
            known = true;
        else if (strcmp(argv[i], "--agents") == 0)
            a.agents = (unsigned)strtoul(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--quiet") == 0)
            a.quiet = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            cluster.verbose = true;
        else {
            fprintf(stderr, "sim_cluster: %s is no option of it: see the head of test/sim/sim_cluster.c\n", argv[i]);
            exit(2);
        }
    }
    if (seconds && !known && a.seeds == UINT64_MAX)
        a.first = (uint64_t)time(NULL) << 20; /* a machine does not run that many in a second */
    if (a.seeds != UINT64_MAX && !seconds)
        a.seconds = 1e9;
    return a;
}

int main(int argc, char **argv)
{
    struct args a = parse(argc, argv);
    double start = now_s();
    uint64_t done = 0, steps = 0, rounds = 0, saved = 0, due = 0, unsaved = 0, captured = 0, common = 0,
             digest = 14695981039346656037u;
    signal(SIGABRT, on_abort);
    signal(SIGSEGV, on_abort);
    for (; done < a.seeds && now_s() - start < a.seconds; done++) {
        uint64_t seed = a.first + done;
        unsigned agents = a.agents ? a.agents : seed % 50 == 0 ? 60 : 1 + (unsigned)(seed % 9);
        for (unsigned again = 0; again < (seed % 64 == 1 ? 2u : 1u); again++) {
            uint64_t before = cluster.hash;
            if (!cluster_run(&cluster, seed, agents, a.quiet)) {
                cluster_print_failure(&cluster);
                return 1;
            }
            steps += cluster.steps;
            if (again && before != cluster.hash) {
                printf("sim_cluster: seed %llu, step 0, 0.000 s: the second run went another way\n",
                       (unsigned long long)seed);
                return 1;
            }
        }
        rounds += cluster.rounds;
        saved += cluster.saves_done;
        unsaved += cluster.saves_failed;
        due += cluster.saves_due;
        captured += cluster.captures_done;
        common += cluster.commons;
        digest = (digest ^ cluster.hash) * 0x100000001b3u;
    }
    double took = now_s() - start;
    printf("sim_cluster: ok, %llu seeds, %llu rounds, %llu steps on disk (%llu times due), %llu wishes in vain, %llu "
           "captured, %llu words of steps that all hold, %llu steps, "
           "%.2f M "
           "steps/s, digest %016llx\n",
           (unsigned long long)done, (unsigned long long)rounds, (unsigned long long)saved, (unsigned long long)due,
           (unsigned long long)unsaved, (unsigned long long)captured, (unsigned long long)common,
           (unsigned long long)steps, (double)steps / took / 1e6, (unsigned long long)digest);
    cluster_free(&cluster);
    return 0;
}
