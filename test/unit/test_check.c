/* The table of single-node checks, and how values become findings. */
#include "probe/check.h"

#include "lib/tap.h"

static struct checking c;

static void test_table(void)
{
    unsigned seen[CHECK_GROUPS] = {0};
    int twice = 0, bare = 0;
    for (int i = 0; i < CHECKS; i++) {
        seen[check_rows[i].group]++;
        twice += check_find(check_rows[i].name) != i;
        twice += check_find_group(check_rows[i].name) >= 0;
        bare += !check_rows[i].what[0] || !check_rows[i].advice[0];
        bare += check_rows[i].advice[strlen(check_rows[i].advice) - 1] == '.';
        if (check_rows[i].rule == CHECK_GROWS && !check_groups[check_rows[i].group].again) {
            printf("# %s\n", check_rows[i].name);
            bare++;
        }
    }
    is_num(twice, 0, "every check has a name of its own, which no group has");
    is_num(bare, 0, "every check has words and advice, and counters are read twice");
    int empty = 0;
    for (int g = 0; g < CHECK_GROUPS; g++)
        empty += !seen[g];
    is_num(empty, 0, "every group has a check");
    is_num(check_find("ib-link-downed"), CHECK_IB_LINK_DOWNED, "a dash may stand for the line");
    is_num(check_find("ib_link"), -1, "half a name is none");
    is_num(check_find_group("ethernet"), CHECK_GROUP_ETHERNET, "groups have names");
    is_str(check_nearest("nofiles"), "nofile", "what was probably meant");
    is_str(check_nearest("ethernt"), "ethernet", "of groups too");
}

static enum finding_state judged(enum check check, double value, double own)
{
    struct finding f = finding_value(check, "x", value);
    f.limit = own;
    check_judge(&c.conf, &f);
    return f.state;
}

static void test_judge(void)
{
    check_conf_init(&c.conf);
    is_num(judged(CHECK_NOFILE, 65536, 0), FINDING_OK, "at the limit is right");
    is_num(judged(CHECK_NOFILE, 65535, 0), FINDING_WARN, "below it is not");
    is_num(judged(CHECK_GPU_ECC, 0, 0), FINDING_OK, "not above");
    is_num(judged(CHECK_GPU_ECC, 1, 0), FINDING_BAD, "above");
    is_num(judged(CHECK_GPU_PCIE, 8, 16), FINDING_BAD, "a device's own limit");
    is_num(judged(CHECK_GPU_PCIE, 16, 16), FINDING_OK, "reached");
    is_num(judged(CHECK_GPU_TEMPERATURE, 50, CHECK_OWN), FINDING_OK, "a limit that nobody knows is not passed");
    c.conf.own[CHECK_GPU_PCIE] = false;
    c.conf.limit[CHECK_GPU_PCIE] = 4;
    c.conf.severity[CHECK_NOFILE] = FINDING_INFO;
    is_num(judged(CHECK_GPU_PCIE, 8, 16), FINDING_OK, "a limit of the user is put in its place");
    is_num(judged(CHECK_NOFILE, 1, 0), FINDING_INFO, "a severity of the user");
    struct finding f = finding_unchecked(CHECK_GPU_ECC, "GPU 1", "cannot be read: %s", "\033[31mno");
    check_judge(&c.conf, &f);
    is_num(f.state, FINDING_UNCHECKED, "what was not checked stays so");
    is_str(f.text, "cannot be read: ?[31mno", "and says why, without what steers a terminal");
    f = finding_unchecked(CHECK_IB_PORTS, "", "no InfiniBand");
    f.has_value = true;
    check_judge(&c.conf, &f);
    is_num(f.state, FINDING_UNCHECKED, "what does not exist here stays unchecked");
    c.conf.limit[CHECK_IB_PORTS] = 2;
    check_judge(&c.conf, &f);
    is_num(f.state, FINDING_BAD, "unless some are wanted");
}

static void test_counters(void)
{
    memset(&c, 0, sizeof c);
    check_conf_init(&c.conf);
    checking_take(&c, false, finding_value(CHECK_IB_LINK_DOWNED, "mlx5_0/1", 7));
    checking_take(&c, false, finding_value(CHECK_IB_LINK_DOWNED, "mlx5_1/1", 900));
    checking_take(&c, false, finding_value(CHECK_IB_STATE, "mlx5_1/1", 4));
    is_num(c.findings.n, 1, "counters of the first look are only noted");
    checking_take(&c, true, finding_value(CHECK_IB_LINK_DOWNED, "mlx5_0/1", 9));
    checking_take(&c, true, finding_value(CHECK_IB_LINK_DOWNED, "mlx5_1/1", 900));
    checking_take(&c, true, finding_value(CHECK_IB_LINK_DOWNED, "mlx5_2/1", 4));
    is_num(c.findings.v[1].value, 2, "what it grew");
    is_num(c.findings.v[1].state, FINDING_BAD, "is judged");
    is_num(c.findings.v[2].state, FINDING_OK, "a large number that does not grow is the past");
    is_str(c.findings.v[2].on, "", "and said once for all that stand still");
    is_num(c.findings.v[3].state, FINDING_UNCHECKED, "a port that came in between has no beginning");
    checking_take(&c, true, finding_value(CHECK_IB_LINK_DOWNED, "mlx5_1/1", 3));
    is_num(c.findings.v[4].state, FINDING_UNCHECKED, "nor has one that was set back");
    checking_take(&c, true, finding_value(CHECK_IB_STATE, "mlx5_1/1", 1));
    is_num(c.findings.v[0].state, FINDING_WARN, "of two looks the graver counts");
    checking_take(&c, true, finding_value(CHECK_IB_STATE, "mlx5_1/1", 4));
    is_num(c.findings.v[0].state, FINDING_WARN, "whatever comes after");
    is_num(findings_worst(&c.findings), FINDING_BAD, "the worst of all");
    c.conf.on[CHECK_NOFILE] = false;
    unsigned n = c.findings.n;
    checking_take(&c, true, finding_value(CHECK_NOFILE, "", 1));
    is_num(c.findings.n, n, "what is not looked for is dropped");
}

static void test_full(void)
{
    char on[FINDING_ON_MAX];
    memset(&c, 0, sizeof c);
    check_conf_init(&c.conf);
    for (int i = 0; i < FINDINGS_MAX + 10; i++) {
        snprintf(on, sizeof on, "port %d", i);
        checking_take(&c, false, finding_value(CHECK_IB_STATE, on, 4));
    }
    checking_take(&c, false, finding_value(CHECK_GPU_LOST, "GPU 3", 1));
    is_num(c.findings.n, FINDINGS_MAX, "no more than there is room for");
    is_num(c.findings.left_out, 11, "the rest is counted");
    is_num(findings_worst(&c.findings), FINDING_BAD, "a grave one takes the place of a harmless one");
    for (int i = 0; i < CHECK_COUNTS_MAX + 5; i++) {
        snprintf(on, sizeof on, "port %d", i);
        checking_take(&c, false, finding_value(CHECK_IB_LINK_DOWNED, on, 0));
    }
    is_num(c.before.n, CHECK_COUNTS_MAX, "nor counters");
    is_num(c.before.left_out, 5, "the rest is counted too");
}

static void test_ends(void)
{
    struct finding f;
    check_hung(CHECK_GROUP_DISK, 10, 'D', UINT64_MAX, &f);
    is_num(f.state, FINDING_BAD, "a check that waits in the kernel is a finding");
    check_hung(CHECK_GROUP_SPEED, 10, 'R', UINT64_MAX, &f);
    is_num(f.state, FINDING_UNDECIDED, "one that was running says nothing about the node");
    check_hung(CHECK_GROUP_SPEED, 10, 'S', 20, &f);
    is_num(f.state, FINDING_UNDECIDED, "nor one that may not run");
    is_str(f.text, "did not end in 10 s: its cgroup allows it 2 % of one processor", "which is said");
    check_crashed(CHECK_GROUP_PCI, 11, 0, &f);
    is_num(f.state, FINDING_UNDECIDED, "nor one that crashed");
    is_str(f.on, "pci", "and which it was");
}

static void test_metric(void)
{
    struct finding f;
    check_conf_init(&c.conf);
    ok(!check_metric(&c.conf, METRIC_BURN, 3, 40000, &f), "a speed without a limit");
    c.conf.metric_milli[METRIC_BURN] = 50000;
    ok(check_metric(&c.conf, METRIC_BURN, 3, 50000, &f) && f.state == FINDING_OK, "with one that it holds");
    ok(check_metric(&c.conf, METRIC_BURN, 3, 40000, &f) && f.state == FINDING_BAD, "or does not");
    is_str(f.on, "burn, GPU 3", "of which GPU");
    is_str(f.text, "GPU arithmetic is 40.0 TFLOP/s, at least 50.0 TFLOP/s is wanted", "and what it is");
    ok(!check_metric(&c.conf, METRIC_BURN, 3, 0, &f), "what was not measured is not slow");
}

static const char *text_of(struct finding f)
{
    static char text[512];
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    check_judge(&c.conf, &f);
    finding_text(&f, &out);
    snprintf(text, sizeof text, "%s", el_buf_cstr(&out));
    el_buf_free(&out);
    return text;
}

static void test_text(void)
{
    check_conf_init(&c.conf);
    struct finding f = finding_value(CHECK_IB_STATE, "mlx5_0/1", 1);
    finding_say(&f, "1: DOWN");
    is_str(text_of(f), "ib_state of mlx5_0/1: 1, at least 4 expected (1: DOWN)", "a port");
    is_str(text_of(finding_value(CHECK_SHM_SIZE, "", 67108864)), "shm_size: 64 MiB, at least 1.0 GiB expected",
           "bytes");
    is_str(text_of(finding_value(CHECK_SHM_SIZE, "", 68719476736.0)), "shm_size: 64 GiB", "nothing wrong");
    is_str(text_of(finding_value(CHECK_MEMLOCK, "", 65536)), "memlock: 64 KiB, unlimited expected", "a limit");
    is_str(text_of(finding_value(CHECK_MEMLOCK, "", CHECK_UNLIMITED)), "memlock: unlimited", "none");
    is_str(text_of(finding_value(CHECK_CLOCK_SYNC, "", 0)), "clock_synchronised: no, yes expected", "yes or no");
    is_str(text_of(finding_value(CHECK_NUMA_BALANCING, "", 1)), "numa_balancing: yes, no expected", "no or yes");
    is_str(text_of(finding_value(CHECK_GPU_ECC, "GPU 1", 3)), "gpu_ecc of GPU 1: 3, none expected", "a count");
    is_str(text_of(finding_value(CHECK_DISK_WRITE, "/ckpt", 7.25)), "disk_write of /ckpt: 7.2 s, at most 5 s expected",
           "a time");
    is_str(text_of(finding_unchecked(CHECK_EDAC_CORRECTED, "", "no EDAC driver")),
           "edac_corrected: not checked: no EDAC driver", "not checked");
}

int main(void)
{
    test_table();
    test_judge();
    test_counters();
    test_full();
    test_ends();
    test_metric();
    test_text();
    return done();
}
