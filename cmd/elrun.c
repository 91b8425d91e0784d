/* main: name services, dispatch, and the one place that prints an error. */
#include <nss.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "probe/role.h"
#include "sys/self.h"
#include "util/file.h"
#include "util/log.h"

#define X(name) &cmd_##name,
const struct command *const commands[COMMANDS_COUNT] = {COMMANDS(X)};
#undef X

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMANDS_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static const char *command_name(const void *ctx, size_t i)
{
    (void)ctx;
    return commands[i]->name;
}

const char *command_near(const char *word)
{
    return opt_nearest(word, command_name, NULL, COMMANDS_COUNT);
}

int command_print(struct el_buf *text, struct el_err *e)
{
    return file_print(stdout, "standard output", text, e) ? e->status : 0;
}

int command_options(const struct command *command, const struct call *call, void *target, struct opt_result *result,
                    struct el_err *e)
{
    if (opt_parse(command->options, call->argc, call->argv, call->env, target, result, e))
        return -1;
    if (!result->stop)
        return 1;
    struct el_buf text = EL_BUF_INIT(NULL, 0);
    opt_help(command->options, &text);
    return command_print(&text, e) ? -1 : 0;
}

static void print_line(void *ctx, enum el_level level, const char *text)
{
    (void)ctx;
    fprintf(stderr, "elrun: %s%s\n", level == EL_WARN ? "warning: " : "", text);
}

void command_log(void)
{
    el_log_set(print_line, NULL, EL_WARN);
}

static int elrun_run(const struct command *command, const struct call *call)
{
    struct el_err e = {0};
    if (command != &cmd_run) /* which gives its workers streams of their own */
        file_streams_hold();
    int status = command->run(call, &e);
    if (!e.status)
        return status;
    fprintf(stderr, "elrun: %s\n", e.text);
    if (e.status == EL_EXIT_USAGE)
        fprintf(stderr, "Try `elrun %s --help`.\n", command->name);
    return e.status;
}

/* "elrun" alone is a mistake in a script and a question of a newcomer: the overview, but on stderr and with status 2.
 */
static int explain_nothing(void)
{
    struct el_buf text = EL_BUF_INIT(NULL, 0);
    help_overview(&text);
    fputs(el_buf_cstr(&text), stderr);
    el_buf_free(&text);
    return EL_EXIT_USAGE;
}

static bool called_as_torchrun(const char *program)
{
    const char *slash = strrchr(program, '/');
    return strcmp(slash ? slash + 1 : program, "torchrun") == 0;
}

int main(int argc, char **argv, char **env)
{
    /* Without this a static glibc loads the host's name-service modules, and with them a second libc, and crashes
     * (measured on hosts whose nsswitch.conf names myhostname, resolve or systemd). */
    __nss_configure_lookup("hosts", "files dns");
    __nss_configure_lookup("passwd", "files");
    __nss_configure_lookup("group", "files");
    __nss_configure_lookup("services", "files");
    signal(SIGXFSZ, SIG_IGN); /* `ulimit -f` is an error of the write, and not the end of who holds the snapshots */
    command_log();
    int role = argc > 0 ? role_run(argv) : -1;
    if (role >= 0)
        return role;
    self_open();

    struct call call = {.argc = argc > 0 ? argc - 1 : 0, .argv = argv + (argc > 0), .env = env};
    if (argc > 0 && called_as_torchrun(argv[0]))
        return elrun_run(&cmd_run, &call);
    if (!call.argc)
        return explain_nothing();
    const char *first = call.argv[0];
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        call.argc = 0;
        return elrun_run(&cmd_help, &call);
    }
    const struct command *command = command_find(first);
    if (!command)
        return elrun_run(&cmd_run, &call);
    call.argc--;
    call.argv++;
    return elrun_run(command, &call);
}
