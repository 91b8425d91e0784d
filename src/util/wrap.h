/* Text fitted into the columns of a terminal.  Characters of East Asia and pictures take two columns, marks that join
 * the one before take none, and neither do escape sequences of colours. */
#ifndef UTIL_WRAP_H
#define UTIL_WRAP_H
#include <stddef.h>

#include "util/buf.h"

size_t el_columns(const char *p, size_t n);

/* Appends `first` blanks and n bytes without newline, broken between words so that no line is wider than `columns`;
 * those that follow begin with `hang` blanks.  A word that is too wide (a path) stays whole: who copies it wants all of
 * it.  columns 0: no limit. */
void el_wrap(struct el_buf *out, const char *p, size_t n, unsigned columns, unsigned first, unsigned hang);

/* Appends as many whole characters as fit, with "…" where some do not.  columns 0: no limit. */
void el_cut(struct el_buf *out, const char *p, size_t n, unsigned columns);
/* The same, of the end of the text. */
void el_cut_front(struct el_buf *out, const char *p, size_t n, unsigned columns);

#endif
