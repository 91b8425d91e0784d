/* elrun report: what happened to a job, from the files that it left. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "output/console.h"
#include "cmd.h"
#include "history/job_history.h"
#include "history/logdir_scan.h"
#include "util/env.h"
#include "util/array.h"
#include "util/parse.h"

#define MEMORY_MAX ((size_t)512 << 20)
#define OUTPUT_MAX ((size_t)256 << 20)

enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_DLROVER };

struct report_conf {
    bool json;
    int format;
    unsigned columns; /* 0: of the terminal */
};

#define ROW(field) .origin = OPT_ELRUN, .group = "Options:", .offset = offsetof(struct report_conf, field)

static const struct opt_row rows[] = {
    {.name = "json", .type = OPT_FLAG, .help = "As one JSON object; the same as --format=json", ROW(json)},
    {.name = "format",
     .type = OPT_CHOICE,
     .arg = "KIND",
     .choices = "text|json|dlrover",
     .def = "text",
     .help = "text for people; json for programs; dlrover: the lines that DLRover's job master logs of failures",
     ROW(format)},
    {.name = "columns",
     .type = OPT_UINT,
     .arg = "N",
     .min = TIMELINE_COLUMNS_MIN,
     .max = TIMELINE_COLUMNS_MAX,
     .help = "Width of the picture; without it that of the terminal, else 80",
     ROW(columns)},
    COMMAND_HELP_ROW,
};

static const struct opt_table options = {
    .command = "elrun report",
    .operands = "DIR|EVENTS ...",
    .about =
        "Shows what happened to a job: a picture of its rounds and nodes over time, where the time went, and the same "
        "summary of its failure as at its end.  DIR is its --log-dir or a run's folder in it, EVENTS a file of "
        "--events; those of several nodes are put together.  Status 0: everything that was named was read; 1: only a "
        "part of it; 66: nothing.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

static unsigned cmd_report_columns_of(int fd, const char *variable)
{
    struct winsize size;
    uint64_t n;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
        return size.ws_col;
    return variable && el_parse_u64(variable, &n) == 0 && n < 10000 ? (unsigned)n : 80;
}

/* What the C library would make of the locale, without asking it. */
static bool cmd_report_speaks_utf8(char *const *env)
{
    const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"}, *v = NULL;
    for (size_t i = 0; i < COUNT_OF(names) && !(v && *v); i++)
        v = env_get(env, names[i]);
    return v && (strstr(v, "UTF-8") || strstr(v, "utf8") || strstr(v, "UTF8") || strstr(v, "utf-8"));
}

/* Of the job's last moment: a report is read near to its end. */
static int64_t zone_of(const struct job_history *c)
{
    int64_t from = 0, to = 0;
    struct tm tm;
    timeline_span(&c->line, &from, &to);
    time_t sec = (time_t)(to / 1000000);
    return localtime_r(&sec, &tm) ? tm.tm_gmtoff : 0;
}

static void cmd_report_write_text(const struct job_history *c, const struct report_conf *conf, char *const *env,
                                  struct el_buf *out)
{
    bool terminal = isatty(STDOUT_FILENO);
    bool colour = terminal && console_wants_colour(env_get(env, "NO_COLOR"), env_get(env, "TERM"));
    struct job_history_look look = {
        .line = {.columns =
                     conf->columns ? conf->columns : cmd_report_columns_of(STDOUT_FILENO, env_get(env, "COLUMNS")),
                 .utf8 = cmd_report_speaks_utf8(env),
                 .colour = colour,
                 .zone_sec = zone_of(c)},
        .style = colour ? &summary_colour : &summary_plain,
    };
    look.text_columns = terminal ? look.line.columns : 0;
    job_history_text(c, &look, out);
}

static int cmd_report_run(const struct call *call, struct el_err *e)
{
    struct report_conf conf = {0};
    struct opt_result r;
    struct el_mem mem = EL_MEM_INIT(MEMORY_MAX);
    struct el_buf out = EL_BUF_INIT(NULL, OUTPUT_MAX);
    struct job_history c;
    struct el_err why = {0};
    int go = command_options(&cmd_report, call, &conf, &r, e);
    if (go <= 0)
        return 0;
    if (r.next == call->argc)
        return el_fail(e, EL_EXIT_USAGE, "name what the job left: its log folder, or a file of --events");
    unsigned n = (unsigned)(call->argc - r.next);
    job_history_init(&c, &mem);
    unsigned bad = gather(&c, call->argv + r.next, n, &why);
    int status = bad ? 1 : 0;
    if (!c.any) {
        if (!bad) /* as of an event whose run id is longer than that of a job can be */
            el_fail(&why, EL_EXIT_NOINPUT, "none of the events are of one job: nothing to show");
        *e = why;
        status = why.status;
    } else {
        job_history_close(&c);
        if (conf.json || conf.format == FORMAT_JSON)
            job_history_json(&c, &out);
        else if (conf.format == FORMAT_DLROVER)
            job_history_dlrover(&c, &out);
        else
            cmd_report_write_text(&c, &conf, call->env, &out);
        int written = command_print(&out, e);
        status = written ? written : status;
    }
    el_buf_free(&out);
    job_history_free(&c);
    return status;
}

const struct command cmd_report = {.name = "report",
                                   .summary = "show what happened to a job, from the files that it left",
                                   .options = &options,
                                   .words = NULL,
                                   .run = cmd_report_run};
