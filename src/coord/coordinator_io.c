#include "coord/coordinator.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "loop/peer_uid.h"
#include "coord/coordinator_private.h"
#include "util/log.h"
#include "util/parse.h"

enum { LOG_LINES_PER_SECOND = 16 };

/* --- words -------------------------------------------------------------------------------------------------------- */

void coordinator_say(struct coordinator *c, int level, const char *format, ...)
{
    el_usec now = loop_now(c->loop);
    if ((enum el_level)level > el_log_level())
        return;
    if (now - c->brake.second >= EL_SEC(1)) {
        if (c->brake.dropped)
            el_log(EL_WARN, "%s: %u more lines like these were left out", c->name, c->brake.dropped);
        c->brake.second = now;
        c->brake.lines = c->brake.dropped = 0;
    }
    if (c->brake.lines++ >= LOG_LINES_PER_SECOND) {
        c->brake.dropped++;
        return;
    }
    char text[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    el_log((enum el_level)level, "%s: %s", c->name, text);
}

static enum el_level note_level(enum note_type type)
{
    bool grave = type == NOTE_LOST || type == NOTE_REFUSED || type == NOTE_FAILED || type == NOTE_FINDING ||
                 type == NOTE_ASIDE || type == NOTE_JUDGED;
    return grave ? EL_WARN : type == NOTE_RECONNECTED ? EL_DEBUG : EL_INFO;
}

/* Inside an agent the report, and lines of the member, say the same on the same console. */
static bool is_told_beside(enum note_type type)
{
    return type == NOTE_FORMED || type == NOTE_FAILED || type == NOTE_STOPPING || type == NOTE_CAUSE ||
           type == NOTE_ENDED;
}

/* Who comes and goes is told by strangers' leave; what becomes of the job is always told. */
static void tell_note(struct coordinator *c, struct job *job, const struct rdzv_note *n)
{
    char shown[EL_SHOW_MAX];
    bool often = n->type <= NOTE_LEFT || n->type == NOTE_FAILED || n->type == NOTE_FINDING;
    enum el_level level = c->conf.one_job && is_told_beside(n->type) ? EL_DEBUG : note_level(n->type);
    const char *verb = n->type == NOTE_ENDED ? " has ended" : "";
    char about[EL_SHOW_MAX + 32] = "";
    if (!c->conf.one_job)
        snprintf(about, sizeof about, "job %s%s: ", el_show(rdzv_run_id(job->r), shown), verb);
    if (often)
        coordinator_say(c, (int)level, "%s%s", about, n->text);
    else
        el_log(level, "%s: %s%s", c->name, about, n->text);
    if (c->conf.note)
        c->conf.note(c->conf.ctx, rdzv_run_id(job->r), n, n->type == NOTE_ENDED ? (int)rdzv_exit_status(job->r) : -1);
}

/* --- orders ------------------------------------------------------------------------------------------------------- */

static void send_order(struct coordinator *c, struct job *job, unsigned member)
{
    struct msg m;
    struct peer *p = peer_find(c, rdzv_conn(job->r, member));
    if (!p)
        return;
    if (rdzv_probe_verdict(job->r, member, &m))
        peer_send(p, &m);
    for (unsigned i = 0; rdzv_saving_word(job->r, member, i, &m); i++)
        peer_send(p, &m);
    rdzv_order(job->r, member, loop_now(c->loop), &m);
    peer_send(p, &m);
    if (rdzv_emergency_word(job->r, member, &m))
        peer_send(p, &m);
    if (rdzv_restore_word(job->r, member, &m))
        peer_send(p, &m);
    if (rdzv_common_word(job->r, member, &m))
        peer_send(p, &m);
    if (rdzv_comparing_word(job->r, member, &m))
        peer_send(p, &m);
}

/* The next members of a walk; the rest in later turns, so that nobody waits for a large job. */
static void walk_on(struct coordinator *c, struct job *job)
{
    unsigned used = rdzv_room_used(job->r), sent = 0;
    for (; job->walk < used && sent < COORDINATOR_SLICE; job->walk++) {
        if (!rdzv_conn(job->r, job->walk))
            continue;
        send_order(c, job, job->walk);
        sent++;
    }
    job->walks = job->walk < used;
}

void coordinator_hurry(struct coordinator *c, struct job *job)
{
    if (job->walks)
        walk_on(c, job);
}

static void send_beat(struct coordinator *c, struct job *job, unsigned member, const struct msg *beat)
{
    struct peer *p = peer_find(c, rdzv_conn(job->r, member));
    struct msg m = {.type = MSG_HEARTBEAT_ACK, .u.heartbeat = {.time = beat->u.heartbeat.time, .own = loop_clock()}};
    if (p)
        peer_send(p, &m);
}

static void coordinator_send_answer(struct coordinator *c, struct job *job, const struct rdzv_action *a)
{
    const struct msg *m = rdzv_answer(job->r);
    struct peer *p = peer_find(c, a->conn);
    char name[EL_ADDR_TEXT_MAX];
    if (!p)
        return;
    if (m->type == MSG_DONE && m->u.done.status)
        coordinator_say(c, EL_WARN, "%s: a command is refused: %s", peer_name(p, name), m->u.done.text);
    peer_send(p, m);
    peer_finish(p);
}

static void bind_peer(struct coordinator *c, struct job *job, const struct rdzv_action *a)
{
    struct peer *p = peer_find(c, a->conn);
    assert(p);
    peer_move(p, PEER_AGENT);
    p->job = job->id;
    p->member = a->member;
}

static void journal(struct coordinator *c, struct job *job, uint64_t serial)
{
    struct rdzv_record record;
    if (!c->journal) {
        job->journaled = serial;
        return;
    }
    rdzv_record(job->r, &record);
    journal_write(c->journal, job->id, serial, &record);
}

/* In this process, and on the node of rank 0 if that is another one. */
static void report(struct coordinator *c, struct job *job, unsigned reader, bool here)
{
    struct peer *p = reader == RDZV_NONE ? NULL : peer_find(c, rdzv_conn(job->r, reader));
    struct msg m;
    if (p && rdzv_instance(job->r, reader) == c->conf.own_instance)
        p = NULL;
    for (unsigned i = 0; rdzv_report(job->r, i, &m); i++) {
        if (here && c->conf.report)
            c->conf.report(c->conf.ctx, rdzv_run_id(job->r), &m);
        if (p)
            peer_send(p, &m);
    }
}

/* In this process if its agent takes part, else on the node that was chosen for it. */
static void probe_report(struct coordinator *c, struct job *job)
{
    unsigned reader = rdzv_probe_reader(job->r);
    struct peer *p = reader == RDZV_NONE ? NULL : peer_find(c, rdzv_conn(job->r, reader));
    bool here = c->conf.report && reader != RDZV_NONE && rdzv_instance(job->r, reader) == c->conf.own_instance;
    struct msg m;
    for (unsigned i = 0; (p || here) && rdzv_probe_page(job->r, i, &m); i++) {
        if (here)
            c->conf.report(c->conf.ctx, rdzv_run_id(job->r), &m);
        else
            peer_send(p, &m);
    }
}

static void over(struct coordinator *c, struct job *job)
{
    job->over = true;
    job->forget_at = loop_now(c->loop) + (rdzv_is_deserted(job->r) ? 0 : c->conf.keep_ended);
    if (c->conf.ended)
        c->conf.ended(c->conf.ctx, rdzv_run_id(job->r), rdzv_exit_status(job->r));
}

static void coordinator_act(struct coordinator *c, struct job *job, const struct rdzv_action *a,
                            const struct rdzv_event *ev)
{
    struct peer *p;
    struct msg goodbye;
    switch (a->type) {
    case RDZV_DO_BIND: bind_peer(c, job, a); break;
    case RDZV_DO_CLOSE:
        if ((p = peer_find(c, a->conn)))
            peer_free(p);
        break;
    case RDZV_DO_REFUSE:
    case RDZV_DO_REPLY: coordinator_send_answer(c, job, a); break;
    case RDZV_DO_BEAT: send_beat(c, job, a->member, ev->msg); break;
    case RDZV_DO_GOODBYE:
        rdzv_goodbye(job->r, a->member, loop_now(c->loop), &goodbye);
        if ((p = peer_find(c, rdzv_conn(job->r, a->member))))
            peer_send(p, &goodbye);
        break;
    case RDZV_DO_ORDER: send_order(c, job, a->member); break;
    case RDZV_DO_ORDER_EACH:
        job->walk = 0;
        walk_on(c, job);
        break;
    case RDZV_DO_JOURNAL: journal(c, job, a->serial); break;
    case RDZV_DO_NOTE: tell_note(c, job, rdzv_note(job->r, a->note)); break;
    case RDZV_DO_REPORT: report(c, job, rdzv_report_member(job->r), true); break;
    case RDZV_DO_REPORT_TO: report(c, job, a->member, false); break;
    case RDZV_DO_PROBE_REPORT: probe_report(c, job); break;
    case RDZV_DO_OVER: over(c, job); break;
    }
}

void coordinator_step(struct coordinator *c, struct job *job, const struct rdzv_event *ev)
{
    struct rdzv_actions out;
    struct rdzv_event journaled = {.type = RDZV_EV_JOURNALED, .ok = true};
    rdzv_step(job->r, ev, loop_now(c->loop), &out);
    for (unsigned i = 0; i < out.n; i++)
        coordinator_act(c, job, &out.v[i], ev);
    while (job->journaled) {
        journaled.serial = job->journaled;
        job->journaled = 0;
        rdzv_step(job->r, &journaled, loop_now(c->loop), &out);
        for (unsigned i = 0; i < out.n; i++)
            coordinator_act(c, job, &out.v[i], &journaled);
    }
}

void coordinator_closed(struct coordinator *c, uint64_t id, unsigned member, uint64_t conn)
{
    struct job *job = coordinator_job_by_id(c, id);
    struct rdzv_event ev = {.type = RDZV_EV_CLOSED, .conn = conn, .member = member};
    if (job)
        coordinator_step(c, job, &ev);
}

static void coordinator_on_journaled(void *ctx, uint64_t id, uint64_t serial, bool ok)
{
    struct coordinator *c = ctx;
    struct job *job = coordinator_job_by_id(c, id);
    struct rdzv_event ev = {.type = RDZV_EV_JOURNALED, .serial = serial, .ok = ok};
    if (job)
        coordinator_step(c, job, &ev);
    coordinator_rearm(c);
}

/* --- jobs --------------------------------------------------------------------------------------------------------- */

struct job *coordinator_job(struct coordinator *c, const char *run_id)
{
    for (size_t i = 0; i < c->jobs; i++)
        if (strcmp(rdzv_run_id(c->job[i]->r), run_id) == 0)
            return c->job[i];
    return NULL;
}

struct job *coordinator_job_by_id(struct coordinator *c, uint64_t id)
{
    for (size_t i = 0; i < c->jobs; i++)
        if (c->job[i]->id == id)
            return c->job[i];
    return NULL;
}

void coordinator_job_free(struct coordinator *c, size_t i)
{
    struct job *job = c->job[i];
    for (unsigned k = 0; k < rdzv_room_used(job->r); k++) {
        struct peer *p = peer_find(c, rdzv_conn(job->r, k));
        if (p && p->role == PEER_AGENT)
            peer_free(p);
    }
    rdzv_free(job->r);
    job_memory_leave(job->purse);
    el_free(&c->mem, job);
    c->jobs--;
    memmove(&c->job[i], &c->job[i + 1], (c->jobs - i) * sizeof(struct job *));
}

/* Room for one more: an ended one may go before its time, and one of which nothing has come. */
static bool coordinator_make_room(struct coordinator *c)
{
    if (c->jobs < COORDINATOR_JOBS_MAX)
        return true;
    size_t oldest = c->jobs;
    for (size_t i = 0; i < c->jobs; i++)
        if (c->job[i]->over && (oldest == c->jobs || c->job[i]->forget_at < c->job[oldest]->forget_at))
            oldest = i;
    if (oldest == c->jobs)
        return job_memory_give_up_one(c, "place");
    coordinator_job_free(c, oldest);
    return true;
}

/* What the journal knew of this job, once.  How an earlier one ended is forgotten after a time. */
static const struct rdzv_record *take_known(struct coordinator *c, const char *run_id, struct rdzv_record *to)
{
    if (!journal_set_take(&c->known, run_id, to))
        return NULL;
    return to->ended && loop_now(c->loop) - c->since > c->conf.keep_ended ? NULL : to;
}

/* NULL: no memory.  That of all is made room in; who has used up that of his address pays himself. */
static struct rdzv *core_new(struct coordinator *c, struct rdzv_conf *conf, struct purse *purse)
{
    const struct el_mem *all = &c->mem, *own = &purse->mem;
    struct rdzv_record old;
    const struct rdzv_record *known = take_known(c, conf->run_id, &old);
    struct rdzv *r;
    conf->sums = &purse->sums;
    while (!(r = rdzv_new(conf, known, loop_now(c->loop), &purse->mem)))
        if (own->limit_bytes - own->used_bytes <= all->limit_bytes - all->used_bytes ||
            !job_memory_give_up_one(c, "memory"))
            return NULL;
    return r;
}

/* An agent's coordinator ends with its job: another one that joined would end with it. */
static bool is_of_another_job(const struct coordinator *c, struct peer *p, const struct msg_hello *h)
{
    char shown[EL_SHOW_MAX];
    const struct coordinator_conf *own = &c->conf;
    if ((own->only_run_id || own->own_user) && p->same_host && peer_is_foreign(p->conn.fd)) {
        peer_refuse(p, EL_EXIT_NOPERM, "this coordinator belongs to %s of another user of this host%s",
                    own->only_run_id ? "a job" : "an elrun store", own->only_run_id ? "" : " (--any-user)");
        return true;
    }
    if (!own->only_run_id || strcmp(own->only_run_id, h->run_id) == 0)
        return false;
    peer_refuse(
        p, EL_EXIT_CONFIG,
        "this coordinator belongs to another job, run id %.60s, that runs \"%.160s\"; this one, run id %.60s, runs "
        "\"%.160s\": give it another port in --rdzv-endpoint, or start elrun store there, which has room for many jobs",
        own->only_run_id, own->only_command && p->same_host ? own->only_command : "…", el_show(h->run_id, shown),
        h->command);
    return true;
}

static unsigned jobs_from(const struct coordinator *c, const struct el_addr *addr)
{
    unsigned n = 0;
    for (size_t i = 0; i < c->jobs; i++)
        n += !c->job[i]->over && rdzv_has_formed(c->job[i]->r) &&
             memcmp(c->job[i]->purse->ip, addr->ip, sizeof addr->ip) == 0;
    return n;
}

static struct job *job_new(struct coordinator *c, struct peer *p, const struct msg_hello *h, uint64_t seen)
{
    struct el_err e = {0};
    el_usec now = loop_now(c->loop);
    struct rdzv_conf conf = {.coord = c->coord,
                             .token_start = el_rng_next(&c->rng),
                             .listening_since = c->since,
                             .seen = seen,
                             .own_instance = c->conf.own_instance,
                             .dead_number = c->conf.dead_number,
                             .dead_rank = c->conf.dead_rank,
                             .look = c->conf.look};
    rdzv_settings_take(h, &conf.set);
    if (!*h->run_id)
        el_fail(&e, EL_EXIT_CONFIG, "the run id is empty");
    if (!e.status && jobs_from(c, &p->addr) >= COORDINATOR_JOBS_ONE)
        el_fail(&e, EL_EXIT_TEMPFAIL, "%d jobs from %s are here already, half of the places", COORDINATOR_JOBS_ONE,
                p->remote);
    if (!e.status && rdzv_settings_check(&conf.set, &e) == 0 && !coordinator_make_room(c))
        el_fail(&e, EL_EXIT_TEMPFAIL, "%d jobs are here, and none has ended", COORDINATOR_JOBS_MAX);
    if (e.status) {
        peer_refuse(p, (unsigned)e.status, "%s", e.text);
        return NULL;
    }
    el_usec limit = EL_MS(conf.set.keep_alive_ms) * conf.set.keep_alive_attempts;
    snprintf(conf.run_id, sizeof conf.run_id, "%s", h->run_id);
    snprintf(conf.own_process, sizeof conf.own_process, "%s", c->conf.own_process ? c->conf.own_process : "");
    conf.room = rdzv_room(&conf.set);
    conf.surely_new = c->journal || c->conf.surely_new || now - c->since >= limit;
    struct job *job = el_alloc(&c->mem, sizeof *job);
    struct purse *purse = job_memory_of(c, &p->addr);
    c->births++;
    if (job && purse)
        job->r = core_new(c, &conf, purse);
    if (!job || !job->r) {
        el_free(&c->mem, job);
        job_memory_leave(purse);
        peer_refuse(p, EL_EXIT_TEMPFAIL,
                    "the coordinator has no memory for a job of %llu nodes beside the others of %s (%zu MiB for one "
                    "address, %zu for all): a smaller MAX of --nnodes needs less",
                    (unsigned long long)conf.set.max, p->remote, COORDINATOR_MEMORY_ONE >> 20,
                    COORDINATOR_MEMORY_BYTES >> 20);
        return NULL;
    }
    job->c = c;
    job->purse = purse;
    job->id = ++c->job_ids;
    c->job[c->jobs++] = job;
    if (c->conf.began)
        c->conf.began(c->conf.ctx, conf.run_id, &conf.set);
    return job;
}

/* All its nodes have gone, and who comes was started another way, or after it was given up: nobody is left who could
 * hold him to what they had agreed on.  Only the numbers of its rounds stay taken.  True: the job is not there any
 * more. */
static bool coordinator_give_way(struct coordinator *c, struct job *job, const struct msg_hello *h, uint64_t *seen)
{
    struct rdzv_record record;
    if (!rdzv_is_deserted(job->r) || (rdzv_state(job->r) < RDZV_CLOSING && rdzv_agrees(job->r, h)))
        return false;
    rdzv_record(job->r, &record);
    *seen = record.number;
    size_t i = 0;
    while (c->job[i] != job)
        i++;
    coordinator_job_free(c, i);
    return true;
}

void coordinator_hello(struct coordinator *c, struct peer *p, const struct msg *m)
{
    uint64_t seen = 0;
    struct job *job = coordinator_job(c, m->u.hello.run_id);
    struct rdzv_event ev = {.type = RDZV_EV_HELLO, .conn = p->id, .msg = m, .peer = peer_ends(p)};
    if (job && coordinator_give_way(c, job, &m->u.hello, &seen))
        job = NULL;
    if (is_of_another_job(c, p, &m->u.hello))
        return;
    if (!job)
        job = job_new(c, p, &m->u.hello, seen);
    if (job)
        coordinator_step(c, job, &ev);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

void coordinator_rearm(struct coordinator *c)
{
    el_usec at = command_deadline(c);
    for (size_t i = 0; i < c->jobs; i++) {
        struct job *job = c->job[i];
        el_usec due = job->walks ? 0 : rdzv_deadline(job->r);
        at = due < at ? due : at;
        at = job->over && job->forget_at < at ? job->forget_at : at;
    }
    const struct peer *first[] = {c->fresh.first, c->closing.first};
    for (int i = 0; i < 2; i++)
        at = first[i] && first[i]->until < at ? first[i]->until : at;
    loop_timer_at(c->timer, c->waiting ? loop_now(c->loop) : at);
}

static void close_overdue(struct coordinator *c, el_usec now)
{
    char name[EL_ADDR_TEXT_MAX];
    for (struct peer *p = c->fresh.first, *next; p && p->until <= now; p = next) {
        next = p->next;
        if (p->waits) /* it has spoken, and waits for its turn */
            continue;
        coordinator_say(c, EL_WARN, "%s: closed: no message within %u s", peer_name(p, name),
                        (unsigned)(COORDINATOR_HELLO_LIMIT / EL_SEC(1)));
        peer_free(p);
    }
    while (c->closing.first && c->closing.first->until <= now)
        peer_free(c->closing.first);
}

static void coordinator_on_timer(void *ctx)
{
    struct coordinator *c = ctx;
    el_usec now = loop_now(c->loop);
    struct rdzv_event ev = {.type = RDZV_EV_TIMEOUT};
    for (size_t i = 0; i < c->jobs; i++) {
        struct job *job = c->job[i];
        if (job->walks)
            walk_on(c, job);
        if (rdzv_deadline(job->r) <= now)
            coordinator_step(c, job, &ev);
    }
    for (size_t i = c->jobs; i-- > 0;)
        if (c->job[i]->over && c->job[i]->forget_at <= now)
            coordinator_job_free(c, i);
    close_overdue(c, now);
    peer_hear_waiting(c);
    command_rows(c, now);
    coordinator_rearm(c);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static void on_record(void *ctx, const struct rdzv_record *r)
{
    journal_set_put(ctx, r);
}

struct coordinator *coordinator_new(struct loop *l, struct pool *pool, const struct coordinator_conf *conf,
                                    struct el_err *e)
{
    struct coordinator *c = el_alloc(NULL, sizeof *c);
    if (!c || !(c->timer = loop_timer_new(l, coordinator_on_timer, c))) {
        el_free(NULL, c);
        el_fail(e, EL_EXIT_OSERR, "coordinator: no memory");
        return NULL;
    }
    c->loop = l;
    c->conf = *conf;
    c->mem = EL_MEM_INIT(COORDINATOR_MEMORY_BYTES);
    c->known.mem = &c->mem;
    c->out = EL_BUF_INIT(&c->mem, 0);
    c->since = loop_clock();
    c->conf.keep_ended = conf->keep_ended ? conf->keep_ended : COORDINATOR_KEEP_ENDED;
    c->conf.reader_limit = conf->reader_limit ? conf->reader_limit : COORDINATOR_READER_LIMIT;
    snprintf(c->name, sizeof c->name, "%s", conf->name ? conf->name : "coordinator");
    c->conf.name = c->conf.state_dir = NULL; /* the caller's */
    if (getrandom(&c->coord, sizeof c->coord, 0) != sizeof c->coord ||
        getrandom(&c->rng.state, sizeof c->rng.state, 0) != sizeof c->rng.state)
        el_fail(e, EL_EXIT_OSERR, "no random numbers");
    else if (conf->state_dir && (c->journal = journal_open(conf->state_dir, on_record, &c->known, e)))
        journal_start(c->journal, l, pool, coordinator_on_journaled, c);
    if (!e->status)
        return c;
    el_prefix(e, "%s", c->name);
    coordinator_free(c);
    return NULL;
}

void coordinator_free(struct coordinator *c)
{
    if (!c)
        return;
    while (c->jobs)
        coordinator_job_free(c, c->jobs - 1);
    for (unsigned i = 0; i < c->slots; i++)
        if (c->slot[i])
            peer_free(c->slot[i]);
    journal_close(c->journal);
    journal_set_free(&c->known);
    el_free(&c->mem, c->slot);
    el_free(&c->mem, c->free_slot);
    el_buf_free(&c->out);
    assert(c->mem.used_bytes == 0);
    loop_timer_free(c->timer);
    el_free(NULL, c);
}

unsigned coordinator_jobs(const struct coordinator *c)
{
    return (unsigned)c->jobs;
}

bool coordinator_busy(const struct coordinator *c)
{
    for (size_t i = 0; i < c->jobs; i++)
        if (!c->job[i]->over)
            return true;
    return false;
}

unsigned coordinator_members(const struct coordinator *c)
{
    unsigned n = 0;
    for (size_t i = 0; i < c->jobs; i++)
        n += c->job[i]->over ? 0 : rdzv_members(c->job[i]->r);
    return n;
}
