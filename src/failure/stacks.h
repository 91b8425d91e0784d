/* Where did the ranks stand?  Of each rank's output the newest dump of Python's faulthandler (SIGABRT with
 * PYTHONFAULTHANDLER=1, dump_traceback(), dump_traceback_later()) is taken, of it the main thread, and ranks whose
 * threads stand in the same frames make one group: "0,2-7 wait in all_reduce (train.py:12); 1: no stack". */
#ifndef FAILURE_STACKS_H
#define FAILURE_STACKS_H
#include <stdbool.h>
#include <stddef.h>

#include "util/text.h"
#include "util/buf.h"
#include "util/mem.h"

enum {
    STACKS_GROUPS_MAX = 32, /* groups kept apart; ranks of further ones are counted as "other" */
    STACKS_FRAMES_MAX = 64, /* innermost frames of a stack that are compared */
    STACKS_NAME_MAX = 128,
};

struct stacks_rank {
    unsigned rank;
    struct text output; /* the end of its stderr, clean text (util/text.h); n may be 0 */
};

enum stacks_kind {
    STACKS_DUMP,  /* ranks with equal stacks */
    STACKS_NONE,  /* nothing was found: stopped, dead, or no Python */
    STACKS_OTHER, /* ranks of the groups beyond STACKS_GROUPS_MAX */
};

struct stacks_group {
    enum stacks_kind kind;
    unsigned *ranks; /* ascending */
    unsigned ranks_count;
    struct text stack; /* of the first of them: the thread's lines as they were printed; points into its output */
    char function[STACKS_NAME_MAX], file[STACKS_NAME_MAX]; /* innermost frame: file as a base name; "" = no frame */
    unsigned line;
    unsigned least, most; /* lines in which the ranks of the group stand in that frame */
    char user_function[STACKS_NAME_MAX], user_file[STACKS_NAME_MAX]; /* the user's own innermost; "" = none */
    unsigned user_line;
};

struct stacks {
    struct stacks_group group[STACKS_GROUPS_MAX + 2];
    unsigned *ranks;       /* of all groups, for stacks_free() */
    unsigned groups_count; /* the largest first, of equal ones that with the lowest rank; then STACKS_OTHER, NONE */
};

/* v by ascending rank.  0, or -1 when memory was refused: then there are no groups.  The outputs must outlive s. */
int stacks_group(struct stacks *s, const struct stacks_rank *v, unsigned n, struct el_mem *mem);
void stacks_free(struct stacks *s, struct el_mem *mem);

/* The main thread's stack of the newest dump in this output; n 0 = there is none. */
struct text stacks_find(struct text output);

/* Appends one line without newline, the smallest groups first, for they are what one looks for:
 * "1: no stack; 0,2-7 in all_reduce (distributed_c10d.py:3252), from train.py:12 main". */
int stacks_line(const struct stacks *s, struct el_buf *out);

/* Appends ranks as ranges: "0,2-7". */
int stacks_ranks(const unsigned *ranks, unsigned n, struct el_buf *out);

#endif
