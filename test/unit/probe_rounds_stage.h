/* Health checks before a round, told in words: what test_rdzv_probe*.c share. */
#ifndef TEST_UNIT_PROBE_ROUNDS_STAGE_H
#define TEST_UNIT_PROBE_ROUNDS_STAGE_H
#include "sim/words.h"

#define P(ms, node)      story_probed(&s, ms, node, HEALTH_CHECK_OK)
#define PF(ms, node)     story_probed(&s, ms, node, HEALTH_CHECK_FAILED)
#define EACH(ms, nodes)  each(ms, nodes, HEALTH_CHECK_OK)
#define EACHF(ms, nodes) each(ms, nodes, HEALTH_CHECK_FAILED)

static inline void each(unsigned ms, const char *nodes, enum health_check_outcome outcome)
{
    for (; *nodes; nodes++)
        story_probed(&s, ms, *nodes, outcome);
}

static inline void begin(unsigned min, unsigned max, unsigned nodes, enum health_when when)
{
    story_init(&s, min, max);
    s.conf.set.health_check = when;
    s.conf.set.probe_quick = 1;
    s.conf.set.probe_timeout_ms = 300000;
    story_begin(&s);
    for (unsigned i = 0; i < nodes; i++)
        J(i, (char)('a' + i));
}

#endif
