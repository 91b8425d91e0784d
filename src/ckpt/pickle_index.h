/* A dict of a pickle that is asked for many of its keys: a million units of a flat checkpoint, once for each parameter.
 */
#ifndef CKPT_PICKLE_INDEX_H
#define CKPT_PICKLE_INDEX_H
#include "ckpt/pickle_read.h"

struct pickle_index {
    struct el_mem *mem;
    struct pickle_node *const **v; /* the places of its keys, sorted; the value stands behind */
    size_t n;
    uint64_t compared; /* texts, while it was asked: a test counts them */
};

/* Of anything but a dict it is empty.  -1: no memory.  The tree must live as long. */
int pickle_index_make(struct pickle_index *x, struct el_mem *mem, const struct pickle_node *dict);
void pickle_index_free(struct pickle_index *x);

/* The value of the key that is this text; the first of equal ones; NULL. */
struct pickle_node *pickle_index_get(struct pickle_index *x, const struct pickle_node *text);

#endif
