/* What follows when workers have failed: another round, the end of the job, or another round without a node.  Pure.
 *
 * Each node makes a digest of how its workers ended; the coordinator merges those of a round (a job of one node has
 * only its own); restart_next() compares it with the round before.  The rules of --restart-policy=smart:
 *
 * A worker that elrun stopped, or that failed only because a peer was gone, *says nothing*.  The first failure makes
 * elrun stop the others within milliseconds, so that an error which all workers share is mostly seen in a few of them:
 * "on all ranks" can only mean that whoever ended by itself ended so, and that nothing speaks against it.
 *
 *  1. A hardware suspect that not only its words make one: the node is set aside, and the job goes on without it if
 * there are enough others.
 *  2. The job ends at once when every worker that ended by itself ended with the same one of
 *       - SyntaxError, ImportError, NameError and their children, a call that the function's signature refuses, a name
 *         that a module or a class does not have, arguments that the script refuses (exit status 2 with argparse's
 *         line), a script or module that is not there: the program's text decides these, no rank and no data do;
 *       - any other AttributeError or TypeError: data can be the reason, so at least two workers must have ended so at
 *         the same place, or the only one there is;
 *     and nothing shows that the program can get further than that: it was not caught and logged, no other lines of the
 *     program came behind it, and its end came at once (else it was perhaps survived, or a helper's); nobody succeeded,
 * nobody was left waiting for a peer, no earlier round lasted more than twice as long, and it came within RESTART_START
 * of the start.
 *  3. The job ends when two rounds in a row ended with the same exception (type, file and line of the user's innermost
 *     frame) and nothing else, the second within twice the time of the first.  If there are several nodes, two
 *     of them must have met it in these rounds: what one node alone meets may be its own.
 *  4. What passes by itself (a service that refuses for now, a name that cannot be resolved, a library that another
 *     process still builds) is tried again while the budget lasts, each time after a longer wait; neither rule 3 nor
 * the limit of fruitless attempts ends it.
 *  5. All else (OSError and its children, RuntimeError but for one that is classed as code, such as a device-side
 *     assert, SystemExit, signals, memory, network, hang, what nobody knows)
 *     is tried again while the budget lasts.
 *
 * `always` tries everything again, as torchrun does, and sets nobody aside; `never` tries nothing again. */
#ifndef FAILURE_RESTART_POLICY_H
#define FAILURE_RESTART_POLICY_H
#include "failure/failure.h"

#define RESTART_START        EL_SEC(600) /* what comes later was no mistake in starting */
#define RESTART_SLACK        EL_SEC(1)   /* added to "twice": starts of small programs differ by more than that */
#define RESTART_BACK_OFF     EL_SEC(1)   /* the first wait for what passes by itself; then twice as long each time */
#define RESTART_BACK_OFF_MAX EL_SEC(30)
#define RESTART_WHAT_MAX     128
#define RESTART_PLACE_MAX    300

#define RESTART_POLICIES(X)                                                                                            \
    X(SMART, "smart")                                                                                                  \
    X(ALWAYS, "always")                                                                                                \
    X(NEVER, "never")

enum restart_policy {
#define X(NAME, name) RESTART_##NAME,
    RESTART_POLICIES(X)
#undef X
        RESTART_POLICY_COUNT
};

enum restart_kind {
    RESTART_SILENT,  /* nobody ended by itself, or only because a peer was gone */
    RESTART_OTHER,   /* nothing that speaks of the program; also two things that do not agree */
    RESTART_CODE,    /* an exception of class code error */
    RESTART_CALL,    /* AttributeError, TypeError */
    RESTART_TEXT,    /* what the text of the program or of the command line decides */
    RESTART_PASSING, /* what passes by itself: a service that refuses for now, a file that another one still writes */
    RESTART_KINDS,
};

/* How the workers of one node, or of all nodes of a round, ended. */
struct restart_digest {
    enum restart_kind kind;
    unsigned witnesses;                /* workers that ended so */
    bool passed;                       /* some worker got further than that */
    bool several_nodes;                /* the witnesses are of more than one node */
    uint64_t node;                     /* of the first witness */
    el_usec elapsed;                   /* of the first witness, since its start */
    bool steps_known;                  /* a worker told of its steps: */
    uint64_t steps;                    /* new ones in this round */
    bool hardware;                     /* a worker's failure makes the node a suspect; evidence: its message */
    char what[RESTART_WHAT_MAX + 1];   /* "ModuleNotFoundError", or a clause: "the script refused its arguments" */
    char place[RESTART_PLACE_MAX + 1]; /* "/home/me/train.py:12", "" = none */
    char evidence[RESTART_PLACE_MAX + 1];
};

struct restart_history {
    struct restart_digest last; /* of the round before, if that ended by a failure */
    el_usec longest;            /* that any round lasted until it was stopped */
    unsigned passing;           /* rounds in a row that ended by what passes by itself */
};

enum restart_next {
    RESTART_RESTART,
    RESTART_STOP,
    RESTART_SET_ASIDE /* restart without the nodes that are suspects */
};

struct restart_verdict {
    enum restart_next next;
    el_usec wait;  /* of RESTART: so long before it, since what made it fail has to pass; 0 = at once */
    char why[600]; /* of STOP, one line: "no restart: …" */
};

struct restart_round {
    enum restart_policy policy;
    unsigned workers, nodes; /* of the round that has ended */
    el_usec lasted;          /* from its start until it was stopped */
};

/* One worker of this node that did not exit with 0; judged.  A worker that exited with 0 is restart_passed(). */
void restart_add(struct restart_digest *d, const struct failure *f, uint64_t node);
void restart_passed(struct restart_digest *d);
/* Another node's digest: the order does not matter but for who is first. */
void restart_merge(struct restart_digest *d, const struct restart_digest *other);

/* Is there anything in it? */
bool restart_says(const struct restart_digest *d);

/* The round has ended because workers failed.  *h is what the last call left (all 0 at the beginning). */
void restart_next(const struct restart_round *round, const struct restart_digest *d, struct restart_history *h,
                  struct restart_verdict *out);
/* The round has ended for another reason. */
void restart_other_end(struct restart_history *h, el_usec lasted);

const char *restart_policy_name(enum restart_policy p);

#endif
