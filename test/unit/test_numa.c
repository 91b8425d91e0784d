#include "sys/numa.h"

#include "lib/tap.h"
#include "util/scan.h"

static struct numa_host host;

static const char *const modes[] = {
    [NUMA_OFF] = "off",
    [NUMA_NODE] = "node",
    [NUMA_SOCKET] = "socket",
    [NUMA_EXCLUSIVE] = "exclusive",
    [NUMA_CORE_COMPLEX] = "core-complex",
};

/* "C cpu siblings package type:level:list …" */
static int golden_cpu(char *line)
{
    int bad = 0;
    unsigned cpu = (unsigned)atoi(strtok(line, " "));
    bad |= numa_host_core(&host, cpu, strtok(NULL, " "));
    bad |= numa_host_package(&host, cpu, strtok(NULL, " "));
    for (char *c; (c = strtok(NULL, " "));) {
        char *level = strchr(c, ':'), *list = strchr(level + 1, ':');
        *level++ = *list++ = 0;
        bad |= numa_host_cache(&host, cpu, c, level, list);
    }
    return bad;
}

/* "gpu mode cpus" */
static int golden_answer(char *line)
{
    unsigned gpu = (unsigned)atoi(strtok(line, " "));
    const char *name = strtok(NULL, " "), *want = strtok(NULL, " ");
    int mode = NUMA_NODE;
    while (mode < NUMA_CORE_COMPLEX && strcmp(modes[mode], name) != 0)
        mode++;
    static struct numa_plan plan;
    char got[4096] = "-";
    struct el_err e = {0};
    if (numa_plan(&host, (enum numa_mode)mode, gpu, &plan, &e) == 0)
        numa_set_print(&plan.cpus, got, sizeof got);
    else if (e.status != EL_EXIT_CONFIG || !e.text[0])
        snprintf(got, sizeof got, "no error");
    if (strcmp(got, want) == 0)
        return 0;
    printf("# gpu %u, %s: got %s, torch says %s\n", gpu, name, got, want);
    return 1;
}

static int golden_line(char *line)
{
    line[strcspn(line, "\n")] = 0;
    char *rest = line + 2;
    switch (line[0]) {
    case 'N': return numa_host_node(&host, (unsigned)atoi(rest), strchr(rest, ' ') + 1);
    case 'C': return golden_cpu(rest);
    case 'A': return numa_set_parse(&host.allowed, rest);
    case 'G': {
        unsigned gpu = 0;
        for (char *n = strtok(rest, " "); n; n = strtok(NULL, " "))
            if (numa_host_gpu(&host, gpu++, n))
                return 1;
        return 0;
    }
    case 'R': return golden_answer(rest);
    default: return line[0] != '#';
    }
}

static void test_golden(void)
{
    FILE *f = fopen("test/data/numa_golden.txt", "r");
    if (!ok(f, "the table of cases is there"))
        return;
    static char line[8192], name[128];
    int bad = 0, answers = 0;
    while (fgets(line, sizeof line, f)) {
        if (line[0] != 'T') {
            answers += line[0] == 'R';
            bad += golden_line(line) != 0;
            continue;
        }
        if (name[0])
            is_num(bad, 0, name);
        bad = 0;
        scan_line(line + 2, name, sizeof name);
        numa_host_init(&host);
    }
    is_num(bad, 0, name);
    ok(answers > 200, "there were answers to compare");
    fclose(f);
}

static void test_set(void)
{
    static struct numa_set s;
    char text[64];
    ok(numa_set_parse(&s, "0-2,4,6-7\n") == 0, "a list of the kernel");
    numa_set_print(&s, text, sizeof text);
    is_str(text, "0-2,4,6-7", "and back");
    is_num(numa_set_count(&s), 6, "counted");
    ok(numa_set_parse(&s, "\n") == 0 && numa_set_first(&s) == -1, "a node without CPUs has an empty line");
    ok(numa_set_parse(&s, "8191") == 0 && numa_set_has(&s, 8191), "the highest number");
    static const char *const bad[] = {"8192", "1-",  "-1", "2-1", "1,,2", "1,", "a", "1 2", "99999999999999999999",
                                      "0x1",  "1\n2"};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        is_num(numa_set_parse(&s, bad[i]), -1, "not a list");
    memset(&s, 0, sizeof s);
    for (unsigned i = 0; i < 200; i += 2)
        numa_set_add(&s, i);
    numa_set_print(&s, text, sizeof text);
    is_str(text + strlen(text) - 3, "...", "a long list is cut");
    memset(&s, 0xff, sizeof s);
    numa_set_print(&s, text, sizeof text);
    is_str(text, "0-8191", "a full set ends at its end");
}

static void small_host(void)
{
    numa_host_init(&host);
    numa_host_node(&host, 0, "0-1\n");
    numa_host_node(&host, 1, "2-3\n");
    numa_host_node(&host, 2, "\n");
    numa_set_parse(&host.allowed, "0-3");
    for (unsigned cpu = 0; cpu < 4; cpu++)
        numa_host_package(&host, cpu, "0\n");
}

static void test_edges(void)
{
    static struct numa_plan plan;
    struct el_err e = {0};
    small_host();
    ok(numa_plan(&host, NUMA_NODE, 0, &plan, &e) == -1 && e.status == EL_EXIT_CONFIG, "no GPU: refused");
    is_str(e.text, "--numa-binding: there is no GPU for local rank 0 (this host shows 0)", "and named");
    numa_host_gpu(&host, 0, "1\n");
    ok(numa_plan(&host, NUMA_SOCKET, 0, &plan, NULL) == 0 && numa_set_count(&plan.cpus) == 4,
       "a node without CPUs does not break the socket (torch raises here)");
    is_num(plan.nodes[0], 3, "memory of both nodes");
    is_num(plan.node_count, 2, "counted");
    ok(numa_plan(&host, NUMA_NODE, 0, &plan, NULL) == 0 && plan.nodes[0] == 2, "memory of the GPU's node");
    e = (struct el_err){0};
    ok(numa_plan(&host, NUMA_EXCLUSIVE, 0, &plan, &e) == -1 && strstr(e.text, "share a core"), e.text);
    e = (struct el_err){0};
    ok(numa_plan(&host, NUMA_CORE_COMPLEX, 0, &plan, &e) == -1 && strstr(e.text, "share a cache"), e.text);
    numa_host_gpu(&host, 1, "7\n");
    e = (struct el_err){0};
    ok(numa_plan(&host, NUMA_NODE, 1, &plan, &e) == -1 && strstr(e.text, "NUMA node 7"), e.text);
    ok(numa_host_gpu(&host, NUMA_GPUS_MAX, "0") == -1 && numa_host_gpu(&host, 2, "x") == -1 &&
           numa_host_gpu(&host, 2, "1024") == -1,
       "bad GPU texts are refused");
    ok(numa_host_node(&host, NUMA_NODES_MAX, "0") == -1 && numa_host_core(&host, NUMA_CPUS_MAX, "0") == -1 &&
           numa_host_core(&host, 0, "") == -1 && numa_host_package(&host, 0, "x") == -1 &&
           numa_host_cache(&host, 0, "Unified", "x", "0") == -1 && numa_host_cache(&host, 0, "Data", "1", "") == -1,
       "bad texts are refused");
}

int main(void)
{
    test_set();
    test_golden();
    test_edges();
    return done();
}
