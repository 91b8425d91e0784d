/* The worker group alone: each test calls the machine as the agent does and reads its actions as text. */
#include "proc/worker_group.h"

#include <signal.h>

#include "lib/tap.h"
#include "sim/trace.h"

static struct worker_group p;
static struct worker_group_actions out;
static char text[400];

/* What was asked for since the last call, e.g. "sweep 0 TERM, all KILL"; also checks the invariants. */
static const char *asked(void)
{
    size_t n = 0;
    text[0] = 0;
    worker_group_check(&p);
    for (unsigned i = 0; i < out.n; i++) {
        const struct worker_group_action *x = &out.v[i];
        const char *comma = i ? ", " : "", *sig = trace_signal(x->signal);
        int k = 0;
        switch (x->type) {
        case WORKER_GROUP_SPAWN: k = snprintf(text + n, sizeof text - n, "%sspawn %u", comma, x->slot); break;
        case WORKER_GROUP_SIGNAL_ALL: k = snprintf(text + n, sizeof text - n, "%sall %s", comma, sig); break;
        case WORKER_GROUP_SWEEP_SLOT:
            k = snprintf(text + n, sizeof text - n, "%ssweep %u %s", comma, x->slot, sig);
            break;
        case WORKER_GROUP_SWEEP_ALL: k = snprintf(text + n, sizeof text - n, "%ssweep %s", comma, sig); break;
        }
        n += (size_t)k;
    }
    out.n = 0;
    return text;
}

/* All slots are up. */
static void begin(unsigned slots)
{
    out.n = 0;
    if (worker_group_init(&p, slots, NULL) < 0)
        abort();
    worker_group_start(&p, &out);
    for (unsigned i = 0; i < slots; i++) {
        out.n = 0;
        worker_group_spawned(&p, i, &out);
    }
    asked();
}

static void finish(void)
{
    worker_group_free(&p, NULL);
}

static void test_start(void)
{
    out.n = 0;
    ok(worker_group_init(&p, 2, NULL) == 0 && p.phase == WORKER_GROUP_IDLE, "a new group is idle");
    ok(worker_group_deadline(&p) == EL_NEVER && !worker_group_succeeded(&p),
       "idle: nothing to wait for, nothing achieved");
    worker_group_start(&p, &out);
    is_str(asked(), "spawn 0", "one after the other");
    worker_group_spawned(&p, 0, &out);
    is_str(asked(), "spawn 1", "the next when the one before is there");
    worker_group_exited(&p, 0, 0, -1, 5, &out);
    is_str(asked(), "sweep 0 TERM", "the first ends before the second is forked: the group goes on");
    worker_group_spawned(&p, 1, &out);
    is_str(asked(), "", "no third");
    ok(!worker_group_succeeded(&p), "one is still up: no success yet");
    worker_group_exited(&p, 1, 0, -1, 6, &out);
    is_str(asked(), "sweep 1 TERM, sweep TERM", "the last leader is gone: leftovers");
    ok(worker_group_succeeded(&p) && p.phase == WORKER_GROUP_SWEEPING, "all exited 0");
    worker_group_swept(&p, 0, 7, &out);
    ok(p.phase == WORKER_GROUP_CLOSED && worker_group_deadline(&p) == EL_NEVER, "closed, nothing to wait for");
    worker_group_start(&p, &out);
    is_str(asked(), "spawn 0", "a closed group can begin again");
    ok(!worker_group_succeeded(&p) && p.started == 0, "and has forgotten the attempt before");
    finish();
}

static void test_ends(void)
{
    static const struct {
        int code, signal;
        bool good;
        const char *what;
    } rows[] = {
        {0, -1, true, "exit 0 is success"},       {1, -1, false, "exit 1 is not"},
        {255, -1, false, "exit 255 is not"},      {-1, SIGKILL, false, "a signal is not"},
        {-1, -1, false, "an unknown end is not"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(1);
        worker_group_exited(&p, 0, rows[i].code, rows[i].signal, 0, &out);
        ok(worker_group_succeeded(&p) == rows[i].good, rows[i].what);
        is_num(p.failed, !rows[i].good, "and counts accordingly");
        ok(p.slot[0].unknown == (rows[i].code < 0 && rows[i].signal < 0), "unknown is marked");
        finish();
    }
    begin(2);
    worker_group_stop(&p, SIGTERM, EL_SEC(5), 0, &out);
    worker_group_exited(&p, 0, -1, SIGTERM, 1, &out);
    worker_group_exited(&p, 1, 0, -1, 1, &out);
    ok(p.failed == 0 && !worker_group_succeeded(&p), "stopped by us: neither a failure nor a success");
    finish();
}

static void test_grace(void)
{
    begin(2);
    worker_group_stop(&p, SIGINT, EL_SEC(5), EL_SEC(1), &out);
    is_str(asked(), "all INT", "the signal that was asked for");
    is_num(worker_group_deadline(&p), EL_SEC(6), "grace");
    worker_group_stop(&p, SIGTERM, EL_SEC(9), EL_SEC(2), &out);
    is_num(worker_group_deadline(&p), EL_SEC(6), "a second stop does not lengthen the grace");
    worker_group_stop(&p, SIGTERM, EL_SEC(1), EL_SEC(2), &out);
    is_num(worker_group_deadline(&p), EL_SEC(3), "it may shorten it");
    is_str(asked(), "", "and nobody is signalled twice");
    worker_group_timeout(&p, EL_SEC(3), &out);
    is_str(asked(), "all KILL", "grace is over");
    worker_group_stop(&p, SIGTERM, 0, EL_SEC(3), &out);
    is_str(asked(), "", "killing is as fast as it gets");
    is_num(worker_group_deadline(&p), EL_SEC(3) + WORKER_GROUP_STUCK, "until the node is stuck");
    worker_group_exited(&p, 1, -1, SIGKILL, EL_SEC(4), &out);
    is_str(asked(), "sweep 1 KILL", "leftovers of a killed leader get no second");
    worker_group_timeout(&p, EL_SEC(3) + WORKER_GROUP_STUCK, &out);
    is_str(asked(), "sweep KILL", "stuck: the orphans are not spared");
    ok(p.stuck && p.phase == WORKER_GROUP_CLOSED && p.up == 1, "closed, with one that lives on");
    worker_group_orphan_reaped(&p, EL_SEC(14), &out);
    is_str(asked(), "sweep KILL", "what an orphan leaves behind is killed too");
    finish();

    begin(3);
    worker_group_stop(&p, SIGTERM, 0, 0, &out);
    is_str(asked(), "all KILL", "no grace at all");
    finish();
}

static void test_linger(void)
{
    begin(3);
    worker_group_exited(&p, 1, 0, -1, EL_MS(100), &out);
    worker_group_exited(&p, 0, 0, -1, EL_MS(200), &out);
    asked();
    is_num(worker_group_deadline(&p), EL_MS(100) + WORKER_GROUP_LINGER, "the earliest linger counts");
    worker_group_timeout(&p, EL_MS(100) + WORKER_GROUP_LINGER, &out);
    is_str(asked(), "sweep 1 KILL", "its time is over, the other's not");
    is_num(worker_group_deadline(&p), EL_MS(200) + WORKER_GROUP_LINGER, "then the next");
    worker_group_exited(&p, 2, 0, -1, EL_MS(300), &out);
    is_str(asked(), "sweep 2 TERM, sweep TERM", "all gone");
    worker_group_swept(&p, 1, EL_MS(300), &out);
    is_num(worker_group_deadline(&p), EL_MS(300) + WORKER_GROUP_LINGER, "now one linger for all that is left");
    worker_group_timeout(&p, EL_MS(300) + WORKER_GROUP_LINGER, &out);
    is_str(asked(), "sweep KILL", "over");
    is_num(worker_group_deadline(&p), EL_MS(300) + WORKER_GROUP_LINGER + WORKER_GROUP_RESWEEP, "and again soon");
    for (unsigned i = 0; i < 1000 && p.phase == WORKER_GROUP_SWEEPING; i++)
        worker_group_timeout(&p, worker_group_deadline(&p), &out), out.n = 0;
    ok(p.stuck, "a leftover that never goes makes the node stuck");
    finish();
}

int main(void)
{
    test_start();
    test_ends();
    test_grace();
    test_linger();
    return done();
}
