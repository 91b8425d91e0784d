/* The rank that another one's words name as the one that did not come. */
#include "failure/absent.h"
#include "lib/tap.h"
#include "util/array.h"

#include <signal.h>
#include <string.h>

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
    const char *type = strncmp(words, "wait", 4) == 0 ? "torch.distributed.DistStoreError" : "RuntimeError";
    el_buf_printf(&text, "%s%s: %s\n", head, type, words);
    failure_add_stderr(&f, text.v, text.len, NULL);
    failure_judge(&f, false, false);
    el_buf_free(&text);
    return f;
}

#define WAIT "wait timeout after 4000ms, keys: "

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
        {0, WAIT "/default_pg/0//cpu//0/2", 2, true, "whose address the store does not have"},
        {0, WAIT "/default_pg/0//cpu//0/2", 0, false, "not the number in front of it"},
        {0, WAIT "/default_pg/0//cpu//0/21", 2, false, "not a longer one"},
        {0, WAIT "/default_pg/0//cpu//0/1, /default_pg/0//cpu//0/2", 2, true, "of several keys"},
        {0, WAIT "/default_pg/0//1//cpu//0/2", 2, false, "another group's numbers are others"},
        {0, WAIT "/default_pg/0//cuda//0", 0, false, "NCCL's counter is no rank"},
        {0, WAIT "/default_pg/0//foo/2", 2, false, "a key of the program's own"},
        {0, WAIT "", 2, false, "no key"},
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
    ok(absent_is_told(&accuser) && !absent_is_told(&other), "somebody is named");
    is_num(failure_cause(all, 2), 1, "named: before the one that waited for it");
    is_num(failure_cause(all, 3), 2, "behind one that failed by itself");
    is_num(failure_exit_status(&f, FAILURE_AS_WORKER), 1, "the status is not that of elrun's signal");
    is_str(absent_text(&f), "did not come to a barrier", "what it did not do");
    is_str(f.sign, "[Rank 0]: Rank 2 failed to pass monitoredBarrier in 2000 ms", "whose words they are");
    failure_free(&accuser, NULL);
    failure_free(&other, NULL);
    failure_free(&f, NULL);
}

static const char timed_out[] =
    "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 6000ms for recv operation";
static const char closed[] =
    "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.1]:2192";

/* One sleeps, another one's time runs out, and the third loses the connection to that one. */
static void test_silent(void)
{
    struct failure late = says(0, timed_out), lost = says(2, closed), f = make(1, FAILURE_SIGNAL, SIGTERM);
    const struct failure *all[] = {&late, &f, &lost};
    lost.at = EL_SEC(1);
    f.watch = FAILURE_WATCH_YES;
    failure_judge(&f, true, false);
    is_num(failure_cause(all, 3), 0, "a time-out explains a closed connection, however early that was");
    ok(absent_is_silent(&f, &late), "who was stopped and had said nothing did not take part");
    ok(!absent_is_silent(&f, &lost), "a closed connection alone says no such thing");
    ok(!absent_is_silent(&lost, &late), "who failed is not silent");
    late.private_link = true;
    ok(!absent_is_silent(&f, &late), "a connection of its own");
    late.private_link = false;
    late.left = lost.message; /* whatever it is */
    ok(!absent_is_silent(&f, &late), "somebody had left with 0");
    late.left = NULL;
    f.words = CLASSIFY_GLOO_CLOSED;
    ok(!absent_is_silent(&f, &late), "it was in the collective, too, by its words");
    f.words = CLASSIFY_NONE;
    absent_mark(&f, &late);
    is_num(failure_cause(all, 3), 1, "it comes before those that waited for it");
    ok(strncmp(f.sign, "rank 0: [/pytorch/", 18) == 0, "the evidence is whose time ran out");
    is_num(f.class, FAILURE_CLASS_HANG, "a hang");
    failure_free(&late, NULL);
    failure_free(&lost, NULL);
    failure_free(&f, NULL);
}

/* The one whose time ran out is on another node: its words come later, with the report. */
static void test_elsewhere(void)
{
    struct failure late = says(0, timed_out), lost = says(2, closed), f = make(1, FAILURE_SIGNAL, SIGTERM);
    const struct failure *all[] = {&f, &lost, &late};
    failure_judge(&f, true, false);
    ok(!absent_is_silent(&f, NULL), "nobody has looked at what it said");
    f.watch = FAILURE_WATCH_YES;
    ok(absent_is_silent(&f, NULL), "stopped, and it had said nothing");
    absent_mark(&f, NULL);
    is_num(failure_cause(all, 3), 0, "it comes before those that waited for it");
    is_str(f.sign, "", "who waited is not known here");
    absent_explain(&f, all, 2);
    is_str(f.sign, "", "one that lost a connection does not say why");
    absent_explain(&f, all, 3);
    ok(strncmp(f.sign, "rank 0: [/pytorch/", 18) == 0, "the report knows whose time ran out");
    struct failure third = make(3, FAILURE_SIGNAL, SIGTERM);
    third.watch = FAILURE_WATCH_YES;
    third.at = EL_SEC(2);
    failure_judge(&third, true, false);
    absent_mark(&third, NULL);
    is_num(failure_cause((const struct failure *[]){&f, &third}, 2), 0, "of two it does not matter who ended first");
    failure_free(&third, NULL);
    failure_free(&late, NULL);
    failure_free(&lost, NULL);
    failure_free(&f, NULL);
}

/* PyTorch 1.13 at init_process_group: the message has no key. */
static void test_meeting(void)
{
    static const char meets[] = "Traceback (most recent call last):\n  File \"/w/t.py\", line 4, in <module>\n"
                                "  File \"/t/distributed_c10d.py\", line 761, in init_process_group\n"
                                "RuntimeError: Socket Timeout\n";
    struct failure f = make(1, FAILURE_SIGNAL, SIGTERM), gets = says(0, "Socket Timeout");
    struct failure waited = make(0, FAILURE_EXIT, 1);
    f.watch = FAILURE_WATCH_YES;
    failure_judge(&f, true, false);
    failure_add_stderr(&waited, meets, sizeof meets - 1, NULL);
    failure_judge(&waited, false, false);
    ok(absent_is_silent(&f, &waited), "the rendezvous' time ran out: who said nothing did not come");
    ok(!absent_is_silent(&f, &gets), "some other key of the store's");
    absent_mark(&f, &waited);
    is_str(absent_text(&f), "did not come to the rendezvous", "what it did not do");
    f.perhaps_late = true;
    is_str(absent_text(&f), "came late to the rendezvous, or not at all", "... if it was not the only one");
    is_str(failure_advice(&f),
           "of these ranks one did not come: look at what each did at that moment; one that had come late may have "
           "waited, too",
           "... and what to do");
    failure_free(&gets, NULL);
    failure_free(&waited, NULL);
    failure_free(&f, NULL);
}

int main(void)
{
    test_meeting();
    test_names();
    test_mark();
    test_silent();
    test_elsewhere();
    return done();
}
