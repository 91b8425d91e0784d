/* elrun ckpt status, save: snapshots of jobs that run on this host, from their agents. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output/console.h"
#include "agents.h"
#include "ckpt.h"
#include "json.h"
#include "loop/loop.h"
#include "coord/status_text.h"
#include "coord/ckpt_status_text.h"
#include "util/parse.h"

#define REPLY_LIMIT EL_SEC(10) /* between two rows: an agent that is being asked for a save says something sooner */

JSON_ROW(ckpt_node)
JSON_ROW(ckpt_worker)

/* --- one agent ---------------------------------------------------------------------------------------------------- */

static int wrong(const struct msg *m, struct el_err *e)
{
    return el_fail(e, EL_EXIT_PROTOCOL, "the agent answers with %s", msg_name(m->type));
}

struct cmd_ckpt_live_screen {
    struct ckpt_call *call;
    bool colour;
    json_t *list; /* NULL: text */
    unsigned jobs;
};

static void cmd_ckpt_live_put_node(struct cmd_ckpt_live_screen *s, const struct msg_ckpt_node *n, json_t **workers)
{
    struct el_buf *out = &s->call->out;
    if (!s->list) {
        if (s->jobs++)
            el_buf_puts(out, "\n");
        ckpt_status_text_node(n, s->colour, out);
        return;
    }
    json_t *o = json_ckpt_node(n);
    json_object_del(o, "status");
    json_object_del(o, "text");
    *workers = json_array();
    json_object_set_new(o, "ranks", *workers);
    json_array_append_new(s->list, o);
    s->jobs++;
}

/* 1: a row follows; 0: that was the last, or another job's; -1: error. */
static int cmd_ckpt_live_put_row(struct cmd_ckpt_live_screen *s, const struct msg *m, json_t **workers, bool *on,
                                 struct el_err *e)
{
    const char *run_id = s->call->conf->run_id;
    if (m->type == MSG_CKPT_NODE) {
        if (run_id && strcmp(run_id, m->u.ckpt_node.run_id) != 0)
            return 0;
        cmd_ckpt_live_put_node(s, &m->u.ckpt_node, workers);
        *on = m->u.ckpt_node.budget_bytes > 0;
        return m->u.ckpt_node.more;
    }
    if (m->type != MSG_CKPT_WORKER)
        return wrong(m, e);
    if (*workers)
        json_array_append_new(*workers, json_ckpt_worker(&m->u.ckpt_worker));
    else if (*on)
        ckpt_status_text_worker(&m->u.ckpt_worker, s->colour, &s->call->out);
    return m->u.ckpt_worker.more;
}

static int cmd_ckpt_live_put_agent(struct cmd_ckpt_live_screen *s, const char *path, struct el_err *e)
{
    json_t *workers = NULL;
    bool on = false;
    struct control_client *c = agents_ask(path, false, REPLY_LIMIT, e);
    int more = c ? 1 : -1;
    while (more > 0) {
        struct msg m;
        more = control_client_receive(c, &m, e) ? -1 : 1;
        if (more < 0)
            break;
        more = cmd_ckpt_live_put_row(s, &m, &workers, &on, e);
        msg_release(&m);
    }
    control_client_free(c);
    return more;
}

static int nobody(const char *run_id, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    if (run_id)
        return el_fail(e, EL_EXIT_UNAVAILABLE,
                       "no job %s of this user with snapshots (--ckpt-mem, --ckpt-dir) runs here",
                       el_show(run_id, shown));
    return el_fail(e, EL_EXIT_UNAVAILABLE, "no job of this user with snapshots (--ckpt-mem, --ckpt-dir) runs here");
}

int ckpt_status(struct ckpt_call *c, struct el_err *e)
{
    struct agents *a = calloc(1, sizeof *a);
    struct cmd_ckpt_live_screen s = {.call = c, .list = c->conf->json ? json_array() : NULL};
    struct el_err first = {0};
    s.colour = isatty(STDOUT_FILENO) && console_wants_colour(getenv("NO_COLOR"), getenv("TERM"));
    int bad = a ? agents_find(a, e) : el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (unsigned i = 0; !bad && i < a->n; i++) {
        struct el_err why = {0};
        if (cmd_ckpt_live_put_agent(&s, a->path[i], &why) < 0 && agents_is_trouble(&why) && !first.status)
            first = why;
    }
    free(a);
    if (!bad && first.status && s.jobs)
        fprintf(stderr, "elrun: %s\n", first.text); /* the others are shown all the same */
    if (!bad && !s.jobs && !c->conf->json) {
        if (first.status)
            *e = first;
        bad = first.status ? -1 : nobody(c->conf->run_id, e);
    }
    if (s.list && !bad)
        return json_print(json_pack("{so}", "jobs", s.list), e);
    json_decref(s.list);
    return bad;
}

/* --- a save ------------------------------------------------------------------------------------------------------- */

/* The run id of an agent, "": not of this user, or gone. */
static int cmd_ckpt_live_run_id_of(const char *path, char to[MSG_RUN_ID_MAX + 1], struct el_err *e)
{
    struct msg m;
    struct control_client *c = agents_ask(path, false, REPLY_LIMIT, e);
    int bad = !c || control_client_receive(c, &m, e);
    if (!bad && m.type == MSG_CKPT_NODE)
        snprintf(to, MSG_RUN_ID_MAX + 1, "%s", m.u.ckpt_node.run_id);
    else if (!bad)
        wrong(&m, e);
    if (!bad)
        msg_release(&m);
    control_client_free(c);
    return e->status ? -1 : 0;
}

/* The agent of the job that is meant; several agents of one job are as good as each other. */
static const char *cmd_ckpt_live_choose(const struct agents *a, const char *wanted, struct el_err *e)
{
    char id[MSG_RUN_ID_MAX + 1], chosen[MSG_RUN_ID_MAX + 1] = "", shown[EL_SHOW_MAX], other[EL_SHOW_MAX];
    struct el_err first = {0};
    const char *found = NULL;
    for (unsigned i = 0; i < a->n; i++) {
        struct el_err why = {0};
        if (cmd_ckpt_live_run_id_of(a->path[i], id, &why)) {
            if (agents_is_trouble(&why) && !first.status)
                first = why;
            continue;
        }
        if ((wanted && strcmp(wanted, id) != 0) || (found && strcmp(chosen, id) == 0))
            continue;
        if (found) {
            el_fail(e, EL_EXIT_USAGE, "several jobs with snapshots run here, say which by --run-id: %s, %s",
                    el_show(chosen, shown), el_show(id, other));
            return NULL;
        }
        found = a->path[i];
        snprintf(chosen, sizeof chosen, "%s", id);
    }
    if (!found && first.status)
        *e = first;
    else if (!found)
        nobody(wanted, e);
    return found;
}

static void cmd_ckpt_live_show(const struct ckpt_call *c, const struct msg_ckpt_node *n)
{
    char text[160];
    if (!c->progress)
        return;
    ckpt_status_text_progress(n, text, sizeof text);
    fprintf(stderr, "\r\033[K%s", text);
    fflush(stderr);
}

static int saved(struct ckpt_call *c, const struct msg_ckpt_node *n, struct el_err *e)
{
    if (c->conf->json)
        return json_print(json_ckpt_node(n), e) ? -1 : (int)n->status;
    if (n->status)
        return ckpt_fail(e, n->status, "%s", n->text);
    ckpt_put_shown(&c->out, n->text);
    el_buf_puts(&c->out, "\n");
    return 0;
}

static int cmd_ckpt_live_follow(struct ckpt_call *c, struct control_client *agent, struct el_err *e)
{
    char time[16];
    el_usec until = loop_clock() + c->conf->wait;
    for (;;) {
        struct msg m;
        if (control_client_receive(agent, &m, e))
            return -1;
        int status = m.type == MSG_CKPT_NODE ? 1 : wrong(&m, e);
        bool more = status == 1 && m.u.ckpt_node.more;
        if (more)
            cmd_ckpt_live_show(c, &m.u.ckpt_node);
        else if (status == 1)
            status = saved(c, &m.u.ckpt_node, e);
        msg_release(&m);
        if (!more)
            return status;
        if (loop_clock() > until)
            return el_fail(e, EL_EXIT_TEMPFAIL, "it is not on disk after %s (--wait); the job goes on with it",
                           status_text_time(c->conf->wait / EL_MS(1), time));
    }
}

int ckpt_save(struct ckpt_call *c, struct el_err *e)
{
    struct agents *a = calloc(1, sizeof *a);
    int status = -1;
    if (!a)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    const char *path = agents_find(a, e) ? NULL : cmd_ckpt_live_choose(a, c->conf->run_id, e);
    struct control_client *agent = path ? agents_ask(path, true, REPLY_LIMIT, e) : NULL;
    if (agent)
        status = cmd_ckpt_live_follow(c, agent, e);
    ckpt_verifier_end(c);
    control_client_free(agent);
    free(a);
    return status;
}
