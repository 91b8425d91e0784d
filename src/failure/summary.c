#include "failure/summary.h"
#include "failure/summary_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "failure/traceback_trim.h"
#include "failure/record.h"
#include "util/text.h"
#include "failure/absent.h"
#include "sys/signame.h"
#include "util/ranges.h"

static struct text summary_text_of(const char *s)
{
    return (struct text){s, s ? strlen(s) : 0};
}

int summary_cause(const struct failure_report *r)
{
    if (r->job)
        return r->failures_count ? 0 : -1;
    return failure_cause(r->failures, r->failures_count);
}

static const char *summary_by_text(enum failure_by by)
{
    switch (by) {
    case FAILURE_BY_OOM: return ", out of memory";
    case FAILURE_BY_OUTSIDE: return ", from outside elrun";
    case FAILURE_BY_ELRUN: return ", by elrun";
    case FAILURE_BY_ITSELF: break;
    }
    return "";
}

/* One line of somebody else's text; a long one loses its middle, which matters least. */
void summary_line(struct el_buf *out, struct text line)
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

int summary_stopped(const struct failure_report *r, struct el_buf *out)
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

void summary_how(const struct failure *f, struct el_buf *out, const char *sep)
{
    char name[SIGNAME_MAX];
    el_buf_puts(out, sep);
    if (f->hung && f->by == FAILURE_BY_ELRUN && f->unended[0]) {
        el_buf_printf(out, "%s, and it could not exit: no output, no processor time; ended by elrun", f->unended);
        return;
    }
    if (f->hung && f->by == FAILURE_BY_ELRUN && f->thread[0]) {
        el_buf_printf(out, "a thread or child process of it ended with %s, and then it hung; ended by elrun",
                      f->thread);
        return;
    }
    if (f->hung && f->by == FAILURE_BY_ELRUN) {
        el_buf_puts(out, "it hung: no output, no processor time; ended by elrun");
        return;
    }
    if (f->absent) {
        el_buf_printf(out, "%s, ended by elrun", absent_text(f));
        if (f->end == FAILURE_SIGNAL)
            el_buf_printf(out, " (%s)", signame(f->code, name));
        return;
    }
    if (failure_was_left(f)) {
        el_buf_printf(out, "did not exit, ended by elrun (%s)", signame(f->code, name));
        return;
    }
    switch (f->end) {
    case FAILURE_EXIT: el_buf_printf(out, "exit code %d%s", f->code, summary_by_text(f->by)); break;
    case FAILURE_SIGNAL:
        el_buf_printf(out, "signal %d (%s)%s", f->code, signame(f->code, name), summary_by_text(f->by));
        break;
    case FAILURE_NOT_STARTED: el_buf_puts(out, "could not be started"); break;
    case FAILURE_UNKNOWN: el_buf_puts(out, "its exit status could not be collected"); break;
    }
    if (f->core_dumped)
        el_buf_puts(out, ", core dumped");
}

int summary_verdict(const struct failure_report *r, struct el_buf *out)
{
    int cause = summary_cause(r);
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

static void summary_put_message(const struct failure *f, const char *message, struct el_buf *out)
{
    size_t left = summary_left_out(f);
    summary_line(out, summary_text_of(message));
    if (left)
        el_buf_printf(out, " [%zu bytes more]", left);
}

static void put_ending(const struct failure *f, bool brief, struct el_buf *out)
{
    if (f->watch == FAILURE_WATCH_UNTOLD && f->message) { /* made by this function on its own node */
        summary_line(out, summary_text_of(f->message));
        return;
    }
    if (!brief)
        summary_how(f, out, "");
    if (failure_by_thread(f))
        el_buf_printf(out, "%sin a thread or child process of it, and the main thread went on", brief ? "" : ", ");
    if (f->hung) {
        if (f->found.function[0] && !f->unended[0])
            el_buf_printf(out, "; it stood in %s", f->found.function);
    } else if (f->message) {
        const char *where = f->found.in_process ? "in a child process of it" : "in a thread of it";
        if (f->found.in_thread && !failure_by_thread(f))
            el_buf_printf(out, "%s%s%s", brief ? "" : ": ", where, brief ? ": " : "");
        /* A signal from outside is no end of an exception's, but for those that Python makes of signals. */
        bool apart = f->aside || (f->by == FAILURE_BY_OUTSIDE && classify_class(f->rule) != FAILURE_CLASS_OUTSIDE);
        /* The words are those of the connection to it. */
        bool loader = classify_is_loader(f->rule) && !text_find(summary_text_of(f->message), "worker");
        el_buf_puts(out, loader ? brief ? "" : ": " : "");
        el_buf_puts(out, loader ? "a data loader's worker process died while it handed over a batch" : "");
        el_buf_puts(out, brief && !loader && !failure_by_thread(f) ? "" : apart ? "; it had printed: " : ": ");
        summary_put_message(f, f->message, out);
    } else if (f->end == FAILURE_SIGNAL && f->by == FAILURE_BY_ITSELF) {
        el_buf_printf(out, ": %s", signame_meaning(f->code));
    } else if (f->found.message[0]) {
        el_buf_puts(out, "; its last line: ");
        summary_put_message(f, summary_without_rank(summary_text_of(f->found.message)).p, out);
    }
    const char *slash = strrchr(f->found.file, '/');
    bool told = f->hung && f->unended[0]; /* with the exception */
    if (f->found.user_frame && f->found.line && !told)
        el_buf_printf(out, " (%s:%u)", slash ? slash + 1 : f->found.file, f->found.line);
    if (f->left)
        el_buf_printf(out, "; %s", f->left);
}

void summary_ending(const struct failure *f, struct el_buf *out)
{
    put_ending(f, false, out);
}

bool summary_is_raised(const struct failure *f)
{
    return ((f->end == FAILURE_EXIT && f->code == 1) || failure_was_left(f)) && f->by == FAILURE_BY_ITSELF &&
           f->message && !f->hung && !f->aside && f->watch != FAILURE_WATCH_UNTOLD;
}

void summary_brief(const struct failure *f, struct el_buf *out)
{
    put_ending(f, summary_is_raised(f), out);
}

static void summary_put_field(struct el_buf *out, const char *key, const char *value)
{
    el_buf_printf(out, ",\"%s\":", key);
    if (value)
        text_json(out, value, strlen(value));
    else
        el_buf_puts(out, "null");
}

static void summary_put_json(const struct failure_report *r, struct el_buf *out, size_t each_bytes)
{
    int cause = summary_cause(r);
    struct el_buf line = EL_BUF_INIT(out->mem, 0);
    el_buf_puts(out, "{\"script\":");
    text_json(out, r->script, strlen(r->script));
    summary_verdict(r, &line);
    summary_put_field(out, "verdict", el_buf_cstr(&line));
    line.len = 0;
    summary_stopped(r, &line);
    summary_put_field(out, "stopped_by_elrun", el_buf_cstr(&line));
    el_buf_free(&line);
    el_buf_printf(out, ",\"restarts\":%u,\"restarts_max\":%u", r->restarts, r->restarts_max);
    if (r->no_restart && r->no_restart[0])
        summary_put_field(out, "no_restart", r->no_restart);
    summary_put_field(out, "log_dir", r->log_dir);
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
        summary_put_field(out, "failed_by_class", r->job->classes);
        summary_put_field(out, "others_left_out_ranks", r->job->rest_ranks);
        summary_put_field(out, "missing_at_the_store", r->job->missing);
    }
    el_buf_printf(out, ",\"others_left_out\":%llu,\"texts_shortened\":%s}", (unsigned long long)more,
                  each_bytes < RECORD_BYTES_MAX ? "true" : "false");
}

int summary_json(const struct failure_report *r, struct el_buf *out)
{
    const size_t start = out->len;
    summary_put_json(r, out, RECORD_BYTES_MAX);
    if (!out->full)
        return 0;
    /* Never a document that breaks off: with the long texts cut, or not at all. */
    out->len = start;
    out->full = 0;
    summary_put_json(r, out, RECORD_BYTES_LEAST);
    if (out->full)
        out->len = start;
    return out->full ? -1 : 0;
}

int summary_errfile(const struct failure *f, struct el_buf *out)
{
    struct el_buf line = EL_BUF_INIT(out->mem, 0);
    summary_how(f, &line, "");
    if (f->message)
        el_buf_printf(&line, ": %s", f->message);
    el_buf_puts(out, "{\"message\": {\"message\": ");
    text_json(out, line.v, line.len);
    el_buf_puts(out, ", \"extraInfo\": {\"py_callstack\": ");
    struct text stack = f->stack  ? summary_text_of(f->stack)
                        : f->tail ? summary_text_of(f->tail)
                                  : (struct text){line.v, line.len};
    text_json(out, stack.p, stack.n);
    el_buf_printf(out, ", \"timestamp\": \"%lld\"}, \"errorCode\": %d}}", (long long)(f->wall_usec / 1000000),
                  failure_was_left(f)        ? 1
                  : f->end == FAILURE_SIGNAL ? -f->code
                                             : f->code);
    out->full |= line.full;
    el_buf_free(&line);
    return out->full ? -1 : 0;
}
