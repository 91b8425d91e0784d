#include "agent/health_files.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probe/baseline.h"
#include "probe/history.h"
#include "util/log.h"
#include "util/mem.h"

struct health_files {
    const struct health_local *conf;
    char host[HISTORY_NODE_MAX + 1];
    bool remembers, judged;
    enum health_files_verdict verdict;
    char reason[HISTORY_REASON_MAX + 1];
    struct baseline baseline, measured;
    struct history history;
};

static uint64_t now_s(void)
{
    return (uint64_t)time(NULL);
}

static const char *note(const struct health_files *f, char text[HISTORY_NOTE_MAX])
{
    struct el_buf out = EL_BUF_INIT(NULL, HISTORY_NOTE_MAX - 1);
    bool any = history_text(&f->history, f->host, now_s(), &out) > 0;
    snprintf(text, HISTORY_NOTE_MAX, "%s", any ? el_buf_cstr(&out) : "");
    el_buf_free(&out);
    return text;
}

struct health_files *health_files_new(const struct health_local *conf, struct el_err *e)
{
    struct health_files *f = el_alloc(NULL, sizeof *f);
    struct el_err why = {0};
    if (!f) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    f->conf = conf;
    gethostname(f->host, sizeof f->host - 1);
    if (conf->baseline && baseline_read(&f->baseline, conf->baseline, e)) {
        el_free(NULL, f);
        return NULL;
    }
    f->remembers = conf->state_dir && history_open(conf->state_dir, &f->history, &why) == 0;
    if (conf->state_dir && !f->remembers)
        el_log(EL_WARN, "%s; verdicts are not remembered", why.text);
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
    char text[HISTORY_NOTE_MAX];
    struct wire w;
    if (!f)
        return 0;
    measure(f, found);
    if (*note(f, text)) {
        history_line(text, &w);
        (void)wire_encode(&w, lines);
    }
    if (!f->conf->baseline)
        return 0;
    if (baseline_fits(&f->baseline, &found->facts, e))
        return el_prefix(e, "--baseline=%.200s", f->conf->baseline);
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

void health_files_verdict(struct health_files *f, enum health_files_verdict verdict, const char *reason)
{
    if (!f)
        return;
    f->judged = true;
    f->verdict = verdict;
    snprintf(f->reason, sizeof f->reason, "%s", reason);
}

static void remember(struct health_files *f)
{
    char text[HISTORY_NOTE_MAX];
    struct el_err e = {0};
    if (!f->remembers)
        return;
    if (f->judged && f->verdict != HEALTH_FILES_UNDECIDED) {
        bool bad = f->verdict == HEALTH_FILES_BAD;
        struct history_entry h = history_entry(now_s(), f->host, bad, bad ? f->reason : "");
        if (history_append(f->conf->state_dir, &f->history, &h, 1, &e))
            el_log(EL_WARN, "%s; this verdict is not remembered", e.text);
    }
    if (*note(f, text))
        el_log(EL_WARN, "this node %s", text);
}

static void save(const struct health_files *f)
{
    struct el_err e = {0};
    const char *path = f->conf->save_baseline;
    if (!path)
        return;
    if (!f->judged || f->verdict != HEALTH_FILES_GOOD)
        el_log(EL_WARN, "%s is not written: this node is not known to be healthy", path);
    else if (baseline_write(&f->measured, path, &e))
        el_log(EL_WARN, "%s", e.text);
}

void health_files_close(struct health_files *f)
{
    if (!f)
        return;
    remember(f);
    save(f);
    el_free(NULL, f);
}
