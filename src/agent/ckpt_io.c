/* Snapshots as part of the job: which round their workers are in, and what they go back to.  Among others the
 * coordinator decides that; alone this node does, by the same rules. */
#include <stdio.h>

#include "conf/conf_rdzv.h"
#include "agent/node.h"
#include "ckpt/layout.h"
#include "util/log.h"
#include "coord/common_step.h"
#include "coord/restore.h"
#include "snapshot/slot_pin.h"

#define CORE_LIMIT ((size_t)1 << 20)

/* Alone: what follows from what this node has said. */
static void ckpt_hear(struct node *n)
{
    struct restore_word w;
    restore_take(&n->restore, 0, &n->stock, loop_clock());
    if (!restore_word(&n->restore, 0, &w))
        return;
    if (w.what == RESTORE_GO) {
        uint64_t lineage = snapshot_service_confirmed(n->snapshots, n->stock.attempt);
        flush_io_went_back(n, n->stock.told, lineage, false);
    } else if (w.what == RESTORE_READ) {
        n->stock.at = RESTORE_AT_TOLD;
        n->stock.told = w.step;
        n->stock.told_lineage = w.lineage;
        n->stock.fresh = w.fresh;
        ckpt_decided(n, &n->stock, w.text);
    }
}

static void on_choose(void *ctx, const struct restore_stock *stock)
{
    struct node *n = ctx;
    if (n->membership) {
        membership_stock(n->membership, stock);
        return;
    }
    uint64_t attempt = n->restore.attempt + 1; /* what was decided before could not be read */
    n->stock = *stock;
    n->stock.attempt = attempt;
    n->stock.at = RESTORE_AT_STOCK;
    n->stock.told = RESTORE_NO_STEP;
    ckpt_hear(n);
}

static void on_confirm(void *ctx, int64_t step)
{
    struct node *n = ctx;
    (void)step;
    if (n->membership) {
        membership_read(n->membership);
        return;
    }
    n->stock.at = RESTORE_AT_READ;
    ckpt_hear(n);
}

static void on_reads(void *ctx)
{
    struct node *n = ctx;
    if (n->membership) /* alone nobody else waits */
        membership_reads(n->membership);
}

void ckpt_decided(struct node *n, const struct restore_stock *decided, const char *text)
{
    if (decided->told == RESTORE_NO_STEP && (!decided->fresh || n->core.attempts > 1))
        el_log(decided->fresh ? EL_WARN : EL_ERROR, "%s", text);
    snapshot_service_chosen(n->snapshots, decided, text);
}

/* --- planned changes --- */

static void on_aware(void *ctx)
{
    struct node *n = ctx;
    if (n->membership && n->conf->boundary_wait)
        membership_aware(n->membership);
}

static void on_live(void *ctx, int64_t step, bool deaf, bool past)
{
    struct node *n = ctx;
    membership_live(n->membership, step, deaf, past);
}

static void ckpt_on_parted(void *ctx, unsigned worker)
{
    node_feed(ctx, &(struct agent_event){.type = AGENT_EV_PARTED, .slot = worker});
}

static void on_at_boundary(void *ctx)
{
    struct node *n = ctx;
    membership_at_boundary(n->membership);
}

void ckpt_notice(struct node *n, const struct member_notice *notice)
{
    struct step_boundary *s = snapshot_service_stops(n->snapshots);
    if (!s && notice)
        membership_live(n->membership, -1, true, false);
    if (!s)
        return;
    if (!notice) {
        step_boundary_notice(s, NULL);
        return;
    }
    step_boundary_notice(
        s, &(struct step_boundary_notice){.why = notice->why, .boundary = notice->boundary, .until = notice->until});
}

static void on_committed(void *ctx, unsigned worker, unsigned slot)
{
    ckpt_asks_committed(ctx, worker, slot);
    flush_io_committed(ctx, worker, slot);
}

static bool keeps(const struct node *n)
{
    return n->conf->ckpt_mem_bytes || n->conf->ckpt_mem_percent;
}

static void ckpt_on_differ(void *ctx, const struct slot_table_pair *x)
{
    emit_differ(ctx, x);
}

/* Snapshots, or stops between two steps: workers talk to this agent. */
static bool talks(const struct node *n)
{
    return keeps(n) || (n->conf->boundary_wait && n->place.kind != ENDPOINT_ALONE);
}

int ckpt_folder(struct node *n, struct el_err *e)
{
    struct el_err why = {0};
    if (n->conf->probe_only) /* there are no workers */
        return 0;
    n->folder = run_folder_new(n->env, &why);
    if (n->folder)
        return 0;
    if (talks(n)) {
        *e = why;
        return -1;
    }
    el_log(EL_DEBUG, "workers cannot import elrun: %s", why.text);
    return 0;
}

static void on_taken(void *ctx, const struct snapshot_service_taken *t)
{
    struct node *n = ctx;
    common_step_list_put(t->told.is_whole, t->told.whole, n->taken_whole, sizeof n->taken_whole);
    common_step_list_put(t->told.is_coming, t->told.coming, n->taken_coming, sizeof n->taken_coming);
    n->taken = (struct member_taken){.number = t->number,
                                     .coord = t->coord,
                                     .whole = n->taken_whole,
                                     .coming = n->taken_coming,
                                     .era = t->told.era,
                                     .passed = t->told.passed,
                                     .begun = t->told.begun,
                                     .ready = t->told.ready,
                                     .stuck = t->told.stuck,
                                     .elsewhere = t->elsewhere};
    if (n->membership)
        membership_taken(n->membership, &n->taken);
}

void ckpt_common(struct node *n, const struct msg_ckpt_common *c)
{
    struct slot_pin_step useless[2 * COMMON_STEP_STEPS_MAX];
    unsigned many = common_step_list_get(c->useless, useless, 2 * COMMON_STEP_STEPS_MAX);
    if (n->snapshots)
        snapshot_service_common(n->snapshots, (struct slot_pin_step){c->step, -1, c->lineage, 0}, (int64_t)c->from,
                                useless, many);
}

static void on_digested(void *ctx, const struct slot_table_event *ev)
{
    replica_tables_digested(ctx, ev);
}

static bool on_away(void *ctx)
{
    const struct node *n = ctx;
    return n->membership &&
           membership_away(n->membership) > n->conf->keep_alive_interval * n->conf->keep_alive_attempts;
}

static void on_absent(void *ctx, unsigned rank)
{
    el_log(EL_WARN,
           "rank %u has come to no snapshot for %u s while another rank found no free slot: it is not waited for any "
           "more; every rank has to call snapshot() for the same steps",
           rank, (unsigned)(SNAPSHOT_SERVICE_PATIENCE / EL_SEC(1)));
    flush_io_passed(ctx);
}

static void on_passed(void *ctx)
{
    flush_io_passed(ctx);
}

static void on_unmet(void *ctx, int64_t step, uint64_t lineage, const char *why)
{
    flush_io_unmet(ctx, step, lineage, why);
}

static void on_went_back(void *ctx, int64_t step, uint64_t lineage)
{
    struct node *n = ctx;
    if (n->membership)
        membership_went_back(n->membership, step);
    flush_io_went_back(n, step, lineage, true);
}

int ckpt_init(struct node *n, struct el_err *e)
{
    static const struct snapshot_service_ops ops = {
        .choose = on_choose,
        .confirm = on_confirm,
        .reads = on_reads,
        .stops = {.aware = on_aware, .live = on_live, .parted = ckpt_on_parted, .at_boundary = on_at_boundary},
        .committed = on_committed,
        .taken = on_taken,
        .differ = ckpt_on_differ,
        .digested = on_digested,
        .away = on_away,
        .unmet = on_unmet,
        .passed = on_passed,
        .absent = on_absent,
        .went_back = on_went_back};
    if (!talks(n))
        return 0;
    const struct restore_conf alone = {.room = 1,
                                       .timeout = n->conf->ckpt_restore_timeout,
                                       .max_rollback = rdzv_max_rollback(n->conf),
                                       .allow_fresh = n->conf->allow_fresh};
    n->ckpt_mem = EL_MEM_INIT(CORE_LIMIT);
    if (restore_init(&n->restore, &alone, &n->ckpt_mem) < 0)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    struct snapshot_service_conf conf = {.run = n->conf,
                                         .workers = n->nproc,
                                         .folder = run_folder_path(n->folder),
                                         .reap = n->reap,
                                         .live = emergency_io_wanted(n),
                                         .several = n->place.kind != ENDPOINT_ALONE};
    n->snapshots = snapshot_service_new(n->loop, n->pool, &conf, &ops, n, e);
    if (!n->snapshots || replica_tables_init(n, e) < 0 || emergency_io_init(n, e) < 0 || flush_io_init(n, e) < 0 ||
        ckpt_asks_init(n, e) < 0)
        return -1;
    const struct ckpt_fs *root = flush_io_root(n);
    return root ? snapshot_service_resume(n->snapshots, n->pool, root, (enum ckpt_layout)n->conf->ckpt_layout, e) : 0;
}

void ckpt_round(struct node *n)
{
    const struct msg_world *w = n->membership ? membership_world(n->membership) : NULL;
    if (!n->snapshots)
        return;
    restore_begin(&n->restore, 1);
    /* First: the others ask the keeper what is declared, and that of the last round has other ranks. */
    snapshot_service_round(n->snapshots, w ? w->number : n->core.attempts, w ? w->coord : n->coord, workers_rank(n, 0));
    flush_io_round(n);
    emergency_io_round(n);
    replica_tables_round(n);
}

void ckpt_free(struct node *n)
{
    restore_free(&n->restore, &n->ckpt_mem);
    emergency_io_free(n);
    replica_tables_free(n);
    snapshot_service_free(n->snapshots);
}
