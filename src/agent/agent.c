#include "agent/agent.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>

#include "agent/signal_settle.h"

enum { SIG_INT = 2, SIG_USR1 = 10, SIG_USR2 = 12, SIG_TERM = 15, SIG_TSTP = 20 }; /* Linux, x86-64 and aarch64 */
enum { SIG_ABRT = 6 };

/* Each state with its allowed successors. */
static const struct {
    const char *name;
    unsigned next; /* bits by enum agent_state */
} states[] = {
    [AGENT_IDLE] = {"idle", 1u << AGENT_PREPARING | 1u << AGENT_ENDED},
    [AGENT_PREPARING] = {"starting", 1u << AGENT_RUNNING | 1u << AGENT_IDLE | 1u << AGENT_ENDED},
    [AGENT_RUNNING] = {"running", 1u << AGENT_STOPPING | 1u << AGENT_COLLECTING},
    [AGENT_STOPPING] = {"stopping", 1u << AGENT_COLLECTING},
    [AGENT_COLLECTING] = {"finishing", 1u << AGENT_PREPARING | 1u << AGENT_IDLE | 1u << AGENT_ENDED},
    [AGENT_ENDED] = {"ended", 0},
};

const char *agent_state_name(enum agent_state state)
{
    return states[state].name;
}

static void agent_move(struct agent *a, enum agent_state to)
{
    assert(states[a->state].next & 1u << to);
    a->state = to;
}

static struct agent_action *agent_act(struct agent_actions *out, enum agent_action_type type)
{
    assert(out->n < AGENT_ACTIONS_MAX);
    struct agent_action *x = &out->v[out->n++];
    *x = (struct agent_action){.type = type};
    return x;
}

static void agent_take_group(struct agent_actions *out, const struct worker_group_actions *group)
{
    for (unsigned i = 0; i < group->n; i++)
        agent_act(out, AGENT_DO_GROUP)->group = group->v[i];
}

int agent_init(struct agent *a, const struct agent_conf *conf, struct el_mem *mem)
{
    *a = (struct agent){
        .conf = *conf, .parting_until = EL_NEVER, .judge_until = EL_NEVER, .again_at = EL_NEVER, .ending = -1};
    if (!conf->managed &&
        budget_init(&a->budget, conf->max_restarts, conf->restart_window, conf->max_fruitless, 0, 0, 0, mem) < 0)
        return -1;
    return worker_group_init(&a->group, conf->slots, mem);
}

void agent_free(struct agent *a, struct el_mem *mem)
{
    budget_free(&a->budget, mem);
    worker_group_free(&a->group, mem);
}

static void agent_prepare(struct agent *a, struct agent_actions *out)
{
    agent_move(a, AGENT_PREPARING);
    a->cause = AGENT_NO_CAUSE;
    a->hindsight_until = 0;
    a->note_due = a->follows = a->waits = false;
    a->judge_until = a->again_at = EL_NEVER;
    a->looks = 0;
    a->collected = a->hung = a->parted = false;
    a->capture = AGENT_CAPTURE_NOT;
    a->held = false;
    a->parting_until = EL_NEVER;
    a->ending = -1;
    a->stopped = 0;
    a->attempts++;
    agent_act(out, AGENT_DO_PREPARE);
}

static void agent_end(struct agent *a, struct agent_actions *out)
{
    agent_move(a, AGENT_ENDED);
    agent_act(out, AGENT_DO_END);
}

/* Nothing more is done with this attempt. */
static void agent_conclude(struct agent *a, struct agent_actions *out)
{
    if (!a->conf.managed) {
        agent_end(a, out);
        return;
    }
    agent_move(a, AGENT_IDLE);
    agent_act(out, AGENT_DO_RESULT);
}

/* The first cause stays, except that being told to leave explains what came shortly before it. */
static void blame(struct agent *a, enum agent_cause cause, unsigned slot)
{
    if (a->cause != AGENT_NO_CAUSE)
        return;
    a->cause = cause;
    a->cause_slot = slot;
}

/* Somebody will read it: what is in memory alone is of use to another attempt only. */
static bool is_worth_capturing(const struct agent *a, el_usec now)
{
    if (a->conf.managed)
        return a->conf.captures; /* that is known above */
    bool again = a->cause != AGENT_LEAVING && a->conf.restart_policy != RESTART_NEVER && budget_left(&a->budget, now);
    return a->conf.captures && (a->conf.captures_stay || again);
}

/* What the workers hold is asked for once in an attempt, and only when all of them have been started. */
static bool ask_capture(struct agent *a, el_usec now, struct agent_actions *out)
{
    bool up =
        a->group.phase == WORKER_GROUP_UP && a->group.started == a->group.slots && !a->group.spawning && a->group.up;
    if (!up || a->parted || !is_worth_capturing(a, now) || a->capture == AGENT_CAPTURE_OVER)
        return false;
    if (a->capture == AGENT_CAPTURE_NOT)
        agent_act(out, AGENT_DO_CAPTURE);
    a->capture = AGENT_CAPTURE_ASKED;
    return true;
}

/* Nobody is signalled before that is over, unless there is no time. */
static bool hold_back(struct agent *a, int signal, el_usec grace, el_usec now, struct agent_actions *out)
{
    if (!a->held) {
        a->held_signal = signal; /* the first one stays, as with whoever is told at once */
        a->held_grace = grace;
    }
    a->held_grace = grace < a->held_grace ? grace : a->held_grace;
    a->held = grace && ask_capture(a, now, out);
    return a->held;
}

static void agent_stop(struct agent *a, int signal, el_usec grace, el_usec now, struct agent_actions *out)
{
    struct worker_group_actions group = {0};
    a->judge_until = EL_NEVER;
    a->stopped = a->stopped ? a->stopped : now;
    if (a->state == AGENT_RUNNING)
        agent_move(a, AGENT_STOPPING);
    if (hold_back(a, signal, grace, now, out))
        return;
    worker_group_stop(&a->group, a->held_signal, a->held_grace, now, &group);
    agent_take_group(out, &group);
}

static void agent_on_captured(struct agent *a, const struct agent_event *ev, el_usec now, struct agent_actions *out)
{
    if (a->capture != AGENT_CAPTURE_ASKED || (ev->attempt && ev->attempt != a->attempts))
        return; /* of an attempt that is over */
    a->capture = AGENT_CAPTURE_OVER;
    a->hindsight_until = a->sure_at < a->hindsight_until ? a->sure_at : a->hindsight_until;
    if (a->held)
        agent_stop(a, a->held_signal, a->held_grace, now, out);
}

/* Those whom it would leave alone in a collective are not worse off for being captured first. */
static void agent_on_failing(struct agent *a, el_usec now, struct agent_actions *out)
{
    if (a->state == AGENT_RUNNING)
        ask_capture(a, now, out);
}

static bool has_budget(const struct agent *a, el_usec now)
{
    return a->cause == AGENT_WORKER_FAILED && !a->group.stuck && !a->conf.managed && budget_left(&a->budget, now);
}

static_assert(BUDGET_FRUITLESS == EL_SEC(60), "a text below says so");

/* As far as it can be known before the evidence is there. */
static bool may_restart(const struct agent *a, el_usec now)
{
    return has_budget(a, now) && a->conf.restart_policy != RESTART_NEVER;
}

/* A worker failed: is there another attempt? */
static bool try_again(struct agent *a, el_usec now)
{
    if (!has_budget(a, now))
        return false;
    const struct restart_round round = {
        .policy = a->conf.restart_policy, .workers = a->conf.slots, .nodes = 1, .lasted = a->stopped - a->began};
    restart_next(&round, &a->digest, &a->history, &a->verdict);
    if (a->verdict.next == RESTART_STOP)
        return false;
    /* torchrun knows max_restarts only; and nothing that passes by itself is the program's fruitlessness. */
    bool counted = a->conf.restart_policy != RESTART_ALWAYS && a->digest.kind != RESTART_PASSING;
    uint64_t steps = a->digest.steps_known ? a->digest.steps : BUDGET_NO_STEPS;
    if (counted && !budget_lived(&a->budget, a->stopped - a->began, BUDGET_FRUITLESS, steps)) {
        snprintf(a->verdict.why, sizeof a->verdict.why,
                 "no restart: %llu attempts in a row %s (--max-fruitless-restarts=%u; --restart-policy=always counts "
                 "--max-restarts only)",
                 (unsigned long long)a->budget.fruitless,
                 steps == BUDGET_NO_STEPS ? "ended within 60 s" : "brought nothing, the last one no new step",
                 a->conf.max_fruitless);
        return false;
    }
    return true;
}

static void again(struct agent *a, el_usec now, struct agent_actions *out)
{
    a->again_at = EL_NEVER;
    bool charged = budget_charge(&a->budget, now);
    assert(charged); /* time only makes the budget larger */
    (void)charged;
    a->restarts++;
    agent_prepare(a, out);
}

/* Everything of the attempt is gone and known: what now? */
static void agent_decide(struct agent *a, el_usec now, struct agent_actions *out)
{
    if (a->state != AGENT_COLLECTING || !a->collected || now < a->hindsight_until || a->judge_until != EL_NEVER)
        return;
    if (a->group.stuck && a->cause != AGENT_LEAVING)
        a->cause = AGENT_STUCK;
    if (a->again_at != EL_NEVER) {
        if (a->again_at <= now)
            again(a, now, out);
    } else if (!try_again(a, now)) {
        agent_conclude(a, out);
    } else if (a->verdict.wait) {
        a->again_at = now + a->verdict.wait;
        agent_act(out, AGENT_DO_WAIT);
    } else {
        again(a, now, out);
    }
}

/* After each event that may have closed the worker group. */
static void agent_close_attempt(struct agent *a, el_usec now, struct agent_actions *out)
{
    if (a->group.phase != WORKER_GROUP_CLOSED || (a->state != AGENT_RUNNING && a->state != AGENT_STOPPING))
        return;
    if (a->parted)
        blame(a, AGENT_HALTED, 0);
    else if (worker_group_succeeded(&a->group))
        blame(a, AGENT_SUCCESS, 0);
    assert(a->cause != AGENT_NO_CAUSE || a->group.stuck);
    a->held = false;
    if (a->cause == AGENT_WORKER_FAILED && !a->stopped)
        a->stopped = now; /* all of them have failed while it was open whose fault it is */
    agent_move(a, AGENT_COLLECTING);
    agent_act(out, AGENT_DO_COLLECT);
}

static void on_prepared(struct agent *a, const struct agent_event *ev, el_usec now, struct agent_actions *out)
{
    if (a->state != AGENT_PREPARING || (ev->attempt && ev->attempt != a->attempts))
        return; /* it took so long that nobody waits for it any more */
    if (!ev->ok) {
        blame(a, AGENT_PREPARE_FAILED, 0);
        agent_conclude(a, out);
        return;
    }
    agent_move(a, AGENT_RUNNING);
    a->began = now;
    struct worker_group_actions group = {0};
    worker_group_start(&a->group, &group);
    agent_take_group(out, &group);
}

static void agent_leave(struct agent *a, int signal, el_usec now, struct agent_actions *out);

/* A signal from outside is nobody's consequence; and without anybody else there is no other cause. */
static bool may_follow(const struct agent *a, const struct agent_event *ev)
{
    bool judging = a->judge_until != EL_NEVER, others = a->group.up || a->group.spawning || a->conf.managed;
    bool own = a->conf.consequence && !signal_settle_is_from_outside(ev->signal);
    return own && (judging || (a->cause == AGENT_NO_CAUSE && others));
}

/* The coordinator leads the emergency checkpoint of the live workers, so the failure is reported to it afterwards. */
static void look_back(struct agent *a, int signal, el_usec now)
{
    a->sure_at = now + signal_settle_time(signal, may_restart(a, now) || a->conf.managed);
    bool waits = a->conf.managed && a->held && signal_settle_is_from_outside(signal);
    a->hindsight_until = waits ? now + SIGNAL_SETTLE_LONG : a->sure_at;
}

/* The first one that failed by itself: the others are stopped. */
static void agent_condemn(struct agent *a, unsigned slot, el_usec now, struct agent_actions *out)
{
    if (a->judge_until != EL_NEVER)
        a->cause_slot = slot;
    a->follows = a->waits = false;
    blame(a, AGENT_WORKER_FAILED, slot);
    agent_stop(a, SIG_TERM, a->conf.grace, now, out);
}

static void on_exited(struct agent *a, const struct agent_event *ev, el_usec now, struct agent_actions *out)
{
    const struct worker_group_slot *slot = &a->group.slot[ev->slot];
    bool ours = slot->signalled, first = a->cause == AGENT_NO_CAUSE;
    struct worker_group_actions group = {0};
    worker_group_exited(&a->group, ev->slot, ev->code, ev->signal, now, &group);
    agent_take_group(out, &group);
    if (a->ending == (int)ev->slot)
        a->parting_until = now;
    if (!worker_group_slot_bad(slot) || ours || a->ending >= 0)
        return;
    /* The terminal's Ctrl-C goes to the worker that has the terminal, and not to elrun; 130 is a shell's word for it.
     */
    if (first && (ev->typed || ev->signal == SIG_INT || ev->code == 128 + SIG_INT) && a->conf.slots == 1 &&
        !a->conf.managed) {
        agent_leave(a, SIG_INT, now, out);
        return;
    }
    bool open = first || a->judge_until != EL_NEVER;
    a->note_due |= open;
    if (!may_follow(a, ev)) {
        agent_condemn(a, ev->slot, now, out);
        if (open)
            look_back(a, ev->signal, now);
        return;
    }
    blame(a, AGENT_WORKER_FAILED, ev->slot);
    if (first)
        a->judge_until = now + a->conf.consequence;
    else if (now >= a->judge_until)
        return; /* too late to be the cause: the others are stopped in this step */
    a->looks++;
    agent_act(out, AGENT_DO_LOOK)->slot = ev->slot;
}

static void agent_on_looked(struct agent *a, const struct agent_event *ev, el_usec now, struct agent_actions *out)
{
    if (a->judge_until == EL_NEVER || (ev->attempt && ev->attempt != a->attempts))
        return; /* something was quicker */
    assert(a->looks);
    a->looks--;
    if (ev->follows) {
        a->follows |= ev->slot == a->cause_slot;
    } else if (!ev->waits) {
        agent_condemn(a, ev->slot, now, out);
    } else if (!a->waits) { /* for want of a better one this is the cause */
        a->cause_slot = ev->slot;
        a->waits = true;
        a->follows = false;
    }
}

static void on_none_ends(struct agent *a, el_usec now, struct agent_actions *out)
{
    if (a->ending >= 0)
        a->parting_until = now;
    if (a->judge_until != EL_NEVER && a->waits && !a->looks)
        agent_condemn(a, a->cause_slot, now, out);
}

/* Is there anything left to wait for? */
static void agent_judge(struct agent *a, el_usec now, struct agent_actions *out)
{
    if (a->judge_until == EL_NEVER)
        return;
    bool more = a->conf.managed || a->group.up || a->group.spawning || a->looks;
    if (more && now < a->judge_until)
        return;
    if (a->state == AGENT_RUNNING)
        agent_stop(a, SIG_TERM, a->conf.grace, now, out);
    a->judge_until = EL_NEVER;
}

static void on_hung(struct agent *a, const struct agent_event *ev, el_usec now, struct agent_actions *out)
{
    if (a->state != AGENT_RUNNING || a->cause != AGENT_NO_CAUSE || (!a->group.up && !a->group.spawning))
        return; /* something was quicker */
    a->hung = a->note_due = true;
    a->hindsight_until = 0;
    blame(a, AGENT_WORKER_FAILED, ev->slot);
    agent_stop(a, SIG_ABRT, AGENT_ABORT_GRACE, now, out);
}

static void agent_on_parted(struct agent *a, const struct agent_event *ev)
{
    assert(a->conf.managed && ev->slot < a->group.slots);
    if (a->state != AGENT_RUNNING || a->group.slot[ev->slot].state != WORKER_GROUP_SLOT_UP)
        return;
    a->parted = true;
    a->group.slot[ev->slot].signalled = true; /* asked to go, though not by a signal */
}

/* The siblings are stopped first; words come when hindsight is over. */
static void agent_note(struct agent *a, el_usec now, struct agent_actions *out)
{
    if (!a->note_due || now < a->hindsight_until || a->judge_until != EL_NEVER)
        return;
    a->note_due = false;
    agent_act(out, AGENT_DO_NOTE)->slot = a->cause_slot;
}

static void on_spawn_failed(struct agent *a, const struct agent_event *ev, el_usec now, struct agent_actions *out)
{
    struct worker_group_actions group = {0};
    /* The report and the exit of such a child come by two ways: the exit may have been first, and was no worker's. */
    if (ev->forked && a->cause == AGENT_WORKER_FAILED && a->cause_slot == ev->slot) {
        a->cause = AGENT_SPAWN_FAILED;
        a->note_due = false;
    }
    blame(a, AGENT_SPAWN_FAILED, ev->slot);
    if (ev->forked)
        a->group.slot[ev->slot].signalled = true; /* its exit is ours to explain, not a worker's failure */
    else
        worker_group_spawn_failed(&a->group, now, &group);
    agent_take_group(out, &group);
    agent_stop(a, SIG_TERM, a->conf.grace, now, out);
}

static void agent_leave(struct agent *a, int signal, el_usec now, struct agent_actions *out)
{
    bool again = a->cause == AGENT_LEAVING;
    if (a->state == AGENT_RUNNING && worker_group_succeeded(&a->group))
        blame(a, AGENT_SUCCESS, 0); /* only leftovers are still there: the work is done */
    /* A failure that ends the job anyway stays its cause; one that would have led to a restart, or that hindsight shows
     * to be part of the same farewell, does not. */
    bool restarting = a->cause == AGENT_WORKER_FAILED && (may_restart(a, now) || now < a->hindsight_until);
    if (a->cause == AGENT_NO_CAUSE || restarting) {
        a->cause = AGENT_LEAVING;
        a->leave_signal = signal;
        a->hindsight_until = 0;
        a->judge_until = a->again_at = EL_NEVER;
        a->note_due = false;
    }
    el_usec grace = signal == SIG_INT && a->interrupts > 1 ? 0 : a->conf.grace;
    if (again && a->held)
        a->capture = AGENT_CAPTURE_OVER; /* one signal is waited with, not two */
    if (a->state == AGENT_RUNNING || a->state == AGENT_STOPPING)
        agent_stop(a, signal, grace, now, out);
    else if (a->state == AGENT_IDLE || a->state == AGENT_PREPARING) /* a frozen log folder must not hold us */
        agent_end(a, out);
}

/* --- managed: orders from above --- */

static void on_attempt(struct agent *a, const struct agent_event *ev, struct agent_actions *out)
{
    assert(a->conf.managed && a->state == AGENT_IDLE);
    a->restarts = ev->restarts;
    if (!a->group.up) {
        agent_prepare(a, out);
        return;
    }
    a->cause = AGENT_STUCK; /* a worker of the last attempt is still there: its slot is not free */
    agent_act(out, AGENT_DO_RESULT);
}

/* All that still run stand at the boundary. */
static bool are_parting(const struct agent *a)
{
    for (unsigned i = 0; a->parted && i < a->group.slots; i++)
        if (a->group.slot[i].state == WORKER_GROUP_SLOT_UP && !a->group.slot[i].signalled)
            return false;
    return a->parted && a->group.started == a->group.slots;
}

/* The boundary was for this: they end by themselves, unless that takes too long. */
static bool let_part(struct agent *a, const struct agent_event *ev, el_usec now)
{
    if (a->state != AGENT_RUNNING || !ev->grace || a->parting_until != EL_NEVER || !are_parting(a))
        return false;
    a->parting_until = now + (ev->grace < AGENT_PARTING ? ev->grace : AGENT_PARTING);
    a->parting_grace = ev->grace;
    a->parting_signal = ev->signal;
    return true;
}

static void end_parting(struct agent *a, el_usec now, struct agent_actions *out)
{
    if (a->parting_until > now)
        return;
    a->parting_until = EL_NEVER;
    a->ending = -1;
    if (a->state == AGENT_RUNNING)
        agent_stop(a, a->parting_signal, a->parting_grace, now, out);
}

/* A worker elsewhere has failed, perhaps since this one had: its status proves it, and a signal would hide it. */
static bool let_end(struct agent *a, const struct agent_event *ev, el_usec now)
{
    bool first = a->parting_until == EL_NEVER && a->judge_until == EL_NEVER;
    if (a->state != AGENT_RUNNING || !ev->waits || !ev->grace || !first ||
        a->group.slot[ev->slot].state != WORKER_GROUP_SLOT_UP)
        return false;
    el_usec wait = ev->grace / 2 < a->conf.consequence ? ev->grace / 2 : a->conf.consequence;
    a->parting_until = now + wait;
    a->parting_grace = ev->grace - wait; /* both together take no longer */
    a->parting_signal = ev->signal;
    a->ending = (int)ev->slot;
    return true;
}

static void on_halt(struct agent *a, const struct agent_event *ev, el_usec now, struct agent_actions *out)
{
    assert(a->conf.managed);
    if (a->state == AGENT_RUNNING && !a->parted && worker_group_succeeded(&a->group))
        blame(a, AGENT_SUCCESS, 0);
    if (a->state == AGENT_PREPARING || a->state == AGENT_RUNNING)
        blame(a, AGENT_HALTED, 0);
    if (let_part(a, ev, now) || let_end(a, ev, now))
        return;
    a->ending = -1;
    if (a->judge_until != EL_NEVER)
        a->note_due = false; /* the cause is on another node; with its evidence this failure is told all the same */
    a->judge_until = a->parting_until = EL_NEVER;
    if (a->state == AGENT_RUNNING || a->state == AGENT_STOPPING)
        agent_stop(a, ev->signal, ev->grace, now, out);
    else if (a->state == AGENT_PREPARING)
        agent_conclude(a, out);
}

static void on_finish(struct agent *a, struct agent_actions *out)
{
    assert(a->conf.managed);
    if (a->state != AGENT_IDLE)
        return;
    if (a->cause == AGENT_NO_CAUSE)
        a->cause = AGENT_HALTED;
    agent_end(a, out);
}

static void agent_on_signal(struct agent *a, const struct agent_event *ev, el_usec now, struct agent_actions *out)
{
    int signal = ev->signal;
    if (a->state == AGENT_ENDED || signal <= 0 || signal > AGENT_SIGNAL_MAX)
        return;
    if (signal == SIG_INT)
        a->interrupts++;
    if (a->conf.handled[signal])
        agent_leave(a, signal, now, out);
    else if (signal == SIG_USR1 || signal == SIG_USR2)
        agent_act(out, AGENT_DO_FORWARD)->signal = signal;
    else if (signal == SIG_TSTP)
        agent_act(out, AGENT_DO_SUSPEND);
}

static void on_group_event(struct agent *a, const struct agent_event *ev, el_usec now, struct agent_actions *out)
{
    struct worker_group_actions group = {0};
    if (ev->type == AGENT_EV_SPAWNED) {
        worker_group_spawned(&a->group, ev->slot, &group);
        if (a->conf.managed && a->group.started == a->group.slots && a->group.phase == WORKER_GROUP_UP)
            agent_act(out, AGENT_DO_UP);
    } else if (ev->type == AGENT_EV_SWEPT)
        worker_group_swept(&a->group, ev->left, now, &group);
    else if (ev->type == AGENT_EV_ORPHAN)
        worker_group_orphan_reaped(&a->group, now, &group);
    else if (worker_group_deadline(&a->group) <= now)
        worker_group_timeout(&a->group, now, &group);
    agent_take_group(out, &group);
}

void agent_step(struct agent *a, const struct agent_event *ev, el_usec now, struct agent_actions *out)
{
    switch (ev->type) {
    case AGENT_EV_START:
        if (a->state == AGENT_IDLE) /* else a signal was quicker */
            agent_prepare(a, out);
        break;
    case AGENT_EV_ATTEMPT: on_attempt(a, ev, out); break;
    case AGENT_EV_HALT: on_halt(a, ev, now, out); break;
    case AGENT_EV_FINISH: on_finish(a, out); break;
    case AGENT_EV_PREPARED: on_prepared(a, ev, now, out); break;
    case AGENT_EV_SPAWN_FAILED: on_spawn_failed(a, ev, now, out); break;
    case AGENT_EV_EXITED: on_exited(a, ev, now, out); break;
    case AGENT_EV_PARTED: agent_on_parted(a, ev); break;
    case AGENT_EV_LOOKED: agent_on_looked(a, ev, now, out); break;
    case AGENT_EV_NONE_ENDS: on_none_ends(a, now, out); break;
    case AGENT_EV_HUNG: on_hung(a, ev, now, out); break;
    case AGENT_EV_FAILING: agent_on_failing(a, now, out); break;
    case AGENT_EV_CAPTURED: agent_on_captured(a, ev, now, out); break;
    case AGENT_EV_SIGNAL: agent_on_signal(a, ev, now, out); break;
    case AGENT_EV_COLLECTED:
        a->collected = a->state == AGENT_COLLECTING;
        a->digest = ev->digest ? *ev->digest : (struct restart_digest){.kind = RESTART_OTHER};
        break;
    case AGENT_EV_SPAWNED:
    case AGENT_EV_SWEPT:
    case AGENT_EV_ORPHAN:
    case AGENT_EV_TIMEOUT: on_group_event(a, ev, now, out); break;
    }
    end_parting(a, now, out);
    agent_judge(a, now, out);
    agent_note(a, now, out);
    agent_close_attempt(a, now, out);
    agent_decide(a, now, out);
}
