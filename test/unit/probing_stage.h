/* One health check on a stage, its nodes and what they say: what test_probing*.c share. */
#ifndef TEST_UNIT_PROBING_STAGE_H
#define TEST_UNIT_PROBING_STAGE_H
#include "coord/health_check_private.h"

#include "lib/tap.h"
#include "probe/node.h"

#define SILENCE EL_SEC(10)
#define MARGIN  (SILENCE + HEALTH_CHECK_MARGIN)
#define TIMEOUT EL_SEC(300)
#define WARNS   "{\"t\":\"check\",\"name\":\"shm_size\",\"state\":\"warn\",\"text\":\"\"}\n"
#define ANOTHER "{\"t\":\"check\",\"name\":\"nofile\",\"state\":\"warn\",\"text\":\"\"}\n"

static struct el_mem mem = EL_MEM_INIT(64u << 20);
static struct health_check *p;
static el_usec now;

static inline void begin_for(unsigned nodes, el_usec timeout)
{
    struct health_check_conf conf = {.number = 5,
                                     .coord = 9,
                                     .probe = 1,
                                     .nodes = nodes,
                                     .backend = HEALTH_TCP,
                                     .quick = true,
                                     .timeout = timeout,
                                     .silence = SILENCE};
    health_check_free(p);
    now = 0;
    p = health_check_new(&conf, &mem, now);
    for (unsigned i = 0; i < nodes; i++)
        health_check_name(p, i, (const char[]){(char)('a' + i), 0}, "");
}

static inline void begin(unsigned nodes)
{
    begin_for(nodes, TIMEOUT);
}

static inline struct msg_probe order_of(unsigned node)
{
    struct msg m;
    health_check_order(p, node, now, &m);
    return m.u.probe;
}

/* What a node would say to its present order. */
static inline struct msg_probe_result result(unsigned node, enum health_check_outcome outcome)
{
    struct msg_probe o = order_of(node);
    return (struct msg_probe_result){.number = o.number,
                                     .coord = o.coord,
                                     .probe = o.probe,
                                     .stage = o.stage,
                                     .rail = o.kind == HEALTH_CHECK_PAIR ? 0 : -1,
                                     .outcome = outcome,
                                     .text = outcome == HEALTH_CHECK_OK ? "" : "why",
                                     .lines = ""};
}

static inline enum health_check_news say(unsigned node, const struct msg_probe_result *m)
{
    enum health_check_news news = health_check_result(p, node, m, now);
    health_check_check(p);
    return news;
}

static inline enum health_check_news answer(unsigned node, enum health_check_outcome outcome)
{
    struct msg_probe_result m = result(node, outcome);
    return say(node, &m);
}

static inline enum health_check_news all(const char *nodes, enum health_check_outcome outcome)
{
    enum health_check_news news = HEALTH_CHECK_SAME;
    for (; *nodes; nodes++)
        news = answer((unsigned)(*nodes - 'a'), outcome);
    return news;
}

static inline enum health_check_news at(el_usec when)
{
    now = when;
    return health_check_timeout(p, now);
}

/* Rests, checks, pairs: "ppr" */
static inline const char *kinds(unsigned nodes)
{
    static char text[16];
    for (unsigned i = 0; i < nodes; i++)
        text[i] = "lpra"[order_of(i).kind];
    text[nodes] = 0;
    return text;
}

static inline const char *verdict(unsigned node)
{
    static char line[VERDICT_TEXT_MAX + 20];
    const char *text;
    const char *name = health_verdict_name(health_check_verdict(p, node, &text));
    snprintf(line, sizeof line, "%s%s%s", name, *text ? ": " : "", text);
    return line;
}

/* To the end, all that is asked for being well. */
static inline void finish(unsigned nodes)
{
    for (unsigned round = 0; !health_check_is_over(p) && round < 100; round++)
        for (unsigned i = 0; i < nodes && !health_check_is_over(p); i++)
            if (order_of(i).kind != HEALTH_CHECK_REST)
                answer(i, HEALTH_CHECK_OK);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

#endif
