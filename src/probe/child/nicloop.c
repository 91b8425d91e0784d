/* The GPUs of one node two by two, with peer access and shared memory off: what they exchange leaves by the network
 * card and comes back, so a bad card is found without a partner.  An odd last GPU loops with the first. */
#include <math.h>
#include <stdlib.h>

#include "gather.h"
#include "hello.h"
#include "order.h"
#include "say.h"
#include "watch.h"

#define DEVICES_MAX 64

static void abort_comms(void *ctx)
{
    struct gather *g = ctx;
    for (unsigned i = 0; i < 2; i++)
        if (g->rank[i].comm)
            g->nc->ncclCommAbort(g->rank[i].comm);
}

static void loop(const struct order *o, struct gather *g, int a, int b)
{
    static char stage[64];
    void *comm[2] = {NULL, NULL};
    int device[2] = {a, b};
    text_put(stage, sizeof stage, "init GPU %d with %d", a, b);
    watch_step(stage, o->init_ms);
    watch_abort(NULL, NULL);
    nccl_must(g->nc, g->nc->ncclCommInitAll(comm, 2, device));
    for (unsigned i = 0; i < 2; i++) {
        g->rank[i].comm = comm[i];
        g->rank[i].device = device[i];
    }
    watch_abort(abort_comms, g);
    watch_step("memory", o->step_ms);
    gather_prepare(g);
    struct gather_plan plan = {
        .rail = a, .quick = o->quick, .init_ms = o->init_ms, .step_ms = o->step_ms, .only = "nic_loop"};
    gather_run(g, &plan);
    gather_release(g); /* an odd last GPU takes the first one once more */
}

bool role_nicloop(const struct order *o)
{
    struct nccl nc = {0};
    struct cuda cu = {0};
    setenv("NCCL_P2P_DISABLE", "1", 1);
    setenv("NCCL_SHM_DISABLE", "1", 1);
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    hello_open(o, &cu, &nc);
    int count = 0;
    cuda_must(&cu, cu.cudaGetDeviceCount(&count));
    if (count < 2) /* it has no other to exchange with */
        return true;
    for (int a = 0; a < count && a < DEVICES_MAX; a += 2) {
        static struct gather g; /* the watch may look at it until the end */
        g = (struct gather){.cu = &cu, .nc = &nc, .local = 2};
        loop(o, &g, a, a + 1 < count ? a + 1 : 0);
    }
    say_value("gpu_nicloop", -1, 1, NAN, NULL);
    return true;
}
