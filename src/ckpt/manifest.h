/* MANIFEST.json: nothing is a checkpoint until it says so.  It names each file with its size and the CRC32C of each of
 * its chunks, and ends with the CRC32C of its own text:
 *
 *   {"format":"elrun-manifest","version":1,"step":1200,"layout":"elrun",…,"files":[…],"parts":{…},"self_crc":"1a2b3c4d"}
 *
 * self_crc is computed over the whole text with its eight digits blank (spaces). */
#ifndef CKPT_MANIFEST_H
#define CKPT_MANIFEST_H
#include "ckpt/ckpt.h"
#include "util/buf.h"
#include "util/fields.h"

#define MANIFEST_BYTES_MAX ((size_t)256 << 20)
#define MANIFEST_FILES_MAX 1000000u
#define MANIFEST_CHUNK     ((uint64_t)4 << 20) /* what is written; what is read may have others */
#define MANIFEST_CHUNK_MIN 4096u
#define MANIFEST_CHUNK_MAX ((uint64_t)1 << 30)

/* step: -1 where a foreign directory tells none.  layout: what the directory holds, "elrun" or a foreign format
 * (fmt.h).  run_id: of the job; "" where
 * somebody else wrote the files.  epoch: "<number>.<coord in hex>.<counter>" of the order to write it.  nonce: of that
 * commit.  lineage: of the step (lineage.h); 0 in one that was written before there were any, manifest_lineage()
 * tells what stands in for it.  layout_id: of the model's division into parts and shards.  sig: kept free for a
 * signature. */
#define MANIFEST_FIELDS(F, T)                                                                                          \
    F(T, STR, format, 32, 1)                                                                                           \
    F(T, NUM, version, 1000, 1)                                                                                        \
    F(T, INT, step, 999999999999999, 1)                                                                                \
    F(T, STR, layout, 32, 1)                                                                                           \
    F(T, STR, run_id, 512, 0)                                                                                          \
    F(T, STR, epoch, 128, 0)                                                                                           \
    F(T, STR, nonce, 64, 0)                                                                                            \
    F(T, HEX, lineage, 0, 0)                                                                                           \
    F(T, NUM, world, 1 << 24, 0)                                                                                       \
    F(T, BOOL, emergency, 0, 0)                                                                                        \
    F(T, STR, layout_id, 512, 0)                                                                                       \
    F(T, NUM, created, INT64_MAX, 0)                                                                                   \
    F(T, NUM, consumed_samples, INT64_MAX, 0)                                                                          \
    F(T, STR, sig, 4096, 0)

struct manifest_file {
    const char *name; /* below the directory */
    const char *node; /* whose disk it is on, with --ckpt-store=local; "" on a shared one */
    uint64_t size;
    uint32_t crc; /* CRC32C of the whole */
    uint64_t chunk;
    uint32_t *chunks; /* CRC32C of each piece of `chunk` bytes; the last one may be shorter */
    size_t chunks_n;
};

struct manifest_part {
    const char *part, *shard_id;
    size_t file; /* index */
};

/* A writer fills the fields, files and parts with what lives longer; a reader gets strings of the tree. */
struct manifest {
    MANIFEST_FIELDS(EL_FIELD_MEMBER, manifest)
    struct manifest_file *files;
    size_t files_n;
    struct manifest_part *parts;
    size_t parts_n;
    struct el_mem *mem; /* of files, chunks and parts after manifest_read() */
    void *tree;
    uint32_t self_crc;
};

/* How many chunks a file has. */
size_t manifest_chunks(uint64_t size, uint64_t chunk);

/* Appends the text; format, version and self_crc are this function's. */
int manifest_put(const struct manifest *m, struct el_buf *out, struct el_err *e);

/* Reads a text of n bytes, of which every promise is checked: limits, names, sizes, that chunks and whole agree.  -1:
 * *e says CKPT_DAMAGED (torn, edited by hand, contradicts itself), CKPT_UNSUPPORTED (of a newer elrun) or
 * EL_EXIT_OSERR. manifest_free() also after an error. */
int manifest_read(struct manifest *m, struct el_mem *mem, const char *text, size_t n, struct el_err *e);
void manifest_free(struct manifest *m);

uint64_t manifest_lineage(const struct manifest *m);

/* NULL: not among the files. */
const struct manifest_file *manifest_find(const struct manifest *m, const char *name);

#endif
