#include "failure/failure.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "failure/caught.h"
#include "failure/child_error.h"
#include "failure/usage_error.h"
#include "failure/exiting.h"
#include "failure/survived.h"
#include "util/text.h"
#include "failure/log_traceback.h"
#include "failure/traceback_line.h"
#include "sys/xid.h"
#include "sys/kmsg.h"
#include "util/array.h"

enum {
    STREAM_MAX = 100 * 1024, /* bytes looked at: what is kept of a stream (output/head.h) */
    STACK_MAX = 40 * 1024,   /* bytes of a traceback kept: what an errfile_clip holds and a little more */
    TAIL_MAX = 8 * 1024,     /* bytes of last lines kept */
    MESSAGE_MAX = 1024,
    KERNEL_LINES_MAX = 4,
    LINES_BEHIND_MAX = 4, /* of a warning at exit, of another thread */
};

void failure_init(struct failure *f)
{
    memset(f, 0, sizeof *f);
    f->role = f->host = "";
    f->wall_usec = f->file_sec = f->stop_wall_usec = -1;
}

void failure_free(struct failure *f, struct el_mem *mem)
{
    el_free(mem, f->message);
    el_free(mem, f->stack);
    el_free(mem, f->tail);
    el_free(mem, f->behind);
    el_free(mem, f->error_file);
    el_free(mem, f->log_file);
    el_free(mem, f->log_dir);
    el_free(mem, f->siblings);
    el_free(mem, f->left);
    el_free(mem, f->core);
    el_free(mem, f->kernel);
    f->message = f->stack = f->tail = f->behind = f->error_file = f->log_file = f->log_dir = f->siblings = f->left =
        f->core = f->kernel = NULL;
}

void failure_set_line(struct failure *f, char **place, const char *text, struct el_mem *mem)
{
    assert(place == &f->error_file || place == &f->log_file || place == &f->log_dir || place == &f->siblings ||
           place == &f->left || place == &f->core);
    el_free(mem, *place);
    *place = text ? el_strndup(mem, text, strlen(text)) : NULL;
    f->texts_short |= text && !*place;
}

/* Puts a copy of t (its last max bytes, from the beginning of a line if there is one) in *place. */
static void failure_keep(struct failure *f, char **place, struct text t, size_t max, struct el_mem *mem)
{
    while (t.n && (t.p[t.n - 1] == '\n' || t.p[t.n - 1] == ' '))
        t.n--;
    if (t.n > max) {
        struct text cut = {t.p + (t.n - max), max}, line;
        if (memchr(cut.p, '\n', cut.n))
            text_line(&cut, &line);
        while (cut.n && ((unsigned char)cut.p[0] & 0xc0) == 0x80) { /* the rest of a character that was cut */
            cut.p++;
            cut.n--;
        }
        t = cut;
    }
    el_free(mem, *place);
    *place = t.n ? el_strndup(mem, t.p, t.n) : NULL;
    f->texts_short |= t.n && !*place;
}

/* What was left out before, where the stream was kept (output/head.c): "[... 1234 bytes left out ...]". */
static size_t lost_before(struct text t)
{
    static const char mark[] = "[... ", rest[] = " bytes left out ...]";
    const char *at = text_find(t, mark), *end = t.p + t.n;
    size_t lost = 0, note = sizeof "\n\t" - 1 + sizeof mark - 1 + sizeof rest - 1 + sizeof "\n\t" - 1;
    if (!at || !text_find(t, rest))
        return 0;
    for (at += sizeof mark - 1; at < end && *at >= '0' && *at <= '9'; at++, note++)
        lost = lost * 10 + (size_t)(*at - '0');
    return lost > note ? lost - note : 0;
}

/* Of a longer one the beginning stays, with the frames, and the end. */
static void keep_stack(struct failure *f, struct text t, struct el_mem *mem)
{
    struct el_buf text = EL_BUF_INIT(mem, 0);
    size_t half = STACK_MAX / 2, end = t.n - half;
    if (t.n <= STACK_MAX) {
        failure_keep(f, &f->stack, t, STACK_MAX, mem);
        return;
    }
    while (half && ((unsigned char)t.p[half] & 0xc0) == 0x80)
        half--;
    while (end < t.n && ((unsigned char)t.p[end] & 0xc0) == 0x80)
        end++;
    el_buf_put(&text, t.p, half);
    el_buf_printf(&text, " [… %zu bytes …] ", end - half + lost_before((struct text){t.p + half, end - half}));
    el_buf_put(&text, t.p + end, t.n - end);
    f->texts_short |= text.full;
    failure_keep(f, &f->stack, (struct text){text.v, text.len}, text.len, mem);
    el_buf_free(&text);
}

static void keep_message(struct failure *f, const char *type, const char *text, struct el_mem *mem)
{
    char line[MESSAGE_MAX];
    snprintf(line, sizeof line, "%s%s%s", type, *type && *text ? ": " : "", text);
    failure_keep(f, &f->message, (struct text){line, strlen(line)}, sizeof line, mem);
}

/* What these words say, unless what was said before says more. */
static void failure_take_words(struct failure *f, struct traceback *t, const struct traceback_chain *chain,
                               struct text all)
{
    struct classify c;
    struct text cause, line;
    classify_words(&c, t, chain, all);
    cause = c.cause;
    if (cause.n && text_line(&cause, &line) && line.n > c.cause_type.n + 1) {
        /* Its last exception only says that a peer is gone: the one that led to it is the one to name. */
        text_copy(t->type, sizeof t->type, c.cause_type.p, c.cause_type.n);
        line.p += c.cause_type.n + 1;
        line.n -= c.cause_type.n + 1;
        while (line.n && line.p[0] == ' ') {
            line.p++;
            line.n--;
        }
        text_copy(t->message, sizeof t->message, line.p, line.n);
    }
    if (c.xid && !f->xid)
        f->xid = c.xid;
    if (f->words != CLASSIFY_NONE && (c.rule == CLASSIFY_NONE || !classify_is_follower(f->words)))
        return;
    f->words = c.rule;
    f->words_private = c.private_link;
    memcpy(f->sign, c.sign, sizeof f->sign);
}

void failure_add_file(struct failure *f, const struct errfile *e, struct el_mem *mem)
{
    struct el_buf text = EL_BUF_INIT(mem, 0), clean = EL_BUF_INIT(mem, 0);
    f->file_state = e->state;
    f->file_sec = e->timestamp_sec;
    f->texts_short |= text_clean(&text, e->message, strlen(e->message)) != 0;
    struct text rest = {text.v, text.len}, line = {0};
    while (text_line(&rest, &line) && !line.n)
        ;
    char first[MESSAGE_MAX];
    text_copy(first, sizeof first, line.n ? line.p : "", line.n);
    if (first[0])
        keep_message(f, "", first, mem);
    if (e->stack.total) {
        struct el_buf raw = EL_BUF_INIT(mem, 0);
        f->texts_short |= errfile_stack(e, &raw) || text_clean(&clean, raw.v, raw.len);
        el_buf_free(&raw);
    } else if (rest.n) { /* a message of several lines and no traceback: all of it is evidence */
        f->texts_short |= el_buf_put(&clean, text.v, text.len) != 0;
    }
    if (clean.len) {
        failure_keep(f, &f->stack, (struct text){clean.v, clean.len}, STACK_MAX, mem);
        f->stack_from = FAILURE_FROM_FILE;
        struct traceback found;
        struct traceback_chain chain;
        traceback_find_chain(&found, &chain, clean.v, clean.len);
        failure_take_words(f, &found, &chain, (struct text){clean.v, clean.len});
        if (found.kind != TRACEBACK_NONE)
            f->found = found;
    }
    el_buf_free(&clean);
    el_buf_free(&text);
}

/* Nothing but a few lines comes behind an exception that ended the main thread, or another one. */
static bool is_last_word(const struct traceback *t, const struct traceback_chain *chain, struct text all)
{
    bool python = t->kind == TRACEBACK_PYTHON || t->kind == TRACEBACK_GROUP;
    size_t at = python ? survived_words_end(t, chain, all) : t->end;
    struct text rest = {all.p + at, all.n - at}, line;
    unsigned lines = 0;
    while (text_line(&rest, &line)) {
        lines += line.n > 0;
        python &= !survived_goes_on(line);
    }
    if (!python || survived_is_mild(t, all) || !survived_came_out(t, all))
        return false;
    return (!t->in_thread && lines <= LINES_BEHIND_MAX) || /* of a thread: the others go on, and say so */
           survived_is_end(t, chain, all);
}

/* In place; without memory for it the text stays as it is. */
static void unfolded(struct failure *f, struct el_buf *clean)
{
    struct text t = {clean->v, clean->len};
    if (!clean->len || !log_traceback_needed(t))
        return;
    struct el_buf out = EL_BUF_INIT(clean->mem, 0), old = *clean;
    bool bad = unfold(&out, t) != 0;
    f->texts_short |= bad;
    *clean = bad ? old : out;
    el_buf_free(bad ? &out : &old);
}

/* An exception of a thread is printed, and the main thread goes on: perhaps it waits for that thread, for ever.  After
 * one of the main thread, which stands before another one, it went on. */
static void find_before(struct failure *f, const struct traceback *found, struct text all)
{
    struct traceback before;
    if (found->in_thread) {
        traceback_put(f->thread, sizeof f->thread, found);
        return;
    }
    if (found->kind == TRACEBACK_NONE || !found->start)
        return;
    traceback_find(&before, all.p, found->start);
    if (before.in_thread)
        traceback_put(f->thread, sizeof f->thread, &before);
    else if (before.kind == TRACEBACK_PYTHON || before.kind == TRACEBACK_GROUP)
        traceback_put(f->earlier, sizeof f->earlier, &before);
}

/* Looks for what ended the program.  all becomes what it said after the last exception that it survived. */
static void find_end(struct failure *f, struct text *all, struct traceback *found, struct traceback_chain *chain)
{
    struct classify c;
    f->logged = false;
    for (;;) {
        traceback_find_chain(found, chain, all->n ? all->p : "", all->n);
        f->logged = survived_is_logged(found, *all);
        classify_words(&c, found, chain, *all);
        size_t at = survived_at(found, chain, *all, f->logged, classify_is_follower(c.rule));
        if (!at)
            return;
        traceback_put(f->survived, sizeof f->survived, found);
        *all = (struct text){all->p + at, all->n - at};
    }
}

/* A helper process died, and had printed of what: "Fatal Python error: Segmentation fault (a.py:3)". */
static void failure_find_helper(struct failure *f, const struct traceback *found, struct text all)
{
    struct traceback before;
    if (!classify_is_helper(f->words) || !found->start || f->sign[0])
        return;
    traceback_find(&before, all.p, found->start);
    if (before.kind == TRACEBACK_FATAL || before.kind == TRACEBACK_CPLUS || before.kind == TRACEBACK_ABORT)
        traceback_put(f->sign, sizeof f->sign, &before);
}

/* A child process had printed on the same stderr of what it died: that is what was wrong. */
static void find_child(struct failure *f, const struct traceback *found, struct text all)
{
    struct traceback child;
    struct traceback_chain chain;
    if (f->words != CLASSIFY_NONE || !child_error_find(&child, &chain, found, all))
        return;
    failure_take_words(f, &child, &chain, (struct text){all.p, found->start});
    traceback_put(f->sign, sizeof f->sign, &child);
    text_copy(f->child, sizeof f->child, child.type, strlen(child.type));
}

static void add_stream(struct failure *f, enum failure_from from, const char *bytes, size_t n, struct el_mem *mem)
{
    struct el_buf clean = EL_BUF_INIT(mem, 0);
    if (n > STREAM_MAX) {
        bytes += n - STREAM_MAX;
        n = STREAM_MAX;
    }
    f->texts_short |= text_clean(&clean, bytes, n) != 0;
    unfolded(f, &clean);
    struct traceback found, before;
    struct traceback_chain chain;
    struct text all = {clean.len ? clean.v : "", clean.len};
    find_end(f, &all, &found, &chain);
    failure_take_words(f, &found, &chain, all);
    failure_find_helper(f, &found, all);
    find_child(f, &found, all);
    struct text span = {all.p + found.start, found.end - found.start};
    bool named = found.kind != TRACEBACK_NONE && !f->stack;
    f->went_on |= named && (survived_is_mild(&found, all) || !survived_is_end(&found, &chain, all));
    f->gave_up |= named && survived_gave_up(&found, &chain, all);
    if (from == FAILURE_FROM_STDERR && all.n)
        f->raised = is_last_word(&found, &chain, all);
    if (from == FAILURE_FROM_STDERR && all.n) {
        find_before(f, &found, all);
        if (exiting_find(all, &before))
            traceback_put(f->unended, sizeof f->unended, &before);
    }
    if (found.kind == TRACEBACK_NONE && !f->tail) {
        failure_keep(f, &f->tail, span, TAIL_MAX, mem);
        f->tail_from = from;
        if (f->found.kind == TRACEBACK_NONE)
            f->found = found;
    } else if (named) {
        size_t at = survived_named_end(&found, &chain, all);
        keep_stack(f, span, mem);
        failure_keep(f, &f->behind, (struct text){all.p + at, all.n - at}, TAIL_MAX, mem);
        f->stack_from = from;
        f->found = found;
        if (!f->message)
            keep_message(f, found.kind == TRACEBACK_ABORT ? "" : found.type, found.message, mem);
    }
    el_buf_free(&clean);
}

void failure_add_stderr(struct failure *f, const char *bytes, size_t n, struct el_mem *mem)
{
    f->watch = FAILURE_WATCH_YES;
    add_stream(f, FAILURE_FROM_STDERR, bytes, n, mem);
}

void failure_add_stdout(struct failure *f, const char *bytes, size_t n, struct el_mem *mem)
{
    if (!f->stack)
        add_stream(f, FAILURE_FROM_STDOUT, bytes, n, mem);
}

void failure_silent_since(struct failure *f)
{
    if (f->found.kind == TRACEBACK_NONE)
        f->found.message[0] = 0;
}

void failure_lingered(struct failure *f)
{
    f->lingered = true;
}

void failure_add_times(struct failure *f, el_usec err_at, el_usec out_at)
{
    el_usec at = f->stack && f->stack_from == FAILURE_FROM_STDOUT ? out_at : err_at;
    f->quiet = at && f->at > at ? f->at - at : 0;
}

/* Its source says that this exception was caught.  One that says that a rank is gone is the reason of much that comes
 * behind it. */
static bool failure_is_over(const struct failure *f)
{
    return !classify_is_follower(f->words) || f->words_private;
}

/* The exception's message may have more lines, which are indented, as the keys of a state_dict that do not fit. */
static struct text behind_message(struct text t)
{
    struct text rest = t, line;
    while (text_line(&rest, &line) && (line_is_blank(line) || line.p[0] == ' ' || line.p[0] == '\t'))
        t = rest;
    return t;
}

void failure_add_handler(struct failure *f, enum handler handler, struct el_mem *mem)
{
    char *behind = f->behind;
    if (f->stack_from != FAILURE_FROM_STDERR) /* its error file has come meanwhile, and says more */
        return;
    f->handler = handler;
    f->raised &= handler != HANDLER_GOES_ON && handler != HANDLER_ELSEWHERE;
    if (handler != HANDLER_GOES_ON || !behind || !failure_is_over(f))
        return;
    traceback_put(f->survived, sizeof f->survived, &f->found);
    el_free(mem, f->stack);
    el_free(mem, f->message);
    f->stack = f->message = f->behind = NULL;
    f->found = (struct traceback){0};
    f->words = CLASSIFY_NONE;
    f->words_private = f->went_on = f->gave_up = f->logged = false;
    f->sign[0] = f->child[0] = 0;
    f->handler = HANDLER_UNKNOWN;
    const struct text after = behind_message((struct text){behind, strlen(behind)});
    add_stream(f, FAILURE_FROM_STDERR, after.p, after.n, mem);
    el_free(mem, behind);
}

/* --- the kernel's log --- */

/* "DataLoader worker (pid(s) 6069) exited unexpectedly": whether the message names this process. */
static bool names_pid(const struct failure *f, int pid)
{
    char number[16];
    int n = snprintf(number, sizeof number, "%d", pid);
    struct text t = {f->message, f->message ? strlen(f->message) : 0};
    for (const char *at; t.n && (at = text_find(t, "pid")) != NULL;) {
        at += 3;
        while (*at && strchr("(s): =", *at))
            at++;
        if (strncmp(at, number, (size_t)n) == 0 && (at[n] < '0' || at[n] > '9'))
            return true;
        t = (struct text){at, (size_t)(t.p + t.n - at)};
    }
    return false;
}

/* Lines that concern this worker: they name it, or no process at all. */
static bool concerns(const struct failure *f, const struct kmsg_log *log, const struct kmsg_fact *k)
{
    if (k->kind == KMSG_OOM || k->kind == KMSG_CRASH || k->pid)
        return log->pids_ours && (k->pid == f->pid || (k->kind == KMSG_OOM && names_pid(f, k->pid)));
    return true;
}

/* What names this worker counts more than what names nobody; then the graver one; then the first. */
static bool is_worse(const struct failure *f, const struct kmsg_fact *k)
{
    const struct xid *was = xid_of(f->xid), *is = xid_of(k->xid);
    if (!f->xid || f->xid_own != (k->pid != 0))
        return !f->xid_own;
    return is && (!was || is->action > was->action);
}

void failure_add_kernel(struct failure *f, const struct kmsg_log *log, struct el_mem *mem)
{
    struct el_buf lines = EL_BUF_INIT(mem, 0);
    unsigned kept = 0;
    for (unsigned i = 0; i < log->n; i++) {
        const struct kmsg_fact *k = &log->fact[i];
        if (!concerns(f, log, k))
            continue;
        f->witnessed |= k->kind == KMSG_XID && xid_is_suspect(k->xid);
        if (k->kind == KMSG_XID && is_worse(f, k)) {
            f->xid = k->xid;
            f->xid_own = k->pid != 0;
            text_copy(f->xid_device, sizeof f->xid_device, k->device, strlen(k->device));
        }
        if (kept++ < KERNEL_LINES_MAX)
            el_buf_printf(&lines, "%s%s", lines.len ? "\n" : "", k->text);
    }
    if (kmsg_of(log, KMSG_OOM, f->pid))
        f->oom = FAILURE_OOM_CHOSEN;
    else if (log->whole && log->pids_ours && !log->left_out && kmsg_count(log, KMSG_OOM))
        f->oom = FAILURE_OOM_OTHERS;
    f->texts_short |= lines.full;
    failure_keep(f, &f->kernel, (struct text){lines.v, lines.len}, KERNEL_LINES_MAX * KMSG_TEXT_MAX, mem);
    el_buf_free(&lines);
}

bool failure_is_crash(int number)
{
    return failure_limit_text(number) || number == SIGSEGV || number == SIGABRT || number == SIGBUS ||
           number == SIGILL || number == SIGFPE || number == SIGTRAP || number == SIGSYS || number == SIGPIPE;
}

/* The second the error file names had gone by when elrun sent its first signal. */
static bool failed_before_stop(const struct failure *f)
{
    return f->file_sec >= 0 && (f->file_sec + 1) * 1000000 <= f->stop_wall_usec;
}

/* It had printed why before elrun's signal, which ended it as a signal ends who does not catch it (it may have stood in
 * its own tear-down, or waited for a thread of its own), or came too late to do so. */
static bool raised_before_stop(const struct failure *f)
{
    bool own = f->raised && !caught_is_old(f) && !f->found.in_thread && !classify_is_follower(f->words) &&
               classify_class(f->words) != FAILURE_CLASS_OUTSIDE;
    return own && (f->end == FAILURE_SIGNAL ? !failure_is_crash(f->code)
                                            : f->end == FAILURE_EXIT && f->code == 1 && f->spoke_first);
}

/* A thread of it had ended by an exception, and it stood until elrun ended it. */
static bool stood_by_thread(const struct failure *f)
{
    return f->raised && !caught_is_old(f) && f->found.in_thread && f->end == FAILURE_SIGNAL &&
           !failure_is_crash(f->code) && !classify_is_follower(f->words);
}

bool failure_by_thread(const struct failure *f)
{
    return f->by == FAILURE_BY_ITSELF && f->follower && stood_by_thread(f);
}

bool failure_was_left(const struct failure *f)
{
    if (f->absent)
        return true;
    return f->end == FAILURE_SIGNAL && f->by == FAILURE_BY_ITSELF && (raised_before_stop(f) || stood_by_thread(f));
}

bool failure_by_exception(const struct failure *f)
{
    return f->end == FAILURE_EXIT || failure_was_left(f);
}

static enum failure_by who(const struct failure *f, bool stopped, bool oom_rose)
{
    /* The kernel says so itself: whatever elrun has sent, it came too late. */
    if (f->oom == FAILURE_OOM_CHOSEN && f->end == FAILURE_SIGNAL && f->code == SIGKILL)
        return FAILURE_BY_OOM;
    bool raised = raised_before_stop(f) || (stood_by_thread(f) && !f->hung);
    if (stopped && !failed_before_stop(f) && !raised)
        return FAILURE_BY_ELRUN;
    if (stopped && raised)
        return FAILURE_BY_ITSELF;
    /* 137 is what a shell around the program makes of the killer's SIGKILL. */
    bool killed =
        (f->end == FAILURE_SIGNAL && f->code == SIGKILL) || (f->end == FAILURE_EXIT && f->code == 128 + SIGKILL);
    /* With 137 it was a child of it: the log names that one. */
    bool others = f->end == FAILURE_SIGNAL && f->oom == FAILURE_OOM_OTHERS;
    if (killed && oom_rose && !others)
        return FAILURE_BY_OOM;
    bool crash = failure_is_crash(f->code) || failure_interrupts_itself(f);
    return f->end == FAILURE_SIGNAL && !crash ? FAILURE_BY_OUTSIDE : FAILURE_BY_ITSELF;
}

static void set_rule(struct failure *f, enum classify_rule rule)
{
    f->rule = rule;
    f->class = classify_class(rule);
    f->follower = classify_is_follower(rule);
    f->private_link = f->follower && rule == f->words && f->words_private;
}

/* Was it this program's own command line that was refused, and did that end it?  A helper's may be, long before. */
static void judge_usage(struct failure *f)
{
    const struct text tail = {f->tail, strlen(f->tail)};
    struct text line;
    const char *words = classify_usage_words(f->rule);
    enum survived_usage u =
        f->rule == CLASSIFY_ABSL_USAGE ? survived_help(tail, words) : survived_usage(tail, words, &line);
    bool lingered = f->lingered && f->code == 1 && f->rule <= CLASSIFY_TYPER_ASCII; /* argparse and click end with 2 */
    bool without =
        u == SURVIVED_USAGE_OPEN && usage_error_does_without((struct text){f->found.message, strlen(f->found.message)});
    f->went_on |= u != SURVIVED_USAGE_END;
    if (u == SURVIVED_USAGE_ERROR || lingered || without || f->helper)
        set_rule(f, CLASSIFY_NONE);
    if (u == SURVIVED_USAGE_ERROR && !f->survived[0])
        text_copy(f->survived, sizeof f->survived, line.p, line.n);
}

static void classify(struct failure *f, bool oom_rose)
{
    set_rule(f, f->words);
    if (f->stack && f->stack_from == FAILURE_FROM_FILE) /* written as the exception left the main function */
        f->went_on = f->lingered = false;
    if (f->by == FAILURE_BY_OOM || ((oom_rose || f->oom == FAILURE_OOM_CHOSEN) && classify_is_helper(f->rule))) {
        f->class = FAILURE_CLASS_OOM_HOST;
        f->follower = false;
        return;
    }
    /* A fault of some GPU of this host explains nothing where the program's own error is plain. */
    bool ran = f->by == FAILURE_BY_OUTSIDE && !f->witnessed; /* whatever it had printed */
    if (xid_is_suspect(f->xid) && (f->xid_own || (f->class != FAILURE_CLASS_CODE && !ran))) {
        f->class = FAILURE_CLASS_HARDWARE;
        f->follower = false;
        return;
    }
    bool met = f->class == FAILURE_CLASS_NETWORK || f->class == FAILURE_CLASS_CODE || f->class == FAILURE_CLASS_OOM_GPU;
    bool line = met && f->found.kind == TRACEBACK_NONE; /* a warning, an error that it went on after */
    if ((f->class == FAILURE_CLASS_HARDWARE || line) && f->by == FAILURE_BY_OUTSIDE) {
        f->sign[0] = line ? 0 : f->sign[0]; /* it stands among the last lines */
        set_rule(f, CLASSIFY_NONE);
    }
    if (f->rule == CLASSIFY_INTERRUPT && f->by == FAILURE_BY_ITSELF && f->end == FAILURE_SIGNAL)
        set_rule(f, CLASSIFY_NONE);
    if (caught_is_aside(f)) {
        f->aside = true;
        f->sign[0] = 0;
        set_rule(f, CLASSIFY_NONE);
    }
    if (f->rule == CLASSIFY_TYPE && !failure_by_exception(f)) /* an exception that did not end it */
        set_rule(f, CLASSIFY_NONE);
    if (f->rule == CLASSIFY_NONE && f->end == FAILURE_EXIT && f->found.kind == TRACEBACK_NONE)
        set_rule(f, classify_exit(f->code, f->tail));
    f->helper = f->tail && usage_error_is_of_other((struct text){f->tail, strlen(f->tail)}, f->program);
    if (f->tail && classify_is_usage(f->rule))
        judge_usage(f);
    if (f->end == FAILURE_NOT_STARTED && f->code == EL_EXIT_NOINPUT)
        f->class = FAILURE_CLASS_CODE;
    if (f->by == FAILURE_BY_OUTSIDE && f->class == FAILURE_CLASS_UNKNOWN)
        f->class = FAILURE_CLASS_OUTSIDE;
}

void failure_judge(struct failure *f, bool stopped, bool oom_rose)
{
    assert(f->end != FAILURE_EXIT || (f->code > 0 && f->code < 256));
    f->by = who(f, stopped, oom_rose);
    classify(f, oom_rose);
    if (f->by == FAILURE_BY_ELRUN && !f->follower && !f->witnessed) /* what it had printed has not ended it */
        set_rule(f, CLASSIFY_NONE);
    if (f->hung && f->by == FAILURE_BY_ELRUN) {
        f->class = FAILURE_CLASS_HANG;
        f->odd |= f->thread[0] || f->unended[0];
    } else if (stopped && f->by == FAILURE_BY_ITSELF && stood_by_thread(f)) {
        f->follower = true; /* likely, not known: whoever has failed by itself comes first */
    }
    f->private_link |= f->follower && f->thread[0];
}
