/* The probe's plan side by side with DLRover's node check: the cases that it gets wrong, and its published example. */
#include "unit/plan_stage.h"

/* Its rule as its source has it: two rounds; neighbours, then by time, fast with slow; one success clears a node.  A
 * group of three when the number is odd. */
struct dlrover {
    unsigned n;
    uint64_t bad;
    double time[NODES_MAX]; /* best so far, 3600: failed */
    bool passed[NODES_MAX];
    unsigned group[NODES_MAX];
};

static void dlrover_round(struct dlrover *d, unsigned groups)
{
    for (unsigned g = 0; g < groups; g++) {
        bool fails = false;
        for (unsigned n = 0; n < d->n; n++)
            fails |= d->group[n] == g && d->bad >> n & 1;
        for (unsigned n = 0; n < d->n; n++)
            if (d->group[n] == g && !fails) {
                d->passed[n] = true;
                d->time[n] = 1;
            }
    }
}

static const char *dlrover_verdict(unsigned n, uint64_t bad, char to[256])
{
    struct dlrover d = {.n = n, .bad = bad};
    unsigned order[NODES_MAX], groups = n / 2;
    for (unsigned i = 0; i < n; i++) {
        d.time[i] = 3600;
        d.group[i] = i / 2 < groups ? i / 2 : groups - 1;
        order[i] = i;
    }
    dlrover_round(&d, groups);
    for (unsigned i = 1; i < n; i++)
        for (unsigned j = i; j > 0 && d.time[order[j]] < d.time[order[j - 1]]; j--) {
            unsigned t = order[j];
            order[j] = order[j - 1];
            order[j - 1] = t;
        }
    for (unsigned i = 0; i < groups; i++)
        d.group[order[i]] = d.group[order[n - 1 - i]] = i;
    if (n % 2)
        d.group[order[groups]] = groups - 1;
    dlrover_round(&d, groups);
    size_t at = 0;
    snprintf(to, 256, "-");
    for (unsigned i = 0; i < n; i++)
        if (!d.passed[i])
            at += (size_t)snprintf(to + at, 256 - at, "%s%u", at ? " " : "", i);
    return to;
}

/* A straggler there is who needs more than twice the median of all; a node's time is that of its pair, which is that of
 * the slower end. */
static unsigned dlrover_stragglers(const double *time, unsigned n)
{
    double sorted[NODES_MAX];
    unsigned stragglers = 0;
    memcpy(sorted, time, n * sizeof *time);
    for (unsigned i = 1; i < n; i++)
        for (unsigned j = i; j > 0 && sorted[j] < sorted[j - 1]; j--) {
            double t = sorted[j];
            sorted[j] = sorted[j - 1];
            sorted[j - 1] = t;
        }
    double median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    for (unsigned i = 0; i < n; i++)
        stragglers += time[i] > 2 * median;
    return stragglers;
}

static void test_dlrover_slow(void)
{
    char text[256];
    struct world w = {.nodes = 4, .rails = 1};
    w.percent[3] = 40;
    is_num(dlrover_stragglers((const double[]){1, 1, 2.5, 2.5}, 4), 0,
           "4 nodes, a pair 2.5 times slower: DLRover sees no straggler");
    struct plan *p = play(&w, PLAN_CONF_INIT);
    is_str(those(p, NODE_SLOW, text), "3", "4 nodes, a pair 2.5 times slower: elrun names the slow end of it");
    plan_free(p);
    w = (struct world){.nodes = 2, .rails = 1, .percent = {40, 40}};
    is_num(dlrover_stragglers((const double[]){2.5, 2.5}, 2), 0, "2 nodes, both slow: DLRover sees no straggler");
    p = start(&w, PLAN_CONF_INIT);
    plan_reference(p, METRIC_BW64M, 40000);
    while (one_round(p, &w))
        ;
    is_num(verdict_whole(p), VERDICT_UNDECIDED, "2 nodes, both slow: elrun with a baseline is undecided");
    plan_free(p);
    w = (struct world){.nodes = 8, .rails = 8};
    w.percent[6] = 88;
    is_num(dlrover_stragglers((const double[]){1, 1, 1, 1, 1, 1, 1.12, 1.12}, 8), 0,
           "8 nodes, one is 12 % slower (a NIC of eight): DLRover sees no straggler");
    p = play(&w, PLAN_CONF_INIT);
    is_str(those(p, NODE_SLOW, text), "6", "8 nodes, one is 12 % slower: elrun names it");
    plan_free(p);
}

static void test_dlrover(void)
{
    static const struct {
        const char *name;
        unsigned n;
        uint64_t bad;
        const char *dlrover, *truth;
        unsigned rounds;
    } rows[] = {
        {"5 nodes, 4 is bad", 5, 1 << 4, "4", "4", 4},
        {"6 nodes, 5 is bad", 6, 1 << 5, "5", "5", 3},
        {"6 nodes, 1 and 5 are bad", 6, 1 << 1 | 1 << 5, "0 1 5", "1 5", 4},
        {"4 nodes, 2 and 3 are bad", 4, 1 << 2 | 1 << 3, "2 3", "2 3", 3},
        {"4 nodes, 1 and 3 are bad", 4, 1 << 1 | 1 << 3, "0 1 2 3", "1 3", 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[128], text[256];
        struct world w = {.nodes = rows[i].n, .rails = 1, .bad = rows[i].bad};
        snprintf(name, sizeof name, "%s: DLRover names %s", rows[i].name, rows[i].dlrover);
        is_str(dlrover_verdict(rows[i].n, rows[i].bad, text), rows[i].dlrover, name);
        struct plan *p = play(&w, PLAN_CONF_INIT);
        snprintf(name, sizeof name, "%s: elrun names %s", rows[i].name, rows[i].truth);
        is_str(those(p, NODE_BAD, text), rows[i].truth, name);
        is_str(those(p, NODE_UNDECIDED, text), "-", "... nobody is undecided");
        is_num(plan_rounds(p), rows[i].rounds, "... in as many rounds as the table says");
        plan_free(p);
    }
}

/* Six nodes of which the last is bad, with the pairs that its authors published (theirs count from 1). */
static void test_published(void)
{
    static const struct plan_pair first[] = {{0, 1, 1, 0}, {2, 3, 1, 0}, {4, 5, 1, 0}};
    static const struct plan_pair second[] = {{0, 1, 1, 0}, {2, 4, 1, 0}, {3, 5, 1, 0}};
    const struct plan_pair *pair;
    struct world w = {.nodes = 6, .rails = 1, .bad = 1 << 5};
    struct plan_conf conf = PLAN_CONF_INIT;
    conf.quick = true;
    struct plan *p = start(&w, conf);
    struct pair_result pass = result_of(&w, &first[0]), fail = result_of(&w, &first[2]);
    char text[256];
    plan_given(p, first, 3);
    plan_result(p, 0, &pass);
    plan_result(p, 1, &pass);
    plan_result(p, 2, &fail);
    is_str(those(p, NODE_SUSPECT, text), "4 5", "published example: after the first round two are suspect");
    is_num(plan_given(p, second, 3), 2, "published example: who has met does not meet again");
    plan_result(p, 0, &pass);
    plan_result(p, 1, &fail);
    is_str(those(p, NODE_SUSPECT, text), "5", "published example: after the second round node 6 is the only suspect");
    is_str(those(p, NODE_BAD, text), "-",
           "published example: two failures condemn nobody, two links would look the same");
    is_num(plan_round(p, &pair), 1, "published example: one more pair");
    ok(pair[0].b == 5 && pair[0].a < 3, "published example: of the suspect with a good node that it has not met");
    plan_result(p, 0, &fail);
    is_num(plan_round(p, &pair), 0, "published example: then the plan has ended");
    is_str(those(p, NODE_BAD, text), "5", "published example: node 6 is bad");
    is_str(those(p, NODE_GOOD, text), "0 1 2 3 4", "published example: the others are good");
    plan_free(p);
}

int main(void)
{
    test_dlrover();
    test_dlrover_slow();
    test_published();
    return done();
}
