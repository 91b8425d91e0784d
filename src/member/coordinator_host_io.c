#include "member/coordinator_host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "member/coordinator_mark.h"
#include "util/file.h"
#include "util/log.h"
#include "util/scan.h"

#define BLOCKED_TRIES 3 /* whoever opens the port just now answers soon */

/* One piece of work on the mark. */
struct mark_job {
    struct pool_job job;
    struct coordinator_host *h;
    struct coordinator_mark_place place;
    el_usec limit;
    bool surely_new; /* answer of look */
};

struct coordinator_host {
    struct coordinator_host_conf conf;
    struct coordinator_host_ops ops;
    void *ctx;
    struct loop *loop;
    struct pool *pool;
    struct coordinator *coordinator;
    struct store_server *port;
    struct coordinator_mark_place place;
    struct mark_job *job;     /* that runs */
    struct mark_job *late;    /* that still ran at the end */
    struct loop_timer *timer; /* the mark is late, or due */
    bool beginning, ended;
    el_usec looked_at; /* for a mark */
    char trouble[256]; /* said last */
    unsigned blocked;  /* so often in a row was the port neither to be had nor answered */
    char process[COORDINATOR_MARK_SELF_MAX];
    uint64_t dead_number, dead_rank; /* as in coordinator_conf */
};

/* --- the mark --- */

static void work_look(void *ctx)
{
    struct mark_job *j = ctx;
    j->surely_new = coordinator_mark_look(&j->place, j->limit);
}

static void work_write(void *ctx)
{
    coordinator_mark_write(&((struct mark_job *)ctx)->place);
}

static void work_drop(void *ctx)
{
    coordinator_mark_drop(&((struct mark_job *)ctx)->place);
}

static void mark_done(void *ctx);
static void open_here(struct coordinator_host *h, bool surely_new, bool *taken, struct el_err *e);

/* False: not now; what was asked for before still runs, or there is no thread. */
static bool mark_run(struct coordinator_host *h, void (*work)(void *ctx))
{
    struct el_err e = {0};
    struct mark_job *j = h->job ? NULL : calloc(1, sizeof *j);
    if (!j)
        return false;
    *j = (struct mark_job){.h = h, .place = h->place, .limit = h->conf.silence};
    j->job = (struct pool_job){.work = work, .done = mark_done, .ctx = j};
    if (pool_run(h->pool, &j->job, &e) < 0) {
        free(j);
        return false;
    }
    h->job = j;
    return true;
}

static void begin_now(struct coordinator_host *h, bool surely_new)
{
    struct el_err e = {0};
    bool taken;
    h->beginning = false;
    /* While this process stood still another agent may have had the port, and left it. */
    bool fresh = loop_clock() - h->looked_at < COORDINATOR_HOST_LOOK_LIMIT;
    open_here(h, surely_new && fresh, &taken, &e);
    if (h->coordinator)
        mark_run(h, work_write);
    h->ops.begun(h->ctx, taken, &e);
}

static void mark_done(void *ctx)
{
    struct mark_job *j = ctx;
    struct coordinator_host *h = j->h;
    bool surely_new = j->surely_new;
    *(j == h->late ? &h->late : &h->job) = NULL;
    free(j);
    if (h->ended)
        return;
    if (h->beginning)
        begin_now(h, surely_new);
    loop_timer_at(h->timer, loop_clock() + COORDINATOR_MARK_REFRESH);
}

static void coordinator_host_on_timer(void *ctx)
{
    struct coordinator_host *h = ctx;
    if (h->beginning)
        begin_now(h, false);
    else if (h->coordinator)
        mark_run(h, work_write);
    loop_timer_at(h->timer, loop_clock() + COORDINATOR_MARK_REFRESH);
}

/* --- the port --- */

static void coordinator_host_greet(void *ctx, int fd, const struct el_addr *peer, const char *bytes, size_t n)
{
    coordinator_accept(((struct coordinator_host *)ctx)->coordinator, fd, peer, bytes, n);
}

static bool admits(void *ctx, const struct el_addr *peer)
{
    struct coordinator_host *h = ctx;
    return h->ops.admits(h->ctx, peer);
}

static void open_here(struct coordinator_host *h, bool surely_new, bool *taken, struct el_err *e)
{
    struct coordinator_conf cc = {.name = "coordinator",
                                  .one_job = true,
                                  .only_run_id = h->conf.run_id,
                                  .only_command = h->conf.command,
                                  .surely_new = surely_new,
                                  .note = h->ops.note,
                                  .report = h->ops.report,
                                  .own_instance = h->conf.instance,
                                  .own_process = h->process,
                                  .dead_number = h->dead_number,
                                  .dead_rank = h->dead_rank,
                                  .look = h->conf.look,
                                  .began = h->ops.job_began,
                                  .ended = h->ops.ended,
                                  .knock = h->ops.knock,
                                  .ctx = h->ctx};
    struct store_server_conf sc = {
        .bind = h->conf.here_only ? NULL : "::", /* not what the own name resolves to: that may be loopback */
        .port = h->conf.port,
        .name = "coordinator",
        .control = coordinator_host_greet,
        .admits = admits,
        .control_ctx = h,
        .c10d_refused = h->conf.c10d_refused,
        .own_user = h->conf.own_user,
        .allow = h->conf.allow,
        .allow_n = h->conf.allow_n,
    };
    h->port = store_server_new(h->loop, &sc, e);
    *taken = !h->port && e->sys == EADDRINUSE;
    if (*taken)
        *e = (struct el_err){0};
    if (!h->port)
        return;
    h->coordinator = coordinator_new(h->loop, h->pool, &cc, e);
    if (h->coordinator)
        return;
    store_server_free(h->port); /* nobody could answer there */
    h->port = NULL;
}

/* Outside of the range from which outgoing connections have theirs. */
static const char *ports_free(char *to, size_t size)
{
    char text[64];
    const char *at = text;
    uint64_t low, high;
    if (file_read("/proc/sys/net/ipv4/ip_local_port_range", text, sizeof text) <= 0 || !scan_u64(&at, &low) ||
        (scan_blanks(&at), !scan_u64(&at, &high)))
        low = 32768, high = 60999; /* Linux's default */
    snprintf(to, size, "below %llu or above %llu", (unsigned long long)low, (unsigned long long)high);
    return to;
}

/* --- from outside --- */

void coordinator_host_begin(struct coordinator_host *h)
{
    h->beginning = true;
    /* Without a thread, too, the answer comes later. */
    bool asked = mark_run(h, work_look);
    h->looked_at = loop_clock();
    loop_timer_at(h->timer, loop_clock() + (asked ? COORDINATOR_HOST_MARK_LIMIT : 0));
}

bool coordinator_host_take_over(struct coordinator_host *h, const struct msg_world *world)
{
    struct el_err e = {0};
    char free_ports[64];
    bool taken;
    if (h->port || h->beginning)
        return h->coordinator != NULL;
    h->dead_number = h->dead_rank = 0;
    if (world && world->coordinator_rank && coordinator_mark_is_dead(world->coordinator_process)) {
        h->dead_number = world->number;
        h->dead_rank = world->coordinator_rank - 1;
    }
    open_here(h, false, &taken, &e);
    h->blocked = taken ? h->blocked : 0;
    if (h->coordinator) {
        el_log(EL_INFO, "port %d of this host, the endpoint's, was free: this agent hosts the coordinator from now on",
               h->conf.port);
        mark_run(h, work_write);
        loop_timer_at(h->timer, loop_clock() + COORDINATOR_MARK_REFRESH);
    } else if (taken && ++h->blocked == BLOCKED_TRIES) {
        el_log(EL_WARN,
               "port %d of this host, the endpoint's, cannot be had, and nobody answers there: a connection of another "
               "program has it, or had it a minute ago; choose a port %s, which the kernel gives to no connection",
               h->conf.port, ports_free(free_ports, sizeof free_ports));
    } else if (e.status && strcmp(h->trouble, e.text) != 0) {
        snprintf(h->trouble, sizeof h->trouble, "%.255s", e.text);
        el_log(EL_WARN, "%s: this host is the endpoint, but cannot be the coordinator", e.text);
    }
    return h->coordinator != NULL;
}

void coordinator_host_end(struct coordinator_host *h)
{
    if (!h->coordinator || h->ended)
        return;
    h->ended = true;
    loop_timer_at(h->timer, EL_NEVER);
    h->late = h->job; /* pool jobs of one thread may overtake each other; one that stands still is not waited for */
    h->job = NULL;
    mark_run(h, work_drop);
}

struct coordinator *coordinator_host_coordinator(const struct coordinator_host *h)
{
    return h->coordinator;
}

struct store_server *coordinator_host_port(const struct coordinator_host *h)
{
    return h->port;
}

struct coordinator_host *coordinator_host_new(struct loop *l, struct pool *p, const struct coordinator_host_conf *conf,
                                              const struct coordinator_host_ops *ops, void *ctx, struct el_err *e)
{
    struct coordinator_host *h = calloc(1, sizeof *h);
    if (!h) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    h->conf = *conf;
    h->ops = *ops;
    h->ctx = ctx;
    h->loop = l;
    h->pool = p;
    coordinator_mark_find(conf->port, conf->run_id, conf->keep, &h->place);
    coordinator_mark_self(h->process);
    h->timer = loop_timer_new(l, coordinator_host_on_timer, h);
    if (h->timer)
        return h;
    el_fail(e, EL_EXIT_OSERR, "out of memory");
    coordinator_host_free(h);
    return NULL;
}

/* The pool is gone by now, or never was used: nobody works on what is left of our jobs. */
void coordinator_host_free(struct coordinator_host *h)
{
    if (!h)
        return;
    store_server_free(h->port);
    coordinator_free(h->coordinator);
    loop_timer_free(h->timer);
    free(h->job);
    free(h->late);
    free(h);
}
