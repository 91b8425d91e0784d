#include "ckpt/aside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "ckpt/check.h"

#define ASIDE_MEMORY ((size_t)1 << 30) /* a manifest may be large */

int aside_move(const struct ckpt_fs *fs, const char *path, const char *dir, char to[CKPT_PATH_MAX], struct el_err *e)
{
    uint64_t chance = 0;
    const char *slash = strrchr(path, '/');
    ssize_t got = getrandom(&chance, sizeof chance, 0);
    (void)got; /* it only has to be a name that is not there */
    snprintf(to, CKPT_PATH_MAX, "%s/%.200s.%016" PRIx64, dir, slash ? slash + 1 : path, chance);
    int r = fs->rename(fs->ctx, path, to, false);
    if (r == -ENOENT) {
        struct fs_stat st;
        if (fs->stat(fs->ctx, path, &st) == -ENOENT)
            return to[0] = 0;
        r = fs->mkdir(fs->ctx, dir);
        r = r < 0 && r != -EEXIST ? r : fs->rename(fs->ctx, path, to, false);
    }
    if (r >= 0)
        r = fs->sync_dir(fs->ctx, dir);
    if (r >= 0)
        r = fs->sync_dir(fs->ctx, "");
    return r < 0 ? fs_fail(fs, r, "move away", path, e) : 0;
}

int aside_set(const struct ckpt_fs *fs, const char *path, struct el_err *e)
{
    char aside[CKPT_PATH_MAX];
    return aside_move(fs, path, CKPT_ASIDE_DIR, aside, e);
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
    struct el_mem mem = EL_MEM_INIT(ASIDE_MEMORY);
    struct el_err e = {0};
    struct checked c;
    bool gone = check_open(&c, fs, &mem, name, &e) == 0 && strcmp(c.m.run_id, run_id) == 0 &&
                (!lineage || manifest_lineage(&c.m) != lineage);
    check_close(&c);
    return gone;
}

/* What cannot be moved is in nobody's way before that step is written again, and is moved then, or that fails. */
void aside_set_later(const struct ckpt_fs *fs, enum ckpt_layout layout, const char *run_id, int64_t step,
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
        if (aside_set(fs, name, &e))
            break;
        last = l.lowest;
        first = first < 0 ? last : first;
    }
    char steps[80] = "";
    if (first >= 0)
        snprintf(steps, sizeof steps, first < last ? "steps %lld to %lld" : "step %lld", (long long)first,
                 (long long)last);
    *said = 0;
    if (*steps)
        snprintf(said, size,
                 "%s, later than what all nodes go on from, moved to %.300s/" CKPT_ASIDE_DIR
                 ", not deleted: `elrun ckpt gc` does that when the job is as far again%s",
                 steps, fs->name, e.status ? "; " : "");
    size_t n = strlen(said);
    if (e.status)
        snprintf(said + n, size - n, "a later step that was given up stands there still: %.400s", e.text);
}
