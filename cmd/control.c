#include "control.h"

#include <stdio.h>
#include <string.h>

#include "util/parse.h"

enum { EXIT_REFUSED = 1 };

int control_options(const struct command *command, const struct call *call, void *target, int operands, char ***operand,
                    int *status, struct el_err *e)
{
    struct opt_result r;
    const struct control_conf *conf = target;
    const char *wants = command->options->operands; /* "[RANK]": or none */
    int go = command_options(command, call, target, &r, e);
    *status = 0;
    if (go <= 0)
        return 0;
    if (strlen(conf->run_id) > MSG_RUN_ID_MAX)
        *status = el_fail(e, EL_EXIT_USAGE, "--rdzv-id: at most %d bytes", MSG_RUN_ID_MAX);
    else if (call->argc - r.next > operands || (call->argc == r.next && operands && *wants != '['))
        *status = el_fail(e, EL_EXIT_USAGE, "%s takes %s%.*s", command->name,
                          !operands       ? "no operand"
                          : *wants == '[' ? "at most one "
                                          : "one ",
                          (int)strcspn(wants + (*wants == '['), "]"), wants + (*wants == '['));
    *operand = call->argv + r.next;
    return *status ? 0 : 1;
}

/* Names of strangers stand in it, which must not draw on the terminal. */
int control_refused(const char *text)
{
    char shown[2 * MSG_TEXT_MAX];
    fprintf(stderr, "elrun: refused: %s\n", el_show_path(text, shown, sizeof shown));
    return EXIT_REFUSED;
}

int control_ask(const struct control_conf *conf, const struct msg *m, struct el_err *e)
{
    unsigned status = 0;
    char text[MSG_TEXT_MAX + 1];
    struct control_client *c = control_client_open(conf->endpoint, conf->timeout, e);
    int bad = !c || control_client_ask(c, m, &status, text, e);
    control_client_free(c);
    if (bad)
        return -1;
    if (status)
        return control_refused(text);
    char shown[2 * MSG_TEXT_MAX];
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    el_buf_printf(&out, "%s\n", el_show_path(text, shown, sizeof shown));
    return command_print(&out, e);
}
