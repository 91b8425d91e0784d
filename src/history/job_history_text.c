#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "history/goodput.h"
#include "failure/dlrover.h"
#include "util/text.h"
#include "history/job_history.h"

/* --- for a person --- */

static size_t nodes_told(const struct job_history *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->line.nodes; i++)
        n += c->line.node[i].n > 0;
    return n;
}

static const char *outcome(const struct job_history *c)
{
    if (job_history_failed(c))
        return "failed";
    if (c->status == 0)
        return "succeeded";
    return c->from_tree ? "no failure was found" : "its end is not recorded";
}

static void put_headline(const struct job_history *c, const struct summary_style *style, struct el_buf *out)
{
    char time[24];
    int64_t from, to;
    size_t nodes = nodes_told(c);
    const char *what = c->script[0] ? c->script : c->run_id[0] ? c->run_id : "job";
    el_buf_puts(out, style->title);
    text_clean(out, what, strlen(what));
    el_buf_printf(out, "%s: %s", style->off, outcome(c));
    if (c->status > 0)
        el_buf_printf(out, " with status %d", c->status);
    if (timeline_span(&c->line, &from, &to))
        el_buf_printf(out, " after %s", goodput_duration((el_usec)(to - from), time, sizeof time));
    el_buf_printf(out, "; %llu round%s on %zu node%s", (unsigned long long)c->rounds, c->rounds == 1 ? "" : "s", nodes,
                  nodes == 1 ? "" : "s");
    if (c->restarts_max)
        el_buf_printf(out, ", %u of %u restarts", c->restarts, c->restarts_max);
    else if (c->restarts)
        el_buf_printf(out, ", %u restart%s", c->restarts, c->restarts == 1 ? "" : "s");
    if (c->run_id[0] && what != c->run_id)
        el_buf_printf(out, "; %srun %s%s", style->dim, c->run_id, style->off);
    el_buf_puts(out, "\n");
}

static void put_part(struct el_buf *out, const char *word, double part, double total, bool *said)
{
    char share[16];
    if (part <= 0 || total <= 0)
        return;
    el_buf_printf(out, "%s %s %s", *said ? "," : "", goodput_share((el_usec)part, (el_usec)total, share, sizeof share),
                  word);
    *said = true;
}

static void put_account(const struct job_history *c, struct el_buf *out)
{
    const struct job_history_account *a = &c->account;
    char d[24];
    bool said = false;
    if (!a->nodes)
        return;
    if (a->nodes == 1) {
        el_buf_printf(out, "time: %s\n", a->text);
        return;
    }
    el_buf_printf(out, "time of %u nodes:", a->nodes);
    put_part(out, "running", a->running, a->total, &said);
    put_part(out, "forming rounds", a->forming, a->total, &said);
    put_part(out, "starting", a->starting, a->total, &said);
    put_part(out, "stopping", a->stopping, a->total, &said);
    put_part(out, "waiting to start again", a->waiting, a->total, &said);
    if (a->steps) { /* told by the node that has the rank that prints them */
        el_usec each = (el_usec)(a->total / a->nodes);
        el_buf_printf(out, "; effective %s: %.0f new steps", goodput_share((el_usec)a->effective, each, d, sizeof d),
                      a->steps_new);
        el_buf_printf(out, " of %s", goodput_duration((el_usec)a->step, d, sizeof d));
        if (a->steps_again > 0)
            el_buf_printf(out, ", %.0f made again (%s)", a->steps_again,
                          goodput_duration((el_usec)a->repeated, d, sizeof d));
    }
    el_buf_puts(out, "\n");
}

static void put_remarks(const struct job_history *c, const struct summary_style *style, struct el_buf *out)
{
    struct text rest = {c->remarks.v, c->remarks.len}, line;
    while (text_line(&rest, &line)) {
        el_buf_printf(out, "%snote: ", style->dim);
        text_clean(out, line.p, line.n);
        el_buf_printf(out, "%s\n", style->off);
    }
}

static void job_history_text_put_end(const struct job_history *c, struct el_buf *out)
{
    if (job_history_failed(c) && c->end_text[0])
        el_buf_printf(out, "elrun: %s\n", c->end_text);
    else if (c->status == 0 && c->restarts)
        el_buf_printf(out, "elrun: succeeded after %u restart%s\n", c->restarts, c->restarts == 1 ? "" : "s");
    else if (c->status == 0)
        el_buf_puts(out, "elrun: succeeded\n");
    else if (c->status < 0 && !c->from_tree)
        el_buf_printf(out, "elrun: the job runs on, or %u agent%s ended without a word: %s no last event\n",
                      c->agents_open, c->agents_open == 1 ? "" : "s", c->agents_open == 1 ? "it left" : "they left");
}

void job_history_text(const struct job_history *c, const struct job_history_look *look, struct el_buf *out)
{
    struct failure_report r;
    put_headline(c, look->style, out);
    el_buf_puts(out, "\n");
    timeline_draw(&c->line, &look->line, out);
    el_buf_puts(out, "\n");
    put_account(c, out);
    put_remarks(c, look->style, out);
    const struct failure **all = job_history_failed(c) ? job_history_report(c, &r) : NULL;
    if (all && c->agents > 1 && c->end_text[0]) /* of one node the last line says the same */
        el_buf_printf(out, "ended: %s\n", c->end_text);
    if (all)
        summary_write(&r, out, look->style, look->text_columns);
    else
        job_history_text_put_end(c, out);
    el_free(c->mem, all);
}

/* --- for programs --- */

static void job_history_text_put_string(struct el_buf *out, const char *key, const char *value)
{
    el_buf_printf(out, ",\"%s\":", key);
    if (value && *value)
        text_json(out, value, strlen(value));
    else
        el_buf_puts(out, "null");
}

static void put_json_account(const struct job_history_account *a, struct el_buf *out)
{
    el_buf_printf(out,
                  ",\"time\":{\"nodes\":%u,\"total_usec\":%.0f,\"forming_usec\":%.0f,\"starting_usec\":%.0f,"
                  "\"running_usec\":%.0f,\"stopping_usec\":%.0f,\"waiting_usec\":%.0f",
                  a->nodes, a->total, a->forming, a->starting, a->running, a->stopping, a->waiting);
    if (a->total > 0)
        el_buf_printf(out, ",\"running_share\":%.4f", a->running / a->total);
    if (a->steps && a->total > 0)
        el_buf_printf(out,
                      ",\"steps_new\":%.0f,\"steps_again\":%.0f,\"step_usec\":%.0f,\"effective_usec\":%.0f,"
                      "\"repeated_usec\":%.0f,\"effective_share\":%.4f",
                      a->steps_new, a->steps_again, a->step, a->effective, a->repeated,
                      a->effective * a->nodes / a->total);
    el_buf_puts(out, "}");
}

static void put_json_remarks(const struct job_history *c, struct el_buf *out)
{
    struct text rest = {c->remarks.v, c->remarks.len}, line;
    unsigned n = 0;
    el_buf_puts(out, ",\"notes\":[");
    while (text_line(&rest, &line)) {
        el_buf_puts(out, n++ ? "," : "");
        text_json(out, line.p, line.n);
    }
    el_buf_puts(out, "]");
}

int job_history_json(const struct job_history *c, struct el_buf *out)
{
    const size_t start = out->len;
    struct failure_report r;
    const struct failure **all = job_history_failed(c) ? job_history_report(c, &r) : NULL;
    el_buf_puts(out, "{\"run_id\":");
    text_json(out, c->run_id, strlen(c->run_id));
    job_history_text_put_string(out, "script", c->script);
    job_history_text_put_string(out, "log_dir", c->log_dir);
    el_buf_printf(out, ",\"failed\":%s", job_history_failed(c) ? "true" : "false");
    if (c->status >= 0)
        el_buf_printf(out, ",\"status\":%d", c->status);
    else
        el_buf_puts(out, ",\"status\":null");
    job_history_text_put_string(out, "end", c->end_text);
    el_buf_printf(out, ",\"restarts\":%u,\"restarts_max\":%u,\"rounds\":%llu", c->restarts, c->restarts_max,
                  (unsigned long long)c->rounds);
    if (c->account.nodes)
        put_json_account(&c->account, out);
    el_buf_puts(out, ",");
    timeline_json(&c->line, out);
    el_buf_puts(out, ",\"summary\":");
    if (!all || summary_json(&r, out))
        el_buf_puts(out, "null");
    el_buf_puts(out, ",\"failures\":[");
    for (size_t i = 0; i < c->faults; i++) {
        el_buf_puts(out, i ? "," : "");
        record_write(&c->fault[i].record->failure, RECORD_BYTES_MAX, out);
    }
    el_buf_printf(out, "],\"failures_left_out\":%zu", c->faults_left_out);
    put_json_remarks(c, out);
    el_buf_puts(out, "}\n");
    el_free(c->mem, all);
    if (out->full)
        out->len = start;
    return out->full ? -1 : 0;
}

/* --- for tools that watch for DLRover's line --- */

/* Node and round of the i-th failure have been told with an earlier one. */
static bool told_before(const struct job_history *c, size_t i)
{
    const struct job_history_fault *x = &c->fault[i];
    for (size_t k = 0; k < i; k++)
        if (c->fault[k].node == x->node && c->fault[k].record->failure.round == x->record->failure.round &&
            c->fault[k].record->failure.by != FAILURE_BY_ELRUN)
            return true;
    return false;
}

void job_history_dlrover(const struct job_history *c, struct el_buf *out)
{
    const struct failure **all = el_alloc(c->mem, (c->faults + 1) * sizeof *all);
    for (size_t i = 0; all && i < c->faults; i++) {
        const struct failure *f = &c->fault[i].record->failure;
        unsigned n = 0;
        if (f->by == FAILURE_BY_ELRUN || told_before(c, i))
            continue;
        for (size_t k = i; k < c->faults; k++)
            if (c->fault[k].node == c->fault[i].node && c->fault[k].record->failure.round == f->round)
                all[n++] = &c->fault[k].record->failure;
        dlrover_line(c->run_id, f->host, f->restart, all, n, out);
        el_buf_puts(out, "\n");
    }
    el_free(c->mem, all);
}
