/* Whose wall clock is off: logs of such a node do not fit those of the others.  Each node says what its wall clock
 * shows when the coordinator's own clock is at zero, as far as the connection can tell; nobody's clock is believed,
 * what most say counts. */
#ifndef PROBE_CLOCKS_H
#define PROBE_CLOCKS_H
#include <stdbool.h>
#include <stdint.h>

#include "probe/check.h"
#include "probe/wire.h"

#define CLOCKS_UNKNOWN  INT64_MIN
#define CLOCKS_ERROR_US 250000 /* a node that knows the coordinator's clock no better does not say its own */
#define CLOCKS_TEXT     24     /* bytes of the line's value */

/* The line {"t":"fact","name":"clock_us",…} of a node.  text must stay as long as *w. */
void clocks_line(int64_t wall_us, char text[CLOCKS_TEXT], struct probe_wire *w);
/* False: it is another line. */
bool clocks_take(const struct probe_wire *w, int64_t *wall_us);

/* What most of n nodes' clocks say: the median of those that are known; CLOCKS_UNKNOWN if there are fewer than two.  Of
 * two the first: it takes two to differ.  The order of the values is lost. */
int64_t clocks_usual(int64_t *wall_us, unsigned n);

/* The finding of one node, for which a limit is still to be asked (check_judge). */
struct finding clocks_finding(int64_t wall_us, int64_t usual_us);

#endif
