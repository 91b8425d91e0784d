#include "coord/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "output/console.h"
#include "coord/job_report.h"
#include "sys/signame.h"
#include "control/control_client.h"
#include "coord/coordinator.h"
#include "event/event_log.h"
#include "util/file.h"
#include "util/parse.h"

#define FLUSH_MAX    EL_SEC(2) /* for log lines, when the store ends */
#define HOLDER_MAX   EL_SEC(1) /* for each answer of whoever has the port */
#define POOL_THREADS 1         /* the journal is written by one at a time */

struct serve {
    struct loop *loop;
    struct console *console;
    struct store_server *server;
    struct pool *pool;
    struct coordinator *coordinator;
    struct event_log *trace;
    char host[256];
    struct job_report report; /* being received */
    size_t lost_bytes;
};

static struct event serve_event_of(const struct serve *s, enum event_type type, const char *run_id, uint64_t round)
{
    return (struct event){.type = type,
                          .source = EVENT_COORDINATOR,
                          .wall_usec = loop_wall_usec(),
                          .mono = loop_clock(),
                          .run_id = run_id,
                          .host = s->host,
                          .round = round};
}

static void serve_on_note(void *ctx, const char *run_id, const struct rdzv_note *note, int status)
{
    struct serve *s = ctx;
    struct event ev = serve_event_of(s, EVENT_OF_NOTE(note->type), run_id, note->number);
    ev.u.note = (struct event_note){.node = note->host[0] ? note->host : NULL, .text = note->text, .status = status};
    event_log_put(s->trace, &ev);
}

static void on_began(void *ctx, const char *run_id, const struct rdzv_settings *set)
{
    struct serve *s = ctx;
    struct event ev = serve_event_of(s, EVENT_JOB_STARTED, run_id, 0);
    ev.u.job_started = (struct event_job_started){set->min, set->max, set->max_restarts};
    event_log_put(s->trace, &ev);
}

static void on_control(void *ctx, int fd, const struct el_addr *peer, const char *bytes, size_t n)
{
    coordinator_accept(((struct serve *)ctx)->coordinator, fd, peer, bytes, n);
}

static void serve_on_flushed(void *ctx, size_t left_bytes)
{
    struct serve *s = ctx;
    s->lost_bytes = left_bytes;
    loop_stop(s->loop);
}

static void on_events_written(void *ctx)
{
    struct serve *s = ctx;
    console_finish(s->console, loop_clock() + FLUSH_MAX, serve_on_flushed, s);
}

static void serve_on_signal(void *ctx, const struct signalfd_siginfo *si)
{
    struct serve *s = ctx;
    char name[SIGNAME_MAX];
    if (!s->server)
        return;
    el_log(EL_INFO, "store: %s from pid %u: closing %zu connections", signame((int)si->ssi_signo, name), si->ssi_pid,
           store_server_clients(s->server));
    if (coordinator_busy(s->coordinator))
        el_log(EL_WARN, "coordinator: %u nodes run on without it; their agents wait for one at this address",
               coordinator_members(s->coordinator));
    store_server_free(s->server);
    s->server = NULL;
    coordinator_free(s->coordinator);
    s->coordinator = NULL;
    event_log_finish(s->trace, loop_clock() + FLUSH_MAX, on_events_written, s);
}

/* A round with failures is closed: the summary, line by line in the log. */
static void serve_on_report(void *ctx, const char *run_id, const struct msg *msg)
{
    struct serve *s = ctx;
    char shown[EL_SHOW_MAX], script[EL_SHOW_MAX + 8];
    struct el_buf out = EL_BUF_INIT(NULL, 1u << 20);
    if (!job_report_take(&s->report, msg))
        return;
    struct failure_report r = job_report_view(&s->report);
    snprintf(script, sizeof script, "job %s", el_show(run_id, shown));
    r.script = script;
    summary_write(&r, &out, &summary_plain, 0);
    struct text rest = {out.v, out.len}, line;
    while (text_line(&rest, &line))
        el_log(EL_INFO, "%.*s", (int)line.n, line.p);
    job_report_free(&s->report);
    el_buf_free(&out);
}

/* Whoever sees the file sees all of it. */
static int write_port_file(const char *path, int port, struct el_err *e)
{
    char text[16], part[4096];
    int n = snprintf(text, sizeof text, "%d\n", port);
    int m = snprintf(part, sizeof part, "%s.part", path);
    if (m < 0 || (size_t)m >= sizeof part)
        return el_fail(e, EL_EXIT_CANTCREAT, "port file %.100s...: name too long", path);
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return el_fail_sys(e, EL_EXIT_CANTCREAT, errno, "port file %s", part);
    int bad = write(fd, text, (size_t)n) != n, sys = errno;
    if (close(fd) && !bad) {
        bad = 1;
        sys = errno;
    }
    if (!bad && rename(part, path) == 0)
        return 0;
    sys = bad ? sys : errno;
    unlink(part);
    return el_fail_sys(e, EL_EXIT_CANTCREAT, sys, "port file %s", path);
}

/* systemd's protocol: a datagram to a Unix socket; "@" stands for the 0 of an abstract name. */
static void notify(const char *path, const char *text)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = path ? strlen(path) : 0;
    if (!n || n >= sizeof a.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(a.sun_path, path, n);
    if (path[0] == '@')
        a.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&a, size) < 0)
        el_log(EL_WARN, "store: cannot notify %s: %s", path, strerrorname_np(errno));
    close(fd);
}

static int serve_announce(struct serve *s, const struct store_serve_conf *conf, struct el_err *e)
{
    const struct store_server_conf *server = &conf->server;
    const char *where = server->bind ? server->bind : "127.0.0.1";
    int port = store_server_port(s->server);
    uint8_t ip[16];
    el_log(EL_INFO, strchr(where, ':') ? "store: listening on [%s]:%d" : "store: listening on %s:%d", where, port);
    if (server->bind && el_addr_parse(server->bind, ip) && !el_addr_is_loopback(ip) && !server->allow_n)
        el_log(EL_WARN,
               "store: ANYBODY WHO REACHES %s:%d MAY READ AND CHANGE ALL OF IT: c10d has no passwords, and "
               "torchrun agents unpickle what they read; name the networks that may connect by --allow",
               where, port);
    if (conf->port_file && write_port_file(conf->port_file, port, e))
        return -1;
    if (conf->print_port) {
        char text[16];
        int n = snprintf(text, sizeof text, "%d\n", port);
        sink_put(console_sink(s->console, 1), STDOUT_FILENO, text, (size_t)n);
    }
    notify(conf->notify, "READY=1");
    return 0;
}

/* The port is taken: by whom?  Asked only when there is nothing else to do; each wait has its limit. */
static void name_holder(const struct store_server_conf *server, struct el_err *e)
{
    struct el_err bad = {0};
    struct el_addr at = {.port = (uint16_t)server->port};
    struct msg m = {.type = MSG_STATUS, .u.status = {.run_id = ""}}, answer;
    char endpoint[EL_ADDR_TEXT_MAX], shown[EL_SHOW_MAX];
    size_t n = strlen(e->text);
    if (!server->bind || !el_addr_parse(server->bind, at.ip) || el_addr_is_any(at.ip))
        el_addr_parse("127.0.0.1", at.ip);
    struct control_client *c = control_client_open(el_addr_text(&at, endpoint), HOLDER_MAX, &bad);
    if (!c || control_client_send(c, &m, &bad) || control_client_receive(c, &answer, &bad)) {
        if (c) /* else nobody answers at that address */
            snprintf(e->text + n, sizeof e->text - n, "; %.300s", bad.text);
    } else {
        if (answer.type == MSG_STATUS_JOB)
            snprintf(
                e->text + n, sizeof e->text - n,
                "; a coordinator of elrun is there, in an agent or in another elrun store, and leads job %s: %.200s",
                el_show(answer.u.status_job.run_id, shown), answer.u.status_job.text);
        else
            snprintf(e->text + n, sizeof e->text - n,
                     "; a coordinator of elrun is there, in an agent or in another elrun store, and has no job");
        msg_release(&answer);
    }
    control_client_free(c);
}

int store_serve(const struct store_serve_conf *conf, struct el_err *e)
{
    struct serve s = {0};
    struct console_conf voice = {.verbose = conf->verbose, .json = conf->json, .env = conf->env};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    if (conf->events && !(s.trace = event_log_open(conf->events, e)))
        return -1;
    gethostname(s.host, sizeof s.host - 1);
    s.loop = loop_new(e);
    if (!s.loop || loop_signals(s.loop, &set, serve_on_signal, &s, e) || !(s.console = console_new(s.loop, &voice, e)))
        goto out;
    if (file_limit_raise(NULL) < 0) /* one descriptor for each client */
        el_log(EL_WARN, "store: cannot raise the limit of open files: %s", strerrorname_np(errno));
    struct store_server_conf server = conf->server;
    job_report_init(&s.report);
    struct coordinator_conf coordinator = {.state_dir = conf->state_dir,
                                           .keep_ended = conf->keep_ended,
                                           .own_user = server.own_user,
                                           .note = serve_on_note,
                                           .report = serve_on_report,
                                           .began = on_began,
                                           .ctx = &s};
    server.control = on_control;
    server.control_ctx = &s;
    if (event_log_start(s.trace, s.loop, e) < 0 || !(s.pool = pool_new(s.loop, POOL_THREADS, e)) ||
        !(s.coordinator = coordinator_new(s.loop, s.pool, &coordinator, e)))
        goto out;
    s.server = store_server_new(s.loop, &server, e);
    if (!s.server && e->sys == EADDRINUSE)
        name_holder(&conf->server, e);
    if (!s.server || serve_announce(&s, conf, e))
        goto out;
    loop_run(s.loop);
    notify(conf->notify, "STOPPING=1");
out:
    store_server_free(s.server);
    coordinator_free(s.coordinator);
    job_report_free(&s.report);
    bool stuck = !pool_free(s.pool);
    stuck |= !event_log_free(s.trace);
    stuck |= s.console && !console_free(s.console);
    if (stuck && !e->status)
        _exit(0); /* a thread stands in a write that does not return */
    loop_free(s.loop);
    return e->status ? -1 : 0;
}
