/* elrun doctor: what was found on this host, what elrun would use of it, and what is wrong with it. */
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "output/console.h"
#include "agent/doctor.h"
#include "util/env.h"
#include "cmd.h"
#include "util/array.h"

struct doctor_conf {
    bool json;
};

static const struct opt_row rows[] = {
    COMMAND_JSON_ROW(offsetof(struct doctor_conf, json)),
    COMMAND_HELP_ROW,
};

static const struct opt_table options = {
    .command = "elrun doctor",
    .operands = "",
    .about = "Shows what was found on this host and what would be used, each with a verdict (ok, warn, bad) and "
             "advice.  Starts no process.  Ends with 1 if something is bad, else with 0.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

static int cmd_doctor_run(const struct call *call, struct el_err *e)
{
    static struct host_facts facts; /* large */
    static struct doctor_report report;
    struct doctor_conf conf = {0};
    struct opt_result r;
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    int go = command_options(&cmd_doctor, call, &conf, &r, e);
    if (go <= 0)
        return 0;
    if (r.next < call->argc)
        return el_fail(e, EL_EXIT_USAGE, "doctor takes no operand");
    host_facts_read(&facts, call->env);
    doctor_judge(&facts, &report);
    bool colour =
        isatty(STDOUT_FILENO) && console_wants_colour(env_get(call->env, "NO_COLOR"), env_get(call->env, "TERM"));
    if (conf.json)
        doctor_json(&report, &out);
    else
        doctor_text(&report, colour, &out);
    int status = command_print(&out, e);
    return status ? status : report.worst == DOCTOR_BAD;
}

const struct command cmd_doctor = {.name = "doctor",
                                   .summary = "show what this host has and what is wrong with it",
                                   .options = &options,
                                   .words = "",
                                   .run = cmd_doctor_run};
