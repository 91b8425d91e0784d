/* What one node does in a probe: which children in which order, what their ends and errors are taken for, and what was
 * found as lines and back. */
#include "probe/node_private.h"

#include "lib/tap.h"
#include "probe/limits.h"

static struct check_conf checks;
static struct probe_node_conf conf = {.checks = &checks};
static struct node_job jobs[NODE_JOBS_MAX];

/* "0:ib 0:memory 1:burn.0": phase and what. */
static const char *said(unsigned n)
{
    static const char *const roles[] = {[HELPER_NVML] = "nvml", [HELPER_BURN] = "burn", [HELPER_NICLOOP] = "nicloop"};
    static char text[1024];
    size_t at = 0;
    text[0] = 0;
    for (unsigned i = 0; i < n; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u:%s", i ? " " : "", jobs[i].phase,
                               jobs[i].helper ? roles[jobs[i].role] : check_groups[jobs[i].group].name);
        if (jobs[i].helper && jobs[i].role == HELPER_BURN)
            at += (size_t)snprintf(text + at, sizeof text - at, ".%u", jobs[i].gpu);
    }
    return text;
}

static void test_jobs(void)
{
    check_conf_init(&checks);
    is_str(said(node_jobs(&conf, false, jobs)),
           "0:ib 0:ethernet 0:pci 0:memory 0:limits 0:disk 0:hardware 0:processes 0:system 1:speed",
           "without GPUs: all beside each other, what measures speed alone behind them");
    is_str(said(node_jobs(&conf, true, jobs)), "0:ib 0:ethernet 0:pci 0:hardware", "the last look: counters");
    conf.nccl = true;
    conf.gpus = 2;
    is_str(said(node_jobs(&conf, false, jobs)),
           "0:ib 0:ethernet 0:pci 0:memory 0:limits 0:disk 0:hardware 0:processes 0:system 0:nvml 1:burn.0 1:burn.1 "
           "2:nicloop 3:speed",
           "with two GPUs: all at once, then the loop through the cards");
    is_str(said(node_jobs(&conf, true, jobs)), "0:ib 0:ethernet 0:pci 0:hardware 0:nvml", "the last look at GPUs");
    struct el_err e = {0};
    checks_parse(&checks, "memory,gpu", &e);
    conf.gpus = 1;
    is_str(said(node_jobs(&conf, false, jobs)), "0:memory 0:nvml 1:burn.0", "what is asked for; one GPU has no loop");
    conf.gpus = 0;
    is_str(said(node_jobs(&conf, false, jobs)), "0:memory 0:nvml", "GPUs are wanted, and there is none");
    conf.gpus = 18;
    ok(strstr(said(node_jobs(&conf, false, jobs)), " 1:burn.15 2:burn.16 2:burn.17 3:nicloop") != NULL,
       "of many GPUs sixteen at a time, and all of them");
    conf.gpus = 1000;
    ok(node_jobs(&conf, false, jobs) <= NODE_JOBS_MAX, "there is an end to the number of GPUs");
    conf.gpus = 0;
    conf.nccl = false;
}

static enum rail_outcome end_rail(const char *class, struct child_end end, uint64_t quota, char reason[PLAN_REASON_MAX])
{
    struct node_rail r = {.failed = false};
    struct probe_wire w;
    if (class) {
        wire_init(&w, WIRE_ERR);
        w.u.err.class = class;
        w.u.err.text = "it says so";
        node_rail_take(&r, &w);
    }
    node_rail_end(&r, &end, quota);
    memcpy(reason, r.result.reason, PLAN_REASON_MAX);
    return r.result.outcome;
}

static void test_rails(void)
{
    static const struct {
        const char *class;
        enum stage_outcome outcome;
        int code, signal;
        char state;
        bool quota;
        enum rail_outcome want;
        const char *name;
    } rows[] = {
        {NULL, STAGE_DONE, 0, -1, '?', 0, RAIL_OK, "an end that says that it went well"},
        {"network", STAGE_FAILED, 0, -1, '?', 0, RAIL_FAILED, "the network"},
        {"timeout", STAGE_FAILED, 124, -1, '?', 0, RAIL_FAILED, "silence"},
        {"hardware", STAGE_FAILED, 1, -1, '?', 0, RAIL_FAILED, "wrong content"},
        {"driver", STAGE_TIMEOUT, -1, 9, 'D', 0, RAIL_FAILED, "a driver that does not come back"},
        {"mismatch", STAGE_FAILED, 1, -1, '?', 0, RAIL_BROKEN, "versions that differ say nothing against a node"},
        {"missing", STAGE_FAILED, 1, -1, '?', 0, RAIL_BROKEN, "nor does a library that is not there"},
        {"stalled", STAGE_FAILED, 0, -1, '?', 0, RAIL_BROKEN, "nor that an end stood still"},
        {"slow", STAGE_FAILED, 0, -1, '?', 0, RAIL_BROKEN, "nor that it was slow but went on"},
        {NULL, STAGE_TIMEOUT, -1, 9, 'S', 0, RAIL_FAILED, "a deadline"},
        {NULL, STAGE_TIMEOUT, -1, 9, 'R', 1, RAIL_BROKEN, "a deadline of a process that a quota kept from running"},
        {NULL, STAGE_TIMEOUT, -1, 9, 'R', 0, RAIL_FAILED, "without a quota it is one that turns in circles"},
        {NULL, STAGE_STUCK, -1, -1, 'D', 1, RAIL_FAILED, "an end that cannot be killed"},
        {"stalled", STAGE_STUCK, -1, -1, 'D', 1, RAIL_FAILED, "whatever it has said"},
        {NULL, STAGE_CRASHED, -1, 11, '?', 0, RAIL_FAILED, "a crash"},
        {NULL, STAGE_CRASHED, -1, 9, '?', 0, RAIL_BROKEN, "somebody else's SIGKILL"},
        {NULL, STAGE_SILENT, 0, -1, '?', 0, RAIL_BROKEN, "nothing"},
        {NULL, STAGE_FAILED, 127, -1, '?', 0, RAIL_BROKEN, "a program that could not be executed"},
        {NULL, STAGE_STOPPED, -1, 9, 'S', 0, RAIL_BROKEN, "an end that was not wanted any more"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct child_end end = {.outcome = rows[i].outcome,
                                .code = rows[i].code,
                                .signal = rows[i].signal,
                                .state = rows[i].state,
                                .elapsed = EL_SEC(60)};
        char reason[PLAN_REASON_MAX];
        enum rail_outcome got = end_rail(rows[i].class, end, rows[i].quota ? 20 : UINT64_MAX, reason);
        ok(got == rows[i].want, rows[i].name);
        if (rows[i].outcome != STAGE_DONE && rows[i].outcome != STAGE_STOPPED)
            ok(reason[0], reason);
    }
}

static void test_parted(void)
{
    static const struct {
        char state;
        bool slept;
        unsigned quota;
        enum rail_outcome want;
        const char *name;
    } rows[] = {
        {'S', false, 0, RAIL_FAILED, "the other end was over first: this one waited"},
        {'T', false, 0, RAIL_BROKEN, "it was stopped itself"},
        {'S', true, 0, RAIL_BROKEN, "all of this node stood still"},
        {'R', false, 1, RAIL_BROKEN, "it had no processor"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct node_rail r = {.parted = true};
        struct child_end end = {.outcome = STAGE_STOPPED, .state = rows[i].state, .slept = rows[i].slept};
        node_rail_end(&r, &end, rows[i].quota ? 20 : UINT64_MAX);
        is_num(r.result.outcome, rows[i].want, rows[i].name);
        ok(!r.result.reason[0] == (rows[i].want == RAIL_FAILED), "the reason of a failure is the other end's");
    }
}

static void test_values(void)
{
    struct node_rail r = {.failed = false};
    struct probe_wire w;
    wire_init(&w, WIRE_M);
    w.u.m = (struct wire_m){.name = "tcp_bw64m", .rail = 0, .n = 20, .min = 1, .median = 2.5, .p95 = 3, .unit = "GB/s"};
    node_rail_take(&r, &w);
    is_num(r.result.value[METRIC_TCP_BW64M], 2500, "the median, in thousandths");
    is_num(r.result.spread[METRIC_TCP_BW64M], 500, "and how far it is spread");
    w.u.m.name = "tcp_lat_us";
    node_rail_take(&r, &w);
    is_num(r.result.value[METRIC_TCP_LAT], 1000, "of a latency over TCP the least: the rest is the schedulers'");
    is_num(r.result.spread[METRIC_TCP_LAT], 500, "and how far it went up and down");
    w.u.m.name = "no_such";
    node_rail_take(&r, &w);
    w.u.m.name = "host_mem";
    node_rail_take(&r, &w);
    ok(1, "what is no metric of a pair is passed over");
}

static void test_orders(void)
{
    struct probe_wire w;
    conf.local = "10.0.0.5";
    node_pair_order(&conf, 3, NULL, "c01", &w);
    ok(!w.u.pair_order.guest && w.u.pair_order.rail == 3 && w.u.pair_order.bytes == 64u << 20 &&
           w.u.pair_order.count == 20 && strcmp(w.u.pair_order.local, "10.0.0.5") == 0,
       "the host end");
    conf.quick = true;
    conf.pair_bytes = 1u << 20;
    conf.pair_spend = EL_MS(100);
    node_pair_order(&conf, 0, "1.2.3.4:5:00", "c02", &w);
    ok(w.u.pair_order.guest && w.u.pair_order.bytes == 1u << 20 && w.u.pair_order.count == 5 &&
           w.u.pair_order.spend_ms == 100,
       "the guest end, smaller");
    ok(probe_node_pair_limit(false) > EL_MS(w.u.pair_order.limit_ms), "an end ends itself before it is killed");
}

static void test_ways(void)
{
    static const char *const wrong[] = {"",     "0",         "17",         "-1",
                                        "4x,",  ",eth0",     "eth0,,eth1", "a/b",
                                        "a b,", "eth0,eth0", "1,2,1",      "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"};
    struct probe_rails r = {.n = 0};
    struct el_err e = {0};
    struct probe_wire w;
    ok(probe_rails_parse("16", &r, &e) == 0 && r.n == 16 && !probe_rails_name(&r, 0), "so many connections");
    ok(probe_rails_parse("eth1,10.0.2.7", &r, &e) == 0 && r.n == 2, "or interfaces and addresses");
    is_str(probe_rails_name(&r, 1), "10.0.2.7", "each is known by its number");
    ok(!probe_rails_name(&r, 2) && !probe_rails_name(NULL, 0), "there are no others");
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ok(probe_rails_parse(wrong[i], &r, &e) < 0, wrong[i]);
    is_num(r.n, 2, "what is wrong changes nothing");
    conf.rails = &r;
    conf.local = "10.0.0.5";
    node_pair_order(&conf, 0, NULL, "c01", &w);
    is_str(w.u.pair_order.local, "eth1", "an end is bound to its rail's interface");
    node_pair_order(&conf, 2, NULL, "c01", &w);
    is_str(w.u.pair_order.local, "10.0.0.5", "and to the job's address where it has none of its own");
    conf.rails = NULL;
}

static enum finding_state finding_of(enum helper_role role, const char *class)
{
    struct node_job job = {.helper = true, .group = CHECK_GROUP_GPU, .role = role};
    struct wire_err err = {.stage = "x", .class = class, .text = "y", .name = "", .advice = ""};
    struct finding f = {0};
    return node_error_finding(&job, &err, &f) ? f.state : FINDING_OK;
}

static void test_errors(void)
{
    ok(finding_of(HELPER_NVML, "driver") == FINDING_BAD && finding_of(HELPER_BURN, "hardware") == FINDING_BAD,
       "a driver or a GPU that does not work makes a node bad");
    ok(finding_of(HELPER_BURN, "missing") == FINDING_BAD && finding_of(HELPER_BURN, "busy") == FINDING_BAD,
       "so does a GPU that no program can have");
    ok(finding_of(HELPER_BURN, "mismatch") == FINDING_UNDECIDED &&
           finding_of(HELPER_NICLOOP, "missing") == FINDING_UNDECIDED &&
           finding_of(HELPER_BURN, "stalled") == FINDING_UNDECIDED,
       "versions, a missing NCCL and a process that did not run do not");
    struct node_job job = {.group = CHECK_GROUP_DISK};
    struct finding f = {0};
    ok(!node_end_finding(&job, &(struct child_end){.outcome = STAGE_DONE}, false, UINT64_MAX, &f),
       "a check that ended");
    ok(!node_end_finding(&job, &(struct child_end){.outcome = STAGE_STOPPED}, false, UINT64_MAX, &f),
       "one that was stopped");
    ok(node_end_finding(&job, &(struct child_end){.outcome = STAGE_TIMEOUT, .state = 'D', .elapsed = EL_SEC(10)}, false,
                        UINT64_MAX, &f) &&
           f.check == CHECK_HANG && f.state == FINDING_BAD,
       "one that hangs in the kernel");
    ok(node_end_finding(&job, &(struct child_end){.outcome = STAGE_TIMEOUT, .state = 'R', .elapsed = EL_SEC(10)}, false,
                        20, &f) &&
           f.state == FINDING_UNDECIDED,
       "one that a quota kept from running");
    ok(node_end_finding(&job, &(struct child_end){.outcome = STAGE_STUCK, .elapsed = EL_SEC(20), .text = "in nfs_wait"},
                        false, UINT64_MAX, &f) &&
           f.state == FINDING_BAD && strstr(f.text, "nfs_wait"),
       "one that cannot be killed");
    ok(node_end_finding(&job, &(struct child_end){.outcome = STAGE_CRASHED, .signal = 11, .code = -1}, false,
                        UINT64_MAX, &f) &&
           f.check == CHECK_CRASH,
       "one that crashes");
}

static void test_found(void)
{
    static struct found a, b;
    struct el_buf one = EL_BUF_INIT(NULL, 0), two = EL_BUF_INIT(NULL, 0), why = EL_BUF_INIT(NULL, 0);
    struct el_err e = {0};
    struct finding f = finding_value(CHECK_SHM_SIZE, "", 64e6);
    check_conf_init(&checks);
    check_judge(&checks, &f);
    findings_put(&a.findings, &f);
    ok(!found_bad(&a, &why), "a warning is no reason against a node");
    f = finding_value(CHECK_GPU_ECC, "GPU 3", 2);
    check_judge(&checks, &f);
    findings_put(&a.findings, &f);
    facts_set(&a.facts, "kernel", "6.1 \"x\"");
    a.metric[0] = (struct found_metric){METRIC_HOST_MEM, 0, 12345};
    a.metrics = 1;
    ok(found_bad(&a, &why) && strstr(el_buf_cstr(&why), "gpu_ecc"), "an error of a GPU is, and it is named");
    for (unsigned i = 0; i < 3; i++) {
        f = finding_value(i == 1 ? CHECK_GPU_ECC : i ? CHECK_GPU_LOST : CHECK_GPU_REMAP, "GPU 1", 1);
        check_judge(&checks, &f);
        findings_put(&b.findings, &f);
    }
    why.len = 0;
    ok(found_bad(&b, &why), "three errors");
    is_str(el_buf_cstr(&why), "gpu_lost of GPU 1: 1, none expected; also gpu_remap, gpu_ecc", "... are all named");
    memset(&b, 0, sizeof b);
    ok(found_encode(&a, &one) == 0, "as lines");
    for (char *line = (char *)(uintptr_t)el_buf_cstr(&one), *end; (end = strchr(line, '\n')); line = end + 1) {
        struct probe_wire w;
        ok(wire_decode(line, (size_t)(end - line), &w, &e) == 0 && found_take(&b, &w), "one of them");
        wire_release(&w);
    }
    found_encode(&b, &two);
    is_str(el_buf_cstr(&two), el_buf_cstr(&one), "what was put together says the same");
    struct probe_wire w;
    wire_init(&w, WIRE_M);
    w.u.m.name = "burn";
    w.u.m.median = 1;
    for (int i = 0; i < 2 * FOUND_METRICS_MAX; i++) {
        w.u.m.rail = i;
        found_take(&b, &w);
    }
    is_num(b.metrics, FOUND_METRICS_MAX, "there is an end to what is kept");
    el_buf_free(&one);
    el_buf_free(&two);
    el_buf_free(&why);
}

int main(void)
{
    test_jobs();
    test_rails();
    test_parted();
    test_values();
    test_orders();
    test_ways();
    test_errors();
    test_found();
    return done();
}
