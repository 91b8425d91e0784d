/* The collectors over a made-up /proc, /sys and /dev. */
#include "probe/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tap.h"
#include "probe/facts.h"
#include "util/array.h"

static char root[] = "/tmp/test_collect.XXXXXX";
static struct checking all;
static struct facts facts;
static unsigned metrics;
static bool last;

/* --- the tree ----------------------------------------------------------------------------------------------------- */

static void make_folders(char *path)
{
    for (char *slash = strchr(path + sizeof root - 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
}

static void __attribute__((format(printf, 2, 3))) put(const char *text, const char *fmt, ...)
{
    char path[PATH_MAX];
    va_list ap;
    int n = snprintf(path, sizeof path, "%s", root);
    va_start(ap, fmt);
    vsnprintf(path + n, sizeof path - (size_t)n, fmt, ap);
    va_end(ap);
    make_folders(path);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f)) {
        printf("Bail out! %s: %s\n", path, strerror(errno));
        exit(1);
    }
}

static void folder(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s/", root, name);
    make_folders(path);
}

static void symlink_to(const char *target, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", root, name);
    make_folders(path);
    symlink(target, path);
}

static void drop(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", root, name);
    unlink(path);
}

/* --- what comes out ----------------------------------------------------------------------------------------------- */

static void on_finding(void *ctx, const struct finding *f)
{
    (void)ctx;
    checking_take(&all, last, *f);
}

static void on_fact(void *ctx, const char *name, const char *value)
{
    (void)ctx;
    ok(facts_set(&facts, name, value), "a fact that is known");
}

static void on_metric(void *ctx, const struct collect_metric *m)
{
    (void)ctx;
    metrics += m->min > 0 && m->min <= m->median && m->median <= m->p95;
}

static const struct collect ask = {.root = root, .finding = on_finding, .fact = on_fact, .metric = on_metric};

static void begin(void)
{
    memset(&all, 0, sizeof all);
    memset(&facts, 0, sizeof facts);
    check_conf_init(&all.conf);
    last = false;
}

/* "STATE TEXT" of the finding, "" if there is none. */
static const char *found(enum check check, const char *on)
{
    static char text[512];
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    text[0] = 0;
    for (unsigned i = 0; i < all.findings.n; i++) {
        const struct finding *f = &all.findings.v[i];
        if (f->check != check || strcmp(f->on, on) != 0)
            continue;
        finding_text(f, &out);
        snprintf(text, sizeof text, "%s: %s", finding_state_name(f->state), el_buf_cstr(&out));
    }
    el_buf_free(&out);
    return text;
}

/* --- InfiniBand --------------------------------------------------------------------------------------------------- */

#define IB "/sys/class/infiniband/"

static void port(const char *name, const char *state, const char *phys, const char *rate, const char *layer)
{
    put(state, IB "%s/state", name);
    put(phys, IB "%s/phys_state", name);
    put(rate, IB "%s/rate", name);
    put(layer, IB "%s/link_layer", name);
    put("5\n", IB "%s/counters/link_downed", name);
    put("100\n", IB "%s/counters/symbol_error", name);
    put("7\n", IB "%s/hw_counters/local_ack_timeout_err", name);
}

static void test_infiniband(void)
{
    begin();
    collect_infiniband(&ask);
    is_str(found(CHECK_IB_PORTS, ""), "unchecked: ib_ports: not checked: this host has no InfiniBand or RoCE device",
           "none is no fault");
    begin();
    all.conf.limit[CHECK_IB_PORTS] = 8;
    collect_infiniband(&ask);
    is_str(found(CHECK_IB_PORTS, ""),
           "bad: ib_ports: 0, at least 8 expected (this host has no InfiniBand or RoCE device)",
           "but where some are wanted");
    port("mlx5_0/ports/1", "4: ACTIVE\n", "5: LinkUp\n", "400 Gb/sec (4X NDR)\n", "InfiniBand\n");
    port("mlx5_1/ports/1", "1: DOWN\n", "2: Polling\n", "2.5 Gb/sec (1X SDR)\n", "InfiniBand\n");
    port("mlx5_2/ports/1", "1: DOWN\n", "3: Disabled\n", "2.5 Gb/sec (1X SDR)\n", "InfiniBand\n");
    port("mlx5_3/ports/1", "4: ACTIVE\n", "5: LinkUp\n", "100 Gb/sec (1X NDR)\n", "InfiniBand\n");
    port("mlx5_4/ports/1", "4: ACTIVE\n", "5: LinkUp\n", "25 Gb/sec (1X EDR)\n", "Ethernet\n");
    put("28.39.1002\n", IB "mlx5_0/fw_ver");
    put("28.39.1002\n", IB "mlx5_1/fw_ver");
    put("28.36.0\n", IB "mlx5_3/fw_ver");
    begin();
    all.conf.limit[CHECK_IB_RATE] = 400;
    all.conf.limit[CHECK_IB_PORTS] = 8;
    collect_infiniband(&ask);
    is_str(found(CHECK_IB_STATE, "mlx5_0/1"), "ok: ib_state of mlx5_0/1: 4 (4: ACTIVE, link 5: LinkUp)", "a good port");
    is_str(found(CHECK_IB_STATE, "mlx5_1/1"),
           "warn: ib_state of mlx5_1/1: 1, at least 4 expected (1: DOWN, link 2: Polling)", "one that is down");
    is_str(found(CHECK_IB_STATE, "mlx5_2/1"), "unchecked: ib_state of mlx5_2/1: not checked: it is switched off",
           "one that is switched off");
    is_str(found(CHECK_IB_LANES, "mlx5_3/1"),
           "bad: ib_lanes of mlx5_3/1: 1 lanes, at least 2 lanes expected (100 Gb/sec (1X NDR))", "one lane");
    is_str(found(CHECK_IB_LANES, "mlx5_4/1"), "", "which is usual with RoCE");
    is_str(found(CHECK_IB_RATE, "mlx5_0/1"), "ok: ib_rate of mlx5_0/1: 400 Gb/s (400 Gb/sec (4X NDR))", "a rate");
    is_str(found(CHECK_IB_RATE, "mlx5_3/1"),
           "bad: ib_rate of mlx5_3/1: 100 Gb/s, at least 400 Gb/s expected (100 Gb/sec (1X NDR))", "that is too low");
    is_str(found(CHECK_IB_RATE, "mlx5_1/1"), "", "a port that is down has none");
    is_str(found(CHECK_IB_PORTS, ""), "bad: ib_ports: 3, at least 8 expected", "fewer than there should be");
    is_str(facts.v[FACT_IB_PORTS], "3", "for comparison");
    is_str(facts.v[FACT_IB_FIRMWARE], "28.39.1002, 28.36.0", "with the firmware");
    last = true;
    put("6\n", IB "mlx5_3/ports/1/counters/link_downed");
    put("105\n", IB "mlx5_0/ports/1/counters/symbol_error");
    put("107\n", IB "mlx5_0/ports/1/hw_counters/local_ack_timeout_err");
    collect_infiniband(&ask);
    is_str(found(CHECK_IB_LINK_DOWNED, "mlx5_3/1"),
           "bad: ib_link_downed of mlx5_3/1: grew by 1 while the probe ran, none expected", "it flapped");
    is_str(found(CHECK_IB_LINK_DOWNED, ""), "ok: ib_link_downed: did not grow while the probe ran",
           "the others did not");
    is_str(found(CHECK_IB_SYMBOL_ERRORS, ""), "ok: ib_symbol_errors: did not grow while the probe ran",
           "a few of these are allowed");
    is_str(found(CHECK_IB_ACK_TIMEOUTS, "mlx5_0/1"),
           "warn: ib_ack_timeouts of mlx5_0/1: grew by 100 while the probe ran, at most 10 expected",
           "not so many of those");
}

/* --- interfaces --------------------------------------------------------------------------------------------------- */

static void interface(const char *name, bool card, const char *flags, const char *state, const char *speed)
{
    if (card)
        put("", "/sys/class/net/%s/device/x", name);
    put(flags, "/sys/class/net/%s/flags", name);
    put(state, "/sys/class/net/%s/operstate", name);
    put(speed, "/sys/class/net/%s/speed", name);
    put("2\n", "/sys/class/net/%s/carrier_changes", name);
    put("4\n", "/sys/class/net/%s/ifindex", name);
    put("4\n", "/sys/class/net/%s/iflink", name);
}

static void test_ethernet(void)
{
    begin();
    collect_ethernet(&ask);
    is_str(found(CHECK_ETH_STATE, ""), "unchecked: eth_state: not checked: /sys/class/net cannot be read", "no sysfs");
    interface("lo", false, "0x9\n", "unknown\n", "");
    interface("docker0", false, "0x1003\n", "down\n", "-1\n");
    interface("eth0", false, "0x1003\n", "up\n", "10000\n");
    put("9\n", "/sys/class/net/eth0/iflink");
    begin();
    collect_ethernet(&ask);
    is_str(found(CHECK_ETH_STATE, "eth0"), "ok: eth_state of eth0: yes (up)", "a container has virtual ones only");
    is_str(found(CHECK_ETH_STATE, "docker0"), "", "a bridge without anybody is down, as it should be");
    is_str(facts.v[FACT_NIC], "", "neither is a card");
    interface("ens1", true, "0x1003\n", "up\n", "100000\n");
    interface("ens2", true, "0x1003\n", "up\n", "100000\n");
    interface("ens3", true, "0x1003\n", "up\n", "1000\n");
    interface("ens4", true, "0x1003\n", "down\n", "-1\n");
    interface("ens5", true, "0x1002\n", "down\n", "-1\n");
    begin();
    all.conf.limit[CHECK_ETH_SPEED] = 10000;
    collect_ethernet(&ask);
    is_str(found(CHECK_ETH_STATE, "eth0"), "", "beside cards they do not count");
    is_str(found(CHECK_ETH_STATE, "ens4"), "info: eth_state of ens4: no, yes expected (down)", "no carrier");
    is_str(found(CHECK_ETH_STATE, "ens5"), "", "switched off");
    is_str(found(CHECK_ETH_SPEED, "ens3"), "bad: eth_speed of ens3: 1000 Mb/s, at least 10000 Mb/s expected", "slow");
    is_str(facts.v[FACT_NIC], "2 x 100000 Mb/s, 1 x 1000 Mb/s", "the cards for comparison");
    last = true;
    put("4\n", "/sys/class/net/ens2/carrier_changes");
    collect_ethernet(&ask);
    is_str(found(CHECK_ETH_FLAPS, "ens2"), "warn: eth_flaps of ens2: grew by 2 while the probe ran, none expected",
           "the carrier came and went");
}

/* --- PCI ---------------------------------------------------------------------------------------------------------- */

static void device(const char *where, const char *class, const char *now, const char *most)
{
    put(class, "%s/class", where);
    put(now, "%s/current_link_width", where);
    put(most, "%s/max_link_width", where);
    put("TOTAL_ERR_FATAL 0\n", "%s/aer_dev_fatal", where);
    put("TLP 0\nTOTAL_ERR_NONFATAL 3\n", "%s/aer_dev_nonfatal", where);
}

static void test_pci(void)
{
    begin();
    collect_pci(&ask);
    is_str(found(CHECK_PCI_WIDTH, ""), "unchecked: pci_width: not checked: /sys/bus/pci/devices cannot be read",
           "no PCI");
    device("/sys/devices/pci0000:00/0000:00:01.0", "0x060400\n", "8\n", "8\n");
    device("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0", "0x020000\n", "8\n", "16\n");
    device("/sys/devices/pci0000:00/0000:00:02.0", "0x060400\n", "8\n", "16\n");
    device("/sys/devices/pci0000:00/0000:00:02.0/0000:02:00.0", "0x020700\n", "8\n", "16\n");
    device("/sys/devices/pci0000:00/0000:00:03.0", "0x0c0330\n", "1\n", "16\n");
    symlink_to("../../../devices/pci0000:00/0000:00:01.0", "/sys/bus/pci/devices/0000:00:01.0");
    symlink_to("../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0", "/sys/bus/pci/devices/0000:01:00.0");
    symlink_to("../../../devices/pci0000:00/0000:00:02.0/0000:02:00.0", "/sys/bus/pci/devices/0000:02:00.0");
    symlink_to("../../../devices/pci0000:00/0000:00:03.0", "/sys/bus/pci/devices/0000:00:03.0");
    begin();
    collect_pci(&ask);
    is_str(found(CHECK_PCI_WIDTH, "0000:01:00.0"), "ok: pci_width of 0000:01:00.0: 8 lanes", "what the slot can");
    is_str(found(CHECK_PCI_WIDTH, "0000:02:00.0"),
           "warn: pci_width of 0000:02:00.0: 8 lanes, at least 16 lanes expected", "less than both can");
    is_str(found(CHECK_PCI_WIDTH, "0000:00:03.0"), "", "USB is nobody's matter");
    last = true;
    put("TOTAL_ERR_FATAL 1\n", "/sys/devices/pci0000:00/0000:00:01.0/aer_dev_fatal");
    collect_pci(&ask);
    is_str(found(CHECK_PCI_FATAL, "0000:00:01.0"),
           "bad: pci_fatal_errors of 0000:00:01.0: grew by 1 while the probe ran, none expected",
           "an error while the probe ran");
    is_str(found(CHECK_PCI_NONFATAL, ""), "ok: pci_nonfatal_errors: did not grow while the probe ran",
           "old ones are the past");
}

/* --- the host ----------------------------------------------------------------------------------------------------- */

static void test_memory(void)
{
    begin();
    collect_memory(&ask);
    is_str(found(CHECK_MEMORY_FREE, ""), "unchecked: memory_free: not checked: /proc/meminfo cannot be read",
           "no /proc");
    is_str(found(CHECK_SHM_SIZE, ""), "warn: shm_size: 0 bytes, at least 1.0 GiB expected (there is no /dev/shm)",
           "no shared memory");
    put("MemTotal: 2113929216 kB\nMemAvailable: 105696460 kB\nSwapTotal: 8388608 kB\nSwapFree: 2097152 kB\n",
        "/proc/meminfo");
    put("0-1\n", "/sys/devices/system/node/online");
    put("1\n", "/proc/sys/kernel/numa_balancing");
    folder("/dev/shm");
    begin();
    all.conf.limit[CHECK_SHM_SIZE] = 1;
    collect_memory(&ask);
    is_str(found(CHECK_MEMORY_FREE, ""), "warn: memory_free: 5.0 %, at least 10 % expected", "little memory");
    is_str(found(CHECK_SWAP_USED, ""), "warn: swap_used: 6.0 GiB, at most 1.0 GiB expected", "it swaps");
    is_str(found(CHECK_NUMA_BALANCING, ""), "info: numa_balancing: yes, no expected", "pages that move");
    is_str(facts.v[FACT_MEMORY], "2016", "memory for comparison");
    ok(strncmp(found(CHECK_SHM_SIZE, ""), "ok: ", 4) == 0, "shared memory");
}

static void test_limits(void)
{
    struct rlimit old, r;
    getrlimit(RLIMIT_NOFILE, &old);
    r = (struct rlimit){.rlim_cur = 256, .rlim_max = 1024};
    begin();
    pid_t child = fork();
    if (child == 0) { /* a hard limit does not come back */
        setrlimit(RLIMIT_NOFILE, &r);
        setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){65536, 65536});
        collect_limits(&ask);
        int good = strcmp(found(CHECK_NOFILE, ""), "warn: nofile: 1024, at least 65536 expected") == 0;
        good &= strcmp(found(CHECK_MEMLOCK, ""), "warn: memlock: 64 KiB, unlimited expected") == 0;
        _exit(good ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    is_num(status, 0, "hard limits, of locked memory because there is InfiniBand");
}

static void process(int pid, int ppid, const char *name, char state)
{
    char text[256];
    snprintf(text, sizeof text,
             "%d (%s) %c %d %d %d 0 -1 0 0 0 0 0 10 5 0 0 20 0 1 0 777 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n",
             pid, name, state, ppid, pid, pid);
    put(text, "/proc/%d/stat", pid);
}

static void test_processes(void)
{
    process(1, 0, "init", 'S');
    process(2, 0, "kthreadd", 'S');
    process(30, 2, "kworker/0:1", 'D');
    for (int i = 0; i < 21; i++)
        process(100 + i, 1, "python", 'Z');
    begin();
    collect_processes(&ask);
    is_str(found(CHECK_ZOMBIES, ""), "warn: zombies: 21, at most 20 expected", "nobody waits for them");
    is_str(found(CHECK_STUCK, ""), "ok: stuck_processes: 0", "a thread of the kernel may wait there");
    process(200, 1, "python3", 'D');
    begin();
    collect_processes(&ask);
    is_str(found(CHECK_STUCK, ""), "warn: stuck_processes: 1, none expected (python3, process 200)",
           "a process may not");
}

static void test_system(void)
{
    put("6.1.0-18-amd64\n", "/proc/sys/kernel/osrelease");
    put("processor\t: 0\nmodel name\t: AMD EPYC 9654 96-Core Processor\n", "/proc/cpuinfo");
    put("0-191\n", "/sys/devices/system/cpu/online");
    begin();
    collect_system(&ask);
    is_str(facts.v[FACT_KERNEL], "6.1.0-18-amd64", "the kernel");
    is_str(facts.v[FACT_CPU], "AMD EPYC 9654 96-Core Processor", "the processor");
    is_str(facts.v[FACT_CORES], "192", "how many");
    is_str(found(CHECK_GDR, ""), "unchecked: gdr: not checked: no NVIDIA driver is loaded", "no GPU");
    put("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu\n", "/proc/driver/nvidia/version");
    begin();
    collect_system(&ask);
    is_str(facts.v[FACT_GPU_DRIVER], "535.129.03", "the driver");
    is_str(found(CHECK_GDR, ""), "warn: gdr: no, yes expected (neither nvidia_peermem nor dma-buf)", "no direct way");
    folder("/sys/module/nvidia_peermem");
    begin();
    collect_system(&ask);
    is_str(found(CHECK_GDR, ""), "ok: gdr: yes (nvidia_peermem)", "the module");
    put("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release\n", "/proc/driver/nvidia/version");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/sys/module/nvidia_peermem", root);
    rmdir(path);
    begin();
    collect_system(&ask);
    is_str(found(CHECK_GDR, ""), "ok: gdr: yes (dma-buf)", "or the open driver");
    ok(found(CHECK_CLOCK_SYNC, "")[0], "the kernel's clock");
}

/* --- disks -------------------------------------------------------------------------------------------------------- */

static void test_disk(void)
{
    char good[64], gone[64];
    snprintf(good, sizeof good, "%s/ckpt", root);
    snprintf(gone, sizeof gone, "%s/gone", root);
    folder("/ckpt");
    struct collect c = ask;
    c.ckpt_dir = good;
    c.tmp_dir = gone;
    begin();
    all.conf.limit[CHECK_DISK_FREE] = 0;
    all.conf.limit[CHECK_DISK_WRITE] = 1000;
    collect_disk(&c);
    is_num(strncmp(found(CHECK_DISK_WRITABLE, good), "ok", 2), 0, "a folder that can be written to");
    is_num(strncmp(found(CHECK_DISK_WRITE, good), "ok", 2), 0, "in time");
    is_num(strncmp(found(CHECK_DISK_FREE, good), "ok", 2), 0, "with room");
    is_num(rmdir(good), 0, "nothing is left in it");
    ok(strstr(found(CHECK_DISK_WRITABLE, gone), "No such file or directory"), "one that is not there");
    is_num(strncmp(found(CHECK_DISK_WRITABLE, gone), "bad", 3), 0, "is a finding");
    c.ckpt_dir = "/dev/full";
    c.tmp_dir = "";
    begin();
    collect_disk(&c);
    ok(strstr(found(CHECK_DISK_WRITABLE, "/dev/full"), "Not a directory"), "what is no folder");
}

/* --- hardware ----------------------------------------------------------------------------------------------------- */

#define MC "/sys/devices/system/edac/mc/"

static void test_edac(void)
{
    begin();
    collect_hardware(&ask);
    is_str(found(CHECK_EDAC_UNCORRECTED, ""),
           "unchecked: edac_uncorrected: not checked: no EDAC driver for this memory controller is loaded",
           "no driver");
    ok(strstr(found(CHECK_XID, ""), "may not be read"), "no log");
    put("0\n", MC "mc0/ue_count");
    put("4\n", MC "mc0/ce_count");
    put("0\n", MC "mc0/ce_noinfo_count");
    put("4\n", MC "mc0/dimm3/dimm_ce_count");
    put("0\n", MC "mc0/dimm3/dimm_ue_count");
    put("CPU_SrcID#0_MC#1_Chan#0_DIMM#0\n", MC "mc0/dimm3/dimm_label");
    put("0\n", MC "mc1/ue_count");
    put("0\n", MC "mc1/ce_count");
    begin();
    collect_hardware(&ask);
    is_str(found(CHECK_EDAC_UNCORRECTED, "mc0"), "ok: edac_uncorrected of mc0: 0", "no uncorrected error");
    last = true;
    put("9\n", MC "mc0/dimm3/dimm_ce_count");
    put("1\n", MC "mc1/ue_count");
    collect_hardware(&ask);
    is_str(found(CHECK_EDAC_CORRECTED, "CPU_SrcID#0_MC#1_Chan#0_DIMM#0"),
           "warn: edac_corrected of CPU_SrcID#0_MC#1_Chan#0_DIMM#0: grew by 5 while the probe ran, none expected",
           "the module by its name");
    is_str(found(CHECK_EDAC_UNCORRECTED, "mc1"), "bad: edac_uncorrected of mc1: 1, none expected",
           "an uncorrected one");
}

static void test_log(void)
{
    put("4,1,100,-;NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.\n SUBSYSTEM=pci\n"
        "6,2,5678,-;mlx5_core 0000:3b:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link\n",
        "/dev/kmsg");
    begin();
    collect_hardware(&ask);
    is_str(found(CHECK_PCI_LIMITED, ""), "info: pci_limited: 1, none expected (0000:3b:00.0)", "a slow slot");
    is_str(found(CHECK_XID, ""), "", "what was there before is the past");
    last = true;
    put("4,1,100,-;NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.\n"
        "4,2,200,-;NVRM: Xid (PCI:0000:9b:00): 31, pid=7, MMU Fault\n"
        "4,3,18000000000000000000,-;NVRM: Xid (PCI:0000:9b:00): 48, pid=7, DBE\n"
        "2,4,300,-;EDAC MC0: 1 UE memory read error on CPU_SrcID#0\n",
        "/dev/kmsg");
    collect_hardware(&ask);
    is_str(found(CHECK_XID, ""),
           "bad: xid: grew by 1 while the probe ran, none expected (the newest: Xid 48 of 0000:9b:00)", "one came");
    is_num(strncmp(found(CHECK_XID_PAST, ""), "warn", 4), 0, "and not long ago");
    is_str(found(CHECK_KERNEL, ""),
           "bad: kernel_hardware: grew by 1 while the probe ran, none expected (EDAC MC0: 1 UE memory read error on "
           "CPU_SrcID#0)",
           "memory");
    drop("/dev/kmsg");
}

static void test_speed(void)
{
    struct collect c = ask;
    c.quick = true;
    begin();
    metrics = 0;
    collect_speed(&c);
    bool told = strncmp(found(CHECK_CPU_SHARE, ""), "ok", 2) == 0;
    is_num(metrics, told ? 2 : 0, "two speeds, or none where others use the processors");
}

int main(void)
{
    char command[64];
    if (!mkdtemp(root))
        return 1;
    test_infiniband();
    test_ethernet();
    test_pci();
    test_memory();
    test_limits();
    test_processes();
    test_system();
    test_disk();
    test_edac();
    test_log();
    test_speed();
    snprintf(command, sizeof command, "rm -rf %s", root);
    ok(system(command) == 0, "cleaned up");
    return done();
}
