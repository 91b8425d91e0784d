#include "failure/exiting.h"

#include <stdio.h>
#include <string.h>

#include "failure/survived.h"
#include "util/text.h"
#include "failure/traceback_line.h"

/* "[rank1]: " in front of each line, since torch 2.3. */
static struct text exiting_without_rank(struct text line)
{
    static const char mark[] = "]: ";
    const char *at = text_starts(line, "[rank") ? text_find(line, mark) : NULL;
    size_t n = at ? (size_t)(at - line.p) + sizeof mark - 1 : 0;
    return (struct text){line.p + n, line.n - n};
}

static bool exiting_is(struct text t, const char *what)
{
    return t.n == strlen(what) && memcmp(t.p, what, t.n) == 0;
}

/* Does the last traceback of them begin where a program does? */
static bool begins_at_module(struct text all)
{
    struct text line;
    struct line_frame frame;
    bool head = false, module = false;
    while (text_line(&all, &line)) {
        line = exiting_without_rank(line);
        if (text_starts(line, "Traceback (most recent call last):")) {
            head = true;
            module = false;
        } else if (head && line_is_frame(line, &frame)) {
            head = false;
            module = exiting_is(frame.function, "<module>") || exiting_is(frame.function, "_run_module_as_main");
        }
    }
    return module;
}

bool exiting_raised(const struct failure *f)
{
    const struct text stack = {f->stack, f->stack ? strlen(f->stack) : 0};
    bool last = f->raised && !f->went_on && !f->logged && f->stack_from == FAILURE_FROM_STDERR;
    bool own = !classify_is_follower(f->words) && classify_class(f->words) != FAILURE_CLASS_OUTSIDE;
    bool main = f->found.kind == TRACEBACK_PYTHON && !f->found.in_thread && !f->found.headless;
    return last && own && main && stack.n && begins_at_module(stack);
}

/* Python waits for threads that are no daemons in threading._shutdown(), which the module does not call. */
static bool is_in_shutdown(struct text stacks)
{
    struct text line;
    struct line_frame frame;
    bool shutdown = false;
    while (text_line(&stacks, &line)) {
        if (!line_is_frame(exiting_without_rank(line), &frame))
            continue;
        if (exiting_is(frame.function, "<module>") || exiting_is(frame.function, "_run_module_as_main"))
            return false;
        shutdown |= exiting_is(frame.function, "_shutdown");
    }
    return shutdown;
}

bool exiting_find(struct text all, struct traceback *before)
{
    struct traceback_chain chain;
    struct classify c;
    const char *at = text_find(all, "Fatal Python error: ");
    const struct text said = {all.p, at ? (size_t)(at - all.p) : 0};
    if (!said.n || !is_in_shutdown((struct text){at, all.n - said.n}))
        return false;
    traceback_find_chain(before, &chain, said.p, said.n);
    classify_words(&c, before, &chain, said);
    return before->kind == TRACEBACK_PYTHON && !before->in_thread && !classify_is_follower(c.rule) &&
           begins_at_module((struct text){said.p + before->start, before->end - before->start}) &&
           survived_is_end(before, &chain, said);
}

void exiting_text(const struct failure *f, char *to, size_t size)
{
    const char *slash = strrchr(f->found.file, '/'), *name = slash ? slash + 1 : f->found.file;
    const char *message = f->message ? f->message : f->found.type;
    int n = snprintf(to, size, "%.160s", message);
    if (f->found.line && n > 0 && (size_t)n < size)
        snprintf(to + n, size - (size_t)n, " (%.60s:%u)", name, f->found.line);
}
