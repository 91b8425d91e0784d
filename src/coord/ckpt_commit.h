/* Which step of the job's snapshots goes to disk, which node writes what of it, and when it is a checkpoint: what the
 * nodes say they hold, and what follows.  Pure; the coordinator has one.
 *
 *     resting -> writing -> publishing -> resting          (from anywhere back to resting: it will not be)
 *
 * A node says all of its state each time (CKPT_PART, CKPT_STATE, CKPT_FILE), so nothing is lost with a connection, and
 * a coordinator that has just begun knows as much as the one before as soon as all have spoken.  What a node is to do
 * is state, too (ckpt_commit_word()), and said with each of its orders until it has said that it knows.
 *
 * A step is written when every different (part, shard) that any node of the round has declared is held by some node.
 * Each is written by one of those that hold it (with CKPT_COMMIT_LOCAL: by all of them, each into its own directory);
 * all files go to a directory that only this order names.  When each has been reported with its sums, one node makes it
 * a checkpoint.  Who fails or is lost before ends the order; another one, with another directory, is given if the
 * others hold everything, so that no two ever write the same file.
 *
 * A part that is a rank's own (CKPT_PART's own) is written by who holds it, and decides nothing: a step is as good
 * without it.
 *
 * What is wanted: each step that a script wants on disk (the nodes' wishes; none takes the place of another, and the
 * lowest that is covered comes first), what an operator asks for, and the newest step that is covered when the workers
 * of a round end (ckpt_commit_settle()).  Each comes to disk, or there is a result that says why not. */
#ifndef COORD_CKPT_COMMIT_H
#define COORD_CKPT_COMMIT_H
#include "control/msg.h"
#include "util/mem.h"
#include "util/time.h"

#define CKPT_COMMIT_NO_STEP   INT64_C(-1)
#define CKPT_COMMIT_NO_SEAT   UINT32_MAX
#define CKPT_COMMIT_QUIET     EL_SEC(30)  /* so long a node's last word is waited for */
#define CKPT_COMMIT_STALL     EL_SEC(600) /* so long without a byte, or for a step to be whole */
#define CKPT_COMMIT_WORD      EL_SEC(30)  /* after so long that a step is not whole it is said for whom it waits */
#define CKPT_COMMIT_BATCH     ((size_t)256 << 10) /* bytes of CKPT_FILEs that are sent to a node before it answers */
#define CKPT_COMMIT_MEM_BYTES ((size_t)256 << 20)

/* Behind "part … differs between … and …: " */
#define CKPT_COMMIT_DIFFER_ADVICE                                                                                      \
    "a checkpoint has the values of only one of them. If each rank has its own, declare it without shard_id; if not, " \
    "the ranks have drifted apart: mend the script"

struct ckpt_commit_conf {
    enum ckpt_commit_store store;
    unsigned room;                                       /* nodes are numbered below */
    uint64_t giver;                                      /* 64 random bits of this coordinator's start */
    const char *(*name)(const void *ctx, unsigned node); /* for texts */
    const void *ctx;
    struct el_mem
        *mem; /* pays for all, of which CKPT_COMMIT_MEM_BYTES at most are what nodes declare and want; or NULL */
};

/* What became of an order; or of a step for which none could be given. */
struct ckpt_commit_result {
    uint64_t serial; /* counts them from 1 */
    uint64_t order;
    int64_t step;
    uint64_t lineage;
    bool good, existed, emergency;
    bool given_up; /* the job has gone back behind it since; a step of its number is another one */
    bool forgiven; /* it failed, and may be tried once more */
    uint64_t bytes;
    el_usec at, took;
    char text[MSG_TEXT_MAX + 1];
};

struct ckpt_commit;

/* NULL: no memory. */
struct ckpt_commit *ckpt_commit_new(const struct ckpt_commit_conf *conf);
void ckpt_commit_free(struct ckpt_commit *s);

/* A round of so many nodes begins, or is adopted; what was said about another one does not count.  Its ranks may be
 * known later. */
void ckpt_commit_round(struct ckpt_commit *s, uint64_t number, uint64_t coord, unsigned size);
void ckpt_commit_world(struct ckpt_commit *s, uint64_t ranks);

/* What a node says: CKPT_PART, CKPT_STATE, CKPT_FILE; seat: in the round, CKPT_COMMIT_NO_SEAT: it has none.  Then
 * ckpt_commit_advance(). */
void ckpt_commit_take(struct ckpt_commit *s, unsigned node, unsigned seat, const struct msg *msg, el_usec now);
/* It will not come back; then ckpt_commit_advance(). */
void ckpt_commit_lost(struct ckpt_commit *s, unsigned node);

/* The workers of the round are ending: what is wanted, and with emergency the newest step, is to be on disk until
 * then.  Settled again when all nodes that are there have said their last word and nothing is left to be written. */
void ckpt_commit_settle(struct ckpt_commit *s, bool emergency, el_usec until, el_usec now);
bool ckpt_commit_is_settled(const struct ckpt_commit *s);
/* Emergency checkpoint: where the live workers of a node stand (its EMERGENCY_STATE); and whether every part of a step
 * would be in the slots of those that write it. */
void ckpt_commit_stand(struct ckpt_commit *s, unsigned node, const struct msg_emergency_state *stand);
enum emergency_ckpt_level ckpt_commit_live_level(struct ckpt_commit *s, int64_t step);

/* The job is over: what is not on disk will not be. */
void ckpt_commit_give_up(struct ckpt_commit *s, el_usec now, const char *why);

/* The ranks go back to this step (CKPT_COMMIT_NO_STEP: they begin anew): what was beyond it is of a history that was
 * given up, on disk as well as on its way there, but for what is of the lineage that they have begun since (0: none).
 * Then ckpt_commit_advance(). */
void ckpt_commit_went_back(struct ckpt_commit *s, int64_t step, uint64_t lineage, el_usec now);

/* What follows; live: nodes of the round that are still there.  True: all have to be told something; else only who has
 * just spoken may have. */
bool ckpt_commit_advance(struct ckpt_commit *s, unsigned live, el_usec now);
el_usec ckpt_commit_deadline(const struct ckpt_commit *s);

/* The i-th message that a node is to be sent now, on connection conn; false behind the last.  Strings live until the
 * next call. */
bool ckpt_commit_word(struct ckpt_commit *s, unsigned node, uint64_t conn, unsigned i, struct msg *out);
bool ckpt_commit_has_word(const struct ckpt_commit *s, unsigned node, uint64_t conn);

uint64_t ckpt_commit_results(const struct ckpt_commit *s); /* so many there were */
/* NULL: it is not remembered. */
const struct ckpt_commit_result *ckpt_commit_result(const struct ckpt_commit *s, uint64_t serial);
/* A step that waits for a part of it, said once, and with it for all that wait then; serial counts them, 0: none did.
 */
struct ckpt_commit_late {
    uint64_t serial;
    int64_t step;
    char text[MSG_TEXT_MAX + 1];
};
const struct ckpt_commit_late *ckpt_commit_late(const struct ckpt_commit *s);
int64_t ckpt_commit_writing(const struct ckpt_commit *s); /* CKPT_COMMIT_NO_STEP: nothing is */
int64_t ckpt_commit_on_disk(const struct ckpt_commit *s); /* that it knows of */
int64_t ckpt_commit_covered(struct ckpt_commit *s);       /* the newest that all nodes together hold */
void ckpt_commit_check(const struct ckpt_commit *s);

#endif
