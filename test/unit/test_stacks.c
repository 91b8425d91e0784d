/* Where ranks stood: real dumps of faulthandler, grouped. */
#include "failure/stacks.h"
#include "lib/tap.h"

#define HEAD(id) "Thread 0x00007f14f144" id " (most recent call first):\n"
#define LIB                                                                                                            \
    "  File \"/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py\", line 3252 in all_reduce\n"      \
    "  File \"/v/lib/python3.11/site-packages/torch/distributed/c10d_logger.py\", line 83 in wrapper\n"
#define WAIT "  File \"/home/user/train.py\", line 12 in step\n  File \"/home/user/train.py\", line 30 in <module>\n"
#define POOL                                                                                                           \
    "  File \"/usr/lib/python3.11/threading.py\", line 324 in wait\n  File \"/usr/lib/python3.11/threading.py\", "     \
    "line 973 in _bootstrap\n"
#define ABORT "Fatal Python error: Aborted\n\n"

static const char waits[] =
    "step 7\n" ABORT HEAD("0001") POOL "\nCurrent thread 0x00007f14f1440000 (most recent call "
                                       "first):\n" LIB WAIT "\nExtension modules: numpy, torch (total: 2)\n";
/* The same place, seen from another thread order. */
static const char waits_too[] = ABORT HEAD("0000") LIB WAIT "\nCurrent thread 0x0000000000000007 (most recent call "
                                                            "first):\n" POOL;
static const char loads[] =
    ABORT "Current thread 0x0000000000000001 (most recent call first):\n  File "
          "\"/home/user/data.py\", line 40 in read\n  File \"/home/user/train.py\", line 10 in step\n"
          "  File \"/home/user/train.py\", line 30 in <module>\n";

static struct el_mem mem = EL_MEM_INIT(0);

static const char *line_of(const char *const *texts, unsigned n)
{
    static char out[4096];
    struct stacks_rank v[64];
    struct stacks s;
    struct el_buf b = EL_BUF_INIT(&mem, 0);
    for (unsigned i = 0; i < n; i++)
        v[i] = (struct stacks_rank){i, {texts[i], strlen(texts[i])}};
    ok(stacks_group(&s, v, n, &mem) == 0, "grouped");
    stacks_line(&s, &b);
    snprintf(out, sizeof out, "%s", el_buf_cstr(&b));
    el_buf_free(&b);
    stacks_free(&s, &mem);
    return out;
}

static void test_groups(void)
{
    const char *eight[] = {waits, "step 7\n", waits_too, waits, waits, waits, waits, waits};
    is_str(line_of(eight, 8), "1: no stack; 0,2-7 in all_reduce (distributed_c10d.py:3252), from step (train.py:12)",
           "the published case: rank 1 was stopped, the others wait for it");
    const char *three[] = {waits, loads, waits_too};
    is_str(line_of(three, 3),
           "1 in read (data.py:40); 0,2 in all_reduce (distributed_c10d.py:3252), from step (train.py:12)",
           "one that loads, two that wait");
    is_str(line_of(NULL, 0), "", "nobody");
    const char *none[] = {"", "x"};
    is_str(line_of(none, 2), "0-1: no stack", "nothing printed");
    const char *equal[] = {loads, waits, loads, waits};
    is_str(line_of(equal, 4),
           "1,3 in all_reduce (distributed_c10d.py:3252), from step (train.py:12); 0,2 in read (data.py:40)",
           "equal sizes: by the lowest rank");
}

static void test_find(void)
{
    struct text t = stacks_find((struct text){waits, sizeof waits - 1});
    ok(text_starts(t, "Current thread") && t.p[t.n - 1] == '>', "the main thread, not a pool's; to its last frame");
    t = stacks_find((struct text){waits_too, sizeof waits_too - 1});
    ok(text_starts(t, "Thread 0x00007f14f1440000"), "the signal hit another thread: still the main one");
    static const char twice[] = "Timeout (0:00:01)!\n" HEAD("0001") LIB WAIT
        "later\nTimeout (0:00:01)!\n" HEAD("0002") "  File \"/home/user/train.py\", line 44 in save\n  File "
                                                   "\"/home/user/train.py\", line 50 in <module>\n";
    t = stacks_find((struct text){twice, sizeof twice - 1});
    ok(text_starts(t, "Thread 0x00007f14f1440002"), "of two dumps the newest");
    static const char prefix[] =
        "[rank1]: Fatal Python error: Aborted\n[rank1]: \n[rank1]: Current thread 0x00007f14f1440000 (most recent call "
        "first):\n[rank1]:   File \"/home/user/train.py\", line 12 in step\n[rank1]:   File \"/home/user/train.py\", "
        "line 30 in <module>\n";
    t = stacks_find((struct text){prefix, sizeof prefix - 1});
    ok(t.n && text_find(t, "<module>"), "behind a prefix");
    static const char cut[] = "lib/x.py\", line 3 in f\n" WAIT;
    is_num(stacks_find((struct text){cut, sizeof cut - 1}).n, 0, "frames whose head was cut off are none");
    static const char empty[] = "Current thread 0x0000000000000001 (most recent call first):\n  <no Python frame>\n";
    is_num(stacks_find((struct text){empty, sizeof empty - 1}).n, 0, "a thread without Python frames");
    static const char python[] = "Traceback (most recent call last):\n" WAIT "ValueError: x\n";
    is_num(stacks_find((struct text){python, sizeof python - 1}).n, 0, "an exception's traceback is no dump");
}

/* Every rank somewhere else: the groups are bounded, nobody is lost. */
static void test_many(void)
{
    static char text[200][200];
    static struct stacks_rank v[200];
    struct stacks s;
    for (unsigned i = 0; i < 200; i++) {
        snprintf(text[i], sizeof text[i],
                 "Current thread 0x01 (most recent call first):\n  File \"a.py\", line 1 in f\n"
                 "  File \"a.py\", line %u in <module>\n",
                 i < 100 ? 7 : i);
        v[i] = (struct stacks_rank){i * 2, {text[i], strlen(text[i])}};
    }
    ok(stacks_group(&s, v, 200, &mem) == 0 && s.groups_count == STACKS_GROUPS_MAX + 1, "groups are bounded");
    ok(s.group[0].ranks_count == 100 && s.group[0].ranks[99] == 198, "the largest first");
    unsigned all = 0;
    for (unsigned i = 0; i < s.groups_count; i++)
        all += s.group[i].ranks_count;
    is_num(all, 200, "nobody is lost");
    is_num(s.group[s.groups_count - 1].kind, STACKS_OTHER, "the rest are others");
    stacks_free(&s, &mem);
    for (long n = 0; n < 2; n++) {
        mem.fail_after = n;
        is_num(stacks_group(&s, v, 200, &mem), -1, "memory is refused");
        mem.fail_after = -1;
        ok(!s.groups_count && !mem.used_bytes, "there are no groups, and it came back");
    }
}

static void test_lines(void)
{
    static const char a[] = "Current thread 0x01 (most recent call first):\n  File \"a.py\", line 5 in spin\n  File "
                            "\"a.py\", line 9 in <module>\n",
                      b[] = "Current thread 0x01 (most recent call first):\n  File \"a.py\", line 6 in spin\n  File "
                            "\"a.py\", line 9 in <module>\n",
                      c[] = "Current thread 0x01 (most recent call first):\n  File \"a.py\", line 6 in spin\n  File "
                            "\"a.py\", line 10 in <module>\n";
    const char *two[] = {a, b, c};
    is_str(line_of(two, 3), "2 in spin (a.py:6); 0-1 in spin (a.py:5-6)",
           "a loop's line does not part them and both are told, the caller's does");
}

int main(void)
{
    test_groups();
    test_find();
    test_many();
    test_lines();
    is_num(mem.used_bytes, 0, "all memory came back");
    return done();
}
