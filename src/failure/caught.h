/* An exception that the program had caught and printed does not explain an end that came of something else. */
#ifndef FAILURE_CAUGHT_H
#define FAILURE_CAUGHT_H
#include "failure/failure.h"

#define CAUGHT_END      EL_MS(400) /* an interpreter comes to its end in that, and ... */
#define CAUGHT_LOADED   8 /* ... in an eighth of its life more: who has loaded much takes long for both, and ... */
#define CAUGHT_END_MOST EL_SEC(2)  /* ... in no more than that: PyTorch's takes 0.4 to 1.7 s */
#define CAUGHT_SLOW     EL_MS(400) /* what a tear-down of the program's own may add, where other signs are weak */
#define CAUGHT_NEAR     EL_MS(800) /* who raises closes its connections within that, if it does before it exits */
#define CAUGHT_OLD      EL_SEC(10) /* whatever it was printed for, it is over */

/* f->by, quiet, went_on and what was found are known: is what was found only something that it had printed before?
 *  - faulthandler's time limit ends a program by itself, with status 1 and at once, or not at all;
 *  - a signal comes of no exception; only where the interpreter tears itself apart after an uncaught one it may;
 *  - Python ends with 1 after an uncaught exception, however slowly; any other status was chosen by the program, which
 *    has caught it, and tells of it when it leaves;
 *  - the program's source says that it was caught, and that the program went on.
 * An exception that says that a peer is gone is taken at its word, with 1 always, else until it is old: who has lost
 * its peers and leaves in whichever way must not be named before the one that made it so. */
bool caught_is_aside(const struct failure *f);

/* f->first and quiet are known: was its last word so long before anybody failed that it is no reason for that?  A
 * process that raised and cannot exit holds its connections open, and so explains at most that others ran out of time;
 * one that closes them does it as it raises, or soon after.  Where the source says that nobody caught it, it had failed
 * then, whatever others waited for. */
bool caught_is_old(const struct failure *f);

/* Judged: had `other` gone on after the very exception with which f's stderr ends, and did that fail by itself, of
 * something else?  Then f will have caught it, too. */
bool caught_by_other(const struct failure *f, const struct failure *other);

#endif
