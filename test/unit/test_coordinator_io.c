/* The coordinator's shell with real descriptors: agents played by the test, bad input, journal, commands.  The other end
 * of each connection is a socket pair, so that its address can be any. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/tap.h"
#include "loop/dial.h"
#include "rdzv/coordinator.h"
#include "rdzv/journal.h"
#include "store/server.h"
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
    unsigned count[128];   /* messages by type */
    unsigned last;
    char text[512];        /* of the last message that had one */
    struct msg_world world;
    char master[64];
    unsigned status;
    bool retry, more;
};

static struct end ends[8];

static void note(struct end *x, const struct msg *m)
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
    case MSG_PARK: text = m->u.park.text; break;
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

static void hear(struct end *x)
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

static void raw(struct end *x, const void *bytes, size_t n)
{
    ok(send(x->fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n || x->closed, "bytes are sent");
}

static void tell(struct end *x, const struct msg *m)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    msg_encode(m, &out);
    (void)!send(x->fd, out.v, out.len, MSG_NOSIGNAL);
    el_buf_free(&out);
}

static void hang_up(struct end *x)
{
    if (x->fd >= 0)
        close(x->fd);
    x->fd = -1;
    el_buf_free(&x->in);
    x->decoder = (struct msg_decoder){0};
    x->closed = false;
}

/* A new connection from this address; the preamble is there already. */
static void dial_in(struct end *x, const char *ip)
{
    int pair[2];
    struct el_addr addr = {.port = 1234};
    hang_up(x);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) || !el_addr_parse(ip, addr.ip))
        exit(1);
    x->fd = pair[0];
    memset(x->count, 0, sizeof x->count);
    x->last = 0;
    x->text[0] = 0;
    coordinator_accept(c, pair[1], &addr, MSG_PREAMBLE, MSG_PREAMBLE_SIZE);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static bool (*wanted)(void);
static el_usec give_up_at;

static void on_tick(void *ctx)
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

static bool wait_for(bool (*what)(void))
{
    wanted = what;
    give_up_at = loop_clock() + PATIENCE;
    loop_timer_at(tick, loop_clock());
    loop_run(loop);
    return what();
}

static bool never(void)
{
    return false;
}

static void wait_ms(unsigned ms)
{
    wanted = never;
    give_up_at = loop_clock() + EL_MS(ms);
    loop_timer_at(tick, loop_clock());
    loop_run(loop);
}

static struct end *who;
static unsigned type_wanted, times_wanted;

static bool has_come(void)
{
    return who->count[type_wanted] >= times_wanted;
}

static bool is_closed(void)
{
    return who->closed;
}

static bool wait_type(struct end *x, unsigned type, unsigned times)
{
    who = x;
    type_wanted = type;
    times_wanted = times;
    return wait_for(has_come);
}

static bool wait_closed(struct end *x)
{
    who = x;
    return wait_for(is_closed);
}

/* --- agents ------------------------------------------------------------------------------------------------------- */

static struct msg_hello settings(const char *run_id, unsigned min, unsigned max)
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

static void say_hello(struct end *x, struct msg_hello h)
{
    struct msg m = {.type = MSG_HELLO, .u.hello = h};
    m.u.hello.instance = x->instance;
    m.u.hello.connection = ++x->connection;
    tell(x, &m);
}

static void join(struct end *x, const char *ip, uint64_t instance, struct msg_hello h)
{
    dial_in(x, ip);
    if (x->instance != instance)
        x->connection = 0;
    x->instance = instance;
    say_hello(x, h);
}

static void about_round(struct end *x, enum msg_type type)
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
static void form(struct end *a, struct end *b, const char *run_id, unsigned min)
{
    join(a, "10.0.0.1", 0xa, settings(run_id, min, 2));
    wait_type(a, MSG_PARK, 1); /* it came first */
    join(b, "10.0.0.2", 0xb, settings(run_id, min, 2));
    wait_type(a, MSG_OPEN_STORE, 1);
    about_round(a, MSG_STORE_READY);
    wait_type(a, MSG_WORLD, 1);
    wait_type(b, MSG_WORLD, 1);
    about_round(a, MSG_STARTED);
    about_round(b, MSG_STARTED);
}

static unsigned ended_calls, ended_status, notes;

static void on_ended(void *ctx, const char *run_id, unsigned status)
{
    (void)ctx, (void)run_id;
    ended_calls++;
    ended_status = status;
}

static void on_note(void *ctx, const char *run_id, const char *event, const char *text)
{
    (void)ctx;
    notes += *run_id && *event && *text;
}

static int knocked_fd = -1;
static char knocked[512];
static size_t knocked_n;

static void on_knock(void *ctx, int fd, const struct el_addr *peer, const char *bytes, size_t n)
{
    (void)ctx, (void)peer;
    knocked_fd = fd;
    knocked_n = n < sizeof knocked ? n : sizeof knocked;
    memcpy(knocked, bytes, knocked_n);
}

static void open_coordinator(const char *state_dir, bool knocks)
{
    struct el_err e = {0};
    struct coordinator_conf conf = {.state_dir = state_dir, .surely_new = true, .ended = on_ended, .note = on_note};
    conf.knock = knocks ? on_knock : NULL;
    c = coordinator_new(loop, pool, &conf, &e);
    if (!c) {
        printf("Bail out! %s\n", e.text);
        exit(1);
    }
}

static void close_coordinator(void)
{
    coordinator_free(c);
    for (unsigned i = 0; i < sizeof ends / sizeof ends[0]; i++)
        hang_up(&ends[i]);
}

/* --- the life of a job -------------------------------------------------------------------------------------------- */

static bool nothing_runs(void)
{
    return !coordinator_busy(c);
}

static void test_life(void)
{
    struct end *a = &ends[0], *b = &ends[1];
    open_coordinator(NULL, false);
    form(a, b, "life", 1);
    ok(a->world.group_rank == 0 && b->world.group_rank == 1 && a->world.group_size == 2, "two agents, one world");
    is_num(b->world.rank_base, 2, "the second one's ranks begin behind the first one's");
    ok(a->number == b->number && a->coord == b->coord && a->coord, "the same round");
    is_num(coordinator_members(c), 2, "two members");
    ok(coordinator_busy(c), "the job is under way");

    struct msg beat = {.type = MSG_BEAT, .u.beat = {.time = 77}};
    tell(a, &beat);
    ok(wait_type(a, MSG_BEAT_REPLY, 1), "a heartbeat is answered");

    /* Back within the grace: the same world again, and nobody is stopped. */
    struct msg_hello back = settings("life", 1, 2);
    back.phase = MSG_PHASE_RUNNING;
    back.number = back.seen = b->number;
    back.coord = b->coord;
    back.group_rank = 1;
    back.group_size = 2;
    uint64_t number = b->number;
    join(b, "10.0.0.2", 0xb, back);
    ok(wait_type(b, MSG_WORLD, 1) && b->number == number, "a connection that is replaced gets the same order again");
    wait_ms(150);
    is_num(a->count[MSG_STOP], 0, "nobody is stopped for it");

    hang_up(b);
    ok(wait_type(a, MSG_STOP, 1), "a loss stops the round");
    ok(strstr(a->text, "lost") != NULL, "and says so");
    about_round(a, MSG_STOPPED);
    ok(wait_type(a, MSG_OPEN_STORE, 2), "the next round follows");
    about_round(a, MSG_STORE_READY);
    ok(wait_type(a, MSG_WORLD, 2) && a->world.group_size == 1 && a->number > number, "with who is left");
    is_num(a->world.restarts, 0, "a loss costs no restart");

    about_round(a, MSG_STARTED);
    about_round(a, MSG_SUCCEEDED);
    ok(wait_type(a, MSG_END, 1) && a->status == 0, "success of all ends the job");
    about_round(a, MSG_END_ACK);
    ok(wait_for(nothing_runs), "it is over when all know it");
    ok(ended_calls == 1 && ended_status == 0, "its owner is told once");
    ok(notes > 5, "and of what happened on the way");
    join(&ends[2], "10.0.0.3", 0xc, settings("life", 1, 2));
    ok(wait_type(&ends[2], MSG_END, 1), "who comes late is told how it ended: nothing starts again");
    close_coordinator();
}

static void test_two_jobs(void)
{
    open_coordinator(NULL, false);
    form(&ends[0], &ends[1], "one", 2);
    form(&ends[2], &ends[3], "two", 2);
    is_num(coordinator_jobs(c), 2, "two jobs at the same time");
    ok(ends[0].number == 1 && ends[2].number == 1, "with rounds of their own");
    struct msg m = {.type = MSG_STATUS, .u.status = {.run_id = ""}};
    dial_in(&ends[4], "192.0.2.9");
    tell(&ends[4], &m);
    ok(wait_closed(&ends[4]), "status is for everybody, and the connection ends behind it");
    ok(ends[4].count[MSG_STATUS_JOB] == 2 && ends[4].count[MSG_STATUS_MEMBER] == 4, "rows of both jobs and their nodes");
    ok(!ends[4].more, "the last row says that it is the last");
    m = (struct msg){.type = MSG_RESTART, .u.restart = {.run_id = ""}};
    dial_in(&ends[4], "10.0.0.1");
    tell(&ends[4], &m);
    wait_closed(&ends[4]);
    ok(ends[4].status == 1 && strstr(ends[4].text, "one, two"), "a command has to say which");
    m.u.restart.run_id = "two";
    dial_in(&ends[4], "192.0.2.9");
    tell(&ends[4], &m);
    wait_closed(&ends[4]);
    ok(ends[4].status == 1 && strstr(ends[4].text, "192.0.2.9"), "and is refused from an address that is no member's");
    dial_in(&ends[4], "10.0.0.1");
    tell(&ends[4], &m);
    wait_closed(&ends[4]);
    ok(ends[4].status == 0 && ends[4].count[MSG_DONE] == 1, "but done for a member's host");
    ok(wait_type(&ends[2], MSG_STOP, 1) && ends[0].count[MSG_STOP] == 0, "in that job only");
    dial_in(&ends[4], "127.0.0.1");
    m = (struct msg){.type = MSG_STOP_JOB, .u.stop_job = {.run_id = "one", .grace_ms = -1}};
    tell(&ends[4], &m);
    wait_closed(&ends[4]);
    ok(ends[4].status == 0 && wait_type(&ends[0], MSG_STOP, 1), "and for the coordinator's own host");
    close_coordinator();
}

static void test_identity(void)
{
    struct msg_hello h = settings("who", 2, 4);
    open_coordinator(NULL, false);
    h.node_rank = 3;
    join(&ends[0], "10.0.0.1", 0xa, h);
    wait_type(&ends[0], MSG_PARK, 1);
    join(&ends[1], "10.0.0.2", 0xb, h);
    ok(wait_type(&ends[1], MSG_REFUSED, 1) && ends[1].retry, "a node rank that is held: refused, for now");
    ok(strstr(ends[1].text, "node rank 3") != NULL, "naming it");
    ok(wait_closed(&ends[1]), "and closed");
    h.node_rank = -1;
    join(&ends[2], "10.0.0.3", 0xa, h); /* connection 1 again */
    ok(wait_type(&ends[2], MSG_REFUSED, 1), "an instance with an old connection counter is refused");
    ends[2].instance = 0;
    hang_up(&ends[2]);
    h.min = 3;
    join(&ends[1], "10.0.0.2", 0xb, h);
    ok(wait_type(&ends[1], MSG_REFUSED, 1) && ends[1].status == EL_EXIT_CONFIG, "other settings are refused");
    ok(strstr(ends[1].text, "min 3") && strstr(ends[1].text, "has 2"), "with both values");
    close_coordinator();
}

/* --- bad input ---------------------------------------------------------------------------------------------------- */

static void frame(struct el_buf *out, unsigned version, unsigned type, const char *body)
{
    uint32_t n = (uint32_t)strlen(body) + 4;
    char head[8] = {(char)n, (char)(n >> 8), (char)(n >> 16), (char)(n >> 24), (char)version, 0, (char)type, 0};
    el_buf_put(out, head, sizeof head);
    el_buf_puts(out, body);
}

static void test_bad_first_words(void)
{
    static const struct {
        const char *what;
        unsigned version, type;
        const char *body, *answer;
    } bad[] = {
        {"another protocol version", 2, MSG_HELLO, "{}", "protocol version 2, this is version 1"},
        {"JSON that is no object", 1, MSG_HELLO, "[1, 2]", "not an object"},
        {"no JSON", 1, MSG_HELLO, "hello", "not JSON"},
        {"an empty object", 1, MSG_HELLO, "{}", "missing"},
        {"a number as run id", 1, MSG_HELLO, "{\"run_id\": 1}", "run_id"},
        {"an unknown message", 1, 99, "{}", "type 99"},
        {"a message that does not come first", 1, MSG_STOPPED, "{\"number\":1,\"coord\":\"1\"}", "HELLO or a command"},
        {"a knock", 1, MSG_KNOCK, "{\"run_id\":\"x\",\"number\":1,\"coord\":\"1\",\"token\":\"1\",\"group_rank\":0}",
         "no store of a round"},
    };
    open_coordinator(NULL, false);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct el_buf out = EL_BUF_INIT(NULL, 0);
        frame(&out, bad[i].version, bad[i].type, bad[i].body);
        dial_in(&ends[0], "10.0.0.1");
        (void)!send(ends[0].fd, out.v, out.len, MSG_NOSIGNAL);
        ok(wait_closed(&ends[0]) && ends[0].count[MSG_REFUSED] == 1 && strstr(ends[0].text, bad[i].answer), bad[i].what);
        if (!strstr(ends[0].text, bad[i].answer))
            printf("#  got: %s\n# want: %s\n", ends[0].text, bad[i].answer);
        el_buf_free(&out);
    }
    dial_in(&ends[0], "10.0.0.1");
    raw(&ends[0], "\xff\xff\xff\x7f\x01\x00\x01\x00", 8);
    ok(wait_closed(&ends[0]) && strstr(ends[0].text, "frame of"), "a frame of 2 GiB is refused by its head");
    dial_in(&ends[0], "10.0.0.1");
    raw(&ends[0], "\x00\x00\x0f\x00\x01\x00\x01\x00", 8);
    char fill[40000];
    memset(fill, ' ', sizeof fill);
    raw(&ends[0], fill, sizeof fill);
    ok(wait_closed(&ends[0]) && strstr(ends[0].text, "first message"), "a stranger may not fill memory with one frame");
    is_num(coordinator_jobs(c), 0, "and no job came of it");
    close_coordinator();
}

static void test_bad_settings(void)
{
    struct msg_hello h = settings("bad", 3, 2);
    open_coordinator(NULL, false);
    join(&ends[0], "10.0.0.1", 0xa, h);
    ok(wait_closed(&ends[0]) && strstr(ends[0].text, "3:2"), "min above max");
    is_num(ends[0].status, EL_EXIT_CONFIG, "is a contradiction: 78");
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    struct msg m = {.type = MSG_HELLO, .u.hello = settings("bad", 1, 65536)};
    msg_encode(&m, &out);
    memcpy(strstr(el_buf_cstr(&out) + 8, "65536"), "70000", 5);
    dial_in(&ends[0], "10.0.0.1");
    (void)!send(ends[0].fd, out.v, out.len, MSG_NOSIGNAL);
    el_buf_free(&out);
    ok(wait_closed(&ends[0]) && strstr(ends[0].text, "max"), "70,000 nodes are too many");
    h = settings("bad", 1, 2);
    h.unit = 4;
    join(&ends[0], "10.0.0.1", 0xa, h);
    ok(wait_closed(&ends[0]) && strstr(ends[0].text, "unit"), "a unit above max");
    h = settings("", 1, 2);
    join(&ends[0], "10.0.0.1", 0xa, h);
    ok(wait_closed(&ends[0]) && strstr(ends[0].text, "run id"), "an empty run id");
    is_num(coordinator_jobs(c), 0, "no job came of it");
    logged[0] = 0;
    h = settings("a\n\033[31m\"b\\ \xc3\xa4", 1, 2);
    join(&ends[0], "10.0.0.1", 0xa, h);
    ok(wait_type(&ends[0], MSG_PARK, 1), "a run id of odd characters is one like any other");
    ok(!strchr(logged, '\033') && !strstr(logged, "a\n"), "and cannot draw on the terminal");
    close_coordinator();
}

static void test_byte_by_byte(void)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    struct msg m = {.type = MSG_HELLO, .u.hello = settings("slow", 1, 1)};
    open_coordinator(NULL, false);
    m.u.hello.instance = 0xa;
    m.u.hello.connection = 1;
    msg_encode(&m, &out);
    dial_in(&ends[0], "10.0.0.1");
    for (size_t i = 0; i < out.len; i++) {
        (void)!send(ends[0].fd, out.v + i, 1, MSG_NOSIGNAL);
        wait_ms(0);
    }
    ok(wait_type(&ends[0], MSG_OPEN_STORE, 1), "a HELLO that comes byte by byte");
    el_buf_free(&out);
    close_coordinator();
}

static void test_crowd(void)
{
    enum { CROWD = COORDINATOR_NEW_MAX + 10 };
    static int fds[CROWD];
    struct el_addr addr = {.port = 1};
    char byte;
    el_addr_parse("10.9.9.9", addr.ip);
    open_coordinator(NULL, false);
    unsigned closed = 0, n = 0;
    for (; n < CROWD; n++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
            break;
        fds[n] = pair[0];
        coordinator_accept(c, pair[1], &addr, MSG_PREAMBLE, MSG_PREAMBLE_SIZE);
    }
    for (unsigned i = 0; i < n; i++)
        closed += recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0;
    if (n == CROWD)
        is_num(closed, 10, "who says nothing makes room for others, the oldest first");
    else
        skip("a crowd that says nothing", "too few descriptors");
    join(&ends[0], "10.0.0.1", 0xa, settings("crowd", 1, 1));
    ok(wait_type(&ends[0], MSG_OPEN_STORE, 1), "and does not keep an agent out");
    for (unsigned i = 0; i < n; i++)
        close(fds[i]);
    close_coordinator();
}

static void test_knock(void)
{
    struct msg m = {.type = MSG_KNOCK, .u.knock = {.run_id = "x", .number = 1, .coord = 2, .token = 3}};
    open_coordinator(NULL, true);
    dial_in(&ends[0], "10.0.0.1");
    tell(&ends[0], &m);
    wait_ms(20);
    ok(knocked_fd >= 0, "KNOCK goes to the host of the store, if there is one on this port");
    ok(knocked_n > 12 && memcmp(knocked, MSG_PREAMBLE, 4) == 0, "with all its bytes");
    ok(knocked_fd >= 0 && write(knocked_fd, MSG_PREAMBLE, 4) == 4, "on its open connection");
    wait_ms(5);
    ok(ends[0].decoder.greeted, "and nothing was said on it before");
    close(knocked_fd);
    close_coordinator();
}

/* --- the journal -------------------------------------------------------------------------------------------------- */

static char folder[64];

static size_t read_file(const char *name, char *to, size_t room)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, to, room - 1);
    if (fd >= 0)
        close(fd);
    to[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

static void append(const char *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/journal", folder);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    ok(fd >= 0 && write(fd, bytes, n) == (ssize_t)n, "something is put behind the journal");
    close(fd);
}

static void test_journal(void)
{
    static char text[65536];
    struct el_err e = {0};
    snprintf(folder, sizeof folder, "%s/coordinator.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder))
        exit(1);
    open_coordinator(folder, false);
    struct coordinator_conf conf = {.state_dir = folder};
    ok(!coordinator_new(loop, pool, &conf, &e) && e.status == EL_EXIT_TEMPFAIL, "a second coordinator on the folder: 75");
    ok(strstr(e.text, "in use") != NULL, "with the reason");
    form(&ends[0], &ends[1], "kept", 1);
    uint64_t coord = ends[0].coord;
    read_file("journal", text, sizeof text);
    ok(strstr(text, "run=kept ") && strstr(text, " number=1 "), "when WORLD has come, the round is in the journal");
    close_coordinator();

    append("run=kept coord=12", 17);
    open_coordinator(folder, false);
    size_t n = read_file("journal", text, sizeof text);
    ok(n && text[n - 1] == '\n', "a torn end is dropped at the next start");
    struct msg_hello back = settings("kept", 1, 2);
    for (unsigned i = 0; i < 2; i++) {
        back.phase = MSG_PHASE_RUNNING;
        back.number = back.seen = 1;
        back.coord = coord;
        back.group_rank = i;
        back.group_size = 2;
        join(&ends[i], i ? "10.0.0.2" : "10.0.0.1", i ? 0xb : 0xa, back);
    }
    ok(wait_type(&ends[0], MSG_WORLD, 1) && ends[0].number == 1 && ends[0].coord == coord,
       "members that run are heard and run on in their round");
    is_num(ends[0].count[MSG_STOP] + ends[1].count[MSG_STOP], 0, "nobody is stopped");
    hang_up(&ends[1]);
    wait_type(&ends[0], MSG_STOP, 1);
    about_round(&ends[0], MSG_STOPPED);
    wait_type(&ends[0], MSG_OPEN_STORE, 1);
    about_round(&ends[0], MSG_STORE_READY);
    ok(wait_type(&ends[0], MSG_WORLD, 2) && ends[0].number == 2 && ends[0].coord != coord, "the next round is the next");
    close_coordinator();

    append("rot\n", 4);
    struct rdzv_record r = {.run_id = "whole"};
    struct el_buf line = EL_BUF_INIT(NULL, 0);
    journal_encode(&r, &line);
    append(line.v, line.len);
    el_buf_free(&line);
    e = (struct el_err){0};
    ok(!coordinator_new(loop, pool, &conf, &e) && e.status == EL_EXIT_CONFIG, "damage before whole records: 78");
    ok(strstr(e.text, "damaged") && strstr(e.text, folder), "naming the file");
    static const char *const files[] = {"journal", "lock", "journal.new"};
    for (unsigned i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "%s/%s", folder, files[i]);
        unlink(text);
    }
    ok(rmdir(folder) == 0, "nothing else was left in the folder");
}

/* --- one port ----------------------------------------------------------------------------------------------------- */

static void on_control(void *ctx, int fd, const struct el_addr *peer, const char *bytes, size_t n)
{
    (void)ctx;
    coordinator_accept(c, fd, peer, bytes, n);
}

static struct end *connect_to(int port, unsigned i)
{
    struct end *x = &ends[i];
    struct el_buf port_text = EL_BUF_INIT(NULL, 0);
    struct el_err e = {0};
    char where[DIAL_WHERE_MAX];
    hang_up(x);
    memset(x->count, 0, sizeof x->count);
    el_buf_printf(&port_text, "127.0.0.1:%d", port);
    x->fd = dial(el_buf_cstr(&port_text), "test", EL_SEC(5), where, &e);
    el_buf_free(&port_text);
    return x;
}

static bool pinged(void)
{
    return who->in.len >= 4 || who->closed;
}

/* True: served as a client of c10d. */
static bool ping(struct end *x)
{
    static const char hello[] = "\x00\xce\xf7\x85\x3c", ping_bytes[] = "\x0d\x01\x02\x03\x04";
    x->decoder.greeted = true; /* what comes is no message: it stays in the buffer */
    (void)!send(x->fd, hello, 5, MSG_NOSIGNAL);
    (void)!send(x->fd, ping_bytes, 5, MSG_NOSIGNAL);
    who = x;
    wait_for(pinged);
    return x->in.len == 4 && !x->closed;
}

static void test_port(void)
{
    struct el_err e = {0};
    struct store_server_conf conf = {.control = on_control, .c10d_refused = "no store here"};
    struct store_server *s = store_server_new(loop, &conf, &e);
    open_coordinator(NULL, false);
    int port = store_server_port(s);
    struct end *x = connect_to(port, 0);
    raw(x, "EL", 2);
    wait_ms(5);
    raw(x, "R1", 2);
    wait_ms(5);
    x->instance = 0xa;
    x->connection = 0;
    say_hello(x, settings("port", 1, 1));
    ok(wait_type(x, MSG_OPEN_STORE, 1), "the control protocol on the store's port, its preamble in two pieces");
    logged[0] = 0;
    x = connect_to(port, 1);
    ok(!ping(x), "c10d is refused while there is no store");
    ok(strstr(logged, "no store here") != NULL, "with the reason");
    ok(store_server_c10d(s, NULL, &e) == 0, "a store begins");
    x = connect_to(port, 1);
    ok(ping(x), "and is served");
    is_num(store_server_clients(s), 1, "agents of the coordinator are no clients of it");
    store_server_c10d(s, "the round is over", &e);
    ok(wait_closed(x), "when it ends its clients are cut");
    ok(!ping(connect_to(port, 2)), "and new ones refused");
    ok(ends[0].fd >= 0 && !ends[0].closed, "the agent is still connected");
    close_coordinator();
    store_server_free(s);
}

static void on_log(void *ctx, enum el_level level, const char *text)
{
    (void)ctx, (void)level;
    size_t n = strlen(logged);
    snprintf(logged + n, sizeof logged - n, "%s|", text);
}

int main(void)
{
    struct el_err e = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    el_log_set(on_log, NULL, EL_DEBUG);
    for (unsigned i = 0; i < sizeof ends / sizeof ends[0]; i++)
        ends[i].fd = -1;
    loop = loop_new(&e);
    tick = loop_timer_new(loop, on_tick, NULL);
    pool = pool_new(loop, 1, &e);
    test_life();
    test_two_jobs();
    test_identity();
    test_bad_first_words();
    test_bad_settings();
    test_byte_by_byte();
    test_crowd();
    test_knock();
    test_journal();
    test_port();
    loop_timer_free(tick);
    pool_free(pool);
    loop_free(loop);
    return done();
}
