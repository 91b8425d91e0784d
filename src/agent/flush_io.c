/* From a committed slot to a committed checkpoint: which step is written next is decided by snapshot/flush.h, the
 * thread that writes is snapshot/disk.h; here they meet the job.  Training never waits for any of it, and nothing that
 * goes wrong with the disk ends it. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/flush_private.h"
#include "sys/signame.h"
#include "util/log.h"

#define PROGRESS_EVERY EL_MS(200)
#define STALL_TIME     EL_SEC(600) /* no byte in so long: the disk stands still */

static void flush_pump(struct flush_io *p);
static bool flush_is_done(const struct flush_io *p);
static void flush_leave(struct flush_io *p);

/* --- one checkpoint ----------------------------------------------------------------------------------------------- */

void flush_io_let_go(struct flush_io *p)
{
    for (unsigned i = 0; i < p->node->nproc; i++)
        if (p->chest[i]) {
            shm_slots_drop(p->chest[i]);
            p->chest[i] = NULL;
        }
}

void flush_io_forget_files(struct flush_io *p)
{
    flush_io_let_go(p);
    disk_files_free(p->files);
    p->files = NULL;
}

static void flush_finish(struct flush_io *p, bool good, int broken, const char *why)
{
    bool promised = flush_is_promised(p->core);
    flush_io_forget_files(p);
    flush_done(p->core, good, broken);
    flush_check(p->core);
    p->failed = !good;
    if (!good && p->about.step != p->given_up) /* which has been said */
        flush_io_say_failed(p, p->about.step, p->about.emergency, promised, why);
    flush_io_show(p);
    flush_pump(p);
    if (p->left && flush_is_done(p))
        flush_leave(p);
}

static void flush_on_written(void *ctx, bool good, int broken, const struct el_err *e)
{
    struct flush_io *p = ctx;
    if (p->saver) {
        ckpt_writer_written(p, good, broken, e);
        return;
    }
    if (!good) {
        flush_finish(p, false, broken, e->text);
        return;
    }
    snapshot_service_event(p->node->snapshots, "persisted", p->about.step, "");
    disk_publish(p->disk, &p->about, p->files);
}

static void flush_on_published(void *ctx, bool good, bool existed, const char *trouble, const struct el_err *e)
{
    struct flush_io *p = ctx;
    if (p->saver) {
        ckpt_writer_published(p, good, existed, trouble, e);
        return;
    }
    if (good)
        flush_io_say_committed(p, existed, trouble);
    flush_finish(p, good, -1, e->text);
}

static void on_cleared(void *ctx, const char *said)
{
    struct flush_io *p = ctx;
    if (*said)
        el_log(EL_WARN, "checkpoint: %s", said);
    if (p->saver) {
        ckpt_writer_disk_is_free(p);
        return;
    }
    p->clears = false;
    flush_pump(p);
    if (p->left && flush_is_done(p))
        flush_leave(p);
}

struct disk_files *flush_io_new_files(struct flush_io *p, size_t n)
{
    struct disk_files *files = calloc(1, sizeof *files);
    (void)p;
    if (!files)
        return NULL;
    files->mem = EL_MEM_INIT(0);
    files->v = el_alloc(&files->mem, n * sizeof *files->v);
    if (files->v)
        return files;
    free(files);
    return NULL;
}

/* Parts of tensors make files of the one layout, files that the script named those of the other. */
void flush_io_add_file(struct flush_io *p, const struct slot_table_source *from, unsigned number)
{
    struct shm_slots *v = snapshot_service_vault(p->node->snapshots);
    const struct slot_table *k = snapshot_service_keeper(p->node->snapshots);
    const struct slot_table_part *part = slot_table_part(k, from->worker, from->part);
    bool named = p->node->conf->ckpt_layout == CKPT_LAYOUT_MEGATRON;
    if (named != (part->file[0] != 0))
        return;
    struct disk_file *f = &p->files->v[p->files->n++];
    *f = (struct disk_file){.image = shm_slots_image(v, from->worker, from->slot, from->part),
                            .bytes = slot_table_slot(k, from->worker, from->slot)->part_bytes[from->part],
                            .sums = shm_slots_sums(v, from->worker, from->slot, from->part),
                            .part = part->name,
                            .shard_id = part->shard_id,
                            .node = ""};
    if (named)
        snprintf(f->name, sizeof f->name, "%s", part->file);
    else
        disk_shard_name(number ? number : p->files->n, f->name);
    if (!p->chest[from->worker])
        p->chest[from->worker] = shm_slots_hold(v, from->worker);
    p->bytes += f->bytes;
}

/* The names of parts are the keeper's, which may forget them while a thread writes: each file has its own. */
bool flush_io_own_names(struct flush_io *p)
{
    struct disk_files *files = p->files;
    for (size_t i = 0; i < files->n; i++) {
        struct disk_file *f = &files->v[i];
        f->part = disk_files_keep(files, f->part);
        f->shard_id = disk_files_keep(files, f->shard_id);
        if (!f->part || !f->shard_id)
            return false;
    }
    return true;
}

static void flush_draw_nonce(char to[CKPT_NONCE_MAX])
{
    uint64_t chance = loop_clock();
    ssize_t got = getrandom(&chance, sizeof chance, 0);
    (void)got; /* it only has to be another one than that of a commit that was given up */
    snprintf(to, CKPT_NONCE_MAX, "%016llx", (unsigned long long)chance);
}

static void flush_begin(struct flush_io *p, int64_t step)
{
    struct node *n = p->node;
    const struct slot_table *k = snapshot_service_keeper(n->snapshots);
    unsigned count;
    const struct slot_table_source *from = flush_sources(p->core, &count);
    const struct msg_world *w = n->membership ? membership_world(n->membership) : NULL;
    p->began = loop_clock();
    p->bytes = 0;
    p->about = (struct disk_about){.step = step,
                                   .lineage = slot_table_slot(k, from->worker, from->slot)->lineage,
                                   .number = w ? w->number : n->core.attempts,
                                   .coord = w ? w->coord : n->coord,
                                   .counter = ++p->counter,
                                   .world = w ? w->world_size : n->nproc,
                                   .consumed_samples = slot_table_slot(k, from->worker, from->slot)->consumed_samples,
                                   .layout_id = slot_table_layout_id(k),
                                   .emergency = flush_is_emergency(p->core)};
    flush_draw_nonce(p->about.nonce);
    p->files = flush_io_new_files(p, count);
    for (unsigned i = 0; p->files && i < count; i++)
        flush_io_add_file(p, &from[i], 0);
    if (!p->files || !flush_io_own_names(p)) {
        flush_finish(p, false, -1, "no memory for the list of its files");
        return;
    }
    if (!p->files->n) {
        flush_finish(p, false, -1,
                     "with --ckpt-layout=megatron files are written that declare_file() names, and there is none");
        return;
    }
    p->layout_id = disk_files_keep(p->files, p->about.layout_id);
    p->about.layout_id = p->layout_id ? p->layout_id : "";
    loop_timer_at(p->tick, loop_clock() + PROGRESS_EVERY);
    disk_write(p->disk, &p->about, p->files, true);
}

/* What follows from all that has happened. */
static void flush_pump(struct flush_io *p)
{
    struct flush_news news;
    if (p->sets_aside && !p->saver && !disk_is_busy(p->disk)) {
        p->sets_aside = false;
        p->clears = true;
        disk_clear(p->disk, DISK_ASIDE, &p->back);
    }
    if (p->clears)
        return;
    if (p->emergency && !slot_table_is_summing(snapshot_service_keeper(p->node->snapshots)))
        flush_want_newest(p->core, true);
    while ((news = flush_next(p->core)).what != FLUSH_NOTHING) {
        if (news.what == FLUSH_GIVEN_UP)
            flush_io_say_failed(p, news.step, false, news.promised, news.text);
        else
            flush_begin(p, news.step);
    }
    snapshot_service_news(p->node->snapshots);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static bool flush_is_done(const struct flush_io *p)
{
    bool wait = p->emergency && slot_table_is_summing(snapshot_service_keeper(p->node->snapshots));
    return flush_is_idle(p->core) && !wait && !p->clears && !p->sets_aside;
}

/* Nothing is waited for any more. */
static void flush_leave(struct flush_io *p)
{
    void (*left)(struct node * n) = p->left;
    p->left = NULL;
    loop_timer_at(p->tick, EL_NEVER);
    left(p->node);
}

/* Who waits has waited long enough: what is being written stays a stage, which is no checkpoint, and what waits behind
 * it is not begun. */
static void flush_give_up(struct flush_io *p, const char *why)
{
    int64_t step, writing = flush_writing(p->core);
    bool promised;
    if (writing != SLOT_TABLE_NO_STEP)
        flush_io_say_failed(p, writing, p->about.emergency, flush_is_promised(p->core), why);
    p->given_up = writing;
    disk_stop(p->disk);
    if (flush_is_idle(p->core)) /* its sums are not made yet */
        flush_io_say_failed(p, slot_table_covered(snapshot_service_keeper(p->node->snapshots)), p->emergency,
                            !p->emergency, why);
    while (flush_drop_wish(p->core, &step, &promised))
        if (step != writing)
            flush_io_say_failed(p, step, false, promised, why);
    flush_leave(p);
}

static void flush_on_late(struct flush_io *p)
{
    char why[160], name[SIGNAME_MAX];
    bool well = p->node->core.cause == AGENT_SUCCESS; /* then a signal has begun that time */
    if (p->left_at != EL_NEVER)
        snprintf(why, sizeof why, "it was not written within %.6g s of %s (--emergency-timeout)",
                 (double)p->node->conf->emergency_timeout / EL_SEC(1),
                 well ? signame(p->signal, name) : "the workers' end");
    else
        snprintf(why, sizeof why, "its disk has taken nothing for %u s", (unsigned)(STALL_TIME / EL_SEC(1)));
    flush_give_up(p, why);
}

static void cut_short(struct flush_io *p)
{
    char why[96], name[SIGNAME_MAX];
    snprintf(why, sizeof why, "a second signal, %s, came before it was written", signame(p->signal, name));
    flush_give_up(p, why);
}

/* One signal ends the job, and its emergency checkpoint is waited for; the next one ends the waiting.  Where the job
 * has ended by itself the first one bounds it. */
void flush_io_signal(struct node *n, int signal)
{
    struct flush_io *p = n->persisting;
    if (!p)
        return;
    p->signals++;
    p->signal = signal;
    if (!p->left)
        return;
    if (p->signals > 1)
        cut_short(p);
    else if (p->left_at == EL_NEVER)
        p->left_at = loop_clock() + n->conf->emergency_timeout;
}

static void flush_on_tick(void *ctx)
{
    struct flush_io *p = ctx;
    el_usec now = loop_clock();
    uint64_t done, all;
    disk_progress(p->disk, &done, &all);
    if (done != p->seen_bytes || !p->left)
        p->moved = now;
    p->seen_bytes = done;
    flush_io_show(p);
    if (p->saver && disk_is_busy(p->disk))
        ckpt_writer_moved(p, done);
    if (p->left && (now >= p->left_at || now - p->moved >= STALL_TIME))
        flush_on_late(p);
    else if (p->left || disk_is_busy(p->disk))
        loop_timer_at(p->tick, now + PROGRESS_EVERY);
}

/* A job that ends well waits for what its script wanted on disk, however long that takes; one that ends badly, for its
 * emergency checkpoint, and no longer than it was told. */
void flush_io_leave(struct node *n, void (*left)(struct node *n))
{
    struct flush_io *p = n->persisting;
    if (p && p->saver) { /* whoever waits for anything does so while it is a member of the job */
        disk_stop(p->disk);
        left(n);
        return;
    }
    if (!p || p->left) {
        left(n);
        return;
    }
    bool well = n->core.cause == AGENT_SUCCESS;
    p->left = left;
    p->moved = loop_clock();
    p->left_at = well ? EL_NEVER : p->moved + n->conf->emergency_timeout - emergency_io_took(n);
    p->emergency = !well && n->conf->emergency_timeout;
    flush_round(p->core);
    flush_pump(p);
    if (!p->left)
        return;
    if (flush_is_done(p)) {
        flush_leave(p);
        return;
    }
    if (p->signals > 1) {
        cut_short(p);
        return;
    }
    if (flush_writing(p->core) != SLOT_TABLE_NO_STEP)
        el_log(EL_INFO, "checkpoint: waiting until step %lld is on disk%s", (long long)flush_writing(p->core),
               p->signals ? "; one more signal ends that" : "");
    loop_timer_at(p->tick, loop_clock());
}

/* While the workers end, what they had committed is brought to disk: beside their end, and beside their restart. */
void flush_io_emergency(struct node *n)
{
    struct flush_io *p = n->persisting;
    if (!p || p->saver || n->core.cause == AGENT_SUCCESS || !n->conf->emergency_timeout)
        return;
    p->emergency = true;
    flush_pump(p);
}

void flush_io_round(struct node *n)
{
    struct flush_io *p = n->persisting;
    if (!p)
        return;
    p->emergency = false;
    flush_round(p->core);
    flush_pump(p);
    if (p->saver)
        ckpt_writer_round(p);
}

/* A node that is alone sets nothing aside when its job was restarted: what is on disk was looked at then. */
void flush_io_went_back(struct node *n, int64_t step, uint64_t lineage, bool by_itself)
{
    struct flush_io *p = n->persisting;
    if (!p)
        return;
    flush_went_back(p->core, step, lineage);
    p->owed = p->owed > step ? SLOT_TABLE_NO_STEP : p->owed; /* another one is trained now */
    p->back = (struct disk_about){.step = step, .lineage = lineage, .nonce = "0", .layout_id = ""};
    p->sets_aside |= by_itself || p->saver;
    flush_pump(p);
    if (p->saver)
        ckpt_writer_went_back(p);
}

void flush_io_unmet(struct node *n, int64_t step, uint64_t lineage, const char *why)
{
    if (!n->persisting)
        return;
    flush_unmet(n->persisting->core, step, lineage, why);
    flush_pump(n->persisting);
}

void flush_io_passed(struct node *n)
{
    struct flush_io *p = n->persisting;
    if (!p)
        return;
    flush_pump(p);
    if (p->saver) /* how far they are is what others judge it by */
        ckpt_writer_committed(p);
}

void flush_io_ended(struct node *n)
{
    if (n->persisting && n->persisting->saver)
        ckpt_writer_ended(n->persisting);
}

void flush_io_tick_at(struct flush_io *p, el_usec at)
{
    loop_timer_at(p->tick, at);
}

void flush_io_committed(struct node *n, unsigned worker, unsigned slot)
{
    struct flush_io *p = n->persisting;
    if (!p)
        return;
    flush_committed(p->core, worker, slot);
    flush_pump(p);
    if (p->saver)
        ckpt_writer_committed(p);
    if (p->left && flush_is_done(p))
        flush_leave(p);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int flush_io_init(struct node *n, struct el_err *e)
{
    static const struct disk_ops ops = {flush_on_written, flush_on_published, on_cleared};
    const struct run_conf *run = n->conf;
    if (!run->ckpt_dir)
        return 0;
    bool several = n->place.kind != ENDPOINT_ALONE;
    if (several && run->ckpt_commit == COMMIT_MARKER) /* two coordinators of a job would write the same files */
        return el_fail(e, EL_EXIT_CONFIG,
                       "--ckpt-commit=marker is for one node (--standalone): files of several would meet in one "
                       "directory; --ckpt-commit=rename gives each attempt its own");
    struct flush_io *p = n->persisting = calloc(1, sizeof *p);
    if (!p)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    struct disk_conf conf = {.dir = run->ckpt_dir,
                             .layout = (enum ckpt_layout)run->ckpt_layout,
                             .mode = (enum commit_mode)run->ckpt_commit,
                             .apart = several,
                             .local = several && run->ckpt_store == 1,
                             .run_id = run->run_id_random ? "" : run->rdzv_id,
                             .keep_last = run->ckpt_keep_last,
                             .alone = n->place.kind == ENDPOINT_ALONE};
    p->node = n;
    p->mem = EL_MEM_INIT(0);
    p->left_at = EL_NEVER;
    p->failed_step = p->given_up = p->owed = SLOT_TABLE_NO_STEP;
    p->tick = loop_timer_new(n->loop, flush_on_tick, p);
    p->chest = calloc(n->nproc, sizeof *p->chest);
    p->core = flush_new(snapshot_service_keeper(n->snapshots), n->nproc, &p->mem);
    if (!p->tick || !p->chest || !p->core)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    p->disk = disk_open(n->loop, n->pool, &conf, &ops, p, e);
    if (!p->disk)
        return -1;
    return several ? ckpt_writer_init(p, e) : 0;
}

/* --- who asks ----------------------------------------------------------------------------------------------------- */

int64_t flush_io_save(struct node *n, uint64_t *ask)
{
    struct flush_io *p = n->persisting;
    int64_t step = slot_table_covered(snapshot_service_keeper(n->snapshots));
    if (p->saver) /* what all nodes hold is not known here, nor that nobody holds anything where this one does not */
        *ask = ckpt_writer_ask(p);
    if (p->saver || step == SLOT_TABLE_NO_STEP)
        return step;
    flush_forgive(p->core);
    flush_want_newest(p->core, false);
    flush_pump(p);
    return step;
}

void flush_io_view(const struct node *n, struct flush_io_view *v)
{
    const struct flush_io *p = n->persisting;
    *v = (struct flush_io_view){
        .writing = SLOT_TABLE_NO_STEP, .on_disk = SLOT_TABLE_NO_STEP, .failed = SLOT_TABLE_NO_STEP};
    if (!p)
        return;
    v->here = true;
    v->idle = flush_is_idle(p->core) && !(p->saver && p->files); /* written here is not on disk yet */
    v->writing = flush_writing(p->core);
    if (v->writing != SLOT_TABLE_NO_STEP)
        disk_progress(p->disk, &v->done_bytes, &v->all_bytes);
    v->on_disk = flush_on_disk(p->core);
    v->on_disk_at = p->on_disk_at;
    v->said = p->said;
    v->failed = p->failed_step;
    v->why = p->failed_why;
    v->answered = p->answered;
    v->answer_status = p->answer_status;
    v->answer = p->answer;
}

const struct ckpt_fs *flush_io_root(const struct node *n)
{
    return n->persisting ? disk_root(n->persisting->disk) : NULL;
}

void flush_io_free(struct node *n)
{
    struct flush_io *p = n->persisting;
    if (!p)
        return;
    if (p->files)
        flush_io_forget_files(p);
    ckpt_writer_free(p);
    flush_free(p->core);
    disk_free(p->disk);
    loop_timer_free(p->tick);
    free(p->chest);
    free(p);
}
