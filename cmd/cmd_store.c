/* elrun store: a c10d store and coordinator that stand alone; with a verb, a client of a store. */
#include <string.h>

#include "store.h"
#include "coord/serve.h"
#include "util/env.h"
#include "util/array.h"
#include "util/parse.h"

enum { ALLOW_MAX = 64 };

struct store_conf {
    const char *bind, *port_file, *state_dir, *events;
    unsigned port, clients_max, verbose;
    el_usec wait_report, forget_after;
    uint64_t memory_max_bytes;
    struct el_cidr allow[ALLOW_MAX];
    size_t allow_n;
    bool json, any_user;
};

static int set_bind(void *target, const char *value, struct el_err *e)
{
    uint8_t ip[16];
    if (!el_addr_parse(value, ip))
        return el_fail(e, EL_EXIT_USAGE, "a numeric address: 10.0.0.5, ::1; 0.0.0.0 or :: for all");
    ((struct store_conf *)target)->bind = value;
    return 0;
}

static int set_allow(void *target, const char *value, struct el_err *e)
{
    struct store_conf *c = target;
    if (c->allow_n == ALLOW_MAX)
        return el_fail(e, EL_EXIT_USAGE, "at most %d networks", ALLOW_MAX);
    return el_cidr_parse(value, &c->allow[c->allow_n], e) ? -1 : (c->allow_n++, 0);
}

static int set_memory(void *target, const char *value, struct el_err *e)
{
    struct store_conf *c = target;
    if (el_parse_size(value, &c->memory_max_bytes) || c->memory_max_bytes < 1u << 20)
        return el_fail(e, EL_EXIT_USAGE, "a number of bytes from 1M up: 512M, 4G");
    return 0;
}

#define ROW(field)  .origin = OPT_ELRUN, .group = "Server:", .offset = offsetof(struct store_conf, field)
#define ROW_SET(fn) .type = OPT_CUSTOM, .origin = OPT_ELRUN, .group = "Server:", .offset = OPT_NOWHERE, .set = (fn)

static const struct opt_row rows[] = {
    {.name = "bind",
     .arg = "ADDR",
     .help = "Address to listen on; without it loopback only (127.0.0.1 and ::1)",
     ROW_SET(set_bind)},
    {.name = "port",
     .type = OPT_UINT,
     .arg = "PORT",
     .min = 0,
     .max = 65535,
     .def = "29400",
     .help = "Port to listen on; 0 takes a free one and prints it",
     ROW(port)},
    {.name = "port-file",
     .type = OPT_STRING,
     .arg = "FILE",
     .help = "Write the port to FILE once it listens",
     ROW(port_file)},
    {.name = "allow",
     .arg = "CIDR",
     .help = "Network that may connect, besides this host; may be repeated; without it everybody may",
     ROW_SET(set_allow)},
    {.name = "any-user",
     .type = OPT_FLAG,
     .help = "All users of this host; without it a store that listens on loopback alone is for its own, and root",
     ROW(any_user)},
    {.name = "max-memory",
     .arg = "SIZE",
     .def = "1G",
     .help =
         "Bytes for keys, waits and buffers together; a request that goes beyond is refused by closing its connection",
     ROW_SET(set_memory)},
    {.name = "max-clients",
     .type = OPT_UINT,
     .arg = "N",
     .min = 1,
     .max = 1u << 30,
     .help = "Connections at the same time; without it as many as descriptors allow",
     ROW(clients_max)},
    {.name = "wait-report",
     .type = OPT_DURATION,
     .arg = "TIME",
     .min = 0,
     .max = EL_SEC(86400),
     .def = "30s",
     .help = "Say who waits for which key, and who has not come, when a wait is older; 0 = never",
     ROW(wait_report)},
    {.name = "state-dir",
     .type = OPT_STRING,
     .arg = "DIR",
     .help =
         "Keep a journal of the jobs that this coordinator leads in DIR, so that it can be killed and started again",
     ROW(state_dir)},
    {.name = "forget-after",
     .type = OPT_DURATION,
     .arg = "TIME",
     .min = EL_SEC(1),
     .max = EL_SEC(365 * 86400),
     .def = "10m",
     .help = "A job that has ended is known for so long: an agent that comes late is told how it ended",
     ROW(forget_after)},
    {.name = "events",
     .type = OPT_STRING,
     .arg = "FILE|fd:N",
     .help = "Append a JSON line to FILE, or to an open descriptor, for everything that happens to the jobs",
     ROW(events)},
    {.name = "json", .type = OPT_FLAG, .help = "Log lines as JSON objects", ROW(json)},
    {.name = "verbose", .letter = 'v', .type = OPT_COUNT, .help = "Also log who comes and goes", ROW(verbose)},
    COMMAND_HELP_ROW,
};

static const struct opt_table options = {
    .command = "elrun store",
    .operands = "",
    .about = "Serves the key-value protocol of torch.distributed.TCPStore (torch 1.9 to 2.0, and 2.2 and later) until "
             "SIGTERM or SIGINT; on the same port it is the coordinator of elrun's agents whose --rdzv-endpoint this "
             "is.  With one of " STORE_VERBS " "
             "as its first word it is a client of such a store: see `elrun store get --help`.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

/* What listens on loopback alone is shared with nobody but other users of this host, who have not been asked in. */
static bool cmd_store_is_own(const struct store_conf *conf)
{
    uint8_t ip[16];
    return !conf->any_user && (!conf->bind || (el_addr_parse(conf->bind, ip) && el_addr_is_loopback(ip)));
}

static int cmd_store_serve(const struct store_conf *conf, const struct call *call, struct el_err *e)
{
    struct store_serve_conf s = {
        .server = {.bind = conf->bind,
                   .port = (int)conf->port,
                   .allow = conf->allow,
                   .allow_n = conf->allow_n,
                   .memory_max_bytes = (size_t)conf->memory_max_bytes,
                   .clients_max = conf->clients_max,
                   .wait_report = conf->wait_report,
                   .own_user = cmd_store_is_own(conf)},
        .state_dir = conf->state_dir,
        .events = conf->events,
        .keep_ended = conf->forget_after,
        .port_file = conf->port_file,
        .env = call->env,
        .notify = env_get(call->env, "NOTIFY_SOCKET"),
        .print_port = conf->port == 0,
        .json = conf->json,
        .verbose = conf->verbose,
    };
    return store_serve(&s, e);
}

static int cmd_store_run(const struct call *call, struct el_err *e)
{
    static struct store_conf conf;
    struct opt_result r;
    if (call->argc && opt_choice(STORE_VERBS, call->argv[0], strlen(call->argv[0])) >= 0)
        return store_verb_run(call, e);
    int go = command_options(&cmd_store, call, &conf, &r, e);
    if (go <= 0)
        return 0;
    if (r.next < call->argc)
        return el_fail(e, EL_EXIT_USAGE, "store: no such verb: %.60s; there are " STORE_VERBS, call->argv[r.next]);
    return cmd_store_serve(&conf, call, e);
}

const struct command cmd_store = {.name = "store",
                                  .summary = "serve a TCPStore for PyTorch, or ask one",
                                  .options = &options,
                                  .words = STORE_VERBS,
                                  .run = cmd_store_run};
