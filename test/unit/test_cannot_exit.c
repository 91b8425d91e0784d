/* A worker that has raised, and does not exit. */
#include "agent/cannot_exit.h"
#include "lib/tap.h"

static const struct proc_sample_one joins = {
    .doing = PROC_SAMPLE_SLEEPING, .cpu_ticks = 100, .threads = 2, .wchan = "futex_do_wait"};

/* Stands like this from second 1 to second 10: in which second is it said?  0: not at all. */
static unsigned said_in(struct cannot_exit *u, bool raised, struct proc_sample_one one, unsigned ticks_each)
{
    unsigned said = 0;
    for (unsigned s = 1; s <= 10; s++, one.cpu_ticks += ticks_each)
        if (cannot_exit_saw(u, raised, &one, EL_SEC(s)))
            said = said ? 99 : s;
    return said;
}

int main(void)
{
    struct cannot_exit u = {0};
    struct proc_sample_one one = joins;
    is_num(said_in(&u, true, joins, 0), 4, "it raised and stands: said after three seconds, once");
    u = (struct cannot_exit){0};
    is_num(said_in(&u, false, joins, 0), 0, "it has raised nothing");
    u = (struct cannot_exit){0};
    is_num(said_in(&u, true, joins, 3), 0, "it computes");
    u = (struct cannot_exit){0};
    one.threads = 1;
    is_num(said_in(&u, true, one, 0), 0, "there is no thread to wait for");
    one = joins;
    snprintf(one.wchan, sizeof one.wchan, "hrtimer_nanosleep");
    u = (struct cannot_exit){0};
    is_num(said_in(&u, true, one, 0), 0, "it sleeps for a time");
    one = joins;
    one.doing = PROC_SAMPLE_RUNNING;
    u = (struct cannot_exit){0};
    is_num(said_in(&u, true, one, 0), 0, "it runs");
    u = (struct cannot_exit){0};
    ok(cannot_exit_is_news(&u, 10) && !cannot_exit_is_news(&u, 10), "what was printed is read once");
    cannot_exit_saw(&u, true, &joins, EL_SEC(1));
    cannot_exit_saw(&u, true, &joins, EL_SEC(3));
    ok(cannot_exit_is_news(&u, 11), "it prints more");
    ok(!cannot_exit_saw(&u, true, &joins, EL_SEC(5)), "... then its time begins again");
    return done();
}
