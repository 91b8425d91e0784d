/* Is a rank that still runs on its way to its end?  By what it has printed until now. */
#ifndef FAILURE_EXITING_H
#define FAILURE_EXITING_H
#include "failure/failure.h"

/* An exception that ends the main thread is printed before the clean-up at exit, which may take its time: threads that
 * are joined, atexit, destructors.  f has the stderr so far: does it end with one that by its form nobody has caught?
 * Its frames begin at the module, or at the loop that runs it; nothing is behind it but what is printed while a program
 * ends.  A try of the module itself looks the same: only the exit that follows proves it. */
bool exiting_raised(const struct failure *f);

/* all ends with faulthandler's dump of all stacks, of a signal that came later.  Had the main thread ended by an
 * exception before, so that only the others kept the process alive?  Two witnesses: the text in front of the dump ends
 * with such an exception (*before), and by the stacks the main thread is in no line of the program any more. */
bool exiting_find(struct text all, struct traceback *before);

/* "ValueError: bad batch (train.py:5)" */
void exiting_text(const struct failure *f, char *to, size_t size);

#endif
