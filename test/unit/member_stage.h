/* One member core on a stage: what test_member*.c share.  Each step is a line of text with virtual time. */
#ifndef TEST_UNIT_MEMBER_STAGE_H
#define TEST_UNIT_MEMBER_STAGE_H
#include "member/member.h"

#include <stdarg.h>

#include "lib/tap.h"

static struct member m;
static el_usec now;
static char text[16384];
static size_t len;

static inline void begin(int hosts)
{
    struct member_conf conf = {.run_id = "job",
                               .host = "h",
                               .role = "default",
                               .instance = 7,
                               .node_rank = -1,
                               .slots = 2,
                               .coordinator_timeout = EL_SEC(60),
                               .hosts_coordinator = hosts};
    conf.set = (struct rdzv_settings){.min = 1,
                                      .max = 2,
                                      .unit = 1,
                                      .max_restarts = 3,
                                      .join_timeout_ms = 30000,
                                      .keep_alive_ms = 1000,
                                      .keep_alive_attempts = 5,
                                      .grace_ms = 30000};
    member_init(&m, &conf, 1);
    now = 0;
    len = 0;
    *text = 0;
}

static inline void put(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline void put(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    len += (size_t)vsnprintf(text + len, sizeof text - len, format, ap);
    va_end(ap);
}

static inline void put_action(const struct member_action *x)
{
    static const char *const names[] = {
        [MEMBER_DO_CONNECT] = "connect",
        [MEMBER_DO_DISCONNECT] = "disconnect",
        [MEMBER_DO_SEND] = "",
        [MEMBER_DO_INCIDENTS] = "incidents",
        [MEMBER_DO_OPEN_STORE] = "open store",
        [MEMBER_DO_CLOSE_STORE] = "close store",
        [MEMBER_DO_LEASE_REQUEST] = "knock",
        [MEMBER_DO_LEASE_RELEASE] = "unknock",
        [MEMBER_DO_LEASE_SEND] = "lease ",
        [MEMBER_DO_TENANTS_SEND] = "tenants ",
        [MEMBER_DO_START] = "start",
        [MEMBER_DO_STOP] = "stop",
        [MEMBER_DO_PROBE] = "probe",
        [MEMBER_DO_RESTOCK] = "restock",
        [MEMBER_DO_PARTS] = "parts",
        [MEMBER_DO_FILES] = "files",
        [MEMBER_DO_WORDS] = "words",
        [MEMBER_DO_WORDS_LOST] = "words lost",
        [MEMBER_DO_WRITE] = "write",
        [MEMBER_DO_FILE] = "file",
        [MEMBER_DO_PUBLISH] = "publish",
        [MEMBER_DO_UNSAVE] = "unsave",
        [MEMBER_DO_SAVED] = "saved",
        [MEMBER_DO_RESTORE] = "offer",
        [MEMBER_DO_GO] = "go",
        [MEMBER_DO_PROBE_STOP] = "probe stop",
        [MEMBER_DO_PROBE_TELL] = "probe tell ",
        [MEMBER_DO_NOTICE] = "notice",
        [MEMBER_DO_UNNOTICE] = "run on",
        [MEMBER_DO_SAY] = "",
        [MEMBER_DO_SAY_FENCED] = "fenced",
        [MEMBER_DO_EXIT] = "exit",
    };
    put("%s", names[x->type]);
    if (x->type == MEMBER_DO_SEND || x->type == MEMBER_DO_PROBE_TELL || x->type == MEMBER_DO_LEASE_SEND ||
        x->type == MEMBER_DO_TENANTS_SEND)
        put("%s", msg_name((unsigned)x->what));
    if (x->type == MEMBER_DO_STOP)
        put(" %d in %u s", x->signal, (unsigned)(x->grace / EL_SEC(1)));
    if (x->type == MEMBER_DO_SAY)
        put("say \"%s\"", m.text);
    if (x->type == MEMBER_DO_EXIT)
        put(" %u", m.status);
}

/* Heartbeats and quiet steps leave no line. */
static inline void step(struct member_event ev, const char *what)
{
    struct member_actions out;
    unsigned shown = 0;
    size_t start = len;
    member_step(&m, &ev, now, &out);
    member_check(&m);
    put("%u.%03u %s ->", (unsigned)(now / EL_SEC(1)), (unsigned)(now % EL_SEC(1) / 1000), what);
    for (unsigned i = 0; i < out.n; i++) {
        if (out.v[i].what == MSG_HEARTBEAT)
            continue;
        put("%s", shown++ ? ", " : " ");
        put_action(&out.v[i]);
    }
    put(" | %s\n", member_place_name(m.place));
    if (!shown)
        len = start;
    text[len] = 0;
}

static inline void until(unsigned ms)
{
    el_usec due;
    while ((due = member_deadline(&m)) <= EL_MS(ms)) {
        now = due > now ? due : now;
        step((struct member_event){.type = MEMBER_EV_TIMEOUT}, "time");
    }
    now = EL_MS(ms);
}

#define AT(ms, what, ...) (until(ms), step((struct member_event){__VA_ARGS__}, what))

static inline void order(unsigned ms, struct msg msg)
{
    until(ms);
    step((struct member_event){.type = MEMBER_EV_MSG, .msg = &msg}, msg_name((unsigned)msg.type));
}

/* The coordinator (or the lease) answers each second, up to and with ms. */
static inline void answered(unsigned from, unsigned ms, bool lease)
{
    for (unsigned t = from; t <= ms; t += 1000) {
        struct msg msg = {.type = MSG_HEARTBEAT_ACK, .u.heartbeat = {.time = EL_MS(t), .own = EL_MS(t)}};
        until(t);
        step((struct member_event){.type = lease ? MEMBER_EV_LEASE_MSG : MEMBER_EV_MSG, .msg = &msg}, "reply");
    }
}

static inline struct msg world(unsigned number, unsigned group_rank, unsigned group_size)
{
    struct msg w = {.type = MSG_WORLD};
    w.u.world = (struct msg_world){.number = number,
                                   .coord = 9,
                                   .group_rank = group_rank,
                                   .group_size = group_size,
                                   .rank_base = 2 * group_rank,
                                   .world_size = 2 * group_size,
                                   .role_world_size = 2 * group_size,
                                   .master_addr = "10.0.0.1",
                                   .master_port = 1,
                                   .rank0_host = "",
                                   .why = "",
                                   .successors = ""};
    return w;
}

static inline struct msg stop(unsigned number)
{
    return (struct msg){.type = MSG_STOP, .u.stop = {.number = number, .coord = 9, .text = "", .grace_ms = 30000}};
}

static inline struct msg end(unsigned status)
{
    return (struct msg){.type = MSG_END, .u.end = {.status = status, .text = "", .cause = ""}};
}

static inline struct msg park(const char *why)
{
    return (struct msg){.type = MSG_WAIT, .u.wait = {.text = why}};
}

#define START             AT(0, "start", .type = MEMBER_EV_START)
#define CONNECTED(ms)     AT(ms, "connected", .type = MEMBER_EV_CONNECTED)
#define REFUSED(ms)       AT(ms, "connect refused", .type = MEMBER_EV_CONNECT_FAILED, .refused = true, .text = "refused")
#define LOST(ms)          AT(ms, "link closed", .type = MEMBER_EV_LINK_CLOSED, .text = "closed")
#define STORE(ms)         AT(ms, "store", .type = MEMBER_EV_STORE, .ok = true, .port = 1)
#define LEASE_GRANTED(ms) AT(ms, "knock ok", .type = MEMBER_EV_LEASE_GRANTED)
#define STARTED(ms)       AT(ms, "started", .type = MEMBER_EV_STARTED)
#define CLOSED(ms, r)     AT(ms, "attempt closed", .type = MEMBER_EV_CLOSED, .result = MEMBER_##r)
#define SIGNAL(ms, n)     AT(ms, "signal", .type = MEMBER_EV_SIGNAL, .signal = (n))
#define FAILED(ms, c)                                                                                                  \
    AT(ms, "worker failed", .type = MEMBER_EV_WORKER_FAILED,                                                           \
       .incident = &(struct member_incident){.code = (c), .signal = -1})

static inline void story_is(const char *want, const char *what)
{
    is_str(text, want, what);
}

static inline struct msg open_store(unsigned number)
{
    return (struct msg){.type = MSG_OPEN_STORE, .u.open_store = {.number = number, .coord = 9, .token = 1}};
}

static inline struct msg refused(bool retry)
{
    return (struct msg){.type = MSG_REFUSED, .u.refused = {.status = 78, .retry = retry, .text = "another minimum"}};
}

/* The lease answers, and says what its sender knows of the coordinator. */
static inline void lease_says(unsigned ms, enum msg_view view)
{
    struct msg msg = {.type = MSG_HEARTBEAT_ACK, .u.heartbeat = {.time = EL_MS(ms), .own = EL_MS(ms), .view = view}};
    AT(ms, "lease", .type = MEMBER_EV_LEASE_MSG, .msg = &msg);
}

/* Nobody listens at the endpoint, its host answers; the lease is alive. */
static inline void away(unsigned from, unsigned to)
{
    for (unsigned t = from; t <= to && m.place != MEMBER_ENDED; t += 500) {
        lease_says(t, MSG_VIEW_REFUSED);
        if (m.link == MEMBER_LINK_TRYING)
            REFUSED(t);
    }
}

/* It arrives before any timer of the time that was slept through. */
static inline void late(unsigned ms, struct msg msg)
{
    now = EL_MS(ms);
    step((struct member_event){.type = MEMBER_EV_MSG, .msg = &msg}, msg_name((unsigned)msg.type));
}

static inline void tenant_over(unsigned ms)
{
    struct msg over = {.type = MSG_ROUND_OVER, .u.round_over = {.number = 1, .coord = 9}};
    AT(ms, "tenant: ROUND_OVER", .type = MEMBER_EV_TENANT, .msg = &over);
}

/* Long stories: all lines but those of one kind are what matters. */
static size_t drop_lines(const char *with)
{
    size_t to = 0;
    for (char *line = text; *line;) {
        char *end_of = strchr(line, '\n') + 1, saved = *end_of;
        *end_of = 0;
        bool drop = strstr(line, with) != NULL;
        size_t n = (size_t)(end_of - line);
        *end_of = saved;
        if (!drop)
            memmove(text + to, line, n), to += n;
        line = end_of;
    }
    text[to] = 0;
    return to;
}

static inline size_t keep_last(void)
{
    return drop_lines("connect");
}

/* A node with rank 1 of 2 that runs since 0.030; the link and the lease are up. */
static inline void running(unsigned group_rank, unsigned group_size)
{
    begin(0);
    START;
    CONNECTED(10);
    order(20, world(1, group_rank, group_size));
    if (group_rank)
        LEASE_GRANTED(25);
    STARTED(30);
    len = 0;
}

#endif
