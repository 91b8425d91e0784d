/* Error files: all shapes, all ways to be broken; byte by byte gives the same as at once. */
#include "failure/errfile.h"
#include "failure/failure.h"
#include "lib/tap.h"

static struct errfile e;

static void feed(const char *text, size_t n, size_t piece)
{
    errfile_init(&e);
    for (size_t i = 0; i < n; i += piece)
        errfile_feed(&e, text + i, n - i < piece ? n - i : piece);
    errfile_end(&e);
}

/* "state|message|stack|timestamp" */
static const char *say(const char *text)
{
    static char out[3 * ERRFILE_MESSAGE_MAX], again[sizeof out];
    for (size_t piece = 1; piece < 1000; piece += 500) {
        feed(text, strlen(text), piece);
        struct el_buf stack = EL_BUF_INIT(NULL, 0);
        errfile_stack(&e, &stack);
        snprintf(piece == 1 ? out : again, sizeof out, "%d|%s|%s|%lld", e.state, e.message, el_buf_cstr(&stack),
                 (long long)e.timestamp_sec);
        el_buf_free(&stack);
    }
    return strcmp(out, again) == 0 ? out : "byte by byte differs";
}

static void test_shapes(void)
{
    static const struct {
        const char *json, *want, *why;
    } rows[] = {
        {"{\"message\": {\"message\": \"E: x\", \"extraInfo\": {\"py_callstack\": \"T\\nE: x\\n\", \"timestamp\": "
         "\"17\"}}}",
         "1|E: x|T\nE: x\n|17", "what @record writes"},
        {"{\"message\": \"text\", \"timestamp\": 18}\n", "1|text||18", "the flat form"},
        {"{\"timestamp\":18.9,\"message\":\"t\"}", "1|t||18", "a fraction, another order"},
        {"{\"message\": \"t\"}", "1|t||-1", "no time stamp"},
        {"{\"message\":{\"message\":\"t\",\"errorCode\":-11,\"x\":[1,{\"message\":\"no\"},[]]}}", "1|t||-1",
         "unknown members"},
        {"{\"a\":{\"message\":\"no\"},\"message\":\"yes\"}", "1|yes||-1", "another member's message is not it"},
        {"{\"message\":\"a\",\"message\":\"b\"}", "1|b||-1", "the last of two wins"},
        {"{\"message\":{\"message\":\"t\",\"extraInfo\":{\"timestamp\":\"soon\"}}}", "1|t||-1", "a time that is none"},
        {"{\"message\":{\"message\":\"t\",\"extraInfo\":{\"timestamp\":99999999999999999999}}}", "1|t||-1",
         "a time beyond all bounds is none"},
        {"{\"message\":\"\\u00e9\\ud83d\\ude00\\udce9\\ud83dx\\u0000\\/\\\"\"}",
         "1|\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbdx/\"||-1", "escapes, pairs, lone surrogates, NUL"},
        {"", "2|||-1", "empty"},
        {"{\"message\": {\"message\": \"E: x\", \"extraInfo\": {\"py_call", "2|E: x||-1",
         "written half: what is there counts"},
        {"{\"message\": \"E: half", "2|E: half||-1", "half a message"},
        {"{\"message\": \"E: \\u00", "2|E: ||-1", "half an escape"},
        {"not json", "3|||-1", "something else"},
        {"{\"message\": \"a\"} {\"message\": \"b\"}", "3|a||-1", "two documents"},
        {"{\"message\": \"a\",}", "3|a||-1", "a comma too many"},
        {"{\"message\": \"a\"]", "3|a||-1", "the wrong bracket"},
        {"{'message': 'a'}", "3|||-1", "Python's own notation"},
        {"{\"message\": tru}", "3|||-1", "a word that is none"},
        {"{\"message\": 1-}", "3|||-1", "a number that is none"},
        {"{\"message\": \"\\x\"}", "3|||-1", "an escape that is none"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "3|||-1", "too deep"},
        {"[1, 2]", "4|||-1", "JSON of another shape"},
        {"\"text\"", "4|||-1", "a bare text"},
        {"7", "4|||-1", "a bare number"},
        {"{\"message\": null}", "4|||-1", "no message"},
        {"{\"message\": NaN, \"x\": -Infinity}", "4|||-1", "Python's numbers"},
        {"{}", "4|||-1", "nothing in it"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        is_str(say(rows[i].json), rows[i].want, rows[i].why);
}

static void test_object_end(void)
{
    static const char whole[] = "{\"message\": {\"a\": {}, \"message\": \"x\"} , \"b\": {}}";
    feed(whole, sizeof whole - 1, 7);
    ok(e.has_object && !e.object_empty && whole[e.object_end] == '}' && whole[e.object_end + 1] == ' ',
       "where errorCode can be added");
    static const char empty[] = "{\"message\": {}}";
    feed(empty, sizeof empty - 1, 3);
    ok(e.has_object && e.object_empty && e.object_end == 13, "an empty object needs no comma");
    static const char flat[] = "{\"message\": {}, \"message\": \"x\"}";
    feed(flat, sizeof flat - 1, 3);
    ok(!e.has_object, "a text has no place for it");
}

/* 10 MB message: torch writes it twice, in the message and behind the traceback. */
static void test_big(void)
{
    static const char head[] = "{\"message\": {\"message\": \"ValueError: ",
                      middle[] = "\", \"extraInfo\": {\"py_callstack\": \"Traceback (most recent call last):\\n"
                                 "  File \\\"t.py\\\", line 3, in main\\nValueError: ",
                      end[] = "\\nthe end\\n\", \"timestamp\": \"1700000000\"}}}";
    char x[4096];
    memset(x, 'x', sizeof x);
    errfile_init(&e);
    errfile_feed(&e, head, sizeof head - 1);
    for (int i = 0; i < 2560; i++)
        errfile_feed(&e, x, sizeof x);
    errfile_feed(&e, middle, sizeof middle - 1);
    for (int i = 0; i < 2560; i++)
        errfile_feed(&e, x, sizeof x);
    errfile_feed(&e, end, sizeof end - 1);
    errfile_end(&e);
    is_num(e.state, ERRFILE_WHOLE, "20 MB are read through");
    ok(e.message_cut && strlen(e.message) == ERRFILE_MESSAGE_MAX - 1, "the message's start is kept");
    is_num(e.timestamp_sec, 1700000000, "what stands behind it is found");
    struct el_mem mem = EL_MEM_INIT(200 * 1024);
    struct failure f;
    failure_init(&f);
    failure_add_file(&f, &e, &mem);
    ok(f.stack && strstr(f.stack, "t.py") && strstr(f.stack, "bytes left out") && strstr(f.stack, "\nthe end"),
       "the traceback's start and end are kept, with a word about the middle");
    ok(f.message && strlen(f.message) < 1100 && !f.texts_short, "the record stays small");
    is_str(f.found.file, "t.py", "the frame is found");
    failure_free(&f, &mem);
    is_num(mem.used_bytes, 0, "memory came back");
    for (long n = 0; n < 12; n++) {
        mem.fail_after = n;
        failure_init(&f);
        failure_add_file(&f, &e, &mem);
        ok(f.texts_short || (f.stack && f.message), "the n-th allocation fails: said, or whole");
        failure_free(&f, &mem);
    }
    is_num(mem.used_bytes, 0, "memory came back after failures");
}

int main(void)
{
    test_shapes();
    test_object_end();
    test_big();
    return done();
}
