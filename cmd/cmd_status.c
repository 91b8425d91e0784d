/* elrun status: what a coordinator knows of its jobs, for a person or as JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "output/console.h"
#include "agents.h"
#include "control.h"
#include "json.h"
#include "coord/status_text.h"
#include "coord/ckpt_status_text.h"
#include "util/env.h"
#include "util/array.h"

struct status_conf {
    struct control_conf control;
    bool json, watch;
};

#define ROW(field) .origin = OPT_ELRUN, .group = "Options:", .offset = offsetof(struct status_conf, field)

static const struct opt_row rows[] = {
    {.name = "json", .type = OPT_FLAG, .help = "As one JSON object, with --watch one a line", ROW(json)},
    {.name = "watch", .letter = 'w', .type = OPT_FLAG, .help = "Again each second, until Ctrl-C", ROW(watch)},
    CONTROL_ROWS,
    COMMAND_HELP_ROW,
};

static const struct opt_table options = {
    .command = "elrun status",
    .operands = "",
    .about = "Shows the jobs of a coordinator: what each does and why, its nodes, restarts, and where the time went.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

#define AGENT_LIMIT EL_SEC(1) /* one that stands still is left out */

/* One screen: all jobs of one answer. */
struct cmd_status_screen {
    const struct status_conf *conf;
    bool terminal, colour;
    unsigned columns, jobs;
    struct status_text job;
    struct el_buf text;
    json_t *list, *members;
};

JSON_ROW(status_job)
JSON_ROW(status_member)

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void job_is_whole(struct cmd_status_screen *s)
{
    if (!s->jobs || s->conf->json)
        return;
    if (s->jobs > 1)
        el_buf_puts(&s->text, "\n");
    status_text_text(&s->job, s->colour, s->columns, &s->text);
}

/* 1: more rows follow; 0: that was the last; -1: error. */
static int cmd_status_take_row(struct cmd_status_screen *s, const struct msg *m, struct el_err *e)
{
    if (m->type == MSG_STATUS_JOB) {
        json_t *job = json_status_job(&m->u.status_job);
        job_is_whole(s);
        s->jobs++;
        status_text_job(&s->job, &m->u.status_job);
        s->members = json_array();
        json_object_set_new(job, "nodes", s->members);
        json_array_append_new(s->list, job);
        return m->u.status_job.more;
    }
    if (m->type != MSG_STATUS_MEMBER || !s->jobs)
        return el_fail(e, EL_EXIT_PROTOCOL, "the coordinator answers with %s", msg_name(m->type));
    if (s->conf->json)
        json_array_append_new(s->members, json_status_member(&m->u.status_member));
    else if (status_text_member(&s->job, &m->u.status_member))
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    return m->u.status_member.more;
}

/* --- agents of this host --------------------------------------------------------------------------------------------
 */

static bool cmd_status_is_told(const struct cmd_status_screen *s, const char *run_id)
{
    size_t i;
    const json_t *job;
    json_array_foreach(s->list, i, job) if (strcmp(json_string_value(json_object_get(job, "run_id")), run_id) ==
                                            0) return json_integer_value(json_object_get(job, "held_step")) >= 0 ||
        json_integer_value(json_object_get(job, "disk_step")) >= 0;
    return false;
}

static void cmd_status_put_agent(void *ctx, const struct msg_ckpt_node *n)
{
    struct cmd_status_screen *s = ctx;
    const char *wanted = s->conf->control.run_id;
    if (!n->budget_bytes || cmd_status_is_told(s, n->run_id) || (*wanted && strcmp(wanted, n->run_id) != 0))
        return;
    if (s->text.len)
        el_buf_puts(&s->text, "\n");
    ckpt_status_text_newest(n, s->colour, &s->text);
}

/* A coordinator knows of snapshots of jobs of several nodes with --ckpt-dir; of other jobs the agents here know. */
static void put_agents(struct cmd_status_screen *s)
{
    if (!s->conf->json)
        agents_each(AGENT_LIMIT, cmd_status_put_agent, s);
}

/* Nobody was named, and nobody is there: jobs of one node have no coordinator.  0: there are some. */
static int only_agents(struct cmd_status_screen *s, struct el_err *e)
{
    if (e->sys != ECONNREFUSED || strcmp(s->conf->control.endpoint, CONTROL_ENDPOINT) != 0 || s->conf->watch)
        return -1;
    s->list = json_array();
    put_agents(s);
    json_decref(s->list);
    return s->text.len ? command_print(&s->text, e) : -1;
}

/* On a terminal the screen is written over, not wiped, so that it does not flicker. */
static int cmd_status_show(struct cmd_status_screen *s, struct el_err *e)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    bool over = s->conf->watch && s->terminal && !s->conf->json;
    if (s->conf->json)
        return json_print(json_pack("{sO}", "jobs", s->list), e);
    if (!over) {
        struct el_buf text = s->text;
        s->text = EL_BUF_INIT(NULL, 0);
        if (s->conf->watch)
            el_buf_puts(&text, "\n");
        return command_print(&text, e);
    }
    el_buf_puts(&out, "\033[H");
    for (const char *at = el_buf_cstr(&s->text), *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        el_buf_put(&out, at, (size_t)(end - at));
        el_buf_puts(&out, "\033[K\n");
    }
    el_buf_puts(&out, "\033[J");
    return command_print(&out, e);
}

/* One answer.  0; 1: refused; -1: error. */
static int one_screen(struct cmd_status_screen *s, struct control_client *c, struct el_err *e)
{
    int more = 1, status = 0;
    s->jobs = 0;
    s->text.len = 0;
    s->list = json_array();
    while (more > 0 && !status) {
        struct msg m;
        if (control_client_receive(c, &m, e)) {
            more = -1;
            break;
        }
        if (m.type == MSG_DONE)
            status = control_refused(m.u.done.text);
        else
            more = cmd_status_take_row(s, &m, e);
        msg_release(&m);
    }
    if (!status && more == 0) {
        job_is_whole(s);
        put_agents(s);
        status = cmd_status_show(s, e);
    }
    json_decref(s->list);
    return more < 0 ? -1 : status;
}

static unsigned cmd_status_columns_of(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

static int cmd_status_run(const struct call *call, struct el_err *e)
{
    static struct cmd_status_screen s;
    struct status_conf conf = {0};
    char **operand;
    int status;
    if (control_options(&cmd_status, call, &conf, 0, &operand, &status, e) <= 0)
        return status;
    s.conf = &conf;
    s.terminal = isatty(STDOUT_FILENO);
    s.colour = s.terminal && console_wants_colour(env_get(call->env, "NO_COLOR"), env_get(call->env, "TERM"));
    struct msg m = {.type = MSG_STATUS, .u.status = {.run_id = conf.control.run_id, .watch = conf.watch}};
    struct control_client *c = control_client_open(conf.control.endpoint, conf.control.timeout, e);
    if (!c) {
        status = only_agents(&s, e);
        el_buf_free(&s.text);
        return status;
    }
    status = control_client_send(c, &m, e) ? -1 : 0;
    if (!status && conf.watch && s.terminal && !conf.json)
        fputs("\033[2J", stdout);
    do {
        s.columns = cmd_status_columns_of(STDOUT_FILENO);
        if (!status)
            status = one_screen(&s, c, e);
    } while (!status && conf.watch);
    control_client_free(c);
    status_text_free(&s.job);
    el_buf_free(&s.text);
    return status;
}

const struct command cmd_status = {.name = "status",
                                   .summary = "show the jobs of a coordinator and their nodes",
                                   .options = &options,
                                   .words = "",
                                   .run = cmd_status_run};
