/* What must hold on a node, said without the core's own words: from what happened (events), what elrun did (actions)
 * and what became of the processes. */
#include "sim/world.h"

#include <signal.h>

#include "agent/signal_settle.h"

/* A stop may take so long, whatever the processes do: until they are killed, then state D twice (leader, leftovers) and
 * one linger. */
static el_usec leaders_gone_by(const struct world *w)
{
    return w->judge.kill_by + WORKER_GROUP_STUCK + EL_MS(10);
}

static el_usec leftovers_gone_by(const struct world *w)
{
    return w->judge.all_gone_at + WORKER_GROUP_LINGER + WORKER_GROUP_STUCK + EL_MS(10);
}

static void want_stop(struct world *w, int sig, el_usec grace)
{
    struct world_judge *j = &w->judge;
    j->open = false;
    j->at_once |= !grace;
    if (j->stop_due) { /* only faster */
        j->kill_by = w->now + grace < j->kill_by ? w->now + grace : j->kill_by;
        j->grace = grace < j->grace ? grace : j->grace;
        return;
    }
    j->stop_due = true;
    j->grace = grace;
    j->kill_by = w->now + grace;
    j->stop_signal = sig;
}

static void blame(struct world *w, enum agent_cause cause, unsigned slot)
{
    if (w->judge.verdict != AGENT_NO_CAUSE)
        return;
    w->judge.verdict = cause;
    w->judge.verdict_slot = slot;
}

/* It failed by itself: while the case was open, whoever was blamed before is cleared. */
static void condemn(struct world *w, unsigned slot)
{
    if (w->judge.open)
        w->judge.verdict_slot = slot;
    blame(w, AGENT_WORKER_FAILED, slot);
    want_stop(w, SIGTERM, w->conf.grace);
}

/* A failure may lead to another attempt. */
static bool restarts(const struct world *w)
{
    return w->judge.attempts <= w->conf.max_restarts && !w->agent.group.stuck &&
           w->conf.restart_policy != RESTART_NEVER;
}

static void on_exited(struct world *w, const struct agent_event *ev, const struct world_proc *ended)
{
    struct world_judge *j = &w->judge;
    bool good = ev->code == 0 && !ended->unknown;
    j->gone_at[ev->slot] = w->now;
    j->was_told[ev->slot] = ended->told || ended->told_kill;
    j->exited++;
    j->exited_ok += good;
    if (ended->told || ended->told_kill || good)
        return;
    j->failed++;
    if (j->verdict == AGENT_NO_CAUSE && w->conf.slots == 1 &&
        (ev->signal == SIGINT || ev->code == 130)) { /* Ctrl-C reached the worker alone */
        j->asked_to_leave = true;
        blame(w, AGENT_LEAVING, 0);
        want_stop(w, SIGINT, w->conf.grace);
        return;
    }
    bool farewell = ev->signal == SIGTERM || ev->signal == SIGKILL || ev->signal == SIGINT || ev->signal == SIGHUP;
    bool first = j->verdict == AGENT_NO_CAUSE, others = world_leaders(w) || w->spawn_open;
    if (first || j->open)
        j->hindsight = !farewell || ev->signal == SIGKILL
                           ? 0
                           : w->now + (restarts(w) ? SIGNAL_SETTLE_INSTANT : SIGNAL_SETTLE_LONG);
    if (w->conf.consequence && !farewell && (j->open || (first && others))) {
        blame(w, AGENT_WORKER_FAILED, ev->slot);
        if (j->open && w->now >= j->open_until)
            return;
        j->open_until = j->open ? j->open_until : w->now + w->conf.consequence;
        j->waits = j->open && j->waits;
        j->open = true;
        j->looks++;
        return;
    }
    condemn(w, ev->slot);
}

static void on_looked(struct world *w, const struct agent_event *ev)
{
    struct world_judge *j = &w->judge;
    if (!j->open || ev->attempt != w->agent.attempts)
        return;
    j->looks--;
    if (!ev->follows && !ev->waits)
        condemn(w, ev->slot);
    if (ev->follows || !ev->waits || j->waits)
        return;
    j->waits = true;
    j->verdict_slot = ev->slot;
}

/* Nobody is left who could be the cause, or it took too long. */
static void close_case(struct world *w)
{
    struct world_judge *j = &w->judge;
    if (!j->open)
        return;
    bool nobody = !world_leaders(w) && !w->spawn_open && !j->looks;
    if (!nobody && w->now < j->open_until)
        return;
    if (w->agent.state == AGENT_RUNNING)
        want_stop(w, SIGTERM, w->conf.grace);
    j->open = false;
}

static void on_spawn_failed(struct world *w, const struct agent_event *ev)
{
    struct world_judge *j = &w->judge;
    if (ev->forked && w->leader[ev->slot] >= 0 && w->proc[w->leader[ev->slot]].fails_exec)
        w->proc[w->leader[ev->slot]].told_kill++; /* its end is explained */
    if (ev->forked && j->verdict == AGENT_WORKER_FAILED && j->verdict_slot == ev->slot)
        j->verdict = AGENT_NO_CAUSE;
    blame(w, AGENT_SPAWN_FAILED, ev->slot);
    want_stop(w, SIGTERM, w->conf.grace);
}

/* Nothing holds a stop back any more: its grace begins. */
static void judge_release(struct world *w)
{
    struct world_judge *j = &w->judge;
    if (!j->captures || j->captured)
        return;
    j->captured = true;
    if (j->stop_due)
        j->kill_by = w->now + j->grace;
}

static void on_signal(struct world *w, const struct agent_event *ev)
{
    struct world_judge *j = &w->judge;
    enum agent_state state = w->agent.state;
    bool leaving = j->verdict == AGENT_LEAVING;
    j->interrupts += ev->signal == SIGINT;
    if (!w->conf.handled[ev->signal])
        return;
    j->asked_to_leave = true;
    bool done = j->exited_ok == w->conf.slots && !j->stop_due;
    if (done)
        blame(w, AGENT_SUCCESS, 0);
    if (j->verdict == AGENT_WORKER_FAILED && (restarts(w) || w->now < j->hindsight))
        j->verdict = AGENT_NO_CAUSE;
    blame(w, AGENT_LEAVING, 0);
    j->open = j->open && j->verdict == AGENT_WORKER_FAILED;
    if (state != AGENT_RUNNING && state != AGENT_STOPPING)
        return;
    if (j->verdict == AGENT_LEAVING && (leaving || !w->conf.captures_stay)) /* told twice, or of no use any more */
        judge_release(w);
    want_stop(w, ev->signal, w->conf.grace);
    if (ev->signal == SIGINT && j->interrupts > 1)
        j->kill_due = true;
}

static void on_hung(struct world *w, const struct agent_event *ev)
{
    struct world_judge *j = &w->judge;
    if (w->agent.state != AGENT_RUNNING || j->verdict != AGENT_NO_CAUSE || (world_leaders(w) == 0 && !w->spawn_open))
        return;
    j->hindsight = 0;
    blame(w, AGENT_WORKER_FAILED, ev->slot);
    want_stop(w, SIGABRT, AGENT_ABORT_GRACE);
}

void judge_event(struct world *w, const struct agent_event *ev, const struct world_proc *ended)
{
    if (w->judge.ends)
        return;
    switch (ev->type) {
    case AGENT_EV_PARTED: break; /* this world has no steps */
    case AGENT_EV_PREPARED:
        if (!ev->ok)
            blame(w, AGENT_PREPARE_FAILED, 0);
        break;
    case AGENT_EV_SPAWN_FAILED: on_spawn_failed(w, ev); break;
    case AGENT_EV_EXITED: on_exited(w, ev, ended); break;
    case AGENT_EV_SIGNAL: on_signal(w, ev); break;
    case AGENT_EV_LOOKED: on_looked(w, ev); break;
    case AGENT_EV_NONE_ENDS: break; /* the world has no such output */
    case AGENT_EV_HUNG: on_hung(w, ev); break;
    case AGENT_EV_COLLECTED:
        w->judge.collected = true;
        w->judge.hopeless = ev->digest && ev->digest->kind != RESTART_PASSING;
        break;
    case AGENT_EV_CAPTURED:
        if (ev->attempt == w->agent.attempts)
            judge_release(w);
        break;
    case AGENT_EV_FAILING:
    case AGENT_EV_START:
    case AGENT_EV_ATTEMPT:
    case AGENT_EV_HALT:
    case AGENT_EV_FINISH:
    case AGENT_EV_SPAWNED:
    case AGENT_EV_SWEPT:
    case AGENT_EV_ORPHAN:
    case AGENT_EV_TIMEOUT: break;
    }
    close_case(w);
}

/* --- actions --- */

/* SIGKILL is for those who had their time, or when there is none. */
static bool may_kill(const struct world *w)
{
    const struct world_judge *j = &w->judge;
    return j->kill_due || w->agent.group.stuck || (j->stop_due && w->now >= j->kill_by);
}

static void on_spawn(struct world *w, unsigned slot)
{
    if (w->judge.stop_due || w->judge.asked_to_leave)
        world_fail(w, "slot %u is started although the attempt is to be stopped", slot);
    if (w->leader[slot] >= 0)
        world_fail(w, "two workers of slot %u", slot);
    if (slot == 0 && world_living(w))
        world_fail(w, "a new attempt begins beside %u processes of an old one", world_living(w));
    if (w->spawn_open)
        world_fail(w, "two forks at a time");
}

static void on_signal_all(struct world *w, int sig)
{
    if (!w->judge.stop_due)
        world_fail(w, "workers are signalled without a reason");
    if (w->judge.captures && !w->judge.captured && !w->judge.at_once && !w->judge.kill_due)
        world_fail(w, "workers are signalled before what they hold is captured");
    if (sig == SIGKILL) {
        if (!may_kill(w))
            world_fail(w, "workers are killed before their grace is over");
        return;
    }
    if (sig != w->judge.stop_signal)
        world_fail(w, "workers get %s where %s was due", trace_signal(sig), trace_signal(w->judge.stop_signal));
    for (unsigned i = 0; i < w->conf.slots; i++)
        if (w->leader[i] >= 0 && w->proc[w->leader[i]].told)
            world_fail(w, "slot %u is told twice to end", i);
}

static void on_sweep(struct world *w, const struct worker_group_action *p)
{
    const struct world_judge *j = &w->judge;
    if (p->type == WORKER_GROUP_SWEEP_SLOT && w->leader[p->slot] >= 0)
        world_fail(w, "the session of slot %u is swept while its leader lives", p->slot);
    if (p->type == WORKER_GROUP_SWEEP_SLOT && p->signal == SIGKILL && !may_kill(w) &&
        w->now < j->gone_at[p->slot] + WORKER_GROUP_LINGER)
        world_fail(w, "leftovers of slot %u are killed before their time is over", p->slot);
    if (p->type != WORKER_GROUP_SWEEP_ALL)
        return;
    for (unsigned i = 0; i < w->conf.slots; i++)
        if (w->leader[i] >= 0 && !w->agent.group.stuck)
            world_fail(w, "orphans are swept while slot %u is up", i);
    if (p->signal == SIGKILL && !may_kill(w) && w->now < j->all_gone_at + WORKER_GROUP_LINGER)
        world_fail(w, "leftovers are killed before their time is over");
}

static void on_group(struct world *w, const struct worker_group_action *p)
{
    switch (p->type) {
    case WORKER_GROUP_SPAWN: on_spawn(w, p->slot); break;
    case WORKER_GROUP_SIGNAL_ALL: on_signal_all(w, p->signal); break;
    case WORKER_GROUP_SWEEP_SLOT:
    case WORKER_GROUP_SWEEP_ALL: on_sweep(w, p); break;
    }
}

/* The policy forbids another attempt. */
static bool is_forbidden(const struct world *w)
{
    enum restart_policy p = w->conf.restart_policy;
    return p == RESTART_NEVER || (p == RESTART_SMART && w->judge.hopeless);
}

static void on_prepare(struct world *w)
{
    struct world_judge *j = &w->judge;
    if (j->asked_to_leave)
        world_fail(w, "a new attempt after elrun was told to leave");
    if (++j->attempts > w->conf.max_restarts + 1)
        world_fail(w, "attempt %u with a budget of %u restarts", j->attempts, w->conf.max_restarts);
    if (j->attempts > 1 && (j->verdict != AGENT_WORKER_FAILED || w->now < j->hindsight))
        world_fail(w, "a restart that no failed worker explains");
    if (j->open)
        world_fail(w, "a restart while it is open who failed");
    if (j->attempts > 1 && !j->collected)
        world_fail(w, "a restart before the evidence is there");
    if (j->attempts > 1 && is_forbidden(w))
        world_fail(w, "a restart that the policy forbids");
    if (world_living(w))
        world_fail(w, "a restart beside %u living processes", world_living(w));
    j->captures = j->captured = false;
    j->stop_due = j->kill_due = j->at_once = j->all_gone = j->collecting = j->collected = false;
    j->empty_since = EL_NEVER;
    j->verdict = AGENT_NO_CAUSE;
    j->hindsight = 0;
    j->exited = j->exited_ok = j->failed = j->notes = j->looks = 0;
}

static void on_note(struct world *w, unsigned slot)
{
    struct world_judge *j = &w->judge;
    if (j->verdict != AGENT_WORKER_FAILED || j->verdict_slot != slot)
        world_fail(w, "slot %u is called failed, and is not the cause", slot);
    if (++j->notes > 1)
        world_fail(w, "a failure is told twice");
    if (w->now < j->hindsight)
        world_fail(w, "a failure is told before hindsight is over");
    if (j->open)
        world_fail(w, "a failure is told while it is open who failed");
}

static void on_end(struct world *w)
{
    struct world_judge *j = &w->judge;
    const struct agent *a = &w->agent;
    if (++j->ends > 1)
        world_fail(w, "END twice");
    if (j->verdict == AGENT_NO_CAUSE && j->exited_ok == w->conf.slots)
        j->verdict = AGENT_SUCCESS;
    if (a->group.stuck && j->verdict != AGENT_LEAVING)
        j->verdict = AGENT_STUCK;
    if (a->cause != j->verdict)
        world_fail(w, "the end says cause %d where %d happened", (int)a->cause, (int)j->verdict);
    bool by_slot = a->cause == AGENT_WORKER_FAILED || a->cause == AGENT_SPAWN_FAILED;
    if (by_slot && a->cause_slot != j->verdict_slot)
        world_fail(w, "the end blames slot %u where %u failed first", a->cause_slot, j->verdict_slot);
    if (a->cause == AGENT_WORKER_FAILED && j->attempts <= w->conf.max_restarts && !is_forbidden(w))
        world_fail(w, "given up after attempt %u with a budget of %u restarts", j->attempts, w->conf.max_restarts);
    if (a->cause == AGENT_WORKER_FAILED && j->notes != 1)
        world_fail(w, "a failure that nobody was told of");
    if (j->collecting && !j->collected)
        world_fail(w, "the end comes before the evidence");
    for (int i = 0; i < w->procs; i++) {
        const struct world_proc *p = &w->proc[i];
        bool orphan = p->id && p->alive && p->slot < 0 && p->parent < 0;
        if (orphan && p->d_until <= w->now && p->adopted_at < j->closed_at)
            world_fail(w, "an orphan that could be killed outlives the end");
    }
    if (a->group.stuck ? !j->saw_d : world_living(w) > 0)
        world_fail(w, a->group.stuck ? "called stuck, and nothing was" : "processes outlive the end");
}

void judge_action(struct world *w, const struct agent_action *x, const struct agent_event *ev)
{
    if (w->judge.ends && (x->type != AGENT_DO_GROUP || x->group.type == WORKER_GROUP_SPAWN))
        world_fail(w, "an action after the end");
    switch (x->type) {
    case AGENT_DO_PREPARE: on_prepare(w); break;
    case AGENT_DO_GROUP: on_group(w, &x->group); break;
    case AGENT_DO_NOTE: on_note(w, x->slot); break;
    case AGENT_DO_FORWARD:
        if (ev->type != AGENT_EV_SIGNAL || x->signal != ev->signal || w->conf.handled[x->signal] ||
            (x->signal != SIGUSR1 && x->signal != SIGUSR2))
            world_fail(w, "signal %d is forwarded", x->signal);
        break;
    case AGENT_DO_SUSPEND:
        if (ev->type != AGENT_EV_SIGNAL || ev->signal != SIGTSTP)
            world_fail(w, "suspended without a TSTP");
        break;
    case AGENT_DO_LOOK:
        if (!w->judge.open || ev->type != AGENT_EV_EXITED || ev->slot != x->slot)
            world_fail(w, "a look at slot %u", x->slot);
        break;
    case AGENT_DO_END: on_end(w); break;
    case AGENT_DO_WAIT:
        if (!w->judge.collected)
            world_fail(w, "a wait before the evidence is there");
        break;
    case AGENT_DO_UP:
    case AGENT_DO_RESULT: world_fail(w, "an action of several nodes"); break;
    case AGENT_DO_CAPTURE:
        if (w->judge.captures || !w->conf.captures)
            world_fail(w, w->judge.captures ? "what the workers hold is captured twice" : "captured, and that is off");
        if (!world_leaders(w))
            world_fail(w, "captured where nobody lives");
        if (!w->conf.captures_stay && (w->judge.attempts > w->conf.max_restarts || w->judge.asked_to_leave))
            world_fail(w, "captured for nobody");
        w->judge.captures = true;
        break;
    case AGENT_DO_COLLECT:
        if (w->judge.collecting)
            world_fail(w, "evidence is collected twice");
        w->judge.collecting = true;
        w->judge.closed_at = w->now; /* who is adopted later has a parent that cannot be killed: nobody tells elrun */
        break;
    }
}

/* --- after each step --- */

/* The core's ledger, which the failure report reads, is what really happened. */
static void check_ledger(struct world *w, unsigned slot)
{
    const struct worker_group_slot *s = &w->agent.group.slot[slot];
    const struct world_judge *j = &w->judge;
    if (s->signalled != j->was_told[slot])
        world_fail(w, "slot %u: the ledger says that elrun %s it", slot, s->signalled ? "signalled" : "did not signal");
    if (w->agent.group.failed != j->failed)
        world_fail(w, "%u failed, the ledger says %u", j->failed, w->agent.group.failed);
}

/* Whoever is to be stopped has been told, in this very step, unless a fork is under way. */
static void check_told(struct world *w)
{
    const struct world_judge *j = &w->judge;
    bool kills = j->kill_due || j->at_once;
    if (!j->stop_due || w->spawn_open || j->ends || (j->captures && !j->captured && !kills))
        return;
    for (unsigned i = 0; i < w->conf.slots; i++) {
        const struct world_proc *l = w->leader[i] >= 0 ? &w->proc[w->leader[i]] : NULL;
        if (l && !l->fails_exec && (kills ? !l->told_kill : !l->told && !l->told_kill))
            world_fail(w, "slot %u runs on and was not told to end", i);
    }
}

static void check_bounds(struct world *w)
{
    struct world_judge *j = &w->judge;
    enum agent_state state = w->agent.state;
    bool up = state == AGENT_RUNNING || state == AGENT_STOPPING;
    bool leaders = w->spawn_open;
    for (unsigned i = 0; i < w->conf.slots; i++)
        leaders |= w->leader[i] >= 0;
    bool complete = j->exited == w->conf.slots || j->stop_due;
    if (j->open && w->now > j->open_until + WORLD_LATE_MAX)
        world_fail(w, "it is open for too long who failed");
    if (!leaders && complete && up && !j->all_gone) {
        j->all_gone = true;
        j->all_gone_at = w->now;
    }
    if (!up || leaders || !complete || world_living(w))
        j->empty_since = EL_NEVER;
    else if (j->empty_since == EL_NEVER)
        j->empty_since = w->now;
    if (j->empty_since != EL_NEVER && w->now > j->empty_since + EL_MS(10))
        world_fail(w, "nothing is left, and the attempt is not closed");
    bool waits = j->captures && !j->captured;
    if (up && j->stop_due && !waits && leaders && w->now > leaders_gone_by(w))
        world_fail(w, "a stop takes longer than grace and the limit of state D");
    if (up && j->all_gone && w->now > leftovers_gone_by(w))
        world_fail(w, "leftovers take longer than linger and the limit of state D");
}

/* Steps that only time makes: none may ask for another at once for ever, and a second holds few. */
static void check_economy(struct world *w, const struct agent_event *ev)
{
    struct world_judge *j = &w->judge;
    if (ev->type != AGENT_EV_TIMEOUT)
        return;
    j->burst = w->now == j->burst_at ? j->burst + 1 : 0;
    j->burst_at = w->now;
    if (j->burst > w->conf.slots + 4)
        world_fail(w, "the deadline does not move: a busy loop");
    j->in_second = w->now / EL_SEC(1) == j->second ? j->in_second + 1 : 0;
    j->second = w->now / EL_SEC(1);
    if (j->in_second > 2 * w->conf.slots + 30)
        world_fail(w, "%u time-outs in one second", j->in_second);
}

void judge_step(struct world *w, const struct agent_event *ev)
{
    if (w->judge.ends && w->agent.state != AGENT_ENDED)
        world_fail(w, "alive after the end");
    if (w->judge.ends && agent_deadline(&w->agent) != EL_NEVER)
        world_fail(w, "a deadline after the end");
    if (w->agent.restarts != (w->judge.attempts ? w->judge.attempts - 1 : 0))
        world_fail(w, "%u restarts counted in attempt %u", w->agent.restarts, w->judge.attempts);
    if (ev->type == AGENT_EV_EXITED && !w->judge.ends)
        check_ledger(w, ev->slot);
    check_told(w);
    check_bounds(w);
    check_economy(w, ev);
}

void judge_end_of_run(struct world *w)
{
    if (w->failed)
        return;
    if (!w->judge.ends)
        world_fail(w, "nothing left to happen, and no end (%s)", agent_state_name(w->agent.state));
    for (int i = 0; i < w->procs; i++) {
        const struct world_proc *p = &w->proc[i];
        if (p->id && !p->alive)
            world_fail(w, "a zombie is left");
        if (p->id && p->alive && p->d_until != EL_NEVER)
            world_fail(w, "a process that could have been ended is left");
    }
}
