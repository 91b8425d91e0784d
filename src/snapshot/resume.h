/* What lies in --ckpt-dir for the workers of this node to go on from: looked for in a thread each time that all of them
 * ask.  Called in the loop's thread only, and the answer comes there. */
#ifndef SNAPSHOT_RESUME_H
#define SNAPSHOT_RESUME_H
#include "snapshot/slot_table.h"
#include "snapshot/load.h"
#include "loop/pool.h"

struct resume;

/* looked(): resume_found() is new.  The table of the directory must stay.  NULL: no memory. */
struct resume *resume_new(struct pool *p, const struct ckpt_fs *fs, enum ckpt_layout layout, void (*looked)(void *ctx),
                          void *ctx);
/* After pool_free(). */
void resume_free(struct resume *r);

/* For what the workers have declared (several: there are other nodes); a look that is under way is not waited for, but
 * done once more. */
void resume_look(struct resume *r, const struct slot_table *k, bool several);
const struct load_found *resume_found(const struct resume *r);
/* That is what is gone back to.  NULL: it is not there; else the local ranks whose own pieces are not, a bit for each.
 * And it has been: what it has, and the script does not declare, is warned of. */
const uint64_t *resume_goes(struct resume *r, int64_t step, uint64_t lineage);
void resume_went(const struct resume *r);

/* It could not be read: not looked at any more. */
void resume_is_bad(struct resume *r, int64_t step, uint64_t lineage);
const struct ckpt_fs *resume_root(const struct resume *r);
enum ckpt_layout resume_layout(const struct resume *r);

#endif
