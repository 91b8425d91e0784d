/* Any bytes as a pickle, and what it says as the metadata of a distributed checkpoint: bounded in memory and depth. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "ckpt/fmt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int item(void *arg, const struct fmt_dcp_item *x)
{
    size_t *n = arg;
    assert(x->name && x->file && (!x->dtype || x->rank <= 64));
    return ++*n > 10000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct el_mem mem = EL_MEM_INIT(64u << 20);
    struct el_err e = {0};
    struct pickle p;
    size_t items = 0;
    if (pickle_read(&p, &mem, (const char *)data, n, &e) == 0) {
        assert(p.root && p.used <= n);
        fmt_dcp(&p, &mem, item, &items, &e);
    } else {
        assert(e.status && e.text[0]);
    }
    pickle_free(&p);
    assert(!mem.used_bytes);
    return 0;
}
