/* An exception that a program has printed need not be what ended it: many are caught, logged, and the program goes on.
 */
#ifndef FAILURE_SURVIVED_H
#define FAILURE_SURVIVED_H
#include <stdbool.h>

#include "failure/traceback.h"

/* Its traceback stands behind a line of a logger's, or in such lines: somebody has caught it. */
bool survived_is_logged(const struct traceback *t, struct text all);

/* ... whose level says that it is no error. */
bool survived_is_mild(const struct traceback *t, struct text all);

/* Has one of its exceptions come through all frames of the program?  One that was caught ends at the function that
 * caught it: it may come from the outermost one only if that did so.  Behind main(), which logs what ended it and
 * cleans up, there is as a rule nothing but the end.  Where frames were cut off or left out, nobody knows: true. */
bool survived_came_out(const struct traceback *t, struct text all);

/* "eval failed, continuing without it": whoever caught it says so. */
bool survived_goes_on(struct text line);

/* Where the exception's own words end, and not other output that looks like more of them. */
size_t survived_words_end(const struct traceback *t, const struct traceback_chain *chain, struct text all);

/* Behind the line in which the last exception is named. */
size_t survived_named_end(const struct traceback *t, const struct traceback_chain *chain, struct text all);

/* t and chain are what traceback_find_chain() made of this text.  Did the program go on after it?  Then where its next
 * words begin; 0: not for all that is known.  Signs of it: the line before it says so
 * ("falling back to …"), much output of the program's own behind it, or an error of a
 * later line behind other output; what is printed while a program ends (warnings, C++ stacks, destructors, torch's and
 * NCCL's own lines) is none, nor is anything where the exception's message is told again.
 * follower: it says that a peer is gone.  Then only much output counts, since such an end has many words. */
size_t survived_at(const struct traceback *t, const struct traceback_chain *chain, struct text all, bool logged,
                   bool follower);

/* Is the exception, or the line in which a command line was refused (that of the words; of several the last), the end
 * of what was said?  Behind it come only lines that are printed while a program ends: its own hints, warnings at exit,
 * faulthandler's stacks, and the like.  Other lines, even few, may mean that the program went on. */
bool survived_is_end(const struct traceback *t, const struct traceback_chain *chain, struct text all);
/* ... and do they tell of an error, or that the program ends? */
bool survived_gave_up(const struct traceback *t, const struct traceback_chain *chain, struct text all);

enum survived_usage {
    SURVIVED_USAGE_END,
    SURVIVED_USAGE_OPEN,  /* other lines follow */
    SURVIVED_USAGE_ERROR, /* ... the last of which is an error of the program's own: that is why it ended */
};
/* *line: the one in which it was refused; n 0 = words is in none. */
enum survived_usage survived_usage(struct text all, const char *words, struct text *line);
/* Behind the help that words begin, of absl's app.UsageError, comes the one line that says what was refused. */
enum survived_usage survived_help(struct text all, const char *words);

#endif
