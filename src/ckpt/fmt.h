/* Formats: what a directory holds by the names in it, and what each of its files is. */
#ifndef CKPT_FMT_H
#define CKPT_FMT_H
#include <stdbool.h>

#include "ckpt/pickle_read.h"
#include "ckpt/safetensors.h"
#include "ckpt/tensors.h"
#include "ckpt/zip_read.h"

#define CKPT_FORMATS(X)                                                                                                \
    X(NONE, "none")                                                                                                    \
    X(ELRUN, "elrun")                                                                                                  \
    X(SAFETENSORS, "safetensors")                                                                                      \
    X(HF, "huggingface")                                                                                               \
    X(DCP, "dcp")                                                                                                      \
    X(MEGATRON, "megatron")                                                                                            \
    X(DEEPSPEED, "deepspeed")                                                                                          \
    X(TRAINER, "trainer")                                                                                              \
    X(ATORCH, "atorch")                                                                                                \
    X(TORCH, "torch")

enum ckpt_format {
#define X(NAME, word) CKPT_FORMAT_##NAME,
    CKPT_FORMATS(X)
#undef X
        CKPT_FORMATS_COUNT
};

const char *ckpt_format_word(enum ckpt_format f);

enum fmt_kind {
    FMT_OTHER,
    FMT_SAFETENSORS,
    FMT_ZIP,   /* of torch.save, in its zip format or the older one */
    FMT_INDEX, /* which file has which tensor */
    FMT_DCP_METADATA,
    FMT_DCP_DATA,
    FMT_JSON,
    FMT_DATA,    /* other data: pickles, arrays of numpy */
    FMT_LEFTOVER /* what was being written or fetched and never got its name: no reader looks at it */
};

/* By its name below the directory. */
enum fmt_kind fmt_kind(const char *name);

/* Whether it is the weights, or the state, of a checkpoint by its name: what names a directory as one. */
bool fmt_is_state(enum fmt_kind kind);

/* Of all names of a directory. */
enum ckpt_format fmt_detect(const char *const *names, size_t n);

/* One of a numbered set, whose name says how many there are: "model-00002-of-00005.safetensors" is 2 of 5, counted from
 * 1, or from 0 where there is a number 0; "flat_param.00001-00004" is 1 of 4, counted from 0; so are ranks:
 * "rank_0_of_4", "model_world_size_4_rank_0", "rank-0_world-4", "r0_w4".  Also the name of a folder. */
struct fmt_member {
    uint64_t i, n;
    unsigned first; /* 0 or 1 */
    bool sure;      /* nothing else is called so; else only a set of which half is there is one */
    size_t number_at, number_end, count_at, count_end; /* the parts of the name that count */
};
bool fmt_member(const char *name, struct fmt_member *m);

/* Numbers that are missing: the first of them, and how many there are. */
#define FMT_MISSING_TOLD 4
#define FMT_MISSING_TEXT 80
struct fmt_missing {
    uint64_t v[FMT_MISSING_TOLD], n;
};
/* Those from `from` on below `to`. */
void fmt_missing_add(struct fmt_missing *m, uint64_t from, uint64_t to);
/* "3", "1 and 3", "1, 3, 4, 6 and 12 more"; returns text. */
const char *fmt_missing_put(const struct fmt_missing *m, char text[FMT_MISSING_TEXT]);

/* Calls gap() for each numbered set of which not all members are among the names: a member of it, the numbers that are
 * missing, and how many there should be.  Sets that differ in their total are different sets.  -1: no memory. */
typedef void fmt_gap_fn(void *arg, const char *name, const struct fmt_missing *missing, uint64_t total);
int fmt_gaps(const char *const *names, size_t n, struct el_mem *mem, fmt_gap_fn *gap, void *arg, struct el_err *e);

/* --- what files say --- */

/* The tensors of a safetensors file, with the boxes that torch's writer notes in it; an unreadable note is
 * CKPT_DAMAGED. */
int fmt_st_tensors(struct tensors *to, const char *file, const struct safetensors *s, struct el_err *e);

/* model.safetensors.index.json: calls each(arg, tensor, file) for its weight_map; not 0 ends it. */
int fmt_index(const char *json, size_t n, int (*each)(void *arg, const char *tensor, const char *file), void *arg,
              struct el_err *e);

/* What a file of one rank says about how many files there should be; 0: it does not say. */
struct fmt_counts {
    uint64_t data_ranks, model_ranks; /* DeepSpeed */
    uint64_t partitions;              /* into which ZeRO has divided the optimizer */
    uint64_t zero_stage;
    uint64_t tensor, pipeline, expert; /* Megatron: its ranks in each direction */
    bool apart;                        /* Megatron: each data parallel rank has its part of the optimizer */
    uint64_t processes;                /* a Trainer's arguments */
    uint64_t world;                    /* anybody's: "world_size", "num_ranks", … at the top */
    bool rank;                         /* and "rank" beside it: every rank has written one */
};

/* The tensors of a torch.save archive.  base: where it begins in the file; bytes speaks of the archive alone.  counts
 * may be NULL. */
int fmt_torch_tensors(struct tensors *to, const char *file, uint64_t base, const struct ckpt_bytes *bytes,
                      const struct zip *z, struct fmt_counts *counts, struct el_err *e);

/* The same of a file of torch.save before 1.6: pickles, then its storages one behind the other, to the last byte.
 * CKPT_DAMAGED: it is cut off. */
int fmt_old_tensors(struct tensors *to, const char *file, const struct ckpt_bytes *bytes, struct fmt_counts *counts,
                    struct el_err *e);

/* One item of a .distcp file: a piece of a tensor, or (dtype NULL) something else. */
struct fmt_dcp_item {
    const char *name, *file; /* of the tree, ended by 0 only within the call */
    uint64_t at, bytes;
    const char *dtype;
    unsigned rank;
    const uint64_t *shape, *from, *size;
};

#define FMT_DCP_MODULE "torch.distributed.checkpoint.metadata"

/* .metadata: calls each() for each piece.  CKPT_INCOMPLETE: a piece that is promised and stored nowhere;
 * CKPT_UNSUPPORTED: stored with a transformation. */
int fmt_dcp(const struct pickle *p, struct el_mem *mem, int (*each)(void *arg, const struct fmt_dcp_item *item),
            void *arg, struct el_err *e);

/* Whether all that it would import is what such a file has.  -1: CKPT_DAMAGED, a name that is none or is almost that of
 * a class of torch's; CKPT_UNSUPPORTED, of a stranger's module. */
int fmt_dcp_names(const struct pickle *p, struct el_err *e);

/* planner_data has where each value lies in the tree of dicts, from which its name was made: -1, CKPT_DAMAGED: one byte
 * differs. */
int fmt_dcp_paths(const struct pickle_node *paths, struct el_err *e);

/* A class, or a type, that torch has in such a file. */
bool fmt_dcp_is_torch(const char *name);

/* "torch float32" -> "F32"; NULL: no such type. */
const char *fmt_torch_dtype(const struct pickle_node *x);

#endif
