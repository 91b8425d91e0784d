/* The kernel's log: records as kernels and drivers have written them. */
#include "sys/kmsg.h"

#include "lib/tap.h"

static struct kmsg_fact fact;

static bool take(const char *record)
{
    return kmsg_parse(&fact, record, strlen(record));
}

/* A record of the kernel's own with this message. */
static bool says(const char *message)
{
    char record[2048];
    snprintf(record, sizeof record, "4,1234,5678901,-;%s\n SUBSYSTEM=pci\n", message);
    return take(record);
}

static void test_head(void)
{
    static const char *const bad[] = {
        "",
        "4",
        "4,1",
        "4,1,2",
        "4,1,2,-",
        "x,1,2,-;Killed process 1 (a) total-vm:0kB",
        "4,x,2,-;Killed process 1 (a) total-vm:0kB",
        "4;1;2;Killed process 1 (a) total-vm:0kB",
        "4,1,2,-\nKilled process 1 (a) total-vm:0kB;",
        "99999999999999999999,1,2,-;Killed process 1 (a) total-vm:0kB",
    };
    ok(take("4,1234,5678901,-,caller=T17;Out of memory: Killed process 1 (a) total-vm:0kB\n"), "a record");
    ok(fact.seq == 1234 && fact.usec == 5678901, "its number and time");
    ok(!take("12,1,2,-;Out of memory: Killed process 1 (a) total-vm:0kB\n"), "of a program that writes to the log: no");
    unsigned taken = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        taken += take(bad[i]);
    is_num(taken, 0, "what is no record");
    ok(!says("eth0: link up"), "news of no interest");
}

static void test_oom(void)
{
    /* Linux 6.18, a memory cgroup of this test's machine */
    ok(says("Memory cgroup out of memory: Killed process 6069 (test_evidence_i) total-vm:19004kB, anon-rss:16384kB, "
            "file-rss:300kB, shmem-rss:0kB, UID:0 pgtables:80kB oom_score_adj:0") &&
           fact.kind == KMSG_OOM && fact.pid == 6069,
       "killed in a cgroup");
    is_str(fact.comm, "test_evidence_i", "its name");
    ok(says("Out of memory: Killed process 77 (a) b (c) total-vm:1kB, anon-rss:1kB") && fact.pid == 77, "in the host");
    is_str(fact.comm, "a) b (c", "a name with parentheses");
    ok(says("Killed process 12 (python) total-vm:1kB, anon-rss:1kB, file-rss:0kB") && fact.pid == 12, "before Linux 5");
    ok(!says("oom_reaper: reaped process 12 (python), now anon-rss:0kB"), "the reaper tells it again: not counted");
    ok(!says("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task=python,pid=6069,uid=0"), "nor the summary");
    ok(!says("Killed process -5 (x) total-vm:0kB") && !says("Killed process  (x)"), "no number");
    ok(says("Killed process 5 (x\033[31m) total-vm:0kB"), "control characters");
    is_str(fact.comm, "x?[31m", "are not passed on");
}

static void test_hardware(void)
{
    ok(says("NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus.") &&
           fact.kind == KMSG_XID && fact.xid == 79 && fact.pid == 4242,
       "Xid with a process");
    is_str(fact.device, "0000:3b:00", "its device");
    ok(says("NVRM: Xid (PCI:0000:3b:00): 63, Row Remapper: pending") && fact.xid == 63 && !fact.pid, "Xid without one");
    ok(says("NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.") && fact.kind == KMSG_XID && fact.xid == 79,
       "fallen off the bus, without a number");
    ok(says("Memory failure: 0x12345: Sending SIGBUS to python:88 due to hardware memory corruption") &&
           fact.kind == KMSG_HARDWARE && fact.pid == 88,
       "bad memory: who was told");
    ok(says("mce: Uncorrected hardware memory error in user-access at 3f5a40"
            "; Killing py:x:89 due to hardware memory corruption") &&
           fact.pid == 89,
       "a name with a colon");
    ok(says("mce: [Hardware Error]: CPU 2: Machine Check Exception: 5 Bank 4: b200000000070f0f") &&
           fact.kind == KMSG_HARDWARE && !fact.pid,
       "machine check");
    ok(says("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0 (channel:0)"), "EDAC, uncorrected");
    ok(!says("EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0 (channel:0)"), "EDAC, corrected: nothing");
    ok(!says("{1}[Hardware Error]: event severity: corrected"), "a corrected one of the firmware: nothing");
    ok(says("{1}[Hardware Error]: event severity: fatal"), "a fatal one");
    ok(says("pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:01:00.0"), "PCIe");
    is_str(fact.device, "0000:00:01", "its device");
    ok(says("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 44 sourcetrack timeout"), "NVSwitch");
}

static void test_crash(void)
{
    ok(says("python3[123]: segfault at 0 ip 00007f12 sp 00007ffc error 4 in libtorch_cpu.so[7f12+1000]") &&
           fact.kind == KMSG_CRASH && fact.pid == 123,
       "segfault");
    is_str(fact.comm, "python3", "of whom");
    ok(says("traps: pt[main][9] general protection fault ip:55 sp:7f error:0 in python3.11[55+1]") && fact.pid == 9,
       "protection fault");
    is_str(fact.comm, "pt[main]", "a name with brackets");
    ok(says("traps: a[8] trap invalid opcode ip:55 sp:7f error:0") && fact.pid == 8, "invalid opcode");
    ok(!says("traps: nothing"), "something else");
}

static void test_log(void)
{
    static struct kmsg_log log;
    char record[128];
    for (int i = 1; i <= KMSG_FACTS_MAX + 5; i++) {
        snprintf(record, sizeof record, "4,%d,1,-;Out of memory: Killed process %d (a) total-vm:0kB\n", i, i);
        kmsg_add(&log, record, strlen(record));
        kmsg_add(&log, "6,1,1,-;eth0: link up\n", 22);
    }
    ok(log.n == KMSG_FACTS_MAX && log.left_out == 5, "bounded, and it says so");
    is_num(kmsg_count(&log, KMSG_OOM), KMSG_FACTS_MAX, "kills");
    is_num(kmsg_count(&log, KMSG_XID), 0, "no Xid");
    ok(!kmsg_of(&log, KMSG_OOM, 3), "numbers of another pid namespace mean nothing here");
    log.pids_ours = true;
    ok(kmsg_of(&log, KMSG_OOM, 3) == &log.fact[2] && !kmsg_of(&log, KMSG_XID, 3) && !kmsg_of(&log, KMSG_OOM, 0),
       "by kind and process");
}

int main(void)
{
    test_head();
    test_oom();
    test_hardware();
    test_crash();
    test_log();
    return done();
}
