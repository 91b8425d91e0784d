#include "output/console.h"

#include <assert.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/env.h"
#include "util/wrap.h"

/* Per stream: enough for a burst while the reader is busy, little enough that a stopped terminal is felt soon. */
#define CONSOLE_LIMIT_BYTES (1024u * 1024u)
#define LINE_BYTES          4096u

struct console {
    struct loop *loop;
    struct sink *sink[3]; /* [1] and [2] may be the same */
    enum console_form form;
    bool colour, status_wanted, terminal, hidden;
    struct console_status status;
    struct loop_timer *timer;
    unsigned long dropped; /* own lines for which there was no room */

    bool paused, pausing; /* no status line; and stderr's queue is being written for that */
    void (*pause_fn)(void *ctx);
    void *pause_ctx;
    el_usec finish_at; /* wanted while pausing: afterwards; EL_NEVER: not wanted */

    void (*before)(void *ctx); /* own text comes: called first; may be NULL */
    void *before_ctx;

    unsigned flushing;
    size_t left;
    void (*finished)(void *ctx, size_t left_bytes);
    void *finished_ctx;
};

static void make_way(struct console *c)
{
    if (c->before)
        c->before(c->before_ctx);
}

static int console_say(struct console *c, enum el_level level, const char *text)
{
    char line[LINE_BYTES];
    size_t n = console_line(line, sizeof line, c->form, level, loop_wall_usec() / 1000, text);
    struct el_buf fit = EL_BUF_INIT(NULL, 0);
    make_way(c);
    if (console_columns(c) && c->form != CONSOLE_JSON) {
        el_wrap(&fit, line, n - 1, console_columns(c), 0, 2);
        el_buf_puts(&fit, "\n");
    }
    int r = fit.len && !fit.full ? sink_put(c->sink[2], STDERR_FILENO, fit.v, fit.len)
                                 : sink_put(c->sink[2], STDERR_FILENO, line, n);
    el_buf_free(&fit);
    return r;
}

static void console_on_log(void *ctx, enum el_level level, const char *text)
{
    struct console *c = ctx;
    if (c->dropped) {
        char note[96];
        snprintf(note, sizeof note, "%lu lines of elrun are missing here: standard error did not take them",
                 c->dropped);
        if (console_say(c, EL_WARN, note) == 0)
            c->dropped = 0;
    }
    if (console_say(c, level, text) < 0)
        c->dropped++;
}

/* Do both descriptors lead to one file, pipe or terminal?  Then one writer keeps the order of what is written. */
static bool same_place(void)
{
    struct stat out, err;
    return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
           out.st_ino == err.st_ino && out.st_rdev == err.st_rdev;
}

static unsigned console_io_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/* Is the terminal ours, or has the shell put us in the background, or local rank 0 taken it?  A terminal that does not
 * control this session cannot say. */
static bool in_foreground(void)
{
    pid_t group = tcgetpgrp(STDERR_FILENO);
    return group < 0 || group == getpgrp();
}

static void console_show_status(void *ctx)
{
    struct console *c = ctx;
    if (!c->terminal || !c->status_wanted)
        return;
    if (!c->status.state || c->hidden || c->paused) {
        sink_footer(c->sink[2], STDERR_FILENO, NULL);
        loop_timer_at(c->timer, EL_NEVER);
        return;
    }
    char line[512] = "";
    el_usec now = loop_clock();
    if (in_foreground())
        console_status_line(line, sizeof line, &c->status, now, console_io_columns(), c->colour);
    sink_footer(c->sink[2], STDERR_FILENO, line);
    /* The next full second of the state's age. */
    el_usec age = now > c->status.since ? now - c->status.since : 0;
    loop_timer_at(c->timer, now + EL_SEC(1) - age % EL_SEC(1));
}

struct console *console_new(struct loop *l, const struct console_conf *conf, struct el_err *e)
{
    struct console *c = calloc(1, sizeof *c);
    if (!c || !(c->timer = loop_timer_new(l, console_show_status, c))) {
        free(c);
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    c->loop = l;
    c->terminal = isatty(STDERR_FILENO);
    const char *term = env_get(conf->env, "TERM");
    c->colour = c->terminal && !conf->json && console_wants_colour(env_get(conf->env, "NO_COLOR"), term);
    /* A dumb terminal cannot wipe a line. */
    c->status_wanted = !conf->quiet && !conf->json && console_wants_colour(NULL, term);
    c->finish_at = EL_NEVER;
    c->form = conf->json ? CONSOLE_JSON : c->colour ? CONSOLE_COLOUR : CONSOLE_PLAIN;
    c->sink[2] = sink_new(l, CONSOLE_LIMIT_BYTES, e);
    if (c->sink[2])
        c->sink[1] = same_place() ? c->sink[2] : sink_new(l, CONSOLE_LIMIT_BYTES, e);
    if (!c->sink[1]) {
        console_free(c);
        return NULL;
    }
    el_log_set(console_on_log, c, conf->quiet ? EL_WARN : conf->verbose ? EL_DEBUG : EL_INFO);
    return c;
}

struct sink *console_sink(struct console *c, int which)
{
    assert(which == 1 || which == 2);
    return c->sink[which];
}

void console_before(struct console *c, void (*fn)(void *ctx), void *ctx)
{
    c->before = fn;
    c->before_ctx = ctx;
}

void console_write(struct console *c, const char *text, size_t n)
{
    make_way(c);
    if (sink_put(c->sink[2], STDERR_FILENO, text, n) < 0)
        c->dropped++;
}

bool console_is_json(const struct console *c)
{
    return c->form == CONSOLE_JSON;
}

bool console_has_colour(const struct console *c)
{
    return c->colour;
}

unsigned console_columns(const struct console *c)
{
    struct winsize size;
    return c->terminal && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void console_status(struct console *c, const struct console_status *st)
{
    c->status = st ? *st : (struct console_status){0};
    console_show_status(c);
}

void console_status_hide(struct console *c, bool hide)
{
    c->hidden = hide;
    console_show_status(c);
}

static void console_on_flushed(void *ctx, size_t left_bytes)
{
    struct console *c = ctx;
    c->left += left_bytes;
    assert(c->flushing > 0);
    if (--c->flushing == 0)
        c->finished(c->finished_ctx, c->left);
}

static void flush_all(struct console *c, el_usec deadline)
{
    bool two = c->sink[1] != c->sink[2];
    c->flushing = two ? 2 : 1;
    if (two)
        sink_flush(c->sink[1], deadline, console_on_flushed, c);
    sink_flush(c->sink[2], deadline, console_on_flushed, c);
}

void console_finish(struct console *c, el_usec deadline, void (*fn)(void *ctx, size_t left_bytes), void *ctx)
{
    assert(!c->flushing);
    console_status(c, NULL);
    c->finished = fn;
    c->finished_ctx = ctx;
    c->left = 0;
    if (c->pausing)
        c->finish_at = deadline;
    else
        flush_all(c, deadline);
}

static void on_paused(void *ctx, size_t left_bytes)
{
    struct console *c = ctx;
    (void)left_bytes;
    c->pausing = false;
    c->pause_fn(c->pause_ctx);
    if (c->finish_at != EL_NEVER)
        flush_all(c, c->finish_at);
}

void console_pause(struct console *c, el_usec deadline, void (*fn)(void *ctx), void *ctx)
{
    assert(!c->pausing && !c->flushing);
    c->paused = c->pausing = true;
    c->pause_fn = fn;
    c->pause_ctx = ctx;
    console_show_status(c);
    sink_flush(c->sink[2], deadline, on_paused, c);
}

void console_resume(struct console *c)
{
    c->paused = false;
    console_show_status(c);
}

bool console_free(struct console *c)
{
    if (!c)
        return true;
    el_log_set(NULL, NULL, EL_INFO);
    loop_timer_free(c->timer);
    bool ended = c->sink[1] == c->sink[2] || sink_free(c->sink[1]);
    ended = sink_free(c->sink[2]) && ended;
    free(c);
    return ended;
}
