/* A store and its clients in one loop: whose turn it is, what it holds for whom, and who is closed. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tap.h"
#include "store/server_private.h"
#include "store/wire.h"
#include "util/array.h"

enum { GREEDY = 4, COUNT = 60, LONG = 1 << 20, ANSWER = COUNT * (LONG + 8), CROWD = 40 };

struct user {
    struct loop_fd *watch;
    int fd;
    size_t got, most; /* bytes at a time; 0: it does not read */
    bool closed;
};

static struct loop *loop;
static struct store_server *store;
static struct user users[GREEDY + 1], crowd[CROWD];
static char value[LONG], bytes[LONG + (COUNT + 4) * 64];
static unsigned turns;
static bool (*over)(void);

static void on_readable(void *ctx, unsigned events)
{
    struct user *u = ctx;
    (void)events;
    ssize_t n = recv(u->fd, bytes, u->most, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        u->closed = true;
        loop_fd_set(u->watch, 0);
    } else if (n > 0) {
        u->got += (size_t)n;
    }
}

static void on_turn(void *ctx)
{
    (void)ctx;
    turns++;
    if (over())
        loop_stop(loop);
}

static void run_until(bool (*what)(void))
{
    over = what;
    loop_run(loop);
}

static void say(const struct user *u, const struct el_buf *b)
{
    for (size_t at = 0; at < b->len;) {
        ssize_t n = send(u->fd, b->v + at, b->len - at, MSG_NOSIGNAL);
        if (n <= 0)
            printf("Bail out! send: %s\n", strerror(errno)), exit(1);
        at += (size_t)n;
    }
}

static void connect_user(struct user *u, size_t most)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)},
                             .sin_port = htons((uint16_t)store_server_port(store))};
    *u = (struct user){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .most = most};
    int small = 64 << 10;
    setsockopt(u->fd, SOL_SOCKET, SO_RCVBUF, &small,
               sizeof small); /* so that what it does not read fills the other side */
    if (connect(u->fd, (struct sockaddr *)&to, sizeof to))
        printf("Bail out! connect: %s\n", strerror(errno)), exit(1);
    u->watch = loop_fd_new(loop, u->fd, most ? LOOP_READ : 0, on_readable, u);
}

static void request(struct el_buf *b, unsigned count)
{
    wire_put_u8(b, 0);
    wire_put_u32(b, WIRE_MAGIC);
    wire_put_op(b, WIRE_MODERN, WIRE_MULTI_GET);
    wire_put_u64(b, count);
    for (unsigned i = 0; i < count; i++)
        wire_put_bytes(b, KV_BYTES("/k"));
}

static bool honest_served(void)
{
    return users[GREEDY].got >= 8 || users[GREEDY].closed;
}

static void open_store(el_usec read_max)
{
    struct store_server_conf conf = {.memory_max_bytes = (size_t)4 << 20, .read_max = read_max};
    struct el_err e = {0};
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    for (unsigned i = 0; i < GREEDY; i++)
        users[i] = (struct user){.fd = -1};
    store = store_server_new(loop, &conf, &e);
    if (!store)
        printf("Bail out! %s\n", e.text), exit(1);
    connect_user(&users[GREEDY], 64);
    wire_put_u8(&b, 0);
    wire_put_u32(&b, WIRE_MAGIC);
    wire_put_op(&b, WIRE_MODERN, WIRE_SET);
    wire_put_bytes(&b, KV_BYTES("/k"));
    wire_put_bytes(&b, (struct kv_bytes){value, sizeof value});
    wire_put_op(&b, WIRE_MODERN, WIRE_GETNUMKEYS);
    /* Larger than what sockets take: sent by its own process. */
    if (fork() == 0) {
        say(&users[GREEDY], &b);
        _exit(0);
    }
    run_until(honest_served);
    el_buf_free(&b);
}

static void leave(struct user *u)
{
    loop_fd_free(u->watch);
    close(u->fd);
    u->watch = NULL;
}

static void close_store(void)
{
    for (unsigned i = 0; i < COUNT_OF(users); i++)
        leave(&users[i]);
    store_server_free(store);
}

static size_t greedy_got(void)
{
    size_t sum = 0;
    for (unsigned i = 0; i < GREEDY; i++)
        sum += users[i].got;
    return sum;
}

static bool greedy_are_busy(void)
{
    return greedy_got() > ANSWER;
}

static bool all_is_read(void)
{
    bool all = true;
    for (unsigned i = 0; i < GREEDY; i++)
        all &= users[i].got == ANSWER || users[i].closed;
    return all;
}

/* 600 bytes that ask for 60 MiB, of a store that may hold 4: it holds nothing for them, and who asks beside four of
 * them has its answer in the turn in which it asks, or the next ones. */
static void test_turns(void)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    open_store(0);
    request(&b, COUNT);
    for (unsigned i = 0; i < GREEDY; i++) {
        connect_user(&users[i], 256 << 10);
        say(&users[i], &b);
    }
    run_until(greedy_are_busy);
    b.len = 0;
    wire_put_op(&b, WIRE_MODERN, WIRE_GETNUMKEYS);
    users[GREEDY].got = turns = 0;
    size_t before = greedy_got();
    say(&users[GREEDY], &b);
    run_until(honest_served);
    printf("# in %u turns, in which the others read %zu bytes\n", turns, greedy_got() - before);
    ok(users[GREEDY].got == 8 && turns <= 3 && greedy_got() < (size_t)GREEDY * ANSWER, "another is served in between");
    run_until(all_is_read);
    is_num(greedy_got(), (size_t)GREEDY * ANSWER, "and all have what they asked for");
    is_num(store_server_clients(store), GREEDY + 1, "nobody was closed");
    el_buf_free(&b);
    close_store();
}

static size_t reached, largest; /* of the crowd: by now, and in one turn */
static bool all_reached;

static size_t crowd_reached(void)
{
    size_t sum = 0;
    all_reached = true;
    for (unsigned i = 0; i < CROWD; i++) {
        int there = 0;
        ioctl(crowd[i].fd, FIONREAD, &there);
        sum += crowd[i].got + (size_t)there;
        all_reached &= there > 0 || crowd[i].got || crowd[i].closed;
    }
    return sum;
}

static bool crowd_is_begun(void)
{
    size_t sum = crowd_reached();
    largest = sum - reached > largest ? sum - reached : largest;
    reached = sum;
    return all_reached;
}

static bool crowd_is_served(void)
{
    bool all = true;
    for (unsigned i = 0; i < CROWD; i++)
        all &= crowd[i].got == LONG + 8 || crowd[i].closed;
    return all;
}

/* Forty ask in the same turn for what fills their sockets: all of them together have no more of it than one could. */
static void test_crowd(void)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    size_t sum = 0;
    open_store(0);
    request(&b, 1);
    for (unsigned i = 0; i < CROWD; i++) {
        connect_user(&crowd[i], 0);
        say(&crowd[i], &b);
    }
    reached = largest = turns = 0;
    run_until(crowd_is_begun);
    printf("# %zu bytes in %u turns, at most %zu in one\n", reached, turns, largest);
    ok(largest < 2 * STORE_TURN_BYTES, "a turn is as long for many as for one");
    ok(turns <= CROWD, "all are begun before anyone is through");
    for (unsigned i = 0; i < CROWD; i++) {
        crowd[i].most = 256 << 10;
        loop_fd_set(crowd[i].watch, LOOP_READ);
    }
    run_until(crowd_is_served);
    for (unsigned i = 0; i < CROWD; i++) {
        sum += crowd[i].got;
        leave(&crowd[i]);
    }
    is_num(sum, (size_t)CROWD * (LONG + 8), "and all have what they asked for");
    el_buf_free(&b);
    close_store();
}

enum { SHORT = 60000, ASKED = 400, LINE = 11, LINES = 4 };
static struct el_buf stream;
static size_t stream_at;

/* Each of what is sent ends inside a request. */
static void pipe_on(void *ctx)
{
    size_t n = stream_at ? LINES * LINE : 8 + LINES * LINE;
    n = stream.len - stream_at < n ? stream.len - stream_at : n;
    struct el_buf part = {.v = stream.v + stream_at, .len = n};
    say(&users[0], &part);
    stream_at += n;
    if (stream_at < stream.len)
        loop_timer_at(*(struct loop_timer **)ctx, loop_now(loop) + EL_MS(1));
}

static bool two_have_come(void)
{
    return store_server_clients(store) == 2;
}

static bool pipe_is_full(void)
{
    return stream_at == stream.len || store_server_clients(store) < 2;
}

static bool pipe_is_read(void)
{
    return users[0].closed || users[0].got == (size_t)ASKED * (SHORT + 8);
}

/* Who sends request on request and reads later is not closed, and what the store holds for it is bounded: all answers
 * together are many times what it may hold. */
static void test_pipelining(void)
{
    struct loop_timer *timer = loop_timer_new(loop, pipe_on, &timer);
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    open_store(0);
    wire_put_op(&b, WIRE_MODERN, WIRE_SET);
    wire_put_bytes(&b, KV_BYTES("/s"));
    wire_put_bytes(&b, (struct kv_bytes){value, SHORT});
    wire_put_op(&b, WIRE_MODERN, WIRE_GETNUMKEYS);
    users[GREEDY].got = 0;
    say(&users[GREEDY], &b);
    run_until(honest_served);
    stream.len = stream_at = 0;
    wire_put_u8(&stream, 0);
    wire_put_u32(&stream, WIRE_MAGIC);
    for (unsigned i = 0; i < ASKED; i++) {
        wire_put_op(&stream, WIRE_MODERN, WIRE_GET);
        wire_put_bytes(&stream, KV_BYTES("/s"));
    }
    connect_user(&users[0], 0);
    setsockopt(users[0].fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    loop_timer_at(timer, 1);
    run_until(two_have_come);
    run_until(pipe_is_full);
    users[0].most = sizeof bytes;
    loop_fd_set(users[0].watch, LOOP_READ);
    run_until(pipe_is_read);
    is_num(users[0].got, (size_t)ASKED * (SHORT + 8), "all requests of a pipeline are answered, whenever that is read");
    loop_timer_free(timer);
    el_buf_free(&stream);
    el_buf_free(&b);
    close_store();
}

static void sip(void *ctx)
{
    struct user *u = &users[1];
    on_readable(u, 0);
    loop_timer_at(*(struct loop_timer **)ctx, loop_now(loop) + EL_MS(5));
}

static bool all_have_come(void)
{
    return store_server_clients(store) == 3;
}

static bool one_is_closed(void)
{
    return store_server_clients(store) < 3;
}

static bool mute_is_known(void)
{
    return users[0].closed || users[0].got == ANSWER;
}

/* Who asks and never reads is closed; who reads slowly is not. */
static void test_mute(void)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    struct loop_timer *timer = loop_timer_new(loop, sip, &timer);
    open_store(EL_SEC(1));
    request(&b, COUNT);
    connect_user(&users[0], 0);
    connect_user(&users[1], 0);
    say(&users[0], &b);
    say(&users[1], &b);
    users[1].most = 128 << 10;
    users[0].most = sizeof bytes;
    loop_timer_at(timer, 1);
    run_until(all_have_come);
    run_until(one_is_closed);
    ok(!users[1].closed && !users[GREEDY].closed, "who reads slowly stays, and who has read all");
    loop_fd_set(users[0].watch, LOOP_READ);
    run_until(mute_is_known);
    ok(users[0].got < ANSWER, "who does not read is closed");
    loop_timer_free(timer);
    el_buf_free(&b);
    close_store();
}

/* --- a store that is full ----------------------------------------------------------------------------------------- */

static int own_socket(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)},
                             .sin_port = htons((uint16_t)store_server_port(store))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to))
        _exit(100);
    return fd;
}

/* Sends, and awaits so many bytes.  False: the store has closed. */
static bool ask(int fd, struct el_buf *b, size_t answer)
{
    for (size_t at = 0; at < b->len;) {
        ssize_t n = send(fd, b->v + at, b->len - at, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    b->len = 0;
    return recv(fd, bytes, answer, MSG_WAITALL) == (ssize_t)answer;
}

static void greet(struct el_buf *b)
{
    b->len = 0;
    wire_put_u8(b, 0);
    wire_put_u32(b, WIRE_MAGIC);
}

/* Values of 1,000 bytes until there is no room for one, of 10, and of none; then one that came before. */
static int fill_and_take(void)
{
    static const size_t sizes[] = {1000, 10, 0};
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    char key[32];
    int fd = own_socket();
    greet(&b);
    wire_put_op(&b, WIRE_MODERN, WIRE_QUEUE_PUSH);
    wire_put_bytes(&b, KV_BYTES("/q"));
    wire_put_bytes(&b, (struct kv_bytes){value, SHORT});
    wire_put_op(&b, WIRE_MODERN, WIRE_QUEUE_LEN);
    wire_put_bytes(&b, KV_BYTES("/q"));
    if (!ask(fd, &b, 8))
        return 101;
    for (unsigned i = 0, n = 0; i < COUNT_OF(sizes); i++) {
        fd = own_socket();
        greet(&b);
        do {
            int key_n = snprintf(key, sizeof key, "/full/%u", n++);
            wire_put_op(&b, WIRE_MODERN, WIRE_SET);
            wire_put_bytes(&b, (struct kv_bytes){key, (size_t)key_n});
            wire_put_bytes(&b, (struct kv_bytes){value, sizes[i]});
            wire_put_op(&b, WIRE_MODERN, WIRE_GETNUMKEYS);
        } while (ask(fd, &b, 8));
        close(fd);
    }
    fd = own_socket();
    greet(&b);
    wire_put_op(&b, WIRE_MODERN, WIRE_QUEUE_POP);
    wire_put_bytes(&b, KV_BYTES("/q"));
    if (!ask(fd, &b, 16 + SHORT))
        return 1;
    wire_put_op(&b, WIRE_MODERN, WIRE_DELETE_KEY);
    wire_put_bytes(&b, KV_BYTES("/full/1"));
    return ask(fd, &b, 8) ? 0 : 2;
}

static int filler_pid, filler_status;
static bool filler_ended;

static void look_for_filler(void *ctx)
{
    filler_ended = waitpid(filler_pid, &filler_status, WNOHANG) == filler_pid;
    loop_timer_at(*(struct loop_timer **)ctx, loop_now(loop) + EL_MS(5));
}

static bool filler_is_done(void)
{
    return filler_ended;
}

/* Whoever has filled a store, or anybody else, can connect and take something away. */
static void test_full(void)
{
    struct loop_timer *timer = loop_timer_new(loop, look_for_filler, &timer);
    open_store(0);
    if ((filler_pid = fork()) == 0)
        _exit(fill_and_take());
    loop_timer_at(timer, 1);
    run_until(filler_is_done);
    is_num(WIFEXITED(filler_status) ? WEXITSTATUS(filler_status) : -1, 0,
           "in a store without room for one more key, values can be popped and deleted");
    loop_timer_free(timer);
    close_store();
}

/* --- clients that go in the middle of something --------------------------------------------------------------------
 */

static char said[512]; /* the last warning */

static void keep_said(void *ctx, enum el_level level, const char *text)
{
    (void)ctx;
    if (level == EL_WARN)
        snprintf(said, sizeof said, "%s", text);
}

static bool somebody_waits_for_a_turn(void)
{
    return store->turns.first && store->turns.first != store->turns.last;
}

static bool crowd_is_cut(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < CROWD; i++)
        n += crowd[i].closed;
    return n == CROWD;
}

/* A round ends while clients stand in the queue for their next piece: who is gone has no turn. */
static void test_cut_in_the_queue(void)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    struct el_err e = {0};
    open_store(0);
    request(&b, 1);
    for (unsigned i = 0; i < CROWD; i++) {
        connect_user(&crowd[i], sizeof bytes);
        say(&crowd[i], &b);
    }
    run_until(somebody_waits_for_a_turn);
    store_server_c10d(store, "the round is over", &e);
    ok(!store->turns.first && !store->turns.last, "who was cut waits for no turn any more");
    run_until(crowd_is_cut);
    is_num(store_server_clients(store), 0, "all are cut");
    for (unsigned i = 0; i < CROWD; i++)
        leave(&crowd[i]);
    el_buf_free(&b);
    close_store();
}

static bool half_has_come(void)
{
    const struct client *c = store->clients;
    return store->clients_n == 2 && c->session.in.len > LONG * 9 / 8 && c->conn.to;
}

/* So that not a byte more fits: with what it holds, it is far beyond the size that it has then. */
static void fill_socket(int fd)
{
    int least = 1;
    while (send(fd, value, sizeof value, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
    for (unsigned idle = 0; idle < 5; idle++, poll(NULL, 0, 10))
        while (send(fd, value, 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
            idle = 0;
}

static bool one_is_left(void)
{
    return store_server_clients(store) == 1;
}

/* It waits for a key and has sent half of a long value, whose next bytes are read to where the others lie.  The key
 * comes while its socket is full, so the next bytes are put off; and there is no memory left, and nobody holds as much
 * as it. What it holds must not be given up then for the copy of a part of that. */
static void test_put_off(void)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    open_store(0);
    greet(&b);
    wire_put_op(&b, WIRE_MODERN, WIRE_WAIT);
    wire_put_u64(&b, 1);
    wire_put_bytes(&b, KV_BYTES("/w"));
    wire_put_op(&b, WIRE_MODERN, WIRE_SET);
    wire_put_bytes(&b, KV_BYTES("/l"));
    wire_put_u64(&b, (uint64_t)3 * LONG);
    el_buf_put(&b, value, LONG);
    el_buf_put(&b, value, LONG / 8);
    connect_user(&users[0], 0);
    if (fork() == 0) {
        say(&users[0], &b);
        _exit(0);
    }
    run_until(half_has_come);
    struct client *c = store->clients;
    fill_socket(c->conn.fd);
    b.len = 0;
    wire_put_op(&b, WIRE_MODERN, WIRE_SET);
    wire_put_bytes(&b, KV_BYTES("/w"));
    wire_put_bytes(&b, KV_BYTES(""));
    wire_put_op(&b, WIRE_MODERN, WIRE_GETNUMKEYS);
    users[GREEDY].got = 0;
    say(&users[GREEDY], &b);
    run_until(honest_served);
    ok(conn_unsent(&c->conn) && c->conn.to,
       "what ends its wait is unsent, and its next bytes are wanted beside the others");
    store->mem.limit_bytes = store->mem.used_bytes + 64;
    said[0] = 0;
    el_log_set(keep_said, NULL, EL_WARN);
    b.len = 0;
    el_buf_put(&b, value, 100000);
    say(&users[0], &b);
    run_until(one_is_left);
    el_log_set(NULL, NULL, EL_INFO);
    ok(strstr(said, ": the store's memory limit is reached"),
       "who asks for memory that there is not goes, and keeps its own until then");
    printf("# %s\n", said);
    el_buf_free(&b);
    close_store();
}

int main(void)
{
    struct el_err e = {0};
    alarm(120); /* else a client that is never closed is waited for for ever */
    loop = loop_new(&e);
    memset(value, 'v', sizeof value);
    loop_at_turn_end(loop, on_turn, NULL);
    test_turns();
    test_crowd();
    test_pipelining();
    test_mute();
    test_full();
    test_cut_in_the_queue();
    test_put_off();
    loop_free(loop);
    return done();
}
