/* A coordinator core on a stage: nodes are letters, each step one line of text with virtual time:
 *
 *     3.000 time -> a: open 1
 *     3.001 a STORE_READY -> a: world 1, 0 of 2; b: world 1, 1 of 2
 *
 * Steps without a visible action leave no line; parks are shown as "park" only to who was not parked before. */
#ifndef TEST_SIM_STORY_H
#define TEST_SIM_STORY_H
#include <stdbool.h>

#include "coord/health_check.h"
#include "coord/rdzv.h"

#define STORY_NODES 26

struct story {
    struct rdzv *r;
    struct rdzv_conf conf;
    struct rdzv_record journal;
    el_usec now;
    uint64_t conns;
    struct {
        uint64_t conn, connection, instance;
        unsigned member;
        struct msg last;        /* order; strings are not kept */
        uint64_t number, coord; /* of the last WORLD */
        int group_rank, node_rank;
        uint64_t rank_base;
        bool latest;        /* for its next HELLO */
        const char *domain; /* NULL: none */
        unsigned group_size;
        unsigned parks;
        uint64_t seen;
        bool failed; /* its next return says that a worker failed here */
    } node[STORY_NODES];
    unsigned slots; /* of who joins; 0: 2 */
    bool quiet;     /* no lines for now */
    bool beats;     /* nodes that are connected send heartbeats while time passes (default) */
    bool journal_broken, journal_late;
    uint64_t serial;
    char text[32768];
    size_t len;
};

/* min, max and what each test changes in s->conf before story_begin(). */
void story_init(struct story *s, unsigned min, unsigned max);
void story_begin(struct story *s);
void story_restart(struct story *s, bool journal); /* the coordinator crashes and starts again */
void story_end(struct story *s);

void story_until(struct story *s, unsigned ms);
/* Time goes on to ms, then it happens. */
void story_join(struct story *s, unsigned ms, char node);              /* first HELLO of a new instance */
void story_return(struct story *s, unsigned ms, char node, int phase); /* HELLO again, reporting its last round */
void story_closed(struct story *s, unsigned ms, char node);
void story_says(struct story *s, unsigned ms, char node, enum msg_type type); /* about its last round */
void story_tell(struct story *s, char node, const struct msg *msg);           /* now */
void story_fails(struct story *s, unsigned ms, char node, unsigned local_rank, int code);
void story_journaled(struct story *s, bool good); /* with journal_late: its answer */
void story_probed(struct story *s, unsigned ms, char node, enum health_check_outcome outcome); /* of its last order */
void story_commands(struct story *s, unsigned ms, const struct msg *msg);
/* The same from each of nodes. */
void story_all_say(struct story *s, unsigned ms, const char *nodes, enum msg_type type);

/* Nodes from this number on come from one address. */
extern int story_one_host;

#endif
