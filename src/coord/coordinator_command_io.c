/* What people ask of the coordinator: rows of status, and commands that change a job. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loop/peer_uid.h"
#include "coord/coordinator_private.h"
#include "util/log.h"
#include "util/parse.h"

#define ROWS_EVERY EL_SEC(1) /* of a watcher */
#define ROWS_LATER EL_MS(20) /* it has not read the last ones yet */

void command_done(struct peer *p, unsigned status, const char *format, ...)
{
    char text[MSG_TEXT_MAX + 1];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    struct msg m = {.type = MSG_DONE, .u.done = {.status = status, .text = text}};
    peer_send(p, &m);
    peer_finish(p);
}

/* --- which job ---------------------------------------------------------------------------------------------------- */

static void name_jobs(const struct coordinator *c, char *to, size_t room)
{
    size_t n = 0;
    char shown[EL_SHOW_MAX];
    *to = 0;
    for (size_t i = 0; i < c->jobs && n < room; i++)
        n += (size_t)snprintf(to + n, room - n, "%s%s", i ? ", " : "", el_show(rdzv_run_id(c->job[i]->r), shown));
}

static void no_such_job(struct coordinator *c, struct peer *p, const char *run_id)
{
    char names[300], shown[EL_SHOW_MAX];
    name_jobs(c, names, sizeof names);
    if (*run_id)
        command_done(p, 1, "there is no job %s; %s%s", el_show(run_id, shown), c->jobs ? "known: " : "none is known",
                     names);
    else
        command_done(p, 1, "no job is known here");
}

/* The job that is named, or the only one that is not over.  NULL: the peer has been told why. */
static struct job *coordinator_command_choose(struct coordinator *c, struct peer *p, const char *run_id)
{
    char names[300];
    struct job *only = NULL, *named = *run_id ? coordinator_job(c, run_id) : NULL;
    unsigned running = 0;
    if (named)
        return named;
    if (*run_id || !c->jobs) {
        no_such_job(c, p, run_id);
        return NULL;
    }
    name_jobs(c, names, sizeof names);
    for (size_t i = 0; i < c->jobs; i++) {
        running += !c->job[i]->over;
        only = c->job[i]->over ? only : c->job[i];
    }
    if (running == 1)
        return only;
    if (running)
        command_done(p, 1, "there are %u jobs, say which by --rdzv-id: %s", running, names);
    else
        command_done(p, 1, "no job runs here any more; ended: %s", names);
    return NULL;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Moves to the first thing there is to tell at or behind the place; false: nothing. */
static bool find_row(struct coordinator *c, const struct peer *p, size_t *job, unsigned *member)
{
    struct msg m;
    for (; *job < c->jobs; ++*job, *member = 0) {
        struct rdzv *r = c->job[*job]->r;
        if (*p->status.run_id && strcmp(rdzv_run_id(r), p->status.run_id) != 0)
            continue;
        if (*member == 0)
            return true;
        for (; *member <= rdzv_room_used(r); ++*member)
            if (rdzv_status_member(r, *member - 1, loop_now(c->loop), &m))
                return true;
    }
    return false;
}

static void send_row(struct coordinator *c, struct peer *p, size_t job, unsigned member, bool more)
{
    struct msg m;
    el_usec now = loop_now(c->loop);
    struct rdzv *r = c->job[job]->r;
    if (member == 0) {
        rdzv_status_job(r, now, &m);
        m.u.status_job.more = more;
    } else {
        rdzv_status_member(r, member - 1, now, &m);
        m.u.status_member.more = more;
    }
    peer_send(p, &m);
}

/* Whoever asks and does not read holds a place that others may want. */
static void give_up_on(struct coordinator *c, struct peer *p, el_usec now)
{
    char name[EL_ADDR_TEXT_MAX];
    p->unread = p->unread ? p->unread : now;
    if (now - p->unread < c->conf.reader_limit)
        return;
    coordinator_say(c, EL_WARN, "%s: closed: it has not read its rows for %u s", peer_name(p, name),
                    (unsigned)(c->conf.reader_limit / EL_SEC(1)));
    peer_free(p);
}

static void rows_of(struct coordinator *c, struct peer *p, el_usec now)
{
    size_t job = p->status.job;
    unsigned member = p->status.member;
    p->status.at = now + ROWS_LATER;
    if (conn_unsent(&p->conn)) {
        give_up_on(c, p, now);
        return;
    }
    p->unread = 0;
    bool there = find_row(c, p, &job, &member);
    if (!there && !p->status.job && !p->status.member) {
        no_such_job(c, p, p->status.run_id);
        return;
    }
    for (unsigned sent = 0; there && sent < COORDINATOR_SLICE; sent++) {
        size_t next_job = job;
        unsigned next_member = member + 1;
        there = find_row(c, p, &next_job, &next_member);
        send_row(c, p, job, member, there);
        job = next_job;
        member = next_member;
    }
    p->status.job = there ? job : 0;
    p->status.member = there ? member : 0;
    if (there)
        p->status.at = now;
    else if (p->status.watch && !conn_broken(&p->conn))
        p->status.at = now + ROWS_EVERY;
    else
        peer_finish(p);
}

void command_rows(struct coordinator *c, el_usec now)
{
    for (struct peer *p = c->asking.first, *next; p; p = next) {
        next = p->next;
        if (p->status.at > now)
            continue;
        if (p->reader.agent)
            reader_beat(p, now);
        else
            rows_of(c, p, now);
    }
}

el_usec command_deadline(const struct coordinator *c)
{
    el_usec at = EL_NEVER;
    for (const struct peer *p = c->asking.first; p; p = p->next)
        at = p->status.at < at ? p->status.at : at;
    return at;
}

/* This one included. */
static unsigned watchers_from(const struct coordinator *c, const struct peer *p)
{
    unsigned n = 0;
    for (const struct peer *x = c->asking.first; x; x = x->next)
        n += !x->reader.agent && strcmp(x->remote, p->remote) == 0;
    return n;
}

static void status(struct coordinator *c, struct peer *p, const struct msg_status *s)
{
    snprintf(p->status.run_id, sizeof p->status.run_id, "%s", s->run_id);
    p->status.watch = s->watch;
    if (c->asking.n - c->readers > COORDINATOR_WATCHERS_MAX) {
        command_done(p, 1, "%u others ask already", c->asking.n - c->readers - 1);
        return;
    }
    if (watchers_from(c, p) > COORDINATOR_WATCHERS_ONE) {
        command_done(p, 1, "%u others ask already from %s", watchers_from(c, p) - 1, p->remote);
        return;
    }
    rows_of(c, p, loop_now(c->loop));
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

/* Until there is a job secret: this host, and the hosts of the job's members.  What workers print is no stranger's
 * business either. */
static bool may_change(const struct peer *p, const struct job *job)
{
    bool own_user = p->c->conf.only_run_id || p->c->conf.own_user;
    return p->same_host ? !own_user || !peer_is_foreign(p->conn.fd) : rdzv_is_member_addr(job->r, p->remote);
}

static const char *coordinator_command_run_id_of(const struct msg *m)
{
    switch ((unsigned)m->type) {
    case MSG_SCALE: return m->u.scale.run_id;
    case MSG_DRAIN: return m->u.drain.run_id;
    case MSG_STOP_JOB: return m->u.stop_job.run_id;
    case MSG_LOGS: return m->u.logs.run_id;
    default: return m->u.restart.run_id;
    }
}

void command_take(struct coordinator *c, struct peer *p, const struct msg *m)
{
    char name[EL_ADDR_TEXT_MAX];
    peer_move(p, PEER_COMMAND);
    p->status.at = EL_NEVER;
    if (m->type == MSG_STATUS) {
        status(c, p, &m->u.status);
        return;
    }
    struct job *job = coordinator_command_choose(c, p, coordinator_command_run_id_of(m));
    if (!job)
        return;
    if (!may_change(p, job)) {
        coordinator_say(c, EL_WARN, "%s: %s is refused: not from this address", peer_name(p, name), msg_name(m->type));
        if (p->same_host) {
            command_done(p, 1, "the job is another user's: its coordinator listens to that user and to root");
            return;
        }
        command_done(p, 1, "not from %s: a job is %s from its coordinator's host or from a host of one of its nodes",
                     p->remote, m->type == MSG_LOGS ? "read" : "changed");
        return;
    }
    if (m->type == MSG_LOGS) {
        reader_ask(c, p, job, &m->u.logs);
        return;
    }
    struct rdzv_event ev = {.type = RDZV_EV_COMMAND, .conn = p->id, .msg = m, .peer = peer_ends(p)};
    coordinator_step(c, job, &ev);
}
