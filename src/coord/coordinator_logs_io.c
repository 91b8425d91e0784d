/* A worker's output on its way from the agent that reads its log to the command that asked.
 *
 * Nothing is kept here: the agent has at most MSG_LOGS_WINDOW pieces on their way to a reader, and sends another one
 * when the reader says that it has taken one.  So a reader that takes nothing holds nobody up, and nothing piles up. */
#include <assert.h>

#include "coord/coordinator_private.h"
#include "util/log.h"

#define BEAT_EVERY EL_SEC(1) /* a sign of life in both directions: a quiet worker and a dead host look different */

/* The connection of an agent, while it speaks for a member. */
static struct peer *agent_of(const struct peer *p)
{
    struct peer *a = peer_find(p->c, p->reader.agent);
    return a && a->role == PEER_AGENT ? a : NULL;
}

static void tell_agent(const struct peer *p, unsigned pieces, bool gone)
{
    struct peer *a = agent_of(p);
    struct msg m = {.type = MSG_LOGS_NEXT, .u.logs_next = {.reader = p->id, .pieces = pieces, .gone = gone}};
    if (a)
        peer_send(a, &m);
}

void reader_ask(struct coordinator *c, struct peer *p, struct job *job, const struct msg_logs *m)
{
    const char *why;
    if (c->readers >= COORDINATOR_READERS_MAX) {
        command_done(p, 1, "%u others read logs already", c->readers);
        return;
    }
    unsigned member = rdzv_rank_member(job->r, m->rank, &why);
    if (member == RDZV_NONE) {
        command_done(p, 1, "%s%s", why, job->over ? "; the job has ended" : "");
        return;
    }
    struct peer *a = peer_find(c, rdzv_conn(job->r, member));
    if (!a) {
        command_done(p, 1, "the node of rank %llu is not connected%s", (unsigned long long)m->rank,
                     job->over ? ": the job has ended" : "; ask again");
        return;
    }
    struct msg to = {.type = MSG_LOGS, .u.logs = *m};
    to.u.logs.run_id = "";
    to.u.logs.reader = p->id;
    p->reader.agent = a->id;
    p->reader.rank = m->rank;
    p->reader.heard = loop_now(c->loop);
    p->status.at = loop_now(c->loop) + BEAT_EVERY;
    c->readers++;
    peer_send(a, &to);
}

void reader_text(struct coordinator *c, const struct peer *agent, const struct msg_logs_text *m)
{
    struct peer *p = peer_find(c, m->reader);
    struct msg to = {.type = MSG_LOGS_TEXT, .u.logs_text = *m};
    if (!p || p->reader.agent != agent->id)
        return; /* it has gone meanwhile, and the agent knows by now */
    if (!m->more) {
        command_done(p, (unsigned)m->status, "%s", m->text);
        return;
    }
    to.u.logs_text.reader = 0;
    peer_send(p, &to);
}

void reader_next(struct peer *p, const struct msg_logs_next *m)
{
    if (!p->reader.agent)
        return;
    p->reader.heard = loop_now(p->c->loop);
    if (m->pieces)
        tell_agent(p, (unsigned)m->pieces, false);
}

void reader_beat(struct peer *p, el_usec now)
{
    char name[EL_ADDR_TEXT_MAX];
    struct msg m = {.type = MSG_LOGS_TEXT, .u.logs_text = {.rank = p->reader.rank, .text = "", .more = true}};
    if (now - p->reader.heard > p->c->conf.reader_limit) {
        coordinator_say(p->c, EL_WARN, "%s: closed: it asked for the output of rank %llu and does not read it",
                        peer_name(p, name), (unsigned long long)p->reader.rank);
        peer_free(p);
        return;
    }
    p->status.at = now + BEAT_EVERY;
    if (!conn_unsent(&p->conn))
        peer_send(p, &m);
}

static void drop_reader(struct peer *p)
{
    assert(p->c->readers);
    p->c->readers--;
    p->reader.agent = 0;
}

/* The agent's connection is gone; whether it comes back, its files were being read by the one that is lost. */
static void drop_readers_of(struct peer *agent)
{
    struct coordinator *c = agent->c;
    for (struct peer *p = c->asking.first, *next; p; p = next) {
        next = p->next;
        if (p->reader.agent != agent->id)
            continue;
        drop_reader(p);
        command_done(p, 1, "the connection to the node of rank %llu, %s, is lost", (unsigned long long)p->reader.rank,
                     agent->remote);
    }
}

void reader_forget(struct peer *p)
{
    if (p->reader.agent) {
        tell_agent(p, 0, true);
        drop_reader(p);
    } else if (p->role == PEER_AGENT && p->c->readers) {
        drop_readers_of(p);
    }
}

unsigned coordinator_readers(const struct coordinator *c)
{
    return c->readers;
}
