/* The journal of a coordinator, as bytes: one record a line, the newest of a job counts.
 *
 *     run=pretrain number=7 coord=91c4… restarts=1 … ended=0 status=0 text= sum=0d5e…\n
 *
 * In the two strings all but letters, digits and a few signs is %XX, so that a line is a line.  The sum is over what
 * stands before it.  After a power loss the end of the file may be anything: what follows the last whole record is
 * dropped.  A broken line with whole ones behind it is damage of another kind and an error. */
#ifndef COORD_JOURNAL_H
#define COORD_JOURNAL_H
#include <stdbool.h>
#include <stddef.h>

#include "coord/rdzv.h"
#include "util/buf.h"
#include "util/err.h"

#define JOURNAL_LINE_MAX 4096 /* bytes of a record, with its newline */

/* 0, or -1 if the buffer refused: then nothing is appended. */
int journal_encode(const struct rdzv_record *r, struct el_buf *out);

/* One line without its newline.  False: it is no whole record. */
bool journal_decode(const char *line, size_t n, struct rdzv_record *out);

/* Calls fn for each record, in order.  *good: how many bytes hold whole records only.  -1 and *e: damage before a whole
 * record (the number of the line is named); fn may have been called. */
typedef void journal_fn(void *ctx, const struct rdzv_record *r);
int journal_read(const char *bytes, size_t n, journal_fn *fn, void *ctx, size_t *good, struct el_err *e);

/* The newest record of each job, oldest first: what a journal is made of again when it has grown. */
#define JOURNAL_JOBS_MAX  1024 /* beyond that the oldest goes, ended ones first */
#define JOURNAL_ENDED_MAX 256

struct journal_set {
    struct el_mem *mem;
    struct rdzv_record *v; /* JOURNAL_JOBS_MAX + 1, from the first record on */
    size_t n, ended;
};

int journal_set_put(struct journal_set *s, const struct rdzv_record *r); /* -1: no memory */
bool journal_set_take(struct journal_set *s, const char *run_id,
                      struct rdzv_record *out); /* and it is not in it any more */
void journal_set_free(struct journal_set *s);

/* --- the shell (journal_io.c): a folder with the file `journal`, and `lock`, which one coordinator holds --- */
struct journal;
struct loop;
struct pool;

/* Called in the loop's thread: everything up to `serial` of this job is durable, or (!ok) could not be written. */
typedef void journal_done_fn(void *ctx, uint64_t job, uint64_t serial, bool ok);

/* Makes the folder if it is not there, locks it, reads the journal (fn gets the newest record of each job) and writes
 * it anew without what is old.  Blocks: for the start only.  NULL and *e: in use (75), damaged (78), not to be had
 * (73). */
struct journal *journal_open(const char *folder, journal_fn *fn, void *ctx, struct el_err *e);

/* Who is told, and by which pool the disk is written.  Before the first journal_write(). */
void journal_start(struct journal *j, struct loop *l, struct pool *pool, journal_done_fn *done, void *ctx);

/* Never calls back at once.  While the disk is busy, records gather and go together; of several of one job that gather,
 * only the last serial is answered. */
void journal_write(struct journal *j, uint64_t job, uint64_t serial, const struct rdzv_record *r);

/* Nobody is told any more; what the disk has begun is left to end. */
void journal_close(struct journal *j);

#endif
