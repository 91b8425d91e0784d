/* Sorting in place, without memory of its own; the same order on every machine. */
#ifndef UTIL_SORT_H
#define UTIL_SORT_H
#include <stddef.h>

#define EL_SORT_ITEM_MAX 256 /* bytes of an item */

/* Below 0: a comes first; above 0: b does.  0 for two different items leaves their order open: give a tie another key.
 */
typedef int el_compare_fn(const void *a, const void *b);

void el_sort(void *items, size_t n, size_t item_bytes, el_compare_fn *compare);

/* Of items in this order: which is the first that does not come before the key, n if all do.  compare gets an item and
 * the key, in this order: they need not be of one type. */
size_t el_first(const void *items, size_t n, size_t item_bytes, const void *key, el_compare_fn *compare);

#endif
