#include "snapshot/superseded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "ckpt/check.h"
#include "ckpt/hint.h"
#include "snapshot/commit.h"
#include "util/parse.h"

#define HINT_TRIES        5
#define SUPERSEDED_MEMORY ((size_t)1 << 30) /* a manifest may be large */

int superseded_move(const struct ckpt_fs *fs, const char *path, const char *dir, char to[CKPT_PATH_MAX],
                    struct el_err *e)
{
    uint64_t chance = 0;
    const char *slash = strrchr(path, '/');
    ssize_t got = getrandom(&chance, sizeof chance, 0);
    (void)got; /* it only has to be a name that is not there */
    snprintf(to, CKPT_PATH_MAX, "%s/%.200s.%016" PRIx64, dir, slash ? slash + 1 : path, chance);
    int r = fs_move_into(fs, path, dir, to);
    if (r == 1)
        return to[0] = 0;
    if (r >= 0)
        r = fs->sync_dir(fs->ctx, dir);
    if (r >= 0)
        r = fs->sync_dir(fs->ctx, "");
    return r < 0 ? fs_fail(fs, r, "move away", path, e) : 0;
}

int superseded_set(const struct ckpt_fs *fs, const char *path, struct el_err *e)
{
    char aside[CKPT_PATH_MAX];
    return superseded_move(fs, path, CKPT_ASIDE_DIR, aside, e);
}

struct later {
    enum ckpt_layout layout;
    int64_t beyond, lowest;
};

static int note_later(void *arg, const char *name, enum fs_kind kind)
{
    struct later *l = arg;
    enum ckpt_layout layout;
    int64_t step;
    if (kind == FS_DIR && ckpt_step_of(name, &layout, &step) && layout == l->layout && step > l->beyond)
        l->lowest = l->lowest < 0 || step < l->lowest ? step : l->lowest;
    return 0;
}

/* What has no manifest is offered to nobody: perhaps a framework has written it, as Megatron does. */
static bool is_given_up(const struct ckpt_fs *fs, const char *name, const char *run_id, uint64_t lineage)
{
    struct el_mem mem = EL_MEM_INIT(SUPERSEDED_MEMORY);
    struct el_err e = {0};
    struct checked c;
    bool gone = check_open(&c, fs, &mem, name, &e) == 0 && strcmp(c.m.run_id, run_id) == 0 &&
                (!lineage || manifest_lineage(&c.m) != lineage);
    check_close(&c);
    return gone;
}

/* --- the hints ---------------------------------------------------------------------------------------------------- */

struct below {
    enum ckpt_layout layout;
    int64_t before, highest;
};

static int note_below(void *arg, const char *name, enum fs_kind kind)
{
    struct below *b = arg;
    enum ckpt_layout layout;
    int64_t step;
    if (kind == FS_DIR && ckpt_step_of(name, &layout, &step) && layout == b->layout && step < b->before)
        b->highest = step > b->highest ? step : b->highest;
    return 0;
}

static bool superseded_is_whole(const struct ckpt_fs *fs, const char *name, int64_t step, const char *run_id)
{
    struct el_mem mem = EL_MEM_INIT(SUPERSEDED_MEMORY);
    struct el_err e = {0};
    struct checked c;
    bool whole = check_open(&c, fs, &mem, name, &e) == 0 && c.m.step == step && strcmp(c.m.run_id, run_id) == 0 &&
                 check_sizes(fs, name, &c.m, &e) == 0;
    check_close(&c);
    return whole;
}

/* 0: *newest is the newest whole step of this run, -1: there is none.  -1: nobody knows. */
static int find_newest(const struct ckpt_fs *fs, enum ckpt_layout layout, const char *run_id, int64_t *newest,
                       struct el_err *e)
{
    for (struct below b = {layout, INT64_MAX, -1};; b.before = b.highest, b.highest = -1) {
        char name[CKPT_PATH_MAX];
        int r = fs->list(fs->ctx, "", note_below, &b);
        if (r < 0)
            return fs_fail(fs, r, "read", "", e);
        *newest = b.highest;
        if (b.highest < 0)
            return 0;
        ckpt_step_name(layout, b.highest, name);
        if (superseded_is_whole(fs, name, b.highest, run_id))
            return 0;
    }
}

static int remove_hint(const struct ckpt_fs *fs, const char *file, struct el_err *e)
{
    int r = fs->remove(fs->ctx, file);
    r = r < 0 && r != -ENOENT ? r : fs->sync_dir(fs->ctx, "");
    return r < 0 ? fs_fail(fs, r, "remove", file, e) : 0;
}

/* Another node may publish a step meanwhile, and point to it before this one has pointed to what was there: so it looks
 * again behind that.  Whoever publishes later points later, too. */
static int mend_hint(const struct ckpt_fs *fs, const char *file, enum ckpt_layout layout, const char *run_id,
                     struct el_err *e)
{
    int64_t newest, named = -1;
    enum ckpt_layout of;
    if (!hint_dangles(fs, file, &of) || of != layout)
        return 0;
    for (int tries = 0; tries < HINT_TRIES; tries++, named = newest) {
        char nonce[CKPT_NONCE_MAX];
        uint64_t chance = 0;
        ssize_t got = getrandom(&chance, sizeof chance, 0);
        (void)got;
        snprintf(nonce, sizeof nonce, "%016" PRIx64, chance);
        if (find_newest(fs, layout, run_id, &newest, e))
            return -1;
        if (tries && newest == named)
            break;
        if (newest < 0 ? remove_hint(fs, file, e) : commit_hint(fs, file, layout, newest, nonce, e))
            return -1;
    }
    return 0;
}

/* --- what is later ------------------------------------------------------------------------------------------------ */

static void say_moved(const struct ckpt_fs *fs, int64_t first, int64_t last, const struct el_err *e, char *said,
                      size_t size)
{
    char steps[80] = "";
    if (first >= 0)
        snprintf(steps, sizeof steps, first < last ? "steps %lld to %lld" : "step %lld", (long long)first,
                 (long long)last);
    *said = 0;
    if (*steps)
        snprintf(said, size,
                 "%s, later than what all nodes go on from, moved to %.300s/" CKPT_ASIDE_DIR
                 ", not deleted: `elrun ckpt gc` does that when the job is as far again%s",
                 steps, fs->name, e->status ? "; " : "");
    size_t n = strlen(said);
    if (e->status)
        snprintf(said + n, size - n, "a later step that was given up stands there still: %.400s", e->text);
}

/* What cannot be moved is in nobody's way before that step is written again, and is moved then, or that fails. */
void superseded_set_later(const struct ckpt_fs *fs, enum ckpt_layout layout, const char *run_id, int64_t step,
                          uint64_t lineage, char *said, size_t size)
{
    struct el_err e = {0};
    int64_t first = -1, last = -1;
    for (struct later l = {layout, step, -1};; l.beyond = l.lowest, l.lowest = -1) {
        char name[CKPT_PATH_MAX];
        if (fs->list(fs->ctx, "", note_later, &l) < 0 || l.lowest < 0)
            break;
        ckpt_step_name(layout, l.lowest, name);
        if (!is_given_up(fs, name, run_id, lineage))
            continue;
        if (superseded_set(fs, name, &e))
            break;
        last = l.lowest;
        first = first < 0 ? last : first;
    }
    say_moved(fs, first, last, &e, said, size);
    struct el_err hint = {0};
    size_t n = strlen(said);
    if (mend_hint(fs, CKPT_LATEST_FILE, layout, run_id, &hint) ||
        (layout == CKPT_LAYOUT_MEGATRON && mend_hint(fs, CKPT_TRACKER_FILE, layout, run_id, &hint)))
        snprintf(said + n, size - n,
                 "%sthe hint which step is the latest names one that is not there: %.400s "
                 "(`elrun ckpt verify --repair-latest` mends that)",
                 n ? "; " : "", hint.text);
}
