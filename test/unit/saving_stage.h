/* A saving on a stage: what test_saving*.c share.  What nodes say goes in; what one of them is told stands in word().
 */
#ifndef TEST_UNIT_SAVING_STAGE_H
#define TEST_UNIT_SAVING_STAGE_H
#include "coord/ckpt_commit.h"

#include <stdio.h>
#include <string.h>

#include "lib/tap.h"

#define ROOM  8u
#define ROUND 5u
#define COORD 0xabcu

static struct ckpt_commit *s;
static el_usec now;
static unsigned live;

static inline const char *name(const void *ctx, unsigned node)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    (void)ctx;
    return names[node];
}

/* The text says so. */
static inline void has(const char *text, const char *what, const char *about)
{
    if (strstr(text, what))
        ok(true, about);
    else
        is_str(text, what, about);
}

static inline void begin(enum ckpt_commit_store store, unsigned nodes)
{
    const struct ckpt_commit_conf conf = {.store = store, .room = ROOM, .giver = 0x99, .name = name};
    ckpt_commit_free(s);
    s = ckpt_commit_new(&conf);
    now = 0;
    live = nodes;
    ckpt_commit_round(s, ROUND, COORD, nodes);
    ckpt_commit_world(s, 2 * nodes);
}

static inline bool step_on(void)
{
    bool tell = ckpt_commit_advance(s, live, now);
    ckpt_commit_check(s);
    return tell;
}

static inline void part_of(unsigned node, unsigned index, const char *part_name, const char *shard, bool own)
{
    struct msg m = {.type = MSG_CKPT_PART, .u.ckpt_part = {ROUND, COORD, 1, index, part_name, shard, own}};
    ckpt_commit_take(s, node, node, &m, now);
}

static inline void part(unsigned node, unsigned index, const char *part_name, const char *shard)
{
    part_of(node, index, part_name, shard, false);
}

/* Its own shard and one that all have. */
static inline void declares(unsigned node)
{
    char shard[8];
    snprintf(shard, sizeof shard, "r%u", node);
    part(node, 0, "model", shard);
    part(node, 1, "common", "all");
}

/* What became of the last order or wish. */
static inline const struct ckpt_commit_result *last(void)
{
    static const struct ckpt_commit_result none;
    const struct ckpt_commit_result *x = ckpt_commit_result(s, ckpt_commit_results(s));
    return x ? x : &none;
}

struct says {
    const char *steps, *text, *wishes;
    int64_t parts, least, want, done; /* want: a wish */
    bool quiet, old, existed;         /* old: of another coordinator's order */
    uint64_t order, got, ask;
    enum ckpt_commit_at at;
};

static inline void says_(unsigned node, struct says x)
{
    struct msg m = {.type = MSG_CKPT_STATE};
    char one[24] = "";
    if (x.want)
        snprintf(one, sizeof one, "%lld", (long long)x.want);
    m.u.ckpt_state = (struct msg_ckpt_state){.number = ROUND,
                                             .coord = COORD,
                                             .list = 1,
                                             .parts = x.parts ? x.parts : 2,
                                             .layout = "world",
                                             .steps = x.steps ? x.steps : "",
                                             .least = x.least ? x.least : -1,
                                             .wishes = x.wishes ? x.wishes : one,
                                             .ask = x.ask,
                                             .done = x.done ? x.done : -1,
                                             .quiet = x.quiet,
                                             .giver = x.order ? x.old ? 0x77 : 0x99 : 0,
                                             .order = x.order,
                                             .at = x.at,
                                             .got = x.got,
                                             .existed = x.existed,
                                             .text = x.text ? x.text : ""};
    ckpt_commit_take(s, node, node, &m, now);
    step_on();
}
#define says(node, ...) says_(node, (struct says){__VA_ARGS__})

static inline void file(unsigned node, uint64_t order, unsigned index)
{
    struct msg m = {.type = MSG_CKPT_FILE};
    m.u.ckpt_file = (struct msg_ckpt_file){
        .giver = 0x99, .order = order, .index = index, .name = "f", .size = 7, .samples = 3, .sums = "00000001"};
    ckpt_commit_take(s, node, node, &m, now);
    step_on();
}

/* "WRITE 12: 0=1 1=2", "FILE m r0", "PUBLISH 12 of 3", "OVER 12 good": all that the node is told. */
static char told[2048];
static inline const char *word(unsigned node)
{
    struct msg m;
    size_t n = 0;
    told[0] = 0;
    for (unsigned i = 0; i < 20 && ckpt_commit_word(s, node, 7, i, &m); i++) {
        n += (size_t)snprintf(told + n, sizeof told - n, n ? "; " : "");
        switch ((unsigned)m.type) {
        case MSG_CKPT_WRITE:
            n += (size_t)snprintf(told + n, sizeof told - n, "WRITE %lld%s: %s", (long long)m.u.ckpt_write.step,
                                  m.u.ckpt_write.emergency ? " emergency" : "", m.u.ckpt_write.parts);
            break;
        case MSG_CKPT_FILE:
            n += (size_t)snprintf(told + n, sizeof told - n, "FILE %s %s%s", m.u.ckpt_file.part, m.u.ckpt_file.shard,
                                  m.u.ckpt_file.more ? "" : " .");
            break;
        case MSG_CKPT_PUBLISH:
            n += (size_t)snprintf(told + n, sizeof told - n, "PUBLISH %lld of %llu", (long long)m.u.ckpt_publish.step,
                                  (unsigned long long)m.u.ckpt_publish.files);
            break;
        case MSG_CKPT_OVER:
            n += (size_t)snprintf(told + n, sizeof told - n, "OVER %lld %s", (long long)m.u.ckpt_over.step,
                                  m.u.ckpt_over.good ? "good" : m.u.ckpt_over.text);
            break;
        default: n += (size_t)snprintf(told + n, sizeof told - n, "?"); break;
        }
    }
    return told;
}

#endif
