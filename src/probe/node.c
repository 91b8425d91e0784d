#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probe/node_private.h"
#include "util/array.h"

/* Until a child must have ended; the helper ends itself before that, unless the driver does not let it. */
#define HELPER_MEETS EL_SEC(60) /* child.h: init_ms */
#define HELPER_STEP  EL_SEC(20) /* and step_ms */
#define HELPER_STEPS 6
#define LEEWAY       EL_SEC(10)
#define TCP_LIMIT    EL_SEC(45)
#define TCP_MEETS    EL_SEC(20)
#define TCP_CONNECTS EL_SEC(8) /* Linux tries again after 1, 3 and 7 s */
#define TCP_QUIET    EL_SEC(10)

/* --- which children --- */

static void node_add(struct node_job *jobs, unsigned *n, struct node_job job)
{
    assert(*n < NODE_JOBS_MAX);
    jobs[(*n)++] = job;
}

static unsigned add_gpus(const struct probe_node_conf *conf, bool last, struct node_job *jobs, unsigned n,
                         unsigned *phase)
{
    unsigned gpus = conf->gpus < GPU_JOBS_MAX ? conf->gpus : GPU_JOBS_MAX;
    struct node_job job = {.helper = true, .group = CHECK_GROUP_GPU, .role = HELPER_NVML};
    job.limit = EL_SEC(check_groups[CHECK_GROUP_GPU].limit_s);
    node_add(jobs, &n, job);
    if (last || !gpus)
        return n;
    job.role = HELPER_BURN;
    job.limit = HELPER_MEETS + HELPER_STEPS * HELPER_STEP + LEEWAY;
    for (job.gpu = 0; job.gpu < gpus; job.gpu++) {
        *phase += job.gpu % GPU_BESIDE == 0;
        job.phase = *phase;
        node_add(jobs, &n, job);
    }
    if (gpus < 2)
        return n;
    job.role = HELPER_NICLOOP;
    job.gpu = 0;
    job.phase = ++*phase;
    job.limit = HELPER_MEETS + HELPER_STEPS * HELPER_STEP + LEEWAY;
    node_add(jobs, &n, job);
    return n;
}

unsigned node_jobs(const struct probe_node_conf *conf, bool last, struct node_job jobs[NODE_JOBS_MAX])
{
    unsigned n = 0, phase = 0;
    for (unsigned g = 0; g < CHECK_GROUPS; g++) {
        const struct check_group_row *row = &check_groups[g];
        bool wanted = row->limit_s && check_conf_group(conf->checks, (enum check_group)g) && (!last || row->again);
        if (!wanted || g == CHECK_GROUP_GPU || row->alone)
            continue;
        node_add(jobs, &n, (struct node_job){.group = (enum check_group)g, .limit = EL_SEC(row->limit_s)});
    }
    if (conf->nccl && check_conf_group(conf->checks, CHECK_GROUP_GPU))
        n = add_gpus(conf, last, jobs, n, &phase);
    for (unsigned g = 0; g < CHECK_GROUPS; g++) {
        const struct check_group_row *row = &check_groups[g];
        if (g == CHECK_GROUP_GPU || !row->alone || !check_conf_group(conf->checks, (enum check_group)g) ||
            (last && !row->again))
            continue;
        phase++;
        node_add(jobs, &n,
                 (struct node_job){.phase = phase, .group = (enum check_group)g, .limit = EL_SEC(row->limit_s)});
    }
    return n;
}

/* --- what is said of errors --- */

/* Words of child.h's FAULT_LIST and of pair_tcp_io.c that say nothing against a node. */
static bool is_nobodys_fault(const char *class)
{
    static const char *const words[] = {"mismatch", "missing", "config",   "busy", "stalled",
                                        "slow",     "system",  "internal", "none"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp(class, words[i]) == 0)
            return true;
    return false;
}

/* A process that would have run, but a quota did not let it. */
static bool starved(const struct child_end *end, uint64_t cpu_quota_millis)
{
    return end->state == 'R' && cpu_quota_millis != UINT64_MAX;
}

/* Stopped when it was looked at, or whoever looks was itself. */
static bool stood_still(const struct child_end *end)
{
    return end->slept || end->state == 'T' || end->state == 't';
}

static enum check check_of(const struct node_job *job)
{
    return job->role == HELPER_NVML      ? CHECK_GPU_NVML
           : job->role == HELPER_NICLOOP ? CHECK_GPU_NICLOOP
                                         : CHECK_GPU_USABLE;
}

/* Calls of the driver have a name and a number, but no words. */
static const char *error_text(const struct wire_err *err, char to[128])
{
    if (err->text[0])
        return err->text;
    if (err->name[0])
        snprintf(to, 128, "%.40s: %.60s (%d)", err->stage, err->name, (int)err->code);
    else
        snprintf(to, 128, "%.40s", err->stage);
    return to;
}

bool node_error_finding(const struct node_job *job, const struct wire_err *err, struct finding *f)
{
    char on[16] = "", words[128];
    if (!job->helper)
        return false;
    if (job->role == HELPER_BURN)
        snprintf(on, sizeof on, "GPU %u", job->gpu);
    /* What to do depends on the error more than on the check. */
    *f = finding_unchecked(check_of(job), on, "%s%s%s", error_text(err, words),
                           err->advice && err->advice[0] ? "; " : "", err->advice ? err->advice : "");
    /* A node on which no program can use a GPU is no node for a job, whatever the reason; one whose versions or
     * settings do not go together has nothing broken. */
    bool usable = job->role == HELPER_NICLOOP;
    bool missing = strcmp(err->class, "missing") == 0 || strcmp(err->class, "busy") == 0;
    f->state = is_nobodys_fault(err->class) && (usable || !missing) ? FINDING_UNDECIDED : FINDING_BAD;
    return true;
}

/* Which of its helpers: "GPU 3: the check was ended by signal 11". */
static void say_helper(const struct node_job *job, struct finding *f)
{
    char said[sizeof f->text];
    snprintf(said, sizeof said, "%s", f->text);
    if (job->role == HELPER_BURN)
        snprintf(f->on, sizeof f->on, "GPU %u", job->gpu);
    else
        finding_say(f, "%s: %s", job->role == HELPER_NVML ? "NVML" : "the loop through the network cards", said);
}

bool node_end_finding(const struct node_job *job, const struct child_end *end, bool said_why, uint64_t cpu_quota_millis,
                      struct finding *f)
{
    switch (end->outcome) {
    case STAGE_DONE:
    case STAGE_STOPPED: return false;
    case STAGE_TIMEOUT:
        check_hung(job->group, (double)end->elapsed / 1e6, end->state, cpu_quota_millis, f);
        return true;
    case STAGE_STUCK:
        check_hung(job->group, (double)end->elapsed / 1e6, 'D', UINT64_MAX, f);
        finding_say(f, "cannot be killed: %s", end->text);
        return true;
    case STAGE_FAILED:
        if (said_why || end->said_end) /* that something is wrong, which is a finding already */
            return false;
        break;
    case STAGE_SILENT:
    case STAGE_CRASHED: break;
    }
    check_crashed(job->group, end->signal, end->code, f);
    if (job->helper)
        say_helper(job, f);
    if (end->text[0])
        finding_say(f, "%s", end->text);
    return true;
}

/* --- pairs --- */

void node_pair_order(const struct probe_node_conf *conf, unsigned rail, const char *id, const char *peer,
                     struct probe_wire *out)
{
    el_usec spend = conf->pair_spend ? conf->pair_spend : conf->quick ? EL_SEC(1) : EL_SEC(5);
    const char *bound = probe_rails_name(conf->rails, rail), *local = bound ? bound : conf->local;
    wire_init(out, WIRE_PAIR_ORDER);
    out->u.pair_order = (struct wire_pair_order){
        .guest = id != NULL,
        .id = id ? id : "",
        .local = local ? local : "",
        .peer = peer,
        .rail = rail,
        .latency_count = conf->quick ? 50 : 200,
        .bytes = conf->pair_bytes ? conf->pair_bytes
                 : conf->quick    ? 16u << 20
                                  : 64u << 20,
        .count = conf->quick ? 5 : 20,
        .meet_ms = (id ? TCP_CONNECTS : TCP_MEETS) / 1000, /* the host end waits for the guest's agent, too */
        .quiet_ms = TCP_QUIET / 1000,
        .spend_ms = spend / 1000,
        .limit_ms = TCP_LIMIT / 1000,
    };
}

el_usec probe_node_pair_limit(bool nccl)
{
    return nccl ? HELPER_MEETS + HELPER_STEPS * HELPER_STEP + LEEWAY : TCP_LIMIT + LEEWAY;
}

/* Of a latency over TCP the least counts, which is the way's own: the median is that of the two hosts' schedulers,
 * where other programs want their processors, too.  How far the measurement went up and down is told beside it. */
static void node_take_metric(struct rail_result *r, const struct wire_m *m)
{
    enum metric metric = metric_find(m->name, strlen(m->name));
    if (metric >= METRIC_PAIR_COUNT || isnan(m->median))
        return;
    uint32_t median = metric_milli(m->median), p95 = isnan(m->p95) ? median : metric_milli(m->p95);
    r->value[metric] = metric == METRIC_TCP_LAT && !isnan(m->min) ? metric_milli(m->min) : median;
    r->spread[metric] = p95 > median ? p95 - median : median - p95;
}

void node_rail_take(struct node_rail *r, const struct probe_wire *w)
{
    if (w->type == WIRE_M)
        node_take_metric(&r->result, &w->u.m);
    char words[128];
    if (w->type != WIRE_ERR || r->failed)
        return;
    r->failed = true;
    wire_text(r->class, sizeof r->class, w->u.err.class);
    wire_text(r->result.reason, sizeof r->result.reason, error_text(&w->u.err, words));
}

void node_rail_end(struct node_rail *r, const struct child_end *end, uint64_t cpu_quota_millis)
{
    struct rail_result *out = &r->result;
    size_t room = sizeof out->reason;
    if (r->failed) {
        out->outcome = is_nobodys_fault(r->class) ? RAIL_BROKEN : RAIL_FAILED;
        if (end->outcome == STAGE_STUCK)
            out->outcome = RAIL_FAILED;
        return;
    }
    double after = (double)end->elapsed / 1e6;
    switch (end->outcome) {
    case STAGE_DONE: out->outcome = RAIL_OK; return;
    case STAGE_STOPPED:
        /* The reason is the other end's, unless this one could not run. */
        out->outcome = r->parted && !stood_still(end) && !starved(end, cpu_quota_millis) ? RAIL_FAILED : RAIL_BROKEN;
        if (r->parted && out->outcome == RAIL_BROKEN)
            snprintf(out->reason, room, "this end stood still");
        return;
    case STAGE_TIMEOUT:
        out->outcome = starved(end, cpu_quota_millis) ? RAIL_BROKEN : RAIL_FAILED;
        snprintf(out->reason, room, "this end did not come to an end within %.0f s%s", after,
                 out->outcome == RAIL_BROKEN ? ": the processor quota did not let it run" : "");
        return;
    case STAGE_STUCK:
        out->outcome = RAIL_FAILED;
        snprintf(out->reason, room, "this end cannot be killed: %.120s", end->text);
        return;
    case STAGE_CRASHED:
        /* SIGKILL that was not ours: out of memory, or somebody; else the driver or a library. */
        out->outcome = end->signal == 9 ? RAIL_BROKEN : RAIL_FAILED;
        snprintf(out->reason, room, "this end was ended by signal %d%s%.120s", end->signal, end->text[0] ? ": " : "",
                 end->text);
        return;
    case STAGE_FAILED:
    case STAGE_SILENT: break;
    }
    out->outcome = RAIL_BROKEN;
    snprintf(out->reason, room, "this end stopped without a result (status %d)%s%.120s", end->code,
             end->text[0] ? ": " : "", end->text);
}
