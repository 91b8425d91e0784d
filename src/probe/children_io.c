#include "probe/children.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/procstat.h"
#include "proc/spawn.h"
#include "util/file.h"

#define READ_BYTES  65536
#define DRAIN_BYTES (1u << 20) /* of what a child left in a pipe: no pipe holds more */

enum { RESULT, ERRORS, PIPES };

struct children_child {
    struct children *all;
    unsigned number;
    pid_t pid;     /* 0: this place is free */
    char name[64]; /* for messages */
    el_usec began, slept_before;
    struct reap_end end;
    char state;
    bool said_end;
    unsigned unread;
    int fd[PIPES];
    int report; /* why it could not be executed; -1: closed */
    struct loop_fd *watch[PIPES];
    struct wire_reader reader[PIPES];
    char last[256];
};

struct children {
    struct children_conf conf;
    struct stage stage;
    struct loop_timer *timer;
    struct children_child *child[STAGE_CHILDREN_MAX]; /* made when first needed */
    struct stage_actions todo;
    bool acting;
};

static void children_step(struct children *c);

/* --- what they say --- */

static void children_take_line(struct children_child *x, int which, const char *line, size_t n)
{
    const struct children_conf *conf = &x->all->conf;
    struct probe_wire w;
    struct el_err e = {0};
    if (which == ERRORS) {
        char text[1024];
        snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text - 1), line);
        wire_text(x->last, sizeof x->last, text);
        char clean[1024];
        if (conf->said)
            conf->said(conf->ctx, x->number, wire_text(clean, sizeof clean, text));
        return;
    }
    if (wire_decode(line, n, &w, &e) < 0) {
        x->unread++;
        return;
    }
    x->said_end |= w.type == WIRE_END;
    if (w.type == WIRE_END)
        stage_heard_end(&x->all->stage, x->number, w.u.end.ok, loop_clock());
    else
        conf->line(conf->ctx, x->number, &w, line, n);
    wire_release(&w);
}

static void children_stop_reading(struct children_child *x, int which)
{
    loop_fd_free(x->watch[which]);
    x->watch[which] = NULL;
    if (x->fd[which] >= 0)
        close(x->fd[which]);
    x->fd[which] = -1;
}

static void close_report(struct children_child *x)
{
    if (x->report >= 0)
        close(x->report);
    x->report = -1;
}

/* What a child says that does not come as far as the program: of no permission, say, or too few open files. */
static void children_take_report(struct children_child *x)
{
    struct spawn_report r;
    struct el_err e = {0};
    if (x->report < 0 || read(x->report, &r, sizeof r) != (ssize_t)sizeof r)
        return;
    spawn_explain(&r, x->name, &e);
    wire_text(x->last, sizeof x->last, e.text);
}

/* Bytes read; 0 at the end, or when there is nothing now. */
static size_t children_read_some(struct children_child *x, int which)
{
    static char bytes[READ_BYTES]; /* the loop's thread only */
    ssize_t n = x->fd[which] >= 0 ? read(x->fd[which], bytes, sizeof bytes) : 0;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        children_stop_reading(x, which);
    for (size_t at = 0, len; n > 0 && at < (size_t)n;) {
        at += wire_feed(&x->reader[which], bytes + at, (size_t)n - at, &len);
        if (len)
            children_take_line(x, which, x->reader[which].line, len);
    }
    return n > 0 ? (size_t)n : 0;
}

static void children_drain(struct children_child *x)
{
    for (int which = 0; which < PIPES; which++)
        for (size_t got = 0, n; got < DRAIN_BYTES && (n = children_read_some(x, which)) > 0;)
            got += n;
}

static void on_result(void *ctx, unsigned events)
{
    (void)events;
    struct children_child *x = ctx;
    children_read_some(x, RESULT);
    children_step(x->all);
}

static void on_errors(void *ctx, unsigned events)
{
    (void)events;
    struct children_child *x = ctx;
    children_read_some(x, ERRORS);
    children_step(x->all);
}

/* --- starting --- */

/* An order is shorter than any pipe. */
static int order_pipe(const struct probe_wire *order, struct el_err *e)
{
    struct el_buf line = EL_BUF_INIT(NULL, WIRE_LINE_MAX);
    int fd[2];
    if (pipe2(fd, O_CLOEXEC) < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "pipe");
    bool bad = order && (wire_encode(order, &line) < 0 || write(fd[1], line.v, line.len) != (ssize_t)line.len);
    el_buf_free(&line);
    close(fd[1]);
    if (!bad)
        return fd[0];
    close(fd[0]);
    return el_fail(e, EL_EXIT_OSERR, "an order that does not fit a pipe");
}

static int result_pipe(struct children_child *x, int which, loop_fd_fn *fn, int *write_end, struct el_err *e)
{
    int fd[2];
    if (pipe2(fd, O_CLOEXEC) < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "pipe");
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    x->fd[which] = fd[0];
    *write_end = fd[1];
    x->watch[which] = loop_fd_new(x->all->conf.loop, fd[0], LOOP_READ, fn, x);
    return x->watch[which] ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
}

static int children_spawn(struct children_child *x, const struct child_conf *conf, struct el_err *e)
{
    const struct children_conf *all = &x->all->conf;
    int in = order_pipe(conf->order, e), result = -1, errors = -1, report[2];
    if (in < 0)
        return -1;
    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0) {
        el_fail_sys(e, EL_EXIT_OSERR, errno, "pipe");
        close(in);
        return -1;
    }
    x->report = report[0];
    struct spawn_conf sc = {.name = conf->name,
                            .path = conf->argv[0],
                            .exec_fd = conf->exec_fd,
                            .argv = conf->argv,
                            .envp = all->env,
                            .report_fd = report[1],
                            .guard_fd = -1, /* it has no children: what the parent's death sends is enough */
                            .cgroup_fd = -1,
                            .terminal_fd = -1,
                            .files = all->files};
    if (result_pipe(x, RESULT, on_result, &result, e) == 0 && result_pipe(x, ERRORS, on_errors, &errors, e) == 0) {
        sc.fd[0] = in;
        sc.fd[1] = sc.fd[2] = errors;
        sc.result_fd = result;
        x->pid = spawn_worker(&sc, e);
    }
    close(in);
    close(report[1]);
    if (result >= 0)
        close(result);
    if (errors >= 0)
        close(errors);
    if (x->pid > 0)
        return 0;
    x->pid = 0;
    close_report(x);
    children_stop_reading(x, RESULT);
    children_stop_reading(x, ERRORS);
    return -1;
}

int children_start(struct children *c, const struct child_conf *conf, struct el_err *e)
{
    int i = stage_add(&c->stage, conf->limit, loop_clock());
    if (i < 0)
        return el_fail(e, EL_EXIT_OSERR, "more than %d children of a probe at a time", STAGE_CHILDREN_MAX);
    struct children_child *x = c->child[i] ? c->child[i] : (c->child[i] = malloc(sizeof *x));
    if (x) {
        *x = (struct children_child){.all = c,
                                     .number = (unsigned)i,
                                     .state = '?',
                                     .fd = {-1, -1},
                                     .report = -1,
                                     .end = {-1, -1, false},
                                     .began = loop_clock(),
                                     .slept_before = c->stage.slept};
        snprintf(x->name, sizeof x->name, "%s", conf->name);
        if (children_spawn(x, conf, e) == 0) {
            reap_help(c->conf.reap, x->pid);
            children_step(c);
            return i;
        }
    } else {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
    }
    stage_forget(&c->stage, (unsigned)i);
    return -1;
}

/* --- ends --- */

static char children_state_of(pid_t pid)
{
    struct procstat_stat st;
    char text[1024];
    bool known = file_readf(text, sizeof text, "/proc", "/%d/stat", (int)pid) > 0 && procstat_stat(&st, text) == 0;
    return known ? st.state : '?';
}

static void children_kill_child(struct children_child *x)
{
    x->state = children_state_of(x->pid);
    if (kill(-x->pid, SIGKILL) < 0 && errno == ESRCH)
        kill(x->pid, SIGKILL); /* between fork and setsid the group is not there yet */
}

static void children_tell(struct children *c, const struct stage_action *a)
{
    struct children_child *x = c->child[a->child];
    struct child_end end = {.outcome = a->outcome,
                            .code = x->end.code,
                            .signal = x->end.signal,
                            .state = x->state,
                            .slept = c->stage.slept != x->slept_before,
                            .elapsed = loop_clock() - x->began,
                            .said_end = x->said_end,
                            .unread = x->unread + x->reader[RESULT].dropped};
    if (a->outcome == STAGE_STUCK)
        reap_describe(x->pid, end.text, sizeof end.text);
    else
        memcpy(end.text, x->last, sizeof end.text);
    children_stop_reading(x, RESULT);
    children_stop_reading(x, ERRORS);
    close_report(x);
    x->pid = 0;
    c->conf.ended(c->conf.ctx, a->child, &end);
}

/* Carries out what the core wants; callbacks may make it want more. */
static void children_step(struct children *c)
{
    if (c->acting)
        return;
    c->acting = true;
    while (c->todo.n) {
        struct stage_action a = c->todo.v[0];
        memmove(c->todo.v, c->todo.v + 1, --c->todo.n * sizeof c->todo.v[0]);
        if (a.type == STAGE_DO_KILL && c->child[a.child]->pid)
            children_kill_child(c->child[a.child]);
        else if (a.type == STAGE_DO_TELL)
            children_tell(c, &a);
    }
    c->acting = false;
    stage_check(&c->stage);
    loop_timer_at(c->timer, stage_deadline(&c->stage));
}

bool children_reaped(struct children *c, pid_t pid, const struct reap_end *end)
{
    struct children_child *x = NULL;
    for (unsigned i = 0; c && i < STAGE_CHILDREN_MAX; i++)
        if (c->child[i] && c->child[i]->pid == pid)
            x = c->child[i];
    if (!x)
        return false;
    children_drain(x);
    if (end->code == SPAWN_FAILED_STATUS)
        children_take_report(x);
    x->end = *end;
    stage_exited(&c->stage, x->number, end->code, &c->todo);
    children_step(c);
    return true;
}

/* Nobody is judged before what he has said was read, and before it was seen whether he is still there. */
static void children_on_timer(void *ctx)
{
    struct children *c = ctx;
    stage_woke(&c->stage, loop_clock());
    for (unsigned i = 0; i < STAGE_CHILDREN_MAX; i++)
        if (c->child[i] && c->child[i]->pid)
            children_drain(c->child[i]);
    reap_scan(c->conf.reap);
    stage_timeout(&c->stage, loop_clock(), &c->todo);
    children_step(c);
}

void children_stop(struct children *c, int child)
{
    if (c->stage.running)
        stage_woke(&c->stage, loop_clock());
    stage_stop(&c->stage, child, loop_clock(), &c->todo);
    children_step(c);
}

unsigned children_running(const struct children *c)
{
    return c ? c->stage.running : 0;
}

/* --- life --- */

struct children *children_new(const struct children_conf *conf, struct el_err *e)
{
    struct children *c = calloc(1, sizeof *c);
    if (!c || !(c->timer = loop_timer_new(conf->loop, children_on_timer, c))) {
        free(c);
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    c->conf = *conf;
    stage_init(&c->stage, loop_clock());
    return c;
}

void children_free(struct children *c)
{
    if (!c)
        return;
    assert(!c->acting);
    for (unsigned i = 0; i < STAGE_CHILDREN_MAX; i++) {
        if (c->child[i] && c->child[i]->pid) {
            children_kill_child(c->child[i]);
            close_report(c->child[i]);
            children_stop_reading(c->child[i], RESULT);
            children_stop_reading(c->child[i], ERRORS);
        }
        free(c->child[i]);
    }
    loop_timer_free(c->timer);
    free(c);
}
