/* Numbers by 64-bit key, in a table whose size is fixed at the start: which member has this instance id, this node
 * rank. */
#ifndef COORD_TABLE_H
#define COORD_TABLE_H
#include <stdint.h>

#include "util/mem.h"

#define TABLE_NONE UINT32_MAX

struct table_cell {
    uint64_t key;
    uint32_t value; /* TABLE_NONE: free */
};

struct table {
    uint32_t mask, used;
    struct table_cell *cell;
};

/* Room for n entries at a load of at most one half.  0, or -1 when memory is refused. */
int table_init(struct table *t, uint32_t n, struct el_mem *mem);
void table_free(struct table *t, struct el_mem *mem);

/* The value, or TABLE_NONE. */
uint32_t table_get(const struct table *t, uint64_t key);

/* Adds or replaces. */
void table_put(struct table *t, uint64_t key, uint32_t value);
void table_drop(struct table *t, uint64_t key);

#endif
