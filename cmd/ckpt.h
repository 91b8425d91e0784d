/* elrun ckpt: what its verbs share. */
#ifndef CMD_CKPT_H
#define CMD_CKPT_H
#include "ckpt/root.h"
#include "ckpt/scan.h"
#include "ckpt/verify.h"
#include "cmd.h"
#include "util/time.h"

#define CKPT_VERBS "ls|verify|gc|pin|unpin|cat|status|save"

struct ckpt_conf {
    bool json, tensors, deep, repair_latest, add_manifest, dry_run, foreign;
    const char *glob, *run_id;
    unsigned keep_last, keep_every, jobs;
    el_usec wait;
};

/* What a path on the command line is: a root with checkpoints in it, one checkpoint, or one file. */
struct ckpt_place {
    struct root root;
    struct ckpt_fs fs;
    char *real;         /* the path without links */
    const char *dir;    /* below root: the checkpoint; "" with a file; NULL: it is a root */
    const char *file;   /* NULL: not a file */
    const char *called; /* the file, as it was named: a link may call it otherwise */
};

/* One call of `elrun ckpt`. */
struct ckpt_call {
    const struct ckpt_conf *conf;
    struct el_mem mem;
    int argc;
    char **argv; /* operands */
    struct el_buf out;
    char nonce[CKPT_NONCE_MAX];
    bool progress; /* stderr is a terminal */
};

/* Looks at that checkpoint or file. */
int ckpt_place_look(const struct ckpt_place *p, const char *dir, struct inspect *l, struct el_mem *mem,
                    struct el_err *e);

int ckpt_place_open(struct ckpt_place *p, const char *path, struct el_err *e);
void ckpt_place_close(struct ckpt_place *p);

/* The verbs: a verdict or 0; an error of its own in *e, then the result does not matter. */
int ckpt_ls(struct ckpt_call *c, struct el_err *e);
int ckpt_verify(struct ckpt_call *c, struct el_err *e);
int ckpt_gc(struct ckpt_call *c, struct el_err *e);
int ckpt_pin(struct ckpt_call *c, struct el_err *e);
int ckpt_unpin(struct ckpt_call *c, struct el_err *e);
int ckpt_cat(struct ckpt_call *c, struct el_err *e);
int ckpt_status(struct ckpt_call *c, struct el_err *e);
int ckpt_save(struct ckpt_call *c, struct el_err *e);

/* A struct verify for this call, with its threads and its line of progress; ckpt_verifier_end() takes the line away. */
void ckpt_verifier(struct ckpt_call *c, struct verify *v, bool deep);
void ckpt_verifier_end(struct ckpt_call *c);

/* "1.2 GiB". */
const char *ckpt_size(uint64_t bytes, char out[32]);
/* A JSON string; bytes that are no UTF-8 are replaced. */
void ckpt_put_string(struct el_buf *out, const char *name, const char *value);
/* Text for people, without what steers a terminal. */
void ckpt_put_shown(struct el_buf *out, const char *text);

#endif
