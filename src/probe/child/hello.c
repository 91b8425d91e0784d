#include "hello.h"

#include <string.h>
#include <unistd.h>

#include "say.h"
#include "watch.h"

static void say_nccl(int version, const char *path)
{
    char text[64];
    int digits = version >= 10000 ? 10000 : 1000; /* 2.9 and later have two digits for the second number */
    text_put(text, sizeof text, "%d.%d.%d", version / digits, version % digits / 100, version % 100);
    say_fact("nccl", text);
    say_fact("nccl_path", path);
}

static void say_cuda(const struct cuda *cu)
{
    char text[64];
    text_put(text, sizeof text, "%d.%d", cu->runtime / 1000, cu->runtime % 1000 / 10);
    say_fact("cuda", text);
    say_fact("cuda_path", cu->lib.path);
    if (cu->driver > 0) { /* 0: there is no driver */
        text_put(text, sizeof text, "%d.%d", cu->driver / 1000, cu->driver % 1000 / 10);
        say_fact("cuda_driver", text);
    }
}

/* Only its version, and the CUDA it was built for; a role that does not use NCCL does not fail for want of it. */
static int look_at_nccl(const struct order *o)
{
    struct lib l;
    int (*get)(int *), version = 0;
    if (!lib_try_nccl(o->nccl, o->purelib, &l))
        return 0;
    void *at = lib_symbol(&l, "ncclGetVersion");
    memcpy(&get, &at, sizeof get);
    if (at && get(&version) == 0)
        say_nccl(version, l.path);
    return lib_cuda_major(l.path);
}

void hello_open(const struct order *o, struct cuda *cu, struct nccl *nc)
{
    char bus[32] = "";
    int major = 0;
    watch_step("libraries", o->init_ms);
    if (nc) { /* all this before the device is touched: a mismatch may be why that fails */
        nccl_open(nc, o->nccl, o->purelib);
        say_nccl(nc->version, nc->lib.path);
        major = lib_cuda_major(nc->lib.path);
    } else
        major = look_at_nccl(o);
    cuda_open(cu, o->cuda, o->purelib, major);
    say_cuda(cu);
    watch_step("context", o->init_ms);
    cuda_use(cu, (int)o->gpu);
    cuda_must(cu, cu->cudaDeviceGetPCIBusId(bus, sizeof bus, (int)o->gpu));
    struct say_line l;
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
