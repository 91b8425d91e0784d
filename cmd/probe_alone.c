/* elrun probe without other nodes: its checks, what a baseline and past verdicts say, the report. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sys/host.h"
#include "agent/look.h"
#include "probe.h"
#include "probe/alone.h"
#include "probe/baseline.h"
#include "probe/history.h"
#include "probe/limits.h"
#include "probe/report.h"
#include "probe/visit.h"
#include "util/env.h"
#include "util/array.h"

#define MEMORY_MAX ((size_t)256 << 20)
#define DISK_LIMIT EL_SEC(5) /* so long the folder of past verdicts may take, each time */

struct probe_alone_alone {
    const struct probe_conf *conf;
    const struct call *call;
    struct check_conf checks;
    struct host_facts facts;
    struct found found;
    struct alone_result result;
    struct history history;
    struct baseline baseline;
    bool remembers, has_baseline;
    bool stuck; /* a thread waits for the folder, and uses this */
    struct history_entry now;
    struct el_err history_error;
    char note[HISTORY_REASON_MAX + 100];
};

static bool use_nccl(const struct probe_alone_alone *a)
{
    return a->conf->backend == PROBE_NCCL || (a->conf->backend == PROBE_AUTO && a->facts.gpus.n);
}

static void read_history(void *ctx)
{
    struct probe_alone_alone *a = ctx;
    if (history_open(a->conf->state_dir, &a->history, &a->history_error) == 0)
        a->history_error.status = 0;
}

static void write_history(void *ctx)
{
    struct probe_alone_alone *a = ctx;
    if (history_append(a->conf->state_dir, &a->history, &a->now, 1, &a->history_error) == 0)
        a->history_error.status = 0;
}

/* False: it is told why not. */
static bool visit_history(struct probe_alone_alone *a, void (*work)(void *ctx), const char *what)
{
    a->stuck = !probe_visit(work, a, DISK_LIMIT);
    if (a->stuck)
        fprintf(stderr, "elrun: warning: %s does not answer; %s\n", a->conf->state_dir, what);
    else if (a->history_error.status)
        fprintf(stderr, "elrun: warning: %s; %s\n", a->history_error.text, what);
    return !a->stuck && !a->history_error.status;
}

/* Whatever is wrong with what was asked for is told before anything runs. */
static int probe_alone_prepare(struct probe_alone_alone *a, struct el_err *e)
{
    const struct probe_conf *n = a->conf;
    check_conf_init(&a->checks);
    if (n->limits && limits_read(&a->checks, n->limits, e))
        return -1;
    if (n->checks && checks_parse(&a->checks, n->checks, e))
        return el_prefix(e, "--checks");
    if (n->baseline && baseline_read(&a->baseline, n->baseline, e))
        return -1;
    a->has_baseline = n->baseline != NULL;
    host_facts_read(&a->facts, a->call->env);
    a->remembers = n->state_dir && visit_history(a, read_history, "verdicts are not remembered");
    char strange[512];
    if (a->remembers && history_strange(&a->history, n->state_dir, strange, sizeof strange))
        fprintf(stderr, "elrun: warning: %s\n", strange);
    return 0;
}

static int probe_alone_look(struct probe_alone_alone *a, struct el_err *e)
{
    const struct probe_conf *c = a->conf;
    bool nccl = use_nccl(a), terminal = isatty(STDERR_FILENO);
    const char *term = env_get(a->call->env, "TERM"), *tmp = env_get(a->call->env, "TMPDIR");
    struct alone_conf conf = {
        .timeout = c->timeout,
        .progress = terminal && term && strcmp(term, "dumb") != 0,
        .node = {.env = a->call->env,
                 .checks = &a->checks,
                 .nccl = nccl,
                 .gpus = a->facts.visible_set ? a->facts.visible.n : a->facts.gpus.n,
                 .gpus_expected = c->gpus ? c->gpus : c->backend == PROBE_NCCL,
                 .quick = c->quick,
                 .ckpt_dir = c->ckpt_dir,
                 .tmp_dir = tmp && *tmp ? tmp : "/tmp",
                 .helper_dir = c->helper_dir,
                 .nccl_lib = c->nccl_lib,
                 .cuda_lib = c->cuda_lib,
                 .purelib = a->facts.python == 0 && a->facts.py.site[0] ? a->facts.py.site : NULL,
                 .cpu_quota_millis = a->facts.cpu_quota_millis < HOST_UNKNOWN ? a->facts.cpu_quota_millis : UINT64_MAX},
    };
    int bad = alone_run(&conf, &a->found, &a->result, e);
    command_log(); /* alone_run() has taken the log while it ran */
    return bad;
}

/* A plan of one node: no pairs, but what it measured may be compared with the baseline. */
static int probe_alone_judge(struct probe_alone_alone *a, struct plan *p, struct el_err *e)
{
    struct el_buf why = EL_BUF_INIT(NULL, 4096);
    const struct plan_pair *pairs;
    plan_name(p, 0, a->facts.hostname[0] ? a->facts.hostname : "this node");
    bool bad = found_bad(&a->found, &why); /* before its text is asked for: it may move */
    plan_local(p, 0, !bad, el_buf_cstr(&why));
    el_buf_free(&why);
    if (a->result.signal || a->result.timed_out) /* what is bad stays bad; what was not looked at is not good */
        plan_lost(p, 0,
                  a->result.signal ? "it was stopped before all was looked at"
                                   : "the time was over before all was looked at");
    for (unsigned i = 0; i < a->found.metrics; i++)
        if (a->found.metric[i].rail < PLAN_RAILS_MAX) /* speeds of further GPUs are measured, and not compared */
            plan_metric(p, 0, a->found.metric[i].rail, a->found.metric[i].metric, a->found.metric[i].milli);
    if (a->has_baseline && baseline_fits(&a->baseline, &a->found.facts, e))
        return el_prefix(e, "--baseline=%.200s", a->conf->baseline);
    for (unsigned m = 0; a->has_baseline && m < METRIC_COUNT; m++)
        if (a->baseline.milli[m])
            plan_reference(p, (enum metric)m, a->baseline.milli[m]);
    (void)plan_round(p, &pairs);
    return 0;
}

static int save_baseline(const struct probe_alone_alone *a, int status, struct el_err *e)
{
    static struct baseline b; /* large */
    if (!a->conf->save_baseline)
        return 0;
    if (status) {
        fprintf(stderr, "elrun: warning: %s is not written: this node is not known to be healthy\n",
                a->conf->save_baseline);
        return 0;
    }
    b = (struct baseline){.facts = a->found.facts};
    for (unsigned i = 0; i < a->found.metrics; i++) {
        uint32_t *to = &b.milli[a->found.metric[i].metric], v = a->found.metric[i].milli;
        if (!*to || metric_worse(a->found.metric[i].metric, v, *to)) /* of several GPUs the worst: each must reach it */
            *to = v;
    }
    return baseline_write(&b, a->conf->save_baseline, e);
}

/* What was before, for the report; then this time.  An undecided probe is no verdict. */
static void remember(struct probe_alone_alone *a, const struct probe_report *r, int status)
{
    struct el_buf text = EL_BUF_INIT(NULL, sizeof a->note - 1), why = EL_BUF_INIT(NULL, 4096);
    uint64_t now = (uint64_t)time(NULL);
    if (!a->remembers)
        return;
    if (status < 2 && !a->result.signal) {
        (void)found_bad(&a->found, &why);
        a->now = history_entry(now, a->facts.hostname, status != 0, el_buf_cstr(&why));
        (void)visit_history(a, write_history, "this verdict is not remembered");
    }
    if (!a->stuck && history_text(&a->history, a->facts.hostname, now, &text))
        snprintf(a->note, sizeof a->note, "%s", el_buf_cstr(&text));
    (void)r;
    el_buf_free(&text);
    el_buf_free(&why);
}

static int probe_alone_show(struct probe_alone_alone *a, struct plan *p, struct el_err *e)
{
    const struct probe_conf *c = a->conf;
    const struct found *found[1] = {&a->found};
    const char *note[1] = {NULL};
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    const struct report_look look = look_of(a->call->env, STDOUT_FILENO);
    struct probe_report r = {
        .plan = p,
        .found = found,
        .note = note,
        .took_ms = a->result.elapsed / 1000,
        .colour = look.colour,
        .utf8 = look.utf8,
        .columns = look.columns,
        .all = c->all,
    };
    int status = report_status(&r, c->strict, c->exclude_straggler);
    remember(a, &r, status);
    note[0] = a->note[0] ? a->note : NULL;
    if (save_baseline(a, status, e))
        return e->status;
    if (c->json)
        report_json(&r, &out);
    else
        report_text(&r, &out);
    if (a->result.signal)
        fprintf(stderr, "elrun: stopped after %.1f s: what had been found by then\n", (double)a->result.elapsed / 1e6);
    else if (a->result.timed_out)
        fprintf(stderr, "elrun: warning: the time of --probe-timeout is over: what had been found by then\n");
    int written = command_print(&out, e);
    if (written)
        return written;
    return a->result.signal ? EL_EXIT_SIGNAL(a->result.signal) : status;
}

int probe_alone(const struct probe_conf *conf, const struct call *call, struct el_err *e)
{
    struct probe_alone_alone *a = calloc(1, sizeof *a);
    struct el_mem mem = EL_MEM_INIT(MEMORY_MAX);
    struct plan_conf pc = PLAN_CONF_INIT;
    int status = -1;
    if (!a)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    a->conf = conf;
    a->call = call;
    pc.rails = PLAN_RAILS_MAX;
    pc.straggler_k = conf->straggler_k;
    pc.straggler_min = conf->straggler_min;
    struct plan *p = plan_new(1, &pc, &mem);
    if (!p)
        el_fail(e, EL_EXIT_OSERR, "out of memory");
    else if (probe_alone_prepare(a, e) == 0 && probe_alone_look(a, e) == 0 && probe_alone_judge(a, p, e) == 0)
        status = probe_alone_show(a, p, e);
    plan_free(p);
    if (!a->stuck)
        free(a);
    return status;
}
