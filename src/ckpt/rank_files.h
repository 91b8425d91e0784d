/* Files of ranks: names that say which rank wrote a file, but not how many ranks there were. */
#ifndef CKPT_RANK_FILES_H
#define CKPT_RANK_FILES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"
#include "util/mem.h"

/* "words" and a number; *at moves behind it. */
bool rank_files_take(const char **at, const char *words, uint64_t *number);

enum shard_kind { SHARD_NONE, SHARD_OPTIMIZER, SHARD_PARAMETERS, SHARD_MODEL };

/* zero_pp_rank_1_mp_rank_00_optim_states.pt: the optimizer of data rank 1; …_model_states.pt: its parameters, of ZeRO
 * stage 3; mp_rank_00_model_states.pt: what all data ranks have alike. */
enum shard_kind rank_files_shard(const char *name, uint64_t *data, uint64_t *model);

/* rng_state_3.pth, random_states_3.pkl, pytorch_model_fsdp_rank3.bin, consolidated.03.pth, model_tp3.pt; of DeepSpeed
 * layer_04-model_01-model_states.pt and layer_4_expert_7_mp_rank_00_model_states.pt. */
struct rank_files {
    const char *name;
    size_t of;      /* which of the names it is */
    size_t at, end; /* the number in it */
    uint64_t number;
    bool sure;
    bool whole; /* of all ranks, not only of those in one direction */
    bool meta;  /* consolidated.03.pth */
    bool from0; /* only where there is a number 0 */
};

/* Those among names, members of one set together, by number; the list is the caller's, by el_free().  -1: no memory. */
int rank_files_list(const char *const *names, size_t names_n, struct el_mem *mem, struct rank_files **list, size_t *n,
                    struct el_err *e);

/* What has one name but for the number. */
struct rank_set {
    const char *name; /* of the member with the highest number */
    size_t at, end;   /* that number */
    uint64_t n, most; /* how many numbers, however many zeros they are written with; the highest */
    bool zero;        /* there is a number 0 */
    bool many;        /* it is sure to be one of ranks: by its name, or there are several */
    bool counted;     /* verify: something in the checkpoint says how many there should be, and they are there */
    bool uncounted;   /* verify: nothing says, and the last ones could be missing */
};

struct rank_sets {
    struct rank_set *v; /* in an order of their own */
    size_t n;
};

/* The set that begins at `from` of a list; where the next one does. */
size_t rank_files_set(const struct rank_files *list, size_t n, size_t from, struct rank_set *to);

/* The sets of a directory, with names of their own.  -1: no memory; rank_files_sets_free() also then. */
int rank_files_sets(struct rank_sets *s, const char *const *names, size_t names_n, struct el_mem *mem,
                    struct el_err *e);
void rank_files_sets_free(struct rank_sets *s, struct el_mem *mem);

/* The set that is called as x is; else one that is but for the number of the step that each is of (-1: unknown):
 * "step_20_rank_0.pt" as "step_10_rank_0.pt".  NULL: none is. */
const struct rank_set *rank_files_find(const struct rank_sets *in, int64_t in_step, const struct rank_set *x,
                                       int64_t step);

/* What is missing in x if it was to have what y has: members, or the one with the highest number. */
bool rank_files_lacks(const struct rank_set *x, const struct rank_set *y);

#endif
