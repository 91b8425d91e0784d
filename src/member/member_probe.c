/* Stages of a health check, as they are ordered and answered. */
#include <stdio.h>
#include <string.h>

#include "member/member_private.h"

void member_probe_stop(struct member *m, struct member_actions *out)
{
    if (m->probing)
        member_act(out, MEMBER_DO_PROBE_STOP);
    m->probing = m->probed = m->probe_ids = false;
}

/* Once on each connection: the results were lost with the last one, perhaps. */
static void tell_probe(struct member *m, struct member_actions *out)
{
    if (m->link != MEMBER_LINK_UP || m->probe_told == m->connection)
        return;
    if (m->probe_ids)
        member_act(out, MEMBER_DO_PROBE_TELL)->what = MSG_PROBE_ID;
    if (!m->probed)
        return;
    m->probe_told = m->connection;
    member_act(out, MEMBER_DO_PROBE_TELL)->what = MSG_PROBE_RESULT;
}

void member_probe_order(struct member *m, const struct msg_probe *p, el_usec now, struct member_actions *out)
{
    const struct member_stage stage = {p->number, p->coord, p->probe, p->stage};
    if (m->attempt) { /* as with WORLD */
        member_link_drop(m, "a health check while workers run", now, out);
        return;
    }
    bool same = m->probing && memcmp(&m->probe, &stage, sizeof stage) == 0;
    bool news = !m->probing || strcmp(m->text, p->text) != 0;
    m->parked = false;
    member_rest(m, out);
    if (!same) {
        member_probe_stop(m, out);
        m->probe = stage;
        m->probe_told = 0;
        m->probing = true;
    }
    member_act(out, MEMBER_DO_PROBE);
    tell_probe(m, out);
    if (!news || same || m->ended)
        return;
    snprintf(m->text, sizeof m->text, "%s", p->text);
    member_act(out, MEMBER_DO_SAY);
}

void member_probe_event(struct member *m, enum member_event_type type, struct member_actions *out)
{
    if (type == MEMBER_EV_PROBED) {
        m->probed = m->probing;
        tell_probe(m, out);
        return;
    }
    m->probe_ids = m->probing;
    if (m->probing && m->link == MEMBER_LINK_UP)
        member_act(out, MEMBER_DO_PROBE_TELL)->what = MSG_PROBE_ID;
}
