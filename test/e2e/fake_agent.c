/* Agents without workers, many in one process: each is one connection that speaks the control protocol to a real
 * coordinator.  For tests (what comes is told on stdout, what to do is read from stdin) and for measuring (--swarm: all
 * join, are idle for so long, lose one (unless --keep), hold the next world, and stay; with --storm BYTES every worker
 * of every agent fails instead, each with a document of so many bytes).
 *
 *     fake_agent [--agents N] [--min N] [--max N] [--run-id ID] [--node-rank FIRST] [--swarm SECONDS] ... HOST:PORT
 *
 * Lines of stdin: "kill I" (gone without a word), "cut I" (comes back), "fail I", "succeed I", "leave I", "mute I"
 * (silent, still connected), "hold I" (its workers do not stop until "stopped I"), "join"; I is a number or "all".
 * Lines of stdout: "I WORLD 2 rank 0 of 3", "I STOP 1", …
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/conn.h"
#include "loop/dial.h"
#include "control/msg.h"

enum { BATCH = 128, UNSENT_MAX = 1 << 20 };

struct agent {
    struct conn conn;
    unsigned index;
    bool up, gone, mute, ended, holds;
    uint64_t instance, connections, number, coord, token, restarts;
    int64_t group_rank;
    uint64_t group_size, master_port;
    unsigned phase;
    struct msg_decoder decoder;
    struct el_buf in;
    el_usec beat_at, again_at;
};

static struct loop *loop;
static struct loop_timer *timer;
static struct agent *agents;
static unsigned count, room, connected, node_rank_set;
static struct sockaddr_storage where;
static socklen_t where_size;
static struct msg_hello hello;
static bool chatty = true, loses = true;
static double swarm_seconds;
static size_t storm_bytes;

/* --- measuring ---------------------------------------------------------------------------------------------------- */

static el_usec begun, phase_at;
static uint64_t target = 1, rx_bytes, tx_bytes;
static unsigned holders, worlds, stops;
static enum { FORMING, IDLING, LOSING, DONE } stage;

static void lose_one(void);
static void storm(void);

/* Both ends of an interval on the clock that all processes of the host share: a swarm may be spread over several. */
static void report(const char *what, unsigned n)
{
    el_usec now = loop_clock();
    printf("%s agents=%u begin_us=%llu end_us=%llu ms=%.1f\n", what, n, (unsigned long long)begun,
           (unsigned long long)now, (double)(now - begun) / 1000);
    fflush(stdout);
}

static void swarm_step(void)
{
    if (stage == FORMING && worlds == count) {
        report("formed", count);
        rx_bytes = tx_bytes = 0;
        stage = IDLING;
        phase_at = loop_clock() + (el_usec)(swarm_seconds * 1e6);
    } else if (stage == IDLING && loop_clock() >= phase_at) {
        printf("idle out=%.1f in=%.1f\n", (double)tx_bytes / swarm_seconds / count,
               (double)rx_bytes / swarm_seconds / count);
        stage = LOSING;
        target++;
        worlds = 0;
        holders = count;
        begun = loop_clock();
        if (storm_bytes)
            storm();
        else if (loses)
            lose_one();
    } else if (stage == LOSING && worlds == holders) {
        report("reformed", holders);
        stage = DONE; /* the others of the swarm may not have it yet */
    }
}

/* --- saying ------------------------------------------------------------------------------------------------------- */

static void send_msg(struct agent *a, const struct msg *m)
{
    static struct el_buf out;
    out.len = 0;
    if (!a->up || msg_encode(m, &out))
        return;
    tx_bytes += out.len;
    conn_send(&a->conn, out.v, out.len);
}

static void say_hello(struct agent *a)
{
    struct msg m = {.type = MSG_HELLO, .u.hello = hello};
    struct msg_hello *h = &m.u.hello;
    char host[MSG_NAME_MAX];
    snprintf(host, sizeof host, "fake-%u", a->index);
    h->host = host;
    h->instance = a->instance;
    h->connection = ++a->connections;
    h->node_rank = node_rank_set ? hello.node_rank + a->index : -1;
    h->phase = a->phase;
    h->number = h->seen = a->number;
    h->coord = a->coord;
    h->token = a->token;
    h->restarts = a->restarts;
    h->group_rank = a->group_rank;
    h->group_size = a->group_size;
    h->master_port = a->master_port;
    conn_send(&a->conn, MSG_PREAMBLE, MSG_PREAMBLE_SIZE);
    send_msg(a, &m);
}

static void fail_all(struct agent *a, const char *document)
{
    struct msg m = {.type = MSG_WORKER_FAILED};
    for (unsigned i = 0; i < hello.slots; i++) {
        m.u.worker_failed = (struct msg_worker_failed){.number = a->number,
                                                       .coord = a->coord,
                                                       .time_us = loop_clock(),
                                                       .local_rank = i,
                                                       .code = 1,
                                                       .signal = -1,
                                                       .text = "exit code 1"};
        send_msg(a, &m);
    }
    m.type = MSG_INCIDENT;
    for (unsigned i = 0; i < hello.slots; i++) {
        m.u.incident = (struct msg_incident){.number = a->number,
                                             .coord = a->coord,
                                             .time_us = loop_clock(),
                                             .local_rank = i,
                                             .code = 1,
                                             .signal = -1,
                                             .by = "itself",
                                             .class = "code error",
                                             .type = "ValueError",
                                             .text = "exit code 1: ValueError: bad shape",
                                             .document = document,
                                             .ranks = ""};
        send_msg(a, &m);
    }
    a->phase = MSG_PHASE_STOPPING;
}

static void storm(void)
{
    char *document = malloc(storm_bytes + 64);
    if (!document)
        exit(1);
    int n = sprintf(document, "{\"rank\": 1, \"end\": \"exit\", \"code\": 1, \"stack\": \"");
    memset(document + n, 'x', storm_bytes);
    strcpy(document + n + storm_bytes, "\"}");
    for (unsigned i = 0; i < count; i++)
        fail_all(&agents[i], document);
    free(document);
}

/* --- hearing ------------------------------------------------------------------------------------------------------ */

static void tell(const struct agent *a, const char *what, uint64_t n, const char *text)
{
    if (!chatty)
        return;
    printf("%u %s %llu %s\n", a->index, what, (unsigned long long)n, text);
    fflush(stdout);
}

static void on_world(struct agent *a, const struct msg_world *w)
{
    char text[128];
    if (w->number == a->number && w->coord == a->coord)
        return;
    worlds += w->number >= target && a->number < target;
    a->number = w->number;
    a->coord = w->coord;
    a->token = w->token;
    a->restarts = w->restarts;
    a->group_rank = (int64_t)w->group_rank;
    a->group_size = w->group_size;
    a->master_port = w->master_port;
    a->phase = MSG_PHASE_RUNNING;
    snprintf(text, sizeof text, "rank %llu of %llu base %llu world %llu restarts %llu",
             (unsigned long long)w->group_rank, (unsigned long long)w->group_size, (unsigned long long)w->rank_base,
             (unsigned long long)w->world_size, (unsigned long long)w->restarts);
    tell(a, "WORLD", w->number, text);
    struct msg m = {.type = MSG_STARTED, .u.started = {w->number, w->coord}};
    send_msg(a, &m);
}

static void stopped(struct agent *a, uint64_t number, uint64_t coord)
{
    struct msg m = {.type = MSG_STOPPED, .u.stopped = {.number = number, .coord = coord}};
    a->phase = MSG_PHASE_IDLE;
    send_msg(a, &m);
}

static void on_stop(struct agent *a, const struct msg_stop *s)
{
    tell(a, "STOP", s->number, s->text);
    if (storm_bytes && ++stops == count)
        report("stopped", count);
    a->phase = MSG_PHASE_STOPPING;
    if (!a->holds)
        stopped(a, s->number, s->coord);
}

static void hear(struct agent *a, const struct msg *m)
{
    struct msg answer = {.type = MSG_NONE};
    switch ((unsigned)m->type) {
    case MSG_WORLD: on_world(a, &m->u.world); break;
    case MSG_STOP: on_stop(a, &m->u.stop); break;
    case MSG_WAIT: tell(a, "WAIT", m->u.wait.number, m->u.wait.text); break;
    case MSG_NOTICE: tell(a, "NOTICE", m->u.notice.number, m->u.notice.text); break;
    case MSG_OPEN_STORE:
        tell(a, "OPEN_STORE", m->u.open_store.number, "");
        answer = (struct msg){.type = MSG_STORE_READY,
                              .u.store_ready = {m->u.open_store.number, m->u.open_store.coord, "", 1}};
        send_msg(a, &answer);
        break;
    case MSG_END:
        tell(a, "END", m->u.end.status, m->u.end.text);
        a->ended = true;
        answer = (struct msg){.type = MSG_END_ACK, .u.end_ack = {m->u.end.status}};
        send_msg(a, &answer);
        break;
    case MSG_LEAVE_ACK: tell(a, "LEAVE_ACK", 0, ""); break;
    case MSG_REFUSED:
        tell(a, "REFUSED", m->u.refused.status, m->u.refused.text);
        a->gone |= !m->u.refused.retry;
        break;
    default: break;
    }
}

static struct agent *agent_of(struct conn *c)
{
    return (struct agent *)((char *)c - offsetof(struct agent, conn));
}

static void drop(struct agent *a)
{
    if (!a->up)
        return;
    a->up = false;
    connected--;
    conn_close(&a->conn);
    el_buf_free(&a->in);
    a->again_at = a->gone || a->ended ? EL_NEVER : loop_clock() + EL_MS(20);
}

static struct el_buf *on_data(struct conn *c, const char *bytes, size_t n)
{
    struct agent *a = agent_of(c);
    rx_bytes += n;
    el_buf_put(&a->in, bytes, n);
    size_t at = 0;
    while (a->up) {
        struct msg m;
        struct el_err e = {0};
        long used = msg_consume(&a->decoder, a->in.v + at, a->in.len - at, &m, &e);
        if (used < 0) {
            tell(a, "BROKEN", 0, e.text);
            drop(a);
            return NULL;
        }
        if (!used)
            break;
        at += (size_t)used;
        if (m.type != MSG_NONE)
            hear(a, &m);
        msg_release(&m);
    }
    el_buf_drop(&a->in, at);
    if (!a->in.len)
        el_buf_free(&a->in);
    if (!chatty)
        swarm_step();
    return NULL;
}

static void on_closed(struct conn *c, enum conn_why why, int sys)
{
    struct agent *a = agent_of(c);
    (void)why;
    tell(a, "CLOSED", 0, sys ? strerrorname_np(sys) : "");
    drop(a);
}

static const struct conn_ops ops = {.data = on_data, .closed = on_closed};

/* --- coming and going --------------------------------------------------------------------------------------------- */

static void come(struct agent *a)
{
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    a->again_at = loop_clock() + EL_MS(100);
    if (fd < 0 || (connect(fd, (struct sockaddr *)&where, where_size) && errno != EINPROGRESS)) {
        if (fd >= 0)
            close(fd);
        return;
    }
    if (conn_open(&a->conn, loop, fd, &ops, NULL, UNSENT_MAX))
        return;
    a->up = true;
    a->again_at = EL_NEVER;
    a->decoder = (struct msg_decoder){0};
    a->in = EL_BUF_INIT(NULL, 0);
    connected++;
    /* Not all in the same moment, as agents that were started one after the other. */
    a->beat_at = loop_clock() + EL_MS(hello.keep_alive_ms) * (1 + a->index % 997) / 997;
    say_hello(a);
}

static void add_agent(void)
{
    struct agent *a = &agents[count];
    *a = (struct agent){.index = count++, .group_rank = -1};
    if (getrandom(&a->instance, sizeof a->instance, 0) != sizeof a->instance)
        exit(1);
    a->instance |= 1;
}

static void leave_without_a_word(struct agent *a)
{
    a->gone = true;
    drop(a);
}

static void lose_one(void)
{
    struct agent *a = &agents[count / 2 ? count / 2 : 0];
    holders = count - 1; /* of this process */
    leave_without_a_word(a);
}

static void on_timer(void *ctx)
{
    el_usec now = loop_clock(), next = now + EL_MS(20);
    unsigned tries = 0;
    (void)ctx;
    for (unsigned i = 0; i < count; i++) {
        struct agent *a = &agents[i];
        if (!a->up && !a->gone && a->again_at <= now && tries++ < BATCH)
            come(a);
        if (tries >= BATCH)
            next = now;
        if (!a->up || a->mute || a->beat_at > now)
            continue;
        struct msg m = {.type = MSG_HEARTBEAT, .u.heartbeat = {.time = now}};
        a->beat_at += EL_MS(hello.keep_alive_ms);
        send_msg(a, &m);
    }
    if (!chatty)
        swarm_step();
    loop_timer_at(timer, next);
}

/* --- what stdin wants --------------------------------------------------------------------------------------------- */

static void obey(struct agent *a, const char *verb)
{
    struct msg m = {.type = MSG_NONE};
    if (strcmp(verb, "kill") == 0) {
        leave_without_a_word(a);
    } else if (strcmp(verb, "cut") == 0) {
        drop(a);
    } else if (strcmp(verb, "mute") == 0) {
        a->mute = true;
        conn_pause(&a->conn);
    } else if (strcmp(verb, "hold") == 0) {
        a->holds = true;
    } else if (strcmp(verb, "stopped") == 0) {
        a->holds = false;
        stopped(a, a->number, a->coord);
    } else if (strcmp(verb, "succeed") == 0) {
        m = (struct msg){.type = MSG_SUCCEEDED, .u.succeeded = {a->number, a->coord}};
        a->phase = MSG_PHASE_SUCCEEDED;
    } else if (strcmp(verb, "leave") == 0) {
        m = (struct msg){.type = MSG_LEAVING, .u.leaving = {.signal = 15, .text = "SIGTERM"}};
        a->gone = true;
    } else if (strcmp(verb, "fail") == 0) {
        m = (struct msg){.type = MSG_WORKER_FAILED};
        m.u.worker_failed = (struct msg_worker_failed){.number = a->number,
                                                       .coord = a->coord,
                                                       .time_us = loop_clock(),
                                                       .code = 3,
                                                       .signal = -1,
                                                       .text = "exit code 3"};
        a->phase = MSG_PHASE_STOPPING;
    }
    if (m.type != MSG_NONE)
        send_msg(a, &m);
}

static void on_line(char *line)
{
    char verb[16] = "", who[16] = "";
    if (sscanf(line, "%15s %15s", verb, who) < 1)
        return;
    if (strcmp(verb, "join") == 0 && count < room)
        add_agent();
    for (unsigned i = 0; i < count; i++)
        if (strcmp(who, "all") == 0 || (*who && (unsigned)atoi(who) == i))
            obey(&agents[i], verb);
}

static void on_stdin(void *ctx, unsigned events)
{
    static char line[256];
    static size_t n;
    char c;
    (void)events;
    ssize_t got = read(STDIN_FILENO, &c, 1);
    if (got == 0)
        loop_fd_set(*(struct loop_fd **)ctx, 0);
    if (got != 1)
        return;
    if (c != '\n' && n < sizeof line - 1) {
        line[n++] = c;
        return;
    }
    line[n] = 0;
    n = 0;
    on_line(line);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static const struct option options[] = {{"agents", 1, NULL, 'n'},    {"min", 1, NULL, 'm'},
                                        {"max", 1, NULL, 'M'},       {"run-id", 1, NULL, 'r'},
                                        {"node-rank", 1, NULL, 'R'}, {"swarm", 1, NULL, 's'},
                                        {"slots", 1, NULL, 'S'},     {"unit", 1, NULL, 'u'},
                                        {"settle", 1, NULL, 't'},    {"keep-alive", 1, NULL, 'k'},
                                        {"restarts", 1, NULL, 'x'},  {"join-timeout", 1, NULL, 'j'},
                                        {"grace", 1, NULL, 'g'},     {"keep", 0, NULL, 'K'},
                                        {"storm", 1, NULL, 'F'},     {NULL, 0, NULL, 0}};

static unsigned read_options(int argc, char **argv)
{
    unsigned n = 1;
    hello = (struct msg_hello){.run_id = "fake",
                               .role = "default",
                               .addr = "",
                               .command = "fake_agent",
                               .elrun = "test",
                               .master_addr = "",
                               .slots = 1,
                               .unit = 1,
                               .max_restarts = 3,
                               .max_fruitless = 10,
                               .settle_ms = 300,
                               .last_call_ms = 30000,
                               .join_timeout_ms = 60000,
                               .keep_alive_ms = 1000,
                               .keep_alive_attempts = 5,
                               .reconnect_grace_ms = 100,
                               .scale_up_delay_ms = 100,
                               .grace_ms = 5000,
                               .node_rank = -1};
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        uint64_t v = optarg ? strtoull(optarg, NULL, 10) : 0;
        switch (o) {
        case 'n': n = (unsigned)v; break;
        case 'm': hello.min = v; break;
        case 'M': hello.max = v; break;
        case 'r': hello.run_id = optarg; break;
        case 'R':
            hello.node_rank = (int64_t)v;
            node_rank_set = 1;
            break;
        case 'F': storm_bytes = v; break;
        case 's':
            swarm_seconds = strtod(optarg, NULL);
            chatty = false;
            break;
        case 'S': hello.slots = v; break;
        case 'u': hello.unit = v; break;
        case 't': hello.settle_ms = v; break;
        case 'k': hello.keep_alive_ms = v; break;
        case 'x': hello.max_restarts = v; break;
        case 'j': hello.join_timeout_ms = v; break;
        case 'g': hello.reconnect_grace_ms = v; break;
        case 'K': loses = false; break;
        default: exit(2);
        }
    }
    hello.min = hello.min ? hello.min : n;
    hello.max = hello.max ? hello.max : n;
    if (optind != argc - 1)
        exit(2);
    return n;
}

int main(int argc, char **argv)
{
    struct el_err e = {0};
    struct rlimit r;
    char text[DIAL_WHERE_MAX];
    unsigned n = read_options(argc, argv);
    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
    /* One connection tells where that is. */
    int fd = dial(argv[optind], "coordinator", EL_SEC(10), text, &e);
    where_size = sizeof where;
    if (fd < 0 || getpeername(fd, (struct sockaddr *)&where, &where_size)) {
        fprintf(stderr, "fake_agent: %s\n", e.text);
        return 1;
    }
    close(fd);
    room = n + 64;
    agents = calloc(room, sizeof *agents);
    loop = loop_new(&e);
    timer = loop ? loop_timer_new(loop, on_timer, NULL) : NULL;
    if (!agents || !timer)
        return 1;
    while (count < n)
        add_agent();
    static struct loop_fd *stdin_watch;
    if (chatty) {
        fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
        stdin_watch = loop_fd_new(loop, STDIN_FILENO, LOOP_READ, on_stdin, &stdin_watch);
    }
    begun = loop_clock();
    loop_timer_at(timer, begun);
    loop_run(loop);
    return 0;
}
