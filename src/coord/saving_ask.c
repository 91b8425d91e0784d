/* What operators ask for (`elrun ckpt save`): that the newest step that all nodes together hold be on disk.  The node
 * that was asked says so until it has its answer. */
#include <stdio.h>

#include "coord/saving_private.h"

/* What could not be written before may be tried once more: somebody asks for it. */
void saving_take_ask(struct saving *s, struct saving_node *n, uint64_t ask)
{
    if (ask == n->ask)
        return;
    n->ask = ask;
    n->ask_at = ask ? SAVING_ASK_OPEN : SAVING_ASK_NONE;
    if (ask)
        saving_forgive(s);
    for (unsigned i = 0; ask && i < s->used; i++)
        s->node[i].failed = SAVING_NO_STEP;
}

/* The step that is to be written now, SAVING_NO_STEP: none is; who asks hears why. */
int64_t saving_asked(struct saving *s)
{
    bool any = false;
    for (unsigned i = 0; i < s->used; i++)
        any = any || s->node[i].ask_at == SAVING_ASK_OPEN;
    if (!any)
        return SAVING_NO_STEP;
    int64_t step = saving_newest(s, s->done, s->live);
    for (unsigned i = 0; i < s->used; i++) {
        struct saving_node *n = &s->node[i];
        if (n->ask_at != SAVING_ASK_OPEN)
            continue;
        n->ask_at = step == SAVING_NO_STEP ? SAVING_ASK_ANSWERED : SAVING_ASK_WRITTEN;
        n->ask_step = step == SAVING_NO_STEP ? s->done : step;
        n->ask_good = n->ask_step == s->done && s->done != SAVING_NO_STEP;
        s->tell = true;
    }
    return step;
}

void saving_ask_over(struct saving *s, int64_t step, bool good)
{
    for (unsigned i = 0; i < s->used; i++) {
        struct saving_node *n = &s->node[i];
        if (n->ask_at != SAVING_ASK_WRITTEN || n->ask_step != step)
            continue;
        n->ask_at = SAVING_ASK_ANSWERED;
        n->ask_good = good;
    }
}

/* bytes, took_ms, existed, lastwords, text: of the last result of that step. */
void saving_tell_result(const struct saving *s, struct msg_ckpt_over *o)
{
    const struct saving_result *x = saving_result_of(s, o->step, o->lineage);
    if (!x || x->good != o->good)
        return;
    o->bytes = x->bytes;
    o->took_ms = (uint64_t)(x->took / EL_MS(1));
    o->existed = x->existed;
    o->lastwords = x->lastwords;
    o->text = x->text;
}

void saving_ask_word(const struct saving *s, const struct saving_node *n, struct msg *out)
{
    const char *text = n->ask_good                     ? ""
                       : n->ask_step == SAVING_NO_STEP ? "no step is in memory that all nodes together hold"
                                                       : "it was not written";
    *out = (struct msg){.type = MSG_CKPT_OVER};
    out->u.ckpt_over = (struct msg_ckpt_over){.step = n->ask_step, .good = n->ask_good, .ask = n->ask, .text = text};
    saving_tell_result(s, &out->u.ckpt_over);
}
