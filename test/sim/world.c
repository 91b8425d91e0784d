#include "sim/world.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- chance and time --- */

static el_usec between(struct world *w, el_usec low, el_usec high)
{
    return low + el_rng_below(&w->rng, high - low + 1);
}

static bool chance(struct world *w, unsigned per_mille)
{
    return per_mille && el_rng_below(&w->rng, 1000) < per_mille;
}

static bool earlier(const struct world_item *a, const struct world_item *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void push(struct world *w, struct world_item it)
{
    assert(w->items < WORLD_ITEMS_MAX);
    it.seq = w->seq++;
    unsigned i = w->items++;
    for (; i && earlier(&it, &w->item[(i - 1) / 2]); i = (i - 1) / 2)
        w->item[i] = w->item[(i - 1) / 2];
    w->item[i] = it;
}

static struct world_item pop(struct world *w)
{
    struct world_item top = w->item[0], last = w->item[--w->items];
    unsigned i = 0, kid;
    while ((kid = 2 * i + 1) < w->items) {
        if (kid + 1 < w->items && earlier(&w->item[kid + 1], &w->item[kid]))
            kid++;
        if (!earlier(&w->item[kid], &last))
            break;
        w->item[i] = w->item[kid];
        i = kid;
    }
    w->item[i] = last;
    return top;
}

static void push_event(struct world *w, el_usec at, struct agent_event ev)
{
    push(w, (struct world_item){.at = at, .kind = WORLD_EVENT, .proc = -1, .event = ev});
}

void world_fail(struct world *w, const char *format, ...)
{
    if (w->failed)
        return;
    w->failed = true;
    va_list ap;
    va_start(ap, format);
    vsnprintf(w->why, sizeof w->why, format, ap);
    va_end(ap);
}

/* --- processes --- */

unsigned world_living(const struct world *w)
{
    unsigned n = 0;
    for (int i = 0; i < w->procs; i++)
        n += w->proc[i].id && w->proc[i].alive;
    return n;
}

unsigned world_orphans(const struct world *w)
{
    unsigned n = 0;
    for (int i = 0; i < w->procs; i++)
        n += w->proc[i].id && w->proc[i].alive && w->proc[i].parent < 0 && w->proc[i].slot < 0;
    return n;
}

static int proc_new(struct world *w)
{
    int i = 0;
    while (i < w->procs && w->proc[i].id)
        i++;
    assert(i < WORLD_PROCS_MAX);
    if (i == w->procs)
        w->procs++;
    w->proc[i] = (struct world_proc){.id = ++w->ids, .slot = -1, .parent = -1, .alive = true};
    struct world_proc *p = &w->proc[i];
    p->ignores_term = chance(w, w->faults.ignores_term);
    if (chance(w, w->faults.state_d))
        p->d_until = chance(w, 300) ? EL_NEVER : w->now + between(w, 0, EL_SEC(60));
    return i;
}

static void die_at(struct world *w, int i, el_usec at, int code, int sig)
{
    push(w,
         (struct world_item){.at = at, .kind = WORLD_DIE, .proc = i, .id = w->proc[i].id, .code = code, .signal = sig});
}

/* How the process would end if nobody disturbed it, and whom it forks before. */
static void plan_life(struct world *w, int i)
{
    el_usec end = w->now + (chance(w, 100) ? between(w, 0, EL_MS(3)) : between(w, EL_MS(10), EL_SEC(20)));
    static const int signals[] = {SIGTERM, SIGKILL, SIGSEGV, SIGINT, SIGABRT, SIGHUP};
    if (chance(w, w->faults.killed))
        die_at(w, i, end, -1, signals[el_rng_below(&w->rng, 6)]);
    else
        die_at(w, i, end, chance(w, w->faults.bad_exit) ? (int)between(w, 1, 255) : 0, -1);
    for (unsigned n = 0; w->proc[i].depth < 2 && n < 2; n++)
        if (chance(w, w->faults.kids))
            push(w, (struct world_item){
                        .at = between(w, w->now, end), .kind = WORLD_FORK, .proc = i, .id = w->proc[i].id});
}

static void fork_kid(struct world *w, int parent)
{
    int i = proc_new(w);
    struct world_proc *p = &w->proc[i];
    p->parent = parent;
    p->depth = w->proc[parent].depth + 1;
    p->session = chance(w, w->faults.escapes) ? p->id : w->proc[parent].session;
    plan_life(w, i);
}

static void spawn(struct world *w, unsigned slot)
{
    el_usec answer = w->now + (chance(w, 300) ? between(w, 0, EL_MS(3)) : 0);
    w->spawn_open = true;
    if (chance(w, w->faults.fork_fails)) {
        push_event(w, answer, (struct agent_event){.type = AGENT_EV_SPAWN_FAILED, .slot = slot});
        return;
    }
    int i = proc_new(w);
    struct world_proc *p = &w->proc[i];
    p->slot = (int)slot;
    p->session = w->session[slot] = p->id;
    p->spawned_at = answer;
    w->leader[slot] = i;
    push_event(w, answer, (struct agent_event){.type = AGENT_EV_SPAWNED, .slot = slot});
    if (chance(w, w->faults.exec_fails)) {
        p->fails_exec = true;
        p->d_until = 0;
        die_at(w, i, w->now + between(w, 0, EL_MS(1)), 127, -1);
        push_event(w, answer + between(w, 0, EL_MS(1)),
                   (struct agent_event){.type = AGENT_EV_SPAWN_FAILED, .slot = slot, .forked = true});
        return;
    }
    plan_life(w, i);
}

static void die(struct world *w, int i, int code, int sig)
{
    struct world_proc *p = &w->proc[i];
    if (w->now < p->d_until) {
        if (p->d_until != EL_NEVER)
            die_at(w, i, p->d_until, code, sig);
        return;
    }
    p->alive = false;
    p->code = code;
    p->signal = sig;
    for (int k = 0; k < w->procs; k++)
        if (w->proc[k].id && w->proc[k].alive && w->proc[k].parent == i) {
            w->proc[k].parent = -1; /* elrun is the subreaper */
            w->proc[k].adopted_at = w->now;
        }
    el_usec seen = w->now + (chance(w, 500) ? between(w, 0, EL_MS(1)) : 0);
    if (p->slot >= 0) {
        p->unknown = chance(w, w->faults.unknown);
        push_event(w, seen > p->spawned_at ? seen : p->spawned_at,
                   (struct agent_event){.type = AGENT_EV_EXITED,
                                        .slot = (unsigned)p->slot,
                                        .code = p->unknown ? -1 : code,
                                        .signal = p->unknown ? -1 : sig});
        return; /* a zombie until the core has seen it */
    }
    if (p->parent < 0)
        push_event(w, seen, (struct agent_event){.type = AGENT_EV_ORPHAN});
    p->id = 0;
}

static void signal_proc(struct world *w, int i, int sig)
{
    struct world_proc *p = &w->proc[i];
    if (!p->alive || !sig)
        return;
    if (w->now < p->d_until)
        w->judge.saw_d = true;
    if (sig == SIGKILL)
        die_at(w, i, w->now, -1, SIGKILL);
    else if (!p->ignores_term && chance(w, 300)) { /* a handler that saves something first */
        int code = chance(w, 500) ? 0 : 128 + sig; /* one draw a statement: C does not order arguments */
        die_at(w, i, w->now + between(w, 0, EL_SEC(3)), code, -1);
    } else if (!p->ignores_term)
        die_at(w, i, w->now + (chance(w, 500) ? between(w, 0, EL_MS(20)) : 0), -1, sig);
}

/* --- the shell: performs actions --- */

static void signal_groups(struct world *w, int sig)
{
    for (unsigned slot = 0; slot < w->conf.slots; slot++) {
        if (w->leader[slot] < 0)
            continue;
        struct world_proc *l = &w->proc[w->leader[slot]];
        l->told += sig != SIGKILL;
        l->told_kill += sig == SIGKILL;
        for (int i = 0; i < w->procs; i++)
            if (w->proc[i].id && w->proc[i].session == l->session)
                signal_proc(w, i, sig);
    }
}

/* session 0: all */
static void signal_orphans(struct world *w, uint32_t session, int sig)
{
    for (int i = 0; i < w->procs; i++) {
        struct world_proc *p = &w->proc[i];
        if (p->id && p->slot < 0 && p->parent < 0 && (!session || p->session == session))
            signal_proc(w, i, sig);
    }
}

static void perform_group(struct world *w, const struct worker_group_action *p)
{
    switch (p->type) {
    case WORKER_GROUP_SPAWN: spawn(w, p->slot); break;
    case WORKER_GROUP_SIGNAL_ALL: signal_groups(w, p->signal); break;
    case WORKER_GROUP_SWEEP_SLOT: signal_orphans(w, w->session[p->slot], p->signal); break;
    case WORKER_GROUP_SWEEP_ALL:
        signal_orphans(w, 0, p->signal);
        push_event(w, w->now, (struct agent_event){.type = AGENT_EV_SWEPT, .left = world_orphans(w)});
        break;
    }
}

static void perform(struct world *w, const struct agent_action *x)
{
    el_usec slow = chance(w, w->faults.slow) ? between(w, EL_MS(100), EL_SEC(10)) : between(w, EL_MS(2), EL_MS(5));
    switch (x->type) {
    case AGENT_DO_PREPARE: {
        bool ok = !chance(w, w->faults.prepare_fails);
        push_event(w, w->now + slow, (struct agent_event){.type = AGENT_EV_PREPARED, .ok = ok});
        break;
    }
    case AGENT_DO_COLLECT: {
        static const struct restart_digest hopeless = {.kind = RESTART_TEXT, .witnesses = 1, .elapsed = RESTART_START};
        static const struct restart_digest passing = {.kind = RESTART_PASSING, .witnesses = 1};
        push_event(w, w->now + slow,
                   (struct agent_event){.type = AGENT_EV_COLLECTED,
                                        .digest = chance(w, 200)   ? &hopeless
                                                  : chance(w, 200) ? &passing
                                                                   : NULL});
        break;
    }
    case AGENT_DO_CAPTURE:
        slow = chance(w, 300) ? between(w, EL_SEC(1), EL_SEC(25)) : chance(w, 300) ? 0 : slow;
        push_event(w, w->now + slow, (struct agent_event){.type = AGENT_EV_CAPTURED, .attempt = w->agent.attempts});
        break;
    case AGENT_DO_LOOK:
        slow = chance(w, w->faults.slow) ? between(w, EL_MS(100), EL_SEC(2)) : between(w, 0, EL_MS(3));
        push_event(w, w->now + slow,
                   (struct agent_event){.type = AGENT_EV_LOOKED,
                                        .slot = x->slot,
                                        .attempt = w->agent.attempts,
                                        .follows = chance(w, w->faults.follows),
                                        .waits = chance(w, w->faults.follows / 2)});
        break;
    case AGENT_DO_GROUP: perform_group(w, &x->group); break;
    case AGENT_DO_NOTE:
    case AGENT_DO_WAIT:
    case AGENT_DO_FORWARD:
    case AGENT_DO_SUSPEND:
    case AGENT_DO_UP:
    case AGENT_DO_RESULT:
    case AGENT_DO_END: break;
    }
}

/* FNV-1a, number by number: no padding, no order of bytes in memory. */
static void hash_in(struct world *w, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        w->hash = (w->hash ^ (v >> (8 * i) & 255)) * 0x100000001b3u;
}

static void hash_step(struct world *w, const struct trace_step *s)
{
    hash_in(w, s->now);
    hash_in(w, (uint64_t)s->event.type << 32 | s->event.slot);
    hash_in(w, (uint64_t)(uint32_t)s->event.code << 32 | (uint32_t)s->event.signal);
    hash_in(w, (uint64_t)s->event.left << 8 | (uint64_t)s->state << 4 | s->actions.n);
    for (unsigned i = 0; i < s->actions.n; i++) {
        const struct agent_action *x = &s->actions.v[i];
        hash_in(w, (uint64_t)x->type << 48 | (uint64_t)x->group.type << 40 | (uint64_t)(x->slot + x->group.slot) << 16 |
                       (uint64_t)(uint32_t)(x->signal + x->group.signal));
    }
}

static void deliver(struct world *w, const struct agent_event *ev)
{
    struct world_proc ended = {0};
    if (ev->type == AGENT_EV_EXITED) { /* from here on elrun may not signal the group */
        ended = w->proc[w->leader[ev->slot]];
        w->proc[w->leader[ev->slot]].id = 0;
        w->leader[ev->slot] = -1;
    }
    if (ev->type == AGENT_EV_SPAWNED || (ev->type == AGENT_EV_SPAWN_FAILED && !ev->forked))
        w->spawn_open = false;
    judge_event(w, ev, &ended);
    struct trace_step *s = &w->trace[w->traced++ % WORLD_TRACE_MAX];
    trace_take(s, &w->agent, ev, w->now);
    w->steps++;
    hash_step(w, s);
    char line[TRACE_LINE_MAX];
    if (w->print)
        puts(trace_line(s, line));
    for (unsigned i = 0; i < s->actions.n && !w->failed; i++) {
        judge_action(w, &s->actions.v[i], ev);
        perform(w, &s->actions.v[i]);
    }
    judge_step(w, ev);
}

unsigned world_leaders(const struct world *w)
{
    unsigned n = 0;
    for (unsigned i = 0; i < w->conf.slots; i++)
        n += w->leader[i] >= 0;
    return n;
}

/* --- one run --- */

static void draw_faults(struct world *w)
{
    struct world_faults *f = &w->faults;
    unsigned *all[] = {&f->bad_exit, &f->killed,  &f->unknown,    &f->ignores_term, &f->state_d,
                       &f->kids,     &f->escapes, &f->fork_fails, &f->exec_fails,   &f->prepare_fails,
                       &f->slow,     &f->signals, &f->farewell,   &f->hangs,        &f->failing};
    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++)
        *all[i] = el_rng_below(&w->rng, 3) ? 0 : (unsigned)between(w, 5, 300);
    f->follows = (unsigned)between(w, 0, 1000);
}

static void draw_conf(struct world *w)
{
    static const el_usec graces[] = {0, EL_MS(100), EL_SEC(2), EL_SEC(30)};
    w->conf = (struct agent_conf){.slots = (unsigned)between(w, 1, 8)};
    w->conf.max_restarts = (unsigned)between(w, 0, 3);
    w->conf.max_fruitless = 10;
    w->conf.restart_policy = (enum restart_policy)el_rng_below(&w->rng, RESTART_POLICY_COUNT);
    if (chance(w, 20))
        w->conf.slots = (unsigned)between(w, 9, WORLD_SLOTS_MAX);
    w->conf.grace = graces[el_rng_below(&w->rng, 4)];
    w->conf.consequence = chance(w, 500) ? 0 : w->conf.grace < AGENT_CONSEQUENCE ? w->conf.grace : AGENT_CONSEQUENCE;
    w->conf.handled[SIGTERM] = w->conf.handled[SIGINT] = true;
    w->conf.handled[SIGHUP] = chance(w, 500);
    w->conf.handled[SIGQUIT] = chance(w, 500);
    w->conf.handled[SIGUSR1] = chance(w, 100);
    w->conf.captures = chance(w, 500);
    w->conf.captures_stay = chance(w, 500);
}

static void send_elrun(struct world *w, el_usec at, int sig)
{
    push_event(w, at, (struct agent_event){.type = AGENT_EV_SIGNAL, .signal = sig});
}

static void draw_signals(struct world *w)
{
    static const int kinds[] = {SIGTERM, SIGINT, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP};
    el_usec span = chance(w, 300) ? EL_MS(20) : EL_SEC(60);
    for (unsigned n = 0; n < 4; n++)
        if (chance(w, w->faults.signals)) {
            el_usec at = between(w, 0, span);
            int sig = kinds[el_rng_below(&w->rng, 8)];
            send_elrun(w, at, sig);
            if (chance(w, 500))
                send_elrun(w, at + between(w, 0, EL_SEC(2)), sig);
        }
    if (chance(w, w->faults.farewell)) { /* a scheduler ends the job: everybody is signalled, in any order */
        el_usec at = between(w, EL_MS(200), EL_SEC(20));
        push(w, (struct world_item){.at = at, .kind = WORLD_FAREWELL});
        send_elrun(w, between(w, at - EL_MS(50), at + EL_MS(300)), SIGTERM);
    }
    if (chance(w, w->faults.hangs)) { /* before the last worker is up, as a shell would not do it, too */
        el_usec at = between(w, 0, EL_SEC(30));
        unsigned slot = (unsigned)el_rng_below(&w->rng, w->conf.slots);
        push_event(w, at, (struct agent_event){.type = AGENT_EV_HUNG, .slot = slot});
    }
    if (chance(w, w->faults.failing)) { /* it may live on, as nobody should rely on */
        el_usec at = between(w, 0, EL_SEC(30));
        unsigned slot = (unsigned)el_rng_below(&w->rng, w->conf.slots);
        push_event(w, at, (struct agent_event){.type = AGENT_EV_FAILING, .slot = slot});
    }
    send_elrun(w, WORLD_HORIZON, SIGTERM);
}

static void happen(struct world *w, const struct world_item *it)
{
    bool there = it->kind == WORLD_DIE || it->kind == WORLD_FORK
                     ? w->proc[it->proc].id == it->id && w->proc[it->proc].alive
                     : true;
    if (!there)
        return;
    switch (it->kind) {
    case WORLD_EVENT: deliver(w, &it->event); break;
    case WORLD_DIE: die(w, it->proc, it->code, it->signal); break;
    case WORLD_FORK: fork_kid(w, it->proc); break;
    case WORLD_FAREWELL:
        for (unsigned i = 0; i < w->conf.slots; i++)
            if (w->leader[i] >= 0)
                signal_proc(w, w->leader[i], SIGTERM);
        break;
    }
}

/* The next thing in time: what is planned, or the core's deadline; a real timer may come late, but not early. */
static bool turn(struct world *w)
{
    el_usec due = agent_deadline(&w->agent), next = w->items ? w->item[0].at : EL_NEVER;
    if (due == EL_NEVER && next == EL_NEVER)
        return false;
    el_usec when = due < w->now ? w->now : due;
    if (due != EL_NEVER && chance(w, 250))
        when += between(w, 0, WORLD_LATE_MAX);
    if (due != EL_NEVER && (when < next || (when == next && chance(w, 500)))) {
        w->now = when;
        deliver(w, &(struct agent_event){.type = AGENT_EV_TIMEOUT});
        return true;
    }
    struct world_item it = pop(w);
    w->now = it.at;
    happen(w, &it);
    return true;
}

bool world_run(struct world *w, uint64_t seed)
{
    w->rng.state = w->seed = seed;
    w->now = w->seq = w->steps = w->traced = 0;
    w->items = w->ids = 0;
    w->procs = 0;
    w->spawn_open = w->failed = false;
    w->judge = (struct world_judge){0};
    w->hash = 0xcbf29ce484222325u;
    for (unsigned i = 0; i < WORLD_SLOTS_MAX; i++)
        w->leader[i] = -1;
    draw_faults(w);
    draw_conf(w);
    if (agent_init(&w->agent, &w->conf, NULL) < 0)
        abort();
    push_event(w, chance(w, 100) ? between(w, 0, EL_MS(20)) : 0, (struct agent_event){.type = AGENT_EV_START});
    draw_signals(w);
    while (!w->failed && turn(w))
        if (w->steps > 100000)
            world_fail(w, "no end after %llu steps", (unsigned long long)w->steps);
    judge_end_of_run(w);
    agent_free(&w->agent, NULL);
    return !w->failed;
}

void world_init(struct world *w)
{
    *w = (struct world){.item = calloc(WORLD_ITEMS_MAX, sizeof *w->item)};
    if (!w->item)
        abort();
}

void world_free(struct world *w)
{
    free(w->item);
}

void world_print_trace(const struct world *w)
{
    char line[TRACE_LINE_MAX];
    uint64_t from = w->traced > WORLD_TRACE_MAX ? w->traced - WORLD_TRACE_MAX : 0;
    for (uint64_t i = from; i < w->traced; i++)
        printf("  %s\n", trace_line(&w->trace[i % WORLD_TRACE_MAX], line));
}
