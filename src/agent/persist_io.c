/* From a committed slot to a committed checkpoint: which step is written next is decided by snapshot/persist.h, the
 * thread that writes is snapshot/disk.h; here they meet the job.  Training never waits for any of it, and nothing that
 * goes wrong with the disk ends it. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/persist_private.h"
#include "sys/signame.h"
#include "util/log.h"

#define PROGRESS_EVERY EL_MS(200)
#define STALL_TIME     EL_SEC(600) /* no byte in so long: the disk stands still */

static void pump(struct persisting *p);
static bool is_done(const struct persisting *p);
static void leave(struct persisting *p);

/* --- one checkpoint ----------------------------------------------------------------------------------------------- */

void persisting_let_go(struct persisting *p)
{
    for (unsigned i = 0; i < p->node->nproc; i++)
        if (p->chest[i]) {
            vault_drop(p->chest[i]);
            p->chest[i] = NULL;
        }
}

void persisting_forget_files(struct persisting *p)
{
    persisting_let_go(p);
    disk_files_free(p->files);
    p->files = NULL;
}

static void finish(struct persisting *p, bool good, int broken, const char *why)
{
    bool promised = persist_is_promised(p->core);
    persisting_forget_files(p);
    persist_done(p->core, good, broken);
    persist_check(p->core);
    p->failed = !good;
    if (!good && p->about.step != p->given_up) /* which has been said */
        persisting_say_failed(p, p->about.step, p->about.lastwords, promised, why);
    persisting_show(p);
    pump(p);
    if (p->left && is_done(p))
        leave(p);
}

static void on_written(void *ctx, bool good, int broken, const struct el_err *e)
{
    struct persisting *p = ctx;
    if (p->saver) {
        saver_written(p, good, broken, e);
        return;
    }
    if (!good) {
        finish(p, false, broken, e->text);
        return;
    }
    snapshots_event(p->node->snapshots, "persisted", p->about.step, "");
    disk_publish(p->disk, &p->about, p->files);
}

static void on_published(void *ctx, bool good, bool existed, const char *trouble, const struct el_err *e)
{
    struct persisting *p = ctx;
    if (p->saver) {
        saver_published(p, good, existed, trouble, e);
        return;
    }
    if (good)
        persisting_say_committed(p, existed, trouble);
    finish(p, good, -1, e->text);
}

static void on_cleared(void *ctx, const char *said)
{
    struct persisting *p = ctx;
    if (*said)
        el_log(EL_WARN, "checkpoint: %s", said);
    if (p->saver) {
        saver_disk_is_free(p);
        return;
    }
    p->clears = false;
    pump(p);
    if (p->left && is_done(p))
        leave(p);
}

struct disk_files *persisting_new_files(struct persisting *p, size_t n)
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
void persisting_add_file(struct persisting *p, const struct keeper_source *from, unsigned number)
{
    struct vault *v = snapshots_vault(p->node->snapshots);
    const struct keeper *k = snapshots_keeper(p->node->snapshots);
    const struct keeper_part *part = keeper_part(k, from->worker, from->part);
    bool named = p->node->conf->ckpt_layout == CKPT_LAYOUT_MEGATRON;
    if (named != (part->file[0] != 0))
        return;
    struct disk_file *f = &p->files->v[p->files->n++];
    *f = (struct disk_file){.image = vault_image(v, from->worker, from->slot, from->part),
                            .bytes = keeper_slot(k, from->worker, from->slot)->part_bytes[from->part],
                            .sums = vault_sums(v, from->worker, from->slot, from->part),
                            .part = part->name,
                            .shard_id = part->shard_id,
                            .node = ""};
    if (named)
        snprintf(f->name, sizeof f->name, "%s", part->file);
    else
        disk_shard_name(number ? number : p->files->n, f->name);
    if (!p->chest[from->worker])
        p->chest[from->worker] = vault_hold(v, from->worker);
    p->bytes += f->bytes;
}

/* The names of parts are the keeper's, which may forget them while a thread writes: each file has its own. */
bool persisting_own_names(struct persisting *p)
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

static void draw_nonce(char to[CKPT_NONCE_MAX])
{
    uint64_t chance = loop_clock();
    ssize_t got = getrandom(&chance, sizeof chance, 0);
    (void)got; /* it only has to be another one than that of a commit that was given up */
    snprintf(to, CKPT_NONCE_MAX, "%016llx", (unsigned long long)chance);
}

static void begin(struct persisting *p, int64_t step)
{
    struct node *n = p->node;
    const struct keeper *k = snapshots_keeper(n->snapshots);
    unsigned count;
    const struct keeper_source *from = persist_sources(p->core, &count);
    const struct msg_world *w = n->membership ? membership_world(n->membership) : NULL;
    p->began = loop_clock();
    p->bytes = 0;
    p->about = (struct disk_about){.step = step,
                                   .lineage = keeper_slot(k, from->worker, from->slot)->lineage,
                                   .number = w ? w->number : n->core.attempts,
                                   .coord = w ? w->coord : n->coord,
                                   .counter = ++p->counter,
                                   .world = w ? w->world_size : n->nproc,
                                   .consumed_samples = keeper_slot(k, from->worker, from->slot)->consumed_samples,
                                   .layout_id = keeper_layout_id(k),
                                   .lastwords = persist_is_lastwords(p->core)};
    draw_nonce(p->about.nonce);
    p->files = persisting_new_files(p, count);
    for (unsigned i = 0; p->files && i < count; i++)
        persisting_add_file(p, &from[i], 0);
    if (!p->files || !persisting_own_names(p)) {
        finish(p, false, -1, "no memory for the list of its files");
        return;
    }
    if (!p->files->n) {
        finish(p, false, -1,
               "with --ckpt-layout=megatron files are written that declare_file() names, and there is none");
        return;
    }
    p->layout_id = disk_files_keep(p->files, p->about.layout_id);
    p->about.layout_id = p->layout_id ? p->layout_id : "";
    loop_timer_at(p->tick, loop_clock() + PROGRESS_EVERY);
    disk_write(p->disk, &p->about, p->files, true);
}

/* What follows from all that has happened. */
static void pump(struct persisting *p)
{
    struct persist_news news;
    if (p->sets_aside && !p->saver && !disk_is_busy(p->disk)) {
        p->sets_aside = false;
        p->clears = true;
        disk_clear(p->disk, DISK_ASIDE, &p->back);
    }
    if (p->clears)
        return;
    if (p->last_words && !keeper_is_summing(snapshots_keeper(p->node->snapshots)))
        persist_want_newest(p->core, true);
    while ((news = persist_next(p->core)).what != PERSIST_NOTHING) {
        if (news.what == PERSIST_GIVEN_UP)
            persisting_say_failed(p, news.step, false, news.promised, news.text);
        else
            begin(p, news.step);
    }
    snapshots_news(p->node->snapshots);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static bool is_done(const struct persisting *p)
{
    bool wait = p->last_words && keeper_is_summing(snapshots_keeper(p->node->snapshots));
    return persist_is_idle(p->core) && !wait && !p->clears && !p->sets_aside;
}

/* Nothing is waited for any more. */
static void leave(struct persisting *p)
{
    void (*left)(struct node * n) = p->left;
    p->left = NULL;
    loop_timer_at(p->tick, EL_NEVER);
    left(p->node);
}

/* Who waits has waited long enough: what is being written stays a stage, which is no checkpoint, and what waits behind
 * it is not begun. */
static void give_up(struct persisting *p, const char *why)
{
    int64_t step, writing = persist_writing(p->core);
    bool promised;
    if (writing != KEEPER_NO_STEP)
        persisting_say_failed(p, writing, p->about.lastwords, persist_is_promised(p->core), why);
    p->given_up = writing;
    disk_stop(p->disk);
    if (persist_is_idle(p->core)) /* its sums are not made yet */
        persisting_say_failed(p, keeper_covered(snapshots_keeper(p->node->snapshots)), p->last_words, !p->last_words,
                              why);
    while (persist_drop_wish(p->core, &step, &promised))
        if (step != writing)
            persisting_say_failed(p, step, false, promised, why);
    leave(p);
}

static void on_late(struct persisting *p)
{
    char why[160], name[SIGNAME_MAX];
    bool well = p->node->core.cause == AGENT_SUCCESS; /* then a signal has begun that time */
    if (p->left_at != EL_NEVER)
        snprintf(why, sizeof why, "it was not written within %.6g s of %s (--lastwords-timeout)",
                 (double)p->node->conf->lastwords_timeout / EL_SEC(1),
                 well ? signame(p->signal, name) : "the workers' end");
    else
        snprintf(why, sizeof why, "its disk has taken nothing for %u s", (unsigned)(STALL_TIME / EL_SEC(1)));
    give_up(p, why);
}

static void cut_short(struct persisting *p)
{
    char why[96], name[SIGNAME_MAX];
    snprintf(why, sizeof why, "a second signal, %s, came before it was written", signame(p->signal, name));
    give_up(p, why);
}

/* One signal ends the job, and its last words are waited for; the next one ends the waiting.  Where the job has ended
 * by itself the first one bounds it. */
void persisting_signal(struct node *n, int signal)
{
    struct persisting *p = n->persisting;
    if (!p)
        return;
    p->signals++;
    p->signal = signal;
    if (!p->left)
        return;
    if (p->signals > 1)
        cut_short(p);
    else if (p->left_at == EL_NEVER)
        p->left_at = loop_clock() + n->conf->lastwords_timeout;
}

static void on_tick(void *ctx)
{
    struct persisting *p = ctx;
    el_usec now = loop_clock();
    uint64_t done, all;
    disk_progress(p->disk, &done, &all);
    if (done != p->seen_bytes || !p->left)
        p->moved = now;
    p->seen_bytes = done;
    persisting_show(p);
    if (p->saver && disk_is_busy(p->disk))
        saver_moved(p, done);
    if (p->left && (now >= p->left_at || now - p->moved >= STALL_TIME))
        on_late(p);
    else if (p->left || disk_is_busy(p->disk))
        loop_timer_at(p->tick, now + PROGRESS_EVERY);
}

/* A job that ends well waits for what its script wanted on disk, however long that takes; one that ends badly, for its
 * last words, and no longer than it was told. */
void persisting_leave(struct node *n, void (*left)(struct node *n))
{
    struct persisting *p = n->persisting;
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
    p->left_at = well ? EL_NEVER : p->moved + n->conf->lastwords_timeout - words_took(n);
    p->last_words = !well && n->conf->lastwords_timeout;
    persist_round(p->core);
    pump(p);
    if (!p->left)
        return;
    if (is_done(p)) {
        leave(p);
        return;
    }
    if (p->signals > 1) {
        cut_short(p);
        return;
    }
    if (persist_writing(p->core) != KEEPER_NO_STEP)
        el_log(EL_INFO, "checkpoint: waiting until step %lld is on disk%s", (long long)persist_writing(p->core),
               p->signals ? "; one more signal ends that" : "");
    loop_timer_at(p->tick, loop_clock());
}

/* While the workers end, what they had committed is brought to disk: beside their end, and beside their restart. */
void persisting_last_words(struct node *n)
{
    struct persisting *p = n->persisting;
    if (!p || p->saver || n->core.cause == AGENT_SUCCESS || !n->conf->lastwords_timeout)
        return;
    p->last_words = true;
    pump(p);
}

void persisting_round(struct node *n)
{
    struct persisting *p = n->persisting;
    if (!p)
        return;
    p->last_words = false;
    persist_round(p->core);
    pump(p);
    if (p->saver)
        saver_round(p);
}

/* A node that is alone sets nothing aside when its job was restarted: what is on disk was looked at then. */
void persisting_went_back(struct node *n, int64_t step, uint64_t lineage, bool by_itself)
{
    struct persisting *p = n->persisting;
    if (!p)
        return;
    persist_went_back(p->core, step, lineage);
    p->owed = p->owed > step ? KEEPER_NO_STEP : p->owed; /* another one is trained now */
    p->back = (struct disk_about){.step = step, .lineage = lineage, .nonce = "0", .layout_id = ""};
    p->sets_aside |= by_itself || p->saver;
    pump(p);
    if (p->saver)
        saver_went_back(p);
}

void persisting_unmet(struct node *n, int64_t step, uint64_t lineage, const char *why)
{
    if (!n->persisting)
        return;
    persist_unmet(n->persisting->core, step, lineage, why);
    pump(n->persisting);
}

void persisting_passed(struct node *n)
{
    struct persisting *p = n->persisting;
    if (!p)
        return;
    pump(p);
    if (p->saver) /* how far they are is what others judge it by */
        saver_committed(p);
}

void persisting_ended(struct node *n)
{
    if (n->persisting && n->persisting->saver)
        saver_ended(n->persisting);
}

void persisting_tick_at(struct persisting *p, el_usec at)
{
    loop_timer_at(p->tick, at);
}

void persisting_committed(struct node *n, unsigned worker, unsigned slot)
{
    struct persisting *p = n->persisting;
    if (!p)
        return;
    persist_committed(p->core, worker, slot);
    pump(p);
    if (p->saver)
        saver_committed(p);
    if (p->left && is_done(p))
        leave(p);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int persisting_init(struct node *n, struct el_err *e)
{
    static const struct disk_ops ops = {on_written, on_published, on_cleared};
    const struct run_conf *run = n->conf;
    if (!run->ckpt_dir)
        return 0;
    bool several = n->place.kind != ENDPOINT_ALONE;
    if (several && run->ckpt_commit == COMMIT_MARKER) /* two coordinators of a job would write the same files */
        return el_fail(e, EL_EXIT_CONFIG,
                       "--ckpt-commit=marker is for one node (--standalone): files of several would meet in one "
                       "directory; --ckpt-commit=rename gives each attempt its own");
    struct persisting *p = n->persisting = calloc(1, sizeof *p);
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
    p->failed_step = p->given_up = p->owed = KEEPER_NO_STEP;
    p->tick = loop_timer_new(n->loop, on_tick, p);
    p->chest = calloc(n->nproc, sizeof *p->chest);
    p->core = persist_new(snapshots_keeper(n->snapshots), n->nproc, &p->mem);
    if (!p->tick || !p->chest || !p->core)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    p->disk = disk_open(n->loop, n->pool, &conf, &ops, p, e);
    if (!p->disk)
        return -1;
    return several ? saver_init(p, e) : 0;
}

/* --- who asks ----------------------------------------------------------------------------------------------------- */

int64_t persisting_save(struct node *n, uint64_t *ask)
{
    struct persisting *p = n->persisting;
    int64_t step = keeper_covered(snapshots_keeper(n->snapshots));
    if (p->saver) /* what all nodes hold is not known here, nor that nobody holds anything where this one does not */
        *ask = saver_ask(p);
    if (p->saver || step == KEEPER_NO_STEP)
        return step;
    persist_forgive(p->core);
    persist_want_newest(p->core, false);
    pump(p);
    return step;
}

void persisting_view(const struct node *n, struct persisting_view *v)
{
    const struct persisting *p = n->persisting;
    *v = (struct persisting_view){.writing = KEEPER_NO_STEP, .on_disk = KEEPER_NO_STEP, .failed = KEEPER_NO_STEP};
    if (!p)
        return;
    v->here = true;
    v->idle = persist_is_idle(p->core) && !(p->saver && p->files); /* written here is not on disk yet */
    v->writing = persist_writing(p->core);
    if (v->writing != KEEPER_NO_STEP)
        disk_progress(p->disk, &v->done_bytes, &v->all_bytes);
    v->on_disk = persist_on_disk(p->core);
    v->on_disk_at = p->on_disk_at;
    v->said = p->said;
    v->failed = p->failed_step;
    v->why = p->failed_why;
    v->answered = p->answered;
    v->answer_status = p->answer_status;
    v->answer = p->answer;
}

const struct ckpt_fs *persisting_root(const struct node *n)
{
    return n->persisting ? disk_root(n->persisting->disk) : NULL;
}

void persisting_free(struct node *n)
{
    struct persisting *p = n->persisting;
    if (!p)
        return;
    if (p->files)
        persisting_forget_files(p);
    saver_free(p);
    persist_free(p->core);
    disk_free(p->disk);
    loop_timer_free(p->tick);
    free(p->chest);
    free(p);
}
