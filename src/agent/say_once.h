/* The console says a cause once.  The coordinator's texts have it in each place where it may be asked for: why a round
 * stops, why the next one forms, why the job ends. */
#ifndef AGENT_SAY_ONCE_H
#define AGENT_SAY_ONCE_H
#include <stdbool.h>

/* Of "stopping: WHY" the why, if it is a worker's failure; else NULL. */
const char *say_once_stop(const char *line);

/* Leaves out of line the cause that has been said: told, "rank 1 on b failed: ...", NULL: none; another one stays.
 * in_full: a report has told all of it; else what goes on behind told is news.  What a semicolon adds to the line
 * stays. false: nothing is left to say. */
bool say_once_cut(char *line, const char *told, bool in_full);

#endif
