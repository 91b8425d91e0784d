#include "agent/unended.h"

#include <string.h>

bool unended_is_news(struct unended *u, uint64_t printed_bytes)
{
    bool news = printed_bytes != u->printed_bytes;
    u->printed_bytes = printed_bytes;
    u->raised = u->raised && !news;
    return news;
}

bool unended_saw(struct unended *u, bool raised, const struct scene_one *one, el_usec now)
{
    /* A join waits for a futex; who waits for a peer, mostly for a socket. */
    bool joins = one->doing == SCENE_SLEEPING && one->threads > 1 && strncmp(one->wchan, "futex", 5) == 0;
    bool still = u->raised && raised && joins && one->cpu_ticks - u->ticks <= UNENDED_TICKS;
    u->raised = raised;
    if (!still) {
        u->ticks = one->cpu_ticks;
        u->since = now;
        return false;
    }
    if (u->said || now - u->since < UNENDED_TIME)
        return false;
    u->said = true;
    return true;
}
