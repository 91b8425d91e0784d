/* --probe-rails: over which ways of a node its pairs run with the backend tcp, all at once and each judged by itself.
 * Pure. */
#ifndef PROBE_RAILS_H
#define PROBE_RAILS_H
#include "probe/plan.h"
#include "util/err.h"

#define RAILS_NAME_MAX 64 /* bytes of an interface's name or an address, with the 0 */

/* n 0: not given, which is one.  Without names: so many connections over the address that the job uses. */
struct probe_rails {
    unsigned n;
    bool named;
    char name[PLAN_RAILS_MAX][RAILS_NAME_MAX];
};

/* "4", "eth1,eth2" or "10.0.1.7,10.0.2.7".  -1 and *e: it is neither. */
int probe_rails_parse(const char *text, struct probe_rails *out, struct el_err *e);

/* What rail i is bound to; NULL: nothing of its own. */
const char *probe_rails_name(const struct probe_rails *r, unsigned rail);

#endif
