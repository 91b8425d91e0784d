#include "coord/rdzv_private.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/snip.h"

static const struct {
    const char *name;
    unsigned next; /* bits by enum rdzv_state */
} states[] = {
    [RDZV_REBUILDING] = {"rebuilding", 1u << RDZV_WAITING | 1u << RDZV_RUNNING | 1u << RDZV_CLOSING},
    [RDZV_WAITING] = {"waiting", 1u << RDZV_REBUILDING | 1u << RDZV_PROBING | 1u << RDZV_OPENING | 1u << RDZV_CLOSING},
    [RDZV_PROBING] = {"probing", 1u << RDZV_WAITING | 1u << RDZV_CLOSING},
    [RDZV_OPENING] = {"opening", 1u << RDZV_WAITING | 1u << RDZV_RECORDING},
    [RDZV_RECORDING] = {"recording", 1u << RDZV_WAITING | 1u << RDZV_RUNNING},
    [RDZV_RUNNING] = {"running", 1u << RDZV_STOPPING | 1u << RDZV_CLOSING},
    [RDZV_STOPPING] = {"stopping", 1u << RDZV_WAITING | 1u << RDZV_CLOSING},
    [RDZV_CLOSING] = {"closing", 1u << RDZV_ENDING},
    [RDZV_ENDING] = {"ending", 1u << RDZV_OVER},
    [RDZV_OVER] = {"over", 0},
};

const char *rdzv_state_name(enum rdzv_state s)
{
    return states[s].name;
}

const char *rdzv_note_name(enum note_type t)
{
    static const char *const names[] = {
#define X(NAME, name) name,
        NOTE_LIST(X)
#undef X
    };
    return names[t];
}

void rdzv_move(struct rdzv *r, enum rdzv_state to, el_usec now)
{
    assert(states[r->state].next & 1u << to);
    r->spent[r->state] += now - r->state_since;
    r->state = to;
    r->state_since = now;
    r->tell = true;
}

struct rdzv_action *rdzv_act(struct rdzv_actions *out, enum rdzv_action_type type)
{
    assert(out->n < RDZV_ACTIONS_MAX);
    struct rdzv_action *x = &out->v[out->n++];
    *x = (struct rdzv_action){.type = type, .member = RDZV_NONE};
    return x;
}

void rdzv_say(struct rdzv *r, struct rdzv_actions *out, enum note_type type, unsigned member, const char *format, ...)
{
    assert(r->notes < RDZV_NOTES_MAX);
    struct rdzv_note *note = &r->note[r->notes];
    note->type = type;
    note->member = member;
    note->number = r->number;
    snprintf(note->host, sizeof note->host, "%s", member == RDZV_NONE ? "" : r->member[member].host);
    va_list ap;
    va_start(ap, format);
    el_vsnip(note->text, sizeof note->text, format, ap);
    va_end(ap);
    rdzv_act(out, RDZV_DO_NOTE)->note = r->notes++;
}

void rdzv_journal(struct rdzv *r, struct rdzv_actions *out)
{
    rdzv_act(out, RDZV_DO_JOURNAL)->serial = ++r->serial;
    r->serial_waits = false;
}

void rdzv_refuse(struct rdzv *r, struct rdzv_actions *out, uint64_t conn, unsigned status, bool retry,
                 const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(r->answer_text, sizeof r->answer_text, format, ap);
    va_end(ap);
    r->answer = (struct msg){.type = MSG_REFUSED};
    r->answer.u.refused = (struct msg_refused){.status = status, .retry = retry, .text = r->answer_text};
    rdzv_say(r, out, NOTE_REFUSED, RDZV_NONE, "%s", r->answer_text);
    rdzv_act(out, RDZV_DO_REFUSE)->conn = conn;
}

/* --- life --- */

static void rdzv_take_record(struct rdzv *r, const struct rdzv_record *old, el_usec now)
{
    r->recorded = true;
    r->seen = r->number = old->number;
    r->coord = old->coord;
    r->charged = old->charged;
    r->world_first = (unsigned)old->world_first;
    r->world_last = (unsigned)old->world_last;
    r->min = old->min ? old->min : r->min;
    r->max = old->max ? old->max : r->max;
    rdzv_aside_take(r, old->aside, now);
    if (!old->ended)
        return;
    r->status = old->status;
    snprintf(r->end_text, sizeof r->end_text, "%s", old->text);
}

struct rdzv *rdzv_new(const struct rdzv_conf *conf, const struct rdzv_record *record, el_usec now, struct el_mem *mem)
{
    struct rdzv *r = el_alloc(mem, sizeof *r);
    if (!r)
        return NULL;
    const struct rdzv_settings *s = &conf->set;
    r->conf = *conf;
    r->mem = mem;
    r->min = s->min;
    r->max = s->max;
    r->rng.state = conf->token_start;
    r->store_until = r->stop_until = r->notice_until = r->end_until = r->journal_at = r->tell_at = EL_NEVER;
    r->min_since = r->lost_at = r->wake = EL_NEVER;
    r->waiting_since = r->last_join = r->last_turn = r->state_since = now;
    r->seen = conf->seen;
    r->documents = EL_MEM_INIT(RDZV_DOCUMENTS_MAX);
    r->documents.parent = mem;
    r->findings.root = -1;
    rdzv_health_init(r);
    uint64_t used = record ? record->restarts : 0, fruitless = record ? record->fruitless : 0;
    if (rdzv_roster_init(r) < 0 || rdzv_restore_init(r) < 0 || rdzv_saving_init(r) < 0 || rdzv_emergency_init(r) < 0 ||
        rdzv_common_init(r) < 0 || rdzv_comparing_init(r) < 0 ||
        budget_init(&r->budget, s->max_restarts, EL_MS(s->restart_window_ms), s->max_fruitless, used, fruitless, now,
                    mem) < 0) {
        rdzv_free(r);
        return NULL;
    }
    r->rebuild_until = conf->listening_since + rdzv_silence_limit(r);
    bool blind = !conf->surely_new && now < r->rebuild_until;
    r->state = blind || (record && record->number) ? RDZV_REBUILDING : RDZV_WAITING;
    if (record)
        rdzv_take_record(r, record, now);
    if (record && record->ended) {
        r->state = RDZV_ENDING;
        r->end_until = now + RDZV_END_LIMIT;
    }
    return r;
}

void rdzv_free(struct rdzv *r)
{
    if (!r)
        return;
    rdzv_incidents_free(r);
    rdzv_health_free(r);
    restore_free(&r->restore, r->mem);
    emergency_ckpt_free(&r->emergency, r->mem);
    common_step_free(&r->common, r->mem);
    replica_check_free(r->comparing);
    ckpt_commit_free(r->saving);
    rdzv_roster_free(r);
    budget_free(&r->budget, r->mem);
    el_free(r->mem, r);
}

/* --- time --- */

static void on_silence(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    uint32_t i = r->gone.first;
    if (i != RDZV_NONE && r->member[i].gone_until <= now && r->hold_until <= now) {
        rdzv_lose(r, i, now, out, "its connection closed");
        return;
    }
    i = r->quiet.first;
    if (i == RDZV_NONE || r->member[i].heard + rdzv_silence_limit(r) > now || now < r->hold_until)
        return;
    rdzv_act(out, RDZV_DO_CLOSE)->conn = r->member[i].conn;
    rdzv_lose(r, i, now, out, "silent for too long");
}

/* A store that does not come, and members that do not stop: one at a time, so that the list of actions stays short. */
static void on_overdue(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    if (r->store_until <= now) {
        struct rdzv_member *m = &r->member[r->seat[0].member];
        rdzv_say(r, out, NOTE_FINDING, r->seat[0].member, "%s did not open the store of round %llu within 5 s", m->host,
                 (unsigned long long)r->number);
        rdzv_tally(r, m, -1);
        m->doubted = true;
        rdzv_tally(r, m, 1);
        uint32_t i = r->seat[0].member;
        snprintf(r->no_store, sizeof r->no_store, "%s did not answer", m->host);
        rdzv_abandon(r, now);
        rdzv_act(out, RDZV_DO_ORDER)->member = i;
    }
    for (unsigned k = 0; r->stop_until <= now && k < r->size; k++) {
        uint32_t i = r->seat[k].member;
        if (i == RDZV_NONE || r->seat[k].stopped)
            continue;
        if (r->member[i].conn)
            rdzv_act(out, RDZV_DO_CLOSE)->conn = r->member[i].conn;
        rdzv_lose(r, i, now, out, "its workers did not stop in time");
        return;
    }
}

static void on_timeout(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    on_silence(r, now, out);
    on_overdue(r, now, out);
    rdzv_aside_expire(r, now, out);
    rdzv_health_timeout(r, now, out);
    rdzv_restore_timeout(r, now, out);
    rdzv_saving_timeout(r, now, out);
    rdzv_emergency_timeout(r, now, out);
    rdzv_common_timeout(r, now, out);
    if (r->notice_until <= now) {
        char why[MSG_TEXT_MAX + 1];
        memcpy(why, r->stop_text, sizeof why);
        rdzv_stop(r, now, out, "%s", why);
    }
    if (r->journal_at <= now) {
        r->journal_at = EL_NEVER;
        rdzv_journal(r, out);
        r->serial_waits = true;
    }
    if (r->state == RDZV_REBUILDING && r->rebuild_until <= now)
        rdzv_rebuilt(r, now, out);
}

static void end_is_recorded(struct rdzv *r, bool recorded, el_usec now, struct rdzv_actions *out)
{
    rdzv_move(r, RDZV_ENDING, now);
    r->end_until = now + RDZV_END_LIMIT;
    char text[MSG_TEXT_MAX - 60];
    rdzv_say(r, out, NOTE_ENDED, RDZV_NONE, "status %u: %s%s", r->status, el_snip(text, sizeof text, "%s", r->end_text),
             recorded ? "" : " (the journal could not be written)");
    rdzv_act(out, RDZV_DO_ORDER_EACH);
}

/* A full disk may become free again; a finished training must not be begun again because it was not. */
static void not_recorded(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    bool end = r->state == RDZV_CLOSING;
    el_usec limit = end ? RDZV_END_LIMIT : EL_MS(r->conf.set.join_timeout_ms);
    el_usec since = end ? r->state_since : r->waiting_since;
    if (now < since + limit) {
        r->journal_at = now + RDZV_JOURNAL_RETRY;
        rdzv_say(r, out, NOTE_FINDING, RDZV_NONE, "the journal cannot be written: %s has to wait",
                 end ? "the end" : "the round");
    } else if (end) {
        end_is_recorded(r, false, now, out);
    } else {
        rdzv_abandon(r, now);
        rdzv_end(r, now, out, EL_EXIT_CANTCREAT, "the journal could not be written within the join time-out");
    }
}

static void rdzv_on_journaled(struct rdzv *r, const struct rdzv_event *ev, el_usec now, struct rdzv_actions *out)
{
    if (!r->serial_waits || ev->serial != r->serial)
        return;
    r->serial_waits = false;
    if (!ev->ok)
        not_recorded(r, now, out);
    else if (r->state == RDZV_CLOSING)
        end_is_recorded(r, true, now, out);
    else
        rdzv_launch(r, now, out);
}

static void rdzv_on_closed(struct rdzv *r, const struct rdzv_event *ev, el_usec now)
{
    if (ev->member >= r->room_used || r->member[ev->member].conn != ev->conn || !ev->conn)
        return; /* it was replaced before */
    rdzv_roster_gone(r, ev->member, now + EL_MS(r->conf.set.reconnect_grace_ms));
    r->tell = true;
}

static void rdzv_on_msg(struct rdzv *r, const struct rdzv_event *ev, el_usec now, struct rdzv_actions *out)
{
    if (ev->member >= r->room_used || r->member[ev->member].conn != ev->conn || !ev->conn)
        return;
    rdzv_roster_heard(r, ev->member, now);
    if (ev->msg->type == MSG_HEARTBEAT)
        rdzv_act(out, RDZV_DO_BEAT)->member = ev->member;
    else
        rdzv_message(r, ev->member, ev->msg, now, out);
}

/* --- what follows from it all --- */

static void advance_waiting(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    bool enough = r->good + r->resort >= r->min;
    if (enough != (r->min_since != EL_NEVER))
        r->min_since = enough ? now : EL_NEVER;
    struct rdzv_verdict v = rdzv_verdict(r, now);
    r->wake = v.until;
    el_usec limit = r->waiting_since + EL_MS(r->conf.set.join_timeout_ms);
    if (v.wait == RDZV_GO && r->abandons && limit <= now) {
        rdzv_end(r, now, out, EL_EXIT_UNAVAILABLE, "join time-out: %u rounds could not be opened: %.300s", r->abandons,
                 r->no_store);
        return;
    }
    if (v.wait == RDZV_GO && rdzv_health_due(r)) {
        rdzv_health_begin(r, now, out);
        r->wake = r->state == RDZV_PROBING ? EL_NEVER : now;
        return;
    }
    if (v.wait == RDZV_GO) {
        rdzv_open(r, &v, now, out);
        return;
    }
    r->wake = limit < r->wake ? limit : r->wake;
    r->deserted = limit <= now && !r->members;
    if (limit <= now && v.wait <= RDZV_WAIT_UNIT)
        rdzv_end(r, now, out, EL_EXIT_UNAVAILABLE, "join time-out: %.400s", rdzv_wait_text(r, now));
    else if (limit <= now)
        r->wake = v.until;
}

static void advance_running(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    const char *why;
    r->wake = EL_NEVER;
    if (r->size && r->succeeded_seats == r->size && rdzv_saving_holds(r, true, now, out))
        return;
    if (r->size && r->succeeded_seats == r->size) {
        rdzv_end(r, now, out, EL_EXIT_OK, "all %u worker%s of round %llu %s succeeded", r->world, rdzv_plural(r->world),
                 (unsigned long long)r->number, r->world == 1 ? "has" : "have");
        return;
    }
    rdzv_notice_advance(r, now, out);
    if (r->noticed || r->succeeded_seats || !rdzv_would_change(r, &why))
        return;
    const struct rdzv_settings *s = &r->conf.set;
    el_usec quiet = r->last_join + EL_MS(s->scale_up_delay_ms), stable = r->started_at + EL_MS(s->stable_window_ms);
    r->wake = quiet > stable ? quiet : stable;
    if (r->wake <= now)
        rdzv_plan(r, NOTICE_SCALE_UP, now, out, why);
}

static void tell_waiting(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    bool waits = r->state <= RDZV_WAITING;
    if (!waits || !r->tell || r->changes == r->told_changes) {
        r->tell_at = EL_NEVER;
        return;
    }
    if (r->tell_at == EL_NEVER)
        r->tell_at = now + RDZV_TELL_EVERY;
    if (r->tell_at > now)
        return;
    r->tell_at = EL_NEVER;
    r->tell = false;
    r->told_changes = r->changes;
    rdzv_act(out, RDZV_DO_ORDER_EACH);
}

static void rdzv_advance(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    rdzv_comparing_advance(r, now, out);
    if (r->saving_due)
        rdzv_saving_advance(r, now, out);
    if (r->emergency_due)
        rdzv_emergency_advance(r, now, out);
    if (r->state == RDZV_STOPPING && !r->open_seats && !rdzv_saving_holds(r, false, now, out))
        rdzv_close(r, now, out);
    if (r->state == RDZV_WAITING)
        advance_waiting(r, now, out);
    else if (r->state == RDZV_RUNNING)
        advance_running(r, now, out);
    else
        r->wake = EL_NEVER;
    if (r->state == RDZV_ENDING && (!r->unacked || r->end_until <= now)) {
        rdzv_move(r, RDZV_OVER, now);
        r->end_until = EL_NEVER;
        rdzv_act(out, RDZV_DO_OVER);
    }
    if (r->closed && r->state == RDZV_WAITING) /* else the next order is on its way to most */
        rdzv_act(out, RDZV_DO_ORDER_EACH);
    r->closed = false;
    tell_waiting(r, now, out);
}

static el_usec rdzv_tick(const struct rdzv *r)
{
    return EL_MS(r->conf.set.keep_alive_ms) / 4;
}

/* One's own loop was away: what was sent meanwhile may not have been read yet, so silence proves nothing; and whoever
 * has closed may have done so because it was we who were silent. */
static void note_gap(struct rdzv *r, el_usec now)
{
    assert(now >= r->last_turn);
    bool listens = r->members || r->state == RDZV_REBUILDING; /* else nobody woke us for each tick */
    if (now - r->last_turn > EL_MS(r->conf.set.keep_alive_ms) / 2 && listens) {
        r->hold_until = now + rdzv_silence_limit(r);
        rdzv_health_gap(r, now - r->last_turn);
        if (r->state == RDZV_REBUILDING)
            r->rebuild_until = r->hold_until;
    }
    r->last_turn = now;
}

/* An order is computed when it is sent: once is enough. */
static void drop_repeated_orders(struct rdzv_actions *out)
{
    unsigned n = 0, each = RDZV_ACTIONS_MAX;
    for (unsigned i = 0; i < out->n; i++)
        each = out->v[i].type == RDZV_DO_ORDER_EACH ? i : each;
    for (unsigned i = 0; i < out->n; i++) {
        bool again = out->v[i].type == RDZV_DO_ORDER_EACH && i != each;
        for (unsigned k = i + 1; out->v[i].type == RDZV_DO_ORDER && k < out->n; k++)
            again |= k == each || (out->v[k].type == RDZV_DO_ORDER && out->v[k].member == out->v[i].member);
        if (!again)
            out->v[n++] = out->v[i];
    }
    out->n = n;
}

void rdzv_step(struct rdzv *r, const struct rdzv_event *ev, el_usec now, struct rdzv_actions *out)
{
    out->n = 0;
    r->notes = 0;
    note_gap(r, now);
    switch (ev->type) {
    case RDZV_EV_HELLO: rdzv_hello(r, ev, now, out); break;
    case RDZV_EV_MSG: rdzv_on_msg(r, ev, now, out); break;
    case RDZV_EV_COMMAND: rdzv_command(r, ev, now, out); break;
    case RDZV_EV_CLOSED: rdzv_on_closed(r, ev, now); break;
    case RDZV_EV_JOURNALED: rdzv_on_journaled(r, ev, now, out); break;
    case RDZV_EV_TIMEOUT: on_timeout(r, now, out); break;
    }
    rdzv_advance(r, now, out);
    if (out->n > 1)
        drop_repeated_orders(out);
    if (++r->unchecked < r->conf.room)
        return;
    r->unchecked = 0;
    rdzv_check(r);
}

el_usec rdzv_deadline(const struct rdzv *r)
{
    el_usec all[] = {r->store_until,
                     r->stop_until,
                     r->notice_until,
                     r->end_until,
                     r->journal_at,
                     r->tell_at,
                     r->wake,
                     rdzv_aside_deadline(r),
                     rdzv_health_deadline(r),
                     rdzv_restore_deadline(r),
                     rdzv_saving_deadline(r),
                     rdzv_emergency_deadline(r),
                     rdzv_common_deadline(r),
                     rdzv_comparing_deadline(r)};
    el_usec first = EL_NEVER;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        first = all[i] < first ? all[i] : first;
    if (r->state == RDZV_REBUILDING && r->rebuild_until < first)
        first = r->rebuild_until;
    el_usec lost = EL_NEVER;
    if (r->gone.first != RDZV_NONE)
        lost = r->member[r->gone.first].gone_until;
    if (r->quiet.first != RDZV_NONE && r->member[r->quiet.first].heard + rdzv_silence_limit(r) < lost)
        lost = r->member[r->quiet.first].heard + rdzv_silence_limit(r);
    lost = lost < r->hold_until ? r->hold_until : lost;
    first = lost < first ? lost : first;
    if ((r->members || r->state == RDZV_REBUILDING) && r->last_turn + rdzv_tick(r) < first)
        first = r->last_turn + rdzv_tick(r);
    return first;
}

void rdzv_check(const struct rdzv *r)
{
    rdzv_roster_check(r);
    rdzv_incidents_check(r);
    if (r->state == RDZV_PROBING)
        health_check_check(r->health.probing);
    restore_check(&r->restore);
    emergency_ckpt_check(&r->emergency);
    common_step_check(&r->common);
    replica_check_check(r->comparing);
    if (r->saving)
        ckpt_commit_check(r->saving);
    unsigned open = 0, lost = 0, good = 0;
    for (unsigned k = 0; k < r->size; k++) {
        const struct rdzv_seat *s = &r->seat[k];
        lost += s->member == RDZV_NONE;
        open += s->member != RDZV_NONE && !s->stopped;
        good += s->succeeded;
        assert(s->member == RDZV_NONE || r->member[s->member].seat == k);
    }
    assert(r->state == RDZV_REBUILDING || (open == r->open_seats && lost == r->lost_seats));
    assert(r->state == RDZV_REBUILDING || good == r->succeeded_seats);
    assert(r->budget.used <= r->budget.max || r->budget.window);
    unsigned resort = 0;
    for (uint32_t i = r->arrival.first; i != RDZV_NONE; i = r->member[i].arrival.next) {
        const struct rdzv_member *m = &r->member[i];
        assert(!m->aside || rdzv_is_aside(r, m->host));
        resort += m->phase == RDZV_READY && m->conn && !m->leaving && (m->stuck || m->doubted || m->aside);
    }
    assert(resort == r->resort);
    assert(r->asides <= RDZV_ASIDE_MAX && r->suspects <= RDZV_ASIDE_MAX);
    assert(r->size <= r->conf.room && r->seen >= r->number);
    if (r->state >= RDZV_OPENING && r->state <= RDZV_RUNNING && r->coord == r->conf.coord)
        assert(r->size % r->conf.set.unit == 0 && r->size);
    assert((r->state == RDZV_OPENING) == (r->store_until != EL_NEVER));
    assert((r->state == RDZV_STOPPING) == (r->stop_until != EL_NEVER));
    assert(r->state == RDZV_ENDING ? r->end_until != EL_NEVER : r->end_until == EL_NEVER);
}
