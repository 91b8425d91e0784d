/* A round from the chosen to its end: store, journal, WORLD, stop, what it cost. */
#include "coord/rdzv_private.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/snip.h"

#define LEFT_MAX 200

void rdzv_open(struct rdzv *r, const struct rdzv_verdict *v, el_usec now, struct rdzv_actions *out)
{
    assert(r->state == RDZV_WAITING && v->wait == RDZV_GO && v->target);
    uint64_t before = r->seen > r->number ? r->seen : r->number;
    rdzv_choose(r, v->target);
    r->number = r->seen = before + 1;
    r->coord = r->conf.coord;
    r->token = el_rng_next(&r->rng);
    r->formed = true;
    r->store_until = now + RDZV_STORE_LIMIT;
    snprintf(r->why, sizeof r->why, "%s", *r->stop_text ? r->stop_text : "all are here");
    rdzv_move(r, RDZV_OPENING, now);
    rdzv_act(out, RDZV_DO_ORDER)->member = r->seat[0].member;
}

/* One of the chosen is not there any more: the others are chosen again, at once. */
void rdzv_abandon(struct rdzv *r, el_usec now)
{
    assert(r->state == RDZV_OPENING || r->state == RDZV_RECORDING);
    r->store_until = r->journal_at = EL_NEVER;
    r->serial_waits = false;
    /* Another node may be able to at once; if it is always the same few, they get time. */
    unsigned doublings = r->abandons < 8 ? r->abandons : 8;
    el_usec pause = r->abandons ? RDZV_OPEN_RETRY << (doublings - 1) : 0;
    r->open_at = now + (pause < RDZV_OPEN_RETRY_MAX ? pause : RDZV_OPEN_RETRY_MAX);
    r->abandons++;
    r->changes++;
    rdzv_move(r, RDZV_WAITING, now);
}

/* The journal has it: WORLD may leave. */
void rdzv_launch(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    assert(r->state == RDZV_RECORDING);
    for (unsigned k = 0; k < r->size; k++) {
        struct rdzv_member *m = &r->member[r->seat[k].member];
        rdzv_tally(r, m, -1);
        m->phase = RDZV_BUSY;
        m->doubted = m->stuck = false;
        rdzv_tally(r, m, 1);
    }
    r->world_previous = r->world_last ? r->world_last : r->world;
    r->world_first = r->world_first ? r->world_first : r->world;
    r->world_last = r->world;
    r->restarts_told = r->budget.used;
    rdzv_name_successors(r);
    r->unstarted = false;
    r->started_at = now;
    r->failed = r->membership = r->planned = r->noticed = false;
    r->digest = (struct restart_digest){.kind = RESTART_SILENT};
    r->suspects = 0;
    rdzv_incidents_forget(r);
    r->lost_at = EL_NEVER;
    rdzv_health_launched(r);
    restore_begin(&r->restore, r->size);
    rdzv_saving_round(r);
    rdzv_emergency_round(r);
    common_step_round(&r->common, r->size);
    replica_check_round(r->comparing, r->number, r->coord, r->size);
    rdzv_move(r, RDZV_RUNNING, now);
    rdzv_say(r, out, NOTE_FORMED, r->seat[0].member, "round %llu: %u node%s, %u worker%s, rank 0 on %s (%s)",
             (unsigned long long)r->number, r->size, rdzv_plural(r->size), r->world, rdzv_plural(r->world),
             r->member[r->seat[0].member].host, r->why);
    rdzv_act(out, RDZV_DO_ORDER_EACH);
}

void rdzv_stop(struct rdzv *r, el_usec now, struct rdzv_actions *out, const char *format, ...)
{
    if (r->state != RDZV_RUNNING)
        return;
    va_list ap;
    va_start(ap, format);
    el_vsnip(r->stop_text, sizeof r->stop_text, format, ap);
    va_end(ap);
    if (!r->stop_job)
        r->stop_grace = EL_MS(r->conf.set.grace_ms);
    r->notice_until = EL_NEVER;
    r->stopped_at = now;
    r->stop_until = now + r->stop_grace + RDZV_STOP_MARGIN;
    rdzv_move(r, RDZV_STOPPING, now);
    rdzv_emergency_stop(r, now);
    rdzv_say(r, out, NOTE_STOPPING, RDZV_NONE, "round %llu stops: %s", (unsigned long long)r->number, r->stop_text);
    rdzv_emergency_say(r, out);
    rdzv_act(out, RDZV_DO_ORDER_EACH);
}

void rdzv_seat_stopped(struct rdzv *r, unsigned k)
{
    struct rdzv_seat *s = &r->seat[k];
    if (s->stopped || s->member == RDZV_NONE)
        return;
    s->stopped = true;
    rdzv_emergency_gone(r, k, false);
    assert(r->open_seats);
    r->open_seats--;
}

void rdzv_seat_succeeded(struct rdzv *r, unsigned k)
{
    if (r->seat[k].succeeded || r->seat[k].stopped)
        return;
    r->seat[k].succeeded = true;
    rdzv_emergency_gone(r, k, false);
    r->succeeded_seats++;
}

/* Not a loss: its part is done, and nobody needs its store. */
static bool is_done_with(const struct rdzv *r, unsigned k)
{
    return r->seat[k].succeeded && (k != 0 || r->succeeded_seats == r->size);
}

void rdzv_lose(struct rdzv *r, unsigned i, el_usec now, struct rdzv_actions *out, const char *why)
{
    struct rdzv_member *m = &r->member[i];
    unsigned k = m->seat;
    char host[MSG_NAME_MAX + 1], label[RDZV_LABEL_MAX];
    snprintf(host, sizeof host, "%s", m->host);
    rdzv_label(m, label);
    bool left = m->leaving, present = m->phase == RDZV_BUSY;
    if (!m->acked) /* who knows the end and goes is neither lost nor news */
        rdzv_say(r, out, left ? NOTE_LEFT : NOTE_LOST, i, "%s %s: %s", label, left ? "has left" : "was lost", why);
    rdzv_health_lost(r, i, now, out);
    rdzv_saving_lost(r, i);
    rdzv_roster_remove(r, i);
    r->tell = true;
    if (k == RDZV_NONE)
        return;
    if (r->state == RDZV_REBUILDING) {
        rdzv_unhear(r, k);
        return;
    }
    struct rdzv_seat *s = &r->seat[k];
    s->member = RDZV_NONE;
    replica_check_lost(r->comparing, k);
    rdzv_emergency_gone(r, k, true);
    r->lost_seats++;
    r->lost_at = now;
    if (!s->stopped)
        r->open_seats--;
    if (r->state == RDZV_OPENING || r->state == RDZV_RECORDING)
        rdzv_abandon(r, now);
    if (!present || is_done_with(r, k))
        return;
    r->membership = true;
    rdzv_stop(r, now, out, "%s %s (%s)", host, left ? "has left" : "was lost", why);
}

/* Whoever could not reach the store is doubted; if most could not, it is the store's host. */
static void doubt(struct rdzv *r)
{
    bool host = 2 * r->no_knocks > r->size - 1;
    for (unsigned k = 0; k < r->size && r->no_knocks; k++) {
        if (r->seat[k].member == RDZV_NONE)
            continue;
        struct rdzv_member *m = &r->member[r->seat[k].member];
        rdzv_tally(r, m, -1);
        m->doubted = host ? k == 0 : m->no_knock;
        rdzv_tally(r, m, 1);
    }
}

void rdzv_wait_again(struct rdzv *r, el_usec now)
{
    r->waiting_since = now;
    r->abandons = 0;
    r->open_at = r->waited = 0;
    r->min_since = EL_NEVER;
    rdzv_move(r, RDZV_WAITING, now);
}

static unsigned round_status_of(const struct rdzv_incident *x)
{
    if (x->code > 0)
        return (unsigned)x->code;
    return x->signal > 0 ? EL_EXIT_SIGNAL((unsigned)x->signal) : 1;
}

/* Whoever says only that a peer is gone may have waited for ranks that left too early: "; ranks 4-7 on host2 had ended
 * with 0". */
static const char *left_text(const struct rdzv *r, const struct rdzv_incident *root, char *to, size_t size)
{
    size_t at = 0;
    unsigned more = 0;
    *to = 0;
    for (unsigned k = 0; root->order.follower && k < r->size; k++) {
        const struct rdzv_seat *s = &r->seat[k];
        if (!s->succeeded || s->member == RDZV_NONE || at) {
            more += s->succeeded;
            continue;
        }
        const char *host = r->member[s->member].host;
        if (s->slots == 1)
            at = (size_t)snprintf(to, size, "; rank %u on %.64s had ended with 0", s->rank_base, host);
        else
            at = (size_t)snprintf(to, size, "; ranks %u-%u on %.64s had ended with 0", s->rank_base,
                                  s->rank_base + s->slots - 1, host);
    }
    if (at && more)
        snprintf(to + at, size - at, ", as had those of %u other node%s", more, rdzv_plural(more));
    return to;
}

/* Who failed, now that all have told; the failure that stopped the round may have been its consequence. */
static const char *cause_text(struct rdzv *r)
{
    const struct rdzv_incident *root = rdzv_root(r);
    char left[LEFT_MAX];
    if (!root)
        return r->stop_text;
    el_snip(r->end_cause, sizeof r->end_cause, "rank %u on %s failed: %s%s", root->order.rank, root->host, root->text,
            left_text(r, root, left, sizeof left));
    return r->end_cause;
}

static void end_by_failure(struct rdzv *r, el_usec now, struct rdzv_actions *out, const char *why)
{
    const struct rdzv_incident *root = rdzv_root(r);
    (void)cause_text(r);
    rdzv_end(r, now, out, root ? round_status_of(root) : r->failed ? 1 : EL_EXIT_TEMPFAIL, "%s", why);
}

/* Who was it?  Said before anything is decided. */
static void say_cause(struct rdzv *r, struct rdzv_actions *out)
{
    rdzv_find(r);
    const struct rdzv_incident *root = rdzv_root(r);
    char left[LEFT_MAX];
    if (!root)
        return;
    rdzv_say(r, out, NOTE_CAUSE, RDZV_NONE, "%s rank %u on %s: %s%s",
             r->findings.among > 1 ? "among the first to fail:" : "first to fail:", root->order.rank, root->host,
             root->text, left_text(r, root, left, sizeof left));
    rdzv_act(out, RDZV_DO_REPORT);
}

/* Drained members are told to go; all others hold no workers any more and may be chosen again. */
static void release_seats(struct rdzv *r)
{
    for (unsigned k = 0; k < r->size; k++) {
        if (r->seat[k].member == RDZV_NONE)
            continue;
        struct rdzv_member *m = &r->member[r->seat[k].member];
        rdzv_tally(r, m, -1);
        m->phase = RDZV_READY;
        rdzv_tally(r, m, 1);
    }
}

/* A round in which a worker failed: what follows from how?  A round that costs nothing is followed by another whatever
 * its workers said. */
static void round_judge(struct rdzv *r, el_usec now, struct rdzv_actions *out, struct restart_verdict *v)
{
    const struct restart_round round = {.policy = (enum restart_policy)r->conf.set.restart_policy,
                                        .workers = r->world,
                                        .nodes = r->size,
                                        .lasted = r->stopped_at - r->started_at};
    *v = (struct restart_verdict){.next = RESTART_RESTART};
    if (r->failed)
        restart_next(&round, &r->digest, &r->history, v);
    else
        restart_other_end(&r->history, round.lasted);
    if (v->next == RESTART_SET_ASIDE)
        rdzv_set_aside(r, now, out);
}

/* Did it bring anything?  What ended by a failure is left to the restart budget alone if torchrun's ways are asked for.
 */
static bool brought_something(struct rdzv *r, bool costs, el_usec now)
{
    bool spared = r->unstarted && rdzv_is_enough(r); /* the others go on without whoever started nothing */
    bool counts = !spared && !r->planned && r->digest.kind != RESTART_PASSING &&
                  !(costs && r->conf.set.restart_policy == RESTART_ALWAYS);
    uint64_t steps = r->digest.steps_known ? r->digest.steps : BUDGET_NO_STEPS;
    return !counts || budget_lived(&r->budget, now - r->started_at, BUDGET_FRUITLESS, steps);
}

/* Every member has stopped or is lost: what did the round cost, and what now? */
void rdzv_close(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    assert(r->state == RDZV_STOPPING && !r->open_seats);
    bool costs = r->failed && !r->membership && r->charged < r->number;
    char why[MSG_TEXT_MAX + 1];
    r->stop_until = EL_NEVER;
    doubt(r);
    release_seats(r);
    r->closed = true;
    say_cause(r, out);
    if (r->stop_job) {
        rdzv_end(r, now, out, r->status, "%s", r->stop_text);
        return;
    }
    struct restart_verdict v;
    round_judge(r, now, out, &v);
    if (costs && v.next == RESTART_STOP && budget_left(&r->budget, now)) {
        end_by_failure(r, now, out, v.why);
        return;
    }
    if (costs && !budget_charge(&r->budget, now)) {
        el_snip(why, sizeof why, "the restart budget is used up (%llu of %llu): %s", (unsigned long long)r->budget.used,
                (unsigned long long)r->budget.max, cause_text(r));
        end_by_failure(r, now, out, why);
        return;
    }
    if (costs)
        r->charged = r->number;
    if (!brought_something(r, costs, now)) {
        el_snip(why, sizeof why, "no progress: %llu rounds in a row %s (--max-fruitless-restarts=%llu): %s",
                (unsigned long long)r->budget.fruitless,
                r->digest.steps_known ? "brought nothing, the last one no new step" : "ended within 60 s",
                (unsigned long long)r->conf.set.max_fruitless, cause_text(r));
        end_by_failure(r, now, out, why);
        return;
    }
    char wait[96] = "";
    if (v.wait)
        el_snip(wait, sizeof wait, ", in %llu s: what made it fail may pass by itself",
                (unsigned long long)(v.wait / EL_SEC(1)));
    rdzv_say(r, out, NOTE_CLOSED, RDZV_NONE, "round %llu is closed: %s%s", (unsigned long long)r->number,
             costs ? "one restart" : "no restart is charged", wait);
    rdzv_health_closed(r);
    rdzv_wait_again(r, now);
    r->open_at = v.wait ? now + v.wait : 0;
    r->waited = v.wait;
    rdzv_journal(r, out);
}

/* END leaves when the journal has it. */
void rdzv_end(struct rdzv *r, el_usec now, struct rdzv_actions *out, unsigned status, const char *format, ...)
{
    assert(r->state < RDZV_CLOSING);
    va_list ap;
    va_start(ap, format);
    el_vsnip(r->end_text, sizeof r->end_text, format, ap);
    va_end(ap);
    r->status = status;
    rdzv_saving_end(r, now, out);
    r->store_until = r->stop_until = r->notice_until = r->journal_at = EL_NEVER;
    rdzv_move(r, RDZV_CLOSING, now);
    rdzv_journal(r, out);
    r->serial_waits = true;
}
