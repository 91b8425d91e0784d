#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/flush_results.h"
#include "sys/host.h"
#include "agent/snapshot_service.h"
#include "snapshot/slot_table.h"
#include "ckpt/layout.h"
#include "ckpt/lineage.h"
#include "snapshot/resume.h"
#include "snapshot/shm_slots.h"
#include "snapshot/worker_sock.h"
#include "proc/ancestor.h"
#include "util/log.h"
#include "util/snip.h"

#define CORE_LIMIT  ((size_t)256 << 20)
#define SILENT_TIME EL_SEC(10) /* from the first restore() of a node */

struct snapshot_service {
    struct loop *loop;
    struct snapshot_service_ops ops;
    void *ctx;
    const struct reap *reap;
    const struct run_conf *run;
    unsigned workers, rank_base, oom_raise;
    uint64_t round, coord, loaded; /* loaded: bytes from disk when it was looked last */
    struct el_mem mem;
    struct slot_table *keeper;
    struct shm_slots *vault;
    struct worker_sock *sock;
    int64_t step;                /* that was offered last, */
    el_usec offered, read;       /* when; and when all had read it */
    struct step_boundary *stops; /* pages of the workers */
    int64_t said_unusable;       /* the checkpoint of which it was said last that it cannot be used; -1 */
    struct loop_timer *timer; /* from the first question: for workers that never ask; from an offer: that never read */
    bool asking, reading;     /* what it runs for, */
    el_usec until;            /* … at most until then; reading: from the last byte that came from disk */
    el_usec say_at;           /* asking: when to say who has not asked; EL_NEVER: it is said */
    struct resume *resume;    /* NULL: no --ckpt-dir */
    struct snapshot_service_left left;   /* what the script has gone back behind */
    struct snapshot_service_taken taken; /* as it was told last */
    bool looking;                        /* what it finds is waited for */
    bool choosing;      /* the keeper waits for what can be read: told when no slot is being compared */
    unsigned verifying; /* slots being compared, also for a round that is over */
    bool stepping, several;
    unsigned waiting, room; /* events in queue */
    struct slot_table_event *queue;
    struct flush_results fates;
    char socket[108];
};

static void snapshot_service_feed(struct snapshot_service *s, const struct slot_table_event *ev);

/* --- what the keeper orders --- */

static void snapshot_service_send_answer(struct snapshot_service *s, const struct slot_table_action *a)
{
    const struct worker_msg *m = slot_table_reply(s->keeper, a->reply);
    int fds[SLOT_TABLE_SLOTS] = {-1, -1};
    unsigned n = 0;
    struct el_err e = {0};
    if (m->type == WORKER_MSG_WELCOME) {
        fds[n++] = step_boundary_descriptor(s->stops, a->worker);
    } else if (m->type == WORKER_MSG_GRANT) {
        shm_slots_descriptors(s->vault, a->worker, fds);
        n = SLOT_TABLE_SLOTS;
    } else if (m->type == WORKER_MSG_RESTORE_OFFER && m->u.restore_offer.step != SLOT_TABLE_NO_STEP &&
               !m->u.restore_offer.elsewhere) {
        fds[0] = shm_slots_reader(s->vault, a->source, a->slot, &e);
        n = fds[0] >= 0;
        if (!n)
            el_log(EL_ERROR, "local rank %u: the snapshot cannot be offered: %s", a->worker, e.text);
    }
    worker_sock_send(s->sock, a->worker, m, fds, n);
    if (m->type == WORKER_MSG_WELCOME) {
        step_boundary_came(s->stops, a->worker);
        flush_results_welcome(&s->fates, s->sock, a->worker);
    }
}

static void tell_choose(struct snapshot_service *s)
{
    struct restore_stock stock = {.since = slot_table_since(s->keeper),
                                  .whole = slot_table_had_whole(s->keeper),
                                  .newest = slot_table_reached(s->keeper)};
    stock.n = slot_table_readable(s->keeper, stock.step, stock.lineage, RESTORE_STEPS_MAX);
    const char *misfit = slot_table_misfit(s->keeper), *why = *misfit ? misfit : slot_table_lost(s->keeper);
    el_snip(stock.why, sizeof stock.why, "%s", why);
    stock.misfit = *misfit != 0;
    stock.elsewhere = slot_table_takes_elsewhere(s->keeper);
    if (s->resume) {
        const struct load_found *disk = resume_found(s->resume);
        const int64_t best = snapshot_service_passes_over(&stock, disk);
        if (best >= 0 && disk->unusable != s->said_unusable)
            el_log(EL_WARN, "%s: it is passed over; step %lld is the newest that can be gone back to here", disk->why,
                   (long long)best);
        s->said_unusable = disk->unusable;
        snapshot_service_add_disk(&stock, disk, &s->left);
    }
    s->ops.choose(s->ctx, &stock);
}

static void snapshot_service_on_looked(void *ctx)
{
    struct snapshot_service *s = ctx;
    bool wanted = s->looking;
    s->looking = false;
    if (wanted)
        tell_choose(s);
}

static void snapshot_service_look(struct snapshot_service *s)
{
    s->looking = s->resume && !*slot_table_misfit(s->keeper);
    if (s->looking)
        resume_look(s->resume, s->keeper, s->several);
    else
        tell_choose(s);
}

static void one_verified(struct snapshot_service *s)
{
    if (--s->verifying > 0 || !s->choosing)
        return;
    s->choosing = false;
    snapshot_service_look(s);
}

/* Now and then it is looked whether bytes come. */
static void set_timer(struct snapshot_service *s)
{
    el_usec look = s->reading ? loop_clock() + s->run->ckpt_restore_timeout / 4 : s->say_at;
    loop_timer_at(s->timer, look < s->until ? look : s->until);
}

/* One step of going back at a time has a deadline here; while the nodes agree the coordinator has it. */
static void set_deadline(struct snapshot_service *s, bool asking, bool reading)
{
    s->asking = asking;
    s->reading = reading;
    s->until = asking || reading ? loop_clock() + s->run->ckpt_restore_timeout : EL_NEVER;
    s->say_at = asking ? loop_clock() + SILENT_TIME : EL_NEVER;
    set_timer(s);
}

/* Nothing is offered that is not what was committed: every slot is compared with its sums first.  Where a worker cannot
 * take what it was offered, nothing is. */
static void snapshot_service_choose(struct snapshot_service *s)
{
    set_deadline(s, false, false);
    s->choosing = true;
    s->verifying++; /* this walk's own: the last one who has done goes on */
    for (unsigned w = 0; w < s->workers && !*slot_table_misfit(s->keeper); w++)
        for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++)
            if (slot_table_take(s->keeper, w, i)) {
                s->verifying++;
                shm_slots_verify(s->vault, w, i, slot_table_slot(s->keeper, w, i)->gen);
            }
    one_verified(s);
}

static void open_slots(struct snapshot_service *s, unsigned worker)
{
    struct el_err e = {0};
    bool good = shm_slots_open(s->vault, s->keeper, worker, &e) == 0;
    snapshot_service_feed(
        s, &(struct slot_table_event){.type = SLOT_TABLE_EV_OPENED, .worker = worker, .ok = good, .text = e.text});
}

static void warn_differ(struct snapshot_service *s, const struct slot_table_pair *x)
{
    char text[SNAPSHOT_SERVICE_DIFFER_MAX];
    el_log(EL_WARN, "%s", snapshot_service_differ(x, text));
    s->ops.differ(s->ctx, x);
}

static void snapshot_service_act(struct snapshot_service *s, const struct slot_table_action *a)
{
    switch (a->type) {
    case SLOT_TABLE_DO_SEND: snapshot_service_send_answer(s, a); break;
    case SLOT_TABLE_DO_CLOSE:
        worker_sock_close(s->sock, a->worker);
        step_boundary_went(s->stops, a->worker);
        break;
    case SLOT_TABLE_DO_OPEN: open_slots(s, a->worker); break;
    case SLOT_TABLE_DO_RELEASE: shm_slots_release(s->vault, a->worker); break;
    case SLOT_TABLE_DO_GROW: shm_slots_grow(s->vault, a->worker, a->slot, a->bytes, a->gen); break;
    case SLOT_TABLE_DO_SHRINK: shm_slots_shrink(s->vault, a->worker, a->slot, a->bytes, a->gen); break;
    case SLOT_TABLE_DO_SUM:
        shm_slots_sum(s->vault, s->keeper, a->worker, a->slot, a->gen, a->digests, s->several);
        break;
    case SLOT_TABLE_DO_COMPARE: shm_slots_compare(s->vault, slot_table_compared(s->keeper)); break;
    case SLOT_TABLE_DO_DIFFER: warn_differ(s, slot_table_differs(s->keeper)); break;
    case SLOT_TABLE_DO_LOAD:
        shm_slots_load(s->vault, s->keeper, a->worker, a->slot, a->gen, a->step, resume_root(s->resume),
                       resume_layout(s->resume));
        break;
    case SLOT_TABLE_DO_CHOOSE: snapshot_service_choose(s); break;
    case SLOT_TABLE_DO_CONFIRM:
        set_deadline(s, false, false);
        s->read = loop_clock();
        s->ops.confirm(s->ctx, a->step);
        break;
    case SLOT_TABLE_DO_COMMITTED:
        el_log(EL_DEBUG, "local rank %u: step %lld is held in memory", a->worker, (long long)a->step);
        s->ops.committed(s->ctx, a->worker, a->slot);
        break;
    case SLOT_TABLE_DO_UNMET: s->ops.unmet(s->ctx, a->step, a->lineage, a->text); break;
    case SLOT_TABLE_DO_PASSED: s->ops.passed(s->ctx); break;
    case SLOT_TABLE_DO_ABSENT: s->ops.absent(s->ctx, slot_table_rank(s->keeper, a->worker)); break;
    case SLOT_TABLE_DO_WENT_BACK:
        s->left = (struct snapshot_service_left){a->step, a->lineage};
        flush_results_forget_behind(&s->fates, a->step);
        s->ops.went_back(s->ctx, a->step, a->lineage);
        break;
    case SLOT_TABLE_DO_BOUNDARY: step_boundary_stands(s->stops, a->worker, a->step); break;
    case SLOT_TABLE_DO_NOTE:
        el_log(a->error ? EL_ERROR : EL_WARN, "rank %u: %s", slot_table_rank(s->keeper, a->worker), a->text);
        break;
    }
}

void snapshot_service_news(struct snapshot_service *s)
{
    struct snapshot_service_taken t;
    if (!s->several)
        return;
    memset(&t, 0, sizeof t); /* it is compared as it lies there */
    t.number = s->round;
    t.coord = s->coord;
    t.elsewhere = slot_table_takes_elsewhere(s->keeper);
    slot_table_tell(s->keeper, &t.told);
    if (memcmp(&t, &s->taken, sizeof t) == 0)
        return;
    s->taken = t;
    s->ops.taken(s->ctx, &s->taken);
}

static void snapshot_service_step(struct snapshot_service *s, const struct slot_table_event *ev)
{
    const struct slot_table_actions *out = slot_table_step(s->keeper, ev);
    slot_table_check(s->keeper);
    for (unsigned i = 0; i < out->n; i++)
        snapshot_service_act(s, &out->v[i]);
}

/* The keeper's actions live until its next step, and carrying one out may cause the next event: those wait.  One
 * CHOOSE is the most, with a result for each slot at once where no thread can be had. */
static void snapshot_service_feed(struct snapshot_service *s, const struct slot_table_event *ev)
{
    if (s->stepping) {
        assert(s->waiting < s->room && !ev->msg && !ev->images && !(ev->part_bytes && ev->ok));
        s->queue[s->waiting] = *ev;
        s->queue[s->waiting++].text =
            ev->text && *ev->text ? strdup(ev->text) : NULL; /* the keeper has words of its own */
        return;
    }
    s->stepping = true;
    snapshot_service_step(s, ev);
    for (unsigned at = 0; at < s->waiting; at++) {
        snapshot_service_step(s, &s->queue[at]);
        free((char *)(uintptr_t)s->queue[at].text);
    }
    s->waiting = 0;
    s->stepping = false;
    snapshot_service_news(s);
}

/* --- results of the vault --- */

/* What does not fit into --ckpt-mem is said to the worker, or to all of them (slot_table_misfit()). */
static void snapshot_service_say_failed(struct snapshot_service *s, const struct slot_table_event *ev)
{
    const struct slot_table_slot *of = slot_table_slot(s->keeper, ev->worker, ev->slot);
    if (ev->type == SLOT_TABLE_EV_SUMMED)
        el_log(EL_WARN, "local rank %u: a snapshot is refused: %s", ev->worker, ev->text);
    else if (ev->type == SLOT_TABLE_EV_READ && of->gen == ev->gen)
        el_log(EL_WARN, "local rank %u: the snapshot of step %lld is not used: %s", ev->worker, (long long)of->step,
               ev->text);
    else if (ev->type == SLOT_TABLE_EV_LOADED && !ev->need_bytes) {
        el_log(EL_WARN, "local rank %u: step %lld on disk is not used: %s", ev->worker, (long long)of->step, ev->text);
        resume_is_bad(s->resume, of->step, of->lineage);
    }
}

static void snapshot_service_on_told(void *ctx, const struct slot_table_event *ev)
{
    struct snapshot_service *s = ctx;
    if (!ev->ok)
        snapshot_service_say_failed(s, ev);
    snapshot_service_feed(s, ev);
    if (ev->type == SLOT_TABLE_EV_SUMMED && ev->part_table)
        s->ops.digested(s->ctx, ev);
    if (ev->type == SLOT_TABLE_EV_READ)
        one_verified(s);
}

/* --- workers --- */

int snapshot_service_whose(const struct snapshot_service *s, pid_t pid)
{
    return ancestor_slot(s->reap, pid);
}

static int snapshot_service_io_whose(void *ctx, pid_t pid)
{
    return snapshot_service_whose(ctx, pid);
}

static void snapshot_service_on_message(void *ctx, unsigned worker, const struct worker_msg *m)
{
    struct snapshot_service *s = ctx;
    if (m->type == WORKER_MSG_RESTORE_QUERY && !s->asking && !s->reading)
        set_deadline(s, true, false);
    const struct wmsg_restore_done *read = m->type == WORKER_MSG_RESTORE_DONE ? &m->u.restore_done : NULL;
    if (read && !read->ok && !read->misfit)
        el_log(EL_WARN, "local rank %u cannot read the snapshot of step %lld: %s", worker, (long long)read->step,
               read->why);
    snapshot_service_feed(
        s, &(struct slot_table_event){.type = SLOT_TABLE_EV_MSG,
                                      .worker = worker,
                                      .msg = m,
                                      .now = loop_clock(),
                                      .away = m->type == WORKER_MSG_SNAP_BEGIN && s->several && s->ops.away(s->ctx)});
}

static void snapshot_service_on_gone(void *ctx, unsigned worker)
{
    struct snapshot_service *s = ctx;
    snapshot_service_feed(s, &(struct slot_table_event){.type = SLOT_TABLE_EV_GONE, .worker = worker});
    step_boundary_went(s->stops, worker);
}

/* Who has been told which step it is, and has not said that it has read it. */
static void on_nobody_reads(struct snapshot_service *s)
{
    char text[200];
    unsigned first = slot_table_reading(s->keeper, 0), more = 0;
    for (unsigned w = first; w < s->workers; w = slot_table_reading(s->keeper, w + 1))
        more += w != first;
    int n = first < s->workers ? snprintf(text, sizeof text, "local rank %u", first)
                               : snprintf(text, sizeof text, "a rank that asked and has gone"); /* its connection has */
    if (more)
        n += snprintf(text + n, sizeof text - (size_t)n, " and %u more", more);
    snprintf(text + n, sizeof text - (size_t)n, " did not read the snapshot within %.0f s (--ckpt-restore-timeout)",
             (double)s->run->ckpt_restore_timeout / EL_SEC(1));
    set_deadline(s, false, false);
    el_log(EL_ERROR, "%s", text);
    snapshot_service_feed(s, &(struct slot_table_event){.type = SLOT_TABLE_EV_LATE, .text = text});
}

/* Once, long before the time is over: one rank that takes another way through the script keeps all from training. */
static void say_silent(struct snapshot_service *s)
{
    char who[SNAPSHOT_SERVICE_RANKS_MAX];
    unsigned n = snapshot_service_silent(s->keeper, s->rank_base, who), others = s->workers - n;
    s->say_at = EL_NEVER;
    set_timer(s);
    if (n && others)
        el_log(EL_WARN,
               "%s %s not called restore() yet, and %u other%s of this node wait%s for %s: every rank must call it",
               who, n == 1 ? "has" : "have", others, others == 1 ? "" : "s", others == 1 ? "s" : "",
               n == 1 ? "it" : "them");
}

static void on_nobody_asks(struct snapshot_service *s)
{
    char who[SNAPSHOT_SERVICE_RANKS_MAX], text[SNAPSHOT_SERVICE_RANKS_MAX + 120];
    unsigned n = snapshot_service_silent(s->keeper, s->rank_base, who);
    snprintf(text, sizeof text,
             "%s %s not called restore() within %.6g s (--ckpt-restore-timeout): every rank must call it", who,
             n == 1 ? "has" : "have", (double)s->run->ckpt_restore_timeout / EL_SEC(1));
    el_log(EL_ERROR, "%s", text);
    snapshot_service_chosen(s, &(struct restore_stock){.told = SLOT_TABLE_NO_STEP}, text);
}

static void snapshot_service_on_late(void *ctx)
{
    struct snapshot_service *s = ctx;
    if (!s->reading && loop_clock() < s->until) {
        say_silent(s);
    } else if (!s->reading) {
        on_nobody_asks(s);
    } else if (shm_slots_loaded_bytes(s->vault) != s->loaded) {
        s->loaded = shm_slots_loaded_bytes(s->vault);
        s->ops.reads(s->ctx);
        set_deadline(s, false, true);
    } else if (loop_clock() < s->until) {
        set_timer(s);
    } else {
        on_nobody_reads(s);
    }
}

void snapshot_service_ended(struct snapshot_service *s, unsigned slot)
{
    if (s)
        worker_sock_finish(s->sock, slot);
}

void snapshot_service_round(struct snapshot_service *s, uint64_t number, uint64_t coord, unsigned rank_base)
{
    if (!s)
        return;
    for (unsigned i = 0; i < s->workers; i++)
        worker_sock_close(s->sock, i);
    s->round = number;
    s->coord = coord;
    s->rank_base = rank_base;
    s->choosing = s->looking = false;
    set_deadline(s, false, false);
    step_boundary_round(s->stops, number, coord, rank_base);
    snapshot_service_feed(s, &(struct slot_table_event){.type = SLOT_TABLE_EV_ROUND,
                                                        .number = number,
                                                        .rank_base = rank_base,
                                                        .lineage = lineage_begin(number, coord, 0)});
}

/* One line for each time. */
static void say_back(const struct snapshot_service *s)
{
    char line[SNAPSHOT_SERVICE_BACK_MAX];
    struct slot_table_reads x = slot_table_reads(s->keeper);
    if (snapshot_service_back_text(&x, s->step, s->read - s->offered, line))
        el_log(EL_INFO, "%s", line);
    resume_went(s->resume);
}

void snapshot_service_chosen(struct snapshot_service *s, const struct restore_stock *decided, const char *text)
{
    s->step = decided->told;
    s->loaded = shm_slots_loaded_bytes(s->vault);
    s->offered = loop_clock();
    set_deadline(s, false, s->step != SLOT_TABLE_NO_STEP || decided->fresh);
    const uint64_t *on_disk = resume_goes(s->resume, s->step, decided->told_lineage);
    if (on_disk)
        flush_results_found(&s->fates, s->sock, s->workers, s->run, s->step);
    snapshot_service_feed(s, &(struct slot_table_event){.type = SLOT_TABLE_EV_CHOSEN,
                                                        .step = s->step,
                                                        .lineage = decided->told_lineage,
                                                        .fresh = decided->fresh,
                                                        .on_disk = on_disk,
                                                        .text = text});
}

void snapshot_service_again(struct snapshot_service *s)
{
    snapshot_service_feed(s, &(struct slot_table_event){.type = SLOT_TABLE_EV_AGAIN});
}

uint64_t snapshot_service_confirmed(struct snapshot_service *s, uint64_t attempt)
{
    say_back(s);
    flush_results_forget_behind(&s->fates, s->step);
    s->left.step = RESTORE_NO_STEP;
    uint64_t lineage = lineage_begin(s->round, s->coord, attempt);
    snapshot_service_feed(s, &(struct slot_table_event){.type = SLOT_TABLE_EV_CONFIRMED, .lineage = lineage});
    return lineage;
}

void snapshot_service_common(struct snapshot_service *s, struct slot_pin_step step, int64_t from,
                             const struct slot_pin_step *useless, unsigned n)
{
    snapshot_service_feed(
        s, &(struct slot_table_event){
               .type = SLOT_TABLE_EV_COMMON, .step = step.step, .lineage = step.lineage, .number = (uint64_t)from});
    for (unsigned i = 0; i < n; i++)
        snapshot_service_feed(s, &(struct slot_table_event){.type = SLOT_TABLE_EV_USELESS,
                                                            .step = useless[i].step,
                                                            .lineage = useless[i].lineage});
}

void snapshot_service_captured(struct snapshot_service *s, unsigned worker, const struct wmsg_captured *c)
{
    snapshot_service_feed(s, &(struct slot_table_event){.type = SLOT_TABLE_EV_CAPTURED,
                                                        .worker = worker,
                                                        .slot = (unsigned)c->slot,
                                                        .ok = c->ok,
                                                        .number = c->consumed_samples,
                                                        .images = c->images});
}

struct step_boundary *snapshot_service_stops(const struct snapshot_service *s)
{
    return s ? s->stops : NULL;
}

struct slot_table *snapshot_service_keeper(struct snapshot_service *s)
{
    return s->keeper;
}

struct shm_slots *snapshot_service_vault(struct snapshot_service *s)
{
    return s->vault;
}

void snapshot_service_event(struct snapshot_service *s, const char *kind, int64_t step, const char *why)
{
    flush_results_event(&s->fates, s->sock, s->workers, &(struct wmsg_event){.kind = kind, .step = step, .why = why});
}

const char *snapshot_service_socket(const struct snapshot_service *s)
{
    return s ? s->socket : NULL;
}

unsigned snapshot_service_oom(const struct snapshot_service *s)
{
    return s ? s->oom_raise : 0;
}

/* --- life --- */

static int find_budget(struct snapshot_service *s, uint64_t *bytes, struct el_err *e)
{
    struct host_facts *f = calloc(1, sizeof *f);
    if (!f)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    host_memory_read(f);
    int bad = snapshot_service_budget(s->run, f->memory_bytes, f->memory_free_bytes, f->memory_limit_bytes,
                                      f->memory_left_bytes, bytes, e);
    s->oom_raise = snapshot_service_oom_raise(*bytes, f->memory_bytes, f->memory_limit_bytes);
    free(f);
    return bad;
}

static int make_parts(struct snapshot_service *s, struct pool *p, uint64_t budget_bytes,
                      const struct snapshot_service_conf *of, struct el_err *e)
{
    static const struct worker_sock_ops sock = {snapshot_service_io_whose, snapshot_service_on_message,
                                                snapshot_service_on_gone};
    struct slot_table_conf conf = {.workers = s->workers,
                                   .budget_bytes = budget_bytes,
                                   .waits = s->run->ckpt_busy,
                                   .check = s->run->ckpt_check,
                                   .disk = s->run->ckpt_dir != NULL,
                                   .live = of->live,
                                   .several = of->several,
                                   .patience = SNAPSHOT_SERVICE_PATIENCE,
                                   .compares = s->workers > 1 || of->several,
                                   .files = s->run->ckpt_layout == CKPT_LAYOUT_MEGATRON};
    s->mem = EL_MEM_INIT(CORE_LIMIT);
    s->keeper = slot_table_new(&conf, &s->mem);
    s->vault = shm_slots_new(p, s->workers, budget_bytes, snapshot_service_on_told, s);
    s->timer = loop_timer_new(s->loop, snapshot_service_on_late, s);
    s->room = SLOT_TABLE_SLOTS * s->workers + 16;
    s->queue = calloc(s->room, sizeof *s->queue);
    if (!s->keeper || !s->vault || !s->timer || !s->queue)
        return el_fail(e, EL_EXIT_OSERR, "out of memory for snapshots of %u workers", s->workers);
    s->stops = step_boundary_new(s->loop, s->workers, &s->ops.stops, s->ctx, e);
    if (!s->stops)
        return -1;
    s->sock = worker_sock_new(s->loop, s->socket, s->workers, &sock, s, e);
    return s->sock ? 0 : -1;
}

struct snapshot_service *snapshot_service_new(struct loop *l, struct pool *p, const struct snapshot_service_conf *conf,
                                              const struct snapshot_service_ops *ops, void *ctx, struct el_err *e)
{
    uint64_t budget_bytes = 0;
    struct snapshot_service *s = calloc(1, sizeof *s);
    if (!s) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    *s = (struct snapshot_service){.left = {RESTORE_NO_STEP, 0},
                                   .said_unusable = -1,
                                   .loop = l,
                                   .ops = *ops,
                                   .ctx = ctx,
                                   .reap = conf->reap,
                                   .run = conf->run,
                                   .workers = conf->workers,
                                   .several = conf->several};
    snprintf(s->socket, sizeof s->socket, "%s/sock", conf->folder);
    if (find_budget(s, &budget_bytes, e) == 0 && make_parts(s, p, budget_bytes, conf, e) == 0)
        return s;
    snapshot_service_free(s);
    return NULL;
}

int snapshot_service_resume(struct snapshot_service *s, struct pool *p, const struct ckpt_fs *from,
                            enum ckpt_layout layout, struct el_err *e)
{
    s->resume = resume_new(p, from, layout, snapshot_service_on_looked, s);
    return s->resume ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
}

void snapshot_service_free(struct snapshot_service *s)
{
    if (!s)
        return;
    worker_sock_free(s->sock);
    shm_slots_free(s->vault);
    resume_free(s->resume);
    if (s->keeper)
        slot_table_free(s->keeper);
    step_boundary_free(s->stops);
    loop_timer_free(s->timer);
    free(s->queue);
    free(s);
}
