/* Emergency checkpoint of workers that still live: which step of theirs is worth more than the newest snapshot, and who
 * copies it into a slot before everybody is stopped.  Pure: where the workers are comes in (their pages, looked at
 * again and again), orders go out.
 *
 *     resting -> agreeing -> copying -> resting
 *
 * A step counts if every worker of the node could go back to it: each has a slot with it, its own or one of a worker
 * that has declared the same, or is between two steps, right behind it, and answers.  Who is in a step that was begun
 * before has EMERGENCY_AGREE to end it.  Then one of those who hold the same is asked to copy; who gives no sign of
 * life for EMERGENCY_SILENT, or ends, or says no, is left out, and another one asked.  Nobody left: the newest snapshot
 * it is.
 *
 * One of several nodes only says which steps there are and what it could have of them; which one it is, is decided for
 * all of them together (coord/emergency_ckpt.h) and told (emergency_told()).  It copies what it can of that, and holds
 * its workers back until it is told that this is over. */
#ifndef SNAPSHOT_EMERGENCY_H
#define SNAPSHOT_EMERGENCY_H
#include "snapshot/slot_table.h"
#include "snapshot/worker_status.h"

#define EMERGENCY_AGREE    EL_SEC(10)
#define EMERGENCY_SILENT   EL_SEC(10)
#define EMERGENCY_LOOK     EL_MS(5) /* how often the pages are looked at meanwhile */
#define EMERGENCY_WHY_SIZE 400

struct emergency_stand {
    bool answers; /* it lives, and has said that it can be asked */
    bool ends;    /* its script has failed: it does not get any further */
    struct worker_status_stand page;
};

/* Asks worker to copy its state behind step into slot. */
struct emergency_order {
    unsigned worker, slot;
    int64_t step;
};

struct emergency;

/* disk: snapshots are written, and a piece of them is enough (slot_table_live_cover()).  NULL: no memory. */
struct emergency *emergency_new(struct slot_table *k, bool disk, struct el_mem *mem);
void emergency_free(struct emergency *c);

/* Pages are frozen.  Until then at the latest all is over. */
void emergency_begin(struct emergency *c, el_usec now, el_usec until);
void emergency_rest(struct emergency *c); /* there is nothing to be had */
bool emergency_is_busy(const struct emergency *c);

/* The same for one of several nodes. */
void emergency_begin_shared(struct emergency *c, el_usec now, el_usec until);
/* This step; a slot with `kept` is not given out for it. */
void emergency_told(struct emergency *c, int64_t step, int64_t kept);
/* It came to this step; SLOT_TABLE_NO_STEP: to none. */
void emergency_over(struct emergency *c, int64_t step);
int64_t emergency_told_step(const struct emergency *c);            /* SLOT_TABLE_NO_STEP: none */
bool emergency_is_out(const struct emergency *c, unsigned worker); /* it was asked, and could not */
bool emergency_has_copied(const struct emergency *c);              /* all that it could have of that */
/* The steps that its slots hold, and those that its workers are behind, in, or may begin (limit), newest first. */
unsigned emergency_steps(struct emergency *c, const struct emergency_stand *stand, int64_t limit, int64_t *steps,
                         unsigned max);
/* Whether all its workers could go back to it from its slots; *copies: live workers would have to be captured for that.
 * live: of each worker, until the next call.  Of the first step since emergency_steps() that they could not, it is kept
 * why. */
enum slot_table_cover emergency_level(struct emergency *c, const struct emergency_stand *stand, int64_t step,
                                      bool *copies, const enum slot_table_live **live);
const char *emergency_why(const struct emergency *c);

/* Stands: of each worker, now.  How many orders there are, which live until the next call; after the last one it may be
 * over. */
unsigned emergency_step(struct emergency *c, const struct emergency_stand *stand, el_usec now,
                        const struct emergency_order **orders);
/* The worker says how its copy went; SLOT_TABLE_EV_CAPTURED is the shell's to tell. */
void emergency_said(struct emergency *c, unsigned worker, bool ok, const char *why);

/* What came of it, once it is over.  step: SLOT_TABLE_NO_STEP: nothing; why: "" where there was nothing to be had. */
struct emergency_end {
    int64_t step, instead; /* the newest step that was held before; SLOT_TABLE_NO_STEP: none */
    unsigned copies;
    uint64_t bytes;
    const char *why;
};
struct emergency_end emergency_end(const struct emergency *c);
void emergency_check(const struct emergency *c);

#endif
