/* Failures at the coordinator core: which one is called the first, what is kept and counted, what the report says. */
#include "sim/words.h"

static char big[MSG_DOCUMENT_MAX + 1];

static void incident(char node, struct msg_incident x)
{
    struct msg m = {.type = MSG_INCIDENT, .u.incident = x};
    struct msg_incident *y = &m.u.incident;
    y->number = s.node[node - 'a'].number;
    y->coord = s.node[node - 'a'].coord;
    y->by = y->by ? y->by : "itself";
    y->class = y->class ? y->class : "unknown";
    y->text = y->text ? y->text : "exit code 1";
    story_tell(&s, node, &m);
}
#define INCIDENT(node, ...) incident(node, (struct msg_incident){.code = 1, .signal = -1, __VA_ARGS__})
#define S(x)                ((uint64_t)(x)*1000000)

static void stopped_with(char node, const char *ranks, const char *missing)
{
    struct msg m = {.type = MSG_STOPPED,
                    .u.stopped = {.number = s.node[node - 'a'].number,
                                  .coord = s.node[node - 'a'].coord,
                                  .ranks = ranks,
                                  .missing = missing}};
    story_tell(&s, node, &m);
}

static const struct msg_report *head(void)
{
    static struct msg m;
    rdzv_report(s.r, 0, &m);
    return &m.u.report;
}

static const struct msg_report_row *row(unsigned i)
{
    static struct msg m;
    return rdzv_report(s.r, i + 1, &m) ? &m.u.report_row : NULL;
}

static unsigned rows(void)
{
    unsigned n = 0;
    while (row(n))
        n++;
    return n;
}

static void test_over_nodes(void)
{
    trio(&s);
    FAIL(5000, 'b', 1); /* told first, rank 3 */
    INCIDENT('c', .local_rank = 0, .time_us = 4990000, .error_us = 200, .class = "code error", .type = "ValueError",
             .text = "ValueError: x", .document = "{}");
    INCIDENT('b', .local_rank = 1, .time_us = S(5), .error_us = 300, .class = "network", .follower = true);
    INCIDENT('a', .local_rank = 1, .by = "elrun", .time_us = 4000000);
    stopped_with('a', "0-1", "");
    stopped_with('b', "0", "rank 4 had not come");
    stopped_with('c', "1", "second word");
    const struct rdzv_findings *f = &s.r->findings;
    const struct rdzv_incident *root = rdzv_root(s.r);
    ok(root && root->order.rank == 4 && root->class == FAILURE_CLASS_CODE && !strcmp(root->type, "ValueError"),
       "the cause is on another node than who was heard first");
    is_num(f->among, 1, "no doubt about it");
    ok(f->failed == 2 && f->by_class[FAILURE_CLASS_CODE] == 1 && f->by_class[FAILURE_CLASS_NETWORK] == 1 &&
           !f->by_class[FAILURE_CLASS_UNKNOWN],
       "each counted once, by what it turned out to be");
    ok(f->nodes == 2 && f->nodes_like_root == 1, "nodes");
    is_num(rows(), 2, "two rows");
    is_num(head()->restarts, 0, "the restart that follows is not counted before it is made");
    is_num(row(0)->rank, 4, "the cause first");
    is_str(row(0)->document, "{}", "with its document");
    ok(row(0)->more && !row(1)->more && head()->more, "and it is said where they end");
    is_str(head()->stopped_ranks, "0-2,5", "ranks that elrun stopped, over the world");
    is_str(head()->missing, "rank 4 had not come", "who had not come");
    is_str(head()->classes, "code error 1, network 1", "how many of what");
    is_num(rdzv_report_member(s.r), s.node[0].member, "for the node of rank 0");
    story_end(&s);
}

static bool stop_is_late(char to)
{
    struct msg m;
    rdzv_order(s.r, s.node[to - 'a'].member, s.now, &m);
    return m.type == MSG_STOP && m.u.stop.late;
}

static void fail_late(unsigned ms, char node)
{
    story_until(&s, ms);
    struct msg m = {.type = MSG_WORKER_FAILED,
                    .u.worker_failed = {.number = s.node[node - 'a'].number,
                                        .coord = s.node[node - 'a'].coord,
                                        .time_us = s.now,
                                        .code = 1,
                                        .signal = -1,
                                        .late = true,
                                        .text = "exit code 1"}};
    story_tell(&s, node, &m);
}

static void silent(char node, const char *document)
{
    INCIDENT(node, .by = "elrun", .class = "hang", .follower = true, .private_link = true, .silent = true,
             .time_us = S(6), .document = document);
}

static void absent(char node, unsigned local_rank)
{
    INCIDENT(node, .local_rank = local_rank, .by = "elrun", .class = "hang", .follower = true, .private_link = true,
             .time_us = S(6));
}

/* The time of a collective ran out: the other nodes tell who of theirs said nothing, and that is the cause. */
static void test_silent_elsewhere(void)
{
    zero(&s);
    fail_late(5000, 'a');
    ok(stop_is_late('b'), "the others are told what they are stopped for");
    INCIDENT('a', .time_us = S(5), .error_us = 300, .class = "hang", .follower = true);
    silent('b', "{}");
    silent('b', "{}"); /* told anew on another connection */
    INCIDENT('a', .local_rank = 1, .time_us = S(5), .error_us = 300, .class = "network", .follower = true);
    INCIDENT('b', .local_rank = 1, .time_us = S(5), .error_us = 300, .class = "network", .follower = true);
    stopped_with('a', "", "");
    is_num(s.r->findings.failed, 3, "until all have told it is one that elrun stopped");
    stopped_with('b', "0", "");
    ok(rdzv_root(s.r) && rdzv_root(s.r)->order.node == 1, "who alone said nothing is the cause");
    is_str(row(0)->document, "{}", "with its document");
    is_num(row(1)->rank, 0, "whose time ran out is told, too");
    is_str(head()->classes, "network 2, hang 2", "both count");
    is_str(head()->stopped_ranks, "", "it is no victim");
    story_end(&s);
    zero(&s);
    FAIL(5000, 'a', 1);
    ok(!stop_is_late('b'), "of another failure nobody is asked");
    story_end(&s);
    zero(&s);
    SAY(4000, 'b', SUCCEEDED);
    fail_late(5000, 'a');
    ok(!stop_is_late('b'), "a node that had come to its end explains it better");
    story_end(&s);
}

/* Of two that said nothing one may have waited as well: both are what elrun stopped. */
static void test_two_silent(void)
{
    trio(&s);
    fail_late(5000, 'a');
    INCIDENT('a', .time_us = S(5), .error_us = 300, .class = "hang", .follower = true);
    INCIDENT('a', .local_rank = 1, .time_us = S(5), .error_us = 300, .class = "network", .follower = true);
    silent('b', "{}");
    INCIDENT('c', .time_us = S(5), .error_us = 300, .class = "network", .follower = true);
    INCIDENT('b', .local_rank = 1, .time_us = S(5), .error_us = 300, .class = "network", .follower = true);
    stopped_with('a', "", "");
    stopped_with('b', "0", "");
    stopped_with('c', "1", "");
    is_num(rdzv_root(s.r)->order.rank, 0, "the time-out is the cause");
    is_num(rows(), 4, "who said nothing has no row");
    is_str(head()->stopped_ranks, "2,5", "they are listed");
    is_str(head()->classes, "network 3, hang 1", "and do not count");
    story_end(&s);
    trio(&s);
    fail_late(5000, 'a');
    INCIDENT('a', .time_us = S(5), .error_us = 300, .class = "hang", .follower = true);
    absent('a', 1);
    INCIDENT('b', .local_rank = 1, .time_us = S(5), .error_us = 300, .class = "network", .follower = true);
    INCIDENT('c', .time_us = S(5), .error_us = 300, .class = "network", .follower = true);
    INCIDENT('c', .local_rank = 1, .time_us = S(5), .error_us = 300, .class = "network", .follower = true);
    silent('b', "{}");
    stopped_with('a', "", "");
    stopped_with('b', "0", "");
    stopped_with('c', "", "");
    is_num(rdzv_root(s.r)->order.rank, 1, "one beside whose time ran out is the cause");
    is_num(rows(), 5, "the one elsewhere has no row");
    is_str(head()->stopped_ranks, "2", "elrun stopped it");
    story_end(&s);
}

/* One of 3 x 2 failed by itself, seen late: who said nothing where another's time ran out is one that elrun stopped. */
static void test_excused(void)
{
    trio(&s);
    fail_late(5000, 'a');
    INCIDENT('a', .time_us = S(5), .error_us = 300, .class = "hang", .follower = true);
    absent('a', 1);
    INCIDENT('c', .time_us = S(6), .error_us = 300, .class = "code error");
    stopped_with('a', "", "");
    stopped_with('b', "0-1", "");
    stopped_with('c', "1", "");
    is_num(rdzv_root(s.r)->order.rank, 4, "the cause");
    is_num(rows(), 2, "and whose time ran out");
    is_str(head()->stopped_ranks, "1-3,5", "all that elrun stopped, in order");
    is_num(head()->failed, 2, "they have not failed");
    is_str(head()->classes, "code error 1, hang 1", "and do not count");
    story_end(&s);
}

/* Who says that a peer is gone is not all: one may have left too early. */
static void test_left_with_zero(void)
{
    zero(&s);
    SAY(4000, 'b', SUCCEEDED);
    FAIL(5000, 'a', 1);
    INCIDENT('a', .local_rank = 1, .time_us = S(5), .error_us = 400, .class = "network", .follower = true);
    ALL(5010, "ab", STOPPED);
    ok(strstr(s.r->end_cause, "rank 1 on a failed: ") && strstr(s.r->end_cause, "; ranks 2-3 on b had ended with 0"),
       "a rank that waited in vain: who had ended with 0 is named");
    story_end(&s);
    zero(&s);
    SAY(4000, 'b', SUCCEEDED);
    FAIL(5000, 'a', 1);
    INCIDENT('a', .local_rank = 1, .time_us = S(5), .error_us = 400, .class = "code error");
    ALL(5010, "ab", STOPPED);
    ok(!strstr(s.r->end_cause, "had ended"), "not where the failure speaks for itself");
    story_end(&s);
}

static void test_doubt(void)
{
    pair(&s, 2, 2);
    FAIL(5000, 'a', 1);
    INCIDENT('a', .local_rank = 1, .time_us = S(5), .error_us = 400);
    INCIDENT('b', .local_rank = 0, .time_us = S(5) - 300, .error_us = 400);
    ALL(5010, "ab", STOPPED);
    ok(s.r->findings.among == 2 && rdzv_root(s.r)->order.rank == 2, "within the error of the clocks: among the first");
    story_end(&s);
}

static void test_node_died(void)
{
    pair(&s, 1, 2);
    FAIL(5000, 'b', 9);
    story_closed(&s, 5001, 'b');
    SAY(5010, 'a', STOPPED);
    U(5200);
    ok(rdzv_root(s.r) && rdzv_root(s.r)->order.rank == 3 && rdzv_root(s.r)->code == 9 && !rdzv_root(s.r)->judged,
       "a failure whose node died before it could tell more still counts");
    is_str(row(0)->document, "", "without a document");
    is_str(row(0)->host, "b", "with its host");
    story_end(&s);
}

/* The connection of rank 0's node breaks while the report is on its way: it comes again, to that node alone, and no
 * more once the next round is there. */
static void test_again(void)
{
    trio(&s);
    FAIL(5000, 'b', 1);
    ALL(5010, "abc", STOPPED);
    s.quiet = false;
    s.len = 0;
    story_closed(&s, 5011, 'b');
    R(5012, 'b', IDLE);
    ok(!strstr(s.text, "report"), "another node that comes back is not told");
    story_closed(&s, 5013, 'a');
    R(5014, 'a', IDLE);
    ok(strstr(s.text, "a: report; a: "), "the node of rank 0 is told again, before its order");
    is_num(rows(), 1, "what it was told before");
    s.len = 0;
    s.quiet = true;
    U(8000);
    SAY(8500, 'a', STORE_READY);
    U(9000);
    s.quiet = false;
    s.len = 0;
    story_closed(&s, 9001, 'a');
    R(9002, 'a', RUNNING);
    ok(s.r->state == RDZV_RUNNING && !strstr(s.text, "report"), "not in the next round");
    story_end(&s);
}

/* Times that cannot be are not believed; a clock that was never measured is no better than the arrival. */
static void test_clocks(void)
{
    trio(&s);
    FAIL(5000, 'a', 1);
    INCIDENT('b', .local_rank = 0, .time_us = 1, .error_us = 10);
    ok(s.r->incident[1].order.time == s.r->started_at, "not before the round began");
    INCIDENT('b', .local_rank = 1, .time_us = S(900), .error_us = 10);
    is_num(s.r->incident[2].order.time, S(5), "nor in the future");
    INCIDENT('c', .local_rank = 0, .time_us = 77, .error_us = MSG_CLOCK_UNKNOWN);
    ok(s.r->incident[3].order.time == S(5) && s.r->incident[3].order.error == S(5) - s.r->started_at,
       "a clock that is not known: when it came, any time before");
    story_end(&s);
}

static void test_strangers(void)
{
    pair(&s, 2, 2);
    FAIL(5000, 'a', 1);
    INCIDENT('b', .local_rank = 2, .time_us = S(5));
    INCIDENT('b', .local_rank = 4095, .time_us = S(5));
    is_num(s.r->incident_count, 1, "a worker that the node does not have");
    INCIDENT('b', .ranks = "0-4000000000", .time_us = S(5));
    INCIDENT('b', .ranks = "x", .time_us = S(5));
    is_num(s.r->findings.failed, 1, "nor do lists name others");
    INCIDENT('a', .local_rank = 1, .class = "network", .time_us = S(5));
    INCIDENT('a', .local_rank = 1, .class = "hang", .by = "elrun", .time_us = S(5));
    INCIDENT('a', .ranks = "1", .class = "hang", .time_us = S(5));
    ok(s.r->findings.failed == 1 && s.r->findings.by_class[FAILURE_CLASS_NETWORK] == 1, "the first word stays");
    INCIDENT('b', .local_rank = 0, .class = "of another version", .time_us = S(5));
    is_num(s.r->findings.by_class[FAILURE_CLASS_UNKNOWN], 1, "a class that is not known here");
    stopped_with('a', "0-99", "");
    stopped_with('b', ",1", "");
    is_str(head()->stopped_ranks, "", "broken lists of who was stopped are passed over");
    story_end(&s);
}

/* Told as a failure, and then it was elrun's own doing. */
static void test_taken_back(void)
{
    pair(&s, 2, 2);
    FAIL(5000, 'a', 1);
    INCIDENT('a', .local_rank = 1, .by = "elrun", .class = "killed from outside", .time_us = S(5));
    ALL(5010, "ab", STOPPED);
    ok(!rdzv_root(s.r) && s.r->findings.failed == 0, "what elrun killed is no cause");
    is_num(rows(), 0, "and is not reported");
    story_end(&s);
}

/* Many more than are kept, the worst order of arrival: the latest first. */
static void test_storm(void)
{
    story_init(&s, 1, 1);
    s.quiet = true;
    story_begin(&s);
    s.slots = 4000;
    J(0, 'a');
    SAY(3500, 'a', STORE_READY);
    SAY(3600, 'a', STARTED);
    s.slots = 0;
    memset(big, 'x', MSG_DOCUMENT_MAX);
    FAIL(5000, 'a', 1);
    for (unsigned i = 0; i < 3000; i++)
        INCIDENT('a', .local_rank = 3999 - i, .time_us = 4900000 - 100 * i, .error_us = 5, .class = "network",
                 .follower = i < 2000, .document = big);
    is_num(s.r->incident_count, RDZV_INCIDENTS_MAX, "so many are kept");
    ok(s.r->documents.peak_bytes <= RDZV_DOCUMENTS_MAX, "their documents have a limit");
    INCIDENT('a', .local_rank = 0, .time_us = 4500000, .error_us = 5, .class = "code error", .document = "mine",
             .ranks = "");
    INCIDENT('a', .ranks = "2-500", .class = "out of memory", .time_us = S(5));
    SAY(6000, 'a', STOPPED);
    is_num(rdzv_root(s.r)->order.rank, 0, "the cause, however late it comes");
    is_str(row(0)->document, "mine", "has its document: others gave theirs");
    is_num(rows(), RDZV_REPORT_ROWS, "rows");
    is_num(head()->failed, 3501, "all are counted");
    is_num(head()->rest, 3501 - RDZV_REPORT_ROWS, "the rest is a number");
    is_str(head()->classes, "unknown 1, code error 1, out of memory 499, network 3000", "and classes");
    ok(strcmp(head()->rest_ranks, "1-500,1008-3999") == 0, "and ranks");
    rdzv_check(s.r);
    story_end(&s);
}

static void test_next_round(void)
{
    pair(&s, 1, 2);
    FAIL(5000, 'b', 1);
    INCIDENT('b', .local_rank = 1, .document = "d", .time_us = S(5));
    ALL(5010, "ab", STOPPED);
    ok(rows() == 1 && s.r->documents.used_bytes, "a round is over: its report stays until the next begins");
    is_num(head()->number, 1, "it is the old one's, though the next one is being opened");
    SAY(5020, 'a', STORE_READY);
    ok(!s.r->incident_count && !s.r->documents.used_bytes && !rdzv_root(s.r), "then it is forgotten");
    story_end(&s);
}

/* A node tells of a failure on each of its connections, and which one was the first does not change by that. */
static void test_told_anew(void)
{
    pair(&s, 2, 2);
    FAILED_AT(5000, 'a', 1, 5000);
    is_num(s.r->notes, 2, "a failure is noted, and that its round stops");
    FAILED_AT(5005, 'b', 1, 4990);
    story_closed(&s, 5010, 'a');
    RF(5011, 'a', STOPPING);
    FAILED_AT(5012, 'a', 1, 5000);
    is_num(s.r->notes, 0, "once");
    ALL(5020, "ab", STOPPED);
    ok(rdzv_root(s.r) && rdzv_root(s.r)->order.rank == 2 && s.r->findings.failed == 2, "and counted once");
    story_end(&s);
}

/* A coordinator that is started again hears of failures before it knows the world. */
static void test_rebuilt(void)
{
    pair(&s, 2, 2);
    CRASH(5000, true);
    RF(5100, 'b', STOPPING);
    INCIDENT('b', .local_rank = 1, .class = "code error", .time_us = S(5), .error_us = 5, .document = "d");
    SAY(5110, 'b', STOPPED);
    R(5120, 'a', RUNNING);
    SAY(5130, 'a', STOPPED);
    ok(rdzv_root(s.r) && rdzv_root(s.r)->order.rank == 3 && s.r->findings.failed == 1,
       "its ranks are right in the end");
    is_str(row(0)->document, "d", "and its document is there");
    story_end(&s);
}

/* A coordinator that was started again had to begin without b, and b comes while the others stop: what it has to tell
 * is of that round, and the ranks behind its own are others than they seemed. */
static void test_heard_late(void)
{
    trio(&s);
    CRASH(5000, true);
    R(5100, 'a', RUNNING);
    R(5200, 'c', RUNNING);
    U(10050);
    INCIDENT('c', .local_rank = 0, .time_us = 10010000, .error_us = 300);
    stopped_with('c', "1", "");
    is_num(row(0)->rank, 4, "its rank is the one that it has, though nobody has heard of those before it");
    RF(10100, 'b', IDLE);
    INCIDENT('b', .local_rank = 1, .time_us = 4900000, .error_us = 300);
    INCIDENT('b', .local_rank = 0, .time_us = 4900000, .error_us = 300, .ranks = "0-1");
    stopped_with('a', "0-1", "");
    const struct rdzv_incident *root = rdzv_root(s.r);
    ok(root && root->order.rank == 3, "who was away when the round was rebuilt, and failed first, is the cause");
    is_num(s.r->findings.failed, 3, "each is counted once");
    is_num(row(1) ? row(1)->rank : 0, 4, "the rank of another one, as it is");
    is_str(head()->stopped_ranks, "0-1,5", "… and those of the ones that elrun stopped");
    is_num(s.r->budget.used, 0, "a round that nodes were lost of costs nothing");
    story_end(&s);
}

/* Of a node that nobody has heard of the others know how many ranks it had. */
static void test_never_heard(void)
{
    trio(&s);
    s.conf.dead_number = 1;
    s.node[1].latest = s.node[2].latest = true;
    CRASH(5000, false);
    RF(5100, 'c', STOPPING);
    INCIDENT('c', .local_rank = 1, .time_us = 4900000, .error_us = 300);
    RF(5200, 'b', STOPPING);
    INCIDENT('b', .local_rank = 0, .time_us = 4800000, .error_us = 300);
    ALL(5300, "bc", STOPPED);
    is_num(row(0) ? row(0)->rank : 0, 2, "the cause is called as its own output calls it");
    is_num(row(1) ? row(1)->rank : 0, 5, "and so is the other one");
    story_end(&s);
}

/* The last node comes when the others stop already, and the one before it never: or it does, and says that it is
 * elsewhere. */
static void test_heard_late_behind_a_gap(void)
{
    for (int how = 0; how < 3; how++) {
        trio(&s);
        CRASH(5000, true);
        R(5100, 'a', RUNNING);
        U(10050);
        RF(10100, 'c', IDLE);
        INCIDENT('c', .local_rank = 1, .time_us = 4900000, .error_us = 300);
        is_num(s.r->incident[0].order.rank, 5, "the rank that it has");
        if (how) {
            s.node[1].rank_base = how == 1 ? 2 : 5000;
            RF(10200, 'b', IDLE);
            is_num(s.r->world, 6, "all are here");
            is_num(s.r->incident[0].order.rank, 5, "and it is where it was");
        }
        stopped_with('a', "0-1", "");
        is_str(head()->stopped_ranks, "0-1", "those that elrun stopped");
        story_end(&s);
    }
}

int main(void)
{
    test_over_nodes();
    test_left_with_zero();
    test_silent_elsewhere();
    test_two_silent();
    test_excused();
    test_doubt();
    test_node_died();
    test_again();
    test_clocks();
    test_strangers();
    test_taken_back();
    test_storm();
    test_next_round();
    test_told_anew();
    test_rebuilt();
    test_heard_late();
    test_never_heard();
    test_heard_late_behind_a_gap();
    return done();
}
