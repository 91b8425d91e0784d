#include "failure/child_error.h"

#include <string.h>

#include "failure/survived.h"
#include "failure/traceback_line.h"

enum { LINES_BEHIND_MAX = 4 }; /* "make: *** [all] Error 1" */

static bool child_error_is_equal(struct text a, struct text b)
{
    return a.n == b.n && (!a.n || memcmp(a.p, b.p, a.n) == 0);
}

/* The outermost frame of the exception that was raised last; false: it has none.  "python -m" has its own around it. */
static bool outermost(struct text all, struct line_frame *out)
{
    struct text line;
    bool open = true, any = false;
    while (text_line(&all, &line)) {
        const char *at = text_find(line, "  File \""); /* with whatever stands in front of each line */
        struct line_frame frame;
        open |= text_find(line, "Traceback (most recent call last)") != NULL;
        if (!open || !at || !line_is_frame((struct text){at, line.n - (size_t)(at - line.p)}, &frame) ||
            text_find(frame.file, "runpy"))
            continue;
        *out = frame;
        any = true;
        open = false;
    }
    return any;
}

static unsigned count_lines(struct text t)
{
    struct text line;
    unsigned lines = 0;
    while (text_line(&t, &line))
        lines += line.n > 0;
    return lines;
}

bool child_error_find(struct traceback *t, struct traceback_chain *chain, const struct traceback *found,
                      struct text all)
{
    const struct text before = {all.p, found->start}, span = {all.p + found->start, found->end - found->start};
    struct line_frame own, first;
    if (strcmp(found->type, "subprocess.CalledProcessError") != 0 || !before.n)
        return false;
    traceback_find_chain(t, chain, before.p, before.n);
    if (t->kind == TRACEBACK_NONE || !chain->n)
        return false;
    /* Words may have several lines, and be followed by others that look like theirs. */
    unsigned lines =
        count_lines(chain->v[chain->n - 1].words) + count_lines((struct text){before.p + t->end, before.n - t->end});
    if (lines > 1 + LINES_BEHIND_MAX && !survived_is_end(t, chain, before))
        return false; /* of long ago */
    if (t->kind != TRACEBACK_PYTHON)
        return true;
    const struct text module = {"<module>", 8};
    return outermost((struct text){before.p + t->start, t->end - t->start}, &first) &&
           child_error_is_equal(first.function, module) &&
           !(outermost(span, &own) && child_error_is_equal(own.file, first.file));
}
