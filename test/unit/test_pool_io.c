/* Waiting for one job before there is a loop: it comes, it comes late, it never comes. */
#include <unistd.h>

#include "lib/tap.h"
#include "loop/pool.h"

struct slow {
    int wait_fd; /* read until somebody writes; -1: not */
    int over;
};

static void work(void *ctx)
{
    struct slow *s = ctx;
    char c;
    if (s->wait_fd >= 0 && read(s->wait_fd, &c, 1) != 1)
        return;
    __atomic_store_n(&s->over, 1, __ATOMIC_SEQ_CST);
}

static bool comes(struct slow *s)
{
    for (int i = 0; i < 60000 && !__atomic_load_n(&s->over, __ATOMIC_SEQ_CST); i++)
        usleep(1000);
    return s->over;
}

int main(void)
{
    static struct slow soon = {.wait_fd = -1}, late;
    bool made = false;
    int line[2];
    if (pipe(line))
        return 1;
    is_num(pool_await(work, &soon, EL_SEC(60), &made), true, "what ends is waited for");
    is_num(made && soon.over, true, "and has run");
    late.wait_fd = line[0];
    is_num(pool_await(work, &late, EL_MS(1), &made), false, "what does not end in time is left alone");
    is_num(made && !late.over, true, "while it runs");
    is_num(write(line[1], "x", 1) == 1 && comes(&late), true, "it may end whenever it likes");
    return done();
}
