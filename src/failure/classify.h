/* What a worker's last output says about the reason of its end: the row of failure_rules.h that fits. */
#ifndef FAILURE_CLASSIFY_H
#define FAILURE_CLASSIFY_H
#include <stdbool.h>

#include "failure/class.h"
#include "failure/failure_rules.h"
#include "failure/traceback.h"

#define CLASSIFY_SIGN_MAX 240

/* NONE: no row fits.  TYPE: the exception's kind alone says that it is the program's own error. */
enum classify_rule {
    CLASSIFY_NONE,
    CLASSIFY_TYPE,
#define X(name, scope, a, b, class, follower, advice) CLASSIFY_##name,
    FAILURE_RULES(X)
#undef X
#define X(name, a, b) CLASSIFY_##name,
        FAILURE_USAGES(X)
#undef X
#define X(name, code, a, b, class, advice) CLASSIFY_##name,
            FAILURE_EXITS(X)
#undef X
                CLASSIFY_COUNT
};

struct classify {
    enum classify_rule rule;
    struct text cause; /* words of an earlier exception that decided, where the last only says that a peer is
                          gone; they point into the input; n 0 = the last one's own */
    struct text cause_type;
    bool private_link; /* a follower, and the connection may be one of its own: to a service, not to a rank */
    unsigned xid;      /* the gravest in stderr, 0 = none */
    char sign[CLASSIFY_SIGN_MAX]; /* the line that decided or explains, where it is not the exception's; "" = none */
};

/* The last exception decides; where it only says that a peer is gone, or says nothing, the one that led to it; where
 * the first one says that a collective lost its peer, that one, since what was raised while it was handled is its
 * consequence as well; else a line near the end.  t and chain are what traceback_find_chain() made of this text. */
void classify_words(struct classify *c, const struct traceback *t, const struct traceback_chain *chain,
                    struct text all);

/* The row of an exit code; last_lines may be NULL. */
enum classify_rule classify_exit(int code, const char *last_lines);

const char *classify_name(enum classify_rule r); /* "NCCL_REMOTE"; "" = NONE */
enum failure_class classify_class(enum classify_rule r);
bool classify_is_follower(enum classify_rule r);
const char *classify_advice(enum classify_rule r);      /* "" = what the class says */
bool classify_is_passing(enum classify_rule r);         /* tried again later, the same program may succeed */
bool classify_is_usage(enum classify_rule r);           /* the program refused its command line */
const char *classify_usage_words(enum classify_rule r); /* ... in which line; a newline in front: at its beginning */
bool classify_is_command(enum classify_rule r);         /* a command that it wanted is not there, or cannot be run */
bool classify_is_loader(enum classify_rule r);          /* a data loader's process died while it handed over a batch */
bool classify_is_late(enum classify_rule r);            /* the time of a collective ran out: somebody did not come */
bool classify_is_helper(enum classify_rule r);          /* a helper process was killed: by whom the words do not say */

#endif
