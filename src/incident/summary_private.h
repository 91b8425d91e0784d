/* What the report's text and its one line have in common. */
#ifndef INCIDENT_SUMMARY_PRIVATE_H
#define INCIDENT_SUMMARY_PRIVATE_H
#include <stdbool.h>

#include "incident/summary.h"
#include "incident/text.h"

/* Which of the failures is told as the cause; -1: none. */
int summary_cause(const struct report *r);

/* One line of somebody else's text; a long one loses its middle, which matters least. */
void summary_line(struct el_buf *out, struct text line);

/* "exit code 3", "signal 11 (SIGSEGV)", behind sep. */
void summary_how(const struct failure *f, struct el_buf *out, const char *sep);

/* An exception has ended it, by the status that Python has for that: the status says nothing more. */
bool summary_is_raised(const struct failure *f);

/* As summary_ending(), without what the exception says already. */
void summary_brief(const struct failure *f, struct el_buf *out);

#endif
