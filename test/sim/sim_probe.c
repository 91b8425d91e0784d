/* sim_probe: thousands of probes of clusters in which nodes, rails, links and switches are broken or slow, ends stall,
 * nodes leave and measurements are noisy; each drawn from a seed.  What is true is known here, and compared.
 *
 *   sim_probe --seconds N       the first seeds, then fresh ones until the time is over; with --known the next ones,
 *                               the same in every run
 *   sim_probe --seeds N         seeds 1 … N
 *   sim_probe --seed S [--steps]  one seed; --steps prints every pair
 */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "probe/verdict.h"
#include "util/rng.h"

enum { FIXED_SEEDS = 300, NODES_MAX = 4096, LINKS_MAX = 64, FAST = 100, NORMAL = 40000, ROUNDS_END = 400 };

enum way { WAY_FINE, WAY_DEAD, WAY_SLOW };

struct link {
    unsigned a, b;
    bool slow; /* else it fails */
};

static struct world {
    uint64_t seed;
    struct el_rng rng;
    bool print;
    struct plan_conf conf;
    unsigned nodes, domains;
    enum way across;          /* what becomes of pairs between two domains */
    unsigned goes[NODES_MAX]; /* one day, as gone has it */
    bool dying[NODES_MAX];    /* is about to: its pairs fail, and nobody knows yet why */
    bool failed_dying[NODES_MAX];
    bool proved[NODES_MAX];     /* bad, and its witnesses stay or say goodbye */
    bool stuck[NODES_MAX];      /* breaks off each of its pairs */
    uint32_t passed[NODES_MAX]; /* rails that have passed with anybody */
    unsigned gone[NODES_MAX];   /* 1: left, 2: lost, 3: said goodbye */
    unsigned domain[NODES_MAX], rails[NODES_MAX];
    uint32_t bad[NODES_MAX];
    bool local_bad[NODES_MAX];
    unsigned percent[NODES_MAX]; /* of a fast node's speed */
    uint32_t slow_rails[NODES_MAX];
    struct link link[LINKS_MAX];
    unsigned links, dead_links, slow_links;
    unsigned noise_permille, stall_percent;
    unsigned bad_nodes, slow_nodes, going, unequal;
    const char *why;
    unsigned round;
} world;

struct tally {
    uint64_t seeds, pairs, rounds, condemned, slow, undecided;
    unsigned rounds_most;
};
static struct tally tally;
static const char *program;

/* --- the world ---------------------------------------------------------------------------------------------------- */

static unsigned draw(unsigned n)
{
    return (unsigned)el_rng_below(&world.rng, n);
}

static bool percent(unsigned p)
{
    return draw(100) < p;
}

static void draw_size(struct world *w)
{
    unsigned kind = draw(100);
    w->nodes = 2 + draw(kind < 60 ? 12 : kind < 92 ? 40 : kind < 99 ? 300 : NODES_MAX - 1);
    w->conf = PLAN_CONF_INIT;
    w->conf.quick = percent(30);
    w->conf.rounds_max = w->nodes <= 64 && percent(70) ? 0 : 1 + draw(12);
    unsigned rails = percent(60) ? 1 : 2 + draw(7);
    w->conf.rails = rails;
    w->domains = percent(60) ? 1 : 2 + draw(4);
    w->across = w->domains > 1 && percent(40) ? (percent(50) ? WAY_DEAD : WAY_SLOW) : WAY_FINE;
    w->unequal = rails > 1 && percent(15);
    for (unsigned n = 0; n < w->nodes; n++) {
        w->domain[n] = draw(w->domains);
        w->rails[n] = w->unequal && percent(30) ? 1 + draw(rails) : rails;
    }
}

static void draw_bad_nodes(struct world *w)
{
    static const unsigned shares[] = {0, 0, 3, 10, 25, 50, 80};
    unsigned share = shares[draw(sizeof shares / sizeof shares[0])];
    bool whole = percent(50), local = percent(20);
    for (unsigned n = 0; n < w->nodes; n++) {
        uint32_t all = (1u << w->conf.rails) - 1;
        w->bad[n] = w->slow_rails[n] = 0;
        w->percent[n] = FAST;
        w->local_bad[n] = local && percent(5);
        if (!percent(share))
            continue;
        w->bad[n] = whole ? all : 1u << draw(w->conf.rails);
        w->bad_nodes++;
    }
}

static void draw_slow_nodes(struct world *w)
{
    static const unsigned shares[] = {0, 0, 2, 10, 20, 60};
    unsigned share = shares[draw(sizeof shares / sizeof shares[0])];
    w->noise_permille = percent(50) ? 0 : percent(70) ? draw(20) : draw(300);
    for (unsigned n = 0; n < w->nodes; n++) {
        if (!percent(share))
            continue;
        w->percent[n] = 30 + draw(50);
        w->slow_rails[n] = percent(50) ? (1u << w->conf.rails) - 1 : 1u << draw(w->conf.rails);
        w->slow_nodes++;
    }
}

static void draw_links(struct world *w)
{
    static const unsigned most[] = {0, 0, 1, 2, 2, 8, LINKS_MAX};
    unsigned n = most[draw(sizeof most / sizeof most[0])];
    for (w->links = 0; w->links < n; w->links++) {
        struct link *l = &w->link[w->links];
        l->a = draw(w->nodes);
        l->b = draw(w->nodes);
        l->slow = percent(30);
        if (l->a == l->b)
            l->b = l->a ? l->a - 1 : l->a + 1;
        if (l->slow)
            w->slow_links++;
        else
            w->dead_links++;
    }
}

static void draw_world(struct world *w, uint64_t seed)
{
    bool print = w->print;
    memset(w, 0, sizeof *w);
    w->print = print;
    w->seed = w->rng.state = seed;
    draw_size(w);
    draw_bad_nodes(w);
    draw_slow_nodes(w);
    draw_links(w);
    w->stall_percent = percent(70) ? 0 : draw(30);
    unsigned going = percent(70) ? 0 : 1 + draw(70);
    for (unsigned n = 0; n < w->nodes; n++) {
        w->goes[n] = percent(going) ? 1 + draw(3) : 0;
        w->stuck[n] = w->stall_percent && percent(2);
        w->going += w->goes[n] != 0;
    }
}

static bool linked(const struct world *w, unsigned a, unsigned b, bool slow)
{
    for (unsigned i = 0; i < w->links; i++)
        if (w->link[i].slow == slow &&
            ((w->link[i].a == a && w->link[i].b == b) || (w->link[i].a == b && w->link[i].b == a)))
            return true;
    return false;
}

static unsigned speed(const struct world *w, unsigned n, unsigned rail)
{
    return w->slow_rails[n] >> rail & 1 ? w->percent[n] : FAST;
}

/* Is the rail between the two in order, apart from its speed? */
static bool works(const struct world *w, unsigned a, unsigned b, unsigned rail)
{
    return !((w->bad[a] | w->bad[b]) >> rail & 1) && !linked(w, a, b, false) &&
           !(w->across == WAY_DEAD && w->domain[a] != w->domain[b]);
}

static uint32_t measured(const struct world *w, unsigned a, unsigned b, unsigned rail)
{
    unsigned sa = speed(w, a, rail), sb = speed(w, b, rail), s = sa < sb ? sa : sb;
    if (linked(w, a, b, true) || (w->across == WAY_SLOW && w->domain[a] != w->domain[b]))
        s /= 2;
    unsigned v = NORMAL / FAST * s, sway = v * w->noise_permille / 1000;
    return v - sway + draw(2 * sway + 1);
}

/* A noisy measurement knows that it is. */
static void measure(struct world *w, const struct plan_pair *pair, unsigned rail, struct rail_result *to)
{
    to->value[METRIC_BW64M] = measured(w, pair->a, pair->b, rail);
    to->spread[METRIC_BW64M] = to->value[METRIC_BW64M] / 1000 * w->noise_permille * 9 / 10;
}

static void run_pair(struct world *w, struct plan *p, unsigned i, const struct plan_pair *pair)
{
    struct pair_result r;
    pair_result_init(&r);
    bool stalls = percent(w->stall_percent) || w->stuck[pair->a] || w->stuck[pair->b],
         gone = w->gone[pair->a] || w->gone[pair->b];
    for (unsigned k = 0; k < w->conf.rails && !stalls && !gone; k++) {
        if (!(pair->rails >> k & 1))
            continue;
        bool good = works(w, pair->a, pair->b, k) && !w->dying[pair->a] && !w->dying[pair->b];
        w->passed[pair->a] |= good ? 1u << k : 0;
        w->passed[pair->b] |= good ? 1u << k : 0;
        r.rail[k].outcome = good ? RAIL_OK : percent(80) ? RAIL_FAILED : RAIL_NO_REPORT;
        if (good)
            measure(w, pair, k, &r.rail[k]);
    }
    if (w->print)
        printf("round %u: %u-%u, rails %x, for %u: first %s\n", w->round, pair->a, pair->b, pair->rails, pair->purpose,
               rail_outcome_name(r.rail[0].outcome));
    plan_result(p, i, &r);
    tally.pairs++;
}

/* --- what must hold ----------------------------------------------------------------------------------------------- */

static bool fail(struct world *w, const char *why)
{
    w->why = why;
    return false;
}

/* No node stands in two pairs, all are there, the rails exist. */
static bool judge_round(struct world *w, const struct plan_pair *pair, unsigned pairs)
{
    static bool busy[NODES_MAX];
    memset(busy, 0, sizeof busy);
    if (pairs > w->nodes / 2)
        return fail(w, "more pairs than nodes");
    for (unsigned i = 0; i < pairs; i++) {
        const struct plan_pair *x = &pair[i];
        if (x->a >= x->b || x->b >= w->nodes || busy[x->a] || busy[x->b])
            return fail(w, "a node stands in two pairs, or with itself");
        busy[x->a] = busy[x->b] = true;
        unsigned rails = w->rails[x->a] < w->rails[x->b] ? w->rails[x->a] : w->rails[x->b];
        if (!x->rails || x->rails >> rails)
            return fail(w, "a pair without rails, or with some that its nodes do not have");
        if (w->local_bad[x->a] || w->local_bad[x->b] || w->gone[x->a] || w->gone[x->b])
            return fail(w, "a pair with a node that is not there");
    }
    return true;
}

static unsigned dead_links_of(const struct world *w, unsigned n)
{
    unsigned links = 0;
    for (unsigned i = 0; i < w->links; i++)
        links += !w->link[i].slow && (w->link[i].a == n || w->link[i].b == n);
    return links;
}

static unsigned slow_links_of(const struct world *w, unsigned n)
{
    unsigned links = 0;
    for (unsigned i = 0; i < w->links; i++)
        links += w->link[i].slow && (w->link[i].a == n || w->link[i].b == n);
    return links;
}

/* Two witnesses are enough only if there are no others. */
static bool judge_two(struct world *w, const struct node_verdict *v)
{
    bool two = false;
    for (unsigned r = 0; r < w->conf.rails; r++) {
        unsigned passed = 0;
        for (unsigned n = 0; n < w->nodes; n++)
            passed += w->passed[n] >> r & 1;
        two |= v->rails >> r & 1 && passed == 2;
    }
    return two || fail(w, "a node is condemned by two, and there were others to ask");
}

/* The word of nodes in other domains is enough only if everybody good of its own has been met. */
static bool judge_far(struct world *w, struct plan *p, unsigned n, const struct node_verdict *v)
{
    static bool met[NODES_MAX];
    memset(met, 0, sizeof met);
    for (unsigned i = 0; i < verdict_pairs(p); i++) {
        struct pair_record rec;
        verdict_pair(p, i, &rec);
        if (rec.a == n || rec.b == n)
            met[rec.a == n ? rec.b : rec.a] = true;
    }
    for (unsigned other = 0; other < w->nodes; other++)
        if (other != n && w->domain[other] == w->domain[n] && !met[other] && !w->gone[other] &&
            (w->passed[other] & v->rails) == v->rails)
            return fail(w, "a node is condemned by another domain, and its own was not asked");
    return true;
}

/* A healthy rail is condemned only where something else that is broken gives the same results, and the verdict says so.
 */
static bool judge_bad(struct world *w, struct plan *p, unsigned n, const struct node_verdict *v)
{
    if (v->ambiguous && !judge_two(w, v))
        return false;
    if (v->uplink && !v->ambiguous && !judge_far(w, p, n, v))
        return false;
    if (!(v->rails & ~w->bad[n]))
        return true;
    if (v->uplink && w->across == WAY_DEAD)
        return true;
    if (dead_links_of(w, n) >= (v->ambiguous ? 2 : 3))
        return true;
    return fail(w, "a healthy node is condemned");
}

static bool judge_slow(struct world *w, unsigned n, const struct node_verdict *v)
{
    if (!(v->rails & ~w->slow_rails[n]))
        return true;
    if (slow_links_of(w, n) >= 2 || w->across == WAY_SLOW)
        return true;
    return fail(w, "a node that is not slow is called a straggler");
}

/* Are there conditions under which everybody must have been decided? */
static bool must_decide(const struct world *w, struct plan *p)
{
    unsigned healthy = 0, there = 0;
    if (w->conf.rounds_max || w->stall_percent || w->going || w->unequal || w->across == WAY_DEAD || w->nodes < 4)
        return false;
    for (unsigned n = 0; n < w->nodes; n++) {
        healthy += !w->local_bad[n] && !w->bad[n];
        there += !w->local_bad[n];
    }
    (void)p;
    if (w->dead_links)
        return !w->bad_nodes && w->dead_links <= 2 && there >= 4;
    return healthy >= 2;
}

/* Slow ones must be named where they are few, everybody is well otherwise and there is time. */
static bool must_name_slow(const struct world *w)
{
    return w->noise_permille <= 20 && w->nodes >= 4 && w->slow_nodes && w->slow_nodes * 4 <= w->nodes &&
           !w->conf.rounds_max && !w->stall_percent && !w->going && !w->unequal && !w->bad_nodes && !w->links &&
           w->across == WAY_FINE && !w->conf.quick;
}

static bool judge_node(struct world *w, struct plan *p, unsigned n, bool decide, bool name)
{
    struct node_verdict v;
    verdict_node(p, n, &v);
    if (w->print && *v.text)
        printf("node %u is %s: %s\n", n, node_state_name(v.state), v.text);
    tally.condemned += v.state == NODE_BAD;
    tally.slow += v.state == NODE_SLOW;
    tally.undecided += v.state == NODE_UNDECIDED;
    if (w->local_bad[n])
        return v.state == NODE_BAD_LOCAL || fail(w, "a node that failed alone is not bad");
    static const enum node_state went[] = {[1] = NODE_BAD_LOCAL, [2] = NODE_UNDECIDED, [3] = NODE_ABSENT};
    if (w->gone[n] && v.state != NODE_BAD)
        return v.state == went[w->gone[n]] ? !w->proved[n] || fail(w, "a verdict is forgotten with its node")
                                           : fail(w, "a node that went is not told as that");
    if (w->gone[n] && w->failed_dying[n])
        return true; /* something was wrong with it */
    if (v.state == NODE_BAD_LOCAL || v.state == NODE_NEW || v.state == NODE_UNTESTED || v.state == NODE_SUSPECT)
        return fail(w, "a state that is not for the end");
    if (v.state == NODE_BAD && !judge_bad(w, p, n, &v))
        return false;
    if (v.state == NODE_SLOW && !judge_slow(w, n, &v))
        return false;
    if ((v.state == NODE_GOOD || v.state == NODE_SLOW) && w->bad[n] & ((1u << w->rails[n]) - 1) && !w->unequal)
        return fail(w, "a bad node is called good");
    if (decide && v.state == NODE_UNDECIDED && !w->slow_nodes && !w->slow_links && w->across == WAY_FINE)
        return fail(w, "a node is undecided that could be told");
    if (decide && w->bad[n] && v.state == NODE_BAD && v.rails != w->bad[n] && !w->slow_nodes)
        return fail(w, "a bad node is named by the wrong rails");
    if (name && w->slow_rails[n] && v.state != NODE_SLOW)
        return fail(w, "a slow node is not named");
    return true;
}

/* Who is condemned by three, and nobody who could be asked stands behind its switch. */
static void keep_proved(struct world *w, struct plan *p)
{
    struct node_verdict v;
    for (unsigned n = 0; n < w->nodes && w->going && w->domains == 1; n++) {
        if (w->gone[n])
            continue;
        verdict_node(p, n, &v);
        w->proved[n] = v.state == NODE_BAD && v.witnesses == 3;
        for (unsigned i = 0; w->proved[n] && i < 3; i++)
            w->proved[n] = w->goes[v.witness[i]] == 0 || w->goes[v.witness[i]] == 3;
    }
}

static bool judge_end(struct world *w, struct plan *p)
{
    bool decide = must_decide(w, p), name = must_name_slow(w);
    if (plan_stopped(p) == PLAN_GOING || plan_stopped(p) == PLAN_STOP_MEMORY)
        return fail(w, "the plan has not ended by itself");
    if (w->conf.rounds_max && plan_rounds(p) > w->conf.rounds_max)
        return fail(w, "more rounds than allowed");
    for (unsigned i = 0, local = 0; name && i < w->nodes; i++)
        if ((local += w->local_bad[i]))
            name = false;
    for (unsigned n = 0; n < w->nodes; n++)
        if (!judge_node(w, p, n, decide, name))
            return false;
    struct link_verdict l[256];
    unsigned links = verdict_links(p, l, 256);
    for (unsigned i = 0; i < links && i < 256; i++) {
        bool across = w->across != WAY_FINE && w->domain[l[i].a] != w->domain[l[i].b];
        if (!across && !linked(w, l[i].a, l[i].b, l[i].slow) && !(l[i].slow && w->slow_nodes))
            return fail(w, "a link is named that is in order");
    }
    return true;
}

/* --- one life ----------------------------------------------------------------------------------------------------- */

static void go(struct world *w, struct plan *p, unsigned n)
{
    w->dying[n] = false;
    w->gone[n] = w->goes[n];
    if (w->gone[n] == 1)
        plan_left(p, n);
    else if (w->gone[n] == 3)
        plan_absent(p, n);
    else
        plan_lost(p, n, "not heard of");
}

/* Some fail everything for a round before it is known that they go, but not those who say goodbye; all: it is known of
 * all that do. */
static void some_go(struct world *w, struct plan *p, bool all)
{
    keep_proved(w, p);
    for (unsigned n = 0; n < w->nodes; n++) {
        if (w->dying[n])
            go(w, p, n);
        else if (all || !w->goes[n] || w->gone[n] || w->local_bad[n] || !percent(40))
            continue;
        else if (w->goes[n] == 3)
            go(w, p, n);
        else
            w->dying[n] = w->failed_dying[n] = true;
    }
}

static bool play(struct world *w, struct plan *p)
{
    const struct plan_pair *pair;
    for (unsigned pairs; (pairs = plan_round(p, &pair));) {
        w->round = plan_rounds(p);
        if (!judge_round(w, pair, pairs))
            return false;
        if (w->round > ROUNDS_END)
            return fail(w, "it does not end");
        some_go(w, p, false);
        for (unsigned i = 0; i < pairs; i++)
            run_pair(w, p, i, &pair[i]);
    }
    some_go(w, p, true);
    return judge_end(w, p);
}

static bool one(uint64_t seed)
{
    struct world *w = &world;
    draw_world(w, seed);
    struct plan *p = plan_new(w->nodes, &w->conf, NULL);
    for (unsigned n = 0; n < w->nodes; n++) {
        plan_domain(p, n, w->domain[n]);
        plan_rails(p, n, w->rails[n]);
        plan_local(p, n, !w->local_bad[n], w->local_bad[n] ? "a check of its own" : NULL);
    }
    bool good = play(w, p);
    tally.seeds++;
    tally.rounds += plan_rounds(p);
    tally.rounds_most = plan_rounds(p) > tally.rounds_most ? plan_rounds(p) : tally.rounds_most;
    plan_free(p);
    return good;
}

static void report(const char *why)
{
    printf("sim_probe: seed %" PRIu64 ", step %u, 0.0 s: %s\n", world.seed, world.round, why);
    printf("sim_probe: again: %s --seed %" PRIu64 " --steps\n", program, world.seed);
    fflush(stdout);
}

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

static bool number(const char *text, uint64_t *to)
{
    char *end;
    *to = text ? strtoull(text, &end, 10) : 0;
    return text && *text >= '0' && *text <= '9' && !*end;
}

int main(int argc, char **argv)
{
    uint64_t limit_s = 5, seeds = 0, only = 0, fresh;
    bool known = false;
    program = argv[0];
    for (int i = 1; i < argc; i++) {
        uint64_t *to = !strcmp(argv[i], "--seconds") ? &limit_s
                       : !strcmp(argv[i], "--seeds") ? &seeds
                       : !strcmp(argv[i], "--seed")  ? &only
                                                     : NULL;
        if (!strcmp(argv[i], "--steps")) {
            world.print = true;
        } else if (!strcmp(argv[i], "--known")) {
            known = true;
        } else if (!to || !number(argv[++i], to)) {
            fprintf(stderr, "usage: sim_probe [--seconds N [--known] | --seeds N | --seed S] [--steps]\n");
            return 2;
        }
    }
    signal(SIGABRT, on_abort);
    double start = seconds();
    bool good = true;
    if (only) {
        good = one(only);
    } else {
        for (uint64_t s = 1; good && s <= (seeds ? seeds : FIXED_SEEDS); s++)
            good = one(s);
        if (known)
            fresh = 0;
        else if (getrandom(&fresh, sizeof fresh, 0) != sizeof fresh)
            fresh = (uint64_t)time(NULL) << 20;
        for (fresh = fresh / 2 + FIXED_SEEDS + 1; good && !seeds && seconds() - start < (double)limit_s; fresh++)
            good = one(fresh);
    }
    if (!good)
        report(world.why);
    printf("sim_probe: %s, %" PRIu64 " seeds, %" PRIu64 " pairs, %.1f rounds on average, %u at most; %" PRIu64
           " condemned, %" PRIu64 " slow, %" PRIu64 " undecided\n",
           good ? "ok" : "FAILED", tally.seeds, tally.pairs, (double)tally.rounds / (double)tally.seeds,
           tally.rounds_most, tally.condemned, tally.slow, tally.undecided);
    return !good;
}
