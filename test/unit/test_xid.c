/* Lines of NVIDIA's kernel driver.  Quoted from public threads: github.com/leptonai/gpud pull 46, 1174, 1209,
 * github.com/NVIDIA/nccl and pytorch issues named beside the line. */
#include "sys/xid.h"
#include "lib/tap.h"
#include "util/array.h"

static const struct {
    const char *line;
    unsigned number; /* 0 = no Xid */
    const char *gpu;
    int pid;
    bool suspect;
} lines[] = {
    {"[111111111.111] NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", 79,
     "0000:05:00", 0, true},
    {"NVRM: GPU 0000:29:00.0: GPU has fallen off the bus.", 79, "0000:29:00", 0, true},
    {"NVRM: fallen off the bus and is not responding to commands.", 79, "", 0, true},
    /* github.com/pytorch/pytorch/issues/51382 */
    {"[Wed Jan 27 23:04:35 2021] NVRM: Xid (PCI:0000:3d:00): 43, pid=35521, Ch 00000008", 43, "0000:3d:00", 35521,
     false},
    {"[Fri Jan 29 23:42:34 2021] NVRM: Xid (PCI:0000:db:00): 31, pid=13641, Ch 00000008, intr 00000000. MMU Fault: "
     "ENGINE GRAPHICS GPCCLIENT_T1_10 faulted @ 0x7fd7_90743000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
     31, "0000:db:00", 13641, false},
    /* github.com/leptonai/gpud/pull/46 */
    {"[Fri Aug 30 11:43:09 2024] NVRM: Xid (PCI:0000:cb:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp "
     "Exception on (GPC 7, TPC 7, SM 0): Illegal Instruction Parameter",
     13, "0000:cb:00", 0, false},
    {"[Fri Aug 30 11:43:14 2024] NVRM: Xid (PCI:0000:cb:00): 109, pid=1797828, name=pt_main_thread, Ch 00000008, "
     "errorString CTX SWITCH TIMEOUT, Info 0x58005",
     109, "0000:cb:00", 1797828, true},
    /* github.com/leptonai/gpud/pull/1174 */
    {"NVRM: Xid (PCI:0019:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000)", 149, "0019:01:00", 0, true},
    {"NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008)", 0, "", 0, false},
    {"NVRM: Xid (PCI:0000:9b:00): 94, pid=1234, name=python3, Contained ECC error", 94, "0000:9b:00", 1234, false},
    {"NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", 154,
     "0009:01:00", 0, true},
    {"NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", 0, "",
     0, false},
    /* github.com/stas00/ml-engineering */
    {"NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate.", 63,
     "0000:10:1c", 1896, false},
    /* github.com/NVIDIA/open-gpu-kernel-modules/issues/1150 */
    {"kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149", 149,
     "0000:dc:00", 1818990, true},
    /* docs.nvidia.com/deploy/xid-errors */
    {"[...] NVRM: Xid (0000:03:00): 14, Channel 00000001", 14, "0000:03:00", 0, false},
    {"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error", 0, "", 0,
     false},
    {"NVRM: Xid error: xyz, invalid data", 0, "", 0, false},
    {"NVRM: Xid (invalid): some error", 0, "", 0, false},
    {"NVRM: Xid (PCI:0000:05:00): 99999999, a number too long", 0, "", 0, false},
    {"NVRM: Xid (PCI:0000:05:00)", 0, "", 0, false},
    {"NVRM: Xid (PCI:", 0, "", 0, false},
    {"the page about Xid 79 says: GPU has fallen off the bus", 0, "", 0, false},
    {"", 0, "", 0, false},
};

static void test_lines(void)
{
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct xid_event e;
        bool is = xid_parse(lines[i].line, strlen(lines[i].line), &e);
        is_num(is ? e.number : 0, lines[i].number, lines[i].line);
        if (!is)
            continue;
        is_str(e.gpu, lines[i].gpu, "  the GPU");
        is_num(xid_is_suspect(e.number), lines[i].suspect, "  suspect or not");
        is_num(e.pid, lines[i].pid, "  the program");
    }
}

static void test_table(void)
{
    unsigned last = 0, ascending = 1, worded = 1, suspects = 0;
    for (unsigned n = 0; n < 1000; n++) {
        const struct xid *x = xid_of(n);
        if (!x)
            continue;
        ascending &= x->number > last;
        last = x->number;
        worded &= strlen(xid_meaning(n)) > 5 && strlen(xid_advice(n)) > 5;
        suspects += xid_is_suspect(n);
    }
    ok(ascending && last == 172, "the table is ascending: every row can be found");
    ok(worded, "each row has a meaning and an advice");
    ok(suspects > 20, "the dangerous ones are suspect");
    static const unsigned own[] = {8, 13, 31, 43, 45, 63, 92, 94, 137},
                          bad[] = {46, 48, 62, 64, 74, 79, 95, 119, 120, 140, 149};
    for (size_t i = 0; i < COUNT_OF(own); i++)
        ok(xid_of(own[i]) && !xid_is_suspect(own[i]), xid_meaning(own[i]));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        ok(xid_is_suspect(bad[i]), xid_meaning(bad[i]));
    ok(!xid_is_suspect(0) && !xid_is_suspect(999) && !xid_advice(999)[0] && !xid_meaning(999)[0],
       "a number that is not in the table: nothing is suspected");
}

static void test_find(void)
{
    /* github.com/madMAx43v3r/chia-gigahorse/issues/301: a fault, its consequences */
    static const char log[] =
        "boot\n"
        "[14328.1] NVRM: Xid (PCI:0000:0a:00): 31, pid=13332, name=cuda_plot_k32_v, Ch 00000010, MMU Fault\n"
        "[14370.6] NVRM: Xid (PCI:0000:0a:00): 62, pid='<unknown>', name=<unknown>, 2023b230 20238a3a\n"
        "[14370.7] NVRM: Xid (PCI:0000:0a:00): 45, pid='<unknown>', name=<unknown>, Ch 00000008\n"
        "[14370.8] NVRM: Xid (PCI:0000:0b:00): 62, pid='<unknown>', name=<unknown>, 0\n";
    struct xid_event e;
    ok(xid_find(log, sizeof log - 1, &e), "a log");
    is_num(e.number, 62, "the gravest of several");
    is_str(e.gpu, "0000:0a:00", "of equal ones the first");
    ok(strncmp(log + e.start, "[14370.6] NVRM", 14) == 0 && log[e.start + e.size] == '\n', "its line");
    ok(!xid_find("", 0, &e) && !xid_find("nothing\nhere", 12, &e), "none");
    static const char young[] = "NVRM: Xid (PCI:0000:0a:00): 999, new\nNVRM: Xid (PCI:0000:0a:00): 45, Ch 8\n";
    xid_find(young, sizeof young - 1, &e);
    is_num(e.number, 999, "a number that is younger than the table is shown, before its consequence");
}

int main(void)
{
    test_lines();
    test_table();
    test_find();
    return done();
}
