/* A stage for stories of the node core: what happens (left of the arrow) and what the core decides, with virtual times.
 * Time-outs are sent by the stage exactly when the core asks for them. */
#ifndef TEST_SIM_STAGE_H
#define TEST_SIM_STAGE_H
#include <signal.h>
#include <stdlib.h>

#include "agent/agent.h"
#include "lib/tap.h"

struct stage {
    struct agent a;
    char text[16384];
    size_t len;
    bool silent; /* set-up that other stories tell */
};

/* TERM, INT and QUIT are handled, the grace is 30 s. */
struct stage *stage_new(unsigned slots, unsigned max_restarts);

/* Both workers of a node of two are up at 2 ms; that is not part of the story. */
struct stage *stage_up(unsigned max_restarts);

/* Time goes on to ms: time-outs that are due until then are sent on the way. */
void until(struct stage *s, unsigned ms);

/* ev happens at ms. */
void at(struct stage *s, unsigned ms, struct agent_event ev);

void stage_free(struct stage *s);

/* The story is over: it must read like this. */
#define stage_is(s, want, what) (is_str((s)->text, want, what), stage_free(s))

#define EV(...)        ((struct agent_event){__VA_ARGS__})
#define START          EV(.type = AGENT_EV_START)
#define PREPARED       EV(.type = AGENT_EV_PREPARED, .ok = true)
#define NOT_PREPARED   EV(.type = AGENT_EV_PREPARED, .ok = false)
#define SPAWNED(i)     EV(.type = AGENT_EV_SPAWNED, .slot = (i))
#define NO_FORK(i)     EV(.type = AGENT_EV_SPAWN_FAILED, .slot = (i), .forked = false)
#define NO_EXEC(i)     EV(.type = AGENT_EV_SPAWN_FAILED, .slot = (i), .forked = true)
#define EXITED(i, c)   EV(.type = AGENT_EV_EXITED, .slot = (i), .code = (c), .signal = -1)
#define KILLED(i, sig) EV(.type = AGENT_EV_EXITED, .slot = (i), .code = -1, .signal = (sig))
#define UNKNOWN(i)     EV(.type = AGENT_EV_EXITED, .slot = (i), .code = -1, .signal = -1)
#define LEFT(n)        EV(.type = AGENT_EV_SWEPT, .left = (n))
#define ORPHAN         EV(.type = AGENT_EV_ORPHAN)
#define FOLLOWS(i)     EV(.type = AGENT_EV_LOOKED, .slot = (i), .follows = true)
#define WAITS(i)       EV(.type = AGENT_EV_LOOKED, .slot = (i), .waits = true)
#define NONE_ENDS      EV(.type = AGENT_EV_NONE_ENDS)
#define ITS_OWN(i)     EV(.type = AGENT_EV_LOOKED, .slot = (i))
#define HUNG(i)        EV(.type = AGENT_EV_HUNG, .slot = (i))
#define FAILING(i)     EV(.type = AGENT_EV_FAILING, .slot = (i))
#define CAPTURED       EV(.type = AGENT_EV_CAPTURED)
#define COLLECTED      EV(.type = AGENT_EV_COLLECTED)
#define SIGNAL(sig)    EV(.type = AGENT_EV_SIGNAL, .signal = (sig))

#endif
