/* Values of `elrun run` that are more than a number or a word. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/run_options.h"
#include "sys/signame.h"
#include "coord/health.h"
#include "control/msg.h"
#include "util/array.h"
#include "util/log.h"
#include "util/parse.h"

/* The next item of a comma list: *item and *length, *list moves behind it; false at the end.  Spaces around it do not
 * count. */
static bool next_item(const char **list, const char **item, size_t *length)
{
    const char *p = *list;
    if (!p)
        return false;
    const char *end = strchr(p, ',');
    size_t n = end ? (size_t)(end - p) : strlen(p);
    *list = end ? end + 1 : NULL;
    for (; n && *p == ' '; n--)
        p++;
    while (n && p[n - 1] == ' ')
        n--;
    *item = p;
    *length = n;
    return true;
}

/* --- how many ----------------------------------------------------------------------------------------------------- */

int conf_set_nnodes(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    const char *colon = strchr(value, ':'), *max = colon ? colon + 1 : value;
    uint64_t low, high;
    if (el_parse_u64n(value, colon ? (size_t)(colon - value) : strlen(value), &low) || el_parse_u64(max, &high))
        return el_fail(e, EL_EXIT_USAGE, "want a number of nodes, such as 2, or MIN:MAX, such as 1:4");
    if (!low || low > high || high > RUN_NNODES_MAX)
        return el_fail(e, EL_EXIT_USAGE, "want 1 <= MIN <= MAX <= %d", RUN_NNODES_MAX);
    conf->nnodes_min = (unsigned)low;
    conf->nnodes_max = (unsigned)high;
    return 0;
}

int conf_set_nproc(void *target, const char *value, struct el_err *e)
{
    static const enum conf_nproc kinds[] = {CONF_NPROC_CPU, CONF_NPROC_GPU, CONF_NPROC_XPU, CONF_NPROC_AUTO};
    struct run_conf *conf = target;
    int word = opt_choice("cpu|gpu|xpu|auto", value, strlen(value));
    uint64_t n = 0;
    if (word < 0 && (el_parse_u64(value, &n) || !n || n > EL_SLOTS_MAX))
        return el_fail(e, EL_EXIT_USAGE, "want a number of workers from 1 to %d, or cpu, gpu, xpu or auto",
                       EL_SLOTS_MAX);
    conf->nproc_kind = word < 0 ? CONF_NPROC_NUMBER : kinds[word];
    conf->nproc = (unsigned)n;
    return 0;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static int set_streams(struct output_streams *to, const char *value, struct el_err *e)
{
    static const char want[] = "want 0, 1 (stdout), 2 (stderr) or 3 (both), or a list RANK:VALUE,... such as 0:3,12:1";
    const char *item;
    size_t n;
    memset(to, 0, sizeof *to);
    if (value[0] >= '0' && value[0] <= '3' && !value[1]) {
        to->all = true;
        to->value[0] = (uint8_t)(value[0] - '0');
        return 0;
    }
    while (next_item(&value, &item, &n)) {
        uint64_t rank;
        if (n < 3 || item[n - 2] != ':' || item[n - 1] < '0' || item[n - 1] > '3' || el_parse_u64n(item, n - 2, &rank))
            return el_fail(e, EL_EXIT_USAGE, "%s", want);
        if (rank >= EL_SLOTS_MAX)
            return el_fail(e, EL_EXIT_USAGE, "want local ranks from 0 to %d", EL_SLOTS_MAX - 1);
        to->value[rank] = (uint8_t)(item[n - 1] - '0');
        if (rank >= to->n)
            to->n = (unsigned)rank + 1;
    }
    return 0;
}

int conf_set_redirects(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    return set_streams(&conf->output.redirects, value, e);
}

int conf_set_tee(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    return set_streams(&conf->output.tee, value, e);
}

/* An empty list is no filter, as in torchrun. */
int conf_set_ranks_filter(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    const char *item;
    size_t n;
    memset(conf->output.rank_shown, 0, sizeof conf->output.rank_shown);
    conf->output.ranks_filtered = *value != 0;
    if (!*value)
        return 0;
    while (next_item(&value, &item, &n)) {
        uint64_t rank;
        if (el_parse_u64n(item, n, &rank) || rank >= EL_SLOTS_MAX)
            return el_fail(e, EL_EXIT_USAGE, "want a list of local ranks from 0 to %d, such as 0,1", EL_SLOTS_MAX - 1);
        conf->output.rank_shown[rank] = 1;
    }
    return 0;
}

int conf_set_log_format(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    int which = opt_choice("text|json", value, strlen(value));
    if (which < 0)
        return el_fail(e, EL_EXIT_USAGE, "want text or json");
    conf->log_json = which == 1;
    return 0;
}

int conf_set_step_pattern(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    conf->steps_wanted = true;
    return steps_pattern_parse(&conf->step_pattern, value, e);
}

int conf_set_ckpt_mem(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    size_t n = strlen(value);
    uint64_t percent;
    conf->ckpt_mem_percent = 0;
    conf->ckpt_mem_bytes = 0;
    if (n && value[n - 1] == '%' && el_parse_u64n(value, n - 1, &percent) == 0 && percent >= 1 && percent <= 95)
        conf->ckpt_mem_percent = (unsigned)percent;
    else if (el_parse_size(value, &conf->ckpt_mem_bytes) || !conf->ckpt_mem_bytes)
        return el_fail(
            e, EL_EXIT_USAGE,
            "want a size, such as 500M or 16G (K, M, G, T), or a share of this host's memory from 1%% to 95%%");
    return 0;
}

int conf_set_events(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    int which = opt_choice("null|console", value, strlen(value));
    if (which < 0)
        return el_fail(e, EL_EXIT_USAGE, "elrun loads no Python plug-ins; want null or console");
    if (which == 1 && !conf->verbose)
        conf->verbose = 1;
    return 0;
}

int conf_set_logs_specs(void *target, const char *value, struct el_err *e)
{
    (void)target;
    (void)value;
    return el_fail(e, EL_EXIT_USAGE,
                   "elrun loads no Python plug-ins; see --log-dir, --redirects and --tee for what it does with logs");
}

int conf_set_interactive(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    (void)value;
    (void)e;
    conf->interactive = CONF_YES;
    return 0;
}

int conf_set_no_interactive(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    (void)value;
    (void)e;
    conf->interactive = CONF_NO;
    return 0;
}

/* --- health checks ------------------------------------------------------------------------------------------------ */

/* Beside --health-check the one that asks for more counts. */
int conf_set_network_check(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    (void)value;
    (void)e;
    if (conf->health_check == HEALTH_OFF)
        conf->health_check = HEALTH_START;
    return 0;
}

int conf_check_domain(const char *value, struct el_err *e)
{
    size_t n = strlen(value);
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            n = 0;
    return n && n < MSG_NAME_MAX
               ? 0
               : el_fail(e, EL_EXIT_USAGE, "want the name of a rack or switch, without spaces, of at most %d bytes",
                         MSG_NAME_MAX - 1);
}

int conf_set_probe_domain(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    conf->probe_domain = value;
    return conf_check_domain(value, e);
}

int conf_set_probe_rails(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    return probe_rails_parse(value, &conf->probe_rails, e);
}

int conf_set_exclude_straggler(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    (void)value;
    (void)e;
    conf->on_straggler = HEALTH_STRAGGLER_EXCLUDE;
    return 0;
}

/* --- stopping ----------------------------------------------------------------------------------------------------- */

/* SIGKILL and SIGSTOP reach no handler, SIGCHLD is how elrun learns that a worker has ended. */
static bool can_handle(int number)
{
    return number > 0 && number <= CONF_SIGNAL_MAX && number != 9 && number != 17 && number != 19;
}

int conf_set_signals(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    const char *list = value, *item;
    size_t n;
    (void)e;
    memset(conf->handled, 0, sizeof conf->handled);
    conf->signals_to_handle = value;
    while (next_item(&list, &item, &n)) {
        char name[64], shown[EL_SHOW_MAX];
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name), item);
        int number = signame_number(name);
        if (can_handle(number)) {
            conf->handled[number] = 1;
        } else if (n) {
            el_log(EL_WARN, "--signals-to-handle: %s is %s; it is left out", el_show(name, shown),
                   number > 0 ? "a signal that elrun cannot handle" : "no signal's name");
        }
    }
    return 0;
}

/* --- rendezvous --------------------------------------------------------------------------------------------------- */

int conf_set_rdzv_backend(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    if (strncmp(value, "etcd", 4) == 0)
        return el_fail(e, EL_EXIT_USAGE,
                       "torchrun's etcd back ends speak a protocol that etcd 3.6 dropped; want c10d or static");
    int which = opt_choice("static|c10d", value, strlen(value));
    if (which < 0)
        return el_fail(e, EL_EXIT_USAGE, "elrun loads no Python plug-ins; want static or c10d");
    conf->rdzv_backend = which ? "c10d" : "static";
    return 0;
}

/* Letters, digits and what stands in names and addresses: torchrun's rule, and nothing that could break a line. */
static bool host_is_good(const char *host, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = host[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._:%", c);
        if (!c || !good)
            return false;
    }
    return n < CONF_HOST_MAX;
}

int conf_split_endpoint(const char *text, const char **host, size_t *length, int *port)
{
    const char *colon = strrchr(text, ':'), *rest;
    uint64_t number;
    if (*text == '[') {
        const char *end = strchr(text, ']');
        if (!end || end == text + 1)
            return -1;
        *host = text + 1;
        *length = (size_t)(end - text - 1);
        rest = end + 1;
    } else {
        bool v6 = colon && strchr(text, ':') != colon;
        *host = text;
        *length = colon && !v6 ? (size_t)(colon - text) : strlen(text);
        rest = text + *length;
    }
    *port = -1;
    if (!*rest)
        return host_is_good(*host, *length) ? 0 : -1;
    if (*rest != ':' || el_parse_u64(rest + 1, &number) || number > 65535)
        return -1;
    *port = (int)number;
    return host_is_good(*host, *length) ? 0 : -1;
}

int conf_set_rdzv_endpoint(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    const char *host;
    size_t n;
    if (conf_split_endpoint(value, &host, &n, &conf->rdzv_port))
        return el_fail(e, EL_EXIT_USAGE, "want HOST:PORT, HOST or [IPv6 address]:PORT with a port from 0 to 65535");
    snprintf(conf->rdzv_host, sizeof conf->rdzv_host, "%.*s", (int)n, host);
    conf->rdzv_endpoint = value;
    return 0;
}

static int set_host(const char **to, const char *value, struct el_err *e)
{
    const char *host;
    size_t n;
    int port;
    if (conf_split_endpoint(value, &host, &n, &port) || port >= 0 || !n)
        return el_fail(e, EL_EXIT_USAGE, "want a host name or an address, without a port");
    *to = value;
    return 0;
}

int conf_set_master_addr(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    return set_host(&conf->master_addr, value, e);
}

int conf_set_local_addr(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    return set_host(&conf->local_addr, value, e);
}

int conf_set_master_port(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    uint64_t port;
    if (el_parse_u64(value, &port) || port > 65535)
        return el_fail(e, EL_EXIT_USAGE, "want a port from 1 to 65535, or 0 for a free one");
    conf->master_port = port ? (int)port : -1;
    return 0;
}

int conf_set_store_allow(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    int word = opt_choice("round|any", value, strlen(value));
    if (word < 0 && el_cidr_parse(value, &conf->store_net, NULL))
        return el_fail(e, EL_EXIT_USAGE, "want round, any, or a network such as 10.0.0.0/8 or fd00::/8");
    conf->store_allow = word < 0 ? CONF_ALLOW_NET : word ? CONF_ALLOW_ANY : CONF_ALLOW_ROUND;
    return 0;
}

int conf_set_control_allow(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    char one[64];
    conf->control_allow_n = 0;
    if (!*value) /* as a variable that is not set: it must not open what it was to close */
        return el_fail(e, EL_EXIT_USAGE, "want networks such as 10.0.0.0/8 or fd00::/8, commas between");
    for (const char *at = value; *at;) {
        size_t n = strcspn(at, ",");
        if (conf->control_allow_n == CONF_CONTROL_ALLOW_MAX)
            return el_fail(e, EL_EXIT_USAGE, "want at most %d networks", CONF_CONTROL_ALLOW_MAX);
        if (n >= sizeof one)
            return el_fail(e, EL_EXIT_USAGE, "want networks such as 10.0.0.0/8 or fd00::/8, commas between");
        memcpy(one, at, n);
        one[n] = 0;
        if (el_cidr_parse(one, &conf->control_allow[conf->control_allow_n], NULL))
            return el_fail(e, EL_EXIT_USAGE, "want networks such as 10.0.0.0/8 or fd00::/8, commas between");
        conf->control_allow_n++;
        at += at[n] ? n + 1 : n;
    }
    return 0;
}

/* --- --rdzv-conf -------------------------------------------------------------------------------------------------- */

enum key_type { KEY_NUMBER, KEY_TIME, KEY_SWITCH, KEY_STORE };

/* torchrun's keys (2.13).  The first six mean here what they mean there; the others are checked and change nothing,
 * because what they tune does not exist here. */
static const struct rdzv_key {
    const char *name;
    enum key_type type;
    bool idle;
} rdzv_keys[] = {
    {"join_timeout", KEY_TIME, false},
    {"last_call_timeout", KEY_TIME, false},
    {"keep_alive_interval", KEY_TIME, false},
    {"keep_alive_max_attempt", KEY_NUMBER, false},
    {"is_host", KEY_SWITCH, false},
    {"rank", KEY_NUMBER, false},
    {"use_hostname", KEY_SWITCH, false}, /* elrun's own */
    {"close_timeout", KEY_TIME, true},
    {"heartbeat_timeout", KEY_TIME, true},
    {"heartbeat", KEY_TIME, true},
    {"read_timeout", KEY_TIME, true},
    {"timeout", KEY_TIME, true},
    {"use_libuv", KEY_SWITCH, true},
    {"store_type", KEY_STORE, true},
};

static const char *key_name(const void *ctx, size_t i)
{
    (void)ctx;
    return rdzv_keys[i].name;
}

struct key_value {
    el_usec time;
    unsigned number;
    int yes;
};

static int parse_key(const struct rdzv_key *key, const char *value, struct key_value *v, struct el_err *e)
{
    uint64_t number = 0;
    switch (key->type) {
    case KEY_NUMBER:
        if (el_parse_u64(value, &number) || number > INT32_MAX)
            return el_fail(e, EL_EXIT_USAGE, "%s wants a whole number", key->name);
        v->number = (unsigned)number;
        return 0;
    case KEY_TIME:
        return el_parse_duration(value, &v->time)
                   ? el_fail(e, EL_EXIT_USAGE, "%s wants a time in seconds, such as 30 or 0.5", key->name)
                   : 0;
    case KEY_SWITCH:
        return el_parse_bool(value, strlen(value), &v->yes)
                   ? el_fail(e, EL_EXIT_USAGE, "%s wants true or false", key->name)
                   : 0;
    case KEY_STORE:
        return strcmp(value, "tcp")
                   ? el_fail(e, EL_EXIT_USAGE,
                             "%s wants tcp: agents and workers meet at a store over TCP, and no file is "
                             "shared between them",
                             key->name)
                   : 0;
    }
    return 0;
}

static int conf_set_take_key(struct run_conf *conf, const char *name, const struct key_value *v, struct el_err *e)
{
    if (strcmp(name, "join_timeout") == 0)
        conf->join_timeout = v->time;
    else if (strcmp(name, "last_call_timeout") == 0)
        conf->last_call = v->time;
    else if (strcmp(name, "keep_alive_interval") == 0)
        conf->keep_alive_interval = v->time;
    else if (strcmp(name, "keep_alive_max_attempt") == 0)
        conf->keep_alive_attempts = v->number;
    else if (strcmp(name, "is_host") == 0)
        conf->is_host = v->yes ? CONF_YES : CONF_NO;
    else if (strcmp(name, "rank") == 0)
        conf->rank_key = (int)v->number;
    else
        conf->use_hostname = v->yes;
    if (conf->keep_alive_interval < EL_MS(1) || !conf->keep_alive_attempts || conf->keep_alive_attempts > 1000000)
        return el_fail(e, EL_EXIT_USAGE, "%s wants %s", name,
                       conf->keep_alive_interval < EL_MS(1) ? "at least 0.001 s" : "a number from 1 to 1000000");
    if (conf->rank_key >= RUN_NNODES_MAX)
        return el_fail(e, EL_EXIT_USAGE, "rank wants a number from 0 to %d", RUN_NNODES_MAX - 1);
    return 0;
}

static int set_key(struct run_conf *conf, const char *name, const char *value, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    for (size_t i = 0; i < COUNT_OF(rdzv_keys); i++) {
        struct key_value v = {0};
        if (strcmp(name, rdzv_keys[i].name) != 0)
            continue;
        if (parse_key(&rdzv_keys[i], value, &v, e))
            return -1;
        if (!rdzv_keys[i].idle)
            return conf_set_take_key(conf, name, &v, e);
        conf->rdzv_idle |= 1u << i;
        return 0;
    }
    const char *near = opt_nearest(name, key_name, NULL, COUNT_OF(rdzv_keys));
    return el_fail(e, EL_EXIT_USAGE, "unknown key %s%s%s%s", el_show(name, shown), near ? "; did you mean " : "",
                   near ? near : "", near ? "?" : "");
}

/* Also called with the default, "": that is where the defaults of the keys are. */
int conf_set_rdzv_conf(void *target, const char *value, struct el_err *e)
{
    struct run_conf *conf = target;
    const char *list = *value ? value : NULL, *item;
    size_t n;
    conf->rdzv_conf = value;
    conf->join_timeout = EL_SEC(600);
    conf->last_call = EL_SEC(30);
    conf->keep_alive_interval = EL_SEC(1);
    conf->keep_alive_attempts = 5;
    conf->rank_key = -1;
    while (next_item(&list, &item, &n)) {
        char name[64], text[64], shown[EL_SHOW_MAX];
        const char *equals = memchr(item, '=', n);
        size_t length = equals ? (size_t)(equals - item) : 0;
        if (!length || length + 1 == n)
            return el_fail(e, EL_EXIT_USAGE, "want KEY=VALUE,KEY=VALUE such as join_timeout=300,is_host=true");
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), item);
        length = n - length - 1;
        if (length >= sizeof text)
            return el_fail(e, EL_EXIT_USAGE, "the value of %s is too long", el_show(name, shown));
        snprintf(text, sizeof text, "%.*s", (int)length, equals + 1);
        if (set_key(conf, name, text, e))
            return -1;
    }
    return 0;
}

void conf_say_idle_keys(const struct run_conf *conf)
{
    char list[160];
    size_t used = 0;
    for (size_t i = 0; i < COUNT_OF(rdzv_keys); i++)
        if (conf->rdzv_idle & 1u << i)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", rdzv_keys[i].name);
    if (used)
        el_log(EL_INFO, "--rdzv-conf: %s %s accepted; elrun has nothing that %s could change", list,
               strchr(list, ',') ? "are" : "is", strchr(list, ',') ? "they" : "it");
}

/* --- hooks -------------------------------------------------------------------------------------------------------- */

static int add_hook(struct run_conf *conf, enum hook_kind kind, const char *command, struct el_err *e)
{
    if (!*command)
        return el_fail(e, EL_EXIT_USAGE, "the command is empty");
    if (conf->hooks_count == HOOK_COMMANDS_MAX)
        return el_fail(e, EL_EXIT_USAGE, "at most %d hooks", HOOK_COMMANDS_MAX);
    conf->hooks[conf->hooks_count++] = (struct hook_command){kind, command};
    return 0;
}

int conf_set_hook(void *target, const char *value, struct el_err *e)
{
    const char *equals = strchr(value, '=');
    enum hook_kind kind = equals ? hook_kind_of(value, (unsigned)(equals - value)) : HOOK_KINDS;
    if (kind == HOOK_KINDS)
        return el_fail(
            e, EL_EXIT_USAGE,
            "want EVENT=CMD, with one of pre-start, post-start, pre-stop, post-stop, round, incident, node-bad "
            "and end");
    return add_hook(target, kind, equals + 1, e);
}

int conf_set_on_incident(void *target, const char *value, struct el_err *e)
{
    return add_hook(target, HOOK_INCIDENT, value, e);
}
