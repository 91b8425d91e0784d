/* A coordinator's shell on a stage, for test_coordinator*_io.c: agents played by the test.  The other end of each
 * connection is a socket pair, so that its address can be any. */
#ifndef TEST_UNIT_COORDINATOR_STAGE_H
#define TEST_UNIT_COORDINATOR_STAGE_H
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/tap.h"
#include "coord/coordinator.h"
#include "coord/journal.h"
#include "util/log.h"

#define PATIENCE EL_SEC(20) /* of a wait that fails anyway */

static struct loop *loop;
static struct loop_timer *tick;
static struct pool *pool;
static struct coordinator *c;
static char logged[65536];

/* --- the other end ------------------------------------------------------------------------------------------------ */

struct end {
    int fd;
    bool closed;
    struct msg_decoder decoder;
    struct el_buf in;
    uint64_t instance, connection, number, coord;
    unsigned count[128]; /* messages by type */
    unsigned last;
    char text[512]; /* of the last message that had one */
    struct msg_world world;
    char master[64];
    unsigned status;
    bool retry, more;
};

static struct end ends[8];

static inline void note(struct end *x, const struct msg *m)
{
    const char *text = NULL;
    x->last = m->type;
    x->count[m->type]++;
    switch ((unsigned)m->type) {
    case MSG_WORLD:
        x->world = m->u.world;
        snprintf(x->master, sizeof x->master, "%s", m->u.world.master_addr);
        x->number = m->u.world.number;
        x->coord = m->u.world.coord;
        break;
    case MSG_OPEN_STORE:
        x->number = m->u.open_store.number;
        x->coord = m->u.open_store.coord;
        break;
    case MSG_REFUSED:
        text = m->u.refused.text;
        x->status = (unsigned)m->u.refused.status;
        x->retry = m->u.refused.retry;
        break;
    case MSG_DONE:
        text = m->u.done.text;
        x->status = (unsigned)m->u.done.status;
        break;
    case MSG_END:
        text = m->u.end.text;
        x->status = (unsigned)m->u.end.status;
        break;
    case MSG_STOP: text = m->u.stop.text; break;
    case MSG_WAIT: text = m->u.wait.text; break;
    case MSG_STATUS_JOB:
        text = m->u.status_job.run_id;
        x->more = m->u.status_job.more;
        break;
    case MSG_STATUS_MEMBER: x->more = m->u.status_member.more; break;
    default: break;
    }
    if (text)
        snprintf(x->text, sizeof x->text, "%s", text);
}

static inline void hear(struct end *x)
{
    char bytes[65536];
    ssize_t n;
    while (x->fd >= 0 && !x->closed && (n = recv(x->fd, bytes, sizeof bytes, MSG_DONTWAIT)) != -1) {
        x->closed = n == 0;
        el_buf_put(&x->in, bytes, (size_t)n);
    }
    if (x->fd >= 0 && errno != EAGAIN)
        x->closed = true;
    for (long used = 1; used > 0 && x->in.len;) {
        struct msg m;
        struct el_err e = {0};
        used = msg_consume(&x->decoder, x->in.v, x->in.len, &m, &e);
        if (used <= 0)
            break;
        if (m.type)
            note(x, &m);
        msg_release(&m);
        el_buf_drop(&x->in, (size_t)used);
    }
}

static inline void raw(struct end *x, const void *bytes, size_t n)
{
    ok(send(x->fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n || x->closed, "bytes are sent");
}

static inline void tell(struct end *x, const struct msg *m)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    msg_encode(m, &out);
    (void)!send(x->fd, out.v, out.len, MSG_NOSIGNAL);
    el_buf_free(&out);
}

static inline void hang_up(struct end *x)
{
    if (x->fd >= 0)
        close(x->fd);
    x->fd = -1;
    el_buf_free(&x->in);
    x->decoder = (struct msg_decoder){0};
    x->closed = false;
}

static int unsent_room; /* of the coordinator's end; 0: as the kernel has it */

/* A new connection from this address; the preamble is there already. */
static inline void dial_in(struct end *x, const char *ip)
{
    int pair[2];
    struct el_addr addr = {.port = 1234};
    hang_up(x);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) || !el_addr_parse(ip, addr.ip))
        exit(1);
    if (unsent_room)
        (void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &unsent_room, sizeof unsent_room);
    x->fd = pair[0];
    memset(x->count, 0, sizeof x->count);
    x->last = 0;
    x->text[0] = 0;
    coordinator_accept(c, pair[1], &addr, MSG_PREAMBLE, MSG_PREAMBLE_SIZE);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static bool (*wanted)(void);
static el_usec give_up_at;

static inline void on_tick(void *ctx)
{
    (void)ctx;
    for (unsigned i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (ends[i].fd >= 0)
            hear(&ends[i]);
    if (wanted() || loop_clock() >= give_up_at)
        loop_stop(loop);
    else
        loop_timer_at(tick, loop_clock() + EL_MS(1));
}

static inline bool wait_for(bool (*what)(void))
{
    wanted = what;
    give_up_at = loop_clock() + PATIENCE;
    loop_timer_at(tick, loop_clock());
    loop_run(loop);
    return what();
}

static inline bool never(void)
{
    return false;
}

static inline void wait_ms(unsigned ms)
{
    wanted = never;
    give_up_at = loop_clock() + EL_MS(ms);
    loop_timer_at(tick, loop_clock());
    loop_run(loop);
}

static struct end *who;
static unsigned type_wanted, times_wanted;

static inline bool has_come(void)
{
    return who->count[type_wanted] >= times_wanted;
}

static inline bool is_closed(void)
{
    return who->closed;
}

static inline bool wait_type(struct end *x, unsigned type, unsigned times)
{
    who = x;
    type_wanted = type;
    times_wanted = times;
    return wait_for(has_come);
}

static inline bool wait_closed(struct end *x)
{
    who = x;
    return wait_for(is_closed);
}

/* --- agents ------------------------------------------------------------------------------------------------------- */

static inline struct msg_hello settings(const char *run_id, unsigned min, unsigned max)
{
    return (struct msg_hello){.run_id = run_id,
                              .host = "h",
                              .addr = "",
                              .node_rank = -1,
                              .slots = 2,
                              .role = "default",
                              .command = "",
                              .elrun = "",
                              .master_addr = "",
                              .group_rank = -1,
                              .min = min,
                              .max = max,
                              .unit = 1,
                              .max_restarts = 3,
                              .max_fruitless = 10,
                              .settle_ms = 50,
                              .last_call_ms = 1000,
                              .join_timeout_ms = 60000,
                              .keep_alive_ms = 1000,
                              .keep_alive_attempts = 20,
                              .reconnect_grace_ms = 100,
                              .scale_up_delay_ms = 50,
                              .grace_ms = 1000};
}

static inline void say_hello(struct end *x, struct msg_hello h)
{
    struct msg m = {.type = MSG_HELLO, .u.hello = h};
    m.u.hello.instance = x->instance;
    m.u.hello.connection = ++x->connection;
    tell(x, &m);
}

static inline void join(struct end *x, const char *ip, uint64_t instance, struct msg_hello h)
{
    dial_in(x, ip);
    if (x->instance != instance)
        x->connection = 0;
    x->instance = instance;
    say_hello(x, h);
}

static inline void about_round(struct end *x, enum msg_type type)
{
    struct msg m = {.type = type};
    switch ((unsigned)type) {
    case MSG_STORE_READY: m.u.store_ready = (struct msg_store_ready){x->number, x->coord, "10.0.0.1", 4711}; break;
    case MSG_STOPPED: m.u.stopped = (struct msg_stopped){.number = x->number, .coord = x->coord}; break;
    case MSG_SUCCEEDED: m.u.succeeded = (struct msg_succeeded){x->number, x->coord}; break;
    case MSG_END_ACK: m.u.end_ack.status = x->status; break;
    default: m.u.started = (struct msg_started){x->number, x->coord}; break;
    }
    tell(x, &m);
}

/* Members of one job come from two hosts and get their world. */
static inline void form(struct end *a, struct end *b, const char *run_id, unsigned min)
{
    join(a, "10.0.0.1", 0xa, settings(run_id, min, 2));
    wait_type(a, MSG_WAIT, 1); /* it came first */
    join(b, "10.0.0.2", 0xb, settings(run_id, min, 2));
    wait_type(a, MSG_OPEN_STORE, 1);
    about_round(a, MSG_STORE_READY);
    wait_type(a, MSG_WORLD, 1);
    wait_type(b, MSG_WORLD, 1);
    about_round(a, MSG_STARTED);
    about_round(b, MSG_STARTED);
}

static unsigned ended_calls, ended_status, notes;

static inline void on_ended(void *ctx, const char *run_id, unsigned status)
{
    (void)ctx, (void)run_id;
    ended_calls++;
    ended_status = status;
}

static inline void on_note(void *ctx, const char *run_id, const struct rdzv_note *note, int status)
{
    (void)ctx;
    notes += *run_id && *note->text && (status >= 0) == (note->type == NOTE_ENDED);
}

static int knocked_fd = -1;
static char knocked[512];
static size_t knocked_n;

static inline void on_knock(void *ctx, int fd, const struct el_addr *peer, const char *bytes, size_t n)
{
    (void)ctx, (void)peer;
    knocked_fd = fd;
    knocked_n = n < sizeof knocked ? n : sizeof knocked;
    memcpy(knocked, bytes, knocked_n);
}

static el_usec reader_limit; /* 0: the default */

static inline void open_coordinator(const char *state_dir, bool knocks)
{
    struct el_err e = {0};
    struct coordinator_conf conf = {.state_dir = state_dir, .surely_new = true, .ended = on_ended, .note = on_note};
    conf.knock = knocks ? on_knock : NULL;
    conf.reader_limit = reader_limit;
    c = coordinator_new(loop, pool, &conf, &e);
    if (!c) {
        printf("Bail out! %s\n", e.text);
        exit(1);
    }
}

static inline void close_coordinator(void)
{
    coordinator_free(c);
    for (unsigned i = 0; i < sizeof ends / sizeof ends[0]; i++)
        hang_up(&ends[i]);
}

/* --- the program -------------------------------------------------------------------------------------------------- */

static inline void on_log(void *ctx, enum el_level level, const char *text)
{
    (void)ctx, (void)level;
    size_t n = strlen(logged);
    snprintf(logged + n, sizeof logged - n, "%s|", text);
}

static inline void stage_open(void)
{
    struct el_err e = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    el_log_set(on_log, NULL, EL_DEBUG);
    for (unsigned i = 0; i < sizeof ends / sizeof ends[0]; i++)
        ends[i].fd = -1;
    loop = loop_new(&e);
    tick = loop_timer_new(loop, on_tick, NULL);
    pool = pool_new(loop, 1, &e);
}

static inline void stage_close(void)
{
    loop_timer_free(tick);
    pool_free(pool);
    loop_free(loop);
}

#endif
