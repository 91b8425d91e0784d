#include "coord/id_table.h"

#include <assert.h>
#include <stddef.h>

/* Keys are mixed (murmur3's last step), so that node ranks in a row do not cluster with each other's neighbours. */
static uint32_t home(const struct id_table *t, uint64_t key)
{
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdu;
    key ^= key >> 33;
    return (uint32_t)key & t->mask;
}

int id_table_init(struct id_table *t, uint32_t n, struct el_mem *mem)
{
    uint32_t size = 8;
    while (size < 2 * n)
        size *= 2;
    *t = (struct id_table){.mask = size - 1, .cell = el_alloc(mem, size * sizeof *t->cell)};
    for (uint32_t i = 0; t->cell && i < size; i++)
        t->cell[i].value = ID_TABLE_NONE;
    return t->cell ? 0 : -1;
}

void id_table_free(struct id_table *t, struct el_mem *mem)
{
    el_free(mem, t->cell);
    t->cell = NULL;
}

static uint32_t id_table_find(const struct id_table *t, uint64_t key)
{
    uint32_t i = home(t, key);
    while (t->cell[i].value != ID_TABLE_NONE && t->cell[i].key != key)
        i = (i + 1) & t->mask;
    return i;
}

uint32_t id_table_get(const struct id_table *t, uint64_t key)
{
    return t->cell[id_table_find(t, key)].value;
}

void id_table_put(struct id_table *t, uint64_t key, uint32_t value)
{
    uint32_t i = id_table_find(t, key);
    t->used += t->cell[i].value == ID_TABLE_NONE;
    assert(value != ID_TABLE_NONE && t->used <= t->mask / 2 + 1);
    t->cell[i] = (struct id_table_cell){key, value};
}

/* What follows moves up, so that there are no tombstones. */
void id_table_drop(struct id_table *t, uint64_t key)
{
    uint32_t hole = id_table_find(t, key);
    if (t->cell[hole].value == ID_TABLE_NONE)
        return;
    t->used--;
    t->cell[hole].value = ID_TABLE_NONE;
    for (uint32_t i = (hole + 1) & t->mask; t->cell[i].value != ID_TABLE_NONE; i = (i + 1) & t->mask) {
        uint32_t at = home(t, t->cell[i].key);
        if (((i - at) & t->mask) < ((i - hole) & t->mask))
            continue;
        t->cell[hole] = t->cell[i];
        t->cell[i].value = ID_TABLE_NONE;
        hole = i;
    }
}
