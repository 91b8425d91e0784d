/* libev lives here and nowhere else.  The loop is our own (ev_loop_new): the default loop of libev reaps every child of
 * the process, which would steal the exit statuses of workers (style.md, section 6). */
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define CACHE_LINE 64
#define LOOP_FDS   4 /* what libev needs at most: epoll, a timer, an eventfd or a pipe */

/* No more than a line of the cache: it is looked at with each event. */
struct loop_fd {
    ev_io io; /* its data: ctx */
    loop_fd_fn *fn;
    struct loop *loop;
};

struct loop_timer {
    ev_timer timer;
    struct loop *loop;
    loop_timer_fn *fn;
    void *ctx;
    el_usec when;
};

struct loop {
    struct ev_loop *ev;
    el_usec now;
    ev_check check;     /* first in each turn: reads the clock */
    ev_prepare prepare; /* last in each turn: the shell's inbox */
    void (*turn_end)(void *ctx);
    void *turn_end_ctx;

    ev_io signal_io;
    int signal_fd;
    loop_signal_fn *signal_fn;
    void *signal_ctx;

    ev_async wake;
    pthread_mutex_t posts_lock;
    struct loop_post *posts, **posts_tail;
};

el_usec loop_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (el_usec)t.tv_sec * 1000000u + (el_usec)t.tv_nsec / 1000u;
}

int64_t loop_wall_usec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

el_usec loop_now(const struct loop *l)
{
    return l->now;
}

static void on_check(struct ev_loop *ev, ev_check *w, int revents)
{
    (void)ev, (void)revents;
    ((struct loop *)w->data)->now = loop_clock();
}

static void on_prepare(struct ev_loop *ev, ev_prepare *w, int revents)
{
    (void)ev, (void)revents;
    struct loop *l = w->data;
    l->turn_end(l->turn_end_ctx);
}

static void on_wake(struct ev_loop *ev, ev_async *w, int revents)
{
    (void)ev, (void)revents;
    struct loop *l = w->data;
    pthread_mutex_lock(&l->posts_lock);
    struct loop_post *list = l->posts;
    l->posts = NULL;
    l->posts_tail = &l->posts;
    pthread_mutex_unlock(&l->posts_lock);
    while (list) {
        struct loop_post *node = list; /* fn may free the node */
        list = node->next;
        node->fn(node->ctx);
    }
}

void loop_post(struct loop *l, struct loop_post *node)
{
    node->next = NULL;
    pthread_mutex_lock(&l->posts_lock);
    *l->posts_tail = node;
    l->posts_tail = &node->next;
    pthread_mutex_unlock(&l->posts_lock);
    ev_async_send(l->ev, &l->wake);
}

/* libev aborts the process where it cannot have a descriptor. */
static bool descriptors_left(void)
{
    int fd[LOOP_FDS], n = 0;
    while (n < LOOP_FDS && (fd[n] = eventfd(0, EFD_CLOEXEC)) >= 0)
        n++;
    int sys = errno;
    for (int i = 0; i < n; i++)
        close(fd[i]);
    errno = sys;
    return n == LOOP_FDS;
}

struct loop *loop_new(struct el_err *e)
{
    errno = 0;
    struct loop *l = descriptors_left() ? calloc(1, sizeof *l) : NULL;
    /* NOENV: LIBEV_FLAGS of the user's shell is none of our business. */
    if (!l || !(l->ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV))) {
        free(l);
        el_fail_sys(e, EL_EXIT_OSERR, errno ? errno : ENOMEM, "event loop");
        return NULL;
    }
    l->signal_fd = -1;
    l->posts_tail = &l->posts;
    l->now = loop_clock();
    pthread_mutex_init(&l->posts_lock, NULL);
    ev_check_init(&l->check, on_check);
    ev_prepare_init(&l->prepare, on_prepare);
    ev_async_init(&l->wake, on_wake);
    ev_set_priority(&l->check, EV_MAXPRI);
    ev_set_priority(&l->prepare, EV_MINPRI);
    l->check.data = l->prepare.data = l->wake.data = l;
    ev_check_start(l->ev, &l->check);
    ev_async_start(l->ev, &l->wake);
    return l;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    if (l->signal_fd >= 0) {
        ev_io_stop(l->ev, &l->signal_io);
        close(l->signal_fd);
    }
    ev_async_stop(l->ev, &l->wake);
    ev_prepare_stop(l->ev, &l->prepare);
    ev_check_stop(l->ev, &l->check);
    ev_loop_destroy(l->ev);
    pthread_mutex_destroy(&l->posts_lock);
    free(l);
}

void loop_run(struct loop *l)
{
    l->now = loop_clock();
    ev_run(l->ev, 0);
}

void loop_stop(struct loop *l)
{
    ev_break(l->ev, EVBREAK_ALL);
}

void loop_at_turn_end(struct loop *l, void (*fn)(void *ctx), void *ctx)
{
    assert(!fn || !l->turn_end);
    l->turn_end = fn;
    l->turn_end_ctx = ctx;
    if (fn)
        ev_prepare_start(l->ev, &l->prepare);
    else
        ev_prepare_stop(l->ev, &l->prepare);
}

/* --- descriptors --- */

static int to_ev(unsigned events)
{
    return (events & LOOP_READ ? EV_READ : 0) | (events & LOOP_WRITE ? EV_WRITE : 0);
}

static void on_io(struct ev_loop *ev, ev_io *io, int revents)
{
    (void)ev;
    const struct loop_fd *w = (struct loop_fd *)io; /* its first field */
    unsigned events = (revents & EV_READ ? LOOP_READ : 0u) | (revents & EV_WRITE ? LOOP_WRITE : 0u);
    w->fn(io->data, events);
}

struct loop_fd *loop_fd_new(struct loop *l, int fd, unsigned events, loop_fd_fn *fn, void *ctx)
{
    assert(fd >= 0 && fn);
    static_assert(sizeof(struct loop_fd) <= CACHE_LINE && offsetof(struct loop_fd, io) == 0, "on_io() and its speed");
    struct loop_fd *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    *w = (struct loop_fd){.loop = l, .fn = fn};
    ev_io_init(&w->io, on_io, fd, to_ev(events));
    w->io.data = ctx;
    if (events)
        ev_io_start(l->ev, &w->io);
    return w;
}

void loop_fd_set(struct loop_fd *w, unsigned events)
{
    int want = to_ev(events);
    if (ev_is_active(&w->io) && (w->io.events & (EV_READ | EV_WRITE)) == want)
        return;
    ev_io_stop(w->loop->ev, &w->io);
    ev_io_set(&w->io, w->io.fd, want);
    if (want)
        ev_io_start(w->loop->ev, &w->io);
}

void loop_fd_free(struct loop_fd *w)
{
    if (!w)
        return;
    ev_io_stop(w->loop->ev, &w->io); /* also clears an event that is pending in this turn */
    free(w);
}

/* --- timers --- */

static void loop_on_timer(struct ev_loop *ev, ev_timer *timer, int revents)
{
    (void)revents;
    struct loop_timer *t = timer->data;
    el_usec now = loop_clock();
    if (now < t->when) { /* libev rounds to its own clock: never early for us */
        ev_timer_set(&t->timer, (double)(t->when - now) / 1e6, 0.);
        ev_timer_start(ev, &t->timer);
        return;
    }
    t->when = EL_NEVER;
    t->fn(t->ctx);
}

struct loop_timer *loop_timer_new(struct loop *l, loop_timer_fn *fn, void *ctx)
{
    struct loop_timer *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->loop = l;
    t->fn = fn;
    t->ctx = ctx;
    t->when = EL_NEVER;
    ev_timer_init(&t->timer, loop_on_timer, 0., 0.);
    t->timer.data = t;
    return t;
}

void loop_timer_at(struct loop_timer *t, el_usec when)
{
    if (when == t->when)
        return;
    ev_timer_stop(t->loop->ev, &t->timer);
    t->when = when;
    if (when == EL_NEVER)
        return;
    /* ev_timer counts from ev_now(), which is as old as this turn.  Update first, look second: if we are preempted in
     * between, the timer comes too early for loop_on_timer() and is armed again, instead of too late. */
    ev_now_update(t->loop->ev);
    el_usec now = loop_clock();
    ev_timer_set(&t->timer, when > now ? (double)(when - now) / 1e6 : 0., 0.);
    ev_timer_start(t->loop->ev, &t->timer);
}

void loop_timer_free(struct loop_timer *t)
{
    if (!t)
        return;
    ev_timer_stop(t->loop->ev, &t->timer);
    free(t);
}

/* --- chores --- */

/* libev calls an idle watcher only where nothing else happens: it is there for the loop not to wait. */
struct loop_chore {
    ev_idle idle;
    ev_prepare prepare;
    struct loop *loop;
    void (*fn)(void *ctx);
    void *ctx;
};

static void on_idle(struct ev_loop *ev, ev_idle *w, int revents)
{
    (void)ev, (void)w, (void)revents;
}

static void on_chore(struct ev_loop *ev, ev_prepare *w, int revents)
{
    (void)ev, (void)revents;
    const struct loop_chore *c = w->data;
    c->fn(c->ctx);
}

struct loop_chore *loop_chore_new(struct loop *l, void (*fn)(void *ctx), void *ctx)
{
    struct loop_chore *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->loop = l;
    c->fn = fn;
    c->ctx = ctx;
    ev_idle_init(&c->idle, on_idle);
    ev_prepare_init(&c->prepare, on_chore);
    c->prepare.data = c;
    return c;
}

void loop_chore_set(struct loop_chore *c, bool on)
{
    if (on == (ev_is_active(&c->prepare) != 0))
        return;
    if (on) {
        ev_idle_start(c->loop->ev, &c->idle);
        ev_prepare_start(c->loop->ev, &c->prepare);
    } else {
        ev_idle_stop(c->loop->ev, &c->idle);
        ev_prepare_stop(c->loop->ev, &c->prepare);
    }
}

void loop_chore_free(struct loop_chore *c)
{
    if (!c)
        return;
    loop_chore_set(c, false);
    free(c);
}

/* --- signals --- */

static void on_signal_fd(struct ev_loop *ev, ev_io *io, int revents)
{
    (void)ev, (void)revents;
    struct loop *l = io->data;
    struct signalfd_siginfo si[16];
    ssize_t n;
    while ((n = read(l->signal_fd, si, sizeof si)) > 0)
        for (size_t i = 0; i < (size_t)n / sizeof si[0]; i++)
            l->signal_fn(l->signal_ctx, &si[i]);
}

int loop_signals(struct loop *l, const sigset_t *set, loop_signal_fn *fn, void *ctx, struct el_err *e)
{
    assert(l->signal_fd < 0);
    int fd = signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "signalfd");
    pthread_sigmask(SIG_BLOCK, set, NULL);
    l->signal_fd = fd;
    l->signal_fn = fn;
    l->signal_ctx = ctx;
    ev_io_init(&l->signal_io, on_signal_fd, fd, EV_READ);
    ev_set_priority(&l->signal_io, EV_MAXPRI - 1); /* signals and children first, as style.md 7.1 orders the inbox */
    l->signal_io.data = l;
    ev_io_start(l->ev, &l->signal_io);
    return 0;
}

#define TEXT_OF(x)  TEXT_OF_(x)
#define TEXT_OF_(x) #x

const char *loop_library_version(void)
{
    return TEXT_OF(EV_VERSION_MAJOR) "." TEXT_OF(EV_VERSION_MINOR);
}
