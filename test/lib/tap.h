/* TAP in one header: ok() counts, done() closes the plan.  A failing test prints where and goes on. */
#ifndef TEST_LIB_TAP_H
#define TEST_LIB_TAP_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count, tap_failed;

static inline int tap_ok_at(int good, const char *what, const char *file, int line)
{
    printf("%sok %d - %s\n", good ? "" : "not ", ++tap_count, what);
    if (!good) {
        printf("# %s:%d\n", file, line);
        tap_failed++;
    }
    fflush(
        stdout); /* a child that is forked next must have nothing to repeat (the thread sanitizer flushes in _exit) */
    return good;
}
static inline int tap_str_at(const char *got, const char *want, const char *what, const char *file, int line)
{
    int good = got && want ? strcmp(got, want) == 0 : got == want;
    if (!tap_ok_at(good, what, file, line))
        printf("#  got: %s\n# want: %s\n", got ? got : "(null)", want ? want : "(null)");
    return good;
}
static inline int tap_num_at(long long got, long long want, const char *what, const char *file, int line)
{
    if (!tap_ok_at(got == want, what, file, line))
        printf("#  got: %lld\n# want: %lld\n", got, want);
    return got == want;
}
#define ok(cond, what)       tap_ok_at(!!(cond), what, __FILE__, __LINE__)
#define is_str(got, want, w) tap_str_at(got, want, w, __FILE__, __LINE__)
#define is_num(got, want, w) tap_num_at((long long)(got), (long long)(want), w, __FILE__, __LINE__)
#define skip(what, why)      printf("ok %d # SKIP %s: %s\n", ++tap_count, what, why)
static inline int done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed != 0;
}
#endif
