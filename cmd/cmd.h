/* Subcommands: one const struct each, in cmd_<name>.c.  A new one is a file and a word in this list. */
#ifndef CMD_CMD_H
#define CMD_CMD_H
#include <stddef.h>

#include "util/buf.h"
#include "util/err.h"
#include "util/opt.h"

/* In the order of the overview. */
/* clang-format off */
#define COMMANDS(X) \
    X(run) X(probe) X(store) X(status) X(logs) X(scale) X(drain) X(restart) X(stop) X(report) \
    X(ckpt) X(doctor) X(version) X(help) X(completion)
/* clang-format on */

struct call {
    int argc;    /* words behind the command's name */
    char **argv; /* argv[argc] is NULL */
    char **env;
};

struct command {
    const char *name;
    const char *summary;             /* one line for the overview, without full stop */
    const struct opt_table *options; /* NULL: takes none */
    const char *words;               /* "a|b": what its operand may be, for completion; NULL: files */
    /* The exit status; if it fills *e, main prints that (with a pointer to the help text for EL_EXIT_USAGE) and ends
     * with its status. */
    int (*run)(const struct call *call, struct el_err *e);
};

#define X(name) extern const struct command cmd_##name;
COMMANDS(X)
#undef X

#define X(name) +1
enum { COMMANDS_COUNT = 0 COMMANDS(X) };
#undef X

extern const struct command *const commands[COMMANDS_COUNT];

/* The command with this name, NULL. */
const struct command *command_find(const char *name);

/* The command whose name is near to this word, NULL. */
const char *command_near(const char *word);

/* opt_parse() for a command whose only OPT_STOP row is --help: prints the help text itself.  1: go on; 0: all is done;
 * -1: error. */
int command_options(const struct command *command, const struct call *call, void *target, struct opt_result *result,
                    struct el_err *e);

/* Writes the buffer to stdout and frees it: 0, or the status of an error that is in *e. */
int command_print(struct el_buf *text, struct el_err *e);

/* Log lines go straight to stderr (again), until an agent runs and brings its own sink. */
void command_log(void);

/* The row for --help that every table ends with. */
#define COMMAND_HELP_ROW                                                                                               \
    {                                                                                                                  \
        .name = "help", .letter = 'h', .type = OPT_STOP, .group = "About elrun:", .offset = OPT_NOWHERE,               \
        .help = "Print this text"                                                                                      \
    }

/* The row for --json of commands that show one thing; at: where its bool lies. */
#define COMMAND_JSON_ROW(at)                                                                                           \
    {                                                                                                                  \
        .name = "json", .type = OPT_FLAG, .origin = OPT_ELRUN, .group = "Options:", .offset = (at),                    \
        .help = "As one JSON object"                                                                                   \
    }

/* --- what other files offer --- */
void version_line(struct el_buf *out);  /* "elrun 0.1.0 (…)\n" */
void help_overview(struct el_buf *out); /* elrun --help */
void help_topics(struct el_buf *out);   /* "run|…|signals": what `elrun help` knows */
int completion_script(const char *shell, struct el_buf *out, struct el_err *e);

#endif
