/* The header of a safetensors file: reading with every rule of the format, and making one.
 *
 *   u64 little endian N | N bytes of JSON, padded with spaces | bytes of the tensors, without holes, to the file's end
 *
 * Memory of a struct safetensors is one allocator's and goes with safetensors_free(); an st of zeros is free already.
 */
#ifndef CKPT_SAFETENSORS_H
#define CKPT_SAFETENSORS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt/ckpt.h"
#include "util/buf.h"

#define SAFETENSORS_HEADER_MAX  100000000u /* bytes of JSON: what the reference takes */
#define SAFETENSORS_TENSORS_MAX 1000000u
#define SAFETENSORS_RANK_MAX    64
#define SAFETENSORS_PREFIX      8 /* bytes in front of the JSON */

/* Name in the file, bits of an element. */
#define SAFETENSORS_DTYPES(X)                                                                                          \
    X(BOOL, 8)                                                                                                         \
    X(F4, 4)                                                                                                           \
    X(F6_E2M3, 6)                                                                                                      \
    X(F6_E3M2, 6)                                                                                                      \
    X(U8, 8)                                                                                                           \
    X(I8, 8)                                                                                                           \
    X(F8_E5M2, 8)                                                                                                      \
    X(F8_E4M3, 8)                                                                                                      \
    X(F8_E8M0, 8)                                                                                                      \
    X(F8_E4M3FNUZ, 8)                                                                                                  \
    X(F8_E5M2FNUZ, 8)                                                                                                  \
    X(I16, 16)                                                                                                         \
    X(U16, 16)                                                                                                         \
    X(F16, 16)                                                                                                         \
    X(BF16, 16)                                                                                                        \
    X(I32, 32)                                                                                                         \
    X(U32, 32)                                                                                                         \
    X(F32, 32)                                                                                                         \
    X(C64, 64)                                                                                                         \
    X(F64, 64)                                                                                                         \
    X(I64, 64)                                                                                                         \
    X(U64, 64)

enum safetensors_dtype {
#define X(name, bits) ST_##name,
    SAFETENSORS_DTYPES(X)
#undef X
        ST_DTYPES_COUNT
};

const char *safetensors_dtype_name(enum safetensors_dtype t);
unsigned safetensors_dtype_bits(enum safetensors_dtype t);
/* ST_DTYPES_COUNT: no such type. */
enum safetensors_dtype safetensors_dtype_find(const char *name);

struct safetensors_tensor {
    const char *name; /* UTF-8, ends with 0 */
    enum safetensors_dtype dtype;
    unsigned rank;         /* 0: a scalar */
    const uint64_t *shape; /* rank of them; one may be 0 */
    uint64_t begin, end;   /* bytes, from the end of the header on */
};

struct safetensors_pair { /* of __metadata__ */
    const char *key, *value;
};

struct safetensors {
    struct el_mem *mem;
    struct safetensors_tensor *tensors; /* in the order of their bytes */
    size_t tensors_n;
    struct safetensors_pair *pairs;
    size_t pairs_n;
    uint64_t data_at; /* where in the file the bytes of the tensors begin */
    uint64_t data_bytes;
    char *texts; /* the store of names, keys and values */
    uint64_t *shapes;
};

/* Bytes of a tensor of this shape: false if that is no whole number of bytes or too large for 64 bits. */
bool safetensors_tensor_bytes(enum safetensors_dtype dtype, const uint64_t *shape, unsigned rank, uint64_t *bytes);

/* The first step: how long the JSON is, by the first SAFETENSORS_PREFIX bytes of a file of file_bytes.  The error says
 * CKPT_DAMAGED. */
int safetensors_header_bytes(const unsigned char prefix[SAFETENSORS_PREFIX], uint64_t file_bytes, size_t *header_bytes,
                             struct el_err *e);

/* The second: n bytes of JSON of a file of file_bytes.  -1: *e says CKPT_DAMAGED, CKPT_UNSUPPORTED (a type of elements
 * or a size that this reader does not know) or EL_EXIT_OSERR (the allocator's limit), with the tensor's name and its
 * bytes in the file.  *s is free then. */
int safetensors_parse(struct safetensors *s, struct el_mem *mem, const char *json, size_t n, uint64_t file_bytes,
                      struct el_err *e);

/* Both, of a whole file. */
int safetensors_read(struct safetensors *s, struct el_mem *mem, const struct ckpt_bytes *file, struct el_err *e);

/* The same of one that lies in memory and whose header, prefix and JSON, has so many bytes as was announced.  Another
 * process may write to it meanwhile: what is read twice is read from a copy. */
int safetensors_read_memory(struct safetensors *s, struct el_mem *mem, const char *file, uint64_t header_bytes,
                            uint64_t file_bytes, struct el_err *e);

void safetensors_free(struct safetensors *s);

/* NULL: not there. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name);
const char *safetensors_pair(const struct safetensors *s, const char *key);

/* Makes the header (prefix and JSON) of a file with these n tensors.  They are put in the order in which their bytes
 * follow (largest elements first, then by name), begin and end are filled in, and the header is padded with spaces so
 * that the bytes begin at a multiple of `align` (a power of two from 8 to 4096).  -1: a name twice, a name that is not
 * UTF-8 or "__metadata__", a size beyond 64 bits, a header that is too long, no memory. */
int safetensors_build(struct safetensors_tensor *tensors, size_t n, const struct safetensors_pair *pairs,
                      size_t pairs_n, size_t align, struct el_buf *out, struct el_err *e);

#endif
