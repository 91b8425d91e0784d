/* The socket of the workers: who may come, what is told and in which order, descriptors, and what a worker that does
 * wrong loses.  Seen to fail: a gate that keeps looking while descriptors have run out (test_no_descriptors()). */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "snapshot/worker_sock.h"

#include "lib/tap.h"

static struct loop *l;
static struct worker_sock *s;
static char path[64], told[256];
static int owner = 0;
static unsigned turns;

static int whose(void *ctx, pid_t pid)
{
    (void)ctx;
    return pid == getpid() ? owner : -1;
}

static void on_message(void *ctx, unsigned worker, const struct worker_msg *m)
{
    (void)ctx;
    size_t n = strlen(told);
    snprintf(told + n, sizeof told - n, "%u:%s ", worker, worker_msg_name(m->type));
}

static void on_gone(void *ctx, unsigned worker)
{
    (void)ctx;
    size_t n = strlen(told);
    snprintf(told + n, sizeof told - n, "%u:gone ", worker);
}

static void on_turn(void *ctx)
{
    (void)ctx;
    if (turns-- == 0)
        loop_stop(l);
}

/* Lets the loop look around a few times. */
static struct loop_timer *tick;
static void on_tick(void *ctx)
{
    on_turn(ctx);
    loop_timer_at(tick, loop_clock() + EL_MS(1));
}

static void run(void)
{
    turns = 5;
    loop_timer_at(tick, loop_clock() + EL_MS(1));
    loop_run(l);
}

static unsigned looks;
static void on_look(void *ctx)
{
    (void)ctx;
    looks++;
}

static int dial(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
        perror("connect");
    return fd;
}

static void say(int fd, const struct worker_msg *m)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    worker_msg_encode(m, &b);
    (void)!send(fd, b.v, b.len, MSG_NOSIGNAL);
    el_buf_free(&b);
}

static const struct worker_msg hello = {.type = WORKER_MSG_HELLO, .u.hello = {.proto = WORKER_MSG_PROTO, .round = 1}};
static const struct worker_msg begin = {.type = WORKER_MSG_SNAP_BEGIN,
                                        .u.snap_begin = {.step = 4, .images = "4096/8192"}};

/* What was sent to the client: the type, 0 nothing yet, -1 closed; descriptors in fds. */
static int hear(int fd, int *fds, unsigned *n)
{
    static char text[WORKER_MSG_PACKET_MAX];
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(4 * sizeof(int))];
    } beside;
    struct iovec part = {text, sizeof text};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = beside.room, .msg_controllen = sizeof beside.room};
    ssize_t got = recvmsg(fd, &m, MSG_DONTWAIT);
    *n = 0;
    if (got <= 0)
        return got == 0 ? -1 : 0;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c) {
        *n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(c), *n * sizeof(int));
    }
    struct worker_msg w;
    struct el_err e = {0};
    if (worker_msg_decode(text, (size_t)got, &w, &e) < 0)
        return -2;
    int type = (int)w.type;
    worker_msg_release(&w);
    return type;
}

static void test_talk(void)
{
    int fd = dial(), fds[4];
    unsigned n;
    say(fd, &hello);
    run();
    is_str(told, "0:HELLO ", "a word of a worker is told");
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC), two[2] = {zero, zero};
    worker_sock_send(s, 0, &(struct worker_msg){.type = WORKER_MSG_GRANT, .u.grant = {.slots = 2}}, two, 2);
    ok(hear(fd, fds, &n) == WORKER_MSG_GRANT && n == 2, "an answer comes with its descriptors");
    struct stat a, b;
    ok(fstat(fds[1], &a) == 0 && fstat(zero, &b) == 0 && a.st_ino == b.st_ino, "which are what was sent");
    close(fds[0]);
    close(fds[1]);
    close(zero);

    int other = dial();
    run();
    ok(hear(other, fds, &n) == WORKER_MSG_REFUSED, "a second process of the same rank is turned away, with a word");
    close(other);
    owner = -1;
    other = dial();
    run();
    ok(hear(other, fds, &n) == WORKER_MSG_REFUSED, "so is a process that is no worker");
    close(other);
    owner = 1;
    told[0] = 0;
    other = dial();
    say(other, &hello);
    run();
    is_str(told, "1:HELLO ", "another rank is another connection");
    worker_sock_close(s, 1);
    ok(!worker_sock_is_open(s, 1) && hear(other, fds, &n) == -1, "closed from here");
    close(other);
    owner = 0;
    told[0] = 0;
    say(fd, &begin);
    close(fd);
    run();
    is_str(told, "0:SNAP_BEGIN 0:gone ", "what a worker said before its end comes before its end");
}

/* A kernel tells the end of a peer that had answers left to read as a reset, before the packets that it sent. */
static void test_unread(void)
{
    int fd = dial();
    say(fd, &hello);
    run();
    worker_sock_send(s, 0, &(struct worker_msg){.type = WORKER_MSG_SNAP_ACK}, NULL, 0);
    told[0] = 0;
    say(fd, &begin);
    say(fd, &begin);
    close(fd);
    run();
    is_str(told, "0:SNAP_BEGIN 0:SNAP_BEGIN 0:gone ", "a worker that dies with an answer unread is heard to its end");

    fd = dial();
    say(fd, &hello);
    run();
    worker_sock_send(s, 0, &(struct worker_msg){.type = WORKER_MSG_SNAP_ACK}, NULL, 0);
    told[0] = 0;
    say(fd, &begin);
    close(fd);
    worker_sock_finish(s, 0);
    is_str(told, "0:SNAP_BEGIN 0:gone ", "also when its end is told by its parent");

    /* The next connection is taken although the end of this one was not read yet. */
    fd = dial();
    say(fd, &hello);
    run();
    told[0] = 0;
    for (unsigned i = 0; i < 20; i++) {
        say(fd, &begin);
        close(fd);
        fd = dial();
        say(fd, &hello);
        run();
        ok(strcmp(told, "0:SNAP_BEGIN 0:gone 0:HELLO ") == 0 && told[0], "closed and dialled again at once");
        told[0] = 0;
    }
    close(fd);
    run();

    /* Descriptors are not asked for: the kernel closes them. */
    fd = dial();
    run();
    int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(before);
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    worker_msg_encode(&hello, &b);
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } beside = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
    memcpy(CMSG_DATA(&beside.head), &fd, sizeof fd);
    struct iovec part = {b.v, b.len};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = beside.room, .msg_controllen = sizeof beside.room};
    told[0] = 0;
    for (unsigned i = 0; i < 20; i++)
        (void)!sendmsg(fd, &m, MSG_NOSIGNAL);
    el_buf_free(&b);
    run();
    ok(strncmp(told, "0:HELLO 0:HELLO ", 16) == 0, "packets with descriptors that nobody asked for are heard");
    int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ok(after == before, "and none of these stays open");
    close(after);
    close(fd);
    run();
}

static bool flooding;
static const struct worker_msg *flood;
static int flood_fd = -1;

static void on_flood(void *ctx, unsigned worker, const struct worker_msg *m)
{
    (void)ctx, (void)worker, (void)m;
    if (flooding)
        say(flood_fd, flood); /* as another holder of the connection would, as fast as it is read */
}

static void test_flood(void)
{
    struct el_err e = {0};
    struct worker_sock_ops ops = {.whose = whose, .message = on_flood, .gone = on_gone};
    struct worker_sock *ours = s;
    char first[sizeof path];
    snprintf(first, sizeof first, "%s", path);
    snprintf(path, sizeof path, "%.60s2", first);
    s = worker_sock_new(l, path, 1, &ops, NULL, &e);
    flood_fd = dial();
    flood = &begin;
    run();
    say(flood_fd, &begin);
    flooding = true;
    told[0] = 0;
    worker_sock_finish(s, 0);
    is_str(told, "0:gone ", "a connection that is still written to after its worker's end is closed");
    flooding = false;
    close(flood_fd);
    worker_sock_free(s);
    s = ours;
    snprintf(path, sizeof path, "%s", first);
}

static void test_wrong(void)
{
    int fd = dial(), fds[4];
    unsigned n;
    told[0] = 0;
    (void)!send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
    run();
    is_str(told, "0:gone ", "garbage ends the connection");
    close(fd);

    fd = dial();
    run();
    char *large = calloc(1, WORKER_MSG_PACKET_MAX + 1);
    (void)!send(fd, large, WORKER_MSG_PACKET_MAX + 1, MSG_NOSIGNAL);
    free(large);
    told[0] = 0;
    run();
    is_str(told, "0:gone ", "so does a packet that is too large");
    close(fd);

    fd = dial();
    run();
    told[0] = 0;
    for (unsigned i = 0; i < 10000; i++)
        worker_sock_send(s, 0, &(struct worker_msg){.type = WORKER_MSG_SNAP_ACK}, NULL, 0);
    ok(told[0] == 0, "a worker that reads nothing: its end is not told inside of a send");
    run();
    is_str(told, "0:gone ", "but in the next turn");
    while (hear(fd, fds, &n) > 0)
        ;
    close(fd);

    fd = dial();
    run();
    told[0] = 0;
    for (unsigned i = 0; i < 3; i++)
        say(fd, &begin);
    worker_sock_finish(s, 0);
    is_str(told, "0:SNAP_BEGIN 0:SNAP_BEGIN 0:SNAP_BEGIN 0:gone ", "a dead worker's last output is all heard at once");
    close(fd);
}

/* Somebody waits, and nobody can be let in: the loop has its rest, and who waits is let in when that is over. */
static void test_no_descriptors(void)
{
    struct rlimit was, now;
    int c = dial();
    getrlimit(RLIMIT_NOFILE, &was);
    now = (struct rlimit){(rlim_t)c + 1, was.rlim_max};
    setrlimit(RLIMIT_NOFILE, &now);
    looks = 0;
    loop_at_turn_end(l, on_look, NULL);
    for (int i = 0; i < 20; i++)
        run();
    ok(looks < 400, "no descriptor is left: the loop does not run in circles");
    setrlimit(RLIMIT_NOFILE, &was);
    told[0] = 0;
    say(c, &hello);
    for (int i = 0; i < 5000 && !told[0]; i++)
        run();
    ok(strcmp(told, "0:HELLO ") == 0, "one is there again: who waited is heard");
    close(c);
    for (int i = 0; i < 5000 && !strstr(told, "gone"); i++)
        run();
}

int main(void)
{
    struct el_err e = {0};
    struct worker_sock_ops ops = {.whose = whose, .message = on_message, .gone = on_gone};
    char folder[] = "/tmp/elrun-test-XXXXXX";
    if (!mkdtemp(folder) || !(l = loop_new(&e)))
        return 1;
    tick = loop_timer_new(l, on_tick, NULL);
    snprintf(path, sizeof path, "%s/sock", folder);
    s = worker_sock_new(l, path, 2, &ops, NULL, &e);
    ok(s != NULL, "a socket is made");
    test_talk();
    test_unread();
    test_flood();
    test_wrong();
    test_no_descriptors();
    worker_sock_free(s);
    ok(access(path, F_OK) < 0, "and is gone with its owner");
    char longer[200];
    snprintf(longer, sizeof longer, "%s/%0150d", folder, 1);
    ok(!worker_sock_new(l, longer, 1, &ops, NULL, &e) && strstr(e.text, "TMPDIR"),
       "a path too long for a socket: what to do is said");
    rmdir(folder);
    loop_timer_free(tick);
    loop_free(l);
    return done();
}
