/* The words in which the stories of the coordinator core are told (test/unit/test_rdzv_*.c). */
#ifndef TEST_SIM_WORDS_H
#define TEST_SIM_WORDS_H
#include "sim/story.h"

#include "lib/tap.h"
#include "coord/rdzv_private.h"

static struct story s;

#define J(ms, node)       story_join(&s, (unsigned)(ms), (char)(node))
#define R(ms, node, p)    story_return(&s, ms, node, MSG_PHASE_##p)
#define SAY(ms, node, m)  story_says(&s, ms, node, MSG_##m)
#define ALL(ms, nodes, m) story_all_say(&s, ms, nodes, MSG_##m)
#define FAIL(ms, node, c) story_fails(&s, ms, node, 1, c)
#define U(ms)             story_until(&s, ms)
#define CRASH(ms, j)      crash(ms, j)
#define VERB(ms, m)       verb(ms, (struct msg){.type = MSG_##m})
#define SCALE(ms, lo, hi) verb(ms, (struct msg){.type = MSG_SCALE, .u.scale = {.run_id = "", .min = (lo), .max = (hi)}})
#define DRAIN(ms, name)   verb(ms, (struct msg){.type = MSG_DRAIN, .u.drain = {.run_id = "", .node = (name)}})

/* A line of its own: what waiting people read. */
static inline void wait_line(void)
{
    int n = snprintf(s.text + s.len, sizeof s.text - s.len, "  # %s\n", rdzv_wait_text(s.r, s.now));
    s.len += (size_t)n;
}

static inline void cause_line(void)
{
    struct msg m;
    rdzv_order(s.r, 0, s.now, &m);
    int n = snprintf(s.text + s.len, sizeof s.text - s.len, "  # %s; %s\n", m.u.end.text, m.u.end.cause);
    s.len += (size_t)n;
}

static inline void verb(unsigned ms, struct msg m)
{
    story_commands(&s, ms, &m);
}

static inline void crash(unsigned ms, bool journal)
{
    s.now = EL_MS(ms);
    story_restart(&s, journal);
}

/* The coordinator's process stands still; nothing of what the nodes send meanwhile has been read when it wakes. */
static inline void pause_until(unsigned ms)
{
    s.beats = false;
    s.now = EL_MS(ms);
    U(ms + 100);
    s.beats = true;
}

static inline void quiet_begin(struct story *at, unsigned min, unsigned max, unsigned nodes)
{
    story_init(at, min, max);
    at->quiet = true;
    story_begin(at);
    for (unsigned i = 0; i < nodes; i++)
        story_join(at, i, (char)('a' + i));
    story_says(at, 3500, 'a', MSG_STORE_READY);
    for (unsigned i = 0; i < nodes; i++)
        story_says(at, 3600, (char)('a' + i), MSG_STARTED);
    at->quiet = false;
}

static inline void pair(struct story *at, unsigned min, unsigned max)
{
    quiet_begin(at, min, max, 2);
}
static inline void trio(struct story *at)
{
    quiet_begin(at, 1, 4, 3);
}
static inline void four(struct story *at)
{
    quiet_begin(at, 2, 4, 4);
}
static inline void many(struct story *at)
{
    quiet_begin(at, 1, 4, 1);
}

static inline void zero(struct story *at)
{
    quiet_begin(at, 1, 2, 2);
    at->r->budget.max = at->r->conf.set.max_restarts = at->conf.set.max_restarts = 0;
}

static inline void stopped(unsigned ms, char node, bool stuck)
{
    story_until(&s, ms);
    struct msg m = {
        .type = MSG_STOPPED,
        .u.stopped = {.number = s.node[node - 'a'].number, .coord = s.node[node - 'a'].coord, .stuck = stuck}};
    story_tell(&s, node, &m);
}

/* A failure whose report was long on its way. */
static inline void failed_at(unsigned ms, char node, int code, unsigned happened_ms)
{
    story_until(&s, ms);
    struct msg m = {.type = MSG_WORKER_FAILED};
    m.u.worker_failed = (struct msg_worker_failed){.number = s.node[node - 'a'].number,
                                                   .coord = s.node[node - 'a'].coord,
                                                   .time_us = EL_MS(happened_ms),
                                                   .code = code,
                                                   .signal = -1,
                                                   .text = "exit code"};
    story_tell(&s, node, &m);
}

#define FAILED_AT(ms, node, c, happened_ms) failed_at(ms, node, c, happened_ms)

/* The host of the store could not open it. */
static inline void no_store(unsigned ms, char node)
{
    story_until(&s, ms);
    struct msg m = {.type = MSG_NO_STORE,
                    .u.no_store = {s.node[node - 'a'].number, s.node[node - 'a'].coord, "no port is free"}};
    story_tell(&s, node, &m);
}

#define NO_STORE(ms, node) no_store(ms, node)
#define STUCK(ms, node)    stopped(ms, node, true)
#define STRAY(ms, node)    stopped(ms, node, false)
#define PAUSE(ms)          pause_until(ms)
#define WAIT               wait_line()
#define CAUSE              cause_line()

static inline void returns_failed(unsigned ms, char node, int phase)
{
    s.node[node - 'a'].failed = true;
    story_return(&s, ms, node, phase);
    s.node[node - 'a'].failed = false;
}
#define RF(ms, node, p) returns_failed(ms, node, MSG_PHASE_##p)

static inline void journaled(unsigned ms, bool good)
{
    story_until(&s, ms);
    story_journaled(&s, good);
}
#define JOURNALED(ms, good) journaled(ms, good)

static inline void story_is(const char *want, const char *what)
{
    is_str(s.text, want, what);
    story_end(&s);
}

#endif
