/* Going back to a step that lies on disk: which there are that fit what the workers have declared, and reading one into
 * memory with every byte compared with the manifest's sums.  Any thread may call. */
#ifndef SNAPSHOT_LOAD_H
#define SNAPSHOT_LOAD_H
#include "ckpt/fs.h"
#include "ckpt/layout.h"

#define LOAD_LOOK_MAX   256u /* directories that are looked into: those that were written last */
#define LOAD_WHY_MAX    200u
#define LOAD_LEFT_MAX   (LOAD_WHY_MAX + 1)    /* names of parts */
#define LOAD_RANK_BITS  4096u                 /* local ranks, a bit for each, */
#define LOAD_RANK_WORDS (LOAD_RANK_BITS / 64) /* of words with 64 bits */
#define LOAD_OWN_PART   "@rank"               /* OWN of src/client/elrun/parts.py: it follows from what is shared */

/* A part that some worker of this node has declared. */
struct load_part {
    const char *part, *shard_id;
    bool named; /* a file that the script named; else tensors */
    bool own;   /* its rank's piece of a replica: where all share the same, that of the lowest rank will do, or none */
    unsigned worker; /* local rank */
};

/* One that could not be read before; what is written anew under its number has another lineage, as a rule. */
struct load_bad {
    int64_t step;
    uint64_t lineage;
};

struct load_want {
    enum ckpt_layout layout;
    const char *layout_id; /* as declared */
    const struct load_part *v;
    size_t n;
    const struct load_bad *bad;
    size_t bad_n;
    bool whole; /* v is all that the job has; else what the ranks of one of its nodes have: */
    unsigned rank_base, ranks;
};

struct load_found {
    unsigned n;
    int64_t step[LOAD_LOOK_MAX]; /* newest first; each holds all that is wanted */
    uint64_t lineage[LOAD_LOOK_MAX];
    char left[LOAD_LOOK_MAX][LOAD_LEFT_MAX]; /* "\"ema\", \"rng\"": parts of each, of ranks that are here, which none
                                                 of them declares; "": none */
    uint64_t lacks_own[LOAD_LOOK_MAX][LOAD_RANK_WORDS]; /* whose `own` parts are not there: another's would be read */
    bool any;                                           /* there are checkpoints, of whatever state */
    int64_t newest;             /* the newest of them that is not of a history that was given up; -1 */
    int64_t unusable;           /* the newest of those that cannot be used; -1 */
    char why[LOAD_WHY_MAX + 1]; /* … which that is, and why not; "" */
};

/* A step that was written before one with a lower number is of a history that was given up: it is passed over.  Nothing
 * is loaded of another layout, unless all that is wanted is alike on all ranks.  Never fails: a directory that cannot
 * be read has something that cannot be used. */
void load_look(const struct ckpt_fs *fs, struct el_mem *mem, const struct load_want *want, struct load_found *out);

/* One step: how many bytes a part has there (an `own` one that nobody has: 0), and those bytes.  -1 and *e: which file,
 * and where it is not what the manifest says. */
struct load_step;
struct load_step *load_open(const struct ckpt_fs *fs, struct el_mem *mem, enum ckpt_layout layout, int64_t step,
                            struct el_err *e);
int load_size(const struct load_step *s, const struct load_part *p, uint64_t *bytes, struct el_err *e);
int load_read(struct load_step *s, const struct load_part *p, void *to, uint64_t bytes, struct el_err *e);
/* Counts up with the bytes that load_read() reads. */
void load_watch(struct load_step *s, _Atomic uint64_t *read_bytes);
uint64_t load_consumed_samples(const struct load_step *s);
uint64_t load_lineage(const struct load_step *s);
void load_close(struct load_step *s);

#endif
