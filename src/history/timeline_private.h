/* What timeline_draw.c (rows of nodes) and timeline_scale.c (rounds above them, scale, legend and marks below) share.
 * Nobody else includes this. */
#ifndef HISTORY_TIMELINE_PRIVATE_H
#define HISTORY_TIMELINE_PRIVATE_H
#include "history/timeline.h"

enum {
    ROWS_DEFAULT = 16,
    GROUPS_MAX = 512, /* different rows that are looked at; what is beyond is counted */
    LABEL_MAX = 26,   /* columns of a node's name */
    LIST_MAX = 9,     /* marks that are numbered and told one by one */
    RANGES_MAX = 3,   /* of ranks, in a row of several nodes */
    TICK_LEAST = 11,  /* columns from tick to tick */
};

/* One column of a row. */
struct cell {
    uint8_t state;
    uint8_t odd;  /* the round's number is: neighbours differ in colour */
    uint8_t edge; /* a round begins within it */
    char mark;    /* '1' … '9', 'x', 0 */
};

struct row {
    size_t node, more; /* the first one, and how many look the same */
    bool marked;
    /* Its ranks in the round in which they were last told, end behind the last. */
    struct range {
        unsigned rank, end;
    } range[RANGES_MAX];
    unsigned ranges;
    bool ranges_full; /* there are more */
    struct cell *cell;
};

struct place {
    uint64_t key;
    size_t node;
};

struct picture {
    const struct timeline *t;
    const struct timeline_look *look;
    int64_t from, to;
    unsigned bar, label; /* columns */
    struct place *order; /* of all nodes */
    struct row *row;
    size_t rows, nodes_left_out;
    struct cell *cells; /* GROUPS_MAX + 1 rows of them: the last one is where a row is tried */
    struct el_buf *out;
    const char *sgr; /* what is switched on now */
};

/* --- timeline_draw.c --- */
void picture_paint(struct picture *p, const char *sgr); /* from here on; "": plain */
void picture_newline(struct picture *p);
const char *picture_sign(const struct picture *p, const char *utf8, const char *ascii);
size_t picture_width(const char *s); /* columns */
size_t picture_clip(struct picture *p, const char *s, size_t columns);
void picture_pad(struct picture *p, size_t from, size_t to);
unsigned picture_column(const struct picture *p, int64_t at);
char picture_mark(size_t i);

/* --- timeline_scale.c --- */
void picture_rounds(struct picture *p);
void picture_scale(struct picture *p);
void picture_legend(struct picture *p);
void picture_list(struct picture *p);

#endif
