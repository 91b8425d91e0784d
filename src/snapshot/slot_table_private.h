/* Shared by keeper*.c alone. */
#ifndef SNAPSHOT_SLOT_TABLE_PRIVATE_H
#define SNAPSHOT_SLOT_TABLE_PRIVATE_H
#include "snapshot/slot_table.h"

/* What a worker has named of its parts.  One block of memory: the rows, then their strings. */
struct declaration {
    unsigned parts;
    bool has_own; /* a part that is */
    char layout_id[WORKER_MSG_NAME_MAX + 1];
    struct slot_table_part part[WORKER_MSG_PARTS_MAX];
};

/* How far a worker is with going back. */
enum restoring { RESTORING_NOT, RESTORING_ASKED, RESTORING_OFFERED, RESTORING_READ };

struct slot_table_worker {
    bool here;     /* it has said HELLO in this round */
    bool declared; /* … and DECLARE, which holds until it ends */
    bool known;    /* it has declared in this round, whether or not it has ended since */
    bool granted;  /* … and got slots: it may write */
    bool has_slots;
    bool opening;
    bool captures; /* a slot was given out for an emergency checkpoint, which are not over */
    unsigned rank;
    struct declaration *kept;         /* what the slots were made for; NULL: none yet */
    struct declaration *named;        /* PART by PART, until DECLARE */
    char *images;                     /* room for the sizes of as many parts as are kept, as text */
    char refuse[WORKER_MSG_TEXT_MAX]; /* what was wrong with a PART; "" nothing */
    uint32_t seq;                     /* of the request that waits for its answer */
    enum restoring restoring;
    unsigned from_worker, from_slot; /* what it was offered; from_worker == workers: nothing */
    uint64_t from_gen;
    int64_t offered;
    bool *told;     /* of each part that is kept: that ranks hold different ones has been told in this round */
    bool elsewhere; /* it needs no slot of this node: what another rank has will do */
    /* What it trains, since all went on together: */
    int64_t begun;    /* the last step that it came to; SLOT_TABLE_NO_STEP: none */
    int64_t era;      /* so often it has come to a lower one */
    uint64_t lineage; /* of what it trains now */
    uint64_t take;    /* so often has it taken `begun` before */
    bool waits;       /* it was told to ask again for a slot for `begun` */
    bool refused;     /* `begun` was left out, and not asked for once more */
    bool asked_twice; /* for `begun` */
    enum { HABIT_NOT_KNOWN, HABIT_INSISTS, HABIT_GOES_ON } habit; /* with a step that is left out */
    bool absent;         /* others have waited for it for too long; until it comes to a step */
    el_usec came, asked; /* when it came to its last step, last and first */
    struct judged {
        struct slot_pin_step passed;
        bool comes;
    } judged;      /* … when SLOT_TABLE_DO_PASSED was looked at last */
    el_usec stuck; /* since when it finds no slot, 0: it did */
    struct slot_table_slot slot[SLOT_TABLE_SLOTS];
};

struct slot_table {
    struct slot_table_conf conf;
    struct el_mem *mem;
    uint64_t round, gen, round_gen; /* round_gen: gen when the round began */
    unsigned rank_base;
    bool choosing;
    bool choose_due;  /* all ask, but snapshots are being summed */
    bool loading;     /* what is offered next is being read from disk */
    bool unloaded;    /* … and some of it could not be */
    bool fresh;       /* as chosen */
    bool again;       /* the agreement is repeated: when nobody reads any more */
    bool one_goes_on; /* some worker has gone on from a step that was left out, and not asked for it once more */
    bool had_whole;   /* a step was held by all workers since the last agreement */
    uint64_t since;
    int64_t chosen, reached;
    int64_t went;     /* the step from which all ranks of this round went on; SLOT_TABLE_NO_STEP */
    uint64_t lineage; /* of what is trained now; of the two steps: */
    uint64_t chosen_lineage, went_lineage;
    int64_t digest_first[SLOT_TABLE_DIGESTS_FIRST]; /* the first steps of this round that were summed */
    unsigned digest_firsts;
    bool comparing;
    struct slot_table_pair compared, differs; /* what is compared now; what is told */
    char lost[WORKER_MSG_TEXT_MAX], misfit[WORKER_MSG_TEXT_MAX];
    struct slot_table_worker *w;
    struct slot_pin pin;
    struct slot_pin_worker *pinned; /* pin.w */
    bool alike;                     /* who has declared the same stands there */
    struct slot_pin_step common;
    struct worker_msg *reply;
    unsigned replies;
    struct slot_table_actions out;
    char text[WORKER_MSG_TEXT_MAX];
};

/* slot_table.c: what goes out. */
struct slot_table_action *slot_table_act(struct slot_table *k, enum slot_table_action_type type,
                                         const struct slot_table_worker *w);
struct worker_msg *slot_table_answer(struct slot_table *k, struct slot_table_worker *w, enum worker_msg_type type,
                                     uint32_t seq);
void slot_table_refuse(struct slot_table *k, struct slot_table_worker *w, uint32_t seq, const char *code,
                       const char *text);
void slot_table_forget_slots(struct slot_table *k, struct slot_table_worker *w);

/* slot_table_slot.c: slots, from one that is free to one that is committed. */
const struct slot_table_slot *slot_table_newest_slot(const struct slot_table_worker *w); /* NULL: none is committed */
/* For what is copied or read from disk; NULL: none. */
struct slot_table_slot *slot_table_slot_to_load(const struct slot_table *k, struct slot_table_worker *w);
void slot_table_empty_slot(struct slot_table *k, struct slot_table_slot *s);
void slot_table_give_back(struct slot_table_slot *s, bool intact);
void slot_table_hold_images(struct slot_table_slot *s, const struct declaration *d, const uint64_t *header_bytes,
                            const uint64_t *bytes);
void slot_table_on_begin(struct slot_table *k, struct slot_table_worker *w, const struct slot_table_event *ev);
void slot_table_on_reserve(struct slot_table *k, struct slot_table_worker *w, uint64_t bytes);
void slot_table_on_grown(struct slot_table *k, struct slot_table_worker *w, const struct slot_table_event *ev);
void slot_table_on_shrunk(struct slot_table_slot *s, const struct slot_table_event *ev);
void slot_table_note_growth(struct slot_table_slot *s, const struct slot_table_event *ev);
void slot_table_on_commit(struct slot_table *k, struct slot_table_worker *w, const struct worker_msg *m);
void slot_table_on_summed(struct slot_table *k, struct slot_table_worker *w, const struct slot_table_event *ev);
void slot_table_on_captured(struct slot_table *k, struct slot_table_worker *w, const struct slot_table_event *ev);
void slot_table_drop_writing(struct slot_table *k, struct slot_table_worker *w);
void slot_table_drop_captures(struct slot_table *k, struct slot_table_worker *w);

/* slot_table_replicas.c: whether ranks that share a part hold the same. */
bool slot_table_wants_digests(struct slot_table *k, const struct slot_table_slot *s);
void slot_table_hold_digests(struct slot_table_slot *s, const struct declaration *d, const uint64_t *digest);
void slot_table_compare_next(struct slot_table *k);
void slot_table_on_compared(struct slot_table *k, const struct slot_table_event *ev);
void slot_table_forget_differences(struct slot_table *k);
/* slot_table_pin.c: which slot is given out, and what all workers have. */
/* The worker comes to this step, and may have gone back.  True: it has asked for a slot for it before. */
bool slot_table_comes_to(struct slot_table *k, struct slot_table_worker *w, int64_t step, el_usec now);
struct slot_table_slot *slot_table_slot_to_write(struct slot_table *k, struct slot_table_worker *w,
                                                 bool waits); /* NULL: none */
/* A slot is written, summed or read, which ends by itself. */
bool slot_table_is_at_work(struct slot_table *k, const struct slot_table_worker *w);
/* It has none, because of others perhaps. */
void slot_table_is_stuck(struct slot_table *k, struct slot_table_worker *w, bool at_work, el_usec now);
/* The slot is for this step as the worker trains it now. */
void slot_table_name_slot(const struct slot_table_worker *w, struct slot_table_slot *s, int64_t step);
uint64_t slot_table_begun_lineage(const struct slot_table_worker *w); /* of the step that it has come to */
/* Of what it trains now it will commit no more up to this step, which is none below that one. */
int64_t slot_table_passed(const struct slot_table *k, const struct slot_table_worker *w, int64_t newest);
/* What is held for a step that a worker has passed must not wait for anything else to happen. */
void slot_table_look_passed(struct slot_table *k);
/* A step of that lineage that the worker does not hold may yet come. */
bool slot_table_may_come(const struct slot_table *k, const struct slot_table_worker *w, int64_t step, uint64_t lineage);
void slot_table_look_common(struct slot_table *k); /* a slot was committed */
void slot_table_on_common(struct slot_table *k, const struct slot_table_event *ev);
void slot_table_on_useless(struct slot_table *k, const struct slot_table_event *ev);
/* All go on together: from what was chosen, or as a round begins. */
void slot_table_begin_history(struct slot_table *k, uint64_t lineage);
void slot_table_forget_slot(struct slot_table_slot *s); /* of a history that was given up */
bool slot_table_is_common(const struct slot_table *k, const struct slot_table_worker *w,
                          const struct slot_table_slot *s);

/* slot_table_declare.c: PART, DECLARE and their slots. */
void slot_table_on_part(struct slot_table *k, struct slot_table_worker *w, const struct worker_msg *m);
void slot_table_on_declare(struct slot_table *k, struct slot_table_worker *w, const struct worker_msg *m);
void slot_table_on_opened(struct slot_table *k, struct slot_table_worker *w, const struct slot_table_event *ev);
/* Why a snapshot with these sizes is none of what was declared; NULL: it may be one. */
const char *slot_table_images_wrong(const struct declaration *d, const uint64_t *header_bytes, const uint64_t *bytes);
/* Whether one can read what the other has written: their parts are called the same, those that are not `own` are of
 * the same shard and file, and the layout is the same. */
bool slot_table_declared_same(const struct declaration *a, const struct declaration *b);

/* slot_table_cover.c: what is held of a step. */
/* Committed, and of the history that the worker trains now: written in it, or what all its ranks went on from. */
bool slot_table_is_current(const struct slot_table *k, const struct slot_table_worker *w,
                           const struct slot_table_slot *x);
int slot_table_slot_with(const struct slot_table_worker *w, int64_t step, uint64_t lineage); /* -1: none */
/* Committed slots, the highest step first, of one step the one that was begun last; NULL: the first, and no more. */
const struct slot_table_slot *slot_table_next_held(const struct slot_table *k, const struct slot_table_slot *last);
/* A piece that the slot holds; one that is `own` may have no bytes in it. */
bool slot_table_has_piece(const struct slot_table_worker *w, const struct slot_table_slot *x, unsigned part);
const struct slot_table_part *slot_table_part_like(const struct slot_table_worker *w, const struct slot_table_part *p,
                                                   unsigned *part);

/* slot_table_restore.c: going back to a step that all ranks can have. */
void slot_table_on_query(struct slot_table *k, struct slot_table_worker *w, const struct worker_msg *m);
void slot_table_on_chosen(struct slot_table *k, const struct slot_table_event *ev);
void slot_table_on_restored(struct slot_table *k, struct slot_table_worker *w, const struct worker_msg *m);
void slot_table_on_confirmed(struct slot_table *k, const struct slot_table_event *ev);
void slot_table_on_again(struct slot_table *k);
void slot_table_on_loaded(struct slot_table *k, struct slot_table_worker *w, const struct slot_table_event *ev);
void slot_table_choose_if_due(struct slot_table *k);
void slot_table_on_late(struct slot_table *k, const char *text);
bool slot_table_all_could_read(const struct slot_table *k, int64_t step, uint64_t lineage);
void slot_table_drop_offer(struct slot_table *k, struct slot_table_worker *w, bool intact);

#endif
