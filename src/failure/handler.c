#include "failure/handler.h"

#include <string.h>

#include "failure/traceback_line.h"
#include "util/array.h"

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

static bool handler_ends(struct text t, const char *with)
{
    const size_t n = strlen(with);
    return t.n >= n && memcmp(t.p + t.n - n, with, n) == 0;
}

/* Without what Python puts behind the name of a program: ".../pack/__main__.py" is that of a package, or a folder. */
static struct text handler_stem(struct text file)
{
    static const char *const ends[] = {"/__main__.py", "/__main__.pyc", ".pyc", ".py"};
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (file.n > strlen(ends[i]) && handler_ends(file, ends[i]))
            return (struct text){file.p, file.n - strlen(ends[i])};
    while (file.n > 1 && file.p[file.n - 1] == '/')
        file.n--;
    return file;
}

static struct text handler_without_dot(struct text path)
{
    while (text_starts(path, "./"))
        path = (struct text){path.p + 2, path.n - 2};
    return path;
}

static struct text handler_last(struct text path, char before)
{
    for (size_t i = path.n; i > 0; i--)
        if (path.p[i - 1] == before)
            return (struct text){path.p + i, path.n - i};
    return path;
}

static bool handler_same(struct text a, struct text b)
{
    return a.n == b.n && (!a.n || memcmp(a.p, b.p, a.n) == 0);
}

/* ".../org/pack" for "org.pack". */
static bool handler_is_module(struct text file, struct text name)
{
    if (file.n < name.n || (file.n > name.n && file.p[file.n - name.n - 1] != '/'))
        return false;
    file = (struct text){file.p + file.n - name.n, name.n};
    for (size_t i = 0; i < name.n; i++)
        if (file.p[i] != (name.p[i] == '.' ? '/' : name.p[i]))
            return false;
    return name.n > 0;
}

/* Python writes the script as it was named, or with the folder in front in which it was started. */
static bool handler_is_script(struct text file, struct text name, const char *folder)
{
    const size_t n = strlen(folder);
    if (handler_same(file, name))
        return true;
    file = handler_without_dot(file);
    name = handler_without_dot(name);
    if (handler_same(file, name))
        return true;
    return n && name.n && name.p[0] != '/' && text_starts(file, folder) && file.n > n + 1 && file.p[n] == '/' &&
           handler_same((struct text){file.p + n + 1, file.n - n - 1}, name);
}

static enum handler_own handler_whose(struct text file, const struct handler_program *program)
{
    if (!program->name)
        return HANDLER_OWN_UNKNOWN;
    const struct text name = {program->name, strlen(program->name)};
    file = handler_stem(file);
    if (program->module)
        return handler_is_module(file, name)                                    ? HANDLER_OWN
               : handler_same(handler_last(file, '/'), handler_last(name, '.')) ? HANDLER_OWN_UNKNOWN
                                                                                : HANDLER_OTHERS;
    const struct text script = handler_stem(name);
    return handler_is_script(file, script, program->folder)                   ? HANDLER_OWN
           : handler_same(handler_last(file, '/'), handler_last(script, '/')) ? HANDLER_OWN_UNKNOWN
                                                                              : HANDLER_OTHERS;
}

/* Of "python -m". */
static bool handler_is_runpy(struct text file)
{
    return handler_is(file, "<frozen runpy>") || handler_ends(file, "/runpy.py");
}

struct handler_scan {
    struct handler_place *p;
    const struct handler_program *program;
    enum handler_own own;
    bool any;                             /* a header was there */
    bool chain;                           /* the line before says that the next traceback belongs to this one */
    bool head, words, typed, found, user; /* head: the next frame is the outermost */
};

static void handler_take_frame(struct handler_scan *s, const struct line_frame *frame, bool marked)
{
    struct handler_place *p = s->p;
    s->head = false;
    s->found = s->words = true;
    s->user = frame->user;
    p->words[0] = 0;
    p->line = frame->line;
    p->caught = marked;
    p->module = handler_is(frame->function, "<module>");
    s->own = handler_whose(frame->file, s->program);
    text_copy(p->path, sizeof p->path, frame->file.p, frame->file.n);
}

/* False: this traceback stands in the message of the one before: it is of another process, perhaps of another host. */
static bool handler_take_line(struct handler_scan *s, struct text line)
{
    struct line_frame frame;
    struct text type, message;
    if (text_starts(line, "Traceback (most recent call last):")) {
        if (s->any && !s->chain)
            return false;
        s->any = s->head = true;
        s->found = s->words = s->typed = s->chain = false;
        return true;
    }
    s->chain = line_is_chain(line) || (s->chain && line_is_blank(line));
    const bool is_frame = line_is_frame(line, &frame), marked = is_frame && line.p[0] == '>';
    if (s->words && !is_frame)
        text_copy(s->p->words, sizeof s->p->words, handler_trimmed(line).p, handler_trimmed(line).n);
    s->words = false;
    if (s->found && !s->typed && !is_frame && line.n && line.p[0] != ' ' &&
        line_is_exception(line, false, &type, &message)) {
        s->typed = true;
        text_copy(s->p->type, sizeof s->p->type, type.p, type.n);
    }
    /* Loguru shows the frames outside the one that caught it, too, and marks that one. */
    if (is_frame && !s->typed && (s->head || marked) && !handler_is_runpy(frame.file) &&
        frame.file.n < sizeof s->p->path)
        handler_take_frame(s, &frame, marked);
    return true;
}

bool handler_place(struct text stack, const char *type, const struct handler_program *program, struct handler_place *p,
                   enum handler_own *own)
{
    struct handler_scan s = {.p = p, .program = program};
    struct text line;
    text_copy(p->type, sizeof p->type, type, strlen(type));
    while (text_line(&stack, &line))
        if (!handler_take_line(&s, handler_without_rank(line)))
            return false;
    *own = s.own;
    if (!s.found || !p->line || !p->path[0])
        return false;
    if (!s.user && s.own != HANDLER_OWN) { /* an installed package: what it does with its exceptions is not looked at */
        p->words[0] = 0;
        return p->module;
    }
    return true;
}

/* --- the source --- */

static struct text line_from(struct text all, size_t at)
{
    const char *end = memchr(all.p + at, '\n', all.n - at);
    return (struct text){all.p + at, end ? (size_t)(end - all.p) - at : all.n - at};
}

/* Lines of Python, from the beginning of a statement on. */
struct handler_lines {
    struct text all;
    size_t at;           /* of the next line */
    unsigned depth;      /* of the brackets that are open */
    char quote;          /* of the string that is open; 0 = none is */
    bool triple, joined; /* joined: a "\" has ended the line before */
};

struct handler_line {
    size_t at;
    struct text text, code; /* code: without the string of an earlier line with which it begins */
    bool quoted;            /* it begins in a string */
    bool first;             /* it begins a statement */
};

static size_t handler_skip_quoted(struct handler_lines *s, struct text t, size_t i)
{
    const char c = t.p[i];
    if (c == '\\')
        return i + 2;
    if (c != s->quote)
        return i + 1;
    if (!s->triple || (i + 2 < t.n && t.p[i + 1] == c && t.p[i + 2] == c)) {
        s->quote = 0;
        return i + (s->triple ? 3 : 1);
    }
    return i + 1;
}

static bool handler_next(struct handler_lines *s, struct handler_line *l)
{
    if (s->at >= s->all.n)
        return false;
    struct text t = line_from(s->all, s->at);
    const bool within = s->quote || s->depth || s->joined;
    *l = (struct handler_line){.at = s->at, .text = t, .code = t, .quoted = s->quote != 0};
    s->at += t.n + 1;
    s->joined = false;
    if (t.n && t.p[t.n - 1] == '\r')
        t.n--;
    size_t i = 0, from = l->quoted ? t.n : 0;
    bool outside = !l->quoted;
    while (i < t.n) {
        const char c = t.p[i];
        if (s->quote) {
            i = handler_skip_quoted(s, t, i);
            from = !outside && !s->quote ? i : from;
            outside |= !s->quote;
            continue;
        }
        if (c == '#')
            break;
        if (c == '"' || c == '\'') {
            s->quote = c;
            s->triple = i + 2 < t.n && t.p[i + 1] == c && t.p[i + 2] == c;
            i += s->triple ? 3 : 1;
            continue;
        }
        s->depth += strchr("([{", c) && c;
        s->depth -= s->depth && c && strchr(")]}", c);
        i += c == '\\' && i + 1 == t.n ? 2 : 1;
    }
    const bool back = i > t.n; /* a "\" ends it */
    if (s->quote && !s->triple && !back)
        s->quote = 0;
    s->joined = back && !s->quote;
    l->code = (struct text){t.p + from, t.n - from};
    t = handler_trimmed(t);
    l->first = !within && t.n && t.p[0] != '#';
    return true;
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

static bool handler_is_loop(struct text line)
{
    return handler_begins(line, "for") || handler_begins(line, "while") || handler_begins(line, "async for");
}

/* A function or a class begins. */
static bool handler_is_scope(struct text line)
{
    return handler_begins(line, "def") || handler_begins(line, "async def") || handler_begins(line, "class") ||
           text_starts(handler_trimmed(line), "@");
}

static bool handler_is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Does who catches parent, one of Python's own, catch child, as Python writes it? */
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
                 {"RuntimeError", "torch.OutOfMemoryError"},
                 {"RuntimeError", "torch.cuda.OutOfMemoryError"},
                 {"ValueError", "UnicodeDecodeError"},
                 {"ValueError", "json.decoder.JSONDecodeError"},
                 {"OSError", "FileNotFoundError"},
                 {"OSError", "PermissionError"},
                 {"OSError", "FileExistsError"},
                 {"OSError", "ConnectionError"},
                 {"OSError", "ConnectionResetError"},
                 {"OSError", "ConnectionRefusedError"},
                 {"OSError", "BrokenPipeError"},
                 {"OSError", "TimeoutError"},
                 {"OSError", "urllib.error.URLError"},
                 {"OSError", "urllib.error.HTTPError"},
                 {"ConnectionError", "ConnectionResetError"},
                 {"ConnectionError", "BrokenPipeError"},
                 {"ConnectionError", "ConnectionRefusedError"}};
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        if (handler_is(parent, pairs[i].parent) && strcmp(child, pairs[i].child) == 0)
            return true;
    return false;
}

enum catches { CATCHES, CATCHES_PERHAPS, CATCHES_NOT };

/* "Exception" does not catch them. */
static bool ends_all(struct text name)
{
    static const char *const ends[] = {"KeyboardInterrupt", "SystemExit", "GeneratorExit", "CancelledError"};
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (handler_is(name, ends[i]))
            return true;
    return false;
}

static struct text handler_top(struct text name)
{
    const char *dot = memchr(name.p, '.', name.n);
    return dot ? (struct text){name.p, (size_t)(dot - name.p)} : name;
}

/* Two of one name may be two types: requests.exceptions.ConnectionError is no ConnectionError. */
static enum catches name_catches(struct text name, const char *type)
{
    const struct text full = {type, strlen(type)}, last = handler_last(name, '.'), child = handler_last(full, '.');
    const bool dotted = last.n < name.n, child_dotted = child.n < full.n;
    if (handler_is(name, "BaseException") || (handler_is(name, "Exception") && !ends_all(child)))
        return CATCHES;
    if (handler_same(last, child))
        return dotted == child_dotted && (!dotted || handler_same(handler_top(name), handler_top(full)))
                   ? CATCHES
                   : CATCHES_PERHAPS;
    if (!dotted && is_parent(name, type))
        return CATCHES;
    return ends_all(last) ? CATCHES_NOT : CATCHES_PERHAPS;
}

/* "(OSError, json.JSONDecodeError) as e", what stands between "except" and the colon. */
static enum catches clause_catches(struct text t, const char *type)
{
    bool any = false, perhaps = false;
    for (size_t i = 0, n; i < t.n; i += n) {
        for (n = 0; i + n < t.n && (handler_is_name(t.p[i + n]) || t.p[i + n] == '.');)
            n++;
        const struct text name = {t.p + i, n};
        n = n ? n : 1;
        if (!name.n)
            continue;
        if (handler_is(name, "as"))
            break;
        any = true;
        const enum catches c = name_catches(name, type);
        if (c == CATCHES)
            return c;
        perhaps |= c == CATCHES_PERHAPS;
    }
    return !any ? CATCHES : perhaps ? CATCHES_PERHAPS : CATCHES_NOT;
}

/* The next piece of it that is code: what is quoted is only said. */
static bool handler_piece(struct text *line, struct text *piece)
{
    size_t n = 0;
    while (n < line->n && !strchr("#\"'", line->p[n]))
        n++;
    if (!line->n || line->p[0] == '#')
        return false;
    *piece = (struct text){line->p, n};
    if (n < line->n && line->p[n] != '#')
        for (const char mark = line->p[n]; ++n < line->n && line->p[n] != mark;)
            n += line->p[n] == '\\';
    n += n < line->n && line->p[n] != '#';
    n = n < line->n ? n : line->n;
    *line = (struct text){line->p + n, line->n - n};
    return true;
}

/* Is one of the words in it? */
static bool does_any(struct text line, const char *const *words, size_t count)
{
    struct text piece;
    while (handler_piece(&line, &piece))
        for (size_t i = 0; piece.n && i < count; i++)
            if (text_find(piece, words[i]))
                return true;
    return false;
}

static bool handler_uses(struct text line, struct text name)
{
    struct text piece;
    while (handler_piece(&line, &piece))
        for (size_t i = 0, n; i < piece.n; i += n ? n : 1) {
            for (n = 0; i + n < piece.n && handler_is_name(piece.p[i + n]);)
                n++;
            if (n && handler_same((struct text){piece.p + i, n}, name))
                return true;
        }
    return false;
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
    static const char *const words[] = {"raise", "exit", "Exit",  "return", "bort",  "kill",   "quit",
                                        "die",   "fail", "fatal", "stop",   "break", "errors", "interrupt"};
    return closes(line) || does_any(line, words, COUNT_OF(words));
}

/* ... and of a line behind the "try". */
static bool handler_ends_there(struct text line)
{
    static const char *const words[] = {"raise", "exit", "Exit", "return", "bort", "quit"};
    return does_any(line, words, COUNT_OF(words));
}

static bool handler_breaks(struct text line)
{
    static const char *const words[] = {"break", "return"};
    return does_any(line, words, COUNT_OF(words));
}

enum {
    BEHIND = 4,       /* lines behind the "try" that tell whether it cleared up */
    NAMES_MAX = 8,    /* that a clause assigns, and ... */
    WORDS_MAX = 16,   /* ... words of one line */
    BLOCKS_MAX = 100, /* deeper ones Python refuses */
    TRIES_MAX = 64    /* of them */
};

struct handler_block {
    size_t at;
    struct text line;
    unsigned indent;
};

struct around {
    bool may;    /* something is around it that may have caught it */
    bool caught; /* ... that has, ... */
    bool left;   /* ... and perhaps to end */
    bool closes; /* ... or to close what it has, but for a loop */
    bool loop;   /* in a loop, which goes on */
};

/* One "try" and what is around it. */
struct handler_try {
    struct text all;
    size_t at, from, behind; /* from: of the clause that catches */
    unsigned indent;
    int floor;                   /* indent of its function; -1: the module's own */
    int loop;                    /* ... of the innermost loop of that; -1: none */
    size_t loops;                /* where the outermost one begins */
    bool retries;                /* the loop ends when it went well */
    struct text name[NAMES_MAX]; /* assigned by the clause */
    unsigned names;
    bool many; /* more than these */
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

static bool handler_is_keyword(struct text word)
{
    static const char *const words[] = {"if", "else", "elif", "for", "while", "with", "in", "not", "is", "and", "or"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (handler_is(word, words[i]))
            return true;
    return false;
}

/* What a line of the clause assigns: "rc = 1", "self.ok = False", "state["failed"] += 1", "a, b = 1, 2". */
static void handler_take_names(struct handler_try *t, struct text line)
{
    struct text word[WORDS_MAX];
    unsigned words = 0, depth = 0;
    for (size_t i = 0, n = 1; i < line.n && line.p[i] != '#'; i += n) {
        const char c = line.p[i], next = i + 1 < line.n ? line.p[i + 1] : 0, last = i ? line.p[i - 1] : 0;
        n = 1;
        if (c == '"' || c == '\'') {
            while (i + n < line.n && line.p[i + n] != c)
                n += line.p[i + n] == '\\' ? 2 : 1;
            n++;
        } else if (handler_is_name(c)) {
            while (i + n < line.n && handler_is_name(line.p[i + n]))
                n++;
            const struct text w = {line.p + i, n};
            if ((i + n < line.n && line.p[i + n] == '.') || handler_is_keyword(w))
                continue;
            t->many |= words == WORDS_MAX;
            if (words < WORDS_MAX)
                word[words++] = w;
        } else if (c && strchr("([{", c)) {
            depth++;
        } else if (c && strchr(")]}", c)) {
            depth -= depth > 0;
        } else if (c == ';') {
            words = 0;
        } else if (c == '=' && next == '=') {
            n = 2;
        } else if (c == '=' && !depth && !strchr("!<>", last ? last : ' ')) {
            for (unsigned k = 0; k < words; k++) {
                t->many |= t->names == NAMES_MAX;
                if (t->names < NAMES_MAX)
                    t->name[t->names++] = word[k];
            }
            words = 0;
        }
    }
}

/* What comes next, in this block and those around it: it ends, or closes what it has, or there is nothing. */
static void look_behind(struct handler_try *t, struct around *a)
{
    struct handler_lines s = {.all = t->all, .at = t->behind};
    unsigned lines = 0, least = t->indent;
    for (struct handler_line l; lines < BEHIND && handler_next(&s, &l);) {
        const unsigned in = indent(l.text);
        if (!l.first || in > least)
            continue;
        if ((int)in <= t->floor || handler_is_scope(l.text)) /* another one's text */
            break;
        least = in;
        if (handler_begins(l.text, "else") || handler_begins(l.text, "elif") || handler_begins(l.text, "except"))
            continue;
        lines++;
        a->closes |= closes(l.text);
        const bool inside = t->loop >= 0 && (int)in > t->loop;
        t->retries |= inside && handler_breaks(l.text);
        a->left |= (t->loop < 0 || inside || t->retries) && handler_ends_there(l.text);
    }
    a->closes |= !lines;
}

/* "for … else": that is what comes when no turn went well. */
static void look_at_loop_else(const struct handler_try *t, struct around *a)
{
    struct handler_lines s = {.all = t->all, .at = t->behind};
    bool other = false;
    for (struct handler_line l; t->loop >= 0 && handler_next(&s, &l);) {
        if (l.first && (int)indent(l.text) <= t->loop) {
            if (other || (int)indent(l.text) < t->loop || !handler_begins(l.text, "else"))
                return;
            other = true;
        }
        a->left |= other && (closes(l.code) || handler_ends_there(l.code));
    }
}

/* Does something ask for what the clause has assigned, a status as a rule?  In a loop also what stands before it. */
static bool asks_for_names(const struct handler_try *t)
{
    const bool loop = t->loop >= 0;
    struct handler_lines s = {.all = t->all, .at = loop ? t->loops : t->behind};
    for (struct handler_line l; t->names && handler_next(&s, &l);) {
        if (l.at >= t->behind && l.first && (int)indent(l.text) <= t->floor)
            return false;
        if (l.at >= t->from && l.at < t->behind)
            continue;
        for (unsigned i = 0; i < t->names; i++)
            if (handler_uses(l.code, t->name[i]))
                return true;
    }
    return false;
}

/* The clauses of the "try", and what comes behind it. */
static void look_at_try(struct handler_try *t, const char *type, struct around *a)
{
    struct handler_lines s = {.all = t->all, .at = t->at};
    struct handler_line l;
    bool inside = false, done = false, last = false, body = true; /* the clause that catches; ...; "finally" */
    bool breaks = false;
    t->behind = t->all.n;
    handler_next(&s, &l);
    breaks |= handler_breaks(l.code);
    while (handler_next(&s, &l)) {
        if (!l.first || indent(l.text) > t->indent) {
            a->left |= (inside || last) && handler_leaves(l.code);
            breaks |= body && handler_breaks(l.code);
            if (inside && l.first)
                handler_take_names(t, l.code);
            continue;
        }
        inside = body = false;
        last = handler_begins(l.text, "finally");
        t->behind = l.at;
        if (indent(l.text) < t->indent || !(handler_begins(l.text, "except") || handler_begins(l.text, "else") || last))
            break;
        t->behind = t->all.n;
        if (!handler_begins(l.text, "except") || done)
            continue;
        struct text clause = handler_trimmed(l.text), types;
        clause = (struct text){clause.p + strlen("except"), clause.n - strlen("except")};
        const struct text rest = behind_colon(clause, &types);
        enum catches c = !rest.n || text_starts(clause, "*") ? CATCHES_PERHAPS : clause_catches(types, type);
        a->may |= c != CATCHES_NOT;
        a->left |= c == CATCHES_PERHAPS || (c == CATCHES && handler_leaves(rest));
        a->caught |= c == CATCHES;
        inside = done = c == CATCHES;
        t->from = done ? l.at : t->from;
        if (done)
            handler_take_names(t, rest);
    }
    if (!done)
        return;
    t->retries = t->loop >= 0 && breaks;
    look_behind(t, a);
    look_at_loop_else(t, a);
    a->left |= t->many || asks_for_names(t);
    a->loop |= t->loop >= 0 && !t->retries;
}

/* The one in that block, with what is around it. */
static void handler_try_around(struct handler_try *t, struct text all, const struct handler_block *block, unsigned n)
{
    *t = (struct handler_try){
        .all = all, .at = block[n].at, .from = all.n, .indent = block[n].indent, .floor = -1, .loop = -1};
    while (n-- > 0 && t->floor < 0) {
        if (handler_is_scope(block[n].line))
            t->floor = (int)block[n].indent;
        if (t->floor < 0 && handler_is_loop(block[n].line)) {
            t->loop = t->loop < 0 ? (int)block[n].indent : t->loop;
            t->loops = block[n].at;
        }
    }
}

/* The statements around that line, and its own; 0: it is another one by now, or none, or the text is not Python's. */
static unsigned handler_blocks(struct text source, const struct handler_place *p, struct handler_block *block)
{
    struct handler_lines s = {.all = source};
    struct handler_line l;
    unsigned n = 0, number = 0;
    while (number < p->line) {
        if (!handler_next(&s, &l))
            return 0;
        number++;
        if (!l.first)
            continue;
        while (n && block[n - 1].indent >= indent(l.text))
            n--;
        if (n == BLOCKS_MAX)
            return 0;
        block[n++] = (struct handler_block){l.at, l.text, indent(l.text)};
    }
    if (!number || l.quoted || !p->words[0] || !handler_is(handler_trimmed(l.text), p->words))
        return 0;
    while (handler_next(&s, &l))
        ;
    return s.quote || s.depth || s.joined ? 0 : n;
}

enum handler handler_find(struct text source, const struct handler_place *p)
{
    struct handler_block block[BLOCKS_MAX];
    struct handler_try t;
    struct around a = {0};
    unsigned n = handler_blocks(source, p, block), tries = 0;
    if (!n)
        return HANDLER_UNKNOWN;
    for (unsigned i = n; i-- > 0;) {
        const struct text line = block[i].line;
        if (handler_begins(line, "try")) {
            if (++tries > TRIES_MAX)
                return HANDLER_UNKNOWN;
            handler_try_around(&t, source, block, i);
            look_at_try(&t, p->type, &a);
        }
        if (i == n - 1)
            continue;
        a.may |= handler_begins(line, "with") || handler_begins(line, "async");
        if (handler_is_scope(line)) {
            if (p->module)
                return HANDLER_UNKNOWN;
            break;
        }
    }
    if (a.caught)
        return a.left || (a.closes && !a.loop) ? HANDLER_UNKNOWN : HANDLER_GOES_ON;
    return p->module && !a.may && !p->caught ? HANDLER_NONE : HANDLER_UNKNOWN;
}
