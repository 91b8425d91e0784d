#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loop/sink_private.h"

#define SINK_STACK_BYTES (128u * 1024u)
#define SINK_HARD_FACTOR 4u    /* sink_full() at the limit, a put is refused at this many limits */
#define SINK_BLOCK_BYTES 4096u /* small puts to one descriptor share a block of this size */
#define SINK_GONE_MS     50    /* how long sink_free() waits for the writer to notice */

static void tell_error(struct sink *s, int fd, int sys)
{
    for (struct sink_watch *w = s->watches, *next; w; w = next) {
        next = w->next;
        if (w->error)
            w->error(w->ctx, fd, sys);
    }
}

static void tell_room(struct sink *s)
{
    for (struct sink_watch *w = s->watches, *next; w; w = next) {
        next = w->next;
        if (w->room)
            w->room(w->ctx);
    }
}

static void tell_flushed(struct sink *s, size_t left)
{
    void (*fn)(void *, size_t) = s->flushed;
    s->flushed = NULL;
    loop_timer_at(s->timer, EL_NEVER);
    pthread_mutex_lock(&s->lock);
    s->want_flushed = false;
    pthread_mutex_unlock(&s->lock);
    if (fn)
        fn(s->flushed_ctx, left);
}

static void on_post(void *ctx)
{
    struct sink *s = ctx;
    pthread_mutex_lock(&s->lock);
    s->posted = false;
    if (s->freed) {
        bool live = s->live;
        s->abandoned = live; /* then the writer frees it, if it ever returns */
        pthread_mutex_unlock(&s->lock);
        if (!live)
            sink_destroy(s);
        return;
    }
    struct sink_report *reports = s->reports;
    s->reports = NULL;
    bool room = s->room, empty = s->want_flushed && !s->bytes && !s->closing;
    s->room = false;
    pthread_mutex_unlock(&s->lock);
    while (reports) {
        struct sink_report *r = reports;
        reports = r->next;
        tell_error(s, r->fd, r->sys);
        free(r);
    }
    if (room)
        tell_room(s);
    if (empty)
        tell_flushed(s, 0);
}

static void sink_on_deadline(void *ctx)
{
    struct sink *s = ctx;
    size_t left = sink_queued_bytes(s);
    tell_flushed(s, left);
}

static int start_writer(struct sink *s)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, SINK_STACK_BYTES);
    /* Blocked: SIGPIPE becomes EPIPE, and a background writer of a `tostop` terminal is not stopped. */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int sys = pthread_create(&s->thread, &attr, sink_write_all, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return sys;
}

struct sink *sink_new(struct loop *l, size_t limit_bytes, struct el_err *e)
{
    assert(limit_bytes > 0);
    struct sink *s = calloc(1, sizeof *s);
    if (!s || !(s->timer = loop_timer_new(l, sink_on_deadline, s))) {
        free(s);
        el_fail_sys(e, EL_EXIT_OSERR, ENOMEM, "output queue");
        return NULL;
    }
    s->loop = l;
    s->limit = limit_bytes;
    s->tail = &s->head;
    s->drawn_fd = s->footer_fd = -1;
    s->post = (struct loop_post){.fn = on_post, .ctx = s};
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->work, &monotonic);
    pthread_cond_init(&s->gone, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&s->lock, NULL);
    s->live = true;
    int sys = start_writer(s);
    if (sys) {
        loop_timer_free(s->timer);
        sink_destroy(s);
        el_fail_sys(e, EL_EXIT_OSERR, sys, "cannot make a thread for output");
        return NULL;
    }
    return s;
}

void sink_watch(struct sink *s, struct sink_watch *w)
{
    w->next = s->watches;
    s->watches = w;
}

void sink_unwatch(struct sink *s, struct sink_watch *w)
{
    for (struct sink_watch **at = &s->watches; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            return;
        }
}

/* Locked.  The block whose end takes n more bytes for the descriptor, or NULL. */
static struct block *block_for(struct sink *s, int fd, size_t n, bool may_grow)
{
    struct block *b = s->last;
    if (b && b->fd == fd && !b->close && n <= b->cap - b->len)
        return b;
    size_t cap = may_grow && n < SINK_BLOCK_BYTES ? SINK_BLOCK_BYTES : n;
    b = malloc(sizeof *b + cap);
    if (!b)
        return NULL;
    *b = (struct block){.fd = fd, .cap = cap};
    if (!s->head)
        s->moved_at = loop_now(s->loop);
    *s->tail = b;
    s->tail = &b->next;
    s->last = b;
    s->cost += sizeof *b + cap;
    return b;
}

int sink_put(struct sink *s, int fd, const void *bytes, size_t n)
{
    assert(fd >= 0);
    if (!n)
        return 0;
    pthread_mutex_lock(&s->lock);
    bool fits = n <= s->limit * SINK_HARD_FACTOR && s->cost <= s->limit * SINK_HARD_FACTOR - n;
    struct block *b = fits ? block_for(s, fd, n, true) : NULL;
    if (b) {
        bool sleeping = s->head == b && b->len == 0;
        memcpy(b->bytes + b->len, bytes, n);
        b->len += n;
        s->bytes += n;
        s->full = s->full || s->cost >= s->limit;
        if (sleeping)
            pthread_cond_signal(&s->work);
    }
    pthread_mutex_unlock(&s->lock);
    return b ? 0 : -1;
}

void sink_close(struct sink *s, int fd)
{
    assert(fd >= 0);
    pthread_mutex_lock(&s->lock);
    struct block *b = block_for(s, fd, 0, false);
    if (b) {
        b->close = true;
        s->closing++;
        pthread_cond_signal(&s->work);
    }
    pthread_mutex_unlock(&s->lock);
    /* Without memory for the note it stays open: the process must not close what the writer may be using. */
}

static struct sink *lock_of(const struct sink *s)
{
    struct sink *writable = (struct sink *)(uintptr_t)s;
    pthread_mutex_lock(&writable->lock);
    return writable;
}

bool sink_full(const struct sink *s)
{
    struct sink *w = lock_of(s);
    bool full = w->full;
    pthread_mutex_unlock(&w->lock);
    return full;
}

bool sink_crammed(const struct sink *s, size_t n)
{
    struct sink *w = lock_of(s);
    size_t hard = w->limit * SINK_HARD_FACTOR;
    bool crammed = n > hard || w->cost > hard - n;
    pthread_mutex_unlock(&w->lock);
    return crammed;
}

size_t sink_queued_bytes(const struct sink *s)
{
    struct sink *w = lock_of(s);
    size_t n = w->bytes;
    pthread_mutex_unlock(&w->lock);
    return n;
}

el_usec sink_stalled_since(const struct sink *s)
{
    struct sink *w = lock_of(s);
    el_usec at = w->bytes || w->closing ? w->moved_at : EL_NEVER;
    pthread_mutex_unlock(&w->lock);
    return at;
}

void sink_keep_lines(struct sink *s)
{
    pthread_mutex_lock(&s->lock);
    s->keep_lines = true;
    pthread_mutex_unlock(&s->lock);
}

uint64_t sink_lines(const struct sink *s)
{
    struct sink *w = lock_of(s);
    uint64_t n = w->lines;
    pthread_mutex_unlock(&w->lock);
    return n;
}

void sink_footer(struct sink *s, int fd, const char *text)
{
    size_t n = text ? strnlen(text, SINK_FOOTER_BYTES - 1) : 0;
    pthread_mutex_lock(&s->lock);
    if (strlen(s->footer) != n || (n && memcmp(s->footer, text, n) != 0)) {
        memcpy(s->footer, n ? text : "", n);
        s->footer[n] = 0;
        s->footer_fd = fd;
        s->footer_new = true;
        pthread_cond_signal(&s->work);
    }
    pthread_mutex_unlock(&s->lock);
}

void sink_flush(struct sink *s, el_usec deadline, void (*fn)(void *ctx, size_t left_bytes), void *ctx)
{
    assert(!s->flushed && fn);
    s->flushed = fn;
    s->flushed_ctx = ctx;
    if (deadline != EL_NEVER)
        loop_timer_at(s->timer, deadline);
    sink_footer(s, s->footer_fd, NULL);
    pthread_mutex_lock(&s->lock);
    s->want_flushed = true;
    /* The writer looks at the wish when it has nothing left to write, which may be now. */
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
}

bool sink_free(struct sink *s)
{
    if (!s)
        return true;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += SINK_GONE_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    loop_timer_free(s->timer);
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    pthread_cond_signal(&s->work);
    while (s->live && pthread_cond_timedwait(&s->gone, &s->lock, &until) != ETIMEDOUT)
        ;
    /* A post that is under way needs the memory: its turn frees it. */
    bool stuck = s->live, posted = s->posted;
    s->abandoned = stuck && !posted;
    s->freed = posted;
    if (stuck)
        pthread_detach(s->thread);
    pthread_mutex_unlock(&s->lock);
    if (stuck)
        return false;
    pthread_join(s->thread, NULL);
    if (!posted)
        sink_destroy(s);
    return true;
}
