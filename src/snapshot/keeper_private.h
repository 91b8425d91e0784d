/* Shared by keeper*.c alone. */
#ifndef SNAPSHOT_KEEPER_PRIVATE_H
#define SNAPSHOT_KEEPER_PRIVATE_H
#include "snapshot/keeper.h"

/* What a worker has named of its parts.  One block of memory: the rows, then their strings. */
struct declaration {
    unsigned parts;
    bool has_own; /* a part that is */
    char layout_id[WMSG_NAME_MAX + 1];
    struct keeper_part part[WMSG_PARTS_MAX];
};

/* How far a worker is with going back. */
enum restoring { RESTORING_NOT, RESTORING_ASKED, RESTORING_OFFERED, RESTORING_READ };

struct worker {
    bool here;     /* it has said HELLO in this round */
    bool declared; /* … and DECLARE, which holds until it ends */
    bool known;    /* it has declared in this round, whether or not it has ended since */
    bool granted;  /* … and got slots: it may write */
    bool has_slots;
    bool opening;
    bool captures; /* a slot was given out for last words, which are not over */
    unsigned rank;
    struct declaration *kept;   /* what the slots were made for; NULL: none yet */
    struct declaration *named;  /* PART by PART, until DECLARE */
    char *images;               /* room for the sizes of as many parts as are kept, as text */
    char refuse[WMSG_TEXT_MAX]; /* what was wrong with a PART; "" nothing */
    uint32_t seq;               /* of the request that waits for its answer */
    enum restoring restoring;
    unsigned from_worker, from_slot; /* what it was offered; from_worker == workers: nothing */
    uint64_t from_gen;
    int64_t offered;
    bool *told;     /* of each part that is kept: that ranks hold different ones has been told in this round */
    bool elsewhere; /* it needs no slot of this node: what another rank has will do */
    /* What it trains, since all went on together: */
    int64_t begun;    /* the last step that it came to; KEEPER_NO_STEP: none */
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
        struct pin_step passed;
        bool comes;
    } judged;      /* … when KEEPER_DO_PASSED was looked at last */
    el_usec stuck; /* since when it finds no slot, 0: it did */
    struct keeper_slot slot[KEEPER_SLOTS];
};

struct keeper {
    struct keeper_conf conf;
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
    int64_t went;     /* the step from which all ranks of this round went on; KEEPER_NO_STEP */
    uint64_t lineage; /* of what is trained now; of the two steps: */
    uint64_t chosen_lineage, went_lineage;
    int64_t digest_first[KEEPER_DIGESTS_FIRST]; /* the first steps of this round that were summed */
    unsigned digest_firsts;
    bool comparing;
    struct keeper_pair compared, differs; /* what is compared now; what is told */
    char lost[WMSG_TEXT_MAX], misfit[WMSG_TEXT_MAX];
    struct worker *w;
    struct pin pin;
    struct pin_worker *pinned; /* pin.w */
    bool alike;                /* who has declared the same stands there */
    struct pin_step common;
    struct wmsg *reply;
    unsigned replies;
    struct keeper_actions out;
    char text[WMSG_TEXT_MAX];
};

/* keeper.c: what goes out. */
struct keeper_action *keeper_act(struct keeper *k, enum keeper_action_type type, const struct worker *w);
struct wmsg *keeper_answer(struct keeper *k, struct worker *w, enum wmsg_type type, uint32_t seq);
void keeper_refuse(struct keeper *k, struct worker *w, uint32_t seq, const char *code, const char *text);
void keeper_forget_slots(struct keeper *k, struct worker *w);

/* keeper_slot.c: slots, from one that is free to one that is committed. */
const struct keeper_slot *keeper_newest_slot(const struct worker *w); /* NULL: none is committed */
/* For what is copied or read from disk; NULL: none. */
struct keeper_slot *keeper_slot_to_load(const struct keeper *k, struct worker *w);
void keeper_empty_slot(struct keeper *k, struct keeper_slot *s);
void keeper_give_back(struct keeper_slot *s, bool intact);
void keeper_hold_images(struct keeper_slot *s, const struct declaration *d, const uint64_t *header_bytes,
                        const uint64_t *bytes);
void keeper_on_begin(struct keeper *k, struct worker *w, const struct keeper_event *ev);
void keeper_on_reserve(struct keeper *k, struct worker *w, uint64_t bytes);
void keeper_on_grown(struct keeper *k, struct worker *w, const struct keeper_event *ev);
void keeper_on_shrunk(struct keeper_slot *s, const struct keeper_event *ev);
void keeper_note_growth(struct keeper_slot *s, const struct keeper_event *ev);
void keeper_on_commit(struct keeper *k, struct worker *w, const struct wmsg *m);
void keeper_on_summed(struct keeper *k, struct worker *w, const struct keeper_event *ev);
void keeper_on_captured(struct keeper *k, struct worker *w, const struct keeper_event *ev);
void keeper_drop_writing(struct keeper *k, struct worker *w);
void keeper_drop_captures(struct keeper *k, struct worker *w);

/* keeper_alike.c: whether ranks that share a part hold the same. */
bool keeper_wants_digests(struct keeper *k, const struct keeper_slot *s);
void keeper_hold_digests(struct keeper_slot *s, const struct declaration *d, const uint64_t *digest);
void keeper_compare_next(struct keeper *k);
void keeper_on_compared(struct keeper *k, const struct keeper_event *ev);
void keeper_forget_differences(struct keeper *k);
/* keeper_pin.c: which slot is given out, and what all workers have. */
/* The worker comes to this step, and may have gone back.  True: it has asked for a slot for it before. */
bool keeper_comes_to(struct keeper *k, struct worker *w, int64_t step, el_usec now);
struct keeper_slot *keeper_slot_to_write(struct keeper *k, struct worker *w, bool waits); /* NULL: none */
/* A slot is written, summed or read, which ends by itself. */
bool keeper_is_at_work(struct keeper *k, const struct worker *w);
/* It has none, because of others perhaps. */
void keeper_is_stuck(struct keeper *k, struct worker *w, bool at_work, el_usec now);
/* The slot is for this step as the worker trains it now. */
void keeper_name_slot(const struct worker *w, struct keeper_slot *s, int64_t step);
uint64_t keeper_begun_lineage(const struct worker *w); /* of the step that it has come to */
/* Of what it trains now it will commit no more up to this step, which is none below that one. */
int64_t keeper_passed(const struct keeper *k, const struct worker *w, int64_t newest);
/* What is held for a step that a worker has passed must not wait for anything else to happen. */
void keeper_look_passed(struct keeper *k);
/* A step of that lineage that the worker does not hold may yet come. */
bool keeper_may_come(const struct keeper *k, const struct worker *w, int64_t step, uint64_t lineage);
void keeper_look_common(struct keeper *k); /* a slot was committed */
void keeper_on_common(struct keeper *k, const struct keeper_event *ev);
void keeper_on_useless(struct keeper *k, const struct keeper_event *ev);
/* All go on together: from what was chosen, or as a round begins. */
void keeper_begin_history(struct keeper *k, uint64_t lineage);
void keeper_forget_slot(struct keeper_slot *s); /* of a history that was given up */
bool keeper_is_common(const struct keeper *k, const struct worker *w, const struct keeper_slot *s);

/* keeper_declare.c: PART, DECLARE and their slots. */
void keeper_on_part(struct keeper *k, struct worker *w, const struct wmsg *m);
void keeper_on_declare(struct keeper *k, struct worker *w, const struct wmsg *m);
void keeper_on_opened(struct keeper *k, struct worker *w, const struct keeper_event *ev);
/* Why a snapshot with these sizes is none of what was declared; NULL: it may be one. */
const char *keeper_images_wrong(const struct declaration *d, const uint64_t *header_bytes, const uint64_t *bytes);
/* Whether one can read what the other has written: their parts are called the same, those that are not `own` are of
 * the same shard and file, and the layout is the same. */
bool keeper_declared_same(const struct declaration *a, const struct declaration *b);

/* keeper_cover.c: what is held of a step. */
/* Committed, and of the history that the worker trains now: written in it, or what all its ranks went on from. */
bool keeper_is_current(const struct keeper *k, const struct worker *w, const struct keeper_slot *x);
int keeper_slot_with(const struct worker *w, int64_t step, uint64_t lineage); /* -1: none */
/* Committed slots, the highest step first, of one step the one that was begun last; NULL: the first, and no more. */
const struct keeper_slot *keeper_next_held(const struct keeper *k, const struct keeper_slot *last);
/* A piece that the slot holds; one that is `own` may have no bytes in it. */
bool keeper_has_piece(const struct worker *w, const struct keeper_slot *x, unsigned part);
const struct keeper_part *keeper_part_like(const struct worker *w, const struct keeper_part *p, unsigned *part);

/* keeper_restore.c: going back to a step that all ranks can have. */
void keeper_on_query(struct keeper *k, struct worker *w, const struct wmsg *m);
void keeper_on_chosen(struct keeper *k, const struct keeper_event *ev);
void keeper_on_restored(struct keeper *k, struct worker *w, const struct wmsg *m);
void keeper_on_confirmed(struct keeper *k, const struct keeper_event *ev);
void keeper_on_again(struct keeper *k);
void keeper_on_loaded(struct keeper *k, struct worker *w, const struct keeper_event *ev);
void keeper_choose_if_due(struct keeper *k);
void keeper_on_late(struct keeper *k, const char *text);
bool keeper_all_could_read(const struct keeper *k, int64_t step, uint64_t lineage);
void keeper_drop_offer(struct keeper *k, struct worker *w, bool intact);

#endif
