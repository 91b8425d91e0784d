/* Of which class an end is where several things were said, or something else than what ended it. */
#include "incident/failure.h"
#include "lib/tap.h"
#include "util/auto.h"

#include <signal.h>
#include <string.h>

/* code < 0: a signal. */
static struct failure ends(int code, const char *words)
{
    struct failure f;
    failure_init(&f);
    f.end = code < 0 ? FAILURE_SIGNAL : FAILURE_EXIT;
    f.code = code < 0 ? -code : code;
    failure_add_stderr(&f, words, strlen(words), NULL);
    failure_judge(&f, false, false);
    return f;
}

#define GROUP                                                                                                          \
    "  + Exception Group Traceback (most recent call last):\n  |   File \"/w/t.py\", line 8, in <module>\n"            \
    "  |     raise ExceptionGroup(\"many\", es)\n  | ExceptionGroup: many (2 sub-exceptions)\n"
#define MEMBER(number, words)                                                                                          \
    "  +-+---------------- " number " ----------------\n    | Traceback (most recent call last):\n"                    \
    "    |   File \"/w/t.py\", line 5, in f\n    |     g()\n    | " words "\n"

static void test_group(void)
{
    static const struct {
        const char *words, *class;
        bool follower;
        const char *about;
    } groups[] = {
        {GROUP MEMBER("1", "ConnectionResetError: peer gone") MEMBER("2", "ValueError: x"), "code error", false,
         "a lost connection is the first of two"},
        {GROUP MEMBER("1", "ConnectionResetError: peer gone") MEMBER("2", "RuntimeError: x"), "unknown", false,
         "the other says nothing of its class"},
        {GROUP MEMBER("1", "ValueError: x") MEMBER("2", "ConnectionResetError: peer gone"), "code error", false,
         "it is the last"},
        {GROUP MEMBER("1", "ConnectionResetError: peer gone") MEMBER("2", "BrokenPipeError: [Errno 32] Broken pipe"),
         "network", true, "nothing but lost connections"},
    };
    for (size_t i = 0; i < COUNT_OF(groups); i++) {
        struct failure f = ends(1, groups[i].words);
        is_str(failure_class_text(f.class), groups[i].class, groups[i].about);
        is_num(f.follower, groups[i].follower, groups[i].about);
        failure_free(&f, NULL);
    }
}

int main(void)
{
    test_group();
    return done();
}
