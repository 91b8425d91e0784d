#include "failure/traceback.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "failure/last_line.h"
#include "failure/traceback_line.h"
#include "util/array.h"

enum {
    FOREIGN_MAX = 8,  /* lines of others tolerated inside a traceback */
    MESSAGE_MAX = 60, /* lines that the message of an exception may have */
    NEAR_LINES = 6,   /* so near behind an uncaught exception an abort is its consequence */
    LINES_MAX =
        300000 /* lines looked at in all, again ones too: a text can be made so that every line starts a search */
};

/* How much a find says about the end of the program. */
#define GO_LINES_MAX 60u /* of one goroutine */

enum weight { IGNORED, SHELL, THREAD, MAIN }; /* SHELL: what a shell around the program says */

struct find {
    struct traceback t;
    struct text type, message;
    struct text leaf;        /* of a group: the first exception that is no group itself */
    struct line_frame frame; /* the one to show */
    bool has_frame;
    bool at_work; /* of stacks: the script's own code was still running */
    enum weight weight;
    struct text header;           /* the line in front of it: "Exception in thread …" */
    unsigned message_lines;       /* behind the first; C++ stacks do not count */
    size_t block_start;           /* of its own part, where t.start is that of the chain */
    size_t words_end;             /* 0 = where the find ends */
    struct traceback_chain chain; /* up to and with this one */
};

struct finder {
    struct text all;
    size_t pos;         /* next line not looked at */
    struct text before; /* the last line that was not blank, outside any find */
    bool chain_open;
    enum traceback_link chain_link; /* what the line that opened it says */
    struct traceback_chain last_chain;
    enum weight last_weight;
    struct text last_header;
    size_t last_start, last_end; /* of the newest complete find */
    bool nested;
    struct find best;
    bool has_best;
    unsigned lines_since_best;
    unsigned lines_seen;
    size_t barren; /* up to here a search without a header found nothing: none of its lines needs another */
};

static bool peek(struct finder *f, size_t pos, struct text *line, size_t *next)
{
    assert(pos <= f->all.n);
    struct text rest = {f->all.p + pos, f->all.n - pos};
    if (f->lines_seen == LINES_MAX || !text_line(&rest, line))
        return false;
    f->lines_seen++;
    *next = (size_t)(rest.p - f->all.p);
    return true;
}

/* Of the frames of one stack: the user's own is shown, else any.  last: the innermost comes last, else first. */
static void take_frame(struct find *x, const struct line_frame *frame, bool last)
{
    /* Torch's handler of SIGCHLD: where the program stood just then is no place of the error. */
    static const char file[] = "torch/utils/data/_utils/signal_handling.py";
    bool handler = frame->file.n >= sizeof file - 1 &&
                   memcmp(frame->file.p + frame->file.n - (sizeof file - 1), file, sizeof file - 1) == 0;
    bool better = !x->has_frame || handler || (frame->user && !x->frame.user) || (last && frame->user == x->frame.user);
    if (better)
        x->frame = *frame;
    x->has_frame = true;
}

/* Further lines of the exception's message, from *pos on.  The first that is not empty stands in for an empty message.
 */
static void traceback_take_message(struct finder *f, struct find *x, struct text prefix, size_t *pos)
{
    struct text line, inside;
    size_t next;
    x->t.end = *pos;
    for (unsigned i = 0; i < MESSAGE_MAX && peek(f, *pos, &line, &next); *pos = next) {
        i += !line.n || (line.p[0] != ' ' && line.p[0] != '\t'); /* lists of keys have one in each line */
        if (!line_strip(line, prefix, &inside) || line_is_foreign(inside))
            break;
        struct line_frame frame;
        if (line_is_frame(inside, &frame))
            break;
        if (line_is_blank(inside))
            continue;
        if (last_line_is_hint(inside)) /* Hydra's, behind the exception */
            break;
        if (!x->message.n)
            x->message = inside;
        x->message_lines += !text_starts(inside, "frame #") && !text_starts(inside, "Exception raised from");
        x->t.end = next;
    }
    *pos = x->t.end;
}

/* Frames and the exception behind them, from pos on; pos is behind the block if there is one. */
static bool take_python(struct finder *f, struct find *x, struct text prefix, size_t *pos)
{
    struct text line, inside;
    size_t next;
    bool framed = x->has_frame;
    for (unsigned foreign = 0; peek(f, *pos, &line, &next); *pos = next) {
        struct line_frame frame;
        if (!line_strip(line, prefix, &inside)) {
            if (++foreign > FOREIGN_MAX)
                return false;
            continue;
        }
        if (line_is_frame(inside, &frame)) {
            take_frame(x, &frame, true);
            framed = true;
            foreign = 0;
        } else if (line_is_blank(inside) || inside.p[0] == ' ' || inside.p[0] == '\t') {
            continue;
        } else if (line_is_exception(inside, !framed || foreign || x->t.headless, &x->type, &x->message)) {
            *pos = next;
            traceback_take_message(f, x, prefix, pos);
            return true;
        } else if (++foreign > FOREIGN_MAX || text_find(inside, "(most recent call ")) {
            return false;
        }
    }
    return false;
}

/* rich.traceback: frames in a box, the exception below it. */
static bool traceback_take_box(struct finder *f, struct find *x, size_t *pos)
{
    struct text line;
    size_t next;
    for (; peek(f, *pos, &line, &next) && line_is_box(line); *pos = next) {
        struct line_frame frame;
        if (line_is_box_frame(line, &frame))
            take_frame(x, &frame, true);
    }
    if (!peek(f, *pos, &line, pos)) /* the lower edge */
        return false;
    return take_python(f, x, (struct text){0}, pos);
}

/* A line of a group: its bars taken off.  Blank inside = nothing behind the bars. */
static bool group_strip(struct text line, struct text *inside)
{
    size_t i = 0;
    while (i < line.n && line.p[i] == ' ')
        i++;
    if (!i || i >= line.n || (line.p[i] != '|' && line.p[i] != '+'))
        return false;
    i++;
    if (i < line.n && line.p[i] == ' ')
        i++;
    *inside = (struct text){line.p + i, line.n - i};
    return true;
}

static bool is_lost_connection(struct text t)
{
    return text_find(t, "Connection reset by peer") || text_find(t, "Connection closed by peer") ||
           text_starts(t, "BrokenPipeError") || text_starts(t, "ConnectionAbortedError") ||
           text_starts(t, "ConnectionResetError");
}

/* An exception group: its own exception names the type; the first leaf is what the user wants to read, with the frame
 * of that one.  A lost connection is rather the consequence of another leaf. */
static bool traceback_take_group(struct finder *f, struct find *x, struct text prefix, size_t *pos)
{
    struct text line, bare, inside, type, message;
    size_t next;
    bool named = false, lost = false; /* lost: the leaf only tells of a connection */
    struct find member = {0};
    x->t.kind = TRACEBACK_GROUP;
    for (; peek(f, *pos, &line, &next); *pos = next) {
        struct line_frame frame;
        if (!line_strip(line, prefix, &bare) || !group_strip(bare, &inside))
            break;
        x->t.end = next;
        if (line_is_frame(inside, &frame)) {
            take_frame(named ? &member : x, &frame, true);
        } else if (inside.n && inside.p[0] != ' ' && line_is_exception(inside, true, &type, &message)) {
            if (!named) {
                x->type = type;
                x->message = message;
                named = true;
            } else if (!text_find(type, "ExceptionGroup") && (!x->leaf.n || (lost && !is_lost_connection(inside)))) {
                lost = is_lost_connection(inside);
                x->leaf = inside;
                x->frame = member.has_frame ? member.frame : x->frame;
            }
            member.has_frame = false;
        }
    }
    return named;
}

/* faulthandler: "Fatal Python error: …", then the stacks of all threads, the innermost frame first. */
static void take_stacks(struct finder *f, struct find *x, struct text prefix, size_t *pos)
{
    struct text line, inside;
    size_t next;
    bool current = false, seen_current = false;
    for (; peek(f, *pos, &line, &next); *pos = next) {
        struct line_frame frame;
        if (!line_strip(line, prefix, &inside))
            break;
        if (line_is_blank(inside))
            continue;
        bool stack = text_find(inside, "(most recent call first)") != NULL;
        if (stack) {
            current = text_starts(inside, "Current thread");
            if (current && !seen_current)
                x->has_frame = false; /* frames of other threads were only a stand-in */
            seen_current |= current;
        } else if (line_is_frame(inside, &frame)) {
            x->at_work |= text_starts(frame.function, "<module>");
            if (current || !seen_current)
                take_frame(x, &frame, false);
        } else if (inside.p[0] != ' ' && !text_starts(inside, "Extension modules:") &&
                   !text_starts(inside, "Python runtime state:")) {
            break;
        }
        x->t.end = next;
    }
    *pos = x->t.end;
}

static void take_fatal(struct finder *f, struct find *x, struct text line, const char *at, size_t *pos)
{
    static const char head[] = "Fatal Python error: ";
    struct text prefix = {line.p, (size_t)(at - line.p)};
    size_t skip = prefix.n + sizeof head - 1;
    x->t.kind = TRACEBACK_FATAL;
    x->type = (struct text){at, sizeof head - 3};
    x->message = (struct text){line.p + skip, line.n - skip};
    x->words_end = x->t.end = *pos;
    take_stacks(f, x, prefix, pos);
}

/* faulthandler.dump_traceback_later(): "Timeout (0:01:00)!", then the stacks. */
static void take_timeout(struct finder *f, struct find *x, struct text line, size_t *pos)
{
    x->t.kind = TRACEBACK_FATAL;
    x->type = (struct text){line.p, 7};
    x->message = (struct text){"faulthandler's time limit ran out", 33};
    x->words_end = x->t.end = *pos;
    take_stacks(f, x, (struct text){line.p, 0}, pos);
}

static void take_abort(struct finder *f, struct find *x, enum line_abort what, size_t *pos)
{
    struct text line;
    size_t next;
    x->t.kind = what == LINE_CPLUS ? TRACEBACK_CPLUS : TRACEBACK_ABORT;
    x->t.end = *pos;
    if (text_find(x->message, "(core dumped)"))
        x->weight = SHELL;
    if (what != LINE_CPLUS || !peek(f, *pos, &line, &next))
        return;
    if (text_starts(line, "  what():  ")) {
        x->message = (struct text){line.p + 11, line.n - 11};
        *pos = next;
        traceback_take_message(f, x, (struct text){0}, pos);
    }
}

/* glog and Abseil: the failed check is told in the line before, and the stack of C++ follows.  False: nothing was. */
static bool take_check(struct finder *f, struct find *x, size_t *pos)
{
    struct text line;
    size_t next;
    if (!f->before.n)
        return false;
    x->t.kind = TRACEBACK_ABORT;
    x->type = (struct text){"abort", 5};
    x->message = f->before;
    x->block_start = x->t.start = (size_t)(f->before.p - f->all.p);
    while (peek(f, *pos, &line, &next) && text_starts(line, "    @ "))
        *pos = next;
    x->t.end = *pos;
    return true;
}

/* Rust's words stand in the line of the place, or in the next one. */
static bool take_rust_panic(struct finder *f, struct find *x, struct text line, size_t *pos)
{
    bool in_main;
    size_t next;
    if (!line_is_rust_panic(line, &x->frame, &in_main, &x->message))
        return false;
    x->t.kind = TRACEBACK_PANIC;
    x->type = (struct text){"panic", 5};
    x->has_frame = true;
    x->weight = in_main ? MAIN : THREAD;
    if (!x->message.n && peek(f, *pos, &line, &next)) {
        x->message = line;
        *pos = next;
    }
    x->t.end = *pos;
    return true;
}

/* Go's words are followed by the stacks of its goroutines, that of the one which panicked first.  Without any it is
 * somebody else's line. */
static bool take_go_panic(struct finder *f, struct find *x, struct text line, size_t *pos)
{
    static const char *const starts[] = {"panic: ", "fatal error: "};
    struct text message = {line.p, 0}, rest;
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        if (text_starts(line, starts[i]))
            message = (struct text){line.p + strlen(starts[i]), line.n - strlen(starts[i])};
    bool running = false;
    size_t at = *pos, next;
    for (unsigned n = 0; message.n && n < GO_LINES_MAX && peek(f, at, &rest, &next); n++, at = next) {
        struct line_frame frame;
        bool is_frame = running && line_is_go_frame(rest, &frame);
        if (is_frame && (!x->has_frame || (frame.user && !x->frame.user)))
            take_frame(x, &frame, false);
        if (running && line_is_blank(rest)) /* the other goroutines only wait */
            break;
        running |= text_starts(rest, "goroutine ");
    }
    if (!running)
        return false;
    x->t.kind = TRACEBACK_PANIC;
    x->type = (struct text){"panic", 5};
    x->message = message;
    *pos = x->t.end = at;
    return true;
}

/* torchrun inside this worker: what it says about its own worker, from the table's root cause. */
static void take_nested_table(struct find *x, struct text all)
{
    struct text span = {all.p + x->t.start, x->t.end - x->t.start}, line;
    bool cause = false;
    while (text_line(&span, &line)) {
        cause |= text_find(line, "Root Cause (") != NULL;
        if (cause && text_starts(line, "  exitcode")) {
            x->message = (struct text){line.p + 2, line.n - 2};
            return;
        }
    }
}

static enum weight weight_of(struct text before)
{
    if (text_find(before, "Exception ignored in"))
        return IGNORED;
    if (text_find(before, "Exception in thread ") || text_starts(before, "Process Process-") ||
        text_starts(before, "Process SpawnProcess-") || text_starts(before, "Process ForkProcess-"))
        return THREAD;
    return MAIN;
}

/* An abort's lines directly in front of faulthandler's stacks belong to it: the words of the one, the frames of the
 * other. */
static bool merge_abort(struct finder *f, const struct find *x)
{
    if (!f->has_best || x->t.kind != TRACEBACK_FATAL || f->lines_since_best > 2)
        return false;
    if (f->best.t.kind != TRACEBACK_CPLUS && f->best.t.kind != TRACEBACK_ABORT)
        return false;
    f->best.t.end = x->t.end;
    f->best.frame = x->frame;
    f->best.has_frame = x->has_frame;
    return true;
}

/* Adds the find's own exception behind those that led to it. */
static void chain_add(struct finder *f, struct find *x)
{
    struct traceback_chain *c = &x->chain;
    if (x->t.chained) {
        *c = f->last_chain;
        if (c->n)
            c->v[c->n - 1].link = f->chain_open ? f->chain_link : TRACEBACK_INNER;
    }
    if (c->n == TRACEBACK_CHAIN_MAX) {
        memmove(c->v, c->v + 1, sizeof c->v[0] * (TRACEBACK_CHAIN_MAX - 1));
        c->n--;
    }
    const char *from = x->type.p, *end = f->all.p + (x->words_end ? x->words_end : x->t.end);
    if (x->t.kind == TRACEBACK_ABORT || x->t.kind == TRACEBACK_CPLUS || x->t.kind == TRACEBACK_PANIC)
        /* "abort" does not stand in the text */
        from = f->all.p + x->block_start;
    assert(from >= f->all.p && from < end);
    c->v[c->n++] = (struct traceback_exception){TRACEBACK_LAST, x->type, {from, (size_t)(end - from)}};
    f->last_chain = *c;
}

static void consider(struct finder *f, struct find *x)
{
    x->t.in_thread = x->weight == THREAD;
    x->t.in_process = x->t.in_thread && text_starts(x->header, "Process ");
    chain_add(f, x);
    f->last_start = x->t.start;
    f->last_end = x->t.end;
    f->last_weight = x->weight;
    f->last_header = x->header;
    bool launcher = x->type.n >= 16 && memcmp(x->type.p + x->type.n - 16, "ChildFailedError", 16) == 0;
    f->nested |= launcher;
    if (launcher)
        take_nested_table(x, f->all);
    if (x->weight == IGNORED || merge_abort(f, x))
        return;
    if (f->has_best && (launcher || x->weight < f->best.weight))
        return;
    bool best_is_python = f->best.t.kind == TRACEBACK_PYTHON || f->best.t.kind == TRACEBACK_GROUP;
    bool crash = x->t.kind == TRACEBACK_CPLUS || x->t.kind == TRACEBACK_ABORT || x->t.kind == TRACEBACK_FATAL;
    /* Where the script's code still ran, the exception was caught: it cannot be what the interpreter died of. */
    if (f->has_best && crash && !x->at_work && best_is_python && f->best.weight == MAIN &&
        f->lines_since_best + f->best.message_lines <= NEAR_LINES)
        return; /* an uncaught exception, then the interpreter tore itself apart: the exception came first */
    f->best = *x;
    f->has_best = true;
    f->lines_since_best = 0;
}

/* Where the block's other lines begin with what stands in front of the header, that is a prefix; else it is only the
 * header's own ("Original Traceback …"). */
static struct text prefix_of(struct finder *f, struct text line, const char *at, size_t next)
{
    struct text prefix = {line.p, (size_t)(at - line.p)}, second, inside;
    static const char table[] = "  traceback : ";
    if (prefix.n == sizeof table - 1 && memcmp(prefix.p, table, prefix.n) == 0)
        prefix.n = 2; /* inside a launcher's table, which is indented by two */
    size_t after;
    struct line_frame frame;
    if (peek(f, next, &second, &after) && line_strip(second, prefix, &inside) && line_is_frame(inside, &frame))
        return prefix;
    return (struct text){0};
}

/* Is this traceback part of the message of the one before?  "RuntimeError: Caught … in DataLoader worker\nOriginal
 * Traceback …", "ProcessRaisedException:\n-- Process 1 terminated with the following error:\nTraceback …". */
static bool is_inner(const struct finder *f, struct text line, size_t start)
{
    if (!f->last_end || f->last_end != start)
        return false;
    size_t end = f->last_end;
    while (end > f->last_start && (f->all.p[end - 1] == '\n' || f->all.p[end - 1] == ' '))
        end--;
    return text_starts(line, "Original Traceback (most") || (end && f->all.p[end - 1] == ':');
}

/* A block that begins in this line is taken whole: true, and pos is behind it. */
static bool try_block(struct finder *f, struct text line, size_t start, size_t next, size_t *pos)
{
    bool chained = f->chain_open || is_inner(f, line, start);
    struct find x = {.t = {.start = chained ? f->last_start : start, .chained = chained}, .block_start = start};
    x.header = chained ? f->last_header : f->before;
    x.weight = chained ? f->last_weight : weight_of(f->before);
    const char *at;
    enum line_abort what;
    static const char group[] = "  + Exception Group ";
    *pos = next;
    if ((at = text_find(line, "Traceback (most recent call last)"))) {
        size_t before = (size_t)(at - line.p);
        x.t.kind = TRACEBACK_PYTHON;
        if (before >= sizeof group - 1 && memcmp(at - (sizeof group - 1), group, sizeof group - 1) == 0) {
            if (!traceback_take_group(f, &x, (struct text){line.p, before - (sizeof group - 1)}, pos))
                return false;
        } else if (line_opens_box(line)) {
            if (!traceback_take_box(f, &x, pos))
                return false;
        } else if (!text_starts((struct text){at, line.n - before}, "Traceback (most recent call last):") ||
                   !take_python(f, &x, prefix_of(f, line, at, next), pos)) {
            return false;
        }
    } else if ((at = text_find(line, "Fatal Python error: "))) {
        take_fatal(f, &x, line, at, pos);
    } else if (text_starts(line, "*** Check failure stack trace: ***")) {
        if (chained || !take_check(f, &x, pos))
            return false;
    } else if (text_starts(line, "Timeout (") && line.p[line.n - 1] == '!') {
        take_timeout(f, &x, line, pos);
    } else if ((what = line_is_abort(line, &x.type, &x.message))) {
        take_abort(f, &x, what, pos);
    } else if (take_rust_panic(f, &x, line, pos) || take_go_panic(f, &x, line, pos)) {
        ;
    } else if ((at = text_find(line, "File \"")) && at - line.p >= 2) {
        struct line_frame frame;
        at -= 2; /* a frame is indented by two */
        struct text prefix = {line.p, (size_t)(at - line.p)};
        if (!line_is_frame((struct text){at, line.n - prefix.n}, &frame) || text_find(f->before, "Stack (most recent "))
            return false;
        *pos = start;
        x.t.kind = frame.function.n ? TRACEBACK_PYTHON : TRACEBACK_SYNTAX;
        x.t.headless = frame.function.n > 0;
        if (start < f->barren || !take_python(f, &x, prefix, pos)) {
            f->barren = *pos > f->barren ? *pos : f->barren;
            return false;
        }
    } else {
        return false;
    }
    consider(f, &x);
    return true;
}

static void traceback_finish(struct finder *f, struct traceback *t)
{
    const struct find *x = &f->best;
    *t = x->t;
    t->nested = f->nested;
    text_copy(t->type, sizeof t->type, x->type.p, x->type.n);
    text_copy(t->message, sizeof t->message, x->message.p, x->message.n);
    size_t used = strlen(t->message);
    if (x->leaf.n && used + 8 < sizeof t->message) {
        memcpy(t->message + used, "; ", 2);
        text_copy(t->message + used + 2, sizeof t->message - used - 2, x->leaf.p, x->leaf.n);
    }
    if (x->has_frame) {
        text_copy(t->file, sizeof t->file, x->frame.file.p, x->frame.file.n);
        text_copy(t->function, sizeof t->function, x->frame.function.p, x->frame.function.n);
        t->line = x->frame.line;
        t->user_frame = x->frame.user;
    }
}

/* Nothing was found: the last lines that are not blank. */
static void traceback_last_lines(struct traceback *t, struct text all)
{
    size_t end = all.n;
    while (end && (all.p[end - 1] == '\n' || all.p[end - 1] == ' ' || all.p[end - 1] == '\t'))
        end--;
    size_t start = end;
    for (unsigned lines = 0; start && lines < TRACEBACK_LAST_LINES; lines++) {
        while (start && all.p[start - 1] != '\n')
            start--;
        if (start && lines + 1 < TRACEBACK_LAST_LINES)
            start--;
    }
    t->start = start;
    t->end = end < all.n && all.p[end] == '\n' ? end + 1 : end;
    last_line_tell((struct text){all.p + start, end - start}, t->message, sizeof t->message);
}

void traceback_put(char *to, size_t size, const struct traceback *t)
{
    const char *slash = strrchr(t->file, '/'), *name = slash ? slash + 1 : t->file;
    char type[64], message[110], file[40];
    text_copy(type, sizeof type, t->type, strlen(t->type));
    text_copy(message, sizeof message, t->message, strlen(t->message));
    text_copy(file, sizeof file, name, strlen(name));
    int n = snprintf(to, size, "%s%s%s", type, *type && *message ? ": " : "", message);
    if (t->line)
        snprintf(to + n, size - (size_t)n, " (%s:%u)", file, t->line);
}

void traceback_find(struct traceback *t, const char *text, size_t n)
{
    struct traceback_chain chain;
    traceback_find_chain(t, &chain, text, n);
}

void traceback_find_chain(struct traceback *t, struct traceback_chain *c, const char *text, size_t n)
{
    struct finder f = {.all = {text, n}};
    struct text line;
    size_t next;
    memset(t, 0, sizeof *t);
    c->n = 0;
    while (peek(&f, f.pos, &line, &next)) {
        size_t pos;
        if (try_block(&f, line, f.pos, next, &pos)) {
            assert(pos > f.pos);
            f.pos = pos;
            f.chain_open = false;
            f.before = (struct text){0};
            continue;
        }
        if (line_is_chain(line) && f.last_end) {
            f.chain_open = true;
            f.chain_link = text_find(line, "direct cause") ? TRACEBACK_CAUSE : TRACEBACK_CONTEXT;
        } else if (!line_is_blank(line)) {
            f.chain_open = false;
            f.before = line;
            f.lines_since_best++;
        }
        f.pos = next;
    }
    if (f.has_best) {
        traceback_finish(&f, t);
        *c = f.best.chain;
    } else {
        traceback_last_lines(t, f.all);
    }
    assert(t->start <= t->end && t->end <= n);
}
