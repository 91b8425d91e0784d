/* Which steps of a node's snapshots are written to disk, in which order, and which slots are kept for them: pure.
 *
 *     wish:  waiting -> ordered -> (on disk | failed)
 *               `---------------> given up
 *
 * A wish is a promise: a step that a script wants on disk (persist=True), or that the emergency checkpoint of the job
 * want there, ends on disk, or in a text that says why not.  Wishes queue, the lowest step comes first, and none takes
 * the place of another.  One is written at a time.
 *
 * The slots of a wished step are held from the moment at which each was committed until it is written: ranks are never
 * quite together, and the first to commit must not write over the step before the last has committed it.  A worker
 * whose slots are all held is busy until then.  So each wish that is not given up has a slot, and there are never more
 * of them than slots.  A step that can never be whole (a rank left it out, or has ended without it) is given up at
 * once, for the slots that it holds would make its workers wait for nothing. */
#ifndef SNAPSHOT_FLUSH_H
#define SNAPSHOT_FLUSH_H
#include <stddef.h>

#include "snapshot/slot_table.h"

struct flush;

/* What was decided; the text is valid until the next call. */
struct flush_news {
    enum flush_what {
        FLUSH_NOTHING,
        FLUSH_WRITE,   /* step is to be written: flush_sources() */
        FLUSH_GIVEN_UP /* a wished step will not be written: text says why */
    } what;
    int64_t step;
    bool promised; /* GIVEN_UP: the script wanted it on disk */
    const char *text;
};

/* NULL: no memory.  The keeper must outlive it. */
struct flush *flush_new(struct slot_table *k, unsigned workers, struct el_mem *mem);
void flush_free(struct flush *p);

/* A slot was committed (SLOT_TABLE_DO_COMMITTED).  After this and after each of the next: flush_next() until NOTHING.
 */
void flush_committed(struct flush *p, unsigned worker, unsigned slot);
/* The newest covered step is wished if it is neither on disk nor on its way, and has not failed: for an emergency
 * checkpoint, or because an operator asks for it.  That promises nothing to the script.  True: it is now. */
bool flush_want_newest(struct flush *p, bool emergency);
/* A step that failed may be tried once more: somebody asks for it. */
void flush_forgive(struct flush *p);
/* What was being written is on disk, or cannot be.  broken: index into the sources of one whose bytes are not what was
 * committed, -1: none. */
void flush_done(struct flush *p, bool good, int broken);
/* The workers have ended: a wish that is not whole when the last sums are made will not become so. */
void flush_round(struct flush *p);

struct flush_news flush_next(struct flush *p);

/* A worker has left out a step that the script wants on disk, and holds nothing of it; why is kept. */
void flush_unmet(struct flush *p, int64_t step, uint64_t lineage, const char *why);

/* Somebody else says when (one of several nodes): a wish waits until flush_order() (true: it is being written now,
 * from these slots), and is over when that one says so, not when the bytes of this node are written. */
void flush_defer(struct flush *p);
bool flush_order(struct flush *p, int64_t step, uint64_t lineage, bool emergency, const struct slot_table_source *v,
                 unsigned n);
/* good: it is on disk.  True: it was wished. */
bool flush_over(struct flush *p, int64_t step, uint64_t lineage, bool good);
/* The order came to nothing, but not because of the step: it is wished again.  False: it is not held whole any more. */
bool flush_again(struct flush *p, int64_t step, uint64_t lineage);
/* The wishes that are not over, the lowest step first, "12@9f3a 15@9f3a", at most so many; to. */
const char *flush_wishes_text(const struct flush *p, unsigned max, char *to, size_t size);
/* The first of them is not waited for any more; false: there is none. */
bool flush_drop_wish(struct flush *p, int64_t *step, bool *promised);

/* All ranks go on from this step (SLOT_TABLE_NO_STEP: from the beginning): what is beyond it, on disk, wished or being
 * written, is of a history that was given up, but for what is of the lineage that they have begun since (0: none). */
void flush_went_back(struct flush *p, int64_t step, uint64_t lineage);

/* Of the step that is being written; their slots are held. */
const struct slot_table_source *flush_sources(const struct flush *p, unsigned *n);

int64_t flush_writing(const struct flush *p); /* SLOT_TABLE_NO_STEP: nothing is */
int64_t flush_on_disk(const struct flush *p); /* newest step that was written here; SLOT_TABLE_NO_STEP: none was */
bool flush_is_emergency(const struct flush *p);
bool flush_is_promised(const struct flush *p); /* what is being written: the script wanted it on disk */
bool flush_is_idle(const struct flush *p);     /* nothing is wished or written */
void flush_check(const struct flush *p);

#endif
