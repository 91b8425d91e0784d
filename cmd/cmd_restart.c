/* elrun restart: a new round of the same job. */
#include "control.h"
#include "util/array.h"

static const struct opt_row rows[] = {CONTROL_ROWS, COMMAND_HELP_ROW};

static const struct opt_table options = {
    .command = "elrun restart",
    .operands = "",
    .about =
        "Stops the workers of a running job as at a planned change and starts them again in a new round.  It costs "
        "nothing of --max-restarts.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

static int cmd_restart_run(const struct call *call, struct el_err *e)
{
    struct control_conf conf = {0};
    char **operand;
    int status;
    if (control_options(&cmd_restart, call, &conf, 0, &operand, &status, e) <= 0)
        return status;
    struct msg m = {.type = MSG_RESTART, .u.restart = {.run_id = conf.run_id}};
    return control_ask(&conf, &m, e);
}

const struct command cmd_restart = {.name = "restart",
                                    .summary = "stop the workers of a job and start them again",
                                    .options = &options,
                                    .words = "",
                                    .run = cmd_restart_run};
