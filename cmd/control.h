/* What commands to a coordinator share: where it is, which job, how long to wait. */
#ifndef CMD_CONTROL_H
#define CMD_CONTROL_H
#include <stdbool.h>
#include <stddef.h>

#include "cmd.h"
#include "control/control_client.h"

struct control_conf {
    const char *endpoint, *run_id;
    el_usec timeout;
};

#define CONTROL_ENDPOINT "127.0.0.1:29400" /* where nobody says another */

/* Rows of an option table whose target begins with a struct control_conf. */
#define CONTROL_ROW(field) .origin = OPT_ELRUN, .group = "Coordinator:", .offset = offsetof(struct control_conf, field)
#define CONTROL_ROWS                                                                                                   \
    {.name = "endpoint",                                                                                               \
     .type = OPT_STRING,                                                                                               \
     .arg = "HOST[:PORT]",                                                                                             \
     .def = CONTROL_ENDPOINT,                                                                                          \
     .env = "PET_RDZV_ENDPOINT",                                                                                       \
     .help = "The coordinator: the job's --rdzv-endpoint",                                                             \
     CONTROL_ROW(endpoint)},                                                                                           \
        {.name = "rdzv-id",                                                                                            \
         .type = OPT_STRING,                                                                                           \
         .arg = "ID",                                                                                                  \
         .def = "",                                                                                                    \
         .help = "The job; may be left out if the coordinator leads one only",                                         \
         CONTROL_ROW(run_id)},                                                                                         \
    {                                                                                                                  \
        .name = "timeout", .type = OPT_DURATION, .arg = "TIME", .min = EL_MS(1), .max = EL_SEC(86400), .def = "10s",   \
        .help = "How long to wait for the coordinator", CONTROL_ROW(timeout)                                           \
    }

/* Reads the options (into target, which begins with a control_conf) and checks that so many operands follow, which are
 * described by `operands`.  1: go on, *operand is the first; else what run() returns is in *status. */
int control_options(const struct command *command, const struct call *call, void *target, int operands, char ***operand,
                    int *status, struct el_err *e);

/* One question: prints what was done, or why not.  The exit status. */
int control_ask(const struct control_conf *conf, const struct msg *m, struct el_err *e);

/* A refusal is no error of elrun: one line, status 1. */
int control_refused(const char *text);

#endif
