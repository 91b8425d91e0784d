/* What a peer says of itself decides nothing that belongs to others: round numbers, seats, ranks. */
#include "coord/rdzv.h"

#include <stdarg.h>

#include "lib/tap.h"

static struct el_mem mem = EL_MEM_INIT((size_t)64 << 20);
static struct rdzv *r;
static struct rdzv_actions out;
static el_usec now;
static uint64_t conns, nodes_max = 2;

static void open_job(uint64_t recorded)
{
    struct rdzv_conf conf = {.run_id = "job", .coord = 7, .token_start = 1, .surely_new = true};
    conf.set = (struct rdzv_settings){.min = 2,
                                      .max = nodes_max,
                                      .unit = 1,
                                      .max_restarts = 3,
                                      .max_fruitless = 5,
                                      .settle_ms = 10,
                                      .last_call_ms = 5000,
                                      .join_timeout_ms = 30000,
                                      .keep_alive_ms = 1000,
                                      .keep_alive_attempts = 5,
                                      .reconnect_grace_ms = 1000,
                                      .grace_ms = 1000};
    conf.room = rdzv_room(&conf.set);
    struct rdzv_record old = {.run_id = "job", .number = recorded, .coord = 6};
    now = EL_SEC(1);
    r = rdzv_new(&conf, recorded ? &old : NULL, now, &mem);
}

static void close_job(void)
{
    rdzv_check(r);
    rdzv_free(r);
    is_num(mem.used_bytes, 0, "nothing is left");
}

static struct msg_hello agent(uint64_t instance)
{
    return (struct msg_hello){.run_id = "job",
                              .instance = instance,
                              .connection = 1,
                              .host = "h",
                              .addr = "",
                              .node_rank = -1,
                              .slots = 2,
                              .role = "default",
                              .domain = "",
                              .command = "",
                              .elrun = "",
                              .master_addr = "",
                              .group_rank = -1,
                              .min = 2,
                              .max = 2,
                              .unit = 1,
                              .max_restarts = 3};
}

/* "": it was taken. */
static const char *says_hello_from(const char *remote, struct msg_hello h)
{
    struct msg m = {.type = MSG_HELLO, .u.hello = h};
    struct rdzv_event ev = {.type = RDZV_EV_HELLO, .conn = ++conns, .msg = &m};
    ev.peer = (struct rdzv_peer){.remote = remote, .local = "10.0.0.9"};
    now += 1000;
    rdzv_step(r, &ev, now, &out);
    rdzv_check(r);
    for (unsigned i = 0; i < out.n; i++)
        if (out.v[i].type == RDZV_DO_REFUSE)
            return rdzv_answer(r)->u.refused.text;
    return "";
}

static const char *says_hello(struct msg_hello h)
{
    return says_hello_from("10.0.0.1", h);
}

static void refused(const char *text, const char *why, const char *what)
{
    if (!ok(strstr(text, why) != NULL, what))
        printf("# got: %s\n", text);
}

static void test_numbers(void)
{
    struct msg_hello h = agent(1);
    open_job(0);
    h.seen = MSG_ROUND_MAX;
    refused(says_hello(h), "the last one known here is 0", "a round that no job comes to is not taken over");
    h.seen = RDZV_JUMP_MAX + 1;
    refused(says_hello(h), "no job forms so many unnoticed", "nor one that is far off");
    h.seen = 0;
    h.number = MSG_ROUND_MAX;
    h.group_rank = 0;
    h.group_size = 1;
    h.master_port = 1;
    refused(says_hello(h), "no job forms so many", "as the round that it was in, neither");
    struct rdzv_record x;
    rdzv_record(r, &x);
    is_num(x.number, 0, "the job has its own number");
    h = agent(1);
    h.seen = 1000000;
    is_str(says_hello(h), "", "what a coordinator that was lost can have come to is");
    close_job();
    open_job(MSG_ROUND_MAX - 2 * RDZV_JUMP_MAX);
    h.seen = MSG_ROUND_MAX - RDZV_JUMP_MAX + 1;
    refused(says_hello(h), "no job forms so many", "the last ones are left for orders");
    close_job();
}

static void test_same_node(void)
{
    struct msg_hello h = agent(1);
    open_job(0);
    is_str(says_hello(h), "", "an agent");
    h.connection++;
    h.slots = 4;
    refused(says_hello(h), "has 2 workers of role default", "it does not come back with other ranks");
    h.slots = 2;
    h.role = "other";
    refused(says_hello(h), "an agent keeps what it came with", "nor in another role");
    h.role = "default";
    is_str(says_hello(h), "", "as it was it does");
    is_num(rdzv_members(r), 1, "and is the same");
    close_job();
}

static unsigned order_of(unsigned member, struct msg *m)
{
    rdzv_order(r, member, now, m);
    return (unsigned)m->type;
}

static void says(unsigned member, struct msg m)
{
    struct rdzv_event ev = {.type = RDZV_EV_MSG, .conn = rdzv_conn(r, member), .member = member, .msg = &m};
    now += 1000;
    rdzv_step(r, &ev, now, &out);
    for (unsigned i = 0; i < out.n; i++)
        if (out.v[i].type == RDZV_DO_JOURNAL) {
            struct rdzv_event written = {.type = RDZV_EV_JOURNALED, .ok = true, .serial = out.v[i].serial};
            rdzv_step(r, &written, now, &out);
            break;
        }
    rdzv_check(r);
}

static uint64_t m_number, m_coord; /* of the round that runs */

static void launch(void)
{
    struct msg m;
    is_num(order_of(0, &m), MSG_OPEN_STORE, "the store is opened");
    struct msg ready = {.type = MSG_STORE_READY};
    ready.u.store_ready = (struct msg_store_ready){m.u.open_store.number, m.u.open_store.coord, "10.0.0.1", 4711};
    says(0, ready);
    is_num(order_of(1, &m), MSG_WORLD, "a round runs");
    m_number = m.u.world.number;
    m_coord = m.u.world.coord;
}

static void form(void)
{
    is_str(says_hello(agent(1)), "", "a");
    is_str(says_hello_from("10.0.0.2", agent(2)), "", "b");
    launch();
}

static unsigned restarts_after(bool started)
{
    struct msg m;
    open_job(0);
    form();
    order_of(1, &m);
    uint64_t number = m.u.world.number, coord = m.u.world.coord;
    if (started)
        says(1, (struct msg){.type = MSG_STARTED, .u.started = {number, coord}});
    struct msg failed = {.type = MSG_WORKER_FAILED};
    failed.u.worker_failed =
        (struct msg_worker_failed){.number = number, .coord = coord, .code = 1, .signal = -1, .text = "it says"};
    says(1, failed);
    for (unsigned i = 0; i < 2; i++)
        says(i, (struct msg){.type = MSG_STOPPED, .u.stopped = {.number = number, .coord = coord}});
    struct msg status;
    rdzv_status_job(r, now, &status);
    unsigned restarts = (unsigned)status.u.status_job.restarts;
    close_job();
    return restarts;
}

static void test_never_started(void)
{
    is_num(restarts_after(true), 1, "a worker that failed costs a restart");
    is_num(restarts_after(false), 0, "one of a node that has started none costs nothing");
}

static struct msg_hello hello_of(uint64_t instance)
{
    struct msg_hello h = agent(instance);
    h.max = nodes_max;
    h.max_fruitless = 5;
    return h;
}

/* One that takes a place and starts nothing: where the others are enough they go on without it, and what it spoiled is
 * no round without progress of theirs. */
static void test_spoiler(void)
{
    struct msg m;
    struct rdzv_record x;
    nodes_max = 3;
    open_job(0);
    is_str(says_hello_from("10.0.0.1", hello_of(1)), "", "a");
    is_str(says_hello_from("10.0.0.2", hello_of(2)), "", "b");
    is_str(says_hello_from("10.6.6.6", hello_of(3)), "", "a spoiler");
    launch();
    is_num(rdzv_size(r), 3, "a round of three");
    says(0, (struct msg){.type = MSG_STARTED, .u.started = {m_number, m_coord}});
    says(1, (struct msg){.type = MSG_STARTED, .u.started = {m_number, m_coord}});
    struct msg failed = {.type = MSG_WORKER_FAILED};
    failed.u.worker_failed =
        (struct msg_worker_failed){.number = m_number, .coord = m_coord, .code = 1, .signal = -1, .text = "it says"};
    says(2, failed);
    for (unsigned i = 0; i < 3; i++)
        says(i, (struct msg){.type = MSG_STOPPED, .u.stopped = {.number = m_number, .coord = m_coord}});
    rdzv_record(r, &x);
    is_num(x.restarts, 0, "costs no restart");
    is_num(x.fruitless, 0, "and is none that brought nothing");
    for (unsigned i = 0; i < 10 && order_of(0, &m) != MSG_OPEN_STORE; i++) {
        now += EL_SEC(1);
        struct rdzv_event late = {.type = RDZV_EV_TIMEOUT};
        rdzv_step(r, &late, now, &out);
    }
    is_num(rdzv_size(r), 2, "the next one is formed without it");
    close_job();
    nodes_max = 2;
}

/* Whoever has heard an agent's number cannot take its place with it, nor do what only a seated node's host may. */
static void test_places(void)
{
    struct msg m;
    struct msg_hello h = agent(2);
    open_job(0);
    form();
    order_of(1, &m);
    h.connection = 9;
    h.phase = MSG_PHASE_RUNNING;
    h.number = m.u.world.number;
    h.coord = m.u.world.coord;
    h.group_rank = 1;
    h.group_size = 2;
    h.master_port = 4711;
    refused(says_hello_from("10.6.6.6", h), "comes from 10.6.6.6 as h, which came from 10.0.0.2",
            "a place is not taken over from elsewhere");
    is_str(says_hello_from("10.0.0.2", h), "", "but from where it was taken");
    h = agent(3);
    h.addr = "10.0.0.9";
    is_str(says_hello_from("10.6.6.6", h), "", "another node says that its address is the coordinator's");
    ok(!rdzv_is_member_addr(r, "10.0.0.9"), "that gives it no right");
    ok(!rdzv_is_member_addr(r, "10.6.6.6"), "nor does it have one before it has a seat");
    ok(rdzv_is_member_addr(r, "10.0.0.1") && rdzv_is_member_addr(r, "10.0.0.2"), "nodes with a seat have");
    ok(rdzv_status_member(r, 1, now, &m) && m.u.status_member.instance != 2, "nobody is told an agent's number");
    struct msg drain = {.type = MSG_DRAIN};
    char name[32];
    snprintf(name, sizeof name, "%llx", (unsigned long long)m.u.status_member.instance);
    drain.u.drain.node = name;
    struct rdzv_event ev = {.type = RDZV_EV_COMMAND, .conn = 77, .msg = &drain, .peer = {.remote = "10.0.0.1"}};
    rdzv_step(r, &ev, now, &out);
    is_num(rdzv_answer(r)->u.done.status, 0, "what is told names it in a command");
    close_job();
}

/* Places of a job are few: one address does not take them all. */
static void test_crowd(void)
{
    unsigned n = 0;
    const char *why = "";
    open_job(0);
    for (; n < 100 && !*why; n++)
        why = says_hello_from("10.6.6.6", agent(100 + n));
    refused(why, "have come from 10.6.6.6 already, half of the places", "half of the places and no more");
    is_str(says_hello_from("10.0.0.1", agent(1)), "", "others come in");
    close_job();
}

int main(void)
{
    test_places();
    test_crowd();
    test_never_started();
    test_spoiler();
    test_numbers();
    test_same_node();
    return done();
}
