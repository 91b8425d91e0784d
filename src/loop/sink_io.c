#include "loop/sink.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SINK_STACK_BYTES  (128u * 1024u)
#define SINK_HARD_FACTOR  4u    /* sink_full() at the limit, a put is refused at this many limits */
#define SINK_BLOCK_BYTES  4096u /* small puts to one descriptor share a block of this size */
#define SINK_IOV_MAX      64
#define SINK_POLL_MS      500 /* how often a writer that waits for room looks whether it shall end */
#define SINK_GONE_MS      50  /* how long sink_free() waits for the writer to notice */
#define SINK_FOOTER_BYTES 512u

static const char wipe[] = "\r\033[K";

/* A piece of the queue: bytes for a descriptor, then perhaps its end. */
struct block {
    struct block *next;
    int fd;
    bool close;
    size_t len, cap;
    char bytes[];
};

/* A descriptor that has refused something. */
struct bad_fd {
    struct bad_fd *next;
    int fd, sys;
    bool dead; /* nobody reads it any more: do not try again */
};

/* One refusal on its way to the loop. */
struct report {
    struct report *next;
    int fd, sys;
};

struct sink {
    struct loop *loop;
    size_t limit;

    /* the loop's thread */
    struct sink_watch *watches;
    struct loop_timer *timer;
    void (*flushed)(void *ctx, size_t left_bytes);
    void *flushed_ctx;
    pthread_t thread;

    /* the writer's thread */
    struct bad_fd *bad;
    bool midline; /* the last thing written did not end with a newline */
    int drawn_fd; /* where the footer stands, -1: nowhere */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t work, gone;
    struct block *head, **tail, *last;
    size_t cost;    /* memory of what is queued or being written */
    size_t bytes;   /* payload of the same */
    size_t closing; /* blocks that close a descriptor */
    el_usec moved_at;
    bool full, room; /* reached the limit; below half of it again, not told yet */
    bool freed;      /* waits for its last post to come by */
    bool closed, live, abandoned, posted, want_flushed, footer_new;
    struct report *reports;
    struct loop_post post;
    int footer_fd;
    char footer[SINK_FOOTER_BYTES];
};

/* --- the writer --------------------------------------------------------------------------------------------------- */

static void post(struct sink *s)
{
    if (s->posted || s->closed)
        return;
    s->posted = true;
    loop_post(s->loop, &s->post);
}

static struct bad_fd *find_bad(const struct sink *s, int fd)
{
    struct bad_fd *b = s->bad;
    while (b && b->fd != fd)
        b = b->next;
    return b;
}

static void forget_bad(struct sink *s, int fd)
{
    for (struct bad_fd **at = &s->bad, *b; (b = *at); at = &b->next)
        if (b->fd == fd) {
            *at = b->next;
            free(b);
            return;
        }
}

/* Without memory for the note the error is reported again with the next write: better than never. */
static void refused(struct sink *s, int fd, int sys)
{
    struct bad_fd *b = find_bad(s, fd);
    if (b && b->sys == sys)
        return;
    if (!b && (b = calloc(1, sizeof *b))) {
        b->next = s->bad;
        s->bad = b;
    }
    if (b) {
        b->fd = fd;
        b->sys = sys;
        b->dead = sys == EPIPE || sys == EBADF;
    }
    struct report *r = calloc(1, sizeof *r);
    if (!r)
        return;
    *r = (struct report){.fd = fd, .sys = sys};
    pthread_mutex_lock(&s->lock);
    r->next = s->reports;
    s->reports = r;
    post(s);
    pthread_mutex_unlock(&s->lock);
}

static bool shall_end(struct sink *s)
{
    pthread_mutex_lock(&s->lock);
    bool closed = s->closed;
    pthread_mutex_unlock(&s->lock);
    return closed;
}

static void moved(struct sink *s)
{
    el_usec now = loop_clock();
    pthread_mutex_lock(&s->lock);
    s->moved_at = now;
    pthread_mutex_unlock(&s->lock);
}

/* Writes all of it, or says why the rest is lost.  The descriptor may be non-blocking: it is inherited, and its mode is
 * not ours to change. */
static void write_all(struct sink *s, int fd, struct iovec *iov, int count)
{
    const struct bad_fd *b = s->bad ? find_bad(s, fd) : NULL;
    if (b && b->dead)
        return;
    while (count > 0) {
        ssize_t n = writev(fd, iov, count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            if (poll(&p, 1, SINK_POLL_MS) <= 0 && shall_end(s))
                return;
            continue;
        }
        if (n < 0) {
            refused(s, fd, errno);
            return;
        }
        moved(s);
        size_t got = (size_t)n;
        for (; count > 0 && got >= iov->iov_len; iov++, count--)
            got -= iov->iov_len;
        if (count > 0) {
            iov->iov_base = (char *)iov->iov_base + got;
            iov->iov_len -= got;
        }
    }
}

static void write_text(struct sink *s, int fd, const char *text, size_t n)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)text, .iov_len = n};
    write_all(s, fd, &iov, 1);
}

static void wipe_footer(struct sink *s)
{
    if (s->drawn_fd < 0)
        return;
    write_text(s, s->drawn_fd, wipe, sizeof wipe - 1);
    s->drawn_fd = -1;
}

/* Writes the blocks up to the first with another descriptor; returns that one. */
static struct block *write_run(struct sink *s, struct block *list)
{
    struct iovec iov[SINK_IOV_MAX];
    int count = 0, fd = list->fd;
    char last = '\n';
    bool ends = false;
    for (; list && list->fd == fd && count < SINK_IOV_MAX && !ends; list = list->next) {
        if (list->len) {
            iov[count++] = (struct iovec){.iov_base = list->bytes, .iov_len = list->len};
            last = list->bytes[list->len - 1];
        }
        ends = list->close;
    }
    if (count) {
        wipe_footer(s);
        write_all(s, fd, iov, count);
        s->midline = last != '\n';
    }
    if (ends) {
        forget_bad(s, fd);
        close(fd);
    }
    return list;
}

static void account(struct sink *s, struct block *from, const struct block *to)
{
    size_t cost = 0, bytes = 0, closing = 0;
    while (from != to) {
        struct block *next = from->next;
        cost += sizeof *from + from->cap;
        bytes += from->len;
        closing += from->close;
        free(from);
        from = next;
    }
    pthread_mutex_lock(&s->lock);
    assert(s->cost >= cost && s->bytes >= bytes && s->closing >= closing);
    s->cost -= cost;
    s->bytes -= bytes;
    s->closing -= closing;
    if (s->full && s->cost < s->limit / 2) {
        s->full = false;
        s->room = true;
        post(s);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Locked on entry and on return. */
static void draw_footer(struct sink *s)
{
    char text[SINK_FOOTER_BYTES];
    int fd = s->footer_fd;
    memcpy(text, s->footer, sizeof text);
    s->footer_new = false;
    pthread_mutex_unlock(&s->lock);
    if (!s->midline) {
        wipe_footer(s);
        if (text[0]) {
            write_text(s, fd, text, strlen(text));
            s->drawn_fd = fd;
        }
    }
    pthread_mutex_lock(&s->lock);
}

static void write_queue(struct sink *s)
{
    struct block *list = s->head;
    s->head = s->last = NULL;
    s->tail = &s->head;
    pthread_mutex_unlock(&s->lock);
    bool given_up = false;
    while (list) {
        struct block *next;
        if (!given_up) {
            next = write_run(s, list);
        } else {
            next = list->next;
            if (list->close)
                close(list->fd);
        }
        account(s, list, next);
        list = next;
        given_up = given_up || shall_end(s);
    }
    pthread_mutex_lock(&s->lock);
}

static void destroy(struct sink *s)
{
    for (struct block *b = s->head, *next; b; b = next) {
        next = b->next;
        if (b->close)
            close(b->fd);
        free(b);
    }
    for (struct bad_fd *b = s->bad, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    for (struct report *r = s->reports, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->gone);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void *run_writer(void *ctx)
{
    struct sink *s = ctx;
    pthread_mutex_lock(&s->lock);
    while (!s->closed) {
        if (s->head)
            write_queue(s);
        else if (s->footer_new || (s->footer[0] && s->drawn_fd < 0 && !s->midline))
            draw_footer(s);
        else {
            if (s->want_flushed && !s->bytes && !s->closing)
                post(s);
            pthread_cond_wait(&s->work, &s->lock);
        }
    }
    s->live = false;
    bool mine = s->abandoned;
    pthread_cond_signal(&s->gone);
    pthread_mutex_unlock(&s->lock);
    if (mine)
        destroy(s);
    return NULL;
}

/* --- the loop's side ---------------------------------------------------------------------------------------------- */

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
            destroy(s);
        return;
    }
    struct report *reports = s->reports;
    s->reports = NULL;
    bool room = s->room, empty = s->want_flushed && !s->bytes && !s->closing;
    s->room = false;
    pthread_mutex_unlock(&s->lock);
    while (reports) {
        struct report *r = reports;
        reports = r->next;
        tell_error(s, r->fd, r->sys);
        free(r);
    }
    if (room)
        tell_room(s);
    if (empty)
        tell_flushed(s, 0);
}

static void on_deadline(void *ctx)
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
    int sys = pthread_create(&s->thread, &attr, run_writer, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return sys;
}

struct sink *sink_new(struct loop *l, size_t limit_bytes, struct el_err *e)
{
    assert(limit_bytes > 0);
    struct sink *s = calloc(1, sizeof *s);
    if (!s || !(s->timer = loop_timer_new(l, on_deadline, s))) {
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
        destroy(s);
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
        destroy(s);
    return true;
}
