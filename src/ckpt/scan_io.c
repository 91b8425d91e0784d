#include "ckpt/scan.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/sniff.h"
#include "util/parse.h"
#include "util/scan.h"
#include "util/sort.h"

const char *scan_state_word(enum scan_state s)
{
    static const char *const words[] = {
#define X(NAME, word) word,
        SCAN_STATES(X)
#undef X
    };
    return words[s];
}

struct scan_walk {
    struct scan *s;
    const struct ckpt_fs *fs;
    int64_t now_sec;
    struct el_err *e;
    char hub[CKPT_PATH_MAX]; /* whose revisions are being listed */
};

static int scan_no_memory(struct el_err *e)
{
    return el_fail(e, EL_EXIT_OSERR, "out of memory");
}

static struct scan_entry *scan_add(struct scan *s, const char *name, const char *run_id, const char *why)
{
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 32;
        struct scan_entry *v = room <= SCAN_ENTRIES_MAX ? el_realloc(s->mem, s->v, room * sizeof *v) : NULL;
        if (!v)
            return NULL;
        s->v = v;
        s->room = room;
    }
    struct scan_entry *x = &s->v[s->n];
    *x = (struct scan_entry){.name = el_strndup(s->mem, name, strlen(name)),
                             .run_id = el_strndup(s->mem, run_id, strlen(run_id)),
                             .why = el_strndup(s->mem, why, strlen(why))};
    s->n++; /* also half made: scan_close() */
    return x->name && x->run_id && x->why ? x : NULL;
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

static enum scan_state scan_state_of(const struct inspect *l, const char *name, struct el_err *why)
{
    enum ckpt_layout layout;
    int64_t step;
    bool named = ckpt_step_of(name, &layout, &step);
    if (l->why.status == CKPT_INCOMPLETE) {
        if (!named || layout == CKPT_LAYOUT_MEGATRON)
            return SCAN_FOREIGN;
        *why = l->why;
        return SCAN_PARTIAL;
    }
    if (l->why.status)
        *why = l->why;
    else if (named && step != l->step)
        ckpt_fail(why, CKPT_DAMAGED, "its manifest is of step %lld", (long long)l->step);
    else
        check_sizes(l->fs, l->dir, &l->manifest.m, why);
    return !why->status ? SCAN_VALID : why->status == CKPT_INCOMPLETE ? SCAN_PARTIAL : SCAN_DAMAGED;
}

/* "7.9c2f.3": round, coordinator, and which of its orders. */
static void take_epoch(struct scan_entry *x, const char *epoch)
{
    uint64_t number, coord;
    if (!scan_u64(&epoch, &number) || *epoch++ != '.' || !scan_hex(&epoch, &coord))
        return;
    x->number = number;
    x->coord = coord;
}

static int take_checkpoint(struct scan_walk *w, const char *name)
{
    struct inspect l;
    struct el_err why = {0}, gone = {0};
    int r = 0;
    if (inspect_open(&l, w->fs, w->s->mem, name, NULL, &gone)) {
        inspect_close(&l);
        if (gone.sys == ENOENT)
            return 0;
        struct scan_entry *x = scan_add(w->s, name, "", gone.text);
        if (!x)
            return scan_no_memory(w->e);
        x->state = SCAN_DAMAGED;
        x->step = ckpt_number_of(name);
        return 0;
    }
    enum scan_state state = scan_state_of(&l, name, &why);
    bool nothing = l.format == CKPT_FORMAT_NONE && state == SCAN_FOREIGN && !l.unfetched;
    struct scan_entry *x = NULL;
    if (!nothing)
        x = scan_add(w->s, name, l.why.status ? "" : l.manifest.m.run_id, why.text);
    if (x) {
        const struct manifest *m = &l.manifest.m;
        bool known = !l.why.status;
        x->state = state;
        x->format = l.format;
        x->step = l.step;
        x->bytes = l.bytes;
        x->files = l.n;
        x->changed_sec = known && m->created ? (int64_t)m->created : l.changed_sec;
        x->created = known ? m->created : 0;
        x->lineage = known ? manifest_lineage(m) : 0;
        x->part = inspect_is_part(&l);
        x->world = known ? m->world : 0;
        x->emergency = known && m->emergency;
        if (known)
            take_epoch(x, m->epoch);
        x->latest = strcmp(w->s->latest, name) == 0;
        if (l.format != CKPT_FORMAT_ELRUN)
            r = rank_files_sets(&x->sets, (const char *const *)l.names, l.n, w->s->mem, w->e);
        if (!r && l.format != CKPT_FORMAT_ELRUN && !l.hub)
            r = usual_files_take(&x->usual, (const char *const *)l.names, l.n, w->s->mem, w->e);
    } else if (!nothing) {
        r = scan_no_memory(w->e);
    }
    inspect_close(&l);
    return r;
}

static bool is_stage_of_megatron(const char *name)
{
    char copy[CKPT_PATH_MAX];
    enum ckpt_layout layout;
    int64_t step;
    size_t n = strlen(name);
    if (n < 5 || n >= sizeof copy || strcmp(name + n - 4, "_tmp") != 0)
        return false;
    memcpy(copy, name, n - 4);
    copy[n - 4] = 0;
    return ckpt_step_of(copy, &layout, &step) && layout == CKPT_LAYOUT_MEGATRON;
}

static int take_stage(struct scan_walk *w, const char *path)
{
    struct inspect l;
    struct el_err gone = {0};
    int r = 0;
    if (inspect_open(&l, w->fs, w->s->mem, path, NULL, &gone) == 0) {
        struct scan_entry *x = scan_add(w->s, path, "", "");
        const char *last = strrchr(path, '/'), *dash = strchr(last ? last : path, path[0] == '.' ? '-' : '_');
        uint64_t step = 0;
        size_t n = 0;
        while (dash && dash[1 + n] >= '0' && dash[1 + n] <= '9')
            n++;
        if (x) {
            x->state = w->now_sec - l.changed_sec > SCAN_STAGE_SEC ? SCAN_STALE : SCAN_STAGE;
            x->format = l.format;
            x->step = n && el_parse_u64n(dash + 1, n, &step) == 0 ? (int64_t)step : -1;
            x->bytes = l.bytes;
            x->files = l.n;
            x->changed_sec = l.changed_sec;
        } else {
            r = scan_no_memory(w->e);
        }
    }
    inspect_close(&l);
    return r;
}

/* What it was is still known by its manifest; else by its name. */
static int take_aside(struct scan_walk *w, const char *path)
{
    struct inspect l;
    struct el_err gone = {0};
    int r = 0;
    if (inspect_open(&l, w->fs, w->s->mem, path, NULL, &gone) == 0) {
        bool known = !l.why.status;
        const struct manifest *m = &l.manifest.m;
        struct scan_entry *x = scan_add(w->s, path, known ? m->run_id : "", "");
        if (x) {
            x->state = SCAN_ASIDE;
            x->format = l.format;
            x->step = known ? l.step : -1;
            x->bytes = l.bytes;
            x->files = l.n;
            x->changed_sec = known && m->created ? (int64_t)m->created : l.changed_sec;
            x->world = known ? m->world : 0;
            x->emergency = known && m->emergency;
        } else {
            r = scan_no_memory(w->e);
        }
    }
    inspect_close(&l);
    return r;
}

/* A cache of the Hugging Face hub: "blobs" and "snapshots" beside each other. */
static bool is_hub(const struct ckpt_fs *fs, const char *dir)
{
    char path[CKPT_PATH_MAX];
    struct fs_stat st;
    static const char *const parts[] = {CKPT_HUB_BLOBS, CKPT_HUB_SNAPSHOTS};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (snprintf(path, sizeof path, "%s%s%s", dir, *dir ? "/" : "", parts[i]) >= (int)sizeof path ||
            fs->stat(fs->ctx, path, &st) < 0 || st.kind != FS_DIR)
            return false;
    return true;
}

static int revision_entry(void *arg, const char *name, enum fs_kind kind)
{
    struct scan_walk *w = arg;
    char path[CKPT_PATH_MAX];
    if (kind != FS_DIR || snprintf(path, sizeof path, "%s/%s", w->hub, name) >= (int)sizeof path)
        return 0;
    return take_checkpoint(w, path);
}

static int take_hub(struct scan_walk *w, const char *dir)
{
    if (snprintf(w->hub, sizeof w->hub, "%s%s" CKPT_HUB_SNAPSHOTS, dir, *dir ? "/" : "") >= (int)sizeof w->hub)
        return 0;
    return w->fs->list(w->fs->ctx, w->hub, revision_entry, w);
}

static int root_entry(void *arg, const char *name, enum fs_kind kind)
{
    struct scan_walk *w = arg;
    if (kind != FS_DIR || name[0] == '.')
        return 0;
    if (is_hub(w->fs, name))
        return take_hub(w, name);
    if (w->s->marked && is_stage_of_megatron(name))
        return take_stage(w, name);
    return take_checkpoint(w, name);
}

static int stage_entry(void *arg, const char *name, enum fs_kind kind)
{
    char path[CKPT_PATH_MAX];
    if (kind != FS_DIR || snprintf(path, sizeof path, CKPT_STAGE_DIR "/%s", name) >= (int)sizeof path)
        return 0;
    return take_stage(arg, path);
}

static int aside_entry(void *arg, const char *name, enum fs_kind kind)
{
    char path[CKPT_PATH_MAX];
    if (kind != FS_DIR || snprintf(path, sizeof path, CKPT_ASIDE_DIR "/%s", name) >= (int)sizeof path)
        return 0;
    return take_aside(arg, path);
}

/* --- pins and leases ---------------------------------------------------------------------------------------------- */

static bool is_called(const struct scan_entry *x, const char *name)
{
    size_t n = strlen(name), dir = strlen(CKPT_ASIDE_DIR "/");
    return x->state == SCAN_ASIDE ? strncmp(x->name + dir, name, n) == 0 && x->name[dir + n] == '.'
                                  : strcmp(x->name, name) == 0;
}

static int pin_entry(void *arg, const char *name, enum fs_kind kind)
{
    struct scan_walk *w = arg;
    for (size_t i = 0; kind == FS_FILE && i < w->s->n; i++)
        w->s->v[i].pinned |= is_called(&w->s->v[i], name);
    return 0;
}

static int lease_entry(void *arg, const char *name, enum fs_kind kind)
{
    struct scan_walk *w = arg;
    struct fs_stat st;
    char path[CKPT_PATH_MAX];
    if (kind != FS_FILE || snprintf(path, sizeof path, CKPT_LEASE_DIR "/%s", name) >= (int)sizeof path ||
        w->fs->stat(w->fs->ctx, path, &st) < 0 || w->now_sec - st.changed_sec > SCAN_LEASE_SEC)
        return 0;
    for (size_t i = 0; i < w->s->n; i++) {
        size_t n = strlen(w->s->v[i].name);
        w->s->v[i].leased |= strncmp(w->s->v[i].name, name, n) == 0 && (name[n] == '.' || !name[n]);
    }
    return 0;
}

void scan_hold(const struct scan *s, const struct ckpt_fs *fs, const struct scan_entry *x, bool *pinned, bool *leased)
{
    struct scan_entry one = {.name = x->name, .state = x->state};
    struct scan only = {.v = &one, .n = 1};
    struct scan_walk w = {.s = &only, .fs = fs, .now_sec = s->now_sec};
    fs->list(fs->ctx, CKPT_PIN_DIR, pin_entry, &w);
    fs->list(fs->ctx, CKPT_LEASE_DIR, lease_entry, &w);
    *pinned = one.pinned;
    *leased = one.leased;
}

bool scan_is_same(const struct scan *s, const struct ckpt_fs *fs, const struct scan_entry *x, const char *path,
                  bool *other)
{
    struct checked c;
    struct el_err e = {0};
    bool whole = check_open(&c, fs, s->mem, path, &e) == 0;
    bool same = whole && c.m.created == x->created && manifest_lineage(&c.m) == x->lineage;
    check_close(&c);
    if (other)
        *other = whole && !same;
    return same;
}

/* --- a root ------------------------------------------------------------------------------------------------------- */

static int scan_by_step(const void *a, const void *b)
{
    const struct scan_entry *x = a, *y = b;
    return x->step != y->step ? (x->step < y->step ? -1 : 1) : strcmp(x->name, y->name);
}

static int scan_by_run(const void *a, const void *b)
{
    const struct scan_entry *const *x = a, *const *y = b;
    int c = strcmp((*x)->run_id, (*y)->run_id);
    return c ? c : (*x > *y) - (*x < *y);
}

/* When a job wrote it; 0: none did, or nobody knows. */
static int64_t written_sec(const struct scan_entry *x)
{
    return x->number && x->state != SCAN_ASIDE ? x->changed_sec : 0;
}

/* Which are of one run, and which of these it has gone back behind. */
static int order_runs(struct scan *s, struct el_err *e)
{
    struct scan_entry **v = el_alloc(s->mem, s->n * sizeof(struct scan_entry *));
    int64_t last = 0;
    if (!v)
        return scan_no_memory(e);
    for (size_t i = 0; i < s->n; i++)
        v[i] = &s->v[i];
    el_sort(v, s->n, sizeof *v, scan_by_run);
    for (size_t i = 0; i < s->n; i++) { /* of each run by step */
        bool same = i && strcmp(v[i]->run_id, v[i - 1]->run_id) == 0;
        int64_t at = written_sec(v[i]);
        v[i]->run = same ? v[i - 1]->run : (size_t)(v[i] - s->v);
        last = same ? last : 0;
        v[i]->behind = at && at < last;
        last = at > last ? at : last;
    }
    el_free(s->mem, v);
    return 0;
}

static void read_latest(struct scan_walk *w)
{
    char *text;
    size_t n;
    struct fs_stat st;
    w->s->marked = w->fs->stat(w->fs->ctx, CKPT_MARK_FILE, &st) == 0;
    if (fs_read_small(w->fs, CKPT_LATEST_FILE, CKPT_PATH_MAX - 1, w->s->mem, &text, &n) < 0)
        return;
    snprintf(w->s->latest, sizeof w->s->latest, "%.*s", (int)(n && text[n - 1] == '\n' ? n - 1 : n), text);
    el_free(w->s->mem, text);
}

int scan_open(struct scan *s, const struct ckpt_fs *fs, struct el_mem *mem, int64_t now_sec, struct el_err *e)
{
    *s = (struct scan){.mem = mem, .now_sec = now_sec};
    struct scan_walk w = {.s = s, .fs = fs, .now_sec = now_sec, .e = e};
    read_latest(&w);
    int r = is_hub(fs, "") ? take_hub(&w, "") : fs->list(fs->ctx, "", root_entry, &w);
    if (r < 0 && !e->status)
        return fs_fail(fs, r, "read", "", e);
    if (!r)
        r = fs->list(fs->ctx, CKPT_STAGE_DIR, stage_entry, &w);
    if (r >= 0 || !e->status)
        fs->list(fs->ctx, CKPT_ASIDE_DIR, aside_entry, &w);
    if (e->status)
        return -1;
    fs->list(fs->ctx, CKPT_PIN_DIR, pin_entry, &w);
    fs->list(fs->ctx, CKPT_LEASE_DIR, lease_entry, &w);
    el_sort(s->v, s->n, sizeof *s->v, scan_by_step);
    return order_runs(s, e);
}

void scan_close(struct scan *s)
{
    for (size_t i = 0; i < s->n; i++) {
        el_free(s->mem, s->v[i].name);
        el_free(s->mem, s->v[i].run_id);
        el_free(s->mem, s->v[i].why);
        el_free(s->mem, s->v[i].lone);
        rank_files_sets_free(&s->v[i].sets, s->mem);
        usual_files_free(&s->v[i].usual, s->mem);
    }
    el_free(s->mem, s->v);
    *s = (struct scan){0};
}

/* The highest step is not the newest checkpoint: it may be an earlier run's. */
const struct scan_entry *scan_newest(const struct scan *s)
{
    const struct scan_entry *last = NULL, *newest = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].state == SCAN_VALID && (!last || s->v[i].changed_sec >= last->changed_sec))
            last = &s->v[i];
    for (size_t i = 0; last && i < s->n; i++)
        if (s->v[i].state == SCAN_VALID && s->v[i].run == last->run && (!newest || newest->behind || !s->v[i].behind))
            newest = &s->v[i];
    return newest;
}

/* Names that say nothing: what is in the first of them does. */
enum { ASKED_MAX = 16 };

struct scan_question {
    char v[ASKED_MAX][256];
    unsigned n;
    bool known, folders;
};

static bool is_state_by_content(const struct sniff *s)
{
    return s->kind == SNIFF_SAFETENSORS || s->kind == SNIFF_OLD || (s->kind == SNIFF_ZIP && s->torch);
}

/* Of a folder with nothing else this is the weights of somebody's format, which are not there. */
static bool scan_stands_in(const struct sniff *s)
{
    return s->kind == SNIFF_POINTER || s->kind == SNIFF_ZEROS;
}

static int is_file(void *arg, const char *name, enum fs_kind kind)
{
    struct scan_question *q = arg;
    enum fmt_kind by_name = fmt_kind(name);
    q->known |= kind == FS_FILE && (fmt_is_state(by_name) || strcmp(name, CKPT_MANIFEST_FILE) == 0 ||
                                    strcmp(name, "trainer_state.json") == 0 || strncmp(name, "flat_meta.", 10) == 0);
    q->known |= kind == FS_LINK && fmt_is_state(by_name);
    q->known |= kind == FS_FILE && strcmp(name, "adapter_config.json") == 0;
    q->folders |= kind == FS_DIR;
    q->known |= kind == FS_DIR && strncmp(name, "mp_rank_", 8) == 0;
    if (kind == FS_FILE && by_name == FMT_OTHER && q->n < ASKED_MAX &&
        snprintf(q->v[q->n], sizeof q->v[0], "%s", name) < (int)sizeof q->v[0])
        q->n++;
    return 0;
}

bool scan_is_root(const struct ckpt_fs *fs, struct el_mem *mem)
{
    struct fs_stat st;
    struct scan_question q = {.n = 0};
    struct sniff s;
    (void)mem;
    if (fs->stat(fs->ctx, CKPT_MARK_FILE, &st) == 0 || fs->stat(fs->ctx, CKPT_TRACKER_FILE, &st) == 0 || is_hub(fs, ""))
        return true;
    fs->list(fs->ctx, "", is_file, &q);
    for (unsigned i = 0; i < q.n && !q.known; i++)
        q.known = inspect_sniff(fs, q.v[i], &s) == 0 && (is_state_by_content(&s) || (!q.folders && scan_stands_in(&s)));
    return !q.known;
}
