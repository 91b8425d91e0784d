/* Parts that nodes share (replica_check.h) as part of a round: who speaks for which seat, who is asked, and what is
 * said.
 */
#include "coord/rdzv_private.h"

#include <stdio.h>

int rdzv_comparing_init(struct rdzv *r)
{
    r->comparing = replica_check_new(r->conf.room, r->mem, r->conf.sums ? r->conf.sums : r->mem);
    return r->comparing ? 0 : -1;
}

void rdzv_comparing_message(struct rdzv *r, unsigned i, const struct msg *msg)
{
    const struct rdzv_member *m = &r->member[i];
    bool up = r->state == RDZV_RUNNING || r->state == RDZV_STOPPING;
    if (m->seat != RDZV_NONE && (r->state == RDZV_REBUILDING || (up && m->phase == RDZV_BUSY)))
        replica_check_take(r->comparing, m->seat, msg);
}

static const char *replica_check_round_name_of(const struct rdzv *r, unsigned seat)
{
    return r->seat[seat].member != RDZV_NONE ? r->member[r->seat[seat].member].host : "a node that is lost";
}

static void replica_check_round_say(struct rdzv *r, const struct replica_check_difference *x, struct rdzv_actions *out)
{
    char tensors[REPLICA_CHECK_TEXT_MAX + 40] = "";
    if (x->tensors)
        snprintf(tensors, sizeof tensors, ", in %llu tensor%s: %s", (unsigned long long)x->tensors,
                 x->tensors == 1 ? "" : "s", x->names);
    rdzv_say(r, out, NOTE_FINDING, RDZV_NONE,
             "part \"%.64s\" (shard_id=\"%.32s\") differs between rank %llu on %.48s and rank %llu on %.48s at step "
             "%lld%s: " CKPT_COMMIT_DIFFER_ADVICE,
             x->part, x->shard, (unsigned long long)x->rank[0], replica_check_round_name_of(r, x->seat[0]),
             (unsigned long long)x->rank[1], replica_check_round_name_of(r, x->seat[1]), (long long)x->step, tensors);
}

/* One at a time, in a step that says nothing else. */
void rdzv_comparing_advance(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    struct replica_check_difference x;
    unsigned seats[2];
    if (r->state != RDZV_RUNNING && r->state != RDZV_STOPPING)
        return;
    int64_t step;
    unsigned compared;
    bool asks = replica_check_advance(r->comparing, now);
    if (!r->notes && replica_check_left_out(r->comparing, &step, &compared))
        rdzv_say(r, out, NOTE_FINDING, RDZV_NONE,
                 "what nodes hold in common is compared in part only, from step %lld on: there is room for %u parts of "
                 "this job",
                 (long long)step, compared);
    if (!r->notes && replica_check_next(r->comparing, &x)) {
        replica_check_round_say(r, &x, out);
        asks |= replica_check_advance(r->comparing, now);
    }
    if (!asks || !replica_check_asks(r->comparing, seats))
        return;
    for (unsigned i = 0; i < 2; i++)
        if (r->seat[seats[i]].member != RDZV_NONE)
            rdzv_act(out, RDZV_DO_ORDER)->member = r->seat[seats[i]].member;
}

el_usec rdzv_comparing_deadline(const struct rdzv *r)
{
    return r->state == RDZV_RUNNING || r->state == RDZV_STOPPING ? replica_check_deadline(r->comparing) : EL_NEVER;
}

bool rdzv_comparing_word(struct rdzv *r, unsigned member, struct msg *out)
{
    const struct rdzv_member *m = &r->member[member];
    bool up = r->state == RDZV_RUNNING || r->state == RDZV_STOPPING;
    return up && m->phase == RDZV_BUSY && m->seat != RDZV_NONE &&
           replica_check_word(r->comparing, m->seat, m->conn, out);
}
