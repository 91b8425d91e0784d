/* Which step all ranks of a round go back to: what the nodes say they can read, and what follows.  Pure; the
 * coordinator has one for its round, a node that is alone one of a single seat.
 *
 *     nobody asks -> hearing -> reading -> over          (again from hearing, with the next attempt: a node could not
 * read)
 *
 * A node says all of its state each time (struct restore_stock), so that nothing is lost with a connection or with a
 * coordinator: one that has just begun hears from the nodes what an earlier one had decided, and decides the same.  It
 * decides when every node has spoken: the newest step that each of them can read, or has from others.  When all have
 * read it, all go on; a node that cannot read it speaks of the next attempt, without that source, and so must the
 * others.  A step that could not be read in two attempts is not tried again, so this comes to an end.  A node whose
 * workers do not take it, because their script declares something else, ends it for all of them: an older step would
 * not fit either, and nobody wants to lose steps for that.
 *
 * The same step is one with the same number and the same lineage (ckpt/lineage.h). */
#ifndef COORD_RESTORE_H
#define COORD_RESTORE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/restore_msg.h"
#include "util/mem.h"
#include "util/time.h"

#define RESTORE_NO_STEP   INT64_C(-1)
#define RESTORE_STEPS_MAX 64u /* that a node tells (snapshot_service_add_disk()) */
#define RESTORE_TEXT_MAX  480u
#define RESTORE_FAILS_MAX 2u /* attempts in which a step may turn out not to be readable */
#define RESTORE_TIMEOUT   EL_SEC(600)
#define RESTORE_SAY       EL_SEC(10) /* a node that has not spoken for so long after the first one is named */

/* What a node says. */
struct restore_stock {
    uint64_t attempt; /* from 1 */
    unsigned n;
    int64_t step[RESTORE_STEPS_MAX];     /* newest first: each of its workers could read it, from memory or from disk */
    uint64_t lineage[RESTORE_STEPS_MAX]; /* of each; one number may be there with two of them */
    uint64_t since; /* round of the last agreement it took part in, else of its first snapshot; else 0 */
    bool whole;     /* all its workers had committed the same step since */
    int64_t newest; /* that any of its workers ever committed, or that lies on disk; RESTORE_NO_STEP */
    bool on_disk;   /* --ckpt-dir has checkpoints, of whatever state */
    bool elsewhere; /* its workers need none of their own: the script shares what other ranks have */
    bool misfit; /* they could read the step, and what they declare does not take it: nobody goes on, `why` says it */
    enum restore_at at;
    int64_t told; /* the decision, from RESTORE_AT_TOLD on */
    uint64_t told_lineage;
    bool fresh;
    char why[RESTORE_WHY_MAX + 1]; /* something that it has and cannot read, or take */
};

/* What a node is to be told. */
struct restore_word {
    enum restore_what what;
    uint64_t attempt;
    int64_t step; /* RESTORE_NO_STEP: nothing; … */
    uint64_t lineage;
    bool fresh; /* … and that is as it should be: begin at the beginning */
    const char *text;
};

struct restore_conf {
    unsigned room;         /* seats at most */
    el_usec timeout;       /* from the first node's word to the last one's, and from the decision, or the last that any
                              node still reads, until all have read; 0: RESTORE_TIMEOUT */
    uint64_t max_rollback; /* steps that may be lost, plus 1; 0: any number */
    bool allow_fresh;
    const char *(*name)(const void *ctx, unsigned seat); /* for texts */
    const void *ctx;
};

enum restore_state { RESTORE_IDLE, RESTORE_HEARING, RESTORE_READING, RESTORE_OVER };

struct restore {
    struct restore_conf conf;
    enum restore_state state;
    unsigned seats;
    struct restore_seat *seat;
    uint64_t attempt;
    int64_t step; /* decided */
    uint64_t lineage;
    int64_t below;  /* only steps below are considered */
    unsigned fails; /* of `step` */
    bool fresh;
    bool misfit;           /* a node has said so in this attempt */
    el_usec until, say_at; /* say_at: EL_NEVER: said, or nobody is waited for */
    char why[RESTORE_WHY_MAX + 80], text[RESTORE_TEXT_MAX + 1];
};

/* Who is to be told something new: restore_word(). */
enum restore_news { RESTORE_NO_NEWS, RESTORE_NEWS_ONE, RESTORE_NEWS_ALL };

/* -1: no memory. */
int restore_init(struct restore *r, const struct restore_conf *conf, struct el_mem *mem);
void restore_free(struct restore *r, struct el_mem *mem);

/* A round of so many nodes begins, or is adopted: nobody has said anything. */
void restore_begin(struct restore *r, unsigned seats);
/* What this one has said does not count: it says it anew. */
void restore_forget(struct restore *r, unsigned seat);

enum restore_news restore_take(struct restore *r, unsigned seat, const struct restore_stock *s, el_usec now);
enum restore_news restore_timeout(struct restore *r, el_usec now);
el_usec restore_deadline(const struct restore *r);
/* Once in an attempt, when RESTORE_SAY is over: whom those that have spoken wait for.  False: nothing is to be said. */
bool restore_waits(struct restore *r, el_usec now, char to[RESTORE_TEXT_MAX + 1]);

/* What this seat is to be told, and has not said that it knows; false: nothing.  The text lives until the next call. */
bool restore_word(const struct restore *r, unsigned seat, struct restore_word *out);

void restore_check(const struct restore *r);

/* "12@9f3a 10@9f3a 8@77" and back; at most RESTORE_STEPS_MAX, what is no step is passed over. */
void restore_list_put(const struct restore_stock *s, char to[RESTORE_LIST_MAX + 1]);
void restore_list_get(struct restore_stock *s, const char *list);

#endif
