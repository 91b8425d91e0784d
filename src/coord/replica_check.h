/* Whether nodes that share a part hold the same in it.  Each node says digests of the last step that it has some of
 * (CKPT_DIGESTS), again and again, so it is enough to remember one of each part: who comes to that step later is
 * compared with it.  Where two differ both nodes are asked for the tensors behind them (CKPT_DIFFER, CKPT_TENSORS), as
 * many at a time as a message holds, and the names of those that differ are found.  Each part is told once in a round.
 *
 * A digest is of a step and its lineage (ckpt/lineage.h): two takes of a step, or two histories, are never compared.  A
 * node that is lost, has no digest or does not know of that step any more is not told of; the part may be found to
 * differ again.  Pure; the coordinator has one for its round. */
#ifndef COORD_REPLICA_CHECK_H
#define COORD_REPLICA_CHECK_H
#include "control/msg.h"
#include "util/mem.h"
#include "util/time.h"

#define REPLICA_CHECK_KEYS_MAX   262144u /* of parts beyond that none is compared; 16 MiB */
#define REPLICA_CHECK_PATIENCE   EL_SEC(30)
#define REPLICA_CHECK_PIECES_MAX 1024u /* messages of each node for one part */
#define REPLICA_CHECK_TEXT_MAX   320u  /* of the names */

/* Ranks of two nodes that hold different tensors in a part. */
struct replica_check_difference {
    const char *part, *shard; /* until the next call */
    unsigned seat[2];
    uint64_t rank[2];
    int64_t step;
    uint64_t tensors; /* 0: they could not be found */
    const char *names;
};

struct replica_check;

/* NULL: no memory.  What is remembered of parts is paid by `sums`, which may be shared by jobs: what it has no room for
 * is not compared. */
struct replica_check *replica_check_new(unsigned room, struct el_mem *mem, struct el_mem *sums);
void replica_check_free(struct replica_check *c);

/* A round of so many nodes begins, or is adopted. */
void replica_check_round(struct replica_check *c, uint64_t number, uint64_t coord, unsigned seats);
/* What the node of a seat says: CKPT_DIGESTS or CKPT_TENSORS of this round. */
void replica_check_take(struct replica_check *c, unsigned seat, const struct msg *msg);
void replica_check_lost(struct replica_check *c, unsigned seat);

/* What follows.  True: who is asked has a word (replica_check_word()). */
bool replica_check_advance(struct replica_check *c, el_usec now);
el_usec replica_check_deadline(const struct replica_check *c);
bool replica_check_asks(const struct replica_check *c, unsigned seats[2]); /* false: nobody */
/* CKPT_DIFFER, if this seat is asked and was not yet on connection conn; strings live until the next call. */
bool replica_check_word(struct replica_check *c, unsigned seat, uint64_t conn, struct msg *out);

/* One that was found; false: there is none.  Then replica_check_advance(). */
bool replica_check_next(struct replica_check *c, struct replica_check_difference *to);
/* True, once: parts of a step are left out.  *compared: so many are not. */
bool replica_check_left_out(struct replica_check *c, int64_t *step, unsigned *compared);
void replica_check_check(const struct replica_check *c);

#endif
