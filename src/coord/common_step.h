/* The newest step that all nodes of a round hold whole, so that none gives it away before all hold a newer one
 * (snapshot/slot_pin.h has the rule of a node): what the nodes say of their steps, and what follows.  Pure; the
 * coordinator has one for its round.
 *
 * A node says all of its state each time (CKPT_TAKEN), so nothing is lost with a connection, and a coordinator that has
 * just begun knows as much as the one before as soon as all have spoken.  A step that every node has said to hold is
 * common from then on: a node that has said so does not give it away before it hears of a newer one.  While a node does
 * not speak nothing new is common, and nobody gives anything away.
 *
 * It is about what is trained since all went on together, in this round or from what they went back to: what was common
 * before each node keeps by itself until it hears of a first one.
 *
 * A step that some node will never hold is useless, and nodes that hold it are told so.  Where no step is left that may
 * become common that waits until every node could take one, and comes with a step from which on each takes the first
 * that it comes to: so they do not leave out other steps each time, for ever.  That lies the further ahead the more
 * often it was in vain.
 *
 * A node that has come to no step for COMMON_STEP_PATIENCE, while a worker of another one finds no slot because of
 * that, is not waited for until it does.  A node whose script shares what other ranks have (elsewhere) needs no step of
 * its own.
 */
#ifndef COORD_COMMON_STEP_H
#define COORD_COMMON_STEP_H
#include "control/common_step_msg.h"
#include "snapshot/slot_pin.h"
#include "util/mem.h"
#include "util/time.h"

#define COMMON_STEP_PATIENCE  EL_SEC(30)
#define COMMON_STEP_STEPS_MAX SLOT_PIN_TOLD
#define COMMON_STEP_AHEAD_MAX 65536

/* What a node says; the words of slot_pin.h, era and all. */
struct common_step_taken {
    struct slot_pin_told told;
    bool elsewhere;
};

/* What a node is told. */
struct common_step_word {
    struct slot_pin_step step; /* that all hold; SLOT_PIN_NO_STEP: none */
    unsigned n;
    struct slot_pin_step useless[2 * COMMON_STEP_STEPS_MAX]; /* of those that it has told */
    int64_t from;                                            /* it begins no step below */
};

struct common_step {
    unsigned room, seats;
    struct common_step_seat *seat;
    struct slot_pin_step step;
    int64_t from, ahead;
    el_usec stuck; /* since then a step waits for a node; EL_NEVER: none does */
    unsigned gone_next;
    struct slot_pin_step gone[2 * COMMON_STEP_STEPS_MAX]; /* useless ones, the last that were told */
};

/* -1: no memory. */
int common_step_init(struct common_step *c, unsigned room, struct el_mem *mem);
void common_step_free(struct common_step *c, struct el_mem *mem);

/* A round of so many nodes begins, or is adopted. */
void common_step_round(struct common_step *c, unsigned seats);
/* All go on together, and nothing is common yet of what they train. */
void common_step_restart(struct common_step *c);
void common_step_take(struct common_step *c, unsigned seat, const struct common_step_taken *t, el_usec now);

/* What follows.  True: all have to be told something new; else only who has just spoken may have. */
bool common_step_advance(struct common_step *c, el_usec now);
el_usec common_step_deadline(const struct common_step *c);

/* What this seat is to be told on connection conn, and was not yet; then it is.  False: nothing. */
bool common_step_word(struct common_step *c, unsigned seat, uint64_t conn, struct common_step_word *out);
bool common_step_has_word(const struct common_step *c, unsigned seat, uint64_t conn);

/* The script has gone back by itself since `was` was common, or nothing was: what is beyond *step, and not of the
 * lineage of what is common now, is given up. */
bool common_step_went_back(const struct common_step *c, struct slot_pin_step was, int64_t *step);
void common_step_check(const struct common_step *c);

/* "13@9f3a:0 12@9f3a": each step, its lineage and its era, if it is of one; back: how many, at most max. */
void common_step_list_put(const struct slot_pin_step *v, unsigned n, char *to, size_t size);
unsigned common_step_list_get(const char *list, struct slot_pin_step *v, unsigned max);

#endif
