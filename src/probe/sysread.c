#include "probe/sysread.h"

#include <stdio.h>
#include <string.h>

#include "util/text.h"
#include "sys/xid.h"
#include "sys/kmsg.h"
#include "util/ranges.h"
#include "util/scan.h"

#define KIB 1024u

static bool at_end(const char *at)
{
    scan_blanks(&at);
    return !*at || *at == '\n';
}

/* Up to the first of a, b or the end. */
static size_t span(const char *s, char a, char b)
{
    size_t n = 0;
    while (s[n] && s[n] != a && s[n] != b)
        n++;
    return n;
}

/* --- ports -------------------------------------------------------------------------------------------------------- */

bool sysread_port_state(const char *text, unsigned *out)
{
    uint64_t n;
    if (!scan_u64(&text, &n) || *text != ':' || n > 255)
        return false;
    *out = (unsigned)n;
    return true;
}

bool sysread_port_rate(const char *text, double *gbits, unsigned *lanes)
{
    uint64_t whole, tenth = 0, x = 0;
    if (!scan_u64(&text, &whole) || whole > 1000000)
        return false;
    if (*text == '.' && text[1] >= '0' && text[1] <= '9') {
        tenth = (uint64_t)(text[1] - '0');
        for (text += 2; *text >= '0' && *text <= '9'; text++)
            ;
    }
    if (strncmp(text, " Gb/sec", 7) != 0)
        return false;
    text += 7;
    if (strncmp(text, " (", 2) == 0) {
        text += 2;
        if (!scan_u64(&text, &x) || *text != 'X' || x > 64)
            x = 0;
    }
    *gbits = (double)whole + (double)tenth / 10;
    *lanes = (unsigned)x;
    return true;
}

bool sysread_count(const char *text, uint64_t *out)
{
    uint64_t n;
    if (!scan_u64(&text, &n) || !at_end(text))
        return false;
    *out = n;
    return true;
}

bool sysread_oper_up(const char *text)
{
    return strncmp(text, "up", 2) == 0 || strncmp(text, "unknown", 7) == 0;
}

/* --- PCI ---------------------------------------------------------------------------------------------------------- */

bool sysread_pci_class(const char *text, uint32_t *out)
{
    uint64_t n;
    if (strncmp(text, "0x", 2) != 0)
        return false;
    text += 2;
    if (!scan_hex(&text, &n) || n > 0xffffff || !at_end(text))
        return false;
    *out = (uint32_t)n;
    return true;
}

bool sysread_pci_width_matters(uint32_t class)
{
    return class >> 16 == 0x02 || class >> 16 == 0x03;
}

bool sysread_pci_matters(uint32_t class)
{
    return sysread_pci_width_matters(class) || class >> 8 == 0x0108 || class >> 8 == 0x0604;
}

bool sysread_aer(const char *text, const char *key, uint64_t *out)
{
    const char *at = scan_field(text, key);
    uint64_t n;
    if (!at || !scan_u64(&at, &n) || !at_end(at))
        return false;
    *out = n;
    return true;
}

/* --- the host ----------------------------------------------------------------------------------------------------- */

static uint64_t sysread_kib_field(const char *text, const char *key)
{
    const char *at = scan_field(text, key);
    uint64_t n;
    return at && scan_u64(&at, &n) && n <= UINT64_MAX / KIB ? n * KIB : 0;
}

bool sysread_memory(const char *meminfo, struct sysread_memory *out)
{
    uint64_t total = sysread_kib_field(meminfo, "MemTotal:");
    if (!total)
        return false;
    *out = (struct sysread_memory){
        .total = total,
        .available = sysread_kib_field(meminfo, "MemAvailable:"),
        .swap_total = sysread_kib_field(meminfo, "SwapTotal:"),
        .swap_free = sysread_kib_field(meminfo, "SwapFree:"),
    };
    return true;
}

bool sysread_cpu_name(const char *cpuinfo, char *to, size_t room)
{
    static const char *const keys[] = {"model name", "cpu model", "Model", "cpu", "CPU part"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *at = scan_field(cpuinfo, keys[i]);
        if (!at || *at != ':')
            continue;
        at++;
        scan_blanks(&at);
        size_t n = span(at, '\n', '\n');
        if (!n)
            continue;
        snprintf(to, room, "%.*s", n < room ? (int)n : (int)room - 1, at);
        return true;
    }
    return false;
}

bool sysread_range_count(const char *text, unsigned *out)
{
    char line[4096];
    const char *at = line;
    unsigned first, last;
    uint64_t count = 0;
    if (!scan_line(text, line, sizeof line))
        return false;
    while (el_ranges_next(&at, &first, &last))
        count += (uint64_t)last - first + 1;
    if (*at || !count || count > UINT32_MAX)
        return false;
    *out = (unsigned)count;
    return true;
}

/* The first word that begins with a digit and has a dot in it. */
static bool find_version(const char *line, char *version, size_t room)
{
    for (const char *at = line; *at && *at != '\n'; at += *at == ' ') {
        size_t n = span(at, ' ', '\n');
        if (n && at[0] >= '0' && at[0] <= '9' && memchr(at, '.', n)) {
            snprintf(version, room, "%.*s", n < room ? (int)n : (int)room - 1, at);
            return true;
        }
        at += n;
    }
    return false;
}

bool sysread_nvidia(const char *text, char *version, size_t room, bool *open)
{
    const char *line = scan_field(text, "NVRM version:");
    if (!line || !find_version(line, version, room))
        return false;
    const char *found = text_find((struct text){line, span(line, '\n', '\n')}, "Open Kernel Module");
    *open = found != NULL;
    return true;
}

bool sysread_kernel_since(const char *release, unsigned major, unsigned minor)
{
    uint64_t a, b;
    if (!scan_u64(&release, &a) || *release != '.')
        return false;
    release++;
    if (!scan_u64(&release, &b))
        return false;
    return a > major || (a == major && b >= minor);
}

/* --- the kernel's log --------------------------------------------------------------------------------------------- */

/* "6,1234,5678,-;mlx5_core 0000:3b:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link …" */
static void find_limited(struct sysread_log *log, struct text record)
{
    const char *device = text_find(record, ";");
    if (!device || !text_find(record, "available PCIe bandwidth, limited by"))
        return;
    size_t left = record.n - (size_t)(device + 1 - record.p), n = 0;
    const char *at = memchr(device + 1, ' ', left);
    if (log->limited++ || !at)
        return;
    for (at++; at < record.p + record.n && n + 1 < sizeof log->device && *at > ' ' && *at <= '~'; at++)
        log->device[n++] = *at;
    if (n && log->device[n - 1] == ':')
        n--;
    log->device[n] = 0;
}

void sysread_log_add(struct sysread_log *log, const char *record, size_t n, uint64_t now_usec, uint64_t span_usec)
{
    struct kmsg_fact fact;
    find_limited(log, (struct text){record, n});
    if (!kmsg_parse(&fact, record, n))
        return;
    if (fact.kind == KMSG_HARDWARE) {
        log->hardware++;
        snprintf(log->hardware_text, sizeof log->hardware_text, "%.150s", fact.text);
    }
    if (fact.kind != KMSG_XID || !xid_is_suspect(fact.xid))
        return;
    log->xids++;
    log->xids_recent += fact.usec >= now_usec || now_usec - fact.usec <= span_usec;
    log->xid_last = fact.xid;
    snprintf(log->xid_device, sizeof log->xid_device, "%s", fact.device);
}
