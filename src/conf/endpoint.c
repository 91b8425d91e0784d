#include "conf/endpoint.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "conf/run_options.h"
#include "conf/scheduler.h"
#include "util/env.h"
#include "util/text.h"
#include "util/array.h"
#include "util/opt.h"
#include "util/parse.h"
#include "util/sip.h"
#include "util/utf8.h"

/* --- the job's name ------------------------------------------------------------------------------------------------
 */

/* Of what is run, not of how: agents of one job may differ in --node-rank, --log-dir, --nproc-per-node. */
static uint64_t command_hash(const struct run_conf *conf)
{
    uint64_t seed[2] = {0, (uint64_t)conf->entry};
    seed[0] = el_sip(seed, conf->script, strlen(conf->script));
    for (unsigned i = 0; i < conf->args_count; i++)
        seed[0] = el_sip(seed, conf->args[i], strlen(conf->args[i]));
    return seed[0];
}

/* What the control protocol would cut or replace, nodes would not agree on. */
static bool id_is_good(const char *id)
{
    size_t size = strlen(id);
    for (size_t i = 0, n; i < size; i += n) {
        unsigned char c = (unsigned char)id[i];
        n = el_utf8(id + i, size - i);
        if (!n || c < 0x20 || c == 0x7f)
            return false;
    }
    return size <= MSG_RUN_ID_MAX;
}

static int choose_run_id(const struct run_conf *conf, unsigned uid, struct endpoint *ep, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    if (ep->here_only && (!conf->rdzv_id_given || conf->run_id_random)) {
        snprintf(ep->run_id, sizeof ep->run_id, "local-%u-%016llx", uid, (unsigned long long)command_hash(conf));
        return 0;
    }
    if (conf->run_id_random)
        return el_fail(e, EL_EXIT_CONFIG,
                       "--rdzv-id is empty: the nodes of a job know each other by it; want a name, the "
                       "same on all nodes");
    if (!id_is_good(conf->rdzv_id))
        return el_fail(e, EL_EXIT_USAGE, "--rdzv-id=%s: want at most %d bytes of UTF-8 without control characters",
                       el_show(conf->rdzv_id, shown), MSG_RUN_ID_MAX);
    snprintf(ep->run_id, sizeof ep->run_id, "%s", conf->rdzv_id);
    return 0;
}

static bool endpoint_is_word(const char *at, const char *lower, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((at[i] | 0x20) != lower[i])
            return false;
    return true;
}

/* What stands behind such an option is for nobody else: the length of its name with the "=", or of the whole word if
 * the value is the next one; 0: it is no such option. */
static size_t hides_behind(const char *word)
{
    static const char *const ends[] = {"token", "key", "secret", "password", "passwd"};
    size_t n = strcspn(word, "=");
    if (strncmp(word, "--", 2) != 0)
        return 0;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t k = strlen(ends[i]);
        for (size_t at = 2; at + k <= n; at++)
            if (endpoint_is_word(word + at, ends[i], k))
                return word[n] ? n + 1 : n;
    }
    return 0;
}

const char *endpoint_command(const struct run_conf *conf, char *out, size_t room_bytes)
{
    size_t used = 0;
    bool hidden = false;
    assert(room_bytes > 0);
    for (unsigned i = 0; i <= conf->args_count && used < room_bytes; i++) {
        const char *word = i ? conf->args[i - 1] : conf->script;
        size_t shown = i ? hides_behind(word) : 0;
        bool here = shown && word[shown - 1] == '=', value = hidden && *word != '-';
        if (value)
            word = "***";
        used += here ? (size_t)snprintf(out + used, room_bytes - used, " %.*s***", (int)shown, word)
                     : (size_t)snprintf(out + used, room_bytes - used, "%s%s", i ? " " : "", word);
        hidden = shown && !here && !value;
    }
    return out;
}

/* --- which endpoint ------------------------------------------------------------------------------------------------
 */

static int take_master(const char *addr, int port, const char *from, bool is_static, struct endpoint *ep,
                       struct el_err *e)
{
    const char *host;
    size_t n;
    int none;
    if (conf_split_endpoint(addr, &host, &n, &none) || none >= 0 || !n) {
        char shown[EL_SHOW_MAX];
        return el_fail(e, EL_EXIT_USAGE, "%s=%s: want a host name or an address, without a port", from,
                       el_show(addr, shown));
    }
    snprintf(ep->host, sizeof ep->host, "%.*s", (int)n, host);
    ep->port = port > 0 ? (unsigned)port : is_static ? ENDPOINT_STATIC_PORT : ENDPOINT_PORT;
    ep->is_static = is_static;
    ep->from = from;
    return 0;
}

/* MASTER_ADDR and MASTER_PORT as torch.distributed's scripts and operators set them. */
static int take_variables(const char *addr, char *const *env, struct endpoint *ep, struct el_err *e)
{
    const char *text = env_get(env, "MASTER_PORT");
    char shown[EL_SHOW_MAX];
    uint64_t port = 0;
    if (text && *text && (el_parse_u64(text, &port) || !port || port > 65535))
        return el_fail(e, EL_EXIT_USAGE, "MASTER_PORT=%s: want a port from 1 to 65535", el_show(text, shown));
    return take_master(addr, (int)port, "MASTER_ADDR", true, ep, e);
}

static int take_endpoint(const struct run_conf *conf, bool is_static, struct endpoint *ep, struct el_err *e)
{
    if (!conf->rdzv_port)
        return el_fail(e, EL_EXIT_CONFIG,
                       "--rdzv-endpoint=%s: port 0 is a different one each time, where the other nodes "
                       "would not find it; want a port from 1 to 65535, or none for %d",
                       conf->rdzv_endpoint, ENDPOINT_PORT);
    snprintf(ep->host, sizeof ep->host, "%s", *conf->rdzv_host ? conf->rdzv_host : "localhost");
    ep->port = conf->rdzv_port < 0 ? ENDPOINT_PORT : (unsigned)conf->rdzv_port;
    ep->is_static = is_static;
    ep->from = "--rdzv-endpoint";
    return 0;
}

/* Nobody says where.  Three hosts must not become three jobs on one checkpoint folder. */
static int take_this_host(const struct run_conf *conf, char *const *env, bool is_static, struct endpoint *ep,
                          struct el_err *e)
{
    struct scheduler_finding found;
    if (scheduler_find(env, &found))
        return el_fail(
            e, EL_EXIT_CONFIG,
            "--nnodes=%u:%u without --rdzv-endpoint, but %s says in %s that there is more than one host: they "
            "would not find each other; want --rdzv-endpoint=HOST, the same on all, such as %s",
            conf->nnodes_min, conf->nnodes_max, found.system, found.variable, found.advice);
    snprintf(ep->host, sizeof ep->host, "localhost");
    ep->port = is_static ? ENDPOINT_STATIC_PORT : ENDPOINT_PORT;
    if (conf->master_port > 0)
        ep->port = (unsigned)conf->master_port;
    ep->is_static = is_static;
    ep->here_only = true;
    ep->from = "";
    snprintf(ep->note, sizeof ep->note, "no --rdzv-endpoint: only agents on this host can join (localhost:%u)",
             ep->port);
    return 0;
}

static int take_any(const struct run_conf *conf, char *const *env, struct endpoint *ep, struct el_err *e)
{
    bool c10d = strcmp(conf->rdzv_backend, "c10d") == 0, is_static = conf->backend_given && !c10d;
    const char *master = c10d ? NULL : env_get(env, "MASTER_ADDR");
    if (*conf->rdzv_endpoint)
        return take_endpoint(conf, is_static, ep, e);
    if (conf->master_addr)
        return take_master(conf->master_addr, conf->master_port, "--master-addr", !c10d, ep, e);
    if (master && *master)
        return take_variables(master, env, ep, e);
    return take_this_host(conf, env, is_static, ep, e);
}

static int check_rank(const struct run_conf *conf, struct endpoint *ep, struct el_err *e)
{
    ep->node_rank_given = conf->node_rank_given;
    ep->node_rank = conf->node_rank_given || ep->is_static ? (int)conf->node_rank : -1;
    if (ep->kind == ENDPOINT_ALONE && conf->node_rank)
        return el_fail(e, EL_EXIT_CONFIG, "--node-rank=%u: with --nnodes=1 there is only node 0", conf->node_rank);
    if (ep->is_static && conf->node_rank >= conf->nnodes_max)
        return el_fail(e, EL_EXIT_CONFIG, "--node-rank=%u: with --nnodes=%u and the static back end want 0 to %u",
                       conf->node_rank, conf->nnodes_max, conf->nnodes_max - 1);
    return 0;
}

/* Four commands of one step, of which each would be a job of its own, and say that all is well. */
static int check_often(const struct run_conf *conf, char *const *env, struct el_err *e)
{
    struct scheduler_finding found;
    if (conf->standalone || conf->probe_only || !scheduler_started_often(env, &found))
        return 0;
    return el_fail(e, EL_EXIT_CONFIG,
                   "%s has started this command %u times (%s), and each would be a job of its own; one job: --nnodes=N "
                   "--rdzv-endpoint=HOST, the same on all, such as %s; separate jobs: --standalone",
                   found.system, found.hosts, found.variable, found.advice);
}

int endpoint_choose(const struct run_conf *conf, char *const *env, unsigned uid, struct endpoint *out, struct el_err *e)
{
    *out = (struct endpoint){.kind = ENDPOINT_JOIN, .from = "", .node_rank = -1};
    /* One node needs nobody, unless it was told of a coordinator elsewhere: static has none. */
    bool static_one = conf->backend_given && strcmp(conf->rdzv_backend, "static") == 0;
    if (conf->nnodes_max == 1 && (!*conf->rdzv_endpoint || !conf->rdzv_port || conf->run_id_random || static_one)) {
        out->kind = ENDPOINT_ALONE;
        return check_often(conf, env, e) || check_rank(conf, out, e) ? -1 : 0;
    }
    return take_any(conf, env, out, e) || check_rank(conf, out, e) || choose_run_id(conf, uid, out, e) ? -1 : 0;
}

/* --- is it here? ---------------------------------------------------------------------------------------------------
 */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool endpoint_same_name(const char *a, size_t a_size, const char *b, size_t b_size)
{
    if (a_size != b_size)
        return false;
    for (size_t i = 0; i < a_size; i++)
        if (lower(a[i]) != lower(b[i]))
            return false;
    return true;
}

static size_t name_size(const char *name)
{
    size_t n = strlen(name);
    return n && name[n - 1] == '.' ? n - 1 : n; /* "node0.cluster." */
}

/* The whole name, or the short form of it.  A longer name than the host's own says nothing: "node0.other" may be
 * somebody else; its address decides. */
static bool is_own_name(const char *name, const char *hostname)
{
    size_t n = name_size(name), own = name_size(hostname);
    if (endpoint_same_name(name, n, hostname, own))
        return n > 0;
    const char *dot = strchr(hostname, '.');
    return n && !memchr(name, '.', n) && dot && endpoint_same_name(name, n, hostname, (size_t)(dot - hostname));
}

static bool is_localhost(const char *name)
{
    static const char suffix[] = ".localhost";
    size_t n = name_size(name), tail = sizeof suffix - 1;
    return endpoint_same_name(name, n, "localhost", 9) || endpoint_same_name(name, n, "localhost.localdomain", 21) ||
           (n > tail && endpoint_same_name(name + n - tail, tail, suffix, tail));
}

/* An address, perhaps with the zone of a link-local one behind it. */
static bool parse_number(const char *host, uint8_t ip[16])
{
    char text[CONF_HOST_MAX];
    const char *zone = strchr(host, '%');
    snprintf(text, sizeof text, "%.*s", (int)(zone ? zone - host : (long)strlen(host)), host);
    return el_addr_parse(text, ip);
}

static bool is_own_address(const struct endpoint_facts *facts, const uint8_t ip[16])
{
    if (el_addr_is_loopback(ip) || el_addr_is_any(ip))
        return true;
    for (size_t i = 0; i < facts->own_n; i++)
        if (memcmp(facts->own[i], ip, 16) == 0)
            return true;
    return false;
}

static bool endpoint_is_here(const struct endpoint *ep, const struct endpoint_facts *facts)
{
    uint8_t ip[16];
    if (parse_number(ep->host, ip))
        return is_own_address(facts, ip);
    if (is_localhost(ep->host) || is_own_name(ep->host, facts->hostname))
        return true;
    for (size_t i = 0; i < facts->found_n; i++)
        if (is_own_address(facts, facts->found[i]))
            return true;
    return false;
}

bool endpoint_wants_lookup(const struct endpoint *ep, const struct endpoint_facts *facts)
{
    uint8_t ip[16];
    return ep->kind != ENDPOINT_ALONE && !parse_number(ep->host, ip) && !is_localhost(ep->host) &&
           !is_own_name(ep->host, facts->hostname);
}

bool endpoint_wants_proof(const struct endpoint *ep, const struct endpoint_facts *facts)
{
    uint8_t ip[16];
    return ep->kind != ENDPOINT_ALONE && !ep->here_only && !parse_number(ep->host, ip) && !is_localhost(ep->host) &&
           is_own_name(ep->host, facts->hostname);
}

/* The name is this host's, and every address that it leads to is another one's. */
static bool has_namesake(const struct endpoint *ep, const struct endpoint_facts *facts)
{
    for (size_t i = 0; i < facts->found_n; i++)
        if (is_own_address(facts, facts->found[i]))
            return false;
    return facts->found_n && endpoint_wants_proof(ep, facts);
}

static void note_namesake(const struct endpoint_facts *facts, struct endpoint *ep)
{
    char address[EL_ADDR_TEXT_MAX];
    struct el_addr a = {.port = (uint16_t)ep->port};
    memcpy(a.ip, facts->found[0], sizeof a.ip);
    snprintf(ep->note, sizeof ep->note,
             "two hosts are named %.40s: this one, and the one at %s that %s leads to; give an address",
             facts->hostname, el_addr_text(&a, address), ep->from);
}

/* Node 0 of the static back end is the one that the others look for. */
static int check_static(const struct run_conf *conf, const struct endpoint_facts *facts, const struct endpoint *ep,
                        struct el_err *e)
{
    static const char *const whose[] = {"no --node-rank, so this is node 0", "--node-rank=0"};
    const char *want = conf->nnodes_max > 2 ? "from 1 to" : "";
    if (endpoint_is_here(ep, facts) || conf->is_host == CONF_YES)
        return 0;
    return el_fail(
        e, EL_EXIT_CONFIG,
        "%s: it must be on the host of %s, %.120s, which is not this one (%.64s); want --node-rank %s%s%u here, "
        "or --rdzv-conf is_host=true if that is this host after all",
        whose[ep->node_rank_given], ep->from, ep->host, facts->hostname, want, *want ? " " : "", conf->nnodes_max - 1);
}

int endpoint_place(const struct run_conf *conf, const struct endpoint_facts *facts, struct endpoint *ep,
                   struct el_err *e)
{
    if (ep->kind == ENDPOINT_ALONE)
        return 0;
    bool answered = facts->found_n || !endpoint_wants_lookup(ep, facts);
    bool first = ep->is_static && ep->node_rank == 0;
    if (first && answered && check_static(conf, facts, ep, e))
        return -1;
    /* A name without an answer: who was told to be node 0 of the static back end is on that host. */
    bool namesake = has_namesake(ep, facts);
    if (namesake)
        note_namesake(facts, ep);
    /* Node 0 of the static back end has the coordinator: the others are not it, whatever their name is. */
    bool elsewhere = namesake && ep->is_static && ep->node_rank > 0;
    bool here = (endpoint_is_here(ep, facts) && !elsewhere) || (first && !answered && ep->node_rank_given);
    if (conf->is_host != CONF_AUTO)
        here = conf->is_host == CONF_YES;
    ep->kind = !here ? ENDPOINT_JOIN : conf->nnodes_max == 1 ? ENDPOINT_ALONE : ENDPOINT_HOST;
    return ep->kind == ENDPOINT_ALONE ? check_rank(conf, ep, e) : 0;
}
