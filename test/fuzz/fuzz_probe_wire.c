/* Any bytes as what a probe's child says: bounded, and what was read is written and read again with the same result. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "probe/wire.h"

static void check(const char *line, size_t n)
{
    struct el_buf one = EL_BUF_INIT(NULL, 0), two = EL_BUF_INIT(NULL, 0);
    struct el_err e = {0};
    struct probe_wire a, b;
    char text[64];
    if (wire_decode(line, n, &a, &e) == 0) {
        assert(wire_encode(&a, &one) == 0 && one.len <= 2 * WIRE_LINE_MAX);
        assert(wire_decode(one.v, one.len, &b, &e) == 0 && a.type == b.type);
        assert(wire_encode(&b, &two) == 0 && one.len == two.len && memcmp(one.v, two.v, one.len) == 0);
        assert(memchr(one.v, '\n', one.len) == one.v + one.len - 1 && !memchr(one.v, 0x1b, one.len));
        if (a.type == WIRE_ERR)
            assert(!strpbrk(wire_text(text, sizeof text, a.u.err.text), "\x1b\r\n"));
        wire_release(&a);
        wire_release(&b);
    } else {
        assert(a.type == WIRE_NONE && e.status);
    }
    el_buf_free(&one);
    el_buf_free(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct wire_reader r;
    r.len = r.skipping = 0;
    for (size_t at = 0, len; at < n;) {
        size_t used = wire_feed(&r, (const char *)data + at, n - at, &len);
        assert(used && used <= n - at && len <= WIRE_LINE_MAX);
        at += used;
        if (len)
            check(r.line, len);
    }
    return 0;
}
