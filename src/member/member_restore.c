/* Going back to a step that all ranks can have, as this node takes part in it (coord/restore.h): what it has said is
 * state, and said again on each connection. */
#include <stdio.h>
#include <string.h>

#include "member/member_private.h"

void member_restore_reset(struct member *m)
{
    m->restore = (struct member_restore){.stock = {.told = RESTORE_NO_STEP, .newest = RESTORE_NO_STEP}};
}

void member_restore_tell(struct member *m, struct member_actions *out)
{
    if (m->restore.stocked && m->attempt)
        member_send(m, out, MSG_CKPT_INVENTORY);
}

static void on_stock(struct member *m, const struct restore_stock *s, struct member_actions *out)
{
    struct member_restore *x = &m->restore;
    uint64_t attempt = x->stock.attempt;
    /* What was decided is of no use to us: one could not read it, or all have read it and ask once more. */
    bool next = !attempt || (x->stocked && x->stock.at >= RESTORE_AT_TOLD);
    x->stock = *s;
    x->stock.attempt = attempt + next;
    x->stock.at = RESTORE_AT_STOCK;
    x->stock.told = RESTORE_NO_STEP;
    x->stock.told_lineage = 0;
    x->stock.fresh = false;
    x->stocked = true;
    restore_list_put(&x->stock, x->steps);
    member_restore_tell(m, out);
}

void member_restore_event(struct member *m, const struct member_event *ev, struct member_actions *out)
{
    struct member_restore *x = &m->restore;
    if (!m->attempt || m->stopping)
        return;
    if (ev->type == MEMBER_EV_STOCK) {
        on_stock(m, ev->stock, out);
    } else if (x->stocked && x->stock.at == RESTORE_AT_TOLD) {
        x->stock.at = ev->type == MEMBER_EV_READ ? RESTORE_AT_READ : RESTORE_AT_TOLD;
        member_restore_tell(m, out);
    }
}

static void on_tell(struct member *m, const struct msg_restore *r, struct member_actions *out)
{
    struct member_restore *x = &m->restore;
    if (r->attempt <= x->stock.attempt) { /* a coordinator that does not know how far we are */
        member_restore_tell(m, out);
        return;
    }
    x->stock.attempt = r->attempt;
    x->stock.at = RESTORE_AT_STOCK;
    x->stocked = false;
    member_act(out, MEMBER_DO_RESTOCK);
}

static void on_read(struct member *m, const struct msg_restore *r, struct member_actions *out)
{
    struct member_restore *x = &m->restore;
    if (!x->stocked || x->stock.at != RESTORE_AT_STOCK || r->attempt < x->stock.attempt)
        return; /* it comes again when the workers here ask; or it is known */
    x->stock.attempt = r->attempt;
    x->stock.at = RESTORE_AT_TOLD;
    x->stock.told = r->step;
    x->stock.told_lineage = r->lineage;
    x->stock.fresh = r->fresh;
    snprintf(x->text, sizeof x->text, "%s", r->text);
    if (r->step != RESTORE_NO_STEP || r->fresh)
        member_save_went_back(m, r->step);
    member_act(out, MEMBER_DO_RESTORE);
}

void member_restore_order(struct member *m, const struct msg_restore *r, struct member_actions *out)
{
    struct member_restore *x = &m->restore;
    bool ours = r->number == m->round.number && r->coord == m->round.coord;
    if (!ours || !m->attempt || m->stopping || !x->stock.attempt)
        return;
    if (r->what == RESTORE_TELL) {
        on_tell(m, r, out);
    } else if (r->what == RESTORE_READ) {
        on_read(m, r, out);
    } else if (r->attempt == x->stock.attempt && x->stock.at == RESTORE_AT_READ) {
        x->stock.at = RESTORE_AT_GONE;
        member_save_went_back(m, x->stock.told);
        member_act(out, MEMBER_DO_GO);
    }
}

void member_restore_message(const struct member *m, struct msg_ckpt_inventory *out)
{
    const struct restore_stock *s = &m->restore.stock;
    *out = (struct msg_ckpt_inventory){.number = m->round.number,
                                       .coord = m->round.coord,
                                       .attempt = s->attempt,
                                       .steps = m->restore.steps,
                                       .since = s->since,
                                       .whole = s->whole,
                                       .newest = s->newest,
                                       .on_disk = s->on_disk,
                                       .elsewhere = s->elsewhere,
                                       .misfit = s->misfit,
                                       .at = s->at,
                                       .step = s->told,
                                       .lineage = s->told_lineage,
                                       .fresh = s->fresh,
                                       .text = s->why};
}
