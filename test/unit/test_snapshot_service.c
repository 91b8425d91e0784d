/* How much memory snapshots may have, what workers get so that the kernel shoots them first, and which steps there are
 * to go back to. */
#include <string.h>

#include "sys/host.h"
#include "agent/snapshot_service.h"
#include "snapshot/slot_table.h"
#include "snapshot/worker_status.h"
#include "snapshot/worker_msg.h"
#include "client/client.h"

#include "lib/tap.h"
#include "util/array.h"

#define GIB ((uint64_t)1 << 30)

/* "9@2 7@1 7@2": memory and disk together. */
static void test_passes_over(void)
{
    struct restore_stock memory = {.n = 1, .step = {7}};
    struct load_found disk = {.n = 1, .step = {5}, .unusable = 9};
    is_num(snapshot_service_passes_over(&memory, &disk), 7, "a damaged checkpoint beyond what is in memory");
    disk.unusable = 6;
    is_num(snapshot_service_passes_over(&memory, &disk), -1, "one before that: nobody misses it");
    memory.n = 0;
    is_num(snapshot_service_passes_over(&memory, &disk), 5, "beyond what is on disk");
    disk.n = 0;
    is_num(snapshot_service_passes_over(&memory, &disk), -1, "nothing else is there: that is said elsewhere");
}

static void test_add_disk(void)
{
    char text[RESTORE_LIST_MAX + 1];
    struct restore_stock s = {.n = 2, .step = {9, 7}, .lineage = {2, 2}};
    struct load_found disk = {.n = 4, .step = {10, 9, 7, 5}, .lineage = {3, 2, 1, 1}, .any = true, .newest = 10};
    snapshot_service_add_disk(&s, &disk, &(struct snapshot_service_left){RESTORE_NO_STEP, 0});
    restore_list_put(&s, text);
    is_str(text, "10@3 9@2 7@2 7@1 5@1", "what both have is said once, a number of two histories twice");
    s = (struct restore_stock){.n = 1, .step = {7}, .lineage = {4}, .newest = 7};
    snapshot_service_add_disk(&s, &disk, &(struct snapshot_service_left){6, 4});
    restore_list_put(&s, text);
    is_str(text, "7@4 5@1", "what the script has gone back behind is not there any more");
    is_num(s.newest, 7, "and not the newest that there was");
}

static struct restore_stock told(const struct load_found *disk)
{
    struct restore_stock s = {.n = 0};
    snapshot_service_add_disk(&s, disk, &(struct snapshot_service_left){RESTORE_NO_STEP, 0});
    return s;
}

/* A node that was away while the other one wrote more than can be told: both have steps that both tell. */
static void test_away(void)
{
    static const unsigned strides[] = {1, 2, 1000, 1024};
    unsigned few = 0, unordered = 0, unlike = 0;
    for (unsigned k = 0; k < COUNT_OF(strides); k++) {
        struct load_found disk = {.n = 0};
        for (unsigned i = 0; i < 200; i++) {
            disk.lineage[i] = i < 170 ? 0x33 : 0x22;
            disk.step[disk.n++] = (int64_t)(200 - i) * strides[k] + 7;
        }
        struct restore_stock here = told(&disk), there;
        disk.n -= 170; /* the other one has the first thirty alone */
        memmove(disk.step, disk.step + 170, disk.n * sizeof *disk.step);
        memmove(disk.lineage, disk.lineage + 170, disk.n * sizeof *disk.lineage);
        there = told(&disk);
        unsigned common = 0;
        for (unsigned i = 0; i < here.n; i++) {
            for (unsigned j = 0; j < there.n; j++)
                common += here.step[i] == there.step[j] && here.lineage[i] == there.lineage[j];
            unordered += i && here.step[i] >= here.step[i - 1];
        }
        few += common < 2;
        unlike += here.n != RESTORE_STEPS_MAX || there.n != 30 || here.step[31] != 169 * (int64_t)strides[k] + 7;
    }
    is_num(few, 0, "of old steps those are told that others tell, too");
    is_num(unordered, 0, "in order");
    is_num(unlike, 0, "and of the newest all, and as many as there may be");
}

static void test_source(void)
{
    char to[SNAPSHOT_SERVICE_SOURCE_MAX];
    is_str(snapshot_service_source(&(struct slot_table_reads){.own = 4}, to), "memory", "each its own");
    is_str(snapshot_service_source(&(struct slot_table_reads){.disk = 4}, to), "disk", "none");
    is_str(snapshot_service_source(&(struct slot_table_reads){.own = 2, .others = 1, .disk = 1}, to),
           "memory, 1 of 4 ranks from another rank's, 1 of 4 ranks from disk", "some");
}

static void test_ranks(void)
{
    static const unsigned local[SNAPSHOT_SERVICE_NAMED_MAX] = {1, 2, 3, 4090, 4091, 4092, 4093, 4094};
    char to[SNAPSHOT_SERVICE_RANKS_MAX];
    is_str(snapshot_service_ranks(local, 1, 0, to), "rank 1", "one");
    is_str(snapshot_service_ranks(local, 1, 8, to), "rank 9 (local rank 1)", "one of another node");
    is_str(snapshot_service_ranks(local, 2, 8, to), "ranks 9 and 10 (local ranks 1 and 2)", "two");
    is_str(snapshot_service_ranks(local, 3, 0, to), "ranks 1, 2 and 3", "three");
    snapshot_service_ranks(local, 4000, 268435455 - 4096, to);
    is_str(to,
           "ranks 268431360, 268431361, 268431362, 268435449, 268435450, 268435451, 268435452, 268435453 and 3992 more "
           "(local ranks 1, 2, 3, 4090, 4091, 4092, 4093, 4094 and 3992 more)",
           "many, with the highest numbers there are");
}

/* The module of the scripts speaks by the numbers of worker_msg.h. */
static void test_module(void)
{
    static char module[1 << 20];
    size_t n = 0;
    unsigned missing = 0, named = 0, all = 0;
    for (const struct client_file *x = client_files; x->name; x++)
        n += (size_t)snprintf(module + n, sizeof module - n, "%.*s", (int)(x->end - x->text), x->text);
    ok(n < sizeof module, "the package is read");
    const char *at = strstr(module, "\nTYPES = {"), *end = at ? strchr(at, '}') : NULL;
#define X(NAME, name, number, fds, text)                                                                               \
    all++;                                                                                                             \
    missing += !at || !strstr(at, "\"" #NAME "\": " #number) || strstr(at, "\"" #NAME "\": " #number) > end;
    WORKER_MSG_LIST(X)
#undef X
    for (const char *p = at; p && p < end; p = strchr(p + 1, ':'))
        named += *p == ':';
    is_num(missing, 0, "the Python package has every message, with its number");
    is_num(named, all, "and no other");
}

int main(void)
{
    test_passes_over();
    test_add_disk();
    test_away();
    test_source();
    test_ranks();
    test_module();
    struct el_err e = {0};
    uint64_t bytes = 0;
    struct run_conf fixed = {.ckpt_mem_bytes = 8 * GIB}, share = {.ckpt_mem_percent = 25};
    ok(snapshot_service_budget(&fixed, 64 * GIB, 32 * GIB, HOST_UNLIMITED, HOST_UNLIMITED, &bytes, &e) == 0 &&
           bytes == 8 * GIB,
       "a size that is there");
    ok(snapshot_service_budget(&fixed, 64 * GIB, 7 * GIB, HOST_UNLIMITED, HOST_UNLIMITED, &bytes, &e) < 0 &&
           strstr(e.text, "7168 MiB available"),
       "one that is not");
    e = (struct el_err){0};
    ok(snapshot_service_budget(&fixed, 64 * GIB, 32 * GIB, 4 * GIB, 4 * GIB, &bytes, &e) < 0 &&
           strstr(e.text, "cgroup"),
       "one that the cgroup does not give");
    e = (struct el_err){0};
    ok(snapshot_service_budget(&fixed, 64 * GIB, 32 * GIB, 16 * GIB, 7 * GIB, &bytes, &e) < 0 &&
           strstr(e.text, "7168 MiB available (within its cgroup's limit)"),
       "one that the cgroup would give, if others in it held less");
    ok(snapshot_service_budget(&share, 64 * GIB, 32 * GIB, 8 * GIB, 8 * GIB, &bytes, &e) == 0 &&
           bytes / 100 == 8 * GIB / 100 / 4,
       "a share is one of the smaller of both");
    is_num(snapshot_service_oom_raise(8 * GIB, 64 * GIB, HOST_UNLIMITED), 425,
           "an eighth of the memory: 125 thousandths more");
    is_num(snapshot_service_oom_raise(8 * GIB, 64 * GIB, 16 * GIB), 800, "half of the cgroup's");
    ok(snapshot_service_oom_raise(8 * GIB, 64 * GIB, 4 * GIB) == 1300 && snapshot_service_oom_raise(GIB, 0, 0) == 1300,
       "never more than for all of it");
    is_num(snapshot_service_oom_raise(0, 64 * GIB, HOST_UNLIMITED), 0, "no snapshots: nothing is raised");
    return done();
}
