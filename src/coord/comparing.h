/* Whether nodes that share a part hold the same in it.  Each node says digests of the last step that it has some of
 * (CKPT_DIGESTS), again and again, so it is enough to remember one of each part: who comes to that step later is
 * compared with it.  Where two differ both nodes are asked for the tensors behind them (CKPT_DIFFER, CKPT_TENSORS), as
 * many at a time as a message holds, and the names of those that differ are found.  Each part is told once in a round.
 *
 * A digest is of a step and its lineage (ckpt/lineage.h): two takes of a step, or two histories, are never compared.  A
 * node that is lost, has no digest or does not know of that step any more is not told of; the part may be found to
 * differ again.  Pure; the coordinator has one for its round. */
#ifndef COORD_COMPARING_H
#define COORD_COMPARING_H
#include "control/msg.h"
#include "util/mem.h"
#include "util/time.h"

#define COMPARING_KEYS_MAX   262144u /* of parts beyond that none is compared; 16 MiB */
#define COMPARING_PATIENCE   EL_SEC(30)
#define COMPARING_PIECES_MAX 1024u /* messages of each node for one part */
#define COMPARING_TEXT_MAX   320u  /* of the names */

/* Ranks of two nodes that hold different tensors in a part. */
struct comparing_difference {
    const char *part, *shard; /* until the next call */
    unsigned seat[2];
    uint64_t rank[2];
    int64_t step;
    uint64_t tensors; /* 0: they could not be found */
    const char *names;
};

struct comparing;

/* NULL: no memory.  What is remembered of parts is paid by `sums`, which may be shared by jobs: what it has no room for
 * is not compared. */
struct comparing *comparing_new(unsigned room, struct el_mem *mem, struct el_mem *sums);
void comparing_free(struct comparing *c);

/* A round of so many nodes begins, or is adopted. */
void comparing_round(struct comparing *c, uint64_t number, uint64_t coord, unsigned seats);
/* What the node of a seat says: CKPT_DIGESTS or CKPT_TENSORS of this round. */
void comparing_take(struct comparing *c, unsigned seat, const struct msg *msg);
void comparing_lost(struct comparing *c, unsigned seat);

/* What follows.  True: who is asked has a word (comparing_word()). */
bool comparing_advance(struct comparing *c, el_usec now);
el_usec comparing_deadline(const struct comparing *c);
bool comparing_asks(const struct comparing *c, unsigned seats[2]); /* false: nobody */
/* CKPT_DIFFER, if this seat is asked and was not yet on connection conn; strings live until the next call. */
bool comparing_word(struct comparing *c, unsigned seat, uint64_t conn, struct msg *out);

/* One that was found; false: there is none.  Then comparing_advance(). */
bool comparing_next(struct comparing *c, struct comparing_difference *to);
/* True, once: parts of a step are left out.  *compared: so many are not. */
bool comparing_left_out(struct comparing *c, int64_t *step, unsigned *compared);
void comparing_check(const struct comparing *c);

#endif
