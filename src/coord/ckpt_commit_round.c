/* Saving steps (ckpt_commit.h) as part of the job: who speaks for which seat, who is told, and what waits for it. */
#include "coord/rdzv_private.h"

#include <stdio.h>
#include <string.h>

enum { CKPT_COMMIT_LINES = 2 }; /* of one step */

static const char *name_of_member(const void *ctx, unsigned i)
{
    const struct rdzv *r = ctx;
    return r->member[i].host;
}

int rdzv_saving_init(struct rdzv *r)
{
    r->held.step = r->on_disk.step = CKPT_COMMIT_NO_STEP;
    const struct ckpt_commit_conf conf = {.store = (enum ckpt_commit_store)r->conf.set.ckpt_store,
                                          .room = r->conf.room,
                                          .giver = r->conf.coord,
                                          .name = name_of_member,
                                          .mem = r->mem,
                                          .ctx = r};
    if (conf.store == CKPT_COMMIT_OFF)
        return 0;
    r->saving = ckpt_commit_new(&conf);
    return r->saving ? 0 : -1;
}

void rdzv_saving_round(struct rdzv *r)
{
    if (!r->saving)
        return;
    ckpt_commit_round(r->saving, r->number, r->coord, r->size);
    ckpt_commit_world(r->saving, r->world);
    r->saving_ends = false;
    r->saving_due = true;
}

static void note_newest(struct rdzv_newest *n, int64_t step, el_usec now)
{
    if (n->step != step)
        *n = (struct rdzv_newest){step, now};
}

static const char *ckpt_commit_round_bytes_text(uint64_t bytes, char to[32])
{
    double v = (double)bytes;
    const char *unit = bytes < 1000000 ? "kB" : bytes < 1000000000 ? "MB" : "GB";
    snprintf(to, 32, "%.3g %s", v / (bytes < 1000000 ? 1e3 : bytes < 1000000000 ? 1e6 : 1e9), unit);
    return to;
}

/* Several that have failed for the same reason are one line; returns the last of them. */
static uint64_t ckpt_commit_round_say_failed(struct rdzv *r, const struct ckpt_commit_result *x,
                                             struct rdzv_actions *out)
{
    char steps[160];
    uint64_t last = x->serial;
    const struct ckpt_commit_result *next = ckpt_commit_result(r->saving, last + 1);
    size_t n = (size_t)snprintf(steps, sizeof steps, "%lld", (long long)x->step);
    for (; next && !next->good && strcmp(next->text, x->text) == 0 && n < sizeof steps - 24;
         next = ckpt_commit_result(r->saving, last + 1), last++)
        n += (size_t)snprintf(steps + n, sizeof steps - n, ", %lld", (long long)next->step);
    rdzv_say(r, out, NOTE_FINDING, RDZV_NONE, "checkpoint: step%s %s %s not on disk: %.470s",
             last > x->serial ? "s" : "", steps, last > x->serial ? "are" : "is", x->text);
    return last;
}

static void ckpt_commit_round_say_good(struct rdzv *r, const struct ckpt_commit_result *x, struct rdzv_actions *out)
{
    char size[32];
    if (x->existed)
        rdzv_say(r, out, NOTE_SAVED, RDZV_NONE, "checkpoint: step %lld was there already, and is valid",
                 (long long)x->step);
    else
        rdzv_say(r, out, NOTE_SAVED, RDZV_NONE, "checkpoint: step %lld%s is on disk: %s in %.1f s", (long long)x->step,
                 x->emergency ? " (emergency)" : "", ckpt_commit_round_bytes_text(x->bytes, size),
                 (double)x->took / (double)EL_SEC(1));
}

static unsigned ckpt_commit_round_say_late(struct rdzv *r, struct rdzv_actions *out)
{
    const struct ckpt_commit_late *x = ckpt_commit_late(r->saving);
    if (x->serial == r->ckpt_commit_late)
        return 0;
    r->ckpt_commit_late = x->serial;
    rdzv_say(r, out, NOTE_FINDING, RDZV_NONE,
             "checkpoint: step %lld has waited %u s to be written: %.300s; every rank has to call snapshot() for it, "
             "and after "
             "%u s it is given up",
             (long long)x->step, (unsigned)(CKPT_COMMIT_WORD / EL_SEC(1)), x->text,
             (unsigned)(CKPT_COMMIT_STALL / EL_SEC(1)));
    return 1;
}

/* What does not fit one step's notes is said with the next one. */
static void say_results(struct rdzv *r, struct rdzv_actions *out)
{
    for (unsigned lines = ckpt_commit_round_say_late(r, out);
         lines < CKPT_COMMIT_LINES && r->saving_told < ckpt_commit_results(r->saving); lines++) {
        const struct ckpt_commit_result *x = ckpt_commit_result(r->saving, ++r->saving_told);
        if (x && x->good)
            ckpt_commit_round_say_good(r, x, out);
        else if (x)
            r->saving_told = ckpt_commit_round_say_failed(r, x, out);
    }
    r->saving_due |= r->saving_told < ckpt_commit_results(r->saving);
}

static unsigned live_seats(const struct rdzv *r)
{
    unsigned n = 0;
    for (unsigned k = 0; k < r->size; k++)
        n += r->seat[k].member != RDZV_NONE;
    return n;
}

/* While it listens for nodes of an earlier coordinator it knows too little to order anything. */
void rdzv_saving_advance(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    if (!r->saving || r->state == RDZV_REBUILDING || r->state >= RDZV_CLOSING)
        return;
    r->saving_due = false;
    if (ckpt_commit_advance(r->saving, live_seats(r), now))
        rdzv_act(out, RDZV_DO_ORDER_EACH);
    say_results(r, out);
}

void rdzv_saving_message(struct rdzv *r, unsigned i, const struct msg *msg, el_usec now, struct rdzv_actions *out)
{
    const struct rdzv_member *m = &r->member[i];
    if (!r->saving)
        return;
    bool up = r->state == RDZV_RUNNING || r->state == RDZV_STOPPING;
    bool seated = m->seat < r->size && (r->state == RDZV_REBUILDING || (up && m->phase == RDZV_BUSY));
    ckpt_commit_take(r->saving, i, seated ? m->seat : CKPT_COMMIT_NO_SEAT, msg, now);
    note_newest(&r->held, ckpt_commit_covered(r->saving), now);
    note_newest(&r->on_disk, ckpt_commit_on_disk(r->saving), now);
    rdzv_saving_advance(r, now, out);
    if (r->state != RDZV_REBUILDING && ckpt_commit_has_word(r->saving, i, m->conn))
        rdzv_act(out, RDZV_DO_ORDER)->member = i;
}

/* Before the member's entry is empty: it is still named. */
void rdzv_saving_lost(struct rdzv *r, unsigned i)
{
    if (!r->saving)
        return;
    ckpt_commit_lost(r->saving, i);
    r->saving_due = true;
}

void rdzv_saving_timeout(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    if (r->saving && ckpt_commit_deadline(r->saving) <= now)
        rdzv_saving_advance(r, now, out);
}

el_usec rdzv_saving_deadline(const struct rdzv *r)
{
    return r->saving && r->state != RDZV_REBUILDING && r->state < RDZV_CLOSING ? ckpt_commit_deadline(r->saving)
                                                                               : EL_NEVER;
}

/* Of --emergency-timeout, by what live workers held. */
static el_usec captured_in(const struct rdzv *r, el_usec most)
{
    el_usec took = r->emergency.state == EMERGENCY_CKPT_IS_OVER ? emergency_ckpt_end(&r->emergency).took : 0;
    return took < most ? took : most;
}

/* The workers of the round are gone: does it stay open until what they left is on disk?  Of one that ends badly that
 * has its limit; what a script wanted before it ended well takes as long as bytes move. */
bool rdzv_saving_holds(struct rdzv *r, bool well, el_usec now, struct rdzv_actions *out)
{
    if (!r->saving)
        return false;
    el_usec limit = EL_MS(r->conf.set.emergency_ms);
    if (!r->saving_ends) {
        r->saving_ends = true;
        limit -= captured_in(r, limit / 2);
        ckpt_commit_settle(r->saving, !well && limit, well ? EL_NEVER : now + limit, now);
        if (r->state == RDZV_STOPPING) /* nobody is there any more who could be late */
            r->stop_until = now + limit + EL_SEC(1);
        rdzv_saving_advance(r, now, out);
    }
    return !ckpt_commit_is_settled(r->saving);
}

/* The job is over, or what it waits for has taken too long. */
void rdzv_saving_end(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    if (!r->saving)
        return;
    ckpt_commit_give_up(r->saving, now, "the job has ended before it was written (--emergency-timeout)");
    say_results(r, out);
}

bool rdzv_saving_word(struct rdzv *r, unsigned member, unsigned i, struct msg *out)
{
    return r->saving && r->state != RDZV_REBUILDING &&
           ckpt_commit_word(r->saving, member, r->member[member].conn, i, out);
}
