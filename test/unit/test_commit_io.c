/* The commit of a checkpoint, stopped at every call, with the process killed and with the power lost: afterwards there
 * is the old checkpoint or the new one, whole, and the next commit works.
 * Seen to fail: without the sync of a file, of the stage, of the manifest, of the root; with `latest` before the
 * rename; with a second try that trusts the file whose sync failed; with a step that is there already left as it is. */
#include <errno.h>
#include <stdlib.h>

#include "ckpt/check.h"
#include "ckpt/gc.h"
#include "snapshot/commit.h"
#include "lib/memfs.h"
#include "lib/tap.h"
#include "util/array.h"
#include "util/rng.h"

static struct el_mem mem = EL_MEM_INIT(64u << 20);

struct story {
    enum ckpt_layout layout;
    enum commit_mode mode;
    int writers;
    bool apart; /* of several nodes: the stage is that of one order, and the next to write is another one */
};

static char content[3][5000];
static const char *run_id = "job";
static bool local;
static uint64_t lineage;

/* All of it, as coordinator and writers do it one after another. */
static int commit(const struct ckpt_fs *fs, const struct story *s, int64_t step, const char *nonce,
                  struct commit_result *result, struct el_err *e)
{
    static const char *const names[] = {"shard-00001-model-00001-of-00003.safetensors", "mp_rank_00/a.pt", "empty"};
    struct commit c = {fs, &mem, s->layout, s->mode, step, 7, nonce, NULL, NULL, s->apart, local};
    struct manifest_file files[3] = {0};
    struct manifest_part parts[3] = {{"dense", "fsdp0", 0}, {"dense", "fsdp1", 1}, {"experts", "ep0", 2}};
    struct manifest m = {
        .run_id = run_id, .epoch = "7.ab.1", .lineage = lineage, .world = 4, .files = files, .parts = parts};
    int r = s->apart ? 0 : commit_open(&c, e); /* several nodes: whoever comes first makes it */
    for (int i = 0; !r && i < s->writers; i++) {
        size_t n = i == 2 ? 0 : sizeof content[i] - (size_t)i;
        memset(content[i], (int)step, sizeof content[i]);
        r = commit_join(&c, e);
        if (!r)
            r = commit_write(&c, names[i], content[i], n, &files[i], e);
        m.files_n += !r;
    }
    m.parts_n = m.files_n;
    if (!r)
        r = commit_publish(&c, &m, result, e);
    for (int i = 0; i < 3; i++)
        el_free(&mem, files[i].chunks);
    return r;
}

struct found {
    const struct ckpt_fs *fs;
    int64_t newest;
    unsigned broken;
    bool marker;
};

/* Each checkpoint that seems to be one is whole, byte by byte. */
static int look_at(void *arg, const char *name, enum fs_kind kind)
{
    struct found *f = arg;
    enum ckpt_layout layout;
    int64_t step;
    struct checked c;
    struct el_err e = {0};
    size_t bad;
    if (kind != FS_DIR || !ckpt_step_of(name, &layout, &step))
        return 0;
    if (check_is_valid(f->fs, &mem, name, step, NULL)) {
        check_open(&c, f->fs, &mem, name, &e);
        for (size_t i = 0; i < c.m.files_n; i++)
            f->broken += check_chunks(f->fs, name, &c.m.files[i], 0, c.m.files[i].chunks_n, &mem, &bad, NULL, &e) != 0;
        f->newest = step > f->newest ? step : f->newest;
        check_close(&c);
    } else {
        f->broken += !f->marker; /* there it is what a commit leaves that was given up */
    }
    return 0;
}

static struct found look(struct memfs *m, const struct story *s)
{
    struct ckpt_fs fs = memfs_table(m);
    struct found f = {.fs = &fs, .newest = -1, .marker = s->mode == COMMIT_MARKER};
    f.broken += fs.list(fs.ctx, "", look_at, &f) != 0;
    f.fs = NULL;
    return f;
}

/* `latest` is a hint: missing, or the name of a checkpoint that is there. */
static bool latest_holds(struct memfs *m)
{
    struct ckpt_fs fs = memfs_table(m);
    char *text;
    size_t n;
    int r = fs_read_small(&fs, CKPT_LATEST_FILE, 100, &mem, &text, &n);
    if (r < 0)
        return r == -ENOENT;
    bool holds = n && text[n - 1] == '\n';
    if (holds) {
        text[n - 1] = 0;
        holds = check_is_valid(&fs, &mem, text, -1, NULL);
    }
    el_free(&mem, text);
    return holds;
}

/* What is left after one fate: 100 or 200 and nothing broken; and the step can be committed (again). */
static bool survives(struct memfs *m, const struct story *s, bool published)
{
    struct found f = look(m, s);
    struct ckpt_fs fs = memfs_table(m);
    struct commit_result result;
    struct el_err e = {0};
    bool good = !f.broken && (f.newest == 200 || (f.newest == 100 && !published)) && latest_holds(m);
    if (!good)
        printf("# newest %lld, %u broken, latest %d\n", (long long)f.newest, f.broken, latest_holds(m));
    int r = commit(&fs, s, 300, "third", &result, &e);
    if (r || look(m, s).newest != 300) {
        printf("# the next commit: %s\n", e.text);
        good = false;
    }
    return good;
}

/* What holds of what is left; published: the commit had come to its end. */
typedef bool fate(struct memfs *m, const struct story *s, bool published);

static void fates(const struct memfs *stopped, const struct story *s, fate *good, bool published, unsigned *tried,
                  unsigned *bad)
{
    static struct memfs copy;
    struct el_rng rng = {stopped->log_n};
    unsigned open = memfs_unsynced(stopped), n = open < 9 ? 1u << open : 512;
    memfs_copy(&copy, stopped);
    memfs_restart(&copy);
    *bad += !good(&copy, s, published);
    memfs_free(&copy);
    for (unsigned i = 0; i < n; i++) {
        memfs_copy(&copy, stopped);
        memfs_power_loss(&copy, open < 9 ? i : el_rng_next(&rng));
        *bad += !good(&copy, s, published);
        memfs_free(&copy);
    }
    *tried += n + 1;
}

/* Step 200 is committed over `old`, and stopped at each of its calls. */
static void stop_everywhere(struct memfs *old, const struct story *s, fate *good, const char *name)
{
    static struct memfs m;
    struct commit_result result;
    unsigned tried = 0, bad = 0;
    bool ended = false;
    memfs_power_loss(old, 0);
    for (long at = 0; !ended && at < 1000; at++) {
        struct el_err e = {0};
        memfs_copy(&m, old);
        m.calls = 0;
        m.stop_at = at;
        struct ckpt_fs fs = memfs_table(&m);
        bool published = commit(&fs, s, 200, "stopped", &result, &e) == 0;
        ended = m.calls < at; /* it came to its end before */
        fates(&m, s, good, published, &tried, &bad);
        memfs_free(&m);
    }
    printf("# %s: %u fates\n", name, tried);
    ok(ended && bad == 0 && tried > 50, name);
}

static void test_every_call(const struct story *s, const char *name)
{
    static struct memfs old;
    struct commit_result result;
    struct el_err e = {0};
    memfs_init(&old);
    struct ckpt_fs fs = memfs_table(&old);
    ok(commit(&fs, s, 100, "first", &result, &e) == 0, e.text);
    memfs_power_loss(&old, 0);
    is_num(look(&old, s).newest, 100, "the first commit is on the disk when it returns");
    stop_everywhere(&old, s, survives, name);
    memfs_free(&old);
}

/* One call fails: the commit fails with a reason or goes on, and what is there is whole. */
static void test_every_error(const struct story *s, const char *name)
{
    static const int errors[] = {EIO, ENOSPC, EROFS, EACCES};
    static struct memfs m;
    unsigned bad = 0, tried = 0;
    for (int call = 0; call < MEMFS_CALLS; call++)
        for (size_t i = 0; i < COUNT_OF(errors); i++)
            for (long nth = 1; nth < 40; nth++) {
                struct commit_result result;
                struct el_err e = {0};
                memfs_init(&m);
                struct ckpt_fs fs = memfs_table(&m);
                bad += commit(&fs, s, 100, "first", &result, &e) != 0;
                m.fail_call = (enum memfs_call)call;
                m.fail_nth = nth;
                m.fail_errno = errors[i];
                int r = commit(&fs, s, 200, "second", &result, &e);
                long left = m.fail_nth;
                bad += (r != 0) != (e.status != 0);
                memfs_power_loss(&m, 0);
                bad += !survives(&m, s, r == 0);
                memfs_free(&m);
                tried++;
                if (left) /* it has not so many calls of this kind */
                    break;
            }
    printf("# %s: %u errors\n", name, tried);
    ok(bad == 0 && tried > 50, name);
}

static void test_sync_error(void)
{
    static struct memfs m;
    const struct story s = {CKPT_LAYOUT_ELRUN, COMMIT_RENAME, 1, false};
    for (int errors = 1; errors <= 2; errors++) {
        struct commit_result result;
        struct manifest_file f = {0};
        struct el_err e = {0};
        memfs_init(&m);
        struct ckpt_fs fs = memfs_table(&m);
        struct commit c = {&fs, &mem, s.layout, s.mode, 5, 1, "n", NULL, NULL, false, false};
        commit_open(&c, &e);
        m.fail_call = MEMFS_SYNC;
        m.fail_nth = 1;
        m.fail_errno = EIO;
        memset(content[0], 5, sizeof content[0]);
        int r = commit_write(&c, "f", content[0], sizeof content[0], &f, &e);
        if (errors == 1) {
            struct manifest list = {.files = &f, .files_n = 1};
            is_num(r, 0, "a sync that fails once");
            is_num(commit_publish(&c, &list, &result, &e), 0, "is published");
            memfs_power_loss(&m, 0);
            is_num(look(&m, &s).newest, 5, "and is on the disk");
            is_num(look(&m, &s).broken, 0, "whole, since it was written anew");
        }
        el_free(&mem, f.chunks);
        memfs_free(&m);
    }
}

/* The same bytes of another history: of several roots all must have the one that was written last. */
static void test_lineage(void)
{
    static struct memfs m;
    const struct story s = {CKPT_LAYOUT_ELRUN, COMMIT_RENAME, 2, true};
    struct commit_result result;
    struct el_err e = {0};
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    lineage = 1;
    is_num(commit(&fs, &s, 5, "a", &result, &e), 0, "a step");
    lineage = 2;
    is_num(commit(&fs, &s, 5, "b", &result, &e) || !result.existed, 0, "one root: the same bytes stay");
    local = true;
    is_num(commit(&fs, &s, 5, "c", &result, &e) || result.existed, 0, "a root for each node: they are replaced,");
    ok(strstr(result.replaced.text, "before the job went back"), result.replaced.text);
    is_num(commit(&fs, &s, 5, "d", &result, &e) || !result.existed, 0, "unless they are of that history");
    local = false;
    lineage = 0;
    memfs_free(&m);
}

static int no_sync(void *ctx, int file)
{
    (void)ctx;
    (void)file;
    return -EIO;
}

static int no_room(void *ctx, int file, uint64_t bytes)
{
    (void)ctx;
    (void)file;
    (void)bytes;
    return -ENOSPC;
}

/* What people read. */
static void test_messages(void)
{
    static struct memfs m;
    struct manifest_file f = {0};
    struct el_err e = {0};
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    struct commit c = {&fs, &mem, CKPT_LAYOUT_ELRUN, COMMIT_RENAME, 5, 1, "n", NULL, NULL, false, false};
    is_num(commit_open(&c, &e), 0, "open");
    fs.sync = no_sync;
    ok(commit_write(&c, "f", "x", 1, &f, &e) == -1, "a sync that fails twice");
    is_str(e.text, "write memory/.stage/step-000000005.r1.n/f: Input/output error", "says so");
    e = (struct el_err){0};
    fs = memfs_table(&m);
    fs.reserve = no_room;
    ok(commit_write(&c, "f", "x", 1, &f, &e) == -1, "no space");
    is_str(e.text,
           "write memory/.stage/step-000000005.r1.n/f: No space left on device (1 bytes are needed; older checkpoints "
           "are untouched; `elrun ckpt gc` makes room)",
           "says what to do");
    struct fs_stat st;
    is_num(fs.stat(fs.ctx, ".stage/step-000000005.r1.n/f", &st), -ENOENT, "and takes no space");
    static const char *const names[] = {"",   "/etc/passwd", "../x", "a/../b", "a//b",
                                        "a/", ".",           "a\nb", "\xff",   "MANIFEST.json"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        e = (struct el_err){0};
        ok(commit_write(&c, names[i], "x", 1, &f, &e) == -1 && e.status == EL_EXIT_NOPERM, e.text);
    }
    memfs_free(&m);
}

/* What a step that is reached a second time leaves, a bit of its first checkpoint being flipped: the older one is
 * whole, and this one is as damaged as it was, or missing, or whole. */
static bool is_no_worse(struct memfs *m, const struct story *s, bool published)
{
    struct ckpt_fs fs = memfs_table(m);
    struct found f = {.fs = &fs, .newest = -1};
    struct commit_result result;
    struct el_err e = {0};
    bool good = look_at(&f, "step-000000100", FS_DIR) == 0 && f.newest == 100 && !f.broken;
    f = look(m, s);
    good = good && (!published || (f.newest == 200 && !f.broken));
    return good && commit(&fs, s, 300, "fourth", &result, &e) == 0;
}

static void test_again(void)
{
    static struct memfs old;
    const struct story s = {CKPT_LAYOUT_ELRUN, COMMIT_RENAME, 2, false};
    struct commit_result result;
    struct el_err e = {0};
    memfs_init(&old);
    struct ckpt_fs fs = memfs_table(&old);
    is_num(commit(&fs, &s, 100, "first", &result, &e) || commit(&fs, &s, 200, "second", &result, &e), 0, "two steps");
    memfs_flip(&old, "step-000000200/mp_rank_00/a.pt", 17);
    is_num(look(&old, &s).broken, 1, "a bit of the newer one is flipped");
    stop_everywhere(&old, &s, is_no_worse, "a step that is reached again, over one with a flipped bit");
    memfs_free(&old);
}

/* Two coordinators: the second finds the step committed and accepts it, if it is the same; else its own stands. */
static void test_two(void)
{
    static struct memfs m;
    const struct story s = {CKPT_LAYOUT_ELRUN, COMMIT_RENAME, 2, false};
    struct commit_result result;
    struct el_err e = {0};
    struct fs_stat st;
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    is_num(commit(&fs, &s, 9, "one", &result, &e), 0, "the first");
    ok(!result.existed && !result.latest.status, "makes it");
    is_num(commit(&fs, &s, 9, "two", &result, &e), 0, "the second");
    ok(result.existed, "finds it");
    is_num(commit(&fs, &(struct story){s.layout, s.mode, 1, false}, 9, "three", &result, &e), 0,
           "one with other files");
    ok(!result.existed && look(&m, &s).newest == 9, "takes its place");
    fs.remove(fs.ctx, "step-000000009/MANIFEST.json");
    is_num(commit(&fs, &s, 9, "four", &result, &e), 0, "what is no checkpoint is in nobody's way");
    ok(!result.existed && look(&m, &s).newest == 9 && !look(&m, &s).broken, "it is one now");
    run_id = "another";
    ok(commit(&fs, &s, 9, "five", &result, &e) == -1 && strstr(e.text, "of another job, run id job"), e.text);
    ok(!result.existed && look(&m, &s).newest == 9 && !look(&m, &s).broken, "and stays as it is");
    run_id = "job";
    memfs_free(&m);
    memfs_init(&m);
    fs = memfs_table(&m);
    e = (struct el_err){0};
    fs.mkdir(&m, "iter_0000009");
    fs.close(&m, fs.create(&m, "iter_0000009/model.pt"));
    ok(commit(&fs, &(struct story){CKPT_LAYOUT_MEGATRON, COMMIT_RENAME, 2, false}, 9, "one", &result, &e) == -1 &&
           strstr(e.text, "not replaced: there is no MANIFEST.json"),
       e.text);
    ok(fs.stat(&m, "iter_0000009/model.pt", &st) == 0, "what Megatron has saved itself is left alone");
    memfs_free(&m);
    memfs_init(&m);
    fs = memfs_table(&m);
    e = (struct el_err){0};
    static const char mark[] = "{\"format\":\"elrun-ckpt\",\"version\":2}\n";
    commit_replace(&fs, CKPT_MARK_FILE, "n", mark, sizeof mark - 1, &e);
    ok(commit(&fs, &s, 9, "one", &result, &e) == -1 && strstr(e.text, "another version"), e.text);
    memfs_free(&m);
}

/* What gc does right before a step that is in the way is renamed into the trash. */
static const char *raced;
static int (*rename_of_memfs)(void *ctx, const char *from, const char *to, bool replace);

static int rename_raced(void *ctx, const char *from, const char *to, bool replace)
{
    struct ckpt_fs fs = memfs_table(ctx);
    if (raced && strncmp(to, CKPT_TRASH_DIR, strlen(CKPT_TRASH_DIR)) == 0) {
        gc_remove(&fs, raced);
        raced = NULL;
    }
    return rename_of_memfs(ctx, from, to, replace);
}

/* A gc that runs at the same time deletes it, or the trash with all that is in it. */
static void test_raced(void)
{
    static const char *const gone[] = {"step-000000009", CKPT_TRASH_DIR};
    const struct story s = {CKPT_LAYOUT_ELRUN, COMMIT_RENAME, 2, false};
    for (size_t i = 0; i < COUNT_OF(gone); i++) {
        static struct memfs m;
        struct commit_result result;
        struct el_err e = {0};
        memfs_init(&m);
        struct ckpt_fs fs = memfs_table(&m);
        is_num(commit(&fs, &(struct story){s.layout, s.mode, 1, false}, 9, "one", &result, &e), 0, "a step");
        rename_of_memfs = fs.rename;
        fs.rename = rename_raced;
        raced = gone[i];
        is_num(commit(&fs, &s, 9, "two", &result, &e), 0, e.text);
        ok(!raced && look(&m, &s).newest == 9 && !look(&m, &s).broken, "it is written although that goes meanwhile");
        memfs_free(&m);
    }
}

static void test_megatron(void)
{
    static struct memfs m;
    const struct story s = {CKPT_LAYOUT_MEGATRON, COMMIT_RENAME, 3, false};
    struct commit_result result;
    struct el_err e = {0};
    char *text;
    size_t n;
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    is_num(commit(&fs, &s, 1200, "one", &result, &e), 0, "Megatron's layout");
    ok(check_is_valid(&fs, &mem, "iter_0001200", 1200, &e), e.text);
    ok(fs_read_small(&fs, CKPT_TRACKER_FILE, 100, &mem, &text, &n) == 0 && strcmp(text, "1200\n") == 0, "its tracker");
    el_free(&mem, text);
    memfs_free(&m);
}

int main(void)
{
    const struct story stories[] = {
        {CKPT_LAYOUT_ELRUN, COMMIT_RENAME, 1, false}, {CKPT_LAYOUT_ELRUN, COMMIT_RENAME, 3, false},
        {CKPT_LAYOUT_ELRUN, COMMIT_MARKER, 2, false}, {CKPT_LAYOUT_MEGATRON, COMMIT_RENAME, 2, false},
        {CKPT_LAYOUT_ELRUN, COMMIT_RENAME, 3, true},  {CKPT_LAYOUT_MEGATRON, COMMIT_RENAME, 3, true}};
    const char *const names[] = {"one writer", "three writers", "marker",
                                 "megatron",   "three nodes",   "three nodes, megatron"};
    for (size_t i = 0; i < COUNT_OF(stories); i++) {
        test_every_call(&stories[i], names[i]);
        test_every_error(&stories[i], names[i]);
    }
    test_sync_error();
    test_lineage();
    test_messages();
    test_two();
    test_raced();
    test_again();
    test_megatron();
    is_num(mem.used_bytes, 0, "no memory is left");
    return done();
}
