/* What the files of verify share. */
#ifndef CKPT_VERIFY_PRIVATE_H
#define CKPT_VERIFY_PRIVATE_H
#include "ckpt/verify.h"

enum verify_what { VERIFY_FILE, VERIFY_CHUNKS, VERIFY_ITEMS, VERIFY_SUM };

/* Something that one thread does alone. */
struct verify_job {
    enum verify_what what;
    struct verify *v;
    const struct inspect *l;
    size_t file;                    /* of the look */
    const struct manifest_file *of; /* VERIFY_CHUNKS */
    struct manifest_file *sum;      /* VERIFY_SUM */
    size_t from, to;                /* chunks, or entries of v->tensors */
    size_t bad;                     /* the chunk that differs */
    struct el_mem mem;              /* its own: the allocator counts without locks */
    struct el_err err;
    struct tensors tensors;
    struct fmt_counts counts;
    bool bare, hollow; /* see struct verify */
    uint64_t silent_bytes;
};

/* What is in one file, by its name and by its first bytes: verify_file_io.c. */
void verify_file(struct verify_job *j);
/* An archive, or one within a file; tensors: they are listed. */
int verify_zip(struct verify_job *j, struct inspect_file *f, bool tensors);

/* All of them, on v->threads threads, with progress.  -1: no threads. */
int verify_run(struct verify *v, struct verify_job *jobs, size_t n, uint64_t all_bytes, struct el_err *e);

/* The whole of a file, as fs_read_small(); and that it cannot be read, for a negative result of that. */
int verify_read(const struct inspect *l, const char *name, size_t max, struct el_mem *mem, char **text, size_t *n);
void verify_unreadable(struct verify *v, const struct inspect *l, const char *name, int r);

/* The first entry of that name in a sorted list, or where it would stand. */
size_t verify_first_of(const struct tensors *t, const char *name);

/* There are as many files of ranks as names and what is in the files say: DeepSpeed, numbers of ranks;
 * and what a file called `latest` names is there. */
void verify_counts(struct verify *v, const struct inspect *l);

/* What a Trainer, accelerate and Megatron write into a folder is all there: what they write last, too. */
void verify_folders(struct verify *v, const struct inspect *l);

/* What the ranks of Megatron and of ATorch wrote belongs together and leaves nothing out.  v->tensors is sorted.  -1:
 * no memory. */
int verify_ranks(struct verify *v, const struct inspect *l, struct el_err *e);

/* The rules that concern several files: sets, index, pieces.  -1: no memory. */
int verify_cross(struct verify *v, const struct inspect *l, struct el_err *e);

/* Entries of .metadata join v->tensors; jobs for their items are the caller's. */
int verify_dcp(struct verify *v, const struct inspect *l, struct el_err *e);

#endif
