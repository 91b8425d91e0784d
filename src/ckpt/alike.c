#include "ckpt/alike.h"

#include <stdio.h>
#include <string.h>

#include "ckpt/crc32c.h"
#include "util/parse.h"
#include "util/scan.h"
#include "util/sort.h"

enum { NAMED_MAX = 3 };

/* The listed tensors, in a block of the header's allocator.  NULL: there are none, or no memory. */
static const struct st_tensor **listed(const struct st *s, size_t *n)
{
    const char *at = st_pair(s, ALIKE_KEY);
    uint64_t first, last, next = 0;
    *n = 0;
    if (!at || !*at)
        return NULL;
    const struct st_tensor **v = el_alloc(s->mem, s->tensors_n * sizeof *v);
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

uint64_t alike_digest(const struct alike_image *image)
{
    const struct st *s = image->st;
    uint32_t names = 0, bytes = 0;
    size_t n;
    const struct st_tensor **v = listed(s, &n);
    if (!v)
        return 0;
    for (size_t i = 0; i < n; i++) {
        const struct st_tensor *t = v[i];
        const char *type = st_dtype_name(t->dtype);
        names = crc32c(names, t->name, strlen(t->name) + 1);
        names = crc32c(names, type, strlen(type) + 1);
        names = crc32c(names, &t->rank, sizeof t->rank);
        names = crc32c(names, t->shape, t->rank * sizeof *t->shape);
        bytes = crc32c(bytes, image->bytes + s->data_at + t->begin, t->end - t->begin);
    }
    el_free(s->mem, v);
    uint64_t digest = (uint64_t)names << 32 | bytes;
    return digest ? digest : 1;
}

static int by_name(const void *a, const void *b)
{
    const struct st_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static bool is_alike(const struct alike_image *a, const struct st_tensor *x, const struct alike_image *b,
                     const struct st_tensor *y)
{
    return x->dtype == y->dtype && x->rank == y->rank && x->end - x->begin == y->end - y->begin &&
           memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) == 0 &&
           memcmp(a->bytes + a->st->data_at + x->begin, b->bytes + b->st->data_at + y->begin, x->end - x->begin) == 0;
}

struct names {
    char *to;
    size_t size, at, n;
};

static void add_name(struct names *l, const char *name)
{
    char shown[EL_SHOW_MAX];
    if (l->n++ < NAMED_MAX && l->at < l->size)
        l->at +=
            (size_t)snprintf(l->to + l->at, l->size - l->at, "%s\"%s\"", l->n > 1 ? ", " : "", el_show(name, shown));
}

size_t alike_compare(const struct alike_image *a, const struct alike_image *b, char *text, size_t size)
{
    struct names found = {.to = text, .size = size};
    size_t an, bn, i = 0, k = 0;
    const struct st_tensor **x = listed(a->st, &an), **y = listed(b->st, &bn);
    *text = 0;
    el_sort(x, an, sizeof *x, by_name);
    el_sort(y, bn, sizeof *y, by_name);
    while (i < an || k < bn) {
        int order = i == an ? 1 : k == bn ? -1 : by_name(&x[i], &y[k]);
        if (order || !is_alike(a, x[i], b, y[k]))
            add_name(&found, order > 0 ? y[k]->name : x[i]->name);
        i += order <= 0;
        k += order >= 0;
    }
    if (found.n > NAMED_MAX && found.at < size)
        snprintf(text + found.at, size - found.at, " and %zu more", found.n - NAMED_MAX);
    el_free(a->st->mem, x);
    el_free(b->st->mem, y);
    return found.n;
}
