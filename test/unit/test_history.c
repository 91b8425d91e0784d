/* Verdicts of past probes. */
#include "probe/history.h"

#include "lib/tap.h"

#define HOUR 3600u
#define DAY  86400u
#define NOW  1764000000u

static struct history h;

static void add(uint64_t time_s, const char *node, bool bad, const char *reason)
{
    struct history_entry one = history_entry(time_s, node, bad, reason);
    history_add(&h, &one);
}

static const char *text(const char *node)
{
    static char to[512];
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    history_text(&h, node, NOW, &out);
    snprintf(to, sizeof to, "%s", el_buf_cstr(&out));
    el_buf_free(&out);
    return to;
}

static void test_text(void)
{
    h.n = 0;
    is_str(text("c03"), "", "nobody knows the node");
    add(NOW - 8 * DAY, "c03", true, "long ago");
    add(NOW - 6 * DAY, "c03", false, "");
    is_str(text("c03"), "", "what is older than a week is over");
    add(NOW - 26 * HOUR, "c03", true, "gpu_ecc of GPU 3");
    add(NOW - 5 * HOUR, "c04", true, "disk_error");
    is_str(text("c03"), "failed 1 of 2 probes within 7 days, last 26 hours ago: gpu_ecc of GPU 3", "once");
    add(NOW - 60, "c03", true, "xid");
    is_str(text("c03"), "failed 2 of 3 probes within 7 days, last 1 minute ago: xid", "twice");
    add(NOW - 60, "c03", true, "xid 79");
    is_str(text("c03"), "failed 3 of 4 probes within 7 days, last 1 minute ago: xid 79", "of one second the last");
    add(NOW, "c03", true, "");
    is_str(text("c03"), "failed 4 of 5 probes within 7 days, last just now", "without a reason");
    is_str(text("c04"), "failed 1 of 1 probe within 7 days, last 5 hours ago: disk_error", "each node by itself");
    add(NOW + DAY, "c05", true, "tomorrow");
    is_str(text("c05"), "", "what lies in the future is the clock's fault");
    add(NOW - 3 * DAY, "c06", true, "x");
    is_str(text("c06"), "failed 1 of 1 probe within 7 days, last 3 days ago: x", "days");
}

static void test_lines(void)
{
    static const char torn[] = "{\"time\":1,\"node\":\"a\",\"verdict\":\"bad\",\"reason\":\"x\",\"newer\":1}\n"
                               "\n"
                               "nonsense\n"
                               "{\"time\":2,\"node\":\"a\",\"verdict\":\"undecided\"}\n"
                               "{\"time\":-2,\"node\":\"a\",\"verdict\":\"bad\"}\n"
                               "{\"time\":3,\"node\":\"b\",\"verdict\":\"good\"}\n"
                               "{\"time\":4,\"node\":\"b\",\"verdict\":\"good\"}";
    char to[128];
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    struct history_entry one = history_entry(NOW, "c\n03", true, "a \"quoted\" reason\033[31m");
    ok(history_encode(&one, &out) == 0 && history_encode(&one, &out) == 0, "written");
    h.n = h.broken = 0;
    history_parse(&h, out.v, out.len);
    is_num(h.n, 2, "and read");
    is_num(h.broken, 0, "whole");
    ok(h.v[1].bad && h.v[1].time_s == NOW, "as it was");
    is_str(h.v[1].node, "c?03", "a name that is plain text");
    is_str(h.v[1].reason, "a \"quoted\" reason?[31m", "and such a reason");
    h.n = h.broken = 0;
    history_parse(&h, torn, sizeof torn - 1);
    is_num(h.n, 2, "of a damaged file what is whole");
    is_num(h.broken, 4, "and how many lines were not");
    ok(history_strange(&h, "past", to, sizeof to), "which is worth a word");
    is_str(to, "past/probes: 4 lines are no verdicts of probes and are left aside", "this one");
    h.broken = 1;
    history_strange(&h, "past", to, sizeof to);
    is_str(to, "past/probes: 1 line is no verdict of a probe and is left aside", "or that");
    h.broken = 0;
    ok(!history_strange(&h, "past", to, sizeof to), "and else none");
    is_str(h.v[1].node, "b", "undecided is no verdict");
    el_buf_free(&out);
    out = EL_BUF_INIT(NULL, 10);
    is_num(history_encode(&one, &out), -1, "no room");
    is_num((long long)out.len, 0, "no half line");
    el_buf_free(&out);
}

static void test_full(void)
{
    h.n = 0;
    for (unsigned i = 0; i < HISTORY_MAX + 3; i++)
        add(i, "c", false, "");
    is_num(h.n, HISTORY_MAX, "no more than there is room for");
    is_num(h.v[0].time_s, 3, "the oldest go");
    is_num(h.v[HISTORY_MAX - 1].time_s, HISTORY_MAX + 2, "the newest stay");
}

static void test_line(void)
{
    char to[HISTORY_NOTE_MAX];
    struct probe_wire w;
    history_line("failed 2 of 3 probes", &w);
    ok(history_take(&w, to, sizeof to), "a line for the coordinator");
    is_str(to, "failed 2 of 3 probes", "and what it says");
    w.u.fact.name = "kernel";
    ok(!history_take(&w, to, sizeof to), "another line");
}

int main(void)
{
    test_text();
    test_lines();
    test_full();
    test_line();
    return done();
}
