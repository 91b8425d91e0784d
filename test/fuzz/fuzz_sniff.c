/* Any bytes as the beginning of a file, as JSON, as the target of a link, and as a file of torch.save before 1.6: no
 * place outside the file. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "ckpt/fmt.h"
#include "ckpt/json_text.h"
#include "ckpt/layout.h"
#include "ckpt/sniff.h"

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
    struct fmt_counts counts;
    struct el_err e = {0};
    struct sniff s;
    sniff(&s, (const char *)data, n < SNIFF_BYTES ? n : SNIFF_BYTES);
    if (s.kind == SNIFF_EMPTY || s.kind == SNIFF_ZEROS || s.kind == SNIFF_POINTER || s.kind == SNIFF_DOCUMENT ||
        s.kind == SNIFF_TEXT) {
        sniff_fail(&s, &e);
        assert(e.status == CKPT_DAMAGED && e.text[0]);
    }
    struct json_text x;
    json_text_look(&x, (const char *)data, n, "a");
    assert(x.begin <= x.at && x.at <= n && (x.kind != JSON_TEXT_WHOLE || x.at == n));
    sniff_zeros_in_front((const char *)data, n < SNIFF_BYTES ? n : SNIFF_BYTES);
    char target[300], to[CKPT_PATH_MAX];
    size_t k = n < sizeof target - 1 ? n : sizeof target - 1;
    memcpy(target, data, k);
    target[k] = 0;
    if (ckpt_link_path("models--a/snapshots/0/x", target, to))
        assert(*to && *to != '/' && strncmp(to, "../", 3) != 0 && !strstr(to, "/../"));
    if (s.kind == SNIFF_OLD) {
        e = (struct el_err){0};
        if (fmt_old_tensors(&t, "f", &file, &counts, &e) == 0)
            for (size_t i = 0; i < t.n; i++)
                assert(t.v[i]->place == TENSOR_ODD || (t.v[i]->at <= n && t.v[i]->bytes <= n - t.v[i]->at));
    }
    tensors_free(&t);
    assert(!mem.used_bytes);
    return 0;
}
