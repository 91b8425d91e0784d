#include "agent/cannot_exit.h"

#include <string.h>

bool cannot_exit_is_news(struct cannot_exit *u, uint64_t printed_bytes)
{
    bool news = printed_bytes != u->printed_bytes;
    u->printed_bytes = printed_bytes;
    u->raised = u->raised && !news;
    return news;
}

bool cannot_exit_saw(struct cannot_exit *u, bool raised, const struct proc_sample_one *one, el_usec now)
{
    /* A join waits for a futex; who waits for a peer, mostly for a socket. */
    bool joins = one->doing == PROC_SAMPLE_SLEEPING && one->threads > 1 && strncmp(one->wchan, "futex", 5) == 0;
    bool still = u->raised && raised && joins && one->cpu_ticks - u->ticks <= CANNOT_EXIT_TICKS;
    u->raised = raised;
    if (!still) {
        u->ticks = one->cpu_ticks;
        u->since = now;
        return false;
    }
    if (u->said || now - u->since < CANNOT_EXIT_TIME)
        return false;
    u->said = true;
    return true;
}
