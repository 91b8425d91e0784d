/* elrun completion: a script that completes commands, options and values in bash, zsh or fish. */
#include <string.h>

#include "cmd.h"
#include "util/array.h"
#include "util/parse.h"

#define SHELLS "bash|zsh|fish"

static const struct opt_row rows[] = {COMMAND_HELP_ROW};

static const struct opt_table options = {
    .command = "elrun completion",
    .operands = SHELLS,
    .about = "Prints the completion script for a shell. Load it with\n"
             "  bash:  source <(elrun completion bash)\n"
             "  zsh:   elrun completion zsh > ~/.zfunc/_elrun     (a folder of $fpath, before compinit)\n"
             "  fish:  elrun completion fish > ~/.config/fish/completions/elrun.fish",
    .rows = rows,
    .n = COUNT_OF(rows),
};

int completion_script(const char *shell, struct el_buf *out, struct el_err *e)
{
    struct opt_command all[COMMANDS_COUNT];
    char shown[EL_SHOW_MAX];
    struct el_buf topics = EL_BUF_INIT(NULL, 0);
    help_topics(&topics);
    for (size_t i = 0; i < COMMANDS_COUNT; i++) {
        const struct command *c = commands[i];
        all[i] =
            (struct opt_command){c->name, c->summary, c->options, c == &cmd_help ? el_buf_cstr(&topics) : c->words};
    }
    int failed = opt_complete(shell, all, COMMANDS_COUNT, &all[0], out);
    el_buf_free(&topics);
    if (failed)
        return el_fail(e, EL_EXIT_USAGE, "completion: no such shell as \"%s\"; want bash, zsh or fish",
                       el_show(shell, shown));
    return 0;
}

static int cmd_completion_run(const struct call *call, struct el_err *e)
{
    struct opt_result r;
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    if (command_options(&cmd_completion, call, NULL, &r, e) <= 0)
        return 0;
    if (r.next + 1 != call->argc)
        return el_fail(e, EL_EXIT_USAGE, "completion: say for which shell: bash, zsh or fish");
    if (completion_script(call->argv[r.next], &out, e)) {
        el_buf_free(&out);
        return -1;
    }
    return command_print(&out, e);
}

const struct command cmd_completion = {.name = "completion",
                                       .summary = "print a completion script for bash, zsh or fish",
                                       .options = &options,
                                       .words = SHELLS,
                                       .run = cmd_completion_run};
