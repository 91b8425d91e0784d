#include "snapshot/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "snapshot/superseded.h"
#include "ckpt/check.h"
#include "ckpt/gc.h"
#include "ckpt/root.h"
#include "ckpt/scan.h"
#include "ckpt/chunk_sums.h"
#include "util/parse.h"

#define SCAN_MEMORY ((size_t)1 << 30)

_Static_assert(CHUNK_SUMS_CHUNK == MANIFEST_CHUNK, "sums of a slot are those of the manifest");

struct disk {
    struct loop *loop;
    struct pool *pool;
    struct disk_conf conf;
    struct disk_ops ops;
    void *ctx;
    struct root root;
    struct ckpt_fs fs;
    int lock; /* the directory, for as long as we live; -1: not locked */

    /* The one job; the thread's while busy. */
    struct pool_job job;
    struct loop_post failed; /* it could not be given to a thread */
    enum { JOB_WRITE, JOB_PUBLISH, JOB_CLEAR } what;
    enum disk_clear clear;
    bool busy, first, existed, bad;
    struct disk_about about;
    struct disk_files *files;
    int broken;
    struct el_err error;
    char trouble[1200];
    uint64_t created; /* the last one's time, or of the directory's newest; */
    uint64_t opened;  /* … when we began */
    uint64_t all_bytes;
    _Atomic uint64_t done_bytes;
    _Atomic bool stop;
};

void disk_shard_name(uint64_t number, char out[512])
{
    snprintf(out, 512, "shard-%05llu-model-00001-of-00001.safetensors", (unsigned long long)number);
}

struct disk_word {
    struct disk_word *next;
    char text[];
};

const char *disk_files_keep(struct disk_files *f, const char *text)
{
    size_t n = strlen(text) + 1;
    struct disk_word *w = el_alloc(&f->mem, sizeof *w + n);
    if (!w)
        return NULL;
    memcpy(w->text, text, n);
    w->next = f->words;
    f->words = w;
    return w->text;
}

void disk_files_free(struct disk_files *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n; i++)
        el_free(&f->mem, f->v[i].manifest.chunks);
    el_free(&f->mem, f->v);
    for (struct disk_word *w = f->words, *next; w; w = next) {
        next = w->next;
        el_free(&f->mem, w);
    }
    free(f);
}

static int disk_draw_nonce(char nonce[CKPT_NONCE_MAX])
{
    uint64_t chance;
    if (getrandom(&chance, sizeof chance, 0) != sizeof chance)
        return -1;
    snprintf(nonce, CKPT_NONCE_MAX, "%016llx", (unsigned long long)chance);
    return 0;
}

/* --- in a thread -------------------------------------------------------------------------------------------------- */

static struct commit commit_of(const struct disk *d, struct el_mem *mem)
{
    return (struct commit){.fs = &d->fs,
                           .mem = mem,
                           .layout = d->conf.layout,
                           .apart = d->conf.apart,
                           .local = d->conf.local,
                           .mode = d->conf.mode,
                           .step = d->about.step,
                           .round = d->about.number,
                           .nonce = d->about.nonce,
                           .done_bytes = (_Atomic uint64_t *)&d->done_bytes,
                           .stop = &d->stop};
}

/* The bytes may have been written to since they were summed: what lies on the disk is what was read for it. */
static bool is_as_summed(const struct disk_file *f)
{
    return memcmp(f->manifest.chunks, f->sums, f->manifest.chunks_n * sizeof *f->sums) == 0;
}

/* 0 also where there is nothing. */
static int disk_drop(const struct disk *d, const char *path, struct el_err *e)
{
    char trash[CKPT_PATH_MAX];
    if (superseded_move(&d->fs, path, CKPT_TRASH_DIR, trash, e))
        return -1;
    if (*trash)
        gc_remove(&d->fs, trash); /* what is left of it is gc's */
    return 0;
}

static const char *final_name(const struct commit *c, char name[CKPT_PATH_MAX])
{
    ckpt_step_name(c->layout, c->step, name);
    return name;
}

static const struct disk_file *file_named(const struct disk_files *files, const char *name)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->v[i].name, name) == 0)
            return &files->v[i];
    return NULL;
}

/* By its manifest; whether its bytes are what that says is looked at when it is to be published. */
static bool stands_already(const struct disk *d, const char *final)
{
    struct el_mem mem = EL_MEM_INIT(SCAN_MEMORY);
    struct checked there;
    struct el_err why = {0};
    bool same = check_open(&there, &d->fs, &mem, final, &why) == 0 && there.m.step == d->about.step &&
                strcmp(there.m.run_id, d->conf.run_id) == 0 && there.m.parts_n == d->files->n &&
                there.m.files_n == d->files->n;
    for (size_t i = 0; same && i < there.m.parts_n; i++) {
        const struct manifest_part *p = &there.m.parts[i];
        const struct manifest_file *f = &there.m.files[p->file];
        const struct disk_file *ours = file_named(d->files, f->name);
        same = ours && strcmp(ours->part, p->part) == 0 && strcmp(ours->shard_id, p->shard_id) == 0 &&
               f->size == ours->bytes && f->chunk == MANIFEST_CHUNK &&
               memcmp(f->chunks, ours->sums, f->chunks_n * sizeof *f->chunks) == 0;
    }
    check_close(&there);
    return same;
}

/* With a directory of its own for each node the step must be of one history on all of them: what stands there goes
 * before any node has the new one, unless it has the same bytes; then it stays until that takes its place. */
static int write_files(struct disk *d, const struct commit *c, struct el_err *e)
{
    char name[CKPT_PATH_MAX];
    struct disk_files *files = d->files;
    if (d->conf.local && !stands_already(d, final_name(c, name)) && superseded_set(&d->fs, name, e) < 0)
        return -1;
    if (d->first ? commit_open(c, e) : commit_join(c, e))
        return -1;
    for (size_t i = 0; i < files->n; i++) {
        struct disk_file *f = &files->v[i];
        if (commit_write(c, f->name, f->image, f->bytes, &f->manifest, e))
            return -1;
        f->manifest.node = f->node;
        if (is_as_summed(f))
            continue;
        d->broken = (int)i;
        return el_fail(e, EL_EXIT_PROTOCOL, "part \"%s\" was written to after its commit", f->part);
    }
    return 0;
}

/* Deletes old checkpoints of this run.  Where a higher step than this one's stands, the numbers say nothing about what
 * is older: then nothing goes. */
static int tidy(struct disk *d, struct el_err *e)
{
    struct el_mem mem = EL_MEM_INIT(SCAN_MEMORY);
    struct scan s = {0};
    struct gc g = {.fs = &d->fs,
                   .mem = &mem,
                   .rule = {.keep_last = d->conf.keep_last},
                   .run_id = d->conf.run_id,
                   .nonce = d->about.nonce,
                   .replace = commit_replace};
    int r = scan_open(&s, &d->fs, &mem, (int64_t)time(NULL), e);
    for (size_t i = 0; !r && i < s.n; i++)
        if (s.v[i].state == SCAN_VALID && s.v[i].step > d->about.step && strcmp(s.v[i].run_id, d->conf.run_id) == 0)
            r = el_fail(e, EL_EXIT_CONFIG,
                        "%s/%s is of a later step than the one that was written now: nothing is deleted for "
                        "--ckpt-keep-last",
                        d->fs.name, s.v[i].name);
    if (!r)
        r = gc_run(&g, &s, e);
    scan_close(&s);
    return r;
}

/* Of two checkpoints the later one has the later time, whatever has become of the clock: that is the order of histories
 * when a job goes back (load.h). */
static void see_created(struct disk *d, const struct scan *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].state == SCAN_VALID && s->v[i].changed_sec > 0 && (uint64_t)s->v[i].changed_sec > d->created)
            d->created = (uint64_t)s->v[i].changed_sec;
}

/* Rounds of one job count up, also over its coordinators: what was written since we began, in one that is not before
 * ours and not ours, is of another job that runs now, with the same run id.  Its steps would pass for ours. */
static int check_alone(const struct disk *d, const struct scan *s, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    for (size_t i = 0; i < s->n; i++) {
        const struct scan_entry *x = &s->v[i];
        bool ours = x->number < d->about.number || (x->number == d->about.number && x->coord == d->about.coord);
        if (x->state == SCAN_VALID && strcmp(x->run_id, d->conf.run_id) == 0 && !ours && x->changed_sec > 0 &&
            (uint64_t)x->changed_sec > d->opened)
            return el_fail(e, EL_EXIT_CONFIG,
                           "another job that runs now has the run id %s, too, and has written %s/%s: end one of them, "
                           "or give each a run id and a directory of its own",
                           el_show(d->conf.run_id, shown), d->fs.name, x->name);
    }
    return 0;
}

static int see_others(struct disk *d, struct el_err *e)
{
    struct el_mem mem = EL_MEM_INIT(SCAN_MEMORY);
    struct scan s = {0};
    struct el_err unread = {0};
    int r = 0;
    if (scan_open(&s, &d->fs, &mem, (int64_t)time(NULL), &unread) == 0) {
        r = check_alone(d, &s, e);
        see_created(d, &s);
    }
    scan_close(&s);
    return r;
}

static uint64_t now_created(struct disk *d)
{
    uint64_t now = (uint64_t)time(NULL);
    d->created = now > d->created ? now : d->created + 1;
    return d->created;
}

/* What was replaced is of no use to anybody, and takes the room of a checkpoint. */
static void disk_say_trouble(struct disk *d, const struct el_err *replaced, const struct el_err *behind)
{
    if (replaced) {
        gc_remove(&d->fs, CKPT_TRASH_DIR);
        snprintf(d->trouble, sizeof d->trouble, "it takes the place of one of the same step: %s%s%s", replaced->text,
                 behind->status ? "; " : "", behind->text);
    } else {
        snprintf(d->trouble, sizeof d->trouble, "%s", behind->text);
    }
}

/* With its order's counter behind it that of the checkpoint; without, how all of a round begin. */
static void put_epoch(const struct disk_about *a, char epoch[128])
{
    snprintf(epoch, 128, "%llu.%llx.", (unsigned long long)a->number, (unsigned long long)a->coord);
}

static int disk_io_publish(struct disk *d, const struct commit *c, struct el_err *e)
{
    struct disk_files *files = d->files;
    struct el_err behind = {0};
    struct commit_result result;
    char epoch[128];
    if (d->conf.apart && see_others(d, e)) /* the last one may be another node's, by its clock */
        return -1;
    put_epoch(&d->about, epoch);
    snprintf(epoch + strlen(epoch), sizeof epoch - strlen(epoch), "%llu", (unsigned long long)d->about.counter);
    struct manifest m = {.run_id = d->conf.run_id,
                         .epoch = epoch,
                         .lineage = d->about.lineage,
                         .world = d->about.world,
                         .emergency = d->about.emergency,
                         .layout_id = d->about.layout_id,
                         .created = now_created(d),
                         .consumed_samples = d->about.consumed_samples,
                         .sig = "",
                         .files_n = files->n,
                         .parts_n = files->n};
    m.files = el_alloc(&files->mem, files->n * sizeof *m.files);
    m.parts = el_alloc(&files->mem, files->n * sizeof *m.parts);
    int r = m.files && m.parts ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (size_t i = 0; !r && i < files->n; i++) {
        m.files[i] = files->v[i].manifest;
        m.parts[i] = (struct manifest_part){files->v[i].part, files->v[i].shard_id, i};
    }
    r = r ? r : commit_publish(c, &m, &result, e);
    el_free(&files->mem, m.files);
    el_free(&files->mem, m.parts);
    if (r && e->status == CKPT_INCOMPLETE && d->conf.apart && !d->conf.local)
        snprintf(e->text + strlen(e->text), sizeof e->text - strlen(e->text),
                 ": is --ckpt-dir one directory for all nodes? (each its own: --ckpt-store=local)");
    if (r)
        return r;
    d->existed = result.existed;
    if (result.latest.status)
        el_fail(&behind, EL_EXIT_CANTCREAT, "%s", result.latest.text);
    else if (d->conf.keep_last && !d->conf.local)
        tidy(d, &behind);
    disk_say_trouble(d, result.replaced.status ? &result.replaced : NULL, &behind);
    return 0;
}

/* A stage that will not become a checkpoint takes room, and on a full disk that is what is missing. */
static void discard_stage(const struct disk *d, const struct commit *c)
{
    char stage[CKPT_PATH_MAX], final[CKPT_PATH_MAX];
    commit_paths(c, stage, final);
    if (d->conf.mode == COMMIT_RENAME && !d->conf.apart)
        gc_remove(&d->fs, stage);
    else if (d->conf.mode == COMMIT_RENAME)
        disk_drop(d, stage, NULL);
}

static void disk_io_clear(struct disk *d)
{
    struct el_mem mem = EL_MEM_INIT(1u << 20);
    struct commit c = commit_of(d, &mem);
    struct el_err e = {0};
    switch (d->clear) {
    case DISK_DISCARD: discard_stage(d, &c); break;
    case DISK_TIDY:
        if (d->conf.keep_last)
            tidy(d, &e);
        break;
    case DISK_ASIDE:
        superseded_set_later(&d->fs, d->conf.layout, d->conf.run_id, d->about.step, d->about.lineage, d->trouble,
                             sizeof d->trouble);
        break;
    }
}

static void disk_work(void *ctx)
{
    struct disk *d = ctx;
    if (d->what == JOB_CLEAR) {
        disk_io_clear(d);
        return;
    }
    struct commit c = commit_of(d, &d->files->mem);
    d->bad = root_stands(&d->root, &d->error) < 0 ||
             (d->what == JOB_PUBLISH ? disk_io_publish(d, &c, &d->error) : write_files(d, &c, &d->error)) < 0;
    if (d->bad || d->existed)
        discard_stage(d, &c);
}

/* --- in the loop's thread ----------------------------------------------------------------------------------------- */

static void disk_done(void *ctx)
{
    struct disk *d = ctx;
    d->busy = false;
    if (d->what == JOB_CLEAR)
        d->ops.cleared(d->ctx, d->trouble);
    else if (d->what == JOB_PUBLISH)
        d->ops.published(d->ctx, !d->bad, d->existed, d->trouble, &d->error);
    else
        d->ops.written(d->ctx, !d->bad, d->broken, &d->error);
}

static void disk_start(struct disk *d, const struct disk_about *about, struct disk_files *files)
{
    assert(!d->busy);
    d->about = *about;
    d->files = files;
    d->busy = true;
    d->bad = d->existed = false;
    d->stop = false;
    d->broken = -1;
    d->error = (struct el_err){0};
    d->trouble[0] = 0;
    d->all_bytes = 0;
    d->done_bytes = 0;
    for (size_t i = 0; files && d->what == JOB_WRITE && i < files->n; i++)
        d->all_bytes += files->v[i].bytes;
    d->job = (struct pool_job){.work = disk_work, .done = disk_done, .ctx = d};
    if (pool_run(d->pool, &d->job, &d->error) == 0)
        return;
    d->bad = true;
    d->failed = (struct loop_post){.fn = disk_done, .ctx = d};
    loop_post(d->loop, &d->failed);
}

void disk_write(struct disk *d, const struct disk_about *about, struct disk_files *files, bool first)
{
    d->what = JOB_WRITE;
    d->first = first;
    disk_start(d, about, files);
}

void disk_publish(struct disk *d, const struct disk_about *about, struct disk_files *files)
{
    d->what = JOB_PUBLISH;
    disk_start(d, about, files);
}

void disk_clear(struct disk *d, enum disk_clear what, const struct disk_about *about)
{
    d->what = JOB_CLEAR;
    d->clear = what;
    disk_start(d, about, NULL);
}

bool disk_is_busy(const struct disk *d)
{
    return d->busy;
}

void disk_stop(struct disk *d)
{
    d->stop = true;
}

void disk_progress(const struct disk *d, uint64_t *done_bytes, uint64_t *all_bytes)
{
    *done_bytes = d->busy ? d->done_bytes : 0; /* what is read again while publishing moves, too */
    *all_bytes = d->busy && d->what == JOB_WRITE ? d->all_bytes : 0;
}

const struct ckpt_fs *disk_root(const struct disk *d)
{
    return &d->fs;
}

/* --- the directory ------------------------------------------------------------------------------------------------ */

/* What the commit will use must not lead elsewhere: better said now than at the first step that is to be kept. */
static int disk_check_names(const struct disk *d, struct el_err *e)
{
    static const char *const names[] = {CKPT_STAGE_DIR, CKPT_TRASH_DIR, CKPT_ASIDE_DIR, CKPT_LATEST_FILE,
                                        CKPT_TRACKER_FILE};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct fs_stat st;
        int r = d->fs.stat(d->fs.ctx, names[i], &st);
        if (r == -ENOENT)
            continue;
        if (r < 0)
            return fs_fail(&d->fs, r, "look at", names[i], e);
        if (st.kind == FS_LINK)
            return fs_fail(&d->fs, -ELOOP, "use", names[i], e);
        if (st.kind != (i < 3 ? FS_DIR : FS_FILE))
            return el_fail(e, EL_EXIT_CANTCREAT, "%s/%s is no %s", d->fs.name, names[i], i < 3 ? "directory" : "file");
    }
    return 0;
}

static int check_writable(const struct disk *d, struct el_err *e)
{
    if (faccessat(d->root.fd, ".", W_OK | X_OK, AT_EACCESS) == 0)
        return 0;
    return el_fail_sys(e, errno == EROFS ? EL_EXIT_CANTCREAT : EL_EXIT_NOPERM, errno, "%s cannot be written to",
                       d->root.name);
}

/* Two jobs that run at the same time would take each other's steps for their own, with the same run id (a command that
 * was given twice) or without any.  The kernel forgets the lock with its process; what knows no locks has none. */
static int disk_take_lock(struct disk *d, struct el_err *e)
{
    d->lock = openat(d->root.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->lock < 0 || flock(d->lock, (d->conf.alone ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return 0;
    return el_fail(e, EL_EXIT_CONFIG,
                   "another elrun that runs now writes its checkpoints into %s: give each job a directory of its own",
                   d->root.name);
}

/* Steps of two jobs in one directory would pass for those of one. */
static int check_owner(struct disk *d, struct el_err *e)
{
    struct el_mem mem = EL_MEM_INIT(SCAN_MEMORY);
    struct scan s = {0};
    char theirs[EL_SHOW_MAX], ours[EL_SHOW_MAX];
    int r = scan_open(&s, &d->fs, &mem, (int64_t)time(NULL), e);
    const struct scan_entry *newest = r ? NULL : scan_newest(&s);
    if (newest && *newest->run_id && *d->conf.run_id && strcmp(newest->run_id, d->conf.run_id) != 0)
        r = el_fail(
            e, EL_EXIT_CONFIG,
            "%s holds checkpoints of another job: %s is of run id %s, this one is %s; give it a directory of its "
            "own, or that run id",
            d->fs.name, newest->name, el_show(newest->run_id, theirs), el_show(d->conf.run_id, ours));
    if (!r)
        see_created(d, &s);
    d->opened = d->created;
    scan_close(&s);
    return r;
}

static struct disk *open_now(struct loop *l, struct pool *p, const struct disk_conf *conf, const struct disk_ops *ops,
                             void *ctx, struct el_err *e)
{
    struct el_mem mem = EL_MEM_INIT(1u << 20);
    struct disk *d = calloc(1, sizeof *d);
    if (!d) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    d->loop = l;
    d->pool = p;
    d->conf = *conf;
    d->ops = *ops;
    d->ctx = ctx;
    d->root.fd = d->lock = -1;
    bool good = disk_draw_nonce(d->about.nonce) == 0 && root_open(&d->root, conf->dir, true, e) == 0;
    if (good) {
        d->fs = root_table(&d->root);
        struct commit c = commit_of(d, &mem);
        good = check_writable(d, e) == 0 && disk_check_names(d, e) == 0 && disk_take_lock(d, e) == 0 &&
               commit_mark(&c, e) == 0 && check_owner(d, e) == 0;
    }
    if (good)
        return d;
    el_prefix(e, "--ckpt-dir");
    disk_free(d);
    return NULL;
}

struct opening {
    struct loop *loop;
    struct pool *pool;
    struct disk_conf conf;
    const struct disk_ops *ops;
    void *ctx;
    struct disk *disk;
    struct el_err e;
};

static void work_open(void *ctx)
{
    struct opening *o = ctx;
    o->disk = open_now(o->loop, o->pool, &o->conf, o->ops, o->ctx, &o->e);
}

struct disk *disk_open(struct loop *l, struct pool *p, const struct disk_conf *conf, const struct disk_ops *ops,
                       void *ctx, struct el_err *e)
{
    bool made;
    struct opening *o = calloc(1, sizeof *o);
    if (!o) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    *o = (struct opening){.loop = l, .pool = p, .conf = *conf, .ops = ops, .ctx = ctx};
    if (!pool_await(work_open, o, DISK_OPEN_TIME, &made)) {
        if (made) /* the thread has o for good */
            el_fail(e, EL_EXIT_CANTCREAT, "--ckpt-dir: %s has not answered within %u s: its file system stands still",
                    conf->dir, (unsigned)(DISK_OPEN_TIME / EL_SEC(1)));
        else
            el_fail(e, EL_EXIT_OSERR, "--ckpt-dir: no thread can be made to look at %s", conf->dir);
        if (!made)
            free(o);
        return NULL;
    }
    struct disk *d = o->disk;
    if (!d && e)
        *e = o->e;
    free(o);
    return d;
}

void disk_free(struct disk *d)
{
    if (!d)
        return;
    if (d->lock >= 0)
        close(d->lock);
    root_close(&d->root);
    free(d);
}
