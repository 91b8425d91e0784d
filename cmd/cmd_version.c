/* elrun version: what this binary is made of, for bug reports and for scripts. */
#include <gnu/libc-version.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "cmd.h"
#include "loop/loop.h"
#include "util/array.h"

struct version_conf {
    bool json;
};

static const struct opt_row rows[] = {
    COMMAND_JSON_ROW(offsetof(struct version_conf, json)),
    COMMAND_HELP_ROW,
};

static const struct opt_table options = {
    .command = "elrun version",
    .operands = "",
    .about = "Prints the version and what the binary was built from.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

static const char *architecture(void)
{
    static struct utsname u;
    return uname(&u) ? "unknown" : u.machine;
}

void version_line(struct el_buf *out)
{
    el_buf_printf(out, "elrun %s (%s)\n", ELRUN_VERSION, ELRUN_COMMIT);
}

static void print_text(struct el_buf *out)
{
    version_line(out);
    el_buf_printf(out, "  compiler    %s, for %s\n", __VERSION__, architecture());
    el_buf_printf(out, "  libc        %s (%s)\n", gnu_get_libc_version(), gnu_get_libc_release());
    el_buf_printf(out, "  libev       %s\n  jansson     %s\n  commands   ", loop_library_version(),
                  jansson_version_str());
    for (size_t i = 0; i < COMMANDS_COUNT; i++)
        el_buf_printf(out, " %s", commands[i]->name);
    el_buf_puts(out, "\n");
}

static void print_json(struct el_buf *out)
{
    json_t *names = json_array();
    for (size_t i = 0; i < COMMANDS_COUNT; i++)
        json_array_append_new(names, json_string(commands[i]->name));
    json_t *all = json_pack("{ss ss ss ss ss ss ss so}", "version", ELRUN_VERSION, "commit", ELRUN_COMMIT, "compiler",
                            __VERSION__, "architecture", architecture(), "libc", gnu_get_libc_version(), "libev",
                            loop_library_version(), "jansson", jansson_version_str(), "commands", names);
    char *text = all ? json_dumps(all, JSON_INDENT(2)) : NULL;
    if (text)
        el_buf_printf(out, "%s\n", text);
    else
        out->full = 1;
    free(text);
    json_decref(all);
}

static int cmd_version_run(const struct call *call, struct el_err *e)
{
    struct version_conf conf = {0};
    struct opt_result r;
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    int go = command_options(&cmd_version, call, &conf, &r, e);
    if (go <= 0)
        return 0;
    if (r.next < call->argc)
        return el_fail(e, EL_EXIT_USAGE, "version takes no operand");
    if (conf.json)
        print_json(&out);
    else
        print_text(&out);
    return command_print(&out, e);
}

const struct command cmd_version = {.name = "version",
                                    .summary = "print version and parts of this binary",
                                    .options = &options,
                                    .words = "",
                                    .run = cmd_version_run};
