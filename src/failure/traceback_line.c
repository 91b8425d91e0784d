#include "failure/traceback_line.h"

#include <assert.h>
#include <string.h>

#include "util/array.h"

static bool traceback_line_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}
static bool traceback_line_is_word(char c)
{
    return traceback_line_is_digit(c) || is_upper(c) || (c >= 'a' && c <= 'z') || c == '_' || (unsigned char)c >= 0x80;
}

static struct text traceback_line_after(struct text t, size_t n)
{
    assert(n <= t.n);
    return (struct text){t.p + n, t.n - n};
}

static struct text upto(struct text t, const char *end)
{
    assert(end >= t.p && end <= t.p + t.n);
    return (struct text){t.p, (size_t)(end - t.p)};
}

static bool traceback_line_ends(struct text t, const char *with)
{
    size_t n = strlen(with);
    return t.n >= n && memcmp(t.p + t.n - n, with, n) == 0;
}

static bool is_users(struct text file)
{
    static const char *const theirs[] = {"/site-packages/", "/dist-packages/",     "/lib/python3",    "/lib64/python3",
                                         "<frozen ",        "<__array_function__", "<eval_with_key>", "/bin/torchrun",
                                         "/py/elrun/" /* ours: each agent has it in a folder of its own */};
    for (size_t i = 0; i < COUNT_OF(theirs); i++)
        if (text_find(file, theirs[i]))
            return false;
    return true;
}

bool line_is_frame(struct text t, struct line_frame *f)
{
    static const char head[] = "  File \"", middle[] = "\", line ";
    if (!text_starts(t, head) && !text_starts(t, "> File \"")) /* loguru marks the one that caught it */
        return false;
    t = traceback_line_after(t, sizeof head - 1);
    const char *at = text_find(t, middle);
    if (!at)
        return false;
    *f = (struct line_frame){.file = upto(t, at)};
    t = traceback_line_after(t, (size_t)(at - t.p) + sizeof middle - 1);
    size_t i = 0;
    for (; i < t.n && traceback_line_is_digit(t.p[i]); i++)
        if (f->line < 100000000)
            f->line = f->line * 10 + (unsigned)(t.p[i] - '0');
    if (!i)
        return false;
    t = traceback_line_after(t, i);
    if (text_starts(t, ", in "))
        f->function = traceback_line_after(t, 5);
    else if (text_starts(t, " in "))
        f->function = traceback_line_after(t, 4);
    f->user = is_users(f->file);
    return true;
}

bool line_opens_box(struct text t)
{
    return (text_starts(t, "╭") || text_starts(t, "+-")) && text_find(t, " Traceback (most recent call last) ");
}

bool line_is_box(struct text t)
{
    return text_starts(t, "│") || text_starts(t, "|");
}

bool line_is_box_frame(struct text t, struct line_frame *f)
{
    if (!line_is_box(t))
        return false;
    t = traceback_line_after(t, text_starts(t, "|") ? 1 : strlen("│"));
    if (t.n < 2 || t.p[0] != ' ' || t.p[1] == ' ')
        return false;
    t = traceback_line_after(t, 1);
    const char *at = text_find(t, " in ");
    size_t digits = 0, colon = at ? (size_t)(at - t.p) : 0;
    for (; colon && traceback_line_is_digit(t.p[colon - 1]); digits++)
        colon--;
    if (!digits || digits > 8 || colon < 2 || t.p[colon - 1] != ':')
        return false;
    *f = (struct line_frame){.file = {t.p, colon - 1}};
    for (size_t i = colon; i < colon + digits; i++)
        f->line = f->line * 10 + (unsigned)(t.p[i] - '0');
    t = traceback_line_after(t, (size_t)(at - t.p) + 4);
    while (f->function.n < t.n && t.p[f->function.n] != ' ')
        f->function.n++;
    f->function.p = t.p;
    f->user = is_users(f->file);
    return true;
}

static bool traceback_line_is_level(struct text name)
{
    static const char *const levels[] = {"INFO", "DEBUG", "WARNING", "WARN", "ERROR", "CRITICAL", "FATAL",
                                         "NOTE", "TRACE", "Epoch",   "Step", "Loss",  "Usage"};
    for (size_t i = 0; i < COUNT_OF(levels); i++)
        if (name.n == strlen(levels[i]) && memcmp(name.p, levels[i], name.n) == 0)
            return true;
    return false;
}

/* Length of a dotted name such as pkg.Outer.<locals>.Error, 0 if there is none; *last: where its last part begins. */
static size_t name_len(struct text t, size_t *last)
{
    size_t i = 0;
    *last = 0;
    while (i < t.n) {
        size_t part = i;
        if (text_starts(traceback_line_after(t, i), "<locals>"))
            i += 8;
        else
            while (i < t.n && traceback_line_is_word(t.p[i]))
                i++;
        if (i == part || traceback_line_is_digit(t.p[part]))
            return 0;
        *last = part;
        if (i >= t.n || t.p[i] != '.')
            return i;
        i++;
    }
    return 0;
}

bool line_is_exception(struct text t, bool strict, struct text *type, struct text *message)
{
    while (t.n && (t.p[t.n - 1] == ' ' || t.p[t.n - 1] == '\t'))
        t.n--;
    size_t last, n = name_len(t, &last);
    if (!n || n > 200 || (n < t.n && t.p[n] != ':') || (n + 1 < t.n && t.p[n + 1] != ' '))
        return false;
    *type = (struct text){t.p, n};
    *message = traceback_line_after(t, n + 1 <= t.n ? n + 1 : n);
    if (message->n && message->p[0] == ' ')
        *message = traceback_line_after(*message, 1);
    if (!strict)
        return true;
    return is_upper(t.p[last]) && !traceback_line_is_level((struct text){t.p + last, n - last});
}

bool line_is_chain(struct text t)
{
    return text_find(t, "During handling of the above exception, another exception occurred:") ||
           text_find(t, "The above exception was the direct cause of the following exception:");
}

/* "[W1121 20:36", "E1121 20:36", glog's and torch's own form. */
static bool is_glog(struct text t)
{
    if (t.n && t.p[0] == '[')
        t = traceback_line_after(t, 1);
    if (t.n < 6 || !t.p[0] || !strchr("IWEFDV", t.p[0]) || t.p[5] != ' ')
        return false;
    for (size_t i = 1; i < 5; i++)
        if (!traceback_line_is_digit(t.p[i]))
            return false;
    return true;
}

bool line_is_foreign(struct text t)
{
    static const char *const starts[] = {"Exception ignored in",
                                         "Exception in thread ",
                                         "Fatal Python error: ",
                                         "Error in sys.excepthook",
                                         "Original exception was:",
                                         "Process Process-",
                                         "Timeout (",
                                         "Aborted (core dumped)",
                                         "Segmentation fault (core dumped)"};
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        if (text_starts(t, starts[i]))
            return true;
    struct text type, message;
    if (is_glog(t) || line_is_chain(t) || line_is_abort(t, &type, &message))
        return true;
    if (text_find(t, "Traceback (most recent call last):") || line_opens_box(t))
        return true;
    return text_find(t, ".py:") && text_find(t, "Warning: ");
}

/* "INFO:root:…", "WARNING retrying", "[ERROR] …". */
static bool starts_with_level(struct text t)
{
    static const char *const levels[] = {"INFO", "WARNING", "DEBUG", "WARN", "ERROR", "CRITICAL", "FATAL"};
    size_t skip = t.n && t.p[0] == '[';
    t = traceback_line_after(t, skip);
    for (size_t i = 0; i < COUNT_OF(levels); i++) {
        size_t n = strlen(levels[i]);
        if (text_starts(t, levels[i]) && t.n > n && strchr(": ]-", t.p[n]))
            return true;
    }
    return false;
}

/* "2026-11-27 03:47:14,599 …", "[2026-11-27 …", "03:47:14 …", "[11/27/26 …". */
static bool starts_with_time(struct text t)
{
    size_t skip = t.n && t.p[0] == '[', digits = 0;
    t = traceback_line_after(t, skip);
    while (digits < t.n && traceback_line_is_digit(t.p[digits]))
        digits++;
    return (digits == 4 || digits == 2) && digits + 2 < t.n && strchr("-/:", t.p[digits]) &&
           traceback_line_is_digit(t.p[digits + 1]) && traceback_line_is_digit(t.p[digits + 2]);
}

bool line_is_record(struct text line)
{
    return starts_with_time(line) || starts_with_level(line);
}

static const char *const abort_starts[] = {
    "free(): ",
    "double free or corruption",
    "malloc(): ",
    "realloc(): ",
    "malloc_consolidate(): ",
    "corrupted size vs. prev_size",
    "corrupted double-linked list",
    "munmap_chunk(): ",
    "tcache_thread_shutdown(): ",
    "*** stack smashing detected ***",
    "*** buffer overflow detected ***",
    "*** bit out of range",
    "Inconsistency detected by ld.so",
    "Segmentation fault (core dumped)",
    "Aborted (core dumped)",
    "Illegal instruction (core dumped)",
    "Bus error (core dumped)",
};

/* terminate called after throwing an instance of 'c10::Error' */
static enum line_abort is_terminate(struct text t, struct text *type, struct text *message)
{
    *message = t;
    *type = (struct text){"std::terminate", 14};
    static const char libcxx[] = "libc++abi: ", of_type[] = "exception of type ";
    const char *at = text_find(t, text_starts(t, libcxx) ? of_type : "instance of '");
    if (!at)
        return LINE_CPLUS;
    bool is_libcxx = text_starts(t, libcxx);
    struct text rest = traceback_line_after(t, (size_t)(at - t.p) + (is_libcxx ? sizeof of_type - 1 : 13));
    const char *end = text_find(rest, is_libcxx ? ": " : "'");
    *type = end ? upto(rest, end) : rest;
    *message = end && is_libcxx ? traceback_line_after(rest, type->n + 2) : (struct text){t.p, 0};
    return LINE_CPLUS;
}

enum line_abort line_is_abort(struct text t, struct text *type, struct text *message)
{
    const char *at = text_find(t, "terminate called "); /* often glued to a progress bar */
    if (at &&
        (text_find(t, "terminate called after throwing") || text_find(t, "terminate called without") || at == t.p))
        return is_terminate(traceback_line_after(t, (size_t)(at - t.p)), type, message);
    if (text_starts(t, "libc++abi: terminating"))
        return is_terminate(t, type, message);
    *message = t;
    for (size_t i = 0; i < COUNT_OF(abort_starts); i++)
        if (text_starts(t, abort_starts[i])) {
            *type = (struct text){"abort", 5};
            return LINE_ABORT;
        }
    /* prog: file.c:10: function: Assertion `x' failed.    file.cu:9: f: block: [0,0,0], thread: [1,0,0] Assertion `x`
     * failed. */
    if (text_find(t, "Assertion `") && (traceback_line_ends(t, "failed.") || traceback_line_ends(t, "failed"))) {
        *type = (struct text){"assertion", 9};
        return LINE_ABORT;
    }
    return LINE_NO_ABORT;
}

/* "src/main.rs:4:5" or "main.go:9": with the columns or without. */
static bool take_place(struct text t, unsigned numbers, struct line_frame *f)
{
    size_t at = t.n;
    for (; numbers; numbers--) {
        size_t end = at;
        while (at && traceback_line_is_digit(t.p[at - 1]))
            at--;
        if (at == end || end - at > 9 || at < 2 || t.p[--at] != ':')
            return false;
        f->line = 0;
        for (size_t i = at + 1; i < end; i++)
            f->line = 10 * f->line + (unsigned)(t.p[i] - '0');
    }
    f->file = upto(t, t.p + at);
    return true;
}

bool line_is_rust_panic(struct text t, struct line_frame *f, bool *in_main, struct text *message)
{
    const char *at = text_find(t, "' panicked at ");
    const char *numbered = at ? NULL : text_find(t, ") panicked at "); /* thread 'main' (71) panicked at */
    if (!text_starts(t, "thread '") || (!at && !numbered))
        return false;
    *in_main = text_starts(t, "thread 'main'");
    struct text place = traceback_line_after(t, (size_t)((at ? at : numbered) - t.p) + 14);
    *message = (struct text){place.p, 0};
    *f = (struct line_frame){.user = true};
    if (place.n && place.p[0] == '\'') { /* the old form: the words, then the place */
        size_t comma = place.n;
        while (comma > 3 && memcmp(place.p + comma - 3, "', ", 3) != 0)
            comma--;
        if (comma <= 3)
            return false;
        *message = (struct text){place.p + 1, comma - 4};
        place = traceback_line_after(place, comma);
    } else if (traceback_line_ends(place, ":")) {
        place.n--;
    }
    return take_place(place, 2, f);
}

bool line_is_go_frame(struct text t, struct line_frame *f)
{
    if (!text_starts(t, "\t"))
        return false;
    const char *plus = text_find(t, " +0x");
    struct text place = traceback_line_after(plus ? upto(t, plus) : t, 1);
    *f = (struct line_frame){0};
    if (!text_find(place, ".go:") || !take_place(place, 1, f))
        return false;
    f->user = !text_find(place, "/src/runtime/") && !text_find(place, "/pkg/mod/");
    return true;
}

bool line_is_blank(struct text t)
{
    for (size_t i = 0; i < t.n; i++)
        if (t.p[i] != ' ' && t.p[i] != '\t')
            return false;
    return true;
}

bool line_strip(struct text t, struct text prefix, struct text *inside)
{
    for (size_t i = 0; i < prefix.n; i++) {
        if (i >= t.n) {
            *inside = (struct text){t.p + t.n, 0};
            return line_is_blank(traceback_line_after(prefix, i));
        }
        if (t.p[i] != prefix.p[i] && !(traceback_line_is_digit(t.p[i]) && traceback_line_is_digit(prefix.p[i])))
            return false;
    }
    *inside = traceback_line_after(t, prefix.n);
    return true;
}
