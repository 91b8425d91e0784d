/* How much memory snapshots may have, and what there is to go back to: the pure part of snapshot_service.h. */
#include "agent/snapshot_service.h"

#include <stdio.h>
#include <string.h>

#include "sys/host.h"
#include "snapshot/slot_table.h"
#include "coord/ckpt_commit.h"

static uint64_t snapshot_service_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int snapshot_service_budget(const struct run_conf *conf, uint64_t memory_bytes, uint64_t free_bytes,
                            uint64_t limit_bytes, uint64_t left_bytes, uint64_t *bytes, struct el_err *e)
{
    uint64_t all = snapshot_service_least(memory_bytes, limit_bytes),
             there = snapshot_service_least(free_bytes, snapshot_service_least(limit_bytes, left_bytes));
    *bytes = conf->ckpt_mem_percent ? all / 100 * conf->ckpt_mem_percent : conf->ckpt_mem_bytes;
    if (there >= HOST_UNKNOWN || *bytes <= there)
        return 0;
    if (conf->ckpt_mem_default) { /* nobody has asked for so much */
        *bytes = there;
        return 0;
    }
    return el_fail(
        e, EL_EXIT_CONFIG,
        "--ckpt-mem wants %llu MiB for snapshots, and this host has %llu MiB available%s: give less, or free "
        "some",
        (unsigned long long)(*bytes >> 20), (unsigned long long)(there >> 20),
        snapshot_service_least(limit_bytes, left_bytes) < free_bytes ? " (within its cgroup's limit)" : "");
}

unsigned snapshot_service_oom_raise(uint64_t budget_bytes, uint64_t memory_bytes, uint64_t limit_bytes)
{
    uint64_t thousandth = snapshot_service_least(memory_bytes, limit_bytes) / 1000;
    if (!budget_bytes)
        return 0;
    return SNAPSHOT_SERVICE_OOM_RAISE + (unsigned)(thousandth ? snapshot_service_least(budget_bytes / thousandth, 1000)
                                                              : 1000); /* of which 1000 is the most */
}

static bool is_left(const struct snapshot_service_left *left, int64_t step, uint64_t lineage)
{
    return left->step != RESTORE_NO_STEP && step > left->step && lineage != left->lineage;
}

int64_t snapshot_service_passes_over(const struct restore_stock *stock, const struct load_found *disk)
{
    int64_t best = stock->n ? stock->step[0] : -1;
    best = disk->n && disk->step[0] > best ? disk->step[0] : best;
    return disk->unusable > best ? best : -1; /* of nothing at all it is said why, too */
}

/* Of memory and of disk together, newest first. */
struct step_list {
    unsigned n;
    int64_t step[RESTORE_STEPS_MAX + LOAD_LOOK_MAX];
    uint64_t lineage[RESTORE_STEPS_MAX + LOAD_LOOK_MAX];
};

/* What is in memory and on disk is one step. */
static void merge(const struct restore_stock *memory, const struct load_found *disk,
                  const struct snapshot_service_left *left, struct step_list *to)
{
    unsigned m = 0, d = 0;
    to->n = 0;
    for (;;) {
        while (d < disk->n && is_left(left, disk->step[d], disk->lineage[d]))
            d++;
        if (m == memory->n && d == disk->n)
            break;
        bool both =
            m < memory->n && d < disk->n && memory->step[m] == disk->step[d] && memory->lineage[m] == disk->lineage[d];
        bool first = d == disk->n || (m < memory->n && memory->step[m] >= disk->step[d]);
        to->lineage[to->n] = first ? memory->lineage[m] : disk->lineage[d];
        to->step[to->n++] = first ? memory->step[m++] : disk->step[d++];
        d += both;
    }
}

/* Like a number that is drawn, but the same on all nodes. */
static uint64_t lot(const struct step_list *all, unsigned i)
{
    uint64_t x = ((uint64_t)all->step[i] + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ all->lineage[i];
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The newest half of what may be told, and of those before it the ones with the lowest lots.  A node that was away has
 * none of the newest: what it has, and another one, too, both of them tell if its lot is low, whatever else they have.
 */
static bool snapshot_service_is_told(const struct step_list *all, unsigned i)
{
    unsigned half = RESTORE_STEPS_MAX / 2, lower = 0;
    for (unsigned k = half; i >= half && k < all->n; k++)
        lower += lot(all, k) < lot(all, i);
    return all->n <= RESTORE_STEPS_MAX || lower < half;
}

void snapshot_service_add_disk(struct restore_stock *stock, const struct load_found *disk,
                               const struct snapshot_service_left *left)
{
    struct step_list all;
    merge(stock, disk, left, &all);
    stock->n = 0;
    for (unsigned i = 0; i < all.n && stock->n < RESTORE_STEPS_MAX; i++) {
        if (!snapshot_service_is_told(&all, i))
            continue;
        stock->lineage[stock->n] = all.lineage[i];
        stock->step[stock->n++] = all.step[i];
    }
    stock->on_disk = disk->any;
    if (disk->newest > stock->newest && left->step == RESTORE_NO_STEP)
        stock->newest = disk->newest;
    if (!*stock->why)
        snprintf(stock->why, sizeof stock->why, "%s", disk->why);
}

/* "ranks 9, 10 and 11". */
static void snapshot_service_list(const unsigned *local, unsigned n, unsigned base, const char *what, char *to,
                                  size_t room)
{
    unsigned named = n < SNAPSHOT_SERVICE_NAMED_MAX ? n : SNAPSHOT_SERVICE_NAMED_MAX;
    size_t at = (size_t)snprintf(to, room, "%s%s", what, n > 1 ? "s" : "");
    for (unsigned i = 0; i < named; i++)
        at += (size_t)snprintf(to + at, room - at, "%s%u", i == 0 ? " " : i + 1 == n ? " and " : ", ", base + local[i]);
    if (n > named)
        snprintf(to + at, room - at, " and %u more", n - named);
}

const char *snapshot_service_ranks(const unsigned *local, unsigned n, unsigned base,
                                   char to[SNAPSHOT_SERVICE_RANKS_MAX])
{
    char here[SNAPSHOT_SERVICE_RANKS_MAX / 2];
    snapshot_service_list(local, n, base, "rank", to, SNAPSHOT_SERVICE_RANKS_MAX);
    size_t at = strlen(to);
    if (base) {
        snapshot_service_list(local, n, 0, "local rank", here, sizeof here);
        snprintf(to + at, SNAPSHOT_SERVICE_RANKS_MAX - at, " (%s)", here);
    }
    return to;
}

const char *snapshot_service_source(const struct slot_table_reads *x, char to[SNAPSHOT_SERVICE_SOURCE_MAX])
{
    unsigned ranks = x->own + x->others + x->disk;
    size_t n = (size_t)snprintf(to, SNAPSHOT_SERVICE_SOURCE_MAX, "%s", x->disk < ranks ? "memory" : "disk");
    if (x->others)
        n += (size_t)snprintf(to + n, SNAPSHOT_SERVICE_SOURCE_MAX - n, ", %u of %u ranks from another rank's",
                              x->others, ranks);
    if (x->disk && x->disk < ranks)
        snprintf(to + n, SNAPSHOT_SERVICE_SOURCE_MAX - n, ", %u of %u ranks from disk", x->disk, ranks);
    return to;
}

const char *snapshot_service_differ(const struct slot_table_pair *x, char to[SNAPSHOT_SERVICE_DIFFER_MAX])
{
    size_t n = (size_t)snprintf(to, SNAPSHOT_SERVICE_DIFFER_MAX,
                                "part \"%s\" (shard_id=\"%s\") differs between rank %u and rank %u at "
                                "step %lld",
                                x->part, x->shard_id, x->of[0].rank, x->of[1].rank, (long long)x->step);
    if (x->tensors)
        n += (size_t)snprintf(to + n, SNAPSHOT_SERVICE_DIFFER_MAX - n, ", in %llu tensor%s: %s",
                              (unsigned long long)x->tensors, x->tensors == 1 ? "" : "s", x->names);
    snprintf(to + n, SNAPSHOT_SERVICE_DIFFER_MAX - n, ": " CKPT_COMMIT_DIFFER_ADVICE);
    return to;
}

unsigned snapshot_service_silent(const struct slot_table *k, unsigned base, char to[SNAPSHOT_SERVICE_RANKS_MAX])
{
    unsigned local[SNAPSHOT_SERVICE_NAMED_MAX], n = 0, workers = slot_table_workers(k);
    for (unsigned w = slot_table_silent(k, 0); w < workers; w = slot_table_silent(k, w + 1), n++)
        if (n < SNAPSHOT_SERVICE_NAMED_MAX)
            local[n] = w;
    snapshot_service_ranks(local, n, base, to);
    return n;
}

bool snapshot_service_back_text(const struct slot_table_reads *x, int64_t step, el_usec took,
                                char to[SNAPSHOT_SERVICE_BACK_MAX])
{
    char from[SNAPSHOT_SERVICE_SOURCE_MAX];
    if (x->bytes)
        snprintf(to, SNAPSHOT_SERVICE_BACK_MAX, "going back to step %lld, from %s: %.1f MiB in %.3f s", (long long)step,
                 snapshot_service_source(x, from), (double)x->bytes / (1 << 20), (double)took / EL_SEC(1));
    else
        snprintf(to, SNAPSHOT_SERVICE_BACK_MAX,
                 "going back to step %lld, which ranks of other nodes have: the script shares it", (long long)step);
    return x->bytes || step != SLOT_TABLE_NO_STEP;
}
