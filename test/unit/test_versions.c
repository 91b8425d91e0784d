/* Facts of nodes side by side. */
#include "probe/versions.h"

#include "lib/tap.h"

static struct facts node[40];
static const struct facts *nodes[40];
static char name[40][16];
static const char *names[40];

static void begin(void)
{
    memset(node, 0, sizeof node);
    for (int i = 0; i < 40; i++) {
        snprintf(name[i], sizeof name[i], "c%02d", i);
        names[i] = name[i];
        nodes[i] = &node[i];
        facts_set(&node[i], "nccl", "2.28.9");
        facts_set(&node[i], "kernel", "6.1.0");
    }
}

static const char *report(unsigned n)
{
    static char text[2048];
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    versions_report(nodes, names, n, &out);
    snprintf(text, sizeof text, "%s", el_buf_cstr(&out));
    el_buf_free(&out);
    return text;
}

int main(void)
{
    begin();
    is_str(report(8), "", "all alike");
    is_str(report(0), "", "nobody");
    facts_set(&node[3], "nccl", "2.27.5");
    is_str(report(8), "NCCL: 2.28.9 on 7 nodes, but 2.27.5 on c03\n", "the minority is named");
    is_str(report(2), "", "only those that are meant");
    facts_set(&node[5], "nccl", "2.27.5");
    facts_set(&node[6], "nccl", "2.30.7");
    is_str(report(8), "NCCL: 2.28.9 on 5 nodes, but 2.27.5 on c03, c05, 2.30.7 on c06\n", "two of them");
    begin();
    facts_set(&node[0], "nccl", "2.27.5");
    is_str(report(2), "NCCL: 2.27.5 on c00; 2.28.9 on c01\n", "of two, nobody is the minority");
    begin();
    facts_set(&node[1], "nccl", "");
    nodes[2] = NULL;
    is_str(report(4), "", "what is not known differs from nothing");
    begin();
    for (int i = 0; i < 12; i++)
        facts_set(&node[i], "kernel", "5.15.0");
    is_str(report(40), "kernel: 6.1.0 on 28 nodes, but 5.15.0 on c00, c01, c02, c03, c04, c05, c06, c07 and 4 more\n",
           "many are counted");
    begin();
    for (int i = 0; i < 40; i++)
        facts_set(&node[i], "cpu", name[i]);
    ok(strstr(report(40), "; something else on 24 more"), "values without end are counted");
    begin();
    facts_set(&node[2], "nccl_path", "/a/libnccl.so.2");
    facts_set(&node[1], "nccl_path", "/b/libnccl.so.2");
    is_str(report(4), "", "where a library lies is told, not compared");
    facts_set(&node[2], "memory_gib", "2015");
    facts_set(&node[1], "memory_gib", "2016");
    is_str(report(4), "", "sizes differ a little on any two hosts");
    ok(!facts_set(&node[0], "ncll", "1"), "a fact that is none");
    facts_set(&node[0], "cpu", "AMD \033[31mEPYC");
    is_str(node[0].v[FACT_CPU], "AMD ?[31mEPYC", "what steers a terminal is taken out");
    return done();
}
