/* The coordinator's report over several nodes, and the summary that is made of it. */
#include "coord/job_report.h"
#include "lib/tap.h"

static struct job_report j;

static bool head(struct msg_report r)
{
    struct msg m = {.type = MSG_REPORT, .u.report = r};
    struct msg_report *x = &m.u.report;
    const char **texts[] = {&x->classes, &x->rest_ranks, &x->stopped_ranks, &x->missing, &x->text};
    for (unsigned i = 0; i < 5; i++)
        *texts[i] = *texts[i] ? *texts[i] : "";
    return job_report_take(&j, &m);
}

static bool row(struct msg_report_row r)
{
    struct msg m = {.type = MSG_REPORT_ROW, .u.report_row = r};
    m.u.report_row.document = r.document ? r.document : "";
    m.u.report_row.text = r.text ? r.text : "";
    m.u.report_row.host = r.host ? r.host : "";
    return job_report_take(&j, &m);
}
#define HEAD(...) head((struct msg_report){__VA_ARGS__})
#define ROW(...)  row((struct msg_report_row){__VA_ARGS__})

static const char *summary(struct el_buf *out, bool json)
{
    struct failure_report r = job_report_view(&j);
    j.job.log_host = "node-1";
    out->len = 0;
    r.script = "train.py";
    r.log_dir = "/logs";
    if (json)
        summary_json(&r, out);
    else
        summary_write(&r, out, &summary_plain, 0);
    return el_buf_cstr(out);
}

/* Each node may have a log directory of its own. */
static void test_logs(void)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    ok(!HEAD(.number = 2, .failed = 1, .among = 1, .more = true) &&
           ROW(.rank = 9, .group_rank = 1, .host = "node-2", .text = "exit code 3", .code = 3),
       "a report");
    ok(strstr(summary(&out, false), "\n  logs of node 0: node-1:/logs; those of rank 9: on node-2, node 1\n"),
       "the failed rank's are on another node");
    ok(!HEAD(.number = 3, .failed = 1, .among = 1, .more = true) &&
           ROW(.rank = 9, .group_rank = 1, .host = "node-2", .code = 3,
               .document = "{\"rank\":9,\"end\":\"exit\",\"code\":3,\"log_dir\":\"/far/run\"}"),
       "another report");
    ok(strstr(summary(&out, false), "\n  logs of node 0: node-1:/logs; those of rank 9: node-2:/far/run, node 1\n"),
       "where that node has them");
    el_buf_free(&out);
}

static void test_whole(void)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    ok(!ROW(.rank = 1), "a row without a report is none");
    ok(!HEAD(.number = 3, .failed = 5, .among = 1, .rest = 3, .rest_ranks = "100-102", .more = true,
             .stopped_ranks = "0-36,38-99,103-1023", .classes = "code error 1, network 4", .max_restarts = 3,
             .restarts = 1, .missing = "rank 5 (pid 7) has not come\nrank 6 has not come"),
       "rows follow");
    ok(!ROW(.rank = 37, .local_rank = 5, .group_rank = 4, .host = "node-5", .more = true,
            .document = "{\"rank\":1,\"host\":\"liar\",\"end\":\"exit\",\"code\":3,\"message\":\"ValueError: x\","
                        "\"traceback\":\"Traceback:\\n  f\\nValueError: x\",\"log_file\":\"/l/5.log\"}"),
       "and more");
    ok(ROW(.rank = 9, .local_rank = 1, .group_rank = 1, .host = "node-2\033[2J", .signal = 9, .text = "signal 9"),
       "the last row: complete");
    const char *text = summary(&out, false);
    ok(strstr(text, "elrun: rank 37 on node-5 failed: exit code 3: ValueError: x\n") == text,
       "the cause names the node");
    ok(strstr(text, "\n  logs of node 0: node-1:/logs\n"), "whose logs lie there; the cause's own are named");
    ok(strstr(text, "local rank 5"), "who it was is the coordinator's word");
    ok(strstr(text, "  1020 others ended because of it: ranks 0-36,38-99,103-1023 (stopped by elrun)\n") &&
           strstr(text, "  failed too: 3 more, ranks 100-102\n"),
       "ranks of the world");
    ok(strstr(text, "\n  rank 9 on node-2 failed too: signal 9; only how it ended was told\n"),
       "a failure without a document, in clean text, which does not claim to know more of it");
    ok(!strstr(text, "among the first"), "the first");
    ok(strstr(text, "by class: code error 1, network 4\n"), "classes");
    ok(strstr(text, "store, when the first worker failed: rank 5 (pid 7) has not come\n  store, when the first worker "
                    "failed: rank 6"),
       "who was missing");
    ok(strstr(text, "stderr of rank 37: node-5:/l/5.log\n"), "host and path of its log");
    text = summary(&out, true);
    ok(strstr(text, "\"stopped_by_elrun\":\"0-36,38-99,103-1023\"") && strstr(text, "\"others_left_out\":3") &&
           strstr(text, "\"failed\":5,\"among_the_first\":1"),
       "the same as JSON");
    HEAD(.number = 4, .failed = 2, .among = 2, .more = true);
    ROW(.rank = 1, .code = 1, .host = "a");
    ok(strstr(summary(&out, false), "\n  among the first 2 to fail: the clocks of the nodes tell no more\n"),
       "a new report; the clocks cannot tell");
    HEAD(.number = 4, .failed = 3, .among = 2, .more = true);
    ROW(.rank = 1, .code = -1, .signal = 15, .host = "a",
        .document = "{\"rank\":1,\"end\":\"signal\",\"code\":15,\"by\":\"elrun\",\"follower\":true,\"absent\":true}");
    text = summary(&out, false);
    ok(strstr(text, "failed: did not take part in a collective") && !strstr(text, "among the first"),
       "those that elrun stopped did not fail, one sooner than another");
    HEAD(.number = 5, .failed = 1, .among = 1, .more = true);
    ROW(.rank = 5, .local_rank = 1, .code = 7, .signal = -1, .host = "a", .text = "exit code 7");
    text = summary(&out, false);
    ok(strstr(text, "elrun: rank 5 on a failed: exit code 7\n  only how it ended was told: its agent was lost") ==
               text &&
           !strstr(text, "others failed before"),
       "a cause whose agent died before it told more: its own words, once");
    ok(strstr(summary(&out, true), "\"stderr_watched\":\"untold\""), "as JSON too");
    el_buf_free(&out);
}

static void test_strangers(void)
{
    HEAD(.more = true);
    for (unsigned i = 0; i < 100; i++)
        ROW(.rank = i, .more = true, .document = i & 1 ? "not JSON" : "[]");
    is_num(j.n, RDZV_REPORT_ROWS, "more rows than there can be");
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    ok(*summary(&out, false), "are still a summary");
    el_buf_free(&out);
    ok(HEAD(.more = false), "a report without rows");
    is_num(j.n, 0, "forgets the one before");
    job_report_free(&j);
    for (long n = 0; n < 30; n++) {
        j.mem.fail_after = n;
        HEAD(.more = true, .rest_ranks = "1", .classes = "x 1");
        ROW(.rank = 1, .text = "t", .host = "h", .document = "{\"message\":\"m\",\"traceback\":\"t\"}");
        job_report_free(&j);
    }
    ok(!j.mem.used_bytes, "memory that is refused");
}

int main(void)
{
    job_report_init(&j);
    test_logs();
    test_whole();
    test_strangers();
    job_report_free(&j);
    return done();
}
