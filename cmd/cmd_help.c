/* elrun help: the overview, the options of a command, exit statuses, signals. */
#include <string.h>

#include "conf/worker_env.h"
#include "cmd.h"
#include "probe/check.h"
#include "util/array.h"
#include "util/exit.h"
#include "util/parse.h"

static const struct opt_row rows[] = {COMMAND_HELP_ROW};

static const struct opt_table options = {
    .command = "elrun help",
    .operands = "[COMMAND | TOPIC]",
    .about = "Explains a command, or one of the topics rendezvous, exit-status, signals, environment and "
             "checks.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

void help_overview(struct el_buf *out)
{
    version_line(out);
    el_buf_puts(out, "Starts, watches and restarts distributed training; a drop-in for torchrun.\n"
                     "\n"
                     "Usage: elrun [run] [OPTION ...] SCRIPT [ARG ...]\n"
                     "\n"
                     "Examples:\n"
                     "  elrun --nproc-per-node=4 train.py --lr=0.1   four workers; --lr is theirs\n"
                     "  elrun --nproc-per-node=gpu train.py          one worker for each GPU\n"
                     "  elrun --max-restarts=3 train.py              all start again when one fails\n"
                     "  elrun --tee=3 --log-dir=logs train.py        output on console and in files\n"
                     "  elrun --no-python ./program                  any program\n"
                     "\n"
                     "Commands:\n");
    for (size_t i = 0; i < COMMANDS_COUNT; i++)
        el_buf_printf(out, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
    el_buf_puts(out, "\n"
                     "More:\n"
                     "  elrun run --help         all options of run\n"
                     "  elrun help rendezvous    several nodes: waiting, losing, joining\n"
                     "  elrun help exit-status   what the exit status says\n"
                     "  elrun help signals       what elrun does with a signal\n"
                     "  elrun help environment   what the workers find in their environment\n"
                     "  man elrun                the manual\n");
}

static void help_exit_status(struct el_buf *out)
{
    el_buf_puts(out, "Exit status of elrun run:\n\n");
#define X(name, number, text) el_buf_printf(out, "  %5d  %s\n", number, text);
    EL_EXIT_LIST(X)
#undef X
    el_buf_puts(out,
                "  1-255  the status of the worker that failed first, unchanged; 128+n if signal n ended it\n"
                "  128+n  elrun was told to end by signal n: 143 for SIGTERM, 130 for SIGINT\n"
                "\n"
                "A worker may use any of these numbers too; the last lines on stderr say whose failure it was.\n"
                "\n"
                "--exit-code=torchrun makes it 1 for every failure (2 for usage).\n"
                "--exit-code=class tells a scheduler what to do with the job: 65 starting it again will not help,\n"
                "72 this node is unhealthy, 75 start it again, 1 unknown.\n");
}

/* What spec and manual say too, in a person's words. */
static const struct signal_row {
    const char *names, *effect;
} signal_rows[] = {
    {"SIGTERM", "the workers get it too, and SIGKILL after --shutdown-timeout; exit status 143"},
    {"SIGINT", "the same, 130; a second one kills at once"},
    {"SIGQUIT", "the same, 131"},
    {"SIGHUP", "the same, 129; nothing if it was ignored at start (nohup)"},
    {"SIGALRM, SIGXCPU", "the same, 142 and 152, and so do SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT and the "
                         "real-time signals, with 128+n; "
                         "nothing if it was ignored at start"},
    {"SIGUSR1, SIGUSR2", "passed on to each worker that has a handler for it, never to the others; elrun goes on"},
    {"SIGTSTP, SIGCONT", "stops the workers and elrun, as a shell user expects; goes on"},
    {"SIGKILL", "elrun is gone at once; its guard process kills the workers"},
};

static void help_signals(struct el_buf *out)
{
    el_buf_puts(out, "What elrun run does with a signal:\n\n");
    for (size_t i = 0; i < COUNT_OF(signal_rows); i++) {
        el_buf_printf(out, "  %-18s", signal_rows[i].names);
        opt_wrap(out, signal_rows[i].effect, 20, 20);
    }
    el_buf_puts(out, "\nAny other signal named in --signals-to-handle ends the job as SIGTERM does, with that\n"
                     "signal and 128+n.\n");
}

static void help_environment(struct el_buf *out)
{
    el_buf_puts(out, "A worker inherits the environment of elrun, with these changes:\n\n");
    for (const struct worker_env_row *row = worker_env_table; row->name; row++) {
        el_buf_printf(out, "  %-32s", row->name);
        opt_wrap(out, row->meaning, 34, 34);
    }
    el_buf_puts(out, "\nelrun itself reads PET_* (elrun run --help), PYTHON_EXEC, VIRTUAL_ENV, PATH, TMPDIR,\n"
                     "LOGLEVEL and NO_COLOR.\n");
}

/* For 2:4 nodes, because examples are read and rules are not; the numbers are the defaults. */
static void help_rendezvous(struct el_buf *out)
{
    el_buf_puts(out, "Several nodes: on each host the same command, with one of them as endpoint:\n"
                     "\n"
                     "  elrun --nnodes=2:4 --nproc-per-node=8 --rdzv-endpoint=node0 train.py\n"
                     "\n"
                     "The elrun on node0 is the coordinator too.  It may run apart from the training:\n"
                     "`elrun store` on a host that then is the endpoint.  A round is one agreed set of\n"
                     "nodes; each has its own ranks, its own store, and workers that start anew.\n"
                     "\n"
                     "Waiting  In any order, for 600 s (--rdzv-conf join_timeout=600), then status 69.\n"
                     "         The first round starts when 4 are there; or 2, and nobody came for 3 s\n"
                     "         (--settle), or 30 s have passed (--rdzv-conf last_call_timeout=30).\n"
                     "Losing   Lost is who closed its connection and is not back after 0.1 s\n"
                     "         (--reconnect-grace), or was silent for 5 x 1 s (--rdzv-conf\n"
                     "         keep_alive_max_attempt=5,keep_alive_interval=1).  The others start the\n"
                     "         next round at once if 2 are left; --replace-wait=60 waits for another.\n"
                     "Joining  A running round takes newcomers in 1 s after the last of them\n"
                     "         (--scale-up-delay).  Who is too many waits as a spare.\n"
                     "         --node-unit=2: always a multiple of 2 nodes.\n"
                     "Leaving  SIGTERM to one elrun: that node leaves, the others go on.\n"
                     "Ranks    Survivors keep their order.  --node-rank=N orders nodes by N, and gives\n"
                     "         a replacement the place of the lost one.\n"
                     "Budget   --max-restarts=3: three times in the whole job a worker may fail and\n"
                     "         all start again.  Nodes that were lost, left or came cost nothing; but\n"
                     "         more than 10 rounds in a row that ended within a minute end the job\n"
                     "         (--max-fruitless-restarts).\n"
                     "\n"
                     "`elrun status` shows who is there and what is waited for.\n");
}

static void help_checks(struct el_buf *out)
{
    el_buf_puts(out, "What `elrun probe` looks at on each node, and when that is bad (the node fails), a\n"
                     "warning, or worth a remark.  --checks=gpu,ib,-ib_state chooses groups and checks;\n"
                     "--limits=FILE changes limits and severity:\n"
                     "\n"
                     "  {\"ib_rate\": 400, \"shm_size\": \"8GiB\", \"swap_used\": \"off\",\n"
                     "   \"edac_corrected\": {\"limit\": 5, \"severity\": \"bad\"}}\n");
    check_list_text(out);
}

static const struct topic {
    const char *name;
    void (*print)(struct el_buf *out);
} topics[] = {
    {"rendezvous", help_rendezvous},   {"exit-status", help_exit_status}, {"signals", help_signals},
    {"environment", help_environment}, {"checks", help_checks},
};

static const char *topic_name(const void *ctx, size_t i)
{
    (void)ctx;
    return i < COMMANDS_COUNT ? commands[i]->name : topics[i - COMMANDS_COUNT].name;
}

void help_topics(struct el_buf *out)
{
    for (size_t i = 0; i < COMMANDS_COUNT + COUNT_OF(topics); i++)
        el_buf_printf(out, "%s%s", i ? "|" : "", topic_name(NULL, i));
}

static int help_topic(const char *topic, struct el_buf *out, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    const struct command *command = command_find(topic);
    if (command)
        return opt_help(command->options, out), 0;
    for (size_t i = 0; i < COUNT_OF(topics); i++)
        if (strcmp(topic, topics[i].name) == 0)
            return topics[i].print(out), 0;
    const char *near = opt_nearest(topic, topic_name, NULL, COMMANDS_COUNT + COUNT_OF(topics));
    if (near)
        return el_fail(e, EL_EXIT_USAGE, "no help about \"%s\"; did you mean %s?", el_show(topic, shown), near);
    return el_fail(e, EL_EXIT_USAGE,
                   "no help about \"%s\"; want a command, rendezvous, exit-status, signals, "
                   "environment or checks",
                   el_show(topic, shown));
}

static int cmd_help_run(const struct call *call, struct el_err *e)
{
    struct opt_result r;
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    if (command_options(&cmd_help, call, NULL, &r, e) <= 0)
        return 0;
    if (call->argc - r.next > 1)
        return el_fail(e, EL_EXIT_USAGE, "help: one topic at a time");
    if (r.next == call->argc) {
        help_overview(&out);
    } else if (help_topic(call->argv[r.next], &out, e)) {
        el_buf_free(&out);
        return -1;
    }
    return command_print(&out, e);
}

const struct command cmd_help = {.name = "help",
                                 .summary = "explain a command, several nodes, exit statuses, signals",
                                 .options = &options,
                                 .words = "",
                                 .run = cmd_help_run};
