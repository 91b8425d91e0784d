/* Small texts of the kernel, limits, baselines and past verdicts: whatever stands there, the readers stay inside, what
 * they accept is in range, and what they write they read again.  The first byte says what it is. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "probe/baseline.h"
#include "probe/history.h"
#include "probe/limits.h"
#include "probe/sysread.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_plain(const char *s, size_t room)
{
    size_t n = strnlen(s, room);
    assert(n < room);
    for (size_t i = 0; i < n; i++)
        assert(s[i] >= ' ' && s[i] <= '~');
}

static void texts(const char *text)
{
    unsigned number;
    uint32_t class;
    uint64_t count;
    double rate;
    char name[16];
    bool open;
    struct sysread_memory m;
    if (sysread_port_state(text, &number))
        assert(number < 256);
    if (sysread_port_rate(text, &rate, &number))
        assert(rate >= 0 && number <= 64);
    if (sysread_pci_class(text, &class))
        assert(class <= 0xffffff);
    if (sysread_memory(text, &m))
        assert(m.total);
    if (sysread_range_count(text, &number))
        assert(number);
    if (sysread_cpu_name(text, name, sizeof name) || sysread_nvidia(text, name, sizeof name, &open))
        assert(strnlen(name, sizeof name) < sizeof name);
    sysread_count(text, &count);
    sysread_aer(text, "TOTAL_ERR_FATAL", &count);
    sysread_kernel_since(text, 5, 12);
    sysread_oper_up(text);
}

static void records(const char *text, size_t n)
{
    struct sysread_log log = {0};
    for (const char *end = text + n; text < end;) {
        const char *nl = memchr(text, '\n', (size_t)(end - text));
        size_t len = nl ? (size_t)(nl - text) : (size_t)(end - text);
        sysread_log_add(&log, text, len, 1000000, 1000);
        text += len + 1;
    }
    assert(log.xids_recent <= log.xids && (log.xids == 0) == (log.xid_last == 0));
    check_plain(log.device, sizeof log.device);
    check_plain(log.hardware_text, sizeof log.hardware_text);
}

static void history(const char *text, size_t n)
{
    static struct history a, b;
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    a.n = a.broken = b.n = b.broken = 0;
    history_parse(&a, text, n);
    for (unsigned i = 0; i < a.n; i++) {
        check_plain(a.v[i].node, sizeof a.v[i].node);
        check_plain(a.v[i].reason, sizeof a.v[i].reason);
        history_encode(&a.v[i], &out);
    }
    history_parse(&b, out.v, out.len);
    assert(a.n == b.n && !b.broken);
    if (a.n)
        assert(history_text(&a, a.v[0].node, a.v[0].time_s, &out) <= a.n);
    el_buf_free(&out);
}

static void baseline(const char *text, size_t n)
{
    static struct baseline a, b;
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    if (baseline_decode(&a, text, n, NULL) == 0) {
        assert(baseline_encode(&a, &out) == 0 && baseline_decode(&b, out.v, out.len, NULL) == 0);
        assert(memcmp(a.milli, b.milli, sizeof a.milli) == 0 && baseline_fits(&a, &b.facts, NULL) == 0);
    }
    el_buf_free(&out);
}

static void conf(const char *text, size_t n)
{
    static struct check_conf c;
    struct el_err e = {0};
    check_conf_init(&c);
    if (limits_parse(&c, text, n, &e))
        assert(e.status && e.text[0]);
    checks_parse(&c, text, NULL);
    assert(c.on[CHECK_HANG]);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    if (!size || size > 65536)
        return 0;
    size_t n = size - 1;
    char *text = malloc(n + 1); /* exactly as long as it is, so that the sanitizer sees one byte too many */
    memcpy(text, data + 1, n);
    text[n] = 0;
    switch (data[0]) {
    case 'l': records(text, n); break;
    case 'h': history(text, n); break;
    case 'b': baseline(text, n); break;
    case 'c': conf(text, n); break;
    default: texts(text); break;
    }
    free(text);
    return 0;
}
