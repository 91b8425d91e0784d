/* Messages that are well formed, with each value at its limits, fed to whole cores: a coordinator with four peers, and
 * a member with a coordinator that may say anything.  Whatever a peer says, no assertion fails, and every answer is one
 * that the other side's decoder takes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "member/member.h"
#include "control/msg.h"
#include "coord/rdzv.h"
#include "fuzz/tape.h"
#include "util/array.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define X(NAME, name, number, text)                                                                                    \
    static const struct el_field name##_fields[] = {MSG_##name##_FIELDS(EL_FIELD_ROW, msg_##name) EL_FIELD_END};
MSG_LIST(X)
#undef X

static const struct {
    enum msg_type type;
    const struct el_field *fields;
} rows[] = {
#define X(NAME, name, number, text) {MSG_##NAME, name##_fields},
    MSG_LIST(X)
#undef X
};

struct scene { /* what a peer would know */
    uint64_t number, coord;
};

/* --- values at their limits --- */

static uint64_t number_of(const struct el_field *f, unsigned pick)
{
    const uint64_t values[] = {0,
                               1,
                               2,
                               3,
                               f->limit,
                               f->limit - 1,
                               f->limit / 2,
                               (uint64_t)1 << 31,
                               (uint64_t)1 << 32,
                               (uint64_t)1 << 53,
                               ((uint64_t)1 << 53) - 1,
                               INT64_MAX};
    uint64_t v = values[pick % COUNT_OF(values)];
    return v > f->limit ? f->limit : v;
}

static const char *text_of(const struct el_field *f, unsigned pick)
{
    static char longest[CKPT_COMMIT_SUMS_TEXT + 1];
    static const char *const texts[] = {"",
                                        "a",
                                        "job",
                                        "0",
                                        "0-4095",
                                        "0-3,5",
                                        "12@9f3a",
                                        "12@9f3a:0",
                                        "12@9f3a:0-3 9223372036854775807@ffffffffffffffff:0-4095",
                                        "1=1 9f3a=5c1",
                                        "1=2 9f3a=5c1",
                                        "5c1 net.0.bias\n6 net.1\n",
                                        "9223372036854775807@1",
                                        "12:c,h0-3,c5 11:h,h0-7",
                                        "9223372036854775807:h,c0-4095",
                                        "4294967296",
                                        "\x1b[2J",
                                        "pair 0 0"};
    if (pick % (COUNT_OF(texts) + 1) < COUNT_OF(texts))
        return texts[pick % (COUNT_OF(texts) + 1)];
    memset(longest, 'x', sizeof longest - 1);
    longest[f->limit] = 0;
    return longest;
}

static void fill(const struct el_field *f, char *base, struct tape *t, const struct scene *s)
{
    char *at = base + f->offset;
    unsigned pick = take(t);
    if (strcmp(f->name, "number") == 0 && pick < 192) {
        *(uint64_t *)(void *)at = s->number;
        return;
    }
    if (strcmp(f->name, "coord") == 0 && pick < 240) {
        *(uint64_t *)(void *)at = s->coord;
        return;
    }
    switch (f->kind) {
    case EL_FIELD_NUM: *(uint64_t *)(void *)at = number_of(f, pick); break;
    case EL_FIELD_INT: *(int64_t *)(void *)at = pick % 13 == 12 ? -1 : (int64_t)number_of(f, pick % 13); break;
    case EL_FIELD_HEX: *(uint64_t *)(void *)at = pick % 5 == 4 ? UINT64_MAX : pick % 5; break;
    case EL_FIELD_BOOL: *(bool *)(void *)at = pick & 1; break;
    case EL_FIELD_STR: *(const char **)(void *)at = text_of(f, pick); break;
    case EL_FIELD_REAL: break;
    }
}

/* --- as it comes from the wire --- */

/* False: the decoder refuses it.  Else msg_release(out). */
static struct el_err refusal;

static bool over_the_wire(const struct msg *m, struct msg *out)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    struct msg_decoder d = {.greeted = true};
    refusal = (struct el_err){0};
    bool good = msg_encode(m, &b) == 0 && msg_consume(&d, b.v, b.len, out, &refusal) == (long)b.len;
    el_buf_free(&b);
    return good;
}

/* What a core says is understood. */
static void says(const struct msg *m)
{
    struct msg out;
    if (!over_the_wire(m, &out)) {
        fprintf(stderr, "says what is refused: %s\n", refusal.text);
        abort();
    }
    msg_release(&out);
}

static bool draw(struct tape *t, const struct scene *s, struct msg *out)
{
    unsigned row = take(t) % (COUNT_OF(rows) + 1);
    struct msg m = {.type = MSG_HEARTBEAT};
    if (row == COUNT_OF(rows)) {
        m.u.heartbeat.time = number_of(&(struct el_field){.limit = UINT64_MAX}, take(t));
        m.u.heartbeat.own = number_of(&(struct el_field){.limit = UINT64_MAX}, take(t));
    } else {
        m.type = rows[row].type;
        for (const struct el_field *f = rows[row].fields; f->name; f++)
            fill(f, (char *)&m.u, t, s);
    }
    return over_the_wire(&m, out);
}

/* --- a coordinator --- */

enum { PEERS = 4 };

struct coordinator_scene {
    struct rdzv *r;
    struct tape *t;
    el_usec now;
    uint64_t conns, conn[PEERS];
    unsigned member[PEERS], connection[PEERS];
    uint64_t serial;
    bool over;
};

static const struct rdzv_settings settings = {.min = 1,
                                              .max = 3,
                                              .unit = 1,
                                              .max_restarts = 3,
                                              .settle_ms = 10,
                                              .last_call_ms = 10,
                                              .join_timeout_ms = 30000,
                                              .keep_alive_ms = 1000,
                                              .keep_alive_attempts = 5,
                                              .reconnect_grace_ms = 1000,
                                              .scale_up_delay_ms = 10,
                                              .grace_ms = 1000,
                                              .boundary_wait_ms = 1000,
                                              .restore_timeout_ms = 1000,
                                              .ckpt_store = CKPT_COMMIT_SHARED,
                                              .emergency_ms = 1000};

static void order(struct rdzv *r, unsigned i, el_usec now)
{
    struct msg m;
    if (rdzv_probe_verdict(r, i, &m))
        says(&m);
    for (unsigned k = 0; rdzv_saving_word(r, i, k, &m); k++)
        says(&m);
    rdzv_order(r, i, now, &m);
    says(&m);
    if (rdzv_emergency_word(r, i, &m))
        says(&m);
    if (rdzv_restore_word(r, i, &m))
        says(&m);
    if (rdzv_comparing_word(r, i, &m))
        says(&m);
    if (rdzv_common_word(r, i, &m))
        says(&m);
}

static void act(struct coordinator_scene *c, const struct rdzv_action *a)
{
    struct msg m;
    switch (a->type) {
    case RDZV_DO_BIND:
        for (int i = 0; i < PEERS; i++)
            if (c->conn[i] == a->conn)
                c->member[i] = a->member;
        break;
    case RDZV_DO_REFUSE:
    case RDZV_DO_REPLY: says(rdzv_answer(c->r)); /* fall through */
    case RDZV_DO_CLOSE:
        for (int i = 0; i < PEERS; i++)
            c->conn[i] = c->conn[i] == a->conn ? 0 : c->conn[i];
        break;
    case RDZV_DO_ORDER: order(c->r, a->member, c->now); break;
    case RDZV_DO_ORDER_EACH:
        for (unsigned i = 0; i < rdzv_room_used(c->r); i++)
            if (rdzv_conn(c->r, i))
                order(c->r, i, c->now);
        break;
    case RDZV_DO_JOURNAL: c->serial = a->serial; break;
    case RDZV_DO_REPORT:
    case RDZV_DO_REPORT_TO:
        for (unsigned i = 0; rdzv_report(c->r, i, &m); i++)
            says(&m);
        break;
    case RDZV_DO_PROBE_REPORT:
        for (unsigned i = 0; rdzv_probe_page(c->r, i, &m); i++)
            says(&m);
        break;
    case RDZV_DO_GOODBYE:
        rdzv_goodbye(c->r, a->member, c->now, &m);
        says(&m);
        break;
    case RDZV_DO_OVER: c->over = true; break;
    case RDZV_DO_BEAT:
    case RDZV_DO_NOTE: break;
    }
}

static void coordinator_feed(struct coordinator_scene *c, const struct rdzv_event *ev)
{
    struct rdzv_actions out;
    rdzv_step(c->r, ev, c->now, &out);
    rdzv_check(c->r);
    for (unsigned i = 0; i < out.n && !c->over; i++)
        act(c, &out.v[i]);
    for (unsigned i = 0; i < rdzv_room_used(c->r); i++) {
        struct msg m;
        if (i == 0) {
            rdzv_status_job(c->r, c->now, &m);
            says(&m);
        }
        if (rdzv_status_member(c->r, i, c->now, &m))
            says(&m);
    }
    if (!c->serial || c->over)
        return;
    struct rdzv_event written = {.type = RDZV_EV_JOURNALED, .ok = true, .serial = c->serial};
    c->serial = 0;
    coordinator_feed(c, &written);
}

static struct scene scene_of(struct coordinator_scene *c)
{
    struct rdzv_record x;
    rdzv_record(c->r, &x);
    return (struct scene){x.number, x.coord};
}

/* An ordinary HELLO, but for a few of its values. */
static void hello(struct coordinator_scene *c, unsigned i)
{
    struct scene s = scene_of(c);
    struct msg m = {.type = MSG_HELLO}, got;
    m.u.hello = (struct msg_hello){.run_id = "job",
                                   .instance = i + 1,
                                   .connection = ++c->connection[i],
                                   .host = "h",
                                   .addr = "",
                                   .node_rank = -1,
                                   .slots = 2,
                                   .role = "default",
                                   .group_rank = -1};
#define F(T, kind, name, limit, must) m.u.hello.name = settings.name;
    MSG_SETTINGS(F, rdzv_settings)
#undef F
    for (unsigned n = take(c->t) % 8; n; n--)
        fill(&hello_fields[take(c->t) % (COUNT_OF(hello_fields) - 1)], (char *)&m.u, c->t, &s);
    if (!over_the_wire(&m, &got))
        return;
    if (c->conn[i])
        coordinator_feed(c, &(struct rdzv_event){.type = RDZV_EV_CLOSED, .conn = c->conn[i], .member = c->member[i]});
    c->conn[i] = ++c->conns;
    c->member[i] = RDZV_NONE;
    struct rdzv_event ev = {.type = RDZV_EV_HELLO, .conn = c->conn[i], .msg = &got};
    ev.peer = (struct rdzv_peer){.remote = "10.0.0.1", .local = "10.0.0.2", .same_host = take(c->t) & 1};
    if (!c->over)
        coordinator_feed(c, &ev);
    msg_release(&got);
}

static void say(struct coordinator_scene *c, unsigned i)
{
    struct scene s = scene_of(c);
    struct msg got;
    if (!draw(c->t, &s, &got))
        return;
    bool command =
        got.type == MSG_SCALE || got.type == MSG_DRAIN || got.type == MSG_STOP_JOB || got.type == MSG_RESTART;
    struct rdzv_event ev = {
        .type = command ? RDZV_EV_COMMAND : RDZV_EV_MSG, .conn = c->conn[i], .member = c->member[i]};
    ev.msg = &got;
    ev.peer = (struct rdzv_peer){.remote = "10.0.0.1", .local = "10.0.0.2"};
    ev.conn = command ? ++c->conns : ev.conn;
    if (got.type != MSG_HELLO && got.type != MSG_LOGS_TEXT && (command || ev.member != RDZV_NONE))
        coordinator_feed(c, &ev);
    msg_release(&got);
}

static void run_coordinator(struct tape *t)
{
    struct el_mem mem = EL_MEM_INIT((size_t)64 << 20);
    struct rdzv_conf conf = {.run_id = "job", .coord = 7, .token_start = 1, .surely_new = take(t) & 1, .set = settings};
    struct coordinator_scene c = {.t = t, .now = EL_SEC(1)};
    conf.set.health_check = take(t) % 4;
    conf.room = rdzv_room(&conf.set);
    c.r = rdzv_new(&conf, NULL, c.now, &mem);
    while (c.r && t->at < t->end && !c.over) {
        unsigned what = take(t), i = what % PEERS;
        el_usec due = rdzv_deadline(c.r);
        if (what >= 224 && due != EL_NEVER && due < EL_SEC(1000000)) {
            c.now = due > c.now ? due : c.now;
            coordinator_feed(&c, &(struct rdzv_event){.type = RDZV_EV_TIMEOUT});
        } else if (!c.conn[i] || what >= 192) {
            hello(&c, i);
        } else {
            say(&c, i);
        }
    }
    rdzv_free(c.r);
    if (mem.used_bytes)
        abort();
}

/* --- a member --- */

struct member_scene {
    struct member m;
    el_usec now;
    unsigned queued;
    struct member_event queue[64];
};

static void later(struct member_scene *s, struct member_event ev)
{
    if (s->queued < COUNT_OF(s->queue))
        s->queue[s->queued++] = ev;
}

static void member_act_on(struct member_scene *s, const struct member_action *a)
{
    struct msg m;
    switch ((unsigned)a->type) {
    case MEMBER_DO_CONNECT: later(s, (struct member_event){.type = MEMBER_EV_CONNECTED}); break;
    case MEMBER_DO_OPEN_STORE: later(s, (struct member_event){.type = MEMBER_EV_STORE, .ok = true, .port = 1}); break;
    case MEMBER_DO_LEASE_REQUEST: later(s, (struct member_event){.type = MEMBER_EV_LEASE_GRANTED}); break;
    case MEMBER_DO_START:
        if (member_world(&s->m)->rank_base + s->m.conf.slots > member_world(&s->m)->world_size)
            abort(); /* workers would be told ranks that there are not */
        later(s, (struct member_event){.type = MEMBER_EV_STARTED});
        break;
    case MEMBER_DO_STOP: later(s, (struct member_event){.type = MEMBER_EV_CLOSED, .result = MEMBER_STOPPED}); break;
    case MEMBER_DO_SEND:
    case MEMBER_DO_LEASE_SEND:
    case MEMBER_DO_TENANTS_SEND:
        member_message(&s->m, a->what, s->now, &m);
        says(&m);
        break;
    default: break;
    }
}

static void member_feed(struct member_scene *s, const struct member_event *ev)
{
    struct member_actions out;
    member_step(&s->m, ev, s->now, &out);
    member_check(&s->m);
    for (unsigned i = 0; i < out.n; i++)
        member_act_on(s, &out.v[i]);
}

static void happens(struct member_scene *s, struct tape *t)
{
    static const struct restore_stock stock = {.told = RESTORE_NO_STEP, .newest = 12};
    static const struct member_held held = {.list = 1, .parts = 1, .layout = "a", .steps = "", .wishes = ""};
    static const struct member_digests digests = {.number = 1, .coord = 1, .step = 1, .text = "1=1"};
    static const enum member_event_type types[] = {
        MEMBER_EV_STOCK,        MEMBER_EV_READ,        MEMBER_EV_HELD,        MEMBER_EV_SAVED,  MEMBER_EV_SUBSCRIBED,
        MEMBER_EV_STEP_REPORT,  MEMBER_EV_AT_BOUNDARY, MEMBER_EV_LINK_CLOSED, MEMBER_EV_PROBED, MEMBER_EV_LEASE_CLOSED,
        MEMBER_EV_LEASE_FAILED, MEMBER_EV_CLOSED,      MEMBER_EV_DIGESTS};
    struct member_event ev = {
        .type = types[take(t) % COUNT_OF(types)], .stock = &stock, .held = &held, .digests = &digests, .ok = true};
    ev.result = MEMBER_SUCCESS;
    if (ev.type == MEMBER_EV_LINK_CLOSED && s->m.link < MEMBER_LINK_HELLO)
        return;
    member_feed(s, &ev);
}

static void run_member(struct tape *t)
{
    static struct member_scene s;
    s = (struct member_scene){.now = EL_SEC(1)};
    struct member_conf conf = {
        .run_id = "job", .host = "h", .role = "default", .instance = 7, .node_rank = -1, .slots = 2};
    conf.set = settings;
    member_init(&s.m, &conf, 1);
    member_feed(&s, &(struct member_event){.type = MEMBER_EV_START});
    while (t->at < t->end && s.m.place != MEMBER_ENDED) {
        struct scene at = {s.m.round.number + (take(t) & 1), 1};
        unsigned what = take(t);
        el_usec due = member_deadline(&s.m);
        struct msg got;
        if (s.queued && what < 128) {
            struct member_event ev = s.queue[0];
            memmove(s.queue, s.queue + 1, --s.queued * sizeof s.queue[0]);
            member_feed(&s, &ev);
        } else if (what >= 240 && due != EL_NEVER && due < EL_SEC(1000000)) {
            s.now = due > s.now ? due : s.now;
            member_feed(&s, &(struct member_event){.type = MEMBER_EV_TIMEOUT});
        } else if (what >= 224) {
            happens(&s, t);
        } else if (draw(t, &at, &got)) {
            s.now += 1000;
            bool lease = got.type == MSG_ROUND_OVER || got.type == MSG_LEASE_GRANTED;
            member_feed(&s, &(struct member_event){.type = lease ? MEMBER_EV_LEASE_MSG : MEMBER_EV_MSG, .msg = &got});
            msg_release(&got);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tape t = {data, data + size};
    if (take(&t) & 1)
        run_coordinator(&t);
    else
        run_member(&t);
    return 0;
}
