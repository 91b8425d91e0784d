#include <string.h>

#include "fault.h"
#include "gather.h"
#include "watch.h"

static void nccl_take(const struct lib *l, const char *name, bool must, void *slot)
{
    void *at = lib_symbol(l, name);
    if (!at && must)
        fault_die_plain(watch_stage(), FAULT_MISMATCH, "use NCCL 2.4 or newer", "%s has no %s", l->path, name);
    memcpy(slot, &at, sizeof at);
}

void nccl_open(struct nccl *nc, const char *option, const char *purelib)
{
    lib_open_nccl(option, purelib, &nc->lib);
#define X(name, must, arguments) nccl_take(&nc->lib, #name, must, &nc->name);
    NCCL_LIST(X)
#undef X
    nccl_take(&nc->lib, "ncclGetErrorString", true, &nc->ncclGetErrorString);
    nccl_take(&nc->lib, "ncclGetLastError", false, &nc->ncclGetLastError);
    nccl_must(nc, nc->ncclGetVersion(&nc->version));
}

void nccl_must(const struct nccl *nc, int code)
{
    if (code == 0)
        return;
    const char *words = nc->ncclGetLastError ? nc->ncclGetLastError(NULL) : NULL;
    fault_die(watch_stage(), LIB_NCCL, code, words && *words ? words : nc->ncclGetErrorString(code));
}
