/* What the agent makes of a worker's status page, in which anything may stand. */
#include "snapshot/worker_status.h"

#include "ckpt/layout.h"
#include "lib/tap.h"

static void test_page(void)
{
    struct worker_status p;
    struct worker_status_stand s;
    worker_status_reset(&p, 1, 2, 0);
    worker_status_stand(&p, &s);
    ok(!s.listens && !s.stable, "before the first step there is nothing to capture");
    p.phase = WORKER_STATUS_STABLE;
    p.live_step = p.begin_step = 4;
    worker_status_stand(&p, &s);
    ok(s.stable && s.live == 4 && s.begun == 4, "between two steps");
    p.phase = WORKER_STATUS_UPDATING;
    p.begin_step = 5;
    worker_status_stand(&p, &s);
    ok(!s.stable && s.live == 4 && s.begun == 5, "in a step");
    worker_status_limit(&p, 4);
    worker_status_stand(&p, &s);
    ok(s.stable && s.live == 4 && s.begun == 4, "in front of one that it may not begin");
    p.seq = 7;
    worker_status_stand(&p, &s);
    ok(!s.stable, "while it writes nothing is known");
}

/* No number that a worker writes is taken for a step that it cannot be. */
static void test_no_step(void)
{
    static const int64_t none[] = {CKPT_STEP_MAX + 1, INT64_MAX - 1, INT64_MAX};
    struct worker_status p, *const page = &p;
    struct worker_status_stand s;
    for (unsigned i = 0; i < 3; i++) {
        worker_status_reset(&p, 1, 2, 0);
        p.phase = WORKER_STATUS_STABLE;
        p.live_step = none[i];
        worker_status_stand(&p, &s);
        ok(!s.listens && !s.stable && s.live < 0 && s.begun < 0 && worker_status_begun(&p) < 0 &&
               worker_status_live(&p) < 0,
           "a step beyond the last one is none");
        p.live_step = 4;
        p.begin_step = none[i];
        p.phase = WORKER_STATUS_UPDATING;
        is_num(worker_status_freeze(&page, 1), -1, "nor does it set a limit to others");
        worker_status_stand(&p, &s);
        ok(!s.listens && !s.stable && s.live == 4, "whether it is in such a one, or waits to begin it, is not known");
    }
}

int main(void)
{
    test_page();
    test_no_step();
    return done();
}
