/* The first of many failures, and what may be said about it; sets of ranks. */
#include "failure/first_failure.h"
#include "util/ranges.h"
#include "lib/tap.h"

#define N(...)                                                                                                         \
    (struct first_failure_entry)                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static bool is(const struct first_failure_entry *all, unsigned n, int root, unsigned among)
{
    struct first_failure_cause c = first_failure_cause(all, n);
    if (c.root != root || c.among != among)
        printf("# got: %d among %u, want: %d among %u\n", c.root, c.among, root, among);
    return c.root == root && c.among == among;
}
#define IS(root, among, what, ...)                                                                                     \
    do {                                                                                                               \
        struct first_failure_entry all[] = {__VA_ARGS__};                                                              \
        ok(is(all, sizeof all / sizeof all[0], root, among), what);                                                    \
    } while (0)

static void causes(void)
{
    ok(is(NULL, 0, -1, 0), "nothing failed");
    IS(1, 1, "the earliest", N(.time = 5000, .error = 10, .node = 1, .rank = 9),
       N(.time = 4000, .error = 10, .node = 2));
    IS(0, 1, "elrun's own are never the cause", N(.time = 9000, .node = 1, .rank = 1),
       N(.time = 1000, .node = 2, .elrun = true));
    IS(-1, 0, "nor are they if nobody else is there", N(.time = 1, .elrun = true), N(.time = 2, .elrun = true));
    IS(1, 1, "who follows is not the cause, however early", N(.time = 1000, .node = 1, .follower = true),
       N(.time = 90000, .node = 2));
    IS(1, 2, "unless there is nobody else", N(.time = 1010, .error = 20, .node = 1, .follower = true),
       N(.time = 1000, .error = 20, .node = 2, .follower = true), N(.time = 900, .node = 3, .elrun = true));
    IS(0, 1, "of those, one whose connection may have been its own",
       N(.time = 1010, .node = 1, .follower = true, .private_link = true),
       N(.time = 1000, .node = 2, .follower = true));
    IS(1, 1, "then one whose time ran out", N(.time = 1000, .error = 90, .node = 1, .follower = true),
       N(.time = 1010, .error = 90, .node = 2, .follower = true, .late = true));
    IS(0, 1, "the lower rank of the same moment", N(.time = 1000, .node = 1, .rank = 3),
       N(.time = 1000, .node = 2, .rank = 2, .follower = true));
    IS(1, 2, "of the same kind, too", N(.time = 1000, .node = 1, .rank = 3), N(.time = 1000, .node = 2, .rank = 2));
}

static void doubts(void)
{
    IS(0, 1, "further apart than both errors: the first", N(.time = 1000, .error = 100, .node = 1),
       N(.time = 1301, .error = 200, .node = 2));
    IS(0, 2, "as far as both errors: among the first", N(.time = 1000, .error = 100, .node = 1),
       N(.time = 1300, .error = 200, .node = 2));
    IS(0, 2, "one error is large enough", N(.time = 1000, .error = 0, .node = 1),
       N(.time = 5000, .error = 9000, .node = 2));
    IS(0, 2, "the root's own, too", N(.time = 1000, .error = UINT64_MAX, .node = 1),
       N(.time = 5000, .error = 0, .node = 2));
    IS(0, 1, "one node has one clock: its error does not matter", N(.time = 1000, .error = 90000, .node = 1, .rank = 4),
       N(.time = 1000 + FIRST_FAILURE_ONE_NODE, .error = 90000, .node = 1, .rank = 3));
    IS(0, 2, "but its loop sees only so much", N(.time = 1000, .node = 1), N(.time = 1100, .node = 1, .rank = 3));
    IS(0, 1, "followers are not counted among the first", N(.time = 1000, .error = 500, .node = 1),
       N(.time = 1001, .error = 500, .node = 2, .follower = true),
       N(.time = 1001, .error = 500, .node = 3, .elrun = true));
    IS(2, 3, "three", N(.time = 1002, .error = 5, .node = 1), N(.time = 1001, .error = 5, .node = 2),
       N(.time = 1000, .error = 5, .node = 3), N(.time = 2000, .error = 5, .node = 4));
}

static void total(void)
{
    struct first_failure_entry v[64];
    int good = 1;
    for (unsigned i = 0; i < 64; i++)
        v[i] = N(.elrun = i & 1, .follower = i & 2, .time = i >> 2 & 3, .rank = i >> 4);
    for (unsigned a = 0; a < 64; a++)
        for (unsigned b = 0; b < 64; b++) {
            good &= !(first_failure_sooner(&v[a], &v[b]) && first_failure_sooner(&v[b], &v[a]));
            good &= a == b || first_failure_sooner(&v[a], &v[b]) || first_failure_sooner(&v[b], &v[a]);
            for (unsigned c = 0; c < 64; c++)
                good &= !(first_failure_sooner(&v[a], &v[b]) && first_failure_sooner(&v[b], &v[c])) ||
                        first_failure_sooner(&v[a], &v[c]);
        }
    ok(good, "a total order");
}

static void sets(void)
{
    struct el_mem mem = EL_MEM_INIT(0);
    struct el_buf out = EL_BUF_INIT(&mem, 0), small = EL_BUF_INIT(&mem, 12);
    struct el_ranges s = {0}, t = {0};
    for (unsigned i = 0; i < 1024; i++)
        if (i != 37)
            el_ranges_add(&s, &out, i);
    el_ranges_end(&s, &out);
    is_str(el_buf_cstr(&out), "0-36,38-1023", "runs");
    for (unsigned i = 0; i < 40; i += 2)
        el_ranges_add(&t, &small, i);
    el_ranges_end(&t, &small);
    is_str(el_buf_cstr(&small), "0,2,4,6,…", "what does not fit is said not to be there");
    const char *at = "0,2-5,9";
    unsigned a, b;
    ok(el_ranges_next(&at, &a, &b) && a == 0 && b == 0, "one");
    ok(el_ranges_next(&at, &a, &b) && a == 2 && b == 5, "a run");
    ok(el_ranges_next(&at, &a, &b) && a == 9 && b == 9 && !*at && !el_ranges_next(&at, &a, &b), "the last");
    static const char *const bad[] = {"x", "-1", "5-2", "1,", "1-", "1 ,2", "99999999999", ",1", "…", ""};
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        at = bad[i];
        ok(!el_ranges_next(&at, &a, &b), "no list");
    }
    el_buf_free(&out);
    el_buf_free(&small);
    is_num(mem.used_bytes, 0, "all memory was given back");
}

int main(void)
{
    causes();
    doubts();
    total();
    sets();
    return done();
}
