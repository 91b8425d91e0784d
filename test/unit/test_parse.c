#include "lib/tap.h"
#include "util/array.h"
#include "util/parse.h"

#define BAD UINT64_MAX

struct number_case {
    const char *text;
    uint64_t want; /* BAD = refused */
};

/* clang-format off */
static const struct number_case u64_cases[] = {
    {"0", 0},          {"7", 7},      {"007", 7},       {"18446744073709551614", BAD - 1}, {"18446744073709551616", BAD},
    {"", BAD},         {" 1", BAD},   {"1 ", BAD},      {"+1", BAD},                       {"-1", BAD},
    {"0x10", BAD},     {"1e3", BAD},  {"1_000", BAD},   {"99999999999999999999", BAD},     {"1\n", BAD},
};
static const struct number_case span_cases[] = {
    {"30", 30000000},   {"0.5", 500000},     {".5", 500000},       {"5.", 5000000},      {"30s", 30000000},
    {"500ms", 500000},  {"7us", 7},          {"2m", 120000000},    {"1h", 3600000000u},  {"1d", 86400000000u},
    {"0", 0},           {"0.000001", 1},     {"0.0000010", 1},     {"0.0000001", BAD},   {"1.5h", 5400000000u},
    {"0.5us", BAD},     {"1.5us", BAD},      {"1.5ms", 1500},      {"", BAD},            {".", BAD},
    {"s", BAD},         {"-1", BAD},         {"1 s", BAD},         {"1x", BAD},          {"1.2.3", BAD},
    {"inf", BAD},       {"nan", BAD},        {"1e3", BAD},         {"18446744073709", 18446744073709000000u},
    {"18446744073710", BAD}, {"18446744073709.6", BAD}, {"213503983d", BAD}, {"99999999999999999999", BAD},
};
static const struct number_case size_cases[] = {
    {"4096", 4096},  {"64K", 65536},      {"64KiB", 65536}, {"64KB", 65536}, {"1B", 1},   {"2G", 2147483648u},
    {"1T", 1099511627776u}, {"0", 0},     {"K", BAD},       {"", BAD},       {"1k", BAD}, {"1KiBs", BAD},
    {"1iB", BAD},    {"-1", BAD},         {"16777215T", 18446742974197923840u}, {"16777216T", BAD}, {"1X", BAD},
};
/* clang-format on */

static void run(const struct number_case *c, size_t n, int (*parse)(const char *, uint64_t *), const char *what)
{
    for (size_t i = 0; i < n; i++) {
        char name[80];
        uint64_t got = 12345;
        int r = parse(c[i].text, &got);
        snprintf(name, sizeof name, "%s \"%.30s\"", what,
                 c[i].text[0] == '1' && c[i].text[1] == '\n' ? "1 newline" : c[i].text);
        if (c[i].want == BAD)
            ok(r == -1 && got == 12345, name);
        else
            ok(r == 0 && got == c[i].want, name);
    }
}

static void test_i64(void)
{
    int64_t v;
    ok(el_parse_i64("-9223372036854775808", &v) == 0 && v == INT64_MIN, "the smallest number");
    ok(el_parse_i64("9223372036854775807", &v) == 0 && v == INT64_MAX, "the largest");
    ok(el_parse_i64("-0", &v) == 0 && v == 0, "minus zero is zero");
    ok(el_parse_i64("9223372036854775808", &v) && el_parse_i64("-9223372036854775809", &v), "one beyond either end");
    ok(el_parse_i64("--1", &v) && el_parse_i64("-", &v) && el_parse_i64("+1", &v), "odd signs");
}

static void test_bool(void)
{
    int v = -1;
    ok(!el_parse_bool("True", 4, &v) && v == 1, "True");
    ok(!el_parse_bool("NO", 2, &v) && v == 0, "NO");
    ok(!el_parse_bool("yes,more", 3, &v) && v == 1, "the first n bytes count");
    ok(el_parse_bool("", 0, &v) && el_parse_bool("2", 1, &v) && el_parse_bool("maybe", 5, &v), "neither yes nor no");
}

static void test_show(void)
{
    char out[EL_SHOW_MAX], many[300];
    is_str(el_show("plain \xc3\xa4", out), "plain \xc3\xa4", "text and valid UTF-8 stay");
    is_str(el_show("a\nb\x1b[31m\x7f", out), "a\\x0ab\\x1b[31m\\x7f", "control bytes cannot break the line");
    is_str(el_show("\xff\xc0\xaf\xed\xa0\x80", out), "\\xff\\xc0\\xaf\\xed\\xa0\\x80",
           "invalid UTF-8, overlong, surrogate");
    is_str(el_show("\xc2\x9b", out), "\\xc2\\x9b", "C1 controls too");
    is_str(el_show("\xf4\x90\x80\x80\xe2\x82", out), "\\xf4\\x90\\x80\\x80\\xe2\\x82",
           "too large, and cut off at the end");
    memset(many, 'x', sizeof many - 1);
    many[sizeof many - 1] = 0;
    ok(strlen(el_show(many, out)) == EL_SHOW_MAX - 1 && !strcmp(out + EL_SHOW_MAX - 4, "..."), "a long text is cut");
    memset(many, 1, sizeof many - 1);
    ok(strlen(el_show(many, out)) < EL_SHOW_MAX, "a long text of control bytes is cut");
}

int main(void)
{
    run(u64_cases, COUNT_OF(u64_cases), el_parse_u64, "number");
    run(span_cases, COUNT_OF(span_cases), el_parse_duration, "time");
    run(size_cases, COUNT_OF(size_cases), el_parse_size, "size");
    test_i64();
    test_bool();
    test_show();
    return done();
}
