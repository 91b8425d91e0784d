/* The tensors of a checkpoint, from whatever format: one entry for each piece that is stored. */
#ifndef CKPT_TENSORS_H
#define CKPT_TENSORS_H
#include <stdbool.h>

#include "ckpt/ckpt.h"
#include "util/mem.h"

enum tensor_place {
    TENSOR_RAW, /* row-major at `at` */
    TENSOR_ZIP, /* in a torch.save archive that is `bytes` long and begins at `at` */
    TENSOR_ODD, /* not row-major, or of a storage that is not stored as it is */
};

struct tensor {
    const char *name;
    const char *dtype; /* as safetensors has it */
    const char *file;
    unsigned rank;
    const uint64_t *shape; /* of the whole tensor, as far as it is known */
    const uint64_t *size;  /* of this piece; the same array where it is the whole */
    const uint64_t *from;  /* its first element in the whole; NULL: it is the whole */
    enum tensor_place place;
    uint64_t at, bytes;
};

struct tensors {
    struct el_mem *mem;
    struct tensor **v;
    size_t n, room;
};

/* A copy of *t with arrays and name of its own; dtype and file must outlive the list.  shape NULL: that of the piece.
 */
int tensors_add(struct tensors *list, const struct tensor *t, struct el_err *e);
void tensors_free(struct tensors *list);

/* By name, then by place in the whole. */
void tensors_sort(struct tensors *list);

/* For pieces of a tensor whose shape nobody told: the whole is as large as the pieces reach.  The list is sorted. */
void tensors_infer(struct tensors *list);

/* Of a sorted list: pieces [i, end) are those of one tensor. */
size_t tensors_group(const struct tensors *list, size_t i);

/* Whether each piece of a group is all of the tensor: what several ranks have under one name, and need not be one. */
bool tensors_copies(const struct tensors *list, size_t from, size_t end);

/* Leaves out of a group what is the same piece as another: ranks that hold it alike, such as the replicas of a hybrid
 * sharding, have each saved it.  Returns where the group ends then. */
size_t tensors_once(struct tensors *list, size_t from, size_t end);

/* Whether the pieces of a group fill the whole, each element once.  -1: CKPT_INCOMPLETE (a gap) or CKPT_DAMAGED
 * (overlap, beyond the whole, types that differ). */
int tensors_cover(const struct tensors *list, size_t from, size_t end, struct el_err *e);

/* "*" any run, "?" one character, the rest itself. */
bool tensors_match(const char *pattern, const char *name);

#endif
