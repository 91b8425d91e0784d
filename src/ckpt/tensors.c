#include "ckpt/tensors.h"

#include <assert.h>
#include <string.h>

#include "util/parse.h"
#include "util/sort.h"

enum { PAIRS_MAX = 100000000 }; /* of pieces of one tensor, that are compared */

int tensors_add(struct tensors *list, const struct tensor *t, struct el_err *e)
{
    if (list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        struct tensor **v = el_realloc(list->mem, list->v, room * sizeof *v);
        if (!v)
            return el_fail(e, EL_EXIT_OSERR, "out of memory");
        list->v = v;
        list->room = room;
    }
    size_t name = strlen(t->name) + 1, arrays = 3 * (size_t)t->rank * sizeof(uint64_t);
    struct tensor *x = el_alloc(list->mem, sizeof *x + arrays + name);
    if (!x)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    uint64_t *a = (uint64_t *)(void *)(x + 1);
    *x = *t;
    memcpy(a + 3 * t->rank, t->name, name);
    x->name = (const char *)(a + 3 * t->rank);
    if (t->rank) {
        memcpy(a, t->size, t->rank * sizeof *a);
        memcpy(a + t->rank, t->shape ? t->shape : t->size, t->rank * sizeof *a);
        if (t->from)
            memcpy(a + 2 * t->rank, t->from, t->rank * sizeof *a);
    }
    x->size = a;
    x->shape = a + t->rank;
    x->from = t->from ? a + 2 * t->rank : NULL;
    list->v[list->n++] = x;
    return 0;
}

void tensors_free(struct tensors *list)
{
    for (size_t i = 0; i < list->n; i++)
        el_free(list->mem, list->v[i]);
    el_free(list->mem, list->v);
    *list = (struct tensors){.mem = list->mem};
}

static int by_name_and_place(const void *a, const void *b)
{
    const struct tensor *x = *(struct tensor *const *)a, *y = *(struct tensor *const *)b;
    int c = strcmp(x->name, y->name);
    for (unsigned i = 0; !c && x->from && y->from && i < x->rank && i < y->rank; i++)
        if (x->from[i] != y->from[i])
            c = x->from[i] < y->from[i] ? -1 : 1;
    if (!c)
        c = strcmp(x->file, y->file);
    return c ? c : x->at < y->at ? -1 : x->at > y->at;
}

void tensors_sort(struct tensors *list)
{
    el_sort(list->v, list->n, sizeof *list->v, by_name_and_place);
}

size_t tensors_group(const struct tensors *list, size_t i)
{
    size_t end = i + 1;
    while (end < list->n && strcmp(list->v[end]->name, list->v[i]->name) == 0)
        end++;
    return end;
}

void tensors_infer(struct tensors *list)
{
    for (size_t i = 0, end; i < list->n; i = end) {
        end = tensors_group(list, i);
        unsigned rank = list->v[i]->rank;
        for (unsigned d = 0; d < rank; d++) {
            uint64_t reach = 0;
            for (size_t k = i; k < end; k++) {
                const struct tensor *t = list->v[k];
                uint64_t from = t->rank == rank && t->from ? t->from[d] : 0, to = from;
                if (t->rank == rank && !__builtin_add_overflow(from, t->size[d], &to) && to > reach)
                    reach = to;
            }
            for (size_t k = i; k < end; k++)
                if (list->v[k]->rank == rank && list->v[k]->from)
                    ((uint64_t *)list->v[k]->shape)[d] = reach;
        }
    }
}

static bool elements(const uint64_t *size, unsigned rank, uint64_t *n)
{
    *n = 1;
    for (unsigned i = 0; i < rank; i++)
        if (__builtin_mul_overflow(*n, size[i], n))
            return false;
    return true;
}

/* Two pieces have an element in common if they have one in each dimension. */
static bool overlap(const struct tensor *x, const struct tensor *y)
{
    for (unsigned i = 0; i < x->rank; i++)
        if (!x->size[i] || !y->size[i] || x->from[i] + x->size[i] <= y->from[i] ||
            y->from[i] + y->size[i] <= x->from[i])
            return false;
    return true;
}

/* Pieces are sorted by where they begin: behind the first that begins where this one has ended, in the first dimension,
 * no other can touch it. */
static int check_overlap(const struct tensors *list, size_t from, size_t end, const char *shown, struct el_err *e)
{
    size_t pairs = 0;
    for (size_t i = from; i < end && list->v[i]->rank; i++) {
        const struct tensor *x = list->v[i];
        for (size_t k = i + 1; k < end && list->v[k]->from[0] < x->from[0] + x->size[0]; k++) {
            if (++pairs > PAIRS_MAX)
                return ckpt_fail(e, CKPT_UNSUPPORTED, "tensor \"%s\" has %zu pieces: too many to compare them all",
                                 shown, end - from);
            if (overlap(x, list->v[k]))
                return ckpt_fail(e, CKPT_DAMAGED, "tensor \"%s\": its pieces in %s and in %s overlap", shown, x->file,
                                 list->v[k]->file);
        }
    }
    return 0;
}

/* A piece lies within the whole and is of its kind. */
static int check_piece(const struct tensor *first, const struct tensor *t, const char *shown, struct el_err *e)
{
    bool same = t->rank == first->rank && strcmp(t->dtype, first->dtype) == 0 && !t->from == !first->from;
    for (unsigned d = 0; same && d < t->rank; d++) {
        uint64_t from = t->from ? t->from[d] : 0;
        same = t->shape[d] == first->shape[d];
        if (from > t->shape[d] || t->size[d] > t->shape[d] - from)
            return ckpt_fail(e, CKPT_DAMAGED, "tensor \"%s\": its piece in %s reaches beyond its shape", shown,
                             t->file);
    }
    return same ? 0
                : ckpt_fail(e, CKPT_DAMAGED, "tensor \"%s\" has another type or shape in %s than in %s", shown, t->file,
                            first->file);
}

bool tensors_copies(const struct tensors *list, size_t from, size_t end)
{
    for (size_t i = from; i < end; i++) {
        const struct tensor *t = list->v[i];
        for (unsigned d = 0; d < t->rank; d++)
            if ((t->from && t->from[d]) || t->size[d] != t->shape[d])
                return false;
    }
    return true;
}

static bool same_piece(const struct tensor *x, const struct tensor *y)
{
    size_t n = x->rank * sizeof *x->size;
    return x->rank && x->rank == y->rank && x->from && y->from && strcmp(x->dtype, y->dtype) == 0 &&
           memcmp(x->from, y->from, n) == 0 && memcmp(x->size, y->size, n) == 0 && memcmp(x->shape, y->shape, n) == 0;
}

size_t tensors_once(struct tensors *list, size_t from, size_t end)
{
    size_t n = from;
    for (size_t i = from; i < end; i++)
        if (n == from || !same_piece(list->v[n - 1], list->v[i]))
            list->v[n++] = list->v[i];
    return n;
}

int tensors_cover(const struct tensors *list, size_t from, size_t end, struct el_err *e)
{
    const struct tensor *first = list->v[from];
    char shown[EL_SHOW_MAX];
    uint64_t whole, sum = 0, n;
    el_show(first->name, shown);
    for (size_t i = from; i < end; i++) {
        if (check_piece(first, list->v[i], shown, e))
            return -1;
        if (!elements(list->v[i]->size, list->v[i]->rank, &n) || __builtin_add_overflow(sum, n, &sum))
            return ckpt_fail(e, CKPT_DAMAGED, "tensor \"%s\" is larger than 64 bits can say", shown);
    }
    if (!first->from) /* whole: a second one is a copy, or somebody's mistake */
        return end - from == 1 ? 0
                               : ckpt_fail(e, CKPT_DAMAGED, "tensor \"%s\" is in %s and in %s", shown, first->file,
                                           list->v[from + 1]->file);
    if (!elements(first->shape, first->rank, &whole))
        return ckpt_fail(e, CKPT_DAMAGED, "tensor \"%s\" is larger than 64 bits can say", shown);
    if (check_overlap(list, from, end, shown, e))
        return -1;
    if (sum < whole)
        return ckpt_fail(e, CKPT_INCOMPLETE, "tensor \"%s\": %llu of its %llu elements are in no file", shown,
                         (unsigned long long)(whole - sum), (unsigned long long)whole);
    return sum == whole ? 0 : ckpt_fail(e, CKPT_DAMAGED, "tensor \"%s\": its pieces overlap", shown);
}

bool tensors_match(const char *pattern, const char *name)
{
    const char *star = NULL, *again = NULL;
    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            again = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++again;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}
