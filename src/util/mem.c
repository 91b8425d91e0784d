#include "util/mem.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* In front of each block; 16 bytes keep malloc's alignment. */
struct mem_head {
    size_t size; /* of the whole block, head included */
    size_t pad;
};

static_assert(sizeof(struct mem_head) % 16 == 0, "blocks stay aligned");

static int mem_fits(const struct el_mem *mem, size_t more)
{
    return !mem->limit_bytes || (more <= mem->limit_bytes && mem->used_bytes <= mem->limit_bytes - more);
}

static int permits(struct el_mem *mem, size_t more)
{
    if (mem->fail_after == 0)
        return 0;
    if (mem->fail_after > 0)
        mem->fail_after--;
    while (!mem_fits(mem, more))
        if (more > mem->limit_bytes || !mem->reclaim || !mem->reclaim(mem))
            return 0;
    return 1;
}

static int mem_permitted(struct el_mem *mem, size_t more)
{
    for (; mem; more = mem->leaves_bytes < SIZE_MAX - more ? more + mem->leaves_bytes : SIZE_MAX, mem = mem->parent)
        if (!permits(mem, more))
            return 0;
    return 1;
}

static void mem_count(struct el_mem *mem, size_t add, size_t sub)
{
    for (; mem; mem = mem->parent) {
        assert(mem->used_bytes >= sub);
        mem->used_bytes = mem->used_bytes - sub + add;
        if (mem->used_bytes > mem->peak_bytes)
            mem->peak_bytes = mem->used_bytes;
    }
}

void *el_alloc(struct el_mem *mem, size_t n)
{
    if (n > SIZE_MAX - sizeof(struct mem_head))
        return NULL;
    size_t size = n + sizeof(struct mem_head);
    struct mem_head *h = mem_permitted(mem, size) ? calloc(1, size) : NULL;
    if (!h)
        return NULL;
    h->size = size;
    mem_count(mem, size, 0);
    return h + 1;
}

void *el_realloc(struct el_mem *mem, void *p, size_t n)
{
    if (!p)
        return el_alloc(mem, n);
    if (n > SIZE_MAX - sizeof(struct mem_head))
        return NULL;
    struct mem_head *h = (struct mem_head *)p - 1;
    size_t old = h->size, size = n + sizeof *h;
    if (size > old && !mem_permitted(mem, size - old))
        return NULL;
    struct mem_head *grown = realloc(h, size);
    if (!grown)
        return NULL;
    grown->size = size;
    mem_count(mem, size, old);
    return grown + 1;
}

void el_free(struct el_mem *mem, void *p)
{
    if (!p)
        return;
    struct mem_head *h = (struct mem_head *)p - 1;
    mem_count(mem, 0, h->size);
    free(h);
}

char *el_strndup(struct el_mem *mem, const char *s, size_t n)
{
    char *copy = n < SIZE_MAX ? el_alloc(mem, n + 1) : NULL;
    if (copy && n)
        memcpy(copy, s, n);
    return copy;
}
