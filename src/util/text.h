/* Bytes that a worker printed -> text that a terminal and JSON can bear.  Escape sequences and characters
 * that steer a terminal (utf8.h) go away, "\r\n" is a line end, what a lone "\r" overwrote (progress bars) is dropped,
 * bytes that are not UTF-8 become U+FFFD. */
#ifndef UTIL_TEXT_H
#define UTIL_TEXT_H
#include <stdbool.h>
#include <stddef.h>

#include "util/buf.h"

/* A piece of somebody else's text, not ended by 0. */
struct text {
    const char *p;
    size_t n;
};

/* Appends the clean form of n bytes (at most 3 n bytes); 0, or -1 and out->full. */
int text_clean(struct el_buf *out, const char *bytes, size_t n);

/* Appends n bytes as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. */
int text_json(struct el_buf *out, const char *bytes, size_t n);

/* Copies as much of n bytes as fits, never cutting a UTF-8 character, and ends with 0; "…" tells of a cut. */
void text_copy(char *out, size_t size, const char *bytes, size_t n);

/* Takes the next line (without its end) off *rest; false when nothing is left. */
bool text_line(struct text *rest, struct text *line);

bool text_starts(struct text t, const char *with);
/* The place of the first `what` in t, or NULL. */
const char *text_find(struct text t, const char *what);

#endif
