/* What a job can go on from on disk: steps that fit what is declared, the newest history only, and every byte compared.
 * Seen to fail: a reader that gives a stale handle up (test_stale()). */
#include "snapshot/load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

#include "snapshot/commit.h"
#include "ckpt/gc.h"
#include "ckpt/lineage.h"
#include "ckpt/root.h"
#include "lib/memfs.h"
#include "lib/tap.h"

static struct el_mem mem = EL_MEM_INIT(64u << 20);
static char image[3][5000];

static const char *const plain_names[] = {"a", "b", "c"}, *const own_names[] = {"rank10", "rank2", "all"};
static const char *const *names = plain_names; /* shard ids of what is made */

static void make_in(const struct ckpt_fs *fs, enum ckpt_layout layout, int64_t step, uint64_t created,
                    const char *layout_id, unsigned parts)
{
    static const char *const files[] = {"a", "b", "c"};
    struct commit c = {fs, &mem, layout, COMMIT_RENAME, step, 1, "n", NULL, NULL, false, false};
    struct manifest_file f[3] = {0};
    struct manifest_part p[3];
    struct manifest m = {.run_id = "r",
                         .created = created,
                         .epoch = step == 90 ? "4.c0.9" : "",
                         .lineage = step == 100 ? 0x77 : 0,
                         .layout_id = layout_id,
                         .world = 2,
                         .consumed_samples = (uint64_t)step * 10,
                         .files = f,
                         .files_n = parts,
                         .parts = p,
                         .parts_n = parts};
    struct commit_result result;
    struct el_err e = {0};
    int r = commit_open(&c, &e);
    for (unsigned i = 0; i < parts && !r; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s.safetensors", files[i]);
        memset(image[i], (int)step + (int)i, sizeof image[i]);
        r = commit_write(&c, name, image[i], sizeof image[i], &f[i], &e);
        f[i].name = i == 0 ? "a.safetensors" : i == 1 ? "b.safetensors" : "c.safetensors";
        p[i] = (struct manifest_part){.part = "model", .shard_id = names[i], .file = i};
    }
    r = r || commit_publish(&c, &m, &result, &e);
    if (r)
        printf("# commit: %s\n", e.text);
    for (unsigned i = 0; i < parts; i++)
        el_free(&mem, f[i].chunks);
}

static void make(const struct ckpt_fs *fs, int64_t step, uint64_t created, const char *layout_id, unsigned parts)
{
    make_in(fs, CKPT_LAYOUT_ELRUN, step, created, layout_id, parts);
}

static const struct load_part both[] = {{"model", "a", false, false, 0}, {"model", "b", false, false, 0}};

static struct load_found look(const struct ckpt_fs *fs, const char *layout_id, const struct load_part *v, size_t n,
                              const struct load_bad *bad, size_t bad_n)
{
    struct load_found found;
    const struct load_want want = {.layout_id = layout_id, .v = v, .n = n, .bad = bad, .bad_n = bad_n};
    load_look(fs, &mem, &want, &found);
    return found;
}

static const char *list(const struct load_found *f)
{
    static char text[200];
    size_t n = 0;
    text[0] = 0;
    for (unsigned i = 0; i < f->n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%lld ", (long long)f->step[i]);
    return text;
}

static void test_look(void)
{
    static struct memfs m;
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    struct load_found f = look(&fs, "l", both, 2, NULL, 0);
    ok(f.n == 0 && !f.any && f.newest == -1 && !f.why[0], "an empty directory has nothing, and nothing is wrong");
    make(&fs, 5000, 10, "l", 2);
    make(&fs, 90, 20, "l", 2);
    make(&fs, 100, 30, "l", 3);
    make(&fs, 120, 40, "other", 2);
    f = look(&fs, "l", both, 2, NULL, 0);
    is_str(list(&f), "100 90 ",
           "the newest that fit; what was written before a lower step is of a history that was given up");
    ok(f.lineage[0] == 0x77 && f.lineage[1] == lineage_of_epoch("4.c0."),
       "each with its lineage, or what stands in for it");
    ok(f.any && f.newest == 120, "the newest that there is");
    ok(strstr(f.why, "step 120") && strstr(f.why, "layout other (2 ranks), this job has l"), "and why it is not taken");
    f = look(&fs, CKPT_LAYOUT_ALL, both, 2, NULL, 0);
    is_str(list(&f), "120 100 90 ", "what is alike on all ranks can be had from any layout");
    struct load_bad bad = {100, f.lineage[1]};
    f = look(&fs, "l", both, 2, &bad, 1);
    is_str(list(&f), "90 ", "one that could not be read is left out");
    bad.lineage++;
    f = look(&fs, "l", both, 2, &bad, 1);
    is_str(list(&f), "100 90 ", "but not what was written in its place");
    struct load_want want = {.layout_id = "l", .v = both, .n = 2, .whole = true};
    load_look(&fs, &mem, &want, &f);
    ok(!*f.left[1] && strcmp(f.left[0], "\"model\"") == 0, "a part that nobody declares is named, of its own step");
    names = own_names;
    make(&fs, 130, 50, "l", 3);
    names = plain_names;
    static const struct {
        const char *text;
        unsigned base, n;
        const struct load_part v[2];
    } nodes[] = {{"", 0, 2, {{"model", "rank2", false, false, 0}, {"model", "all", false, false, 0}}},
                 {"\"model\"", 0, 3, {{"model", "all", false, false, 0}}},
                 {"\"model\"", 0, 2, {{"model", "rank2", false, false, 0}}},
                 {"", 4, 2, {{"model", "rank2", false, false, 0}}},
                 {"\"model\"", 9, 2, {{"model", "all", false, false, 0}}}};
    for (unsigned i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        want = (struct load_want){.layout_id = "l",
                                  .v = nodes[i].v,
                                  .n = nodes[i].v[1].part ? 2 : 1,
                                  .rank_base = nodes[i].base,
                                  .ranks = nodes[i].n};
        load_look(&fs, &mem, &want, &f);
        is_str(f.left[0], nodes[i].text,
               "of several nodes each tells of its own ranks, the first one of what all have");
    }
    fs.remove(&m, "step-000000130/MANIFEST.json");
    f = look(&fs, "l", both, 2, NULL, 0);
    const struct load_part none = {"model", "d", false, false, 0}, own = {"model@rank", "rank0", false, true, 0};
    f = look(&fs, "l", &none, 1, NULL, 0);
    is_num(f.n, 0, "a part that is not there");
    f = look(&fs, "l", &own, 1, NULL, 0);
    is_str(list(&f), "100 90 ", "a rank's own piece that is not there is nothing that is missing");
    memfs_flip(&m, "step-000000100/MANIFEST.json", 40);
    fs.remove(&m, "step-000000090/a.safetensors");
    f = look(&fs, "l", both, 2, NULL, 0);
    ok(f.any && strcmp(list(&f), "5000 ") != 0, "a manifest that is damaged and a file that is missing are not taken");
    memfs_free(&m);
}

static uint64_t size(const struct load_step *s, const struct load_part *p)
{
    uint64_t bytes = UINT64_MAX;
    struct el_err e = {0};
    return load_size(s, p, &bytes, &e) == 0 ? bytes : UINT64_MAX;
}

static void test_read(void)
{
    static struct memfs m;
    static char to[5000];
    struct el_err e = {0};
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    make(&fs, 7, 10, "l", 2);
    struct load_step *s = load_open(&fs, &mem, CKPT_LAYOUT_ELRUN, 7, &e);
    ok(s && size(s, &both[1]) == 5000, "a part has the size that the manifest says");
    ok(s && load_read(s, &both[1], to, 5000, &e) == 0 && memcmp(to, image[1], sizeof to) == 0,
       "and is as it was written");
    is_num(load_consumed_samples(s), 70, "what its manifest says of samples");
    memfs_flip(&m, "step-000000007/a.safetensors", 4321);
    ok(load_read(s, &both[0], to, 5000, &e) < 0 &&
           strstr(e.text, "step-000000007/a.safetensors: bytes 0-5000 have CRC32C"),
       e.text);
    load_close(s);
    e = (struct el_err){0};
    ok(!load_open(&fs, &mem, CKPT_LAYOUT_ELRUN, 8, &e) && e.text[0], "a step that is not there");
    memfs_free(&m);
}

/* Over NFS: what was opened, or is to be, has been replaced elsewhere; by its path it is found again. */
static void test_stale(void)
{
    static struct memfs m;
    static char to[5000];
    struct el_err e = {0};
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    make(&fs, 7, 10, "l", 2);
    m.fail_errno = ESTALE;
    m.fail_call = MEMFS_OPEN;
    m.fail_nth = 1;
    struct load_step *s = load_open(&fs, &mem, CKPT_LAYOUT_ELRUN, 7, &e);
    ok(s != NULL, "a manifest whose handle is stale is opened again");
    static const enum memfs_call calls[] = {MEMFS_OPEN, MEMFS_READ};
    for (unsigned i = 0; s && i < 2; i++) {
        m.fail_call = calls[i];
        m.fail_nth = 1;
        memset(to, 0, sizeof to);
        ok(load_read(s, &both[1], to, 5000, &e) == 0 && memcmp(to, image[1], sizeof to) == 0,
           i ? "a part, in the middle of it" : "a part");
        is_num(m.fail_nth, 0, "which it was");
    }
    load_close(s);
    memfs_free(&m);
}

/* Files that a script named: of any length. */
static void test_named(void)
{
    static struct memfs m;
    static char to[5000];
    struct el_err e = {0};
    const struct load_part file = {"model", "a", true, false, 0};
    const struct load_part mixed[] = {{"model", "a", true, false, 0}, {"rng", "all", false, false, 0}};
    const struct load_part with_own[] = {{"model", "a", true, false, 0}, {"rng@rank", "rank0", false, true, 0}};
    struct load_found found;
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    make_in(&fs, CKPT_LAYOUT_MEGATRON, 7, 10, "l", 1);
    struct load_want want = {.layout_id = "l", .v = &file, .n = 1};
    load_look(&fs, &mem, &want, &found);
    ok(found.n == 0 && !found.any, "Megatron's layout is none of the other's");
    want.layout = CKPT_LAYOUT_MEGATRON;
    load_look(&fs, &mem, &want, &found);
    ok(found.n == 1 && found.step[0] == 7, "it is its own");
    want.v = mixed;
    want.n = 2;
    load_look(&fs, &mem, &want, &found);
    ok(found.n == 0 && found.any && strstr(found.why, "part \"rng\" is no file"), found.why);
    want.v = with_own;
    load_look(&fs, &mem, &want, &found);
    is_num(found.n, 1, "what need not be there need be no file either");
    struct load_step *s = load_open(&fs, &mem, CKPT_LAYOUT_MEGATRON, 7, &e);
    ok(s && size(s, &file) == 5000 && load_read(s, &file, to, 5000, &e) == 0 && memcmp(to, image[0], 5000) == 0,
       "a file, as it was written");
    load_close(s);
    memfs_free(&m);
}

/* A rank's own piece: its own, else that of the lowest rank (by its number), else nothing. */
static void test_own(void)
{
    static struct memfs m;
    static char to[5000];
    struct el_err e = {0};
    const struct load_part tenth = {"model", "rank10", false, true, 0}, third = {"model", "rank3", false, true, 0};
    const struct load_part needed = {"model", "rank3", false, false, 0}, nobody = {"other", "rank3", false, true, 0};
    uint64_t bytes;
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    names = own_names;
    make(&fs, 7, 10, "l", 3);
    names = plain_names;
    struct load_step *s = load_open(&fs, &mem, CKPT_LAYOUT_ELRUN, 7, &e);
    ok(s && load_read(s, &tenth, to, 5000, &e) == 0 && to[0] == image[0][0], "its own");
    ok(s && load_read(s, &third, to, 5000, &e) == 0 && to[0] == image[1][0], "the lowest rank's where it has none");
    is_num(size(s, &nobody), 0, "nobody's");
    is_num(load_read(s, &nobody, to, 0, &e), 0, "of which nothing is read");
    ok(load_size(s, &needed, &bytes, &e) < 0 && strstr(e.text, "not there any more"),
       "a part that is needed is nobody else's");
    load_close(s);

    const struct load_part ranks[] = {{"model", "rank3", false, true, 0},
                                      {"model", "rank10", false, true, 1},
                                      {"model", "rank10", false, true, 70},
                                      {"model", "rank3", false, true, 71}};
    make(&fs, 8, 20, "l", 1);
    struct load_found f = look(&fs, "l", ranks, 4, NULL, 0);
    is_str(list(&f), "8 7 ", "a step that lacks ranks' own pieces is one");
    ok(f.lacks_own[1][0] == 1 && f.lacks_own[1][1] == 0x80 && f.lacks_own[0][0] == 3 && f.lacks_own[0][1] == 0xc0,
       "with word of which ranks lack them in it");
    memfs_free(&m);
}

static int synced(void *ctx, int file)
{
    (void)ctx;
    (void)file;
    return 0;
}

static int dir_synced(void *ctx, const char *path)
{
    (void)ctx;
    (void)path;
    return 0;
}

/* The job was begun anew far below what it had left, which is more than is looked into. */
static void test_many(void)
{
    char dir[] = "/tmp/test_load_io.XXXXXX", name[CKPT_PATH_MAX];
    struct root root;
    struct el_err e = {0};
    struct load_found f;
    if (!mkdtemp(dir) || root_open(&root, dir, false, &e)) {
        ok(false, "a directory");
        return;
    }
    struct ckpt_fs fs = root_table(&root);
    fs.sync = synced;
    fs.sync_dir = dir_synced;
    for (unsigned i = 0; i < LOAD_LOOK_MAX + 44; i++)
        make(&fs, 1000 + i, 10 + i, "l", 2);
    f = look(&fs, "l", both, 2, NULL, 0);
    ok(f.n == LOAD_LOOK_MAX && f.step[0] == 1299 && f.step[LOAD_LOOK_MAX - 1] == 1044, "so many, the newest");
    for (unsigned i = 1; i <= 3; i++)
        make(&fs, i, 900 + i, "l", 2);
    f = look(&fs, "l", both, 2, NULL, 0);
    is_str(list(&f), "3 2 1 ", "what was written last counts, however low its number is");
    for (unsigned i = 0; i < LOAD_LOOK_MAX + 44; i++) {
        snprintf(name, sizeof name, "step-%09u/MANIFEST.json", 1000 + i);
        fs.remove(&root, name);
    }
    f = look(&fs, "l", both, 2, NULL, 0);
    is_str(list(&f), "3 2 1 ", "also among as many that are not whole");
    ok(f.unusable == 1299 && f.newest == 1299 && f.why[0], "of which the highest is told");
    root_close(&root);
    if (root_open(&root, "/tmp", false, &e) == 0)
        gc_remove(&fs, strrchr(dir, '/') + 1);
    root_close(&root);
}

int main(void)
{
    test_look();
    test_many();
    test_named();
    test_own();
    test_read();
    test_stale();
    is_num(mem.used_bytes, 0, "nothing is left over");
    return done();
}
