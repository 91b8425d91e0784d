/* What the report's text and its one line have in common. */
#ifndef FAILURE_SUMMARY_PRIVATE_H
#define FAILURE_SUMMARY_PRIVATE_H
#include <stdbool.h>

#include "failure/summary.h"
#include "util/text.h"

#define SUMMARY_REASON_MAX 60 /* bytes of why one of the others ended because of the cause */

/* Which of the failures is told as the cause; -1: none. */
int summary_cause(const struct failure_report *r);

/* One line of somebody else's text; a long one loses its middle, which matters least. */
void summary_line(struct el_buf *out, struct text line);

/* "exit code 3", "signal 11 (SIGSEGV)", behind sep. */
void summary_how(const struct failure *f, struct el_buf *out, const char *sep);

/* An exception has ended it, by the status that Python has for that: the status says nothing more. */
bool summary_is_raised(const struct failure *f);

/* As summary_ending(), without what the exception says already. */
void summary_brief(const struct failure *f, struct el_buf *out);

/* "[rank1]: " in front of each line, since torch 2.3: whose lines they are is said already. */
struct text summary_without_rank(struct text line);

/* Said by the cause's line, or by nobody. */
bool summary_says_nothing_new(const struct failure *f, struct text line, bool marks);

/* Bytes that the message has lost of its line; 0: none, or the line is not there. */
size_t summary_left_out(const struct failure *f);

/* Why there is no traceback, and how to get one; "" where there is nothing to be said. */
const char *summary_no_stack(const struct failure *f);

/* More than the one line that stands behind the cause; and whether that is the last one. */
bool summary_has_more(const struct failure *f);
bool summary_tells_last(const struct failure *f);

/* "Connection reset by peer", short and without addresses. */
void summary_reason(const struct failure *f, char shown[SUMMARY_REASON_MAX]);

/* The line of the exception while whose handling the one that is told was raised; n 0: there is none. */
struct text summary_first(const struct failure *f);

#endif
