/* Small texts of the kernel about ports, links, memory, drivers and errors. */
#include "probe/sysread.h"

#include "lib/tap.h"
#include "util/array.h"

static void test_ports(void)
{
    static const struct {
        const char *text;
        int tenths; /* -1: refused */
        unsigned lanes;
    } rates[] = {
        {"400 Gb/sec (4X NDR)\n", 4000, 4},
        {"2.5 Gb/sec (1X SDR)\n", 25, 1},
        {"100 Gb/sec (2X HDR)\n", 1000, 2},
        {"56.25 Gb/sec\n", 562, 0},
        {"400\n", -1, 0},
        {"fast\n", -1, 0},
        {"", -1, 0},
        {"99999999 Gb/sec\n", -1, 0},
        {"10 Gb/sec (99X X)\n", 100, 0},
    };
    unsigned state = 9, lanes;
    double gbits;
    ok(sysread_port_state("4: ACTIVE\n", &state) && state == 4, "an active port");
    ok(!sysread_port_state("ACTIVE\n", &state) && !sysread_port_state("4\n", &state) && state == 4, "no state");
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        gbits = -0.1;
        lanes = 0;
        bool good = sysread_port_rate(rates[i].text, &gbits, &lanes);
        ok(good == (rates[i].tenths >= 0) &&
               (!good || ((int)(gbits * 10) == rates[i].tenths && lanes == rates[i].lanes)),
           "a rate");
    }
    uint64_t n = 5;
    ok(sysread_count("18446744073709551615\n", &n) && n == UINT64_MAX, "a counter");
    ok(!sysread_count("N/A (no PMA)\n", &n) && !sysread_count("12 34\n", &n) && !sysread_count("", &n), "no counter");
    ok(sysread_oper_up("up\n") && sysread_oper_up("unknown\n"), "an interface that is up, or does not say");
    ok(!sysread_oper_up("down\n") && !sysread_oper_up("lowerlayerdown\n") && !sysread_oper_up(""), "or is not");
}

static void test_pci(void)
{
    uint32_t class = 0;
    uint64_t n = 0;
    static const char aer[] = "Undefined 0\nDLP 1\nTLP 2\nTOTAL_ERR_FATAL 3\n";
    ok(sysread_pci_class("0x020700\n", &class) && class == 0x020700, "a class");
    ok(sysread_pci_matters(class) && sysread_pci_width_matters(class), "InfiniBand matters");
    ok(sysread_pci_matters(0x060400) && !sysread_pci_width_matters(0x060400), "a bridge's errors do");
    ok(!sysread_pci_matters(0x0c0330), "USB does not");
    ok(!sysread_pci_class("020700\n", &class) && !sysread_pci_class("0x1020700\n", &class), "no class");
    ok(sysread_aer(aer, "TOTAL_ERR_FATAL", &n) && n == 3, "an error counter");
    ok(!sysread_aer(aer, "TOTAL_ERR_NONFATAL", &n) && !sysread_aer("", "X", &n), "another file's");
}

static void test_host(void)
{
    struct sysread_memory m;
    char text[32];
    unsigned count = 0;
    bool open = true;
    ok(sysread_memory(
           "MemTotal:       1024 kB\nMemFree: 1 kB\nMemAvailable:    512 kB\nSwapTotal: 8 kB\nSwapFree: 2 kB\n", &m),
       "memory");
    ok(m.total == 1 << 20 && m.available == 1 << 19 && m.swap_total == 8192 && m.swap_free == 2048, "in bytes");
    ok(!sysread_memory("MemFree: 1 kB\n", &m) && !sysread_memory("", &m), "no memory");
    ok(sysread_cpu_name("processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9654\n", text, 12),
       "a name");
    is_str(text, "AMD EPYC 96", "as much as fits");
    ok(sysread_cpu_name("processor : 0\nCPU part\t: 0xd4f\n", text, sizeof text), "another architecture's");
    is_str(text, "0xd4f", "number");
    ok(!sysread_cpu_name("processor : 0\nmodel name\t:\n", text, sizeof text), "no name");
    ok(sysread_range_count("0-95,128\n", &count) && count == 97, "a list of processors");
    ok(!sysread_range_count("\n", &count) && !sysread_range_count("0-\n", &count) &&
           !sysread_range_count("5-2\n", &count),
       "no list");
    ok(sysread_nvidia("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\nGCC\n",
                      text, sizeof text, &open),
       "a driver");
    is_str(text, "535.129.03", "its version");
    ok(!open, "and that it is not the open one");
    ok(sysread_nvidia("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build\n", text,
                      sizeof text, &open) &&
           open && strcmp(text, "550.54.15") == 0,
       "the open one");
    ok(!sysread_nvidia("NVRM version: none\n550.1\n", text, sizeof text, &open), "no driver");
    ok(sysread_kernel_since("5.12.0-x", 5, 12) && sysread_kernel_since("6.1\n", 5, 12), "new enough");
    ok(!sysread_kernel_since("5.11.9", 5, 12) && !sysread_kernel_since("Linux", 5, 12), "or not");
}

static void add(struct sysread_log *log, const char *record)
{
    sysread_log_add(log, record, strlen(record), 100000000, 50000000);
}

static void test_log(void)
{
    struct sysread_log log = {0};
    add(&log, "4,1,1000000,-;NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.\n");
    add(&log, "4,2,2000000,-;NVRM: Xid (PCI:0000:05:00): 31, pid=1, MMU Fault\n");
    is_num(log.xids, 1, "only what the hardware may be at fault for");
    is_num(log.xids_recent, 0, "long ago");
    add(&log, "4,3,60000000,-;NVRM: Xid (PCI:0000:9b:00): 48, pid=1, DBE\n");
    is_num(log.xids_recent, 1, "lately");
    is_num(log.xid_last, 48, "the newest");
    is_str(log.xid_device, "0000:9b:00", "and where");
    add(&log, "2,4,70000000,-;EDAC MC0: 1 UE memory read error on CPU_SrcID#0\n");
    add(&log, "2,5,70000000,-;EDAC MC0: 1 CE memory read error on CPU_SrcID#0\n");
    is_num(log.hardware, 1, "errors that were not corrected");
    is_str(log.hardware_text, "EDAC MC0: 1 UE memory read error on CPU_SrcID#0", "as the kernel said it");
    add(&log, "6,6,5678,-;mlx5_core 0000:3b:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8\n");
    add(&log, "6,7,5679,-;mlx5_core 0000:5e:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8\n");
    is_num(log.limited, 2, "cards in slow slots");
    is_str(log.device, "0000:3b:00.0", "the first of them");
    add(&log, "12,8,5680,-;NVRM: Xid (PCI:0000:05:00): 79, somebody wrote this\n");
    add(&log, "nonsense");
    add(&log, "");
    is_num(log.xids, 2, "what a program wrote to the log is nothing");
}

int main(void)
{
    test_ports();
    test_pci();
    test_host();
    test_log();
    return done();
}
