/* What the kernel's small texts say about ports, links, memory and drivers.  Pure; check_*_io.c reads the files.  All
 * texts end with 0; what is not what the kernel writes is refused (false, -1) and leaves *out alone. */
#ifndef PROBE_SYSREAD_H
#define PROBE_SYSREAD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "4: ACTIVE\n", "5: LinkUp\n" of an InfiniBand port: the number. */
bool sysread_port_state(const char *text, unsigned *out);

/* "400 Gb/sec (4X NDR)\n", "2.5 Gb/sec (1X SDR)\n"; lanes 0: not said. */
bool sysread_port_rate(const char *text, double *gbits, unsigned *lanes);

/* A counter: one number and nothing else ("N/A (no PMA)" is none). */
bool sysread_count(const char *text, uint64_t *out);

/* "up", "unknown" (drivers that do not say) of /sys/class/net: true; "down", "lowerlayerdown", …: false. */
bool sysread_oper_up(const char *text);

/* Class of a PCI device, "0x020700\n". */
bool sysread_pci_class(const char *text, uint32_t *out);
/* Is it worth looking at its errors: network card, GPU, NVMe, or a bridge?  At its width: the first two. */
bool sysread_pci_matters(uint32_t class);
bool sysread_pci_width_matters(uint32_t class);

/* The line "TOTAL_ERR_FATAL 3" among those of aer_dev_fatal; key without the space. */
bool sysread_aer(const char *text, const char *key, uint64_t *out);

/* The part of /proc/meminfo that is needed, in bytes; what is missing is 0. */
struct sysread_memory {
    uint64_t total, available, swap_total, swap_free;
};
bool sysread_memory(const char *meminfo, struct sysread_memory *out); /* false: no total */

/* "model name : AMD EPYC 9654 96-Core Processor" of /proc/cpuinfo; other architectures say it otherwise. */
bool sysread_cpu_name(const char *cpuinfo, char *to, size_t room);

/* How many numbers "0-95,128\n" has. */
bool sysread_range_count(const char *text, unsigned *out);

/* Version of NVIDIA's kernel module, and whether it is the open one, from /proc/driver/nvidia/version. */
bool sysread_nvidia(const char *text, char *version, size_t room, bool *open);

/* "6.1.0-18-amd64": at least major.minor? */
bool sysread_kernel_since(const char *release, unsigned major, unsigned minor);

/* What records of the kernel's log tell about the hardware. */
struct sysread_log {
    uint64_t xids, hardware;         /* since the log begins; xids: only those for which hardware may be at fault */
    uint64_t xids_recent;            /* within the span */
    unsigned limited;                /* PCI devices with less bandwidth than they could use */
    unsigned xid_last;               /* number of the newest of xids */
    char xid_device[20], device[20]; /* of the newest; of the first limited */
    char hardware_text[160];         /* the newest of hardware */
};
/* now_usec, span_usec: since boot, as the log counts. */
void sysread_log_add(struct sysread_log *log, const char *record, size_t n, uint64_t now_usec, uint64_t span_usec);

#endif
