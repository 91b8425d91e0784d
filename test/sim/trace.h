/* One step of the node core as one line of text, for people and for tests whose expectation is a story:
 *
 *     1.000 exited 1 code 3 -> sweep 1 TERM, all TERM, note 1 | stopping
 *
 * seconds of virtual time, the event, the actions, the state afterwards. */
#ifndef TEST_SIM_TRACE_H
#define TEST_SIM_TRACE_H
#include <stddef.h>

#include "agent/agent.h"

#define TRACE_LINE_MAX 400

struct trace_step {
    el_usec now;
    struct agent_event event;
    struct agent_actions actions;
    enum agent_state state;
    enum agent_cause cause;
    unsigned cause_slot;
    int leave_signal;
};

/* Steps the core and writes down what it did. */
void trace_take(struct trace_step *to, struct agent *a, const struct agent_event *ev, el_usec now);

/* The line, without newline; returns out. */
char *trace_line(const struct trace_step *s, char out[TRACE_LINE_MAX]);

const char *trace_signal(int signal);

#endif
