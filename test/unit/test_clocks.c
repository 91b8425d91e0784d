/* Wall clocks side by side. */
#include "probe/clocks.h"

#include "lib/tap.h"
#include "coord/health_check.h"

#define S INT64_C(1000000)

/* Three nodes tell their clocks with their own checks; what is kept of the node goes into the report. */
static void tell(struct health_check *p, unsigned node, int64_t wall_us)
{
    struct msg_probe_result m = {
        .number = 1, .coord = 2, .probe = 3, .rail = -1, .outcome = HEALTH_CHECK_OK, .text = ""};
    struct el_buf line = EL_BUF_INIT(NULL, 0);
    char text[CLOCKS_TEXT];
    struct probe_wire w;
    clocks_line(wall_us, text, &w);
    wire_encode(&w, &line);
    m.lines = el_buf_cstr(&line);
    health_check_result(p, node, &m, EL_SEC(1));
    el_buf_free(&line);
}

static void test_check(void)
{
    static const char *const hosts[] = {"a", "b", "c"};
    const struct health_check_conf conf = {.number = 1,
                                           .coord = 2,
                                           .probe = 3,
                                           .nodes = 3,
                                           .backend = HEALTH_TCP,
                                           .timeout = EL_SEC(100),
                                           .silence = EL_SEC(5)};
    struct el_mem mem = EL_MEM_INIT(0);
    struct health_check *p = health_check_new(&conf, &mem, 0);
    for (unsigned i = 0; i < 3; i++)
        health_check_name(p, i, hosts[i], "");
    tell(p, 0, 1764000000 * S);
    tell(p, 1, 1764000007 * S);
    tell(p, 2, 1764000000 * S + S / 10);
    is_str(health_check_kept(p, 0), "", "a clock that is right is not worth a line");
    is_str(health_check_kept(p, 1),
           "{\"t\":\"check\",\"name\":\"clock_offset\",\"state\":\"warn\",\"value\":6.9,\"limit\":1,"
           "\"text\":\"ahead of the others\"}\n",
           "one that is seven seconds off is told");
    ok(health_check_warned(p, 1) && !health_check_warned(p, 2), "as a warning, and only that node's");
    health_check_free(p);
    is_num(mem.used_bytes, 0, "nothing is left");
}

int main(void)
{
    char text[CLOCKS_TEXT];
    struct probe_wire w;
    int64_t at = 7, many[301];
    clocks_line(-1764000000 * S, text, &w);
    ok(clocks_take(&w, &at) && at == -1764000000 * S, "a line, and what it says");
    w.u.fact.value = "soon";
    ok(!clocks_take(&w, &at), "no time");
    w.u.fact.value = "9223372036854775807";
    ok(!clocks_take(&w, &at), "no time that can be");
    w.u.fact.name = "kernel";
    w.u.fact.value = "6";
    ok(!clocks_take(&w, &at) && at == -1764000000 * S, "another line");

    int64_t one[] = {5}, none[] = {CLOCKS_UNKNOWN, CLOCKS_UNKNOWN, 3}, two[] = {100 * S, CLOCKS_UNKNOWN, 104 * S},
            late[] = {104 * S, 100 * S};
    is_num(clocks_usual(one, 1), CLOCKS_UNKNOWN, "one node alone has nobody to differ from");
    is_num(clocks_usual(none, 3), CLOCKS_UNKNOWN, "nor one of which alone is known");
    is_num(clocks_usual(two, 3), 100 * S, "of two the first");
    is_num(clocks_usual(late, 2), 104 * S, "which need not be the earlier");
    for (int i = 0; i < 301; i++)
        many[i] = (int64_t)(i * 7919 % 301) - 100;
    is_num(clocks_usual(many, 301), 50, "of many the one in the middle");
    for (int i = 0; i < 300; i++)
        many[i] = 42;
    many[300] = 100000 * S;
    is_num(clocks_usual(many, 301), 42, "which one that is far off does not move");

    struct check_conf conf;
    struct finding f = clocks_finding(97 * S, 100 * S);
    check_conf_init(&conf);
    check_judge(&conf, &f);
    is_num(f.state, FINDING_WARN, "three seconds are a warning");
    ok(f.value == 3, "with how many");
    is_str(f.text, "behind the others", "and which way");
    f = clocks_finding(100 * S + S / 2, 100 * S);
    check_judge(&conf, &f);
    is_num(f.state, FINDING_OK, "half a second is not");
    is_num(clocks_finding(CLOCKS_UNKNOWN, 1).state, FINDING_UNCHECKED, "a clock that nobody knows");
    is_num(clocks_finding(1, CLOCKS_UNKNOWN).state, FINDING_UNCHECKED, "nobody to compare with");
    test_check();
    return done();
}
