#include "sys/kmsg.h"

#include <limits.h>
#include <string.h>

#include "util/text.h"
#include "sys/xid.h"
#include "util/scan.h"

/* Kernel messages are short ASCII lines; what is longer than this is of no kind that is known. */
#define MESSAGE_MAX 1024

/* Hardware that failed and was not repaired on the fly; corrected errors are daily bread and explain no death.  Both
 * texts must be there. */
#define HARDWARE_RULES(X)                                                                                              \
    X("[Hardware Error]", "Machine Check Exception")                                                                   \
    X("[Hardware Error]", "severity: fatal")                                                                           \
    X("[Hardware Error]", "severity: recoverable")                                                                     \
    X("[Hardware Error]", "Uncorrected")                                                                               \
    X("EDAC", " UE ")                                                                                                  \
    X("PCIe Bus Error", "(Fatal)")                                                                                     \
    X("AER:", "(Fatal)")                                                                                               \
    X("SXid (", ", Fatal")

static bool kmsg_skip_char(const char **at, char c)
{
    if (**at != c)
        return false;
    ++*at;
    return true;
}

/* The head of a record.  False if it is none, or if its facility (the priority without its lowest three bits) is not
 * the kernel's: programs may write to the log, but not under that name. */
static bool kmsg_take_head(const char **at, struct kmsg_fact *f)
{
    uint64_t priority;
    if (!scan_u64(at, &priority) || priority > 7 || !kmsg_skip_char(at, ',') || !scan_u64(at, &f->seq) ||
        !kmsg_skip_char(at, ',') || !scan_u64(at, &f->usec))
        return false;
    const char *text = strchr(*at, ';'); /* flags, and what later kernels put there */
    if (**at != ',' || !text)
        return false;
    *at = text + 1;
    return true;
}

static bool take_pid(const char *at, int *pid)
{
    int n;
    if (!scan_int(&at, &n) || n <= 0)
        return false;
    *pid = n;
    return true;
}

static const char *kmsg_find(const char *in, const char *what)
{
    return text_find((struct text){in, strlen(in)}, what);
}

/* n bytes of a name; what is not plain text becomes '?'. */
static void kmsg_copy(char *to, size_t size, const char *from, size_t n)
{
    if (n >= size)
        n = size - 1;
    for (size_t i = 0; i < n; i++)
        to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    to[n] = 0;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The first PCI address, "0000:3b:00"; a function behind it is left out. */
static void find_device(struct kmsg_fact *f, const char *text)
{
    for (const char *p = text; *p; p++) {
        size_t domain = 0;
        while (is_hex(p[domain]))
            domain++;
        if (domain >= 4 && domain <= 8 && p[domain] == ':' && is_hex(p[domain + 1]) && is_hex(p[domain + 2]) &&
            p[domain + 3] == ':' && is_hex(p[domain + 4]) && is_hex(p[domain + 5])) {
            kmsg_copy(f->device, sizeof f->device, p, domain + 6);
            return;
        }
        p += domain ? domain - 1 : 0;
    }
}

/* "… Killed process 6069 (python) total-vm:…"; a name may hold parentheses. */
static bool find_oom(struct kmsg_fact *f, const char *text)
{
    static const char key[] = "Killed process ";
    const char *at = kmsg_find(text, key);
    if (!at || !take_pid(at + sizeof key - 1, &f->pid))
        return false;
    const char *name = strchr(at, '('), *end = kmsg_find(at, ") total-vm:");
    if (!end)
        end = strrchr(at, ')');
    if (name && end && end > name)
        kmsg_copy(f->comm, sizeof f->comm, name + 1, (size_t)(end - name - 1));
    f->kind = KMSG_OOM;
    return true;
}

static bool find_xid(struct kmsg_fact *f, const char *text)
{
    struct xid_event x;
    if (!xid_parse(text, strlen(text), &x) || !x.number)
        return false;
    f->kind = KMSG_XID;
    f->xid = x.number;
    f->pid = x.pid > 0 ? x.pid : 0;
    kmsg_copy(f->device, sizeof f->device, x.gpu, strlen(x.gpu));
    return true;
}

/* "Memory failure: 0x…: Sending SIGBUS to python:7 due to hardware memory corruption" */
static bool find_poison(struct kmsg_fact *f, const char *text)
{
    const char *end = kmsg_find(text, " due to hardware memory corruption");
    if (!end || end == text)
        return false;
    const char *colon = end;
    while (colon > text && *colon != ':')
        colon--;
    if (*colon != ':' || !take_pid(colon + 1, &f->pid))
        return false;
    f->kind = KMSG_HARDWARE;
    return true;
}

static bool find_hardware(struct kmsg_fact *f, const char *text)
{
    static const struct {
        const char *a, *b;
    } rules[] = {
#define X(a, b) {a, b},
        HARDWARE_RULES(X)
#undef X
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (kmsg_find(text, rules[i].a) && kmsg_find(text, rules[i].b)) {
            find_device(f, text);
            f->kind = KMSG_HARDWARE;
            return true;
        }
    return false;
}

/* "python[7]: segfault at 0 ip … in libfoo.so[…]", "traps: python[7] general protection fault ip:…" */
static bool find_crash(struct kmsg_fact *f, const char *text)
{
    static const char traps[] = "traps: ";
    bool trap = strncmp(text, traps, sizeof traps - 1) == 0;
    const char *name = trap ? text + sizeof traps - 1 : text;
    const char *end = trap ? kmsg_find(name, "] ") : kmsg_find(name, "]: segfault at ");
    if (!end)
        return false;
    const char *open = end;
    while (open > name && *open != '[')
        open--;
    if (*open != '[' || !take_pid(open + 1, &f->pid))
        return false;
    kmsg_copy(f->comm, sizeof f->comm, name, (size_t)(open - name));
    f->kind = KMSG_CRASH;
    return true;
}

bool kmsg_parse(struct kmsg_fact *fact, const char *bytes, size_t n)
{
    char text[MESSAGE_MAX];
    *fact = (struct kmsg_fact){.kind = KMSG_OTHER};
    const char *end = memchr(bytes, '\n', n);
    n = end ? (size_t)(end - bytes) : n;
    if (n >= sizeof text)
        n = sizeof text - 1;
    memcpy(text, bytes, n);
    text[n] = 0;
    const char *at = text;
    if (!kmsg_take_head(&at, fact))
        return false;
    if (!find_oom(fact, at) && !find_xid(fact, at) && !find_poison(fact, at) && !find_hardware(fact, at) &&
        !find_crash(fact, at))
        return false;
    kmsg_copy(fact->text, sizeof fact->text, at, strlen(at));
    return true;
}

void kmsg_add(struct kmsg_log *log, const char *bytes, size_t n)
{
    struct kmsg_fact fact;
    if (!kmsg_parse(&fact, bytes, n))
        return;
    if (log->n < KMSG_FACTS_MAX)
        log->fact[log->n++] = fact;
    else if (log->left_out < UINT_MAX)
        log->left_out++;
}

const struct kmsg_fact *kmsg_of(const struct kmsg_log *log, enum kmsg_kind kind, int pid)
{
    for (unsigned i = 0; log->pids_ours && pid > 0 && i < log->n; i++)
        if (log->fact[i].kind == kind && log->fact[i].pid == pid)
            return &log->fact[i];
    return NULL;
}

unsigned kmsg_count(const struct kmsg_log *log, enum kmsg_kind kind)
{
    unsigned count = 0;
    for (unsigned i = 0; i < log->n; i++)
        count += log->fact[i].kind == kind;
    return count;
}
