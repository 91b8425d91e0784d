/* Last words of workers that still live: which step of theirs is worth more than the newest snapshot, and who copies it
 * into a slot before everybody is stopped.  Pure: where the workers are comes in (their pages, looked at again and
 * again), orders go out.
 *
 *     resting -> agreeing -> copying -> resting
 *
 * A step counts if every worker of the node could go back to it: each has a slot with it, its own or one of a worker
 * that has declared the same, or is between two steps, right behind it, and answers.  Who is in a step that was begun
 * before has CAPTURE_AGREE to end it.  Then one of those who hold the same is asked to copy; who gives no sign of life
 * for CAPTURE_SILENT, or ends, or says no, is left out, and another one asked.  Nobody left: the newest snapshot it is.
 */
#ifndef CKPT_CAPTURE_H
#define CKPT_CAPTURE_H
#include "ckpt/keeper.h"
#include "ckpt/page.h"

#define CAPTURE_AGREE    EL_SEC(10)
#define CAPTURE_SILENT   EL_SEC(10)
#define CAPTURE_LOOK     EL_MS(5) /* how often the pages are looked at meanwhile */
#define CAPTURE_WHY_SIZE 320

struct capture_stand {
    bool answers; /* it lives, and has said that it can be asked */
    bool ends;    /* its script has failed: it does not get any further */
    struct page_stand page;
};

/* Asks worker to copy its state behind step into slot. */
struct capture_order {
    unsigned worker, slot;
    int64_t step;
};

struct capture;

/* disk: snapshots are written, and a piece of them is enough (keeper_live_cover()).  NULL: no memory. */
struct capture *capture_new(struct keeper *k, bool disk, struct el_mem *mem);
void capture_free(struct capture *c);

/* Pages are frozen.  Until then at the latest all is over. */
void capture_begin(struct capture *c, el_usec now, el_usec until);
void capture_rest(struct capture *c); /* there is nothing to be had */
bool capture_is_busy(const struct capture *c);

/* Stands: of each worker, now.  How many orders there are, which live until the next call; after the last one it may be
 * over. */
unsigned capture_step(struct capture *c, const struct capture_stand *stand, el_usec now,
                      const struct capture_order **orders);
/* The worker says how its copy went; KEEPER_EV_CAPTURED is the shell's to tell. */
void capture_said(struct capture *c, unsigned worker, bool ok, const char *why);

/* What came of it, once it is over.  step: KEEPER_NO_STEP: nothing; why: "" where there was nothing to be had. */
struct capture_end {
    int64_t step, instead; /* the newest step that was held before; KEEPER_NO_STEP: none */
    unsigned copies;
    uint64_t bytes;
    const char *why;
};
struct capture_end capture_end(const struct capture *c);
void capture_check(const struct capture *c);

#endif
