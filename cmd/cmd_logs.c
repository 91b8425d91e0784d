/* elrun logs: what a worker of a running job has printed, and goes on printing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "util/text.h"
#include "util/array.h"
#include "util/parse.h"

/* The coordinator says something each second. */
#define SILENCE_LIMIT EL_SEC(10)

struct logs_conf {
    struct control_conf control;
    bool follow;
    int stream; /* 0 stdout, 1 stderr, 2 both */
    unsigned lines;
};

#define ROW(field) .origin = OPT_ELRUN, .group = "Options:", .offset = offsetof(struct logs_conf, field)

static const struct opt_row rows[] = {
    {.name = "follow",
     .letter = 'f',
     .type = OPT_FLAG,
     .help = "Go on with what is printed from now on, over restarts, until the job ends or Ctrl-C",
     ROW(follow)},
    {.name = "lines",
     .letter = 'n',
     .type = OPT_UINT,
     .arg = "N",
     .max = MSG_LOGS_LINES_MAX,
     .def = "50",
     .help = "How many of the last lines come first; looked for in the last 16 MiB",
     ROW(lines)},
    {.name = "stream",
     .type = OPT_CHOICE,
     .arg = "NAME",
     .choices = "stdout|stderr|both",
     .def = "both",
     .help = "Which of the worker's streams; each comes out where the worker wrote it",
     ROW(stream)},
    CONTROL_ROWS,
    COMMAND_HELP_ROW,
};

static const struct opt_table options = {
    .command = "elrun logs",
    .operands = "[RANK]",
    .about =
        "Shows what the worker with this rank (0 if none is named) has printed, from its log file on whatever node "
        "it runs.  Where neither --tee nor --redirects keeps a file, the last bytes that elrun has in memory.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

/* What steers a terminal is not for one when it comes from another host; a file gets each byte as it was. */
static int write_to(FILE *to, const char *before, const char *text, const char *after, struct el_err *e)
{
    struct el_buf clean = EL_BUF_INIT(NULL, 4 * MSG_STREAM_MAX);
    bool bad = isatty(fileno(to)) && text_clean(&clean, text, strlen(text));
    if (!bad && isatty(fileno(to)))
        text = el_buf_cstr(&clean);
    bad = bad || fputs(before, to) < 0 || fputs(text, to) < 0 || fputs(after, to) < 0 || fflush(to);
    el_buf_free(&clean);
    if (bad)
        return el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "cannot write to standard %s",
                           to == stdout ? "output" : "error");
    return 0;
}

/* Prints a piece, and says that it has been taken. */
static int cmd_logs_take(struct control_client *c, const struct msg_logs_text *text, struct el_err *e)
{
    struct msg next = {.type = MSG_LOGS_NEXT, .u.logs_next = {.pieces = text->stream ? 1 : 0}};
    int bad = 0;
    if (text->stream)
        bad = write_to(text->stream == 1 ? stdout : stderr, "", text->text, "", e);
    else if (text->text[0])
        bad = write_to(stderr, "elrun: ", text->text, "\n", e);
    return bad ? -1 : control_client_send(c, &next, e);
}

/* The exit status, or -1 and *e. */
static int cmd_logs_follow(struct control_client *c, struct el_err *e)
{
    int status = -1;
    for (bool more = true; more;) {
        struct msg m;
        if (control_client_receive(c, &m, e))
            return -1;
        more = m.type == MSG_LOGS_TEXT && cmd_logs_take(c, &m.u.logs_text, e) == 0;
        if (m.type == MSG_DONE && m.u.done.status)
            status = control_refused(m.u.done.text);
        else if (m.type == MSG_DONE)
            status = m.u.done.text[0] ? write_to(stderr, "elrun: ", m.u.done.text, "\n", e) : 0;
        else if (m.type != MSG_LOGS_TEXT)
            el_fail(e, EL_EXIT_PROTOCOL, "the coordinator answers with %s", msg_name(m.type));
        msg_release(&m);
    }
    return status;
}

static int cmd_logs_run(const struct call *call, struct el_err *e)
{
    struct logs_conf conf = {0};
    uint64_t rank = 0;
    char **operand;
    int status;
    if (control_options(&cmd_logs, call, &conf, 1, &operand, &status, e) <= 0)
        return status;
    if (*operand && (el_parse_u64(operand[0], &rank) || rank > MSG_WORLD_MAX))
        return el_fail(e, EL_EXIT_USAGE, "logs: \"%.40s\" is no rank; want a number from 0", operand[0]);
    struct msg m = {.type = MSG_LOGS,
                    .u.logs = {.run_id = conf.control.run_id,
                               .rank = rank,
                               .follow = conf.follow,
                               .lines = conf.lines,
                               .stream = conf.stream == 2 ? 0 : (uint64_t)conf.stream + 1}};
    struct control_client *c = control_client_open(conf.control.endpoint, conf.control.timeout, e);
    status = c && control_client_send(c, &m, e) == 0 ? 0 : -1;
    if (!status && conf.control.timeout < SILENCE_LIMIT)
        control_client_limit(c, SILENCE_LIMIT);
    if (!status)
        status = cmd_logs_follow(c, e);
    control_client_free(c);
    return status;
}

const struct command cmd_logs = {
    .name = "logs", .summary = "show what a worker prints", .options = &options, .words = "", .run = cmd_logs_run};
