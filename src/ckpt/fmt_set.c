/* Numbered sets: files whose names say how many of them there are. */
#include <stdio.h>
#include <string.h>

#include "ckpt/fmt.h"
#include "util/parse.h"
#include "util/sort.h"

static bool fmt_set_starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static bool fmt_set_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_between(char c)
{
    return c == '-' || c == '_' || c == '.';
}

static size_t fmt_set_digits(const char *s)
{
    size_t n = 0;
    while (s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

/* One component of a name. */
struct fmt_set_part {
    const char *v, *end;
};

/* Where the word in front of a number begins, "rank" of "tp_rank_3" or "rank3"; NULL: another word. */
static const char *word_before(const struct fmt_set_part *p, const char *number, const char *word)
{
    size_t n = strlen(word);
    if (number > p->v && is_between(number[-1]))
        number--;
    if ((size_t)(number - p->v) < n || strncmp(number - n, word, n) != 0)
        return NULL;
    number -= n;
    return number > p->v && fmt_set_is_letter(number[-1]) ? NULL : number;
}

enum fmt_set_role { ROLE_NONE, ROLE_RANK, ROLE_WORLD };

/* What the word in front of a number makes of it. */
static enum fmt_set_role role_of(const struct fmt_set_part *p, const char *number, const char **word, bool *sure)
{
    static const struct {
        const char *word;
        enum fmt_set_role role;
        bool sure;
    } words[] = {
        {"world_size", ROLE_WORLD, true}, {"world-size", ROLE_WORLD, true}, {"worldsize", ROLE_WORLD, true},
        {"world", ROLE_WORLD, true},      {"num_ranks", ROLE_WORLD, true},  {"nranks", ROLE_WORLD, true},
        {"ranks", ROLE_WORLD, true},      {"nproc", ROLE_WORLD, true},      {"nprocs", ROLE_WORLD, true},
        {"ws", ROLE_WORLD, true},         {"w", ROLE_WORLD, false},         {"rank", ROLE_RANK, true},
        {"r", ROLE_RANK, false}, /* also of LoRA, as "w" is of weights in a few bits */
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if ((*word = word_before(p, number, words[i].word)) != NULL) {
            *sure = words[i].sure;
            return words[i].role;
        }
    return ROLE_NONE;
}

/* One that is made again and again has such a number, too, and none of the others has to be there. */
static bool is_time(const struct fmt_set_part *p, const char *number)
{
    static const char *const words[] = {"epoch", "epochs", "step",  "steps", "iter",  "iteration", "fold",
                                        "round", "stage",  "phase", "seed",  "trial", "run",       "try"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (word_before(p, number, words[i]))
            return true;
    return false;
}

static bool set_numbers(struct fmt_member *m, const char *name, const char *number, const char *count)
{
    size_t n = fmt_set_digits(number), k = fmt_set_digits(count);
    m->number_at = (size_t)(number - name);
    m->number_end = m->number_at + n;
    m->count_at = (size_t)(count - name);
    m->count_end = m->count_at + k;
    return n && n <= 9 && k && k <= 9 && el_parse_u64n(number, n, &m->i) == 0 && el_parse_u64n(count, k, &m->n) == 0;
}

/* "3-of-4", "3_of_4", "3of4", of ATorch "3-4". */
static bool of_count(const char *name, const struct fmt_set_part *p, bool flat, struct fmt_member *m)
{
    for (const char *at = p->v; at < p->end; at++) {
        size_t n = fmt_set_digits(at);
        const char *of = at + n;
        if (!n)
            continue;
        bool found = flat && *of == '-' && fmt_set_digits(of + 1);
        if (!found && !flat) {
            char between = is_between(*of) ? *of : 0;
            of += between != 0;
            found =
                fmt_set_starts(of, "of") && (!between || of[2] == between) && fmt_set_digits(of + 2 + (between != 0));
            of += 1 + (between != 0);
        }
        if (!found || n > 9 || is_time(p, at)) {
            at += n - 1;
            continue;
        }
        if (!set_numbers(m, name, at, of + 1))
            return false;
        bool rank = word_before(p, at, "rank") != NULL;
        bool plain = strncmp(at + n, "-of-", 4) == 0 || flat; /* "best_2of3" is none of a set */
        m->first = !flat && !rank && m->i > 0;
        m->sure = plain || rank || word_before(p, at, "shard") || word_before(p, at, "part");
        return m->n >= 1 && m->i < m->n + m->first;
    }
    return false;
}

/* "world_size_4_rank_3", "rank-3_world-4", "r3_w4". */
static bool of_world(const char *name, const struct fmt_set_part *p, struct fmt_member *m)
{
    const char *before = NULL, *word;
    enum fmt_set_role before_role = ROLE_NONE;
    bool before_sure = false, sure = false;
    for (const char *at = p->v; at < p->end; at++) {
        size_t n = fmt_set_digits(at);
        if (!n)
            continue;
        enum fmt_set_role role = role_of(p, at, &word, &sure);
        const char *behind = before ? before + fmt_set_digits(before) : NULL;
        bool pair = behind && role && before_role && role != before_role &&
                    (word - behind <= 1 || (word - behind == 4 && strncmp(behind + 1, "of", 2) == 0));
        if (pair && set_numbers(m, name, role == ROLE_RANK ? at : before, role == ROLE_RANK ? before : at)) {
            m->first = 0;
            m->sure = sure && before_sure;
            return m->n >= 1 && m->i < m->n;
        }
        before = at;
        before_role = role;
        before_sure = sure;
        at += n - 1;
    }
    return false;
}

/* The file's own name is asked first, then those of the folders around it. */
bool fmt_member(const char *name, struct fmt_member *m)
{
    for (const char *end = name + strlen(name), *slash; end > name; end = slash) {
        slash = end;
        while (slash > name && slash[-1] != '/')
            slash--;
        struct fmt_set_part p = {slash, end};
        bool flat = fmt_set_starts(slash, "flat_param.") || fmt_set_starts(slash, "flat_meta.") ||
                    fmt_set_starts(slash, "optim_param.");
        if (of_count(name, &p, flat, m) || of_world(name, &p, m))
            return true;
        slash -= slash > name;
    }
    return false;
}

struct numbered {
    const char *name;
    struct fmt_member at;
};

static int compare_spans(const char *x, size_t x_from, size_t x_to, const char *y, size_t y_from, size_t y_to)
{
    size_t p = x_to - x_from, q = y_to - y_from;
    int c = memcmp(x + x_from, y + y_from, p < q ? p : q);
    return c ? c : p < q ? -1 : p > q;
}

/* Members of one set have the same name but for the numbers, and the same total; they stand together, in order. */
static int fmt_set_by_set(const struct numbered *x, const struct numbered *y)
{
    size_t v[2][6], *a = v[0], *b = v[1];
    for (int i = 0; i < 2; i++) {
        const struct fmt_member *m = i ? &y->at : &x->at;
        bool swapped = m->count_at < m->number_at;
        size_t *to = v[i];
        to[0] = 0;
        to[1] = swapped ? m->count_at : m->number_at;
        to[2] = swapped ? m->count_end : m->number_end;
        to[3] = swapped ? m->number_at : m->count_at;
        to[4] = swapped ? m->number_end : m->count_end;
        to[5] = strlen(i ? y->name : x->name);
    }
    int c = 0;
    for (int i = 0; !c && i < 6; i += 2)
        c = compare_spans(x->name, a[i], a[i + 1], y->name, b[i], b[i + 1]);
    return c ? c : x->at.n < y->at.n ? -1 : x->at.n > y->at.n;
}

static int fmt_set_by_number(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    int c = fmt_set_by_set(x, y);
    if (!c)
        c = x->at.i < y->at.i ? -1 : x->at.i > y->at.i;
    return c ? c : strcmp(x->name, y->name);
}

void fmt_missing_add(struct fmt_missing *m, uint64_t from, uint64_t to)
{
    for (; from < to && m->n < FMT_MISSING_TOLD; from++)
        m->v[m->n++] = from;
    m->n += from < to ? to - from : 0;
}

const char *fmt_missing_put(const struct fmt_missing *m, char text[FMT_MISSING_TEXT])
{
    size_t told = m->n < FMT_MISSING_TOLD ? (size_t)m->n : FMT_MISSING_TOLD, at = 0;
    for (size_t i = 0; i < told && at < FMT_MISSING_TEXT; i++)
        at += (size_t)snprintf(text + at, FMT_MISSING_TEXT - at, "%s%llu",
                               !i                              ? ""
                               : i + 1 == told && told == m->n ? " and "
                                                               : ", ",
                               (unsigned long long)m->v[i]);
    if (m->n > told && at < FMT_MISSING_TEXT)
        snprintf(text + at, FMT_MISSING_TEXT - at, " and %llu more", (unsigned long long)(m->n - told));
    return text;
}

int fmt_gaps(const char *const *names, size_t n, struct el_mem *mem, fmt_gap_fn *gap, void *arg, struct el_err *e)
{
    struct numbered *v = el_alloc(mem, n * sizeof *v);
    size_t members = 0;
    if (!v)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (size_t i = 0; i < n; i++)
        if (fmt_kind(names[i]) != FMT_LEFTOVER && fmt_member(names[i], &v[members].at))
            v[members++].name = names[i];
    el_sort(v, members, sizeof *v, fmt_set_by_number);
    for (size_t i = 0, first; i < members;) {
        uint64_t want = v[i].at.first, end = v[i].at.n + v[i].at.first;
        struct fmt_missing missing = {0};
        for (first = i; i < members && fmt_set_by_set(&v[i], &v[first]) == 0; i++) {
            fmt_missing_add(&missing, want, v[i].at.i);
            want = v[i].at.i >= want ? v[i].at.i + 1 : want;
        }
        fmt_missing_add(&missing, want, end);
        if (missing.n && (v[first].at.sure || 2 * (i - first) >= v[first].at.n))
            gap(arg, v[first].name, &missing, v[first].at.n);
    }
    el_free(mem, v);
    return 0;
}
