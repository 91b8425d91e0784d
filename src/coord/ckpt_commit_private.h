/* What ckpt_commit.c (orders), ckpt_commit_inventory.c (what is held) and ckpt_commit_text.c (what is told) share. */
#ifndef COORD_CKPT_COMMIT_PRIVATE_H
#define COORD_CKPT_COMMIT_PRIVATE_H
#include "coord/ckpt_commit.h"
#include "coord/emergency_ckpt.h"

#define CKPT_COMMIT_BUCKETS 4096u
#define CKPT_COMMIT_NONE    UINT32_MAX

#define CKPT_COMMIT_TARGETS_MAX 64u  /* a wish that finds no room waits at its node */
#define CKPT_COMMIT_RESULTS_MAX 128u /* results that are remembered */

/* A (part, shard) that somebody has declared. */
struct ckpt_commit_class {
    char *part, *shard;
    bool own;      /* a rank's alone: it is written where it is held, and decides nothing */
    uint32_t next; /* of its bucket */
    uint32_t mark; /* of the look that has found it held, or that it may come */
    bool held;
    uint32_t may;                   /* a node to which it may come, if it is not held */
    enum emergency_ckpt_level best; /* while a step is looked at for an emergency checkpoint */
    uint32_t owner;                 /* while an order is made: node and its index */
    uint32_t index;
};

struct ckpt_commit_step {
    int64_t step;
    uint64_t lineage; /* (ckpt/lineage.h) */
    uint8_t *has;     /* a bit for each part of the list */
};

/* Emergency checkpoint: what live workers hold, too. */
struct ckpt_commit_live {
    int64_t step;
    uint8_t *level; /* enum emergency_ckpt_level, of each part of the list; NULL: no memory */
};

/* A step that a node wants on disk. */
struct ckpt_commit_wish {
    int64_t step;
    uint64_t lineage;
    bool taken; /* it is aimed at, or was: if it is not any more, the node is told what became of it */
};

/* … that is to be written as soon as it is covered. */
struct ckpt_commit_target {
    int64_t step;
    uint64_t lineage;
    el_usec word, until; /* EL_NEVER: it was said for whom it waits */
};

struct ckpt_commit_node {
    bool here;     /* has spoken in this round, and is not lost */
    unsigned seat; /* in it */
    uint64_t list;
    unsigned parts, heard; /* of the list: all, and so many have come, in order */
    unsigned room;
    uint32_t *cls;
    bool known; /* the list is whole */
    char layout[CKPT_COMMIT_NAME_MAX + 1];
    unsigned steps;
    struct ckpt_commit_step step[CKPT_COMMIT_STEPS_MAX];
    int64_t least;
    unsigned wishes;
    struct ckpt_commit_wish wish[CKPT_COMMIT_WISHES_MAX];
    bool quiet;
    bool stands; /* it has said where its workers stand: */
    unsigned lives;
    struct ckpt_commit_live live[EMERGENCY_CKPT_STEPS_MAX];

    uint64_t giver, order; /* that it speaks of; 0: none */
    enum ckpt_commit_at at;
    uint64_t moved, got;
    int64_t failed; /* a step that it could not write */
    bool published;

    uint64_t ask; /* an operator's wish that it speaks of; 0: none */
    enum ckpt_commit_ask_at {
        CKPT_COMMIT_ASK_NONE,
        CKPT_COMMIT_ASK_OPEN,
        CKPT_COMMIT_ASK_WRITTEN,
        CKPT_COMMIT_ASK_ANSWERED
    } ask_at;
    int64_t ask_step; /* from CKPT_COMMIT_ASK_WRITTEN on */
    bool ask_good;

    uint32_t load;        /* while an order is made: files */
    uint32_t files, left; /* of the order: that it writes; that are not written yet */
    uint64_t told_conn, told_order, told_got;
};

struct ckpt_commit_file {
    char *part, *shard, *name, *sums; /* the last two when it is written */
    uint64_t size, samples;
    uint32_t node, index;
    bool written;
};

enum ckpt_commit_phase { CKPT_COMMIT_RESTING, CKPT_COMMIT_WRITING, CKPT_COMMIT_PUBLISHING };

struct ckpt_commit {
    struct ckpt_commit_conf conf;
    struct el_mem mem;
    uint64_t number, coord, world;
    unsigned size;

    struct ckpt_commit_class *class;
    uint32_t classes, classes_room, mark, *bucket;
    uint8_t *seat_known;
    unsigned declared; /* seats of which the list is whole, those of lost nodes included */
    struct ckpt_commit_node *node;
    unsigned used; /* nodes below */
    bool full;     /* there was no memory for what the nodes declare */

    unsigned live;
    unsigned targets; /* the lowest step first */
    struct ckpt_commit_target target[CKPT_COMMIT_TARGETS_MAX];
    struct ckpt_commit_late late;
    int64_t done;  /* newest on disk */
    int64_t again; /* an order to write it came to nothing: another one is looked for */
    bool settling, emergency;
    el_usec settle_until, quiet_until;

    enum ckpt_commit_phase phase;
    uint64_t order; /* counts them */
    int64_t step;
    uint64_t lineage, covered; /* of that step; of the one that was found covered last */
    char nonce[32];
    uint64_t op_number, op_coord, op_world;
    char layout[CKPT_COMMIT_NAME_MAX + 1];
    bool op_emergency;
    char why[MSG_TEXT_MAX + 1]; /* the first failure of this step */
    struct ckpt_commit_file *file;
    uint32_t files, written;
    uint32_t publisher; /* CKPT_COMMIT_LOCAL: all that wrote */
    bool existed;
    el_usec began, until;
    uint64_t results;                  /* so many in all; the last ones: */
    struct ckpt_commit_result *result; /* CKPT_COMMIT_RESULTS_MAX */
    bool tell;
    char *words; /* of ckpt_commit_word() */
    size_t words_room;
};

/* ckpt_commit_inventory.c */
enum ckpt_commit_cover { CKPT_COMMIT_COVERED, CKPT_COMMIT_WAITS, CKPT_COMMIT_HOPELESS };
/* Whether the nodes that are there, but for those that could not write it, hold all of a step, of one history: its
 * lineage is s->covered.  Text: what is missing. */
enum ckpt_commit_cover ckpt_commit_cover(struct ckpt_commit *s, int64_t step, unsigned live, char *text, size_t size);
enum ckpt_commit_cover ckpt_commit_cover_of(struct ckpt_commit *s, int64_t step, uint64_t lineage, unsigned live,
                                            char *text, size_t size);
/* Of all that the nodes have declared. */
const char *ckpt_commit_layout(const struct ckpt_commit *s);
/* The newest covered step above `beyond`. */
int64_t ckpt_commit_newest(struct ckpt_commit *s, int64_t beyond, unsigned live);
/* The newest step beyond that somebody holds some of. */
int64_t ckpt_commit_held_beyond(const struct ckpt_commit *s, int64_t beyond);
bool ckpt_commit_holds(const struct ckpt_commit_node *n, const struct ckpt_commit_step *st, unsigned part);
const struct ckpt_commit_step *ckpt_commit_find(const struct ckpt_commit_node *n, int64_t step);
const struct ckpt_commit_step *ckpt_commit_find_of(const struct ckpt_commit_node *n, int64_t step, uint64_t lineage);
void ckpt_commit_forget_held(struct ckpt_commit *s);
void ckpt_commit_forget_node(struct ckpt_commit *s, struct ckpt_commit_node *n); /* what it declared counts on */
void ckpt_commit_take_part(struct ckpt_commit *s, struct ckpt_commit_node *n, const struct msg_ckpt_part *p);
void ckpt_commit_take_steps(struct ckpt_commit *s, struct ckpt_commit_node *n, const struct msg_ckpt_state *h);
/* ckpt_commit_emergency.c */
void ckpt_commit_forget_live(struct ckpt_commit *s, struct ckpt_commit_node *n);
/* ckpt_commit_request.c */
void ckpt_commit_take_ask(struct ckpt_commit *s, struct ckpt_commit_node *n, uint64_t ask);
int64_t ckpt_commit_asked(struct ckpt_commit *s);
void ckpt_commit_ask_over(struct ckpt_commit *s, int64_t step, bool good);
void ckpt_commit_ask_word(const struct ckpt_commit *s, const struct ckpt_commit_node *n, struct msg *out);
void ckpt_commit_tell_result(const struct ckpt_commit *s, struct msg_ckpt_over *o);

/* ckpt_commit_promise.c */
/* What the node wants now: "12@9f3a 15@9f3a". */
void ckpt_commit_take_wishes(struct ckpt_commit *s, struct ckpt_commit_node *n, const char *wishes, el_usec now);
void ckpt_commit_forget_wishes(struct ckpt_commit *s);
/* A target that is covered (its lineage is s->covered), and is to be written now; CKPT_COMMIT_NO_STEP: none.  What is
 * hopeless, or late, is over. */
int64_t ckpt_commit_covered_target(struct ckpt_commit *s, bool all_quiet, el_usec now);
/* Those beyond this step are over, but for that lineage's (0: none). */
void ckpt_commit_deny_targets(struct ckpt_commit *s, int64_t beyond, uint64_t lineage, const char *why, el_usec now);
/* Of the node's wishes the first that will not be, or is, on disk; NULL: none. */
const struct ckpt_commit_wish *ckpt_commit_wish_over(const struct ckpt_commit *s, const struct ckpt_commit_node *n);
/* A step is over; the entry is the newest result. */
struct ckpt_commit_result *ckpt_commit_over(struct ckpt_commit *s, int64_t step, uint64_t lineage, bool good,
                                            el_usec now);
/* The newest one, of lineage 0 that of any; NULL: none is remembered. */
const struct ckpt_commit_result *ckpt_commit_result_of(const struct ckpt_commit *s, int64_t step, uint64_t lineage);
const struct ckpt_commit_result *ckpt_commit_result_of_order(const struct ckpt_commit *s, uint64_t order);
/* What failed may be tried again. */
void ckpt_commit_forgive(struct ckpt_commit *s);
bool ckpt_commit_has_failed(const struct ckpt_commit *s, int64_t step, uint64_t lineage);

static inline bool ckpt_commit_is_of_order(const struct ckpt_commit *s, uint64_t giver, uint64_t order)
{
    return s->phase != CKPT_COMMIT_RESTING && giver == s->conf.giver && order == s->order;
}
static inline const char *ckpt_commit_name(const struct ckpt_commit *s, unsigned node)
{
    return s->conf.name ? s->conf.name(s->conf.ctx, node) : "a node";
}

#endif
