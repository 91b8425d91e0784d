/* --checks and --limits. */
#include "probe/limits.h"

#include "lib/tap.h"
#include "util/array.h"

static struct check_conf c;

static const char *checks(const char *list)
{
    static struct el_err e;
    e = (struct el_err){0};
    check_conf_init(&c);
    return checks_parse(&c, list, &e) ? e.text : "";
}

static const char *limits(const char *text)
{
    static struct el_err e;
    e = (struct el_err){0};
    check_conf_init(&c);
    return limits_parse(&c, text, strlen(text), &e) ? e.text : "";
}

static void test_checks(void)
{
    is_str(checks("disk,nofile"), "", "a group and a check");
    ok(c.on[CHECK_DISK_FREE] && c.on[CHECK_DISK_WRITE] && c.on[CHECK_NOFILE], "are looked for");
    ok(!c.on[CHECK_MEMLOCK] && !c.on[CHECK_IB_STATE], "nothing else is");
    ok(c.on[CHECK_HANG] && c.on[CHECK_CRASH], "but the checks themselves");
    ok(check_conf_group(&c, CHECK_GROUP_LIMITS) && !check_conf_group(&c, CHECK_GROUP_IB), "which children that needs");
    ok(!check_conf_group(&c, CHECK_GROUP_PROBE), "none for the checks themselves");
    is_str(checks("-gpu,-ib_state"), "", "a list that begins by taking out");
    ok(!c.on[CHECK_GPU_ECC] && !c.on[CHECK_IB_STATE] && c.on[CHECK_IB_RATE], "begins with everything");
    is_str(checks("ib,-ib-state"), "", "a group without one");
    ok(!c.on[CHECK_IB_STATE] && c.on[CHECK_IB_RATE], "of its checks");
    is_str(checks("all,-disk"), "", "all but");
    ok(!c.on[CHECK_DISK_FREE] && c.on[CHECK_IB_RATE], "a group");
    is_str(checks("ib_rat"), "check \"ib_rat\" is not known; did you mean ib_rate?", "a slip");
    is_str(checks("gpu,ethernt"), "check \"ethernt\" is not known; did you mean ethernet?", "of a group");
    is_str(checks("hang"), "hang is always there: it is about the checks themselves", "not for choosing");
    ok(strstr(checks(""), "want names"), "an empty list");
    ok(strstr(checks("gpu,"), "want names"), "an empty word");
    ok(strstr(checks("gpu,-"), "want names"), "nothing to take out");
}

static void test_limits(void)
{
    is_str(limits("{}"), "", "nothing");
    is_str(limits("{\"ib_rate\": 400, \"shm_size\": \"8GiB\", \"memlock\": \"unlimited\", \"gpu_pcie\": 8}"), "",
           "numbers and sizes");
    ok(c.limit[CHECK_IB_RATE] == 400 && c.limit[CHECK_SHM_SIZE] == 8589934592.0, "are taken");
    ok(c.limit[CHECK_MEMLOCK] == CHECK_UNLIMITED, "unlimited too");
    ok(!c.own[CHECK_GPU_PCIE] && c.limit[CHECK_GPU_PCIE] == 8, "in place of a device's own limit");
    is_str(limits("{\"edac_corrected\": {\"limit\": 5, \"severity\": \"bad\"}, \"zombies\": {\"severity\": \"info\"}}"),
           "", "with severity");
    ok(c.limit[CHECK_EDAC_CORRECTED] == 5 && c.severity[CHECK_EDAC_CORRECTED] == FINDING_BAD, "both");
    ok(c.limit[CHECK_ZOMBIES] == 20 && c.severity[CHECK_ZOMBIES] == FINDING_INFO, "or one");
    is_str(limits("{\"host_mem\": 200, \"cpu\": {\"limit\": 2.5, \"severity\": \"warn\"}}"), "", "speeds");
    ok(c.metric_milli[METRIC_HOST_MEM] == 200000 && c.metric_milli[METRIC_CPU] == 2500, "have limits then");
    ok(c.metric_severity[METRIC_HOST_MEM] == FINDING_BAD && c.metric_severity[METRIC_CPU] == FINDING_WARN,
       "and severity");
    is_str(limits("{\"swap_used\": \"off\"}"), "", "not at all");
    ok(!c.on[CHECK_SWAP_USED], "is not looked for");
    is_str(limits("{\"gdr\": false}"), "", "yes or no");
    ok(c.limit[CHECK_GDR] == 0, "is a number too");
}

static void test_refused(void)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"{\"ib_rat\": 400}", "check \"ib_rat\" is not known; did you mean ib_rate?"},
        {"{\"completely_else\": 1}", "check \"completely_else\" is not known; `elrun help checks` lists them"},
        {"{\"ib\": 400}", "\"ib\" is a group: limits are for single checks"},
        {"{\"ib_rate\": \"fast\"}", "ib_rate: \"fast\": want a number, in Gb/s"},
        {"{\"shm_size\": \"8 apples\"}", "shm_size: \"8 apples\": want a number of bytes, or a text such as \"8GiB\""},
        {"{\"ib_rate\": -1}", "ib_rate: the limit is a number, 0 or more"},
        {"{\"ib_rate\": [1]}", "ib_rate: the limit is a number, 0 or more"},
        {"{\"ib_rate\": true}", "ib_rate: the limit is a number, 0 or more"},
        {"{\"ib_rate\": {\"limt\": 3}}", "ib_rate: \"limt\" is not known; there are \"limit\" and \"severity\""},
        {"{\"ib_rate\": {\"severity\": \"unchecked\"}}", "ib_rate: \"severity\" is \"info\", \"warn\" or \"bad\""},
        {"{\"host_mm\": 4}", "check \"host_mm\" is not known; did you mean host_mem?"},
        {"{\"bw64m\": 4}", "bw64m is measured in pairs: limits are for what a node measures alone"},
        {"{\"host_mem\": \"4\"}", "host_mem: the limit is a number above 0, in GB/s"},
        {"{\"host_mem\": {\"limit\": 0}}", "host_mem: the limit is a number above 0, in GB/s"},
        {"[1]", "want one JSON object: {\"ib_rate\": 400, …}"},
        {"{\"a\":{\"b\":{\"c\":1}}}", "more than limits can be"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        is_str(limits(cases[i].text), cases[i].error, cases[i].text);
    ok(strncmp(limits("{\n\"ib_rate\": 4,,}"), "line 2: not JSON", 16) == 0, "the line is named");
    ok(strstr(limits("{\"ib_rate\": 1, \"ib_rate\": 2}"), "uplicate"), "a key twice");
}

int main(void)
{
    test_checks();
    test_limits();
    test_refused();
    return done();
}
