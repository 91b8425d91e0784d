/* Emergency checkpoint of live workers (emergency_ckpt.h) as part of a round: who speaks for which seat, who is told,
 * and how long the end of the round waits for it.  What was copied is in slots then, and goes the way of every
 * snapshot: to disk before the round is closed (ckpt_commit_round.c), and back into the workers of the next one
 * (restore_round.c).
 */
#include "coord/rdzv_private.h"

#include <stdio.h>

static bool emergency_ckpt_round_leaves(void *ctx, unsigned k)
{
    const struct rdzv *r = ctx;
    return r->seat[k].member != RDZV_NONE && r->member[r->seat[k].member].leaving;
}

static const char *name(void *ctx, unsigned k)
{
    const struct rdzv *r = ctx;
    return r->seat[k].member == RDZV_NONE ? "a node that is lost" : r->member[r->seat[k].member].host;
}

static enum emergency_ckpt_level disk(void *ctx, int64_t step)
{
    struct rdzv *r = ctx;
    return ckpt_commit_live_level(r->saving, step);
}

int rdzv_emergency_init(struct rdzv *r)
{
    el_usec limit = EL_MS(r->conf.set.emergency_ms); /* of which the disk has half at least */
    const struct emergency_ckpt_conf conf = {.room = r->conf.room,
                                             .limit = r->saving ? limit / 2 : limit,
                                             .disk = r->saving ? disk : NULL,
                                             .leaves = emergency_ckpt_round_leaves,
                                             .name = name,
                                             .ctx = r};
    return emergency_ckpt_init(&r->emergency, &conf, r->mem);
}

void rdzv_emergency_round(struct rdzv *r)
{
    emergency_ckpt_round(&r->emergency, r->size);
    r->emergency_due = r->emergency_over = false;
}

void rdzv_emergency_gone(struct rdzv *r, unsigned k, bool lost)
{
    emergency_ckpt_gone(&r->emergency, k, lost);
    r->emergency_due = true;
}

/* Who holds its workers back needs its grace behind that. */
void rdzv_emergency_stop(struct rdzv *r, el_usec now)
{
    el_usec until = emergency_ckpt_until(&r->emergency), from = until == EL_NEVER ? now : until;
    if (r->state == RDZV_STOPPING && r->open_seats)
        r->stop_until = from + r->stop_grace + RDZV_STOP_MARGIN;
}

static void emergency_ckpt_round_say(struct rdzv *r, struct rdzv_actions *out)
{
    struct emergency_ckpt_end end = emergency_ckpt_end(&r->emergency);
    char instead[64] = "no snapshot that all hold is there", lost[64] = "";
    if (end.lost)
        snprintf(lost, sizeof lost, ", nothing of %u lost node%s", end.lost, rdzv_plural(end.lost));
    if (end.instead != EMERGENCY_CKPT_NO_STEP)
        snprintf(instead, sizeof instead, "the snapshot of step %lld counts", (long long)end.instead);
    if (end.step != EMERGENCY_CKPT_NO_STEP && end.copies)
        rdzv_say(r, out, NOTE_EMERGENCY, RDZV_NONE,
                 "emergency checkpoint: step %lld is captured from %u live worker%s of %u node%s%s: %.1f MiB in %.3f s",
                 (long long)end.step, end.copies, rdzv_plural(end.copies), end.nodes, rdzv_plural(end.nodes), lost,
                 (double)end.bytes / (1 << 20), (double)end.took / (double)EL_SEC(1));
    else if (end.step == EMERGENCY_CKPT_NO_STEP && *end.why)
        rdzv_say(r, out, NOTE_EMERGENCY, RDZV_NONE, "emergency checkpoint: nothing newer is captured, %s: %s", instead,
                 end.why);
}

/* Once; and not before it is said why the round stops: a script that fails waits for its emergency checkpoint, and ends
 * then. */
void rdzv_emergency_say(struct rdzv *r, struct rdzv_actions *out)
{
    bool over = r->emergency.state == EMERGENCY_CKPT_IS_OVER;
    if (r->state != RDZV_STOPPING)
        return;
    if (over && !r->emergency_over)
        emergency_ckpt_round_say(r, out);
    r->emergency_over = over;
}

/* What is in memory alone is of use to another round only. */
static bool is_worth_it(const struct rdzv *r, el_usec now)
{
    return r->saving || (!r->stop_job && (!r->failed || r->membership || budget_left(&r->budget, now)));
}

bool rdzv_emergency_advance(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    struct emergency_ckpt *w = &r->emergency;
    r->emergency_due = false;
    if (r->state != RDZV_RUNNING && r->state != RDZV_STOPPING)
        return false;
    if (!is_worth_it(r, now))
        emergency_ckpt_give_up(w, "", now);
    if (!emergency_ckpt_advance(w, now))
        return false;
    rdzv_act(out, RDZV_DO_ORDER_EACH);
    rdzv_emergency_stop(r, now);
    rdzv_emergency_say(r, out);
    return true;
}

/* A round that is over, for us: nobody waits for what its workers hold. */
static void emergency_ckpt_round_let_go(struct rdzv *r, unsigned i, const struct msg_emergency_state *m,
                                        struct rdzv_actions *out)
{
    r->member[i].held = m->ends ? 0 : m->number;
    r->member[i].held_coord = m->coord;
    if (!m->ends)
        rdzv_act(out, RDZV_DO_ORDER)->member = i;
}

/* While a coordinator that was restarted still listens it takes what is said, and orders nothing. */
void rdzv_emergency_stand(struct rdzv *r, unsigned i, const struct msg_emergency_state *m, el_usec now,
                          struct rdzv_actions *out)
{
    const struct rdzv_member *x = &r->member[i];
    bool up = (r->state == RDZV_RUNNING || r->state == RDZV_STOPPING) && x->phase == RDZV_BUSY;
    bool seated = x->seat != RDZV_NONE && (up || (r->state == RDZV_REBUILDING && x->phase != RDZV_STRAY));
    if (!seated || m->number != r->number || m->coord != r->coord) {
        emergency_ckpt_round_let_go(r, i, m, out);
        return;
    }
    r->member[i].held = 0;
    struct emergency_ckpt_stand s = {.serial = m->serial,
                                     .ends = m->ends,
                                     .busy = m->busy,
                                     .elsewhere = m->elsewhere,
                                     .copied = m->copied,
                                     .limit = m->limit,
                                     .step = m->step,
                                     .copies = (unsigned)m->copies,
                                     .bytes = m->bytes,
                                     .why = m->text};
    emergency_ckpt_list_get(&s, m->steps);
    if (r->saving)
        ckpt_commit_stand(r->saving, i, m);
    emergency_ckpt_take(&r->emergency, x->seat, &s, now);
    struct emergency_ckpt_word word;
    bool all = rdzv_emergency_advance(r, now, out);
    if (!all && r->state != RDZV_REBUILDING && emergency_ckpt_word(&r->emergency, x->seat, &word))
        rdzv_act(out, RDZV_DO_ORDER)->member = i;
}

void rdzv_emergency_timeout(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    if (emergency_ckpt_deadline(&r->emergency) <= now)
        rdzv_emergency_advance(r, now, out);
}

el_usec rdzv_emergency_deadline(const struct rdzv *r)
{
    bool up = r->state == RDZV_RUNNING || r->state == RDZV_STOPPING;
    return up ? emergency_ckpt_deadline(&r->emergency) : EL_NEVER;
}

bool rdzv_emergency_word(const struct rdzv *r, unsigned member, struct msg *out)
{
    const struct rdzv_member *m = &r->member[member];
    struct emergency_ckpt_word w;
    bool up = r->state == RDZV_RUNNING || r->state == RDZV_STOPPING;
    if (m->held) {
        *out = (struct msg){.type = MSG_CKPT_CAPTURE};
        out->u.ckpt_capture = (struct msg_ckpt_capture){.number = m->held,
                                                        .coord = m->held_coord,
                                                        .what = EMERGENCY_CKPT_OVER,
                                                        .limit = EMERGENCY_CKPT_NO_STEP,
                                                        .step = EMERGENCY_CKPT_NO_STEP,
                                                        .kept = EMERGENCY_CKPT_NO_STEP};
        return true;
    }
    if (!up || m->phase != RDZV_BUSY || m->seat == RDZV_NONE || !emergency_ckpt_word(&r->emergency, m->seat, &w))
        return false;
    *out = (struct msg){.type = MSG_CKPT_CAPTURE};
    out->u.ckpt_capture = (struct msg_ckpt_capture){.number = r->number,
                                                    .coord = r->coord,
                                                    .what = w.what,
                                                    .heard = w.heard,
                                                    .limit = w.limit,
                                                    .step = w.step,
                                                    .kept = w.kept};
    return true;
}
