/* elrun drain: takes a node out of a running job. */
#include "control.h"
#include "util/array.h"

static const struct opt_row rows[] = {CONTROL_ROWS, COMMAND_HELP_ROW};

static const struct opt_table options = {
    .command = "elrun drain",
    .operands = "NODE",
    .about = "Takes a node out of a running job: its workers stop as at a planned change, its agent ends with 75, and "
             "the others go on in a new round.  NODE is its host name, its address, its node rank, or its instance as "
             "`elrun status --json` shows it.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

static int cmd_drain_run(const struct call *call, struct el_err *e)
{
    struct control_conf conf = {0};
    char **operand;
    int status;
    if (control_options(&cmd_drain, call, &conf, 1, &operand, &status, e) <= 0)
        return status;
    struct msg m = {.type = MSG_DRAIN, .u.drain = {.run_id = conf.run_id, .node = operand[0]}};
    return control_ask(&conf, &m, e);
}

const struct command cmd_drain = {.name = "drain",
                                  .summary = "take a node out of a running job",
                                  .options = &options,
                                  .words = "",
                                  .run = cmd_drain_run};
