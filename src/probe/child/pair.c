/* One end of one rail: two ranks, this one is rank 0 (host end) without an id and rank 1 with one. */
#include <string.h>

#include "fault.h"
#include "gather.h"
#include "hello.h"
#include "log.h"
#include "order.h"
#include "say.h"
#include "watch.h"

#define VERSION_CONFIG 21400 /* NCCL 2.14: from here on calls need not block */

static int nibble(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void read_id(const char *hex, struct nccl_id *id)
{
    bool fine = strlen(hex) == sizeof id->bytes * 2;
    for (size_t i = 0; fine && i < sizeof id->bytes; i++) {
        int high = nibble(hex[2 * i]), low = nibble(hex[2 * i + 1]);
        fine = high >= 0 && low >= 0;
        id->bytes[i] = (char)(high * 16 + low);
    }
    if (!fine)
        fault_die_plain("id", FAULT_INTERNAL, NULL, "the id of the pair is not %d hex digits", NCCL_ID_BYTES * 2);
}

static void make_id(const struct nccl *nc, struct nccl_id *id)
{
    char hex[NCCL_ID_BYTES * 2 + 1];
    watch_step("id", 20000);
    nccl_must(nc, nc->ncclGetUniqueId(id));
    for (size_t i = 0; i < sizeof id->bytes; i++)
        text_put(hex + 2 * i, 3, "%02x", (unsigned)(unsigned char)id->bytes[i]);
    struct say_line l;
    line_begin(&l, "id");
    line_str(&l, "id", hex);
    line_end(&l);
}

static void abort_comm(void *ctx)
{
    struct gather *g = ctx;
    if (g->rank[0].comm)
        g->nc->ncclCommAbort(g->rank[0].comm);
}

static void pair_meet(struct gather *g, const struct nccl_id *id, unsigned init_ms)
{
    /* Fields of a config that are newer than its version are set by NCCL itself (2.14 and later). */
    struct {
        size_t size;
        unsigned magic, version;
        int blocking;
    } config = {24, 0xcafebeef, VERSION_CONFIG, 0};
    double start = watch_now_ms();
    int rc;
    watch_step("init", init_ms);
    watch_abort(abort_comm, g);
    if (g->nc->version >= VERSION_CONFIG && g->nc->ncclCommInitRankConfig)
        rc = g->nc->ncclCommInitRankConfig(&g->rank[0].comm, 2, *id, (int)g->first, &config);
    else
        rc = g->nc->ncclCommInitRank(&g->rank[0].comm, 2, *id, (int)g->first);
    if (rc == NCCL_IN_PROGRESS)
        gather_settle(g);
    else
        nccl_must(g->nc, rc);
    char interface[64];
    log_interface(interface, sizeof interface);
    struct say_line l;
    line_begin(&l, "init");
    line_num(&l, "ms", watch_now_ms() - start);
    line_str(&l, "interface", interface);
    line_end(&l);
}

bool role_pair(const struct order *o)
{
    struct nccl nc = {0};
    struct cuda cu = {0};
    static struct gather g;
    struct nccl_id id;
    if (o->id)
        read_id(o->id, &id);
    hello_open(o, &cu, &nc);
    g.cu = &cu;
    g.nc = &nc;
    g.local = 1;
    g.first = o->id ? 1 : 0;
    g.rank[0].device = (int)o->gpu;
    if (!o->id)
        make_id(&nc, &id);
    pair_meet(&g, &id, o->init_ms);
    watch_step("memory", o->step_ms);
    gather_prepare(&g);
    struct gather_plan plan = {.rail = (int)o->rail, .quick = o->quick, .init_ms = o->init_ms, .step_ms = o->step_ms};
    gather_run(&g, &plan);
    return true;
}
