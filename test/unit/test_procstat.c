#include "sys/procstat.h"

#include "lib/tap.h"

static const char status[] = "Name:\tpython) S 1\nUmask:\t0022\nState:\tD (disk sleep)\nTgid:\t42\nNgid:\t0\nPid:\t42\n"
                             "PPid:\t7\nTracerPid:\t0\nThreads:\t3\nSigQ:\t0/1\nSigPnd:\t0000000000000000\n"
                             "ShdPnd:\t0000000000000000\nSigBlk:\t0000000000010000\nSigIgn:\t0000000001001000\n"
                             "SigCgt:\t8000000100000202\nCapInh:\t0\n";

static void test_status(void)
{
    struct procstat_status s;
    is_num(procstat_status(&s, status), 0, "status of a process");
    ok(s.state == 'D' && s.ppid == 7, "state and parent");
    ok(procstat_catches(&s, 2) && procstat_catches(&s, 10) && procstat_catches(&s, 33) && procstat_catches(&s, 64),
       "signals with a handler");
    ok(!procstat_catches(&s, 1) && !procstat_catches(&s, 12) && !procstat_catches(&s, 63), "signals without");
    ok(procstat_ignores(&s, 13) && procstat_ignores(&s, 25) && !procstat_ignores(&s, 10), "ignored ones");
    is_num(s.sig_blocked, 0x10000, "blocked ones");
    char cut[sizeof status];
    unsigned read = 0;
    for (size_t n = 0; n < sizeof status - 1; n++) {
        memcpy(cut, status, n);
        cut[n] = 0;
        read += procstat_status(&s, cut) == 0;
    }
    const char *mask = strstr(status, "SigCgt:\t") + strlen("SigCgt:\t");
    is_num(read, sizeof status - 1 - (size_t)(mask - status) - 1, "cut anywhere before its last field: refused");
    is_num(procstat_status(&s, "Name:\tState:\tR\n"), -1, "a field counts at the start of a line only");
}

static void test_stat(void)
{
    struct procstat_stat s;
    is_num(procstat_stat(&s, "42 (cat) R 9605 9606 3550 0 -1 4194304 100 1 2 3 44 55 0 0 20 0 1 0 119031 3133440\n"), 0,
           "stat of a process");
    ok(s.pid == 42 && s.ppid == 9605 && s.pgrp == 9606 && s.session == 3550 && s.state == 'R', "who it is");
    is_str(s.comm, "cat", "its name");
    ok(s.utime_ticks == 44 && s.stime_ticks == 55 && s.start_ticks == 119031 && s.threads == 1, "its times");
    is_num(procstat_stat(&s, "7 (a) b (c) Z 1 (d)) Z 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 99 0\n"), 0,
           "a name with parentheses and blanks");
    is_str(s.comm, "a) b (c) Z 1 (d)", "all of it");
    ok(s.state == 'Z' && s.start_ticks == 99, "and what follows");
    is_num(procstat_stat(&s, "7 (new\nline) S 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 99\n"), 0,
           "a name with a newline");
    static const char *const bad[] = {"",
                                      "7",
                                      "7 (",
                                      "7 ()",
                                      "7 (a)",
                                      "7 (a) ",
                                      "7 (a) S",
                                      "x (a) S 1 2 3",
                                      "7 (a) S 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0\n",
                                      "7 (a) S 1 2 3 0 -1 4 5 6 7 8 99999999999999999999 10 11 12 20 0 1 0 9\n"};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        is_num(procstat_stat(&s, bad[i]), -1, "refused");
}

int main(void)
{
    test_status();
    test_stat();
    return done();
}
