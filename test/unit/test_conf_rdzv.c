#include "conf/conf_rdzv.h"
#include "lib/tap.h"
#include "util/array.h"

static struct run_conf conf;
static struct rdzv_settings set;
static struct el_err err;

static int take(char **words)
{
    static char *no_env[] = {NULL};
    int n = 0;
    while (words[n])
        n++;
    memset(&err, 0, sizeof err);
    memset(&set, 0xff, sizeof set);
    if (conf_parse(n, words, no_env, &conf, &err) != CONF_DO_RUN)
        return -2;
    if (rdzv_settings_from_conf(&conf, &set, &err))
        return -1;
    return rdzv_settings_check(&set, &err) ? -3 : 0; /* what is made here, the coordinator takes */
}

static void test_defaults(void)
{
    char *words[] = {"--nnodes=1:3", "t.py", NULL};
    is_num(take(words), 0, "defaults");
    ok(set.min == 1 && set.max == 3 && set.unit == 1 && set.expected == 0, "nodes");
    ok(set.max_restarts == 0 && set.restart_window_ms == 0 && set.max_fruitless == 10, "budget");
    ok(set.settle_ms == 3000 && set.last_call_ms == 30000 && set.join_timeout_ms == 600000, "forming");
    ok(set.keep_alive_ms == 1000 && set.keep_alive_attempts == 5 && set.reconnect_grace_ms == 100, "losing");
    ok(set.replace_wait_ms == 0 && set.scale_up_delay_ms == 1000 && set.stable_window_ms == 0 &&
           set.boundary_wait_ms == 0 && set.grace_ms == 30000,
       "changing");
}

static void test_too_many(void)
{
    char *most[] = {"--nnodes=1:16384", "--health-check=start", "t.py", NULL};
    char *more[] = {"--nnodes=1:16385", "--health-check=start", "t.py", NULL};
    char *off[] = {"--nnodes=1:65536", "t.py", NULL};
    is_num(take(most), 0, "a health check of so many");
    is_num(take(more), -1, "not of more: they would not be looked at");
    is_str(err.text, "--nnodes=1:16385: a health check has at most 16384 nodes", "which is told");
    is_num(take(off), 0, "without one they may come");
}

static void test_each(void)
{
    char *words[] = {
        "--nnodes=2:8",
        "--node-unit=2",
        "--max-restarts=7",
        "--restart-window=1h",
        "--max-fruitless-restarts=4",
        "--settle=5",
        "--replace-wait=6",
        "--scale-up-delay=7",
        "--stable-window=8",
        "--boundary-wait=9",
        "--reconnect-grace=10",
        "--shutdown-timeout=11",
        "--rdzv-conf=join_timeout=12,last_call_timeout=13,keep_alive_interval=14,keep_alive_max_attempt=15",
        "t.py",
        NULL};
    is_num(take(words), 0, "all of them");
    ok(set.min == 2 && set.max == 8 && set.unit == 2, "nodes");
    ok(set.max_restarts == 7 && set.restart_window_ms == 3600000 && set.max_fruitless == 4, "budget");
    ok(set.settle_ms == 5000 && set.replace_wait_ms == 6000 && set.scale_up_delay_ms == 7000 &&
           set.stable_window_ms == 8000 && set.boundary_wait_ms == 9000,
       "settle, replace, scale up, stable, boundary");
    ok(set.reconnect_grace_ms == 10000 && set.grace_ms == 11000 && set.join_timeout_ms == 12000 &&
           set.last_call_ms == 13000 && set.keep_alive_ms == 14000 && set.keep_alive_attempts == 15,
       "reconnect, stop, join, last call, keep-alive");
}

static void test_bounds(void)
{
    char *tiny[] = {"--settle=1us", "--reconnect-grace=1001us", "t.py", NULL};
    ok(!take(tiny) && set.settle_ms == 1 && set.reconnect_grace_ms == 2, "parts of a millisecond count as one");
    char *huge[] = {"--shutdown-timeout=300d",
                    "--rdzv-conf=join_timeout=999999999999",
                    "--max-restarts=2147483647",
                    "--max-fruitless-restarts=2147483647",
                    "t.py",
                    NULL};
    ok(!take(huge) && set.grace_ms == MSG_MS_MAX && set.join_timeout_ms == MSG_MS_MAX &&
           set.max_restarts == 1000000000 && set.max_fruitless == 1000000000,
       "what the protocol cannot carry is cut");
}

static void test_refused(void)
{
    static const struct {
        char *words[4];
        const char *text;
    } cases[] = {
        {{"--nnodes=3", "--node-unit=2", "t.py", NULL}, "--node-unit=2: no multiple of it lies in --nnodes=3:3"},
        {{"--nnodes=1:3", "--node-unit=4", "t.py", NULL}, "--node-unit=4: no multiple of it lies in --nnodes=1:3"},
        {{"--nnodes=3:5", "--node-unit=4", "t.py", NULL}, NULL},
        {{"--max-restarts=1025", "t.py", NULL, NULL}, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *words[4];
        memcpy(words, cases[i].words, sizeof words);
        int r = take(words);
        if (cases[i].text)
            is_str(r == -1 && err.status == EL_EXIT_CONFIG ? err.text : "(accepted)", cases[i].text, words[0]);
        else
            is_num(r, 0, words[1]);
    }
}

int main(void)
{
    test_defaults();
    test_too_many();
    test_each();
    test_bounds();
    test_refused();
    return done();
}
