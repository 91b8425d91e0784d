#include "snapshot/load.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/check.h"
#include "ckpt/crc32c.h"
#include "ckpt/layout.h"
#include "util/scan.h"
#include "util/snip.h"
#include "util/sort.h"

enum { LOAD_BROKEN_MAX = 16 };

struct candidate {
    int64_t step;
    uint64_t created, lineage;
    bool good;
    const uint64_t *lacks_own;
    char why[LOAD_WHY_MAX + 1]; /* not; of one that is good, what nobody declares */
};

struct load_seen {
    int64_t step;
    uint64_t created; /* 0: nobody knows, or nobody has looked */
};

struct looking {
    const struct ckpt_fs *fs;
    struct el_mem *mem;
    struct load_seen *seen;
    size_t n, room;
    enum ckpt_layout layout;
    bool any;
    uint64_t lacks_own[LOAD_LOOK_MAX][LOAD_RANK_WORDS]; /* of each step */
};

/* --- which there are --- */

static int note_name(void *arg, const char *name, enum fs_kind kind)
{
    struct looking *l = arg;
    enum ckpt_layout layout;
    int64_t step;
    /* A link is a checkpoint that somebody has moved: it is not followed, which has to be said. */
    if ((kind != FS_DIR && kind != FS_LINK) || !ckpt_step_of(name, &layout, &step) || layout != l->layout)
        return 0;
    l->any = true;
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : LOAD_LOOK_MAX;
        struct load_seen *seen = el_realloc(l->mem, l->seen, room * sizeof *seen);
        if (!seen)
            return -ENOMEM;
        l->seen = seen;
        l->room = room;
    }
    l->seen[l->n++] = (struct load_seen){.step = step};
    return 0;
}

static int load_by_created(const void *a, const void *b)
{
    const struct load_seen *x = a, *y = b;
    if (x->created != y->created)
        return x->created > y->created ? -1 : 1;
    return x->step != y->step ? (x->step > y->step ? -1 : 1) : 0;
}

/* Of more than are looked into: those that were written last.  A job that was begun anew writes steps below all that it
 * has left, so the highest numbers say nothing.  What has no manifest that says when it was written is only there to be
 * told of, and takes no more than a few places, of the highest steps. */
static void load_cut(struct looking *l)
{
    size_t known = 0, broken;
    if (l->n <= LOAD_LOOK_MAX)
        return;
    for (size_t i = 0; i < l->n; i++) {
        char dir[CKPT_PATH_MAX];
        struct checked c;
        struct el_err e = {0};
        ckpt_step_name(l->layout, l->seen[i].step, dir);
        if (check_open(&c, l->fs, l->mem, dir, &e) == 0)
            l->seen[i].created = c.m.created;
        known += l->seen[i].created != 0;
        check_close(&c);
    }
    el_sort(l->seen, l->n, sizeof *l->seen, load_by_created);
    broken = l->n - known < LOAD_BROKEN_MAX ? l->n - known : LOAD_BROKEN_MAX;
    if (known > LOAD_LOOK_MAX - broken)
        memmove(&l->seen[LOAD_LOOK_MAX - broken], &l->seen[known], broken * sizeof *l->seen);
    l->n = LOAD_LOOK_MAX;
}

/* "rank12": 12; another shard id comes behind all of these. */
static uint64_t load_rank_of(const char *shard_id)
{
    uint64_t rank;
    const char *at = shard_id + 4;
    return strncmp(shard_id, "rank", 4) == 0 && scan_u64(&at, &rank) && !*at ? rank : UINT64_MAX;
}

/* Some ranks share other shards than others, as with HSDP: nothing says which of them one had. */
static bool has_groups(const struct manifest *m)
{
    for (size_t i = 0; i < m->parts_n; i++)
        if (strcmp(m->parts[i].shard_id, "all") != 0 && load_rank_of(m->parts[i].shard_id) == UINT64_MAX)
            return true;
    return false;
}

/* NULL: there is none of this very shard. */
static const struct manifest_file *file_of_shard(const struct manifest *m, const struct load_part *p)
{
    for (size_t i = 0; i < m->parts_n; i++)
        if (strcmp(m->parts[i].part, p->part) == 0 && strcmp(m->parts[i].shard_id, p->shard_id) == 0)
            return &m->files[m->parts[i].file];
    return NULL;
}

/* NULL: there is none.  Of a part that is `own`: this rank's, else that of the lowest rank, if all ranks share the
 * same.  With none a rank has what stands in its shared parts, which is that of a rank with the same shards. */
static const struct manifest_file *file_of(const struct manifest *m, const struct load_part *p)
{
    const struct manifest_file *its = file_of_shard(m, p);
    const struct manifest_part *best = NULL;
    if (its || !p->own)
        return its;
    for (size_t i = 0; i < m->parts_n; i++) {
        const struct manifest_part *x = &m->parts[i];
        if (strcmp(x->part, p->part) == 0 && (!best || load_rank_of(x->shard_id) < load_rank_of(best->shard_id)))
            best = x;
    }
    return best && !has_groups(m) ? &m->files[best->file] : NULL;
}

static bool is_bad(const struct load_want *want, int64_t step, uint64_t lineage)
{
    for (size_t i = 0; i < want->bad_n; i++)
        if (want->bad[i].step == step && want->bad[i].lineage == lineage)
            return true;
    return false;
}

/* Is everything there that is wanted? */
static bool load_fits(const struct manifest *m, const struct load_want *want, char *why, size_t size)
{
    bool any = strcmp(want->layout_id, CKPT_LAYOUT_ALL) == 0; /* other nodes may have parts of their own */
    if (!any && strcmp(m->layout_id, want->layout_id) != 0) {
        snprintf(why, size, "it is of layout %.60s (%llu ranks), this job has %.60s", m->layout_id,
                 (unsigned long long)m->world, want->layout_id);
        return false;
    }
    for (size_t i = 0; i < want->n; i++) {
        const struct load_part *p = &want->v[i];
        if (p->own || file_of(m, p))
            continue;
        if (want->layout == CKPT_LAYOUT_MEGATRON && !p->named)
            snprintf(why, size, "part \"%.40s\" is no file: with --ckpt-layout=megatron only declare_file() is on disk",
                     p->part);
        else
            snprintf(why, size, "it has no part \"%.40s\" of shard \"%.40s\"", p->part, p->shard_id);
        return false;
    }
    return true;
}

/* This node reports a part of this shard: that of one of its ranks, and on rank 0's node also those that all ranks
 * have.  Of other shards no node knows which one of several holds them. */
static bool is_of_here(const struct load_want *want, const char *shard_id)
{
    uint64_t rank = strcmp(shard_id, "all") == 0 ? 0 : load_rank_of(shard_id);
    return want->whole || (rank >= want->rank_base && rank < (uint64_t)want->rank_base + want->ranks);
}

static bool is_wanted(const struct load_want *want, const struct manifest_part *p)
{
    for (size_t i = 0; i < want->n; i++)
        if (strcmp(want->v[i].part, p->part) == 0 && strcmp(want->v[i].shard_id, p->shard_id) == 0)
            return true;
    return strcmp(p->part, LOAD_OWN_PART) == 0;
}

/* Each name once, as many as there is room for. */
static void load_put_left(const struct manifest *m, const struct load_want *want, char to[LOAD_LEFT_MAX])
{
    char name[LOAD_LEFT_MAX];
    static const char more[] = ", ...";
    for (size_t i = 0, n = 0; i < m->parts_n; i++) {
        const struct manifest_part *p = &m->parts[i];
        if (!is_of_here(want, p->shard_id) || is_wanted(want, p))
            continue;
        el_snip(name, 110, "\"%s", p->part);
        snprintf(name + strlen(name), 2, "\"");
        if (strstr(to, name))
            continue;
        if (n + strlen(name) + 2 * sizeof more > LOAD_LEFT_MAX) {
            snprintf(to + n, LOAD_LEFT_MAX - n, "%s", more);
            return;
        }
        n += (size_t)snprintf(to + n, LOAD_LEFT_MAX - n, "%s%s", n ? ", " : "", name);
    }
}

static void put_lacks_own(const struct manifest *m, const struct load_want *want, uint64_t to[LOAD_RANK_WORDS])
{
    for (size_t i = 0; i < want->n; i++) {
        const struct load_part *p = &want->v[i];
        assert(p->worker < LOAD_RANK_BITS);
        if (p->own && !file_of_shard(m, p))
            to[p->worker / 64] |= UINT64_C(1) << p->worker % 64;
    }
}

static void load_judge(struct looking *l, const struct load_want *want, unsigned at, struct candidate *to)
{
    int64_t step = l->seen[at].step;
    char dir[CKPT_PATH_MAX];
    struct checked c;
    struct el_err why = {0};
    *to = (struct candidate){.step = step, .lacks_own = l->lacks_own[at]};
    ckpt_step_name(want->layout, step, dir);
    int bad = check_open(&c, l->fs, l->mem, dir, &why);
    if (!bad) {
        to->created = c.m.created;
        to->lineage = manifest_lineage(&c.m);
        if (c.m.step != step)
            bad = ckpt_fail(&why, CKPT_DAMAGED, "its manifest is of step %lld", (long long)c.m.step);
        else
            bad = check_sizes(l->fs, dir, &c.m, &why);
    }
    struct fs_stat st;
    if (bad && l->fs->stat(l->fs->ctx, dir, &st) >= 0 && st.kind == FS_LINK)
        snprintf(to->why, sizeof to->why, "%.80s is a link, which is not followed", dir);
    else if (bad)
        snprintf(to->why, sizeof to->why, "%.*s", (int)LOAD_WHY_MAX, why.text);
    else if (is_bad(want, step, to->lineage))
        snprintf(to->why, sizeof to->why, "it could not be read before");
    else
        to->good = load_fits(&c.m, want, to->why, sizeof to->why);
    if (to->good) {
        load_put_left(&c.m, want, to->why);
        put_lacks_own(&c.m, want, l->lacks_own[at]);
    }
    check_close(&c);
}

/* What was written last comes first; of the same second the higher step. */
static int load_by_age(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->created != y->created)
        return x->created > y->created ? -1 : 1;
    return x->step != y->step ? (x->step > y->step ? -1 : 1) : 0;
}

static void load_choose(struct candidate *v, unsigned n, const struct ckpt_fs *fs, struct load_found *out)
{
    int64_t below = INT64_MAX;
    el_sort(v, n, sizeof *v, load_by_age);
    for (unsigned i = 0; i < n; i++) {
        bool known = v[i].created != 0; /* no manifest: nobody knows when it was meant to be */
        if (known && v[i].step >= below)
            continue; /* of a history that was given up */
        below = known ? v[i].step : below;
        out->newest = v[i].step > out->newest ? v[i].step : out->newest;
        if (v[i].good) {
            out->lineage[out->n] = v[i].lineage;
            memcpy(out->lacks_own[out->n], v[i].lacks_own, sizeof *out->lacks_own);
            snprintf(out->left[out->n], LOAD_LEFT_MAX, "%s", v[i].why);
            out->step[out->n++] = v[i].step;
        }
        if (!v[i].good && v[i].step > out->unusable) {
            out->unusable = v[i].step;
            snprintf(out->why, sizeof out->why, "step %lld in %.50s: %.100s", (long long)v[i].step % 1000000000000,
                     fs->name, v[i].why);
        }
    }
}

void load_look(const struct ckpt_fs *fs, struct el_mem *mem, const struct load_want *want, struct load_found *out)
{
    struct looking *l = el_alloc(mem, sizeof *l);
    struct candidate *v = el_alloc(mem, LOAD_LOOK_MAX * sizeof *v);
    memset(out, 0, sizeof *out); /* large: a literal could take as much of the stack of a thread */
    out->newest = out->unusable = -1;
    int r = -ENOMEM;
    if (l && v) {
        l->fs = fs; /* the rest is 0 */
        l->mem = mem;
        l->layout = want->layout;
        r = fs->list(fs->ctx, "", note_name, l);
        if (r >= 0)
            load_cut(l);
    }
    for (unsigned i = 0; r >= 0 && i < l->n; i++)
        load_judge(l, want, i, &v[i]);
    if (r >= 0) {
        load_choose(v, (unsigned)l->n, fs, out);
        out->any = l->any;
    } else if (r != -ENOENT) {
        struct el_err e = {0};
        fs_fail(fs, r, "read", "", &e);
        snprintf(out->why, sizeof out->why, "%.*s", (int)LOAD_WHY_MAX, e.text);
        out->any = true; /* perhaps */
    }
    el_free(mem, l ? l->seen : NULL);
    el_free(mem, l);
    el_free(mem, v);
}

/* --- reading one --- */

struct load_step {
    const struct ckpt_fs *fs;
    struct el_mem *mem;
    char dir[CKPT_PATH_MAX];
    struct checked c;
    _Atomic uint64_t *read_bytes; /* NULL: nobody watches */
};

struct load_step *load_open(const struct ckpt_fs *fs, struct el_mem *mem, enum ckpt_layout layout, int64_t step,
                            struct el_err *e)
{
    struct load_step *s = el_alloc(mem, sizeof *s);
    if (!s) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    s->fs = fs;
    s->mem = mem;
    ckpt_step_name(layout, step, s->dir);
    if (check_open(&s->c, fs, mem, s->dir, e) == 0)
        return s;
    load_close(s);
    return NULL;
}

int load_size(const struct load_step *s, const struct load_part *p, uint64_t *bytes, struct el_err *e)
{
    const struct manifest_file *f = file_of(&s->c.m, p);
    *bytes = f ? f->size : 0;
    if (f || p->own)
        return 0;
    return ckpt_fail(e, CKPT_DAMAGED, "part \"%.60s\" of shard \"%.60s\" is not there any more", p->part, p->shard_id);
}

int load_read(struct load_step *s, const struct load_part *p, void *to, uint64_t bytes, struct el_err *e)
{
    char path[2 * CKPT_PATH_MAX];
    const struct manifest_file *f = file_of(&s->c.m, p);
    assert(f ? f->size == bytes : bytes == 0);
    if (!f)
        return 0;
    snprintf(path, sizeof path, "%s/%s", s->dir, f->name);
    int file = fs_open_fresh(s->fs, path);
    if (file < 0)
        return fs_fail(s->fs, file, "read", path, e);
    for (size_t i = 0; i < f->chunks_n && !e->status; i++) {
        uint64_t at = i * f->chunk, left = f->size - at;
        size_t n = left < f->chunk ? (size_t)left : (size_t)f->chunk;
        int r = fs_read_fresh(s->fs, path, &file, at, (char *)to + at, n);
        uint32_t crc = r < 0 ? 0 : crc32c(0, (const char *)to + at, n);
        if (r < 0)
            el_fail_sys(e, (enum el_exit)CKPT_DAMAGED, -r, "%s: bytes %llu-%llu cannot be read", path,
                        (unsigned long long)at, (unsigned long long)(at + n));
        else if (crc != f->chunks[i])
            ckpt_fail(e, CKPT_DAMAGED, "%s: bytes %llu-%llu have CRC32C %08x, the manifest says %08x", path,
                      (unsigned long long)at, (unsigned long long)(at + n), crc, f->chunks[i]);
        else if (s->read_bytes)
            *s->read_bytes += n;
    }
    s->fs->close(s->fs->ctx, file);
    return e->status ? -1 : 0;
}

void load_watch(struct load_step *s, _Atomic uint64_t *read_bytes)
{
    s->read_bytes = read_bytes;
}

uint64_t load_consumed_samples(const struct load_step *s)
{
    return s->c.m.consumed_samples;
}

uint64_t load_lineage(const struct load_step *s)
{
    return manifest_lineage(&s->c.m);
}

void load_close(struct load_step *s)
{
    if (!s)
        return;
    check_close(&s->c);
    el_free(s->mem, s);
}
