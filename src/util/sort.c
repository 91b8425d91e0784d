#include "util/sort.h"

#include <assert.h>
#include <string.h>

static void sort_swap(char *a, char *b, size_t bytes)
{
    char t[EL_SORT_ITEM_MAX];
    memcpy(t, a, bytes);
    memcpy(a, b, bytes);
    memcpy(b, t, bytes);
}

/* Lets the item at `at` sink until the heap of n items has its largest on top again. */
static void sink(char *v, size_t at, size_t n, size_t bytes, el_compare_fn *compare)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && compare(v + child * bytes, v + (child + 1) * bytes) < 0)
            child++;
        if (compare(v + at * bytes, v + child * bytes) >= 0)
            return;
        sort_swap(v + at * bytes, v + child * bytes, bytes);
    }
}

void el_sort(void *items, size_t n, size_t item_bytes, el_compare_fn *compare)
{
    assert(item_bytes && item_bytes <= EL_SORT_ITEM_MAX);
    char *v = items;
    for (size_t i = n / 2; i-- > 0;)
        sink(v, i, n, item_bytes, compare);
    for (size_t left = n; left > 1; left--) {
        sort_swap(v, v + (left - 1) * item_bytes, item_bytes);
        sink(v, 0, left - 1, item_bytes, compare);
    }
}

size_t el_first(const void *items, size_t n, size_t item_bytes, const void *key, el_compare_fn *compare)
{
    const char *v = items;
    size_t from = 0;
    for (size_t to = n; from < to;) {
        size_t middle = from + (to - from) / 2;
        if (compare(v + middle * item_bytes, key) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}
