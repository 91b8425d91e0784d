/* The rank that another one's words name as the one that did not come. */
#include "incident/absent.h"
#include "lib/tap.h"
#include "util/auto.h"

#include <signal.h>

static struct failure make(unsigned rank, enum failure_end end, int code)
{
    struct failure f;
    failure_init(&f);
    f.rank = rank;
    f.end = end;
    f.code = code;
    f.at = EL_SEC(10 + rank);
    return f;
}

static struct failure says(unsigned rank, const char *words)
{
    static const char head[] = "Traceback (most recent call last):\n  File \"/w/t.py\", line 8, in f\n    g()\n";
    struct failure f = make(rank, FAILURE_EXIT, 1);
    struct el_buf text = EL_BUF_INIT(NULL, 0);
    el_buf_printf(&text, "%sRuntimeError: %s\n", head, words);
    failure_add_stderr(&f, text.v, text.len, NULL);
    failure_judge(&f, false, false);
    el_buf_free(&text);
    return f;
}

static void test_names(void)
{
    static const struct {
        unsigned rank;
        const char *words;
        unsigned named;
        bool does;
        const char *about;
    } rows[] = {
        {0, "[Rank 0]: Rank 2 failed to pass monitoredBarrier in 2000 ms", 2, true, "one"},
        {0, "[Rank 0]: Rank 2 failed to pass monitoredBarrier in 2000 ms", 0, false, "not who says so"},
        {0, "[Rank 0]: Rank 2 failed to pass monitoredBarrier in 2000 ms", 20, false, "not a longer number"},
        {0, "[Rank 0]: Ranks 1, 3, 12 failed to pass monitoredBarrier in 2000 ms", 12, true, "the last of several"},
        {0, "[Rank 0]: Ranks 1, 3, 12 failed to pass monitoredBarrier in 2000 ms", 3, true, "one in the middle"},
        {0, "[Rank 0]: Ranks 1, 3, 12 failed to pass monitoredBarrier in 2000 ms", 2, false, "none of them"},
        {4, "[Rank 0]: Rank 2 failed to pass monitoredBarrier in 2000 ms", 2, false, "numbers of another group"},
        {0, "Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0",
         1, false, "who came"},
        {0, "[Rank 0]: Rank", 1, false, "cut"},
        {0, "[Rank 0]: Rank 1 failed to load monitoredBarrier", 1, false, "other words"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct failure f = says(rows[i].rank, rows[i].words);
        is_num(absent_names(&f, rows[i].named), rows[i].does, rows[i].about);
        failure_free(&f, NULL);
    }
}

static void test_mark(void)
{
    struct failure accuser =
                       says(0, "[Rank 0]: Rank 2 failed to pass monitoredBarrier in 2000 ms\n Original exception: \n"
                               "[gloo/unbound_buffer.cc:78] Timed out waiting 2000ms for recv operation"),
                   other = says(3, "ValueError: x"), f = make(2, FAILURE_SIGNAL, SIGTERM);
    const struct failure *all[] = {&accuser, &f, &other};
    failure_judge(&f, true, false);
    is_num(failure_cause(all, 2), 0, "elrun stopped it: no cause yet");
    absent_mark(&f, &accuser);
    is_num(failure_cause(all, 2), 1, "named: before the one that waited for it");
    is_num(failure_cause(all, 3), 2, "behind one that failed by itself");
    is_num(failure_exit_status(&f, FAILURE_AS_WORKER), 1, "the status is not that of elrun's signal");
    is_str(f.sign, "[Rank 0]: Rank 2 failed to pass monitoredBarrier in 2000 ms", "whose words they are");
    failure_free(&accuser, NULL);
    failure_free(&other, NULL);
    failure_free(&f, NULL);
}

int main(void)
{
    test_names();
    test_mark();
    return done();
}
