#include "snapshot/replica_digest.h"

#include <string.h>

#include "snapshot/replica_table.h"
#include "ckpt/crc32c.h"
#include "util/parse.h"
#include "util/scan.h"
#include "util/sort.h"

/* The listed tensors, in a block of the header's allocator.  NULL: there are none, or no memory. */
static const struct safetensors_tensor **listed(const struct safetensors *s, size_t *n)
{
    const char *at = safetensors_pair(s, REPLICA_DIGEST_KEY);
    uint64_t first, last, next = 0;
    *n = 0;
    if (!at || !*at)
        return NULL;
    const struct safetensors_tensor **v = el_alloc(s->mem, s->tensors_n * sizeof *v);
    while (v && scan_span(&at, &first, &last) && first >= next && last < s->tensors_n) {
        for (uint64_t i = first; i <= last; i++)
            v[(*n)++] = &s->tensors[i];
        next = last + 1;
        if (!*at)
            return v;
        if (*at++ != ',')
            break;
    }
    el_free(s->mem, v);
    *n = 0;
    return NULL;
}

/* Of the bits of two sums, so that the sum of several of these says nothing of single bits. */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t digest_of(const struct replica_digest_image *image, const struct safetensors_tensor *t)
{
    const char *type = safetensors_dtype_name(t->dtype);
    uint32_t about = crc32c(0, t->name, strlen(t->name) + 1);
    about = crc32c(about, type, strlen(type) + 1);
    about = crc32c(about, &t->rank, sizeof t->rank);
    about = crc32c(about, t->shape, t->rank * sizeof *t->shape);
    return mixed((uint64_t)about << 32 | crc32c(0, image->bytes + image->st->data_at + t->begin, t->end - t->begin));
}

uint64_t replica_digest_digest(const struct replica_digest_image *image, char **table)
{
    const struct safetensors *s = image->st;
    uint64_t digest = 0;
    size_t n;
    const struct safetensors_tensor **v = listed(s, &n);
    struct alike_row *row = v && table ? el_alloc(s->mem, n * sizeof *row) : NULL;
    for (size_t i = 0; v && i < n; i++) {
        uint64_t one = digest_of(image, v[i]);
        digest += one;
        if (row) {
            row[i].digest = one;
            el_show(v[i]->name, row[i].name);
        }
    }
    if (table)
        *table = row ? alike_table(row, n) : NULL;
    el_free(s->mem, row);
    el_free(s->mem, v);
    return v && !digest ? 1 : digest;
}

static int replica_digest_by_name(const void *a, const void *b)
{
    const struct safetensors_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static bool is_alike(const struct replica_digest_image *a, const struct safetensors_tensor *x,
                     const struct replica_digest_image *b, const struct safetensors_tensor *y)
{
    return x->dtype == y->dtype && x->rank == y->rank && x->end - x->begin == y->end - y->begin &&
           memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) == 0 &&
           memcmp(a->bytes + a->st->data_at + x->begin, b->bytes + b->st->data_at + y->begin, x->end - x->begin) == 0;
}

size_t replica_digest_compare(const struct replica_digest_image *a, const struct replica_digest_image *b, char *text,
                              size_t size)
{
    struct alike_names found = {.to = text, .size = size};
    char shown[EL_SHOW_MAX];
    size_t an, bn, i = 0, k = 0;
    const struct safetensors_tensor **x = listed(a->st, &an), **y = listed(b->st, &bn);
    *text = 0;
    el_sort(x, an, sizeof *x, replica_digest_by_name);
    el_sort(y, bn, sizeof *y, replica_digest_by_name);
    while (i < an || k < bn) {
        int order = i == an ? 1 : k == bn ? -1 : replica_digest_by_name(&x[i], &y[k]);
        if (order || !is_alike(a, x[i], b, y[k]))
            alike_name(&found, el_show(order > 0 ? y[k]->name : x[i]->name, shown));
        i += order <= 0;
        k += order >= 0;
    }
    alike_names_end(&found);
    el_free(a->st->mem, x);
    el_free(b->st->mem, y);
    return found.n;
}
