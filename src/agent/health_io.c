#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/health_private.h"
#include "agent/node.h"
#include "probe/clocks.h"
#include "probe/limits.h"

static void health_on_look(void *ctx, bool last);
static void on_pair_id(void *ctx, unsigned rail, const char *id);
static void on_pair_done(void *ctx, unsigned rail, const struct rail_result *r);

static struct probe_node *probe_new(struct health *h, bool nccl, struct el_err *e)
{
    struct probe_node_conf conf = {.loop = h->n->loop,
                                   .reap = h->n->reap,
                                   .env = h->n->env,
                                   .files = &h->n->old_files,
                                   .checks = &h->checks,
                                   .nccl = nccl,
                                   .gpus = h->gpus,
                                   .quick = h->order.quick,
                                   .local = h->addr[0] ? h->addr : NULL,
                                   .cpu_quota_millis = h->quota_millis,
                                   .purelib = h->site[0] ? h->site : NULL,
                                   .local_done = health_on_look,
                                   .pair_id = on_pair_id,
                                   .pair_done = on_pair_done,
                                   .ctx = h};
    const struct health_local *own = h->n->conf->probe_local;
    conf.rails = &h->n->conf->probe_rails;
    if (own) {
        conf.gpus_expected = own->gpus;
        conf.pair_bytes = own->pair_bytes;
        conf.pair_spend = own->pair_spend;
        conf.ckpt_dir = own->ckpt_dir;
        conf.helper_dir = own->helper_dir;
        conf.nccl_lib = own->nccl_lib;
        conf.cuda_lib = own->cuda_lib;
    }
    return probe_node_new(&conf, e);
}

/* --- this node by itself --- */

/* What this node's wall clock shows when the coordinator's own is at zero, if that is known well enough. */
static void add_clock(struct health *h)
{
    struct probe_wire w;
    char text[CLOCKS_TEXT];
    uint64_t time_us, error_us;
    if (h->alone || !h->checks.on[CHECK_CLOCK_OFFSET])
        return;
    membership_on_clock(h->n->membership, loop_clock(), &time_us, &error_us);
    if (error_us > CLOCKS_ERROR_US)
        return;
    clocks_line(loop_wall_usec() - (int64_t)time_us, text, &w);
    (void)wire_encode(&w, &h->found);
}

static void judge_look(struct health *h)
{
    const struct found *f = probe_node_found(h->look);
    struct el_buf why = EL_BUF_INIT(NULL, sizeof h->reason - 1);
    struct el_err e = {0};
    el_buf_free(&h->found);
    h->found = EL_BUF_INIT(NULL, 0);
    (void)found_encode(f, &h->found);
    add_clock(h);
    h->outcome = HEALTH_CHECK_OK;
    h->reason[0] = 0;
    if (found_bad(f, &why)) {
        h->outcome = HEALTH_CHECK_FAILED;
        snprintf(h->reason, sizeof h->reason, "%s", el_buf_cstr(&why));
    } else if (health_files_look(h->files, f, &h->found, &e)) {
        h->outcome = HEALTH_CHECK_UNDECIDED;
        snprintf(h->reason, sizeof h->reason, "%.*s", (int)sizeof h->reason - 1, e.text);
    } else if (found_undecided(f, &why)) {
        h->outcome = HEALTH_CHECK_UNDECIDED;
        snprintf(h->reason, sizeof h->reason, "%s", el_buf_cstr(&why));
    }
    el_buf_free(&why);
}

static void health_looked(void *ctx)
{
    struct health *h = ctx;
    bool last = h->last_look;
    h->looks = false;
    judge_look(h);
    if (!last && h->order.backend == HEALTH_NCCL && !h->gpus && h->outcome != HEALTH_CHECK_FAILED) {
        h->outcome = HEALTH_CHECK_FAILED;
        snprintf(h->reason, sizeof h->reason, "no GPU is here, and --probe-backend=nccl wants one");
    }
    if (h->alone)
        health_alone_looked(h);
    else if (h->on)
        membership_probed(h->n->membership);
}

/* What was before belongs to what is told. */
static void health_on_look(void *ctx, bool last)
{
    struct health *h = ctx;
    h->last_look = last;
    if (!health_files_wait(h->files, health_looked, h))
        health_looked(h);
}

/* Answered at once where there is nothing to run it with: nobody is guilty of that. */
static void cannot_look(struct health *h, const struct el_err *e)
{
    el_buf_free(&h->found);
    h->found = EL_BUF_INIT(NULL, 0);
    h->outcome = HEALTH_CHECK_UNDECIDED;
    snprintf(h->reason, sizeof h->reason, "its own checks cannot be run: %.300s", e->text);
}

bool health_look(struct health *h, bool last)
{
    struct el_err e = {0};
    bool nccl = h->order.backend != HEALTH_TCP && h->gpus;
    if (!last) {
        probe_node_free(h->look);
        h->look = probe_new(h, nccl, &e);
    }
    if (!h->look) {
        cannot_look(h, &e);
        return false;
    }
    h->looks = true;
    probe_node_local(h->look, last);
    return true;
}

/* --- pairs --- */

static void on_pair_id(void *ctx, unsigned rail, const char *id)
{
    struct health *h = ctx;
    snprintf(h->rail[rail].id, sizeof h->rail[rail].id, "%s", id);
    membership_probe_id(h->n->membership);
}

static bool all_done(const struct health *h)
{
    for (unsigned i = 0; i < PLAN_RAILS_MAX; i++)
        if (h->order.rails >> i & 1 && !h->rail[i].done)
            return false;
    return true;
}

static void keep_values(struct rail *rail, unsigned number, const struct rail_result *r)
{
    struct probe_wire w;
    for (unsigned m = 0; m < METRIC_PAIR_COUNT; m++) {
        if (!r->value[m])
            continue;
        wire_init(&w, WIRE_M);
        w.u.m.name = metric_info((enum metric)m)->name;
        w.u.m.rail = number;
        w.u.m.median = (double)r->value[m] / 1e3;
        if (r->spread[m])
            w.u.m.p95 = w.u.m.median + (double)r->spread[m] / 1e3;
        w.u.m.unit = metric_info((enum metric)m)->unit;
        (void)wire_encode(&w, &rail->lines);
    }
}

static void keep_all_values(struct health *h)
{
    bool one_way = h->order.backend != HEALTH_NCCL && !h->n->conf->probe_rails.named;
    if (one_way)
        pair_result_even(&h->result, (uint32_t)h->order.rails);
    for (unsigned i = 0; i < PLAN_RAILS_MAX; i++)
        if (h->order.rails >> i & 1) {
            health_files_pair(h->files, &h->result.rail[i]);
            keep_values(&h->rail[i], i, &h->result.rail[i]);
        }
}

static void on_pair_done(void *ctx, unsigned rail, const struct rail_result *r)
{
    struct health *h = ctx;
    struct rail *x = &h->rail[rail];
    x->done = true;
    x->outcome = r->outcome;
    snprintf(x->reason, sizeof x->reason, "%s", r->reason);
    h->result.rail[rail] = *r;
    if (!all_done(h))
        return;
    keep_all_values(h);
    if (h->on)
        membership_probed(h->n->membership);
}

static void begin_rail(struct health *h, unsigned rail, const char *id)
{
    struct el_err e = {0};
    struct rail_result failed = {.outcome = RAIL_BROKEN};
    if (h->rail[rail].runs)
        return;
    h->rail[rail].runs = true;
    if (!h->pair)
        h->pair = probe_new(h, h->order.backend == HEALTH_NCCL, &e);
    if (h->pair && probe_node_pair(h->pair, rail, id, h->peer, &e) == 0)
        return;
    snprintf(failed.reason, sizeof failed.reason, "%.190s", e.text);
    on_pair_done(h, rail, &failed);
}

/* "0=ID 3=ID": those that are there. */
static void begin_guests(struct health *h, const char *ids)
{
    for (const char *p = ids; *p;) {
        char *end, id[WIRE_ID_MAX + 1];
        unsigned long rail = strtoul(p, &end, 10);
        size_t n = *end == '=' ? strcspn(end + 1, " ") : sizeof id;
        if (rail >= PLAN_RAILS_MAX || n >= sizeof id)
            return; /* not from a coordinator of ours */
        snprintf(id, sizeof id, "%.*s", (int)n, end + 1);
        if (h->order.rails >> rail & 1)
            begin_rail(h, (unsigned)rail, id);
        p = end + 1 + n;
        p += *p == ' ';
    }
}

/* Rails on which the other end is over, and not well: what still runs here has nobody to meet, and what has not begun
 * never will. */
static void health_give_way(struct health *h, uint32_t rails)
{
    const struct rail_result failed = {.outcome = RAIL_FAILED};
    for (unsigned i = 0; i < PLAN_RAILS_MAX; i++)
        if (h->order.rails & rails & 1u << i && !h->rail[i].runs) {
            h->rail[i].runs = true;
            on_pair_done(h, i, &failed);
        }
    if (h->pair)
        probe_node_part(h->pair, rails);
}

/* --- orders --- */

static void forget_rails(struct health *h)
{
    probe_node_free(h->pair);
    h->pair = NULL;
    pair_result_init(&h->result);
    for (unsigned i = 0; i < PLAN_RAILS_MAX; i++) {
        el_buf_free(&h->rail[i].lines);
        h->rail[i] = (struct rail){.lines = EL_BUF_INIT(NULL, MSG_LINES_MAX)};
    }
}

static void health_take_order(struct health *h, const struct msg_probe *o)
{
    h->order = *o;
    h->on = true;
    snprintf(h->peer, sizeof h->peer, "%s", o->peer);
    snprintf(h->addr, sizeof h->addr, "%s", o->local);
    forget_rails(h);
}

void health_order(struct health *h, const struct msg_probe *o)
{
    bool news = !h->on;
    if (news)
        health_take_order(h, o);
    switch (o->kind) {
    case HEALTH_CHECK_LOCAL:
    case HEALTH_CHECK_AFTER:
        if (news && !health_look(h, o->kind == HEALTH_CHECK_AFTER))
            membership_probed(h->n->membership);
        break;
    case HEALTH_CHECK_PAIR:
        if (o->parted)
            health_give_way(h, (uint32_t)o->parted);
        for (unsigned i = 0; i < PLAN_RAILS_MAX && !o->guest; i++)
            if (o->rails >> i & 1)
                begin_rail(h, i, NULL);
        if (o->guest)
            begin_guests(h, o->ids);
        break;
    default: break;
    }
}

/* What has been seen in the first look is compared in the last one: it stays, unless that look was broken off. */
void health_stop(struct health *h)
{
    h->on = false;
    forget_rails(h);
    if (!h->looks)
        return;
    (void)health_files_wait(h->files, NULL, NULL);
    probe_node_free(h->look);
    h->look = NULL;
    h->looks = false;
}

/* --- answers --- */

static struct msg_probe_result result_of(const struct health *h)
{
    const struct msg_probe *o = &h->order;
    return (struct msg_probe_result){
        .number = o->number, .coord = o->coord, .probe = o->probe, .stage = o->stage, .rail = -1, .gpus = h->gpus};
}

static void send_result(struct health *h, const struct msg_probe_result *r)
{
    membership_logs(h->n->membership, &(struct msg){.type = MSG_PROBE_RESULT, .u.probe_result = *r});
}

/* Whole lines, as many as fit a message. */
static size_t page_of(const char *lines, size_t n)
{
    if (n <= MSG_LINES_MAX)
        return n;
    for (n = MSG_LINES_MAX; n && lines[n - 1] != '\n';)
        n--;
    return n;
}

static void tell_look(struct health *h)
{
    struct msg_probe_result r = result_of(h);
    const char *lines = el_buf_cstr(&h->found);
    size_t left = h->found.len;
    r.outcome = h->outcome;
    r.text = h->reason;
    do {
        size_t n = page_of(lines, left);
        h->page.len = 0;
        (void)el_buf_put(&h->page, lines, n);
        r.lines = el_buf_cstr(&h->page);
        lines += n;
        left = n ? left - n : 0;
        r.more = left > 0;
        send_result(h, &r);
        r.page++;
    } while (left);
}

static void tell_rails(struct health *h)
{
    static const enum health_check_outcome outcomes[] = {[RAIL_BROKEN] = HEALTH_CHECK_BROKEN,
                                                         [RAIL_OK] = HEALTH_CHECK_OK,
                                                         [RAIL_FAILED] = HEALTH_CHECK_FAILED,
                                                         [RAIL_NO_REPORT] = HEALTH_CHECK_BROKEN};
    struct msg_probe_result r = result_of(h);
    uint64_t left = h->order.rails;
    for (unsigned i = 0; i < PLAN_RAILS_MAX; i++) {
        struct rail *x = &h->rail[i];
        if (!(h->order.rails >> i & 1))
            continue;
        left &= ~((uint64_t)1 << i);
        r.rail = i;
        r.outcome = outcomes[x->outcome];
        r.text = x->reason;
        r.lines = el_buf_cstr(&x->lines);
        r.more = left != 0;
        send_result(h, &r);
        r.page++;
    }
}

void health_tell(struct health *h, bool ids)
{
    const struct msg_probe *o = &h->order;
    for (unsigned i = 0; ids && i < PLAN_RAILS_MAX; i++) {
        struct msg m = {.type = MSG_PROBE_ID};
        m.u.probe_id = (struct msg_probe_id){o->number, o->coord, o->probe, o->stage, i, h->rail[i].id};
        if (h->rail[i].id[0])
            membership_logs(h->n->membership, &m);
    }
    if (ids)
        return;
    if (o->kind == HEALTH_CHECK_PAIR)
        tell_rails(h);
    else
        tell_look(h);
}

/* --- verdict --- */

static void health_put_member(struct el_buf *out, const char *name, const char *value)
{
    el_buf_printf(out, "%s\"%s\":", out->len ? "," : "{", name);
    text_json(out, value, strlen(value));
}

/* On stdout of `elrun probe`, where the whole report is printed elsewhere.  A connection that was lost may bring the
 * same verdict again. */
static void print_verdict(struct health *h, const struct msg_probe_verdict *v, const char *state)
{
    const struct run_conf *c = h->n->conf;
    const char *name = *v->name ? v->name : h->n->host;
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    bool again = h->printed_coord == v->coord && h->printed_probe == v->probe;
    h->printed_coord = v->coord;
    h->printed_probe = v->probe;
    if (!c->probe_only || v->reader || again)
        return;
    if (c->probe_json) {
        health_put_member(&out, "node", name);
        health_put_member(&out, "state", state);
        health_put_member(&out, "text", v->text);
        health_put_member(&out, "summary", v->job);
        el_buf_puts(&out, "}\n");
    } else {
        el_buf_printf(&out, "%s is %s%s%s\nall nodes: %s\n", name, state, *v->text ? ": " : "", v->text, v->job);
    }
    (void)sink_put(console_sink(h->n->console, 1), 1, el_buf_cstr(&out), out.len);
    el_buf_free(&out);
}

void health_verdict(struct health *h, const struct msg_probe_verdict *v)
{
    enum health_verdict verdict = (enum health_verdict)v->verdict;
    const char *name = verdict < HEALTH_VERDICTS ? health_verdict_name(verdict) : "undecided";
    el_log(verdict == HEALTH_GOOD ? EL_INFO : EL_WARN, "health check: this node is %s%s%s; %s", name,
           *v->text ? ": " : "", v->text, v->job);
    print_verdict(h, v, name);
    if (verdict == HEALTH_BAD || v->excluded)
        emit_unfit(h->n, v->text);
    health_files_verdict(h->files,
                         verdict == HEALTH_BAD || v->excluded ? HEALTH_FILES_BAD
                         : verdict == HEALTH_GOOD             ? HEALTH_FILES_GOOD
                                                              : HEALTH_FILES_UNDECIDED,
                         v->text);
}

void health_page(struct health *h, const struct msg_probe_page *page)
{
    const struct run_conf *c = h->n->conf;
    size_t n = strlen(page->text);
    if (c->probe_only && (page->kind == 1) == c->probe_json)
        (void)sink_put(console_sink(h->n->console, 1), 1, page->text, n);
    else if (!c->probe_only && page->kind == 0)
        console_write(h->n->console, page->text, n);
}

/* --- beginning and end --- */

static void look_around(struct health *h)
{
    struct host_facts *f = calloc(1, sizeof *f);
    h->quota_millis = UINT64_MAX;
    if (!f)
        return;
    host_facts_read(f, h->n->env);
    if (h->n->conf->probe_backend != HEALTH_TCP)
        h->gpus = f->visible_set ? f->visible.n : f->gpus.n;
    if (h->gpus > PLAN_RAILS_MAX)
        el_log(EL_WARN, "health check: this node has %u GPUs: all are looked at, pairs are tried with the first %d",
               h->gpus, PLAN_RAILS_MAX);
    if (f->cpu_quota_millis < HOST_UNKNOWN)
        h->quota_millis = f->cpu_quota_millis;
    if (f->python == 0)
        snprintf(h->site, sizeof h->site, "%s", f->py.site);
    free(f);
}

struct health *health_new(struct node *n, struct el_err *e)
{
    struct health *h = calloc(1, sizeof *h);
    if (!h) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    h->n = n;
    h->found = h->page = EL_BUF_INIT(NULL, 0);
    forget_rails(h);
    check_conf_init(&h->checks);
    const struct run_conf *c = n->conf;
    const struct health_local *own = c->probe_local;
    struct health_files_conf files = {.state_dir = own ? own->state_dir : c->probe_state_dir,
                                      .baseline = own ? own->baseline : c->probe_baseline,
                                      .save_baseline = own ? own->save_baseline : NULL,
                                      .baseline_option = own ? "baseline" : "probe-baseline"};
    bool any = c->health_check != HEALTH_OFF && (files.state_dir || files.baseline || files.save_baseline);
    if ((c->probe_checks && checks_parse(&h->checks, c->probe_checks, e) < 0) ||
        (c->probe_limits && limits_read(&h->checks, c->probe_limits, e) < 0) ||
        (any && !(h->files = health_files_new(&files, n->loop, n->pool, e)))) {
        free(h);
        return NULL;
    }
    if (c->health_check != HEALTH_OFF)
        look_around(h);
    return h;
}

void health_free(struct health *h)
{
    if (!h)
        return;
    forget_rails(h);
    probe_node_free(h->look);
    health_files_free(h->files);
    el_buf_free(&h->found);
    el_buf_free(&h->page);
    free(h);
}

void health_settle(struct health *h, el_usec deadline, void (*fn)(void *ctx), void *ctx)
{
    health_files_settle(h->files, deadline, fn, ctx);
}

bool health_child(struct health *h, pid_t pid, const struct reap_end *end)
{
    return h && (probe_node_child(h->look, pid, end) || probe_node_child(h->pair, pid, end));
}
