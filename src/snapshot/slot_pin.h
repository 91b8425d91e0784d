/* Which slot of a worker may be written over, so that there is always a step to go back to: the rule alone, over what
 * the workers of a node hold.  Pure, without a state of its own; the keeper fills in the table and asks.
 *
 *   whole     each worker of the node could read the step: it holds it, or one does that has declared the same
 *   coming    not yet, but whoever lacks it may still commit it
 *   hopeless  whoever lacks it has left it out, or has gone beyond it, or has ended
 *   common    the step that a restart would go back to.  Of a node that is alone: its newest whole step.  Of one among
 *             several: the newest of which the coordinator has said that it is whole on all nodes
 * (coord/common_step.h).
 *
 * A slot is not given out while it holds
 *   1. the common step, or
 *   2. a newer step that may yet become common: one that is coming, or, among several nodes, whole and neither
 *      confirmed nor given up by the coordinator; of what is trained since all went on together, for from before that
 *      only one is common.
 *
 * Why that is enough.  Let S be a step that all workers have committed, and none newer.  Before the last of them
 * committed it, S was coming or not held by anybody, so by 2. nobody who had committed it has lost it; when the last
 * one did, S was whole.  Then it is the common step, and 1. holds until a newer one is.  Among several nodes S is whole
 * on each, and by 2. stays so until the coordinator has heard so from all and said so; until a node hears that, it
 * keeps the common step of before.  A step that is given up is hopeless on some node, which cannot become whole there.
 *
 * With two slots a worker that holds a common step and a newer one has none to give: it is busy until the newer one is
 * common or hopeless.  So that workers which leave out what they come to while they are busy do not leave out other
 * steps each time, for ever, one takes a step only if all others have it, are at it or could take it, too
 * (slot_pin_may_begin()); what is left out is left out by all.
 *
 * Steps have the order in which they were trained, not that of their numbers: a script may go back by itself, and train
 * a lower step anew.  What it trains then is of another lineage (lineage.h) and of the next era; what a worker has left
 * by that has gone by, and what others train in a later era may come to it, too.
 *
 * A script may also take a step that it has taken already, and its state need not be the same any more.  That is a step
 * of its own, which comes behind the first take of it and before the next number: all have to take it again before it
 * counts, and who comes to a higher number has passed all takes of the lower ones by.  What follows it is what would
 * have followed the first take: a rank that alone takes a step twice has not left the others. */
#ifndef SNAPSHOT_SLOT_PIN_H
#define SNAPSHOT_SLOT_PIN_H
#include <stdbool.h>
#include <stdint.h>

#define SLOT_PIN_SLOTS   2
#define SLOT_PIN_KNOWN   8u /* states of steps that are remembered while the table stays as it is */
#define SLOT_PIN_NO_STEP INT64_C(-1)

/* A step as it was trained. */
struct slot_pin_step {
    int64_t step;     /* SLOT_PIN_NO_STEP: none */
    int64_t era;      /* so often had its worker gone back by itself; -1: it is from before all went on together */
    uint64_t lineage; /* equal steps have equal ones */
    uint64_t take;    /* so often was it taken before */
};

enum slot_pin_state { SLOT_PIN_WHOLE, SLOT_PIN_COMING, SLOT_PIN_HOPELESS };

struct slot_pin_slot {
    enum slot_pin_at {
        SLOT_PIN_EMPTY,   /* nothing that could be lost */
        SLOT_PIN_WORK,    /* `of` is being written or summed, or read from disk */
        SLOT_PIN_HELD,    /* `of` is committed */
        SLOT_PIN_USELESS, /* … and of no use: the coordinator has given it up, or it is a copy that came to nothing */
    } at;
    bool read; /* somebody reads it: it cannot be given out */
    struct slot_pin_step of;
    uint64_t gen; /* counts what was ever begun on the node */
};

struct slot_pin_worker {
    unsigned like, next; /* the first worker that has declared the same; the next such one, n: this is the last */
    bool comes;          /* it lives, or will: it may commit steps */
    struct slot_pin_step passed; /* what it trains now, and up to which step it commits none of that any more, but for
                               those in work */
    struct slot_pin_slot slot[SLOT_PIN_SLOTS];
};

struct slot_pin {
    unsigned n;
    const struct slot_pin_worker *w;
    bool several; /* nodes: `common` is what the coordinator has said last */
    struct slot_pin_step common;
    int64_t from;   /* several: no step below is begun while workers do not wait */
    unsigned known; /* how many of these; 0 whenever the table is another one */
    struct {
        struct slot_pin_step of;
        enum slot_pin_state state;
    } memo[SLOT_PIN_KNOWN];
};

enum slot_pin_state slot_pin_state(struct slot_pin *p, struct slot_pin_step of);

/* SLOT_PIN_NO_STEP: there is none. */
struct slot_pin_step slot_pin_common(struct slot_pin *p);

/* The slot that worker may write over now; -1: none. */
int slot_pin_slot(struct slot_pin *p, unsigned worker);

/* Whether worker, which leaves a step out rather than wait, is to take it: all others whose share is needed have it,
 * are at it, or could take it now. */
bool slot_pin_may_begin(struct slot_pin *p, unsigned worker, int64_t step);

/* What a node among several has to say, of what was trained since all went on together: its whole steps, the common one
 * and newer ones, the last trained first; and those that are coming.  How many, at most SLOT_PIN_TOLD. */
#define SLOT_PIN_TOLD 4u
struct slot_pin_told {
    unsigned whole, coming;
    struct slot_pin_step is_whole[SLOT_PIN_TOLD], is_coming[SLOT_PIN_TOLD];
    int64_t era, passed; /* no other step of that era up to this one, and none of an era before, will be whole here;
                            passed is INT64_MAX: no other step at all */
    int64_t begun;       /* the highest step that any of its workers has passed or is at */
    bool stuck;          /* a worker has found no slot, and has none yet: the keeper knows */
    bool ready;          /* but for what it holds, every worker could take a step now */
};
void slot_pin_tell(struct slot_pin *p, struct slot_pin_told *to);

#endif
