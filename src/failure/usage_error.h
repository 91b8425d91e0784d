/* A command line that was refused: by this program, or another one that it ran?  And did it go on all the same? */
#ifndef FAILURE_USAGE_ERROR_H
#define FAILURE_USAGE_ERROR_H
#include <stdbool.h>

#include "util/text.h"

/* "load.py: error: …", "usage: load.py …": not the script or module that the worker was started with.  A name that is
 * none of a script says nothing, nor does program NULL. */
bool usage_error_is_of_other(struct text tail, const char *program);

/* What is known of the program that runs with these words: NULL where another script is among them, since it may be run
 * in the same process ("-m coverage run train.py"), and refuse them by its own name. */
const char *usage_error_program(const char *script, char *const *args, unsigned n);

/* "using defaults": the line says that the program went on without what was refused. */
bool usage_error_does_without(struct text line);

#endif
