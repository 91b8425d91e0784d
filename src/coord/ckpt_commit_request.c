/* What operators ask for (`elrun ckpt save`): that the newest step that all nodes together hold be on disk.  The node
 * that was asked says so until it has its answer. */
#include <stdio.h>

#include "coord/ckpt_commit_private.h"

/* What could not be written before may be tried once more: somebody asks for it. */
void ckpt_commit_take_ask(struct ckpt_commit *s, struct ckpt_commit_node *n, uint64_t ask)
{
    if (ask == n->ask)
        return;
    n->ask = ask;
    n->ask_at = ask ? CKPT_COMMIT_ASK_OPEN : CKPT_COMMIT_ASK_NONE;
    if (ask)
        ckpt_commit_forgive(s);
    for (unsigned i = 0; ask && i < s->used; i++)
        s->node[i].failed = CKPT_COMMIT_NO_STEP;
}

/* The step that is to be written now, CKPT_COMMIT_NO_STEP: none is; who asks hears why. */
int64_t ckpt_commit_asked(struct ckpt_commit *s)
{
    bool any = false;
    for (unsigned i = 0; i < s->used; i++)
        any = any || s->node[i].ask_at == CKPT_COMMIT_ASK_OPEN;
    if (!any)
        return CKPT_COMMIT_NO_STEP;
    int64_t step = ckpt_commit_newest(s, s->done, s->live);
    for (unsigned i = 0; i < s->used; i++) {
        struct ckpt_commit_node *n = &s->node[i];
        if (n->ask_at != CKPT_COMMIT_ASK_OPEN)
            continue;
        n->ask_at = step == CKPT_COMMIT_NO_STEP ? CKPT_COMMIT_ASK_ANSWERED : CKPT_COMMIT_ASK_WRITTEN;
        n->ask_step = step == CKPT_COMMIT_NO_STEP ? s->done : step;
        n->ask_good = n->ask_step == s->done && s->done != CKPT_COMMIT_NO_STEP;
        s->tell = true;
    }
    return step;
}

void ckpt_commit_ask_over(struct ckpt_commit *s, int64_t step, bool good)
{
    for (unsigned i = 0; i < s->used; i++) {
        struct ckpt_commit_node *n = &s->node[i];
        if (n->ask_at != CKPT_COMMIT_ASK_WRITTEN || n->ask_step != step)
            continue;
        n->ask_at = CKPT_COMMIT_ASK_ANSWERED;
        n->ask_good = good;
    }
}

/* bytes, took_ms, existed, emergency, text: of the last result of that step. */
void ckpt_commit_tell_result(const struct ckpt_commit *s, struct msg_ckpt_over *o)
{
    const struct ckpt_commit_result *x = ckpt_commit_result_of(s, o->step, o->lineage);
    if (!x || x->good != o->good)
        return;
    o->bytes = x->bytes;
    o->took_ms = (uint64_t)(x->took / EL_MS(1));
    o->existed = x->existed;
    o->emergency = x->emergency;
    o->text = x->text;
}

void ckpt_commit_ask_word(const struct ckpt_commit *s, const struct ckpt_commit_node *n, struct msg *out)
{
    const char *text = n->ask_good                          ? ""
                       : n->ask_step == CKPT_COMMIT_NO_STEP ? "no step is in memory that all nodes together hold"
                                                            : "it was not written";
    *out = (struct msg){.type = MSG_CKPT_OVER};
    out->u.ckpt_over = (struct msg_ckpt_over){.step = n->ask_step, .good = n->ask_good, .ask = n->ask, .text = text};
    ckpt_commit_tell_result(s, &out->u.ckpt_over);
}
