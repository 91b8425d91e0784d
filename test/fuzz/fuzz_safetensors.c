/* Any bytes as a safetensors file: every tensor that comes out lies within it, they meet without a hole, and what is
 * read can be written and read again.  The same bytes as an index of such files, and as the names of a directory. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "snapshot/replica_digest.h"
#include "ckpt/fmt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int read_memory(void *ctx, uint64_t at, void *to, size_t n, struct el_err *e)
{
    (void)e;
    memcpy(to, (const char *)ctx + at, n);
    return 0;
}

static int entry(void *arg, const char *tensor, const char *file)
{
    size_t *entries = arg;
    assert(tensor && file);
    return ++*entries > 10000;
}

static void gap(void *arg, const char *name, const struct fmt_missing *missing, uint64_t total)
{
    struct fmt_member m;
    char text[FMT_MISSING_TEXT];
    (void)arg;
    assert(fmt_member(name, &m) && m.n == total && missing->n && missing->n <= total);
    for (size_t i = 0; i < missing->n && i < FMT_MISSING_TOLD; i++)
        assert(missing->v[i] <= total && (!i || missing->v[i] > missing->v[i - 1]));
    assert(strlen(fmt_missing_put(missing, text)) + 1 < sizeof text);
}

static void read_index_and_names(struct el_mem *mem, const char *text, size_t n)
{
    enum { NAMES_MAX = 64 };
    char *names[NAMES_MAX], *copy = el_strndup(mem, text, n);
    struct el_err e = {0};
    size_t count = 0, entries = 0;
    assert(fmt_index(text, n, entry, &entries, &e) == 0 || e.status || entries > 10000);
    for (char *at = strtok(copy, "\n"); at && count < NAMES_MAX; at = strtok(NULL, "\n"))
        names[count++] = at;
    assert(fmt_detect((const char *const *)names, count) < CKPT_FORMATS_COUNT);
    fmt_gaps((const char *const *)names, count, mem, gap, NULL, &e);
    el_free(mem, copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct el_mem mem = EL_MEM_INIT(64u << 20);
    struct ckpt_bytes file = {(void *)(uintptr_t)data, n, read_memory};
    struct tensors t = {.mem = &mem};
    struct el_err e = {0};
    struct safetensors s, again;
    read_index_and_names(&mem, (const char *)data, n);
    if (safetensors_read(&s, &mem, &file, &e) == 0) {
        uint64_t at = 0;
        for (size_t i = 0; i < s.tensors_n; i++) {
            assert(s.tensors[i].begin == at && s.tensors[i].end >= at);
            at = s.tensors[i].end;
        }
        assert(s.data_at + at == n);
        char names[64];
        struct replica_digest_image image = {&s, (const char *)data};
        if (replica_digest_digest(&image, NULL))
            assert(safetensors_pair(&s, REPLICA_DIGEST_KEY) &&
                   replica_digest_compare(&image, &image, names, sizeof names) == 0);
        if (fmt_st_tensors(&t, "f", &s, &e) == 0) {
            tensors_sort(&t);
            tensors_infer(&t);
            for (size_t i = 0, end; i < t.n; i = end) {
                end = tensors_group(&t, i);
                tensors_cover(&t, i, end, &e);
            }
        }
        struct el_buf out = EL_BUF_INIT(&mem, 0);
        struct el_err why = {0};
        if (safetensors_build(s.tensors, s.tensors_n, s.pairs, s.pairs_n, 8, &out, &why) == 0) {
            int r = safetensors_parse(&again, &mem, out.v + SAFETENSORS_PREFIX, out.len - SAFETENSORS_PREFIX,
                                      out.len + at, &why);
            assert(r == 0 && again.tensors_n == s.tensors_n && again.pairs_n == s.pairs_n);
            safetensors_free(&again);
        }
        el_buf_free(&out);
    } else {
        assert(e.status && e.text[0] && !strchr(e.text, '\n'));
    }
    safetensors_free(&s);
    tensors_free(&t);
    assert(!mem.used_bytes);
    return 0;
}
