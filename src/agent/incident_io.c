/* Failures of several nodes: what this node tells of its own, and the report on all of them if it is to be printed
 * here. */
#include <stdlib.h>
#include <string.h>

#include "coord/job_report.h"
#include "agent/node.h"
#include "agent/say_once.h"
#include "util/ranges.h"
#include "failure/absent.h"
#include "failure/record.h"
#include "sys/proc_sample.h"

struct incidents {
    struct job_report report;
    bool printed; /* a report, of this round: */
    uint64_t number, coord;
    struct el_buf stopped; /* local ranks that elrun stopped in the last attempt */
    struct el_buf missing; /* what STOPPED says of the store */
};

int incident_init(struct node *n, struct el_err *e)
{
    n->incidents = calloc(1, sizeof *n->incidents);
    if (!n->incidents)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    job_report_init(&n->incidents->report);
    n->incidents->stopped = EL_BUF_INIT(NULL, MSG_RANKS_MAX);
    n->incidents->missing = EL_BUF_INIT(NULL, MSG_MISSING_MAX + 1);
    return 0;
}

void incident_free(struct node *n)
{
    if (!n->incidents)
        return;
    job_report_free(&n->incidents->report);
    el_buf_free(&n->incidents->stopped);
    el_buf_free(&n->incidents->missing);
    free(n->incidents);
}

/* --- what this node tells --- */

static bool incident_is_own(const struct node *n, unsigned slot)
{
    const struct worker *w = &n->worker[slot];
    return w->bad && failure_is_own(&w->failure);
}

/* Its evidence was asked for, so it is told in full; or it was told of already. */
static bool is_full(const struct node *n, unsigned slot)
{
    if (slot == n->core.cause_slot && n->core.cause == AGENT_WORKER_FAILED)
        return true;
    for (unsigned i = 0; i < n->evidence_count; i++)
        if (n->evidence[i]->slot == slot)
            return true;
    return false;
}

static void incident_fill(const struct failure *f, struct msg_incident *x)
{
    *x = (struct msg_incident){.local_rank = f->local_rank,
                               .code = f->end == FAILURE_EXIT ? f->code
                                       : failure_was_left(f)  ? 1
                                                              : -1,
                               .signal = f->end == FAILURE_SIGNAL && !failure_was_left(f) ? f->code : -1,
                               .oom = f->by == FAILURE_BY_OOM,
                               .by = record_by_word(f->by),
                               .class = failure_class_text(f->class),
                               .follower = f->follower || (f->hung && !f->odd), /* it waited for somebody */
                               /* whoever knows who had left says more than the other followers */
                               .private_link = f->private_link || (f->follower && f->left),
                               .type = f->found.type};
}

static void tell_full(struct node *n, const struct failure *f, bool silent)
{
    struct el_buf text = EL_BUF_INIT(NULL, 0), document = EL_BUF_INIT(NULL, 0);
    struct msg_incident x;
    incident_fill(f, &x);
    x.silent = silent;
    summary_ending(f, &text);
    if (record_write(f, RECORD_BYTES_MAX, &document) == 0)
        x.document = el_buf_cstr(&document);
    x.text = el_buf_cstr(&text);
    /* Of those that did not come where others waited it does not matter which of them elrun has ended first. */
    membership_incident(n->membership, f->absent && n->scene_at ? n->scene_at : failure_at(f), &x);
    el_buf_free(&text);
    el_buf_free(&document);
}

/* The others of one class, in one message. */
static void tell_rest(struct node *n, enum failure_class class)
{
    struct el_buf ranks = EL_BUF_INIT(NULL, MSG_RANKS_MAX);
    struct el_ranges s = {0};
    const struct failure *first = NULL;
    for (unsigned i = 0; i < n->nproc; i++) {
        const struct failure *f = &n->worker[i].failure;
        if (!incident_is_own(n, i) || is_full(n, i) || f->class != class)
            continue;
        el_ranges_add(&s, &ranks, i);
        first = first ? first : f;
    }
    el_ranges_end(&s, &ranks);
    if (first) {
        struct msg_incident x;
        incident_fill(first, &x);
        x.ranks = el_buf_cstr(&ranks);
        membership_incident(n->membership, first->at, &x);
    }
    el_buf_free(&ranks);
}

/* The time of a collective ran out on another node, none of this one has failed or left, and only this one of it had
 * said nothing; -1: there is none.  Whether it is the only one of the job is known to the coordinator. */
static int incident_find_silent(const struct node *n)
{
    int silent = -1;
    if (n->core.cause != AGENT_HALTED || !membership_is_late(n->membership))
        return -1;
    for (unsigned i = 0; i < n->nproc; i++) {
        const struct worker *w = &n->worker[i];
        if (!w->bad || (failure_is_own(&w->failure) && !w->failure.follower))
            return -1;
        if (!absent_is_silent(&w->failure, NULL))
            continue;
        if (silent >= 0)
            return -1;
        silent = (int)i;
    }
    return silent;
}

/* Here it stays one that elrun stopped. */
static void tell_silent(struct node *n)
{
    struct el_buf scene = EL_BUF_INIT(NULL, 4096);
    int slot = incident_find_silent(n);
    if (slot < 0)
        return;
    struct failure f = n->worker[slot].failure;
    absent_mark(&f, NULL);
    if (n->scene_at)
        proc_sample_text(&scene, "rank", n->scene, n->nproc);
    if (*el_buf_cstr(&scene))
        f.siblings = scene.v;
    tell_full(n, &f, true);
    el_buf_free(&scene);
}

void incident_tell(void *node)
{
    struct node *n = node;
    bool told = n->core.cause == AGENT_WORKER_FAILED; /* one at least, by WORKER_FAILED: what became clear of it */
    for (unsigned i = 0; i < n->nproc; i++)
        if (is_full(n, i) && (incident_is_own(n, i) || (told && i == n->core.cause_slot && n->worker[i].bad)))
            tell_full(n, &n->worker[i].failure, false);
    tell_silent(n);
#define X(name, text, status) tell_rest(n, FAILURE_CLASS_##name);
    FAILURE_CLASS_LIST(X)
#undef X
}

void incident_closed(struct node *n, struct member_event *ev)
{
    struct incidents *k = n->incidents;
    struct el_ranges s = {0};
    k->stopped.len = k->missing.len = 0;
    for (unsigned i = 0; i < n->nproc; i++) {
        ev->incidents |= incident_is_own(n, i);
        if (n->worker[i].bad && !incident_is_own(n, i))
            el_ranges_add(&s, &k->stopped, i);
    }
    ev->incidents |= incident_find_silent(n) >= 0;
    el_ranges_end(&s, &k->stopped);
    const char *missing = el_buf_cstr(&n->missing);
    for (size_t len; (len = strcspn(missing, "\n")) > 0; missing += len + (missing[len] == '\n'))
        if (el_buf_printf(&k->missing, "%s%.*s", k->missing.len ? "\n" : "", (int)len, missing))
            break; /* whole lines */
    ev->ranks = el_buf_cstr(&k->stopped);
    ev->missing = el_buf_cstr(&k->missing);
}

/* --- the report on all nodes --- */

static void print(struct node *n)
{
    struct job_report *j = &n->incidents->report;
    struct failure_report r = job_report_view(j);
    r.script = n->conf->script;
    r.log_dir = report_logs(n);
    j->job.log_host = n->host;
    j->job.log_node = (unsigned)membership_world(n->membership)->group_rank;
    report_print(n, &r);
}

void incident_report(void *node, const struct msg *m)
{
    struct node *n = node;
    struct incidents *k = n->incidents;
    if (!job_report_take(&k->report, m))
        return;
    bool again = k->printed && k->number == k->report.number && k->coord == k->report.coord;
    k->printed = true;
    k->number = k->report.number;
    k->coord = k->report.coord;
    if (!again)
        print(n);
}

bool incident_printed_before(const struct node *n)
{
    return n->incidents && n->incidents->printed && n->incidents->number + 1 == membership_world(n->membership)->number;
}

bool incident_is_printed(const struct node *n)
{
    return n->incidents && n->incidents->printed && n->incidents->number == membership_world(n->membership)->number;
}

bool incident_cut(const struct node *n, char *line)
{
    const struct incidents *k = n->incidents;
    bool left = true;
    if (k->number != k->report.number || k->report.open) /* a newer one is on its way */
        return true;
    for (unsigned i = 0; i < k->report.n && left; i++) {
        const struct failure *f = k->report.failures[i];
        struct el_buf told = EL_BUF_INIT(NULL, 0);
        el_buf_printf(&told, "rank %u on %s failed: ", f->rank, k->report.record[i]->host);
        summary_ending(f, &told);
        left = say_once_cut(line, el_buf_cstr(&told), true);
        el_buf_free(&told);
    }
    return left;
}
