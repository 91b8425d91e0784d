/* The counted allocator: the only door to malloc in the core.  Every user has a limit that is written down somewhere,
 * and running into it is a result (NULL), never an abort. */
#ifndef UTIL_MEM_H
#define UTIL_MEM_H
#include <stdbool.h>
#include <stddef.h>

struct el_mem {
    size_t used_bytes; /* what is out now, with the allocator's own 16 bytes a piece */
    size_t peak_bytes;
    size_t limit_bytes; /* 0 = no limit */
    long fail_after;    /* tests: the n-th allocation from now fails, then all; -1 = never */
    /* Called when the limit says no: may el_free() what nobody up to the caller of the allocation uses, and say so:
     * then it is tried again.  NULL: the limit is the last word. */
    bool (*reclaim)(struct el_mem *mem);
    struct el_mem *parent; /* pays, too, and outlives it: the limit of several of its kind together.  NULL: none */
    size_t leaves_bytes;   /* so much of the parent's limit it never takes: for those beside it */
};

#define EL_MEM_INIT(limit) ((struct el_mem){.limit_bytes = (limit), .fail_after = -1})

/* Zeroed memory of n bytes (n may be 0), or NULL when the limit or the machine says no.  mem may be NULL: not counted.
 */
void *el_alloc(struct el_mem *mem, size_t n);

/* Grows or shrinks; the new part is not zeroed; on NULL the old block stays as it was. */
void *el_realloc(struct el_mem *mem, void *p, size_t n);

void el_free(struct el_mem *mem, void *p);

/* A copy of n bytes with a 0 behind. */
char *el_strndup(struct el_mem *mem, const char *s, size_t n);

#endif
