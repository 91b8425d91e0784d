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
 *
 * One of several nodes only says which steps there are and what it could have of them; which one it is, is decided for
 * all of them together (coord/lastwords.h) and told (capture_told()).  It copies what it can of that, and holds its
 * workers back until it is told that this is over. */
#ifndef SNAPSHOT_CAPTURE_H
#define SNAPSHOT_CAPTURE_H
#include "snapshot/keeper.h"
#include "snapshot/page.h"

#define CAPTURE_AGREE    EL_SEC(10)
#define CAPTURE_SILENT   EL_SEC(10)
#define CAPTURE_LOOK     EL_MS(5) /* how often the pages are looked at meanwhile */
#define CAPTURE_WHY_SIZE 400

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

/* The same for one of several nodes. */
void capture_begin_shared(struct capture *c, el_usec now, el_usec until);
/* This step; a slot with `kept` is not given out for it. */
void capture_told(struct capture *c, int64_t step, int64_t kept);
/* It came to this step; KEEPER_NO_STEP: to none. */
void capture_over(struct capture *c, int64_t step);
int64_t capture_told_step(const struct capture *c);            /* KEEPER_NO_STEP: none */
bool capture_is_out(const struct capture *c, unsigned worker); /* it was asked, and could not */
bool capture_has_copied(const struct capture *c);              /* all that it could have of that */
/* The steps that its slots hold, and those that its workers are behind, in, or may begin (limit), newest first. */
unsigned capture_steps(struct capture *c, const struct capture_stand *stand, int64_t limit, int64_t *steps,
                       unsigned max);
/* Whether all its workers could go back to it from its slots; *copies: live workers would have to be captured for that.
 * live: of each worker, until the next call.  Of the first step since capture_steps() that they could not, it is kept
 * why. */
enum keeper_cover capture_level(struct capture *c, const struct capture_stand *stand, int64_t step, bool *copies,
                                const enum keeper_live **live);
const char *capture_why(const struct capture *c);

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
