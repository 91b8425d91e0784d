#include "lib/tap.h"
#include "output/filter.h"
#include "output/line.h"
#include "output/logtree.h"
#include "output/prefix.h"
#include "output/ring.h"

static void test_line(void)
{
    struct el_mem m = EL_MEM_INIT(0);
    struct el_buf out = EL_BUF_INIT(&m, 0);
    struct line l;
    line_init(&l, &m, "[0]:", 8);
    line_feed(&l, "one\ntwo\nth", 10, &out);
    is_str(el_buf_cstr(&out), "[0]:one\n[0]:two\n", "whole lines pass, a part is held");
    out.len = 0;
    line_feed(&l, "ree", 3, &out);
    is_num(out.len, 0, "still held");
    line_feed(&l, "\n\n", 2, &out);
    is_str(el_buf_cstr(&out), "[0]:three\n[0]:\n", "the line in one piece, then an empty one");
    out.len = 0;
    line_feed(&l, "12345678", 8, &out);
    is_num(out.len, 0, "a line as long as the buffer is held");
    line_feed(&l, "9", 1, &out);
    is_str(el_buf_cstr(&out), "[0]:123456789", "longer: it passes");
    line_feed(&l, "abc", 3, &out);
    line_feed(&l, "\nx", 2, &out);
    is_str(el_buf_cstr(&out), "[0]:123456789abc\n", "in pieces with the prefix once");
    line_end(&l, true, &out);
    is_str(el_buf_cstr(&out), "[0]:123456789abc\n[0]:x\n", "the last line gets its newline");
    line_end(&l, true, &out);
    is_num(out.len, 23, "no second newline");
    out.len = 0;
    line_feed(&l, "abcdefghi", 9, &out);
    line_end(&l, true, &out);
    is_str(el_buf_cstr(&out), "[0]:abcdefghi\n", "a long line without end gets it too");
    out.len = 0;
    line_feed(&l, "\0\xff\xc3\n", 4, &out);
    ok(out.len == 8 && memcmp(out.v, "[0]:\0\xff\xc3\n", 8) == 0, "NUL and invalid UTF-8 pass");
    line_free(&l);
    out.len = 0;
    line_init(&l, &m, "", 4);
    line_feed(&l, "50%\r", 4, &out);
    line_pass(&l, &out);
    line_feed(&l, "60%\r", 4, &out);
    line_end(&l, false, &out);
    is_str(el_buf_cstr(&out), "50%\r60%\r", "without prefix and newline the bytes are what they were");
    line_free(&l);
    el_buf_free(&out);
    is_num(m.used_bytes, 0, "all memory came back");
}

static void test_prefix(void)
{
    struct prefix_values v = {.role_name = "default", .hostname = "node-a", .local_rank = 12, .rank = 140};
    static const struct {
        const char *template, *want;
    } row[] = {
        {"", "[default12]:"},
        {"[${rank}]: ", "[140]: "},
        {"$hostname/$local_rank|", "node-a/12|"},
        {"${nope} $nope ${rank $$ $", "${nope} $nope ${rank $ $"},
        {"${role_name}${}$1", "default${}$1"},
        {"$ranks $rank.", "$ranks 140."},
        {"a\nb", "a b"},
    };
    char to[64];
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        prefix_format(to, sizeof to, row[i].template, &v);
        is_str(to, row[i].want, row[i].template[0] ? row[i].template : "default template");
    }
    is_num(prefix_format(to, 6, "${role_name}", &v), 5, "cut at the size");
    is_str(to, "defau", "and ended");
}

static void test_filter(void)
{
    struct el_mem m = EL_MEM_INIT(0);
    struct filter f;
    is_num(filter_parse(&f, &m, "apple,a,,b,,,c,"), 0, "list");
    is_num(f.count, 3, "three needles, the empty one does not count");
    ok(filter_match(&f, "an apple!", 9) && filter_match(&f, "xa,b,", 5) && filter_match(&f, "c", 1), "matches");
    ok(!filter_match(&f, "appl", 4) && !filter_match(&f, "", 0) && !filter_match(&f, "a,", 2), "no match");
    struct filter_stream s;
    struct el_buf out = EL_BUF_INIT(&m, 0);
    filter_stream_init(&s, &m, &f, "[1]:", 8);
    filter_feed(&s, "no\nap", 5, &out);
    filter_feed(&s, "ple\nbanana\nappleappleapple\nnonononoc\n", 37, &out);
    is_str(el_buf_cstr(&out), "[1]:apple\n[1]:appleappleapple\n", "lines; a long one is judged by its beginning");
    out.len = 0;
    filter_feed(&s, "c", 1, &out);
    filter_end(&s, &out);
    is_str(el_buf_cstr(&out), "[1]:c\n", "the last line without newline");
    filter_stream_free(&s);
    filter_free(&f);
    el_buf_free(&out);
    is_num(m.used_bytes, 0, "all memory came back");
    char many[600];
    for (size_t i = 0; i + 2 < sizeof many; i += 2)
        many[i] = 'x', many[i + 1] = ',', many[i + 2] = 0;
    is_num(filter_parse(&f, &m, many), -1, "too many needles are refused");
    filter_free(&f);
}

static void test_ring(void)
{
    struct ring r = {0};
    static char got[RING_BYTES], block[1000];
    is_num(ring_copy(&r, got), 0, "empty");
    for (unsigned i = 0; i < 200; i++) {
        memset(block, (int)(i % 251), sizeof block);
        ring_put(&r, block, sizeof block - i % 7);
    }
    size_t n = ring_copy(&r, got), at = n;
    is_num(n, RING_BYTES, "full");
    int good = 1;
    for (unsigned i = 200; i-- > 0 && at > 0;)
        for (unsigned k = 0; k < sizeof block - i % 7 && at > 0; k++)
            good &= got[--at] == (char)(i % 251);
    ok(good, "the last bytes, oldest first");
    static char big[RING_BYTES + 5];
    memset(big, 'b', sizeof big);
    big[5] = 'a';
    ring_put(&r, big, sizeof big);
    n = ring_copy(&r, got);
    ok(n == RING_BYTES && got[0] == 'a' && got[n - 1] == 'b', "more than fits at once: its end");
    ring_free(&r);
}

static void test_names(void)
{
    char to[LOGTREE_NAME_MAX], again[LOGTREE_NAME_MAX];
    logtree_run_name(to, "../my job/\n7", 42);
    ok(strncmp(to, "_._my_job__7_", 13) == 0 && strlen(to) == 21, "a run id cannot leave its directory");
    logtree_run_name(again, "../my job/\n7", 43);
    ok(strcmp(to, again) != 0, "another chance, another name");
    char longest[300];
    memset(longest, 'x', sizeof longest - 1);
    longest[299] = 0;
    is_num(logtree_run_name(to, longest, 1), 105, "a long run id is cut");
    logtree_attempt_name(to, 2, 5, false);
    is_str(to, "attempt_2", "first round of a count");
    logtree_attempt_name(to, 2, 5, true);
    is_str(to, "attempt_2.round_5", "later one");
    ok(logtree_is_null("/dev/null") && !logtree_is_null(NULL) && !logtree_is_null("/tmp"), "null device");
}

int main(void)
{
    test_line();
    test_prefix();
    test_filter();
    test_ring();
    test_names();
    return done();
}
