#include "snapshot/shm_slots_private.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/replica_digest.h"
#include "snapshot/image_sizes.h"
#include "snapshot/load.h"
#include "ckpt/safetensors.h"
#include "ckpt/chunk_sums.h"
#include "util/log.h"

#define HEADER_MEMORY ((size_t)1 << 30) /* for the table of a header of 100,000 tensors and more */

static void free_chest(struct chest *c)
{
    struct shm_slots *v = c->vault;
    pthread_mutex_lock(&v->lock);
    v->charged -= c->charged;
    pthread_mutex_unlock(&v->lock);
    for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
        shm_free(&c->slot[s].mem);
        pthread_mutex_destroy(&c->slot[s].growing);
        free(c->slot[s].image);
        free(c->slot[s].sums);
    }
    free(c->name);
    free(c);
}

struct shm_slots *shm_slots_new(struct pool *p, unsigned workers, uint64_t budget_bytes, shm_slots_told *told,
                                void *ctx)
{
    struct shm_slots *v = calloc(1, sizeof *v);
    if (!v)
        return NULL;
    *v = (struct shm_slots){.pool = p, .told = told, .ctx = ctx, .workers = workers, .budget_bytes = budget_bytes};
    pthread_mutex_init(&v->lock, NULL);
    shm_slots_find_room(v);
    if ((v->chest = calloc(workers, sizeof *v->chest)))
        return v;
    free(v);
    return NULL;
}

void shm_slots_free(struct shm_slots *v)
{
    if (!v)
        return;
    for (unsigned i = 0; i < v->workers; i++)
        if (v->chest[i])
            free_chest(v->chest[i]);
    pthread_mutex_destroy(&v->lock);
    free(v->chest);
    free(v);
}

void shm_slots_release(struct shm_slots *v, unsigned worker)
{
    struct chest *c = v->chest[worker];
    v->chest[worker] = NULL;
    if (!c)
        return;
    c->released = true;
    if (c->jobs == 0)
        free_chest(c);
}

/* --- in a thread: bytes --- */

static const char *image_of(const struct chest *c, unsigned slot, unsigned part)
{
    return (const char *)c->slot[slot].mem.at + c->slot[slot].image[part].offset;
}

/* A part of tensors must be the safetensors file that it was said to be.  digest, table: NULL where none is asked
 * for. */
static int check_image(const struct image *p, const char *name, const char *image, uint64_t *digest, char **table,
                       struct el_err *e)
{
    struct el_mem mem = EL_MEM_INIT(HEADER_MEMORY);
    struct safetensors st = {0};
    int bad = safetensors_read_memory(&st, &mem, image, p->header_bytes, p->bytes, e);
    if (!bad && digest)
        *digest = replica_digest_digest(&(struct replica_digest_image){&st, image}, table);
    safetensors_free(&st);
    return bad ? el_prefix(e, "part \"%s\"", name) : 0;
}

/* Where the images lie in the slot, and their sums. */
static int shm_slots_lay_out(struct shm_slots_job *j)
{
    struct chest_slot *s = &j->chest->slot[j->slot];
    uint64_t at = 0;
    size_t sums = 0;
    for (unsigned i = 0; i < j->chest->parts; i++) {
        s->image[i] = (struct image){at, j->bytes[i], j->header_bytes[i], sums};
        at += image_sizes_bytes(&j->bytes[i], 1);
        sums += chunk_sums_count(j->bytes[i]);
    }
    assert(at <= s->capacity);
    if (sums <= s->sums_room)
        return 0;
    free(s->sums);
    s->sums = calloc(sums, sizeof *s->sums);
    s->sums_room = s->sums ? sums : 0;
    return s->sums ? 0 : el_fail(&j->error, EL_EXIT_OSERR, "out of memory for the checksums of a snapshot");
}

static int shm_slots_io_sum(struct shm_slots_job *j)
{
    struct chest *c = j->chest;
    struct chest_slot *s = &c->slot[j->slot];
    if (shm_slots_lay_out(j) < 0)
        return -1;
    for (unsigned i = 0; i < c->parts; i++) {
        const struct image *p = &s->image[i];
        const char *image = image_of(c, j->slot, i);
        uint64_t *digest = j->digests ? &j->digest[i] : NULL;
        char **table = j->tables ? &j->table[i] : NULL;
        if (p->header_bytes && check_image(p, c->name[i], image, digest, table, &j->error) < 0)
            return -1;
        chunk_sums_make(image, p->bytes, s->sums + p->sums);
    }
    return 0;
}

static int verify(struct shm_slots_job *j)
{
    struct chest *c = j->chest;
    const struct chest_slot *s = &c->slot[j->slot];
    for (unsigned i = 0; i < c->parts; i++) {
        const struct image *p = &s->image[i];
        uint64_t at = chunk_sums_check(image_of(c, j->slot, i), p->bytes, s->sums + p->sums);
        if (at < p->bytes)
            return el_fail(&j->error, EL_EXIT_PROTOCOL,
                           "part \"%s\" was written to after its commit: the 4 MiB from byte %llu on differ",
                           c->name[i], (unsigned long long)at);
    }
    return 0;
}

/* All parts, one behind the other, into a slot that is large enough for them. */
static int shm_slots_read_parts(struct shm_slots_job *j, struct load_step *s)
{
    struct chest *c = j->chest;
    for (unsigned i = 0; i < c->parts; i++)
        if (load_size(s, &j->parts[i], &j->bytes[i], &j->error) < 0)
            return -1;
    if (shm_slots_room(j, image_sizes_bytes(j->bytes, c->parts)) < 0)
        return -1;
    uint64_t offset = 0;
    for (unsigned i = 0; i < c->parts; i++) {
        unsigned char *at = (unsigned char *)c->slot[j->slot].mem.at + offset;
        size_t json = 0;
        if (load_read(s, &j->parts[i], at, j->bytes[i], &j->error) < 0)
            return -1;
        bool tensors = !j->parts[i].named && j->bytes[i];
        if (tensors && safetensors_header_bytes(at, j->bytes[i], &json, &j->error) < 0)
            return el_prefix(&j->error, "part \"%s\"", c->name[i]);
        j->header_bytes[i] = tensors ? json + SAFETENSORS_PREFIX : 0;
        offset += image_sizes_bytes(&j->bytes[i], 1);
    }
    return 0;
}

static int shm_slots_io_load(struct shm_slots_job *j)
{
    struct el_mem mem = EL_MEM_INIT(HEADER_MEMORY);
    struct load_step *s = load_open(j->from, &mem, j->layout, j->step, &j->error);
    if (!s)
        return -1;
    load_watch(s, &j->vault->loaded_bytes);
    int bad = load_lineage(s) == j->lineage
                  ? 0
                  : ckpt_fail(&j->error, CKPT_DAMAGED, "it is of another history than it was a moment ago");
    bad = bad ? bad : shm_slots_read_parts(j, s);
    j->consumed_samples = load_consumed_samples(s);
    load_close(s);
    return bad ? -1 : shm_slots_io_sum(j);
}

/* Both are held: neither grows or moves meanwhile. */
static int shm_slots_io_compare(struct shm_slots_job *j)
{
    const struct slot_table_pair *x = &j->pair;
    struct chest *const chest[2] = {j->chest, j->other};
    struct el_mem mem = EL_MEM_INIT(2 * HEADER_MEMORY);
    struct safetensors st[2] = {{0}, {0}};
    struct replica_digest_image image[2];
    int bad = 0;
    for (unsigned i = 0; i < 2 && !bad; i++) {
        const struct image *p = &chest[i]->slot[x->of[i].slot].image[x->of[i].part];
        image[i] = (struct replica_digest_image){&st[i], image_of(chest[i], x->of[i].slot, x->of[i].part)};
        bad = safetensors_read_memory(&st[i], &mem, image[i].bytes, p->header_bytes, p->bytes, &j->error);
    }
    if (!bad)
        j->differing = replica_digest_compare(&image[0], &image[1], j->names, sizeof j->names);
    safetensors_free(&st[0]);
    safetensors_free(&st[1]);
    return bad;
}

static void shm_slots_work(void *ctx)
{
    struct shm_slots_job *j = ctx;
    switch (j->kind) {
    case JOB_GROW: j->bad = shm_slots_room(j, j->room_bytes) < 0; break;
    case JOB_SHRINK: shm_slots_shorten(j, j->room_bytes); break;
    case JOB_SUM: j->bad = shm_slots_io_sum(j) < 0; break;
    case JOB_VERIFY: j->bad = verify(j) < 0; break;
    case JOB_LOAD: j->bad = shm_slots_io_load(j) < 0; break;
    case JOB_COMPARE: j->bad = shm_slots_io_compare(j) < 0; break;
    }
}

/* --- in the loop's thread --- */

static void shm_slots_free_job(struct shm_slots_job *j)
{
    for (unsigned i = 0; j->tables && i < j->chest->parts; i++)
        el_free(NULL, j->table[i]);
    free(j->parts);
    free(j);
}

static void shm_slots_tell(const struct shm_slots_job *j)
{
    static const enum slot_table_event_type types[] = {
        [JOB_GROW] = SLOT_TABLE_EV_GROWN,  [JOB_SHRINK] = SLOT_TABLE_EV_SHRUNK, [JOB_SUM] = SLOT_TABLE_EV_SUMMED,
        [JOB_VERIFY] = SLOT_TABLE_EV_READ, [JOB_LOAD] = SLOT_TABLE_EV_LOADED,   [JOB_COMPARE] = SLOT_TABLE_EV_COMPARED};
    bool compared = j->kind == JOB_COMPARE;
    const struct slot_table_event ev = {.type = types[j->kind],
                                        .worker = j->worker,
                                        .slot = j->slot,
                                        .gen = j->gen,
                                        .ok = !j->bad,
                                        .number = compared ? j->differing : j->consumed_samples,
                                        .capacity = j->capacity,
                                        .file_bytes = j->file_bytes,
                                        .need_bytes = j->need_bytes,
                                        .have_bytes = j->have_bytes,
                                        .part_bytes = j->bytes,
                                        .part_header_bytes = j->header_bytes,
                                        .part_digest = j->digests ? j->digest : NULL,
                                        .part_table = j->table,
                                        .text = compared ? j->names : j->error.text};
    j->vault->told(j->vault->ctx, &ev);
}

static void shm_slots_done(void *ctx)
{
    struct shm_slots_job *j = ctx;
    struct chest *c = j->chest;
    if (!c->released || j->kind == JOB_VERIFY || j->kind == JOB_COMPARE)
        shm_slots_tell(j);
    struct chest *other = j->other;
    shm_slots_free_job(j);
    shm_slots_drop(c);
    if (other)
        shm_slots_drop(other);
}

/* What a worker has declared, one block with its strings. */
static struct load_part *own_parts(const struct slot_table *k, unsigned worker)
{
    unsigned n = slot_table_parts(k, worker);
    size_t text = 0;
    for (unsigned i = 0; i < n; i++)
        text += strlen(slot_table_part(k, worker, i)->name) + strlen(slot_table_part(k, worker, i)->shard_id) + 2;
    struct load_part *v = calloc(1, n * sizeof *v + text + 1);
    char *at = (char *)(v + n);
    for (unsigned i = 0; v && i < n; i++) {
        const struct slot_table_part *p = slot_table_part(k, worker, i);
        v[i] = (struct load_part){.named = p->file[0] != 0, .own = p->own};
        v[i].part = strcpy(at, p->name);
        at += strlen(at) + 1;
        v[i].shard_id = strcpy(at, p->shard_id);
        at += strlen(at) + 1;
    }
    return v;
}

/* A job for a worker's slot; NULL: no memory. */
static struct shm_slots_job *shm_slots_new_job(struct shm_slots *v, const struct shm_slots_job *spare)
{
    struct chest *c = v->chest[spare->worker];
    struct shm_slots_job *j = calloc(1, sizeof *j + c->parts * (3 * sizeof *j->numbers + sizeof *j->table));
    if (!j)
        return NULL;
    *j = *spare;
    j->bad = false;
    j->chest = c;
    j->job = (struct pool_job){.work = shm_slots_work, .done = shm_slots_done, .ctx = j};
    j->bytes = j->numbers;
    j->header_bytes = j->numbers + c->parts;
    j->digest = j->numbers + 2 * c->parts;
    j->table = (char **)(j->numbers + 3 * c->parts);
    return j;
}

/* One that cannot be given to a thread is told as one that failed. */
static void shm_slots_start_job(struct shm_slots_job *j, struct shm_slots_job *spare)
{
    if (!j)
        el_fail(&spare->error, EL_EXIT_OSERR, "out of memory");
    else if (pool_run(spare->vault->pool, &j->job, &spare->error) == 0) {
        j->chest->jobs++;
        if (j->other)
            j->other->jobs++;
        return;
    }
    if (j)
        shm_slots_free_job(j);
    shm_slots_tell(spare);
}

static struct shm_slots_job spare_of(struct shm_slots *v, enum job_kind kind, unsigned worker, unsigned slot,
                                     uint64_t gen)
{
    assert(v->chest[worker]);
    return (struct shm_slots_job){.vault = v, .kind = kind, .worker = worker, .slot = slot, .gen = gen, .bad = true};
}

static int make_slot(struct shm_slots *v, struct chest *c, struct chest_slot *s, struct el_err *e)
{
    pthread_mutex_init(&s->growing, NULL);
    s->image = calloc(c->parts, sizeof *s->image);
    if (!s->image)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    /* Half as many addresses, again and again: there are so many workers, or the kernel has few. */
    while (shm_reserve(&s->mem, "elrun-slot", v->room, e) < 0) {
        if (v->room < 2 * SHM_SLOTS_ROOM_LEAST)
            return -1;
        v->room = v->room / 2 / IMAGE_SIZES_PAGE * IMAGE_SIZES_PAGE;
        v->room_is_short = true;
        *e = (struct el_err){0};
    }
    return 0;
}

int shm_slots_open(struct shm_slots *v, const struct slot_table *k, unsigned worker, struct el_err *e)
{
    unsigned parts = slot_table_parts(k, worker);
    struct chest *c = calloc(1, sizeof *c);
    assert(!v->chest[worker] && parts > 0);
    if (!c)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    c->vault = v;
    c->parts = parts;
    c->name = calloc(parts, sizeof *c->name);
    int bad = c->name ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (unsigned i = 0; !bad && i < parts; i++)
        snprintf(c->name[i], sizeof c->name[i], "%s", slot_table_part(k, worker, i)->name);
    for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++)
        bad = bad ? bad : make_slot(v, c, &c->slot[s], e);
    if (bad) {
        free_chest(c);
        return -1;
    }
    v->chest[worker] = c;
    return 0;
}

void shm_slots_grow(struct shm_slots *v, unsigned worker, unsigned slot, uint64_t bytes, uint64_t gen)
{
    struct shm_slots_job spare = spare_of(v, JOB_GROW, worker, slot, gen);
    spare.room_bytes = bytes;
    shm_slots_start_job(shm_slots_new_job(v, &spare), &spare);
}

void shm_slots_shrink(struct shm_slots *v, unsigned worker, unsigned slot, uint64_t bytes, uint64_t gen)
{
    struct shm_slots_job spare = spare_of(v, JOB_SHRINK, worker, slot, gen);
    spare.room_bytes = bytes;
    shm_slots_start_job(shm_slots_new_job(v, &spare), &spare);
}

void shm_slots_sum(struct shm_slots *v, const struct slot_table *k, unsigned worker, unsigned slot, uint64_t gen,
                   bool digests, bool tables)
{
    struct shm_slots_job spare = spare_of(v, JOB_SUM, worker, slot, gen);
    spare.digests = digests;
    spare.tables = digests && tables;
    struct shm_slots_job *j = shm_slots_new_job(v, &spare);
    const struct slot_table_slot *from = slot_table_slot(k, worker, slot);
    if (j) {
        memcpy(j->bytes, from->part_bytes, j->chest->parts * sizeof *j->bytes);
        memcpy(j->header_bytes, from->part_header_bytes, j->chest->parts * sizeof *j->header_bytes);
    }
    shm_slots_start_job(j, &spare);
}

void shm_slots_load(struct shm_slots *v, const struct slot_table *k, unsigned worker, unsigned slot, uint64_t gen,
                    int64_t step, const struct ckpt_fs *from, enum ckpt_layout layout)
{
    struct shm_slots_job spare = spare_of(v, JOB_LOAD, worker, slot, gen);
    spare.step = step;
    spare.lineage = slot_table_slot(k, worker, slot)->lineage;
    spare.from = from;
    spare.layout = layout;
    struct shm_slots_job *j = shm_slots_new_job(v, &spare);
    if (j && !(j->parts = own_parts(k, worker))) {
        shm_slots_free_job(j);
        j = NULL;
    }
    shm_slots_start_job(j, &spare);
}

uint64_t shm_slots_loaded_bytes(const struct shm_slots *v)
{
    return v->loaded_bytes;
}

void shm_slots_verify(struct shm_slots *v, unsigned worker, unsigned slot, uint64_t gen)
{
    struct shm_slots_job spare = spare_of(v, JOB_VERIFY, worker, slot, gen);
    shm_slots_start_job(shm_slots_new_job(v, &spare), &spare);
}

void shm_slots_compare(struct shm_slots *v, const struct slot_table_pair *pair)
{
    struct shm_slots_job spare = spare_of(v, JOB_COMPARE, pair->of[0].worker, pair->of[0].slot, 0);
    spare.other = v->chest[pair->of[1].worker];
    spare.pair = *pair;
    shm_slots_start_job(shm_slots_new_job(v, &spare), &spare);
}

void shm_slots_descriptors(const struct shm_slots *v, unsigned worker, int fds[SLOT_TABLE_SLOTS])
{
    for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++)
        fds[s] = v->chest[worker]->slot[s].mem.fd;
}

int shm_slots_reader(struct shm_slots *v, unsigned worker, unsigned slot, struct el_err *e)
{
    return shm_reader(&v->chest[worker]->slot[slot].mem, e);
}

struct chest *shm_slots_hold(struct shm_slots *v, unsigned worker)
{
    v->chest[worker]->jobs++;
    return v->chest[worker];
}

void shm_slots_drop(struct chest *c)
{
    if (--c->jobs == 0 && c->released)
        free_chest(c);
}

const void *shm_slots_image(const struct shm_slots *v, unsigned worker, unsigned slot, unsigned part)
{
    return image_of(v->chest[worker], slot, part);
}

const uint32_t *shm_slots_sums(const struct shm_slots *v, unsigned worker, unsigned slot, unsigned part)
{
    const struct chest_slot *s = &v->chest[worker]->slot[slot];
    return s->sums + s->image[part].sums;
}
