/* Any bytes as a torch.save archive: no place outside the file, whatever its directory and its pickle say. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "ckpt/fmt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct memory {
    const uint8_t *v;
    size_t n;
};

static int read_memory(void *ctx, uint64_t at, void *to, size_t n, struct el_err *e)
{
    const struct memory *m = ctx;
    (void)e;
    assert(at <= m->n && n <= m->n - at);
    memcpy(to, m->v + at, n);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct el_mem mem = EL_MEM_INIT(64u << 20);
    struct memory memory = {data, n};
    struct ckpt_bytes file = {&memory, n, read_memory};
    struct tensors t = {.mem = &mem};
    struct el_err e = {0};
    struct zip z;
    if (zip_open(&z, &mem, &file, &e) == 0) {
        for (size_t i = 0; i < z.n && i < 64; i++) {
            struct el_err why = {0};
            zip_check(&z, &file, &z.members[i], &why);
        }
        fmt_torch_tensors(&t, "f", 0, &file, &z, &(struct fmt_counts){0}, &e);
        for (size_t i = 0; i < t.n; i++)
            assert(t.v[i]->place == TENSOR_ODD || (t.v[i]->at <= n && t.v[i]->bytes <= n - t.v[i]->at));
    } else {
        assert(e.status && e.text[0]);
    }
    zip_close(&z);
    tensors_free(&t);
    assert(!mem.used_bytes);
    return 0;
}
