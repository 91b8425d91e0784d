#include "sim/stage.h"

#include "sim/trace.h"

static void step(struct stage *s, struct agent_event ev, el_usec now)
{
    struct trace_step t;
    char line[TRACE_LINE_MAX];
    trace_take(&t, &s->a, &ev, now);
    if (s->silent)
        return;
    int n = snprintf(s->text + s->len, sizeof s->text - s->len, "%s\n", trace_line(&t, line));
    s->len += (size_t)n;
}

void until(struct stage *s, unsigned ms)
{
    el_usec due, last = 0;
    for (unsigned guard = 0; (due = agent_deadline(&s->a)) <= EL_MS(ms) && guard < 1000; guard++) {
        last = due > last ? due : last;
        step(s, (struct agent_event){.type = AGENT_EV_TIMEOUT}, last);
    }
}

void at(struct stage *s, unsigned ms, struct agent_event ev)
{
    if (ms)
        until(s, ms - 1);
    step(s, ev, EL_MS(ms));
}

struct stage *stage_new(unsigned slots, unsigned max_restarts)
{
    struct stage *s = calloc(1, sizeof *s);
    struct agent_conf conf = {.slots = slots, .max_restarts = max_restarts, .grace = EL_SEC(30), .max_fruitless = 1000};
    conf.handled[SIGTERM] = conf.handled[SIGINT] = conf.handled[SIGQUIT] = true;
    if (!s || agent_init(&s->a, &conf, NULL) < 0)
        abort();
    return s;
}

struct stage *stage_up(unsigned max_restarts)
{
    struct stage *s = stage_new(2, max_restarts);
    s->silent = true;
    at(s, 0, START);
    at(s, 1, PREPARED);
    at(s, 2, SPAWNED(0));
    at(s, 2, SPAWNED(1));
    s->silent = false;
    return s;
}

void stage_free(struct stage *s)
{
    agent_free(&s->a, NULL);
    free(s);
}
