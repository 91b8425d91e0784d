/* The termination log's text: what it says, and that it never has more bytes than it may, nor half a character. */
#include "failure/termination_msg.h"

#include "lib/tap.h"
#include "util/utf8.h"

static bool is_utf8(const char *s, size_t n)
{
    for (size_t i = 0, k; i < n; i += k)
        if (!(k = el_utf8(s + i, n - i)))
            return false;
    return true;
}

int main(void)
{
    static char stack[20000], why[6000];
    struct failure f;
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    failure_init(&f);
    is_num(termination_msg_text("no logs", NULL, TERMINATION_MSG_MAX, &out), 0, "without a worker");
    is_str(el_buf_cstr(&out), "no logs\n", "one line");
    char trace[] = "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: x\n\n";
    f.stack = trace;
    out.len = 0;
    termination_msg_text("rank 0 failed: exit code 1", &f, TERMINATION_MSG_MAX, &out);
    is_str(el_buf_cstr(&out),
           "rank 0 failed: exit code 1\nTraceback (most recent call last):\n  File \"a.py\", line 1\nValueError: x\n",
           "with its traceback");
    out.len = 0;
    termination_msg_text("rank 0 failed", &f, 64, &out);
    is_str(el_buf_cstr(&out), "rank 0 failed\n  File \"a.py\", line 1\nValueError: x\n", "only the last lines fit");
    f.stack = NULL;
    f.tail = trace;
    out.len = 0;
    termination_msg_text("x", &f, 64, &out);
    ok(strstr(el_buf_cstr(&out), "ValueError: x\n"), "or with the end of stderr");
    f.class = FAILURE_CLASS_OOM_HOST;
    out.len = 0;
    termination_msg_text("x", &f, TERMINATION_MSG_MAX, &out);
    ok(strstr(el_buf_cstr(&out), "x\nadvice: ") == out.v, "and what to do");

    unsigned bad = 0;
    for (size_t n = 0; n + 3 < sizeof stack; n += 3)
        memcpy(stack + n, n % 300 == 297 ? "\n\xc3\xa9" : "\xe2\x82\xac", 3);
    for (size_t n = 0; n + 3 < sizeof why; n += 3)
        memcpy(why + n, "\xe2\x82\xac", 3);
    f.tail = stack;
    for (size_t limit = 64; limit <= TERMINATION_MSG_MAX; limit++) {
        out.len = 0;
        bad += termination_msg_text(why, &f, limit, &out) != 0 || out.len > limit || !out.len ||
               out.v[out.len - 1] != '\n' || !is_utf8(out.v, out.len);
    }
    is_num(bad, 0, "every limit holds, at whole characters");
    el_buf_free(&out);
    return done();
}
