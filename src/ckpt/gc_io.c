#include "ckpt/gc.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/file_kinds.h"
#include "ckpt/hint.h"
#include "util/array.h"
#include "util/parse.h"

/* --- deleting ----------------------------------------------------------------------------------------------------- */

enum { NAMES_AT_ONCE = 64 };

struct names {
    char v[NAMES_AT_ONCE][256];
    enum fs_kind kind[NAMES_AT_ONCE];
    unsigned n;
};

static int gc_keep_name(void *arg, const char *name, enum fs_kind kind)
{
    struct names *to = arg;
    if (to->n == NAMES_AT_ONCE)
        return 1;
    to->kind[to->n] = kind;
    return snprintf(to->v[to->n++], sizeof to->v[0], "%s", name) >= (int)sizeof to->v[0] ? -ENAMETOOLONG : 0;
}

/* "path/name" in place. */
static int gc_append(char path[CKPT_PATH_MAX], size_t before, const char *name)
{
    int room = (int)(CKPT_PATH_MAX - before);
    return snprintf(path + before, (size_t)room, "/%s", name) >= room ? -ENAMETOOLONG : 0;
}

/* Files of what stands in this directory go; *down: a directory in it, or NULL.  0, 1: there may be more; or -errno. */
static int remove_files(const struct ckpt_fs *fs, char path[CKPT_PATH_MAX], struct names *names, const char **down)
{
    size_t before = strlen(path);
    *down = NULL;
    names->n = 0;
    int r = fs->list(fs->ctx, path, gc_keep_name, names);
    for (unsigned i = 0; r >= 0 && i < names->n; i++) {
        if (names->kind[i] == FS_DIR) {
            *down = names->v[i];
            continue;
        }
        int gone = gc_append(path, before, names->v[i]);
        gone = gone < 0 ? gone : fs->remove(fs->ctx, path);
        path[before] = 0;
        r = gone < 0 && gone != -ENOENT ? gone : r;
    }
    return r < 0 ? r : names->n == NAMES_AT_ONCE;
}

/* A directory is read again and again while it has entries: what is deleted must not change what is being read.  Down
 * and up again by the path alone: how deep the directories of a checkpoint are is its script's choice, and the stack of
 * the thread that deletes them is small. */
int gc_remove(const struct ckpt_fs *fs, const char *path)
{
    struct names names;
    char at[CKPT_PATH_MAX];
    if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at)
        return -ENAMETOOLONG;
    for (size_t top = strlen(at);;) {
        const char *down;
        size_t here = strlen(at);
        int r = remove_files(fs, at, &names, &down);
        if (r >= 0 && down)
            r = gc_append(at, here, down);
        else if (r == 0)
            r = fs->remove(fs->ctx, at);
        if (r < 0 && (r != -ENOENT || here == top))
            return r;
        if (down || r > 0)
            continue;
        if (here == top)
            return 0;
        *strrchr(at, '/') = 0;
    }
}

/* Out of sight at once, and for good also after a loss of power; only then its bytes.  *why: it stays after all, for it
 * was written anew since it was looked at. */
static int discard(struct gc *g, const struct scan *s, const struct scan_entry *x, const char **why, struct el_err *e)
{
    bool other = false;
    char trash[CKPT_PATH_MAX], parent[CKPT_PATH_MAX];
    const char *last = strrchr(x->name, '/');
    snprintf(parent, sizeof parent, "%.*s", last ? (int)(last - x->name) : 0, x->name);
    snprintf(trash, sizeof trash, CKPT_TRASH_DIR "/%.200s.%.32s", last ? last + 1 : x->name, g->nonce);
    int r = fs_move_into(g->fs, x->name, CKPT_TRASH_DIR, trash);
    if (r == 1)
        return 0;
    if (r >= 0 && x->state == SCAN_VALID && !scan_is_same(s, g->fs, x, trash, &other) && other &&
        g->fs->rename(g->fs->ctx, trash, x->name, false) >= 0)
        *why = "was written anew meanwhile";
    if (r >= 0)
        r = g->fs->sync_dir(g->fs->ctx, parent);
    if (r >= 0 && !*why)
        r = gc_remove(g->fs, trash);
    return r < 0 && r != -ENOENT ? fs_fail(g->fs, r, "delete", x->name, e) : 0;
}

/* What an earlier gc, or a commit, has put there and not deleted.  What comes there meanwhile is left to whoever has
 * put it there. */
static int empty_trash(struct gc *g, struct el_err *e)
{
    int r = gc_remove(g->fs, CKPT_TRASH_DIR);
    return r < 0 && r != -ENOENT && r != -ENOTEMPTY && r != -EEXIST ? fs_fail(g->fs, r, "delete", CKPT_TRASH_DIR, e)
                                                                    : 0;
}

/* --- choosing ----------------------------------------------------------------------------------------------------- */

static void gc_fill(const struct gc *g, const struct scan *s, struct retain_item *items)
{
    const struct scan_entry *newest = scan_newest(s);
    const char *run = g->run_id ? g->run_id : newest ? newest->run_id : NULL;
    for (size_t i = 0; i < s->n; i++) {
        const struct scan_entry *x = &s->v[i];
        items[i] = (struct retain_item){.step = x->step,
                                        .run = x->run,
                                        .valid = x->state == SCAN_VALID,
                                        .ours = g->foreign || (run && strcmp(x->run_id, run) == 0),
                                        .pinned = x->pinned,
                                        .leased = x->leased,
                                        .behind = x->behind};
    }
}

/* Of a history that was given up: of use to nobody once the job has come as far again. */
static const char *why_aside(const struct scan *s, const struct scan_entry *x, const struct retain_item *item)
{
    if (!item->ours)
        return "of another run";
    if (item->pinned)
        return "pinned";
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].state == SCAN_VALID && !s->v[i].behind && s->v[i].step >= x->step && s->v[i].run == x->run)
            return NULL;
    return "set aside, and its run is not as far again";
}

static const char *why_stays(const struct scan *s, const struct scan_entry *x, const struct retain_item *item)
{
    switch (x->state) {
    case SCAN_STALE: return NULL;
    case SCAN_ASIDE: return why_aside(s, x, item);
    case SCAN_STAGE: return "being written";
    case SCAN_FOREIGN: return "without a manifest";
    case SCAN_PARTIAL:
    case SCAN_DAMAGED: return "not valid";
    case SCAN_VALID: break;
    }
    return item->why;
}

/* Because of which the older ones of its run may go. */
static struct scan_entry *newest_of(struct scan *s, const struct scan_entry *x)
{
    struct scan_entry *newest = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].state == SCAN_VALID && !s->v[i].behind && s->v[i].run == x->run)
            newest = &s->v[i]; /* they are sorted by step */
    return newest;
}

/* Of one node's parts: what the job goes back to where another node has lost the newest, if that stays. */
static struct scan_entry *second_of(struct scan *s, const struct retain_item *items, const struct scan_entry *newest)
{
    struct scan_entry *second = NULL;
    for (size_t i = 0; i < s->n && &s->v[i] != newest; i++)
        if (s->v[i].state == SCAN_VALID && !s->v[i].behind && s->v[i].run == newest->run)
            second = items[i].why ? &s->v[i] : NULL;
    return newest->part ? second : NULL;
}

static int prove_once(struct gc *g, struct scan_entry *x, struct el_err *e)
{
    if (x && !x->proved && g->prove(g->ctx, x, e))
        return -1;
    if (x)
        x->proved = true;
    return 0;
}

static int prove_all(struct gc *g, struct scan *s, const struct retain_item *items, struct el_err *e)
{
    for (size_t i = 0; g->prove && i < s->n; i++) {
        const struct scan_entry *x = &s->v[i];
        if ((x->state != SCAN_VALID && x->state != SCAN_ASIDE) || why_stays(s, x, &items[i]))
            continue;
        struct scan_entry *newest = newest_of(s, x);
        assert(newest && newest != x);
        if (prove_once(g, newest, e) || prove_once(g, second_of(s, items, newest), e))
            return -1;
    }
    return 0;
}

/* --- the last one with a file that newer ones lack ---------------------------------------------------------------- */

/* It has all that x has, it stays, and it is whole, which is looked at if nobody has. */
static bool stands_for(struct gc *g, const struct file_kinds *kinds, struct scan_entry *y, const struct scan_entry *x)
{
    struct el_err e = {0};
    if (y->state != SCAN_VALID || y->step <= x->step || y->run != x->run || file_kinds_lacks(kinds, x, y))
        return false;
    if (!y->proved && !y->refused && g->prove)
        y->refused = g->prove(g->ctx, y, &e) != 0;
    y->proved = !y->refused;
    return y->proved;
}

/* A file that only earlier ones have may be one that the script no longer writes; or one that all later ones have lost.
 * What goes cannot be asked, so the last that has it stays. */
static char *why_lone(struct gc *g, struct scan *s, const struct file_kinds *kinds, const struct retain_item *items,
                      size_t i)
{
    char text[400], shown[EL_SHOW_MAX], newest[EL_SHOW_MAX];
    const struct scan_entry *x = &s->v[i], *last = newest_of(s, x);
    const struct kind *lost = last ? file_kinds_lacks(kinds, x, last) : NULL;
    if (!lost)
        return NULL;
    for (size_t k = s->n; !file_kinds_only(lost) && k-- > i + 1;) /* they are sorted by step */
        if ((items[k].why || s->v[k].lone) && stands_for(g, kinds, &s->v[k], x))
            return NULL;
    snprintf(text, sizeof text, "no newer one has all its files: %s lacks %s", el_show(last->name, newest),
             el_show(lost->name, shown));
    return el_strndup(s->mem, text, strlen(text));
}

static int keep_lone(struct gc *g, struct scan *s, struct retain_item *items, struct el_err *e)
{
    struct file_kinds kinds;
    int r = file_kinds_open(&kinds, s, g->mem, e);
    for (size_t i = s->n; !r && i-- > 0;)
        if (s->v[i].state == SCAN_VALID && !items[i].why && (s->v[i].lone = why_lone(g, s, &kinds, items, i)))
            items[i].why = s->v[i].lone;
    file_kinds_close(&kinds);
    return r;
}

/* --- hints -------------------------------------------------------------------------------------------------------- */

static const char *const hint_files[] = {CKPT_LATEST_FILE, CKPT_TRACKER_FILE};

/* What it says where it names x; "": it cannot, the tracker is for Megatron's names. */
static void hint_of(const char *file, const struct scan_entry *x, char text[CKPT_PATH_MAX])
{
    enum ckpt_layout layout;
    int64_t step;
    text[0] = 0;
    if (strcmp(file, CKPT_TRACKER_FILE) != 0)
        snprintf(text, CKPT_PATH_MAX, "%s", x->name);
    else if (ckpt_step_of(x->name, &layout, &step) && layout == CKPT_LAYOUT_MEGATRON)
        snprintf(text, CKPT_PATH_MAX, "%lld", (long long)step);
}

static int write_hint(const struct gc *g, const char *file, const struct scan_entry *newest, struct el_err *e)
{
    char text[CKPT_PATH_MAX + 1];
    hint_of(file, newest, text);
    size_t n = strlen(text);
    if (!n)
        return 0;
    text[n] = '\n';
    return g->replace(g->fs, file, g->nonce, text, n + 1, e);
}

/* A commit that was killed has made the newest, and not yet written which one that is. */
static int point_away(const struct gc *g, const struct scan_entry *x, const struct scan_entry *newest, struct el_err *e)
{
    char now[CKPT_PATH_MAX], its[CKPT_PATH_MAX];
    for (size_t i = 0; i < COUNT_OF(hint_files); i++) {
        hint_read(g->fs, hint_files[i], now);
        hint_of(hint_files[i], x, its);
        if (*its && strcmp(now, its) == 0 && write_hint(g, hint_files[i], newest, e))
            return -1;
    }
    return 0;
}

static int mend_hints(const struct gc *g, const struct scan *s, struct el_err *e)
{
    const struct scan_entry *newest = s->marked ? scan_newest(s) : NULL;
    enum ckpt_layout layout;
    for (size_t i = 0; newest && i < COUNT_OF(hint_files); i++)
        if (hint_dangles(g->fs, hint_files[i], &layout) && scan_is_same(s, g->fs, newest, newest->name, NULL) &&
            write_hint(g, hint_files[i], newest, e))
            return -1;
    return 0;
}

/* --- what jobs have done meanwhile -------------------------------------------------------------------------------- */

/* Another one stands under the name of one that x would go because of. */
static bool is_newest_gone(const struct gc *g, struct scan *s, const struct scan_entry *x)
{
    const struct scan_entry *newest = newest_of(s, x);
    for (size_t i = 0; i < s->n; i++) {
        const struct scan_entry *y = &s->v[i];
        if ((y == newest || (y->proved && y->run == x->run)) && !scan_is_same(s, g->fs, y, y->name, NULL))
            return true;
    }
    return !newest;
}

/* Since the scan the newest was read, every byte of it, which takes minutes. */
static const char *why_now(const struct gc *g, struct scan *s, const struct scan_entry *x)
{
    char latest[CKPT_PATH_MAX];
    bool pinned, leased, other;
    if (x->state != SCAN_VALID && x->state != SCAN_ASIDE)
        return NULL;
    if (is_newest_gone(g, s, x))
        return "the newest one is another meanwhile";
    scan_hold(s, g->fs, x, &pinned, &leased);
    if (pinned || leased)
        return pinned ? "pinned" : "being read";
    if (x->state == SCAN_ASIDE)
        return NULL;
    if (!scan_is_same(s, g->fs, x, x->name, &other))
        return other ? "was written anew meanwhile" : "was taken away meanwhile";
    hint_read(g->fs, CKPT_LATEST_FILE, latest);
    if (!x->latest && strcmp(latest, x->name) == 0)
        return "is the latest one meanwhile";
    return NULL;
}

/* Where there is no room to write a hint, that one stays; the others make room. */
static int gc_delete(struct gc *g, struct scan *s, const struct scan_entry *x, const char **why, struct el_err *e)
{
    struct el_err unwritten = {0};
    *why = why_now(g, s, x);
    if (!*why && x->state == SCAN_VALID && point_away(g, x, newest_of(s, x), &unwritten))
        *why = "`latest` names it, and cannot be written";
    return *why ? 0 : discard(g, s, x, why, e);
}

int gc_run(struct gc *g, struct scan *s, struct el_err *e)
{
    struct retain_item *items = el_alloc(g->mem, s->n * sizeof *items);
    int r = 0;
    if (!items)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    gc_fill(g, s, items);
    retain_choose(items, s->n, &g->rule);
    r = prove_all(g, s, items, e);
    if (!r)
        r = keep_lone(g, s, items, e);
    for (size_t i = 0; !r && i < s->n; i++) {
        const struct scan_entry *x = &s->v[i];
        const char *why = why_stays(s, x, &items[i]);
        if (!why && !g->dry_run)
            r = gc_delete(g, s, x, &why, e);
        if (r)
            break;
        g->gone += !why;
        g->kept += why != NULL;
        g->bytes += why ? 0 : x->bytes;
        if (g->each)
            g->each(g->ctx, x, why);
    }
    el_free(g->mem, items);
    r = r || g->dry_run ? r : empty_trash(g, e);
    return r || g->dry_run ? r : mend_hints(g, s, e);
}
