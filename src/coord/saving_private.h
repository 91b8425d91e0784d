/* What saving.c (orders), saving_held.c (what is held) and saving_words.c (what is told) share. */
#ifndef COORD_SAVING_PRIVATE_H
#define COORD_SAVING_PRIVATE_H
#include "coord/saving.h"
#include "coord/lastwords.h"

#define SAVING_BUCKETS 4096u
#define SAVING_NONE    UINT32_MAX

#define SAVING_TARGETS_MAX 64u  /* a wish that finds no room waits at its node */
#define SAVING_RESULTS_MAX 128u /* results that are remembered */

/* A (part, shard) that somebody has declared. */
struct saving_class {
    char *part, *shard;
    bool own;      /* a rank's alone: it is written where it is held, and decides nothing */
    uint32_t next; /* of its bucket */
    uint32_t mark; /* of the look that has found it held, or that it may come */
    bool held;
    uint32_t may;              /* a node to which it may come, if it is not held */
    enum lastwords_level best; /* while a step is looked at for last words */
    uint32_t owner;            /* while an order is made: node and its index */
    uint32_t index;
};

struct saving_step {
    int64_t step;
    uint64_t lineage; /* (ckpt/lineage.h) */
    uint8_t *has;     /* a bit for each part of the list */
};

/* Last words: what live workers hold, too. */
struct saving_live {
    int64_t step;
    uint8_t *level; /* enum lastwords_level, of each part of the list; NULL: no memory */
};

/* A step that a node wants on disk. */
struct saving_wish {
    int64_t step;
    uint64_t lineage;
    bool taken; /* it is aimed at, or was: if it is not any more, the node is told what became of it */
};

/* … that is to be written as soon as it is covered. */
struct saving_target {
    int64_t step;
    uint64_t lineage;
    el_usec word, until; /* EL_NEVER: it was said for whom it waits */
};

struct saving_node {
    bool here;     /* has spoken in this round, and is not lost */
    unsigned seat; /* in it */
    uint64_t list;
    unsigned parts, heard; /* of the list: all, and so many have come, in order */
    unsigned room;
    uint32_t *cls;
    bool known; /* the list is whole */
    char layout[SAVING_NAME_MAX + 1];
    unsigned steps;
    struct saving_step step[SAVING_STEPS_MAX];
    int64_t least;
    unsigned wishes;
    struct saving_wish wish[SAVING_WISHES_MAX];
    bool quiet;
    bool stands; /* it has said where its workers stand: */
    unsigned lives;
    struct saving_live live[LASTWORDS_STEPS_MAX];

    uint64_t giver, order; /* that it speaks of; 0: none */
    enum saving_at at;
    uint64_t moved, got;
    int64_t failed; /* a step that it could not write */
    bool published;

    uint64_t ask; /* an operator's wish that it speaks of; 0: none */
    enum saving_ask_at { SAVING_ASK_NONE, SAVING_ASK_OPEN, SAVING_ASK_WRITTEN, SAVING_ASK_ANSWERED } ask_at;
    int64_t ask_step; /* from SAVING_ASK_WRITTEN on */
    bool ask_good;

    uint32_t load;        /* while an order is made: files */
    uint32_t files, left; /* of the order: that it writes; that are not written yet */
    uint64_t told_conn, told_order, told_got;
};

struct saving_file {
    char *part, *shard, *name, *sums; /* the last two when it is written */
    uint64_t size, samples;
    uint32_t node, index;
    bool written;
};

enum saving_phase { SAVING_RESTING, SAVING_WRITING, SAVING_PUBLISHING };

struct saving {
    struct saving_conf conf;
    struct el_mem mem;
    uint64_t number, coord, world;
    unsigned size;

    struct saving_class *class;
    uint32_t classes, classes_room, mark, *bucket;
    uint8_t *seat_known;
    unsigned declared; /* seats of which the list is whole, those of lost nodes included */
    struct saving_node *node;
    unsigned used; /* nodes below */
    bool full;     /* there was no memory for what the nodes declare */

    unsigned live;
    unsigned targets; /* the lowest step first */
    struct saving_target target[SAVING_TARGETS_MAX];
    struct saving_late late;
    int64_t done;  /* newest on disk */
    int64_t again; /* an order to write it came to nothing: another one is looked for */
    bool settling, lastwords;
    el_usec settle_until, quiet_until;

    enum saving_phase phase;
    uint64_t order; /* counts them */
    int64_t step;
    uint64_t lineage, covered; /* of that step; of the one that was found covered last */
    char nonce[32];
    uint64_t op_number, op_coord, op_world;
    char layout[SAVING_NAME_MAX + 1];
    bool op_lastwords;
    char why[MSG_TEXT_MAX + 1]; /* the first failure of this step */
    struct saving_file *file;
    uint32_t files, written;
    uint32_t publisher; /* SAVING_LOCAL: all that wrote */
    bool existed;
    el_usec began, until;
    uint64_t results;             /* so many in all; the last ones: */
    struct saving_result *result; /* SAVING_RESULTS_MAX */
    bool tell;
    char *words; /* of saving_word() */
    size_t words_room;
};

/* saving_held.c */
enum saving_cover { SAVING_COVERED, SAVING_WAITS, SAVING_HOPELESS };
/* Whether the nodes that are there, but for those that could not write it, hold all of a step, of one history: its
 * lineage is s->covered.  Text: what is missing. */
enum saving_cover saving_cover(struct saving *s, int64_t step, unsigned live, char *text, size_t size);
enum saving_cover saving_cover_of(struct saving *s, int64_t step, uint64_t lineage, unsigned live, char *text,
                                  size_t size);
/* Of all that the nodes have declared. */
const char *saving_layout(const struct saving *s);
/* The newest covered step above `beyond`. */
int64_t saving_newest(struct saving *s, int64_t beyond, unsigned live);
/* The newest step beyond that somebody holds some of. */
int64_t saving_held_beyond(const struct saving *s, int64_t beyond);
bool saving_holds(const struct saving_node *n, const struct saving_step *st, unsigned part);
const struct saving_step *saving_find(const struct saving_node *n, int64_t step);
const struct saving_step *saving_find_of(const struct saving_node *n, int64_t step, uint64_t lineage);
void saving_forget_held(struct saving *s);
void saving_forget_node(struct saving *s, struct saving_node *n); /* what it declared counts on */
void saving_take_part(struct saving *s, struct saving_node *n, const struct msg_ckpt_part *p);
void saving_take_steps(struct saving *s, struct saving_node *n, const struct msg_ckpt_held *h);
/* saving_live.c */
void saving_forget_live(struct saving *s, struct saving_node *n);
/* saving_ask.c */
void saving_take_ask(struct saving *s, struct saving_node *n, uint64_t ask);
int64_t saving_asked(struct saving *s);
void saving_ask_over(struct saving *s, int64_t step, bool good);
void saving_ask_word(const struct saving *s, const struct saving_node *n, struct msg *out);
void saving_tell_result(const struct saving *s, struct msg_ckpt_over *o);

/* saving_wish.c */
/* What the node wants now: "12@9f3a 15@9f3a". */
void saving_take_wishes(struct saving *s, struct saving_node *n, const char *wishes, el_usec now);
void saving_forget_wishes(struct saving *s);
/* A target that is covered (its lineage is s->covered), and is to be written now; SAVING_NO_STEP: none.  What is
 * hopeless, or late, is over. */
int64_t saving_covered_target(struct saving *s, bool all_quiet, el_usec now);
/* Those beyond this step are over, but for that lineage's (0: none). */
void saving_deny_targets(struct saving *s, int64_t beyond, uint64_t lineage, const char *why, el_usec now);
/* Of the node's wishes the first that will not be, or is, on disk; NULL: none. */
const struct saving_wish *saving_wish_over(const struct saving *s, const struct saving_node *n);
/* A step is over; the entry is the newest result. */
struct saving_result *saving_over(struct saving *s, int64_t step, uint64_t lineage, bool good, el_usec now);
/* The newest one, of lineage 0 that of any; NULL: none is remembered. */
const struct saving_result *saving_result_of(const struct saving *s, int64_t step, uint64_t lineage);
const struct saving_result *saving_result_of_order(const struct saving *s, uint64_t order);
/* What failed may be tried again. */
void saving_forgive(struct saving *s);
bool saving_has_failed(const struct saving *s, int64_t step, uint64_t lineage);

static inline bool saving_is_of_order(const struct saving *s, uint64_t giver, uint64_t order)
{
    return s->phase != SAVING_RESTING && giver == s->conf.giver && order == s->order;
}
static inline const char *saving_name(const struct saving *s, unsigned node)
{
    return s->conf.name ? s->conf.name(s->conf.ctx, node) : "a node";
}

#endif
