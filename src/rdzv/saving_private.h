/* What saving.c (orders), saving_held.c (what is held) and saving_words.c (what is told) share. */
#ifndef RDZV_SAVING_PRIVATE_H
#define RDZV_SAVING_PRIVATE_H
#include "rdzv/saving.h"

#define SAVING_BUCKETS 4096u
#define SAVING_NONE    UINT32_MAX

/* What must be alike in a part, at the newest step that a node has told a digest of. */
struct saving_alike {
    uint64_t digest, lineage; /* digest 0: none yet */
    int64_t step;
    uint32_t node, other;
    bool differs, told;
};

/* A (part, shard) that somebody has declared. */
struct saving_class {
    char *part, *shard;
    uint64_t bytes;
    uint32_t next; /* of its bucket */
    uint32_t mark; /* of the look that has found it held, or that it may come */
    bool held;
    enum lastwords_level best; /* while a step is looked at for last words */
    uint32_t owner;            /* while an order is made: node and its index */
    uint32_t index;
    struct saving_alike alike;
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
    int64_t least, want;
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

    uint64_t load;        /* while an order is made: bytes */
    uint32_t files, left; /* of the order: that it writes; that are not written yet */
    uint64_t told_conn, told_order, told_got;
};

struct saving_file {
    char *part, *shard, *name, *sums; /* the last two when it is written */
    uint64_t bytes, size, samples;
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
    int64_t target, done; /* wanted by a script; on disk */
    int64_t refused;      /* it has turned out in this round that it cannot be written */
    int64_t again;        /* an order to write it came to nothing: another one is looked for */
    el_usec target_until;
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
    struct saving_result last;
    bool tell;
    unsigned differences; /* classes that differ and are not told */
    char *words;          /* of saving_word() */
    size_t words_room;
};

/* saving_held.c */
enum saving_cover { SAVING_COVERED, SAVING_WAITS, SAVING_HOPELESS };
/* Whether the nodes that are there, but for those that could not write it, hold all of a step, of one history: its
 * lineage is s->covered.  Text: what is missing. */
enum saving_cover saving_cover(struct saving *s, int64_t step, unsigned live, char *text, size_t size);
/* Of all that the nodes have declared. */
const char *saving_layout(const struct saving *s);
/* The newest covered step above `beyond`. */
int64_t saving_newest(struct saving *s, int64_t beyond, unsigned live);
/* The newest step beyond that somebody holds some of. */
int64_t saving_held_beyond(const struct saving *s, int64_t beyond);
bool saving_holds(const struct saving_node *n, const struct saving_step *st, unsigned part);
const struct saving_step *saving_find(const struct saving_node *n, int64_t step);
void saving_forget_held(struct saving *s);
void saving_forget_node(struct saving *s, struct saving_node *n); /* what it declared counts on */
void saving_take_part(struct saving *s, struct saving_node *n, const struct msg_ckpt_part *p);
void saving_take_steps(struct saving *s, struct saving_node *n, const struct msg_ckpt_held *h);
/* saving_alike.c */
void saving_take_alike(struct saving *s, unsigned node, const char *text);
void saving_forget_alike(struct saving *s, unsigned node); /* it is lost */
/* saving_live.c */
void saving_forget_live(struct saving *s, struct saving_node *n);
/* saving_ask.c */
void saving_take_ask(struct saving *s, struct saving_node *n, uint64_t ask);
int64_t saving_asked(struct saving *s);
void saving_ask_over(struct saving *s, int64_t step, bool good);
void saving_ask_word(const struct saving *s, const struct saving_node *n, struct msg *out);
void saving_tell_result(const struct saving *s, struct msg_ckpt_over *o);

static inline bool saving_is_of_order(const struct saving *s, uint64_t giver, uint64_t order)
{
    return s->phase != SAVING_RESTING && giver == s->conf.giver && order == s->order;
}
static inline const char *saving_name(const struct saving *s, unsigned node)
{
    return s->conf.name ? s->conf.name(s->conf.ctx, node) : "a node";
}

#endif
