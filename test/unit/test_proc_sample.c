/* What processes were doing: the kernel's words, and the line that people read. */
#include "sys/proc_sample.h"

#include "lib/tap.h"

static struct proc_sample_one make(unsigned id, char state, const char *wchan)
{
    struct proc_sample_one one = {.id = id};
    char stat[200];
    snprintf(stat, sizeof stat, "7 (py) %c 1 7 7 0 -1 4194304 100 1 2 3 44 55 0 0 20 0 12 0 119031 3133440\n", state);
    proc_sample_parse(&one, stat, wchan);
    return one;
}

static void test_parse(void)
{
    struct proc_sample_one one = make(3, 'S', "futex_wait_queue");
    ok(one.id == 3 && one.doing == PROC_SAMPLE_SLEEPING && one.cpu_ticks == 99 && one.threads == 12, "asleep");
    is_str(one.wchan, "futex_wait_queue", "where");
    is_str(make(0, 'S', "do_poll.constprop.0").wchan, "do_poll", "what the compiler added is cut");
    is_str(make(0, 'D', "0").wchan, "", "no function");
    is_str(make(0, 'S', "a\033[1mb").wchan, "a", "nothing but a name");
    char longer[200];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    is_num(strlen(make(0, 'S', longer).wchan), PROC_SAMPLE_WCHAN_MAX - 1, "a long name is cut");
    is_num(make(0, 'T', "do_signal_stop").doing, PROC_SAMPLE_STOPPED, "stopped");
    is_num(make(0, 't', "").doing, PROC_SAMPLE_TRACED, "traced");
    is_num(make(0, 'D', "nfs_wait_bit_killable").doing, PROC_SAMPLE_HELD, "held");
    is_num(make(0, 'D', "__refrigerator").doing, PROC_SAMPLE_FROZEN, "frozen, version 1");
    is_num(make(0, 'S', "do_freezer_trap").doing, PROC_SAMPLE_FROZEN, "frozen, version 2");
    is_num(make(0, 'R', "0").doing, PROC_SAMPLE_RUNNING, "running");
    is_num(make(0, 'Z', "0").doing, PROC_SAMPLE_ENDED, "a zombie");
    is_num(make(0, 'q', "0").doing, PROC_SAMPLE_UNSEEN, "a state of later kernels");
    proc_sample_parse(&one, "", "x");
    ok(one.doing == PROC_SAMPLE_UNSEEN && one.id == 3, "no text");
}

static const char *text_of(const struct proc_sample_one *one, unsigned n)
{
    static char text[2048];
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    proc_sample_text(&out, "rank", one, n);
    snprintf(text, sizeof text, "%s", el_buf_cstr(&out));
    el_buf_free(&out);
    return text;
}

static void test_text(void)
{
    struct proc_sample_one all[12] = {
        make(0, 'S', "futex_wait_queue"),
        make(1, 'Z', ""),
        make(2, 'S', "futex_wait_queue"),
        make(3, 'T', ""),
        make(4, 'R', "0"),
        make(5, 'D', "nfs_wait"),
        make(6, 'S', "futex_wait_queue"),
    };
    is_str(text_of(all, 7),
           "rank 3 stopped by a signal (SIGSTOP or the like); rank 5 in state D in nfs_wait; rank 4 running; "
           "ranks 0,2,6 asleep in futex_wait_queue",
           "what stands still first, then who waits");
    ok(proc_sample_is_notable(all, 7) && !proc_sample_is_notable(all, 3), "what is worth a word by itself");
    is_str(text_of(all + 1, 1), "", "one that ended is no sibling");
    is_str(text_of(all, 0), "", "nobody");
    for (unsigned i = 0; i < 12; i++) {
        char name[8] = {(char)('a' + i), 0};
        all[i] = make(10 + i, 'S', i % 2 ? "even" : name);
    }
    is_str(text_of(all, 12),
           "rank 10 asleep in a; ranks 11,13,15,17,19,21 asleep in even; rank 12 asleep in c; rank 14 asleep in e; "
           "rank 16 asleep in g; rank 18 asleep in i; 1 more elsewhere",
           "six groups are told, the rest is counted, members of told groups are not");
}

static void test_busy(void)
{
    struct proc_sample_one a = make(0, 'R', ""), b = a;
    b.cpu_ticks += 95;
    is_num(proc_sample_busy_percent(&a, &b, EL_SEC(1), 100), 95, "used a processor");
    is_num(proc_sample_busy_percent(&a, &a, EL_SEC(1), 100), 0, "did not");
    is_num(proc_sample_busy_percent(&b, &a, EL_SEC(1), 100), 0, "another process under the same number");
    is_num(proc_sample_busy_percent(&a, &b, 0, 100), 0, "no time between");
    b.doing = PROC_SAMPLE_UNSEEN;
    is_num(proc_sample_busy_percent(&a, &b, EL_SEC(1), 100), 0, "not seen");
}

int main(void)
{
    test_parse();
    test_text();
    test_busy();
    return done();
}
