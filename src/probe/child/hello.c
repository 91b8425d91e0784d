#include "hello.h"

#include <string.h>
#include <unistd.h>

#include "say.h"
#include "watch.h"

static void facts(const struct cuda *cu, const struct nccl *nc)
{
    char text[64];
    if (nc) {
        int v = nc->version,
            digits = v >= 10000 ? 10000 : 1000; /* 2.9 and later have two digits for the second number */
        text_put(text, sizeof text, "%d.%d.%d", v / digits, v % digits / 100, v % 100);
        say_fact("nccl", text);
    }
    text_put(text, sizeof text, "%d.%d", cu->runtime / 1000, cu->runtime % 1000 / 10);
    say_fact("cuda", text);
    if (cu->driver > 0) { /* 0: there is no driver */
        text_put(text, sizeof text, "%d.%d", cu->driver / 1000, cu->driver % 1000 / 10);
        say_fact("cuda_driver", text);
    }
}

void hello_open(const struct order *o, struct cuda *cu, struct nccl *nc)
{
    char bus[32] = "";
    int major = 0;
    watch_step("libraries", o->init_ms);
    if (nc) {
        nccl_open(nc, o->nccl, o->purelib);
        major = lib_cuda_major(nc->lib.path);
    } else
        major = lib_nccl_cuda_major(o->nccl, o->purelib);
    cuda_open(cu, o->cuda, o->purelib, major);
    facts(cu, nc); /* before the device is touched: a mismatch may be why that fails */
    watch_step("context", o->init_ms);
    cuda_use(cu, (int)o->gpu);
    cuda_must(cu, cu->cudaDeviceGetPCIBusId(bus, sizeof bus, (int)o->gpu));
    struct line l;
    line_begin(&l, "hello");
    line_int(&l, "pid", getpid());
    line_int(&l, "gpu", (long long)o->gpu);
    line_str(&l, "bus", bus);
    line_str(&l, "cudart", cu->lib.path);
    line_int(&l, "cudart_version", cu->runtime);
    line_int(&l, "driver_version", cu->driver);
    if (nc) {
        line_str(&l, "nccl", nc->lib.path);
        line_int(&l, "nccl_version", nc->version);
    }
    line_end(&l);
}
