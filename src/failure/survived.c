#include "failure/survived.h"

#include <string.h>

#include "failure/last_line.h"
#include "failure/traceback_line.h"
#include "util/array.h"

enum {
    MANY = 20,        /* lines of its own: nobody prints so many while ending */
    MANY_LOGGED = 12, /* where it is known that the exception was caught */
    RUN = 4,          /* lines of one form, but for their numbers: no message is written so */
    HEAD = 96,        /* bytes in which a line of a logger's says its level */
    TOLD_LEAST = 6,
    TOLD_MOST = 60, /* bytes of the message that are looked for in later lines */
};

static bool survived_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "[rank1]: " in front of each line, since torch 2.3. */
static struct text survived_without_rank(struct text line)
{
    const char *at = text_starts(line, "[rank") ? text_find(line, "]:") : NULL;
    size_t n = at ? (size_t)(at - line.p) + 2 : 0;
    n += n && n < line.n && line.p[n] == ' ';
    return (struct text){line.p + n, line.n - n};
}

/* Is there such a word, with no letter beside it? */
static bool has_word(struct text t, const char *word)
{
    size_t n = strlen(word);
    for (const char *at; t.n && (at = text_find(t, word)) != NULL;) {
        size_t i = (size_t)(at - t.p);
        bool before = i && ((t.p[i - 1] | 32) >= 'a' && (t.p[i - 1] | 32) <= 'z');
        bool behind = i + n < t.n && ((t.p[i + n] | 32) >= 'a' && (t.p[i + n] | 32) <= 'z');
        if (!before && !behind)
            return true;
        t = (struct text){at + n, t.n - i - n};
    }
    return false;
}

static const char *const errors[] = {"ERROR", "CRITICAL", "FATAL", "error", "critical", "fatal"};

static bool has_level(struct text line, const char *const *names, size_t n)
{
    const struct text head = {line.p, line.n < HEAD ? line.n : HEAD};
    for (size_t i = 0; i < n; i++)
        if (has_word(head, names[i]))
            return true;
    return false;
}

/* The program's own word for an error. */
static bool is_error(struct text line)
{
    for (size_t i = 0; i < COUNT_OF(errors); i++)
        if (text_starts(line, errors[i]) && line.n > strlen(errors[i]) && strchr(": ", line.p[strlen(errors[i])]))
            return true;
    return text_starts(line, "Error: ") || (line_is_record(line) && has_level(line, errors, COUNT_OF(errors)));
}

/* Printed as a program ends, whoever prints it: no sign that it went on. */
static bool is_noise(struct text line)
{
    static const char *const starts[] = {"frame #", "Exception raised from", "wandb: ", "swanlab: ", "srun: ", "| ",
                                         "+-"};
    if (line_is_blank(line) || line.p[0] == ' ' || line.p[0] == '\t' || line_is_foreign(line) || line_is_box(line) ||
        last_line_is_hint(line) || (text_find(line, "Warning: ") && !line_is_record(line)) || text_find(line, " NCCL "))
        return true;
    static const char *const ending[] = {"losing",     "hutting down", "xiting",   "leaning up", "leanup", "inaliz",
                                         "erminating", "topping",      "ploading", "lushing",    "estroy", "isconnect"};
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        if (text_starts(line, starts[i]))
            return true;
    for (size_t i = 0; i < COUNT_OF(ending); i++) /* whatever the case of its first letter */
        if (text_find(line, ending[i]))
            return true;
    return false;
}

/* Equal but for their numbers, of which there are some. */
static bool is_one_form(struct text a, struct text b)
{
    size_t i = 0, k = 0;
    bool number = false;
    while (i < a.n && k < b.n) {
        if (survived_is_digit(a.p[i]) && survived_is_digit(b.p[k])) {
            number = true;
            while (i < a.n && survived_is_digit(a.p[i]))
                i++;
            while (k < b.n && survived_is_digit(b.p[k]))
                k++;
        } else if (a.p[i++] != b.p[k++]) {
            return false;
        }
    }
    return number && i == a.n && k == b.n;
}

bool survived_goes_on(struct text line)
{
    static const char *const on[] = {"continuing", "falling back", "fallback", "retrying",  "will retry",
                                     "skipping",   "skipped",      "ignoring", "ignored",   "non-fatal",
                                     "proceeding", "retry ok",     "retried",  "recovered", "resuming"},
                             *const denied[] = {"not",     "Not",   "giving up",       "cannot",
                                                "no more", "never", "without retrying"};
    bool any = false;
    for (size_t i = 0; line.n && i < COUNT_OF(on); i++)
        any |= has_word(line, on[i]);
    for (size_t i = 0; any && i < COUNT_OF(denied); i++)
        any = !has_word(line, denied[i]);
    return any;
}

/* Of the lines that were taken for the exception's message: from which on are they other output? */
static size_t message_ends(struct text all, size_t from, size_t end)
{
    struct text rest = {all.p + from, end - from}, line, last = {0};
    unsigned run = 0;
    size_t run_at = end;
    while (text_line(&rest, &line)) {
        size_t at = (size_t)(line.p - all.p);
        line = survived_without_rank(line);
        if (line_is_blank(line) || line.p[0] == ' ' || line.p[0] == '\t')
            continue;
        if (line_is_record(line) || survived_goes_on(line))
            return run ? run_at : at;
        bool same = last.n && is_one_form(last, line);
        run = same ? run + 1 : 0;
        run_at = same ? run_at : at;
        if (run + 1 >= RUN)
            return run_at;
        last = line;
    }
    return end;
}

size_t survived_named_end(const struct traceback *t, const struct traceback_chain *chain, struct text all)
{
    if (t->kind != TRACEBACK_PYTHON || !chain->n)
        return t->end;
    const struct text words = chain->v[chain->n - 1].words;
    const char *line = words.n ? memchr(words.p, '\n', words.n) : NULL;
    size_t at = line ? (size_t)(line - all.p) + 1 : t->end;
    return at < t->end ? at : t->end;
}

size_t survived_words_end(const struct traceback *t, const struct traceback_chain *chain, struct text all)
{
    return message_ends(all, survived_named_end(t, chain, all), t->end);
}

/* The line that stands before the traceback. */
static struct text line_before(const struct traceback *t, struct text all)
{
    struct text before = {all.p, t->start};
    while (before.n && strchr(" \t\n", before.p[before.n - 1]))
        before.n--;
    for (size_t i = before.n; i > 0; i--)
        if (before.p[i - 1] == '\n') {
            before = (struct text){before.p + i, before.n - i};
            break;
        }
    return before.n ? survived_without_rank(before) : before;
}

bool survived_is_logged(const struct traceback *t, struct text all)
{
    static const char *const caught[] = {"ERROR", "CRITICAL", "FATAL",    "WARNING",
                                         "WARN",  "error",    "critical", "warning"};
    struct text head = {all.p + t->start, t->end - t->start}, line;
    if (t->kind == TRACEBACK_NONE)
        return false;
    struct text before = line_before(t, all);
    if (before.n && line_is_record(before) && has_level(before, caught, COUNT_OF(caught)))
        return true;
    return text_line(&head, &line) && line_is_record(survived_without_rank(line));
}

bool survived_is_mild(const struct traceback *t, struct text all)
{
    static const char *const mild[] = {"WARNING", "WARN", "INFO", "DEBUG", "warning", "warn", "info", "debug"};
    const struct text before = line_before(t, all);
    return t->kind != TRACEBACK_NONE && before.n && line_is_record(before) && has_level(before, mild, COUNT_OF(mild)) &&
           !has_level(before, errors, COUNT_OF(errors));
}

bool survived_came_out(const struct traceback *t, struct text all)
{
    static const char *const outermost[] = {"<module>", "_run_module_as_main", "_bootstrap", "main", "_main"};
    struct text rest = {all.p + t->start, t->end - t->start}, line;
    bool open = false, any = false;
    if (t->kind != TRACEBACK_PYTHON || t->in_thread || t->headless ||
        text_find(line_before(t, all), "Error executing job"))
        return true; /* Hydra leaves out all frames of its own */
    while (text_line(&rest, &line)) {
        const char *at = text_find(line, "  File \"");
        struct line_frame frame;
        open |= text_find(line, "Traceback (most recent call last)") != NULL;
        if (line_is_box(survived_without_rank(line)))
            return true;
        if (!open || !at || !line_is_frame((struct text){at, line.n - (size_t)(at - line.p)}, &frame))
            continue;
        for (size_t i = 0; i < COUNT_OF(outermost); i++)
            if (text_starts(frame.function, outermost[i]))
                return true;
        open = false;
        any = true;
    }
    return !any;
}

size_t survived_at(const struct traceback *t, const struct traceback_chain *chain, struct text all, bool logged,
                   bool follower)
{
    if ((t->kind != TRACEBACK_PYTHON && t->kind != TRACEBACK_GROUP) || t->nested)
        return 0;
    const size_t at = survived_words_end(t, chain, all);
    if (logged && survived_goes_on(line_before(t, all)))
        return at;
    struct text rest = {all.p + at, all.n - at}, line, told = {t->message, strlen(t->message)};
    char words[TOLD_MOST + 1];
    unsigned own = 0, others = 0;
    bool error = false, inside = false;
    text_copy(words, sizeof words, told.p, told.n < TOLD_MOST ? told.n : TOLD_MOST);
    while (text_line(&rest, &line)) {
        line = survived_without_rank(line);
        if (text_starts(line, "Traceback (most recent call last):")) {
            inside = true;
            continue;
        }
        if (is_noise(line))
            continue;
        if (inside) { /* another exception's last line: of a thread, or of a destructor */
            inside = false;
            continue;
        }
        if (told.n >= TOLD_LEAST && text_find(line, words))
            return 0;
        own++;
        error |= others && is_error(line);
        others += !is_error(line);
    }
    bool many = own >= (logged && !follower ? MANY_LOGGED : MANY);
    return many || (error && !follower) ? at : 0;
}

/* Printed by the interpreter or a library as the program ends.  More narrow than is_noise(): no words of the program.
 */
static bool is_foot(struct text line)
{
    static const char *const starts[] = {"frame #",
                                         "Exception raised from",
                                         "wandb: ",
                                         "swanlab: ",
                                         "COMET ",
                                         "srun: ",
                                         "slurmstepd: ",
                                         "| ",
                                         "+-",
                                         "Current thread ",
                                         "Thread 0x",
                                         "Python runtime state: ",
                                         "Extension modules: ",
                                         "<no Python frame>",
                                         "Fatal Python error: ",
                                         "terminate called ",
                                         "Error in atexit._run_exitfuncs",
                                         "Sentry is attempting to send",
                                         "Waiting up to ",
                                         "\xe2\x94", /* a line of a box, or its edge */
                                         "\xe2\x95",
                                         "Press Ctrl-C to quit"};
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        if (text_starts(line, starts[i]))
            return true;
    bool indented = line.n && (line.p[0] == ' ' || line.p[0] == '\t');
    if (line_is_blank(line) || (indented && !text_find(line, "%|") && !text_find(line, "it/s"))) /* tqdm's bar */
        return true;
    return line_is_foreign(line) || line_is_box(line) || last_line_is_hint(line) || text_find(line, " NCCL ") ||
           text_find(line, "conda.cli.main_run") || (text_find(line, "Warning: ") && !line_is_record(line));
}

/* The last line that is more than that; n 0: there is none. */
static struct text last_of_program(struct text rest)
{
    struct text line, last = {0};
    bool inside = false;
    while (text_line(&rest, &line)) {
        line = survived_without_rank(line);
        bool header = text_starts(line, "Traceback (most recent call last):"), foot = is_foot(line);
        if (!header && !foot && !inside) /* inside: the last line of a destructor's exception, or of a thread's */
            last = line;
        inside = header || (inside && foot);
    }
    return last;
}

bool survived_is_end(const struct traceback *t, const struct traceback_chain *chain, struct text all)
{
    const size_t at = survived_words_end(t, chain, all);
    return !last_of_program((struct text){all.p + at, all.n - at}).n;
}

bool survived_gave_up(const struct traceback *t, const struct traceback_chain *chain, struct text all)
{
    static const char *const words[] = {"rror", "ail",  "xit",   "bort", "iving up",
                                        "RROR", "atal", "annot", "topp", "erminat"};
    const size_t at = survived_words_end(t, chain, all);
    const struct text last = last_of_program((struct text){all.p + at, all.n - at});
    for (size_t i = 0; last.n && i < COUNT_OF(words); i++)
        if (text_find(last, words[i]))
            return true;
    return false;
}

enum survived_usage survived_usage(struct text all, const char *words, struct text *line)
{
    struct text rest = all, one, last;
    words += *words == '\n';
    *line = (struct text){0};
    for (last = all; text_line(&rest, &one);)
        if (text_find(one, words)) {
            *line = one;
            last = rest;
        }
    if (line->n)
        last = last_of_program(last);
    if (!line->n || !last.n)
        return SURVIVED_USAGE_END;
    return is_error(last) ? SURVIVED_USAGE_ERROR : SURVIVED_USAGE_OPEN;
}

enum survived_usage survived_help(struct text all, const char *words)
{
    const char *at = text_find(all, words);
    struct text rest = {at ? at : all.p, at ? (size_t)(all.p + all.n - at) : 0}, line;
    unsigned own = 0;
    text_line(&rest, &line);
    while (text_line(&rest, &line)) {
        bool title = line.n && line.p[line.n - 1] == ':'; /* "flags:", "absl.app:" */
        own += line.n && line.p[0] != ' ' && !title && !text_starts(line, "Try --help");
    }
    return own > 1 ? SURVIVED_USAGE_OPEN : SURVIVED_USAGE_END;
}
