/* Which of the last lines of a program that printed no traceback says what was wrong. */
#ifndef FAILURE_LAST_LINE_H
#define FAILURE_LAST_LINE_H
#include <stddef.h>

#include "util/text.h"

/* Frames of boxes are taken off; rules, hints where help is to be found, and warnings, after which the program went on,
 * are passed over.  "" of nothing, and of warnings alone. */
void last_line_tell(struct text lines, char *out, size_t size);

/* "Set the environment variable HYDRA_FULL_ERROR=1 …": said behind what was wrong, and no part of it. */
bool last_line_is_hint(struct text line);

#endif
