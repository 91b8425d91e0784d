#include "incident/summary.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "incident/fold.h"
#include "incident/record.h"
#include "incident/hung.h"
#include "incident/text.h"
#include "proc/signame.h"
#include "util/ranges.h"

enum { RULE_MAX = 60 }; /* columns of a line of = or -, as torchrun has it */

const struct summary_style summary_plain = {"", "", "", ""};
const struct summary_style summary_colour = {"\033[1m", "\033[1;31m", "\033[2m", "\033[0m"};

static struct text text_of(const char *s)
{
    return (struct text){s, s ? strlen(s) : 0};
}

static int cause_of(const struct report *r)
{
    if (r->job)
        return r->failures_count ? 0 : -1;
    return failure_cause(r->failures, r->failures_count);
}

/* "3", "-11" as Python has it, "unknown". */
static void put_code(struct el_buf *out, const struct failure *f)
{
    switch (f->end) {
    case FAILURE_EXIT: el_buf_printf(out, "%d", f->code); break;
    case FAILURE_SIGNAL: el_buf_printf(out, "-%d", f->code); break;
    case FAILURE_NOT_STARTED: el_buf_puts(out, "not started"); break;
    case FAILURE_UNKNOWN: el_buf_puts(out, "unknown"); break;
    }
}

static const char *by_text(enum failure_by by)
{
    switch (by) {
    case FAILURE_BY_OOM: return ", out of memory";
    case FAILURE_BY_OUTSIDE: return ", from outside elrun";
    case FAILURE_BY_ELRUN: return ", by elrun";
    case FAILURE_BY_ITSELF: break;
    }
    return "";
}

/* Behind the exit code: " (SIGSEGV, core dumped)". */
static void put_ending(struct el_buf *out, const struct failure *f)
{
    char name[SIGNAME_MAX];
    const char *core = f->core_dumped ? ", core dumped" : "";
    if (f->end == FAILURE_SIGNAL)
        el_buf_printf(out, " (%s%s%s)", signame(f->code, name), by_text(f->by), core);
    else if (f->by == FAILURE_BY_OOM)
        el_buf_printf(out, " (SIGKILL%s)", by_text(f->by));
}

/* One line of somebody else's text; a long one loses its middle, which matters least. */
static void put_line(struct el_buf *out, struct text line)
{
    if (line.n <= SUMMARY_LINE_MAX) {
        el_buf_put(out, line.p, line.n);
        return;
    }
    size_t head = SUMMARY_LINE_MAX * 3 / 4, tail = line.n - SUMMARY_LINE_MAX / 4;
    while (head && ((unsigned char)line.p[head] & 0xc0) == 0x80)
        head--;
    while (tail < line.n && ((unsigned char)line.p[tail] & 0xc0) == 0x80)
        tail++;
    el_buf_put(out, line.p, head);
    el_buf_printf(out, " [… %zu bytes …] ", tail - head);
    el_buf_put(out, line.p + tail, line.n - tail);
}

/* Lines with an indent, the first one where the output stands; the middle of a long text is left out. */
static void put_lines(struct el_buf *out, struct text t, const char *indent)
{
    struct text rest = t, line;
    unsigned lines = 0, i = 0;
    while (text_line(&rest, &line))
        lines++;
    const unsigned first = SUMMARY_STACK_LINES_MAX / 4, last = SUMMARY_STACK_LINES_MAX - first;
    for (rest = t; text_line(&rest, &line); i++) {
        bool out_of = lines > SUMMARY_STACK_LINES_MAX && i >= first && i < lines - last;
        if (out_of && i == first)
            el_buf_printf(out, "%s[… %u lines …]\n", indent, lines - last - first);
        if (out_of)
            continue;
        if (i)
            el_buf_puts(out, indent);
        put_line(out, line);
        el_buf_puts(out, "\n");
    }
}

/* Why there is no traceback, and how to get one. */
static const char *no_stack(const struct failure *f)
{
    switch (f->watch) {
    case FAILURE_WATCH_NOT_LOOKED: return "stderr was not looked at: others failed before";
    case FAILURE_WATCH_TERMINAL:
        return "stderr is a terminal that elrun leaves alone (--capture-stderr=no); without that option it stands "
               "here, or "
               "decorate main with torch's @record";
    case FAILURE_WATCH_NO:
        return "stderr goes where elrun cannot read it; to see the traceback here use --tee 3, or decorate main with "
               "torch's @record";
    case FAILURE_WATCH_UNTOLD:
        return "only how it ended was told: its agent was lost before it could tell more, its events break off, or "
               "too many failed at once; "
               "what it wrote lies in the logs of its node, if anywhere";
    case FAILURE_WATCH_YES: break;
    }
    return !f->tail                              ? "the worker wrote nothing to stderr"
           : f->tail_from == FAILURE_FROM_STDOUT ? "the worker wrote nothing to stderr; stdout ends with:"
                                                 : "none in stderr, which ends with:";
}

static void put_no_stack(struct el_buf *out, const struct failure *f)
{
    char name[SIGNAME_MAX];
    if (f->watch == FAILURE_WATCH_UNTOLD) {
        el_buf_printf(out, "<N/A>: %s\n", no_stack(f));
        return;
    }
    if (f->end == FAILURE_SIGNAL)
        el_buf_printf(out, "Signal %d (%s) received by PID %d: %s\n  ", f->code, signame(f->code, name), f->pid,
                      f->by == FAILURE_BY_OOM                ? "the kernel's out-of-memory killer chose it"
                      : f->hung && f->by == FAILURE_BY_ELRUN ? "elrun ended it, for it hung"
                                                             : signame_meaning(f->code));
    else if (f->message)
        el_buf_printf(out, "%s\n", f->message);
    if (f->message && f->end != FAILURE_SIGNAL)
        return;
    el_buf_printf(out, "<N/A>: %s\n", no_stack(f));
    if (f->tail && f->watch == FAILURE_WATCH_YES) {
        el_buf_puts(out, "    ");
        put_lines(out, text_of(f->tail), "    ");
    }
}

/* The traceback, short enough for one screen; the whole one is in the log. */
static void put_stack(struct el_buf *out, const struct failure *f)
{
    struct el_buf folded = EL_BUF_INIT(out->mem, 0);
    out->full |= fold_stack(text_of(f->stack), SUMMARY_STACK_LINES_MAX, &folded) != 0;
    put_lines(out, (struct text){folded.v, folded.len}, "  ");
    el_buf_free(&folded);
}

/* brief: one of the others, whose whole traceback is not what one looks for first. */
static void put_entry(struct el_buf *out, const struct failure *f, unsigned index, bool brief)
{
    el_buf_printf(out, "[%u]:\n  time      : %s\n", index, f->time_text[0] ? f->time_text : "unknown");
    el_buf_printf(out, "  host      : %s\n", f->host);
    el_buf_printf(out, "  rank      : %u (local_rank: %u)\n  exitcode  : ", f->rank, f->local_rank);
    put_code(out, f);
    if (f->watch == FAILURE_WATCH_UNTOLD && f->pid <= 0)
        el_buf_puts(out, " (pid: unknown)");
    else
        el_buf_printf(out, " (pid: %d)", f->pid);
    put_ending(out, f);
    if (f->core)
        el_buf_printf(out, "\n  core      : %s", f->core);
    bool file = f->error_file && f->file_state != ERRFILE_ABSENT;
    el_buf_printf(out, "\n  error_file: %s", file ? f->error_file : "<N/A>");
    if (file && f->file_state != ERRFILE_WHOLE)
        el_buf_printf(out, " (%s)", errfile_state_text(f->file_state));
    el_buf_puts(out, "\n  traceback : ");
    if (f->stack && brief && f->message) {
        put_line(out, text_of(f->message));
        el_buf_puts(out, "\n");
    } else if (f->stack) {
        put_stack(out, f);
    } else {
        put_no_stack(out, f);
    }
    if (f->sign[0] && !(f->kernel && text_find(text_of(f->kernel), f->sign)))
        el_buf_printf(out, "  because   : %s\n", f->sign);
    if (f->kernel) {
        el_buf_puts(out, "  kernel log: ");
        put_lines(out, text_of(f->kernel), "              ");
    }
}

/* Characters of the longest line, at most RULE_MAX. */
static unsigned width_of(struct text t, size_t least)
{
    size_t width = least;
    struct text line;
    while (text_line(&t, &line)) {
        size_t n = 0;
        for (size_t i = 0; i < line.n; i++)
            n += ((unsigned char)line.p[i] & 0xc0) != 0x80;
        width = n > width ? n : width;
    }
    return width < RULE_MAX ? (unsigned)width : RULE_MAX;
}

static void put_rule(struct el_buf *out, char c, unsigned width)
{
    char line[RULE_MAX + 1];
    memset(line, c, width);
    line[width] = '\n';
    el_buf_put(out, line, width + 1);
}

int summary_stopped(const struct report *r, struct el_buf *out)
{
    struct el_ranges s = {0};
    if (r->job)
        return el_buf_puts(out, r->job->stopped_ranks);
    for (unsigned i = 0; i < r->failures_count; i++)
        if (!failure_is_own(r->failures[i]))
            el_ranges_add(&s, out, r->failures[i]->rank);
    el_ranges_end(&s, out);
    return out->full ? -1 : 0;
}

/* Other failures that say the same are one entry. */
struct kind {
    const struct failure *first;
    unsigned more;           /* besides the first */
    struct el_ranges ranges; /* of those */
    struct el_buf ranks;
};

static bool is_equal(const struct failure *a, const struct failure *b)
{
    const char *x = a->message ? a->message : "", *y = b->message ? b->message : "";
    /* Followers say the same with other addresses. */
    bool words = a->follower ? b->follower && a->rule == b->rule : strcmp(x, y) == 0;
    return a->end == b->end && a->code == b->code && a->by == b->by && a->class == b->class && words &&
           a->watch == b->watch && !a->kernel == !b->kernel;
}

/* Of several nodes the order is not that of ranks. */
static void add_rank(struct el_ranges *s, struct el_buf *out, unsigned rank)
{
    if (s->open && rank <= s->last)
        el_ranges_end(s, out);
    el_ranges_add(s, out, rank);
}

/* One more of the others; false if it is of no kind that is shown. */
static bool add_kind(struct kind *kinds, unsigned *n, const struct failure *f, struct el_mem *mem)
{
    for (unsigned i = 0; i < *n; i++)
        if (is_equal(kinds[i].first, f)) {
            add_rank(&kinds[i].ranges, &kinds[i].ranks, f->rank);
            kinds[i].more++;
            return true;
        }
    if (*n == SUMMARY_KINDS_MAX)
        return false;
    kinds[(*n)++] = (struct kind){.first = f, .ranks = EL_BUF_INIT(mem, 0)};
    return true;
}

static void put_kinds(struct el_buf *out, struct kind *kinds, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct kind *k = &kinds[i];
        put_entry(out, k->first, i + 1, true);
        el_ranges_end(&k->ranges, &k->ranks);
        if (k->more)
            el_buf_printf(out, "  the same  : rank%s %s\n", k->more == 1 ? "" : "s", el_buf_cstr(&k->ranks));
        out->full |= k->ranks.full;
        el_buf_free(&k->ranks);
    }
}

/* The failures besides the cause: the first of each kind, the ranks of the rest, then those that elrun stopped. */
static void put_others(struct el_buf *out, const struct report *r, int cause)
{
    unsigned shown = 0;
    uint64_t more = 0;
    struct kind kinds[SUMMARY_KINDS_MAX];
    struct el_ranges rest = {0}, hung = {0};
    struct el_buf ranks = EL_BUF_INIT(out->mem, 0), hung_ranks = EL_BUF_INIT(out->mem, 0);
    for (unsigned i = 0; i < r->failures_count; i++) {
        const struct failure *f = r->failures[i];
        if ((int)i == cause || !failure_is_own(f))
            continue;
        if (f->hung && !r->job) {
            el_ranges_add(&hung, &hung_ranks, f->rank);
        } else if (!add_kind(kinds, &shown, f, out->mem)) {
            add_rank(&rest, &ranks, f->rank);
            more++;
        }
    }
    put_kinds(out, kinds, shown);
    el_ranges_end(&rest, &ranks);
    el_ranges_end(&hung, &hung_ranks);
    if (r->job && r->job->rest) {
        more += r->job->rest;
        ranks.len = r->job->rest_ranks[0] ? ranks.len : 0; /* some are not known: then none is named */
        el_buf_printf(&ranks, "%s%s", ranks.len ? "," : "", r->job->rest_ranks);
    }
    if (more && !ranks.len)
        el_buf_printf(out, "  failed too: %llu more\n", (unsigned long long)more);
    else if (more)
        el_buf_printf(out, "  failed too: %llu more, rank%s %s\n", (unsigned long long)more, more == 1 ? "" : "s",
                      el_buf_cstr(&ranks));
    else if (!shown && !hung_ranks.len)
        el_buf_puts(out, "  <NO_OTHER_FAILURES>\n");
    if (hung_ranks.len)
        el_buf_printf(out, "  hung too: %s\n", el_buf_cstr(&hung_ranks));
    out->full |= ranks.full | hung_ranks.full;
    el_buf_free(&ranks);
    el_buf_free(&hung_ranks);
    struct el_buf stopped = EL_BUF_INIT(out->mem, 0);
    if (summary_stopped(r, &stopped) == 0 && stopped.len)
        el_buf_printf(out, "  stopped by elrun: %s\n", el_buf_cstr(&stopped));
    el_buf_free(&stopped);
}

/* What stands below the table, above the verdict. */
static void put_foot(struct el_buf *out, const struct report *r, const struct failure *cause)
{
    if (cause && cause->siblings)
        el_buf_printf(out, "at that moment: %s\n", cause->siblings);
    if (cause && cause->hung) {
        struct el_buf places = EL_BUF_INIT(out->mem, 0);
        if (hung_text(&places, r->failures, r->failures_count) == 0 && places.len)
            el_buf_printf(out, "their stacks: rank %s\n", el_buf_cstr(&places));
        el_buf_free(&places);
    }
    if (r->restarts_max)
        el_buf_printf(out, "restarts: %u of %u\n", r->restarts, r->restarts_max);
    const struct report_job *job = r->job;
    if (job && job->failed > 1)
        el_buf_printf(out, "failed by themselves: %s\n", job->classes);
    struct text missing = text_of(job ? job->missing : NULL), line;
    while (text_line(&missing, &line))
        el_buf_printf(out, "store, when the first worker failed: %.*s\n", (int)line.n, line.p);
    if (cause && cause->log_file)
        el_buf_printf(out, "stderr of rank %u: %s%s%s\n", cause->rank, job ? cause->host : "", job ? ":" : "",
                      cause->log_file);
    if (r->log_dir)
        el_buf_printf(out, "all logs: %s%s%s\n", job ? job->log_host : "", job ? ":" : "", r->log_dir);
    if (cause && failure_advice(cause)[0])
        el_buf_printf(out, "advice: %s: %s\n", failure_class_text(cause->class), failure_advice(cause));
    else if (cause && cause->class != FAILURE_CLASS_UNKNOWN)
        el_buf_printf(out, "class: %s\n", failure_class_text(cause->class));
    if (r->no_restart && r->no_restart[0])
        el_buf_printf(out, "%s\n", r->no_restart);
}

int summary_write(const struct report *r, struct el_buf *out, const struct summary_style *style)
{
    int cause = cause_of(r);
    const struct failure *root = cause < 0 ? NULL : r->failures[cause];
    struct el_buf others = EL_BUF_INIT(out->mem, out->max), entry = EL_BUF_INIT(out->mem, out->max);
    put_others(&others, r, cause);
    if (root)
        put_entry(&entry, root, 0, false);
    else
        el_buf_puts(&entry, "  <NO_CAUSE>: elrun stopped every worker that ended\n");
    unsigned width = width_of((struct text){others.v, others.len}, strlen(r->script) + 7);
    width = width_of((struct text){entry.v, entry.len}, width);
    put_rule(out, '=', width);
    el_buf_printf(out, "%s%s FAILED%s\n", style->title, r->script, style->off);
    put_rule(out, '-', width);
    el_buf_puts(out, "Failures:\n");
    el_buf_puts(out, style->dim);
    el_buf_put(out, others.v, others.len);
    el_buf_puts(out, style->off);
    put_rule(out, '-', width);
    el_buf_puts(out, style->title);
    if (r->job && r->job->among > 1)
        el_buf_printf(out,
                      "Root Cause (among the first %u to fail: the clocks of the nodes tell no more):", r->job->among);
    else
        el_buf_puts(out, "Root Cause (first observed failure):");
    el_buf_printf(out, "%s\n", style->off);
    el_buf_put(out, entry.v, entry.len);
    put_rule(out, '=', width);
    put_foot(out, r, root);
    el_buf_printf(out, "%selrun: ", style->cause);
    summary_verdict(r, out);
    el_buf_printf(out, "%s\n", style->off);
    out->full |= others.full | entry.full;
    el_buf_free(&others);
    el_buf_free(&entry);
    return out->full ? -1 : 0;
}

/* "exit code 3", "signal 11 (SIGSEGV)". */
static void put_how(struct el_buf *out, const struct failure *f)
{
    char name[SIGNAME_MAX];
    if (f->hung && f->by == FAILURE_BY_ELRUN) {
        el_buf_puts(out, "it hung: no output, no processor time; ended by elrun");
        return;
    }
    switch (f->end) {
    case FAILURE_EXIT: el_buf_printf(out, "exit code %d%s", f->code, by_text(f->by)); break;
    case FAILURE_SIGNAL: el_buf_printf(out, "signal %d (%s)%s", f->code, signame(f->code, name), by_text(f->by)); break;
    case FAILURE_NOT_STARTED: el_buf_puts(out, "could not be started"); break;
    case FAILURE_UNKNOWN: el_buf_puts(out, "its exit status could not be collected"); break;
    }
    if (f->core_dumped)
        el_buf_puts(out, ", core dumped");
}

int summary_verdict(const struct report *r, struct el_buf *out)
{
    int cause = cause_of(r);
    if (cause < 0) {
        el_buf_puts(out, "no worker failed by itself: elrun stopped ");
        el_buf_puts(out, r->failures_count == 1 ? "rank " : "ranks ");
        return summary_stopped(r, out);
    }
    const struct failure *f = r->failures[cause];
    el_buf_printf(out, "rank %u ", f->rank);
    if (r->job)
        el_buf_printf(out, "on %s ", f->host);
    el_buf_printf(out, "(local rank %u) failed: ", f->local_rank);
    summary_ending(f, out);
    return out->full ? -1 : 0;
}

void summary_ending(const struct failure *f, struct el_buf *out)
{
    if (f->watch == FAILURE_WATCH_UNTOLD && f->message) { /* made by this function on its own node */
        put_line(out, text_of(f->message));
        return;
    }
    put_how(out, f);
    if (f->hung) {
        if (f->found.function[0])
            el_buf_printf(out, "; it stood in %s", f->found.function);
    } else if (f->message) {
        el_buf_puts(out, ": ");
        put_line(out, text_of(f->message));
    } else if (f->end == FAILURE_SIGNAL && f->by == FAILURE_BY_ITSELF) {
        el_buf_printf(out, ": %s", signame_meaning(f->code));
    } else if (f->found.message[0]) {
        el_buf_puts(out, "; its last line: ");
        put_line(out, text_of(f->found.message));
    }
    const char *slash = strrchr(f->found.file, '/');
    if (f->found.user_frame && f->found.line)
        el_buf_printf(out, " (%s:%u)", slash ? slash + 1 : f->found.file, f->found.line);
    if (f->left)
        el_buf_printf(out, "; %s", f->left);
}

static void put_field(struct el_buf *out, const char *key, const char *value)
{
    el_buf_printf(out, ",\"%s\":", key);
    if (value)
        text_json(out, value, strlen(value));
    else
        el_buf_puts(out, "null");
}

static void put_json(const struct report *r, struct el_buf *out, size_t each_bytes)
{
    int cause = cause_of(r);
    struct el_buf line = EL_BUF_INIT(out->mem, 0);
    el_buf_puts(out, "{\"script\":");
    text_json(out, r->script, strlen(r->script));
    summary_verdict(r, &line);
    put_field(out, "verdict", el_buf_cstr(&line));
    line.len = 0;
    summary_stopped(r, &line);
    put_field(out, "stopped_by_elrun", el_buf_cstr(&line));
    el_buf_free(&line);
    el_buf_printf(out, ",\"restarts\":%u,\"restarts_max\":%u", r->restarts, r->restarts_max);
    put_field(out, "no_restart", r->no_restart && r->no_restart[0] ? r->no_restart : NULL);
    put_field(out, "log_dir", r->log_dir);
    el_buf_puts(out, ",\"cause\":");
    if (cause >= 0)
        out->full |= record_write(r->failures[cause], each_bytes, out) < 0;
    else
        el_buf_puts(out, "null");
    el_buf_puts(out, ",\"others\":[");
    unsigned shown = 0;
    uint64_t more = r->job ? r->job->rest : 0;
    for (unsigned i = 0; i < r->failures_count; i++) {
        if ((int)i == cause || !failure_is_own(r->failures[i]))
            continue;
        if (shown == SUMMARY_ENTRIES_MAX) {
            more++;
            continue;
        }
        el_buf_puts(out, shown++ ? "," : "");
        out->full |= record_write(r->failures[i], each_bytes, out) < 0;
    }
    el_buf_puts(out, "]");
    if (r->job) {
        el_buf_printf(out, ",\"failed\":%llu,\"among_the_first\":%u", (unsigned long long)r->job->failed,
                      r->job->among);
        put_field(out, "failed_by_class", r->job->classes);
        put_field(out, "others_left_out_ranks", r->job->rest_ranks);
        put_field(out, "missing_at_the_store", r->job->missing);
    }
    el_buf_printf(out, ",\"others_left_out\":%llu,\"texts_shortened\":%s}", (unsigned long long)more,
                  each_bytes < RECORD_BYTES_MAX ? "true" : "false");
}

int summary_json(const struct report *r, struct el_buf *out)
{
    const size_t start = out->len;
    put_json(r, out, RECORD_BYTES_MAX);
    if (!out->full)
        return 0;
    /* Never a document that breaks off: with the long texts cut, or not at all. */
    out->len = start;
    out->full = 0;
    put_json(r, out, RECORD_BYTES_LEAST);
    if (out->full)
        out->len = start;
    return out->full ? -1 : 0;
}

int summary_errfile(const struct failure *f, struct el_buf *out)
{
    struct el_buf line = EL_BUF_INIT(out->mem, 0);
    put_how(&line, f);
    if (f->message)
        el_buf_printf(&line, ": %s", f->message);
    el_buf_puts(out, "{\"message\": {\"message\": ");
    text_json(out, line.v, line.len);
    el_buf_puts(out, ", \"extraInfo\": {\"py_callstack\": ");
    struct text stack = f->stack ? text_of(f->stack) : f->tail ? text_of(f->tail) : (struct text){line.v, line.len};
    text_json(out, stack.p, stack.n);
    el_buf_printf(out, ", \"timestamp\": \"%lld\"}, \"errorCode\": %d}}", (long long)(f->wall_usec / 1000000),
                  f->end == FAILURE_SIGNAL ? -f->code : f->code);
    out->full |= line.full;
    el_buf_free(&line);
    return out->full ? -1 : 0;
}
