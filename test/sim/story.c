#include "sim/story.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int story_one_host = 99;

static void __attribute__((format(printf, 2, 3))) put(struct story *s, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(s->text + s->len, sizeof s->text - s->len, format, ap);
    va_end(ap);
    if (n > 0 && s->len + (size_t)n < sizeof s->text)
        s->len += (size_t)n;
}

void story_init(struct story *s, unsigned min, unsigned max)
{
    memset(s, 0, sizeof *s);
    s->beats = true;
    s->conf.coord = 0xc0;
    s->conf.token_start = 1;
    s->conf.surely_new = true;
    snprintf(s->conf.run_id, sizeof s->conf.run_id, "job");
    s->conf.set = (struct rdzv_settings){.min = min,
                                         .max = max,
                                         .unit = 1,
                                         .max_restarts = 3,
                                         .max_fruitless = 10,
                                         .settle_ms = 3000,
                                         .last_call_ms = 30000,
                                         .join_timeout_ms = 600000,
                                         .keep_alive_ms = 1000,
                                         .keep_alive_attempts = 5,
                                         .reconnect_grace_ms = 100,
                                         .scale_up_delay_ms = 1000,
                                         .grace_ms = 30000};
    s->conf.room = rdzv_room(&s->conf.set);
    for (unsigned i = 0; i < STORY_NODES; i++) {
        s->node[i].node_rank = -1;
        s->node[i].group_rank = -1;
        s->node[i].member = RDZV_NONE;
    }
}

void story_begin(struct story *s)
{
    s->r = rdzv_new(&s->conf, NULL, 0, NULL);
    if (!s->r)
        abort();
}

void story_end(struct story *s)
{
    rdzv_free(s->r);
    s->r = NULL;
}

static int who(const struct story *s, unsigned member)
{
    for (int i = 0; i < STORY_NODES; i++)
        if (s->node[i].member == member && s->node[i].conn)
            return i;
    return -1;
}

static void saw(struct story *s, int i, uint64_t number)
{
    if (number > s->node[i].seen)
        s->node[i].seen = number;
}

static void probe_line(struct story *s, int i, const char *sep, const struct msg_probe *p)
{
    static const char *const kinds[] = {
        [HEALTH_CHECK_LOCAL] = "checks", [HEALTH_CHECK_REST] = "rests", [HEALTH_CHECK_AFTER] = "after"};
    if (p->kind != HEALTH_CHECK_PAIR)
        put(s, "%s%c: %s", sep, 'a' + i, kinds[p->kind]);
    else
        put(s, "%s%c: %s %s%s%s%s", sep, 'a' + i, p->guest ? "to" : "from", p->peer, *p->ids ? ", " : "", p->ids,
            p->parted ? ", parted" : "");
}

static void order_line(struct story *s, int i, bool *any, const struct msg *m)
{
    const char *sep = *any ? "; " : " -> ";
    bool again = s->node[i].last.type == m->type;
    s->node[i].last = *m;
    switch ((unsigned)m->type) {
    case MSG_WAIT:
        s->node[i].parks++;
        saw(s, i, m->u.wait.number);
        if (again)
            return;
        put(s, "%s%c: park", sep, 'a' + i);
        break;
    case MSG_OPEN_STORE:
        saw(s, i, m->u.open_store.number);
        s->node[i].number = m->u.open_store.number;
        s->node[i].coord = m->u.open_store.coord;
        put(s, "%s%c: open %llu", sep, 'a' + i, (unsigned long long)m->u.open_store.number);
        break;
    case MSG_WORLD:
        saw(s, i, m->u.world.number);
        s->node[i].number = m->u.world.number;
        s->node[i].coord = m->u.world.coord;
        s->node[i].group_rank = (int)m->u.world.group_rank;
        s->node[i].rank_base = m->u.world.rank_base;
        s->node[i].latest = false;
        s->node[i].group_size = (unsigned)m->u.world.group_size;
        put(s, "%s%c: world %llu, %llu of %llu", sep, 'a' + i, (unsigned long long)m->u.world.number,
            (unsigned long long)m->u.world.group_rank, (unsigned long long)m->u.world.group_size);
        if (m->u.world.restarts)
            put(s, ", restart %llu", (unsigned long long)m->u.world.restarts);
        break;
    case MSG_PROBE: probe_line(s, i, sep, &m->u.probe); break;
    case MSG_KEEP: put(s, "%s%c: hold", sep, 'a' + i); break;
    case MSG_STOP: put(s, "%s%c: stop %llu", sep, 'a' + i, (unsigned long long)m->u.stop.number); break;
    case MSG_NOTICE:
        put(s, "%s%c: notice %llu", sep, 'a' + i, (unsigned long long)m->u.notice.ask);
        if (m->u.notice.boundary >= 0)
            put(s, ", step %lld", (long long)m->u.notice.boundary);
        break;
    case MSG_END: put(s, "%s%c: end %llu", sep, 'a' + i, (unsigned long long)m->u.end.status); break;
    default: abort();
    }
    *any = true;
}

static void order(struct story *s, int i, bool *any)
{
    struct msg m;
    if (i < 0)
        return;
    if (rdzv_probe_verdict(s->r, s->node[i].member, &m)) {
        put(s, "%s%c is %s", *any ? "; " : " -> ", 'a' + i,
            health_verdict_name((enum health_verdict)m.u.probe_verdict.verdict));
        *any = true;
    }
    rdzv_order(s->r, s->node[i].member, s->now, &m);
    order_line(s, i, any, &m);
    if (!rdzv_emergency_word(s->r, s->node[i].member, &m))
        return;
    const struct msg_ckpt_capture *c = &m.u.ckpt_capture;
    put(s, "%s%c: ", *any ? "; " : " -> ", 'a' + i);
    if (c->what == EMERGENCY_CKPT_FREEZE)
        put(s, "hold back, up to %lld", (long long)c->limit);
    else if (c->what == EMERGENCY_CKPT_COPY)
        put(s, "copy %lld, keep %lld", (long long)c->step, (long long)c->kept);
    else
        put(s, "let go %llu", (unsigned long long)c->number);
    *any = true;
}

static void step(struct story *s, struct rdzv_event ev, const char *what);

static void show(struct story *s, const struct rdzv_action *x, bool *any)
{
    int i = -1;
    switch (x->type) {
    case RDZV_DO_BIND:
        for (i = 0; i < STORY_NODES; i++)
            if (s->node[i].conn == x->conn)
                s->node[i].member = x->member;
        break;
    case RDZV_DO_ORDER: order(s, who(s, x->member), any); break;
    case RDZV_DO_ORDER_EACH:
        for (i = 0; i < STORY_NODES; i++)
            if (s->node[i].conn && s->node[i].member != RDZV_NONE)
                order(s, i, any);
        break;
    case RDZV_DO_CLOSE:
    case RDZV_DO_REFUSE:
        put(s, "%s%s", *any ? "; " : " -> ", x->type == RDZV_DO_REFUSE ? "refused: " : "close");
        if (x->type == RDZV_DO_REFUSE)
            put(s, "%s", rdzv_answer(s->r)->u.refused.text);
        for (i = 0; i < STORY_NODES; i++)
            if (s->node[i].conn == x->conn) {
                if (x->type == RDZV_DO_CLOSE)
                    put(s, " %c", 'a' + i);
                s->node[i].conn = 0;
                s->node[i].member = RDZV_NONE;
            }
        *any = true;
        break;
    case RDZV_DO_REPLY:
        put(s, "%s%s: %s", *any ? "; " : " -> ", rdzv_answer(s->r)->u.done.status ? "no" : "done",
            rdzv_answer(s->r)->u.done.text);
        *any = true;
        break;
    case RDZV_DO_GOODBYE: {
        struct msg m;
        rdzv_goodbye(s->r, x->member, s->now, &m);
        put(s, "%s%c: goodbye", *any ? "; " : " -> ", 'a' + who(s, x->member));
        if (m.u.leave_ack.wait_ms)
            put(s, " in %llu ms", (unsigned long long)m.u.leave_ack.wait_ms);
        *any = true;
        break;
    }
    case RDZV_DO_OVER:
        put(s, "%sover", *any ? "; " : " -> ");
        *any = true;
        break;
    case RDZV_DO_JOURNAL:
        rdzv_record(s->r, &s->journal);
        s->serial = x->serial;
        break;
    case RDZV_DO_REPORT_TO:
        put(s, "%s%c: report", *any ? "; " : " -> ", 'a' + who(s, x->member));
        *any = true;
        break;
    case RDZV_DO_PROBE_REPORT:
    case RDZV_DO_REPORT: /* test_rdzv_incident.c looks at it */
    case RDZV_DO_NOTE:
    case RDZV_DO_BEAT: break;
    }
}

static void step(struct story *s, struct rdzv_event ev, const char *what)
{
    struct rdzv_actions out;
    bool any = false;
    size_t start = s->len;
    put(s, "%u.%03u %s", (unsigned)(s->now / EL_SEC(1)), (unsigned)(s->now % EL_SEC(1) / 1000), what);
    for (;;) {
        uint64_t before = s->serial;
        rdzv_step(s->r, &ev, s->now, &out);
        rdzv_check(s->r);
        for (unsigned i = 0; i < out.n; i++)
            show(s, &out.v[i], &any);
        if (s->serial == before || s->journal_late)
            break;
        ev = (struct rdzv_event){.type = RDZV_EV_JOURNALED, .serial = s->serial, .ok = !s->journal_broken};
    }
    put(s, "\n");
    if (s->quiet || !any)
        s->len = start;
    s->text[s->len] = 0;
}

void story_until(struct story *s, unsigned ms)
{
    el_usec beat = s->now - s->now % EL_MS(500) + EL_MS(500);
    for (;;) {
        el_usec due = rdzv_deadline(s->r);
        due = due < s->now ? s->now : due;
        if (due > EL_MS(ms) && beat > EL_MS(ms))
            break;
        if (beat <= due) {
            s->now = beat;
            beat += EL_MS(500);
            for (unsigned i = 0; s->beats && i < STORY_NODES; i++)
                if (s->node[i].conn && s->node[i].member != RDZV_NONE) {
                    struct msg m = {.type = MSG_HEARTBEAT};
                    step(s,
                         (struct rdzv_event){
                             .type = RDZV_EV_MSG, .conn = s->node[i].conn, .member = s->node[i].member, .msg = &m},
                         "time");
                }
        } else {
            s->now = due;
            step(s, (struct rdzv_event){.type = RDZV_EV_TIMEOUT}, "time");
        }
    }
    s->now = EL_MS(ms);
}

static void hello(struct story *s, char node, int phase, bool report)
{
    int i = node - 'a';
    char host[2] = {node, 0}, what[32];
    struct msg m = {.type = MSG_HELLO};
    struct msg_hello *h = &m.u.hello;
    h->run_id = "job";
    h->instance = s->node[i].instance;
    h->connection = ++s->node[i].connection;
    h->host = host;
    h->addr = h->command = h->elrun = h->master_addr = "";
    h->role = "default";
    h->domain = s->node[i].domain ? s->node[i].domain : "";
    h->node_rank = s->node[i].node_rank;
    h->slots = s->slots ? s->slots : 2;
#define F(T, kind, name, limit, must) h->name = s->conf.set.name;
    MSG_SETTINGS(F, rdzv_settings)
#undef F
    if (report) {
        h->phase = (uint64_t)phase;
        h->failed = s->node[i].failed;
        h->seen = s->node[i].seen;
        h->number = s->node[i].number;
        h->coord = s->node[i].coord;
        h->group_rank = s->node[i].group_rank;
        h->rank_base = s->node[i].rank_base;
        h->latest = s->node[i].latest;
        h->group_size = s->node[i].group_size;
        h->master_addr = "10.0.0.1";
        h->master_port = 1;
    }
    s->node[i].conn = ++s->conns;
    s->node[i].member = RDZV_NONE;
    char addr[16];
    snprintf(addr, sizeof addr, "10.0.0.%d", i >= story_one_host ? 99 : i + 1);
    snprintf(what, sizeof what, "%c %s", node, report ? "returns" : "joins");
    step(
        s,
        (struct rdzv_event){
            .type = RDZV_EV_HELLO, .conn = s->node[i].conn, .msg = &m, .peer = {.remote = addr, .local = "10.0.0.254"}},
        what);
}

void story_join(struct story *s, unsigned ms, char node)
{
    story_until(s, ms);
    int i = node - 'a';
    s->node[i].instance = s->node[i].instance ? s->node[i].instance + 256 : (uint64_t)i + 1;
    s->node[i].connection = 0;
    s->node[i].number = s->node[i].coord = 0;
    hello(s, node, 0, false);
}

void story_return(struct story *s, unsigned ms, char node, int phase)
{
    story_until(s, ms);
    hello(s, node, phase, true);
}

void story_closed(struct story *s, unsigned ms, char node)
{
    story_until(s, ms);
    int i = node - 'a';
    char what[16];
    snprintf(what, sizeof what, "%c closes", node);
    struct rdzv_event ev = {.type = RDZV_EV_CLOSED, .conn = s->node[i].conn, .member = s->node[i].member};
    s->node[i].conn = 0;
    s->node[i].member = RDZV_NONE;
    step(s, ev, what);
}

void story_tell(struct story *s, char node, const struct msg *m)
{
    int i = node - 'a';
    char what[32];
    if (m->type == MSG_WORKER_FAILED) { /* who has said so has started it before: no line of the story */
        struct msg before = {.type = MSG_STARTED};
        bool was = s->quiet;
        before.u.started = (struct msg_started){m->u.worker_failed.number, m->u.worker_failed.coord};
        s->quiet = true;
        story_tell(s, node, &before);
        s->quiet = was;
    }
    snprintf(what, sizeof what, "%c %s", node, msg_name((unsigned)m->type));
    step(s, (struct rdzv_event){.type = RDZV_EV_MSG, .conn = s->node[i].conn, .member = s->node[i].member, .msg = m},
         what);
}

void story_says(struct story *s, unsigned ms, char node, enum msg_type type)
{
    story_until(s, ms);
    int i = node - 'a';
    struct msg m = {.type = type};
    m.u.started = (struct msg_started){.number = s->node[i].number, .coord = s->node[i].coord};
    if (type == MSG_STORE_READY) {
        m.u.store_ready.addr = "10.0.0.9";
        m.u.store_ready.port = 29511;
    } else if (type == MSG_NO_STORE || type == MSG_LEASE_FAILED) {
        m.u.no_store.text = "no route to host";
    } else if (type == MSG_LEAVING) {
        m.u.leaving = (struct msg_leaving){.signal = 15, .text = "SIGTERM"};
    } else if (type == MSG_END_ACK) {
        m.u.end_ack = (struct msg_end_ack){.status = 0};
    }
    story_tell(s, node, &m);
}

void story_fails(struct story *s, unsigned ms, char node, unsigned local_rank, int code)
{
    story_until(s, ms);
    int i = node - 'a';
    struct msg m = {.type = MSG_WORKER_FAILED};
    m.u.worker_failed = (struct msg_worker_failed){.number = s->node[i].number,
                                                   .coord = s->node[i].coord,
                                                   .time_us = s->now,
                                                   .local_rank = local_rank,
                                                   .code = code,
                                                   .signal = -1,
                                                   .text = "exit code"};
    story_tell(s, node, &m);
}

void story_probed(struct story *s, unsigned ms, char node, enum health_check_outcome outcome)
{
    story_until(s, ms);
    const struct msg_probe *o = &s->node[node - 'a'].last.u.probe;
    struct msg m = {.type = MSG_PROBE_RESULT};
    m.u.probe_result = (struct msg_probe_result){.number = o->number,
                                                 .coord = o->coord,
                                                 .probe = o->probe,
                                                 .stage = o->stage,
                                                 .rail = o->kind == HEALTH_CHECK_PAIR ? 0 : -1,
                                                 .outcome = outcome,
                                                 .text = outcome == HEALTH_CHECK_FAILED ? "it is broken" : "",
                                                 .lines = ""};
    story_tell(s, node, &m);
}

void story_commands(struct story *s, unsigned ms, const struct msg *msg)
{
    story_until(s, ms);
    step(s,
         (struct rdzv_event){.type = RDZV_EV_COMMAND,
                             .conn = ++s->conns,
                             .msg = msg,
                             .peer = {.remote = "127.0.0.1", .same_host = true}},
         msg_name((unsigned)msg->type));
}

void story_all_say(struct story *s, unsigned ms, const char *nodes, enum msg_type type)
{
    for (; *nodes; nodes++)
        story_says(s, ms, *nodes, type);
}

void story_restart(struct story *s, bool journal)
{
    rdzv_free(s->r);
    s->conf.coord++;
    s->serial = 0;
    s->conf.surely_new = journal;
    s->conf.listening_since = s->now;
    s->r = rdzv_new(&s->conf, journal ? &s->journal : NULL, s->now, NULL);
    if (!s->r)
        abort();
    for (unsigned i = 0; i < STORY_NODES; i++) {
        s->node[i].conn = 0;
        s->node[i].member = RDZV_NONE;
    }
}

void story_journaled(struct story *s, bool good)
{
    step(s, (struct rdzv_event){.type = RDZV_EV_JOURNALED, .serial = s->serial, .ok = good},
         good ? "journal written" : "journal failed");
}
