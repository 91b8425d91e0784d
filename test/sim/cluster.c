/* Time, hosts and workers of the simulated cluster. */
#include "sim/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t cluster_below(struct cluster *c, uint64_t n)
{
    return el_rng_below(&c->rng, n);
}
el_usec cluster_delay(struct cluster *c)
{
    return c->delay + cluster_below(c, c->jitter + 1);
}
bool cluster_one_in(struct cluster *c, uint64_t n)
{
    return cluster_below(c, n) == 0;
}

void cluster_mix(struct cluster *c, uint64_t v)
{
    c->hash = (c->hash ^ v) * 0x100000001b3u;
}

/* --- an agent's shell --- */

static struct cluster_item *local(struct cluster *c, uint32_t who, el_usec after, enum member_event_type type)
{
    struct cluster_item *it = cluster_push(c, c->now + after, CLUSTER_LOCAL, who);
    it->life = c->agent[who].life;
    it->event = type;
    return it;
}

static void do_start(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    judge_start(c, who);
    a->attempt++;
    a->alive = true;
    a->told = a->killed = a->succeeded = false;
    a->number = a->m.round.number;
    a->coord = a->m.round.coord;
    a->rank = (unsigned)a->m.world.group_rank;
    a->stuck = !c->quiet && c->now < c->faults_until && cluster_one_in(c, 150);
    a->stubborn = cluster_one_in(c, 20);
    c->rank_holder[a->rank] = who;
    saves_round(c, who);
    captures_round(c, who);
    local(c, who, EL_MS(1) + cluster_below(c, EL_MS(20)), MEMBER_EV_STARTED)->attempt = a->attempt;
    struct cluster_item *it;
    if (!c->quiet && c->now < c->faults_until && cluster_one_in(c, 12)) {
        it = local(c, who, EL_MS(30) + cluster_below(c, EL_SEC(20)), MEMBER_EV_WORKER_FAILED);
    } else { /* success, without anybody telling it to end */
        it = cluster_push(c, c->now + c->training + cluster_below(c, EL_SEC(1)), CLUSTER_DIE, who);
        it->life = a->life;
        it->result = MEMBER_SUCCESS;
    }
    it->attempt = a->attempt;
}

/* The processes end after a while; the core hears of it a little later. */
void cluster_die_after(struct cluster *c, uint32_t who, el_usec after, enum member_result result)
{
    struct cluster_item *it = cluster_push(c, c->now + after, CLUSTER_DIE, who);
    it->life = c->agent[who].life;
    it->attempt = c->agent[who].attempt;
    it->result = result;
}

static void do_stop(struct cluster *c, uint32_t who, const struct member_action *x)
{
    struct cluster_agent *a = &c->agent[who];
    if (!a->alive)
        return; /* CLOSED is on its way */
    if (a->stuck && (!x->grace || !a->told)) {
        el_usec after = x->grace + EL_SEC(10);
        struct cluster_item *it = local(c, who, after, MEMBER_EV_CLOSED);
        it->attempt = a->attempt;
        it->result = MEMBER_STOPPED;
        it->stuck = true;
    } else if (!x->grace && !a->killed) {
        a->killed = true;
        cluster_die_after(c, who, cluster_below(c, EL_MS(1)), MEMBER_STOPPED);
    } else if (!a->told) {
        el_usec after = a->stubborn ? x->grace : EL_MS(1) + cluster_below(c, EL_MS(60));
        if (!x->grace || !captures_hold(c, who, after, MEMBER_STOPPED))
            cluster_die_after(c, who, after, MEMBER_STOPPED);
    }
    a->told = true;
}

static void on_die(struct cluster *c, const struct cluster_item *it)
{
    struct cluster_agent *a = &c->agent[it->who];
    if (a->life != it->life || a->attempt != it->attempt || !a->alive || (a->told && it->result == MEMBER_SUCCESS))
        return;
    if (it->result == MEMBER_SUCCESS && captures_holds(c, it->who)) {
        cluster_again_at(c, it, c->now + EL_MS(50));
        return;
    }
    a->alive = false;
    a->succeeded = it->result == MEMBER_SUCCESS;
    judge_gone(c, it->who);
    struct cluster_item *closed = local(c, it->who, EL_MS(1), MEMBER_EV_CLOSED);
    closed->attempt = it->attempt;
    closed->result = it->result;
}

static void do_exit(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    cluster_note(c, who, "exits with %u: %.120s", a->m.status, a->m.text);
    a->up = false;
    a->gone = true;
    a->status = a->m.status;
    a->life++;
    if (a->alive && !a->stuck)
        cluster_fail(c, "agent %u exits, its workers live", who);
    net_agent_died(c, who, false);
}

static void do_send(struct cluster *c, uint32_t who, enum msg_type what)
{
    struct cluster_agent *a = &c->agent[who];
    struct msg m;
    if (what == MSG_HEARTBEAT && a->acked) /* the shell looks before it sends */
        local(c, who, 0, MEMBER_EV_DELIVERED)->serial = a->acked;
    member_message(&a->m, what, c->now, &m);
    a->sent++;
    c->hellos += what == MSG_HELLO;
    net_send(c, a->link, true, &m);
}

static void act(struct cluster *c, uint32_t who, const struct member_action *x)
{
    struct cluster_agent *a = &c->agent[who];
    struct msg m;
    switch (x->type) {
    case MEMBER_DO_CONNECT: net_connect(c, who, false); break;
    case MEMBER_DO_DISCONNECT:
        net_close(c, a->link, true, false);
        a->link = 0;
        break;
    case MEMBER_DO_SEND: do_send(c, who, x->what); break;
    case MEMBER_DO_INCIDENTS: storm_tell(c, who); break;
    case MEMBER_DO_OPEN_STORE: {
        bool slow = !c->quiet && c->now < c->faults_until && cluster_one_in(c, 40);
        struct cluster_item *it = local(c, who, slow ? EL_SEC(7) : EL_MS(1), MEMBER_EV_STORE);
        it->ok = slow || c->quiet || c->now >= c->faults_until || !cluster_one_in(c, 40);
        it->serial = a->m.store.number;
        break;
    }
    case MEMBER_DO_CLOSE_STORE: net_tenants(c, who, MSG_NONE); break;
    case MEMBER_DO_LEASE_REQUEST: net_connect(c, who, true); break;
    case MEMBER_DO_LEASE_RELEASE:
        net_close(c, a->lease, true, false);
        a->lease = 0;
        break;
    case MEMBER_DO_LEASE_SEND:
        if (a->acked)
            local(c, who, 0, MEMBER_EV_DELIVERED)->serial = a->acked;
        member_message(&a->m, x->what, c->now, &m);
        net_send(c, a->lease, true, &m);
        break;
    case MEMBER_DO_TENANTS_SEND: net_tenants(c, who, x->what); break;
    case MEMBER_DO_START: do_start(c, who); break;
    case MEMBER_DO_PROBE: probes_order(c, who, c->probe_order); break;
    case MEMBER_DO_PROBE_STOP: probes_stop(c, who); break;
    case MEMBER_DO_PROBE_TELL: probes_tell(c, who, x->what); break;
    case MEMBER_DO_RESTORE: restores_offer(c, who, a->m.restore.stock.told, a->m.restore.stock.told_lineage); break;
    case MEMBER_DO_GO: restores_go(c, who); break;
    case MEMBER_DO_RESTOCK: restores_again(c, who); break;
    case MEMBER_DO_PARTS:
    case MEMBER_DO_FILES:
    case MEMBER_DO_WRITE:
    case MEMBER_DO_FILE:
    case MEMBER_DO_PUBLISH:
    case MEMBER_DO_UNSAVE:
    case MEMBER_DO_SAVED: saves_act(c, who, x->type); break;
    case MEMBER_DO_COMMON: commons_order(c, who, &c->save_order->u.ckpt_common); break;
    case MEMBER_DO_WORDS: captures_order(c, who, &c->save_order->u.ckpt_capture); break;
    case MEMBER_DO_WORDS_LOST: captures_lost(c, who); break;
    case MEMBER_DO_STOP: do_stop(c, who, x); break;
    case MEMBER_DO_DIFFER:
    case MEMBER_DO_NOTICE:
    case MEMBER_DO_UNNOTICE:
    case MEMBER_DO_SAY:
    case MEMBER_DO_SAY_FENCED: break;
    case MEMBER_DO_EXIT: do_exit(c, who); break;
    }
}

void cluster_set_timer(struct cluster *c, uint32_t who)
{
    el_usec *at = who == CLUSTER_COORD ? &c->coord_timer : &c->agent[who].timer_at;
    el_usec due = who == CLUSTER_COORD ? rdzv_deadline(c->r) : member_deadline(&c->agent[who].m);
    if (due >= *at)
        return;
    *at = due < c->now ? c->now : due;
    cluster_push(c, *at, CLUSTER_TIMER, who)->serial = *at;
}

/* Without a default: a new event without a name is a warning. */
static const char *event_name(enum member_event_type type)
{
    switch (type) {
    case MEMBER_EV_START: return "start";
    case MEMBER_EV_CONNECTED: return "connected";
    case MEMBER_EV_CONNECT_FAILED: return "connect failed";
    case MEMBER_EV_LINK_CLOSED: return "closed";
    case MEMBER_EV_MSG: return "";
    case MEMBER_EV_DELIVERED: return "delivered";
    case MEMBER_EV_LEASE_DELIVERED: return "lease delivered";
    case MEMBER_EV_STORE: return "store";
    case MEMBER_EV_LEASE_GRANTED: return "knock ok";
    case MEMBER_EV_LEASE_FAILED: return "knock failed";
    case MEMBER_EV_LEASE_CLOSED: return "lease closed";
    case MEMBER_EV_LEASE_MSG: return "lease";
    case MEMBER_EV_TENANT: return "tenant";
    case MEMBER_EV_STARTED: return "started";
    case MEMBER_EV_SUBSCRIBED: return "aware";
    case MEMBER_EV_STEP_REPORT: return "live";
    case MEMBER_EV_AT_BOUNDARY: return "boundary";
    case MEMBER_EV_STOCK: return "stock";
    case MEMBER_EV_READ: return "read";
    case MEMBER_EV_READS: return "reads";
    case MEMBER_EV_STAND: return "stand";
    case MEMBER_EV_TAKEN: return "taken";
    case MEMBER_EV_DIGESTS: return "digests";
    case MEMBER_EV_WENT_BACK: return "went back";
    case MEMBER_EV_HELD: return "held";
    case MEMBER_EV_SAVED: return "saved";
    case MEMBER_EV_MOVED: return "moved";
    case MEMBER_EV_PROBE_ID: return "probe id";
    case MEMBER_EV_PROBED: return "probed";
    case MEMBER_EV_WORKER_FAILED: return "failed";
    case MEMBER_EV_CLOSED: return "attempt closed";
    case MEMBER_EV_SIGNAL: return "signal";
    case MEMBER_EV_TIMEOUT: return "time";
    }
    return "?";
}

void cluster_feed(struct cluster *c, uint32_t who, const struct member_event *ev)
{
    struct cluster_agent *a = &c->agent[who];
    if (c->failed || !a->up)
        return;
    struct member_actions out;
    if (ev->msg)
        c->save_order = ev->msg;
    if (ev->msg && ev->msg->type == MSG_PROBE)
        c->probe_order = &ev->msg->u.probe;
    member_step(&a->m, ev, c->now, &out);
    c->steps++;
    member_check(&a->m);
    cluster_mix(c, c->now << 20 ^ (uint64_t)who << 8 ^ (uint64_t)ev->type << 4 ^ out.n ^ (uint64_t)a->m.place << 60);
    bool dull = ev->type == MEMBER_EV_TIMEOUT || ev->type == MEMBER_EV_DELIVERED || ev->type == MEMBER_EV_TENANT ||
                ev->type == MEMBER_EV_LEASE_MSG ||
                (ev->msg && (ev->msg->type == MSG_HEARTBEAT_ACK || ev->msg->type == MSG_NONE));
    if ((!dull || c->verbose) && !c->quiet)
        cluster_note(c, who, "%s%s -> %s, round %llu.%llx, %u actions", ev->msg ? msg_name(ev->msg->type) : "event ",
                     ev->msg ? "" : event_name(ev->type), member_place_name(a->m.place),
                     (unsigned long long)a->m.round.number, (unsigned long long)a->m.round.coord & 0xfff, out.n);
    for (unsigned i = 0; i < out.n && !c->failed; i++)
        act(c, who, &out.v[i]);
    if (!a->up)
        return;
    cluster_set_timer(c, who);
    el_usec fence = member_fence_at(&a->m);
    if (fence == a->fence)
        return;
    a->fence = fence;
    if (fence != EL_NEVER && fence > c->now)
        cluster_push(c, fence, CLUSTER_GUARD, who)->serial = fence;
}

/* The guard is another process: it kills at the moment that it was told last, even while its agent stands still.  The
 * agent sees that when it wakes. */
static void on_guard(struct cluster *c, const struct cluster_item *it)
{
    struct cluster_agent *a = &c->agent[it->who];
    if (!a->up || a->fence != it->serial || !a->alive || a->stuck || a->paused_until <= c->now)
        return;
    cluster_note(c, it->who, "the guard kills its workers");
    a->alive = false;
    a->told = true;
    judge_gone(c, it->who);
    struct cluster_item *shot = local(c, it->who, 0, MEMBER_EV_WORKER_FAILED); /* nobody here has sent the signal */
    shot->attempt = a->attempt;
    shot->guard = true;
    struct cluster_item *closed = local(c, it->who, 1, MEMBER_EV_CLOSED);
    closed->attempt = a->attempt;
    closed->result = MEMBER_FAILED;
}

/* --- births and deaths --- */

static void boot_agent(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    if (a->up || a->gone)
        return;
    struct member_conf conf = {.instance = el_rng_next(&c->rng),
                               .node_rank = a->node_rank,
                               .slots = 1 + (who & 3),
                               .set = c->conf.set,
                               .coordinator_timeout = EL_SEC(100)};
    snprintf(conf.run_id, sizeof conf.run_id, "job");
    snprintf(conf.host, sizeof conf.host, "h%u", who);
    snprintf(conf.role, sizeof conf.role, who & 1 ? "default" : "other");
    snprintf(conf.addr, sizeof conf.addr, "10.0.0.2");
    member_init(&a->m, &conf, el_rng_next(&c->rng));
    a->up = true;
    a->timer_at = a->fence = EL_NEVER;
    a->acked = 0;
    a->link = a->lease = 0;
    a->top = a->top_coord = 0;
    restores_boot(c, who);
    saves_boot(c, who);
    a->probe.on = a->checked = a->condemned = false;
    if (a->alive && a->stuck) /* what SIGKILL did not end before is not this life's */
        a->alive = a->stuck = false;
    cluster_feed(c, who, &(struct member_event){.type = MEMBER_EV_START});
}

/* kill -9 (the guard kills the workers), or the power is gone (nobody is told). */
void cluster_kill_agent(struct cluster *c, uint32_t who, bool power)
{
    struct cluster_agent *a = &c->agent[who];
    if (!a->up)
        return;
    cluster_note(c, who, power ? "FAULT: the power is gone" : "FAULT: kill -9");
    a->up = false;
    a->life++;
    if (a->alive) {
        a->alive = false;
        judge_gone(c, who);
    }
    net_agent_died(c, who, power);
}

/* --- events --- */

static void on_timer(struct cluster *c, const struct cluster_item *it)
{
    bool coord = it->who == CLUSTER_COORD;
    el_usec *at = coord ? &c->coord_timer : &c->agent[it->who].timer_at;
    if (it->serial != *at || (coord ? !c->coord_up : !c->agent[it->who].up))
        return;
    el_usec paused = coord ? c->coord_paused_until : c->agent[it->who].paused_until;
    if (paused > c->now) {
        *at = paused + 1;
        cluster_push(c, *at, CLUSTER_TIMER, it->who)->serial = *at;
        return;
    }
    *at = EL_NEVER;
    bool due = (coord ? rdzv_deadline(c->r) : member_deadline(&c->agent[it->who].m)) <= c->now;
    if (!due)
        cluster_set_timer(c, it->who);
    else if (coord)
        cluster_feed_coord(c, &(struct rdzv_event){.type = RDZV_EV_TIMEOUT});
    else
        cluster_feed(c, it->who, &(struct member_event){.type = MEMBER_EV_TIMEOUT});
}

void cluster_again_at(struct cluster *c, const struct cluster_item *it, el_usec at)
{
    struct cluster_item *later = cluster_push(c, at, it->kind, it->who);
    *later = *it;
}

/* What the workers of a node that failed say: nothing of the program, the node's hardware, or always the same
 * exception.
 */
static struct restart_digest cluster_digest(struct cluster *c, const struct cluster_item *it)
{
    struct restart_digest d = {.kind = RESTART_SILENT};
    if (it->event != MEMBER_EV_CLOSED || it->result != MEMBER_FAILED)
        return d;
    d.kind = RESTART_OTHER;
    d.witnesses = 1;
    d.hardware = el_rng_below(&c->words, 4) == 0;
    if (el_rng_below(&c->words, 20) == 0) {
        d.kind = RESTART_CODE;
        memcpy(d.what, "ValueError", 11);
        memcpy(d.place, "train.py:1", 11);
        c->same++;
    }
    return d;
}

static void on_local(struct cluster *c, const struct cluster_item *it)
{
    struct cluster_agent *a = &c->agent[it->who];
    if (!a->up || a->life != it->life || (it->attempt && it->attempt != a->attempt))
        return;
    if (a->paused_until > c->now) {
        cluster_again_at(c, it, a->paused_until);
        return;
    }
    if (it->event == MEMBER_EV_DELIVERED && !a->link)
        return;
    struct member_incident x = {.time = c->now, .code = 3, .signal = -1, .text = "exit code 3"};
    const struct restart_digest digest = cluster_digest(c, it);
    struct member_event ev = {.type = it->event,
                              .result = it->result,
                              .ok = it->ok,
                              .stuck = it->stuck,
                              .port = it->who + 1,
                              .addr = "10.0.0.1",
                              .incidents = it->result == MEMBER_FAILED,
                              .at = it->serial,
                              .incident = &x,
                              .digest = &digest};
    if (it->event == MEMBER_EV_STARTED && !a->alive)
        return;
    struct restore_stock stock;
    if ((it->event == MEMBER_EV_STOCK || it->event == MEMBER_EV_READ) &&
        (!a->alive || a->told || !restores_says(c, it)))
        return;
    if (it->event == MEMBER_EV_STOCK)
        restores_stock(c, it->who, &stock);
    else if (it->event == MEMBER_EV_READ)
        restores_read(c, it->who);
    else if (it->event == MEMBER_EV_STARTED)
        restores_started(c, it->who);
    ev.stock = &stock;
    if (it->stage && !probes_local(c, it))
        return;
    if (it->event == MEMBER_EV_STORE && it->serial != a->m.store.number)
        return;
    if (it->event == MEMBER_EV_WORKER_FAILED && !it->guard) {
        if (!a->alive || a->told || captures_fails(c, it->who))
            return;
        storm_failed(c, it->who);
        a->told = true; /* the node core stops the others by itself */
        el_usec after = a->stubborn ? EL_MS(c->conf.set.grace_ms) : EL_MS(5);
        if (!captures_hold(c, it->who, after, MEMBER_FAILED))
            cluster_die_after(c, it->who, after, MEMBER_FAILED);
    }
    if (it->event == MEMBER_EV_CLOSED)
        saves_closed(c, it->who);
    if (captures_local(c, it, &ev) && saves_local(c, it, &ev) && commons_local(c, it, &ev))
        cluster_feed(c, it->who, &ev);
}

static void dispatch(struct cluster *c, struct cluster_item *it)
{
    switch (it->kind) {
    case CLUSTER_TIMER: on_timer(c, it); break;
    case CLUSTER_ARRIVE: net_arrive(c, it); break;
    case CLUSTER_ACKED: net_acked(c, it); break;
    case CLUSTER_GUARD: on_guard(c, it); break;
    case CLUSTER_CONNECTED:
        if (c->agent[it->who].paused_until > c->now)
            cluster_again_at(c, it, c->agent[it->who].paused_until);
        else
            net_connected(c, it);
        break;
    case CLUSTER_LOCAL: on_local(c, it); break;
    case CLUSTER_DIE: on_die(c, it); break;
    case CLUSTER_WALK:
        if (c->coord_up && it->life == c->coord_life && c->walking)
            cluster_walk(c);
        break;
    case CLUSTER_JOURNAL: cluster_journaled(c, it); break;
    case CLUSTER_COMMIT: restores_commit(c, it); break;
    case CLUSTER_FAULT: cluster_fault(c); break;
    case CLUSTER_BOOT:
        if (it->who == CLUSTER_COORD)
            cluster_boot_coord(c);
        else
            boot_agent(c, it->who);
        break;
    case CLUSTER_STOPS: storm_stops(c, it); break;
    case CLUSTER_OVERLAP: judge_overlap(c, it); break;
    case CLUSTER_JUDGE: judge_all_is_well(c); break;
    }
}

/* --- a run --- */

void cluster_free(struct cluster *c)
{
    for (unsigned i = 0; i < c->rounds; i++) {
        free(c->round[i].holder);
        free(c->round[i].done);
        free(c->round[i].read);
    }
    rdzv_free(c->r);
    free(c->round);
    free(c->agent);
    free(c->conn);
    free(c->heap);
    free(c->item);
    free(c->rank_holder);
    *c = (struct cluster){.verbose = c->verbose};
}

static void set_up(struct cluster *c)
{
    uint64_t max = c->quiet ? c->n : 1 + cluster_below(c, c->n), min = c->quiet ? c->n : 1 + cluster_below(c, max);
    uint64_t unit = c->quiet || cluster_below(c, 3) ? 1 : 1 + cluster_below(c, 3);
    unit = (min + unit - 1) / unit * unit > max ? 1 : unit;
    c->conf.set = (struct rdzv_settings){.min = min,
                                         .max = max,
                                         .unit = unit,
                                         .max_restarts = cluster_below(c, 12),
                                         .max_fruitless = 40,
                                         .settle_ms = 3000,
                                         .last_call_ms = 8000,
                                         .join_timeout_ms = 60000,
                                         .keep_alive_ms = 1000,
                                         .keep_alive_attempts = 5,
                                         .reconnect_grace_ms = 100,
                                         .scale_up_delay_ms = 1000,
                                         .grace_ms = 3000,
                                         .replace_wait_ms = cluster_below(c, 4) ? 0 : 3000,
                                         .stable_window_ms = cluster_below(c, 4) ? 0 : 5000};
    c->conf.set.restart_policy = el_rng_below(&c->words, 4) ? RESTART_SMART : el_rng_below(&c->words, 3);
    c->conf.set.quarantine_ms = el_rng_below(&c->words, 2) ? 5000 : 0;
    snprintf(c->conf.run_id, sizeof c->conf.run_id, "job");
    c->conf.room = rdzv_room(&c->conf.set) + c->n;
    c->delay = 100 + cluster_below(c, EL_MS(2));
    c->jitter = cluster_below(c, EL_MS(2));
    c->training = c->quiet ? EL_SEC(600) : EL_SEC(15) + cluster_below(c, EL_SEC(60));
    c->faults_until = c->quiet ? 0 : EL_SEC(10) + cluster_below(c, EL_SEC(90));
    c->judge_at = c->faults_until + EL_SEC(45);
    probes_set_up(c);
    c->restores = !c->quiet && c->seed % 3 == 2;
    c->conf.set.allow_fresh = 1;
    c->saves = c->restores && c->n < 40 && el_rng_below(&c->stores, 2);
    c->conf.set.ckpt_store = c->saves ? CKPT_COMMIT_SHARED : CKPT_COMMIT_OFF;
    c->conf.set.emergency_ms = c->saves ? 3000 : 0;
    c->captures = c->saves && el_rng_below(&c->lives, 2);
    bool ranked = cluster_below(c, 3) == 0;
    for (uint32_t i = 0; i < c->n; i++) {
        c->agent[i].node_rank = ranked ? (int)i : -1;
        cluster_push(c, cluster_below(c, c->quiet ? EL_MS(200) : EL_SEC(6)), CLUSTER_BOOT, i);
    }
    cluster_push(c, cluster_below(c, EL_SEC(2)), CLUSTER_BOOT, CLUSTER_COORD);
    if (!c->quiet) {
        cluster_push(c, EL_SEC(1) + cluster_below(c, EL_SEC(5)), CLUSTER_FAULT, CLUSTER_COORD);
        cluster_push(c, c->judge_at, CLUSTER_JUDGE, CLUSTER_COORD);
    }
}

bool cluster_run(struct cluster *c, uint64_t seed, unsigned agents, bool quiet)
{
    cluster_free(c);
    c->seed = seed;
    c->rng.state = seed * 2654435761u;
    c->faults.state = ~seed;
    c->words.state = seed ^ 0x5555;
    c->stocks.state = seed ^ 0x3333;
    c->stores.state = seed ^ 0x7777;
    c->lives.state = seed ^ 0x9999;
    c->n = agents;
    c->quiet = quiet;
    c->codec = !quiet && seed % 8 == 0;
    c->unkept = !quiet && seed % 8 == 5;
    c->item_free = UINT32_MAX;
    c->mem = EL_MEM_INIT(0);
    c->agent = calloc(agents, sizeof *c->agent);
    c->rank_holder = malloc(agents * sizeof *c->rank_holder);
    if (!c->agent || !c->rank_holder)
        abort();
    memset(c->rank_holder, 0xff, agents * sizeof *c->rank_holder);
    set_up(c);
    el_usec horizon = quiet ? EL_SEC(600) : c->faults_until + c->training + EL_SEC(260);
    while (c->heap_n && !c->failed && c->heap[0].at <= horizon) {
        uint32_t i = cluster_pop(c);
        struct cluster_item it = c->item[i];
        c->item[i].conn = c->item_free;
        c->item_free = i;
        dispatch(c, &it);
    }
    if (!quiet && !c->failed)
        judge_last(c);
    return !c->failed;
}
