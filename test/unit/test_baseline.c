/* Baselines: what was measured, on what. */
#include "probe/baseline.h"

#include "lib/tap.h"
#include "util/array.h"

static struct baseline b, c;

static const char *read_of(const char *text)
{
    static struct el_err e;
    e = (struct el_err){0};
    return baseline_decode(&c, text, strlen(text), &e) ? e.text : "";
}

static const char *fits(const char *fact, const char *value)
{
    static struct el_err e;
    static struct facts here;
    e = (struct el_err){0};
    here = b.facts;
    facts_set(&here, fact, value);
    return baseline_fits(&b, &here, &e) ? e.text : "";
}

static void begin(void)
{
    memset(&b, 0, sizeof b);
    facts_set(&b.facts, "cpu", "AMD \"EPYC\"");
    facts_set(&b.facts, "cores", "192");
    facts_set(&b.facts, "memory_gib", "2016");
    facts_set(&b.facts, "gpu_name", "NVIDIA H100 80GB HBM3");
    facts_set(&b.facts, "gpu_count", "8");
    facts_set(&b.facts, "ib_ports", "8");
    facts_set(&b.facts, "kernel", "6.1.0");
    b.milli[METRIC_HOST_MEM] = 312500;
    b.milli[METRIC_TCP_LAT] = 7;
    b.milli[METRIC_TCP_RETRANS] = 3000;
}

static void test_text(void)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    is_num(baseline_encode(&b, &out), 0, "written");
    is_str(read_of(el_buf_cstr(&out)), "", "and read");
    is_str(c.facts.v[FACT_CPU], "AMD \"EPYC\"", "the hardware");
    is_str(c.facts.v[FACT_KERNEL], "", "not the software");
    is_str(c.facts.v[FACT_IB_PORTS], "", "nor what may be down");
    is_num(c.milli[METRIC_HOST_MEM], 312500, "what it measured");
    is_num(c.milli[METRIC_TCP_LAT], 7, "to the thousandth");
    is_num(c.milli[METRIC_BURN], 0, "and what not");
    is_num(c.milli[METRIC_TCP_RETRANS], 0, "nor what nodes are not compared by");
    memset(&c, 0, sizeof c);
    out.len = 0;
    ok(baseline_encode(&c, &out) == 0 && !read_of(el_buf_cstr(&out))[0], "one of nothing");
    el_buf_free(&out);
}

static void test_hardware(void)
{
    is_str(fits("cores", "192"), "", "the same");
    is_str(fits("kernel", "5.15"), "", "another kernel is the same hardware");
    is_str(fits("memory_gib", "1980"), "", "a little less memory too");
    is_str(fits("ib_ports", "7"), "", "and a port that is down");
    is_str(fits("gpu_name", ""), "", "what is not known is not compared");
    is_str(fits("gpu_name", "NVIDIA A100"),
           "the baseline is of other hardware: GPU: NVIDIA H100 80GB HBM3 there, NVIDIA A100 here", "another GPU");
    is_str(fits("gpu_count", "4"), "the baseline is of other hardware: number of GPUs: 8 there, 4 here",
           "fewer of them");
    is_str(fits("memory_gib", "1900"), "the baseline is of other hardware: GiB of memory: 2016 there, 1900 here",
           "a twentieth less memory");
    is_str(fits("memory_gib", "1008"), "the baseline is of other hardware: GiB of memory: 2016 there, 1008 here",
           "half");
}

static void test_refused(void)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"{}", "not a baseline: `elrun probe --save-baseline=FILE` makes one"},
        {"[1]", "not a baseline: `elrun probe --save-baseline=FILE` makes one"},
        {"{\"baseline\":2,\"hardware\":{},\"metrics\":{}}", "a baseline of form 2; this elrun knows form 1"},
        {"{\"baseline\":1,\"hardware\":{\"cpu\":3},\"metrics\":{}}", "\"hardware\": every value is a string"},
        {"{\"baseline\":1,\"hardware\":{},\"metrics\":{\"cpu\":0}}", "\"metrics\": every value is a number above 0"},
        {"{\"baseline\":1,\"hardware\":{},\"metrics\":{\"cpu\":\"4\"}}",
         "\"metrics\": every value is a number above 0"},
        {"{\"a\":{\"b\":{\"c\":{}}}}", "more than a baseline can be"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        is_str(read_of(cases[i].text), cases[i].error, cases[i].text);
    ok(strstr(read_of("{"), "line 1: not JSON"), "torn");
    is_str(read_of("{\"baseline\":1,\"hardware\":{\"x\":\"y\"},\"metrics\":{\"newer\":1},\"z\":1}"), "",
           "what a newer version put in is passed over");
}

/* Two nodes say what they refer to. */
static void test_lines(void)
{
    uint32_t milli[METRIC_COUNT] = {[METRIC_HOST_MEM] = 300000, [METRIC_TCP_LAT] = 9};
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    struct probe_wire w;
    unsigned lines = 0;
    ok(baseline_lines(&b, &out) == 0, "lines for the coordinator");
    for (const char *at = el_buf_cstr(&out), *end; (end = strchr(at, '\n')); at = end + 1, lines++) {
        ok(wire_decode(at, (size_t)(end - at), &w, NULL) == 0 && baseline_take(&w, milli), "each is one");
        wire_release(&w);
    }
    is_num(lines, 3, "one for each metric");
    is_num(milli[METRIC_HOST_MEM], 300000, "of two bandwidths the lower one counts");
    is_num(milli[METRIC_TCP_LAT], 9, "of two latencies the higher");
    wire_init(&w, WIRE_FACT);
    w.u.fact = (struct wire_fact){"reference_host_mem", "250000"};
    ok(baseline_take(&w, milli) && milli[METRIC_HOST_MEM] == 250000, "also if it is told later");
    w.u.fact = (struct wire_fact){"reference_burn", "0"};
    ok(baseline_take(&w, milli) && !milli[METRIC_BURN], "nonsense is nothing");
    w.u.fact = (struct wire_fact){"kernel", "6.1"};
    ok(!baseline_take(&w, milli), "another line");
    el_buf_free(&out);
}

int main(void)
{
    begin();
    test_text();
    test_hardware();
    test_refused();
    test_lines();
    return done();
}
