#include "failure/traceback_trim.h"

#include <assert.h>

#include "failure/traceback_line.h"

/* A frame with anything short in front ("[rank1]: ", the bar of a group). */
static bool is_frame(struct text line, bool *user)
{
    struct line_frame f;
    const char *at = text_find(line, "File \"");
    if (!at || at - line.p < 2 || at - line.p > 64)
        return false;
    at -= 2;
    if (!line_is_frame((struct text){at, line.n - (size_t)(at - line.p)}, &f))
        return false;
    *user = f.user;
    return true;
}

static void traceback_trim_put(struct el_buf *out, struct text line)
{
    el_buf_put(out, line.p ? line.p : "", line.n);
    el_buf_puts(out, "\n");
}

static void put_left_out(struct el_buf *out, unsigned n, const char *what)
{
    if (n)
        el_buf_printf(out, "    [… %u %s%s …]\n", n, what, n == 1 ? "" : "s");
}

/* The lines up to the next frame, or up to the next line that is none and not the source of one. */
static struct text take_run(struct text *rest, bool frames)
{
    struct text run = {rest->p, 0}, line;
    bool user;
    for (struct text next = *rest; text_line(&next, &line);) {
        bool frame = is_frame(line, &user);
        bool source = frames && run.n && !frame && text_find((struct text){line.p, line.n < 72 ? line.n : 72}, "    ");
        if (frames ? !frame && !source : frame || (run.n && line_opens_box(line)))
            break;
        run.n = (size_t)(next.p - run.p);
    }
    rest->p += run.n;
    rest->n -= run.n;
    return run;
}

/* Frames with their source lines. */
static void traceback_trim_frames(struct text run, bool innermost_first, struct el_buf *out)
{
    unsigned users = 0, others = 0, u = 0, o = 0, left_out = 0;
    struct text rest = run, line;
    bool user = false, keep = false;
    while (text_line(&rest, &line))
        if (is_frame(line, &user))
            *(user ? &users : &others) += 1;
    for (rest = run; text_line(&rest, &line);) {
        if (is_frame(line, &user)) {
            unsigned at = user ? u++ : o++, all = user ? users : others,
                     most = user ? TRACEBACK_TRIM_USER_FRAMES : TRACEBACK_TRIM_OTHER_FRAMES;
            keep = innermost_first ? at < most : at + most >= all;
            if (keep) {
                put_left_out(out, left_out, "frame");
                left_out = 0;
            }
            left_out += !keep;
        }
        if (keep)
            traceback_trim_put(out, line);
    }
    put_left_out(out, left_out, "frame");
}

/* A box of rich, with its lower edge; n 0: it is none. */
static struct text traceback_trim_take_box(struct text *rest)
{
    struct text run = {rest->p, 0}, line, next = *rest;
    if (!text_line(&next, &line) || !line_opens_box(line))
        return run;
    bool inside = true;
    while (inside && text_line(&next, &line))
        inside = line_is_box(line);
    run.n = (size_t)(next.p - run.p);
    *rest = next;
    return run;
}

/* "│ ❱ 12 │ loss = f(x) │": the line of the program where the frame stands. */
static bool is_marked(struct text line)
{
    const char *at = text_find(line, "❱ "), *end = line.p + line.n;
    at = at ? at + sizeof "❱ " - 1 : NULL;
    while (at && at < end && *at == ' ')
        at++;
    return at && at < end && *at >= '0' && *at <= '9';
}

static bool is_empty(struct text line)
{
    for (size_t i = 0; i < line.n; i++)
        if (line.p[i] >= '0' && line.p[i] <= 'z' && line.p[i] != '|')
            return false;
    return true;
}

/* Of its frames the place and the line of the program stay, without the lines around that, and what variables held. */
static void traceback_trim_box(struct text run, struct el_buf *out)
{
    struct text rest = run, line;
    struct line_frame frame;
    unsigned frames = 0, at = 0, i = 0, left_out = 0;
    while (text_line(&rest, &line))
        frames += line_is_box_frame(line, &frame);
    bool keep = frames == 0; /* not as rich draws it today */
    for (rest = run; text_line(&rest, &line); i++) {
        bool head = line_is_box_frame(line, &frame);
        bool edge = i == 0 || !line_is_box(line);
        if (head)
            keep = at++ + TRACEBACK_TRIM_BOX_FRAMES >= frames;
        if (edge && i)
            put_left_out(out, left_out, "line");
        if (edge || (keep && (head || !frames || is_marked(line))))
            traceback_trim_put(out, line);
        else
            left_out += !is_empty(line);
    }
}

static void traceback_trim_message(struct text run, struct el_buf *out)
{
    unsigned lines = 0, i = 0;
    struct text rest = run, line;
    while (text_line(&rest, &line))
        lines++;
    const unsigned kept = TRACEBACK_TRIM_MESSAGE_FIRST + TRACEBACK_TRIM_MESSAGE_LAST;
    for (rest = run; text_line(&rest, &line); i++) {
        if (lines > kept + 1 && i == TRACEBACK_TRIM_MESSAGE_FIRST)
            put_left_out(out, lines - kept, "line");
        if (lines <= kept + 1 || i < TRACEBACK_TRIM_MESSAGE_FIRST || i + TRACEBACK_TRIM_MESSAGE_LAST >= lines)
            traceback_trim_put(out, line);
    }
}

int traceback_trim_stack(struct text t, unsigned most, struct el_buf *out)
{
    struct text rest = t, line;
    unsigned lines = 0;
    bool innermost_first = false;
    while (text_line(&rest, &line))
        lines++;
    if (lines <= most)
        return el_buf_put(out, t.p ? t.p : "", t.n);
    for (rest = t; rest.n;) {
        struct text run = traceback_trim_take_box(&rest);
        if (run.n) {
            traceback_trim_box(run, out);
            continue;
        }
        run = take_run(&rest, true);
        if (run.n) {
            traceback_trim_frames(run, innermost_first, out);
            continue;
        }
        run = take_run(&rest, false);
        assert(run.n);
        traceback_trim_message(run, out);
        if (text_find(run, "(most recent call "))
            innermost_first = text_find(run, "(most recent call first)") != NULL;
    }
    return out->full ? -1 : 0;
}
