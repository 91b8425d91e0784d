/* elrun run: the job of this node, from its options to its exit status. */
#include <stdio.h>
#include <string.h>

#include "agent/agent_io.h"
#include "conf/conf.h"
#include "conf/run_options.h"
#include "cmd.h"
#include "sys/clone.h"
#include "util/log.h"

/* A script that is not there may be a command that was misspelled: "elrun verison".  Whatever has a dot or a slash, or
 * options in front, is a script. */
static void explain_missing_script(const struct run_conf *conf, const struct call *call, struct el_err *e)
{
    const char *near = command_near(conf->script);
    if (e->status != EL_EXIT_NOINPUT || conf->script != call->argv[0] || strpbrk(conf->script, "./") || !near)
        return;
    size_t used = strlen(e->text);
    snprintf(e->text + used, sizeof e->text - used, "; did you mean `elrun %s`?", near);
}

/* torchrun's own exit status for what stops it before a worker runs. */
static int status_as_asked(const struct run_conf *conf, struct el_err *e)
{
    if (conf->exit_code == FAILURE_AS_TORCHRUN)
        e->status = 1;
    return -1;
}

static int cmd_run_start(const struct run_conf *conf, const struct call *call, struct el_err *e)
{
    if (clone_settle())
        el_log(EL_WARN, "clone3 is refused here by a seccomp profile (as Docker's before 20.10.10 does): going on with "
                        "clone, and with no_new_privs for the workers");
    int status = agent_run(conf, call->env, e);
    if (status >= 0)
        return status;
    explain_missing_script(conf, call, e);
    return status_as_asked(conf, e);
}

static int cmd_run_run(const struct call *call, struct el_err *e)
{
    static struct run_conf conf; /* some ten kilobytes, and it lives as long as the process */
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    switch (conf_parse(call->argc, call->argv, call->env, &conf, e)) {
    case CONF_DO_RUN: return cmd_run_start(&conf, call, e);
    case CONF_DO_HELP: opt_help(&run_options, &out); break;
    case CONF_DO_VERSION: version_line(&out); break;
    case CONF_DO_COMPLETION:
        if (completion_script(conf.completion, &out, e))
            el_buf_free(&out);
        break;
    default: break;
    }
    return e->status ? -1 : command_print(&out, e);
}

const struct command cmd_run = {.name = "run",
                                .summary = "start a job (this is what elrun does if no command is named)",
                                .options = &run_options,
                                .run = cmd_run_run};
