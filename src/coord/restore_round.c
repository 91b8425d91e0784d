/* The step agreement (restore.h) as part of a round: who speaks for which seat, and who is told. */
#include "coord/rdzv_private.h"

#include <stdio.h>

static const char *name_of_seat(const void *ctx, unsigned k)
{
    const struct rdzv *r = ctx;
    return r->seat[k].member == RDZV_NONE ? "a node that is lost" : r->member[r->seat[k].member].host;
}

int rdzv_restore_init(struct rdzv *r)
{
    const struct rdzv_settings *s = &r->conf.set;
    const struct restore_conf conf = {.room = r->conf.room,
                                      .timeout = EL_MS(s->restore_timeout_ms),
                                      .max_rollback = s->max_rollback,
                                      .allow_fresh = s->allow_fresh,
                                      .name = name_of_seat,
                                      .ctx = r};
    if (restore_init(&r->restore, &conf, r->mem) < 0)
        return -1;
    restore_begin(&r->restore, 0);
    return 0;
}

static void restore_round_say(struct rdzv *r, enum restore_state before, uint64_t attempt, struct rdzv_actions *out)
{
    const struct restore *x = &r->restore;
    const char *nodes = rdzv_plural(r->size);
    if (x->state == RESTORE_READING && (before != RESTORE_READING || attempt != x->attempt)) {
        if (x->step == RESTORE_NO_STEP)
            rdzv_say(r, out, NOTE_RESTORE, RDZV_NONE, "round %llu: %s", (unsigned long long)r->number, x->text);
        else
            rdzv_say(r, out, NOTE_RESTORE, RDZV_NONE, "round %llu: all %u node%s go back to step %lld%s%s%s",
                     (unsigned long long)r->number, r->size, nodes, (long long)x->step, *x->text ? " (" : "", x->text,
                     *x->text ? ")" : "");
    } else if (x->state == RESTORE_HEARING && before == RESTORE_READING) {
        rdzv_say(r, out, NOTE_FINDING, RDZV_NONE,
                 "round %llu: step %lld could not be read everywhere; all %u node%s agree once more",
                 (unsigned long long)r->number, (long long)x->step, r->size, nodes);
    }
}

static void restore_round_tell(struct rdzv *r, enum restore_news news, unsigned i, struct rdzv_actions *out)
{
    if (r->state == RDZV_REBUILDING || news == RESTORE_NO_NEWS)
        return; /* told when the round is whole */
    if (news == RESTORE_NEWS_ALL)
        rdzv_act(out, RDZV_DO_ORDER_EACH);
    else
        rdzv_act(out, RDZV_DO_ORDER)->member = i;
}

static bool restore_round_is_of_round(const struct rdzv *r, const struct rdzv_member *m,
                                      const struct msg_ckpt_inventory *s)
{
    bool seated = m->seat != RDZV_NONE && (m->phase == RDZV_BUSY || r->state == RDZV_REBUILDING);
    bool lives = r->state == RDZV_RUNNING || r->state == RDZV_REBUILDING;
    return lives && seated && s->number == r->number && s->coord == r->coord;
}

/* When it is decided, and once more when all have read it: until then an order of before may come to its end.  Nodes of
 * an earlier coordinator may have gone on long ago: what they say is on disk takes that into account. */
static void went_back(struct rdzv *r, enum restore_state before, el_usec now)
{
    const struct restore *x = &r->restore;
    bool decided = x->state == RESTORE_READING || x->state == RESTORE_OVER;
    if (before != x->state && x->state == RESTORE_OVER)
        common_step_restart(&r->common);
    if (!r->saving || r->state != RDZV_RUNNING || before == x->state || !decided)
        return;
    if (x->step == RESTORE_NO_STEP && !x->fresh)
        return;
    ckpt_commit_went_back(r->saving, x->step, 0, now);
    r->saving_due = true;
}

void rdzv_restore_stock(struct rdzv *r, unsigned i, const struct msg_ckpt_inventory *s, el_usec now,
                        struct rdzv_actions *out)
{
    const struct rdzv_member *m = &r->member[i];
    if (!restore_round_is_of_round(r, m, s))
        return;
    struct restore_stock stock = {.attempt = s->attempt,
                                  .since = s->since,
                                  .whole = s->whole,
                                  .newest = s->newest,
                                  .on_disk = s->on_disk,
                                  .elsewhere = s->elsewhere,
                                  .misfit = s->misfit,
                                  .at = (enum restore_at)s->at,
                                  .told = s->step,
                                  .told_lineage = s->lineage,
                                  .fresh = s->fresh};
    snprintf(stock.why, sizeof stock.why, "%s", s->text);
    restore_list_get(&stock, s->steps);
    enum restore_state before = r->restore.state;
    uint64_t attempt = r->restore.attempt;
    enum restore_news news = restore_take(&r->restore, m->seat, &stock, now);
    restore_round_say(r, before, attempt, out);
    restore_round_tell(r, news, i, out);
    went_back(r, before, now);
}

void rdzv_restore_timeout(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    if (r->state != RDZV_RUNNING)
        return;
    enum restore_state before = r->restore.state;
    uint64_t attempt = r->restore.attempt;
    char waits[RESTORE_TEXT_MAX + 1];
    if (restore_waits(&r->restore, now, waits))
        rdzv_say(r, out, NOTE_FINDING, RDZV_NONE, "round %llu: %s", (unsigned long long)r->number, waits);
    enum restore_news news = restore_timeout(&r->restore, now);
    restore_round_say(r, before, attempt, out);
    restore_round_tell(r, news, 0, out);
}

el_usec rdzv_restore_deadline(const struct rdzv *r)
{
    return r->state == RDZV_RUNNING ? restore_deadline(&r->restore) : EL_NEVER;
}

bool rdzv_restore_word(const struct rdzv *r, unsigned member, struct msg *out)
{
    const struct rdzv_member *m = &r->member[member];
    struct restore_word w;
    if (r->state != RDZV_RUNNING || m->phase != RDZV_BUSY || m->seat == RDZV_NONE ||
        !restore_word(&r->restore, m->seat, &w))
        return false;
    *out = (struct msg){.type = MSG_RESTORE};
    out->u.restore = (struct msg_restore){.number = r->number,
                                          .coord = r->coord,
                                          .attempt = w.attempt,
                                          .what = w.what,
                                          .step = w.step,
                                          .lineage = w.lineage,
                                          .fresh = w.fresh,
                                          .text = w.text};
    return true;
}
