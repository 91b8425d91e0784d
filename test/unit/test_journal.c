/* The journal as bytes: what is written is read; whatever a power loss leaves is the records before it. */
#include "coord/journal.h"
#include "lib/tap.h"

static struct rdzv_record record(const char *run_id, uint64_t number)
{
    struct rdzv_record r = {.number = number,
                            .coord = 0xfedcba9876543210,
                            .restarts = 2,
                            .fruitless = 1,
                            .charged = number - 1,
                            .world_first = 64,
                            .world_last = 56,
                            .min = 3,
                            .max = 65536};
    snprintf(r.run_id, sizeof r.run_id, "%s", run_id);
    return r;
}

static bool same(const struct rdzv_record *a, const struct rdzv_record *b)
{
    return !strcmp(a->run_id, b->run_id) && !strcmp(a->text, b->text) && !strcmp(a->aside, b->aside) &&
           a->number == b->number && a->coord == b->coord && a->restarts == b->restarts &&
           a->fruitless == b->fruitless && a->charged == b->charged && a->world_first == b->world_first &&
           a->world_last == b->world_last && a->min == b->min && a->max == b->max && a->ended == b->ended &&
           a->status == b->status;
}

struct seen {
    unsigned n;
    struct rdzv_record last;
};

static void see(void *ctx, const struct rdzv_record *r)
{
    struct seen *s = ctx;
    s->n++;
    s->last = *r;
}

static void test_golden(void)
{
    struct rdzv_record r = record("pretrain-7b", 7), back;
    struct el_buf line = EL_BUF_INIT(NULL, 0);
    journal_encode(&r, &line);
    is_str(el_buf_cstr(&line),
           "run=pretrain-7b coord=fedcba9876543210 number=7 restarts=2 fruitless=1 charged=6 world_first=64 "
           "world_last=56 min=3 max=65536 ended=0 status=0 text= sum=145c130d640aeb59\n",
           "a record is a line that a person can read");
    ok(journal_decode(line.v, line.len - 1, &back) && same(&r, &back), "and comes back");
    el_buf_free(&line);
}

static void test_odd_text(void)
{
    struct rdzv_record r = record("", 1), back;
    struct el_buf line = EL_BUF_INIT(NULL, 0);
    for (unsigned i = 0; i < MSG_RUN_ID_MAX; i++)
        r.run_id[i] = (char)(i * 2 + 1);
    for (unsigned i = 0; i < MSG_TEXT_MAX; i++)
        r.text[i] = (char)(255 - i % 255);
    for (unsigned i = 0; i < sizeof r.aside - 1; i++)
        r.aside[i] = (char)(255 - i);
    r.ended = true;
    r.status = 255;
    is_num(journal_encode(&r, &line), 0, "every byte there is, in all strings");
    ok(line.len < JOURNAL_LINE_MAX, "fits a line");
    ok(memchr(line.v, '\n', line.len) == line.v + line.len - 1, "with one newline, at its end");
    ok(journal_decode(line.v, line.len - 1, &back) && same(&r, &back), "and comes back");
    el_buf_free(&line);
}

/* The sum fits, and no job can have come to that. */
static void test_numbers(void)
{
    struct el_buf line = EL_BUF_INIT(NULL, 0);
    struct rdzv_record back,
        r[] = {record("one", MSG_ROUND_MAX), record("one", UINT64_MAX), record("one", 5), record("one", 5)};
    r[2].charged = 6;
    r[3].world_last = UINT64_MAX;
    for (unsigned i = 0; i < sizeof r / sizeof r[0]; i++) {
        line.len = 0;
        journal_encode(&r[i], &line);
        ok(!journal_decode(line.v, line.len - 1, &back), "a record of numbers that cannot be is none");
    }
    el_buf_free(&line);
}

/* Whatever is cut off: the whole records before it are read, and nothing else. */
static void test_truncations(void)
{
    struct el_buf all = EL_BUF_INIT(NULL, 0);
    size_t end[4] = {0};
    for (unsigned i = 1; i <= 3; i++) {
        struct rdzv_record r = record(i == 2 ? "other" : "one", i);
        journal_encode(&r, &all);
        end[i] = all.len;
    }
    unsigned wrong = 0;
    for (size_t n = 0; n <= all.len; n++) {
        struct seen seen = {0};
        struct el_err e = {0};
        size_t good = 99999;
        unsigned whole = n >= end[3] ? 3 : n >= end[2] ? 2 : n >= end[1];
        int bad = journal_read(all.v, n, see, &seen, &good, &e);
        wrong += bad || seen.n != whole || good != end[whole] || (whole && seen.last.number != whole);
    }
    is_num(wrong, 0, "each of all truncations gives the whole records before it");
    el_buf_free(&all);
}

/* Each single bit that rots in the last line makes it a torn one; in an earlier line it is damage. */
static void test_rot(void)
{
    struct el_buf all = EL_BUF_INIT(NULL, 0);
    struct rdzv_record a = record("one", 1), b = record("two", 2);
    journal_encode(&a, &all);
    size_t first = all.len;
    journal_encode(&b, &all);
    unsigned missed = 0, silent = 0;
    for (size_t bit = 0; bit < all.len * 8; bit++) {
        if (bit / 8 == first - 1)
            continue; /* without its newline the first line is a part of the last */
        struct seen seen = {0};
        struct el_err e = {0};
        size_t good = 0;
        all.v[bit / 8] = (char)(all.v[bit / 8] ^ 1 << bit % 8);
        int bad = journal_read(all.v, all.len, see, &seen, &good, &e);
        if (bit / 8 >= first)
            missed += bad || seen.n != 1 || good != first;
        else
            silent += !bad || e.status != EL_EXIT_CONFIG;
        all.v[bit / 8] = (char)(all.v[bit / 8] ^ 1 << bit % 8);
    }
    is_num(missed, 0, "any bit of the last line: it is dropped");
    is_num(silent, 0, "any bit of a line before: refused");
    el_buf_free(&all);
}

static void test_garbage(void)
{
    struct el_buf all = EL_BUF_INIT(NULL, 0);
    struct rdzv_record a = record("one", 1), back;
    struct seen seen = {0};
    size_t good = 0;
    journal_encode(&a, &all);
    size_t first = all.len;
    for (unsigned i = 0; i < 8192; i++)
        el_buf_put(&all, i % 100 ? "\0" : "\n", 1); /* blocks of zeros, as a file system leaves them */
    is_num(journal_read(all.v, all.len, see, &seen, &good, NULL), 0, "zeros behind the last record");
    ok(seen.n == 1 && good == first, "are dropped");
    ok(!journal_decode("", 0, &back), "an empty line is no record");
    ok(!journal_decode(all.v, first - 2, &back), "nor is one without its last digit");
    el_buf_free(&all);
}

static void test_set(void)
{
    struct journal_set set = {0};
    struct rdzv_record r, out;
    char name[32];
    for (unsigned i = 0; i < JOURNAL_JOBS_MAX + 10; i++) {
        snprintf(name, sizeof name, "job-%u", i);
        r = record(name, i + 1);
        r.ended = i < 5;
        journal_set_put(&set, &r);
    }
    is_num(set.n, JOURNAL_JOBS_MAX, "more jobs than are kept: the oldest go");
    is_num(set.ended, 0, "ended ones first");
    r = record("job-500", 9999);
    journal_set_put(&set, &r);
    is_num(set.n, JOURNAL_JOBS_MAX, "a newer record of a known job replaces the old");
    ok(journal_set_take(&set, "job-500", &out) && out.number == 9999, "and is found");
    ok(!journal_set_take(&set, "job-500", &out), "once");
    for (unsigned i = 0; i < JOURNAL_ENDED_MAX + 10; i++) {
        snprintf(name, sizeof name, "end-%u", i);
        r = record(name, 1);
        r.ended = true;
        journal_set_put(&set, &r);
    }
    ok(set.ended <= JOURNAL_ENDED_MAX && set.n <= JOURNAL_JOBS_MAX, "ended ones have a bound of their own");
    ok(journal_set_take(&set, "job-900", &out), "and do not push out those that run");
    journal_set_free(&set);
}

/* The allocator refuses at each point: nothing half is left in the buffer. */
static void test_no_memory(void)
{
    unsigned wrong = 0;
    for (long fail = 0; fail < 8; fail++) {
        struct el_mem mem = EL_MEM_INIT(0);
        struct el_buf line = EL_BUF_INIT(&mem, 0);
        struct rdzv_record r = record("one", 1);
        mem.fail_after = fail;
        int bad = journal_encode(&r, &line);
        wrong += bad ? line.len != 0 : line.v[line.len - 1] != '\n';
        el_buf_free(&line);
    }
    is_num(wrong, 0, "no memory: all of a record or nothing");
}

int main(void)
{
    test_golden();
    test_odd_text();
    test_numbers();
    test_truncations();
    test_rot();
    test_garbage();
    test_set();
    test_no_memory();
    return done();
}
