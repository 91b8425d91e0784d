#include "loop/pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/* getaddrinfo keeps some 64 KiB on the stack; more is only address space. */
#define POOL_STACK_BYTES (256u * 1024u)
#define POOL_THREADS_MAX 64u
/* How long pool_free() lets threads find out that there is nothing more to do. */
#define POOL_GONE EL_MS(50)

struct pool {
    struct loop *loop;
    unsigned pending; /* loop's thread only */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t work, gone;
    struct pool_job *head, **tail;
    unsigned max, made, idle, live, queued;
    bool closed;    /* nobody posts from here on */
    bool abandoned; /* the last thread to leave frees the pool */
    pthread_t id[POOL_THREADS_MAX];
};

static void destroy(struct pool *p)
{
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->gone);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static void pool_on_done(void *ctx)
{
    struct pool_job *job = ctx;
    assert(job->pool->pending > 0);
    job->pool->pending--;
    job->done(job->ctx);
}

static void *run_jobs(void *ctx)
{
    struct pool *p = ctx;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        p->idle++;
        while (!p->head && !p->closed)
            pthread_cond_wait(&p->work, &p->lock);
        p->idle--;
        if (p->closed)
            break;
        struct pool_job *job = p->head;
        p->head = job->next;
        p->queued--;
        if (!p->head)
            p->tail = &p->head;
        pthread_mutex_unlock(&p->lock);
        job->work(job->ctx);
        pthread_mutex_lock(&p->lock);
        /* Under the lock: after pool_free() the loop may be gone. */
        if (!p->closed)
            loop_post(p->loop, &job->post);
    }
    bool last = --p->live == 0, mine = last && p->abandoned;
    pthread_cond_signal(&p->gone);
    pthread_mutex_unlock(&p->lock);
    if (mine)
        destroy(p);
    return NULL;
}

static void init_monotonic(pthread_cond_t *c)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(c, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static struct timespec moment_after(el_usec wait)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t ns = (uint64_t)t.tv_nsec + wait % EL_SEC(1) * 1000;
    t.tv_sec += (time_t)(wait / EL_SEC(1) + ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    return t;
}

struct pool *pool_new(struct loop *l, unsigned threads, struct el_err *e)
{
    assert(threads > 0 && threads <= POOL_THREADS_MAX);
    struct pool *p = calloc(1, sizeof *p);
    if (!p) {
        el_fail_sys(e, EL_EXIT_OSERR, ENOMEM, "thread pool");
        return NULL;
    }
    p->loop = l;
    p->max = threads;
    p->tail = &p->head;
    init_monotonic(&p->work);
    init_monotonic(&p->gone);
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

/* Signals belong to the loop's signalfd: the thread starts with all of them blocked. */
static int start_thread(pthread_t *id, void *(*run)(void *ctx), void *ctx)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, POOL_STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int sys = pthread_create(id, &attr, run, ctx);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return sys;
}

static int make_thread(struct pool *p)
{
    int sys = start_thread(&p->id[p->made], run_jobs, p);
    if (!sys) {
        p->made++;
        p->live++;
    }
    return sys;
}

int pool_run(struct pool *p, struct pool_job *job, struct el_err *e)
{
    assert(job->work && job->done);
    pthread_mutex_lock(&p->lock);
    int sys = p->queued >= p->idle && p->made < p->max ? make_thread(p) : 0;
    if (!p->made) {
        pthread_mutex_unlock(&p->lock);
        return el_fail_sys(e, EL_EXIT_OSERR, sys, "cannot make a thread");
    }
    job->pool = p;
    job->next = NULL;
    job->post = (struct loop_post){.fn = pool_on_done, .ctx = job};
    *p->tail = job;
    p->tail = &job->next;
    p->queued++;
    p->pending++;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    return 0;
}

unsigned pool_pending(const struct pool *p)
{
    return p->pending;
}

bool pool_free(struct pool *p)
{
    if (!p)
        return true;
    struct timespec until = moment_after(POOL_GONE);
    pthread_mutex_lock(&p->lock);
    p->closed = true;
    pthread_cond_broadcast(&p->work);
    while (p->live && pthread_cond_timedwait(&p->gone, &p->lock, &until) != ETIMEDOUT)
        ;
    bool stuck = p->live > 0;
    p->abandoned = stuck;
    for (unsigned i = 0; stuck && i < p->made; i++)
        pthread_detach(p->id[i]);
    pthread_mutex_unlock(&p->lock);
    if (stuck)
        return false;
    for (unsigned i = 0; i < p->made; i++)
        pthread_join(p->id[i], NULL);
    destroy(p);
    return true;
}

/* --- one job, waited for ------------------------------------------------------------------------------------------ */

struct awaited {
    pthread_mutex_t lock; /* of the two flags */
    pthread_cond_t over;
    bool done, left;
    void (*work)(void *ctx);
    void *ctx;
};

static void forget_awaited(struct awaited *a)
{
    pthread_cond_destroy(&a->over);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static void *run_awaited(void *ctx)
{
    struct awaited *a = ctx;
    a->work(a->ctx);
    pthread_mutex_lock(&a->lock);
    a->done = true;
    bool mine = a->left;
    pthread_cond_signal(&a->over);
    pthread_mutex_unlock(&a->lock);
    if (mine)
        forget_awaited(a);
    return NULL;
}

bool pool_await(void (*work)(void *ctx), void *ctx, el_usec limit, bool *made)
{
    pthread_t id;
    struct timespec until = moment_after(limit);
    struct awaited *a = calloc(1, sizeof *a);
    *made = false;
    if (!a)
        return false;
    a->work = work;
    a->ctx = ctx;
    init_monotonic(&a->over);
    pthread_mutex_init(&a->lock, NULL);
    if (start_thread(&id, run_awaited, a)) {
        forget_awaited(a);
        return false;
    }
    *made = true;
    pthread_mutex_lock(&a->lock);
    while (!a->done && pthread_cond_timedwait(&a->over, &a->lock, &until) != ETIMEDOUT)
        ;
    bool done = a->done;
    a->left = !done;
    if (!done)
        pthread_detach(id);
    pthread_mutex_unlock(&a->lock);
    if (!done)
        return false;
    pthread_join(id, NULL);
    forget_awaited(a);
    return true;
}
