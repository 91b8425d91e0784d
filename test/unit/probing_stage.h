/* One health check on a stage, its nodes and what they say: what test_probing*.c share. */
#ifndef TEST_UNIT_PROBING_STAGE_H
#define TEST_UNIT_PROBING_STAGE_H
#include "coord/probing_private.h"

#include "lib/tap.h"
#include "probe/node.h"

#define SILENCE EL_SEC(10)
#define MARGIN  (SILENCE + PROBING_MARGIN)
#define TIMEOUT EL_SEC(300)
#define WARNS   "{\"t\":\"check\",\"name\":\"shm_size\",\"state\":\"warn\",\"text\":\"\"}\n"
#define ANOTHER "{\"t\":\"check\",\"name\":\"nofile\",\"state\":\"warn\",\"text\":\"\"}\n"

static struct el_mem mem = EL_MEM_INIT(64u << 20);
static struct probing *p;
static el_usec now;

static inline void begin_for(unsigned nodes, el_usec timeout)
{
    struct probing_conf conf = {.number = 5,
                                .coord = 9,
                                .probe = 1,
                                .nodes = nodes,
                                .backend = HEALTH_TCP,
                                .quick = true,
                                .timeout = timeout,
                                .silence = SILENCE};
    probing_free(p);
    now = 0;
    p = probing_new(&conf, &mem, now);
    for (unsigned i = 0; i < nodes; i++)
        probing_name(p, i, (const char[]){(char)('a' + i), 0}, "");
}

static inline void begin(unsigned nodes)
{
    begin_for(nodes, TIMEOUT);
}

static inline struct msg_probe order_of(unsigned node)
{
    struct msg m;
    probing_order(p, node, now, &m);
    return m.u.probe;
}

/* What a node would say to its present order. */
static inline struct msg_probe_result result(unsigned node, enum probing_outcome outcome)
{
    struct msg_probe o = order_of(node);
    return (struct msg_probe_result){.number = o.number,
                                     .coord = o.coord,
                                     .probe = o.probe,
                                     .stage = o.stage,
                                     .rail = o.kind == PROBING_PAIR ? 0 : -1,
                                     .outcome = outcome,
                                     .text = outcome == PROBING_OK ? "" : "why",
                                     .lines = ""};
}

static inline enum probing_news say(unsigned node, const struct msg_probe_result *m)
{
    enum probing_news news = probing_result(p, node, m, now);
    probing_check(p);
    return news;
}

static inline enum probing_news answer(unsigned node, enum probing_outcome outcome)
{
    struct msg_probe_result m = result(node, outcome);
    return say(node, &m);
}

static inline enum probing_news all(const char *nodes, enum probing_outcome outcome)
{
    enum probing_news news = PROBING_SAME;
    for (; *nodes; nodes++)
        news = answer((unsigned)(*nodes - 'a'), outcome);
    return news;
}

static inline enum probing_news at(el_usec when)
{
    now = when;
    return probing_timeout(p, now);
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
    const char *name = health_verdict_name(probing_verdict(p, node, &text));
    snprintf(line, sizeof line, "%s%s%s", name, *text ? ": " : "", text);
    return line;
}

/* To the end, all that is asked for being well. */
static inline void finish(unsigned nodes)
{
    for (unsigned round = 0; !probing_is_over(p) && round < 100; round++)
        for (unsigned i = 0; i < nodes && !probing_is_over(p); i++)
            if (order_of(i).kind != PROBING_REST)
                answer(i, PROBING_OK);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

#endif
