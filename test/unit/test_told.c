#include "agent/told.h"

#include <string.h>

#include "lib/tap.h"

static const char *cut(const char *line, const char *told, bool reported)
{
    static char at[256];
    strcpy(at, line);
    return told_cut(at, told, reported) ? at : "(nothing)";
}

int main(void)
{
    const char *end =
        "the restart budget is used up (1 of 1): rank 1 on b failed: exit code 1: ValueError: x: y (a.py:9)";
    is_str(told_stop("stopping: rank 12 on b failed: exit code 1"), "rank 12 on b failed: exit code 1", "a failure");
    ok(!told_stop("stopping: b was lost (its connection closed)"), "a loss is none");
    ok(!told_stop("stopping: rank and file failed: x"), "nor is this");
    is_str(cut(end, NULL, false), end, "nothing has been said: all of it");
    is_str(cut(end, NULL, true), "the restart budget is used up (1 of 1)", "behind a report: what happens now");
    is_str(cut(end, "rank 1 on b failed: exit code 1", false),
           "the restart budget is used up (1 of 1): ValueError: x: y (a.py:9)", "behind a line: what is new");
    is_str(cut("used up: rank 1 on b failed: signal 9 (SIGKILL), from outside elrun",
               "rank 1 on b failed: signal 9 (SIGKILL)", false),
           "used up", "... or nothing of it");
    is_str(cut(end, "rank 3 on b failed: exit code 1", false), end, "another cause is news");
    is_str(cut("rank 1 on b failed: exit code 1", "rank 1 on b failed: exit code 1", false), "(nothing)",
           "nothing but what was said");
    is_str(cut("no restart: the same exception twice", NULL, true), "no restart: the same exception twice",
           "no cause is in it");
    return done();
}
