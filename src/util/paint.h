/* Words in columns, painted where the terminal wants colours. */
#ifndef UTIL_PAINT_H
#define UTIL_PAINT_H
#include <stdbool.h>

#include "util/buf.h"

enum el_tone { TONE_PLAIN, TONE_GOOD, TONE_WAIT, TONE_BAD, TONE_FAINT, TONE_STRONG };

/* Text in a column of at least `width` characters; negative: it stands at the right.  Its colour does not count. */
void el_paint(struct el_buf *out, bool colour, enum el_tone tone, int width, const char *text);

#endif
