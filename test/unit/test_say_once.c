#include "agent/say_once.h"

#include <string.h>

#include "lib/tap.h"

static const char *cut(const char *line, const char *told, bool in_full)
{
    static char at[256];
    strcpy(at, line);
    return say_once_cut(at, told, in_full) ? at : "(nothing)";
}

static const char end[] =
    "the restart budget is used up (1 of 1): rank 1 on b failed: exit code 1: ValueError: x: y (a.py:9)";
static const char used[] = "the restart budget is used up (1 of 1)";
static const char why[] = "rank 1 on b failed: exit code 1: ValueError: x: y (a.py:9)";

static void test_line(void)
{
    is_str(cut(end, "rank 1 on b failed: exit code 1", false),
           "the restart budget is used up (1 of 1): ValueError: x: y (a.py:9)", "behind a line: what is new");
    is_str(cut("used up: rank 1 on b failed: signal 9 (SIGKILL), from outside elrun",
               "rank 1 on b failed: signal 9 (SIGKILL)", false),
           "used up", "... or nothing of it");
    is_str(cut(end, "rank 3 on b failed: exit code 1", false), end, "another cause is news");
    is_str(cut("rank 1 on b failed: exit code 1", "rank 1 on b failed: exit code 1", false), "(nothing)",
           "nothing but what was said");
    is_str(cut("rank 1 on b failed: exit code 12: ValueError", "rank 1 on b failed: exit code 1", false),
           "rank 1 on b failed: exit code 12: ValueError", "exit code 1 is not the beginning of exit code 12");
    is_str(
        cut("used up: rank 1 on b failed: exit code 1; 1 of 2 nodes is left", "rank 1 on b failed: exit code 1", false),
        "used up; 1 of 2 nodes is left", "what stands behind the cause stays");
    is_str(cut("rank 1 on b failed: exit code 1; 1 of 2 nodes is left", "rank 1 on b failed: exit code 1", false),
           "1 of 2 nodes is left", "... by itself");
}

static void test_report(void)
{
    is_str(cut(end, why, true), used, "behind a report: what happens now");
    is_str(cut("used up: rank 1 on b failed: exit code 1", why, true), "used up",
           "... where the line has less than the report");
    is_str(cut("used up: rank 1 on b failed: exit code 1: ValueError: x: y…", why, true), "used up", "... cut short");
    is_str(cut(end, "rank 1 on b failed: exit code 1", true), used, "... or more");
    is_str(cut(end, "rank 1 on b failed: ", true), used, "... which knew nothing but whose it was");
    is_str(cut("rank 5 on c failed: exit code 1: KeyError", why, true), "rank 5 on c failed: exit code 1: KeyError",
           "it was about another failure: this one is news");
    is_str(cut("rank 12 on b failed: exit code 1", "rank 1 on b failed: exit code 1", true),
           "rank 12 on b failed: exit code 1", "rank 1 is not rank 12");
    is_str(cut("used up: rank 1 on b failed: exit code 1: ValueError: x: y (a.py:9); 1 of 2 nodes is left", why, true),
           "used up; 1 of 2 nodes is left", "what stands behind the cause stays");
    is_str(cut("used up: rank 1 on b failed: exit code 1; 1 of 2 nodes is left", why, true),
           "used up; 1 of 2 nodes is left", "... where the line has less of it, too");
    is_str(cut("used up: rank 1 on b failed: exit code 1: a; b; c", "rank 1 on b failed: exit code 1: a; b; c", true),
           "used up", "a semicolon in the cause is part of it");
    is_str(cut("used up: rank 1 on b failed: exit code 1: a; bird…", "rank 1 on b failed: exit code 1: a; b; c", true),
           "used up", "... and where the two differ behind it");
}

int main(void)
{
    is_str(say_once_stop("stopping: rank 12 on b failed: exit code 1"), "rank 12 on b failed: exit code 1",
           "a failure");
    ok(!say_once_stop("stopping: b was lost (its connection closed)"), "a loss is none");
    ok(!say_once_stop("stopping: rank and file failed: x"), "nor is this");
    is_str(cut(end, NULL, false), end, "nothing has been said: all of it");
    is_str(cut(end, "", true), end, "... which may be an empty text");
    is_str(cut("no restart: the same exception twice", why, true), "no restart: the same exception twice",
           "no cause is in it");
    test_line();
    test_report();
    return done();
}
