#include "member/coordinator_mark.h"

#include "lib/tap.h"

static const struct coordinator_mark sample = {
    .boot = "b1", .pid = 4711, .start_ticks = 99, .written_s = 1000, .keep_s = 600};

static void test_text(void)
{
    char text[COORDINATOR_MARK_TEXT_MAX];
    struct coordinator_mark got;
    is_str(coordinator_mark_text(&sample, text), "elrun-mark 1 4711 99 1000 600 b1\n", "the text of a mark");
    ok(coordinator_mark_parse(text, &got) && got.pid == 4711 && got.start_ticks == 99 && got.written_s == 1000 &&
           got.keep_s == 600 && strcmp(got.boot, "b1") == 0,
       "is read back");
    static const char *const bad[] = {"",
                                      "\n",
                                      "elrun-mark 2 1 1 1 1 b\n",
                                      "elrun-mark 1 \n",
                                      "elrun-mark 1 1 1 1 b\n",
                                      "elrun-mark 1 1 1 1 1 \n",
                                      "elrun-mark 1 -1 1 1 1 b\n",
                                      "elrun-mark 1 99999999999999999999 1 1 1 b\n",
                                      "elrun-mark 1 1 1 1 1 "
                                      "0123456789012345678901234567890123456789012345678901234567890123456789\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ok(!coordinator_mark_parse(bad[i], &got), "what is no mark is not read as one");
}

static void test_stale(void)
{
    struct coordinator_mark now = sample;
    now.written_s = 1000 + 600 + 120;
    ok(!coordinator_mark_is_stale(&sample, &now, false), "members may still come back");
    now.written_s++;
    ok(coordinator_mark_is_stale(&sample, &now, false), "nobody comes back after that");
    ok(!coordinator_mark_is_stale(&sample, &now, true), "unless the process lives");
    now.written_s = 1;
    ok(!coordinator_mark_is_stale(&sample, &now, false), "one from the future");
    snprintf(now.boot, sizeof now.boot, "b2");
    ok(coordinator_mark_is_stale(&sample, &now, true), "of another boot");
}

int main(void)
{
    char name[64], prefix[64];
    test_text();
    test_stale();
    coordinator_mark_name(1000, 29400, "job", name, sizeof name);
    coordinator_mark_prefix(1000, prefix, sizeof prefix);
    ok(strncmp(name, prefix, strlen(prefix)) == 0, "names begin with the prefix");
    return done();
}
