/* The report as text: the cause in one line, its evidence, who else ended, what becomes of the job.  Each fact once. */
#include <stdio.h>
#include <string.h>

#include "failure/absent.h"
#include "failure/traceback_trim.h"
#include "failure/hang_report.h"
#include "failure/summary.h"
#include "failure/summary_private.h"
#include "sys/signame.h"
#include "util/ranges.h"
#include "util/wrap.h"

enum {
    CAUSE_LINES_MAX = 5, /* of a terminal, for the cause */
    INDENT = 2,
    DEEP = 4, /* what was said by the worker itself */
};

const struct summary_style summary_plain = {"", "", "", ""};
const struct summary_style summary_colour = {"\033[1m", "\033[1;31m", "\033[2m", "\033[0m"};

struct page {
    const struct failure_report *r;
    const struct summary_style *style;
    unsigned columns;
    struct el_buf *out;
    struct el_buf line; /* that is being made */
};

static struct text summary_text_text_of(const char *s)
{
    return (struct text){s, s ? strlen(s) : 0};
}

/* Ends the line that was made. */
static void summary_text_put(struct page *p, unsigned indent)
{
    el_wrap(p->out, p->line.len ? p->line.v : "", p->line.len, p->columns, indent, indent + INDENT);
    el_buf_puts(p->out, "\n");
    p->out->full |= p->line.full;
    p->line.len = 0;
}

/* --- what the worker said --- */

/* Of a frame the name of the file and the line matter, not the way to it. */
static void put_cut(struct page *p, struct text line, unsigned columns)
{
    const char *file = text_find(line, "File \"");
    size_t head = file ? (size_t)(file - line.p) + strlen("File \"") : 0;
    if (!columns || !file || head + 8 > columns || el_columns(line.p, line.n) <= columns) {
        el_cut(p->out, line.n ? line.p : "", line.n, columns);
        return;
    }
    el_buf_put(p->out, line.p, head);
    el_cut_front(p->out, line.p + head, line.n - head, columns - (unsigned)head);
}

static void put_lines(struct page *p, struct text t, unsigned indent)
{
    struct text rest = t, line;
    unsigned lines = 0, i = 0;
    while (text_line(&rest, &line))
        lines++;
    const unsigned first = SUMMARY_STACK_LINES_MAX / 4, last = SUMMARY_STACK_LINES_MAX - first;
    for (rest = t; text_line(&rest, &line); i++) {
        bool out_of = lines > SUMMARY_STACK_LINES_MAX && i >= first && i < lines - last;
        if (out_of && i == first)
            el_buf_printf(p->out, "%*s[… %u lines …]\n", (int)indent, "", lines - last - first);
        if (out_of)
            continue;
        p->line.len = 0;
        summary_line(&p->line, line);
        el_buf_printf(p->out, "%*s", (int)indent, "");
        put_cut(p, (struct text){p->line.v, p->line.len}, p->columns > indent ? p->columns - indent : 0);
        el_buf_puts(p->out, "\n");
        p->line.len = 0;
    }
}

/* The lines of a text that the cause's line does not have. */
static void put_news(struct page *p, const struct failure *f, struct text t)
{
    struct el_buf news = EL_BUF_INIT(p->out->mem, 0);
    const struct text first = summary_first(f);
    size_t end = 0; /* of what is not blank */
    bool marks = f->found.kind == TRACEBACK_SYNTAX || f->found.kind == TRACEBACK_NONE;
    for (struct text line; text_line(&t, &line);) {
        line = summary_without_rank(line);
        if (summary_says_nothing_new(f, line, marks) || (!line.n && !news.len))
            continue;
        if (first.n && line.n == first.n && memcmp(line.p, first.p, line.n) == 0)
            el_buf_puts(&news, "first: ");
        el_buf_put(&news, line.n ? line.p : "", line.n);
        el_buf_puts(&news, "\n");
        end = line.n ? news.len : end;
    }
    put_lines(p, (struct text){news.v, end}, DEEP);
    p->out->full |= news.full;
    el_buf_free(&news);
}

/* Short enough for one screen; the whole one is in the log. */
static void put_stack(struct page *p, const struct failure *f)
{
    struct el_buf folded = EL_BUF_INIT(p->out->mem, 0);
    p->out->full |= traceback_trim_stack(summary_text_text_of(f->stack), SUMMARY_STACK_LINES_MAX, &folded) != 0;
    put_news(p, f, (struct text){folded.v, folded.len});
    el_buf_free(&folded);
}

static void put_tail(struct page *p, const struct failure *f)
{
    const char *why = summary_no_stack(f);
    if (*why) {
        el_buf_puts(&p->line, why);
        summary_text_put(p, INDENT);
    } else if (summary_has_more(f)) {
        bool out = f->tail_from == FAILURE_FROM_STDOUT;
        el_buf_printf(&p->line, "its %s%s%s", out ? "stdout" : "stderr",
                      summary_tells_last(f) ? ", before that line" : " ends with", out ? " (stderr is empty):" : ":");
        summary_text_put(p, INDENT);
        put_news(p, f, summary_text_text_of(f->tail));
    }
}

/* --- the cause --- */

static void put_cause(struct page *p, const struct failure *f)
{
    el_buf_puts(&p->line, "elrun: ");
    if (!f) {
        el_buf_puts(&p->line, "no worker failed by itself: elrun stopped ");
        el_buf_puts(&p->line, p->r->failures_count == 1 ? "rank " : "ranks ");
        p->out->full |= summary_stopped(p->r, &p->line) != 0;
    } else {
        el_buf_printf(&p->line, "rank %u ", f->rank);
        if (p->r->job)
            el_buf_printf(&p->line, "on %s ", f->host);
        el_buf_puts(&p->line, "failed: ");
        summary_brief(f, &p->line);
    }
    size_t most = (size_t)p->columns * CAUSE_LINES_MAX;
    if (p->columns && p->line.len > most) { /* the place in the program comes last, and has to be seen */
        struct el_buf whole = p->line;
        size_t tail = most / 4, from = whole.len - tail;
        while (from < whole.len && ((unsigned char)whole.v[from] & 0xc0) == 0x80)
            from++;
        p->line = EL_BUF_INIT(p->out->mem, 0);
        el_cut(&p->line, whole.v, whole.len, (unsigned)(most - tail));
        el_buf_puts(&p->line, " ");
        el_buf_put(&p->line, whole.v + from, whole.len - from);
        p->out->full |= whole.full;
        el_buf_free(&whole);
    }
    el_buf_puts(p->out, p->style->cause);
    el_wrap(p->out, p->line.len ? p->line.v : "", p->line.len, p->columns, 0, INDENT);
    el_buf_printf(p->out, "%s\n", p->style->off);
    p->out->full |= p->line.full;
    p->line.len = 0;
}

/* Which process it was, and when. */
static void put_who(struct page *p, const struct failure *f)
{
    char time[sizeof f->time_text];
    const char *sep = "";
    if (f->pid > 0 || f->watch != FAILURE_WATCH_UNTOLD) {
        el_buf_printf(&p->line, "pid %d", f->pid);
        sep = ", ";
    }
    if (f->local_rank != f->rank) {
        el_buf_printf(&p->line, "%slocal rank %u", sep, f->local_rank);
        sep = ", ";
    }
    if (!p->r->job && f->host[0]) {
        el_buf_printf(&p->line, "%son %s", *sep ? " " : "", f->host);
        sep = ", ";
    }
    if (f->time_text[0]) {
        memcpy(time, f->time_text, sizeof time);
        char *under = strchr(time, '_');
        if (under)
            *under = ' ';
        el_buf_printf(&p->line, "%s%s", sep, time);
        sep = ", ";
    }
    if (summary_is_raised(f)) {
        summary_how(f, &p->line, sep);
        sep = ", ";
    }
    bool told = f->class == FAILURE_CLASS_HANG || (f->class == FAILURE_CLASS_OUTSIDE && f->by == FAILURE_BY_OUTSIDE) ||
                (f->class == FAILURE_CLASS_OOM_HOST && f->by == FAILURE_BY_OOM); /* by the cause */
    if (f->class != FAILURE_CLASS_UNKNOWN && !told) {
        el_buf_printf(&p->line, "%s%s", sep, failure_class_text(f->class));
        sep = ", ";
    }
    if (*sep)
        summary_text_put(p, INDENT);
    p->line.len = 0;
}

/* Stands its sign in its own line, or in what is shown of its own lines from there on? */
static bool summary_text_is_told(const struct page *p, const struct failure *f, size_t from)
{
    const char *sign = f->sign, *said = f->message ? f->message : f->found.message;
    const struct text page = {p->out->v + from, p->out->len - from};
    const struct text stack = summary_text_text_of(p->r->stderr_shown && !from ? f->stack : NULL);
    return text_find(summary_text_text_of(f->kernel), sign) || text_find(summary_text_text_of(said), sign) ||
           text_find(page, sign) || text_find(stack, sign);
}

static void put_kernel(struct page *p, const struct failure *f, size_t from)
{
    struct text rest = summary_text_text_of(f->kernel), line;
    if (f->sign[0] && !summary_text_is_told(p, f, from)) {
        el_buf_printf(&p->line, "because: %s", f->sign);
        summary_text_put(p, INDENT);
    }
    while (text_line(&rest, &line)) {
        el_buf_puts(&p->line, "kernel log: ");
        summary_line(&p->line, line);
        summary_text_put(p, INDENT);
    }
}

static void put_evidence(struct page *p, const struct failure *f)
{
    const struct report_job *job = p->r->job;
    bool file = f->error_file && f->file_state != ERRFILE_ABSENT;
    if (!p->r->stderr_shown && f->stack)
        put_stack(p, f);
    else if (!f->stack && !(f->message && f->end != FAILURE_SIGNAL && f->watch != FAILURE_WATCH_UNTOLD) &&
             !(p->r->stderr_shown && f->tail))
        put_tail(p, f);
    if (f->survived[0]) {
        el_buf_printf(&p->line, "an earlier error, after which it went on: %s", f->survived);
        summary_text_put(p, INDENT);
    }
    put_who(p, f);
    if (job && job->among > 1 && !f->absent) {
        el_buf_printf(&p->line, "among the first %u to fail: the clocks of the nodes tell no more", job->among);
        summary_text_put(p, INDENT);
    }
    put_kernel(p, f, 0);
    if (f->core) {
        el_buf_printf(&p->line, "core: %s", f->core);
        summary_text_put(p, INDENT);
    }
    if (file) {
        el_buf_printf(&p->line, "error file: %s", f->error_file);
        if (f->file_state != ERRFILE_WHOLE)
            el_buf_printf(&p->line, " (%s)", errfile_state_text(f->file_state));
        summary_text_put(p, INDENT);
    }
    if (f->siblings) {
        el_buf_printf(&p->line, "at that moment: %s", f->siblings);
        summary_text_put(p, INDENT);
    }
    if (f->hung && hang_report_text(&p->line, p->r->failures, p->r->failures_count) == 0 && p->line.len) {
        struct el_buf places = p->line;
        p->line = EL_BUF_INIT(p->out->mem, 0);
        el_buf_printf(&p->line, "their stacks: rank %s", el_buf_cstr(&places));
        el_buf_free(&places);
        summary_text_put(p, INDENT);
    }
    p->line.len = 0;
}

/* --- the others --- */

/* Others that say the same. */
struct summary_text_kind {
    const struct failure *first;
    unsigned count;
    struct el_ranges ranges;
    struct el_buf ranks;
};

struct others {
    struct summary_text_kind own[SUMMARY_KINDS_MAX], victims[SUMMARY_KINDS_MAX];
    unsigned own_n, victims_n;
    struct summary_text_kind same, rest, hung, stopped, absent;
};

static void summary_text_put_reason(struct el_buf *out, const struct failure *f)
{
    const char *type = f->found.type;
    char shown[SUMMARY_REASON_MAX];
    summary_reason(f, shown);
    if (!*type && !*shown)
        summary_ending(f, out);
    else
        el_buf_printf(out, "%s%s%s", type, *type && *shown ? ": " : "", shown);
}

/* Followers say the same with other addresses. */
static bool is_same_reason(const struct failure *a, const struct failure *b)
{
    char x[SUMMARY_REASON_MAX], y[SUMMARY_REASON_MAX];
    summary_reason(a, x);
    summary_reason(b, y);
    return strcmp(a->found.type, b->found.type) == 0 && strcmp(x, y) == 0;
}

static bool summary_text_is_same(const struct failure *a, const struct failure *b)
{
    const char *x = a->message ? a->message : a->found.message, *y = b->message ? b->message : b->found.message;
    bool words = a->follower ? b->follower && is_same_reason(a, b) : strcmp(x, y) == 0;
    return a->end == b->end && a->code == b->code && a->by == b->by && a->class == b->class && words &&
           a->watch == b->watch && a->absent == b->absent && !a->kernel == !b->kernel;
}

/* Of several nodes the order is not that of ranks. */
static void add_rank(struct summary_text_kind *k, unsigned rank)
{
    if (k->ranges.open && rank <= k->ranges.last)
        el_ranges_end(&k->ranges, &k->ranks);
    el_ranges_add(&k->ranges, &k->ranks, rank);
    k->count++;
}

static void summary_text_add(struct summary_text_kind *kinds, unsigned *n, struct summary_text_kind *rest,
                             const struct failure *f, struct el_mem *mem)
{
    for (unsigned i = 0; i < *n; i++)
        if (summary_text_is_same(kinds[i].first, f)) {
            add_rank(&kinds[i], f->rank);
            return;
        }
    if (*n == SUMMARY_KINDS_MAX) {
        add_rank(rest, f->rank);
        return;
    }
    kinds[*n] = (struct summary_text_kind){.first = f, .ranks = EL_BUF_INIT(mem, 0)};
    add_rank(&kinds[(*n)++], f->rank);
}

static unsigned count_ranges(const char *text)
{
    unsigned n = 0, first, last;
    while (el_ranges_next(&text, &first, &last))
        n += last - first + 1;
    return n;
}

/* Of several nodes.  Whom the cause's words name is no victim of it. */
static void collect_stopped(const struct failure_report *r, int cause, struct others *o)
{
    const char *text = r->job->stopped_ranks;
    unsigned first, last;
    const struct failure *f = cause < 0 ? NULL : r->failures[cause];
    bool late = f && f->follower && !f->absent && !f->left && classify_is_late(f->rule);
    bool names = f && absent_is_told(f);
    if (late) {
        el_buf_puts(&o->absent.ranks, text);
        o->absent.count = count_ranges(text);
        return;
    }
    if (!names) {
        el_buf_puts(&o->stopped.ranks, text);
        o->stopped.count = count_ranges(text);
        return;
    }
    while (el_ranges_next(&text, &first, &last))
        for (unsigned rank = first; rank <= last; rank++)
            add_rank(absent_names(f, rank) ? &o->absent : &o->stopped, rank);
}

static void summary_text_collect(const struct page *p, int cause, struct others *o)
{
    const struct failure_report *r = p->r;
    struct el_mem *mem = p->out->mem;
    *o = (struct others){.same.ranks = EL_BUF_INIT(mem, 0),
                         .rest.ranks = EL_BUF_INIT(mem, 0),
                         .hung.ranks = EL_BUF_INIT(mem, 0),
                         .stopped.ranks = EL_BUF_INIT(mem, 0),
                         .absent.ranks = EL_BUF_INIT(mem, 0)};
    for (unsigned i = 0; i < r->failures_count; i++) {
        const struct failure *f = r->failures[i];
        if ((int)i == cause)
            continue;
        if (!failure_is_own(f) && !r->job)
            add_rank(&o->stopped, f->rank);
        else if (!failure_is_own(f))
            continue; /* the coordinator names them */
        else if (f->absent && cause >= 0 && !r->failures[cause]->follower && !r->job)
            add_rank(&o->stopped, f->rank); /* somebody had failed by itself: nothing is known against it */
        else if (f->hung && !r->job)
            add_rank(&o->hung, f->rank);
        else if (cause >= 0 && !f->kernel && summary_text_is_same(r->failures[cause], f))
            add_rank(&o->same, f->rank);
        else if (f->follower)
            summary_text_add(o->victims, &o->victims_n, &o->rest, f, mem);
        else
            summary_text_add(o->own, &o->own_n, &o->rest, f, mem);
    }
    if (r->job)
        collect_stopped(r, cause, o);
}

static const char *summary_text_ranks_of(struct summary_text_kind *k)
{
    el_ranges_end(&k->ranges, &k->ranks);
    return el_buf_cstr(&k->ranks);
}

/* "rank 3 failed too: exit code 7: KeyError: 'x' (a.py:3), pid 1003"; "ranks 2-4 failed too: …". */
static void put_own(struct page *p, struct summary_text_kind *k)
{
    const struct failure *f = k->first;
    el_buf_printf(&p->line, "rank%s %s ", k->count == 1 ? "" : "s", summary_text_ranks_of(k));
    if (p->r->job && k->count == 1)
        el_buf_printf(&p->line, "on %s ", f->host);
    el_buf_puts(&p->line, "failed too: ");
    summary_brief(f, &p->line);
    if (k->count == 1 && f->pid > 0)
        el_buf_printf(&p->line, ", pid %d", f->pid);
    if (f->watch == FAILURE_WATCH_UNTOLD)
        el_buf_puts(&p->line, "; only how it ended was told");
    summary_text_put(p, INDENT);
    put_kernel(p, f, p->out->len);
}

/* "7 others ended because of it: ranks 1-3 (ConnectionResetError: …), 4-7 (stopped by elrun)". */
static void put_victims(struct page *p, struct others *o, const struct failure *cause)
{
    unsigned count = o->stopped.count;
    const char *sep = "";
    for (unsigned i = 0; i < o->victims_n; i++)
        count += o->victims[i].count;
    if (!count)
        return;
    bool known = !cause->follower || cause->private_link || cause->left; /* it is no victim itself */
    el_buf_printf(&p->line, "%u other%s ended %s: rank%s ", count, count == 1 ? "" : "s",
                  known ? "because of it" : "too", count == 1 ? "" : "s");
    for (unsigned i = 0; i < o->victims_n; i++, sep = ", ") {
        el_buf_printf(&p->line, "%s%s (", sep, summary_text_ranks_of(&o->victims[i]));
        summary_text_put_reason(&p->line, o->victims[i].first);
        el_buf_puts(&p->line, ")");
    }
    if (o->stopped.count)
        el_buf_printf(&p->line, "%s%s (stopped by elrun)", sep, summary_text_ranks_of(&o->stopped));
    summary_text_put(p, INDENT);
}

static void summary_text_put_rest(struct page *p, struct others *o)
{
    const struct report_job *job = p->r->job;
    unsigned long long more = o->rest.count + (job ? job->rest : 0);
    const char *ranks = summary_text_ranks_of(&o->rest), *theirs = job && job->rest ? job->rest_ranks : "";
    bool known = !job || !job->rest || *theirs; /* some are not known: then none is named */
    if (more) {
        el_buf_printf(&p->line, "failed too: %llu more", more);
        if (known)
            el_buf_printf(&p->line, ", rank%s %s%s%s", more == 1 ? "" : "s", ranks, *ranks && *theirs ? "," : "",
                          theirs);
        summary_text_put(p, INDENT);
    }
    if (o->hung.count) {
        el_buf_printf(&p->line, "hung too: %s", summary_text_ranks_of(&o->hung));
        summary_text_put(p, INDENT);
    }
}

static void free_kinds(struct page *p, struct summary_text_kind *kinds, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        p->out->full |= kinds[i].ranks.full;
        el_buf_free(&kinds[i].ranks);
    }
}

static void put_others(struct page *p, int cause)
{
    struct others o;
    summary_text_collect(p, cause, &o);
    if (o.same.count) {
        el_buf_printf(&p->line, "%u other%s failed in the same way: rank%s %s", o.same.count,
                      o.same.count == 1 ? "" : "s", o.same.count == 1 ? "" : "s", summary_text_ranks_of(&o.same));
        summary_text_put(p, INDENT);
    }
    if (o.absent.count) {
        bool named = absent_is_told(p->r->failures[cause]);
        el_buf_printf(&p->line, "rank%s %s %s, and had to be stopped by elrun: look there",
                      o.absent.count == 1 ? "" : "s", summary_text_ranks_of(&o.absent),
                      named ? "did not come, by these words" : "said nothing of a time-out");
        summary_text_put(p, INDENT);
    }
    for (unsigned i = 0; i < o.own_n; i++)
        put_own(p, &o.own[i]);
    if (cause >= 0)
        put_victims(p, &o, p->r->failures[cause]);
    summary_text_put_rest(p, &o);
    free_kinds(p, o.own, o.own_n);
    free_kinds(p, o.victims, o.victims_n);
    free_kinds(p, &o.same, 1);
    free_kinds(p, &o.rest, 1);
    free_kinds(p, &o.hung, 1);
    free_kinds(p, &o.stopped, 1);
    free_kinds(p, &o.absent, 1);
}

/* --- the rest --- */

static void put_job(struct page *p)
{
    const struct report_job *job = p->r->job;
    if (job && job->failed > 1) {
        el_buf_printf(&p->line, "by class: %s", job->classes);
        summary_text_put(p, INDENT);
    }
    struct text missing = summary_text_text_of(job ? job->missing : NULL), line;
    while (text_line(&missing, &line)) {
        el_buf_printf(&p->line, "store, when the first worker failed: %.*s", (int)line.n, line.p);
        summary_text_put(p, INDENT);
    }
}

static void put_places(struct page *p, const struct failure *f)
{
    const struct report_job *job = p->r->job;
    if (f && f->log_file) {
        el_buf_printf(&p->line, "stderr of rank %u: %s%s%s", f->rank, job ? f->host : "", job ? ":" : "", f->log_file);
        summary_text_put(p, INDENT);
    }
    if (p->r->log_dir) {
        if (job)
            el_buf_printf(&p->line, "logs of node %u: %s:%s", job->log_node, job->log_host, p->r->log_dir);
        else
            el_buf_printf(&p->line, "all logs: %s", p->r->log_dir);
        if (job && f && f->node_rank != job->log_node && !f->log_file)
            el_buf_printf(&p->line, "; those of rank %u: %s%s%s%s, node %u", f->rank, f->log_dir ? "" : "on ", f->host,
                          f->log_dir ? ":" : "", f->log_dir ? f->log_dir : "", f->node_rank);
        summary_text_put(p, INDENT);
    }
    if (f && failure_advice(f)[0]) {
        el_buf_printf(&p->line, "advice: %s", failure_advice(f));
        summary_text_put(p, INDENT);
    }
}

/* Why no restart follows.  Of several nodes that is not decided yet. */
static void put_next(struct page *p)
{
    const struct failure_report *r = p->r;
    if (r->again)
        return;
    if (r->no_restart && r->no_restart[0]) {
        el_buf_printf(&p->line, "elrun: %s", r->no_restart);
        if (r->restarts_max)
            el_buf_printf(&p->line, "; restarts: %u of %u", r->restarts, r->restarts_max);
        summary_text_put(p, 0);
    } else if (r->restarts_max && r->restarts >= r->restarts_max && !r->job) {
        el_buf_printf(&p->line, "elrun: no restart is left; restarts: %u of %u", r->restarts, r->restarts_max);
        summary_text_put(p, 0);
    } else if (r->restarts_max) {
        el_buf_printf(&p->line, "restarts: %u of %u", r->restarts, r->restarts_max);
        summary_text_put(p, INDENT);
    }
}

int summary_write(const struct failure_report *r, struct el_buf *out, const struct summary_style *style,
                  unsigned columns)
{
    int cause = summary_cause(r);
    const struct failure *f = cause < 0 ? NULL : r->failures[cause];
    struct page p = {.r = r, .style = style, .columns = columns, .out = out, .line = EL_BUF_INIT(out->mem, out->max)};
    put_cause(&p, f);
    if (f)
        put_evidence(&p, f);
    el_buf_puts(out, style->dim);
    put_others(&p, cause);
    put_job(&p);
    el_buf_puts(out, style->off);
    put_places(&p, f);
    put_next(&p);
    out->full |= p.line.full;
    el_buf_free(&p.line);
    return out->full ? -1 : 0;
}
