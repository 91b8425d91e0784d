/* Which steps of a node's snapshots are written to disk, in which order, and which slots are kept for them: pure.
 *
 *     wish:  waiting -> ordered -> (on disk | failed)
 *               `---------------> given up
 *
 * A wish is a promise: a step that a script wants on disk (persist=True), or that the last words of the job want there,
 * ends on disk, or in a text that says why not.  Wishes queue, the lowest step comes first, and none takes the place of
 * another.  One is written at a time.
 *
 * The slots of a wished step are held from the moment at which each was committed until it is written: ranks are never
 * quite together, and the first to commit must not write over the step before the last has committed it.  A worker
 * whose slots are all held is busy until then.  So each wish that is not given up has a slot, and there are never more
 * of them than slots.  A step that can never be whole (a rank left it out, or has ended without it) is given up at
 * once, for the slots that it holds would make its workers wait for nothing. */
#ifndef SNAPSHOT_PERSIST_H
#define SNAPSHOT_PERSIST_H
#include <stddef.h>

#include "snapshot/keeper.h"

struct persist;

/* What was decided; the text is valid until the next call. */
struct persist_news {
    enum persist_what {
        PERSIST_NOTHING,
        PERSIST_WRITE,   /* step is to be written: persist_sources() */
        PERSIST_GIVEN_UP /* a wished step will not be written: text says why */
    } what;
    int64_t step;
    bool promised; /* GIVEN_UP: the script wanted it on disk */
    const char *text;
};

/* NULL: no memory.  The keeper must outlive it. */
struct persist *persist_new(struct keeper *k, unsigned workers, struct el_mem *mem);
void persist_free(struct persist *p);

/* A slot was committed (KEEPER_DO_COMMITTED).  After this and after each of the next: persist_next() until NOTHING. */
void persist_committed(struct persist *p, unsigned worker, unsigned slot);
/* The newest covered step is wished if it is neither on disk nor on its way, and has not failed: for an emergency
 * checkpoint, or because an operator asks for it.  That promises nothing to the script.  True: it is now. */
bool persist_want_newest(struct persist *p, bool lastwords);
/* A step that failed may be tried once more: somebody asks for it. */
void persist_forgive(struct persist *p);
/* What was being written is on disk, or cannot be.  broken: index into the sources of one whose bytes are not what was
 * committed, -1: none. */
void persist_done(struct persist *p, bool good, int broken);
/* The workers have ended: a wish that is not whole when the last sums are made will not become so. */
void persist_round(struct persist *p);

struct persist_news persist_next(struct persist *p);

/* A worker has left out a step that the script wants on disk, and holds nothing of it; why is kept. */
void persist_unmet(struct persist *p, int64_t step, uint64_t lineage, const char *why);

/* Somebody else says when (one of several nodes): a wish waits until persist_order() (true: it is being written now,
 * from these slots), and is over when that one says so, not when the bytes of this node are written. */
void persist_defer(struct persist *p);
bool persist_order(struct persist *p, int64_t step, uint64_t lineage, bool lastwords, const struct keeper_source *v,
                   unsigned n);
/* good: it is on disk.  True: it was wished. */
bool persist_over(struct persist *p, int64_t step, uint64_t lineage, bool good);
/* The order came to nothing, but not because of the step: it is wished again.  False: it is not held whole any more. */
bool persist_again(struct persist *p, int64_t step, uint64_t lineage);
/* The wishes that are not over, the lowest step first, "12@9f3a 15@9f3a", at most so many; to. */
const char *persist_wishes_text(const struct persist *p, unsigned max, char *to, size_t size);
/* The first of them is not waited for any more; false: there is none. */
bool persist_drop_wish(struct persist *p, int64_t *step, bool *promised);

/* All ranks go on from this step (KEEPER_NO_STEP: from the beginning): what is beyond it, on disk, wished or being
 * written, is of a history that was given up, but for what is of the lineage that they have begun since (0: none). */
void persist_went_back(struct persist *p, int64_t step, uint64_t lineage);

/* Of the step that is being written; their slots are held. */
const struct keeper_source *persist_sources(const struct persist *p, unsigned *n);

int64_t persist_writing(const struct persist *p); /* KEEPER_NO_STEP: nothing is */
int64_t persist_on_disk(const struct persist *p); /* newest step that was written here; KEEPER_NO_STEP: none was */
bool persist_is_lastwords(const struct persist *p);
bool persist_is_promised(const struct persist *p); /* what is being written: the script wanted it on disk */
bool persist_is_idle(const struct persist *p);     /* nothing is wished or written */
void persist_check(const struct persist *p);

#endif
