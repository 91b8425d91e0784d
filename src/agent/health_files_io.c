#include "agent/health_files.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probe/baseline.h"
#include "probe/history.h"
#include "probe/verdict.h"
#include "util/log.h"
#include "util/mem.h"

enum { UNWRITTEN_MAX = 8 };  /* verdicts that wait for the disk; of more the newest are lost, which is told */
#define PAST_LIMIT EL_SEC(3) /* so long a check waits for the folder of past verdicts, then it goes on without */

/* One visit to the disk, in a thread of the pool.  Nothing here is touched by the loop meanwhile. */
struct writing {
    struct pool_job job;
    bool runs, open; /* open: the first visit, which reads what was before */
    struct history history;
    struct history_entry entry[UNWRITTEN_MAX];
    unsigned entries;
    bool save;
    struct baseline measured;
    struct el_err open_error, remember_error, save_error;
    char note[HISTORY_NOTE_MAX];
};

struct health_files {
    struct health_files_conf conf;
    struct pool *pool;
    char host[HISTORY_NODE_MAX + 1];
    bool refused, good; /* refused: the folder cannot be used */
    char note[HISTORY_NOTE_MAX];
    struct baseline baseline, measured;
    struct history_entry entry[UNWRITTEN_MAX];
    unsigned entries;
    bool save; /* the baseline is to be written */
    struct writing writing;
    void (*settled)(void *ctx); /* NULL: nobody waits */
    void *settled_ctx;
    struct loop_timer *late;
    void (*read)(void *ctx); /* waits for the first visit; NULL: nobody */
    void *read_ctx;
    struct loop_timer *unread;
    bool waited; /* long enough */
};

static uint64_t now_s(void)
{
    return (uint64_t)time(NULL);
}

static void make_note(const struct history *h, const char *host, char text[HISTORY_NOTE_MAX])
{
    struct el_buf out = EL_BUF_INIT(NULL, HISTORY_NOTE_MAX - 1);
    bool any = history_text(h, host, now_s(), &out) > 0;
    snprintf(text, HISTORY_NOTE_MAX, "%s", any ? el_buf_cstr(&out) : "");
    el_buf_free(&out);
}

static void health_files_on_late(void *ctx);
static void on_unread(void *ctx);
static void health_files_begin(struct health_files *f);

struct health_files *health_files_new(const struct health_files_conf *conf, struct loop *loop, struct pool *pool,
                                      struct el_err *e)
{
    struct health_files *f = el_alloc(NULL, sizeof *f);
    if (!f || !(f->late = loop_timer_new(loop, health_files_on_late, f)) ||
        !(f->unread = loop_timer_new(loop, on_unread, f))) {
        health_files_free(f);
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    f->conf = *conf;
    f->pool = pool;
    gethostname(f->host, sizeof f->host - 1);
    if (conf->baseline && baseline_read(&f->baseline, conf->baseline, e)) {
        health_files_free(f);
        return NULL;
    }
    f->writing.open = conf->state_dir != NULL;
    loop_timer_at(f->unread, loop_now(loop) + PAST_LIMIT);
    health_files_begin(f);
    return f;
}

/* Of several GPUs the worst: each must reach it. */
static void measure(struct health_files *f, const struct found *found)
{
    f->measured.facts = found->facts;
    for (unsigned m = METRIC_PAIR_COUNT; m < METRIC_COUNT; m++)
        f->measured.milli[m] = 0;
    for (unsigned i = 0; i < found->metrics; i++) {
        const struct found_metric *x = &found->metric[i];
        uint32_t *to = &f->measured.milli[x->metric];
        if (!*to || metric_worse(x->metric, x->milli, *to))
            *to = x->milli;
    }
}

int health_files_look(struct health_files *f, const struct found *found, struct el_buf *lines, struct el_err *e)
{
    struct probe_wire w;
    if (!f)
        return 0;
    measure(f, found);
    if (*f->note) {
        history_line(f->note, &w);
        (void)wire_encode(&w, lines);
    }
    if (!f->conf.baseline)
        return 0;
    if (baseline_fits(&f->baseline, &found->facts, e))
        return el_prefix(e, "--%s=%.200s", f->conf.baseline_option, f->conf.baseline);
    (void)baseline_lines(&f->baseline, lines);
    return 0;
}

/* Of several pairs the best: a slow partner is not this node's fault. */
void health_files_pair(struct health_files *f, const struct rail_result *r)
{
    for (unsigned m = 0; f && r->outcome == RAIL_OK && m < METRIC_PAIR_COUNT; m++) {
        uint32_t *to = &f->measured.milli[m];
        if (r->value[m] && (!*to || metric_worse((enum metric)m, *to, r->value[m])))
            *to = r->value[m];
    }
}

/* A plan of one node: no pairs, but the baseline. */
bool health_files_slow(const struct health_files *f, const struct found *found, const struct plan_conf *conf, char *why,
                       size_t room)
{
    struct plan *p = f && f->conf.baseline ? plan_new(1, conf, NULL) : NULL;
    const struct plan_pair *none;
    struct node_verdict v;
    if (!p)
        return false;
    plan_local(p, 0, true, NULL);
    for (unsigned i = 0; i < found->metrics; i++)
        if (found->metric[i].metric >= METRIC_PAIR_COUNT && found->metric[i].rail < conf->rails)
            plan_metric(p, 0, found->metric[i].rail, found->metric[i].metric, found->metric[i].milli);
    for (unsigned m = 0; m < METRIC_COUNT; m++)
        if (f->baseline.milli[m])
            plan_reference(p, (enum metric)m, f->baseline.milli[m]);
    (void)plan_round(p, &none);
    verdict_node(p, 0, &v);
    plan_free(p);
    snprintf(why, room, "%s", v.text);
    return v.state == NODE_SLOW;
}

/* --- writing --- */

static void health_files_work(void *ctx)
{
    struct health_files *f = ctx;
    struct writing *w = &f->writing;
    w->open_error = w->remember_error = w->save_error = (struct el_err){0};
    if (w->open && history_open(f->conf.state_dir, &w->history, &w->open_error) == 0)
        w->open_error.status = 0;
    if (w->entries && history_append(f->conf.state_dir, &w->history, w->entry, w->entries, &w->remember_error) == 0)
        w->remember_error.status = 0;
    if (w->save && baseline_write(&w->measured, f->conf.save_baseline, &w->save_error) == 0)
        w->save_error.status = 0;
    make_note(&w->history, f->host, w->note);
}

static void tell_settled(struct health_files *f)
{
    void (*fn)(void *ctx) = f->settled;
    f->settled = NULL;
    loop_timer_at(f->late, EL_NEVER);
    if (fn)
        fn(f->settled_ctx);
}

static void tell_read(struct health_files *f)
{
    void (*fn)(void *ctx) = f->read;
    f->read = NULL;
    loop_timer_at(f->unread, EL_NEVER);
    if (fn)
        fn(f->read_ctx);
}

static void take_open(struct health_files *f)
{
    struct writing *w = &f->writing;
    char strange[512];
    w->open = false;
    f->refused = w->open_error.status != 0;
    if (f->refused) {
        el_log(EL_WARN, "%s; verdicts are not remembered", w->open_error.text);
        f->entries = 0;
    } else if (history_strange(&w->history, f->conf.state_dir, strange, sizeof strange)) {
        el_log(EL_WARN, "%s", strange);
    }
}

static void health_files_done(void *ctx)
{
    struct health_files *f = ctx;
    struct writing *w = &f->writing;
    bool first = w->open;
    w->runs = false;
    if (first)
        take_open(f);
    if (w->remember_error.status)
        el_log(EL_WARN, "%s; this verdict is not remembered", w->remember_error.text);
    if (w->save_error.status)
        el_log(EL_WARN, "%s", w->save_error.text);
    snprintf(f->note, sizeof f->note, "%s", w->note);
    if (w->entries && *f->note)
        el_log(EL_WARN, "this node %s", f->note);
    health_files_begin(f);
    if (first)
        tell_read(f);
    if (!w->runs)
        tell_settled(f);
}

static void health_files_begin(struct health_files *f)
{
    struct writing *w = &f->writing;
    struct el_err e = {0};
    if (w->runs || (!f->entries && !f->save && !w->open))
        return;
    memcpy(w->entry, f->entry, sizeof w->entry);
    w->entries = f->entries;
    w->save = f->save;
    w->measured = f->measured;
    f->entries = 0;
    f->save = false;
    w->job = (struct pool_job){.work = health_files_work, .done = health_files_done, .ctx = f};
    w->runs = pool_run(f->pool, &w->job, &e) == 0;
    if (!w->runs)
        el_log(EL_WARN, "%s; %s not remembered", e.text, w->open ? "verdicts are" : "this verdict is");
    f->refused |= !w->runs && w->open;
    w->open &= w->runs;
}

void health_files_verdict(struct health_files *f, enum health_files_verdict verdict, const char *reason)
{
    if (!f)
        return;
    bool bad = verdict == HEALTH_FILES_BAD;
    f->good |= verdict == HEALTH_FILES_GOOD;
    bool remembers = f->conf.state_dir && !f->refused;
    if (remembers && verdict != HEALTH_FILES_UNDECIDED && f->entries < UNWRITTEN_MAX)
        f->entry[f->entries++] = history_entry(now_s(), f->host, bad, bad ? reason : "");
    else if (remembers && f->entries == UNWRITTEN_MAX)
        el_log(EL_WARN, "%s does not answer: this verdict is not remembered", f->conf.state_dir);
    f->save = f->conf.save_baseline && verdict == HEALTH_FILES_GOOD;
    health_files_begin(f);
}

static void health_files_on_late(void *ctx)
{
    struct health_files *f = ctx;
    el_log(EL_WARN, "%s does not answer: what was to be written there is lost",
           f->writing.save ? f->conf.save_baseline : f->conf.state_dir);
    tell_settled(f);
}

static void on_unread(void *ctx)
{
    struct health_files *f = ctx;
    if (!f->writing.open)
        return;
    f->waited = true;
    el_log(EL_WARN, "%s does not answer: past verdicts are not known", f->conf.state_dir);
    tell_read(f);
}

bool health_files_wait(struct health_files *f, void (*fn)(void *ctx), void *ctx)
{
    if (!f || !f->writing.open || f->waited)
        return false;
    f->read = fn;
    f->read_ctx = ctx;
    return true;
}

void health_files_settle(struct health_files *f, el_usec deadline, void (*fn)(void *ctx), void *ctx)
{
    if (f && f->conf.save_baseline && !f->good)
        el_log(EL_WARN, "%s is not written: this node is not known to be healthy", f->conf.save_baseline);
    if (!f || !f->writing.runs) {
        fn(ctx);
        return;
    }
    f->settled = fn;
    f->settled_ctx = ctx;
    loop_timer_at(f->late, deadline);
}

void health_files_free(struct health_files *f)
{
    if (!f)
        return;
    loop_timer_free(f->late);
    loop_timer_free(f->unread);
    el_free(NULL, f);
}
