/* One standard stream of one worker: from its pipe to its log file, its console and its tail. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "output/output_private.h"
#include "output/steps.h"
#include "util/log.h"

/* A worker that prints line by line must not cost a wake-up for each: after a small read its pipe is left alone this
 * long. */
#define REST_US     EL_MS(1)
#define BURST_BYTES (256u * 1024u) /* read from one stream before the others have their turn */
#define PIPE_BYTES  (256 * 1024)
#define PIPES_LARGE 64u        /* ranks: with more of them the kernel's allowance for pipes would be used up */
#define LINGER_US   EL_MS(100) /* after a worker's exit its descendants may still write this long */
#define PART_US     EL_MS(50)  /* raw: how long a part of a line waits for its rest */
#define SHOW_US     EL_MS(500) /* so long a part of a line waits for its rest before it is shown: a bar, a question */
#define HOLD_US     EL_MS(200) /* how long the others wait for the end of a line longer than the buffer */

static void stream_pump(struct stream *s);

/* --- lists and states --------------------------------------------------------------------------------------------- */

static void stream_append(struct stream_list *list, struct stream *s)
{
    s->next = NULL;
    *list->tail = s;
    list->tail = &s->next;
}

static struct stream *take_all(struct stream_list *list)
{
    struct stream *head = list->head;
    list->head = NULL;
    list->tail = &list->head;
    return head;
}

static void remove_from(struct stream_list *list, struct stream *s)
{
    for (struct stream **at = &list->head; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            if (!*at)
                list->tail = at;
            return;
        }
}

/* s is in no list. */
static void set_state(struct stream *s, enum stream_state state)
{
    struct output *o = s->o;
    if (state == STREAM_WATCHED && !s->watch)
        state = STREAM_RESTING; /* no memory for a watcher: look with every tick */
    if (s->watch && (state == STREAM_WATCHED) != (s->state == STREAM_WATCHED))
        loop_fd_set(s->watch, state == STREAM_WATCHED ? LOOP_READ : 0);
    s->state = state;
    if (state == STREAM_BLOCKED)
        stream_append(&o->blocked, s);
    if (state == STREAM_RESTING) {
        if (!o->resting.head)
            loop_timer_at(o->tick, loop_clock() + REST_US);
        stream_append(&o->resting, s);
    }
}

static void leave_lists(struct stream *s)
{
    if (s->state == STREAM_RESTING)
        remove_from(&s->o->resting, s);
    if (s->state == STREAM_BLOCKED)
        remove_from(&s->o->blocked, s);
}

/* --- delivery ----------------------------------------------------------------------------------------------------- */

static void lost(struct output *o)
{
    if (!o->told_lost)
        el_log(EL_WARN, "output of workers is lost: out of memory, or its reader stands still");
    o->told_lost = true;
}

static void stream_put(struct output *o, struct sink *sink, int fd, const char *bytes, size_t n)
{
    if (sink_put(sink, fd, bytes, n) < 0)
        lost(o);
}

static void stream_put_text(struct stream *s, struct sink *sink, int fd, int fed)
{
    if (fed < 0)
        lost(s->o);
    stream_put(s->o, sink, fd, s->o->text.v, s->o->text.len);
    s->o->text.len = 0;
}

/* Whoever is in the middle of a line keeps the console until its end. */
static void stream_hold(struct stream *s)
{
    struct output *o = s->o;
    struct mouth *m = o->mouth[s->which];
    bool mid = s->line.mid && !s->route.raw;
    s->shown = s->shown && mid;
    if (mid) {
        m->held_at = loop_clock();
        if (m->holder != s)
            loop_timer_at(m->timer, m->held_at + HOLD_US);
        m->holder = s;
    } else if (m->holder == s) {
        m->holder = NULL;
        loop_timer_at(m->timer, EL_NEVER);
        o->kick = true;
        output_soon(o);
    }
}

/* The line that stands unfinished gets its end; what follows of it is a line of its own. */
static void break_line(struct mouth *m)
{
    struct stream *s = m->holder;
    m->holder = NULL;
    stream_put(s->o, m->sink, s->which, "\n", 1);
    s->broken = s->shown;
    s->line.mid = s->line.mid && !s->shown;
    s->shown = false;
}

static void stream_say(struct stream *s, int fed)
{
    struct mouth *m = s->o->mouth[s->which];
    if (m->holder && m->holder != s && s->o->text.len)
        break_line(m); /* s does not wait for what is shown in parts; else it is given up */
    if (s->o->text.len)
        m->open = s->route.raw && s->o->text.v[s->o->text.len - 1] != '\n';
    stream_put_text(s, m->sink, s->which, fed);
    stream_hold(s);
}

static void deliver(struct stream *s, const char *bytes, size_t n)
{
    struct output *o = s->o;
    s->said_at = loop_clock();
    head_put(&s->head, &s->ring, bytes, n, loop_clock());
    if (ring_put(&s->ring, bytes, n) < 0)
        lost(o);
    if (s->watched)
        steps_feed(o->steps, s->which, bytes, n, loop_clock());
    if (s->route.to_file)
        stream_put(o, o->files, s->file_fd, bytes, n);
    if (s->route.to_filter && o->filter_fd[s->which] >= 0)
        stream_put_text(s, o->files, o->filter_fd[s->which], filter_feed(&s->filtered, bytes, n, &o->text));
    if (!s->route.to_console || o->console_dead[s->which])
        return;
    if (s->broken && n && *bytes == '\n') { /* it has its end already */
        bytes++;
        n--;
    }
    s->broken = s->broken && !n;
    bool waits = s->line.held.len > 0;
    int fed = line_feed(&s->line, bytes, n, &o->text);
    /* With one worker there is nobody whose lines could be torn. */
    if (s->route.raw && o->conf.nproc == 1 && line_pass(&s->line, &o->text) < 0)
        fed = -1;
    if (s->line.held.len && !(waits && o->text.len == 0))
        s->held_at = loop_clock();
    if (s->line.held.len && !s->route.raw && !o->parts_armed) {
        o->parts_armed = true;
        loop_timer_at(o->parts, s->held_at + SHOW_US);
    }
    stream_say(s, fed);
}

/* Is shown, once it is old enough.  Returns when to look again. */
static el_usec show_part(struct stream *s, el_usec now)
{
    const struct mouth *m = s->o->mouth[s->which];
    bool ours = !stream_ended(s) && s->route.to_console && !s->route.raw && !s->o->console_dead[s->which];
    if (!ours || !s->line.held.len)
        return EL_NEVER;
    if (now < s->held_at + SHOW_US)
        return s->held_at + SHOW_US;
    if ((m->holder && m->holder != s && !m->holder->shown) || sink_full(m->sink))
        return now + SHOW_US;
    int fed = line_pass(&s->line, &s->o->text);
    s->shown = true;
    stream_say(s, fed);
    return EL_NEVER;
}

/* Parts of lines that wait for their rest: a progress bar draws itself anew with '\r', a question has no end. */
void streams_show_parts(void *ctx)
{
    struct output *o = ctx;
    el_usec now = loop_clock(), next = EL_NEVER;
    for (unsigned r = 0; r < o->conf.nproc; r++)
        for (int k = 0; k < 2; k++) {
            el_usec at = show_part(&o->ranks[r].stream[k], now);
            next = at < next ? at : next;
        }
    o->parts_armed = next != EL_NEVER;
    loop_timer_at(o->parts, next);
}

void output_break_line(struct output *o)
{
    struct mouth *m = o->mouth[2];
    if (m->holder && m->holder->shown)
        break_line(m);
    if (m->open)
        stream_put(o, m->sink, 2, "\n", 1);
    m->open = false;
}

/* Returns true if the stream has something to wait for. */
static bool pass_old_part(struct stream *s)
{
    if (!s->route.raw || !s->line.held.len || s->o->console_dead[s->which])
        return false;
    if (loop_clock() < s->held_at + PART_US)
        return true;
    stream_say(s, line_pass(&s->line, &s->o->text));
    return false;
}

static bool jammed(const struct stream *s, const struct sink *sink)
{
    /* What a worker that has ended left in its pipe is bounded by the pipe: it may go beyond the limit, so that a
     * console that stands still does not hold up the report of the failure. */
    return s->exited ? sink_crammed(sink, s->read_max * (s->line.prefix_len + 1) + s->line.max) : sink_full(sink);
}

static bool blocked(const struct stream *s)
{
    const struct output *o = s->o;
    if (s->forced)
        return false;
    if ((s->route.to_file || s->route.to_filter) && jammed(s, o->files))
        return true;
    if (!s->route.to_console || o->console_dead[s->which])
        return false;
    const struct mouth *m = o->mouth[s->which];
    return (m->holder && m->holder != s && !m->holder->shown) || jammed(s, m->sink);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void close_file(struct stream *s)
{
    if (s->file_fd >= 0)
        sink_close(s->o->files, s->file_fd);
    s->file_fd = -1;
}

static void stream_end(struct stream *s)
{
    struct output *o = s->o;
    leave_lists(s);
    if (s->route.to_filter && o->filter_fd[s->which] >= 0)
        stream_put_text(s, o->files, o->filter_fd[s->which], filter_end(&s->filtered, &o->text));
    if (s->route.to_console && !o->console_dead[s->which])
        stream_say(s, line_end(&s->line, !s->route.raw, &o->text));
    loop_fd_free(s->watch);
    s->watch = NULL;
    if (s->read_fd >= 0)
        close(s->read_fd);
    s->read_fd = -1;
    close_file(s);
    line_free(&s->line);
    filter_stream_free(&s->filtered);
    s->state = STREAM_ENDED;
    output_soon(o);
}

/* Reads one buffer.  Length, 0 at the end, -1 if there is nothing now. */
static ssize_t stream_read_some(struct stream *s)
{
    for (;;) {
        ssize_t n = read(s->read_fd, s->o->scratch, s->read_max);
        if (n >= 0)
            return n;
        if (errno == EAGAIN)
            return -1;
        if (errno != EINTR)
            return 0; /* EIO: the last one has left the pseudo-terminal */
    }
}

/* Called with s in no list. */
static void stream_pump(struct stream *s)
{
    size_t got = 0;
    ssize_t n = 0;
    do {
        if (blocked(s)) {
            set_state(s, STREAM_BLOCKED);
            return;
        }
        if ((n = stream_read_some(s)) == 0) {
            stream_end(s);
            return;
        }
        if (n > 0) {
            deliver(s, s->o->scratch, (size_t)n);
            got += (size_t)n;
            s->owed -= (size_t)n < s->owed ? (size_t)n : s->owed;
        }
    } while ((size_t)n == s->read_max && got < BURST_BYTES);
    bool part = pass_old_part(s);
    bool more = got >= BURST_BYTES;
    if (n < 0)
        s->owed = 0;
    if (s->exited && !s->owed && loop_clock() >= s->exited_at + LINGER_US) {
        stream_end(s);
        return;
    }
    set_state(s, (got && !more) || part ? STREAM_RESTING : STREAM_WATCHED);
}

static void on_readable(void *ctx, unsigned events)
{
    (void)events;
    struct stream *s = ctx;
    if (s->state == STREAM_WATCHED)
        stream_pump(s);
}

void streams_on_tick(void *ctx)
{
    struct output *o = ctx;
    for (struct stream *s = take_all(&o->resting), *next; s; s = next) {
        next = s->next;
        stream_pump(s);
    }
}

void streams_unblock(struct output *o)
{
    for (struct stream *s = take_all(&o->blocked), *next; s; s = next) {
        next = s->next;
        stream_pump(s);
    }
}

/* A worker is gone and its pipe has not ended: a descendant holds it, or somebody takes no bytes. */
static bool look_late(struct stream *s, el_usec now)
{
    if (!s->exited || stream_ended(s))
        return false;
    if (now < s->exited_at + LINGER_US)
        return true;
    s->forced = s->forced || now >= s->exited_at + s->o->conf.stall_max;
    leave_lists(s);
    stream_pump(s);
    return !stream_ended(s);
}

void streams_on_late(void *ctx)
{
    struct output *o = ctx;
    el_usec now = loop_clock();
    bool again = false;
    for (unsigned r = 0; r < o->conf.nproc; r++)
        for (int k = 0; k < 2; k++)
            again |= look_late(&o->ranks[r].stream[k], now);
    o->late_armed = again;
    if (again)
        loop_timer_at(o->late, now + LINGER_US / 2);
}

/* The holder of the console does not finish its line while others wait: the line is broken. */
void mouth_on_timer(void *ctx)
{
    struct mouth *m = ctx;
    struct stream *s = m->holder;
    if (!s)
        return;
    struct output *o = s->o;
    el_usec now = loop_clock();
    if (now < m->held_at + HOLD_US || !o->blocked.head || sink_full(m->sink)) {
        loop_timer_at(m->timer, now < m->held_at + HOLD_US ? m->held_at + HOLD_US : now + HOLD_US);
        return;
    }
    break_line(m);
    streams_unblock(o);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static int open_pipe(struct stream *s, struct el_err *e)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "pipe for the output of local rank %u", s->rank);
    fcntl(p[0], F_SETFL, O_NONBLOCK);
    /* Refused when the user's allowance is used up: then 64 KiB must do. */
    if (s->o->conf.nproc <= PIPES_LARGE)
        (void)fcntl(p[1], F_SETPIPE_SZ, PIPE_BYTES);
    s->read_fd = p[0];
    s->child_fd = p[1];
    return 0;
}

static int open_slave(int master)
{
    if (unlockpt(master) < 0)
        return -1;
    int fd = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[64];
    if (fd < 0 && ptsname_r(master, name, sizeof name) == 0)
        fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return fd;
}

static int open_pty(struct stream *s, struct el_err *e)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    int slave = master >= 0 ? open_slave(master) : -1;
    if (slave < 0) {
        int sys = errno;
        if (master >= 0)
            close(master);
        return el_fail_sys(e, EL_EXIT_OSERR, sys, "pseudo-terminal for the stderr of local rank %u", s->rank);
    }
    struct termios t;
    if (tcgetattr(STDERR_FILENO, &t) == 0 || tcgetattr(slave, &t) == 0) {
        /* The real terminal does this to the bytes later; nobody types here. */
        t.c_oflag &= (tcflag_t)~OPOST;
        t.c_lflag &= (tcflag_t) ~(ECHO | ECHONL);
        tcsetattr(slave, TCSANOW, &t);
    }
    s->read_fd = master;
    s->child_fd = slave;
    stream_resized(s);
    return 0;
}

void stream_resized(struct stream *s)
{
    struct winsize size;
    if (s->route.kind == ROUTE_PTY && s->read_fd >= 0 && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0)
        ioctl(s->read_fd, TIOCSWINSZ, &size);
}

int stream_open(struct stream *s, struct el_err *e)
{
    assert(s->state == STREAM_OFF);
    int r = 0;
    switch (s->route.kind) {
    case ROUTE_INHERIT: break;
    case ROUTE_NULL: s->child_fd = s->o->null_fd; break;
    case ROUTE_FILE: s->child_fd = s->file_fd; break;
    case ROUTE_PIPE: r = open_pipe(s, e); break;
    case ROUTE_PTY: r = open_pty(s, e); break;
    }
    if (r == 0)
        s->state = STREAM_OPEN;
    return r;
}

void stream_started(struct stream *s)
{
    if (s->state != STREAM_OPEN)
        return;
    if (s->read_fd < 0) {
        s->state = STREAM_UNREAD;
        close_file(s); /* only the child writes it */
    } else {
        close(s->child_fd);
        s->watch = loop_fd_new(s->o->loop, s->read_fd, 0, on_readable, s);
        set_state(s, STREAM_WATCHED);
    }
    s->child_fd = -1;
}

void stream_exited(struct stream *s)
{
    stream_started(s);
    if (stream_ended(s) || s->exited)
        return;
    s->exited = true;
    s->exited_at = loop_clock();
    if (s->read_fd < 0) {
        stream_end(s);
        return;
    }
    int left = 0;
    s->owed = ioctl(s->read_fd, FIONREAD, &left) == 0 && left > 0 ? (size_t)left : 0;
    leave_lists(s);
    stream_pump(s);
    if (stream_ended(s) || s->o->late_armed)
        return;
    s->o->late_armed = true;
    loop_timer_at(s->o->late, s->exited_at + LINGER_US);
}

void stream_abort(struct stream *s)
{
    stream_started(s);
    if (s->state != STREAM_OFF && s->state != STREAM_ENDED)
        stream_end(s);
    else
        close_file(s);
}

bool stream_ended(const struct stream *s)
{
    return s->state == STREAM_OFF || s->state == STREAM_ENDED;
}
