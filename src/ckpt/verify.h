/* Everything that can be said against a directory of checkpoints: rules of its formats, promises of its manifest, and
 * with `deep` every byte. */
#ifndef CKPT_VERIFY_H
#define CKPT_VERIFY_H
#include "ckpt/inspect.h"
#include "ckpt/manifest.h"
#include "ckpt/rank_files.h"
#include "ckpt/scan.h"

#define VERIFY_FINDINGS_MAX 1000 /* those beyond are counted */

struct verify_finding {
    struct verify_finding *next;
    int verdict; /* CKPT_DAMAGED …, or an exit status of util/exit.h: it could not be read */
    char *file;  /* below the directory; "" for the directory */
    char *text;
};

struct verify {
    struct el_mem *mem;
    bool deep;
    unsigned threads;                                                     /* 1: in this one */
    void (*progress)(void *ctx, uint64_t done_bytes, uint64_t all_bytes); /* NULL, or now and then while it works */
    void *progress_ctx;
    /* what was found */
    struct verify_finding *findings, **end;
    size_t findings_n;
    int verdict; /* of all of them */
    uint64_t files, bytes_read;
    uint64_t bare_files;   /* whose format has no checksums, and no manifest has them */
    uint64_t hollow_files; /* of safetensors, all of whose data are zeros, and no manifest has them */
    const char *hollow;    /* the first of them, a name of the look */
    uint64_t silent_bytes; /* deep: of archives that were written without their checksums */
    /* Files of ranks without a gap, of which nothing says how many there were: the last ones may be missing. */
    uint64_t uncounted;                 /* files of such sets */
    char uncounted_like[CKPT_PATH_MAX]; /* the last one of the first set */
    uint64_t alone;                     /* files of a rank that say of others, of which none is there: findings */
    struct rank_sets sets;              /* all of ranks; names are those of the look */
    struct fmt_counts *counts;          /* what each file of the look says of the others */
    struct tensors tensors;             /* all of them, sorted; files are names of the look */
    _Atomic uint64_t done;
};

/* v starts as {0} with mem, deep, threads and progress filled in.  -1 only for what has nothing to do with the
 * checkpoint (no memory, no threads). */
int verify_dir(struct verify *v, const struct inspect *l, struct el_err *e);
void verify_free(struct verify *v);

/* Notes something; e is read, not changed. */
void verify_find(struct verify *v, int verdict, const char *file, const char *text);

/* What the other checkpoints of its root say of how many files of ranks there should be, and which others. */
struct verify_others {
    const struct scan_entry *like; /* of another step, with as many of each set that nothing counts; NULL: none */
    const struct scan_entry *more; /* it has more of a set, or what is lost here; NULL: none */
    const char *file;              /* which the finding is about; "" */
    const char *lost;              /* a file that `more` has, the latest of those that have it; NULL: it is a set */
    size_t lost_n;                 /* so many files are lost */
    const char *also[3];           /* the next ones */
    size_t have, before;           /* so many of the earlier ones have that file */
    const struct scan_entry *once; /* has one that few earlier ones have, or that comes and goes; NULL: none */
    const char *gone;              /* that file */
    const struct rank_set *mine;   /* of which there are fewer here; NULL: there are none at all */
    const struct rank_set *its;
};
void verify_others(const struct verify *v, const struct scan *s, const char *name, struct verify_others *to);

/* What speaks against it, for where there is a `more`. */
void verify_others_put(const struct verify_others *o, char *text, size_t n);

/* Reads every byte of the files of a look for the manifest of a directory that somebody else has written.  files_n is
 * l->n; names are those of the look; chunks are the caller's, by el_free(v->mem). */
int verify_sum(struct verify *v, const struct inspect *l, struct manifest_file *files, struct el_err *e);

/* A root's hints: what `latest` and Megatron's tracker name is there.  Found things go to v. */
void verify_hints(struct verify *v, const struct ckpt_fs *fs);

#endif
