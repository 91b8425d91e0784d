#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/fates.h"
#include "sys/host.h"
#include "agent/snapshots.h"
#include "snapshot/keeper.h"
#include "ckpt/layout.h"
#include "ckpt/lineage.h"
#include "snapshot/resume.h"
#include "snapshot/vault.h"
#include "snapshot/wsock.h"
#include "proc/ancestor.h"
#include "util/log.h"
#include "util/snip.h"

#define CORE_LIMIT  ((size_t)256 << 20)
#define SILENT_TIME EL_SEC(10) /* from the first restore() of a node */

struct snapshots {
    struct loop *loop;
    struct snapshots_ops ops;
    void *ctx;
    const struct reap *reap;
    const struct run_conf *run;
    unsigned workers, rank_base, oom_raise;
    uint64_t round, coord, loaded; /* loaded: bytes from disk when it was looked last */
    struct el_mem mem;
    struct keeper *keeper;
    struct vault *vault;
    struct wsock *sock;
    int64_t step;             /* that was offered last, */
    el_usec offered, read;    /* when; and when all had read it */
    struct stops *stops;      /* pages of the workers */
    int64_t said_unusable;    /* the checkpoint of which it was said last that it cannot be used; -1 */
    struct loop_timer *timer; /* from the first question: for workers that never ask; from an offer: that never read */
    bool asking, reading;     /* what it runs for, */
    el_usec until;            /* … at most until then; reading: from the last byte that came from disk */
    el_usec say_at;           /* asking: when to say who has not asked; EL_NEVER: it is said */
    struct resume *resume;    /* NULL: no --ckpt-dir */
    struct snapshots_left left;   /* what the script has gone back behind */
    struct snapshots_taken taken; /* as it was told last */
    bool looking;                 /* what it finds is waited for */
    bool choosing;                /* the keeper waits for what can be read: told when no slot is being compared */
    unsigned verifying;           /* slots being compared, also for a round that is over */
    bool stepping, several;
    unsigned waiting, room; /* events in queue */
    struct keeper_event *queue;
    struct fates fates;
    char socket[108];
};

static void feed(struct snapshots *s, const struct keeper_event *ev);

/* --- what the keeper orders --- */

static void send_answer(struct snapshots *s, const struct keeper_action *a)
{
    const struct wmsg *m = keeper_reply(s->keeper, a->reply);
    int fds[KEEPER_SLOTS] = {-1, -1};
    unsigned n = 0;
    struct el_err e = {0};
    if (m->type == WMSG_WELCOME) {
        fds[n++] = stops_descriptor(s->stops, a->worker);
    } else if (m->type == WMSG_GRANT) {
        vault_descriptors(s->vault, a->worker, fds);
        n = KEEPER_SLOTS;
    } else if (m->type == WMSG_RESTORE_OFFER && m->u.restore_offer.step != KEEPER_NO_STEP &&
               !m->u.restore_offer.elsewhere) {
        fds[0] = vault_reader(s->vault, a->source, a->slot, &e);
        n = fds[0] >= 0;
        if (!n)
            el_log(EL_ERROR, "local rank %u: the snapshot cannot be offered: %s", a->worker, e.text);
    }
    wsock_send(s->sock, a->worker, m, fds, n);
    if (m->type == WMSG_WELCOME) {
        stops_came(s->stops, a->worker);
        fates_welcome(&s->fates, s->sock, a->worker);
    }
}

static void tell_choose(struct snapshots *s)
{
    struct restore_stock stock = {
        .since = keeper_since(s->keeper), .whole = keeper_had_whole(s->keeper), .newest = keeper_reached(s->keeper)};
    stock.n = keeper_readable(s->keeper, stock.step, stock.lineage, RESTORE_STEPS_MAX);
    const char *misfit = keeper_misfit(s->keeper), *why = *misfit ? misfit : keeper_lost(s->keeper);
    el_snip(stock.why, sizeof stock.why, "%s", why);
    stock.misfit = *misfit != 0;
    stock.elsewhere = keeper_takes_elsewhere(s->keeper);
    if (s->resume) {
        const struct load_found *disk = resume_found(s->resume);
        const int64_t best = snapshots_passes_over(&stock, disk);
        if (best >= 0 && disk->unusable != s->said_unusable)
            el_log(EL_WARN, "%s: it is passed over; step %lld is the newest that can be gone back to here", disk->why,
                   (long long)best);
        s->said_unusable = disk->unusable;
        snapshots_add_disk(&stock, disk, &s->left);
    }
    s->ops.choose(s->ctx, &stock);
}

static void on_looked(void *ctx)
{
    struct snapshots *s = ctx;
    bool wanted = s->looking;
    s->looking = false;
    if (wanted)
        tell_choose(s);
}

static void look(struct snapshots *s)
{
    s->looking = s->resume && !*keeper_misfit(s->keeper);
    if (s->looking)
        resume_look(s->resume, s->keeper, s->several);
    else
        tell_choose(s);
}

static void one_verified(struct snapshots *s)
{
    if (--s->verifying > 0 || !s->choosing)
        return;
    s->choosing = false;
    look(s);
}

/* Now and then it is looked whether bytes come. */
static void set_timer(struct snapshots *s)
{
    el_usec look = s->reading ? loop_clock() + s->run->ckpt_restore_timeout / 4 : s->say_at;
    loop_timer_at(s->timer, look < s->until ? look : s->until);
}

/* One step of going back at a time has a deadline here; while the nodes agree the coordinator has it. */
static void set_deadline(struct snapshots *s, bool asking, bool reading)
{
    s->asking = asking;
    s->reading = reading;
    s->until = asking || reading ? loop_clock() + s->run->ckpt_restore_timeout : EL_NEVER;
    s->say_at = asking ? loop_clock() + SILENT_TIME : EL_NEVER;
    set_timer(s);
}

/* Nothing is offered that is not what was committed: every slot is compared with its sums first.  Where a worker cannot
 * take what it was offered, nothing is. */
static void choose(struct snapshots *s)
{
    set_deadline(s, false, false);
    s->choosing = true;
    s->verifying++; /* this walk's own: the last one who has done goes on */
    for (unsigned w = 0; w < s->workers && !*keeper_misfit(s->keeper); w++)
        for (unsigned i = 0; i < KEEPER_SLOTS; i++)
            if (keeper_take(s->keeper, w, i)) {
                s->verifying++;
                vault_verify(s->vault, w, i, keeper_slot(s->keeper, w, i)->gen);
            }
    one_verified(s);
}

static void open_slots(struct snapshots *s, unsigned worker)
{
    struct el_err e = {0};
    bool good = vault_open(s->vault, s->keeper, worker, &e) == 0;
    feed(s, &(struct keeper_event){.type = KEEPER_EV_OPENED, .worker = worker, .ok = good, .text = e.text});
}

static void warn_differ(struct snapshots *s, const struct keeper_pair *x)
{
    char text[SNAPSHOTS_DIFFER_MAX];
    el_log(EL_WARN, "%s", snapshots_differ(x, text));
    s->ops.differ(s->ctx, x);
}

static void act(struct snapshots *s, const struct keeper_action *a)
{
    switch (a->type) {
    case KEEPER_DO_SEND: send_answer(s, a); break;
    case KEEPER_DO_CLOSE:
        wsock_close(s->sock, a->worker);
        stops_went(s->stops, a->worker);
        break;
    case KEEPER_DO_OPEN: open_slots(s, a->worker); break;
    case KEEPER_DO_RELEASE: vault_release(s->vault, a->worker); break;
    case KEEPER_DO_GROW: vault_grow(s->vault, a->worker, a->slot, a->bytes, a->gen); break;
    case KEEPER_DO_SHRINK: vault_shrink(s->vault, a->worker, a->slot, a->bytes, a->gen); break;
    case KEEPER_DO_SUM: vault_sum(s->vault, s->keeper, a->worker, a->slot, a->gen, a->digests, s->several); break;
    case KEEPER_DO_COMPARE: vault_compare(s->vault, keeper_compared(s->keeper)); break;
    case KEEPER_DO_DIFFER: warn_differ(s, keeper_differs(s->keeper)); break;
    case KEEPER_DO_LOAD:
        vault_load(s->vault, s->keeper, a->worker, a->slot, a->gen, a->step, resume_root(s->resume),
                   resume_layout(s->resume));
        break;
    case KEEPER_DO_CHOOSE: choose(s); break;
    case KEEPER_DO_CONFIRM:
        set_deadline(s, false, false);
        s->read = loop_clock();
        s->ops.confirm(s->ctx, a->step);
        break;
    case KEEPER_DO_COMMITTED:
        el_log(EL_DEBUG, "local rank %u: step %lld is held in memory", a->worker, (long long)a->step);
        s->ops.committed(s->ctx, a->worker, a->slot);
        break;
    case KEEPER_DO_UNMET: s->ops.unmet(s->ctx, a->step, a->lineage, a->text); break;
    case KEEPER_DO_PASSED: s->ops.passed(s->ctx); break;
    case KEEPER_DO_ABSENT: s->ops.absent(s->ctx, keeper_rank(s->keeper, a->worker)); break;
    case KEEPER_DO_WENT_BACK:
        s->left = (struct snapshots_left){a->step, a->lineage};
        fates_forget_behind(&s->fates, a->step);
        s->ops.went_back(s->ctx, a->step, a->lineage);
        break;
    case KEEPER_DO_BOUNDARY: stops_stands(s->stops, a->worker, a->step); break;
    case KEEPER_DO_NOTE:
        el_log(a->error ? EL_ERROR : EL_WARN, "rank %u: %s", keeper_rank(s->keeper, a->worker), a->text);
        break;
    }
}

void snapshots_news(struct snapshots *s)
{
    struct snapshots_taken t;
    if (!s->several)
        return;
    memset(&t, 0, sizeof t); /* it is compared as it lies there */
    t.number = s->round;
    t.coord = s->coord;
    t.elsewhere = keeper_takes_elsewhere(s->keeper);
    keeper_tell(s->keeper, &t.told);
    if (memcmp(&t, &s->taken, sizeof t) == 0)
        return;
    s->taken = t;
    s->ops.taken(s->ctx, &s->taken);
}

static void step(struct snapshots *s, const struct keeper_event *ev)
{
    const struct keeper_actions *out = keeper_step(s->keeper, ev);
    keeper_check(s->keeper);
    for (unsigned i = 0; i < out->n; i++)
        act(s, &out->v[i]);
}

/* The keeper's actions live until its next step, and carrying one out may cause the next event: those wait.  One
 * CHOOSE is the most, with a result for each slot at once where no thread can be had. */
static void feed(struct snapshots *s, const struct keeper_event *ev)
{
    if (s->stepping) {
        assert(s->waiting < s->room && !ev->msg && !ev->images && !(ev->part_bytes && ev->ok));
        s->queue[s->waiting] = *ev;
        s->queue[s->waiting++].text =
            ev->text && *ev->text ? strdup(ev->text) : NULL; /* the keeper has words of its own */
        return;
    }
    s->stepping = true;
    step(s, ev);
    for (unsigned at = 0; at < s->waiting; at++) {
        step(s, &s->queue[at]);
        free((char *)(uintptr_t)s->queue[at].text);
    }
    s->waiting = 0;
    s->stepping = false;
    snapshots_news(s);
}

/* --- results of the vault --- */

/* What does not fit into --ckpt-mem is said to the worker, or to all of them (keeper_misfit()). */
static void say_failed(struct snapshots *s, const struct keeper_event *ev)
{
    const struct keeper_slot *of = keeper_slot(s->keeper, ev->worker, ev->slot);
    if (ev->type == KEEPER_EV_SUMMED)
        el_log(EL_WARN, "local rank %u: a snapshot is refused: %s", ev->worker, ev->text);
    else if (ev->type == KEEPER_EV_READ && of->gen == ev->gen)
        el_log(EL_WARN, "local rank %u: the snapshot of step %lld is not used: %s", ev->worker, (long long)of->step,
               ev->text);
    else if (ev->type == KEEPER_EV_LOADED && !ev->need_bytes) {
        el_log(EL_WARN, "local rank %u: step %lld on disk is not used: %s", ev->worker, (long long)of->step, ev->text);
        resume_is_bad(s->resume, of->step, of->lineage);
    }
}

static void on_told(void *ctx, const struct keeper_event *ev)
{
    struct snapshots *s = ctx;
    if (!ev->ok)
        say_failed(s, ev);
    feed(s, ev);
    if (ev->type == KEEPER_EV_SUMMED && ev->part_table)
        s->ops.digested(s->ctx, ev);
    if (ev->type == KEEPER_EV_READ)
        one_verified(s);
}

/* --- workers --- */

int snapshots_whose(const struct snapshots *s, pid_t pid)
{
    return ancestor_slot(s->reap, pid);
}

static int whose(void *ctx, pid_t pid)
{
    return snapshots_whose(ctx, pid);
}

static void on_message(void *ctx, unsigned worker, const struct wmsg *m)
{
    struct snapshots *s = ctx;
    if (m->type == WMSG_RESTORE_QUERY && !s->asking && !s->reading)
        set_deadline(s, true, false);
    const struct wmsg_restore_done *read = m->type == WMSG_RESTORE_DONE ? &m->u.restore_done : NULL;
    if (read && !read->ok && !read->misfit)
        el_log(EL_WARN, "local rank %u cannot read the snapshot of step %lld: %s", worker, (long long)read->step,
               read->why);
    feed(s, &(struct keeper_event){.type = KEEPER_EV_MSG,
                                   .worker = worker,
                                   .msg = m,
                                   .now = loop_clock(),
                                   .away = m->type == WMSG_SNAP_BEGIN && s->several && s->ops.away(s->ctx)});
}

static void on_gone(void *ctx, unsigned worker)
{
    struct snapshots *s = ctx;
    feed(s, &(struct keeper_event){.type = KEEPER_EV_GONE, .worker = worker});
    stops_went(s->stops, worker);
}

/* Who has been told which step it is, and has not said that it has read it. */
static void on_nobody_reads(struct snapshots *s)
{
    char text[200];
    unsigned first = keeper_reading(s->keeper, 0), more = 0;
    for (unsigned w = first; w < s->workers; w = keeper_reading(s->keeper, w + 1))
        more += w != first;
    int n = first < s->workers ? snprintf(text, sizeof text, "local rank %u", first)
                               : snprintf(text, sizeof text, "a rank that asked and has gone"); /* its connection has */
    if (more)
        n += snprintf(text + n, sizeof text - (size_t)n, " and %u more", more);
    snprintf(text + n, sizeof text - (size_t)n, " did not read the snapshot within %.0f s (--ckpt-restore-timeout)",
             (double)s->run->ckpt_restore_timeout / EL_SEC(1));
    set_deadline(s, false, false);
    el_log(EL_ERROR, "%s", text);
    feed(s, &(struct keeper_event){.type = KEEPER_EV_LATE, .text = text});
}

/* Once, long before the time is over: one rank that takes another way through the script keeps all from training. */
static void say_silent(struct snapshots *s)
{
    char who[SNAPSHOTS_RANKS_MAX];
    unsigned n = snapshots_silent(s->keeper, s->rank_base, who), others = s->workers - n;
    s->say_at = EL_NEVER;
    set_timer(s);
    if (n && others)
        el_log(EL_WARN,
               "%s %s not called restore() yet, and %u other%s of this node wait%s for %s: every rank must call it",
               who, n == 1 ? "has" : "have", others, others == 1 ? "" : "s", others == 1 ? "s" : "",
               n == 1 ? "it" : "them");
}

static void on_nobody_asks(struct snapshots *s)
{
    char who[SNAPSHOTS_RANKS_MAX], text[SNAPSHOTS_RANKS_MAX + 120];
    unsigned n = snapshots_silent(s->keeper, s->rank_base, who);
    snprintf(text, sizeof text,
             "%s %s not called restore() within %.6g s (--ckpt-restore-timeout): every rank must call it", who,
             n == 1 ? "has" : "have", (double)s->run->ckpt_restore_timeout / EL_SEC(1));
    el_log(EL_ERROR, "%s", text);
    snapshots_chosen(s, &(struct restore_stock){.told = KEEPER_NO_STEP}, text);
}

static void on_late(void *ctx)
{
    struct snapshots *s = ctx;
    if (!s->reading && loop_clock() < s->until) {
        say_silent(s);
    } else if (!s->reading) {
        on_nobody_asks(s);
    } else if (vault_loaded_bytes(s->vault) != s->loaded) {
        s->loaded = vault_loaded_bytes(s->vault);
        s->ops.reads(s->ctx);
        set_deadline(s, false, true);
    } else if (loop_clock() < s->until) {
        set_timer(s);
    } else {
        on_nobody_reads(s);
    }
}

void snapshots_ended(struct snapshots *s, unsigned slot)
{
    if (s)
        wsock_finish(s->sock, slot);
}

void snapshots_round(struct snapshots *s, uint64_t number, uint64_t coord, unsigned rank_base)
{
    if (!s)
        return;
    for (unsigned i = 0; i < s->workers; i++)
        wsock_close(s->sock, i);
    s->round = number;
    s->coord = coord;
    s->rank_base = rank_base;
    s->choosing = s->looking = false;
    set_deadline(s, false, false);
    stops_round(s->stops, number, coord, rank_base);
    feed(s, &(struct keeper_event){.type = KEEPER_EV_ROUND,
                                   .number = number,
                                   .rank_base = rank_base,
                                   .lineage = lineage_begin(number, coord, 0)});
}

/* One line for each time. */
static void say_back(const struct snapshots *s)
{
    char line[SNAPSHOTS_BACK_MAX];
    struct keeper_reads x = keeper_reads(s->keeper);
    if (snapshots_back_text(&x, s->step, s->read - s->offered, line))
        el_log(EL_INFO, "%s", line);
    resume_went(s->resume);
}

void snapshots_chosen(struct snapshots *s, const struct restore_stock *decided, const char *text)
{
    s->step = decided->told;
    s->loaded = vault_loaded_bytes(s->vault);
    s->offered = loop_clock();
    set_deadline(s, false, s->step != KEEPER_NO_STEP || decided->fresh);
    const uint64_t *on_disk = resume_goes(s->resume, s->step, decided->told_lineage);
    if (on_disk)
        fates_found(&s->fates, s->sock, s->workers, s->run, s->step);
    feed(s, &(struct keeper_event){.type = KEEPER_EV_CHOSEN,
                                   .step = s->step,
                                   .lineage = decided->told_lineage,
                                   .fresh = decided->fresh,
                                   .on_disk = on_disk,
                                   .text = text});
}

void snapshots_again(struct snapshots *s)
{
    feed(s, &(struct keeper_event){.type = KEEPER_EV_AGAIN});
}

uint64_t snapshots_confirmed(struct snapshots *s, uint64_t attempt)
{
    say_back(s);
    fates_forget_behind(&s->fates, s->step);
    s->left.step = RESTORE_NO_STEP;
    uint64_t lineage = lineage_begin(s->round, s->coord, attempt);
    feed(s, &(struct keeper_event){.type = KEEPER_EV_CONFIRMED, .lineage = lineage});
    return lineage;
}

void snapshots_common(struct snapshots *s, struct pin_step step, int64_t from, const struct pin_step *useless,
                      unsigned n)
{
    feed(s, &(struct keeper_event){
                .type = KEEPER_EV_COMMON, .step = step.step, .lineage = step.lineage, .number = (uint64_t)from});
    for (unsigned i = 0; i < n; i++)
        feed(s,
             &(struct keeper_event){.type = KEEPER_EV_USELESS, .step = useless[i].step, .lineage = useless[i].lineage});
}

void snapshots_captured(struct snapshots *s, unsigned worker, const struct wmsg_captured *c)
{
    feed(s, &(struct keeper_event){.type = KEEPER_EV_CAPTURED,
                                   .worker = worker,
                                   .slot = (unsigned)c->slot,
                                   .ok = c->ok,
                                   .number = c->consumed_samples,
                                   .images = c->images});
}

struct stops *snapshots_stops(const struct snapshots *s)
{
    return s ? s->stops : NULL;
}

struct keeper *snapshots_keeper(struct snapshots *s)
{
    return s->keeper;
}

struct vault *snapshots_vault(struct snapshots *s)
{
    return s->vault;
}

void snapshots_event(struct snapshots *s, const char *kind, int64_t step, const char *why)
{
    fates_event(&s->fates, s->sock, s->workers, &(struct wmsg_event){.kind = kind, .step = step, .why = why});
}

const char *snapshots_socket(const struct snapshots *s)
{
    return s ? s->socket : NULL;
}

unsigned snapshots_oom(const struct snapshots *s)
{
    return s ? s->oom_raise : 0;
}

/* --- life --- */

static int find_budget(struct snapshots *s, uint64_t *bytes, struct el_err *e)
{
    struct host_facts *f = calloc(1, sizeof *f);
    if (!f)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    host_memory_read(f);
    int bad = snapshots_budget(s->run, f->memory_bytes, f->memory_free_bytes, f->memory_limit_bytes,
                               f->memory_left_bytes, bytes, e);
    s->oom_raise = snapshots_oom_raise(*bytes, f->memory_bytes, f->memory_limit_bytes);
    free(f);
    return bad;
}

static int make_parts(struct snapshots *s, struct pool *p, uint64_t budget_bytes, const struct snapshots_conf *of,
                      struct el_err *e)
{
    static const struct wsock_ops sock = {whose, on_message, on_gone};
    struct keeper_conf conf = {.workers = s->workers,
                               .budget_bytes = budget_bytes,
                               .waits = s->run->ckpt_busy,
                               .check = s->run->ckpt_check,
                               .disk = s->run->ckpt_dir != NULL,
                               .live = of->live,
                               .several = of->several,
                               .patience = SNAPSHOTS_PATIENCE,
                               .compares = s->workers > 1 || of->several,
                               .files = s->run->ckpt_layout == CKPT_LAYOUT_MEGATRON};
    s->mem = EL_MEM_INIT(CORE_LIMIT);
    s->keeper = keeper_new(&conf, &s->mem);
    s->vault = vault_new(p, s->workers, budget_bytes, on_told, s);
    s->timer = loop_timer_new(s->loop, on_late, s);
    s->room = KEEPER_SLOTS * s->workers + 16;
    s->queue = calloc(s->room, sizeof *s->queue);
    if (!s->keeper || !s->vault || !s->timer || !s->queue)
        return el_fail(e, EL_EXIT_OSERR, "out of memory for snapshots of %u workers", s->workers);
    s->stops = stops_new(s->loop, s->workers, &s->ops.stops, s->ctx, e);
    if (!s->stops)
        return -1;
    s->sock = wsock_new(s->loop, s->socket, s->workers, &sock, s, e);
    return s->sock ? 0 : -1;
}

struct snapshots *snapshots_new(struct loop *l, struct pool *p, const struct snapshots_conf *conf,
                                const struct snapshots_ops *ops, void *ctx, struct el_err *e)
{
    uint64_t budget_bytes = 0;
    struct snapshots *s = calloc(1, sizeof *s);
    if (!s) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    *s = (struct snapshots){.left = {RESTORE_NO_STEP, 0},
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
    snapshots_free(s);
    return NULL;
}

int snapshots_resume(struct snapshots *s, struct pool *p, const struct ckpt_fs *from, enum ckpt_layout layout,
                     struct el_err *e)
{
    s->resume = resume_new(p, from, layout, on_looked, s);
    return s->resume ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
}

void snapshots_free(struct snapshots *s)
{
    if (!s)
        return;
    wsock_free(s->sock);
    vault_free(s->vault);
    resume_free(s->resume);
    if (s->keeper)
        keeper_free(s->keeper);
    stops_free(s->stops);
    loop_timer_free(s->timer);
    free(s->queue);
    free(s);
}
