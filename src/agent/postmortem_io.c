/* What others than a failed worker say of its end: its siblings' state at that moment, the kernel's log, its core. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/node.h"
#include "sys/corefile.h"
#include "sys/kmsg.h"
#include "sys/proc_sample.h"

/* For the look before the first signal, in the processor's time, of which it takes a quarter of what the siblings'
 * signal may take; and in all, on a host where this process hardly gets one. */
#define PROC_SAMPLE_TIME     500 /* us */
#define PROC_SAMPLE_TIME_MAX EL_MS(10)
#define SIGHT_DELAY                                                                                                    \
    EL_MS(50) /* after the start of the last worker their files in /proc are opened: then it delays nobody */
#define SIGHT_MAX      64        /* workers: with more of them descriptors would be short */
#define STUBBORN_TIME  EL_MS(20) /* for the look before SIGKILL */
#define STUBBORN_RANKS 4         /* whose threads are told */
#define CORE_LINE_MAX  (COREFILE_PATH_MAX + 128)

/* Owns all that its thread uses: a folder of cores on a dead file system may keep it beyond its attempt. */
struct postmortem_job {
    struct node *node; /* NULL: nobody waits for it any more */
    struct pool_job job;
    bool reading;
    int kmsg_fd; /* -1 = none */
    struct kmsg_log log;
    char host[256], cwd[PATH_MAX];
    unsigned cores;
    struct postmortem_core {
        unsigned slot;
        int pid, signal;
        int64_t started_wall_usec;
        char line[CORE_LINE_MAX];
    } core[NODE_EVIDENCE_MAX];
};

static void close_sight(struct node *n)
{
    loop_timer_at(n->sight_timer, EL_NEVER);
    for (unsigned i = 0; i < n->nproc; i++)
        proc_sample_close(&n->sight[i]);
}

static void on_sight(void *ctx)
{
    struct node *n = ctx;
    for (unsigned i = 0; i < n->nproc; i++)
        if (reap_pid(n->reap, i) && n->sight[i].stat_fd < 0)
            proc_sample_open(&n->sight[i], "/proc", reap_pid(n->reap, i));
}

int postmortem_init(struct node *n, struct el_err *e)
{
    n->kmsg_fd = kmsg_open("/dev/kmsg");
    n->scene = calloc(n->nproc, sizeof *n->scene);
    n->sight = calloc(n->nproc, sizeof *n->sight);
    n->sight_timer = loop_timer_new(n->loop, on_sight, n);
    if (!n->scene || !n->sight || !n->sight_timer)
        return el_fail(e, EL_EXIT_OSERR, "out of memory for %u workers", n->nproc);
    for (unsigned i = 0; i < n->nproc; i++)
        n->sight[i] = (struct proc_sample_source){-1, -1};
    return 0;
}

static void postmortem_let_go(struct node *n)
{
    struct postmortem_job *job = n->witness;
    n->witness = NULL;
    if (!job)
        return;
    job->node = NULL;
    if (!job->reading)
        free(job);
}

void postmortem_free(struct node *n)
{
    free(n->witness); /* the pool is done with it, or never comes back to it */
    if (n->sight && n->sight_timer)
        close_sight(n);
    loop_timer_free(n->sight_timer);
    free(n->sight);
    free(n->scene);
    if (n->kmsg_fd >= 0)
        close(n->kmsg_fd);
}

void postmortem_attempt(struct node *n)
{
    postmortem_let_go(n);
    close_sight(n);
    n->scene_at = 0;
    if (n->kmsg_fd >= 0)
        kmsg_skip(n->kmsg_fd);
}

void postmortem_started(struct node *n)
{
    if (n->nproc > 1 && n->nproc <= SIGHT_MAX)
        loop_timer_at(n->sight_timer, loop_clock() + SIGHT_DELAY);
}

/* --- the siblings --- */

static el_usec processor_clock(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return EL_SEC((el_usec)t.tv_sec) + (el_usec)t.tv_nsec / 1000;
}

static void postmortem_look(struct node *n, struct proc_sample_one *to, el_usec processor, el_usec deadline)
{
    el_usec until = processor_clock() + processor;
    for (unsigned i = 0; i < n->nproc; i++) {
        to[i] = (struct proc_sample_one){.id = workers_rank(n, i), .doing = PROC_SAMPLE_UNSEEN};
        if (!reap_pid(n->reap, i) || n->worker[i].ended || processor_clock() >= until || loop_clock() >= deadline)
            continue;
        if (n->sight[i].stat_fd >= 0)
            proc_sample_look_open(&to[i], &n->sight[i]);
        else
            proc_sample_look(&to[i], "/proc", reap_pid(n->reap, i));
    }
}

/* Of those that have had a signal and a grace: what holds them?  Their threads, and whether they have used a processor
 * all the time. */
static void say_stubborn(struct node *n)
{
    static struct proc_sample_one thread[PROC_SAMPLE_THREADS_MAX]; /* the loop's thread only */
    struct proc_sample_one *now = calloc(n->nproc, sizeof *now);
    el_usec clock = loop_clock(), deadline = clock + STUBBORN_TIME, since = clock - n->scene_at;
    struct el_buf text = EL_BUF_INIT(NULL, 4096);
    if (now)
        postmortem_look(n, now, STUBBORN_TIME, deadline);
    if (now)
        proc_sample_text(&text, "rank", now, n->nproc);
    if (text.len)
        el_log(EL_WARN, "still there %.1f s after the first signal, and killed now: %s", (double)since / 1e6,
               el_buf_cstr(&text));
    for (unsigned i = 0, told = 0; now && i < n->nproc && told < STUBBORN_RANKS; i++) {
        if (now[i].doing >= PROC_SAMPLE_ENDED)
            continue;
        told++;
        text.len = 0;
        proc_sample_text(
            &text, "thread", thread,
            proc_sample_look_threads(thread, PROC_SAMPLE_THREADS_MAX, "/proc", reap_pid(n->reap, i), deadline));
        if (n->scene[i].doing >= PROC_SAMPLE_ENDED) /* unseen: how much is not known */
            el_log(EL_INFO, "rank %u: %s", now[i].id, el_buf_cstr(&text));
        else
            el_log(EL_INFO, "rank %u has used %u %% of a processor since; %s", now[i].id,
                   proc_sample_busy_percent(&n->scene[i], &now[i], since, sysconf(_SC_CLK_TCK)), el_buf_cstr(&text));
    }
    el_buf_free(&text);
    free(now);
}

/* Before the first signal, because a signal ends what it finds and SIGCONT wakes what stood still; in the loop's
 * thread, because nothing else would be in time.  8 siblings: 0.06 ms where their files are open, else 0.4 ms
 * (measured). */
void postmortem_before_signal(struct node *n, int signal)
{
    if (n->scene_at) {
        if (signal == SIGKILL && loop_clock() > n->scene_at + STUBBORN_TIME)
            say_stubborn(n);
        return;
    }
    n->scene_at = loop_clock();
    postmortem_look(n, n->scene, PROC_SAMPLE_TIME, n->scene_at + PROC_SAMPLE_TIME_MAX);
    n->scene_new = true;
}

void postmortem_after_signal(struct node *n)
{
    if (!n->scene_new)
        return;
    n->scene_new = false;
    struct el_buf text = EL_BUF_INIT(NULL, 4096);
    proc_sample_text(&text, "rank", n->scene, n->nproc);
    if (text.len && n->core.cause == AGENT_WORKER_FAILED) {
        struct failure *f = &n->worker[n->core.cause_slot].failure;
        failure_set_line(f, &f->siblings, el_buf_cstr(&text), NULL);
    } else if (n->core.cause == AGENT_HALTED && proc_sample_is_notable(n->scene, n->nproc)) {
        el_log(EL_INFO, "when the order to stop came: %s", el_buf_cstr(&text)); /* what the others waited for? */
    }
    el_buf_free(&text);
}

/* --- kernel log and cores --- */

static void postmortem_work(void *ctx)
{
    struct postmortem_job *job = ctx;
    if (job->kmsg_fd >= 0)
        kmsg_read(job->kmsg_fd, &job->log);
    for (unsigned i = 0; i < job->cores; i++) {
        struct postmortem_core *c = &job->core[i];
        const struct corefile_facts facts = {
            .pid = c->pid, .pid_global = job->log.pids_ours, .signal = c->signal, .host = job->host, .cwd = job->cwd};
        corefile_describe("/proc", &facts, c->started_wall_usec, c->line, sizeof c->line);
    }
}

static void postmortem_done(void *ctx)
{
    struct postmortem_job *job = ctx;
    job->reading = false;
    if (job->node)
        report_drained(job->node);
    else
        free(job);
}

static void add_core(struct postmortem_job *job, const struct node *n, unsigned slot)
{
    const struct failure *f = &n->worker[slot].failure;
    if (!f->core_dumped || job->cores == NODE_EVIDENCE_MAX)
        return;
    job->core[job->cores++] =
        (struct postmortem_core){.slot = slot,
                                 .pid = f->pid,
                                 .signal = f->code,
                                 .started_wall_usec = f->wall_usec - (int64_t)f->elapsed - (int64_t)EL_SEC(1)};
}

void postmortem_collect(struct node *n)
{
    unsigned failed = 0;
    postmortem_let_go(n);
    close_sight(n);
    struct postmortem_job *job = calloc(1, sizeof *job);
    if (!job)
        return; /* the exit status is known without it */
    for (unsigned i = 0; i < n->nproc; i++) {
        if (!n->worker[i].bad || report_was_signalled(n, i))
            continue;
        failed++;
        add_core(job, n, i);
    }
    n->witness = job;
    job->node = n;
    job->kmsg_fd = n->kmsg_fd;
    if (!failed || (job->kmsg_fd < 0 && !job->cores))
        return;
    snprintf(job->host, sizeof job->host, "%s", n->host);
    if (job->cores && !getcwd(job->cwd, sizeof job->cwd))
        job->cwd[0] = 0;
    job->job = (struct pool_job){.work = postmortem_work, .done = postmortem_done, .ctx = job};
    job->reading = pool_run(n->pool, &job->job, NULL) == 0;
}

bool postmortem_complete(const struct node *n)
{
    return !n->witness || !n->witness->reading;
}

void postmortem_tell(struct node *n, int64_t oom_kills)
{
    struct postmortem_job *job = n->witness;
    if (!job || job->reading)
        return; /* too late: its thread still writes there */
    if (oom_kills > kmsg_count(&job->log, KMSG_OOM))
        job->log.whole = false; /* the counter knows more than the log */
    for (unsigned i = 0; i < n->nproc; i++) {
        struct failure *f = &n->worker[i].failure;
        bool own = !report_was_signalled(n, i) || kmsg_of(&job->log, KMSG_OOM, f->pid);
        if (n->worker[i].bad && own)
            failure_add_kernel(f, &job->log, NULL);
    }
    for (unsigned i = 0; i < job->cores; i++) {
        struct failure *f = &n->worker[job->core[i].slot].failure;
        failure_set_line(f, &f->core, job->core[i].line, NULL);
    }
}
