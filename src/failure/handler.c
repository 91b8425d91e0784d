#include "failure/handler.h"

#include <string.h>

#include "failure/traceback_line.h"
#include "util/array.h"

enum {
    BEHIND = 4 /* lines behind the "try" that tell whether it cleared up */
};

/* "[rank1]: " in front of each line, since torch 2.3. */
static struct text handler_without_rank(struct text line)
{
    static const char mark[] = "]: ";
    const char *at = text_starts(line, "[rank") ? text_find(line, mark) : NULL;
    size_t n = at ? (size_t)(at - line.p) + sizeof mark - 1 : 0;
    return (struct text){line.p + n, line.n - n};
}

static bool handler_is(struct text t, const char *what)
{
    return t.n == strlen(what) && memcmp(t.p, what, t.n) == 0;
}

static struct text handler_trimmed(struct text t)
{
    while (t.n && strchr(" \t\f", t.p[0]))
        t = (struct text){t.p + 1, t.n - 1};
    while (t.n && strchr(" \t\r\f", t.p[t.n - 1]))
        t.n--;
    return t;
}

/* --- the place --- */

/* Of "-m pack.train" the file is ".../pack/train.py" or ".../pack/train/__main__.py"; of a script its name is enough.
 */
static bool is_program(struct text file, const char *program)
{
    const char *name = program ? strrchr(program, '/') : NULL;
    struct text want;
    static const char in_package[] = "/__main__.py";
    if (!program)
        return false;
    want = (struct text){name ? name + 1 : program, strlen(name ? name + 1 : program)};
    if (file.n > sizeof in_package &&
        handler_is((struct text){file.p + file.n - sizeof in_package + 1, sizeof in_package - 1}, in_package))
        file.n -= sizeof in_package - 1;
    else if (file.n > 3 && handler_is((struct text){file.p + file.n - 3, 3}, ".py"))
        file.n -= 3;
    if (want.n > 3 && handler_is((struct text){want.p + want.n - 3, 3}, ".py"))
        want.n -= 3;
    for (size_t i = want.n; !name && i > 0; i--)
        if (want.p[i - 1] == '.') {
            want = (struct text){want.p + i, want.n - i};
            break;
        }
    if (!want.n || file.n < want.n || memcmp(file.p + file.n - want.n, want.p, want.n) != 0)
        return false;
    return file.n == want.n || file.p[file.n - want.n - 1] == '/';
}

bool handler_place(struct text stack, const char *type, const char *program, struct handler_place *p, bool *own)
{
    struct text line;
    struct line_frame frame;
    bool head = false, found = false, words = false;
    while (text_line(&stack, &line)) {
        line = handler_without_rank(line);
        if (text_starts(line, "Traceback (most recent call last):")) {
            head = true;
            found = words = false;
            continue;
        }
        bool is_frame = line_is_frame(line, &frame);
        if (words && !is_frame)
            text_copy(p->words, sizeof p->words, handler_trimmed(line).p, handler_trimmed(line).n);
        words = false;
        if (!head || !is_frame || text_starts(frame.function, "_run_") || frame.file.n >= sizeof p->path)
            continue; /* runpy, of "python -m" */
        head = false;
        found = words = true;
        p->words[0] = 0;
        p->line = frame.line;
        p->module = handler_is(frame.function, "<module>");
        *own = is_program(frame.file, program);
        text_copy(p->path, sizeof p->path, frame.file.p, frame.file.n);
    }
    text_copy(p->type, sizeof p->type, type, strlen(type));
    return found && p->line && p->path[0];
}

/* --- the source --- */

static struct text line_from(struct text all, size_t at)
{
    const char *end = memchr(all.p + at, '\n', all.n - at);
    return (struct text){all.p + at, end ? (size_t)(end - all.p) - at : all.n - at};
}

static bool is_code(struct text line)
{
    line = handler_trimmed(line);
    return line.n && !strchr("#)]}", line.p[0]);
}

static unsigned indent(struct text line)
{
    unsigned n = 0;
    for (size_t i = 0; i < line.n && (line.p[i] == ' ' || line.p[i] == '\t'); i++)
        n = line.p[i] == '\t' ? (n / 8 + 1) * 8 : n + 1;
    return n;
}

static bool handler_begins(struct text line, const char *word)
{
    const size_t n = strlen(word);
    line = handler_trimmed(line);
    return text_starts(line, word) && (line.n == n || strchr(" \t:(*", line.p[n]));
}

static bool handler_is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Does who catches parent catch child? */
static bool is_parent(struct text parent, const char *child)
{
    static const struct {
        const char *parent, *child;
    } pairs[] = {{"ImportError", "ModuleNotFoundError"},
                 {"LookupError", "KeyError"},
                 {"LookupError", "IndexError"},
                 {"ArithmeticError", "ZeroDivisionError"},
                 {"ArithmeticError", "OverflowError"},
                 {"RuntimeError", "NotImplementedError"},
                 {"RuntimeError", "OutOfMemoryError"},
                 {"ValueError", "UnicodeDecodeError"},
                 {"ValueError", "JSONDecodeError"},
                 {"OSError", "FileNotFoundError"},
                 {"OSError", "PermissionError"},
                 {"OSError", "FileExistsError"},
                 {"OSError", "ConnectionError"},
                 {"OSError", "ConnectionResetError"},
                 {"OSError", "ConnectionRefusedError"},
                 {"OSError", "BrokenPipeError"},
                 {"OSError", "TimeoutError"},
                 {"OSError", "URLError"},
                 {"OSError", "HTTPError"},
                 {"ConnectionError", "ConnectionResetError"},
                 {"ConnectionError", "BrokenPipeError"},
                 {"ConnectionError", "ConnectionRefusedError"},
                 {"SubprocessError", "CalledProcessError"}};
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        if (handler_is(parent, pairs[i].parent) && strcmp(child, pairs[i].child) == 0)
            return true;
    return false;
}

enum catches { CATCHES, CATCHES_PERHAPS, CATCHES_NOT };

/* "(OSError, json.JSONDecodeError) as e", what stands between "except" and the colon. */
static enum catches clause_catches(struct text t, const char *type)
{
    static const char *const ends[] = {"KeyboardInterrupt", "SystemExit", "GeneratorExit"};
    const char *dot = strrchr(type, '.');
    bool any = false, other = false, end = false;
    type = dot ? dot + 1 : type;
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        end |= strcmp(type, ends[i]) == 0;
    for (size_t i = 0, n; i < t.n; i += n) {
        for (n = 0; i + n < t.n && handler_is_name(t.p[i + n]);)
            n++;
        const struct text name = {t.p + i, n};
        if (n == 0 || (i + n < t.n && t.p[i + n] == '.')) { /* of "json.JSONDecodeError" the last part counts */
            n = n ? n : 1;
            continue;
        }
        if (handler_is(name, "as"))
            break;
        any = true;
        if (handler_is(name, type) || handler_is(name, "BaseException") || (handler_is(name, "Exception") && !end) ||
            is_parent(name, type))
            return CATCHES;
        bool ending = false;
        for (size_t k = 0; k < COUNT_OF(ends); k++)
            ending |= handler_is(name, ends[k]);
        other |= !ending;
    }
    return !any ? CATCHES : other ? CATCHES_PERHAPS : CATCHES_NOT;
}

static bool handler_has_any(struct text code, const char *const *words, size_t n)
{
    for (size_t i = 0; code.n && i < n; i++)
        if (text_find(code, words[i]))
            return true;
    return false;
}

/* Is one of the words in it?  What is quoted is only said. */
static bool does_any(struct text line, const char *const *words, size_t count)
{
    bool any = false;
    for (size_t i = 0, n; i < line.n && line.p[i] != '#'; i += n + 1) {
        for (n = 0; i + n < line.n && !strchr("#\"'", line.p[i + n]);)
            n++;
        any |= handler_has_any((struct text){line.p + i, n}, words, count);
        if (i + n >= line.n || line.p[i + n] == '#')
            break;
        const char mark = line.p[i + n];
        while (i + ++n < line.n && line.p[i + n] != mark)
            n += line.p[i + n] == '\\';
    }
    return any;
}

/* A word that may mean that it lets go of what the other ranks wait for. */
static bool closes(struct text line)
{
    static const char *const words[] = {"destroy", "clean", "lose", "finish", "hutdown", "erminate"};
    return does_any(line, words, COUNT_OF(words));
}

/* ... or that the program, or the function, comes to its end. */
static bool handler_leaves(struct text line)
{
    static const char *const words[] = {"raise", "exit", "Exit",  "return", "abort", "kill",   "quit",
                                        "die",   "fail", "fatal", "stop",   "break", "errors", "interrupt"};
    return closes(line) || does_any(line, words, COUNT_OF(words));
}

struct around {
    bool may;    /* something is around it that may have caught it */
    bool caught; /* ... that has, ... */
    bool left;   /* ... and perhaps to end */
    bool closes; /* ... or to close what it has, but for a loop */
};

/* Behind "except …:" of a line; n 0: the colon is in another one. */
static struct text behind_colon(struct text line, struct text *types)
{
    unsigned depth = 0;
    for (size_t i = 0; i < line.n; i++) {
        depth += line.p[i] == '(' || line.p[i] == '[';
        depth -= depth && (line.p[i] == ')' || line.p[i] == ']');
        if (line.p[i] == ':' && !depth) {
            *types = (struct text){line.p, i};
            return (struct text){line.p + i, line.n - i};
        }
    }
    *types = (struct text){line.p, 0};
    return *types;
}

/* What comes next, in this block and those around it: it closes what it has, or there is nothing. */
static void look_behind(struct text all, size_t at, unsigned own, struct around *a)
{
    unsigned lines = 0;
    for (struct text line; at < all.n && lines < BEHIND; at += line.n + 1) {
        line = line_from(all, at);
        if (!is_code(line) || indent(line) > own)
            continue;
        if (handler_begins(line, "def") || handler_begins(line, "class") || line.p[0] == '@') /* another one's text */
            break;
        lines++;
        a->closes |= closes(line);
    }
    a->closes |= !lines;
}

/* The clauses of the "try" whose line begins at that place, and what comes behind it. */
static void look_at_try(struct text all, size_t at, const char *type, struct around *a)
{
    struct text line = line_from(all, at);
    const unsigned own = indent(line);
    bool inside = false, done = false, last = false; /* the clause that catches; an earlier one has caught; "finally" */
    for (at += line.n + 1; at < all.n; at += line.n + 1) {
        line = line_from(all, at);
        if (!is_code(line))
            continue;
        if (indent(line) > own) {
            a->left |= (inside || last) && handler_leaves(line);
            continue;
        }
        inside = false;
        last = handler_begins(line, "finally");
        if (indent(line) < own || !(handler_begins(line, "except") || handler_begins(line, "else") || last))
            break;
        if (!handler_begins(line, "except") || done)
            continue;
        struct text t = handler_trimmed(line), types;
        t = (struct text){t.p + strlen("except"), t.n - strlen("except")};
        const struct text rest = behind_colon(t, &types);
        enum catches c = !rest.n || text_starts(t, "*") ? CATCHES_PERHAPS : clause_catches(types, type);
        a->may |= c != CATCHES_NOT;
        a->left |= c == CATCHES_PERHAPS || (c == CATCHES && handler_leaves(rest));
        a->caught |= c == CATCHES;
        inside = done = c == CATCHES;
    }
    if (done)
        look_behind(all, at, own, a);
}

static size_t handler_line_start(struct text all, unsigned number)
{
    size_t at = 0;
    for (unsigned i = 1; i < number && at < all.n; i++)
        at += line_from(all, at).n + 1;
    return at;
}

enum handler handler_find(struct text source, const struct handler_place *p)
{
    size_t at = p->line ? handler_line_start(source, p->line) : source.n;
    struct around a = {0};
    if (at >= source.n)
        return HANDLER_UNKNOWN;
    struct text line = line_from(source, at);
    unsigned least = indent(line);
    bool loop = false;
    if (!p->words[0] || !handler_is(handler_trimmed(line), p->words))
        return HANDLER_UNKNOWN;
    if (handler_begins(line, "try"))
        look_at_try(source, at, p->type, &a);
    while (at > 0 && least > 0) {
        for (at--; at > 0 && source.p[at - 1] != '\n';)
            at--;
        line = line_from(source, at);
        if (!is_code(line) || indent(line) >= least)
            continue;
        least = indent(line);
        if (handler_begins(line, "try"))
            look_at_try(source, at, p->type, &a);
        loop |= a.caught && (handler_begins(line, "for") || handler_begins(line, "while"));
        a.may |= handler_begins(line, "with") || handler_begins(line, "async");
        if (handler_begins(line, "def") || handler_begins(line, "async def") || handler_begins(line, "class")) {
            if (p->module)
                return HANDLER_UNKNOWN;
            break;
        }
    }
    if (a.caught)
        return a.left || (a.closes && !loop) ? HANDLER_UNKNOWN : HANDLER_GOES_ON;
    return p->module && !a.may ? HANDLER_NONE : HANDLER_UNKNOWN;
}
