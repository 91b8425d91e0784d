/* Numbers by 64-bit key, in a table whose size is fixed at the start: which member has this instance id, this node
 * rank. */
#ifndef COORD_ID_TABLE_H
#define COORD_ID_TABLE_H
#include <stdint.h>

#include "util/mem.h"

#define ID_TABLE_NONE UINT32_MAX

struct id_table_cell {
    uint64_t key;
    uint32_t value; /* ID_TABLE_NONE: free */
};

struct id_table {
    uint32_t mask, used;
    struct id_table_cell *cell;
};

/* Room for n entries at a load of at most one half.  0, or -1 when memory is refused. */
int id_table_init(struct id_table *t, uint32_t n, struct el_mem *mem);
void id_table_free(struct id_table *t, struct el_mem *mem);

/* The value, or ID_TABLE_NONE. */
uint32_t id_table_get(const struct id_table *t, uint64_t key);

/* Adds or replaces. */
void id_table_put(struct id_table *t, uint64_t key, uint32_t value);
void id_table_drop(struct id_table *t, uint64_t key);

#endif
