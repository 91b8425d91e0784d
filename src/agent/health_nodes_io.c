/* `elrun probe` over several nodes: a job like others, but its coordinator ends it with the verdict. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent_io.h"
#include "conf/conf.h"
#include "agent/health.h"
#include "agent/look.h"
#include "coord/health.h"

enum { WORDS_MAX = 16, WORD_BYTES = 512 };

struct health_nodes_words {
    char text[WORDS_MAX][WORD_BYTES];
    char *argv[WORDS_MAX + 1];
    int n;
    bool cut;
};

static void __attribute__((format(printf, 2, 3)))
health_nodes_add(struct health_nodes_words *w, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    char *to = w->text[w->n];
    w->cut |= vsnprintf(to, WORD_BYTES, format, ap) >= WORD_BYTES;
    va_end(ap);
    w->argv[w->n++] = to;
    w->argv[w->n] = NULL;
}

static void add_given(struct health_nodes_words *w, const char *option, const char *value)
{
    if (value)
        health_nodes_add(w, "--%s=%s", option, value);
}

/* What a run of the same nodes would be started with: the options have one meaning.  The configuration points into the
 * words. */
static int read_words(struct health_nodes_words *w, const struct health_nodes *c, char **env, struct run_conf *conf,
                      struct el_err *e)
{
    add_given(w, "nnodes", c->nnodes);
    add_given(w, "rdzv-endpoint", c->rdzv_endpoint);
    health_nodes_add(w, "--rdzv-backend=c10d");
    health_nodes_add(w, "--rdzv-id=%s", c->rdzv_id ? c->rdzv_id : "probe");
    add_given(w, "rdzv-conf", c->rdzv_conf);
    add_given(w, "node-rank", c->node_rank);
    add_given(w, "local-addr", c->local_addr);
    health_nodes_add(w, "--coordinator-timeout=20"); /* nothing runs that would be worth a longer wait */
    health_nodes_add(w, "--health-check=start");
    health_nodes_add(w, "--nproc-per-node=1");
    health_nodes_add(w, "--no-python");
    health_nodes_add(w, "/proc/self/exe");
    if (w->cut)
        return el_fail(e, EL_EXIT_USAGE, "an option's value is longer than %d bytes", WORD_BYTES - 32);
    return conf_parse(w->n, w->argv, env, conf, e) < 0 ? -1 : 0;
}

int health_probe_nodes(const struct health_nodes *c, char **env, struct el_err *e)
{
    static struct run_conf conf; /* both are large, and the agent reads them to the end */
    static struct health_nodes_words words;
    if (read_words(&words, c, env, &conf, e) < 0)
        return -1;
    if (conf.nnodes_max == 1) /* it would have no coordinator, and run the word that stands for a program */
        return el_fail(e, EL_EXIT_USAGE, "--nnodes=%s: leave it out to probe one node", c->nnodes);
    conf.probe_only = true;
    conf.probe_backend = c->backend;
    conf.probe_rounds = c->rounds;
    conf.probe_timeout = c->timeout;
    conf.probe_quick = c->quick;
    conf.probe_strict = c->strict;
    conf.probe_json = c->json;
    conf.probe_all = c->all;
    conf.probe_rails = c->rails;
    conf.probe_look = look_of(env, 1);
    conf.probe_checks = c->checks;
    conf.probe_limits = c->limits;
    conf.probe_domain = c->domain;
    conf.straggler_k = c->straggler_k;
    conf.straggler_min = c->straggler_min;
    conf.probe_local = &c->local;
    if (c->exclude_straggler)
        conf.on_straggler = HEALTH_STRAGGLER_EXCLUDE;
    return agent_run(&conf, env, e);
}
