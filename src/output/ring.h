/* The last bytes of a stream. */
#ifndef OUTPUT_RING_H
#define OUTPUT_RING_H
#include <stddef.h>
#include <stdint.h>

#include "util/mem.h"

#define RING_BYTES (64u * 1024u)

struct ring {
    struct el_mem *mem;
    char *v;        /* NULL until the first byte */
    size_t len, at; /* bytes kept; where the next one goes */
    uint64_t total; /* bytes seen */
};

/* -1: no memory, nothing kept (total counts on). */
int ring_put(struct ring *r, const char *bytes, size_t n);
/* Copies what is kept, oldest first, to[RING_BYTES]; returns its length. */
size_t ring_copy(const struct ring *r, char *to);
void ring_free(struct ring *r);

#endif
