/* The step that all nodes hold (rdzv/common.h) as this node takes part in it: which steps it has is state, and said
 * again on each connection. */
#include "agent/member_private.h"

void member_common_tell(struct member *m, struct member_actions *out)
{
    const struct member_taken *t = m->taken;
    if (t && t->number == m->round.number && t->coord == m->round.coord)
        member_send(m, out, MSG_CKPT_TAKEN);
}

void member_common_event(struct member *m, const struct member_event *ev, struct member_actions *out)
{
    m->taken = ev->taken;
    member_common_tell(m, out);
}

void member_common_order(struct member *m, const struct msg_ckpt_common *c, struct member_actions *out)
{
    if (m->attempt && m->round.number == c->number && m->round.coord == c->coord)
        member_act(out, MEMBER_DO_COMMON);
}

void member_common_message(const struct member *m, struct msg_ckpt_taken *out)
{
    const struct member_taken *t = m->taken;
    *out = (struct msg_ckpt_taken){.number = t->number,
                                   .coord = t->coord,
                                   .whole = t->whole,
                                   .coming = t->coming,
                                   .era = t->era < 0 ? 0 : (uint64_t)t->era,
                                   .passed = t->passed,
                                   .begun = member_step_told(t->begun),
                                   .ready = t->ready,
                                   .stuck = t->stuck,
                                   .elsewhere = t->elsewhere};
}
