#include "failure/last_line.h"

#include <string.h>

#include "failure/traceback.h"
#include "failure/traceback_line.h"
#include "util/array.h"

enum {
    LINES_MAX = TRACEBACK_LAST_LINES,
    HEAD = 64, /* bytes in which a logger says its level */
};

struct last_line_line {
    struct text raw, text; /* without blanks around it, and without the frame of a box */
    bool boxed, edge, hint, farewell, warning, going_on, indented;
};

static bool last_line_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct text trim(struct text t)
{
    while (t.n && last_line_is_blank(t.p[0])) {
        t.p++;
        t.n--;
    }
    while (t.n && last_line_is_blank(t.p[t.n - 1]))
        t.n--;
    return t;
}

static bool last_line_ends(struct text t, const char *with)
{
    size_t n = strlen(with);
    return t.n >= n && memcmp(t.p + t.n - n, with, n) == 0;
}

/* U+2500 to U+259F: box drawing and block elements. */
static bool last_line_is_drawn(const char *p, size_t n)
{
    return n >= 3 && (unsigned char)p[0] == 0xe2 &&
           ((unsigned char)p[1] == 0x94 || (unsigned char)p[1] == 0x95 || (unsigned char)p[1] == 0x96);
}

/* Lines that are drawn, not written: "────", "+----+". */
static bool is_rule(struct text t)
{
    for (size_t i = 0; i < t.n;)
        if (last_line_is_drawn(t.p + i, t.n - i))
            i += 3;
        else if (strchr("-=_~*#+| \t", t.p[i]))
            i++;
        else
            return false;
    return t.n > 0;
}

/* "╭─ Error ─╮", "+- Error -+". */
static bool last_line_is_edge(struct text t)
{
    bool drawn = t.n > 6 && last_line_is_drawn(t.p, t.n) && last_line_is_drawn(t.p + 3, t.n - 3) &&
                 last_line_is_drawn(t.p + t.n - 3, 3);
    return drawn || (text_starts(t, "+-") && last_line_ends(t, "-+")) || is_rule(t);
}

/* Inside a box: its bars taken off. */
static bool unbox(struct text *t)
{
    static const char *const bars[] = {"│", "┃", "║", "|"};
    for (size_t i = 0; i < COUNT_OF(bars); i++) {
        size_t n = strlen(bars[i]);
        if (t->n < 2 * n || !text_starts(*t, bars[i]) || !last_line_ends(*t, bars[i]))
            continue;
        *t = trim((struct text){t->p + n, t->n - 2 * n});
        return true;
    }
    return false;
}

bool last_line_is_hint(struct text line)
{
    static const char *const starts[] = {
        "Set the environment variable HYDRA_FULL_ERROR", /* Hydra: this and what it adds to the line above */
        "full_key:",
        "object_type=",
        "reference_type=",
        "See https://hydra.cc/",
        "Config search path:",
        "provider=",
        "For full helptext",                        /* tyro */
        "For detailed information on this command", /* Fire */
        "Pass --helpshort",                         /* absl */
        "tip: For details of accepted options",     /* jsonargparse */
        "Try '",                                    /* click */
        "Usage: ",
        "usage: ",
        "note: run with `RUST_BACKTRACE",
        "lost sys.stderr", /* CPython, where printing an exception raises another one: its repr stands above */
    };
    struct text t = trim(line);
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        if (text_starts(t, starts[i]))
            return true;
    return text_find(t, ": use -[v]S to pass options") || last_line_ends(t, " --help") || last_line_ends(t, " -h");
}

static bool last_line_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "x.py:12: UserWarning: …": a type behind a place, or at the line's beginning. */
static bool is_typed_warning(struct text t)
{
    const char *word = text_find(t, "Warning: "), *from = word;
    if (!word)
        return false;
    while (from > t.p && from[-1] != ' ')
        from--;
    return from == t.p || (from - t.p > 2 && from[-2] == ':' && last_line_is_digit(from[-3]));
}

/* "/x/site-packages/lightning/y.py:21: it is deprecated": Lightning leaves the type out.  Whoever else writes so may
 * tell its end, as Lightning does with the word for an error. */
static bool is_lightning(struct text t)
{
    static const char *const packages[] = {"/site-packages/lightning", "/site-packages/pytorch_lightning/"},
                             *const errors[] = {"rror",     "ERROR",    "atal",  "FATAL", "ritical",
                                                "CRITICAL", "xception", "ailed", "cannot"};
    const char *at = text_starts(t, "/") ? text_find(t, ".py:") : NULL, *end = t.p + t.n;
    const struct text place = {t.p, at ? (size_t)(at - t.p) : 0};
    if (!at || !(text_find(place, packages[0]) || text_find(place, packages[1])))
        return false;
    for (size_t i = 0; i < COUNT_OF(errors); i++)
        if (text_find((struct text){at, (size_t)(end - at)}, errors[i]))
            return false;
    at += 4;
    const char *number = at;
    while (at < end && last_line_is_digit(*at))
        at++;
    return at > number && at + 1 < end && at[0] == ':' && at[1] == ' ';
}

/* The program went on after it: "WARNING:root:…", "… - WARNING - …", "[W1127 10:11:12.3 socket.cpp:697] …" of torch. */
static bool is_warning(struct text t)
{
    static const char *const starts[] = {"WARNING", "Warning: ", "warning: ", "[W socket.cpp", "[WARNING"};
    const char *rank = text_starts(t, "[rank") ? text_find(t, "]:") : NULL;
    if (rank) {
        t.n -= (size_t)(rank + 2 - t.p);
        t.p = rank + 2;
        t = trim(t);
    }
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        if (text_starts(t, starts[i]))
            return true;
    size_t glog = text_starts(t, "[W") ? 1 : 0;
    if (t.n > glog + 6 && t.p[glog] == 'W' && last_line_is_digit(t.p[glog + 1]) && last_line_is_digit(t.p[glog + 2]) &&
        last_line_is_digit(t.p[glog + 3]) && last_line_is_digit(t.p[glog + 4]) && t.p[glog + 5] == ' ')
        return true;
    const struct text head = {t.p, t.n < 64 ? t.n : 64};
    return is_typed_warning(t) || is_lightning(t) ||
           (last_line_is_digit(t.n ? *t.p : 0) && text_find(head, " WARNING ")) || text_find(head, " - WARNING - ");
}

/* A warning of a program at work, which none prints while it ends: what stands before it was survived. */
static bool last_line_is_at_work(struct text t)
{
    static const char *const ending[] = {"destroy_process_group",
                                         "leaked",
                                         "before all shared CUDA tensors",
                                         "symboliz",
                                         "resource_tracker",
                                         "tdown",
                                         "xiting",
                                         "erminat"};
    for (size_t i = 0; i < COUNT_OF(ending); i++)
        if (text_find(t, ending[i]))
            return false;
    return !is_typed_warning(t) && !is_lightning(t) && !text_starts(t, "Warning: ") && !text_starts(t, "warning: ");
}

/* Of a tracker that closes, or whom to tell of it: nothing of what was wrong. */
static bool is_farewell(struct text t)
{
    static const char *const starts[] = {"wandb: ", "swanlab: ", "COMET INFO: "}, *const asks[] = {
                                                                                      "open an issue", "file an issue",
                                                                                      "you think this is a bug",
                                                                                      "report this issue",
                                                                                      "report this bug"};
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        if (text_starts(t, starts[i]))
            return !text_find(t, "ERROR") && !text_find(t, "rror: ");
    for (size_t i = 0; i < COUNT_OF(asks); i++)
        if (text_find(t, asks[i]))
            return !text_find(t, "rror: ") && !text_find(t, "ailed") && !text_find(t, "ERROR") &&
                   !text_find(t, "FATAL");
    return false;
}

/* {"level": "info", "msg": "bye"}: has it one of these levels, whatever its case? */
static bool is_record_of(struct text t, const char *const *levels, size_t n)
{
    static const char *const keys[] = {"\"level\"", "\"levelname\"", "\"severity\"", "\"log.level\""};
    for (size_t k = 0; text_starts(t, "{") && k < COUNT_OF(keys); k++) {
        const char *at = text_find(t, keys[k]), *end = t.p + t.n;
        for (at = at ? at + strlen(keys[k]) : end; at < end && (*at == ' ' || *at == ':');)
            at++;
        for (size_t i = 0; at < end && *at == '"' && i < n; i++) {
            size_t len = strlen(levels[i]), same = 0;
            while (same < len && at + 1 + same < end && (at[1 + same] | 0x20) == levels[i][same])
                same++;
            if (same == len && at + 1 + len < end && at[1 + len] == '"')
                return true;
        }
    }
    return false;
}

/* "2026-11-27 03:47:14,599 INFO …", "ERROR:root:…": a record that names one of these levels before it says anything. */
static bool last_line_is_level(struct text t, const char *const *levels, size_t n)
{
    const struct text head = {t.p, t.n < HEAD ? t.n : HEAD};
    for (size_t i = 0; line_is_record(t) && i < n; i++) {
        const char *at = text_find(head, levels[i]), *end = at ? at + strlen(levels[i]) : NULL;
        if (at && (at == head.p || strchr(" [|-", at[-1])) && end < t.p + t.n && strchr(" :]|-", *end))
            return true;
    }
    return false;
}

static bool is_low(struct text t)
{
    static const char *const low[] = {"trace", "debug", "info", "notice"}, *const words[] = {"DEBUG", "INFO"};
    return is_record_of(t, low, COUNT_OF(low)) || last_line_is_level(t, words, COUNT_OF(words));
}

static bool is_high(struct text t)
{
    static const char *const high[] = {"error", "critical", "fatal", "alert", "emergency"}, *const words[] = {
                                                                                                "ERROR", "CRITICAL",
                                                                                                "FATAL"};
    return is_record_of(t, high, COUNT_OF(high)) || last_line_is_level(t, words, COUNT_OF(words));
}

static struct last_line_line last_line_look(struct text t)
{
    struct last_line_line l = {.raw = t, .text = trim(t), .indented = t.n && last_line_is_blank(t.p[0])};
    l.boxed = unbox(&l.text);
    l.edge = l.text.n && last_line_is_edge(l.text);
    l.hint = l.text.n && last_line_is_hint(l.text);
    l.farewell = l.text.n && is_farewell(l.text);
    l.warning = l.text.n && is_warning(l.text);
    l.going_on = l.warning && last_line_is_at_work(l.text);
    return l;
}

static bool says(const struct last_line_line *l)
{
    return l->text.n && !l->edge && !l->hint && !l->farewell && !l->warning;
}

/* A line that names itself an error, above the hints that follow it. */
static bool last_line_is_named(const struct last_line_line *l)
{
    static const char *const names[] = {"ERROR: ", "Error: ", "error: ", "FATAL "};
    for (size_t i = 0; says(l) && i < COUNT_OF(names); i++)
        if (text_starts(l->text, names[i]))
            return true;
    return false;
}

/* The line that says it among n of them; -1 = none does. */
static int last_line_choose(const struct last_line_line *v, int n)
{
    bool hinted = false;
    int at = n - 1;
    bool went_on = false;
    for (; at >= 0 && !says(&v[at]); at--) {
        hinted |= v[at].hint;
        went_on |= v[at].going_on;
    }
    if (went_on && at >= 0 && !last_line_is_named(&v[at]))
        return -1;
    if (at >= 0 && v[at].boxed) { /* its first line: others in the box explain, or offer something */
        while (at > 0 && v[at - 1].boxed)
            at--;
        while (at < n && !says(&v[at]))
            at++;
        return at;
    }
    if (at > 0 && is_low(v[at].text) && is_high(v[at - 1].text)) /* one: who logs more after an error has gone on */
        return at - 1;
    for (int i = at; hinted && i >= 0; i--)
        if (last_line_is_named(&v[i]))
            return i;
    return at;
}

static void last_line_put(char *out, size_t size, struct text t)
{
    size_t used = strlen(out);
    if (used && used + 8 < size)
        out[used++] = ' ', out[used] = 0;
    if (used + 8 < size)
        text_copy(out + used, size - used, t.p, t.n);
}

void last_line_tell(struct text lines, char *out, size_t size)
{
    struct last_line_line v[LINES_MAX];
    struct text rest = lines, line;
    int n = 0;
    bool warned = false;
    out[0] = 0;
    while (text_line(&rest, &line)) {
        if (n == LINES_MAX)
            memmove(v, v + 1, sizeof v[0] * (size_t)--n);
        v[n] = last_line_look(line);
        v[n].warning |= v[n].indented && n && v[n - 1].warning; /* its line of the program */
        warned |= v[n++].warning;
    }
    int at = last_line_choose(v, n);
    if (at < 0 && warned)
        return;
    bool led = at > 0 && v[at].indented && says(&v[at - 1]) && last_line_ends(v[at - 1].text, ":");
    if (n && (at < 0 || (at == n - 1 && !v[at].boxed && !led))) {
        text_copy(out, size, v[n - 1].raw.p, v[n - 1].raw.n);
        return;
    }
    if (led) /* "error: Parser key "lr":", and what is wrong with it in the next line */
        last_line_put(out, size, v[at - 1].text);
    for (int i = at; i >= 0 && i < n; i++)
        if (text_starts(v[i].text, "full_key: ")) { /* Hydra: a value is wrong, and this says whose */
            last_line_put(out, size, v[at].text);
            last_line_put(out, size, v[i].text);
            return;
        }
    for (int i = at; i >= 0 && i < n && (i == at || (v[i].boxed && says(&v[i]))); i++)
        last_line_put(out, size, v[i].text);
}
