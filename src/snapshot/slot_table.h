/* The keeper of a node's snapshots: which worker may write into which slot, when a slot counts, who may read it, and
 * what is left when a worker dies.  Pure: messages of workers and results of the shell's work come in, actions go out.
 *
 *     slot:  free -> loading -> committed              (from disk)
 *            free -> capturing -> summing ...          (a copy that the agent has asked for: emergency checkpoint)
 *            free -> growing -> writing -> summing -> committed -> free   (a newer one is committed; nobody reads it)
 *                       |          |          |           `-----> broken -> free   (no longer what was summed)
 *                       `----------`----------`-> free                    (no room; aborted; the worker died)
 *
 * Two slots a worker: while one is written the other holds a snapshot that all workers have, so that there is always a
 * step to go back to (slot_pin.h says which slot may be given out).  Nothing that happens to a worker after its
 * SNAP_COMMIT was taken loses that snapshot.  Slots outlive their worker: the next one on this local rank that declares
 * the same parts gets them again, with what is in them.
 *
 * A worker that comes to a lower step than before has gone back by itself.  What it trains from then on is of another
 * lineage; and when all have a step of that, what is held of the history that they have left is forgotten.
 *
 * A worker may also take a step again that it has committed.  Outside that take has a lineage of its own, so no two
 * takes of one step are ever read together; what is trained next goes on in that of the first.
 *
 * A part is a name; what it holds, and how much, is said with each snapshot.  So a slot has no size of its own: it
 * grows before it is written, as far as the vault's budget allows.  A part that is `own` is one rank's piece of a
 * replica: a snapshot is whole without it, and another rank's will do in its place. */
#ifndef SNAPSHOT_SLOT_TABLE_H
#define SNAPSHOT_SLOT_TABLE_H
#include <stdbool.h>
#include <stdint.h>

#include "snapshot/image_sizes.h"
#include "snapshot/slot_pin.h"
#include "snapshot/worker_msg.h"
#include "util/mem.h"
#include "util/time.h"

#define SLOT_TABLE_SLOTS       2
#define SLOT_TABLE_WORKERS_MAX 4096
#define SLOT_TABLE_RETRY       EL_MS(50)    /* a worker whose slots are busy asks again after so long */
#define SLOT_TABLE_WAIT_MAX    EL_SEC(1800) /* … for so long at most; then the snapshot is left out */
#define SLOT_TABLE_NO_STEP     INT64_C(-1)

/* Of what must be alike on all ranks digests are made, which cost a second look at all its bytes: of the first
 * snapshots of a round, in which a model that was set up differently on each rank shows, and so does one whose
 * gradients are not averaged; then of one step in so many, which is less than 2 % more. */
#define SLOT_TABLE_DIGESTS_FIRST 2
#define SLOT_TABLE_DIGEST_EVERY  64
#define SLOT_TABLE_NAMES_MAX     320 /* bytes of the names of tensors that differ */

enum slot_table_slot_state {
    SLOT_TABLE_FREE,
    SLOT_TABLE_GROWING, /* given out, once it is large enough */
    SLOT_TABLE_WRITING,
    SLOT_TABLE_SUMMING,
    SLOT_TABLE_COMMITTED,
    SLOT_TABLE_BROKEN,
    SLOT_TABLE_LOADING,   /* from disk */
    SLOT_TABLE_CAPTURING, /* for an emergency checkpoint; given out to nobody before the round is over */
};

struct slot_table_conf {
    unsigned workers;      /* local ranks */
    uint64_t budget_bytes; /* of all slots together; 0: snapshots are off */
    uint64_t check;        /* every so many snapshots a worker compares one with its objects; 0: never */
    bool waits;            /* a worker waits for a slot (--ckpt-busy=wait) */
    bool live;             /* what workers hold may be captured when they end */
    bool files;            /* parts that are files are meant (--ckpt-layout=megatron) */
    bool compares;         /* there are other ranks, here or on other nodes, that may share parts with these */
    bool disk;             /* --ckpt-dir was given */
    bool several;          /* nodes: which step all hold is told (SLOT_TABLE_EV_COMMON) */
    el_usec patience;      /* so long a worker waits for others that come to no step; 0: for ever */
};

/* One part, as declared.  Strings are the keeper's own. */
struct slot_table_part {
    const char *name, *shard_id, *file; /* file "": tensors */
    bool own;
};

struct slot_table_slot {
    enum slot_table_slot_state state;
    int64_t step;     /* SLOT_TABLE_NO_STEP: empty */
    uint64_t lineage; /* (lineage.h) */
    int64_t era;      /* (slot_pin.h), as is: */
    uint64_t trained; /* the lineage of its first take, in which training goes on; and how many takes were before */
    uint64_t take;
    uint64_t gen;     /* counts what was ever written here: results for an older one are passed over */
    uint32_t seq;     /* of its SNAP_COMMIT */
    unsigned readers; /* persisting, restoring, checking: not given out meanwhile */
    unsigned rank;    /* which rank's it is: a worker that has another rank now holds what was its former one's */
    bool persist, captured;
    bool vain; /* a copy that emergency checkpoint did not come to, or a step that some node cannot have: it is given
                  out first */
    uint64_t loaded; /* it was read from disk in this round; 0: it was not */
    uint64_t consumed_samples;
    uint64_t capacity, file_bytes; /* so much memory is there; so long is its file, with some that is not there yet */
    unsigned growths;              /* that are ordered */
    uint64_t shrinking; /* what is beyond its last image is being given back, the number of that order; 0: it is not */
    uint64_t bytes;     /* of capacity, up to the end of this snapshot's last image */
    uint64_t *part_bytes, *part_header_bytes; /* of each part, in this snapshot; */
    uint64_t *part_digest;                    /* … if digested, of what must be alike in it; 0: nothing need be */
    bool digested;
};

/* Two ranks of this node whose digests of one part differ. */
struct slot_table_pair {
    char part[WORKER_MSG_NAME_MAX + 1], shard_id[WORKER_MSG_NAME_MAX + 1];
    int64_t step;
    struct {
        unsigned worker, rank, slot, part;
        uint64_t gen; /* of the slot */
    } of[2];
    uint64_t tensors;                 /* so many differ; 0: they could not be found */
    char names[SLOT_TABLE_NAMES_MAX]; /* of the first ones */
};

enum slot_table_event_type {
    SLOT_TABLE_EV_MSG,      /* worker, msg, now, away: HELLO, PART, DECLARE, SNAP_…, RESTORE_…, AT_BOUNDARY, NOTE */
    SLOT_TABLE_EV_GONE,     /* worker: its connection has ended, or it has */
    SLOT_TABLE_EV_ROUND,    /* number, rank_base, lineage (of what is trained from now on): a round begins; workers will
                           say HELLO with it */
    SLOT_TABLE_EV_OPENED,   /* worker, ok, text: of SLOT_TABLE_DO_OPEN */
    SLOT_TABLE_EV_GROWN,    /* worker, slot, gen, ok, capacity, file_bytes, text, need_bytes, have_bytes: of
                             * SLOT_TABLE_DO_GROW
                             */
    SLOT_TABLE_EV_SHRUNK,   /* worker, slot, gen, ok, capacity: of SLOT_TABLE_DO_SHRINK */
    SLOT_TABLE_EV_SUMMED,   /* worker, slot, gen, ok, part_digest (NULL: not made): of SLOT_TABLE_DO_SUM; ok false: the
                           image is   not what was said */
    SLOT_TABLE_EV_COMPARED, /* number (tensors that differ), text (their names): of SLOT_TABLE_DO_COMPARE */
    SLOT_TABLE_EV_CAPTURED, /* worker, slot, ok, number (consumed samples), images, text: it has copied what
                           slot_table_capture() gave */
    SLOT_TABLE_EV_READ,     /* worker, slot, gen, ok: a reader has done; ok false: the bytes did not match their sums */
    SLOT_TABLE_EV_CHOSEN,   /* step, lineage: what all ranks go back to (SLOT_TABLE_NO_STEP: nothing); answers every
                             * RESTORE_QUERY
                             */
    SLOT_TABLE_EV_LOADED,   /* worker, slot, gen, ok, number (consumed samples), capacity, file_bytes, part_bytes,
                           part_header_bytes, text, need_bytes: of SLOT_TABLE_DO_LOAD */
    SLOT_TABLE_EV_COMMON,   /* step, lineage, number: what all nodes hold; workers that do not wait begin no step below
                           the   number */
    SLOT_TABLE_EV_USELESS,  /* step, lineage: some node does not hold it, and never will */
    SLOT_TABLE_EV_AGAIN,    /* the agreement is repeated: CHOOSE once more, when nobody here reads any more */
    SLOT_TABLE_EV_CONFIRMED, /* lineage (of what is trained from now on): every rank has read that step, they may go on.
                            What is held of later ones is forgotten: it is of a history that was given up */
    SLOT_TABLE_EV_LATE,      /* text: not all have read what they were offered, and no more time; who waits is told */
};

struct slot_table_event {
    enum slot_table_event_type type;
    unsigned worker, slot;
    uint64_t gen, number;
    el_usec now;
    unsigned rank_base; /* rank of the first worker */
    int64_t step;
    uint64_t lineage;
    bool ok;
    bool away;               /* of several nodes: nobody says which step all have, and has not for too long */
    const uint64_t *on_disk; /* CHOSEN: what is not held of that step can be loaded, but for the own pieces of these
                                workers, a bit for each; NULL: nothing can */
    bool fresh;              /* CHOSEN, nothing: it is right to begin at the beginning */
    uint64_t capacity, file_bytes;
    uint64_t need_bytes, have_bytes; /* ok false, of a budget that is too small: what both slots need, and what is left
                                        for them; else need_bytes is 0 */
    const uint64_t *part_bytes, *part_header_bytes, *part_digest;
    char **part_table; /* SUMMED, not the keeper's: of each part that has a digest (replica_table.h), or NULL; who takes
                          one puts NULL there */
    const char *images; /* CAPTURED */
    const char *text;   /* why not; or why nothing is offered */
    const struct worker_msg *msg;
};

enum slot_table_action_type {
    SLOT_TABLE_DO_SEND, /* slot_table_reply(reply) to worker.  GRANT: with its slots; RESTORE_OFFER: with slot of source
                         */
    SLOT_TABLE_DO_CLOSE,   /* close worker's connection; its GONE need not be reported */
    SLOT_TABLE_DO_OPEN,    /* SLOT_TABLE_SLOTS empty slots for worker; then OPENED */
    SLOT_TABLE_DO_RELEASE, /* the slots of worker are of no use any more */
    SLOT_TABLE_DO_GROW,    /* make room for bytes in worker's slot, whatever is in it; then GROWN with gen */
    SLOT_TABLE_DO_SHRINK,  /* give back what worker's slot has beyond bytes, which nobody uses; then SHRUNK with gen */
    SLOT_TABLE_DO_SUM,     /* checksums of worker's slot, and if digests, those; then SUMMED with gen */
    SLOT_TABLE_DO_COMPARE, /* find what differs in slot_table_compared(), both slots of which are held; then COMPARED */
    SLOT_TABLE_DO_DIFFER,  /* slot_table_differs() says which tensors do: warn, it is said once for each part and round
                            */
    SLOT_TABLE_DO_LOAD,    /* read step from disk into worker's slot; then LOADED with gen */
    SLOT_TABLE_DO_CHOOSE,  /* every worker of the round has asked what to go back to: agree, then CHOSEN */
    SLOT_TABLE_DO_CONFIRM, /* every worker has read what it was offered: if it is so on all nodes, CONFIRMED */
    SLOT_TABLE_DO_COMMITTED, /* slot holds a whole snapshot of step; persist says whether the script wants it on disk */
    SLOT_TABLE_DO_UNMET,  /* step, which the script wants on disk, is left out by worker; text, a constant, says why */
    SLOT_TABLE_DO_PASSED, /* a worker has gone on, or has ended: is what is held for the disk still waited for? */
    SLOT_TABLE_DO_ABSENT, /* worker has come to no step for too long: others do not wait for it any more */
    SLOT_TABLE_DO_WENT_BACK, /* the script has gone back by itself: what is beyond step and not of lineage is given up
                              */
    SLOT_TABLE_DO_BOUNDARY,  /* worker has done the announced step */
    SLOT_TABLE_DO_NOTE,      /* text is a line for the log, of worker; error: of that level */
};

struct slot_table_action {
    enum slot_table_action_type type;
    unsigned worker, slot, source, reply;
    uint64_t bytes, gen, lineage;
    int64_t step;
    bool persist, error, digests;
    const char *text; /* until the next step */
};

/* An event about one worker has few actions, one about all of them up to two for each. */
struct slot_table_actions {
    unsigned n, room;
    struct slot_table_action *v; /* the keeper's: valid until the next step */
};

struct slot_table;

/* All tables are had here, but for the names of parts (at DECLARE, bounded).  NULL when memory is refused. */
struct slot_table *slot_table_new(const struct slot_table_conf *conf, struct el_mem *mem);
void slot_table_free(struct slot_table *k);

/* Messages and texts belong to the caller and are not kept.  The actions live until the next step. */
const struct slot_table_actions *slot_table_step(struct slot_table *k, const struct slot_table_event *ev);
void slot_table_check(const struct slot_table *k);

/* Action SLOT_TABLE_DO_SEND's message; strings in it live until the next step. */
const struct worker_msg *slot_table_reply(const struct slot_table *k, unsigned reply);

/* What is held, for the agreement, for writers and for people. */
unsigned slot_table_parts(const struct slot_table *k, unsigned worker); /* 0: nothing is declared */
const struct slot_table_part *slot_table_part(const struct slot_table *k, unsigned worker, unsigned part);
const struct slot_table_slot *slot_table_slot(const struct slot_table *k, unsigned worker, unsigned slot);
const char *slot_table_state_name(enum slot_table_slot_state state); /* "committed" */
unsigned slot_table_workers(const struct slot_table *k);
unsigned slot_table_rank(const struct slot_table *k, unsigned worker);       /* of the worker that declared last */
uint64_t slot_table_slot_bytes(const struct slot_table *k, unsigned worker); /* memory of the larger of its slots */
uint64_t slot_table_used_bytes(const struct slot_table *k);   /* by all slots, each as large as the other will be, */
uint64_t slot_table_budget_bytes(const struct slot_table *k); /* of so many; 0: snapshots are off */

/* The first worker, from this one on, that was offered a snapshot and has not said whether it could read it; workers:
 * none. */
unsigned slot_table_reading(const struct slot_table *k, unsigned from);

/* The first worker, from this one on, that has not asked yet what to go back to; workers: none. */
unsigned slot_table_silent(const struct slot_table *k, unsigned from);

/* Steps that every worker which declared could read from slots of this node, newest first, and the lineage of each; how
 * many of them fit: one number may be there with two of them, the later one first.  And whether there ever was one. */
unsigned slot_table_readable(const struct slot_table *k, int64_t *steps, uint64_t *lineages, unsigned max);
bool slot_table_takes_elsewhere(
    const struct slot_table *k);                       /* no worker needs a slot of its own: another rank's will do */
bool slot_table_had_whole(const struct slot_table *k); /* since the last agreement, its step included */
uint64_t
slot_table_since(const struct slot_table *k); /* round of that, else of the first snapshot; 0: there was neither */
int64_t slot_table_reached(
    const struct slot_table *k); /* the highest step that any worker has committed since; SLOT_TABLE_NO_STEP */
const char *slot_table_lost(const struct slot_table *k); /* why something that was held is not any more; "" */
/* A worker could read what it was offered, and what it declares does not take it (or no memory is left for it): so it
 * says.  Nothing older is to be tried, and no rank of the job goes on.  "": it is not so. */
const char *slot_table_misfit(const struct slot_table *k);

/* What the workers were offered last: how many ranks read from where, and how much. */
struct slot_table_reads {
    unsigned own, others, disk; /* ranks that read their own slot, another rank's, one that was loaded from disk */
    uint64_t bytes;
};
struct slot_table_reads slot_table_reads(const struct slot_table *k);

const struct slot_table_pair *slot_table_compared(const struct slot_table *k); /* of SLOT_TABLE_DO_COMPARE */
const struct slot_table_pair *slot_table_differs(const struct slot_table *k);  /* of SLOT_TABLE_DO_DIFFER */

/* The slot of the worker that was committed last, -1: none is. */
int slot_table_newest(const struct slot_table *k, unsigned worker);

/* Of several nodes: what this one has to say of the steps that all could have.  And the one that all do, or of a node
 * that is alone all its workers; SLOT_PIN_NO_STEP: none. */
void slot_table_tell(struct slot_table *k, struct slot_pin_told *to);
struct slot_pin_step slot_table_common(const struct slot_table *k);

/* A reader takes the slot, if it is committed: it will not be given out until SLOT_TABLE_EV_READ, or until it is given
 * back here, which may be done while actions are carried out (gen: of the slot when it was taken). */
bool slot_table_take(struct slot_table *k, unsigned worker, unsigned slot);
void slot_table_give(struct slot_table *k, unsigned worker, unsigned slot, uint64_t gen, bool intact);

/* A slot of the worker for a copy of what it holds behind that step: SLOT_TABLE_EV_CAPTURED follows, or the end of the
 * round.  -1: none is free; one with the step `kept` is not, for a copy may yet fail. */
int slot_table_capture(struct slot_table *k, unsigned worker, int64_t step, int64_t kept);
/* They are over, and came to this step (SLOT_TABLE_NO_STEP: to none): who was asked may take snapshots again, which was
 * BUSY meanwhile, and gets the slot of a copy of another step for the next one. */
void slot_table_captures_end(struct slot_table *k, int64_t step);
bool slot_table_has_free(const struct slot_table *k, unsigned worker, int64_t kept);
bool slot_table_may_free(const struct slot_table *k,
                         unsigned worker); /* a slot is in use, and may not be in a moment */

/* Whether every (part, shard id) of this node's workers, alive or not, is in some committed slot with this step; if
 * not, whether it may yet be.  A part that is `own` is waited for as long as it may come, and done without; here only:
 * in what follows it does not matter. */
enum slot_table_cover { SLOT_TABLE_COVERED, SLOT_TABLE_INCOMPLETE, SLOT_TABLE_HOPELESS };
enum slot_table_cover slot_table_cover(const struct slot_table *k, int64_t step, uint64_t lineage);
int64_t slot_table_covered(const struct slot_table *k); /* the newest such step, SLOT_TABLE_NO_STEP: none */
bool slot_table_is_summing(const struct slot_table *k); /* there may be a newer one in a moment */

/* The same with what live workers hold.  live: of each worker, whether its state is that behind the step, or may come
 * to be.  Every worker must be able to read it afterwards, from its own slot or one of another that has declared the
 * same; with disk it is enough if every piece is in some slot.  copies: of each worker, whether it must be captured. On
 * SLOT_TABLE_HOPELESS *lacks is a worker that nobody stands in for. */
enum slot_table_live { SLOT_TABLE_LIVE_NOT, SLOT_TABLE_LIVE_MAY, SLOT_TABLE_LIVE_IS };
enum slot_table_cover slot_table_live_cover(const struct slot_table *k, int64_t step, const enum slot_table_live *live,
                                            bool disk, bool *copies, unsigned *lacks);

struct slot_table_source {
    unsigned worker, slot, part;
};

/* The worker has pieces of its own beside what it shares, and they are in none of its slots: nobody stands in for it,
 * but nobody has to. */
bool slot_table_lacks_own(const struct slot_table *k, unsigned worker, int64_t step);

/* Of one piece of slot_table_pieces() that no slot holds (slot_table_piece()): does a live worker, or may one? */
enum slot_table_live slot_table_live_piece(const struct slot_table *k, const struct slot_table_source *piece,
                                           const enum slot_table_live *live);

/* Where each different (part, shard id) of a covered step lies, in the order of workers and their parts, those that are
 * `own` where there is something of them: how many, at most max; 0: not covered, or there are more. */
unsigned slot_table_sources(const struct slot_table *k, int64_t step, uint64_t lineage, struct slot_table_source *to,
                            unsigned max);

/* The same for what several nodes hold together.  Whether all workers of this one have declared in this round, and each
 * different (part, shard id) of them, files or tensors, `own` or not; more than max: that many do not fit.  Of what was
 * written in this round, or all ranks of it went on from: where such a piece lies at a step (one that is `own` and has
 * no bytes there: nowhere); the newest step below another that any slot holds; the least of the workers' newest
 * steps, or of those that they have gone by.
 */
bool slot_table_all_known(const struct slot_table *k);
unsigned slot_table_pieces(const struct slot_table *k, bool files, struct slot_table_source *to, unsigned max);
bool slot_table_piece(const struct slot_table *k, const struct slot_table_source *piece, int64_t step, uint64_t lineage,
                      struct slot_table_source *from);
/* Of that step as it was written last, of several lineages the last of which all is held or may yet be; 0: it is not
 * held.  Those slots count for all that has a step alone. */
uint64_t slot_table_lineage(const struct slot_table *k, int64_t step);
int64_t slot_table_held_below(const struct slot_table *k, int64_t below);
int64_t slot_table_least(const struct slot_table *k);
/* As declared; where workers differ, that of one which has parts of its own.  "": nothing is. */
const char *slot_table_layout_id(const struct slot_table *k);

#endif
