/* Where the bytes are: slots that grow within a budget, an image that is none, a write after the commit, a step that is
 * read from disk into a slot that is as large as it must be, slots given back while a thread still reads them. */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/replica_digest.h"
#include "snapshot/commit.h"
#include "ckpt/safetensors.h"
#include "snapshot/shm_slots.h"
#include "lib/memfs.h"
#include "lib/tap.h"
#include "util/log.h"

#if defined(__has_feature)
#define SHADOWED __has_feature(thread_sanitizer)
#else
#define SHADOWED 0
#endif

#define BYTES  (5u << 20)
#define MIB    ((uint64_t)1 << 20)
#define BUDGET (64 * MIB)

static struct loop *l;
static struct slot_table *k;
static struct shm_slots *v;
static struct pool *p;
static struct slot_table_event told; /* the last one; its text is here: */
static char text[512];
static unsigned verified, grown, loaded, summed;
static struct loop_timer *patience;
static uint64_t digest; /* of the first part */
static uint64_t got_bytes[2], got_header_bytes[2];

static void on_told(void *ctx, const struct slot_table_event *ev)
{
    (void)ctx;
    told = *ev;
    snprintf(text, sizeof text, "%s", ev->text);
    grown += ev->type == SLOT_TABLE_EV_GROWN && ev->ok;
    summed += ev->type == SLOT_TABLE_EV_SUMMED && ev->ok;
    loaded += ev->type == SLOT_TABLE_EV_LOADED && ev->ok && ev->capacity >= 2 * BYTES;
    digest = ev->part_digest ? ev->part_digest[0] : 0;
    verified += ev->type == SLOT_TABLE_EV_READ;
    if (ev->type == SLOT_TABLE_EV_LOADED && ev->ok) {
        memcpy(got_bytes, ev->part_bytes, sizeof got_bytes);
        memcpy(got_header_bytes, ev->part_header_bytes, sizeof got_header_bytes);
    }
    loop_stop(l);
}

/* What came, if it is of this type. */
static bool came(enum slot_table_event_type type)
{
    told = (struct slot_table_event){0};
    loop_run(l);
    return told.type == type;
}

static void on_patience(void *ctx)
{
    (void)ctx;
    loop_stop(l);
}

static void say(unsigned worker, struct worker_msg m)
{
    slot_table_step(k, &(struct slot_table_event){.type = SLOT_TABLE_EV_MSG, .worker = worker, .msg = &m});
}

/* One tensor of bytes behind a header of 4096. */
static void write_image(char *at, char fill)
{
    uint64_t shape[] = {BYTES - 4096};
    struct safetensors_tensor t = {.name = "w", .dtype = ST_U8, .rank = 1, .shape = shape};
    const struct safetensors_pair alike = {REPLICA_DIGEST_KEY, "0"};
    struct el_buf header = EL_BUF_INIT(NULL, 0);
    struct el_err e = {0};
    safetensors_build(&t, 1, &alike, 1, 4096, &header, &e);
    memcpy(at, header.v, header.len);
    memset(at + header.len, fill, BYTES - header.len);
    el_buf_free(&header);
}

static void open_all(unsigned workers, uint64_t budget_bytes)
{
    static const char *const ranks[] = {"rank0", "rank1"};
    const struct slot_table_conf conf = {.workers = workers, .budget_bytes = budget_bytes};
    struct el_err e = {0};
    k = slot_table_new(&conf, NULL);
    v = shm_slots_new(p, workers, budget_bytes, on_told, NULL);
    slot_table_step(k, &(struct slot_table_event){.type = SLOT_TABLE_EV_ROUND, .number = 1});
    for (unsigned w = 0; w < workers; w++) {
        say(w, (struct worker_msg){.type = WORKER_MSG_HELLO,
                                   .u.hello = {.proto = WORKER_MSG_PROTO, .rank = w, .local_rank = w, .round = 1}});
        say(w,
            (struct worker_msg){.type = WORKER_MSG_PART, .u.part = {.name = "model", .shard_id = "all", .file = ""}});
        say(w, (struct worker_msg){
                   .type = WORKER_MSG_PART,
                   .u.part = {.index = 1, .name = "model@rank", .shard_id = ranks[w], .file = "", .own = true}});
        say(w, (struct worker_msg){.type = WORKER_MSG_DECLARE, .u.declare = {.layout_id = "all", .parts = 2}});
        ok(shm_slots_open(v, k, w, &e) == 0, "slots are made");
        slot_table_step(k, &(struct slot_table_event){.type = SLOT_TABLE_EV_OPENED, .worker = w, .ok = true});
    }
}

static void close_all(void)
{
    shm_slots_free(v);
    slot_table_free(k);
}

static bool grow(unsigned worker, unsigned slot, uint64_t bytes)
{
    shm_slots_grow(v, worker, slot, bytes, 1);
    return came(SLOT_TABLE_EV_GROWN) && told.ok;
}

static uint64_t memory_of(unsigned worker)
{
    int fds[SLOT_TABLE_SLOTS];
    struct stat a, b;
    shm_slots_descriptors(v, worker, fds);
    fstat(fds[0], &a);
    fstat(fds[1], &b);
    return (uint64_t)(a.st_blocks + b.st_blocks) * 512;
}

static void test_budget(void)
{
    open_all(2, BUDGET);
    is_num(memory_of(0) + memory_of(1), 0, "which are no memory");
    ok(grow(0, 0, 20 * MIB - 5) && told.capacity == 20 * MIB, "a slot grows, by whole pages");
    ok(told.file_bytes >= told.capacity && told.file_bytes <= 23 * MIB, "and its file with it");
    ok(!grow(1, 0, 13 * MIB) && told.need_bytes == 26 * MIB && told.have_bytes == 24 * MIB,
       "another worker's may not: both slots of each count as large as the larger one");
    is_str(text, "two slots of 13 MiB are needed and 24 MiB of --ckpt-mem are left on this node for them",
           "it is said");
    is_num(memory_of(1), 0, "and nothing is taken");
    ok(grow(1, 1, 12 * MIB), "just as much as is left may");
    ok(grow(1, 0, 12 * MIB) && grow(0, 1, 20 * MIB), "and the other slots are as large as these");
    ok(grow(0, 0, 4096) && told.capacity == 20 * MIB, "what is there is there");
    is_num(memory_of(0) + memory_of(1), 64 * MIB, "that is all of it");
    ok(!grow(0, 0, 20 * MIB + 1) && told.need_bytes, "one byte more is too much");
    shm_slots_release(v, 1);
    ok(grow(0, 0, 32 * MIB), "what one gives back another may have");
    shm_slots_grow(v, 0, 0, 33 * MIB, 7);
    ok(came(SLOT_TABLE_EV_GROWN) && !told.ok && told.gen == 7, "the budget is the end");
    close_all();
}

/* A budget that is larger than what a process has of addresses is no reason not to begin. */
static void test_addresses(void)
{
    struct rlimit was, now;
    open_all(1, UINT64_C(1) << 60);
    ok(grow(0, 0, MIB), "a budget beyond all addresses: a slot grows");
    ok(!grow(0, 0, UINT64_C(1) << 58) && strstr(text, "there are addresses for"), text);
    close_all();
    if (SHADOWED) {
        skip("a limit of addresses", "the thread sanitizer has more than that already");
        return;
    }
    getrlimit(RLIMIT_AS, &was);
    now = (struct rlimit){UINT64_C(1) << 46, was.rlim_max};
    setrlimit(RLIMIT_AS, &now);
    open_all(1, UINT64_C(1) << 46);
    setrlimit(RLIMIT_AS, &was);
    ok(!grow(0, 0, (UINT64_C(1) << 44) + 1) && strstr(text, "for 16777216 MiB (ulimit -v)"),
       "of a process's addresses a quarter is the most for one slot of two");
    close_all();
}

static void test_slots(void)
{
    int fds[SLOT_TABLE_SLOTS];
    struct el_err e = {0};
    open_all(1, BUDGET);
    ok(grow(0, 0, BYTES + 8192), "and grow");
    shm_slots_descriptors(v, 0, fds);
    slot_table_step(
        k, &(struct slot_table_event){
               .type = SLOT_TABLE_EV_GROWN, .ok = true, .capacity = told.capacity, .file_bytes = told.file_bytes});
    char *image = malloc(BYTES);
    write_image(image, 7);
    say(0,
        (struct worker_msg){.type = WORKER_MSG_SNAP_BEGIN, .u.snap_begin = {.step = 1, .images = "4096/5242880 0/0"}});
    is_num(slot_table_slot(k, 0, 0)->state, SLOT_TABLE_WRITING, "an image of one tensor, and nothing of its own");
    ok(pwrite(fds[0], image, BYTES, 0) == (ssize_t)BYTES, "is written into a slot");
    shm_slots_sum(v, k, 0, 0, 1, false, false);
    ok(came(SLOT_TABLE_EV_SUMMED) && told.ok, "summed");
    shm_slots_verify(v, 0, 0, 1);
    ok(came(SLOT_TABLE_EV_READ) && told.ok, "and is what was summed");
    ok(memcmp(shm_slots_image(v, 0, 0, 0), image, BYTES) == 0 &&
           shm_slots_image(v, 0, 0, 1) == (const char *)shm_slots_image(v, 0, 0, 0) + BYTES,
       "where its size says");
    const void *before = shm_slots_image(v, 0, 0, 0);
    ok(grow(0, 0, 3 * BYTES) && shm_slots_image(v, 0, 0, 0) == before, "the slot grows while it holds that, and stays");
    shm_slots_verify(v, 0, 0, 1);
    ok(came(SLOT_TABLE_EV_READ) && told.ok, "nothing of it has changed");
    int reader = shm_slots_reader(v, 0, 0, &e);
    char back[16];
    ok(pread(reader, back, 16, 4096) == 16 && back[0] == 7 && pwrite(reader, back, 16, 0) < 0,
       "a reader reads and cannot write");
    (void)!pwrite(fds[0], "x", 1, (4 << 20) + 10);
    shm_slots_verify(v, 0, 0, 1);
    ok(came(SLOT_TABLE_EV_READ) && !told.ok, "a late write is found");
    is_str(text, "part \"model\" was written to after its commit: the 4 MiB from byte 4194304 on differ",
           "with its place");
    image[9] = '!';
    (void)!pwrite(fds[0], image, BYTES, 0);
    shm_slots_sum(v, k, 0, 0, 1, false, false);
    ok(came(SLOT_TABLE_EV_SUMMED) && !told.ok && strstr(text, "part \"model\""),
       "an image that is none is refused with its part");
    write_image(image, 7);
    (void)!pwrite(fds[0], image, BYTES, 0);
    say(0, (struct worker_msg){.type = WORKER_MSG_SNAP_BEGIN, .u.snap_begin = {.step = 2, .images = "64/5242880 0/0"}});
    shm_slots_sum(v, k, 0, 0, 1, false, false);
    ok(came(SLOT_TABLE_EV_SUMMED) && !told.ok && strstr(text, "its header has 4096 bytes, 64 were announced"), text);
    free(image);
}

static void test_release(void)
{
    struct el_err e = {0};
    shm_slots_sum(v, k, 0, 0, 1, false, false);
    shm_slots_release(v, 0);
    ok(shm_slots_open(v, k, 0, &e) == 0 && grow(0, 0, BYTES + 8192),
       "slots are given back while a thread reads them: nothing of the old ones is told");
    shm_slots_verify(v, 0, 0, 1);
    came(SLOT_TABLE_EV_READ);
    verified = 0;
    shm_slots_verify(v, 0, 0, 1);
    shm_slots_verify(v, 0, 1, 1);
    shm_slots_release(v, 0);
    for (unsigned i = 0; i < 100 && verified < 2; i++) {
        loop_timer_at(patience, loop_clock() + EL_MS(100));
        loop_run(l);
    }
    loop_timer_at(patience, EL_NEVER);
    is_num(verified, 2, "but who compares them is told each time: all are waited for before anything is offered");
    close_all();
}

/* A snapshot of worker w, summed; its digest. */
static uint64_t sum_filled(unsigned w, char fill)
{
    int fds[SLOT_TABLE_SLOTS];
    char *image = malloc(BYTES);
    write_image(image, fill);
    say(w,
        (struct worker_msg){.type = WORKER_MSG_SNAP_BEGIN, .u.snap_begin = {.step = 1, .images = "4096/5242880 0/0"}});
    grow(w, 0, BYTES);
    shm_slots_descriptors(v, w, fds);
    ok(pwrite(fds[0], image, BYTES, 0) == (ssize_t)BYTES, "an image is written");
    free(image);
    shm_slots_sum(v, k, w, 0, 1, true, true);
    return came(SLOT_TABLE_EV_SUMMED) && told.ok ? digest : 0;
}

/* What a worker does not need another one may have. */
static void test_shrink(void)
{
    open_all(2, BUDGET);
    ok(grow(0, 0, 24 * MIB) && grow(0, 1, 24 * MIB) && sum_filled(0, 7) != 0, "a snapshot in a slot that is too large");
    ok(!grow(1, 0, 12 * MIB), "another worker finds no room");
    for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
        shm_slots_shrink(v, 0, s, BYTES + 8192, 5);
        ok(came(SLOT_TABLE_EV_SHRUNK) && told.ok && told.gen == 5 && told.capacity == BYTES + 8192,
           "what is too much is given back");
    }
    is_num(memory_of(0), SLOT_TABLE_SLOTS * (BYTES + 8192), "its memory, too");
    ok(grow(1, 0, 12 * MIB), "now there is room");
    shm_slots_verify(v, 0, 0, 1);
    ok(came(SLOT_TABLE_EV_READ) && told.ok, "nothing of the snapshot has changed");
    ok(grow(0, 0, 12 * MIB) && memory_of(0) >= 12 * MIB, "and its slot may grow again");
    close_all();
}

/* Reserved for later while the image that is in it is summed: the thread sanitizer looks, too. */
static void test_sum_while_growing(void)
{
    open_all(1, BUDGET);
    ok(sum_filled(0, 7) != 0, "a snapshot is summed");
    grown = summed = 0;
    for (unsigned i = 1; i <= 4; i++) {
        shm_slots_sum(v, k, 0, 0, 1, true, true);
        shm_slots_grow(v, 0, 0, (i + 1) * 5 * MIB, 0);
        while (grown < i || summed < i)
            loop_run(l);
    }
    ok(grown == 4 && summed == 4, "and again while its slot grows");
    close_all();
}

static void test_compare(void)
{
    struct slot_table_pair pair = {.of = {{.worker = 0}, {.worker = 1}}};
    open_all(2, BUDGET);
    uint64_t first = sum_filled(0, 7);
    ok(first && sum_filled(1, 7) == first, "two images that are alike have one digest");
    shm_slots_compare(v, &pair);
    ok(came(SLOT_TABLE_EV_COMPARED) && told.ok && !told.number, "and nothing differs");
    ok(sum_filled(1, 8) != first, "another one has another");
    shm_slots_compare(v, &pair);
    shm_slots_release(v, 0);
    shm_slots_release(v, 1);
    ok(came(SLOT_TABLE_EV_COMPARED) && told.ok && told.number == 1,
       "what differs is found, though the slots are given back");
    is_str(text, "\"w\"", "by name");
    close_all();
}

/* --- from disk --- */

static void make_step(const struct ckpt_fs *fs, struct el_mem *mem, const char *own_shard)
{
    struct commit c = {fs, mem, CKPT_LAYOUT_ELRUN, COMMIT_RENAME, 7, 1, "n", NULL, NULL, false, false};
    struct manifest_file f[2] = {0};
    struct manifest_part parts[2] = {{.part = "model", .shard_id = "all", .file = 0},
                                     {.part = "model@rank", .shard_id = own_shard, .file = 1}};
    struct manifest m = {.run_id = "r",
                         .created = 10,
                         .epoch = "",
                         .lineage = 0x77,
                         .layout_id = "all",
                         .world = 1,
                         .consumed_samples = 70,
                         .files = f,
                         .files_n = 2,
                         .parts = parts,
                         .parts_n = 2};
    struct commit_result result;
    struct el_err e = {0};
    char *image = malloc(BYTES);
    int r = commit_open(&c, &e);
    for (unsigned i = 0; i < 2 && !r; i++) {
        write_image(image, (char)(3 + i));
        r = commit_write(&c, i ? "b.safetensors" : "a.safetensors", image, BYTES, &f[i], &e);
        f[i].name = i ? "b.safetensors" : "a.safetensors";
    }
    r = r || commit_publish(&c, &m, &result, &e);
    if (r)
        printf("# commit: %s\n", e.text);
    for (unsigned i = 0; i < 2; i++)
        el_free(mem, f[i].chunks);
    free(image);
}

/* The keeper has chosen step 7: a slot of worker 0 is to be loaded. */
static unsigned choose(uint64_t lineage)
{
    say(0, (struct worker_msg){.type = WORKER_MSG_RESTORE_QUERY, .u.restore_query = {.layout_id = "all"}});
    const struct slot_table_actions *did =
        slot_table_step(k, &(struct slot_table_event){
                               .type = SLOT_TABLE_EV_CHOSEN, .step = 7, .lineage = lineage, .on_disk = &(uint64_t){0}});
    for (unsigned i = 0; i < did->n; i++)
        if (did->v[i].type == SLOT_TABLE_DO_LOAD) {
            unsigned slot = did->v[i].slot;
            return slot;
        }
    printf("# nothing is loaded\n");
    return 0;
}

static void test_load(void)
{
    static struct memfs m;
    struct el_mem mem = EL_MEM_INIT(64u << 20);
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    make_step(&fs, &mem, "rank5");
    open_all(1, BUDGET);
    unsigned slot = choose(0x77);
    shm_slots_load(v, k, 0, slot, 9, 7, &fs, CKPT_LAYOUT_ELRUN);
    ok(came(SLOT_TABLE_EV_LOADED) && told.ok && told.gen == 9 && told.number == 70, "a step is read from disk");
    ok(told.capacity == 2 * BYTES && told.file_bytes >= told.capacity, "into a slot that has grown for it");
    ok(got_bytes[0] == BYTES && got_header_bytes[0] == 4096 && got_bytes[1] == BYTES && got_header_bytes[1] == 4096,
       "with the sizes that are there");
    const char *at = shm_slots_image(v, 0, slot, 0), *own = shm_slots_image(v, 0, slot, 1);
    ok(at[5000] == 3 && own[5000] == 4, "the other rank's own piece stands in for this one's");
    shm_slots_verify(v, 0, slot, 9);
    ok(came(SLOT_TABLE_EV_READ) && told.ok, "and it is summed");
    shm_slots_load(v, k, 0, slot, 10, 8, &fs, CKPT_LAYOUT_ELRUN);
    ok(came(SLOT_TABLE_EV_LOADED) && !told.ok && !told.need_bytes, "one that is not there is not");
    close_all();

    open_all(1, 4 * BYTES - 4096);
    slot = choose(0x77);
    shm_slots_load(v, k, 0, slot, 9, 7, &fs, CKPT_LAYOUT_ELRUN);
    ok(came(SLOT_TABLE_EV_LOADED) && !told.ok && told.need_bytes == 4 * BYTES && strstr(text, "--ckpt-mem"), text);
    is_num(memory_of(0), 0, "one that is larger than the budget takes nothing of it");
    close_all();
    memfs_free(&m);
}

/* Room that is being made in the background, and a load that needs it: one waits for the other. */
static void test_both(void)
{
    static struct memfs m;
    struct el_mem mem = EL_MEM_INIT(64u << 20);
    memfs_init(&m);
    struct ckpt_fs fs = memfs_table(&m);
    make_step(&fs, &mem, "rank0");
    open_all(1, BUDGET);
    unsigned slot = choose(0x77);
    for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++)
        shm_slots_grow(v, 0, s, 12 * MIB, 0);
    shm_slots_load(v, k, 0, slot, 9, 7, &fs, CKPT_LAYOUT_ELRUN);
    grown = loaded = 0;
    while (grown + loaded < 3) /* two may be told at once */
        loop_run(l);
    ok(grown == 2 && loaded == 1, "slots grow while one of them is loaded");
    is_num(memory_of(0), 24 * MIB, "to what was asked for");
    close_all();
    memfs_free(&m);
}

int main(void)
{
    struct el_err e = {0};
    l = loop_new(&e);
    p = pool_new(l, 3, &e);
    patience = loop_timer_new(l, on_patience, NULL);
    test_slots();
    test_release();
    test_compare();
    test_sum_while_growing();
    test_shrink();
    test_budget();
    test_addresses();
    test_load();
    test_both();
    ok(pool_free(p), "no thread is left");
    loop_timer_free(patience);
    loop_free(l);
    return done();
}
