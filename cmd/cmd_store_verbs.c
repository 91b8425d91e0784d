/* elrun store get, set, …: one request to a store, for people and scripts. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store.h"
#include "store/client.h"
#include "store/wire.h"
#include "util/array.h"
#include "util/log.h"
#include "util/parse.h"

enum { KEYS_MAX = 4096, EXIT_NO = 1 };

#define REPLY_MAX EL_SEC(10)  /* for connecting, and for answers that are not waited for */
#define WAIT_MAX  EL_SEC(300) /* the time-out of torch.distributed.TCPStore */

struct verb_conf {
    const char *endpoint;
    el_usec timeout; /* EL_NEVER: not given */
    bool json, hex, raw;
};

/* What one call works with. */
struct ask {
    const struct verb_conf *conf;
    struct store_client *client;
    int argc;
    char **argv; /* operands behind the verb */
    struct el_buf out;
    json_t *json; /* object of --json */
};

#define ROW(field) .origin = OPT_ELRUN, .group = "Client:", .offset = offsetof(struct verb_conf, field)

static const struct opt_row rows[] = {
    {.name = "endpoint",
     .type = OPT_STRING,
     .arg = "HOST:PORT",
     .def = "127.0.0.1:29400",
     .help = "The store",
     ROW(endpoint)},
    {.name = "timeout",
     .type = OPT_DURATION,
     .arg = "TIME",
     .min = 0,
     .max = EL_SEC(365 * 86400),
     .help =
         "How long `get` and `wait` wait for the key; without it `get` does not wait, and `wait` waits 5 minutes, as "
         "PyTorch's client",
     ROW(timeout)},
    {.name = "json", .type = OPT_FLAG, .help = "Answer with one JSON object", ROW(json)},
    {.name = "hex", .type = OPT_FLAG, .help = "Values are hexadecimal, in and out", ROW(hex)},
    {.name = "raw",
     .type = OPT_FLAG,
     .help = "Keys as they are in the store; without it they get the slash in front that PyTorch's client gives them",
     ROW(raw)},
    COMMAND_HELP_ROW,
};

static const struct opt_table options = {
    .command = "elrun store VERB",
    .foreign = true,
    .operands = "[KEY ...] [VALUE]",
    .about = "get KEY [-]      print the value; with `-` its bytes alone, without a newline\n"
             "set KEY VALUE    store a value; `-` reads it from standard input\n"
             "add KEY [N]      add N (1) and print the sum\n"
             "wait KEY ...     return when all keys are there\n"
             "delete KEY       remove a key\n"
             "keys, num-keys   list the keys, count them\n"
             "ping             time of an echo, in milliseconds\n"
             "Ends with 0: found, done; 1: missing, or timed out; 69: the store cannot be reached.",
    .rows = rows,
    .n = COUNT_OF(rows),
};

/* --- values ------------------------------------------------------------------------------------------------------- */

static struct kv_bytes key_bytes(const struct verb_conf *conf, const char *key, struct el_buf *buf)
{
    size_t n = strlen(key);
    if (conf->raw)
        return (struct kv_bytes){key, n};
    el_buf_puts(buf, "/");
    el_buf_put(buf, key, n);
    return (struct kv_bytes){buf->v, buf->len};
}

static void put_hex(struct el_buf *out, struct kv_bytes b)
{
    for (size_t i = 0; i < b.n; i++)
        el_buf_printf(out, "%02x", (unsigned char)b.v[i]);
}

static int cmd_store_verbs_hex_digit(char c)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

/* Decodes in place of `text`; white space between the digits is fine. */
static int from_hex(struct el_buf *text, struct el_err *e)
{
    size_t n = 0, digits = 0;
    for (size_t i = 0; i < text->len; i++) {
        if (strchr(" \t\r\n", text->v[i]) && text->v[i])
            continue;
        int d = cmd_store_verbs_hex_digit(text->v[i]);
        if (d < 0)
            return el_fail(e, EL_EXIT_USAGE, "the value is not hexadecimal");
        if (digits++ % 2)
            text->v[n++] |= (char)d;
        else
            text->v[n] = (char)(d << 4);
    }
    if (digits % 2)
        return el_fail(e, EL_EXIT_USAGE, "the value has an odd number of hexadecimal digits");
    text->len = n;
    return 0;
}

static int read_stdin(struct el_buf *to, struct el_err *e)
{
    for (;;) {
        char *room = el_buf_reserve(to, 65536);
        if (!room)
            return el_fail(e, EL_EXIT_OSERR, "out of memory");
        ssize_t n = read(STDIN_FILENO, room, 65536);
        if (n < 0)
            return el_fail_sys(e, EL_EXIT_NOINPUT, errno, "standard input");
        if (n == 0)
            return 0;
        to->len += (size_t)n;
        if (to->len > 2 * (WIRE_VALUE_MAX + 65536))
            return el_fail(e, EL_EXIT_USAGE, "the value is larger than 8 MiB");
    }
}

/* Text where it is text, hexadecimal where it is not or where that was asked for. */
static void json_value(struct ask *a, const char *name, struct kv_bytes b)
{
    json_t *text = a->conf->hex ? NULL : json_stringn(b.n ? b.v : "", b.n);
    if (text) {
        json_object_set_new(a->json, name, text);
        return;
    }
    char hex_name[32];
    struct el_buf hex = EL_BUF_INIT(NULL, 0);
    put_hex(&hex, b);
    snprintf(hex_name, sizeof hex_name, "%s_hex", name);
    json_object_set_new(a->json, hex_name, json_string(el_buf_cstr(&hex)));
    el_buf_free(&hex);
}

/* --- verbs: STORE_YES, STORE_NO or STORE_ERROR -------------------------------------------------------------------- */

static enum store_answer verb_get(struct ask *a, struct el_err *e)
{
    struct el_buf name = EL_BUF_INIT(NULL, 0), value = EL_BUF_INIT(NULL, 0);
    struct kv_bytes key = key_bytes(a->conf, a->argv[0], &name);
    bool bare = a->argc == 2;
    enum store_answer r = a->conf->timeout == EL_NEVER ? store_client_check(a->client, &key, 1, e)
                                                       : store_client_wait(a->client, &key, 1, a->conf->timeout, e);
    if (r == STORE_YES)
        r = store_client_get(a->client, key, &value, e);
    if (r == STORE_YES) {
        struct kv_bytes v = {value.v, value.len};
        json_value(a, "value", v);
        if (a->conf->hex)
            put_hex(&a->out, v);
        else
            el_buf_put(&a->out, v.v, v.n);
        if (!bare)
            el_buf_puts(&a->out, "\n");
    }
    el_buf_free(&name);
    el_buf_free(&value);
    return r;
}

static enum store_answer verb_set(struct ask *a, struct el_err *e)
{
    struct el_buf name = EL_BUF_INIT(NULL, 0), value = EL_BUF_INIT(NULL, 0);
    struct kv_bytes key = key_bytes(a->conf, a->argv[0], &name);
    enum store_answer r = STORE_YES;
    if (strcmp(a->argv[1], "-") == 0)
        r = read_stdin(&value, e) ? STORE_ERROR : STORE_YES;
    else
        el_buf_puts(&value, a->argv[1]);
    if (r == STORE_YES && a->conf->hex && from_hex(&value, e))
        r = STORE_ERROR;
    if (r == STORE_YES && value.len > WIRE_VALUE_MAX)
        r = el_fail(e, EL_EXIT_USAGE, "the value is larger than 8 MiB");
    if (r == STORE_YES)
        r = store_client_set(a->client, key, (struct kv_bytes){value.v, value.len}, e);
    el_buf_free(&name);
    el_buf_free(&value);
    return r;
}

static enum store_answer verb_add(struct ask *a, struct el_err *e)
{
    int64_t delta = 1, sum = 0;
    struct el_buf name = EL_BUF_INIT(NULL, 0);
    if (a->argc == 2 && el_parse_i64(a->argv[1], &delta))
        return el_fail(e, EL_EXIT_USAGE, "not a whole number: %.60s", a->argv[1]);
    enum store_answer r = store_client_add(a->client, key_bytes(a->conf, a->argv[0], &name), delta, &sum, e);
    size_t said = strlen(e->text);
    if (r == STORE_ERROR && e->status == EL_EXIT_UNAVAILABLE)
        snprintf(e->text + said, sizeof e->text - said, "; is the value of the key a whole number?");
    el_buf_printf(&a->out, "%lld\n", (long long)sum);
    json_object_set_new(a->json, "value", json_integer(sum));
    el_buf_free(&name);
    return r;
}

static enum store_answer verb_wait(struct ask *a, struct el_err *e)
{
    static struct el_buf names[KEYS_MAX];
    static struct kv_bytes keys[KEYS_MAX];
    for (int i = 0; i < a->argc; i++)
        keys[i] = key_bytes(a->conf, a->argv[i], &names[i]);
    el_usec limit = a->conf->timeout == EL_NEVER ? WAIT_MAX : a->conf->timeout;
    enum store_answer r = store_client_wait(a->client, keys, (size_t)a->argc, limit, e);
    if (r == STORE_NO)
        el_log(EL_WARN, "store wait: not all keys are there after %.6g s", (double)limit / (double)EL_SEC(1));
    for (int i = 0; i < a->argc; i++)
        el_buf_free(&names[i]);
    return r;
}

static enum store_answer verb_delete(struct ask *a, struct el_err *e)
{
    struct el_buf name = EL_BUF_INIT(NULL, 0);
    enum store_answer r = store_client_delete(a->client, key_bytes(a->conf, a->argv[0], &name), e);
    el_buf_free(&name);
    return r;
}

/* One line each: what is no printable character (or a backslash) is \xNN, so that a line is a key. */
static void put_key_line(struct el_buf *out, struct kv_bytes key)
{
    for (size_t i = 0; i < key.n; i++) {
        unsigned char c = (unsigned char)key.v[i];
        if (c < ' ' || c == 0x7f || c == '\\')
            el_buf_printf(out, "\\x%02x", c);
        else
            el_buf_put(out, &c, 1);
    }
    el_buf_puts(out, "\n");
}

static void on_key(void *ctx, struct kv_bytes key)
{
    struct ask *a = ctx;
    if (!a->conf->raw) {
        if (!key.n || key.v[0] != '/')
            return; /* PyTorch's own, as its client sees it */
        key = (struct kv_bytes){key.v + 1, key.n - 1};
    }
    json_t *text = json_stringn(key.n ? key.v : "", key.n);
    if (!text) {
        struct el_buf line = EL_BUF_INIT(NULL, 0);
        put_hex(&line, key);
        text = json_pack("{ss}", "hex", el_buf_cstr(&line));
        el_buf_free(&line);
    }
    json_array_append_new(json_object_get(a->json, "keys"), text);
    put_key_line(&a->out, key);
}

static enum store_answer verb_keys(struct ask *a, struct el_err *e)
{
    json_object_set_new(a->json, "keys", json_array());
    return store_client_keys(a->client, on_key, a, e);
}

static enum store_answer verb_num_keys(struct ask *a, struct el_err *e)
{
    int64_t n = 0;
    enum store_answer r = store_client_num_keys(a->client, &n, e);
    el_buf_printf(&a->out, "%lld\n", (long long)n);
    json_object_set_new(a->json, "value", json_integer(n));
    return r;
}

static enum store_answer verb_ping(struct ask *a, struct el_err *e)
{
    el_usec took = 0;
    enum store_answer r = store_client_ping(a->client, &took, e);
    el_buf_printf(&a->out, "%.3f\n", (double)took / 1000);
    json_object_set_new(a->json, "ms", json_real((double)took / 1000));
    return r;
}

/* Said here, since a store refuses it by closing the connection. */
static int check_keys(const struct ask *a, int n, struct el_err *e)
{
    size_t slash = !a->conf->raw;
    for (int i = 0; i < n; i++)
        if (strlen(a->argv[i]) + slash > WIRE_KEY_MAX)
            return el_fail(e, EL_EXIT_USAGE, "key %.20s... has %zu bytes, %zu are the most%s", a->argv[i],
                           strlen(a->argv[i]), WIRE_KEY_MAX - slash, slash ? " beside the slash in front" : "");
    return 0;
}

static const struct {
    const char *name;
    int least, most; /* operands */
    int keys;        /* of them, at the front */
    enum store_answer (*run)(struct ask *a, struct el_err *e);
    const char *usage;
} verbs[] = {
    {"get", 1, 2, 1, verb_get, "KEY [-]"},
    {"set", 2, 2, 1, verb_set, "KEY VALUE"},
    {"add", 1, 2, 1, verb_add, "KEY [N]"},
    {"wait", 1, KEYS_MAX, KEYS_MAX, verb_wait, "KEY [KEY ...]"},
    {"delete", 1, 1, 1, verb_delete, "KEY"},
    {"keys", 0, 0, 0, verb_keys, "no operand"},
    {"num-keys", 0, 0, 0, verb_num_keys, "no operand"},
    {"ping", 0, 0, 0, verb_ping, "no operand"},
};

static int print_answer(struct ask *a, enum store_answer r, struct el_err *e)
{
    if (a->conf->json) {
        char *text = NULL;
        json_object_set_new(a->json, "found", json_boolean(r == STORE_YES));
        text = json_dumps(a->json, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
        a->out.len = 0;
        a->out.full |= !text || el_buf_printf(&a->out, "%s\n", text);
        free(text);
    } else if (r != STORE_YES) {
        a->out.len = 0;
    }
    int status = command_print(&a->out, e);
    return status ? status : r == STORE_YES ? 0 : EXIT_NO;
}

int store_verb_run(const struct call *call, struct el_err *e)
{
    struct verb_conf conf = {.timeout = EL_NEVER};
    struct opt_result r;
    size_t v = 0;
    const struct command as = {.name = "store", .options = &options};
    const struct call rest = {call->argc - 1, call->argv + 1, call->env};
    while (strcmp(verbs[v].name, call->argv[0]) != 0)
        v++;
    int go = command_options(&as, &rest, &conf, &r, e);
    if (go <= 0)
        return 0;
    struct ask a = {.conf = &conf, .argc = rest.argc - r.next, .argv = rest.argv + r.next, .out = EL_BUF_INIT(NULL, 0)};
    bool dash = v == 0 && a.argc == 2 && strcmp(a.argv[1], "-") != 0;
    if (a.argc < verbs[v].least || a.argc > verbs[v].most || dash)
        return el_fail(e, EL_EXIT_USAGE, "store %s takes %s, behind its options", verbs[v].name, verbs[v].usage);
    if (check_keys(&a, a.argc < verbs[v].keys ? a.argc : verbs[v].keys, e))
        return -1;
    a.client = store_client_open(conf.endpoint, REPLY_MAX, e);
    a.json = json_object();
    int status = -1;
    if (a.client && a.json) {
        enum store_answer answer = verbs[v].run(&a, e);
        if (answer != STORE_ERROR)
            status = print_answer(&a, answer, e);
    }
    el_buf_free(&a.out);
    json_decref(a.json);
    store_client_free(a.client);
    return status;
}
