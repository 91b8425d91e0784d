/* Kinds of files, by name: what an earlier checkpoint of a run has and a later one lacks. */
#ifndef CKPT_FILE_KINDS_H
#define CKPT_FILE_KINDS_H
#include "ckpt/scan.h"

/* Whether it has the random numbers of ranks that are called so, or those of one rank instead, or of several. */
bool file_kinds_random(const struct scan_entry *of, const char *name);

/* A set of ranks, or one called as others are but for numbers. */
struct kind {
    const struct scan_entry *of;
    const struct rank_set *set; /* NULL: none */
    const char *name;
    bool lone; /* no other checkpoint of its run has it */
};

/* Those of all valid checkpoints of a root. */
struct file_kinds {
    struct el_mem *mem;
    const struct scan *scan;
    size_t *from; /* by entry: where its kinds begin: its sets, then its other names */
    struct kind *v;
    /* Of those that are lone one for each entry, the last entry first; alike are those as long and divided alike, and
     * those that begin alike. */
    struct file_kinds_order {
        struct kind **v;
        size_t n;
    } divided, begun;
};

/* The scan must stay.  -1: no memory; file_kinds_close() also then. */
int file_kinds_open(struct file_kinds *k, const struct scan *s, struct el_mem *mem, struct el_err *e);
void file_kinds_close(struct file_kinds *k);

/* A file of x of which y, of the same run, has nothing that is called so but for numbers, or fewer; NULL: none.  Names
 * that each checkpoint has anew, as one with a hash in it, do not count: two newer ones of its run have one like it. */
const struct kind *file_kinds_lacks(const struct file_kinds *k, const struct scan_entry *x, const struct scan_entry *y);

/* No checkpoint of its run has anything in its place. */
bool file_kinds_only(const struct kind *k);

#endif
