#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/node_private.h"
#include "probe/role.h"
#include "sys/self.h"
#include "util/log.h"

enum use { USE_NONE, USE_JOB, USE_RAIL };

/* What a child is for, by its number. */
struct use_of {
    enum use use;
    unsigned at; /* job or rail */
    bool said_why;
};

struct probe_node {
    struct probe_node_conf conf;
    struct children *children;
    struct loop_timer *soon;
    int helper_fd;
    struct checking checking; /* its findings are copied to found when somebody asks */
    struct found found;
    struct use_of child[STAGE_CHILDREN_MAX];

    bool looking, last, stopped; /* a look is under way; it is the last one */
    struct node_job job[NODE_JOBS_MAX];
    unsigned jobs, begun, running; /* of this look; children of pairs are not counted */
    unsigned phase;

    struct node_rail rail[PLAN_RAILS_MAX];
    unsigned rails; /* that run */
};

static void node_go_on(struct probe_node *n);

/* --- what is found --- */

static void node_note(struct probe_node *n, const struct finding *f)
{
    checking_take(&n->checking, n->last, *f);
}

/* What is known without a limit being asked. */
static void note_as_it_is(struct probe_node *n, const struct finding *f)
{
    if (n->conf.checks->on[f->check])
        findings_put(&n->checking.findings, f);
}

/* Where --limits has a limit for it. */
static void note_slow(struct probe_node *n, const struct wire_m *m)
{
    struct finding f;
    enum metric metric = metric_find(m->name, strlen(m->name));
    if (metric != METRIC_COUNT &&
        check_metric(n->conf.checks, metric, m->rail < 0 ? 0 : (unsigned)m->rail, metric_milli(m->median), &f))
        note_as_it_is(n, &f);
}

static void take_hello(struct probe_node *n, const struct wire_hello *h)
{
    if (h->cudart[0] || h->nccl[0])
        el_log(EL_DEBUG, "GPU %d: CUDA runtime %s, NCCL %s", (int)h->gpu, h->cudart, h->nccl);
    (void)n;
}

static void take_job_line(struct probe_node *n, unsigned child, const struct probe_wire *w)
{
    const struct node_job *job = &n->job[n->child[child].at];
    struct finding f;
    if (w->type == WIRE_HELLO)
        take_hello(n, &w->u.hello);
    else if (w->type == WIRE_CHECK && finding_from_wire(&w->u.check, &f) == 0)
        node_note(n, &f);
    else if (w->type == WIRE_ERR) {
        n->child[child].said_why = true;
        if (node_error_finding(job, &w->u.err, &f))
            note_as_it_is(n, &f);
    } else if (w->type != WIRE_CHECK) {
        (void)found_take(&n->found, w);
        if (w->type == WIRE_M)
            note_slow(n, &w->u.m);
    }
}

static void on_line(void *ctx, unsigned child, const struct probe_wire *w, const char *text, size_t len)
{
    struct probe_node *n = ctx;
    (void)text, (void)len;
    if (n->child[child].use == USE_JOB)
        take_job_line(n, child, w);
    if (n->child[child].use != USE_RAIL)
        return;
    unsigned rail = n->child[child].at;
    if (w->type == WIRE_ID)
        n->conf.pair_id(n->conf.ctx, rail, w->u.id.id);
    else
        node_rail_take(&n->rail[rail], w);
}

static void on_said(void *ctx, unsigned child, const char *line)
{
    (void)ctx, (void)child;
    el_log(EL_DEBUG, "probe: %s", line);
}

static void on_ended(void *ctx, unsigned child, const struct child_end *end)
{
    struct probe_node *n = ctx;
    struct use_of use = n->child[child];
    struct finding f;
    n->child[child].use = USE_NONE;
    if (end->unread)
        el_log(EL_WARN, "probe: %u lines of a child could not be read", end->unread);
    if (use.use == USE_JOB) {
        assert(n->running > 0);
        n->running--;
        if (node_end_finding(&n->job[use.at], end, use.said_why, n->conf.cpu_quota_millis, &f))
            note_as_it_is(n, &f);
        node_go_on(n);
    }
    if (use.use != USE_RAIL)
        return;
    n->rails--;
    struct node_rail *r = &n->rail[use.at];
    node_rail_end(r, end, n->conf.cpu_quota_millis);
    if (end->outcome == STAGE_STUCK) {
        check_hung(CHECK_GROUP_PROBE, (double)end->elapsed / 1e6, 'D', UINT64_MAX, &f);
        finding_say(&f, "cannot be killed: %s", end->text);
        note_as_it_is(n, &f);
    }
    n->conf.pair_done(n->conf.ctx, use.at, &r->result);
}

/* --- starting --- */

static int start_helper(struct probe_node *n, const struct helper_order *o, const char *name, el_usec limit,
                        struct el_err *e)
{
    static struct helper_argv words; /* the loop's thread only */
    if (n->helper_fd < 0 && (n->helper_fd = helper_open(n->conf.helper_dir, e)) < 0)
        return el_prefix(e, "GPU helper");
    if (helper_argv(o, &words, e) < 0)
        return -1;
    struct child_conf c = {.name = name, .exec_fd = n->helper_fd, .argv = words.argv, .limit = limit};
    return children_start(n->children, &c, e);
}

static int start_role(struct probe_node *n, enum role role, const struct probe_wire *order, el_usec limit,
                      struct el_err *e)
{
    char word[32];
    char *argv[] = {word, NULL};
    int fd = self_fd(e);
    if (fd < 0)
        return -1;
    snprintf(word, sizeof word, "%s", role_word(role));
    struct child_conf c = {.name = word, .exec_fd = fd, .argv = argv, .order = order, .limit = limit};
    return children_start(n->children, &c, e);
}

/* A GPU that hangs is named by the helper itself, which must happen before its group's time is over. */
#define NVML_STEP_MS 8000

static struct helper_order helper_order(const struct probe_node *n, enum helper_role role, unsigned gpu)
{
    unsigned at_rest_ms = role == HELPER_NVML ? NVML_STEP_MS : 0; /* the helper's own for the others */
    return (struct helper_order){.role = role,
                                 .init_ms = at_rest_ms,
                                 .step_ms = at_rest_ms,
                                 .gpu = gpu,
                                 .rail = gpu,
                                 .expect = n->conf.gpus_expected,
                                 .purelib = n->conf.purelib,
                                 .nccl = n->conf.nccl_lib,
                                 .cuda = n->conf.cuda_lib,
                                 .quick = n->conf.quick};
}

static int node_start_job(struct probe_node *n, const struct node_job *job, struct el_err *e)
{
    if (job->helper) {
        struct helper_order o = helper_order(n, job->role, job->gpu);
        return start_helper(n, &o, "the GPU helper", job->limit, e);
    }
    struct probe_wire order;
    wire_init(&order, WIRE_CHECK_ORDER);
    order.u.check_order.group = check_groups[job->group].name;
    order.u.check_order.ckpt_dir = n->conf.ckpt_dir ? n->conf.ckpt_dir : "";
    order.u.check_order.tmp_dir = n->conf.tmp_dir ? n->conf.tmp_dir : "";
    order.u.check_order.quick = n->conf.quick;
    return start_role(n, ROLE_CHECK, &order, job->limit, e);
}

static const char *words_of(const struct node_job *job)
{
    static const char *const words[] = {[HELPER_NVML] = "GPUs, by the driver's library",
                                        [HELPER_BURN] = "GPU arithmetic and memory",
                                        [HELPER_NICLOOP] = "loop through the network cards",
                                        [HELPER_PAIR] = "pair"};
    return job->helper ? words[job->role] : check_groups[job->group].what;
}

/* A loop that joins GPUs says nothing more where one of them does not work: it would hang in its turn. */
static bool is_pointless(const struct probe_node *n, const struct node_job *job)
{
    const struct findings *all = &n->checking.findings;
    for (unsigned i = 0; job->helper && job->role == HELPER_NICLOOP && i < all->n; i++)
        if (all->v[i].state == FINDING_BAD && (all->v[i].check == CHECK_GPU_USABLE || all->v[i].check == CHECK_HANG))
            return true;
    return false;
}

static void node_begin(struct probe_node *n, unsigned at)
{
    struct el_err e = {0};
    if (is_pointless(n, &n->job[at])) {
        struct finding skipped = finding_unchecked(CHECK_GPU_NICLOOP, "", "a GPU of this node does not work");
        note_as_it_is(n, &skipped);
        return;
    }
    if (n->conf.progress)
        n->conf.progress(n->conf.ctx, words_of(&n->job[at]));
    int child = node_start_job(n, &n->job[at], &e);
    if (child >= 0) {
        n->child[child] = (struct use_of){.use = USE_JOB, .at = at};
        n->running++;
        return;
    }
    struct finding f;
    check_crashed(n->job[at].group, -1, -1, &f);
    finding_say(&f, "%s", e.text);
    note_as_it_is(n, &f);
}

/* All children of a phase, then those of the next, then it is told. */
static void node_go_on(struct probe_node *n)
{
    while (n->looking && !n->running) {
        if (n->begun == n->jobs || n->stopped) {
            n->looking = false;
            n->conf.local_done(n->conf.ctx, n->last);
            return;
        }
        n->phase = n->job[n->begun].phase;
        while (n->begun < n->jobs && n->job[n->begun].phase == n->phase)
            node_begin(n, n->begun++);
    }
}

static void node_on_soon(void *ctx)
{
    node_go_on(ctx);
}

void probe_node_local(struct probe_node *n, bool last)
{
    assert(!n->looking);
    n->looking = true;
    n->last = last;
    n->begun = 0;
    n->jobs = node_jobs(&n->conf, last, n->job);
    loop_timer_at(n->soon, loop_clock()); /* no callback before this returns */
}

int probe_node_pair(struct probe_node *n, unsigned rail, const char *id, const char *peer, struct el_err *e)
{
    el_usec limit = probe_node_pair_limit(n->conf.nccl);
    int child;
    assert(rail < PLAN_RAILS_MAX);
    if (n->conf.nccl) {
        struct helper_order o = helper_order(n, HELPER_PAIR, rail);
        o.id = id;
        child = start_helper(n, &o, "the GPU helper", limit, e);
    } else {
        struct probe_wire order;
        node_pair_order(&n->conf, rail, id, peer, &order);
        child = start_role(n, ROLE_PAIR, &order, limit, e);
    }
    if (child < 0)
        return -1;
    n->rail[rail] = (struct node_rail){.failed = false};
    n->child[child] = (struct use_of){.use = USE_RAIL, .at = rail};
    n->rails++;
    return 0;
}

/* --- life --- */

const struct found *probe_node_found(struct probe_node *n)
{
    n->found.findings = n->checking.findings;
    return &n->found;
}

bool probe_node_child(struct probe_node *n, pid_t pid, const struct reap_end *end)
{
    return n && children_reaped(n->children, pid, end);
}

void probe_node_stop(struct probe_node *n)
{
    n->stopped = true;
    children_stop(n->children, -1);
    if (n->looking && !n->running)
        loop_timer_at(n->soon, loop_clock());
}

void probe_node_part(struct probe_node *n, uint32_t rails)
{
    for (unsigned i = 0; i < STAGE_CHILDREN_MAX; i++)
        if (n->child[i].use == USE_RAIL && rails >> n->child[i].at & 1) {
            n->rail[n->child[i].at].parted = true;
            children_stop(n->children, (int)i);
        }
}

unsigned probe_node_running(const struct probe_node *n)
{
    return n->running + n->rails;
}

struct probe_node *probe_node_new(const struct probe_node_conf *conf, struct el_err *e)
{
    struct probe_node *n = calloc(1, sizeof *n);
    if (!n) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    struct children_conf cc = {.loop = conf->loop,
                               .reap = conf->reap,
                               .env = conf->env,
                               .files = conf->files,
                               .line = on_line,
                               .said = on_said,
                               .ended = on_ended,
                               .ctx = n};
    n->conf = *conf;
    n->helper_fd = -1;
    n->checking.conf = *conf->checks;
    n->conf.checks = &n->checking.conf;
    n->soon = loop_timer_new(conf->loop, node_on_soon, n);
    n->children = n->soon ? children_new(&cc, e) : NULL;
    if (n->children)
        return n;
    if (!n->soon)
        el_fail(e, EL_EXIT_OSERR, "out of memory");
    loop_timer_free(n->soon);
    free(n);
    return NULL;
}

void probe_node_free(struct probe_node *n)
{
    if (!n)
        return;
    children_free(n->children);
    loop_timer_free(n->soon);
    if (n->helper_fd >= 0)
        close(n->helper_fd);
    free(n);
}
