/* The step that all nodes hold (common_step.h) as part of a round: who speaks for which seat, and who is told. */
#include "coord/rdzv_private.h"

int rdzv_common_init(struct rdzv *r)
{
    return common_step_init(&r->common, r->conf.room, r->mem);
}

/* What a script has left behind on disk is left. */
static bool common_step_round_advance(struct rdzv *r, el_usec now)
{
    struct slot_pin_step was = r->common.step;
    int64_t step;
    bool news = common_step_advance(&r->common, now);
    bool other = was.step != r->common.step.step || was.lineage != r->common.step.lineage;
    if (r->saving && other && common_step_went_back(&r->common, was, &step)) {
        ckpt_commit_went_back(r->saving, step, r->common.step.lineage, now);
        r->saving_due = true;
    }
    return news;
}

void rdzv_common_taken(struct rdzv *r, unsigned i, const struct msg_ckpt_taken *m, el_usec now,
                       struct rdzv_actions *out)
{
    const struct rdzv_member *x = &r->member[i];
    bool up = r->state == RDZV_RUNNING || r->state == RDZV_STOPPING;
    bool seated = x->seat != RDZV_NONE && (r->state == RDZV_REBUILDING || (up && x->phase == RDZV_BUSY));
    if (!seated || m->number != r->number || m->coord != r->coord)
        return;
    struct common_step_taken t = {
        .elsewhere = m->elsewhere,
        .told = {.era = (int64_t)m->era, .passed = m->passed, .begun = m->begun, .ready = m->ready, .stuck = m->stuck}};
    t.told.whole = common_step_list_get(m->whole, t.told.is_whole, SLOT_PIN_TOLD);
    t.told.coming = common_step_list_get(m->coming, t.told.is_coming, SLOT_PIN_TOLD);
    common_step_take(&r->common, x->seat, &t, now);
    bool news = r->state != RDZV_REBUILDING && common_step_round_advance(r, now);
    if (news)
        rdzv_act(out, RDZV_DO_ORDER_EACH);
    else if (r->state != RDZV_REBUILDING && common_step_has_word(&r->common, x->seat, x->conn))
        rdzv_act(out, RDZV_DO_ORDER)->member = i;
}

void rdzv_common_timeout(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    if (rdzv_common_deadline(r) <= now && common_step_round_advance(r, now))
        rdzv_act(out, RDZV_DO_ORDER_EACH);
}

el_usec rdzv_common_deadline(const struct rdzv *r)
{
    return r->state == RDZV_RUNNING ? common_step_deadline(&r->common) : EL_NEVER;
}

bool rdzv_common_word(struct rdzv *r, unsigned member, struct msg *out)
{
    const struct rdzv_member *m = &r->member[member];
    bool up = r->state == RDZV_RUNNING || r->state == RDZV_STOPPING;
    struct common_step_word w;
    if (!up || m->phase != RDZV_BUSY || m->seat == RDZV_NONE || !common_step_word(&r->common, m->seat, m->conn, &w))
        return false;
    for (unsigned i = 0; i < w.n; i++)
        w.useless[i].era = -1; /* that is the node's to know */
    common_step_list_put(w.useless, w.n, r->useless, sizeof r->useless);
    *out = (struct msg){.type = MSG_CKPT_COMMON};
    out->u.ckpt_common = (struct msg_ckpt_common){.number = r->number,
                                                  .coord = r->coord,
                                                  .step = w.step.step,
                                                  .lineage = w.step.lineage,
                                                  .useless = r->useless,
                                                  .from = (uint64_t)w.from};
    return true;
}
