#include "event/hooks.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sys/signame.h"
#include "proc/spawn.h"
#include "util/log.h"
#include "util/parse.h"

#define SHELL        "/bin/sh"
#define VARIABLES    6
#define VARIABLE_MAX (EVENT_TEXT_MAX + 64)
#define READ_BYTES   65536
#define DRAIN_BYTES  (1u << 20) /* of what a command that has ended left in its pipe: no pipe holds more */

/* An event on its way through a lane. */
struct payload {
    unsigned tag;
    size_t len;
    char *line;
    char variable[VARIABLES][VARIABLE_MAX];
};

/* What runs in a lane. */
struct hooks_run {
    struct hooks *h;
    enum hook_kind kind;
    pid_t pid; /* 0: nothing */
    unsigned command;
    el_usec since;
    int fd; /* its output */
    struct loop_fd *watch;
    char line[HOOKS_LINE_MAX + 1]; /* the one that is not finished yet */
    size_t len, told, dropped;
    char last[256]; /* line that it printed */
};

struct hooks {
    struct hooks_conf conf;
    struct loop *loop;
    struct reap *reap;
    struct loop_timer *timer;
    struct hook_core core;
    struct hooks_run run[HOOK_KINDS];
    char trouble[HOOK_KINDS][512]; /* of the event that runs; "": none */
    struct hook_actions todo;      /* what the core wants and is not done yet */
    bool acting, finishing;
};

static void hooks_step(struct hooks *h);

static const char *command_of(const struct hooks *h, const struct hooks_run *r)
{
    return h->conf.commands[r->command].text;
}

/* --- what it prints --- */

static void tell_line(struct hooks_run *r)
{
    for (size_t i = 0; i < r->len; i++)
        if (!r->line[i])
            r->line[i] = '?';
    r->line[r->len] = 0;
    if (r->len) {
        el_log(EL_INFO, "hook %s: %s", hook_name(r->kind), r->line);
        el_show_path(r->line, r->last, sizeof r->last);
    }
    r->len = 0;
}

static void take_output(struct hooks_run *r, const char *bytes, size_t n)
{
    size_t room = HOOKS_OUTPUT_MAX - r->told, take = n < room ? n : room;
    r->told += take;
    r->dropped += n - take;
    for (size_t i = 0; i < take; i++) {
        if (bytes[i] != '\n')
            r->line[r->len++] = bytes[i];
        if (bytes[i] == '\n' || r->len == HOOKS_LINE_MAX)
            tell_line(r);
    }
}

static void hooks_stop_reading(struct hooks_run *r)
{
    loop_fd_free(r->watch);
    r->watch = NULL;
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}

/* Bytes read; 0 at the end, or when there is nothing now. */
static size_t hooks_read_some(struct hooks_run *r)
{
    static char bytes[READ_BYTES]; /* the loop's thread only */
    ssize_t n = read(r->fd, bytes, sizeof bytes);
    if (n > 0)
        take_output(r, bytes, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        hooks_stop_reading(r);
    return n > 0 ? (size_t)n : 0;
}

static void on_output(void *ctx, unsigned events)
{
    (void)events;
    hooks_read_some(ctx);
}

/* --- one command --- */

static void set_variable(struct payload *p, unsigned i, const char *name, const char *value)
{
    assert(i < VARIABLES);
    int n = snprintf(p->variable[i], VARIABLE_MAX, "%s=%s", name, value ? value : "");
    if (n >= VARIABLE_MAX) { /* never in the middle of a character */
        size_t end = VARIABLE_MAX - 1;
        while (end && ((unsigned char)p->variable[i][end - 1] & 0xc0) == 0x80)
            end--;
        p->variable[i][end ? end - 1 : 0] = 0;
    }
}

/* What a script wants to know most, without a reader of JSON. */
static const char *hooks_text_of(const struct event *ev)
{
    switch ((int)ev->type) {
    case EVENT_INCIDENT: return ev->u.incident.text;
    case EVENT_NODE_BAD: return ev->u.node_bad.why;
    case EVENT_WORKERS_STOPPING: return ev->u.workers_stopping.why;
    case EVENT_WORKERS_STOPPED: return ev->u.workers_stopped.why;
    case EVENT_AGENT_ENDED: return ev->u.agent_ended.text;
    default: return NULL;
    }
}

static struct payload *payload_new(enum hook_kind kind, const struct event *ev, unsigned tag)
{
    struct payload *p = calloc(1, sizeof *p);
    struct el_buf line = EL_BUF_INIT(NULL, 0);
    char number[32];
    if (!p || event_encode(ev, &line) < 0 || !(p->line = malloc(line.len))) {
        el_buf_free(&line);
        free(p);
        return NULL;
    }
    memcpy(p->line, line.v, p->len = line.len);
    el_buf_free(&line);
    p->tag = tag;
    set_variable(p, 0, "ELRUN_EVENT", hook_name(kind));
    set_variable(p, 1, "ELRUN_RUN_ID", ev->run_id);
    set_variable(p, 2, "ELRUN_HOST", ev->host);
    snprintf(number, sizeof number, "%llu", (unsigned long long)ev->round);
    set_variable(p, 3, "ELRUN_ROUND_NUMBER", number);
    set_variable(p, 4, "ELRUN_NODE", ev->type == EVENT_NODE_BAD ? ev->u.node_bad.node : ev->host);
    set_variable(p, 5, "ELRUN_TEXT", hooks_text_of(ev));
    return p;
}

static void payload_free(struct payload *p)
{
    free(p->line);
    free(p);
}

static bool hooks_same_name(const char *a, const char *b)
{
    size_t n = strcspn(b, "=");
    return strncmp(a, b, n) == 0 && a[n] == '=';
}

/* The inherited environment with ours in place of what has the same names; the secret is not for children. */
static char **env_of(const struct hooks *h, struct payload *p)
{
    size_t inherited = 0, n = 0;
    while (h->conf.env[inherited])
        inherited++;
    char **env = calloc(inherited + VARIABLES + 1, sizeof *env);
    for (size_t i = 0; env && i < inherited; i++) {
        bool ours = hooks_same_name(h->conf.env[i], "ELRUN_SECRET=");
        for (unsigned k = 0; k < VARIABLES; k++)
            ours |= hooks_same_name(h->conf.env[i], p->variable[k]);
        if (!ours)
            env[n++] = h->conf.env[i];
    }
    for (unsigned k = 0; env && k < VARIABLES; k++)
        env[n++] = p->variable[k];
    return env;
}

/* Memory that can be read like a file: whoever does not read it holds nobody up. */
static int input_of(const struct payload *p, struct el_err *e)
{
    int fd = memfd_create("elrun-event", MFD_CLOEXEC);
    if (fd < 0)
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "memfd_create");
    for (size_t at = 0; at < p->len;) {
        ssize_t n = write(fd, p->line + at, p->len - at);
        if (n <= 0) {
            el_fail_sys(e, EL_EXIT_OSERR, n < 0 ? errno : ENOSPC, "standard input");
            close(fd);
            return -1;
        }
        at += (size_t)n;
    }
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static pid_t hooks_spawn(struct hooks *h, const struct hooks_run *r, int in, int out, struct payload *p,
                         struct el_err *e)
{
    char sh[] = SHELL, c[] = "-c";
    char *argv[] = {sh, c, (char *)(uintptr_t)command_of(h, r), NULL};
    char **env = env_of(h, p);
    if (!env)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    struct spawn_conf sc = {
        .name = "a hook",
        .path = SHELL,
        .argv = argv,
        .envp = env,
        .fd = {in, out, out},
        .report_fd = -1,
        .guard_fd = h->conf.guard_fd(h->conf.ctx),
        .cgroup_fd = -1,
        .terminal_fd = -1,
        .files = h->conf.files,
    };
    pid_t pid = spawn_worker(&sc, e);
    free(env);
    return pid;
}

static int run_command(struct hooks *h, struct hooks_run *r, struct payload *p, struct el_err *e)
{
    int out[2] = {-1, -1}, in = input_of(p, e);
    if (in < 0)
        return -1;
    if (pipe2(out, O_CLOEXEC) < 0) {
        close(in);
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "pipe");
    }
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    r->pid = hooks_spawn(h, r, in, out[1], p, e);
    close(in);
    close(out[1]);
    r->fd = out[0];
    r->len = r->told = r->dropped = 0;
    r->last[0] = 0;
    r->since = loop_clock();
    r->watch = r->pid > 0 ? loop_fd_new(h->loop, r->fd, LOOP_READ, on_output, r) : NULL;
    if (r->pid > 0) {
        reap_help(h->reap, r->pid);
        return 0;
    }
    r->pid = 0;
    hooks_stop_reading(r);
    return -1;
}

/* The first failure of an event is what is said of it. */
static void hooks_note_trouble(struct hooks *h, enum hook_kind kind, const char *text)
{
    const struct hooks_run *r = &h->run[kind];
    char shown[EL_SHOW_MAX], last[sizeof r->last];
    char *to = h->trouble[kind];
    memcpy(last, r->last, sizeof last);
    if (!*to)
        snprintf(to, sizeof h->trouble[kind], "hook %s (%s): %s%s%s", hook_name(kind), el_show(command_of(h, r), shown),
                 text, *last ? "; its last line: " : "", last);
    if (kind != HOOK_PRE_START) /* that one ends the start, which says why */
        el_log(EL_WARN, "hook %s (%s): %s", hook_name(kind), el_show(command_of(h, r), shown), text);
}

static void hooks_start(struct hooks *h, const struct hook_action *a)
{
    struct hooks_run *r = &h->run[a->kind];
    struct el_err e = {0};
    r->command = a->command;
    if (run_command(h, r, a->payload, &e) == 0)
        return;
    hooks_note_trouble(h, a->kind, e.text);
    hook_ended(&h->core, a->kind, false, loop_clock(), &h->todo);
}

static void kill_run(const struct hooks_run *r, int signal)
{
    if (!r->pid)
        return;
    if (kill(-r->pid, signal) < 0 && errno == ESRCH)
        kill(r->pid, signal); /* between fork and setsid the group is not there yet */
    if (signal != SIGKILL)
        kill(-r->pid, SIGCONT);
}

static void say_end(struct hooks *h, struct hooks_run *r, const struct reap_end *end)
{
    const struct hook_lane *l = &h->core.lane[r->kind];
    char text[128], name[SIGNAME_MAX];
    struct hooks_end out = {.kind = r->kind,
                            .command = command_of(h, r),
                            .code = end->code,
                            .signal = end->signal,
                            .timed_out = l->timed_out,
                            .elapsed = loop_clock() - r->since};
    if (r->dropped)
        el_log(EL_INFO, "hook %s: %zu more bytes of output are left out", hook_name(r->kind), r->dropped);
    if (l->timed_out)
        snprintf(text, sizeof text, "was ended after %.6g s", (double)h->conf.timeout / 1e6);
    else if (end->signal > 0)
        snprintf(text, sizeof text, "ended by %s", signame(end->signal, name));
    else
        snprintf(text, sizeof text, "exit status %d", end->code);
    bool wanted = l->given_up && !l->timed_out; /* elrun does not need it any more */
    if ((end->code != 0 || l->timed_out) && !wanted)
        hooks_note_trouble(h, r->kind, text);
    h->conf.ended(h->conf.ctx, &out);
}

void hooks_child(struct hooks *h, pid_t pid, const struct reap_end *end)
{
    struct hooks_run *r = NULL;
    for (unsigned k = 0; h && k < HOOK_KINDS; k++)
        if (h->run[k].pid == pid)
            r = &h->run[k];
    if (!h)
        return;
    h->conf.gone(h->conf.ctx, pid);
    if (!r)
        return; /* it was given up */
    for (size_t got = 0, n; r->fd >= 0 && got < DRAIN_BYTES && (n = hooks_read_some(r)) > 0;)
        got += n;
    hooks_stop_reading(r);
    tell_line(r);
    bool good = end->code == 0 && !h->core.lane[r->kind].timed_out;
    say_end(h, r, end);
    r->pid = 0;
    hook_ended(&h->core, r->kind, good, loop_clock(), &h->todo);
    hooks_step(h);
}

/* --- the core --- */

static void tell_done(struct hooks *h, const struct hook_action *a)
{
    struct payload *p = a->payload;
    char trouble[sizeof h->trouble[0]];
    snprintf(trouble, sizeof trouble, "%s", h->trouble[a->kind]);
    h->trouble[a->kind][0] = 0;
    unsigned tag = p->tag;
    payload_free(p);
    h->conf.done(h->conf.ctx, a->kind, tag, a->good ? NULL : *trouble ? trouble : "given up");
}

static void hooks_act(struct hooks *h, const struct hook_action *a)
{
    struct hooks_run *r = &h->run[a->kind];
    switch (a->type) {
    case HOOK_DO_START: hooks_start(h, a); break;
    case HOOK_DO_SIGNAL: kill_run(r, a->signal); break;
    case HOOK_DO_FORGET:
        hooks_note_trouble(h, a->kind, "survives SIGKILL");
        hooks_stop_reading(r);
        r->pid = 0;
        break;
    case HOOK_DO_DONE: tell_done(h, a); break;
    }
}

static void say_missed(const struct hooks *h)
{
    for (unsigned k = 0; k < HOOK_KINDS; k++)
        if (h->core.lane[k].missed)
            el_log(EL_WARN, "hook %s: %u events came while %d others waited, and were left out",
                   hook_name((enum hook_kind)k), h->core.lane[k].missed, HOOK_WAITING_MAX);
}

/* Carries out what the core wants; callbacks may make it want more. */
static void hooks_step(struct hooks *h)
{
    if (h->acting)
        return;
    h->acting = true;
    while (h->todo.n) {
        struct hook_action a = h->todo.v[0];
        memmove(h->todo.v, h->todo.v + 1, --h->todo.n * sizeof h->todo.v[0]);
        hooks_act(h, &a);
    }
    h->acting = false;
    hook_check(&h->core);
    loop_timer_at(h->timer, hook_deadline(&h->core));
    if (h->finishing && hook_idle(&h->core)) {
        h->finishing = false;
        say_missed(h);
        h->conf.idle(h->conf.ctx);
    }
}

static void hooks_on_timer(void *ctx)
{
    struct hooks *h = ctx;
    hook_timeout(&h->core, loop_clock(), &h->todo);
    hooks_step(h);
}

void hooks_fire(struct hooks *h, enum hook_kind kind, const struct event *ev, unsigned tag)
{
    struct payload *p = h ? payload_new(kind, ev, tag) : NULL;
    if (!h)
        return;
    if (!p) {
        el_log(EL_WARN, "hook %s: left out: out of memory", hook_name(kind));
        h->conf.done(h->conf.ctx, kind, tag, "out of memory");
    } else if (!hook_event(&h->core, kind, p, loop_clock(), &h->todo)) {
        payload_free(p);
        h->conf.done(h->conf.ctx, kind, tag, "too many wait");
    }
    hooks_step(h);
}

void hooks_cancel(struct hooks *h, enum hook_kind kind)
{
    if (!h)
        return;
    hook_cancel(&h->core, kind, loop_clock(), &h->todo);
    hooks_step(h);
}

void hooks_abort(struct hooks *h)
{
    for (unsigned k = 0; h && k < HOOK_KINDS; k++)
        hooks_cancel(h, (enum hook_kind)k);
}

void hooks_finish(struct hooks *h, const struct event *ev)
{
    hook_cancel(&h->core, HOOK_PRE_START, loop_clock(), &h->todo);
    hook_finish(&h->core, loop_clock());
    h->finishing = true;
    hooks_fire(h, HOOK_END, ev, 0);
}

void hooks_guard(struct hooks *h, void (*add)(void *ctx, pid_t group))
{
    for (unsigned k = 0; h && k < HOOK_KINDS; k++)
        if (h->run[k].pid)
            add(h->conf.ctx, h->run[k].pid);
}

/* --- life --- */

struct hooks *hooks_new(struct loop *l, struct reap *r, const struct hooks_conf *conf, struct el_err *e)
{
    if (access(SHELL, X_OK) < 0) {
        el_fail_sys(e, EL_EXIT_CONFIG, errno, "--hook wants %s", SHELL);
        return NULL;
    }
    struct hooks *h = calloc(1, sizeof *h);
    if (!h || !(h->timer = loop_timer_new(l, hooks_on_timer, h))) {
        free(h);
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    h->conf = *conf;
    h->loop = l;
    h->reap = r;
    hook_init(&h->core, conf->commands, conf->count, conf->timeout);
    for (unsigned k = 0; k < HOOK_KINDS; k++)
        h->run[k] = (struct hooks_run){.h = h, .kind = (enum hook_kind)k, .fd = -1};
    return h;
}

void hooks_free(struct hooks *h)
{
    if (!h)
        return;
    for (unsigned k = 0; k < HOOK_KINDS; k++) {
        kill_run(&h->run[k], SIGKILL);
        hooks_stop_reading(&h->run[k]);
        for (unsigned i = 0; i < h->core.lane[k].events; i++)
            payload_free(h->core.lane[k].payload[i]);
    }
    loop_timer_free(h->timer);
    free(h);
}
