/* elrun scale: how many nodes a running job may have. */
#include "control.h"
#include "util/array.h"

struct scale_conf {
    struct control_conf control;
    unsigned min, max;
};

#define ROW(field) .origin = OPT_ELRUN, .group = "Options:", .offset = offsetof(struct scale_conf, field)

static const struct opt_row rows[] = {
    {.name = "min",
     .type = OPT_UINT,
     .arg = "N",
     .min = 1,
     .max = MSG_NODES_MAX,
     .help = "With fewer nodes than this the job waits; without it, as it is",
     ROW(min)},
    {.name = "max",
     .type = OPT_UINT,
     .arg = "N",
     .min = 1,
     .max = MSG_NODES_MAX,
     .help = "More nodes than this are spares; without it, as it is",
     ROW(max)},
    CONTROL_ROWS,
    COMMAND_HELP_ROW,
};

static const struct opt_table options = {
    .command = "elrun scale",
    .operands = "",
    .about = "Changes the number of nodes of a running job; a round that no longer fits is stopped and formed again.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

static int cmd_scale_run(const struct call *call, struct el_err *e)
{
    struct scale_conf conf = {0};
    char **operand;
    int status;
    if (control_options(&cmd_scale, call, &conf, 0, &operand, &status, e) <= 0)
        return status;
    if (!conf.min && !conf.max)
        return el_fail(e, EL_EXIT_USAGE, "scale: say --min, --max or both");
    if (conf.min && conf.max && conf.min > conf.max)
        return el_fail(e, EL_EXIT_USAGE, "scale: --min %u is more than --max %u", conf.min, conf.max);
    struct msg m = {.type = MSG_SCALE, .u.scale = {.run_id = conf.control.run_id, .min = conf.min, .max = conf.max}};
    return control_ask(&conf.control, &m, e);
}

const struct command cmd_scale = {.name = "scale",
                                  .summary = "change the number of nodes of a running job",
                                  .options = &options,
                                  .words = "",
                                  .run = cmd_scale_run};
