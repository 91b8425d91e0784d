/* The life of a job as a picture for a terminal: time from left to right, a row for each node, its rounds as blocks,
 * what went wrong as numbered marks.  Pure: changes of state and marks with their wall-clock times go in, in any order;
 * text comes out.  Nodes whose rows look the same become one row, so that a job of 64 nodes fits a screen.
 *
 *   job       ╭─ round 1 ─────────────╮╭─ round 2 ─────────────────╮
 *   gpu-01    █ 0-7 ███████████████████▌ 0-7 ███████████████████████
 *   gpu-02 +2 █ 8-31 █████████1████████▌ 8-23 ██████████████████████
 */
#ifndef HISTORY_TIMELINE_H
#define HISTORY_TIMELINE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/mem.h"

#define TIMELINE_NODES_MAX   16384
#define TIMELINE_MARKS_MAX   1024 /* kept: the first half and the last half; the rest is counted */
#define TIMELINE_COLUMNS_MIN 40
#define TIMELINE_COLUMNS_MAX 240
#define TIMELINE_HOST_MAX    64
#define TIMELINE_TEXT_MAX    240

/* Name, word, may workers of a round be there? */
#define TIMELINE_STATE_LIST(X)                                                                                         \
    X(AWAY, "away", false)                                                                                             \
    X(WAITING, "waiting", false)                                                                                       \
    X(STARTING, "starting", true)                                                                                      \
    X(RUNNING, "running", true)                                                                                        \
    X(STOPPING, "stopping", true)

enum timeline_state {
#define X(name, word, busy) TIMELINE_##name,
    TIMELINE_STATE_LIST(X)
#undef X
        TIMELINE_STATES
};

enum timeline_kind { TIMELINE_FAILURE, TIMELINE_LOST };

struct timeline_change {
    int64_t at; /* microseconds since 1970, on the node's clock */
    enum timeline_state state;
    uint64_t round;         /* of STARTING … STOPPING */
    unsigned rank, workers; /* its ranks in this round: first, how many; 0 workers = not known */
};

struct timeline_node {
    char host[TIMELINE_HOST_MAX + 1];
    uint64_t key; /* which of several agents of a host */
    struct timeline_change *change;
    size_t n, room;
    int64_t offset; /* to be added to its clock; timeline_align() */
    unsigned twin;  /* other nodes of this host that came before it */
};

struct timeline_mark {
    unsigned node;
    enum timeline_kind kind;
    int64_t at; /* on the node's clock */
    uint64_t round;
    char text[TIMELINE_TEXT_MAX];
};

struct timeline {
    struct el_mem *mem;
    struct timeline_node *node;
    size_t nodes, nodes_room;
    struct timeline_mark *mark; /* TIMELINE_MARKS_MAX */
    size_t marks, marks_left_out;
    bool full; /* something was left out for want of memory or places */
};

struct timeline_look {
    unsigned columns; /* of the terminal; brought into the bounds above */
    unsigned rows;    /* for nodes; 0 = 16 */
    bool utf8, colour;
    int64_t zone_sec; /* local time minus UTC */
};

void timeline_init(struct timeline *t, struct el_mem *mem);
void timeline_free(struct timeline *t);

/* The node with this host and key, made if it is new; -1: full. */
int timeline_node(struct timeline *t, const char *host, uint64_t key);
/* From c->at on the node is in this state. */
void timeline_change(struct timeline *t, unsigned node, const struct timeline_change *c);
void timeline_mark(struct timeline *t, const struct timeline_mark *m);

/* Clocks differ from host to host, but workers of one round are started at the same moment: brings the clocks in line
 * by the rounds that nodes share with the first node that has any.  Returns by how much the farthest was off. */
int64_t timeline_align(struct timeline *t);

/* Puts the marks in the order of their aligned times. */
void timeline_sort(struct timeline *t);

/* The first and the last moment, on the aligned clock; false: there is none. */
bool timeline_span(const struct timeline *t, int64_t *from, int64_t *to);

/* Time of all nodes in each state, in microseconds, from the first moment to the last. */
void timeline_spent(const struct timeline *t, uint64_t spent[TIMELINE_STATES]);

/* Appends the picture: rounds, nodes, time, legend with the shares of time, marks.  Nothing if nothing is known. */
void timeline_draw(const struct timeline *t, const struct timeline_look *look, struct el_buf *out);

/* Appends "nodes":[…],"marks":[…] for a JSON object. */
void timeline_json(const struct timeline *t, struct el_buf *out);

const char *timeline_state_word(enum timeline_state s);
/* "20:36:48", or "11-21 20:36:48" with date. */
const char *timeline_clock(int64_t wall_usec, int64_t zone_sec, bool date, char to[24]);

#endif
