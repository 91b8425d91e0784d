/* The health check of a job: when one is due, who takes part, and what follows from its verdict.  The check itself is
 * health_check.h. */
#include "coord/rdzv_private.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/sip.h"

enum {
    TRIES_MAX = 3,     /* checks for one round: nodes that come and go must not keep it from starting */
    SAID_MAX = 3,      /* lines about single nodes in one step */
    NAMED_MAX = 8,     /* nodes in the line about all */
    TWINS_SOUGHT = 256 /* nodes among which those of one host are told apart */
};

void rdzv_health_init(struct rdzv *r)
{
    r->health.wanted = r->conf.set.health_check != HEALTH_OFF;
    r->health.wish = 1;
}

void rdzv_health_free(struct rdzv *r)
{
    health_check_free(r->health.probing);
    health_check_free(r->health.last);
    el_buf_free(&r->health.report[0]);
    el_buf_free(&r->health.report[1]);
    el_free(r->mem, r->health.member);
    el_free(r->mem, r->health.instance);
}

/* --- when --- */

/* A round was closed: its incidents are known. */
void rdzv_health_closed(struct rdzv *r)
{
    enum health_when when = (enum health_when)r->conf.set.health_check;
    bool suspicious =
        r->findings.by_class[FAILURE_CLASS_HARDWARE] > 0 || r->findings.by_class[FAILURE_CLASS_NETWORK] > 0;
    if (when != HEALTH_ALWAYS && !(when == HEALTH_RESTART && suspicious))
        return;
    r->health.wanted = true;
    r->health.wish++;
    r->health.tries = 0;
}

void rdzv_health_launched(struct rdzv *r)
{
    r->health.wanted = false;
    r->health.tries = 0;
}

static bool health_takes_part(const struct rdzv_member *m)
{
    return m->phase == RDZV_READY && m->conn && !m->leaving;
}

/* Before this round, and somebody who would be in it has not been looked at since that was wished for.  A round of an
 * earlier coordinator was the first one. */
bool rdzv_health_due(const struct rdzv *r)
{
    const struct rdzv_health *h = &r->health;
    bool first = r->conf.set.health_check != HEALTH_ALWAYS && h->wish == 1;
    if (!h->wanted || h->tries >= TRIES_MAX || (first && r->number))
        return false;
    for (uint32_t i = r->arrival.first; i != RDZV_NONE; i = r->member[i].arrival.next)
        if (health_takes_part(&r->member[i]) && r->member[i].probed != h->wish)
            return true;
    return false;
}

/* --- beginning --- */

/* By node rank, then by arrival: neighbours are paired first. */
static unsigned health_gather(struct rdzv *r)
{
    unsigned n = 0;
    for (uint32_t i = r->arrival.first; i != RDZV_NONE; i = r->member[i].arrival.next) {
        r->member[i].prober = RDZV_NONE;
        if (health_takes_part(&r->member[i]) && n < PLAN_NODES_MAX)
            r->scratch[n++] = i;
    }
    rdzv_order_members(r, n);
    return n;
}

static bool health_make_room(struct rdzv *r, unsigned n)
{
    struct rdzv_health *h = &r->health;
    el_free(r->mem, h->member);
    el_free(r->mem, h->instance);
    h->member = el_alloc(r->mem, n * sizeof *h->member);
    h->instance = el_alloc(r->mem, n * sizeof *h->instance);
    return h->member && h->instance;
}

/* By the address of its connection, whatever it says of itself: many agents of one host that accuse another node are
 * one witness.  Where all are on one host each speaks for itself. */
static uint64_t health_place_of(const struct rdzv_member *m)
{
    static const uint64_t seed[2] = {0x686f7374, 1};
    if (!*m->remote) /* not known */
        return 0;
    return m->same_host ? 1 : el_sip(seed, m->remote, strlen(m->remote));
}

/* loopback: where all nodes are on one host; else NULL. */
static void name_node(struct rdzv *r, unsigned node, const char *loopback)
{
    const struct rdzv_member *m = &r->member[r->health.member[node]];
    char name[MSG_NAME_MAX + 1];
    unsigned twins = 0;
    for (unsigned i = 0; i < node && r->health.nodes <= TWINS_SOUGHT; i++)
        twins += strcmp(r->member[r->health.member[i]].host, m->host) == 0;
    if (twins)
        snprintf(name, sizeof name, "%.55s:%u", m->host, twins + 1);
    else
        snprintf(name, sizeof name, "%s", m->host);
    health_check_domain(r->health.probing, node, m->domain);
    health_check_place(r->health.probing, node, loopback ? 0 : health_place_of(m));
    health_check_name(r->health.probing, node, name, loopback ? loopback : m->same_host ? r->self_addr : m->addr);
}

static void health_cannot(struct rdzv *r, struct rdzv_actions *out)
{
    rdzv_say(r, out, NOTE_FINDING, RDZV_NONE, "there is no memory for a health check: the round starts without");
    health_check_free(r->health.probing);
    r->health.probing = NULL;
    r->health.nodes = 0;
    r->health.wanted = false;
}

void rdzv_health_begin(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    struct rdzv_health *h = &r->health;
    const struct rdzv_settings *s = &r->conf.set;
    assert(!h->probing);
    h->nodes = health_gather(r);
    struct health_check_conf conf = {.number = (r->seen > r->number ? r->seen : r->number) + 1,
                                     .coord = r->conf.coord,
                                     .probe = ++h->probe,
                                     .nodes = h->nodes,
                                     .backend = (enum health_backend)s->probe_backend,
                                     .quick = s->probe_quick,
                                     .all = s->probe_all,
                                     .rails = (unsigned)s->probe_rails,
                                     .rounds_max = (unsigned)s->probe_rounds,
                                     .straggler_k = (unsigned)s->straggler_k,
                                     .straggler_min = (unsigned)s->straggler_min,
                                     .timeout = s->probe_timeout_ms ? EL_MS(s->probe_timeout_ms) : EL_SEC(300),
                                     .silence = rdzv_silence_limit(r)};
    if (!health_make_room(r, h->nodes) || !(h->probing = health_check_new(&conf, r->mem, now))) {
        health_cannot(r, out);
        return;
    }
    bool one_host = true, v6 = true; /* a host without IPv4 has no 127.0.0.1 either */
    for (unsigned i = 0; i < h->nodes; i++) {
        struct rdzv_member *m = &r->member[r->scratch[i]];
        h->member[i] = r->scratch[i];
        h->instance[i] = m->instance;
        m->prober = i;
        one_host &= m->same_host;
        v6 &= strchr(m->addr, ':') != NULL;
    }
    for (unsigned i = 0; i < h->nodes; i++)
        name_node(r, i, !one_host ? NULL : v6 ? "::1" : "127.0.0.1");
    h->tries++;
    h->paused = false;
    rdzv_move(r, RDZV_PROBING, now);
    rdzv_say(r, out, NOTE_PROBING, RDZV_NONE, "health check %llu of %u node%s begins", (unsigned long long)h->probe,
             h->nodes, rdzv_plural(h->nodes));
    rdzv_act(out, RDZV_DO_ORDER_EACH);
}

/* --- what follows --- */

/* It leaves, whatever remains; its host is taken back only if it must be. */
static void exclude(struct rdzv *r, struct rdzv_member *m, const char *why, el_usec now)
{
    rdzv_tally(r, m, -1);
    m->leaving = m->drained = m->excluded = true;
    rdzv_tally(r, m, 1);
    r->health.banned[r->health.bans++ % RDZV_ASIDE_MAX] = m->instance;
    r->health.excluded++;
    rdzv_keep_aside(r, m->host, why, rdzv_quarantine(r, now));
}

/* A slow node leaves only if enough others remain; else the job is better with it. */
static bool can_spare(struct rdzv *r, struct rdzv_member *m)
{
    rdzv_tally(r, m, -1);
    bool leaving = m->leaving;
    m->leaving = true;
    rdzv_tally(r, m, 1);
    bool enough = rdzv_is_enough(r);
    rdzv_tally(r, m, -1);
    m->leaving = leaving;
    rdzv_tally(r, m, 1);
    return enough;
}

static bool must_go(struct rdzv *r, struct rdzv_member *m, enum health_verdict v)
{
    if (v == HEALTH_BAD)
        return r->conf.set.on_bad == HEALTH_BAD_EXCLUDE;
    return v == HEALTH_SLOW && r->conf.set.on_straggler == HEALTH_STRAGGLER_EXCLUDE && can_spare(r, m);
}

/* Bad, and gone before it could be sent away: whoever comes from its host waits while others are enough. */
static void judge_gone(struct rdzv *r, unsigned node, const char *why, el_usec now, struct rdzv_actions *out,
                       unsigned *said)
{
    const char *name = health_check_host(r->health.last, node);
    const char *colon = strchr(name, ':'); /* node3:2 is the second one of node3 */
    char host[MSG_NAME_MAX + 1];
    snprintf(host, sizeof host, "%.*s", colon ? (int)(colon - name) : MSG_NAME_MAX, name);
    (void)rdzv_keep_aside(r, host, why, rdzv_quarantine(r, now));
    if ((*said)++ < SAID_MAX)
        rdzv_say(r, out, NOTE_JUDGED, RDZV_NONE, "%s is bad%s%.300s", name, *why ? ": " : "", why);
}

static void judge_node(struct rdzv *r, unsigned node, el_usec now, struct rdzv_actions *out,
                       unsigned count[HEALTH_VERDICTS], unsigned *said)
{
    struct rdzv_health *h = &r->health;
    const char *text;
    enum health_verdict v = health_check_verdict(h->last, node, &text);
    uint32_t i = h->member[node];
    bool gone = i == RDZV_NONE || r->member[i].leaving;
    count[v]++;
    if (v == HEALTH_BAD && !h->first_bad[0])
        snprintf(h->first_bad, sizeof h->first_bad, "%.60s: %.300s", health_check_host(h->last, node), text);
    if (v == HEALTH_BAD && gone && !r->conf.set.probe_only) {
        judge_gone(r, node, text, now, out, said);
        return;
    }
    bool unjudged = v == HEALTH_LEFT || v == HEALTH_ABSENT || v == HEALTH_LOST;
    if (i == RDZV_NONE || (unjudged && !r->conf.set.probe_only))
        return; /* who is back was not looked at: the round waits for another check */
    struct rdzv_member *m = &r->member[i];
    m->probed = h->wish;
    m->verdict_untold = true;
    bool goes = !r->conf.set.probe_only && must_go(r, m, v);
    bool waits = !r->conf.set.probe_only && v == HEALTH_BAD && r->conf.set.on_bad == HEALTH_BAD_PARK;
    if (waits && !rdzv_park(r, m, text)) {
        waits = false;
        goes = true;
    }
    if (goes)
        exclude(r, m, text, now);
    count[HEALTH_SLOW] -= v == HEALTH_SLOW && !goes && r->conf.set.on_straggler == HEALTH_STRAGGLER_WARN;
    if (v == HEALTH_GOOD || (*said)++ >= SAID_MAX)
        return;
    rdzv_say(r, out, NOTE_JUDGED, i, "%s is %s%s%s%.300s", health_check_host(h->last, node), health_verdict_name(v),
             goes    ? " and leaves the job"
             : waits ? " and waits as a last resort"
                     : "",
             *text ? ": " : "", text);
}

/* Where nodes are of two kinds by their speed nobody is called slow, and the whole is undecided. */
static bool is_split(const struct rdzv_health *h)
{
    struct plan *p = health_check_plan(h->last);
    return p && verdict_splits(p, NULL, 0) > 0;
}

static bool is_warned(const struct rdzv_health *h)
{
    struct plan *p = health_check_plan(h->last);
    unsigned count[NODE_STATE_COUNT] = {0};
    if (p)
        verdict_count(p, count);
    bool warned = count[NODE_SLOW] || (p && verdict_links(p, NULL, 0));
    for (unsigned i = 0; i < h->nodes && !warned; i++)
        warned = health_check_warned(h->last, i);
    return warned;
}

/* As the report has it: who ended without a word is bad. */
static unsigned whole_status(const struct rdzv *r, const unsigned count[HEALTH_VERDICTS])
{
    if (count[HEALTH_BAD] || count[HEALTH_SLOW] || count[HEALTH_LEFT])
        return 1;
    bool unsure = count[HEALTH_UNDECIDED] || count[HEALTH_ABSENT] || count[HEALTH_LOST] || is_split(&r->health);
    return unsure || (r->conf.set.probe_strict && is_warned(&r->health)) ? 3 : 0;
}

static void health_put_summary(struct rdzv_health *h, char *to, size_t room)
{
    health_check_summary(h->last, to, room);
    size_t n = strlen(to);
    if (is_split(h) && n < room)
        snprintf(to + n, room - n, "; two kinds of nodes by their speed");
}

/* True: the job ends. */
static bool ends_by(struct rdzv *r, const unsigned count[HEALTH_VERDICTS], el_usec now, struct rdzv_actions *out)
{
    struct rdzv_health *h = &r->health;
    const struct rdzv_settings *s = &r->conf.set;
    char all[MSG_TEXT_MAX + 1];
    bool unsure = count[HEALTH_UNDECIDED] || is_split(h);
    health_put_summary(h, all, sizeof all);
    rdzv_say(r, out, NOTE_PROBED, RDZV_NONE, "health check %llu: %.400s", (unsigned long long)h->probe, all);
    if (s->probe_only)
        rdzv_end(r, now, out, whole_status(r, count), "%s", all);
    else if (count[HEALTH_BAD] && s->on_bad == HEALTH_BAD_STOP)
        rdzv_end(r, now, out, EL_EXIT_UNHEALTHY, "--on-bad=stop: %s", h->first_bad);
    else if (unsure && s->on_undecided == HEALTH_UNDECIDED_STOP)
        rdzv_end(r, now, out, EL_EXIT_TEMPFAIL, "--on-undecided=stop: %s", all);
    else
        return false;
    return true;
}

/* "; bad: node3, node7 and 2 more": behind the numbers, for nodes that do not get the report. */
static void name_those(struct rdzv_health *h, enum health_verdict which)
{
    char *to = h->summary;
    const size_t room = sizeof h->summary;
    size_t n = strlen(to);
    unsigned count = 0;
    const char *text;
    for (unsigned i = 0; i < h->nodes; i++) {
        if (health_check_verdict(h->last, i, &text) != which || count++ >= NAMED_MAX || n >= room)
            continue;
        if (count == 1)
            n += (size_t)snprintf(to + n, room - n, "; %s: %s", health_verdict_name(which),
                                  health_check_host(h->last, i));
        else
            n += (size_t)snprintf(to + n, room - n, ", %s", health_check_host(h->last, i));
    }
    if (count > NAMED_MAX && n < room)
        snprintf(to + n, room - n, " and %u more", count - NAMED_MAX);
}

static void health_sum_up(struct rdzv_health *h)
{
    health_put_summary(h, h->summary, sizeof h->summary);
    name_those(h, HEALTH_BAD);
    name_those(h, HEALTH_SLOW);
    name_those(h, HEALTH_UNDECIDED);
}

/* The check that was running is the last one now. */
static void keep_last(struct rdzv *r)
{
    struct rdzv_health *h = &r->health;
    health_check_free(h->last);
    h->last = h->probing;
    h->probing = NULL;
    for (uint32_t i = r->arrival.first; i != RDZV_NONE; i = r->member[i].arrival.next) {
        r->member[i].judged = r->member[i].prober;
        r->member[i].prober = RDZV_NONE;
        r->member[i].verdict_untold = false;
    }
}

static void health_conclude(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    struct rdzv_health *h = &r->health;
    unsigned count[HEALTH_VERDICTS] = {0}, said = 0;
    h->excluded = 0;
    h->first_bad[0] = 0;
    h->reader = RDZV_NONE;
    h->took = now - r->state_since;
    keep_last(r);
    health_sum_up(h);
    for (unsigned i = 0; i < h->nodes; i++) {
        uint32_t who = h->member[i];
        judge_node(r, i, now, out, count, &said);
        bool own = who != RDZV_NONE && h->instance[i] == r->conf.own_instance;
        if ((h->reader == RDZV_NONE || own) && who != RDZV_NONE)
            h->reader = who;
    }
    rdzv_health_render(r);
    rdzv_act(out, RDZV_DO_PROBE_REPORT);
    if (ends_by(r, count, now, out))
        return;
    el_usec since = r->waiting_since; /* the join time-out goes on, but for the time that the check took */
    el_usec took = now - r->state_since;
    rdzv_wait_again(r, now);
    r->waiting_since = since + took;
    r->changes++;
    rdzv_act(out, RDZV_DO_ORDER_EACH);
}

static void health_follow(struct rdzv *r, enum health_check_news news, el_usec now, struct rdzv_actions *out)
{
    uint32_t i;
    switch (news) {
    case HEALTH_CHECK_SAME: break;
    case HEALTH_CHECK_ORDER:
        i = r->health.member[health_check_told(r->health.probing)];
        if (i != RDZV_NONE)
            rdzv_act(out, RDZV_DO_ORDER)->member = i;
        break;
    case HEALTH_CHECK_STAGE: rdzv_act(out, RDZV_DO_ORDER_EACH); break;
    case HEALTH_CHECK_OVER: health_conclude(r, now, out); break;
    }
}

/* --- events --- */

void rdzv_health_message(struct rdzv *r, unsigned i, const struct msg *msg, el_usec now, struct rdzv_actions *out)
{
    unsigned node = r->member[i].prober;
    if (r->state != RDZV_PROBING || node == RDZV_NONE)
        return;
    if (msg->type == MSG_PROBE_ID)
        health_follow(r, health_check_id(r->health.probing, node, &msg->u.probe_id), now, out);
    else
        health_follow(r, health_check_result(r->health.probing, node, &msg->u.probe_result, now), now, out);
}

/* Before the member goes.  Who was silent may stand still, and who closed while we stood still may have had enough of
 * that: neither is known to have left. */
void rdzv_health_lost(struct rdzv *r, unsigned i, el_usec now, struct rdzv_actions *out)
{
    const struct rdzv_member *m = &r->member[i];
    unsigned node = m->prober;
    if (r->health.reader == i)
        r->health.reader = RDZV_NONE;
    if (r->state != RDZV_PROBING || node == RDZV_NONE)
        return;
    r->health.member[node] = RDZV_NONE;
    bool silent = m->conn != 0 || r->health.paused;
    if (m->leaving || !silent)
        health_follow(r, health_check_left(r->health.probing, node, m->leaving, now), now, out);
    else
        health_follow(r, health_check_away(r->health.probing, node, now), now, out);
}

void rdzv_health_leaves(struct rdzv *r, unsigned i, el_usec now, struct rdzv_actions *out)
{
    unsigned node = r->member[i].prober;
    if (r->state == RDZV_PROBING && node != RDZV_NONE)
        health_follow(r, health_check_left(r->health.probing, node, true, now), now, out);
}

/* A newcomer: was it lost in this check?  Or excluded, and not told of it before it was lost? */
void rdzv_health_joined(struct rdzv *r, unsigned i)
{
    struct rdzv_health *h = &r->health;
    struct rdzv_member *m = &r->member[i];
    for (unsigned k = 0; k < h->bans && k < RDZV_ASIDE_MAX; k++) {
        if (h->banned[k] != m->instance)
            continue;
        rdzv_tally(r, m, -1);
        m->leaving = m->drained = m->excluded = true;
        rdzv_tally(r, m, 1);
        return;
    }
    bool is_last = h->last && health_check_conf(h->last)->probe == h->probe; /* it is the one whose nodes these are */
    for (unsigned k = 0; r->state != RDZV_PROBING && is_last && k < h->nodes; k++)
        if (h->instance[k] == m->instance)
            m->judged = k;
    for (unsigned k = 0; r->state == RDZV_PROBING && k < h->nodes; k++) {
        if (h->instance[k] != m->instance || h->member[k] != RDZV_NONE)
            continue;
        h->member[k] = i;
        m->prober = k;
        health_check_back(h->probing, k);
    }
}

void rdzv_health_gap(struct rdzv *r, el_usec gap)
{
    if (r->state != RDZV_PROBING)
        return;
    r->health.paused = true;
    health_check_gap(r->health.probing, gap);
}

void rdzv_health_timeout(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    if (r->state == RDZV_PROBING && health_check_deadline(r->health.probing) <= now)
        health_follow(r, health_check_timeout(r->health.probing, now), now, out);
}

el_usec rdzv_health_deadline(const struct rdzv *r)
{
    return r->state == RDZV_PROBING ? health_check_deadline(r->health.probing) : EL_NEVER;
}

/* Somebody still holds workers of a round: nothing is formed before that is known. */
void rdzv_health_abandon(struct rdzv *r, el_usec now)
{
    assert(r->state == RDZV_PROBING);
    health_check_free(r->health.probing);
    r->health.probing = NULL;
    rdzv_wait_again(r, now);
}

/* --- what is told --- */

bool rdzv_health_order(struct rdzv *r, const struct rdzv_member *m, el_usec now, struct msg *out)
{
    if (r->state != RDZV_PROBING || m->prober == RDZV_NONE || m->leaving)
        return false;
    health_check_order(r->health.probing, m->prober, now, out);
    return true;
}

bool rdzv_health_missed(const struct rdzv *r, unsigned member)
{
    return r->conf.set.probe_only && r->health.last && r->member[member].judged == RDZV_NONE && r->status <= 3;
}

/* What `elrun probe` exits with on this node. */
unsigned rdzv_health_status(struct rdzv *r, unsigned member)
{
    const char *text;
    unsigned node = r->member[member].judged;
    if (!r->conf.set.probe_only || !r->health.last || r->health.reader == member || r->status > 3)
        return r->status;
    if (rdzv_health_missed(r, member))
        return 3;
    enum health_verdict v = health_check_verdict(r->health.last, node, &text);
    bool warned = health_check_warned(r->health.last, node) && r->conf.set.probe_strict;
    bool slow = v == HEALTH_SLOW && r->conf.set.on_straggler == HEALTH_STRAGGLER_EXCLUDE;
    return v == HEALTH_BAD || slow ? 1 : (v != HEALTH_GOOD && v != HEALTH_SLOW) || warned ? 3 : 0;
}

bool rdzv_probe_verdict(struct rdzv *r, unsigned member, struct msg *out)
{
    struct rdzv_member *m = &r->member[member];
    struct rdzv_health *h = &r->health;
    const char *text;
    if (!m->verdict_untold || m->judged == RDZV_NONE || !h->last)
        return false;
    m->verdict_untold = false;
    enum health_verdict v = health_check_verdict(h->last, m->judged, &text);
    snprintf(h->verdict_text, sizeof h->verdict_text, "%s", text);
    const struct health_check_conf *c = health_check_conf(h->last);
    *out = (struct msg){.type = MSG_PROBE_VERDICT};
    out->u.probe_verdict = (struct msg_probe_verdict){.number = c->number,
                                                      .coord = c->coord,
                                                      .probe = c->probe,
                                                      .verdict = v,
                                                      .excluded = m->excluded,
                                                      .reader = h->reader == member,
                                                      .name = health_check_host(h->last, m->judged),
                                                      .text = h->verdict_text,
                                                      .job = h->summary};
    return true;
}
