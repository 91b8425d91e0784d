/* What the worker said itself: which of its lines the report's first one has already. */
#include <stdio.h>
#include <string.h>

#include "failure/summary_private.h"

static struct text summary_said_text_of(const char *s)
{
    return (struct text){s, s ? strlen(s) : 0};
}

static bool is_marks(struct text line)
{
    bool any = false;
    for (size_t i = 0; i < line.n; i++)
        if (line.p[i] == '^' || line.p[i] == '~')
            any = true;
        else if (line.p[i] != ' ')
            return false;
    return any;
}

struct text summary_without_rank(struct text line)
{
    size_t i = 5;
    if (!text_starts(line, "[rank"))
        return line;
    while (i < line.n && line.p[i] >= '0' && line.p[i] <= '9')
        i++;
    if (i == 5 || line.n < i + 2 || memcmp(line.p + i, "]:", 2) != 0)
        return line;
    i += i + 2 < line.n && line.p[i + 2] == ' ' ? 3 : 2;
    return (struct text){line.p + i, line.n - i};
}

static bool summary_said_is_text(struct text line, const char *text)
{
    return text && line.n == strlen(text) && memcmp(line.p, text, line.n) == 0;
}

static const char dots[] = "\xe2\x80\xa6"; /* text_copy()'s, of a message that it has cut */

/* It is the line that text is, or was before it was cut. */
static bool is_cut_text(struct text line, const char *text)
{
    size_t len = text ? strlen(text) : 0, end = sizeof dots - 1;
    if (len <= end || strcmp(text + len - end, dots) != 0)
        return summary_said_is_text(line, text);
    return line.n > len - end && memcmp(line.p, text, len - end) == 0;
}

static const char *said(const struct failure *f)
{
    return f->message ? f->message : f->found.message;
}

/* "  | ExceptionGroup: x" of a group, whose message names the group and one of its members: "x; ValueError: y".  The
 * line of that member stays if there are others: among their frames it says which are whose. */
static bool is_of_group(const struct failure *f, struct text line)
{
    const char *text = f->message, *only;
    if (f->found.kind != TRACEBACK_GROUP || !text)
        return false;
    while (line.n && (line.p[0] == ' ' || line.p[0] == '|'))
        line = (struct text){line.p + 1, line.n - 1};
    if (line.n && strncmp(line.p, text, line.n) == 0 &&
        (!text[line.n] || text_starts(summary_said_text_of(text + line.n), "; ")))
        return true;
    only = text_find(summary_said_text_of(text), "(1 sub-exception); ");
    return only && is_cut_text(line, only + strlen("(1 sub-exception); "));
}

/* "ValueError: x", where the message has it behind something else: of an elrun inside, "exit code 1: ValueError: x". */
static bool summary_said_is_within(const struct failure *f, struct text line)
{
    const char *type = f->found.type, *last = f->found.message;
    const size_t n = strlen(type);
    if (!f->message || !n || !*last || line.n <= n + 2 || !text_starts(line, type) || memcmp(line.p + n, ": ", 2) != 0)
        return false;
    const char *at = text_find(summary_said_text_of(f->message), type);
    return summary_said_is_text((struct text){line.p + n + 2, line.n - n - 2}, last) && at &&
           strncmp(at, line.p, line.n) == 0;
}

bool summary_says_nothing_new(const struct failure *f, struct text line, bool marks)
{
    const char *last = summary_without_rank(summary_said_text_of(f->found.message)).p;
    return (!marks && is_marks(line)) || is_cut_text(line, f->message) || is_cut_text(line, last) ||
           is_of_group(f, line) || summary_said_is_within(f, line) || text_starts(line, "Extension modules: ") ||
           /* faulthandler's: of no use */ summary_said_is_text(line, "Traceback (most recent call last):");
}

/* A stack that is too long has lost its middle (failure.c), which may lie in this line: "[… 1234 bytes …] ". */
static size_t lost_in(struct text line)
{
    static const char around[] = "  bytes \xe2\x80\xa6] ";
    size_t lost = 0, i = sizeof "[\xe2\x80\xa6 " - 1, mark = i;
    const char *at = text_find(line, "[\xe2\x80\xa6 "), *end = line.p + line.n;
    for (; at && at + i < end && at[i] >= '0' && at[i] <= '9'; i++)
        lost = lost * 10 + (size_t)(at[i] - '0');
    i += i > mark ? sizeof around - 1 : 0;
    return at && i > mark && lost > i ? lost - i : 0;
}

size_t summary_left_out(const struct failure *f)
{
    const char *text = said(f);
    struct text rest = summary_said_text_of(f->stack), line; /* of what is no exception the beginning is not kept */
    while (text_line(&rest, &line)) {
        line = summary_without_rank(line);
        if (!summary_said_is_text(line, text) && is_cut_text(line, text))
            return line.n - (strlen(text) - (sizeof dots - 1)) + lost_in(line);
    }
    return 0;
}

const char *summary_no_stack(const struct failure *f)
{
    switch (f->watch) {
    case FAILURE_WATCH_NOT_LOOKED: return "no traceback: its stderr was not looked at, others failed before";
    case FAILURE_WATCH_TERMINAL:
        return "no traceback: stderr is a terminal that elrun leaves alone (--capture-stderr=no); without that option, "
               "or "
               "with torch's @record, it stands here";
    case FAILURE_WATCH_NO:
        return "no traceback: stderr goes where elrun cannot read it; to see it here use --tee 3, or torch's @record";
    case FAILURE_WATCH_UNTOLD:
        return "only how it ended was told: its agent was lost before it could tell more, its events break off, or too "
               "many failed at once; what it wrote lies in the logs of its node, if anywhere";
    case FAILURE_WATCH_YES: break;
    }
    return f->tail || f->survived[0] ? "" : "it wrote nothing to stderr";
}

bool summary_has_more(const struct failure *f)
{
    struct text rest = summary_said_text_of(f->tail), line;
    while (text_line(&rest, &line))
        if (line.n && !is_cut_text(line, said(f)))
            return true;
    return false;
}

bool summary_tells_last(const struct failure *f)
{
    struct text rest = summary_said_text_of(f->tail), line, last = {0};
    while (text_line(&rest, &line))
        last = line.n ? line : last;
    return !f->message && f->found.message[0] && is_cut_text(last, f->found.message);
}

struct text summary_first(const struct failure *f)
{
    struct traceback t;
    struct traceback_chain chain;
    struct text line = {0}, words;
    if (!f->stack || !f->found.chained)
        return line;
    traceback_find_chain(&t, &chain, f->stack, strlen(f->stack));
    bool led = chain.n > 1 && chain.v[0].link != TRACEBACK_INNER;
    words = led ? chain.v[0].words : (struct text){0};
    if (words.n)
        text_line(&words, &line);
    return line;
}

/* Of " [127.0.0.1]:23969: Connection reset by peer" what comes behind the address: ": Connection reset by peer". */
static struct text behind_address(struct text t)
{
    const char *close = memchr(t.p, ']', t.n), *end = t.p + t.n;
    if (!close || close + 1 == end || close[1] != ':')
        return (struct text){0};
    for (close += 2; close < end && *close >= '0' && *close <= '9';)
        close++;
    struct text rest = {close, (size_t)(end - close)};
    return text_starts(rest, ": ") ? rest : (struct text){0};
}

void summary_reason(const struct failure *f, char shown[SUMMARY_REASON_MAX])
{
    struct text t = summary_said_text_of(f->message);
    const char *type = f->found.type, *end;
    if (*type && text_starts(t, type) && t.n > strlen(type) + 1) {
        t.p += strlen(type) + 1;
        t.n -= strlen(type) + 1;
        while (t.n && *t.p == ' ')
            t.p++, t.n--;
    }
    if (t.n && *t.p == '[' && (end = memchr(t.p, ']', t.n)) != NULL) { /* Gloo's and Python's: a place, a number */
        t.n -= (size_t)(end + 1 - t.p);
        t.p = end + 1;
        while (t.n && (*t.p == ' ' || *t.p == ':'))
            t.p++, t.n--;
    }
    const char *at = text_find(t, " [");
    struct text rest = at ? behind_address((struct text){at, t.n - (size_t)(at - t.p)}) : (struct text){0};
    if ((end = at) != NULL || (end = text_find(t, ". ")) != NULL || (end = text_find(t, ": [")) != NULL)
        t.n = (size_t)(end - t.p);
    if ((end = text_find(rest, ". ")) != NULL)
        rest.n = (size_t)(end - rest.p);
    char whole[2 * SUMMARY_REASON_MAX];
    snprintf(whole, sizeof whole, "%.*s%.*s", (int)t.n, t.n ? t.p : "", (int)rest.n, rest.n ? rest.p : "");
    text_copy(shown, SUMMARY_REASON_MAX, whole, strlen(whole));
}
