/* Who knocks at a round's store, and who only takes up room. */
#include "member/lease_server.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/tap.h"
#include "util/file.h"

enum { CROWD = LEASE_SERVER_NEW_MAX + 3 };

static struct loop *loop;
static struct lease_server *t;
static struct loop_timer *timer;
static int ours[CROWD + 2]; /* our ends, in the order of their coming */
static unsigned ends;

static bool knocks(void *ctx, const struct msg_lease_request *k)
{
    (void)ctx;
    return k->token == 7;
}

static void heard(void *ctx, const struct msg *m)
{
    (void)ctx, (void)m;
}

static void reply(void *ctx, const struct msg_heartbeat *beat, struct msg *out)
{
    (void)ctx;
    *out = (struct msg){.type = MSG_HEARTBEAT_ACK, .u.heartbeat = *beat};
}

static void on_time(void *ctx)
{
    (void)ctx;
    loop_stop(loop);
}

/* What is under way arrives. */
static void turn(void)
{
    loop_timer_at(timer, loop_clock() + EL_MS(5));
    loop_run(loop);
}

static int come(const char *ip)
{
    int fd[2];
    struct el_addr peer = {.port = 1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) < 0 || !el_addr_parse(ip, peer.ip))
        return -1;
    lease_server_accept(t, fd[1], &peer, MSG_PREAMBLE, MSG_PREAMBLE_SIZE);
    return ours[ends++] = fd[0];
}

static void say(int fd, const struct msg *m)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    msg_encode(m, &out);
    ok(write(fd, out.v, out.len) == (ssize_t)out.len, "a message is sent");
    el_buf_free(&out);
}

/* Bytes that have come; -1: closed by the other side. */
static long got(int fd)
{
    char bytes[4096];
    long all = 0;
    for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) != -1; all += n)
        if (n == 0)
            return -1;
    return errno == EAGAIN ? all : -1;
}

int main(void)
{
    static const struct lease_server_ops ops = {.knocks = knocks, .heard = heard, .reply = reply};
    struct el_err e = {0};
    struct el_addr member = {.port = 1}, stranger = {.port = 1};
    el_addr_parse("203.0.113.1", member.ip);
    el_addr_parse("203.0.113.2", stranger.ip);
    file_limit_raise(NULL);
    loop = loop_new(&e);
    timer = loop_timer_new(loop, on_time, NULL);
    t = lease_server_new(loop, &ops, NULL, &e);

    int first = come("203.0.113.1");
    struct msg knock = {.type = MSG_LEASE_REQUEST,
                        .u.lease_request = {.run_id = "job", .number = 1, .coord = 1, .token = 7}};
    say(first, &knock);
    turn();
    ok(lease_server_has(t, &member) && !lease_server_has(t, &stranger), "a member has knocked");
    long before = got(first);
    ok(before > 0, "and was answered");

    for (unsigned i = 0; i < CROWD; i++)
        come("203.0.113.2");
    turn();
    ok(got(first) == 0, "a crowd that says nothing: the member stays");
    unsigned closed = 0;
    for (unsigned i = 1; i <= CROWD; i++)
        closed += got(ours[i]) < 0;
    is_num(closed, CROWD - LEASE_SERVER_NEW_MAX, "as many of the crowd are closed as are too many");
    ok(got(ours[1]) < 0 && got(ours[CROWD - LEASE_SERVER_NEW_MAX]) < 0 && got(ours[CROWD]) >= 0, "the oldest of them");

    int late = ours[CROWD];
    say(late, &knock);
    turn();
    ok(lease_server_has(t, &stranger), "who came last may still knock");
    got(late);
    lease_server_send(t, &(struct msg){.type = MSG_ROUND_OVER, .u.round_over = {.number = 1, .coord = 1}});
    turn();
    long n = got(first);
    ok(n > 0 && got(late) == n && got(ours[CROWD - 1]) == 0, "what is sent to all goes to each that has knocked");
    lease_server_close(t);
    ok(got(first) < 0 && got(late) < 0 && got(ours[CROWD - 1]) == 0, "and is closed with the round");

    lease_server_free(t);
    loop_timer_free(timer);
    loop_free(loop);
    for (unsigned i = 0; i < ends; i++)
        close(ours[i]);
    return done();
}
