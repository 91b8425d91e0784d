/* Emergency checkpoint of workers that live, over several nodes: which step is worth more than what all hold, and when
 * it is held. Pure; the coordinator has one for its round.
 *
 *     resting -> agreeing -> copying -> over          (from copying back to agreeing: somebody could not)
 *
 * A node whose workers are about to be stopped lets none of them begin another step, and says where they stand: of each
 * step that is worth a word, whether all its workers could read it from the node's slots afterwards (enum
 * emergency_ckpt_level).  What a node says is all of it, each time, and nothing of it is asked for twice.  The first
 * one that speaks begins it: all others are told to do the same, the round is about to end.  Nodes whose workers have
 * begun a later step than others' are followed by those (the limit); a step that may yet be had is waited for as long
 * as EMERGENCY_CKPT_AGREE.  A node that has not spoken by then, or was lost, has nothing.
 *
 * A step can be had if none was lost and every node could read it from its own slots, or if every part of the state
 * would be in somebody's slots and is then written to disk (conf.disk).  The newest such step is copied, each node does
 * its own share, and the newest that all hold in memory already (`kept`; else the newest that the disk could have) is
 * not given away before that has come to its end. */
#ifndef COORD_EMERGENCY_CKPT_H
#define COORD_EMERGENCY_CKPT_H
#include <stdbool.h>
#include <stdint.h>

#include "control/ckpt_msg.h"
#include "util/mem.h"
#include "util/time.h"

#define EMERGENCY_CKPT_NO_STEP   INT64_C(-1)
#define EMERGENCY_CKPT_AGREE     EL_SEC(10)
#define EMERGENCY_CKPT_LOOK      EL_MS(1) /* for each 64 nodes: between two looks at all of them */
#define EMERGENCY_CKPT_STEPS_MAX 8u       /* that a node speaks of, the newest ones */
#define EMERGENCY_CKPT_TEXT_MAX  480u

enum emergency_ckpt_level {
    EMERGENCY_CKPT_NO,
    EMERGENCY_CKPT_MAY, /* it may come to be possible: a worker is in that step */
    EMERGENCY_CKPT_CAN, /* when live workers have copied what they hold */
    EMERGENCY_CKPT_HAS, /* in slots */
};

/* What a node says. */
struct emergency_ckpt_stand {
    uint64_t serial; /* counts what it has said in this round */
    bool ends;       /* no worker of it can be captured, or not any more: what is in its slots is all */
    bool busy;       /* a snapshot is being committed: what it holds may change */
    bool elsewhere;  /* its workers need none of their own: the script shares what other ranks have */
    bool copied;     /* of `step` it has all that it could have */
    int64_t limit;   /* its workers begin no later step */
    int64_t step;    /* that it was told to copy; EMERGENCY_CKPT_NO_STEP: none */
    unsigned copies; /* of it, made for an emergency checkpoint, */
    uint64_t bytes;  /* … in all */
    unsigned n;
    struct emergency_ckpt_step {
        int64_t step;
        enum emergency_ckpt_level level;
    } at[EMERGENCY_CKPT_STEPS_MAX]; /* newest first; of others: EMERGENCY_CKPT_NO */
    const char *why;                /* the newest one cannot be had here; "" */
};

/* What a node is told. */
struct emergency_ckpt_word {
    enum emergency_what what;
    uint64_t heard;     /* serial of what it had said: an order that is older than its last word is not carried out */
    int64_t limit;      /* steps up to here may be begun */
    int64_t step, kept; /* COPY: this one, and a slot with that one is not given out for it */
};

struct emergency_ckpt_conf {
    unsigned room;
    el_usec limit; /* --emergency-timeout */
    /* Whether the parts of a step would all be in somebody's slots, for the disk; NULL: nothing is written. */
    enum emergency_ckpt_level (*disk)(void *ctx, int64_t step);
    bool (*leaves)(void *ctx, unsigned seat); /* its memory goes with it; NULL: nobody does */
    const char *(*name)(void *ctx, unsigned seat);
    void *ctx;
};

enum emergency_ckpt_state {
    EMERGENCY_CKPT_RESTING,
    EMERGENCY_CKPT_AGREEING,
    EMERGENCY_CKPT_COPYING,
    EMERGENCY_CKPT_IS_OVER
};

struct emergency_ckpt {
    struct emergency_ckpt_conf conf;
    enum emergency_ckpt_state state;
    unsigned seats;
    struct emergency_ckpt_seat *seat;
    int64_t limit, step, instead;
    int64_t kept;  /* of the steps that are held: no slot with that one is given out */
    int64_t below; /* only steps below are considered: that one came to nothing */
    el_usec began, agree_until, until, ended;
    int64_t why_step;
    bool told;       /* everybody knows the state */
    bool news;       /* since it was looked at last, */
    el_usec look_at; /* which is not done at each word of thousands */
    char why[EMERGENCY_CKPT_TEXT_MAX];
};

/* -1: no memory. */
int emergency_ckpt_init(struct emergency_ckpt *w, const struct emergency_ckpt_conf *conf, struct el_mem *mem);
void emergency_ckpt_free(struct emergency_ckpt *w, struct el_mem *mem);

/* A round of so many nodes begins, or is adopted. */
void emergency_ckpt_round(struct emergency_ckpt *w, unsigned seats);
/* No worker of it is left (it may have spoken before); or the node itself is lost. */
void emergency_ckpt_gone(struct emergency_ckpt *w, unsigned seat, bool lost);

void emergency_ckpt_take(struct emergency_ckpt *w, unsigned seat, const struct emergency_ckpt_stand *s, el_usec now);
/* What came of it would be of no use: it ends with nothing. */
void emergency_ckpt_give_up(struct emergency_ckpt *w, const char *why, el_usec now);

/* What follows.  True: all have to be told something new; else only who has just spoken may have. */
bool emergency_ckpt_advance(struct emergency_ckpt *w, el_usec now);
el_usec emergency_ckpt_deadline(const struct emergency_ckpt *w);
/* Nodes hold back; until then at the latest (EL_NEVER: nobody does). */
el_usec emergency_ckpt_until(const struct emergency_ckpt *w);

/* What this seat is to be told, and has not said that it knows; false: nothing. */
bool emergency_ckpt_word(const struct emergency_ckpt *w, unsigned seat, struct emergency_ckpt_word *out);

/* What came of it, once it is over. */
struct emergency_ckpt_end {
    int64_t step, instead; /* EMERGENCY_CKPT_NO_STEP: none */
    unsigned copies, nodes;
    unsigned lost; /* nodes of which nothing is in it */
    uint64_t bytes;
    el_usec took;
    const char *why; /* "": there was nothing to be had */
};
struct emergency_ckpt_end emergency_ckpt_end(const struct emergency_ckpt *w);
void emergency_ckpt_check(const struct emergency_ckpt *w);

/* "12:c 11:h", each step with its level, newest first, and what follows a comma is not for here; back: the rest is
 * passed over. */
void emergency_ckpt_list_get(struct emergency_ckpt_stand *s, const char *list);
/* 'n', 'm', 'c', 'h'; and back, EMERGENCY_CKPT_NO for any other one. */
char emergency_ckpt_letter(enum emergency_ckpt_level level);
enum emergency_ckpt_level emergency_ckpt_level_of(char letter);

#endif
