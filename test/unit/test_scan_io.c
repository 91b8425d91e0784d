/* Roots of checkpoints: what is listed, what gc deletes, and that neither a call that fails nor a process that is
 * killed half-way costs the newest checkpoint, or leaves half of one. Seen to fail: with files deleted in place,
 * without the rename; with errors of the directory taken for an end; with the highest step taken for the newest. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "snapshot/superseded.h"
#include "snapshot/commit.h"
#include "ckpt/gc.h"
#include "ckpt/hint.h"
#include "ckpt/lineage.h"
#include "ckpt/scan.h"
#include "ckpt/verify.h"
#include "lib/memfs.h"
#include "lib/tap.h"
#include "util/array.h"

static struct el_mem mem = EL_MEM_INIT(64u << 20);

enum { NOW = 1000 }; /* the time of every file of memfs */

static const char *epoch = "", *node = "", *content = "\2\0\0\0\0\0\0\0{}";
static enum ckpt_layout layout = CKPT_LAYOUT_ELRUN;

static void make(const struct ckpt_fs *fs, int64_t step, const char *run_id, uint64_t created, bool publish)
{
    struct commit c = {fs, &mem, layout, COMMIT_RENAME, step, 1, "n", NULL, NULL, false, false};
    struct manifest_file f = {0};
    struct manifest m = {.run_id = run_id, .epoch = epoch, .created = created, .files = &f, .files_n = 1};
    struct commit_result result;
    struct el_err e = {0};
    int r = commit_open(&c, &e) || commit_write(&c, "model.safetensors", content, 10, &f, &e);
    f.node = node;
    if (!r && publish)
        r = commit_publish(&c, &m, &result, &e);
    if (r)
        printf("# commit: %s\n", e.text);
    el_free(&mem, f.chunks);
}

/* 9, 10 and 100 of run a; 500 of an earlier run; a stage of 200. */
static struct ckpt_fs fill(struct memfs *m)
{
    memfs_init(m);
    struct ckpt_fs fs = memfs_table(m);
    make(&fs, 500, "old", 10, true);
    make(&fs, 9, "a", 20, true);
    make(&fs, 100, "a", 40, true);
    make(&fs, 10, "a", 30, true);
    make(&fs, 200, "a", 50, false);
    memfs_power_loss(m, UINT64_MAX);
    return fs;
}

static void list(struct el_buf *out, const struct scan *s)
{
    for (size_t i = 0; i < s->n; i++)
        el_buf_printf(out, "%lld %s; ", (long long)s->v[i].step, scan_state_word(s->v[i].state));
}

/* All go on from step 10 in round 7: what another node has written in that round, before this one came to it, stays. */
static void test_aside(void)
{
    static struct memfs m;
    struct ckpt_fs fs = fill(&m);
    struct el_buf out = EL_BUF_INIT(&mem, 0);
    struct el_err e = {0};
    struct scan s;
    char said[600];
    epoch = "7.ab.12";
    make(&fs, 11, "a", 60, true);
    epoch = "7.abc.1";
    make(&fs, 12, "a", 60, true);
    epoch = "";
    superseded_set_later(&fs, CKPT_LAYOUT_ELRUN, "a", 10, lineage_of_epoch("7.ab.12"), said, sizeof said);
    ok(scan_open(&s, &fs, &mem, NOW + 1, &e) == 0, e.text);
    list(&out, &s);
    is_str(el_buf_cstr(&out), "9 valid; 10 valid; 11 valid; 12 aside; 100 aside; 200 stage; 500 valid; ",
           "later steps of this run are moved, but for those of the round that goes on");
    scan_close(&s);
    superseded_set_later(&fs, CKPT_LAYOUT_ELRUN, "a", 10, 0, said, sizeof said);
    ok(strncmp(said, "step 11, ", 9) == 0, "which are when that goes back itself");
    el_buf_free(&out);
}

/* Both, as "LATEST TRACKER"; "-": it is not there. */
static const char *hints(struct memfs *m)
{
    static const char *const files[] = {CKPT_LATEST_FILE, CKPT_TRACKER_FILE};
    static char both[200];
    struct ckpt_fs fs = memfs_table(m);
    both[0] = 0;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char *text = NULL;
        size_t n = 0, at = strlen(both);
        bool there = fs_read_small(&fs, files[i], 90, &mem, &text, &n) == 0;
        snprintf(both + at, sizeof both - at, "%s%.*s", i ? " " : "", there ? (int)n - 1 : 1, there ? text : "-");
        el_free(&mem, text);
    }
    return both;
}

/* A step is there, or what names it is as it was before; and the next time brings that in order. */
static bool hints_hold(struct memfs *m)
{
    struct ckpt_fs fs = memfs_table(m);
    struct fs_stat st;
    char said[600];
    bool moved = fs.stat(m, "iter_0000012", &st) == -ENOENT;
    bool good = strcmp(hints(m), "iter_0000010 10") == 0;
    good |= strcmp(hints(m), "iter_0000012 12") == 0;
    good |= moved && strcmp(hints(m), "iter_0000010 12") == 0;
    superseded_set_later(&fs, layout, "a", 10, 0, said, sizeof said);
    return good && strcmp(hints(m), "iter_0000010 10") == 0;
}

/* Steps 11 and 12 are moved: `latest` must not name them any more. */
static void test_hints(void)
{
    static struct memfs whole, m;
    char said[600];
    struct ckpt_fs fs = fill(&whole);
    make(&fs, 12, "a", 60, true);
    fs.remove(&whole, "step-000000010/model.safetensors"); /* is not whole */
    memfs_copy(&m, &whole);
    fs = memfs_table(&m);
    superseded_set_later(&fs, layout, "a", 10, 0, said, sizeof said);
    is_str(hints(&m), "step-000000009 -", "`latest` names the newest whole step of this run that is left");
    memfs_power_loss(&m, 0);
    is_str(hints(&m), "step-000000009 -", "for good");
    superseded_set_later(&fs, layout, "a", -1, 0, said, sizeof said);
    is_str(hints(&m), "- -", "none is left: nothing names one");
    commit_replace(&fs, CKPT_LATEST_FILE, "n", "global_step7\n", 13, NULL);
    superseded_set_later(&fs, layout, "a", -1, 0, said, sizeof said);
    is_str(hints(&m), "global_step7 -", "what a framework has written there stays");
    memfs_free(&m);
    memfs_copy(&m, &whole);
    fs = memfs_table(&m);
    m.fail_call = MEMFS_RESERVE;
    m.fail_nth = 1;
    m.fail_errno = ENOSPC;
    superseded_set_later(&fs, layout, "a", 10, 0, said, sizeof said);
    ok(strstr(said, "; the hint which step is the latest names one that is not there: write "), "an error is said");
    printf("# %s\n", said);
    memfs_free(&m);
    memfs_free(&whole);

    memfs_init(&whole);
    fs = memfs_table(&whole);
    layout = CKPT_LAYOUT_MEGATRON;
    for (int64_t step = 10; step <= 12; step++)
        make(&fs, step, "a", 20, true);
    memfs_power_loss(&whole, UINT64_MAX);
    unsigned bad = 0, tried = 0;
    bool ended = false;
    for (long at = 0; !ended && at < 2000; at++)
        for (unsigned fate = 0; fate < 9; fate++, tried++) {
            memfs_copy(&m, &whole);
            m.calls = 0;
            m.stop_at = at;
            fs = memfs_table(&m);
            superseded_set_later(&fs, layout, "a", 10, 0, said, sizeof said);
            ended = m.calls < at;
            if (fate)
                memfs_power_loss(&m, fate - 1);
            else
                memfs_restart(&m);
            bad += !hints_hold(&m);
            memfs_free(&m);
        }
    printf("# %u fates\n", tried);
    ok(ended && !bad, "Megatron's tracker, too, and it may be killed at any call");
    layout = CKPT_LAYOUT_ELRUN;
    memfs_free(&whole);
}

static void test_list(void)
{
    static struct memfs m;
    struct ckpt_fs fs = fill(&m);
    struct el_buf out = EL_BUF_INIT(&mem, 0);
    struct el_err e = {0};
    struct scan s;
    ok(scan_open(&s, &fs, &mem, NOW + 1, &e) == 0, e.text);
    list(&out, &s);
    is_str(el_buf_cstr(&out), "9 valid; 10 valid; 100 valid; 200 stage; 500 valid; ", "a root");
    ok(s.marked && scan_newest(&s) && scan_newest(&s)->step == 100, "the newest is of the run that committed last");
    scan_close(&s);
    fs.remove(&m, "step-000000009/MANIFEST.json");
    memfs_flip(&m, "step-000000010/MANIFEST.json", 40);
    fs.remove(&m, "step-000000100/model.safetensors");
    out.len = 0;
    ok(scan_open(&s, &fs, &mem, NOW + SCAN_STAGE_SEC + 1, &e) == 0, e.text);
    list(&out, &s);
    is_str(el_buf_cstr(&out), "9 partial; 10 damaged; 100 partial; 200 stale-stage; 500 valid; ", "and a bad one");
    scan_close(&s);
    el_buf_free(&out);
    memfs_free(&m);
}

static int gc(const struct ckpt_fs *fs, struct el_err *e)
{
    struct scan s;
    struct gc g = {.fs = fs, .mem = &mem, .rule = {.keep_last = 1}, .nonce = "g", .replace = commit_replace};
    int r = scan_open(&s, fs, &mem, NOW + SCAN_STAGE_SEC + 1, e);
    if (!r)
        r = gc_run(&g, &s, e);
    scan_close(&s);
    return r;
}

static bool holds(struct memfs *m, const char *what)
{
    struct ckpt_fs fs = memfs_table(m);
    struct el_buf out = EL_BUF_INIT(&mem, 0);
    struct el_err e = {0};
    struct scan s;
    scan_open(&s, &fs, &mem, NOW, &e);
    list(&out, &s);
    bool same = strcmp(el_buf_cstr(&out), what) == 0;
    scan_close(&s);
    el_buf_free(&out);
    return same;
}

/* `latest` names what is there. */
static bool points(struct memfs *m)
{
    struct ckpt_fs fs = memfs_table(m);
    char text[CKPT_PATH_MAX];
    enum ckpt_layout of;
    hint_read(&fs, CKPT_LATEST_FILE, text);
    return *text && !hint_dangles(&fs, CKPT_LATEST_FILE, &of);
}

/* After any end of a gc: 100 and 500 are valid, nothing is half there, and the next gc ends what is left. */
static bool survives(struct memfs *m)
{
    struct ckpt_fs fs = memfs_table(m);
    struct el_err e = {0};
    struct fs_stat st;
    struct scan s;
    bool good = scan_open(&s, &fs, &mem, NOW, &e) == 0 && scan_newest(&s) && scan_newest(&s)->step == 100 && points(m);
    for (size_t i = 0; i < s.n; i++)
        good &= s.v[i].state == SCAN_VALID || s.v[i].state == SCAN_STAGE;
    scan_close(&s);
    return good && gc(&fs, &e) == 0 && strcmp(hints(m), "step-000000100 -") == 0 &&
           holds(m, "100 valid; 500 valid; ") && fs.stat(m, CKPT_TRASH_DIR, &st) < 0;
}

static void test_gc(void)
{
    static struct memfs whole, m;
    struct ckpt_fs fs = fill(&whole);
    struct el_err e = {0};
    unsigned bad = 0, tried = 0;
    bool ended = false;
    for (long at = 0; !ended && at < 2000; at++) {
        for (unsigned fate = 0; fate < 9; fate++) {
            memfs_copy(&m, &whole);
            m.calls = 0;
            m.stop_at = at;
            fs = memfs_table(&m);
            e = (struct el_err){0};
            gc(&fs, &e);
            ended = m.calls < at;
            if (fate)
                memfs_power_loss(&m, fate - 1);
            else
                memfs_restart(&m);
            bad += !survives(&m);
            memfs_free(&m);
            tried++;
        }
    }
    printf("# %u fates\n", tried);
    ok(ended && !bad, "gc may be killed at any call");
    static const int errors[] = {EIO, ENOENT, EACCES, EROFS};
    for (int call = 0; call < MEMFS_CALLS; call++)
        for (size_t i = 0; i < COUNT_OF(errors); i++)
            for (long nth = 1, left = 0; nth < 200 && !left; nth++) {
                memfs_copy(&m, &whole);
                m.fail_call = (enum memfs_call)call;
                m.fail_nth = nth;
                m.fail_errno = errors[i];
                fs = memfs_table(&m);
                e = (struct el_err){0};
                int r = gc(&fs, &e);
                left = m.fail_nth;
                bad += (r != 0) != (e.status != 0);
                memfs_restart(&m);
                bad += !survives(&m);
                memfs_free(&m);
            }
    is_num(bad, 0, "and any call may fail");
    memfs_free(&whole);
}

static int prove(void *ctx, const struct scan_entry *x, struct el_err *e)
{
    long long *asked = ctx;
    asked[++asked[0]] = x->step;
    return x->step == asked[3] ? el_fail(e, (enum el_exit)CKPT_DAMAGED, "no") : 0;
}

static void note_entry(void *ctx, const struct scan_entry *x, const char *why)
{
    (void)ctx;
    if (x->proved)
        ok(why && strcmp(why, "among the newest") == 0, "what was relied upon is kept");
}

/* The newest of each run that loses something is proved first; if one is not whole, nothing at all goes. */
static void test_proof(void)
{
    static struct memfs m;
    struct ckpt_fs fs = fill(&m);
    for (int bad = 1; bad >= 0; bad--) {
        long long asked[4] = {0, 0, 0, bad ? 501 : -1};
        struct el_err e = {0};
        struct scan s;
        if (bad)
            make(&fs, 501, "old", 11, true);
        struct gc g = {.fs = &fs,
                       .mem = &mem,
                       .rule = {.keep_last = 1},
                       .foreign = true,
                       .nonce = "g",
                       .prove = prove,
                       .replace = commit_replace,
                       .each = note_entry,
                       .ctx = asked};
        ok(scan_open(&s, &fs, &mem, NOW + 1, &e) == 0, e.text);
        is_num(gc_run(&g, &s, &e), bad ? -1 : 0, bad ? "one is not whole" : "both are");
        is_num((long long)asked[0], 2, "both runs are asked for, once each");
        ok(asked[1] == 100 && asked[2] == 501, "their newest");
        is_num((long long)g.gone, bad ? 0 : 3, "how many go");
        scan_close(&s);
    }
    ok(holds(&m, "100 valid; 200 stage; 501 valid; "), "what is left");
    memfs_free(&m);
}

/* --- what a job does while gc proves the newest ------------------------------------------------------------------- */

struct meanwhile {
    const struct ckpt_fs *fs;
    void (*what)(const struct ckpt_fs *fs);
    char said[600];
};

static int prove_slowly(void *ctx, const struct scan_entry *x, struct el_err *e)
{
    struct meanwhile *w = ctx;
    (void)x;
    (void)e;
    w->what(w->fs);
    return 0;
}

static void note_why(void *ctx, const struct scan_entry *x, const char *why)
{
    struct meanwhile *w = ctx;
    size_t n = strlen(w->said);
    if (!why || strcmp(why, "among the newest") != 0)
        snprintf(w->said + n, sizeof w->said - n, "%lld: %s; ", (long long)x->step, why ? why : "goes");
}

static void begin_anew(const struct ckpt_fs *fs)
{
    content = "\2\0\0\0\0\0\0\0[]";
    make(fs, 10, "a", 90, true);
    content = "\2\0\0\0\0\0\0\0{}";
}

static void same_again(const struct ckpt_fs *fs)
{
    make(fs, 10, "a", 90, true);
}

static void pin_it(const struct ckpt_fs *fs)
{
    fs->mkdir(fs->ctx, CKPT_PIN_DIR);
    commit_replace(fs, CKPT_PIN_DIR "/step-000000010", "n", "", 0, NULL);
}

static void lease_it(const struct ckpt_fs *fs)
{
    fs->mkdir(fs->ctx, CKPT_LEASE_DIR);
    commit_replace(fs, CKPT_LEASE_DIR "/step-000000010.reader", "n", "", 0, NULL);
}

static void go_back(const struct ckpt_fs *fs)
{
    char said[600];
    superseded_set_later(fs, CKPT_LAYOUT_ELRUN, "a", 20, 0, said, sizeof said);
}

static void delete_too(const struct ckpt_fs *fs)
{
    gc_remove(fs, "step-000000010");
}

/* It reads every byte, which takes minutes: what it chose before may be something else by then. */
static void test_meanwhile(void)
{
    static const struct {
        void (*what)(const struct ckpt_fs *fs);
        const char *said, *left, *latest;
    } cases[] = {
        {begin_anew, "10: was written anew meanwhile; 20: goes; ", "10 valid; 30 valid; ", "step-000000010 -"},
        {same_again, "10: is the latest one meanwhile; 20: goes; ", "10 stage; 10 valid; 30 valid; ",
         "step-000000010 -"},
        {pin_it, "10: pinned; 20: goes; ", "10 valid; 30 valid; ", "step-000000030 -"},
        {lease_it, "10: being read; 20: goes; ", "10 valid; 30 valid; ", "step-000000030 -"},
        {go_back, "10: the newest one is another meanwhile; 20: the newest one is another meanwhile; ",
         "10 valid; 20 valid; 30 aside; ", "step-000000020 -"},
        {delete_too, "10: was taken away meanwhile; 20: goes; ", "30 valid; ", "step-000000030 -"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static struct memfs m;
        struct el_err e = {0};
        struct scan s;
        memfs_init(&m);
        struct ckpt_fs fs = memfs_table(&m);
        for (int64_t step = 10; step <= 30; step += 10)
            make(&fs, step, "a", (uint64_t)step, true);
        struct meanwhile w = {&fs, cases[i].what, ""};
        struct gc g = {.fs = &fs,
                       .mem = &mem,
                       .rule = {.keep_last = 1},
                       .nonce = "g",
                       .prove = prove_slowly,
                       .replace = commit_replace,
                       .each = note_why,
                       .ctx = &w};
        int r = scan_open(&s, &fs, &mem, NOW, &e) || gc_run(&g, &s, &e);
        is_num(r, 0, e.text);
        is_str(w.said, cases[i].said, "what was chosen before the newest was read is looked at again");
        ok(holds(&m, cases[i].left), cases[i].left);
        is_str(hints(&m), cases[i].latest, "and `latest` names what is there");
        scan_close(&s);
        memfs_free(&m);
    }
}

/* A commit was killed between its checkpoint and the hints, which name the one before. */
static void test_pointing(void)
{
    static struct memfs m;
    struct el_err e = {0};
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    layout = CKPT_LAYOUT_MEGATRON;
    for (int64_t step = 40; step <= 60; step += 10)
        make(&fs, step, "a", (uint64_t)step, true);
    commit_hint(&fs, CKPT_LATEST_FILE, layout, 50, "n", NULL);
    commit_hint(&fs, CKPT_TRACKER_FILE, layout, 50, "n", NULL);
    m.fail_call = MEMFS_RESERVE;
    m.fail_nth = 1;
    m.fail_errno = ENOSPC;
    is_num(gc(&fs, &e), 0, e.text);
    ok(holds(&m, "50 valid; 60 valid; ") && strcmp(hints(&m), "iter_0000050 50") == 0,
       "what they name stays if they cannot be written, and nothing else");
    is_num(gc(&fs, &e), 0, e.text);
    ok(holds(&m, "60 valid; "), "what they name goes");
    is_str(hints(&m), "iter_0000060 60", "when they name the newest");
    commit_hint(&fs, CKPT_LATEST_FILE, layout, 40, "n", NULL);
    commit_hint(&fs, CKPT_TRACKER_FILE, layout, 40, "n", NULL);
    is_num(gc(&fs, &e), 0, e.text);
    is_str(hints(&m), "iter_0000060 60", "those that name nothing are mended");
    commit_replace(&fs, CKPT_LATEST_FILE, "n", "global_step7\n", 13, NULL);
    commit_replace(&fs, CKPT_TRACKER_FILE, "n", "release\n", 8, NULL);
    is_num(gc(&fs, &e), 0, e.text);
    is_str(hints(&m), "global_step7 release", "but what a framework has written there stays");
    layout = CKPT_LAYOUT_ELRUN;
    memfs_free(&m);
}

static int (*rename_of_memfs)(void *ctx, const char *from, const char *to, bool replace);
static bool emptied;

static int rename_raced(void *ctx, const char *from, const char *to, bool replace)
{
    struct ckpt_fs fs = memfs_table(ctx);
    if (!emptied && strncmp(to, CKPT_TRASH_DIR, strlen(CKPT_TRASH_DIR)) == 0)
        emptied = gc_remove(&fs, CKPT_TRASH_DIR) == 0;
    return rename_of_memfs(ctx, from, to, replace);
}

static int (*remove_of_memfs)(void *ctx, const char *path);

static int remove_raced(void *ctx, const char *path)
{
    struct ckpt_fs fs = memfs_table(ctx);
    if (strcmp(path, CKPT_TRASH_DIR) == 0)
        fs.mkdir(ctx, CKPT_TRASH_DIR "/step-000000007.x");
    return remove_of_memfs(ctx, path);
}

/* Another gc deletes the trash at the moment in which this one wants to move something there. */
static void test_two_gcs(void)
{
    static struct memfs m;
    struct el_err e = {0};
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    make(&fs, 10, "a", 10, true);
    make(&fs, 20, "a", 20, true);
    rename_of_memfs = fs.rename;
    fs.rename = rename_raced;
    is_num(gc(&fs, &e), 0, e.text);
    ok(emptied && holds(&m, "20 valid; "), "what is said to be deleted is");
    make(&fs, 30, "a", 30, true);
    fs = memfs_table(&m);
    remove_of_memfs = fs.remove;
    fs.remove = remove_raced;
    is_num(gc(&fs, &e), 0, e.text);
    ok(holds(&m, "30 valid; "), "nor is it wrong that a job moves something there when it has just been emptied");
    memfs_free(&m);
}

/* A job whose other node lacks the newest goes back to the one before it. */
static void test_parts(void)
{
    static struct memfs m;
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    node = "n1";
    for (int64_t step = 10; step <= 40; step += 10)
        make(&fs, step, "a", (uint64_t)step, true);
    node = "";
    for (int bad = 1; bad >= 0; bad--) {
        long long asked[4] = {0, 0, 0, bad ? 30 : -1};
        struct el_err e = {0};
        struct scan s;
        struct gc g = {.fs = &fs,
                       .mem = &mem,
                       .rule = {.keep_last = 2},
                       .nonce = "g",
                       .prove = prove,
                       .replace = commit_replace,
                       .each = note_entry,
                       .ctx = asked};
        ok(scan_open(&s, &fs, &mem, NOW, &e) == 0, e.text);
        is_num(gc_run(&g, &s, &e), bad ? -1 : 0, "of one node's parts two are proved");
        ok(asked[0] == 2 && asked[1] == 40 && asked[2] == 30, "the newest, and the one before it");
        is_num((long long)g.gone, bad ? 0 : 2, "how many go");
        scan_close(&s);
    }
    memfs_free(&m);
}

/* The script was begun anew, and writes step 10 when 50 is there: 10 is what a restart goes back to. */
static void test_behind(void)
{
    static struct memfs m;
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    struct el_err e = {0};
    epoch = "1.ab.1";
    for (int64_t step = 20; step <= 50; step += 10)
        make(&fs, step, "a", 10 + (uint64_t)step, true);
    epoch = "1.cd.1";
    make(&fs, 9, "a", 70, true);
    make(&fs, 10, "a", 80, true);
    memfs_power_loss(&m, UINT64_MAX);
    is_num(gc(&fs, &e), 0, e.text);
    ok(holds(&m, "10 valid; 20 valid; 30 valid; 40 valid; 50 valid; "),
       "a higher step that was written before it does not cost the newest one");
    ok(strcmp(hints(&m), "step-000000010 -") == 0, "which `latest` names");
    fs.remove(&m, "step-000000010/model.safetensors");
    make(&fs, 8, "a", 75, true);
    is_num(gc(&fs, &e), 0, e.text);
    ok(holds(&m, "8 valid; 10 partial; 20 valid; 30 valid; 40 valid; 50 valid; "),
       "nor one that is not whole any more");
    make(&fs, 60, "a", 90, true);
    is_num(gc(&fs, &e), 0, e.text);
    ok(holds(&m, "10 partial; 60 valid; "), "when the job is as far again they go");
    epoch = "";
    memfs_free(&m);
}

/* verify, when any call fails: a verdict or an error, never a crash, and never "valid". */
static void test_verify(void)
{
    static struct memfs m;
    struct ckpt_fs fs = fill(&m);
    unsigned bad = 0, tried = 0;
    static const int errors[] = {EIO, ENOENT, EACCES};
    for (int call = 0; call < MEMFS_CALLS; call++)
        for (size_t i = 0; i < COUNT_OF(errors); i++)
            for (long nth = 1, left = 0; nth < 100 && !left; nth++, tried++) {
                struct verify v = {.mem = &mem, .deep = true, .threads = 1};
                struct el_err e = {0};
                struct inspect l;
                memfs_restart(&m);
                m.fail_call = (enum memfs_call)call;
                m.fail_nth = nth;
                m.fail_errno = errors[i];
                int r = inspect_open(&l, &fs, &mem, "step-000000100", NULL, &e);
                if (!r)
                    r = verify_dir(&v, &l, &e);
                left = m.fail_nth;
                /* The manifest may seem to be gone while names are gathered, and be there when it is read. */
                bool spared = call == MEMFS_STAT && errors[i] == ENOENT && nth == 2;
                bool wrong = r ? !e.status : !left && !v.verdict && !l.why.status && !spared;
                if (wrong)
                    printf("# call %d, the %ld. of its kind, errno %d: not noticed\n", call, nth, errors[i]);
                bad += wrong;
                verify_free(&v);
                inspect_close(&l);
            }
    printf("# %u errors\n", tried);
    is_num(bad, 0, "verify, with calls that fail");
    memfs_free(&m);
}

static void *remove_in_thread(void *fs)
{
    return (void *)(intptr_t)gc_remove(fs, "a");
}

/* Links and directories in what is deleted; a directory that vanishes meanwhile is no error. */
static void test_remove(void)
{
    static struct memfs m;
    char name[120];
    struct fs_stat st;
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    fs.mkdir(&m, "a");
    fs.mkdir(&m, "a/b");
    for (int i = 0; i < 150; i++) { /* more than are read at once */
        snprintf(name, sizeof name, "a/b/%d", i);
        fs.close(&m, fs.create(&m, name));
    }
    is_num(gc_remove(&fs, "a"), 0, "150 files in two directories");
    is_num(fs.stat(&m, "a", &st), -ENOENT, "are gone");
    is_num(gc_remove(&fs, "a"), -ENOENT, "what is not there");
    memfs_free(&m);
    memfs_init(&m);
    fs = memfs_table(&m);
    char deep[100] = "a";
    for (int i = 0; i < 40; i++) { /* as deep as the name of a file of Megatron's layout may lie */
        fs.mkdir(&m, deep);
        snprintf(name, sizeof name, "%s/f", deep);
        fs.close(&m, fs.create(&m, name));
        strcat(deep, "/d");
    }
    pthread_t small;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64u << 10);
    void *result = NULL;
    pthread_create(&small, &attr, remove_in_thread, &fs);
    pthread_join(small, &result);
    pthread_attr_destroy(&attr);
    is_num((long long)(intptr_t)result, 0, "40 directories in each other, by a thread with a small stack");
    is_num(fs.stat(&m, "a", &st), -ENOENT, "are gone, too");
    memfs_free(&m);
}

int main(void)
{
    test_list();
    test_aside();
    test_hints();
    test_gc();
    test_proof();
    test_meanwhile();
    test_pointing();
    test_two_gcs();
    test_parts();
    test_behind();
    test_verify();
    test_remove();
    is_num(mem.used_bytes, 0, "no memory is left");
    return done();
}
