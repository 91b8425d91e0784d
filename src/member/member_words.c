/* Emergency checkpoint of live workers (coord/emergency_ckpt.h) as this node takes part in them: where its workers
 * stand is state, and said again on each connection; without a coordinator nobody waits for others. */
#include "member/member_private.h"

static bool member_words_is_of_round(const struct member *m, const struct member_stand *s)
{
    return s && s->number == m->round.number && s->coord == m->round.coord;
}

void member_words_tell(struct member *m, struct member_actions *out)
{
    if (member_words_is_of_round(m, m->stand))
        member_send(m, out, MSG_EMERGENCY_STATE);
}

void member_words_event(struct member *m, const struct member_event *ev, struct member_actions *out)
{
    m->stand = ev->stand;
    m->stand_lost &= !m->stand->ends;
    member_words_tell(m, out);
}

void member_words_order(struct member *m, const struct msg_ckpt_capture *c, struct member_actions *out)
{
    if (m->attempt && m->round.number == c->number && m->round.coord == c->coord)
        member_act(out, MEMBER_DO_WORDS);
    m->stand_over |= c->what == EMERGENCY_CKPT_OVER && m->round.number == c->number && m->round.coord == c->coord;
}

bool member_words_last(const struct member *m)
{
    return member_words_is_of_round(m, m->stand) && !m->stand->ends && !m->stand_over;
}

/* Once for each time that it waits. */
void member_words_advance(struct member *m, struct member_actions *out)
{
    if (m->link == MEMBER_LINK_UP || m->stand_lost || !member_words_last(m))
        return;
    m->stand_lost = true;
    member_act(out, MEMBER_DO_WORDS_LOST);
}

void member_words_message(const struct member *m, struct msg_emergency_state *out)
{
    const struct member_stand *s = m->stand;
    *out = (struct msg_emergency_state){.number = s->number,
                                        .coord = s->coord,
                                        .serial = s->serial,
                                        .list = s->list,
                                        .steps = s->steps,
                                        .limit = member_step_told(s->limit),
                                        .step = member_step_told(s->step),
                                        .copied = s->copied,
                                        .copies = s->copies,
                                        .bytes = s->bytes,
                                        .busy = s->busy,
                                        .ends = s->ends,
                                        .elsewhere = s->elsewhere,
                                        .text = s->why};
}
