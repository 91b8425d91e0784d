/* Single-node checks of the probe: one table of all that is looked at, what counts as wrong by default, and what to do
 * about it.  A child measures (check_*_io.c, or the helper for GPUs) and says findings with a value; whoever started it
 * judges them here, so that a limit stands in one place only. */
#ifndef PROBE_CHECK_H
#define PROBE_CHECK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/metric.h"
#include "util/buf.h"
#include "util/err.h"

/* One child each.  name, its time limit in seconds, run once more at the end (its counters are compared), run with
 * nothing else beside it (it measures speed), what it looks at. */
/* clang-format off */
#define CHECK_GROUP_LIST(X) \
    X(GPU,      "gpu",        20, true,  true,  "GPUs, by the driver's library") \
    X(IB,       "ib", 10, true,  false, "InfiniBand and RoCE ports") \
    X(ETHERNET, "ethernet",   10, true,  false, "network interfaces") \
    X(PCI,      "pci",        10, true,  false, "PCI links of GPUs and network cards") \
    X(MEMORY,   "memory",     10, false, false, "memory, swap, /dev/shm") \
    X(SPEED,    "speed",      10, false, true,  "bandwidth of the memory, speed of one processor") \
    X(LIMITS,   "limits",     10, false, false, "limits of the user") \
    X(DISK,     "disk",       10, false, false, "folders for checkpoints and temporary files") \
    X(HARDWARE, "hardware",   10, true,  false, "errors that the memory controllers and the kernel's log tell of") \
    X(PROCESS,  "processes",  10, false, false, "processes that earlier jobs left behind") \
    X(SYSTEM,   "system",     10, false, false, "clock, drivers, versions") \
    X(PROBE,    "probe",       0, false, false, "the checks themselves")
/* clang-format on */

enum check_group {
#define X(id, name, limit_s, again, alone, what) CHECK_GROUP_##id,
    CHECK_GROUP_LIST(X)
#undef X
        CHECK_GROUPS
};

struct check_group_row {
    const char *name;
    unsigned limit_s; /* 0: no child has this group */
    bool again, alone;
    const char *what;
};
extern const struct check_group_row check_groups[CHECK_GROUPS];

/* How a value is judged. */
enum check_rule {
    CHECK_MIN,   /* below the limit is wrong */
    CHECK_MAX,   /* above it */
    CHECK_GROWS, /* a counter: grew by more than the limit while the probe ran (struct check_counts) */
};

/* From harmless to grave.  UNCHECKED: does not apply, or cannot be read here; counts for nothing.  UNDECIDED: should
 * have been judged and could not be, which is nobody's fault as far as is known. */
enum finding_state {
    FINDING_OK,
    FINDING_INFO,
    FINDING_UNCHECKED,
    FINDING_UNDECIDED,
    FINDING_WARN,
    FINDING_BAD,
    FINDING_STATES
};

#define CHECK_UNIT_LIST(X)                                                                                             \
    X(NONE, "")                                                                                                        \
    X(COUNT, "count")                                                                                                  \
    X(YES, "yes or no") /* 1 or 0 */                                                                                   \
    X(BYTES, "bytes")                                                                                                  \
    X(PERCENT, "%")                                                                                                    \
    X(SECONDS, "s")                                                                                                    \
    X(GBITS, "Gb/s")                                                                                                   \
    X(MBITS, "Mb/s")                                                                                                   \
    X(LANES, "lanes")                                                                                                  \
    X(CELSIUS, "C")

enum check_unit {
#define X(id, name) CHECK_UNIT_##id,
    CHECK_UNIT_LIST(X)
#undef X
        CHECK_UNITS
};

/* As a limit: the child says it with each value (a GPU's own greatest width), and --limits puts one in its place. */
#define CHECK_OWN -1.0
/* As a value: no limit is set (ulimit).  JSON has no infinity. */
#define CHECK_UNLIMITED 1e18

/* name, group, unit, rule, limit, state of what is beyond the limit, what the value is, what to do about it. */
/* clang-format off */
#define CHECK_LIST(X) \
    X(GPU_NVML,           "gpu_nvml",            GPU, YES, MIN, 1, BAD, "the driver's management library answers", \
      "look at nvidia-smi and dmesg: the driver is not loaded, or its library is of another version") \
    X(GPU_COUNT,          "gpu_count",           GPU, COUNT, MIN, CHECK_OWN, BAD, "GPUs that answer", \
      "look at nvidia-smi -L and dmesg: a GPU that is gone comes back with a restart of the host, or is broken") \
    X(GPU_LOST,           "gpu_lost",            GPU, COUNT, MAX, 0, BAD, "GPUs that are lost or want a reset", \
      "reset the GPU (nvidia-smi -r) or restart the host; if it comes back, have the GPU replaced") \
    X(GPU_RECOVERY,       "gpu_recovery",        GPU, NONE, MAX, 0, BAD, "recovery that the driver asks for", \
      "do what nvidia-smi -q says under GPU Recovery Action: reset, restart or drain") \
    X(GPU_REMAP,          "gpu_remap",           GPU, COUNT, MAX, 0, BAD, "memory rows pending or failed to be replaced", \
      "reset the GPU (nvidia-smi -r): rows are replaced then; if the replacement has failed, have the GPU replaced") \
    X(GPU_RETIRED,        "gpu_retired",         GPU, COUNT, MAX, 10, BAD, "retired memory pages", \
      "have the GPU replaced") \
    X(GPU_ECC,            "gpu_ecc",             GPU, COUNT, MAX, 0, BAD, "uncorrected memory errors since the driver was loaded", \
      "reset the GPU; if it comes back, have it replaced") \
    X(GPU_ECC_CORRECTED,  "gpu_ecc_corrected",   GPU, COUNT, MAX, 50000000, WARN, "corrected memory errors since the driver was loaded", \
      "run dcgmi diag -r 3 at the next pause") \
    X(GPU_NVLINK,         "gpu_nvlink",          GPU, COUNT, MAX, 0, BAD, "NVLinks that are down", \
      "look at nvidia-smi nvlink -s and the fabric manager, then reset the GPU") \
    X(GPU_NVLINK_ERRORS,  "gpu_nvlink_errors",   GPU, COUNT, GROWS, 0, WARN, "NVLink errors", \
      "look at nvidia-smi nvlink -e; check the bridges and reset the GPU") \
    X(GPU_FABRIC,         "gpu_fabric",          GPU, YES, MIN, 1, BAD, "the GPU has joined its NVSwitch fabric", \
      "start nvidia-fabricmanager, or look into its log") \
    X(GPU_THROTTLE,       "gpu_throttle",        GPU, NONE, MAX, 0, WARN, "reasons to slow down that the hardware has", \
      "look at cooling and power: nvidia-smi -q -d PERFORMANCE") \
    X(GPU_TEMPERATURE,    "gpu_temperature",     GPU, CELSIUS, MAX, CHECK_OWN, WARN, "temperature", \
      "look at the cooling: the GPU slows down above this") \
    X(GPU_PCIE,           "gpu_pcie",            GPU, LANES, MIN, CHECK_OWN, BAD, "PCI lanes in use", \
      "take the GPU or its riser out and put it in again; if it comes back, have it replaced") \
    X(GPU_PCIE_REPLAY,    "gpu_pcie_replay",     GPU, COUNT, GROWS, 100, WARN, "PCI packets sent again", \
      "the contact of card, riser or cable is bad: put the GPU in again") \
    X(GPU_PCIE_GENERATION, "gpu_pcie_generation", GPU, NONE, MIN, CHECK_OWN, WARN, "PCI generation under load", \
      "look at the slot's settings in the firmware; reset the GPU") \
    X(GPU_XID,            "gpu_xid",             GPU, COUNT, MAX, 0, BAD, "Xid errors while the GPU was under load", \
      "do what the number asks for in NVIDIA's catalogue; mostly a reset of the GPU") \
    X(GPU_FOREIGN,        "gpu_foreign",         GPU, COUNT, MAX, 0, WARN, "programs of others on the GPU", \
      "see nvidia-smi: a program of an earlier job may have been left behind") \
    X(GPU_MODES,          "gpu_modes",           GPU, YES, MIN, 1, WARN, "compute mode, ECC and MIG as training needs them", \
      "nvidia-smi -c DEFAULT, -mig 0; a change of the ECC or MIG mode waits for a reset of the GPU") \
    X(GPU_USABLE,         "gpu_usable",          GPU, YES, MIN, 1, BAD, "a program can use the GPU", \
      "do what stands behind the reason; nvidia-smi and dmesg tell more") \
    X(GPU_NICLOOP,        "gpu_nicloop",         GPU, YES, MIN, 1, BAD, "GPUs of this node reach each other by its network cards", \
      "look at cards, cables and switch ports, and at NCCL_SOCKET_IFNAME and NCCL_IB_HCA") \
    X(GPU_BURN,           "gpu_burn",            GPU, YES, MIN, 1, BAD, "arithmetic gives the right result under load", \
      "the GPU gives wrong results without saying so: take it out of service") \
    X(IB_STATE,           "ib_state",            IB, NONE, MIN, 4, WARN, "state of the port, 4: active", \
      "look at the cable and the switch port; ibstat, ibdiagnet") \
    X(IB_PORTS,           "ib_ports",            IB, COUNT, MIN, 0, BAD, "active ports", \
      "a port is down: look at its cable and the switch port") \
    X(IB_LANES,           "ib_lanes",            IB, LANES, MIN, 2, BAD, "lanes in use", \
      "the cable or a transceiver is bad: the port came up with one lane") \
    X(IB_RATE,            "ib_rate",             IB, GBITS, MIN, 0, BAD, "rate of an active port", \
      "the cable, a transceiver or the switch port is slower than it should be") \
    X(IB_LINK_DOWNED,     "ib_link_downed",      IB, COUNT, GROWS, 0, BAD, "times the link went down", \
      "the link flaps: replace cable or transceiver") \
    X(IB_SYMBOL_ERRORS,   "ib_symbol_errors",    IB, COUNT, GROWS, 10, WARN, "symbol errors", \
      "clean or replace cable and transceiver") \
    X(IB_RCV_ERRORS,      "ib_receive_errors",   IB, COUNT, GROWS, 0, WARN, "packets received with errors", \
      "clean or replace cable and transceiver; look at the switch port too") \
    X(IB_DISCARDS,        "ib_discards",         IB, COUNT, GROWS, 100, WARN, "packets that could not be sent", \
      "the network is congested or the port was down: look at the switch") \
    X(IB_INTEGRITY,       "ib_integrity_errors", IB, COUNT, GROWS, 0, WARN, "local link integrity errors", \
      "clean or replace cable and transceiver") \
    X(IB_RECOVERY,        "ib_recoveries",       IB, COUNT, GROWS, 0, WARN, "times the link recovered from errors", \
      "clean or replace cable and transceiver") \
    X(IB_OUT_OF_SEQUENCE, "ib_out_of_sequence",  IB, COUNT, GROWS, 1000, WARN, "packets out of order", \
      "packets are lost on the way: look at the counters of the switches") \
    X(IB_SEQUENCE_ERRORS, "ib_sequence_errors",  IB, COUNT, GROWS, 100, WARN, "packets asked for again", \
      "packets are lost on the way: look at the counters of the switches, and at flow control") \
    X(IB_ACK_TIMEOUTS,    "ib_ack_timeouts",     IB, COUNT, GROWS, 10, WARN, "answers that did not come in time", \
      "packets are lost on the way: look at the counters of the switches") \
    X(IB_RNR_RETRIES,     "ib_rnr_retries",      IB, COUNT, GROWS, 10, WARN, "retries because the other side was not ready", \
      "the host at the other end is too slow to take what comes") \
    X(ETH_STATE,          "eth_state",           ETHERNET, YES, MIN, 1, INFO, "an interface that is on has a carrier", \
      "look at the cable and the switch port, or switch the interface off: ip link set NAME down") \
    X(ETH_SPEED,          "eth_speed",           ETHERNET, MBITS, MIN, 0, BAD, "speed of an interface that is up", \
      "the link came up slower than it should: look at cable, transceiver and switch port") \
    X(ETH_FLAPS,          "eth_flaps",           ETHERNET, COUNT, GROWS, 0, WARN, "times the carrier came or went", \
      "the link flaps: replace cable or transceiver") \
    X(PCI_WIDTH,          "pci_width",           PCI, LANES, MIN, CHECK_OWN, WARN, "PCI lanes in use", \
      "take the card out and put it in again; a riser or slot may be bad") \
    X(PCI_FATAL,          "pci_fatal_errors",    PCI, COUNT, GROWS, 0, BAD, "fatal PCI errors", \
      "look at dmesg for AER; card, riser or slot is bad") \
    X(PCI_NONFATAL,       "pci_nonfatal_errors", PCI, COUNT, GROWS, 0, WARN, "uncorrected PCI errors", \
      "look at dmesg for AER; card, riser or slot may be bad") \
    X(MEMORY_FREE,        "memory_free",         MEMORY, PERCENT, MIN, 10, WARN, "memory that is available", \
      "see what uses it (ps aux --sort=-rss): an earlier job may have left something") \
    X(SWAP_USED,          "swap_used",           MEMORY, BYTES, MAX, 1073741824.0, WARN, "swap in use", \
      "training must not swap: free memory, then swapoff -a && swapon -a") \
    X(SHM_SIZE,           "shm_size",            MEMORY, BYTES, MIN, 1073741824.0, WARN, "size of /dev/shm", \
      "NCCL and data loaders need it: docker run --ipc=host or --shm-size=8g; Kubernetes: an emptyDir with medium: Memory") \
    X(SHM_FREE,           "shm_free",            MEMORY, PERCENT, MIN, 10, WARN, "free part of /dev/shm", \
      "an earlier job left files in /dev/shm: remove those that nobody has open (lsof +D /dev/shm)") \
    X(NUMA_BALANCING,     "numa_balancing",      MEMORY, YES, MAX, 0, INFO, "the kernel moves memory between NUMA nodes", \
      "it costs speed: sysctl kernel.numa_balancing=0") \
    X(CPU_SHARE,          "cpu_share",           SPEED, PERCENT, MIN, 80, INFO, "part of the time that a busy thread runs", \
      "other programs use the processors (top), or the cgroup has a quota (cpu.max): speeds are not judged then") \
    X(MEMLOCK,            "memlock",             LIMITS, BYTES, MIN, CHECK_UNLIMITED, WARN, "memory that may be locked", \
      "NCCL over InfiniBand or RoCE needs it: ulimit -l unlimited; docker run --ulimit memlock=-1") \
    X(NOFILE,             "nofile",              LIMITS, COUNT, MIN, 65536, WARN, "files that may be open", \
      "data loaders and NCCL need many: raise the hard limit (LimitNOFILE= of the service, limits.conf)") \
    X(DISK_FREE,          "disk_free",           DISK, PERCENT, MIN, 5, WARN, "free part of the file system", \
      "remove old checkpoints and logs, or use another folder") \
    X(DISK_WRITABLE,      "disk_writable",       DISK, YES, MIN, 1, BAD, "a small file can be written there", \
      "look at the mount (full, read only, gone?) and at dmesg") \
    X(DISK_WRITE,         "disk_write",          DISK, SECONDS, MAX, 5, WARN, "time to write a small file durably", \
      "the file system is overloaded or sick: checkpoints will be slow") \
    X(EDAC_UNCORRECTED,   "edac_uncorrected",    HARDWARE, COUNT, MAX, 0, BAD, "uncorrected memory errors since the host started", \
      "have the memory module replaced") \
    X(EDAC_CORRECTED,     "edac_corrected",      HARDWARE, COUNT, GROWS, 0, WARN, "corrected memory errors", \
      "have the memory module replaced at the next pause") \
    X(XID,                "xid",                 HARDWARE, COUNT, GROWS, 0, BAD, "GPU errors (Xid) in the kernel's log", \
      "do what the number asks for: NVIDIA's catalogue; mostly a reset of the GPU") \
    X(XID_PAST,           "xid_past",            HARDWARE, COUNT, MAX, 0, WARN, "the same, in the two hours before", \
      "if the GPU was not reset since, reset it (nvidia-smi -r)") \
    X(KERNEL,             "kernel_hardware",     HARDWARE, COUNT, GROWS, 0, BAD, "hardware errors in the kernel's log", \
      "see dmesg; take the host out of service until the part is replaced") \
    X(KERNEL_PAST,        "kernel_hardware_past",HARDWARE, COUNT, MAX, 0, WARN, "the same, before", \
      "see dmesg; run the vendor's diagnosis at the next pause") \
    X(PCI_LIMITED,        "pci_limited",         HARDWARE, COUNT, MAX, 0, INFO, "cards in slots that are too slow for them", \
      "look at the slot: ask whether other hosts of this kind say the same") \
    X(ZOMBIES,            "zombies",             PROCESS, COUNT, MAX, 20, WARN, "ended processes that nobody has waited for", \
      "restart the program that started them, or, in a container, run it with an init (docker run --init)") \
    X(STUCK,              "stuck_processes",     PROCESS, COUNT, MAX, 0, WARN, "processes that hang in the kernel", \
      "the device or file system they wait for is sick: see dmesg; often only a restart helps") \
    X(GDR,                "gdr",                 SYSTEM, YES, MIN, 1, WARN, "network cards can reach GPU memory directly", \
      "modprobe nvidia_peermem, or use the open kernel module of the driver (dma-buf)") \
    X(CLOCK_OFFSET,       "clock_offset",        SYSTEM, SECONDS, MAX, 1, WARN, "distance from the clocks of most other nodes", \
      "logs of different nodes will not fit together: start chronyd or ntpd") \
    X(CLOCK_SYNC,         "clock_synchronised",  SYSTEM, YES, MIN, 1, INFO, "clock is synchronised", \
      "start chronyd or ntpd, in a container on its host") \
    X(METRIC,             "too_slow",            PROBE, NONE, MIN, CHECK_OWN, BAD, "a speed for which --limits has a limit", \
      "look at what else runs there, at cooling and power, and at the checks of that part") \
    X(HANG,               "hang",                PROBE, SECONDS, MAX, CHECK_OWN, BAD, "time that a check took", \
      "what it looked at does not answer: see dmesg; often only a restart of the host helps") \
    X(CRASH,              "crash",               PROBE, YES, MIN, 1, WARN, "a check ended as it should", \
      "please report it, with the lines that it wrote")
/* clang-format on */

enum check {
#define X(id, name, group, unit, rule, limit, severity, what, advice) CHECK_##id,
    CHECK_LIST(X)
#undef X
        CHECKS
};

struct check_row {
    const char *name; /* stable: --checks, --limits and programs use it */
    enum check_group group;
    enum check_unit unit;
    enum check_rule rule;
    double limit;
    enum finding_state severity; /* INFO, WARN, BAD */
    const char *what;            /* what the value is; no verdict in it */
    const char *advice;
};
extern const struct check_row check_rows[CHECKS];

/* The check or group of that name ("-" may stand for "_"); -1 if there is none. */
int check_find(const char *name);
int check_find_group(const char *name);
/* The check or group whose name was probably meant; NULL. */
const char *check_nearest(const char *name);

const char *check_unit_name(enum check_unit u);
const char *finding_state_name(enum finding_state s);
int finding_state_find(const char *name); /* -1 */

/* --- what to look at and what is wrong: the table, changed by --checks and --limits --- */
struct check_conf {
    bool on[CHECKS];
    double limit[CHECKS];
    enum finding_state severity[CHECKS];
    bool own[CHECKS];                    /* the limit is the child's own */
    uint32_t metric_milli[METRIC_COUNT]; /* limits of speeds that a node measures alone; 0: none */
    enum finding_state metric_severity[METRIC_COUNT];
};
void check_conf_init(struct check_conf *c); /* everything, as in the table */
/* A child for this group is needed. */
bool check_conf_group(const struct check_conf *c, enum check_group g);

/* --- findings --- */
#define FINDING_ON_MAX   96
#define FINDING_TEXT_MAX 200

struct finding {
    enum check check;
    enum finding_state state;
    bool has_value;
    double value, limit;         /* limit: with has_value */
    char on[FINDING_ON_MAX];     /* "mlx5_0/1", "GPU 3"; "": the node itself */
    char text[FINDING_TEXT_MAX]; /* more than the number says: "1: DOWN", "cannot be read: Permission denied"; or "" */
};

/* Without state: `on` and `text` are cut where they do not fit; what is not plain text becomes '?'. */
struct finding finding_value(enum check c, const char *on, double value);
struct finding finding_unchecked(enum check c, const char *on, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void finding_say(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What counters were when the probe began. */
#define CHECK_COUNTS_MAX 2048
struct check_count {
    enum check check;
    char on[FINDING_ON_MAX];
    double value;
};
struct check_counts {
    unsigned n, left_out;
    struct check_count v[CHECK_COUNTS_MAX];
};

/* What was found on one node. */
#define FINDINGS_MAX 512
struct findings {
    unsigned n, left_out; /* left_out: harmless ones that had no room */
    struct finding v[FINDINGS_MAX];
};

/* Of two that say the same thing of the same part (first and last look) the graver stays. */
void findings_put(struct findings *all, const struct finding *f);
enum finding_state findings_worst(const struct findings *all); /* OK if there is none */

/* Everything that one probe of one node keeps about checks; half a MiB, not for the stack. */
struct checking {
    struct check_conf conf;
    struct check_counts before;
    struct findings findings;
};

/* A finding as it came from a child gets its limit and its state and is kept.  In the first look (last: false) counters
 * are only noted; in the last one they are judged by what they grew.  What is unchecked or undecided stays so; what is
 * not looked for is dropped. */
void checking_take(struct checking *c, bool last, struct finding f);

/* The same for one value: limit and state by its rule; for CHECK_GROWS the value is the growth.  Unchecked with a
 * value: what would be counted does not exist here, which is wrong only if the limit wants some. */
void check_judge(const struct check_conf *c, struct finding *f);

/* A speed that the node measured alone (rail: or the GPU).  False: nobody set a limit for it. */
bool check_metric(const struct check_conf *c, enum metric m, unsigned rail, uint32_t milli, struct finding *f);

/* A child of this group did not end within its time and was killed; process_state as in /proc/PID/stat just before ('?'
 * not known), quota_millis: thousandths of a processor that the cgroup allows, UINT64_MAX for no quota.  A process that
 * waits in the kernel is a bad finding.  One that was running, or that a quota kept from running, says nothing about
 * the node: undecided. */
void check_hung(enum check_group g, double after_s, char process_state, uint64_t quota_millis, struct finding *f);
/* It ended by a signal (> 0) or with a status other than 0. */
void check_crashed(enum check_group g, int signal, int status, struct finding *f);

/* --- for people --- */
/* "400 Gb/s", "63.5 GiB", "unlimited", "12 %", "yes"; room for CHECK_VALUE_MAX bytes. */
#define CHECK_VALUE_MAX 32
const char *check_value_text(enum check_unit u, double value, char *to);
/* What is expected: "at least 4 lanes", "none", "at most 30 %"; room for CHECK_LIMIT_MAX bytes. */
#define CHECK_LIMIT_MAX (CHECK_VALUE_MAX + 16)
const char *check_limit_text(enum check c, double limit, char *to);
/* One line without the advice: "ib-rate of mlx5_0/1: 100 Gb/s, at least 400 Gb/s expected (100 Gb/sec (1X EDR))". */
void finding_text(const struct finding *f, struct el_buf *out);

/* All checks by group, with the limits of the table, in 100 columns. */
void check_list_text(struct el_buf *out);

/* --- lines (wire.h) --- */
struct probe_wire;
struct wire_check;
/* As a line; what has been judged takes its state and limit along. */
void finding_to_wire(const struct finding *f, struct probe_wire *w);
/* A line without a number keeps the state that it brings.  -1: a check that is not known here. */
int finding_from_wire(const struct wire_check *w, struct finding *f);

#endif
