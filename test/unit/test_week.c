/* The arithmetic of the simulated week (test/bench/week.h). */
#include "bench/week.h"
#include "lib/tap.h"

static int near(double a, double b, double by)
{
    int good = fabs(a - b) <= by;
    if (!good)
        printf("#  got: %f\n# want: %f\n", a, b);
    return good;
}

int main(void)
{
    struct week_conf c = {.gpus = 1000,
                          .per_gpu_day = 0.0027,
                          .node_share = 0.5,
                          .silent_share = 0.5,
                          .worker_restart = 0.01,
                          .node_restart = 0.3,
                          .silence = 5,
                          .script_start = 300,
                          .checkpoint = 1800,
                          .save = 10};
    struct week a, b;
    double saving;
    week_run(&c, 7, &a);
    week_run(&c, 7, &b);
    ok(memcmp(&a, &b, sizeof a) == 0, "the same seed, the same week");
    ok(near(a.stopped + a.saving + a.repeated + a.effective, WEEK_SEC, 1e-3), "the parts are the whole");
    ok(near(week_per_failure(&c, 1 - 0.608), 12543, 1), "39.2 % of a week over 18.9 failures are 3.5 h each");

    ok(near(week_saved(&c, 100, &saving), 100, 1e-9) && saving == 0, "before the first checkpoint all is lost");
    ok(near(week_saved(&c, 1805, &saving), 1800, 1e-9) && near(saving, 5, 1e-9), "in the middle of saving, too");
    ok(near(week_saved(&c, 1811, &saving), 1, 1e-9) && near(saving, 10, 1e-9), "behind it only what came after");

    double failures = 0, stopped = 0, repeated = 0, node = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        week_run(&c, seed, &a);
        failures += a.failures / 2000.0;
        stopped += a.stopped / 2000;
        repeated += a.repeated / 2000;
    }
    ok(near(failures, 18.9, 0.3), "18.9 failures a week");
    /* Each outage is 300 s, half of them + 0.01, half + 0.3 and of these half + 5. */
    ok(near(stopped / (failures + 1), 301.4, 4), "the mean outage");
    ok(near(repeated / failures, 900, 40), "half a checkpoint interval is lost with a failure");

    c.per_gpu_day = 1e-12;
    week_run(&c, 1, &a);
    ok(a.failures == 0 && near(a.stopped, 300, 1e-6) && a.repeated == 0, "without failures only the start costs");
    c.per_gpu_day = 1000;
    week_run(&c, 1, &a);
    ok(a.effective >= 0 && week_running_share(&a) < 0.001, "more failures than work");
    c.node_share = 1;
    c.silent_share = 0;
    struct el_rng rng = {.state = 3};
    for (int i = 0; i < 100; i++)
        node += week_outage(&c, &rng) / 100;
    ok(near(node, 300.3, 1e-9), "a node that is lost and says so");
    return done();
}
