#include "ckpt/vault.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/load.h"
#include "ckpt/st.h"
#include "ckpt/sums.h"

#define HEADER_MEMORY ((size_t)1 << 30) /* for the table of a header of 100,000 tensors and more */

/* One part as the threads need it; their own copy. */
struct chest_part {
    char name[64]; /* cut: for messages */
    uint64_t offset, bytes, header_bytes;
    uint32_t *sums[KEEPER_SLOTS];
};

/* Slots of one worker, until nobody reads them any more. */
struct chest {
    struct ckpt_mem mem[KEEPER_SLOTS];
    unsigned parts, jobs;
    bool released;
    struct chest_part part[];
};

struct vault {
    struct pool *pool;
    struct vault_ops ops;
    void *ctx;
    unsigned workers;
    struct chest **chest; /* by worker; NULL: none */
    _Atomic uint64_t loaded_bytes;
};

enum job_kind { JOB_ALLOCATE, JOB_SUM, JOB_VERIFY, JOB_LOAD };

struct vault_job {
    struct pool_job job;
    struct vault *vault;
    struct chest *chest;
    enum job_kind kind;
    unsigned worker, slot;
    uint64_t gen;
    int64_t step; /* LOAD: this one, */
    uint64_t lineage;
    const struct ckpt_fs *from;
    enum ckpt_layout layout;
    struct load_part *parts; /* … these, with names of their own */
    uint64_t consumed_samples;
    bool bad;
    struct el_err error;
    uint64_t bytes[]; /* of each part, in this snapshot */
};

static void free_chest(struct chest *c)
{
    for (unsigned s = 0; s < KEEPER_SLOTS; s++)
        ckpt_mem_free(&c->mem[s]);
    for (unsigned i = 0; i < c->parts; i++)
        for (unsigned s = 0; s < KEEPER_SLOTS; s++)
            free(c->part[i].sums[s]);
    free(c);
}

struct vault *vault_new(struct pool *p, unsigned workers, const struct vault_ops *ops, void *ctx)
{
    struct vault *v = calloc(1, sizeof *v);
    if (!v)
        return NULL;
    *v = (struct vault){.pool = p, .ops = *ops, .ctx = ctx, .workers = workers};
    if ((v->chest = calloc(workers, sizeof *v->chest)))
        return v;
    free(v);
    return NULL;
}

void vault_free(struct vault *v)
{
    if (!v)
        return;
    for (unsigned i = 0; i < v->workers; i++)
        if (v->chest[i])
            free_chest(v->chest[i]);
    free(v->chest);
    free(v);
}

void vault_release(struct vault *v, unsigned worker)
{
    struct chest *c = v->chest[worker];
    v->chest[worker] = NULL;
    if (!c)
        return;
    c->released = true;
    if (c->jobs == 0)
        free_chest(c);
}

/* --- in a thread --- */

static int allocate(struct chest *c, struct el_err *e)
{
    for (unsigned s = 0; s < KEEPER_SLOTS; s++)
        if (ckpt_mem_prefault(&c->mem[s], e) < 0)
            return -1;
    return 0;
}

static const char *image_of(const struct chest *c, unsigned slot, const struct chest_part *p)
{
    return (const char *)c->mem[slot].at + p->offset;
}

/* A part of tensors must be the safetensors file that it was declared to be: its length, its header's, every rule of
 * the format.  The worker can write to it meanwhile: what is read twice is read from a copy. */
static int check_image(const struct chest_part *p, const char *image, uint64_t bytes, struct el_err *e)
{
    unsigned char prefix[ST_PREFIX];
    size_t json;
    struct st st = {0};
    struct el_mem mem = EL_MEM_INIT(HEADER_MEMORY);
    memcpy(prefix, image, sizeof prefix);
    if (st_header_bytes(prefix, bytes, &json, e) < 0)
        return el_prefix(e, "part \"%s\"", p->name);
    if (json + ST_PREFIX != p->header_bytes)
        return el_fail(e, EL_EXIT_PROTOCOL, "part \"%s\": its header has %zu bytes, %llu were declared", p->name,
                       json + ST_PREFIX, (unsigned long long)p->header_bytes);
    char *header = el_alloc(&mem, json);
    int bad = -1;
    if (header)
        bad = st_parse(&st, &mem, memcpy(header, image + ST_PREFIX, json), json, bytes, e);
    else
        el_fail(e, EL_EXIT_OSERR, "out of memory for its header");
    st_free(&st);
    el_free(&mem, header);
    return bad ? el_prefix(e, "part \"%s\"", p->name) : 0;
}

static int sum(struct vault_job *j)
{
    struct chest *c = j->chest;
    for (unsigned i = 0; i < c->parts; i++) {
        struct chest_part *p = &c->part[i];
        const char *image = image_of(c, j->slot, p);
        if (p->header_bytes && check_image(p, image, j->bytes[i], &j->error) < 0)
            return -1;
        sums_make(image, j->bytes[i], p->sums[j->slot]);
    }
    return 0;
}

static int verify(struct vault_job *j)
{
    struct chest *c = j->chest;
    for (unsigned i = 0; i < c->parts; i++) {
        const struct chest_part *p = &c->part[i];
        uint64_t at = sums_check(image_of(c, j->slot, p), j->bytes[i], p->sums[j->slot]);
        if (at < j->bytes[i])
            return el_fail(&j->error, EL_EXIT_PROTOCOL,
                           "part \"%s\" was written to after its commit: the 4 MiB from byte %llu on differ", p->name,
                           (unsigned long long)at);
    }
    return 0;
}

static int load(struct vault_job *j)
{
    struct chest *c = j->chest;
    struct el_mem mem = EL_MEM_INIT(HEADER_MEMORY);
    struct load_step *s = load_open(j->from, &mem, j->layout, j->step, &j->error);
    if (!s)
        return -1;
    load_watch(s, &j->vault->loaded_bytes);
    int bad = load_lineage(s) == j->lineage
                  ? 0
                  : ckpt_fail(&j->error, CKPT_DAMAGED, "it is of another history than it was a moment ago");
    for (unsigned i = 0; i < c->parts && !bad; i++)
        bad = load_read(s, &j->parts[i], (char *)c->mem[j->slot].at + c->part[i].offset, &j->bytes[i], &j->error);
    j->consumed_samples = load_consumed_samples(s);
    load_close(s);
    return bad ? -1 : sum(j);
}

static void work(void *ctx)
{
    struct vault_job *j = ctx;
    switch (j->kind) {
    case JOB_ALLOCATE: j->bad = allocate(j->chest, &j->error) < 0; break;
    case JOB_SUM: j->bad = sum(j) < 0; break;
    case JOB_VERIFY: j->bad = verify(j) < 0; break;
    case JOB_LOAD: j->bad = load(j) < 0; break;
    }
}

/* --- in the loop's thread --- */

static void free_job(struct vault_job *j)
{
    free(j->parts);
    free(j);
}

static void tell(const struct vault_job *j)
{
    const struct vault *v = j->vault;
    switch (j->kind) {
    case JOB_ALLOCATE: v->ops.allocated(v->ctx, j->worker, !j->bad, j->error.text); break;
    case JOB_SUM: v->ops.summed(v->ctx, j->worker, j->slot, j->gen, !j->bad, j->error.text); break;
    case JOB_LOAD:
        v->ops.loaded(v->ctx, j->worker, j->slot, j->gen, !j->bad, j->consumed_samples, j->bytes, j->error.text);
        break;
    case JOB_VERIFY: v->ops.verified(v->ctx, j->worker, j->slot, j->gen, !j->bad, j->error.text); break;
    }
}

static void done(void *ctx)
{
    struct vault_job *j = ctx;
    struct chest *c = j->chest;
    if (!c->released || j->kind == JOB_VERIFY)
        tell(j);
    vault_drop(c);
    free_job(j);
}

/* What a worker has declared, one block with its strings. */
static struct load_part *own_parts(const struct keeper *k, unsigned worker)
{
    unsigned n = keeper_parts(k, worker);
    size_t text = 0;
    for (unsigned i = 0; i < n; i++)
        text += strlen(keeper_part(k, worker, i)->name) + strlen(keeper_part(k, worker, i)->shard_id) + 2;
    struct load_part *v = calloc(1, n * sizeof *v + text + 1);
    char *at = (char *)(v + n);
    for (unsigned i = 0; v && i < n; i++) {
        const struct keeper_part *p = keeper_part(k, worker, i);
        v[i] = (struct load_part){.bytes = p->bytes, .named = p->file[0] != 0};
        v[i].part = strcpy(at, p->name);
        at += strlen(at) + 1;
        v[i].shard_id = strcpy(at, p->shard_id);
        at += strlen(at) + 1;
    }
    return v;
}

/* A job that cannot be given to a thread is told as one that failed. */
static void start_job(struct vault *v, enum job_kind kind, const struct keeper *k, unsigned worker, unsigned slot,
                      uint64_t gen, int64_t step, const struct ckpt_fs *from, enum ckpt_layout layout)
{
    struct chest *c = v->chest[worker];
    assert(c);
    struct vault_job *j = calloc(1, sizeof *j + c->parts * sizeof *j->bytes);
    struct vault_job spare = {.vault = v, .kind = kind, .worker = worker, .slot = slot, .gen = gen, .bad = true};
    if (!j) {
        el_fail(&spare.error, EL_EXIT_OSERR, "out of memory");
        tell(&spare);
        return;
    }
    *j = spare;
    j->bad = false;
    j->chest = c;
    j->job = (struct pool_job){.work = work, .done = done, .ctx = j};
    j->step = step;
    j->lineage = kind == JOB_LOAD ? keeper_slot(k, worker, slot)->lineage : 0;
    j->from = from;
    j->layout = layout;
    if (kind == JOB_LOAD && !(j->parts = own_parts(k, worker))) {
        free_job(j);
        el_fail(&spare.error, EL_EXIT_OSERR, "out of memory");
        tell(&spare);
        return;
    }
    for (unsigned i = 0; kind != JOB_ALLOCATE && i < c->parts; i++)
        j->bytes[i] = keeper_slot(k, worker, slot)->part_bytes[i];
    if (pool_run(v->pool, &j->job, &spare.error) == 0) {
        c->jobs++;
        return;
    }
    free_job(j);
    tell(&spare);
}

static void start(struct vault *v, enum job_kind kind, const struct keeper *k, unsigned worker, unsigned slot,
                  uint64_t gen)
{
    start_job(v, kind, k, worker, slot, gen, -1, NULL, CKPT_LAYOUT_ELRUN);
}

/* NULL and *e. */
static struct chest *new_chest(const struct keeper *k, unsigned worker, struct el_err *e)
{
    unsigned parts = keeper_parts(k, worker);
    struct chest *c = calloc(1, sizeof *c + parts * sizeof *c->part);
    bool good = c != NULL;
    for (unsigned i = 0; good && i < parts; i++) {
        const struct keeper_part *p = keeper_part(k, worker, i);
        struct chest_part *to = &c->part[i];
        *to = (struct chest_part){.offset = p->offset, .bytes = p->bytes, .header_bytes = p->header_bytes};
        snprintf(to->name, sizeof to->name, "%s", p->name);
        c->parts = i + 1;
        for (unsigned s = 0; s < KEEPER_SLOTS; s++)
            good = good && (to->sums[s] = calloc(sums_count(p->bytes) + 1, sizeof *to->sums[s]));
    }
    if (!good)
        el_fail(e, EL_EXIT_OSERR, "out of memory for the checksums of a snapshot");
    for (unsigned s = 0; good && s < KEEPER_SLOTS; s++)
        good = ckpt_mem_new(&c->mem[s], "elrun-slot", keeper_slot_bytes(k, worker), e) == 0;
    if (good)
        return c;
    if (c)
        free_chest(c);
    return NULL;
}

void vault_allocate(struct vault *v, const struct keeper *k, unsigned worker)
{
    struct el_err e = {0};
    assert(!v->chest[worker]);
    v->chest[worker] = new_chest(k, worker, &e);
    if (v->chest[worker])
        start(v, JOB_ALLOCATE, k, worker, 0, 0);
    else
        v->ops.allocated(v->ctx, worker, false, e.text);
}

void vault_sum(struct vault *v, const struct keeper *k, unsigned worker, unsigned slot, uint64_t gen)
{
    start(v, JOB_SUM, k, worker, slot, gen);
}

void vault_load(struct vault *v, const struct keeper *k, unsigned worker, unsigned slot, uint64_t gen, int64_t step,
                const struct ckpt_fs *from, enum ckpt_layout layout)
{
    start_job(v, JOB_LOAD, k, worker, slot, gen, step, from, layout);
}

uint64_t vault_loaded_bytes(const struct vault *v)
{
    return v->loaded_bytes;
}

void vault_verify(struct vault *v, const struct keeper *k, unsigned worker, unsigned slot, uint64_t gen)
{
    start(v, JOB_VERIFY, k, worker, slot, gen);
}

void vault_descriptors(const struct vault *v, unsigned worker, int fds[KEEPER_SLOTS])
{
    for (unsigned s = 0; s < KEEPER_SLOTS; s++)
        fds[s] = v->chest[worker]->mem[s].fd;
}

int vault_reader(struct vault *v, unsigned worker, unsigned slot, struct el_err *e)
{
    return ckpt_mem_reader(&v->chest[worker]->mem[slot], e);
}

struct chest *vault_hold(struct vault *v, unsigned worker)
{
    v->chest[worker]->jobs++;
    return v->chest[worker];
}

void vault_drop(struct chest *c)
{
    if (--c->jobs == 0 && c->released)
        free_chest(c);
}

const void *vault_image(const struct vault *v, unsigned worker, unsigned slot, unsigned part)
{
    return image_of(v->chest[worker], slot, &v->chest[worker]->part[part]);
}

const uint32_t *vault_sums(const struct vault *v, unsigned worker, unsigned slot, unsigned part)
{
    return v->chest[worker]->part[part].sums[slot];
}
