#include "failure/stacks.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "failure/traceback_line.h"

/* --- one output: the newest dump, the main thread in it --- */

/* "Thread 0x00007f14f1444b80 (most recent call first):", also "Current thread …", also with a thread's name. */
static bool is_head(struct text line)
{
    return (text_starts(line, "Thread 0x") || text_starts(line, "Current thread 0x")) &&
           text_find(line, "(most recent call first)");
}

/* What a log's own prefix ("[rank1]: ") leaves of a line. */
static struct text behind_prefix(struct text line)
{
    static const char *const starts[] = {"Thread 0x", "Current thread 0x", "  File \""};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        const char *at = text_find(line, starts[i]);
        if (at && at - line.p <= 64)
            return (struct text){at, line.n - (size_t)(at - line.p)};
    }
    return line;
}

struct thread {
    struct text span; /* its lines, head first */
    struct text last; /* the outermost frame's function */
    unsigned frames;
    bool current;
};

/* The main thread ends in the module's own code; else the one that was running is taken, else the last, for
 * faulthandler begins with the newest. */
static bool is_better(const struct thread *was, const struct thread *is)
{
    bool was_main = was->last.n == 8 && memcmp(was->last.p, "<module>", 8) == 0;
    bool is_main = is->last.n == 8 && memcmp(is->last.p, "<module>", 8) == 0;
    if (was_main != is_main)
        return is_main;
    return is->current || !was->current;
}

/* Between the heads of one dump stand frames, blank lines, and nothing else. */
struct text stacks_find(struct text output)
{
    struct text rest = output, line;
    struct thread best = {0}, now = {0};
    bool dump = false;
    while (text_line(&rest, &line)) {
        struct text inside = behind_prefix(line);
        struct line_frame frame;
        if (is_head(inside)) {
            if (!dump)
                best = (struct thread){0};
            dump = true;
            now = (struct thread){.span = {line.p, line.n}, .current = inside.p[0] == 'C'};
            if (is_better(&best, &now) || !best.frames)
                best = now;
        } else if (dump && now.span.n && line_is_frame(inside, &frame)) {
            now.span.n = (size_t)(line.p + line.n - now.span.p);
            now.last = frame.function;
            now.frames++;
            if (best.span.p == now.span.p || !best.frames || is_better(&best, &now))
                best = now;
        } else if (!line_is_blank(inside) && !text_starts(inside, "  ")) {
            dump = false; /* "Fatal Python error" of the next dump, or something else */
            now = (struct thread){0};
        }
    }
    return best.frames ? best.span : (struct text){0};
}

/* --- comparing --- */

/* The frames of a stack, from the innermost; at most STACKS_FRAMES_MAX. */
static bool next_frame(struct text *rest, struct line_frame *f)
{
    struct text line;
    while (text_line(rest, &line))
        if (line_is_frame(behind_prefix(line), f))
            return true;
    return false;
}

static bool stacks_is_same(struct text a, struct text b)
{
    return a.n == b.n && (!a.n || memcmp(a.p, b.p, a.n) == 0);
}

/* Equal frames; the innermost may stand in another line of the same function, as in a loop that waits. */
static bool equal_stacks(struct text a, struct text b)
{
    struct line_frame x, y;
    for (unsigned i = 0; i < STACKS_FRAMES_MAX; i++) {
        bool more = next_frame(&a, &x);
        if (next_frame(&b, &y) != more)
            return false;
        if (!more)
            return true;
        if (!stacks_is_same(x.file, y.file) || !stacks_is_same(x.function, y.function) || (i && x.line != y.line))
            return false;
    }
    return true;
}

static struct text base_name(struct text file)
{
    for (size_t i = file.n; i > 0; i--)
        if (file.p[i - 1] == '/')
            return (struct text){file.p + i, file.n - i};
    return file;
}

/* What stands in the one line about the group. */
static void stacks_describe(struct stacks_group *g)
{
    struct text rest = g->stack;
    struct line_frame f;
    for (unsigned i = 0; next_frame(&rest, &f); i++) {
        struct text base = base_name(f.file);
        if (!i) {
            text_copy(g->function, sizeof g->function, f.function.n ? f.function.p : "", f.function.n);
            text_copy(g->file, sizeof g->file, base.n ? base.p : "", base.n);
            g->line = g->least = g->most = f.line;
        }
        if (!f.user)
            continue;
        text_copy(g->user_function, sizeof g->user_function, f.function.n ? f.function.p : "", f.function.n);
        text_copy(g->user_file, sizeof g->user_file, base.n ? base.p : "", base.n);
        g->user_line = f.line;
        return;
    }
}

/* One more stack of this group. */
static void stacks_widen(struct stacks_group *g, struct text stack)
{
    struct line_frame f;
    if (!next_frame(&stack, &f))
        return;
    g->least = f.line < g->least ? f.line : g->least;
    g->most = f.line > g->most ? f.line : g->most;
}

/* The group of this stack; a new one where there is none yet. */
static unsigned group_of(struct stacks *s, struct text stack)
{
    const enum stacks_kind kind = stack.n ? STACKS_DUMP : STACKS_NONE;
    unsigned dumps = 0;
    for (unsigned i = 0; i < s->groups_count; i++) {
        struct stacks_group *g = &s->group[i];
        dumps += g->kind == STACKS_DUMP;
        if (g->kind == kind && (kind == STACKS_NONE || equal_stacks(g->stack, stack))) {
            stacks_widen(g, stack);
            return i;
        }
    }
    enum stacks_kind as = kind == STACKS_DUMP && dumps == STACKS_GROUPS_MAX ? STACKS_OTHER : kind;
    for (unsigned i = 0; as == STACKS_OTHER && i < s->groups_count; i++)
        if (s->group[i].kind == STACKS_OTHER)
            return i;
    assert(s->groups_count < STACKS_GROUPS_MAX + 2);
    struct stacks_group *g = &s->group[s->groups_count];
    *g = (struct stacks_group){.kind = as, .stack = as == STACKS_DUMP ? stack : (struct text){0}};
    if (as == STACKS_DUMP)
        stacks_describe(g);
    return s->groups_count++;
}

static bool stacks_comes_before(const struct stacks_group *a, const struct stacks_group *b)
{
    static const int order[] = {[STACKS_DUMP] = 0, [STACKS_OTHER] = 1, [STACKS_NONE] = 2};
    if (a->kind != b->kind)
        return order[a->kind] < order[b->kind];
    if (a->ranks_count != b->ranks_count)
        return a->ranks_count > b->ranks_count;
    return a->ranks[0] < b->ranks[0];
}

static void stacks_sort(struct stacks *s)
{
    for (unsigned i = 1; i < s->groups_count; i++)
        for (unsigned k = i; k > 0 && stacks_comes_before(&s->group[k], &s->group[k - 1]); k--) {
            struct stacks_group swap = s->group[k];
            s->group[k] = s->group[k - 1];
            s->group[k - 1] = swap;
        }
}

int stacks_group(struct stacks *s, const struct stacks_rank *v, unsigned n, struct el_mem *mem)
{
    *s = (struct stacks){0};
    /* One block: first each rank's group, then all ranks, group by group. */
    unsigned char *of = el_alloc(mem, n);
    unsigned *all = of ? el_alloc(mem, (size_t)n * sizeof *all) : NULL;
    if (!all) {
        el_free(mem, of);
        return -1;
    }
    for (unsigned i = 0; i < n; i++) {
        assert(!i || v[i].rank > v[i - 1].rank);
        of[i] = (unsigned char)group_of(s, stacks_find(v[i].output));
        s->group[of[i]].ranks_count++;
    }
    unsigned at = 0;
    for (unsigned g = 0; g < s->groups_count; g++) {
        s->group[g].ranks = all + at;
        at += s->group[g].ranks_count;
        s->group[g].ranks_count = 0;
    }
    for (unsigned i = 0; i < n; i++) {
        struct stacks_group *g = &s->group[of[i]];
        g->ranks[g->ranks_count++] = v[i].rank;
    }
    assert(at == n);
    el_free(mem, of);
    stacks_sort(s);
    s->ranks = all;
    return 0;
}

void stacks_free(struct stacks *s, struct el_mem *mem)
{
    el_free(mem, s->ranks);
    *s = (struct stacks){0};
}

/* --- words --- */

int stacks_ranks(const unsigned *ranks, unsigned n, struct el_buf *out)
{
    for (unsigned i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && ranks[k] == ranks[k - 1] + 1; k++)
            ;
        el_buf_printf(out, "%s%u", i ? "," : "", ranks[i]);
        if (k > i + 1)
            el_buf_printf(out, "-%u", ranks[k - 1]);
    }
    return out->full ? -1 : 0;
}

static void stacks_put_group(const struct stacks_group *g, struct el_buf *out)
{
    stacks_ranks(g->ranks, g->ranks_count, out);
    if (g->kind == STACKS_NONE) {
        el_buf_puts(out, ": no stack");
        return;
    }
    if (g->kind == STACKS_OTHER) {
        el_buf_puts(out, " elsewhere");
        return;
    }
    el_buf_printf(out, " in %s (%s:%u", g->function[0] ? g->function : "?", g->file, g->least);
    if (g->most != g->least)
        el_buf_printf(out, "-%u", g->most);
    el_buf_puts(out, ")");
    bool same = g->user_line == g->line && strcmp(g->user_file, g->file) == 0;
    if (g->user_file[0] && !same)
        el_buf_printf(out, ", from %s (%s:%u)", g->user_function[0] ? g->user_function : "?", g->user_file,
                      g->user_line);
}

int stacks_line(const struct stacks *s, struct el_buf *out)
{
    for (unsigned i = s->groups_count; i > 0; i--) {
        stacks_put_group(&s->group[i - 1], out);
        if (i > 1)
            el_buf_puts(out, "; ");
    }
    return out->full ? -1 : 0;
}
