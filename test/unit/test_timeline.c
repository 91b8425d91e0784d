/* The picture of a job: blocks, labels, folded rows, marks, clocks; every width. */
#include "history/timeline.h"
#include "lib/tap.h"
#include "util/utf8.h"

#define T0 (INT64_C(1763757408) * 1000000) /* 2025-11-21 20:36:48 UTC */

static struct timeline t;
static struct el_buf out = EL_BUF_INIT(NULL, 0);

static void state(const char *host, double sec, enum timeline_state s, unsigned round, unsigned rank)
{
    struct timeline_change c = {.at = T0 + (int64_t)(sec * 1e6), .state = s, .round = round, .rank = rank};
    c.workers = s >= TIMELINE_STARTING ? 8 : 0;
    timeline_change(&t, (unsigned)timeline_node(&t, host, 0), &c);
}

static void mark(const char *host, double sec, enum timeline_kind kind, const char *text)
{
    struct timeline_mark m = {
        .node = (unsigned)timeline_node(&t, host, 0), .kind = kind, .at = T0 + (int64_t)(sec * 1e6)};
    snprintf(m.text, sizeof m.text, "%s", text);
    timeline_mark(&t, &m);
}

/* A node that is there from `from` on, in two rounds. */
static void node(const char *host, double from, unsigned rank)
{
    state(host, from, TIMELINE_WAITING, 0, 0);
    state(host, 10, TIMELINE_STARTING, 1, rank);
    state(host, 11, TIMELINE_RUNNING, 1, rank);
    state(host, 60, TIMELINE_STOPPING, 1, rank);
    state(host, 60.1, TIMELINE_WAITING, 0, 0);
    state(host, 60.2, TIMELINE_STARTING, 2, rank);
    state(host, 60.3, TIMELINE_RUNNING, 2, rank);
    state(host, 120, TIMELINE_AWAY, 0, 0);
}

static const char *draw(unsigned columns, bool utf8, bool colour)
{
    struct timeline_look look = {.columns = columns, .utf8 = utf8, .colour = colour};
    out.len = 0;
    timeline_draw(&t, &look, &out);
    return el_buf_cstr(&out);
}

static unsigned lines_of(const char *at)
{
    unsigned n = 0;
    for (; (at = strchr(at, '\n')); at++)
        n++;
    return n;
}

/* Columns of the widest line; escape sequences do not count. */
static size_t widest(const char *at)
{
    size_t most = 0, n = 0;
    for (; *at; at++) {
        if (*at == '\033') {
            at = strchr(at, 'm');
            continue;
        }
        n = *at == '\n' ? 0 : n + (((unsigned char)*at & 0xc0) != 0x80);
        most = n > most ? n : most;
    }
    return most;
}

static void test_picture(void)
{
    timeline_init(&t, NULL);
    node("a", 0, 0);
    node("b", 0, 8);
    node("c", 0, 16);
    mark("b", 60, TIMELINE_FAILURE,
         "rank 9 failed: exit code 1: ValueError: a very long message that does not fit the line");
    is_str(draw(60, false, false),
           "         |- round 1 -----------||- round 2 ----------------|\n"
           "a +1 .....# 0-7,16-23 ##########|===========================\n"
           "b    .....# 8-15 ###############1===========================\n"
           "     |20:36:48    |+30s         |+1m          |+1m30s\n"
           "     # running 90.5%   - starting or stopping 1.0%\n"
           "     . between rounds 8.4%\n"
           "1 20:37:48 rank 9 failed: exit code 1: ValueError: a very...\n",
           "two rounds on three nodes");
    timeline_free(&t);
}

static void test_fold(void)
{
    char host[32];
    timeline_init(&t, NULL);
    for (unsigned i = 0; i < 64; i++) {
        snprintf(host, sizeof host, "gpu-%02u", i);
        node(host, 0, 8 * i);
    }
    mark("gpu-37", 60, TIMELINE_FAILURE, "rank 300 failed");
    const char *text = draw(80, true, false);
    ok(lines_of(text) <= 12 && widest(text) <= 80, "64 nodes fit a screen of 80 columns");
    ok(strstr(text, "gpu-00 +62") && strstr(text, "\ngpu-37 "),
       "equal rows are one; that with the failure has its own");
    ok(strstr(text, "gpu-37     ·····"), "names are in one column");
    for (unsigned i = 0; i < 64; i++) {
        snprintf(host, sizeof host, "odd-%02u", i);
        node(host, -2.0 * i, 512 + 8 * i);
    }
    text = draw(80, true, false);
    ok(lines_of(text) <= 24 && strstr(text, "more nodes; --json tells all"),
       "many different rows: the last ones are counted");
    ok(strstr(text, "\ngpu-37 "), "never the one with the failure");
    bool fits = true, whole = true;
    for (unsigned columns = 0; columns < 260; columns += 3)
        for (int k = 0; k < 4; k++) {
            text = draw(columns, k & 1, k & 2);
            size_t most = columns < 40 ? 40 : columns > 240 ? 240 : columns;
            fits &= widest(text) <= most;
            for (const char *at = text; *at; at += whole ? el_utf8(at, 4) : 1)
                whole &= el_utf8(at, 4) > 0 && (k & 1 || (unsigned char)*at < 0x80);
        }
    ok(fits, "every width is kept");
    ok(whole, "whole characters of UTF-8, or ASCII only");
    timeline_free(&t);
}

static void test_colour(void)
{
    timeline_init(&t, NULL);
    node("a", 0, 0);
    mark("a", 60, TIMELINE_FAILURE, "rank 1 failed");
    mark("a", 30, TIMELINE_LOST, "b: silent");
    timeline_sort(&t);
    const char *text = draw(80, true, true);
    ok(strstr(text, "\033[1;97;41m1"), "a mark is seen");
    ok(strstr(text, "1\033[0m\033[2m 20:37:18 ") && strstr(text, "2\033[0m\033[2m 20:37:48 "),
       "marks in order of time");
    const char *last = strrchr(text, '\033');
    ok(last && strncmp(last, "\033[0m", 4) == 0, "what is switched on is switched off");
    timeline_free(&t);
}

static void test_clocks(void)
{
    timeline_init(&t, NULL);
    node("a", 0, 0);
    state("b", 3600, TIMELINE_WAITING, 0, 0);
    state("b", 3610.4, TIMELINE_STARTING, 1, 8);
    state("b", 3660.202, TIMELINE_STARTING, 2, 8);
    state("b", 3720, TIMELINE_AWAY, 0, 0);
    mark("b", 3660, TIMELINE_FAILURE, "rank 9 failed");
    int64_t off = timeline_align(&t), from, to;
    is_num(off, 3600002000, "an hour between two clocks");
    ok(timeline_span(&t, &from, &to) && to - from < 121 * 1000000, "in line by the round in which it was least late");
    uint64_t spent[TIMELINE_STATES];
    timeline_spent(&t, spent);
    ok(spent[TIMELINE_RUNNING] == 49000000 + 59700000, "time of all nodes together");
    timeline_free(&t);
}

static void test_limits(void)
{
    struct el_mem mem = EL_MEM_INIT(512 << 10);
    int64_t from, to;
    timeline_init(&t, &mem);
    is_str(draw(80, true, false), "", "nothing is known: nothing is drawn");
    ok(!timeline_span(&t, &from, &to), "and there is no time");
    for (unsigned i = 0; i < 100000; i++)
        state("a", i, i & 1 ? TIMELINE_RUNNING : TIMELINE_STARTING, 1 + i / 2, 0);
    ok(t.full && mem.used_bytes <= 512 << 10, "no more than the memory that it may have");
    ok(widest(draw(80, true, false)) <= 80, "thousands of rounds");
    timeline_free(&t);
    is_num((long long)mem.used_bytes, 0, "all of it is given back");
    timeline_init(&t, NULL);
    for (unsigned i = 0; i < 2 * TIMELINE_MARKS_MAX; i++)
        mark("a", i, TIMELINE_FAILURE, i ? "later" : "first");
    state("a", 0, TIMELINE_RUNNING, 1, 0);
    ok(t.marks_left_out == TIMELINE_MARKS_MAX && strcmp(t.mark[0].text, "first") == 0, "of marks the first ones stay");
    ok(t.mark[TIMELINE_MARKS_MAX - 1].at == T0 + INT64_C(1000000) * (2 * TIMELINE_MARKS_MAX - 1), "and the last one");
    ok(strstr(draw(80, false, false), "and 2039 more"), "the rest is counted");
    timeline_free(&t);
    timeline_init(&t, NULL);
    state("a", 0, TIMELINE_RUNNING, 1, 0);
    ok(strstr(draw(80, false, false), "#"), "a single moment");
    timeline_free(&t);
    char clock[24];
    is_str(timeline_clock(T0, 3600, true, clock), "11-21 21:36:48", "local time with its date");
}

int main(void)
{
    test_picture();
    test_fold();
    test_colour();
    test_clocks();
    test_limits();
    el_buf_free(&out);
    return done();
}
