/* A health check by itself: what it makes of answers that come late, twice, in pieces or from elsewhere, of nodes that
 * are away and of its own standing still.  Stories with a coordinator around it: test_rdzv_probe.c. */
#include "unit/probing_stage.h"

static void test_deadlines(void)
{
    begin(2);
    is_num(health_check_deadline(p), HEALTH_CHECK_LOCAL_LIMIT + MARGIN,
           "nodes have their time, and the time that silence may last");
    is_num(order_of(0).left_ms, HEALTH_CHECK_LOCAL_LIMIT / 1000 + 1, "and are told the first alone");
    is_num(at(HEALTH_CHECK_LOCAL_LIMIT + MARGIN - 1), HEALTH_CHECK_SAME, "not before");
    all("a", HEALTH_CHECK_OK);
    is_num(at(HEALTH_CHECK_LOCAL_LIMIT + MARGIN), HEALTH_CHECK_STAGE, "then it goes on");
    finish(2);
    is_str(verdict(1), "undecided: its own checks brought no result in time", "who said nothing is not judged");
    begin(2);
    all("ab", HEALTH_CHECK_OK);
    is_num(health_check_deadline(p), probe_node_pair_limit(false) + MARGIN,
           "ends of pairs end by themselves before that");
    begin_for(2, EL_SEC(30));
    is_num(health_check_deadline(p), EL_SEC(30) + MARGIN, "all of it has an end");
}

/* The time for all is over in the middle of a pair: whoever has not answered had no time for it. */
static void test_all_time_is_over(void)
{
    begin_for(4, EL_SEC(20));
    now = EL_SEC(5);
    all("abcd", HEALTH_CHECK_OK);
    all("acd", HEALTH_CHECK_OK);
    is_num(at(EL_SEC(20) + MARGIN), HEALTH_CHECK_OVER, "the time for all is over in a round: so is the check");
    is_str(verdict(1), "undecided: no pair with it came to an end (the time was over)",
           "who had no time is not to blame");
    is_str(verdict(2), "good", "what was known is known");
}

/* Two rails over TCP, and the second one of b is dead. */
static void test_rails(void)
{
    begin(4);
    p->conf.rails = 2;
    all("abcd", HEALTH_CHECK_OK);
    is_num(order_of(0).rails, 3, "as many rails as are wanted");
    for (unsigned round = 0; !health_check_is_over(p) && round < 20; round++)
        for (unsigned i = 0; i < 4 && !health_check_is_over(p); i++) {
            struct msg_probe o = order_of(i);
            if (o.kind != HEALTH_CHECK_PAIR) {
                if (o.kind != HEALTH_CHECK_REST)
                    answer(i, HEALTH_CHECK_OK);
                continue;
            }
            for (unsigned rail = 0; rail < 2; rail++) {
                bool dead = rail == 1 && (i == 1 || *o.peer == 'b');
                struct msg_probe_result m = result(i, dead ? HEALTH_CHECK_FAILED : HEALTH_CHECK_OK);
                m.rail = rail;
                m.page = rail;
                m.more = rail == 0;
                say(i, &m);
            }
        }
    is_str(verdict(1), "bad: rail 1: failed with a, d and c, all good: why", "a dead rail of a node is named");
    is_str(verdict(0), "good", "and nobody else");
}

static void test_kept(void)
{
    static const char lines[] = "{\"t\":\"check\",\"name\":\"shm_size\",\"state\":\"ok\",\"text\":\"\"}\n";
    begin(2);
    struct msg_probe_result m = result(0, HEALTH_CHECK_OK);
    m.lines = lines;
    say(0, &m);
    is_str(health_check_kept(p, 0), "", "checks that are in order are not kept");
    begin(2);
    p->conf.all = true;
    m = result(0, HEALTH_CHECK_OK);
    m.lines = lines;
    say(0, &m);
    is_str(health_check_kept(p, 0), lines, "unless all are wanted");
}

static void test_standing_still(void)
{
    begin(2);
    now = EL_SEC(200);
    health_check_gap(p, now);
    is_num(health_check_deadline(p), now + HEALTH_CHECK_LOCAL_LIMIT + MARGIN,
           "we stood still: the stage has what was left of it");
    now += EL_SEC(60);
    all("ab", HEALTH_CHECK_OK);
    now += EL_SEC(60);
    all("ab", HEALTH_CHECK_OK);
    is_str(kinds(2), "aa", "and so has the whole");
    is_num(order_of(0).left_ms, HEALTH_CHECK_LOCAL_LIMIT / 1000 + 1, "which would have been over");
    begin(2);
    health_check_away(p, 1, now);
    health_check_gap(p, EL_SEC(100));
    now += EL_SEC(100);
    answer(0, HEALTH_CHECK_OK);
    is_num(at(EL_SEC(100) + HEALTH_CHECK_AWAY_LIMIT - 1), HEALTH_CHECK_SAME, "nor was somebody away for as long");
    is_num(at(EL_SEC(100) + HEALTH_CHECK_AWAY_LIMIT), HEALTH_CHECK_STAGE, "but for the time that we were awake");
}

/* The ids of a pair come by us: who waited for the other end meanwhile says that it did not come. */
static void test_standing_still_in_a_pair(void)
{
    begin(2);
    all("ab", HEALTH_CHECK_OK);
    now += HEALTH_CHECK_AWAY_LIMIT;
    health_check_gap(p, HEALTH_CHECK_AWAY_LIMIT);
    all("ab", HEALTH_CHECK_FAILED);
    is_str(kinds(2), "pp", "it comes again");
    all("ab", HEALTH_CHECK_FAILED);
    is_str(kinds(2), "aa", "once, if we are awake");
    begin(2);
    all("ab", HEALTH_CHECK_OK);
    now += HEALTH_CHECK_AWAY_LIMIT / 4;
    health_check_gap(p, HEALTH_CHECK_AWAY_LIMIT / 4);
    all("ab", HEALTH_CHECK_FAILED);
    is_str(kinds(2), "aa", "what both ends have waited for longer than we slept counts");
    begin(2);
    all("ab", HEALTH_CHECK_OK);
    for (unsigned i = 0; i < 4; i++) {
        now += HEALTH_CHECK_AWAY_LIMIT / 4;
        health_check_gap(p, HEALTH_CHECK_AWAY_LIMIT / 4);
    }
    all("ab", HEALTH_CHECK_FAILED);
    is_str(kinds(2), "aa", "... however often we slept");
}

/* --- away, gone --------------------------------------------------------------------------------------------------- */

static void test_away(void)
{
    begin(4);
    all("abcd", HEALTH_CHECK_OK);
    all("acd", HEALTH_CHECK_OK);
    health_check_away(p, 1, now);
    is_num(at(HEALTH_CHECK_AWAY_LIMIT - 1), HEALTH_CHECK_SAME, "somebody is not heard: it is waited for");
    at(HEALTH_CHECK_AWAY_LIMIT);
    finish(4);
    is_str(verdict(1), "lost: it was not heard any more during the check", "and lost for this check");
    is_str(verdict(0), "good", "its partner has met another one");
    begin(3);
    all("abc", HEALTH_CHECK_OK);
    answer(0, HEALTH_CHECK_OK);
    health_check_away(p, 1, now);
    now += EL_SEC(1);
    health_check_back(p, 1);
    answer(1, HEALTH_CHECK_OK);
    finish(3);
    is_str(verdict(1), "good", "who comes back soon has its pair");
    begin(2);
    answer(0, HEALTH_CHECK_OK);
    health_check_away(p, 1, now);
    at(HEALTH_CHECK_AWAY_LIMIT);
    finish(1);
    is_str(verdict(1), "lost: it was not heard any more while it checked itself", "lost before its first word");
    begin(2);
    all("ab", HEALTH_CHECK_OK);
    all("ab", HEALTH_CHECK_OK);
    answer(0, HEALTH_CHECK_OK);
    is_num(health_check_away(p, 1, now), HEALTH_CHECK_OVER, "nobody is waited for just to read its counters");
    is_str(verdict(0), "good", "the others keep their verdicts");
}

/* A stage ends while a node has not been heard for two seconds: that is neither a failure nor a loss. */
static void test_away_for_a_moment(void)
{
    begin(2);
    all("ab", HEALTH_CHECK_OK);
    const el_usec limit = now + probe_node_pair_limit(false) + MARGIN;
    now = limit - EL_SEC(2);
    answer(0, HEALTH_CHECK_OK);
    health_check_away(p, 1, now);
    is_num(at(limit), HEALTH_CHECK_STAGE, "a stage ends while a node is away for a moment");
    is_str(kinds(2), "pp", "its pair comes again");
    health_check_back(p, 1);
    finish(2);
    is_str(verdict(0), "good", "nothing is held against its partner");
    is_str(verdict(1), "good", "nor against itself");
}

/* Its partner has waited for it in vain, and it then waits for its partner. */
static void test_strayed(void)
{
    begin(2);
    all("ab", HEALTH_CHECK_OK);
    health_check_away(p, 1, now);
    now += EL_SEC(3);
    answer(0, HEALTH_CHECK_FAILED);
    health_check_back(p, 1);
    is_num(answer(1, HEALTH_CHECK_FAILED), HEALTH_CHECK_STAGE, "a pair fails while one of its nodes is not heard");
    is_str(kinds(2), "pp", "that says nothing: it comes again");
    finish(2);
    is_str(verdict(1), "good", "and is not held against the one that was away");
}

static void test_gone(void)
{
    begin(3);
    all("abc", HEALTH_CHECK_OK);
    is_num(health_check_left(p, 0, false, now), HEALTH_CHECK_STAGE,
           "one end of a pair leaves: the other is not waited for");
    finish(3);
    is_str(verdict(0), "left: left", "it has left");
    is_str(verdict(1), "good", "nobody else is to blame");
    is_num(health_check_left(p, 0, false, now), HEALTH_CHECK_SAME, "once is enough");
    for (unsigned early = 0; early < 2; early++) {
        begin(3);
        if (early)
            health_check_left(p, 0, true, now);
        all(early ? "bc" : "abc", HEALTH_CHECK_OK);
        health_check_left(p, 0, true, now);
        finish(3);
        is_str(verdict(0), "absent: it went before it was judged", "a goodbye is no fault");
        is_str(verdict(1), "good", "nor anybody else's");
        is_num(verdict_whole(health_check_plan(p)), VERDICT_UNDECIDED, "but not all that were asked for are well");
    }
    begin(3);
    answer(0, HEALTH_CHECK_FAILED);
    health_check_left(p, 0, true, now);
    all("bc", HEALTH_CHECK_OK);
    finish(3);
    is_num(verdict_whole(health_check_plan(p)), VERDICT_SOME_BAD, "who was bad before it said goodbye stays that");
}

/* d fails with everybody, and goes when that is known. */
static void test_gone_when_proved(void)
{
    for (unsigned how = 0; how < 3; how++) {
        begin(4);
        all("abcd", HEALTH_CHECK_OK);
        while (order_of(0).kind != HEALTH_CHECK_AFTER)
            for (unsigned i = 0; i < 4; i++)
                if (order_of(i).kind == HEALTH_CHECK_PAIR)
                    answer(i, i == 3 || order_of(i).peer[0] == 'd' ? HEALTH_CHECK_FAILED : HEALTH_CHECK_OK);
        is_num(verdict_state(p->plan, 3), NODE_BAD, "it failed with three");
        if (how == 2)
            health_check_away(p, 3, now);
        else
            health_check_left(p, 3, how == 0, now);
        if (how == 0)
            health_check_left(p, 1, true, now); /* a witness goes, too */
        all(how == 0 ? "ac" : "abc", HEALTH_CHECK_OK);
        at(now + HEALTH_CHECK_LOCAL_LIMIT + MARGIN);
        is_str(verdict(3),
               how < 2 ? "bad: failed with c, b and a, all good: why; it has gone since"
                       : "bad: failed with c, b and a, all good: why",
               how == 0   ? "... and then says goodbye: it stays bad"
               : how == 1 ? "... and then its process ends: the same"
                          : "... and is then not heard: the same");
        is_num(verdict_whole(p->plan), VERDICT_SOME_BAD, "... of the whole, too");
    }
}

/* --- counters at the end ------------------------------------------------------------------------------------------ */

static void test_after(void)
{
    begin(3);
    all("abc", HEALTH_CHECK_OK);
    while (order_of(0).kind != HEALTH_CHECK_AFTER)
        for (unsigned i = 0; i < 3; i++)
            if (order_of(i).kind == HEALTH_CHECK_PAIR)
                answer(i, HEALTH_CHECK_OK);
    struct msg_probe_result m = result(1, HEALTH_CHECK_FAILED);
    m.text = "ib_link_downed grew";
    say(1, &m);
    answer(0, HEALTH_CHECK_OK);
    is_num(answer(2, HEALTH_CHECK_BROKEN), HEALTH_CHECK_OVER, "the last look is the end");
    is_str(verdict(0), "good", "well at the end");
    is_str(verdict(1), "bad: ib_link_downed grew", "what has grown while pairs ran counts");
    is_str(verdict(2), "good", "a look that was broken off says nothing");
    begin(2);
    all("ab", HEALTH_CHECK_OK);
    all("ab", HEALTH_CHECK_OK);
    answer(1, HEALTH_CHECK_FAILED);
    health_check_left(p, 1, false, now);
    answer(0, HEALTH_CHECK_OK);
    is_str(verdict(1), "bad: why", "who has left stays bad by its counters");
}

/* --- what a late or an absent node is judged by ------------------------------------------------------------------- */

static void test_late_at_once(void)
{
    begin_for(3, EL_SEC(5));
    all("ab", HEALTH_CHECK_OK);
    is_num(at(EL_SEC(5) + MARGIN), HEALTH_CHECK_OVER, "the time for all is over before any pair: there is none");
    is_str(verdict(2), "undecided: its own checks brought no result in time", "who has said nothing");
    begin_for(5, EL_SEC(20));
    all("abcde", HEALTH_CHECK_OK);
    while (order_of(0).kind != HEALTH_CHECK_AFTER)
        for (unsigned i = 0; i < 5; i++)
            if (order_of(i).kind == HEALTH_CHECK_PAIR)
                answer(i, i == 0 || *order_of(i).peer == 'a' ? HEALTH_CHECK_FAILED : HEALTH_CHECK_OK);
    answer(1, HEALTH_CHECK_FAILED);
    is_num(at(EL_SEC(20) + MARGIN), HEALTH_CHECK_OVER, "a witness falls when the time is over: no pairs any more");
    is_str(verdict(1), "bad: why", "but it has fallen");
}

/* b is away from before the pair to behind it. */
static void test_away_all_along(void)
{
    begin(3);
    answer(0, HEALTH_CHECK_OK);
    answer(1, HEALTH_CHECK_OK);
    now = EL_SEC(1);
    health_check_away(p, 1, now);
    answer(2, HEALTH_CHECK_OK);
    is_str(kinds(3), "ppr", "who has told of itself before it went is in a pair");
    answer(0, HEALTH_CHECK_FAILED);
    at(EL_SEC(25));
    is_str(kinds(3), "prp", "and when it stays away, others are");
    finish(3);
    is_str(verdict(0), "good", "that nobody came says nothing");
    is_str(verdict(1), "lost: it was not heard any more during the check", "nor against who was away");
    is_num(verdict_links(p->plan, NULL, 0), 0, "nor against the way between them");
}

/* Others have GPUs; of c nothing is known, not that it has none. */
static void test_silent_among_gpus(void)
{
    begin(3);
    p->conf.backend = HEALTH_AUTO;
    for (unsigned i = 0; i < 2; i++) {
        struct msg_probe_result m = result(i, HEALTH_CHECK_OK);
        m.gpus = 1;
        say(i, &m);
    }
    at(HEALTH_CHECK_LOCAL_LIMIT + MARGIN);
    is_num(order_of(0).backend, HEALTH_NCCL, "those who have GPUs try them");
    finish(3);
    is_str(verdict(2), "undecided: its own checks brought no result in time", "who has said nothing has not said that");
}

static void test_done_and_away(void)
{
    begin(2);
    answer(1, HEALTH_CHECK_OK);
    health_check_away(p, 1, now);
    is_num(answer(0, HEALTH_CHECK_OK), HEALTH_CHECK_STAGE, "who has answered is not waited for when it goes");
}

/* It was away in an earlier stage: that excuses nothing later. */
static void test_strayed_before(void)
{
    begin(4);
    health_check_away(p, 1, now);
    health_check_back(p, 1);
    all("abcd", HEALTH_CHECK_OK);
    for (unsigned round = 0; !health_check_is_over(p) && round < 20; round++)
        for (unsigned i = 0; i < 4 && !health_check_is_over(p); i++)
            if (order_of(i).kind != HEALTH_CHECK_REST)
                answer(i, order_of(i).kind == HEALTH_CHECK_PAIR && (i == 1 || *order_of(i).peer == 'b')
                              ? HEALTH_CHECK_FAILED
                              : HEALTH_CHECK_OK);
    is_str(verdict(1), "bad: failed with a, d and c, all good: why", "once away is not always away");
}

static void test_undecided_and_bad(void)
{
    begin(4);
    all("acd", HEALTH_CHECK_OK);
    answer(1, HEALTH_CHECK_UNDECIDED);
    for (unsigned round = 0; !health_check_is_over(p) && round < 20; round++)
        for (unsigned i = 0; i < 4 && !health_check_is_over(p); i++)
            if (order_of(i).kind != HEALTH_CHECK_REST)
                answer(i, order_of(i).kind == HEALTH_CHECK_PAIR && (i == 1 || *order_of(i).peer == 'b')
                              ? HEALTH_CHECK_FAILED
                              : HEALTH_CHECK_OK);
    is_str(verdict(1), "bad: failed with a, d and c, all good: why", "what could not be judged hides nothing");
}

static void test_rounds_max(void)
{
    begin(4);
    p->conf.quick = false;
    p->conf.rounds_max = 1;
    all("abcd", HEALTH_CHECK_OK);
    all("abcd", HEALTH_CHECK_OK);
    is_str(kinds(4), "aaaa", "one round was allowed");
}

/* The second of two rails is what fails: the other end waits there, and only there. */
static void test_parted_by_any_rail(void)
{
    begin(2);
    p->conf.rails = 2;
    all("ab", HEALTH_CHECK_OK);
    struct msg_probe_result m = result(0, HEALTH_CHECK_OK);
    m.more = true;
    say(0, &m);
    ok(!order_of(1).parted, "one rail is over, and well");
    m.rail = 1;
    m.page = 1;
    m.more = false;
    m.outcome = HEALTH_CHECK_FAILED;
    is_num(say(0, &m), HEALTH_CHECK_ORDER, "the other one is not");
    is_num(health_check_told(p), 1, "whoever is at its other end is told");
    is_num(order_of(1).parted, 2, "to end on that rail: on the other one it may still have something to say");
}

/* --- first look --------------------------------------------------------------------------------------------------- */

static void test_first_look(void)
{
    begin(4);
    answer(0, HEALTH_CHECK_OK);
    answer(1, HEALTH_CHECK_BROKEN);
    answer(2, HEALTH_CHECK_UNDECIDED);
    answer(3, HEALTH_CHECK_FAILED);
    is_str(kinds(4), "prpr", "who is bad, or of whom nothing is known, is in no pair");
    finish(4);
    is_str(verdict(0), "good", "well");
    is_str(verdict(1), "undecided: why", "broken off");
    is_str(verdict(2), "undecided: why", "good in pairs, but not everything could be judged");
    is_str(verdict(3), "bad: why", "bad");
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void test_who_rests(void)
{
    begin(3);
    all("abc", HEALTH_CHECK_OK);
    is_str(kinds(3), "ppr", "three nodes: one rests");
    struct msg_probe_result m = result(2, HEALTH_CHECK_FAILED);
    m.lines = WARNS;
    is_num(say(2, &m), HEALTH_CHECK_SAME, "who rests is not asked");
    ok(!health_check_warned(p, 2), "nor heard");
    finish(3);
    is_str(verdict(2), "good", "and is tried later");
}

/* One end stood still, or could not judge: nobody is suspect for that, and the pair comes again. */
static void test_broken(void)
{
    for (enum health_check_outcome o = HEALTH_CHECK_BROKEN; o <= HEALTH_CHECK_UNDECIDED; o++) {
        begin(2);
        all("ab", HEALTH_CHECK_OK);
        answer(0, HEALTH_CHECK_OK);
        answer(1, o);
        is_str(kinds(2), "pp", "a pair that was broken off comes again");
        finish(2);
        is_str(verdict(0), "good", "this end is well");
        is_str(verdict(1), "good", "so is that one");
    }
    begin(2);
    all("ab", HEALTH_CHECK_OK);
    all("ab", HEALTH_CHECK_FAILED);
    finish(2);
    is_str(verdict(0),
           "undecided: failed, but with no node that is known to be good (no other node was left to ask): why",
           "one that failed does not, with nobody else to ask");
}

int main(void)
{
    test_deadlines();
    test_all_time_is_over();
    test_rails();
    test_kept();
    test_standing_still();
    test_standing_still_in_a_pair();
    test_away();
    test_away_for_a_moment();
    test_strayed();
    test_gone();
    test_gone_when_proved();
    test_after();
    test_late_at_once();
    test_away_all_along();
    test_done_and_away();
    test_silent_among_gpus();
    test_strayed_before();
    test_undecided_and_bad();
    test_rounds_max();
    test_parted_by_any_rail();
    test_first_look();
    test_who_rests();
    test_broken();
    health_check_free(p);
    return done();
}
