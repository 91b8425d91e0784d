/* Looks whether the workers stand still (hang.h), and what they do then: evidence first, then the verdict. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/hang.h"
#include "agent/node.h"
#include "sys/proc_sample.h"
#include "sys/usage.h"

#define CLOSE_LOOK_TIME EL_SEC(2)
#define CLOSE_LOOK_MAX  16u /* workers whose threads are told one by one */

/* One look.  The thread owns it while it runs: a file system that stands still may keep it beyond the node. */
struct hang_look {
    struct hang_watch *watch; /* NULL: nobody waits for it any more */
    struct pool_job job;
    unsigned n, attempt;
    pid_t *pid;
    uint64_t *cpu_usec, *file_bytes;
    bool close; /* a close look, for the report: what everybody waits for */
    struct proc_sample_one *scene;
    struct el_buf threads;     /* lines */
    char (*path)[2][PATH_MAX]; /* log files that workers write by themselves; "" = none */
};

struct hang_watch {
    struct node *node;
    struct hang hang;
    struct loop_timer *timer;
    struct hang_look *look;
    bool looking;
};

static void hang_look_free(struct hang_look *l)
{
    if (!l)
        return;
    free(l->pid);
    free(l->cpu_usec);
    free(l->file_bytes);
    free(l->scene);
    el_buf_free(&l->threads);
    free(l->path);
    free(l);
}

static struct hang_look *look_new(struct hang_watch *w, unsigned n)
{
    struct hang_look *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    *l = (struct hang_look){.watch = w, .n = n};
    l->pid = calloc(n, sizeof *l->pid);
    l->cpu_usec = calloc(n, sizeof *l->cpu_usec);
    l->file_bytes = calloc(n, sizeof *l->file_bytes);
    l->path = calloc(n, sizeof *l->path);
    l->scene = calloc(n, sizeof *l->scene);
    l->threads = EL_BUF_INIT(NULL, 64 * 1024);
    if (l->pid && l->cpu_usec && l->file_bytes && l->path && l->scene)
        return l;
    hang_look_free(l);
    return NULL;
}

static void inspect_close(struct hang_look *l)
{
    struct proc_sample_one thread[PROC_SAMPLE_THREADS_MAX];
    el_usec until = loop_clock() + CLOSE_LOOK_TIME;
    for (unsigned i = 0; i < l->n; i++)
        if (l->pid[i])
            proc_sample_look(&l->scene[i], "/proc", l->pid[i]);
    for (unsigned i = 0; i < l->n && i < CLOSE_LOOK_MAX; i++) {
        unsigned n =
            l->pid[i] ? proc_sample_look_threads(thread, PROC_SAMPLE_THREADS_MAX, "/proc", l->pid[i], until) : 0;
        if (n < 2)
            continue; /* the line about the worker says it */
        el_buf_printf(&l->threads, "rank %u: ", l->scene[i].id);
        proc_sample_text(&l->threads, "thread", thread, n);
        el_buf_puts(&l->threads, "\n");
    }
}

static void look_work(void *ctx)
{
    struct hang_look *l = ctx;
    if (l->close) {
        inspect_close(l);
        return;
    }
    usage_sessions(l->pid, l->n, l->cpu_usec);
    for (unsigned i = 0; i < l->n; i++) {
        struct stat st;
        l->file_bytes[i] = 0;
        for (unsigned k = 0; k < 2; k++)
            if (*l->path[i][k] && stat(l->path[i][k], &st) == 0)
                l->file_bytes[i] += (uint64_t)st.st_size;
    }
}

/* What stands in the way of the others, as far as the kernel tells: a worker that is stopped or held.  -1: it does not.
 */
static int odd_one(const struct node *n, const struct hang_look *l)
{
    for (unsigned i = 0; i < l->n; i++)
        if (l->pid[i] && l->pid[i] == reap_pid(n->reap, i) && proc_sample_is_notable(&l->scene[i], 1))
            return (int)i;
    return -1;
}

static void say_verdict(struct node *n, struct hang_look *l, const char *scene)
{
    char took[32];
    el_log(EL_ERROR,
           "hung: no output and no processor time from %s for %s; %s; SIGABRT now, so that the stacks are printed",
           n->core.group.up == 1 ? "the worker" : "any worker",
           goodput_duration(n->conf->hang_timeout, took, sizeof took), scene);
    const char *at = el_buf_cstr(&l->threads);
    for (size_t len; (len = strcspn(at, "\n")) > 0; at += len + (at[len] == '\n'))
        el_log(EL_INFO, "hung: %.*s", (int)len, at);
}

static void verdict(struct hang_watch *w, struct hang_look *l)
{
    struct node *n = w->node;
    int odd = odd_one(n, l);
    int slot = odd;
    struct el_buf scene = EL_BUF_INIT(NULL, 4096);
    proc_sample_text(&scene, "rank", l->scene, l->n);
    say_verdict(n, l, el_buf_cstr(&scene));
    for (unsigned i = 0; i < n->nproc; i++) {
        bool up = l->pid[i] && reap_pid(n->reap, i) == l->pid[i];
        n->worker[i].failure.hung = up;
        n->worker[i].failure.odd = up && (int)i == odd;
        if (up)
            failure_set_line(&n->worker[i].failure, &n->worker[i].failure.siblings, el_buf_cstr(&scene), NULL);
        if (up && slot < 0)
            slot = (int)i;
    }
    el_buf_free(&scene);
    hang_end(&w->hang);
    node_feed(n, &(struct agent_event){.type = AGENT_EV_HUNG, .slot = slot < 0 ? 0 : (unsigned)slot});
}

static void hang_io_judge(struct hang_watch *w, const struct hang_look *l)
{
    struct node *n = w->node;
    el_usec now = loop_clock();
    for (unsigned i = 0; i < n->nproc; i++) {
        bool held;
        uint64_t bytes = output_read_bytes(n->output, i, &held);
        pid_t pid = reap_pid(n->reap, i);
        if (!pid)
            hang_gone(&w->hang, i, now);
        else if (pid == l->pid[i]) /* a worker that waits for our console is alive: no two looks are alike */
            hang_saw(&w->hang, i, bytes + l->file_bytes[i] + (held ? now : 0), l->cpu_usec[i], now);
    }
}

static void hang_looked(void *ctx);

static void hang_look(struct hang_watch *w, bool close)
{
    struct node *n = w->node;
    struct hang_look *l = w->look;
    struct el_err e = {0};
    size_t len;
    l->close = close;
    l->attempt = n->core.attempts;
    for (unsigned i = 0; i < l->n; i++) {
        l->pid[i] = reap_pid(n->reap, i);
        l->scene[i] = (struct proc_sample_one){.id = workers_rank(n, i), .doing = PROC_SAMPLE_UNSEEN};
        for (int k = 0; k < 2; k++)
            output_kept(n->output, i, k + 1, l->path[i][k], PATH_MAX, NULL, &len);
    }
    l->job = (struct pool_job){.work = look_work, .done = hang_looked, .ctx = l};
    w->looking = pool_run(n->pool, &l->job, &e) == 0;
    if (!w->looking) /* no thread: what nobody looked at does not count */
        hang_begin(&w->hang, loop_clock());
}

static void arm(struct hang_watch *w)
{
    loop_timer_at(w->timer, w->looking ? EL_NEVER : hang_sample_due(&w->hang));
}

static void hang_looked(void *ctx)
{
    struct hang_look *l = ctx;
    struct hang_watch *w = l->watch;
    if (!w) {
        hang_look_free(l);
        return;
    }
    w->looking = false;
    if (!w->hang.watching || l->attempt != w->node->core.attempts)
        arm(w); /* of an attempt that is over */
    else if (l->close)
        verdict(w, l);
    else {
        hang_io_judge(w, l);
        if (hang_judge(&w->hang, loop_clock()))
            hang_look(w, true);
        arm(w);
    }
}

static void hang_on_timer(void *ctx)
{
    struct hang_watch *w = ctx;
    hang_look(w, false);
    arm(w);
}

/* --- from outside --- */

int hang_watch_init(struct node *n, struct el_err *e)
{
    if (!n->conf->hang_timeout)
        return 0;
    struct hang_watch *w = n->hang = calloc(1, sizeof *w);
    if (w) {
        w->node = n;
        w->timer = loop_timer_new(n->loop, hang_on_timer, w);
        w->look = look_new(w, n->nproc);
    }
    if (!w || !w->timer || !w->look || hang_init(&w->hang, n->nproc, n->conf->hang_timeout, NULL) < 0)
        return el_fail(e, EL_EXIT_OSERR, "out of memory for %u workers", n->nproc);
    return 0;
}

void hang_watch_free(struct node *n)
{
    struct hang_watch *w = n->hang;
    if (!w)
        return;
    if (w->looking)
        w->look->watch = NULL; /* its thread comes back to it, or never */
    else
        hang_look_free(w->look);
    loop_timer_free(w->timer);
    hang_free(&w->hang, NULL);
    free(w);
    n->hang = NULL;
}

void hang_watch_begin(struct node *n)
{
    if (!n->hang)
        return;
    hang_begin(&n->hang->hang, loop_clock());
    arm(n->hang);
}

void hang_watch_end(struct node *n)
{
    if (!n->hang)
        return;
    hang_end(&n->hang->hang);
    arm(n->hang);
}
