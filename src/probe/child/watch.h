/* The deadlines.  A second thread watches them, since the first may be inside a driver and never come back: it says
 * which step hung, asks NCCL to abort, and ends the process with 124. */
#ifndef CHILD_WATCH_H
#define CHILD_WATCH_H
#include "child.h"

void watch_start(unsigned grace_ms);

/* A step begins; it may take so long.  stage must stay readable. */
void watch_step(const char *stage, unsigned limit_ms);
const char *watch_stage(void);

/* No deadline counts from here on; if one has passed already, waits for the end of the process: an abort makes calls of
 * the first thread fail, which is no news.  Before the last line of all. */
void watch_end(void);

/* What is tried after a deadline, in a thread of its own, for at most grace_ms; NULL: nothing. */
void watch_abort(void (*fn)(void *), void *ctx);

double watch_now_ms(void);
void watch_sleep_us(unsigned us);

#endif
