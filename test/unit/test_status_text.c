/* What elrun status shows: a few nodes, one screen of 64, a thousand summarised. */
#include "lib/tap.h"
#include "coord/status_text.h"

static struct msg_status_job job(void)
{
    return (struct msg_status_job){.run_id = "pretrain",
                                   .number = 3,
                                   .coord = 7,
                                   .state = "running",
                                   .text = "round 3 runs on 2 nodes",
                                   .min = 2,
                                   .max = 4,
                                   .unit = 2,
                                   .group_size = 2,
                                   .world_size = 16,
                                   .members = 3,
                                   .spares = 1,
                                   .restarts = 1,
                                   .max_restarts = 3,
                                   .incidents = 1,
                                   .fruitless = 2,
                                   .productive_ms = 15120000,
                                   .forming_ms = 3200,
                                   .restarting_ms = 90500,
                                   .master_addr = "fd00::5",
                                   .master_port = 41231,
                                   .cause = "",
                                   .held_step = -1,
                                   .disk_step = -1,
                                   .more = true};
}

static void add(struct status_text *o, const char *host, const char *state, int group_rank, unsigned heard_ms)
{
    struct msg_status_member m = {.host = host,
                                  .addr = "",
                                  .state = state,
                                  .node_rank = -1,
                                  .group_rank = group_rank,
                                  .rank_base = group_rank < 0 ? 0 : (unsigned)group_rank * 8,
                                  .slots = 8,
                                  .heard_ms = heard_ms};
    status_text_member(o, &m);
}

/* Whoever reaches the coordinator chooses what he is called. */
static void test_controls(void)
{
    struct status_text o = {0};
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    struct msg_status_job j = job();
    j.run_id = "a\033[2Jb";
    j.text = "one\ntwo \xc2\x9b"
             "31m";
    status_text_job(&o, &j);
    add(&o, "\033]0;x\007", "running", 0, 100);
    status_text_text(&o, false, 80, &out);
    const char *text = el_buf_cstr(&out);
    ok(!strchr(text, '\033') && !strchr(text, '\007') && !strstr(text, "\xc2\x9b"),
       "names do not draw on the terminal");
    ok(strstr(text, "a\\x1b[2Jb") && strstr(text, "one\\x0atwo"), "and are shown");
    status_text_free(&o);
    el_buf_free(&out);
}

static void test_few(void)
{
    struct status_text o = {0};
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    struct msg_status_job j = job();
    status_text_job(&o, &j);
    add(&o, "spare-1", "spare", -1, 120);
    add(&o, "gpu-02", "running", 1, 4100);
    add(&o, "a-host-whose-name-is-rather-long", "running", 0, 900);
    status_text_text(&o, false, 80, &out);
    is_str(el_buf_cstr(&out),
           "job pretrain: running, round 3\n"
           "  why       round 3 runs on 2 nodes\n"
           "  nodes     3 here, 2 in the round, 1 spare; wanted 2 to 4 in multiples of 2\n"
           "  workers   16, store at [fd00::5]:41231\n"
           "  restarts  1 of 3 used, 1 worker has failed, 2 rounds without progress\n"
           "  time      productive 4h12m (99%), forming rounds 3.2 s, stopping them 90.5 s\n"
           "\n"
           "   NODE  RANKS         HOST                 STATE              HEARD\n"
           "      0  0-7           a-host-whose-name... running           900 ms\n"
           "      1  8-15          gpu-02               running            4.1 s\n"
           "      -  -             spare-1              spare             120 ms\n",
           "ranks in order, spares behind");
    out.len = 0;
    status_text_text(&o, true, 80, &out);
    ok(strstr(el_buf_cstr(&out), "\033[32mrunning\033[0m") != NULL, "colours on a terminal");
    out.len = 0;
    j.held_step = 1200;
    j.held_age_ms = 3200;
    status_text_job(&o, &j);
    status_text_text(&o, false, 80, &out);
    ok(strstr(el_buf_cstr(&out), "\n  snapshots step 1200 in memory, 3.2 s old; none on disk\n") != NULL,
       "snapshots, with their age");
    el_buf_free(&out);
    status_text_free(&o);
}

static unsigned lines_of(struct el_buf *b, size_t *widest)
{
    unsigned n = 0;
    const char *at = el_buf_cstr(b);
    *widest = 0;
    for (const char *end; (end = strchr(at, '\n')); at = end + 1, n++)
        *widest = (size_t)(end - at) > *widest ? (size_t)(end - at) : *widest;
    return n;
}

static void test_many(void)
{
    struct status_text o = {0};
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    struct msg_status_job j = job();
    size_t widest;
    char host[32];
    status_text_job(&o, &j);
    for (int i = 63; i >= 0; i--) {
        snprintf(host, sizeof host, "gpu-%02d", i);
        add(&o, host, "running", i, 10);
    }
    status_text_text(&o, false, 140, &out);
    ok(lines_of(&out, &widest) <= 42 && widest <= 140, "64 nodes on one screen of 140 columns");
    ok(strstr(out.v, "gpu-00") < strstr(out.v, "gpu-32") && strstr(out.v, "gpu-32") < strstr(out.v, "gpu-01"),
       "in two halves side by side");
    out.len = 0;
    status_text_text(&o, false, 80, &out);
    lines_of(&out, &widest);
    ok(widest <= 80, "narrow terminals get one column");
    for (int i = 64; i < 1000; i++)
        add(&o, "more", i == 700 ? "reconnecting" : "running", i, i == 800 ? 4000 : 10);
    out.len = 0;
    status_text_text(&o, false, 140, &out);
    ok(lines_of(&out, &widest) < 20, "a thousand are summarised");
    ok(strstr(out.v, "999 running, 1 reconnecting; the longest silence is 4.0 s") != NULL, "by state");
    ok(strstr(out.v, "5600-5607") && strstr(out.v, "6400-6407") && !strstr(out.v, "gpu-01"),
       "only the odd ones listed");
    status_text_job(&o, &j);
    out.len = 0;
    status_text_text(&o, false, 80, &out);
    ok(!strstr(el_buf_cstr(&out), "gpu-01"), "the next answer begins from nothing");
    el_buf_free(&out);
    status_text_free(&o);
}

/* A coordinator that lies about ranks harms nobody. */
static void test_odd_ranks(void)
{
    struct status_text o = {0};
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    struct msg_status_job j = job();
    status_text_job(&o, &j);
    add(&o, "twin-a", "running", 0, 1);
    add(&o, "twin-b", "running", 0, 1);
    add(&o, "far", "running", 65535, 1);
    status_text_text(&o, false, 80, &out);
    ok(strstr(el_buf_cstr(&out), "twin-a") && strstr(out.v, "twin-b") && strstr(out.v, "65535"), "all are shown, once");
    el_buf_free(&out);
    status_text_free(&o);
}

static void test_time(void)
{
    char text[16];
    is_str(status_text_time(999, text), "999 ms", "milliseconds");
    is_str(status_text_time(1000, text), "1.0 s", "seconds");
    is_str(status_text_time(100000, text), "1m40s", "minutes");
    is_str(status_text_time(6000000, text), "1h40m", "hours");
    is_str(status_text_time(360000000, text), "4d04h", "days");
    ok(strlen(status_text_time(UINT64_MAX, text)) < 16, "whatever the number");
}

int main(void)
{
    test_controls();
    test_few();
    test_many();
    test_odd_ranks();
    test_time();
    return done();
}
