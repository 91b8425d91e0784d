#include "snapshot/resume.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"

static_assert(LOAD_RANK_BITS == SLOT_TABLE_WORKERS_MAX, "a bit for each");

#define BAD_MAX     256u /* steps; the oldest is tried again then */
#define LOOK_MEMORY ((size_t)1 << 30)

/* One look, with copies of all that it needs. */
struct look_job {
    struct pool_job job;
    struct resume *resume;
    struct load_want want;
    struct load_part *parts;
    char *text; /* of all names */
    struct load_bad bad[BAD_MAX];
    struct load_found found;
};

struct resume {
    struct pool *pool;
    const struct ckpt_fs *fs;
    enum ckpt_layout layout;
    void (*looked)(void *ctx);
    void *ctx;
    struct load_found found;
    unsigned goes; /* to that of `found`; found.n: to none */
    struct load_bad bad[BAD_MAX];
    unsigned bad_n;
    bool busy;             /* one runs; */
    struct look_job *next; /* … and this one waits for it */
};

struct resume *resume_new(struct pool *p, const struct ckpt_fs *fs, enum ckpt_layout layout, void (*looked)(void *ctx),
                          void *ctx)
{
    struct resume *r = calloc(1, sizeof *r);
    if (r)
        *r = (struct resume){.pool = p,
                             .fs = fs,
                             .layout = layout,
                             .looked = looked,
                             .ctx = ctx,
                             .found = {.newest = -1, .unusable = -1}};
    return r;
}

static void resume_free_job(struct look_job *j)
{
    if (!j)
        return;
    free(j->parts);
    free(j->text);
    free(j);
}

void resume_free(struct resume *r)
{
    if (r)
        resume_free_job(r->next);
    free(r);
}

static void resume_work(void *ctx)
{
    struct look_job *j = ctx;
    struct el_mem mem = EL_MEM_INIT(LOOK_MEMORY);
    load_look(j->resume->fs, &mem, &j->want, &j->found);
}

static void resume_start(struct resume *r, struct look_job *j);

static void resume_done(void *ctx)
{
    struct look_job *j = ctx, *next = j->resume->next;
    struct resume *r = j->resume;
    r->busy = false;
    r->next = NULL;
    if (!next)
        r->found = j->found;
    resume_free_job(j);
    if (next)
        resume_start(r, next);
    else
        r->looked(r->ctx);
}

/* Nothing is known: that is not the same as nothing being there. */
static void failed(struct resume *r, const char *why)
{
    r->found = (struct load_found){.newest = -1, .unusable = -1, .any = true};
    snprintf(r->found.why, sizeof r->found.why, "%.*s", (int)LOAD_WHY_MAX, why);
    r->looked(r->ctx);
}

static void resume_start(struct resume *r, struct look_job *j)
{
    struct el_err e = {0};
    j->job = (struct pool_job){.work = resume_work, .done = resume_done, .ctx = j};
    if (pool_run(r->pool, &j->job, &e) == 0) {
        r->busy = true;
        return;
    }
    resume_free_job(j);
    failed(r, e.text);
}

static size_t names_bytes(const struct slot_table *k, unsigned workers, size_t *parts)
{
    size_t n = strlen(slot_table_layout_id(k)) + 1;
    *parts = 0;
    for (unsigned w = 0; w < workers; w++)
        for (unsigned i = 0; i < slot_table_parts(k, w); i++, (*parts)++)
            n += strlen(slot_table_part(k, w, i)->name) + strlen(slot_table_part(k, w, i)->shard_id) + 2;
    return n;
}

static const char *resume_copy(char **at, const char *text)
{
    size_t n = strlen(text) + 1;
    char *to = memcpy(*at, text, n);
    *at += n;
    return to;
}

static struct look_job *resume_new_job(struct resume *r, const struct slot_table *k, unsigned workers, bool several)
{
    size_t parts, bytes = names_bytes(k, workers, &parts);
    struct look_job *j = calloc(1, sizeof *j);
    if (!j)
        return NULL;
    j->resume = r;
    j->parts = calloc(parts + 1, sizeof *j->parts);
    j->text = malloc(bytes);
    if (!j->parts || !j->text) {
        resume_free_job(j);
        return NULL;
    }
    char *at = j->text;
    j->want = (struct load_want){.layout = r->layout,
                                 .layout_id = resume_copy(&at, slot_table_layout_id(k)),
                                 .v = j->parts,
                                 .bad = j->bad,
                                 .whole = !several,
                                 .rank_base = slot_table_rank(k, 0),
                                 .ranks = workers};
    for (unsigned w = 0; w < workers; w++)
        for (unsigned i = 0; i < slot_table_parts(k, w); i++) {
            const struct slot_table_part *p = slot_table_part(k, w, i);
            const char *name = resume_copy(&at, p->name), *shard_id = resume_copy(&at, p->shard_id);
            j->parts[j->want.n++] =
                (struct load_part){name, shard_id, .named = p->file[0] != 0, .own = p->own, .worker = w};
        }
    j->want.bad_n = r->bad_n < BAD_MAX ? r->bad_n : BAD_MAX;
    memcpy(j->bad, r->bad, sizeof j->bad);
    return j;
}

void resume_look(struct resume *r, const struct slot_table *k, bool several)
{
    struct look_job *j = resume_new_job(r, k, slot_table_workers(k), several);
    if (!j) {
        failed(r, "out of memory");
    } else if (r->busy) {
        resume_free_job(r->next);
        r->next = j;
    } else {
        resume_start(r, j);
    }
}

const struct load_found *resume_found(const struct resume *r)
{
    return &r->found;
}

const uint64_t *resume_goes(struct resume *r, int64_t step, uint64_t lineage)
{
    unsigned i = 0;
    if (!r)
        return NULL;
    while (i < r->found.n && (r->found.step[i] != step || r->found.lineage[i] != lineage))
        i++;
    r->goes = i;
    return i < r->found.n ? r->found.lacks_own[i] : NULL;
}

void resume_went(const struct resume *r)
{
    if (r && r->goes < r->found.n && *r->found.left[r->goes])
        el_log(EL_WARN,
               "the checkpoint of step %lld holds what the script does not declare, %s: it is not put back, and is in "
               "no later checkpoint",
               (long long)r->found.step[r->goes], r->found.left[r->goes]);
}

void resume_is_bad(struct resume *r, int64_t step, uint64_t lineage)
{
    r->bad[r->bad_n++ % BAD_MAX] = (struct load_bad){step, lineage};
}

const struct ckpt_fs *resume_root(const struct resume *r)
{
    return r->fs;
}

enum ckpt_layout resume_layout(const struct resume *r)
{
    return r->layout;
}
