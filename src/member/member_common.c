/* The step that all nodes hold (coord/common_step.h), and whether they hold the same in what they share
 * (coord/replica_check.h), as this node takes part in it: which steps it has, and the digests of one, are state, and
 * said again on each connection. */
#include "member/member_private.h"

static bool member_common_is_present(const struct member *m, uint64_t number, uint64_t coord)
{
    return number == m->round.number && coord == m->round.coord;
}

static void tell_taken(struct member *m, struct member_actions *out)
{
    if (m->taken && member_common_is_present(m, m->taken->number, m->taken->coord))
        member_send(m, out, MSG_CKPT_TAKEN);
}

static void tell_digests(struct member *m, struct member_actions *out)
{
    if (m->digests && member_common_is_present(m, m->digests->number, m->digests->coord))
        member_send(m, out, MSG_CKPT_DIGESTS);
}

void member_common_tell(struct member *m, struct member_actions *out)
{
    tell_taken(m, out);
    tell_digests(m, out);
}

void member_common_event(struct member *m, const struct member_event *ev, struct member_actions *out)
{
    if (ev->type == MEMBER_EV_TAKEN) {
        m->taken = ev->taken;
        tell_taken(m, out);
    } else {
        m->digests = ev->digests;
        tell_digests(m, out);
    }
}

/* What the workers had alike can be told when they are gone, too. */
void member_common_order(struct member *m, const struct msg *msg, struct member_actions *out)
{
    const struct msg_ckpt_common *c = &msg->u.ckpt_common;
    const struct msg_ckpt_differ *d = &msg->u.ckpt_differ;
    if (msg->type == MSG_CKPT_DIFFER && member_common_is_present(m, d->number, d->coord))
        member_act(out, MEMBER_DO_DIFFER);
    else if (msg->type == MSG_CKPT_COMMON && m->attempt && member_common_is_present(m, c->number, c->coord))
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

void member_digests_message(const struct member *m, struct msg_ckpt_digests *out)
{
    const struct member_digests *d = m->digests;
    *out = (struct msg_ckpt_digests){
        .number = d->number, .coord = d->coord, .step = d->step, .lineage = d->lineage, .digests = d->text};
}
