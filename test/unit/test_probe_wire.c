/* Lines of a probe's children: there and back for every kind, bounds, words of strangers, lines out of bytes. */
#include "probe/wire.h"

#include <math.h>

#include "lib/tap.h"

static struct el_buf out;

static const char *encoded(const struct probe_wire *w)
{
    out.len = 0;
    wire_encode(w, &out);
    return el_buf_cstr(&out);
}

static int decode(const char *line, struct probe_wire *w)
{
    struct el_err e = {0};
    return wire_decode(line, strlen(line), w, &e);
}

static void test_kinds(void)
{
    for (unsigned t = WIRE_NONE + 1; t <= WIRE_CHECK_ORDER; t++) {
        struct probe_wire a, b;
        char first[WIRE_LINE_MAX];
        wire_init(&a, (enum wire_type)t);
        snprintf(first, sizeof first, "%s", encoded(&a));
        int good = decode(first, &b) == 0 && b.type == a.type && strcmp(encoded(&b), first) == 0;
        ok(good, wire_name((enum wire_type)t));
        wire_release(&b);
    }
}

static void test_values(void)
{
    struct probe_wire a, b;
    wire_init(&a, WIRE_M);
    a.u.m.name = "tcp_bw64m";
    a.u.m.unit = "GB/s";
    a.u.m.rail = 0;
    a.u.m.n = 20;
    a.u.m.min = 1.5;
    a.u.m.median = 2.25;
    is_str(encoded(&a),
           "{\"t\":\"m\",\"name\":\"tcp_bw64m\",\"rail\":0,\"n\":20,\"min\":1.5,\"median\":2.25,\"unit\":\"GB/s\"}\n",
           "a metric; what is not known is left out");
    ok(decode(encoded(&a), &b) == 0 && b.u.m.n == 20 && !(b.u.m.min < 1.5 || b.u.m.min > 1.5) && isnan(b.u.m.p95),
       "and read");
    wire_release(&b);
    ok(decode("{\"t\":\"m\",\"name\":\"x\",\"new\":[1]}", &b) == 0 && b.u.m.rail == -1 && !b.u.m.n,
       "fields of a newer version are passed over");
    wire_release(&b);
    wire_init(&a, WIRE_END);
    is_str(encoded(&a), "{\"t\":\"end\"}\n", "nothing but a kind");
    char text[16];
    is_str(wire_text(text, sizeof text, "a\x1b[31mb\nc"), "a?[31mb?c", "what steers a terminal does not go out");
    is_str(wire_text(text, sizeof text, "0123456789abcd\xc3\xa9"), "0123456789ab\xe2\x80\xa6",
           "what is too long is cut");
}

static void test_refused(void)
{
    static const char *const bad[] = {
        "",
        "[]",
        "7",
        "{",
        "{\"t\":\"?\"}",
        "{\"t\":1}",
        "{}",
        "{\"t\":\"m\",\"t\":\"m\"}",
        "{\"t\":\"m\",\"name\":\"x\",\"n\":-1}",
        "{\"t\":\"m\",\"name\":\"x\",\"n\":1.5}",
        "{\"t\":\"m\",\"name\":\"x\",\"rail\":5000}",
        "{\"t\":\"m\",\"name\":\"x\",\"rail\":-2}",
        "{\"t\":\"m\",\"name\":\"x\",\"min\":\"1\"}",
        "{\"t\":\"end\",\"ok\":1}",
        "{\"t\":\"id\",\"id\":null}",
        "{\"t\":\"end\",\"x\":[[[1]]]}",
        "{\"t\":\"end\"} x",
    };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct probe_wire w;
        ok(decode(bad[i], &w) < 0 && w.type == WIRE_NONE, bad[i]);
    }
}

static void test_reader(void)
{
    static struct wire_reader r;
    static char big[WIRE_LINE_MAX + 10];
    const char *text = "one\ntwo\n\nthr";
    char got[64] = "";
    size_t n = strlen(text), len;
    for (size_t at = 0; at < n;) {
        at += wire_feed(&r, text + at, n - at, &len);
        if (len)
            sprintf(got + strlen(got), "<%.*s>", (int)len, r.line);
    }
    is_str(got, "<one><two>", "whole lines only, empty ones are none");
    ok(wire_feed(&r, "ee\n", 3, &len) == 3 && len == 5 && !memcmp(r.line, "three", 5), "a line in two pieces");
    memset(big, 'x', sizeof big);
    wire_feed(&r, big, sizeof big, &len);
    ok(!len && r.dropped == 1, "a line without end is dropped");
    wire_feed(&r, big, 10, &len);
    wire_feed(&r, "\n", 1, &len);
    ok(!len && r.dropped == 1, "to its end, once");
    wire_feed(&r, "ok\n", 3, &len);
    ok(len == 2, "the next line is read again");
}

int main(void)
{
    test_kinds();
    test_values();
    test_refused();
    test_reader();
    el_buf_free(&out);
    return done();
}
