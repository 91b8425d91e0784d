#include "ckpt/verify.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/crc32c.h"
#include "ckpt/verify_private.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "util/array.h"
#include "util/parse.h"

#define JOB_MEMORY_MAX ((size_t)4 << 30)
#define PROGRESS_EVERY (EL_SEC(1) / 5)

enum { CHUNKS_A_JOB = 64, ITEMS_A_JOB = 256, FILES_TOLD = 8 };

/* --- what is found ------------------------------------------------------------------------------------------------ */

/* Parsers name the file that they read; here it is named in front of what they say. */
static const char *without_name(const char *file, const char *text)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    size_t n = strlen(name);
    return n && strncmp(text, name, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

void verify_find(struct verify *v, int verdict, const char *file, const char *text)
{
    v->verdict = v->findings_n ? ckpt_verdict_worse(v->verdict, verdict) : verdict;
    if (v->findings_n++ >= VERIFY_FINDINGS_MAX)
        return;
    struct verify_finding *f = el_alloc(v->mem, sizeof *f);
    char *name = f ? el_strndup(v->mem, file, strlen(file)) : NULL;
    text = without_name(file, text);
    char *words = name ? el_strndup(v->mem, text, strlen(text)) : NULL;
    if (!words) {
        el_free(v->mem, name);
        el_free(v->mem, f);
        return;
    }
    *f = (struct verify_finding){.verdict = verdict, .file = name, .text = words};
    *v->end = f;
    v->end = &f->next;
}

void verify_free(struct verify *v)
{
    for (struct verify_finding *f = v->findings, *next; f; f = next) {
        next = f->next;
        el_free(v->mem, f->file);
        el_free(v->mem, f->text);
        el_free(v->mem, f);
    }
    v->findings = NULL;
    tensors_free(&v->tensors);
    el_free(v->mem, v->counts);
    el_free(v->mem, v->sets.v);
    v->counts = NULL;
    v->sets = (struct rank_sets){0};
}

/* --- what one thread does ----------------------------------------------------------------------------------------- */

static void run_items(struct verify_job *j)
{
    struct inspect_file f = {.file = -1};
    const char *open = NULL;
    for (size_t i = j->from; i < j->to && !j->err.status; i++) {
        const struct tensor *t = j->v->tensors.v[i];
        if (t->place != TENSOR_ZIP)
            continue;
        if (t->file != open) {
            inspect_file_close(&f);
            if (inspect_file_open(&f, j->l, t->file, &j->v->done, &j->err))
                break;
            open = t->file;
        }
        j->file = inspect_find(j->l, t->file);
        inspect_file_slice(&f, t->at, t->bytes);
        if (verify_zip(j, &f, false)) {
            char shown[EL_SHOW_MAX];
            el_prefix(&j->err, "tensor \"%s\", bytes %llu-%llu", el_show(t->name, shown), (unsigned long long)t->at,
                      (unsigned long long)(t->at + t->bytes));
        }
    }
    inspect_file_close(&f);
}

/* The checksums that a manifest will have. */
static void run_sum(struct verify_job *j)
{
    struct manifest_file *s = j->sum;
    struct inspect_file f;
    char *piece = el_alloc(&j->mem, MANIFEST_CHUNK);
    if (!piece) {
        el_fail(&j->err, EL_EXIT_OSERR, "out of memory");
        return;
    }
    if (inspect_file_open(&f, j->l, j->l->names[j->file], &j->v->done, &j->err) == 0) {
        if (f.bytes.bytes != s->size)
            ckpt_fail(&j->err, CKPT_DAMAGED, "it changes while it is read");
        for (size_t i = 0; i < s->chunks_n && !j->err.status; i++) {
            uint64_t at = i * MANIFEST_CHUNK, left = s->size - at;
            size_t n = left < MANIFEST_CHUNK ? (size_t)left : (size_t)MANIFEST_CHUNK;
            if (f.bytes.read(f.bytes.ctx, at, piece, n, &j->err))
                break;
            s->chunks[i] = crc32c(0, piece, n);
            s->crc = crc32c_combine(s->crc, s->chunks[i], n);
        }
        inspect_file_close(&f);
    }
    el_free(&j->mem, piece);
}

static void verify_work(void *ctx)
{
    struct verify_job *j = ctx;
    j->mem = EL_MEM_INIT(JOB_MEMORY_MAX);
    j->tensors.mem = &j->mem;
    switch (j->what) {
    case VERIFY_FILE: verify_file(j); break;
    case VERIFY_ITEMS: run_items(j); break;
    case VERIFY_SUM: run_sum(j); break;
    case VERIFY_CHUNKS:
        check_chunks(j->l->fs, j->l->dir, j->of, j->from, j->to, &j->mem, &j->bad, &j->v->done, &j->err);
        break;
    }
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

struct crew {
    struct loop *loop;
    struct pool *pool;
    struct loop_timer *timer;
    struct verify *v;
    struct pool_job *jobs;
    uint64_t all_bytes;
    size_t left;
};

static void verify_done(void *ctx)
{
    struct crew *c = ctx;
    if (--c->left == 0)
        loop_stop(c->loop);
}

static void verify_tick(void *ctx)
{
    struct crew *c = ctx;
    c->v->progress(c->v->progress_ctx, atomic_load_explicit(&c->v->done, memory_order_relaxed), c->all_bytes);
    loop_timer_at(c->timer, loop_now(c->loop) + PROGRESS_EVERY);
}

/* A job of the pool: the crew is told of its end, the job does the work. */
struct hand {
    struct crew *crew;
    struct verify_job *job;
};

static void hand_work(void *ctx)
{
    verify_work(((struct hand *)ctx)->job);
}

static void hand_done(void *ctx)
{
    verify_done(((struct hand *)ctx)->crew);
}

static int run_crew(struct crew *c, struct verify_job *jobs, struct hand *hands, size_t n, struct el_err *e)
{
    c->loop = loop_new(e);
    c->pool = c->loop ? pool_new(c->loop, c->v->threads, e) : NULL;
    if (!c->pool)
        return -1;
    c->left = n;
    for (size_t i = 0; i < n; i++) {
        hands[i] = (struct hand){c, &jobs[i]};
        c->jobs[i] = (struct pool_job){.work = hand_work, .done = hand_done, .ctx = &hands[i]};
        if (pool_run(c->pool, &c->jobs[i], e))
            return -1; /* the first one: nothing runs yet */
    }
    if (c->v->progress) {
        c->timer = loop_timer_new(c->loop, verify_tick, c);
        loop_timer_at(c->timer, loop_now(c->loop) + PROGRESS_EVERY);
    }
    loop_run(c->loop);
    return 0;
}

int verify_run(struct verify *v, struct verify_job *jobs, size_t n, uint64_t all_bytes, struct el_err *e)
{
    struct crew c = {.v = v, .all_bytes = all_bytes};
    int r = 0;
    if (v->threads <= 1 && !v->progress) {
        for (size_t i = 0; i < n; i++)
            verify_work(&jobs[i]);
        return 0;
    }
    c.jobs = el_alloc(v->mem, n * sizeof *c.jobs);
    struct hand *hands = el_alloc(v->mem, n * sizeof *hands);
    if (!c.jobs || !hands)
        r = el_fail(e, EL_EXIT_OSERR, "out of memory");
    else if (n)
        r = run_crew(&c, jobs, hands, n, e);
    loop_timer_free(c.timer);
    if (c.pool)
        pool_free(c.pool);
    if (c.loop)
        loop_free(c.loop);
    el_free(v->mem, c.jobs);
    el_free(v->mem, hands);
    return r;
}

/* --- a directory -------------------------------------------------------------------------------------------------- */

/* Whose bytes a damaged chunk has. */
static void name_tensors(const struct verify *v, struct verify_job *j)
{
    uint64_t from = j->bad * j->of->chunk, to = from + j->of->chunk;
    const struct tensor *first = NULL;
    size_t hit = 0, used = strlen(j->err.text);
    char shown[EL_SHOW_MAX];
    for (size_t i = 0; i < v->tensors.n; i++) {
        const struct tensor *t = v->tensors.v[i];
        if (strcmp(t->file, j->of->name) != 0 || t->at >= to || t->at + t->bytes <= from)
            continue;
        first = !first || t->at < first->at ? t : first;
        hit++;
    }
    if (!hit)
        return;
    used +=
        (size_t)snprintf(j->err.text + used, sizeof j->err.text - used, "; tensor \"%s\"", el_show(first->name, shown));
    if (hit > 1 && used < sizeof j->err.text)
        snprintf(j->err.text + used, sizeof j->err.text - used, " and %zu more", hit - 1);
}

/* What the jobs found, in their order, so that the same damage is told in the same words. */
static int verify_collect(struct verify *v, struct verify_job *jobs, size_t n, struct el_err *e)
{
    int r = 0;
    for (size_t i = 0; i < n; i++) {
        struct verify_job *j = &jobs[i];
        for (size_t k = 0; !r && k < j->tensors.n; k++)
            r = tensors_add(&v->tensors, j->tensors.v[k], e);
        tensors_free(&j->tensors);
        if (j->what == VERIFY_FILE && v->counts)
            v->counts[j->file] = j->counts;
        v->bare_files += j->bare;
        if (j->hollow && !v->hollow_files++)
            v->hollow = j->l->names[j->file];
        v->silent_bytes += j->silent_bytes;
    }
    for (size_t i = 0; i < n; i++) {
        struct verify_job *j = &jobs[i];
        const char *file = j->what == VERIFY_CHUNKS ? "" : j->l->names[j->file]; /* those have the name in the text */
        if (j->err.status == EL_EXIT_OSERR)
            return el_fail(e, EL_EXIT_OSERR, "%s: %s", file, j->err.text);
        if (j->err.status && j->what == VERIFY_CHUNKS)
            name_tensors(v, j);
        if (j->err.status)
            verify_find(v, j->err.status, file, j->err.text);
    }
    return r;
}

static size_t plan_files(struct verify *v, const struct inspect *l, struct verify_job *jobs, uint64_t *bytes)
{
    for (size_t i = 0; i < l->n; i++) {
        v->files++;
        if (jobs)
            jobs[i] = (struct verify_job){.what = VERIFY_FILE, .v = v, .l = l, .file = i};
        *bytes += v->deep && (fmt_kind(l->names[i]) == FMT_ZIP || l->hub) ? l->sizes[i] : 0;
    }
    return l->n;
}

/* The bytes of a file in pieces, so that one large file keeps all threads busy. */
static size_t plan_chunks(struct verify *v, const struct inspect *l, struct verify_job *jobs, uint64_t *bytes)
{
    size_t n = 0;
    const struct manifest *m = &l->manifest.m;
    for (size_t i = 0; v->deep && !l->why.status && i < m->files_n; i++) {
        const struct manifest_file *f = &m->files[i];
        size_t at = inspect_find(l, f->name);
        if (at == SIZE_MAX || l->sizes[at] != f->size) /* is told of already */
            continue;
        for (size_t from = 0; from < f->chunks_n; from += CHUNKS_A_JOB, n++) {
            size_t to = from + CHUNKS_A_JOB < f->chunks_n ? from + CHUNKS_A_JOB : f->chunks_n;
            if (jobs)
                jobs[n] = (struct verify_job){
                    .what = VERIFY_CHUNKS, .v = v, .l = l, .file = at, .of = f, .from = from, .to = to};
        }
        *bytes += f->size;
    }
    return n;
}

static size_t plan_items(struct verify *v, const struct inspect *l, struct verify_job *jobs, uint64_t *bytes)
{
    size_t n = 0;
    for (size_t from = 0; from < v->tensors.n; from += ITEMS_A_JOB, n++) {
        size_t to = from + ITEMS_A_JOB < v->tensors.n ? from + ITEMS_A_JOB : v->tensors.n;
        if (jobs)
            jobs[n] = (struct verify_job){.what = VERIFY_ITEMS, .v = v, .l = l, .from = from, .to = to};
        for (size_t i = from; v->deep && i < to; i++)
            *bytes += v->tensors.v[i]->bytes;
    }
    return n;
}

/* Each file that is missing or of another size, by name the first of them. */
static bool check_files(struct verify *v, const struct inspect *l)
{
    const struct manifest *m = &l->manifest.m;
    size_t bad = 0;
    int worst = 0;
    for (size_t i = 0; i < m->files_n; i++) {
        struct manifest one = {.files = &m->files[i], .files_n = 1};
        struct el_err e = {0};
        if (!check_sizes(l->fs, l->dir, &one, &e))
            continue;
        if (bad++ < FILES_TOLD)
            verify_find(v, e.status, "", e.text);
        else
            worst = worst ? ckpt_verdict_worse(worst, e.status) : e.status;
    }
    if (worst) {
        char text[120];
        snprintf(text, sizeof text, "and %zu more of its files are missing, or not of their size", bad - FILES_TOLD);
        verify_find(v, worst, "", text);
    }
    return !bad;
}

static int check_manifest(struct verify *v, const struct inspect *l)
{
    enum ckpt_layout layout;
    int64_t step;
    const char *last = strrchr(l->dir, '/');
    if (l->why.status == CKPT_INCOMPLETE)
        return 0;
    if (l->why.status) {
        verify_find(v, l->why.status, "", l->why.text);
        return 0;
    }
    if (ckpt_step_of(last ? last + 1 : l->dir, &layout, &step) && step != l->step) {
        char text[120];
        snprintf(text, sizeof text, "%s is of step %lld", CKPT_MANIFEST_FILE, (long long)l->step);
        verify_find(v, CKPT_DAMAGED, "", text);
    }
    const struct manifest *m = &l->manifest.m;
    bool there = check_files(v, l);
    for (size_t i = 0; there && i < m->files_n; i++) {
        size_t at = inspect_find(l, m->files[i].name);
        if (at == SIZE_MAX || l->sizes[at] != m->files[i].size)
            verify_find(v, CKPT_DAMAGED, m->files[i].name, "it changes while it is looked at");
    }
    return 0;
}

/* What is not looked at is not whole: unless a manifest says that it is no part of this. */
static void check_links(struct verify *v, const struct inspect *l)
{
    if (l->unfetched)
        verify_find(v, CKPT_INCOMPLETE, "",
                    "there is no model in it, but a file in blobs/ that was not fetched to its end");
    for (unsigned i = 0; i < l->links_n && l->why.status; i++) {
        if (l->hub)
            verify_find(
                v, CKPT_INCOMPLETE, l->links[i],
                "it is a link that leads to none of the files in blobs/: it was not fetched to its end, or is gone");
        else if (fmt_is_state(fmt_kind(l->links[i])) && l->dangles[i])
            verify_find(v, CKPT_INCOMPLETE, l->links[i], "it is a link, and there is nothing where it leads");
        else if (fmt_is_state(fmt_kind(l->links[i])))
            verify_find(v, CKPT_UNSUPPORTED, l->links[i], "it is a link, which is not followed: name the file itself");
    }
}

int verify_dir(struct verify *v, const struct inspect *l, struct el_err *e)
{
    uint64_t bytes = 0;
    v->end = &v->findings;
    v->tensors.mem = v->mem;
    check_manifest(v, l);
    if (l->deeper)
        verify_find(v, CKPT_UNSUPPORTED, "", "it has directories in more than 32 others, which are not looked into");
    check_links(v, l);
    if (verify_dcp(v, l, e))
        return -1;
    size_t n = plan_items(v, l, NULL, &bytes) + plan_chunks(v, l, NULL, &bytes) + plan_files(v, l, NULL, &bytes);
    struct verify_job *jobs = el_alloc(v->mem, n * sizeof *jobs);
    v->counts = el_alloc(v->mem, l->n * sizeof *v->counts);
    if (!jobs || !v->counts) {
        el_free(v->mem, jobs);
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    }
    v->files = 0;
    bytes = 0;
    size_t k = plan_items(v, l, jobs, &bytes);
    k += plan_chunks(v, l, jobs + k, &bytes);
    k += plan_files(v, l, jobs + k, &bytes);
    assert(k == n);
    int r = verify_run(v, jobs, n, bytes, e);
    if (!r)
        r = verify_collect(v, jobs, n, e);
    el_free(v->mem, jobs);
    if (!r)
        r = verify_cross(v, l, e);
    v->bytes_read = atomic_load(&v->done);
    return r;
}

int verify_sum(struct verify *v, const struct inspect *l, struct manifest_file *files, struct el_err *e)
{
    struct verify_job *jobs = el_alloc(v->mem, l->n * sizeof *jobs);
    int r = jobs ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
    v->end = v->end ? v->end : &v->findings;
    for (size_t i = 0; !r && i < l->n; i++) {
        size_t n = manifest_chunks(l->sizes[i], MANIFEST_CHUNK);
        files[i] = (struct manifest_file){.name = l->names[i],
                                          .node = "",
                                          .size = l->sizes[i],
                                          .chunk = MANIFEST_CHUNK,
                                          .chunks_n = n,
                                          .chunks = el_alloc(v->mem, n * sizeof(uint32_t))};
        jobs[i] = (struct verify_job){.what = VERIFY_SUM, .v = v, .l = l, .file = i, .sum = &files[i]};
        if (!files[i].chunks)
            r = el_fail(e, EL_EXIT_OSERR, "out of memory");
    }
    if (!r)
        r = verify_run(v, jobs, l->n, l->bytes, e);
    if (!r)
        r = verify_collect(v, jobs, l->n, e);
    el_free(v->mem, jobs);
    return r;
}
