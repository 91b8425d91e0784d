/* Workers' output for `elrun logs`: reads the log files of this node for who asks through the coordinator.
 *
 * Files are opened and read in the pool, one piece at a time for all readers together, so that a file system that
 * stands still has one thread and no more.  inotify says when there is more; the reader says when it has taken a piece.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "agent/log_piece.h"
#include "agent/logs.h"
#include "agent/node.h"

#define READERS_MAX  8
#define STUCK_LIMIT  EL_SEC(10) /* a piece that is not there by then: the file system stands still */
#define SETTLE_EVERY EL_MS(20)  /* the attempt has ended, its last bytes are not on disk yet */
#define SETTLE_LIMIT EL_SEC(5)
#define LOOK_EVERY   EL_SEC(1) /* where inotify is refused */
#define LEAVE_LIMIT  EL_SEC(2)

/* One stream of one attempt. */
struct source {
    enum { SOURCE_NONE, SOURCE_FILE, SOURCE_MEMORY } kind;
    char path[PATH_MAX]; /* "": none */
    int fd;              /* -1: not opened yet */
    off_t at, end;       /* end: nothing behind it is wanted */
    bool watched;        /* inotify says when it grows */
    bool wants;          /* there may be more than has been read */
    bool all;            /* from the beginning: an attempt that began while it was followed */
    bool named;          /* the path has been told */
    char *bytes;         /* MEMORY */
    size_t len, used;
};

struct logs_reader {
    enum {
        READER_FREE,
        READER_WAITS, /* for the log files of the next attempt */
        READER_READS,
        READER_ENDS, /* the last word is out */
        READER_GONE, /* nobody is there; its piece is still being read */
    } state;
    struct logs *logs;
    uint64_t number, rank, lines;
    unsigned streams, credit; /* bits 1 and 2; pieces that it will take */
    unsigned slot;
    int last;       /* stream that was served last */
    uint64_t round; /* whose files these are */
    bool follow;
    bool followable; /* some of it has a file */
    bool over;       /* no worker writes to these files any more */
    el_usec settle_until, look_at;
    int notify; /* inotify; -1: none */
    struct loop_fd *watch;
    struct source source[2];
};

/* The piece that is being read: one at a time.  The thread touches nothing but `piece` and the path. */
struct fetch {
    struct pool_job job;
    bool running, final; /* final: whatever will be in the file was there before the read began */
    el_usec since;
    struct logs_reader *reader;
    int which;
    struct log_piece piece;
};

struct logs {
    struct node *node;
    struct loop_timer *timer;
    bool begun, over, leaving; /* there are log files; no worker writes to them any more */
    uint64_t round, rank_base;
    struct logs_reader reader[READERS_MAX];
    unsigned turn; /* who is served first */
    struct fetch fetch;
    void (*left)(struct node *n);
    el_usec leave_until;
    char text[MSG_STREAM_MAX + 1];
};

static void logs_go_on(struct logs *l);

/* --- words -------------------------------------------------------------------------------------------------------- */

static void logs_send(struct logs *l, const struct logs_reader *r, struct msg_logs_text text)
{
    text.reader = r->number;
    text.rank = r->rank;
    struct msg m = {.type = MSG_LOGS_TEXT, .u.logs_text = text};
    membership_logs(l->node->membership, &m);
}

__attribute__((format(printf, 3, 4))) static void logs_tell(struct logs *l, const struct logs_reader *r,
                                                            const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(l->text, sizeof l->text, format, ap);
    va_end(ap);
    logs_send(l, r, (struct msg_logs_text){.text = l->text, .more = true});
}

static void close_sources(struct logs_reader *r)
{
    loop_fd_free(r->watch);
    r->watch = NULL;
    if (r->notify >= 0)
        close(r->notify);
    r->notify = -1;
    for (int k = 0; k < 2; k++) {
        struct source *s = &r->source[k];
        if (s->fd >= 0)
            close(s->fd);
        free(s->bytes);
        *s = (struct source){.fd = -1};
    }
    r->look_at = EL_NEVER;
}

static bool logs_is_read(const struct logs *l, const struct logs_reader *r)
{
    return l->fetch.running && l->fetch.reader == r;
}

static void logs_clear(struct logs *l, struct logs_reader *r)
{
    *r = (struct logs_reader){.logs = l, .notify = -1, .look_at = EL_NEVER};
    r->source[0].fd = r->source[1].fd = -1;
}

/* Nobody is there any more.  What a thread uses stays until it is done. */
static void logs_drop(struct logs *l, struct logs_reader *r)
{
    r->state = READER_GONE;
    if (logs_is_read(l, r))
        return;
    close_sources(r);
    logs_clear(l, r);
}

/* The last word; the coordinator answers that the reader is gone. */
__attribute__((format(printf, 4, 5))) static void logs_finish(struct logs *l, struct logs_reader *r, unsigned status,
                                                              const char *format, ...)
{
    char text[MSG_TEXT_MAX + 1];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (!logs_is_read(l, r))
        close_sources(r);
    r->state = READER_ENDS;
    logs_send(l, r, (struct msg_logs_text){.text = text, .status = status});
}

/* --- where the output is ------------------------------------------------------------------------------------------ */

static const char *const stream_name[] = {"stdout", "stderr"};

static void keep_tail(struct source *s, const char *bytes, size_t len, uint64_t lines)
{
    size_t from = logs_last(bytes, len, lines);
    if (from == len || !(s->bytes = malloc(len - from)))
        return;
    memcpy(s->bytes, bytes + from, len - from);
    s->len = len - from;
    s->kind = SOURCE_MEMORY;
}

static void logs_find_source(struct logs *l, struct logs_reader *r, int k, bool all)
{
    struct source *s = &r->source[k];
    char *bytes = malloc(OUTPUT_KEPT_BYTES);
    size_t len;
    enum output_tail_from from = output_kept(l->node->output, r->slot, k + 1, s->path, sizeof s->path, bytes, &len);
    s->all = all;
    if (s->path[0]) {
        s->kind = SOURCE_FILE;
        s->wants = true;
        logs_tell(l, r, "rank %llu of round %llu: %s is %s:%s", (unsigned long long)r->rank,
                  (unsigned long long)l->round, stream_name[k], l->node->host, s->path);
    } else {
        logs_tell(
            l, r, "rank %llu of round %llu: %s has no log file on %s: %s; only --tee or --redirects keeps the whole",
            (unsigned long long)r->rank, (unsigned long long)l->round, stream_name[k], l->node->host,
            from == OUTPUT_TAIL_READ ? "these are the last bytes that elrun has in memory" : output_tail_text(from));
        if (bytes && len)
            keep_tail(s, bytes, len, all ? LOG_PIECE_ALL_LINES : r->lines);
    }
    free(bytes);
}

static void want_files(struct logs_reader *r)
{
    for (int k = 0; k < 2; k++)
        r->source[k].wants = r->source[k].kind == SOURCE_FILE;
}

static void on_notify(void *ctx, unsigned events)
{
    struct logs_reader *r = ctx;
    char heap[4096];
    (void)events;
    while (read(r->notify, heap, sizeof heap) > 0)
        ;
    want_files(r);
    logs_go_on(r->logs);
}

static bool logs_is_here(const struct logs *l, uint64_t rank)
{
    return rank >= l->rank_base && rank - l->rank_base < l->node->nproc;
}

/* The log files of the present attempt. */
static void open_attempt(struct logs *l, struct logs_reader *r, bool all)
{
    close_sources(r);
    if (!logs_is_here(l, r->rank)) {
        logs_finish(l, r, 1, "rank %llu is not on %s: round %llu has ranks %llu to %llu here; ask again",
                    (unsigned long long)r->rank, l->node->host, (unsigned long long)l->round,
                    (unsigned long long)l->rank_base, (unsigned long long)l->rank_base + l->node->nproc - 1);
        return;
    }
    r->slot = (unsigned)(r->rank - l->rank_base);
    r->round = l->round;
    r->over = l->over;
    r->settle_until = loop_clock() + SETTLE_LIMIT;
    r->state = READER_READS;
    for (int k = 0; k < 2; k++)
        if (r->streams & 1u << k)
            logs_find_source(l, r, k, all);
    r->followable = r->source[0].kind == SOURCE_FILE || r->source[1].kind == SOURCE_FILE;
    if (!r->follow || !r->followable)
        return;
    r->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    r->watch = r->notify >= 0 ? loop_fd_new(l->node->loop, r->notify, LOOP_READ, on_notify, r) : NULL;
}

/* --- pieces of files ---------------------------------------------------------------------------------------------- */

static void logs_work(void *ctx)
{
    struct logs *l = ctx;
    log_piece_read(&l->fetch.piece);
}

/* What was read becomes a piece. */
static void logs_send_piece(struct logs *l, struct logs_reader *r, struct source *s, int k, const char *bytes, size_t n,
                            bool last, size_t *used)
{
    *used = logs_text(bytes, n, last, l->text);
    if (!*used)
        return;
    r->credit--;
    logs_send(l, r,
              (struct msg_logs_text){
                  .stream = (uint64_t)k + 1, .text = l->text, .path = s->named ? "" : s->path, .more = true});
    s->named = true;
}

static void logs_look_again(struct logs_reader *r, el_usec in)
{
    el_usec at = loop_clock() + in;
    r->look_at = at < r->look_at ? at : r->look_at;
}

static void take_fetch(struct logs *l, struct logs_reader *r)
{
    struct fetch *f = &l->fetch;
    struct log_piece *p = &f->piece;
    struct source *s = &r->source[f->which];
    size_t used = 0;
    s->fd = p->fd;
    s->at = p->at;
    s->end = p->end;
    s->watched = p->watched;
    if (p->sys) {
        logs_tell(l, r, "%s:%s: %s", l->node->host, s->path, strerror(p->sys));
        s->kind = SOURCE_NONE;
        return;
    }
    bool end = p->n < sizeof p->bytes || p->at + (off_t)p->n >= p->end;
    if (p->n)
        logs_send_piece(l, r, s, f->which, p->bytes, p->n, f->final && end, &used);
    s->at += (off_t)used;
    if (!end || p->n - used > (f->final ? 0 : 3))
        s->wants = true; /* more than the beginning of a character is left */
    else if (f->final)
        s->kind = SOURCE_NONE;
    else if (r->over || !s->watched)
        logs_look_again(r, r->over ? SETTLE_EVERY : LOOK_EVERY);
}

static void logs_done(void *ctx)
{
    struct logs *l = ctx;
    struct fetch *f = &l->fetch;
    struct logs_reader *r = f->reader;
    f->running = false;
    if (r->state == READER_READS) {
        take_fetch(l, r);
    } else {
        r->source[f->which].fd = f->piece.fd; /* to be closed with the rest */
        if (r->state == READER_GONE)
            logs_drop(l, r);
        else
            close_sources(r);
    }
    logs_go_on(l);
}

static void start_fetch(struct logs *l, struct logs_reader *r, int k)
{
    struct fetch *f = &l->fetch;
    struct log_piece *p = &f->piece;
    struct source *s = &r->source[k];
    s->wants = false;
    f->reader = r;
    f->which = k;
    p->path = s->path;
    p->fd = s->fd;
    p->at = s->at;
    p->notify = r->notify;
    p->end = s->end;
    p->watched = s->watched;
    p->follow = r->follow;
    p->lines = s->all ? LOG_PIECE_ALL_LINES : r->lines;
    f->final = !r->follow || (r->over && (output_settled(l->node->output) || loop_clock() >= r->settle_until));
    f->since = loop_clock();
    f->job = (struct pool_job){.work = logs_work, .done = logs_done, .ctx = l};
    f->running = pool_run(l->node->pool, &f->job, NULL) == 0;
    if (!f->running)
        logs_finish(l, r, 1, "%s has no thread to read the log with", l->node->host);
}

/* --- what is due -------------------------------------------------------------------------------------------------- */

static void send_memory(struct logs *l, struct logs_reader *r)
{
    for (int k = 0; k < 2; k++) {
        struct source *s = &r->source[k];
        while (s->kind == SOURCE_MEMORY && r->credit) {
            size_t used;
            logs_send_piece(l, r, s, k, s->bytes + s->used, s->len - s->used, true, &used);
            s->used += used;
            if (s->used == s->len)
                s->kind = SOURCE_NONE;
        }
    }
}

/* All that there is of this attempt has been sent. */
static void logs_close_attempt(struct logs *l, struct logs_reader *r)
{
    close_sources(r);
    if (!r->follow) {
        logs_finish(l, r, 0, "%s", "");
    } else if (!r->followable) {
        logs_finish(l, r, 1, "what has no log file cannot be followed");
    } else if (l->left) {
        logs_finish(l, r, 0, "elrun on %s ends: %s", l->node->host, l->node->farewell);
    } else {
        logs_tell(l, r, "rank %llu of round %llu: the round has ended", (unsigned long long)r->rank,
                  (unsigned long long)r->round);
        r->state = READER_WAITS;
    }
    if (r->state == READER_WAITS && l->round != r->round)
        open_attempt(l, r, true); /* the next one has begun meanwhile */
}

static void fail_if_stuck(struct logs *l, struct logs_reader *r, el_usec now)
{
    bool waits = logs_is_read(l, r) || r->source[0].wants || r->source[1].wants;
    if (l->fetch.running && waits && now - l->fetch.since >= STUCK_LIMIT)
        logs_finish(l, r, 1, "the file system of the logs on %s stands still", l->node->host);
}

static void next_fetch(struct logs *l)
{
    for (unsigned i = 0; i < READERS_MAX && !l->fetch.running; i++) {
        unsigned at = (l->turn + i) % READERS_MAX;
        struct logs_reader *r = &l->reader[at];
        if (r->state != READER_READS || !r->credit)
            continue;
        /* A followed stream does not keep the other one waiting; else one comes after the other. */
        int first = r->follow ? !r->last : 0;
        int k = r->source[first].wants ? first : !first;
        if (!r->source[k].wants)
            continue;
        l->turn = at + 1;
        r->last = k;
        start_fetch(l, r, k);
    }
}

static bool all_left(const struct logs *l)
{
    for (unsigned i = 0; i < READERS_MAX; i++)
        if (l->reader[i].state == READER_READS || l->reader[i].state == READER_ENDS)
            return false;
    return membership_readers(l->node->membership) == 0;
}

static void logs_rearm(struct logs *l, el_usec now)
{
    el_usec at = l->fetch.running ? l->fetch.since + STUCK_LIMIT : EL_NEVER;
    if (at <= now)
        at = EL_NEVER; /* that has been told */
    for (unsigned i = 0; i < READERS_MAX; i++)
        at = l->reader[i].look_at < at ? l->reader[i].look_at : at;
    if (l->leaving) /* when the coordinator here has passed on everything is seen by looking */
        at = all_left(l) ? now : now + SETTLE_EVERY < at ? now + SETTLE_EVERY : at;
    loop_timer_at(l->timer, at);
}

static void logs_go_on(struct logs *l)
{
    el_usec now = loop_clock();
    for (unsigned i = 0; i < READERS_MAX; i++) {
        struct logs_reader *r = &l->reader[i];
        if (r->state != READER_READS)
            continue;
        send_memory(l, r);
        if (r->source[0].kind == SOURCE_NONE && r->source[1].kind == SOURCE_NONE && !logs_is_read(l, r))
            logs_close_attempt(l, r);
        if (r->state == READER_READS)
            fail_if_stuck(l, r, now);
    }
    next_fetch(l);
    logs_rearm(l, now);
}

static void logs_on_timer(void *ctx)
{
    struct logs *l = ctx;
    el_usec now = loop_clock();
    for (unsigned i = 0; i < READERS_MAX; i++) {
        struct logs_reader *r = &l->reader[i];
        if (r->look_at > now)
            continue;
        r->look_at = EL_NEVER;
        want_files(r);
    }
    logs_go_on(l);
    if (!l->leaving || (!all_left(l) && now < l->leave_until))
        return;
    l->leaving = false;
    loop_timer_at(l->timer, EL_NEVER);
    l->left(l->node);
}

/* --- what happens ------------------------------------------------------------------------------------------------- */

static struct logs_reader *find_reader(struct logs *l, uint64_t number)
{
    for (unsigned i = 0; i < READERS_MAX; i++)
        if (l->reader[i].state != READER_FREE && l->reader[i].number == number)
            return &l->reader[i];
    return NULL;
}

static struct logs_reader *free_reader(struct logs *l)
{
    for (unsigned i = 0; i < READERS_MAX; i++)
        if (l->reader[i].state == READER_FREE)
            return &l->reader[i];
    return NULL;
}

static void logs_ask(struct logs *l, const struct msg_logs *m)
{
    struct logs_reader *r = free_reader(l), nobody = {.number = m->reader, .rank = m->rank};
    char text[MSG_TEXT_MAX + 1];
    if (!r) {
        snprintf(text, sizeof text, "%d others read logs on %s already", READERS_MAX, l->node->host);
        logs_send(l, &nobody, (struct msg_logs_text){.text = text, .status = 1});
        return;
    }
    if (find_reader(l, m->reader))
        return;
    r->state = READER_WAITS;
    r->number = m->reader;
    r->rank = m->rank;
    r->lines = m->lines;
    r->follow = m->follow;
    r->streams = m->stream ? 1u << (m->stream - 1) : 3;
    r->credit = MSG_LOGS_WINDOW;
    if (l->left)
        logs_finish(l, r, 1, "elrun on %s ends: %s", l->node->host, l->node->farewell);
    else if (l->begun && membership_world(l->node->membership)->number == l->round)
        open_attempt(l, r, false);
    else if (!m->follow)
        logs_finish(l, r, 1, "a round is just being started on %s; ask again", l->node->host);
}

void logs_message(struct node *n, const struct msg *msg)
{
    struct logs *l = n->logs;
    if (!msg) {
        for (unsigned i = 0; i < READERS_MAX; i++)
            if (l->reader[i].state != READER_FREE)
                logs_drop(l, &l->reader[i]);
    } else if (msg->type == MSG_LOGS) {
        logs_ask(l, &msg->u.logs);
    } else {
        const struct msg_logs_next *m = &msg->u.logs_next;
        struct logs_reader *r = find_reader(l, m->reader);
        if (r && m->gone)
            logs_drop(l, r);
        else if (r)
            r->credit = r->credit + m->pieces < MSG_LOGS_WINDOW ? r->credit + (unsigned)m->pieces : MSG_LOGS_WINDOW;
    }
    logs_go_on(l);
}

void logs_attempt(struct node *n)
{
    struct logs *l = n->logs;
    const struct msg_world *w = membership_world(n->membership);
    l->begun = true;
    l->over = false;
    l->round = w->number;
    l->rank_base = w->rank_base;
    for (unsigned i = 0; i < READERS_MAX; i++)
        if (l->reader[i].state == READER_WAITS)
            open_attempt(l, &l->reader[i], true);
    logs_go_on(l);
}

static void end_attempt(struct logs *l)
{
    l->over = true;
    for (unsigned i = 0; i < READERS_MAX; i++) {
        struct logs_reader *r = &l->reader[i];
        if (r->state != READER_READS || r->over)
            continue;
        r->over = true;
        r->settle_until = loop_clock() + SETTLE_LIMIT;
        want_files(r);
    }
}

void logs_attempt_ended(struct node *n)
{
    end_attempt(n->logs);
    logs_go_on(n->logs);
}

void logs_leave(struct node *n, void (*left)(struct node *n))
{
    struct logs *l = n->logs;
    if (l->left)
        return;
    l->left = left;
    l->leaving = true;
    l->leave_until = loop_clock() + LEAVE_LIMIT;
    end_attempt(l);
    for (unsigned i = 0; i < READERS_MAX; i++)
        if (l->reader[i].state == READER_WAITS)
            logs_finish(l, &l->reader[i], 0, "elrun on %s ends: %s", n->host, n->farewell);
    logs_go_on(l);
}

/* --- beginning and end -------------------------------------------------------------------------------------------- */

int logs_init(struct node *n, struct el_err *e)
{
    struct logs *l = n->logs = calloc(1, sizeof *l);
    if (l)
        l->timer = loop_timer_new(n->loop, logs_on_timer, l);
    if (!l || !l->timer)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    l->node = n;
    for (unsigned i = 0; i < READERS_MAX; i++)
        logs_clear(l, &l->reader[i]);
    return 0;
}

void logs_free(struct node *n)
{
    struct logs *l = n->logs;
    if (!l)
        return;
    for (unsigned i = 0; i < READERS_MAX; i++)
        close_sources(&l->reader[i]);
    loop_timer_free(l->timer);
    free(l);
    n->logs = NULL;
}
