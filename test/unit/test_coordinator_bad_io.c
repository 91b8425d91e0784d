/* The coordinator's shell: bad input, strangers, and the other protocols on its port. */
#include "unit/coordinator_stage.h"

#include <poll.h>

#include "loop/dial.h"
#include "store/server.h"

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
        {"an unknown message", 1, 250, "{}", "type 250"},
        {"a message that does not come first", 1, MSG_STOPPED, "{\"number\":1,\"coord\":\"1\"}", "HELLO or a command"},
        {"a knock", 1, MSG_LEASE_REQUEST,
         "{\"run_id\":\"x\",\"number\":1,\"coord\":\"1\",\"token\":\"1\",\"group_rank\":0}", "no store of a round"},
    };
    open_coordinator(NULL, false);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct el_buf out = EL_BUF_INIT(NULL, 0);
        frame(&out, bad[i].version, bad[i].type, bad[i].body);
        dial_in(&ends[0], "10.0.0.1");
        (void)!send(ends[0].fd, out.v, out.len, MSG_NOSIGNAL);
        ok(wait_closed(&ends[0]) && ends[0].count[MSG_REFUSED] == 1 && strstr(ends[0].text, bad[i].answer),
           bad[i].what);
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
    ok(wait_type(&ends[0], MSG_WAIT, 1), "a run id of odd characters is one like any other");
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

/* Names of jobs that never come to a round: who invents them keeps nobody else out. */
static void test_many_jobs(void)
{
    char name[32];
    open_coordinator(NULL, true);
    join(&ends[0], "10.0.0.1", 0xa, settings("waits", 2, 2));
    ok(wait_type(&ends[0], MSG_WAIT, 1), "a job that waits for its other node");
    join(&ends[3], "10.9.9.9", 0xd, settings("first", 2, 2));
    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "invented%u", i);
        join(&ends[1], "10.9.9.9", 0xb, settings(name, 2, 2));
        if (!wait_type(&ends[1], MSG_WAIT, 1))
            break;
    }
    is_num(ends[1].count[MSG_REFUSED], 0, "300 jobs that one host has invented");
    ok(wait_type(&ends[3], MSG_REFUSED, 1) && ends[3].retry &&
           strstr(ends[3].text, "gave this job up, which had not formed a round: others need its place"),
       "the first of them is given up, and its node told why");
    join(&ends[2], "10.0.0.2", 0xc, settings("waits", 2, 2));
    ok(wait_type(&ends[0], MSG_OPEN_STORE, 1), "keep no other host's job out, nor end it");
    close_coordinator();
}

static bool is_one_gone(void)
{
    return strstr(logged, "closed by the other side") != NULL;
}

static void watch(struct end *x, const char *ip)
{
    dial_in(x, ip);
    tell(x, &(struct msg){.type = MSG_STATUS, .u.status = {.run_id = "", .watch = true}});
}

static struct end crowd[COORDINATOR_WATCHERS_MAX];

/* All that have come have been told something. */
static bool are_served(void)
{
    for (unsigned i = 0; i < COORDINATOR_WATCHERS_MAX; i++) {
        if (crowd[i].fd < 0)
            continue;
        hear(&crowd[i]);
        if (!crowd[i].count[MSG_STATUS_JOB])
            return false;
    }
    return true;
}

/* Whoever watches holds a place: so many of one address, so many of all. */
static void test_watchers(void)
{
    const unsigned one = COORDINATOR_WATCHERS_ONE, all = COORDINATOR_WATCHERS_MAX;
    char ip[32];
    open_coordinator(NULL, false);
    join(&ends[0], "10.0.0.1", 0xa, settings("watched", 2, 2));
    ok(wait_type(&ends[0], MSG_WAIT, 1), "a job");
    for (unsigned i = 0; i < all; i++)
        crowd[i].fd = -1;
    for (unsigned i = 0; i < one; i++)
        watch(&crowd[i], "10.9.9.9");
    ok(wait_for(are_served), "watchers of one address");
    watch(&ends[1], "10.9.9.9");
    ok(wait_type(&ends[1], MSG_DONE, 1) && ends[1].status == 1, "one address has so many watchers");
    ok(strstr(ends[1].text, "16 others ask already from 10.9.9.9") != NULL, "and is told so");
    watch(&ends[2], "10.0.0.1");
    ok(wait_type(&ends[2], MSG_STATUS_MEMBER, 1), "which takes no place of another address");
    for (unsigned i = one; i < all - 1; i++) {
        snprintf(ip, sizeof ip, "10.9.%u.1", i);
        watch(&crowd[i], ip);
    }
    ok(wait_for(are_served), "and of many");
    watch(&ends[1], "10.9.9.2");
    ok(wait_type(&ends[1], MSG_DONE, 1) && strstr(ends[1].text, "64 others ask already"), "nor are there more of all");
    logged[0] = 0;
    hang_up(&crowd[0]);
    wait_for(is_one_gone);
    watch(&ends[1], "10.9.9.2");
    ok(wait_type(&ends[1], MSG_STATUS_MEMBER, 1), "one that goes makes room");
    for (unsigned i = 0; i < all; i++)
        hang_up(&crowd[i]);
    close_coordinator();
}

static struct end deaf = {.fd = -1};

/* Without taking what was sent. */
static bool is_given_up(void)
{
    struct pollfd p = {.fd = deaf.fd};
    return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

/* One that reads, ends[0], and one that does not, whose socket has room for a part of the rows. */
static void test_deaf_watcher(void)
{
    char name[32];
    reader_limit = EL_MS(200);
    open_coordinator(NULL, false);
    for (unsigned i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "job%u", i);
        join(&ends[1], "10.0.0.1", 0xb, settings(name, 2, 2));
        if (!wait_type(&ends[1], MSG_WAIT, 1))
            break;
    }
    unsent_room = 4096;
    watch(&ends[0], "10.9.9.9");
    watch(&deaf, "10.9.9.8");
    unsent_room = 0;
    ok(wait_for(is_given_up), "a watcher that does not read is closed");
    unsigned before = ends[0].count[MSG_STATUS_JOB];
    ok(wait_type(&ends[0], MSG_STATUS_JOB, before + 1) && !ends[0].closed, "one that reads goes on");
    hang_up(&deaf);
    close_coordinator();
    reader_limit = 0;
}

static bool is_answered(void)
{
    return ends[1].count[MSG_OPEN_STORE] || ends[1].count[MSG_REFUSED];
}

/* A round of one node is formed at once, and one that nobody else knows is told in a word: neither keeps a place, and
 * who starts workers in each gets half of them. */
static void test_jobs_of_one_host(void)
{
    struct msg_hello told = settings("", 1, 1);
    char name[32];
    unsigned n = 0;
    open_coordinator(NULL, true);
    join(&ends[0], "10.0.0.1", 0xa, settings("waits", 2, 2));
    ok(wait_type(&ends[0], MSG_WAIT, 1), "a job that waits for its other node");
    told.number = 5, told.group_rank = 0, told.group_size = 1, told.master_port = 1, told.phase = MSG_PHASE_RUNNING;
    for (; n < 300; n++) {
        snprintf(name, sizeof name, "told%u", n);
        told.run_id = name;
        join(&ends[1], "10.9.9.9", 0xb, n % 2 ? told : settings(name, 1, 1));
        if (!wait_type(&ends[1], n % 2 ? MSG_WORLD : MSG_OPEN_STORE, 1))
            break;
    }
    is_num(n, 300, "300 jobs of rounds in which nobody starts anything");
    ok(!ends[0].closed, "end no other host's job");
    for (n = 0; n < 300; n++) {
        snprintf(name, sizeof name, "runs%u", n);
        join(&ends[1], "10.9.9.9", 0xb, settings(name, 1, 1));
        if (!wait_for(is_answered) || ends[1].count[MSG_REFUSED])
            break;
        about_round(&ends[1], MSG_STORE_READY);
        wait_type(&ends[1], MSG_WORLD, 1);
        about_round(&ends[1], MSG_STARTED);
    }
    ok(n >= COORDINATOR_JOBS_ONE && n < COORDINATOR_JOBS_ONE + 4, "half of those that run are of one host");
    ok(strstr(ends[1].text, "128 jobs from 10.9.9.9 are here already") != NULL, "and no more");
    join(&ends[2], "10.0.0.2", 0xc, settings("waits", 2, 2));
    ok(wait_type(&ends[0], MSG_OPEN_STORE, 1), "others come in");
    close_coordinator();
}

/* A message that does not end takes no memory of those who have said nothing. */
static void test_first_word(void)
{
    static char much[8 << 10];
    const unsigned char head[] = {0xff, 0xff, 0, 0, MSG_VERSION, 0, MSG_HELLO, 0};
    open_coordinator(NULL, true);
    dial_in(&ends[0], "10.0.0.1");
    raw(&ends[0], head, sizeof head);
    raw(&ends[0], much, 3 << 10);
    wait_ms(20);
    ok(!ends[0].closed, "3 KiB of a first message");
    raw(&ends[0], much, 2 << 10);
    ok(wait_type(&ends[0], MSG_REFUSED, 1) && strstr(ends[0].text, "a first message of more than 4096 bytes"),
       "5 KiB are too many");
    close_coordinator();
}

static void test_knock(void)
{
    struct msg m = {.type = MSG_LEASE_REQUEST, .u.lease_request = {.run_id = "x", .number = 1, .coord = 2, .token = 3}};
    open_coordinator(NULL, true);
    dial_in(&ends[0], "10.0.0.1");
    tell(&ends[0], &m);
    wait_ms(20);
    ok(knocked_fd >= 0, "LEASE_REQUEST goes to the host of the store, if there is one on this port");
    ok(knocked_n > 12 && memcmp(knocked, MSG_PREAMBLE, 4) == 0, "with all its bytes");
    ok(knocked_fd >= 0 && write(knocked_fd, MSG_PREAMBLE, 4) == 4, "on its open connection");
    wait_ms(5);
    ok(ends[0].decoder.greeted, "and nothing was said on it before");
    close(knocked_fd);
    close_coordinator();
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

static bool is_member = true;

static bool admits(void *ctx, const struct el_addr *peer)
{
    (void)ctx, (void)peer;
    return is_member;
}

/* Who is a member is asked when the first bytes come, not when the connection does. */
static void test_admission(struct store_server *s)
{
    struct el_err e = {0};
    int port = store_server_port(s);
    struct end *early = connect_to(port, 1), *late = connect_to(port, 2);
    wait_ms(5);
    is_member = false;
    store_server_c10d(s, NULL, &e);
    ok(!ping(early), "a connection that was there before the store began is no way around --store-allow");
    is_member = true;
    ok(ping(late), "a member that connected before it knocked is served");
    store_server_c10d(s, "the round is over", &e);
    wait_closed(late);
}

static void test_port(void)
{
    struct el_err e = {0};
    struct store_server_conf conf = {.control = on_control, .admits = admits, .c10d_refused = "no store here"};
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
    test_admission(s);
    ok(ends[0].fd >= 0 && !ends[0].closed, "the agent is still connected");
    close_coordinator();
    store_server_free(s);
}

static bool is_heard(void)
{
    return ends[1].count[MSG_WAIT] || ends[1].count[MSG_OPEN_STORE] || ends[1].count[MSG_REFUSED];
}

/* The largest jobs that can be asked for, of one address: there is memory for some of them, and for another address's.
 */
static void test_memory_of_one(void)
{
    char id[16];
    unsigned n = 0;
    open_coordinator(NULL, true);
    for (unsigned i = 0; i < COORDINATOR_JOBS_MAX; i++) {
        snprintf(id, sizeof id, "large%u", i);
        join(&ends[1], "10.0.0.1", 0x100 + i, settings(id, 1, 65536));
        if (!wait_for(is_heard) || ends[1].count[MSG_REFUSED])
            break;
        n++;
    }
    printf("# %u jobs of 65536 nodes\n", n);
    ok(ends[1].count[MSG_REFUSED] &&
           strstr(ends[1].text, "no memory for a job of 65536 nodes beside the others of 10.0.0.1"),
       "they end at what one address may take, which is said");
    ok(coordinator_jobs(c) == n && n > 0 && n < COORDINATOR_JOBS_ONE, "before they take all places");
    join(&ends[2], "10.0.0.2", 0xb, settings("honest", 1, 65536));
    ok(wait_type(&ends[2], MSG_WAIT, 1), "another address has memory for as much");
    for (unsigned k = 3; k < 6; k++)
        for (unsigned i = 0; i < n; i++) {
            char ip[16];
            snprintf(id, sizeof id, "more%u.%u", k, i);
            snprintf(ip, sizeof ip, "10.0.0.%u", k);
            join(&ends[1], ip, 0x1000 * k + i, settings(id, 1, 65536));
            wait_for(is_heard);
        }
    join(&ends[3], "10.0.0.99", 0xc, settings("late", 1, 65536));
    ok(wait_type(&ends[3], MSG_WAIT, 1), "of many addresses those go for it that never formed a round");
    close_coordinator();
}

/* --- messages that are not sent to their end ---------------------------------------------------------------------- */

enum { HOARDERS = 100, HALF_BYTES = 1000 << 10 };
static struct end hoard[HOARDERS];
static size_t hoarded[HOARDERS]; /* bytes of a message that each has sent */

static bool are_parked(void)
{
    for (unsigned i = 0; i < HOARDERS; i++) {
        hear(&hoard[i]);
        if (!hoard[i].count[MSG_WAIT] && !hoard[i].closed)
            return false;
    }
    return true;
}

/* Each has sent all but the end of a message of 1 MiB, or was closed for it. */
static bool are_half_sent(void)
{
    static char spaces[64 << 10];
    bool all = true;
    for (unsigned i = 0; i < HOARDERS; i++) {
        hear(&hoard[i]);
        while (!hoard[i].closed && hoarded[i] < HALF_BYTES) {
            size_t lacks = HALF_BYTES - hoarded[i];
            ssize_t n = send(hoard[i].fd, spaces, lacks < sizeof spaces ? lacks : sizeof spaces, MSG_NOSIGNAL);
            if (n < 0)
                break;
            hoarded[i] += (size_t)n;
        }
        all &= hoard[i].closed || hoarded[i] == HALF_BYTES;
    }
    return all;
}

/* What the connections of one address have begun to send is bounded, which no other address feels. */
static void test_half_messages(void)
{
    const unsigned char head[] = {0xf0, 0xff, 0x0f, 0, MSG_VERSION, 0, MSG_STOPPED, 0};
    struct el_buf beat = EL_BUF_INIT(NULL, 0);
    unsigned kept = 0;
    open_coordinator(NULL, false);
    form(&ends[0], &ends[1], "honest", 2);
    msg_encode(&(struct msg){.type = MSG_HEARTBEAT, .u.heartbeat = {.time = 77}}, &beat);
    (void)!send(ends[0].fd, beat.v, 9, MSG_NOSIGNAL);
    for (unsigned i = 0; i < HOARDERS; i++) {
        hoard[i].fd = -1;
        join(&hoard[i], "10.9.9.9", 0x100 + i, settings("hoard", HOARDERS + 1, HOARDERS + 1));
    }
    ok(wait_for(are_parked), "many agents of one address");
    wait_ms(1100); /* lines are counted by the second, and those have come */
    logged[0] = 0;
    for (unsigned i = 0; i < HOARDERS; i++)
        raw(&hoard[i], head, sizeof head);
    ok(wait_for(are_half_sent), "each begins a message of 1 MiB and does not end it");
    wait_ms(20);
    for (unsigned i = 0; i < HOARDERS; i++) {
        hear(&hoard[i]);
        kept += !hoard[i].closed;
    }
    printf("# %u of %u are open\n", kept, HOARDERS);
    ok(kept * (size_t)HALF_BYTES <= COORDINATOR_CONNS_ONE && kept > 16, "so many go as there is no memory for");
    ok(strstr(logged,
              "10.9.9.9:1234: closed: no memory for messages that it has half sent, or does not read: 64 MiB for "
              "all of 10.9.9.9"),
       "which is said");
    (void)!send(ends[0].fd, beat.v + 9, beat.len - 9, MSG_NOSIGNAL);
    ok(wait_type(&ends[0], MSG_HEARTBEAT_ACK, 1) && !ends[1].closed, "others' half messages are kept");
    is_num(ends[0].count[MSG_STOP], 0, "and their job goes on");
    for (unsigned i = 0; i < HOARDERS; i++)
        hang_up(&hoard[i]);
    el_buf_free(&beat);
    close_coordinator();
}

int main(void)
{
    stage_open();
    test_bad_first_words();
    test_bad_settings();
    test_byte_by_byte();
    test_crowd();
    test_many_jobs();
    test_jobs_of_one_host();
    test_watchers();
    test_deaf_watcher();
    test_first_word();
    test_half_messages();
    test_memory_of_one();
    test_knock();
    test_port();
    stage_close();
    return done();
}
