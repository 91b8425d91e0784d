/* What the plan of a probe and its verdicts cost: processor time of the coordinator, without messages.
 *
 *   plan NODES RAILS BAD SLOW [ROUNDS]
 *
 * BAD nodes fail every pair, SLOW others are at 60 %, drawn evenly; one bad rail beside them.  Prints lines
 * "METRIC VALUE": cpu (ms, plan_new to the last verdict), rounds, pairs, peak (KiB of the plan's memory), and checks
 * that the verdicts are right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probe/verdict.h"
#include "util/rng.h"

enum { ROUNDS = 8, NORMAL = 47000 };

enum kind { KIND_FINE, KIND_BAD, KIND_SLOW };
static unsigned char kind[PLAN_NODES_MAX];

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void draw(unsigned nodes, unsigned n, enum kind as)
{
    static struct el_rng rng = {1};
    while (n) {
        unsigned at = (unsigned)el_rng_below(&rng, nodes);
        if (kind[at] != KIND_FINE)
            continue;
        kind[at] = (unsigned char)as;
        n--;
    }
}

static void run(const struct plan_pair *pair, unsigned rails, struct pair_result *r)
{
    static struct el_rng rng = {2};
    pair_result_init(r);
    bool bad = kind[pair->a] == KIND_BAD || kind[pair->b] == KIND_BAD;
    bool slow = kind[pair->a] == KIND_SLOW || kind[pair->b] == KIND_SLOW;
    for (unsigned k = 0; k < rails; k++) {
        r->rail[k].outcome = bad ? RAIL_FAILED : RAIL_OK;
        if (bad)
            continue;
        uint32_t value = NORMAL + (uint32_t)el_rng_below(&rng, 400);
        r->rail[k].value[METRIC_BW64M] = slow ? value * 6 / 10 : value;
        r->rail[k].value[METRIC_LAT] = 12000 + (uint32_t)el_rng_below(&rng, 500);
    }
}

int main(int argc, char **argv)
{
    struct el_mem mem = EL_MEM_INIT(0);
    struct plan_conf conf = PLAN_CONF_INIT;
    static struct pair_result r;
    const struct plan_pair *pair;
    unsigned long pairs = 0, wrong = 0;
    if (argc < 5) {
        fprintf(stderr, "usage: plan NODES RAILS BAD SLOW [ROUNDS]\n");
        return 2;
    }
    unsigned nodes = (unsigned)atoi(argv[1]), rails = (unsigned)atoi(argv[2]), bad = (unsigned)atoi(argv[3]),
             slow = (unsigned)atoi(argv[4]);
    if (!nodes || nodes > PLAN_NODES_MAX || !rails || rails > PLAN_RAILS_MAX || bad + slow > nodes) {
        fprintf(stderr, "plan: too many\n");
        return 2;
    }
    draw(nodes, bad, KIND_BAD);
    draw(nodes, slow, KIND_SLOW);
    conf.rails = rails;
    conf.rounds_max = argc > 5 ? (unsigned)atoi(argv[5]) : ROUNDS;
    double outside = 0, start = cpu_ms(); /* outside: making up results */
    struct plan *p = plan_new(nodes, &conf, &mem);
    if (!p)
        return 1;
    for (unsigned n = 0; n < nodes; n++)
        plan_local(p, n, true, NULL);
    for (unsigned n; (n = plan_round(p, &pair)); pairs += n)
        for (unsigned i = 0; i < n; i++) {
            double before = cpu_ms();
            run(&pair[i], rails, &r);
            outside += cpu_ms() - before;
            plan_result(p, i, &r);
        }
    for (unsigned n = 0; n < nodes; n++) {
        static const enum node_state want[] = {NODE_GOOD, NODE_BAD, NODE_SLOW};
        struct node_verdict v;
        verdict_node(p, n, &v);
        wrong += v.state != want[kind[n]] && v.state != NODE_UNDECIDED;
    }
    printf("cpu %.1f\nrounds %u\npairs %lu\npeak %zu\n", cpu_ms() - start - outside, plan_rounds(p), pairs,
           mem.peak_bytes / 1024);
    plan_free(p);
    if (wrong)
        fprintf(stderr, "plan: %lu verdicts are wrong\n", wrong);
    return wrong != 0;
}
