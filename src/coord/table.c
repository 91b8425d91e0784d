#include "coord/table.h"

#include <assert.h>
#include <stddef.h>

/* Keys are mixed (murmur3's last step), so that node ranks in a row do not cluster with each other's neighbours. */
static uint32_t home(const struct table *t, uint64_t key)
{
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdu;
    key ^= key >> 33;
    return (uint32_t)key & t->mask;
}

int table_init(struct table *t, uint32_t n, struct el_mem *mem)
{
    uint32_t size = 8;
    while (size < 2 * n)
        size *= 2;
    *t = (struct table){.mask = size - 1, .cell = el_alloc(mem, size * sizeof *t->cell)};
    for (uint32_t i = 0; t->cell && i < size; i++)
        t->cell[i].value = TABLE_NONE;
    return t->cell ? 0 : -1;
}

void table_free(struct table *t, struct el_mem *mem)
{
    el_free(mem, t->cell);
    t->cell = NULL;
}

static uint32_t find(const struct table *t, uint64_t key)
{
    uint32_t i = home(t, key);
    while (t->cell[i].value != TABLE_NONE && t->cell[i].key != key)
        i = (i + 1) & t->mask;
    return i;
}

uint32_t table_get(const struct table *t, uint64_t key)
{
    return t->cell[find(t, key)].value;
}

void table_put(struct table *t, uint64_t key, uint32_t value)
{
    uint32_t i = find(t, key);
    t->used += t->cell[i].value == TABLE_NONE;
    assert(value != TABLE_NONE && t->used <= t->mask / 2 + 1);
    t->cell[i] = (struct table_cell){key, value};
}

/* What follows moves up, so that there are no tombstones. */
void table_drop(struct table *t, uint64_t key)
{
    uint32_t hole = find(t, key);
    if (t->cell[hole].value == TABLE_NONE)
        return;
    t->used--;
    t->cell[hole].value = TABLE_NONE;
    for (uint32_t i = (hole + 1) & t->mask; t->cell[i].value != TABLE_NONE; i = (i + 1) & t->mask) {
        uint32_t at = home(t, t->cell[i].key);
        if (((i - at) & t->mask) < ((i - hole) & t->mask))
            continue;
        t->cell[hole] = t->cell[i];
        t->cell[i].value = TABLE_NONE;
        hole = i;
    }
}
