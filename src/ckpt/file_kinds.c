#include "ckpt/file_kinds.h"

#include <string.h>

#include "util/sort.h"

/* How many newer ones have to have a name like it, until a name that one checkpoint alone has is no longer a loss. */
enum { ANEW = 2 };

static const char one_random[] = "rng_state.pth", many_random[] = "rng_state_0.pth";

/* The random numbers of one rank are called otherwise than those of several, and how many there are may change. */
bool file_kinds_random(const struct scan_entry *of, const char *name)
{
    if (strcmp(name, one_random) == 0)
        return rank_files_find(&of->sets, of->step, &(struct rank_set){.name = many_random, .at = 10, .end = 11}, -1);
    return strncmp(name, many_random, 10) == 0 && usual_files_has(&of->usual, one_random);
}

bool file_kinds_only(const struct kind *k)
{
    return k->lone && strcmp(k->name, one_random) != 0 && strncmp(k->name, many_random, 10) != 0;
}

/* --- which are lone ----------------------------------------------------------------------------------------------- */

static int file_kinds_by_run(const struct kind *a, const struct kind *b)
{
    return (a->of->run > b->of->run) - (a->of->run < b->of->run);
}

/* The last entry first. */
static int by_entry(const struct kind *a, const struct kind *b)
{
    return (a->of < b->of) - (a->of > b->of);
}

/* What one entry has and another one, too, lies together, whatever numbers are in its name. */
static int same_but_numbers(const struct kind *a, const struct kind *b)
{
    int c = file_kinds_by_run(a, b);
    c = c ? c : (a->set != NULL) - (b->set != NULL);
    return c ? c : usual_files_order(a->name, b->name);
}

static int file_kinds_by_name(const void *a, const void *b)
{
    const struct kind *x = *(struct kind *const *)a, *y = *(struct kind *const *)b;
    int c = same_but_numbers(x, y);
    c = c ? c : by_entry(x, y);
    return c ? c : (x > y) - (x < y);
}

/* Of these, which differ in their numbers alone, none is of another entry and the same set. */
static bool is_lone_set(struct kind *const *v, size_t n, const struct kind *k)
{
    for (size_t i = 0; i < n; i++) {
        const struct scan_entry *y = v[i]->of;
        if (y != k->of && (!i || y != v[i - 1]->of) && rank_files_find(&y->sets, y->step, k->set, k->of->step))
            return false;
    }
    return true;
}

static void mark_lone(struct kind **v, size_t n)
{
    el_sort(v, n, sizeof *v, file_kinds_by_name);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && same_but_numbers(v[i], v[end]) == 0;)
            end++;
        for (size_t at = i; at < end; at++)
            v[at]->lone = v[i]->of == v[end - 1]->of || (v[at]->set && is_lone_set(v + i, end - i, v[at]));
    }
}

/* --- names that each checkpoint has anew -------------------------------------------------------------------------- */

static bool file_kinds_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static const char *suffix(const char *name)
{
    const char *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash : name, '.');
    return dot ? dot : name + strlen(name);
}

/* Alike are names as long, and divided into words at the same places, as "eval-ab3f.pt" and "eval-c09d.pt". */
static int divided_alike(const struct kind *a, const struct kind *b)
{
    const char *x = a->name, *y = b->name;
    int c = file_kinds_by_run(a, b);
    c = c ? c : strcmp(suffix(x), suffix(y));
    while (!c && *x && *y && (*x == *y || (file_kinds_is_word(*x) && file_kinds_is_word(*y)))) {
        x++;
        y++;
    }
    return c ? c : (file_kinds_is_word(*x) ? 'a' : *x) - (file_kinds_is_word(*y) ? 'a' : *y);
}

/* Bytes of the folder and of the first word with what divides it from the next, "runs/run-" of "runs/run-old-owl.pt";
 * 0: there is none. */
static size_t first_word(const char *name)
{
    const char *slash = strrchr(name, '/'), *at = slash ? slash + 1 : name;
    while (*at && !file_kinds_is_word(*at))
        at++;
    while (file_kinds_is_word(*at))
        at++;
    return *at ? (size_t)(at - name) + 1 : 0;
}

/* And those in one folder that begin with one word, as "run-sunny-fox.pt" and "run-old-owl.pt". */
static int begun_alike(const struct kind *a, const struct kind *b)
{
    size_t n = first_word(a->name), m = first_word(b->name);
    int c = file_kinds_by_run(a, b);
    c = c ? c : strcmp(suffix(a->name), suffix(b->name));
    c = c ? c : (n > m) - (n < m);
    return c ? c : memcmp(a->name, b->name, n);
}

static int by_division(const void *a, const void *b)
{
    const struct kind *x = *(struct kind *const *)a, *y = *(struct kind *const *)b;
    int c = divided_alike(x, y);
    c = c ? c : by_entry(x, y);
    return c ? c : (x > y) - (x < y);
}

static int by_begin(const void *a, const void *b)
{
    const struct kind *x = *(struct kind *const *)a, *y = *(struct kind *const *)b;
    int c = begun_alike(x, y);
    c = c ? c : by_entry(x, y);
    return c ? c : (x > y) - (x < y);
}

static int with_division(const void *item, const void *kind)
{
    return divided_alike(*(struct kind *const *)item, kind);
}

static int with_begin(const void *item, const void *kind)
{
    return begun_alike(*(struct kind *const *)item, kind);
}

/* Of each entry one that is like others is enough. */
static void file_kinds_once_each(struct file_kinds_order *o, el_compare_fn *order, el_compare_fn *like)
{
    size_t n = 0;
    el_sort(o->v, o->n, sizeof *o->v, order);
    for (size_t i = 0; i < o->n; i++)
        if (!n || o->v[n - 1]->of != o->v[i]->of || like(&o->v[n - 1], o->v[i]) != 0)
            o->v[n++] = o->v[i];
    o->n = n;
}

/* Newer ones than this one's that have one like it. */
static unsigned find_newer(const struct file_kinds_order *o, const struct kind *k, el_compare_fn *like,
                           const struct scan_entry *to[ANEW])
{
    unsigned n = 0;
    for (size_t i = el_first(o->v, o->n, sizeof *o->v, k, like);
         n < ANEW && i < o->n && like(&o->v[i], k) == 0 && o->v[i]->of > k->of; i++)
        to[n++] = o->v[i]->of;
    return n;
}

/* Each checkpoint has another: it alone has this one, and newer ones alone have one like it each. */
static bool is_anew(const struct file_kinds *all, const struct kind *k)
{
    const struct scan_entry *a[ANEW], *b[ANEW];
    if (!k->lone)
        return false;
    unsigned n = find_newer(&all->divided, k, with_division, a), more = 0;
    unsigned m = first_word(k->name) ? find_newer(&all->begun, k, with_begin, b) : 0;
    for (unsigned i = 0; i < m; i++) {
        bool there = false;
        for (unsigned j = 0; j < n; j++)
            there |= a[j] == b[i];
        more += !there;
    }
    return n + more >= ANEW;
}

/* --- all of a root ------------------------------------------------------------------------------------------------ */

/* Those that are called otherwise than others of the same entry; then all of these are what the first one is. */
static size_t file_kinds_list(struct file_kinds *k, struct kind **first)
{
    size_t n = 0;
    for (size_t i = 0, at = 0; i < k->scan->n; i++) {
        const struct scan_entry *x = &k->scan->v[i];
        k->from[i] = at;
        for (size_t s = 0; x->state == SCAN_VALID && s < x->sets.n; s++, at++) {
            k->v[at] = (struct kind){x, &x->sets.v[s], x->sets.v[s].name, false};
            first[n++] = &k->v[at];
        }
        for (size_t u = 0, next = 0; x->state == SCAN_VALID && u < x->usual.n; u++, at++) {
            k->v[at] = (struct kind){x, NULL, x->usual.v[u], false};
            if (u < next)
                continue;
            first[n++] = &k->v[at];
            next = usual_files_next(&x->usual, u);
        }
    }
    return n;
}

/* What begins with a word: before the last dot, for that the suffix is. */
static bool file_kinds_begins(const struct kind *k)
{
    size_t n = first_word(k->name);
    return n && k->name + n <= suffix(k->name);
}

int file_kinds_open(struct file_kinds *k, const struct scan *s, struct el_mem *mem, struct el_err *e)
{
    size_t n = 0;
    *k = (struct file_kinds){.mem = mem, .scan = s};
    for (size_t i = 0; i < s->n; i++)
        n += s->v[i].state == SCAN_VALID ? s->v[i].sets.n + s->v[i].usual.n : 0;
    k->from = el_alloc(mem, s->n * sizeof *k->from);
    k->v = el_alloc(mem, n * sizeof *k->v);
    k->divided.v = el_alloc(mem, n * sizeof(struct kind *));
    k->begun.v = el_alloc(mem, n * sizeof(struct kind *));
    if (!k->from || !k->v || !k->divided.v || !k->begun.v)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    struct kind **first = k->divided.v;
    size_t firsts = file_kinds_list(k, first);
    mark_lone(first, firsts);
    for (size_t i = 0; i < firsts; i++)
        if (first[i]->lone) {
            if (file_kinds_begins(first[i]))
                k->begun.v[k->begun.n++] = first[i];
            k->divided.v[k->divided.n++] = first[i];
        }
    file_kinds_once_each(&k->divided, by_division, with_division);
    file_kinds_once_each(&k->begun, by_begin, with_begin);
    for (size_t i = 1; i < n; i++) /* numbers are all one */
        if (k->v[i].of == k->v[i - 1].of && !k->v[i - 1].set && usual_files_order(k->v[i].name, k->v[i - 1].name) == 0)
            k->v[i].lone = k->v[i - 1].lone;
    return 0;
}

void file_kinds_close(struct file_kinds *k)
{
    el_free(k->mem, k->from);
    el_free(k->mem, k->v);
    el_free(k->mem, k->divided.v);
    el_free(k->mem, k->begun.v);
    *k = (struct file_kinds){.mem = k->mem};
}

const struct kind *file_kinds_lacks(const struct file_kinds *k, const struct scan_entry *x, const struct scan_entry *y)
{
    const struct kind *v = k->v + k->from[x - k->scan->v];
    const char *name;
    for (size_t i = 0; i < x->sets.n; i++) {
        const struct rank_set *set = &x->sets.v[i];
        if (set->zero && set->many && !rank_files_find(&y->sets, y->step, set, x->step) &&
            !file_kinds_random(y, set->name) && !is_anew(k, &v[i]))
            return &v[i];
    }
    v += x->sets.n;
    for (size_t i = 0, at = 0; (name = usual_files_lacks(&x->usual, &y->usual, &i));) {
        while (v[at].name != name)
            at++;
        if (!file_kinds_random(y, name) && !is_anew(k, &v[at]))
            return &v[at];
    }
    return NULL;
}
