/* What one worker's end says of the program. */
#include <stdio.h>
#include <string.h>

#include "failure/restart_policy.h"
#include "util/text.h"
#include "util/array.h"

static const char *last_name(const char *type)
{
    const char *dot = strrchr(type, '.');
    return dot ? dot + 1 : type;
}

/* Of TypeError and AttributeError: what a module has and what a function takes is written, not computed. */
static bool restart_digest_is_written(const char *message)
{
    static const char *const parts[] = {
        "got an unexpected keyword argument",
        "required positional argument",
        "required keyword-only argument",
        "got multiple values for",
        " takes no arguments",
        "() takes ",
    };
    const struct text said = {message, strlen(message)};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (text_find(said, parts[i]))
            return true;
    return text_find(said, "has no attribute") && (text_starts(said, "module '") || text_starts(said, "type object '"));
}

static enum restart_kind kind_of_type(const char *type)
{
    static const struct {
        const char *type;
        enum restart_kind kind;
    } kinds[] = {
        {"SyntaxError", RESTART_TEXT},
        {"IndentationError", RESTART_TEXT},
        {"TabError", RESTART_TEXT},
        {"ImportError", RESTART_TEXT},
        {"ModuleNotFoundError", RESTART_TEXT},
        {"NameError", RESTART_TEXT},
        {"AttributeError", RESTART_CALL},
        {"TypeError", RESTART_CALL},
        {"UnboundLocalError", RESTART_CALL}, /* a child of NameError, but which way the program took decides it */
    };
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (strcmp(last_name(type), kinds[i].type) == 0)
            return kinds[i].kind;
    return RESTART_CODE;
}

/* Words of the interpreter and of argparse, which print no traceback: NULL if it is none of them. */
static const char *clause_of(const struct failure *f)
{
    const struct text said = {f->found.message, strlen(f->found.message)};
    if (f->end != FAILURE_EXIT || f->found.kind != TRACEBACK_NONE)
        return NULL;
    if (f->code == 2 && text_find(said, ": can't open file '"))
        return "Python cannot open the script";
    if (classify_is_usage(f->rule) || (f->code == 2 && !f->helper && text_find(said, ": error: ")))
        return "the script refused its arguments";
    if (f->rule == CLASSIFY_UNREADABLE)
        return "SyntaxError";
    if (classify_is_command(f->rule))
        return "a command of the program is not there, or cannot be run";
    if (f->code == 1 && (text_find(said, ": No module named ") || text_find(said, ": Error while finding module spec")))
        return "Python does not find the module";
    return NULL;
}

/* Raised by a parser of command lines or configurations, some of which raise what others raise, too. */
static bool is_refusal(const struct failure *f)
{
    static const char *const types[] = {
#define X(name) name,
        FAILURE_USAGE_TYPES(X)
#undef X
    };
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (strcmp(last_name(f->found.type), types[i]) == 0)
            return true;
    return text_find((struct text){f->found.message, strlen(f->found.message)}, "are not used by the HfArgumentParser");
}

static void restart_digest_describe(struct restart_digest *one, const struct failure *f)
{
    const char *clause = clause_of(f);
    one->elapsed = f->elapsed;
    one->witnesses = 1;
    if (clause) {
        one->kind = f->went_on || f->lingered ? RESTART_CODE : RESTART_TEXT;
        snprintf(one->what, sizeof one->what, "%s", clause);
        return;
    }
    if (classify_is_passing(f->rule)) {
        one->kind = RESTART_PASSING;
        return;
    }
    /* The interpreter's own status after an exception that nobody caught; with another one the program went on after
     * what it printed, and chose how to end. */
    bool status = f->end == FAILURE_EXIT ? f->code == 1 : failure_by_exception(f);
    if (f->class != FAILURE_CLASS_CODE || !status) {
        one->kind = RESTART_OTHER;
        return;
    }
    const char *type = f->child[0] ? f->child : f->found.type;
    one->kind = kind_of_type(type);
    if (f->child[0] && one->kind == RESTART_CALL) /* the child's words are not kept */
        one->kind = RESTART_CODE;
    if (is_refusal(f) || (one->kind == RESTART_CALL && restart_digest_is_written(f->found.message)))
        one->kind = RESTART_TEXT;
    /* An interpreter with large libraries takes its time; the parser of a command line is not asked twice. */
    bool on = f->went_on || (f->lingered && !is_refusal(f));
    if (f->logged || on) /* who catches an exception may go on after it, and end of something else */
        one->kind = RESTART_CODE;
    snprintf(one->what, sizeof one->what, "%s", last_name(type));
    if (f->found.file[0])
        snprintf(one->place, sizeof one->place, "%s:%u", f->found.file, f->found.line);
}

void restart_add(struct restart_digest *d, const struct failure *f, uint64_t node)
{
    struct restart_digest one = {.node = node};
    if (f->by == FAILURE_BY_ELRUN)
        return;
    if (f->follower) /* it had come to where workers wait for each other */
        one.passed = true;
    else
        restart_digest_describe(&one, f);
    if (f->class == FAILURE_CLASS_HARDWARE && f->witnessed) {
        one.hardware = true;
        const char *said = f->message ? f->message : f->found.message;
        said = *said ? said : failure_class_text(f->class);
        text_copy(one.evidence, sizeof one.evidence, said, strlen(said));
    }
    restart_merge(d, &one);
}
