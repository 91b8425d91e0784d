#include "failure/classify.h"

#include <assert.h>
#include <string.h>

#include "failure/last_line.h"
#include "failure/traceback_line.h"
#include "sys/xid.h"
#include "util/array.h"

#define FATAL_MAX 1024

enum {
    NEAR_LINES = 20
}; /* before the exception, or before the end where there is none: what stands there may tell of it */

enum scope { TYPE, WORDS, FRAME, LINE };

static const struct classify_row {
    const char *name, *a, *b, *advice;
    enum scope scope;
    enum failure_class class;
    bool follower;
    int code;
} rows[CLASSIFY_COUNT] = {[CLASSIFY_NONE] = {.name = ""},
                          [CLASSIFY_TYPE] = {.name = "TYPE", .advice = "", .class = FAILURE_CLASS_CODE},
#define X(name, scope, a, b, class, follower, advice)                                                                  \
    [CLASSIFY_##name] = {#name, a, b, advice, scope, FAILURE_CLASS_##class, follower, 0},
                          FAILURE_RULES(X)
#undef X
#define X(name, a, b)                                                                                                  \
    [CLASSIFY_##name] = {#name, a, b, FAILURE_ADVICE_USAGE, WORDS, FAILURE_CLASS_CODE, false, FAILURE_ANY_CODE},
                              FAILURE_USAGES(X)
#undef X
#define X(name, code, a, b, class, advice)                                                                             \
    [CLASSIFY_##name] = {#name, a, b, advice, WORDS, FAILURE_CLASS_##class, false, code},
                                  FAILURE_EXITS(X)
#undef X
};

static const enum classify_rule FIRST_ROW = CLASSIFY_TYPE + 1;

static bool is_text_row(enum classify_rule r)
{
    return r >= FIRST_ROW && !rows[r].code;
}

static struct text classify_last_part(struct text type)
{
    for (size_t i = type.n; i > 0; i--)
        if (type.p[i - 1] == '.')
            return (struct text){type.p + i, type.n - i};
    return type;
}

static bool classify_is_equal(struct text t, const char *s)
{
    return strlen(s) == t.n && (!t.n || memcmp(t.p, s, t.n) == 0);
}

static bool classify_has(struct text t, const char *what)
{
    return !*what || (t.n && text_find(t, what));
}

static bool is_open(struct text type)
{
    static const char *const open[] = {
#define X(name) name,
        FAILURE_OPEN_TYPES(X)
#undef X
    };
    for (size_t i = 0; i < COUNT_OF(open); i++)
        if (classify_is_equal(type, open[i]))
            return true;
    return false;
}

/* The line of `all` in which the place lies. */
static struct text line_at(struct text all, const char *at)
{
    const char *from = at, *end = memchr(at, '\n', (size_t)(all.p + all.n - at));
    while (from > all.p && from[-1] != '\n')
        from--;
    return (struct text){from, (size_t)((end ? end : all.p + all.n) - from)};
}

/* "ECC errors: 0" */
static bool classify_is_none(struct text behind)
{
    size_t i = 0;
    while (i < behind.n && (behind.p[i] == 's' || behind.p[i] == ' '))
        i++;
    if (i >= behind.n || (behind.p[i] != ':' && behind.p[i] != '='))
        return false;
    i++;
    while (i < behind.n && behind.p[i] == ' ')
        i++;
    return i < behind.n && behind.p[i] == '0' && (i + 1 == behind.n || behind.p[i + 1] < '0' || behind.p[i + 1] > '9');
}

/* Letters of ASCII alone: no locale. */
static bool is_lower(struct text word, const char *lower)
{
    for (size_t i = 0; i < word.n; i++)
        if ((word.p[i] >= 'A' && word.p[i] <= 'Z' ? word.p[i] - 'A' + 'a' : word.p[i]) != lower[i])
            return false;
    return true;
}

static bool is_denial(struct text word)
{
    static const char *const denials[] = {"no",        "not",      "without",  "zero",   "never",   "none",
                                          "pass",      "passed",   "if",       "unless", "whether", "checking",
                                          "watching",  "example",  "e.g.",     "usage",  "help",    "simulate",
                                          "simulated", "survived", "recovered"};
    for (size_t i = 0; i < COUNT_OF(denials); i++)
        if (word.n == strlen(denials[i]) && is_lower(word, denials[i]))
            return true;
    return false;
}

/* Within quotation marks of this kind: one was opened before, behind no letter, and not closed, and is behind. */
static bool classify_is_within(struct text before, struct text behind, char mark)
{
    bool open = false;
    for (size_t i = 0; i < before.n; i++)
        if (before.p[i] == mark) {
            char left = i ? before.p[i - 1] : ' ';
            bool word = (left >= 'a' && left <= 'z') || (left >= 'A' && left <= 'Z') || (left >= '0' && left <= '9');
            open = !open && !word;
        }
    return open && behind.n && memchr(behind.p, mark, behind.n);
}

/* "no uncorrectable ECC errors", "checking for …", "'…'": the words are there, and nobody says that it is so. */
static bool is_denied(struct text line, const char *at, size_t n)
{
    struct text before = {line.p, (size_t)(at - line.p)}, behind = {at + n, (size_t)(line.p + line.n - at) - n};
    if (classify_is_within(before, behind, '"') || classify_is_within(before, behind, '`') ||
        classify_is_within(before, behind, '\''))
        return true;
    for (size_t i = 0, end; i < before.n; i = end + 1) {
        for (end = i; end < before.n && !strchr(" \t,;:!()[]=", before.p[end]);)
            end++;
        struct text word = {before.p + i, end - i};
        if (is_denial(word) || (classify_is_equal(word, "0") && end + 1 == before.n))
            return true;
    }
    return classify_is_none(behind);
}

/* Do both texts stand in one line?  Of several the last. */
static bool find_line(struct text near, const char *a, const char *b, struct text *found)
{
    bool any = false;
    struct text rest = near;
    for (const char *at; rest.n && (at = text_find(rest, a));) {
        struct text line = line_at(near, at);
        if (classify_has(line, b) && !is_denied(line, at, strlen(a))) {
            *found = line;
            any = true;
        }
        const char *next = line.p + line.n;
        rest = (struct text){next, (size_t)(near.p + near.n - next)};
    }
    return any;
}

enum classify_kind { NOT_KNOWN, CLEAR, PLAIN };

static enum classify_kind code_kind(struct text type)
{
    static const struct {
        const char *name;
        bool plain;
    } kinds[] = {
#define X(name, plain) {name, plain},
        FAILURE_CODE_TYPES(X)
#undef X
    };
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (classify_is_equal(type, kinds[i].name))
            return kinds[i].plain ? PLAIN : CLEAR;
    return NOT_KNOWN;
}

/* May the connection be one that the program made itself? */
static bool is_any_connection(enum classify_rule r)
{
    static const enum classify_rule any[] = {
#define X(name) CLASSIFY_##name,
        FAILURE_ANY_CONNECTION(X)
#undef X
    };
    for (size_t i = 0; i < COUNT_OF(any); i++)
        if (r == any[i])
            return true;
    return false;
}

/* Who catches the loss of a peer raises an error of whichever type, with its words in it.  No other text has them. */
static bool is_told_again(enum classify_rule r)
{
    return rows[r].follower && !is_any_connection(r);
}

/* "Unable to allocate 72.8 TiB", "you tried to allocate 80000000000000 bytes": ten TiB and more, or about. */
static bool is_huge(struct text words)
{
    static const char asked[] = "you tried to allocate ";
    const char *at = text_find(words, asked), *end = words.p + words.n;
    unsigned digits = 0;
    if (text_find(words, " PiB for an array") || text_find(words, " EiB for an array"))
        return true;
    if (at) {
        for (at += sizeof asked - 1; at < end && *at >= '0' && *at <= '9'; at++)
            digits++;
        return digits >= 14;
    }
    if (!(at = text_find(words, " TiB for an array")))
        return false;
    while (at > words.p && at[-1] >= '0' && at[-1] <= '9')
        at--, digits++;
    if (at > words.p && at[-1] == '.')
        for (at--, digits = 0; at > words.p && at[-1] >= '0' && at[-1] <= '9';)
            at--, digits++;
    return digits >= 2;
}

/* One exception: its row, or TYPE, or NONE.  typed: only a Python exception's type means anything by itself. */
static enum classify_rule classify_match(struct text type, struct text words, struct text frames, bool typed)
{
    const struct text name = classify_last_part(type);
    const bool quoting = typed && code_kind(name) != NOT_KNOWN;
    for (enum classify_rule r = FIRST_ROW; r < CLASSIFY_COUNT && is_text_row(r); r++) {
        const struct classify_row *x = &rows[r];
        struct text line;
        bool fits = false;
        switch (x->scope) {
        case TYPE: fits = classify_is_equal(name, x->a) && classify_has(words, x->b); break;
        case FRAME: fits = classify_is_equal(name, x->a) && classify_has(frames, x->b); break;
        case LINE:
        case WORDS:
            fits = (!quoting || is_told_again(r)) &&
                   (x->scope == LINE && !*x->b ? find_line(words, x->a, "", &line)
                                               : classify_has(words, x->a) && classify_has(words, x->b));
            break;
        }
        if (fits && (r == CLASSIFY_NUMPY_OOM || r == CLASSIFY_CPU_OOM) && is_huge(words))
            return CLASSIFY_HUGE_OOM;
        if (fits)
            return r;
    }
    return typed && name.n && !is_open(name) ? CLASSIFY_TYPE : CLASSIFY_NONE;
}

/* A line of a group without its bars. */
static struct text bare(struct text line)
{
    size_t i = 0;
    while (i < line.n && (line.p[i] == ' ' || line.p[i] == '|' || line.p[i] == '+'))
        i++;
    return (struct text){line.p + i, line.n - i};
}

/* An exception group: its first exception that is none itself, else any that a row fits.  A lost connection is rather
 * the consequence of another one: it counts only if all are such. */
static enum classify_rule match_group(struct text words)
{
    struct text line, type, message;
    bool first = true;
    enum classify_rule lost = CLASSIFY_NONE;
    while (text_line(&words, &line)) {
        struct text inside = bare(line);
        /* Frames and source lines are indented by two more than what is between the bars. */
        if (inside.p - line.p > 1 && inside.p[-1] == ' ' && inside.p[-2] == ' ' && inside.p - line.p > 4 &&
            inside.p[-3] == ' ')
            continue;
        if (!line_is_exception(inside, true, &type, &message) || text_find(type, "ExceptionGroup"))
            continue;
        enum classify_rule r = classify_match(type, inside, (struct text){0}, true);
        if (rows[r].follower) {
            lost = lost == CLASSIFY_NONE ? r : lost;
            continue;
        }
        if (is_text_row(r) || (first && r == CLASSIFY_TYPE))
            return r;
        first = false;
    }
    return first ? lost : CLASSIFY_NONE;
}

/* An exception that was made of one that passes by itself: "DatasetGenerationError" of an HTTP 429.  What was raised
 * while that was being handled counts only if it is no program error of Python's own. */
static bool is_made_of(enum classify_rule best, enum classify_rule r, const struct traceback_exception *e,
                       const struct traceback_exception *last)
{
    bool foreign = code_kind(classify_last_part(last->type)) == NOT_KNOWN;
    return best == CLASSIFY_TYPE && classify_is_passing(r) && (e->link == TRACEBACK_CAUSE || foreign);
}

/* Says r, of an exception that led to the next one by this link, more than best, which is of a later one? */
static bool improves(enum classify_rule best, enum classify_rule r, const struct traceback_exception *e)
{
    if (best == CLASSIFY_LOADER_GONE && r == CLASSIFY_LOADER_EXIT) /* how it ended, and the queue that it left */
        return true;
    if (r == CLASSIFY_NONE || (best != CLASSIFY_NONE && (!rows[best].follower || rows[r].follower)))
        return false;
    /* What was being handled need not be the reason: a key that was not in a cache never is. */
    return e->link != TRACEBACK_CONTEXT || is_text_row(r) || code_kind(classify_last_part(e->type)) == CLEAR;
}

/* Is the innermost frame the user's, or that of a library that makes no collectives? */
static bool is_private(struct text frames)
{
    static const char *const collective[] = {"/torch/distributed/", "/horovod/", "/mpi4py/", "/deepspeed/comm/"};
    struct line_frame frame;
    struct text line, last = {0};
    while (text_line(&frames, &line)) {
        const char *at = text_find(line, "  File \""); /* with whatever stands in front of each line */
        if (at && line_is_frame((struct text){at, line.n - (size_t)(at - line.p)}, &frame))
            last = frame.file;
    }
    for (size_t i = 0; i < COUNT_OF(collective); i++)
        if (last.n && text_find(last, collective[i]))
            return false;
    return last.n > 0;
}

/* The first exception that says anything says that a collective lost its peer: what came of it, a clean-up that failed
 * or the program's own word for it, is a consequence. */
static void classify_take_first(struct classify *c, const struct traceback_chain *chain)
{
    for (unsigned i = 0; i + 1 < chain->n; i++) {
        const struct traceback_exception *e = &chain->v[i];
        enum classify_rule r = classify_match(e->type, e->words, (struct text){0}, true);
        bool common =
            e->link == TRACEBACK_CONTEXT && r == CLASSIFY_TYPE && code_kind(classify_last_part(e->type)) != CLEAR;
        if (r == CLASSIFY_NONE || common || e->link == TRACEBACK_INNER)
            continue;
        if (!rows[r].follower || is_any_connection(r))
            return;
        c->rule = r;
        c->cause = e->words;
        c->cause_type = e->type;
        return;
    }
}

static void take_exceptions(struct classify *c, const struct traceback *t, const struct traceback_chain *chain,
                            struct text frames)
{
    const bool python = t->kind == TRACEBACK_PYTHON || t->kind == TRACEBACK_SYNTAX || t->kind == TRACEBACK_GROUP;
    enum classify_rule best = CLASSIFY_NONE;
    for (unsigned i = chain->n; i > 0; i--) {
        const struct traceback_exception *e = &chain->v[i - 1];
        const struct traceback_exception *end = &chain->v[chain->n - 1];
        bool last = i == chain->n, group = python && text_find(e->type, "ExceptionGroup");
        enum classify_rule r =
            group ? match_group(e->words) : classify_match(e->type, e->words, frames, python && !t->in_thread);
        bool made = !last && is_made_of(best, r, e, end);
        if (!last && !made && !improves(best, r, e))
            continue;
        if (made || (!last && rows[best].follower)) {
            c->cause = e->words;
            c->cause_type = e->type;
        }
        best = r;
    }
    c->rule = best;
    if (python && chain->n && !rows[best].follower)
        classify_take_first(c, chain);
    c->private_link = python && rows[c->rule].follower && is_any_connection(c->rule) && is_private(frames);
}

/* Where another exception ends that the program printed before this one: it went on after it, and what that said is no
 * reason for this one.  Of a thread or a child process: that may well be one. */
static size_t behind_survived(const struct traceback *t, struct text all)
{
    struct traceback before;
    if ((t->kind != TRACEBACK_PYTHON && t->kind != TRACEBACK_GROUP) || t->in_thread || !t->start)
        return 0;
    traceback_find(&before, all.p, t->start);
    bool python = before.kind == TRACEBACK_PYTHON || before.kind == TRACEBACK_GROUP;
    return python && !before.in_thread ? before.end : 0;
}

/* From so many lines before the exception on; where there is none, the last ones. */
static struct text near_end(const struct traceback *t, struct text all)
{
    const size_t from = behind_survived(t, all);
    size_t at = t->kind == TRACEBACK_NONE ? all.n : t->start;
    for (unsigned lines = 0; at > 0 && lines <= NEAR_LINES; lines += at > 0)
        for (at--; at > 0 && all.p[at - 1] != '\n';)
            at--;
    at = at < from ? from : at;
    return (struct text){all.p + at, all.n - at};
}

static void keep_sign(struct classify *c, struct text line)
{
    while (line.n && line.p[0] == ' ') {
        line.p++;
        line.n--;
    }
    text_copy(c->sign, sizeof c->sign, line.n ? line.p : "", line.n);
}

/* Rows whose reason stands in another line than the exception's. */
static void classify_explain(struct classify *c, struct text near)
{
    struct text line;
    if (c->rule == CLASSIFY_CUDA_ASSERT && find_line(near, ": block: [", "Assertion `", &line))
        keep_sign(c, line);
    else if ((c->rule == CLASSIFY_NCCL_SYSTEM || c->rule == CLASSIFY_NCCL_INTERNAL) &&
             find_line(near, "NCCL WARN ", "", &line))
        keep_sign(c, line);
}

/* A line may take the place of an exception that does not say who is to blame, if it does itself. */
static bool may_replace(enum classify_rule best, enum classify_rule r)
{
    if (best == CLASSIFY_NONE)
        return true;
    bool open = rows[best].follower || rows[best].class == FAILURE_CLASS_UNKNOWN;
    return open && !rows[r].follower && rows[r].class != FAILURE_CLASS_NETWORK &&
           rows[r].class != FAILURE_CLASS_UNKNOWN;
}

/* The last line that is not blank. */
static struct text last_line(struct text t)
{
    while (t.n && strchr(" \t\n", t.p[t.n - 1]))
        t.n--;
    return t.n ? line_at(t, t.p + t.n - 1) : t;
}

/* "Connection closed by peer; reconnected", "503 Service Unavailable, using the cached copy": it passed, by its own
 * words. */
static bool classify_is_over(struct text line)
{
    static const char *const over[] = {"reconnected", "recovered", "resumed",         "retry ok",    "ontinuing",
                                       "alling back", "gnored",    "using the cache", "using cached"};
    static const char *const denied[] = {"not ", "annot", "n't ", "failed", "giving up", "gave up", "without"};
    bool any = false;
    for (size_t i = 0; i < COUNT_OF(over); i++)
        any |= classify_has(line, over[i]);
    for (size_t i = 0; any && i < COUNT_OF(denied); i++)
        any = !classify_has(line, denied[i]);
    return any;
}

/* Where a row's words are looked for outside an exception's own.  Who speaks of sick hardware and goes on to say what
 * was wrong has quoted, or remembered, something: only fatal, the line that says it, counts. */
static struct text classify_place_of(enum classify_rule r, const struct traceback *t, struct text near,
                                     const char *fatal)
{
    bool plain = t->kind == TRACEBACK_NONE;
    if (plain && rows[r].scope == LINE && rows[r].class == FAILURE_CLASS_HARDWARE)
        return (struct text){fatal, strlen(fatal)};
    /* A program that says so in its last line, and ends: many a one speaks of such, goes on, and has tried again. */
    bool last = plain && rows[r].scope == WORDS &&
                (r == CLASSIFY_CLOSED_WORDS || r == CLASSIFY_RESET_WORDS || classify_is_passing(r));
    const struct text line = last_line(near), none = {0};
    if (last)
        return classify_is_over(line) ? none : line;
    return rows[r].scope == LINE || (rows[r].scope == WORDS && rows[r].follower && plain) ? near : none;
}

void classify_words(struct classify *c, const struct traceback *t, const struct traceback_chain *chain, struct text all)
{
    assert(t->start <= t->end && t->end <= all.n && chain->n <= TRACEBACK_CHAIN_MAX);
    const struct text near = near_end(t, all), frames = {all.p + t->start, t->end - t->start};
    struct xid_event xid;
    *c = (struct classify){0};
    take_exceptions(c, t, chain, frames);
    char fatal[FATAL_MAX];
    last_line_tell(near, fatal, sizeof fatal);
    const struct text kernel = t->kind == TRACEBACK_NONE ? (struct text){fatal, strlen(fatal)} : near;
    if (kernel.n && xid_find(kernel.p, kernel.n, &xid)) {
        c->xid = xid.number;
        keep_sign(c, (struct text){kernel.p + xid.start, xid.size});
    }
    classify_explain(c, near);
    if (c->rule == CLASSIFY_TYPE)
        return;
    for (enum classify_rule r = FIRST_ROW; near.n && r < CLASSIFY_COUNT && is_text_row(r); r++) {
        struct text line;
        struct text in = classify_place_of(r, t, near, fatal);
        if (!in.n || !may_replace(c->rule, r) || !find_line(in, rows[r].a, rows[r].b, &line))
            continue;
        c->rule = r;
        if (!c->xid)
            keep_sign(c, line);
        return;
    }
}

/* cyclopts says in one line of a box of rich what it refused, and ends with 1, or with 2 as of version 5. */
static bool is_cyclopts(enum classify_rule r, int code, struct text t)
{
    struct text line;
    if ((code != 1 && code != 2) || !classify_has(t, "─ Error ─"))
        return false;
    while (text_line(&t, &line))
        if (text_starts(line, rows[r].b) && classify_has(line, rows[r].a))
            return true;
    return false;
}

enum classify_rule classify_exit(int code, const char *last_lines)
{
    const struct text t = {last_lines, last_lines ? strlen(last_lines) : 0};
    for (enum classify_rule r = FIRST_ROW; r < CLASSIFY_COUNT; r++) {
        bool same = rows[r].code == code || rows[r].code == FAILURE_ANY_CODE;
        bool boxed = r >= CLASSIFY_CYCLOPTS_VALUE && r <= CLASSIFY_CYCLOPTS_NEEDS;
        bool begun = r != CLASSIFY_UNREADABLE || text_starts(last_line(t), rows[r].a);
        if (same && begun && classify_has(t, rows[r].a) && classify_has(t, rows[r].b) &&
            (!boxed || is_cyclopts(r, code, t)))
            return r;
    }
    return CLASSIFY_NONE;
}

const char *classify_name(enum classify_rule r)
{
    assert(r < CLASSIFY_COUNT);
    return rows[r].name;
}

enum failure_class classify_class(enum classify_rule r)
{
    assert(r < CLASSIFY_COUNT);
    return rows[r].class;
}

bool classify_is_follower(enum classify_rule r)
{
    assert(r < CLASSIFY_COUNT);
    return rows[r].follower;
}

const char *classify_advice(enum classify_rule r)
{
    assert(r < CLASSIFY_COUNT);
    return rows[r].advice ? rows[r].advice : "";
}

bool classify_is_passing(enum classify_rule r)
{
    static const struct {
        enum classify_rule from, to;
    } passing[] = {
#define X(from, to) {CLASSIFY_##from, CLASSIFY_##to},
        FAILURE_PASSING(X)
#undef X
    };
    for (size_t i = 0; i < COUNT_OF(passing); i++)
        if (r >= passing[i].from && r <= passing[i].to)
            return true;
    return false;
}

bool classify_is_usage(enum classify_rule r)
{
    return rows[r].code == FAILURE_ANY_CODE;
}

const char *classify_usage_words(enum classify_rule r)
{
    assert(classify_is_usage(r));
    return rows[r].b[0] ? rows[r].b : rows[r].a;
}

bool classify_is_command(enum classify_rule r)
{
    return rows[r].code == 126 || rows[r].code == 127; /* as shells and env say it */
}

bool classify_is_loader(enum classify_rule r)
{
    return r >= CLASSIFY_SHARER_RESET && r <= CLASSIFY_SHARER_EOF;
}

bool classify_is_late(enum classify_rule r)
{
    return r == CLASSIFY_WATCHDOG || r == CLASSIFY_WATCHDOG_DOWN || r == CLASSIFY_GLOO_TIMEOUT ||
           r == CLASSIFY_STORE_BARRIER || r == CLASSIFY_HCCL_NOTIFY;
}

bool classify_is_helper(enum classify_rule r)
{
    return r == CLASSIFY_POOL_BROKEN || strcmp(classify_advice(r), FAILURE_ADVICE_HELPER) == 0;
}
