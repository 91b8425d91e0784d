/* Files that the checkpoints of one job have alike: a name that earlier ones have and a later one lacks is a file that
 * may have been lost. */
#ifndef CKPT_USUAL_FILES_H
#define CKPT_USUAL_FILES_H
#include <stdbool.h>
#include <stddef.h>

#include "util/err.h"
#include "util/mem.h"

#define USUAL_FILES_MAX 4096u /* a checkpoint with more such files is not compared */

/* Names that are one but for their numbers lie together. */
struct usual_files {
    char **v;
    size_t n;
};

/* Those among the names of a directory that hold state or settings, but for files of ranks that only a number tells
 * apart, and logs; of each numbered set one, and of what each rank of Megatron or DeepSpeed has.  -1: no memory;
 * usual_files_free() also then. */
int usual_files_take(struct usual_files *u, const char *const *names, size_t names_n, struct el_mem *mem,
                     struct el_err *e);
void usual_files_free(struct usual_files *u, struct el_mem *mem);

/* In the order of their names without numbers; 0: they differ in those alone. */
int usual_files_order(const char *a, const char *b);

/* How many are called like this one but for their numbers: "model_epoch3.pt" and "model_epoch4.pt" are alike. */
size_t usual_files_count(const struct usual_files *u, const char *name);

/* Where the next ones begin that are called otherwise. */
size_t usual_files_next(const struct usual_files *u, size_t i);

/* Whether there is one that is called so, number and all. */
bool usual_files_has(const struct usual_files *u, const char *name);

/* One of x that y has not, of those from *from on of which y has fewer that are called so; *from moves behind them.
 * NULL: none. */
const char *usual_files_lacks(const struct usual_files *x, const struct usual_files *y, size_t *from);

/* Whether they have any in common. */
bool usual_files_kin(const struct usual_files *a, const struct usual_files *b);

#endif
