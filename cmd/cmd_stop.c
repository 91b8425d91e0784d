/* elrun stop: ends a job on all its nodes. */
#include "control.h"
#include "util/array.h"

struct stop_conf {
    struct control_conf control;
    el_usec grace; /* EL_NEVER: as the job has it */
};

static const struct opt_row rows[] = {
    {.name = "grace",
     .type = OPT_DURATION,
     .origin = OPT_ELRUN,
     .arg = "TIME",
     .min = EL_MS(1),
     .max = EL_SEC(86400),
     .group = "Options:",
     .offset = offsetof(struct stop_conf, grace),
     .help = "From SIGTERM to SIGKILL; without it, the job's --shutdown-timeout"},
    CONTROL_ROWS,
    COMMAND_HELP_ROW,
};

static const struct opt_table options = {
    .command = "elrun stop",
    .operands = "",
    .about = "Ends a job on all its nodes; its agents end with 143.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

static int cmd_stop_run(const struct call *call, struct el_err *e)
{
    struct stop_conf conf = {.grace = EL_NEVER};
    char **operand;
    int status;
    if (control_options(&cmd_stop, call, &conf, 0, &operand, &status, e) <= 0)
        return status;
    int64_t grace_ms = conf.grace == EL_NEVER ? -1 : (int64_t)((conf.grace + EL_MS(1) - 1) / EL_MS(1));
    struct msg m = {.type = MSG_STOP_JOB, .u.stop_job = {.run_id = conf.control.run_id, .grace_ms = grace_ms}};
    return control_ask(&conf.control, &m, e);
}

const struct command cmd_stop = {
    .name = "stop", .summary = "end a job on all its nodes", .options = &options, .words = "", .run = cmd_stop_run};
