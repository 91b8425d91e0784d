/* An exception that a program has printed need not be what ended it: many are caught, logged, and the program goes on.
 */
#ifndef INCIDENT_SURVIVED_H
#define INCIDENT_SURVIVED_H
#include <stdbool.h>

#include "incident/traceback.h"

/* Its traceback stands behind a line of a logger's, or in such lines: somebody has caught it. */
bool survived_is_logged(const struct traceback *t, struct text all);

/* t and chain are what traceback_find_chain() made of this text.  Did the program go on after it?  Then where its next
 * words begin; 0: not for all that is known.  Signs of it: the line before it says so
 * ("falling back to …"), much output of the program's own behind it, or an error of a
 * later line behind other output; what is printed while a program ends (warnings, C++ stacks, destructors, torch's and
 * NCCL's own lines) is none, nor is anything where the exception's message is told again.
 * follower: it says that a peer is gone.  Then only much output counts, since such an end has many words. */
size_t survived_at(const struct traceback *t, const struct traceback_chain *chain, struct text all, bool logged,
                   bool follower);

#endif
