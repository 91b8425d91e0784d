/* Making the header of a safetensors file. */
#include <assert.h>
#include <string.h>

#include "ckpt/safetensors.h"
#include "util/text.h"
#include "util/parse.h"
#include "util/sort.h"
#include "util/utf8.h"

/* As the reference writer has it: the largest elements first, so that every tensor lies on a multiple of its own. */
static int by_size_and_name(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    unsigned p = safetensors_dtype_bits(x->dtype), q = safetensors_dtype_bits(y->dtype);
    return p != q ? (p > q ? -1 : 1) : strcmp(x->name, y->name);
}

static bool is_utf8(const char *s)
{
    size_t left = strlen(s);
    for (size_t n; left; s += n, left -= n)
        if (!(n = el_utf8(s, left)))
            return false;
    return true;
}

static int safetensors_build_place(struct safetensors_tensor *tensors, size_t n, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    uint64_t at = 0, bytes;
    el_sort(tensors, n, sizeof *tensors, by_size_and_name);
    for (size_t i = 0; i < n; i++) {
        struct safetensors_tensor *t = &tensors[i];
        el_show(t->name, shown);
        if (!is_utf8(t->name) || strcmp(t->name, "__metadata__") == 0)
            return el_fail(e, EL_EXIT_CONFIG, "\"%s\" cannot be the name of a tensor", shown);
        if (i && by_size_and_name(t - 1, t) == 0)
            return el_fail(e, EL_EXIT_CONFIG, "tensor \"%s\" is there twice", shown);
        if (!safetensors_tensor_bytes(t->dtype, t->shape, t->rank, &bytes) ||
            __builtin_add_overflow(at, bytes, &t->end))
            return el_fail(e, EL_EXIT_CONFIG, "tensor \"%s\": its shape is no size", shown);
        t->begin = at;
        at = t->end;
    }
    return 0;
}

/* Names that differ in their type only are not neighbours above.  The JSON reader refuses them; this writer must not
 * make them. */
static int safetensors_build_check_names(struct safetensors_tensor *tensors, size_t n, struct el_mem *mem,
                                         struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    struct safetensors_tensor *copy = el_alloc(mem, n * sizeof *copy);
    int r = copy ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
    if (copy && n) {
        memcpy(copy, tensors, n * sizeof *copy);
        for (size_t i = 0; i < n; i++)
            copy[i].dtype = ST_U8;
        el_sort(copy, n, sizeof *copy, by_size_and_name);
    }
    for (size_t i = 1; !r && i < n; i++)
        if (strcmp(copy[i - 1].name, copy[i].name) == 0)
            r = el_fail(e, EL_EXIT_CONFIG, "tensor \"%s\" is there twice", el_show(copy[i].name, shown));
    el_free(mem, copy);
    return r;
}

static void put_pairs(const struct safetensors_pair *pairs, size_t n, struct el_buf *out)
{
    el_buf_puts(out, "\"__metadata__\":{");
    for (size_t i = 0; i < n; i++) {
        el_buf_puts(out, i ? "," : "");
        text_json(out, pairs[i].key, strlen(pairs[i].key));
        el_buf_puts(out, ":");
        text_json(out, pairs[i].value, strlen(pairs[i].value));
    }
    el_buf_puts(out, "}");
}

static void safetensors_build_put_tensor(const struct safetensors_tensor *t, struct el_buf *out)
{
    text_json(out, t->name, strlen(t->name));
    el_buf_printf(out, ":{\"dtype\":\"%s\",\"shape\":[", safetensors_dtype_name(t->dtype));
    for (unsigned i = 0; i < t->rank; i++)
        el_buf_printf(out, "%s%llu", i ? "," : "", (unsigned long long)t->shape[i]);
    el_buf_printf(out, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)t->begin, (unsigned long long)t->end);
}

int safetensors_build(struct safetensors_tensor *tensors, size_t n, const struct safetensors_pair *pairs,
                      size_t pairs_n, size_t align, struct el_buf *out, struct el_err *e)
{
    assert(align >= 8 && align <= 4096 && (align & (align - 1)) == 0);
    size_t from = out->len;
    if (safetensors_build_place(tensors, n, e) || safetensors_build_check_names(tensors, n, out->mem, e))
        return -1;
    el_buf_put(out, "\0\0\0\0\0\0\0", SAFETENSORS_PREFIX);
    el_buf_puts(out, "{");
    if (pairs_n)
        put_pairs(pairs, pairs_n, out);
    for (size_t i = 0; i < n; i++) {
        el_buf_puts(out, i || pairs_n ? "," : "");
        safetensors_build_put_tensor(&tensors[i], out);
    }
    el_buf_puts(out, "}");
    while ((out->len - from) % align && !out->full)
        el_buf_puts(out, " ");
    if (out->full)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    uint64_t header = out->len - from - SAFETENSORS_PREFIX;
    if (header > SAFETENSORS_HEADER_MAX)
        return el_fail(e, EL_EXIT_CONFIG, "names and shapes of %zu tensors are more than a header may hold", n);
    for (unsigned i = 0; i < SAFETENSORS_PREFIX; i++)
        out->v[from + i] = (char)(header >> (8 * i));
    return 0;
}
