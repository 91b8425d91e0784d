#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "probe/node.h"
#include "coord/health_check_private.h"

static void begin_after(struct health_check *p, el_usec now);

static el_usec health_check_sooner(el_usec a, el_usec b)
{
    return a < b ? a : b;
}

struct health_check *health_check_new(const struct health_check_conf *conf, struct el_mem *mem, el_usec now)
{
    struct health_check *p = el_alloc(mem, sizeof *p);
    if (!p)
        return NULL;
    p->conf = *conf;
    p->mem = mem;
    p->node = el_alloc(mem, conf->nodes * sizeof *p->node);
    p->measured = EL_BUF_INIT(mem, 0);
    if (!p->node) {
        health_check_free(p);
        return NULL;
    }
    for (unsigned i = 0; i < conf->nodes; i++) {
        p->node[i].pair = HEALTH_CHECK_NONE;
        p->node[i].wall_us = CLOCKS_UNKNOWN;
        p->node[i].kept = EL_BUF_INIT(mem, conf->all ? HEALTH_CHECK_KEPT_ALL : HEALTH_CHECK_KEPT_MAX);
        p->node[i].ids = EL_BUF_INIT(mem, MSG_IDS_MAX);
    }
    p->kind = HEALTH_CHECK_LOCAL;
    p->waiting = p->asked = conf->nodes;
    p->all_until = now + conf->timeout;
    p->until = health_check_sooner(now + HEALTH_CHECK_LOCAL_LIMIT, p->all_until);
    return p;
}

void health_check_free(struct health_check *p)
{
    if (!p)
        return;
    for (unsigned i = 0; p->node && i < p->conf.nodes; i++) {
        el_buf_free(&p->node[i].ids);
        el_buf_free(&p->node[i].kept);
    }
    plan_free(p->plan);
    el_buf_free(&p->measured);
    el_free(p->mem, p->said);
    el_free(p->mem, p->node);
    el_free(p->mem, p);
}

void health_check_name(struct health_check *p, unsigned node, const char *host, const char *addr)
{
    snprintf(p->node[node].host, sizeof p->node[node].host, "%s", host);
    snprintf(p->node[node].addr, sizeof p->node[node].addr, "%s", addr);
}

void health_check_domain(struct health_check *p, unsigned node, const char *label)
{
    snprintf(p->node[node].domain, sizeof p->node[node].domain, "%s", label);
}

void health_check_place(struct health_check *p, unsigned node, uint64_t host)
{
    p->node[node].place = host;
}

/* --- stages --- */

/* Nodes are given until then; whoever is not heard by the end of the margin is not there. */
static el_usec margin(const struct health_check *p)
{
    return p->conf.silence + HEALTH_CHECK_MARGIN;
}

static void begin_stage(struct health_check *p, enum health_check_kind kind, el_usec limit, el_usec now)
{
    p->kind = kind;
    p->stage++;
    p->until = health_check_sooner(now + limit, p->all_until > now ? p->all_until : now);
    p->waiting = p->asked = 0;
    p->stood = 0;
    health_check_take_stage(p);
    for (unsigned i = 0; i < p->conf.nodes; i++) {
        bool asked = p->node[i].presence != HEALTH_CHECK_GONE &&
                     (kind != HEALTH_CHECK_PAIR || p->node[i].pair != HEALTH_CHECK_NONE);
        p->asked += asked;
        p->waiting += asked && p->node[i].presence == HEALTH_CHECK_HERE;
        p->node[i].done = !asked;
    }
}

/* How many nodes have some: one is enough for all to be tried GPU by GPU, or a node that has lost its own would hide
 * what is wrong with it. */
static unsigned with_gpus(const struct health_check *p, unsigned *most)
{
    unsigned some = 0;
    *most = 0;
    for (unsigned i = 0; i < p->conf.nodes; i++) {
        const struct health_check_node *n = &p->node[i];
        if (n->presence == HEALTH_CHECK_GONE)
            continue;
        some += n->gpus > 0;
        *most = n->gpus > *most ? n->gpus : *most;
    }
    return some;
}

/* Whoever has told of itself and has no GPU, where others have some, is bad. */
static void want_gpus(struct health_check *p, unsigned some)
{
    for (unsigned i = 0; i < p->conf.nodes; i++) {
        struct health_check_node *n = &p->node[i];
        if (!n->done || n->presence == HEALTH_CHECK_GONE || n->gpus || n->local == HEALTH_CHECK_FAILED ||
            n->local == HEALTH_CHECK_BROKEN)
            continue;
        n->local = HEALTH_CHECK_FAILED;
        snprintf(n->reason, sizeof n->reason,
                 "no GPU is here, but %u other node%s some; with the backend tcp GPUs are left aside", some,
                 some == 1 ? " has" : "s have");
    }
}

static void tell_gone(struct health_check *p, unsigned i)
{
    if (p->node[i].goodbye)
        plan_absent(p->plan, i);
    else
        plan_left(p->plan, i);
}

static void tell_plan(struct health_check *p, unsigned i)
{
    const struct health_check_node *n = &p->node[i];
    plan_name(p->plan, i, n->host);
    if (p->nccl && n->gpus)
        plan_rails(p->plan, i, n->gpus < PLAN_RAILS_MAX ? n->gpus : PLAN_RAILS_MAX);
    if (n->presence == HEALTH_CHECK_GONE && n->local != HEALTH_CHECK_FAILED)
        tell_gone(p, i);
    else if (n->presence == HEALTH_CHECK_IS_AWAY && !n->done)
        plan_lost(p->plan, i, "it was not heard any more while it checked itself");
    else if (!n->done || n->local == HEALTH_CHECK_BROKEN)
        plan_lost(p->plan, i, *n->reason ? n->reason : "its own checks brought no result in time");
    else
        plan_local(p->plan, i, n->local != HEALTH_CHECK_FAILED, n->reason);
}

/* False: there is no memory for it. */
static bool make_plan(struct health_check *p)
{
    struct plan_conf conf = PLAN_CONF_INIT;
    unsigned gpus = 0, some = p->conf.backend == HEALTH_TCP ? 0 : with_gpus(p, &gpus);
    p->nccl = some > 0;
    if (p->nccl)
        want_gpus(p, some);
    unsigned rails = p->nccl ? gpus : p->conf.rails ? p->conf.rails : 1;
    conf.rails = rails < PLAN_RAILS_MAX ? rails : PLAN_RAILS_MAX;
    conf.rounds_max = p->conf.rounds_max;
    conf.quick = p->conf.quick;
    conf.straggler_k = p->conf.straggler_k ? p->conf.straggler_k : conf.straggler_k;
    conf.straggler_min = p->conf.straggler_min ? p->conf.straggler_min : conf.straggler_min;
    p->plan = plan_new(p->conf.nodes, &conf, p->mem);
    if (!p->plan)
        return false;
    health_check_number_domains(p);
    for (unsigned i = 0; i < p->conf.nodes; i++) {
        plan_host(p->plan, i, p->node[i].place);
        tell_plan(p, i);
    }
    for (unsigned m = 0; m < METRIC_COUNT; m++)
        if (p->reference[m])
            plan_reference(p->plan, (enum metric)m, p->reference[m]);
    const struct health_check_measured *x = (const void *)p->measured.v;
    for (size_t i = 0; i < p->measured.len / sizeof *x; i++)
        if (x[i].rail < conf.rails)
            plan_metric(p->plan, x[i].node, x[i].rail, x[i].metric, x[i].milli);
    return true;
}

/* Once: it is part of the order of every node. */
static void tell_round(struct health_check *p)
{
    const struct probe_report r = {.plan = p->plan};
    struct el_buf line = EL_BUF_INIT(p->mem, 0);
    report_round(&r, &line);
    snprintf(p->pairs_text, sizeof p->pairs_text, "%s", line.len ? el_buf_cstr(&line) : "a round of pairs");
    el_buf_free(&line);
}

/* False: the plan has ended, or there is no memory for what it wants. */
static bool health_check_begin_round(struct health_check *p, el_usec now)
{
    for (unsigned i = 0; i < p->conf.nodes; i++)
        p->node[i].pair = HEALTH_CHECK_NONE;
    p->pairs = plan_round(p->plan, &p->pair);
    el_free(p->mem, p->said);
    p->said = p->pairs ? el_alloc(p->mem, 2 * (size_t)p->pairs * sizeof *p->said) : NULL;
    if (!p->said)
        return false;
    for (unsigned i = 0; i < p->pairs; i++) {
        p->node[p->pair[i].a].pair = p->node[p->pair[i].b].pair = i;
        p->node[p->pair[i].a].guest = false;
        p->node[p->pair[i].b].guest = true;
    }
    p->round++;
    tell_round(p);
    begin_stage(p, HEALTH_CHECK_PAIR, probe_node_pair_limit(p->nccl), now); /* its own word comes before ours */
    return true;
}

static void end_local(struct health_check *p, el_usec now)
{
    health_check_compare_clocks(p);
    if (!make_plan(p)) {
        p->over = true;
        return;
    }
    if (p->late)
        plan_end(p->plan);
    if (!health_check_begin_round(p, now))
        begin_after(p, now);
}

/* What this end says; what is missing because somebody was not there, or had not the time, says nothing. */
static void complete(struct health_check *p, unsigned node)
{
    const struct health_check_node *n = &p->node[node];
    struct pair_result *r = health_check_said(p, node);
    if (n->done)
        return;
    pair_result_init(r);
    if (n->presence != HEALTH_CHECK_HERE || p->late)
        return;
    for (unsigned i = 0; i < PLAN_RAILS_MAX; i++) {
        r->rail[i].outcome = RAIL_NO_REPORT;
        snprintf(r->rail[i].reason, sizeof r->rail[i].reason, "%s said nothing about it in time", n->host);
    }
}

/* A pair that went wrong while one of its nodes was not heard, or we stood still, says nothing about either. */
static void health_check_excuse(const struct health_check *p, const struct plan_pair *pair, struct pair_result *r)
{
    if (!p->node[pair->a].strayed && !p->node[pair->b].strayed)
        return;
    for (unsigned i = 0; i < PLAN_RAILS_MAX; i++)
        if (pair->rails >> i & 1 && r->rail[i].outcome != RAIL_OK) {
            pair_result_init(r);
            return;
        }
}

static void end_round(struct health_check *p, el_usec now)
{
    for (unsigned i = 0; i < p->pairs; i++) {
        complete(p, p->pair[i].a);
        complete(p, p->pair[i].b);
        struct pair_result *r = &p->said[2 * (size_t)i];
        pair_result_join(r, r, r + 1);
        health_check_excuse(p, &p->pair[i], r);
        plan_result(p->plan, i, r);
    }
    for (unsigned i = 0; i < p->conf.nodes; i++)
        if (p->node[i].presence == HEALTH_CHECK_IS_AWAY && p->node[i].away_since + HEALTH_CHECK_AWAY_LIMIT / 2 <= now)
            plan_lost(p->plan, i, "it was not heard any more during the check");
    if (p->late)
        plan_end(p->plan);
    if (!health_check_begin_round(p, now))
        begin_after(p, now);
}

static void begin_after(struct health_check *p, el_usec now)
{
    const struct plan_pair *none;
    if (!plan_stopped(p->plan) && p->pairs) /* no memory for the round that it wants */
        plan_end(p->plan);
    if (!plan_stopped(p->plan))
        (void)plan_round(p->plan, &none);
    p->pairs = 0;
    begin_stage(p, HEALTH_CHECK_AFTER, HEALTH_CHECK_LOCAL_LIMIT, now);
    p->over = p->late;
}

/* Whoever is bad by its counters is no witness any more: those whom it has accused may have to meet others. */
static void end_after(struct health_check *p, el_usec now)
{
    bool again = false;
    for (unsigned i = 0; i < p->conf.nodes; i++) {
        const struct health_check_node *n = &p->node[i];
        if (n->done && n->after == HEALTH_CHECK_FAILED) { /* also if it has told that and gone */
            again |= verdict_state(p->plan, i) != NODE_BAD_LOCAL;
            plan_local(p->plan, i, false, n->reason);
        }
    }
    if (again && !p->late) {
        plan_again(p->plan);
        if (health_check_begin_round(p, now))
            return;
    }
    p->over = true;
}

/* When this stage ends whatever is missing.  Whoever is away may come back, for a time, and not just to read its
 * counters. */
static el_usec ends_at(const struct health_check *p)
{
    el_usec away = 0, limit = p->until + margin(p);
    for (unsigned i = 0; i < p->conf.nodes && p->kind != HEALTH_CHECK_AFTER; i++) {
        const struct health_check_node *n = &p->node[i];
        if (n->presence == HEALTH_CHECK_IS_AWAY && !n->done && n->away_since + HEALTH_CHECK_AWAY_LIMIT > away)
            away = n->away_since + HEALTH_CHECK_AWAY_LIMIT;
    }
    return p->waiting ? limit : health_check_sooner(away, limit);
}

static void end_stage(struct health_check *p, el_usec now)
{
    p->late |= p->all_until <= now;
    switch (p->kind) {
    case HEALTH_CHECK_LOCAL: end_local(p, now); break;
    case HEALTH_CHECK_PAIR: end_round(p, now); break;
    case HEALTH_CHECK_REST:
    case HEALTH_CHECK_AFTER: end_after(p, now); break;
    }
}

enum health_check_news health_check_timeout(struct health_check *p, el_usec now)
{
    enum health_check_news news = HEALTH_CHECK_SAME;
    while (!p->over && ends_at(p) <= now) {
        end_stage(p, now);
        news = p->over ? HEALTH_CHECK_OVER : HEALTH_CHECK_STAGE;
    }
    return news;
}

el_usec health_check_deadline(const struct health_check *p)
{
    return p->over ? EL_NEVER : ends_at(p);
}

void health_check_gap(struct health_check *p, el_usec gap)
{
    p->until += gap;
    p->all_until += gap;
    p->stood = gap > p->stood ? gap : p->stood; /* the longest: who waits has longer than a short one */
    for (unsigned i = 0; i < p->conf.nodes; i++) {
        p->node[i].away_since += gap;
        p->node[i].strayed |= !p->node[i].done && p->stood >= HEALTH_CHECK_AWAY_LIMIT / 2;
    }
}

/* --- who is there --- */

static void health_check_drop(struct health_check *p, unsigned node)
{
    if (p->node[node].presence == HEALTH_CHECK_HERE && !p->node[node].done)
        p->waiting--;
}

enum health_check_news health_check_away(struct health_check *p, unsigned node, el_usec now)
{
    if (p->node[node].presence != HEALTH_CHECK_HERE)
        return HEALTH_CHECK_SAME;
    health_check_drop(p, node);
    p->node[node].presence = HEALTH_CHECK_IS_AWAY;
    p->node[node].strayed = true;
    p->node[node].away_since = now;
    return health_check_timeout(p, now);
}

void health_check_back(struct health_check *p, unsigned node)
{
    if (p->node[node].presence != HEALTH_CHECK_IS_AWAY)
        return;
    p->node[node].presence = HEALTH_CHECK_HERE;
    p->waiting += !p->node[node].done && !p->over;
}

/* Its pair is over: what the other end would say of it, after a long wait perhaps, counts for nobody. */
static void health_check_break_off(struct health_check *p, unsigned node)
{
    const struct plan_pair *pair = &p->pair[p->node[node].pair];
    unsigned other = p->node[node].guest ? pair->a : pair->b;
    pair_result_init(health_check_said(p, node));
    if (p->node[other].done)
        return;
    health_check_drop(p, other);
    p->node[other].done = true;
    pair_result_init(health_check_said(p, other));
}

enum health_check_news health_check_left(struct health_check *p, unsigned node, bool goodbye, el_usec now)
{
    if (p->node[node].presence == HEALTH_CHECK_GONE)
        return HEALTH_CHECK_SAME;
    health_check_drop(p, node);
    p->node[node].presence = HEALTH_CHECK_GONE;
    p->node[node].goodbye = goodbye;
    p->node[node].done = true;
    if (p->plan)
        tell_gone(p, node);
    if (p->kind == HEALTH_CHECK_PAIR && p->node[node].pair != HEALTH_CHECK_NONE && !p->over)
        health_check_break_off(p, node);
    return health_check_timeout(p, now);
}

/* --- what is told --- */

static void order_pair(struct health_check *p, unsigned node, struct msg_probe *o)
{
    struct health_check_node *n = &p->node[node];
    const struct plan_pair *pair = &p->pair[n->pair];
    struct health_check_node *host = &p->node[pair->a];
    o->guest = n->guest;
    o->parted = n->parted;
    o->peer = p->node[n->guest ? pair->a : pair->b].host;
    o->rails = pair->rails;
    o->ids = n->guest ? el_buf_cstr(&host->ids) : "";
}

void health_check_order(struct health_check *p, unsigned node, el_usec now, struct msg *out)
{
    struct health_check_node *n = &p->node[node];
    bool rests = p->over || (p->kind == HEALTH_CHECK_PAIR && n->pair == HEALTH_CHECK_NONE);
    health_check_text(p, now, p->text, sizeof p->text);
    *out = (struct msg){.type = MSG_PROBE};
    struct msg_probe *o = &out->u.probe;
    *o = (struct msg_probe){.number = p->conf.number,
                            .coord = p->conf.coord,
                            .probe = p->conf.probe,
                            .stage = p->stage,
                            .kind = rests ? HEALTH_CHECK_REST : p->kind,
                            .text = p->text,
                            .left_ms = health_check_left_ms(p, now),
                            .quick = p->conf.quick,
                            .local = n->addr,
                            .backend = p->nccl                        ? HEALTH_NCCL
                                       : p->kind == HEALTH_CHECK_PAIR ? HEALTH_TCP
                                                                      : p->conf.backend};
    if (o->kind == HEALTH_CHECK_PAIR)
        order_pair(p, node, o);
}

bool health_check_is_over(const struct health_check *p)
{
    return p->over;
}

unsigned health_check_told(const struct health_check *p)
{
    return p->told;
}

const char *health_check_host(const struct health_check *p, unsigned node)
{
    return p->node[node].host;
}

struct plan *health_check_plan(struct health_check *p)
{
    return p->plan;
}

bool health_check_is_nccl(const struct health_check *p)
{
    return p->nccl;
}

const struct health_check_conf *health_check_conf(const struct health_check *p)
{
    return &p->conf;
}

bool health_check_warned(const struct health_check *p, unsigned node)
{
    return p->node[node].warned;
}

const char *health_check_kept(const struct health_check *p, unsigned node)
{
    return el_buf_cstr((struct el_buf *)&p->node[node].kept);
}

/* --- verdict --- */

const char *health_verdict_name(enum health_verdict v)
{
    static const char *const names[] = {
        [HEALTH_GOOD] = "good", [HEALTH_SLOW] = "slow",     [HEALTH_BAD] = "bad",  [HEALTH_UNDECIDED] = "undecided",
        [HEALTH_LEFT] = "left", [HEALTH_ABSENT] = "absent", [HEALTH_LOST] = "lost"};
    return names[v];
}

/* Bad whether it is still here or not: by its pairs, or by what it has told of itself. */
static bool is_proved(const struct health_check_node *n, enum node_state s)
{
    return s == NODE_BAD ||
           (s == NODE_BAD_LOCAL && (n->local == HEALTH_CHECK_FAILED || n->after == HEALTH_CHECK_FAILED));
}

enum health_verdict health_check_verdict(struct health_check *p, unsigned node, const char **text)
{
    const struct health_check_node *n = &p->node[node];
    struct node_verdict v = {.state = NODE_UNDECIDED, .text = "there was no memory for the check"};
    *text = p->text;
    if (p->plan)
        verdict_node(p->plan, node, &v);
    snprintf(p->text, sizeof p->text, "%s", v.text);
    if (n->presence != HEALTH_CHECK_HERE && !is_proved(n, v.state))
        return n->presence == HEALTH_CHECK_IS_AWAY       ? HEALTH_LOST
               : n->goodbye && v.state != NODE_BAD_LOCAL ? HEALTH_ABSENT
                                                         : HEALTH_LEFT;
    if (v.state == NODE_GOOD && n->local == HEALTH_CHECK_UNDECIDED) {
        snprintf(p->text, sizeof p->text, "%s", n->reason);
        return HEALTH_UNDECIDED;
    }
    switch (v.state) {
    case NODE_GOOD: return HEALTH_GOOD;
    case NODE_SLOW: return HEALTH_SLOW;
    case NODE_BAD:
    case NODE_BAD_LOCAL: return HEALTH_BAD;
    case NODE_NEW:
    case NODE_UNTESTED:
    case NODE_SUSPECT:
    case NODE_UNDECIDED:
    case NODE_ABSENT:
    case NODE_STATE_COUNT: break;
    }
    return HEALTH_UNDECIDED;
}

const char *health_check_note(const struct health_check *p, unsigned node)
{
    return p->node[node].note[0] ? p->node[node].note : NULL;
}

void health_check_summary(struct health_check *p, char *to, size_t room)
{
    unsigned count[HEALTH_VERDICTS] = {0};
    const char *text;
    size_t n = 0;
    for (unsigned i = 0; i < p->conf.nodes; i++)
        count[health_check_verdict(p, i, &text)]++;
    *to = 0;
    for (unsigned v = 0; v < HEALTH_VERDICTS && n < room; v++)
        if (count[v])
            n += (size_t)snprintf(to + n, room - n, "%s%u %s", n ? ", " : "", count[v], health_verdict_name(v));
    if (n < room)
        n += (size_t)snprintf(to + n, room - n, " of %u node%s", p->conf.nodes, p->conf.nodes == 1 ? "" : "s");
    if (p->round && n < room)
        snprintf(to + n, room - n, " after %u round%s of pairs", p->round, p->round == 1 ? "" : "s");
}

void health_check_check(const struct health_check *p)
{
    unsigned waiting = 0;
    for (unsigned i = 0; i < p->conf.nodes; i++) {
        const struct health_check_node *n = &p->node[i];
        waiting += n->presence == HEALTH_CHECK_HERE && !n->done;
        assert(n->presence != HEALTH_CHECK_GONE || n->done);
        assert(n->pair == HEALTH_CHECK_NONE || p->kind != HEALTH_CHECK_PAIR || p->over || n->pair < p->pairs);
    }
    assert(p->over || waiting == p->waiting);
}
