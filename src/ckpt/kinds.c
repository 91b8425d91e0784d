#include "ckpt/kinds.h"

#include <string.h>

/* How many newer ones have to have a name like it, until a name that one checkpoint alone has is no longer a loss. */
enum { ANEW = 2 };

/* The random numbers of one rank are called otherwise than those of several, and how many there are may change. */
bool kinds_random(const struct scan_entry *of, const char *name)
{
    static const char one[] = "rng_state.pth", many[] = "rng_state_0.pth";
    if (strcmp(name, one) == 0)
        return ranked_find(&of->sets, of->step, &(struct rank_set){.name = many, .at = 10, .end = 11}, -1);
    return strncmp(name, many, 10) == 0 && usual_has(&of->usual, one);
}

/* --- names that each checkpoint has anew -------------------------------------------------------------------------- */

/* A set of ranks, or one called as others are but for numbers. */
struct kind {
    const struct scan_entry *of;
    const struct rank_set *set; /* NULL: none */
    const char *name;
};

static bool has(const struct scan_entry *y, const struct kind *k)
{
    return k->set ? ranked_find(&y->sets, y->step, k->set, k->of->step) != NULL : usual_count(&y->usual, k->name) > 0;
}

static bool of_run(const struct scan_entry *y, const struct scan_entry *x)
{
    return y->state == SCAN_VALID && strcmp(y->run_id, x->run_id) == 0;
}

/* No other one of its run has it. */
static bool is_lone(const struct scan *s, const struct kind *k)
{
    for (size_t i = s->n; i-- > 0;)
        if (&s->v[i] != k->of && of_run(&s->v[i], k->of) && has(&s->v[i], k))
            return false;
    return true;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static const char *suffix(const char *name)
{
    const char *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash : name, '.');
    return dot ? dot : name + strlen(name);
}

/* As long, and divided into words at the same places, as "eval-ab3f.pt" and "eval-c09d.pt"; or in one folder, and
 * beginning with one word, as "run-sunny-fox.pt" and "run-old-owl.pt". */
static bool is_alike(const char *a, const char *b)
{
    size_t same = 0, i = 0;
    bool word = false;
    if (strcmp(suffix(a), suffix(b)) != 0)
        return false;
    while (a[i] && b[i] && (a[i] == b[i] || (is_word(a[i]) && is_word(b[i]))))
        i++;
    if (!a[i] && !b[i])
        return true;
    for (i = 0; a + i < suffix(a) && a[i] == b[i]; i++) {
        same = a[i] == '/' || (!is_word(a[i]) && word) ? i + 1 : same;
        word = a[i] != '/' && (word || is_word(a[i]));
    }
    return same && a[same - 1] != '/' && !strchr(a + same, '/') && !strchr(b + same, '/');
}

static bool has_alike(const struct scan *s, const struct scan_entry *y, const char *name)
{
    for (size_t i = 0; i < y->sets.n; i++)
        if (is_alike(y->sets.v[i].name, name) && is_lone(s, &(struct kind){y, &y->sets.v[i], y->sets.v[i].name}))
            return true;
    for (size_t i = 0; i < y->usual.n; i = usual_next(&y->usual, i))
        if (is_alike(y->usual.v[i], name) && is_lone(s, &(struct kind){y, NULL, y->usual.v[i]}))
            return true;
    return false;
}

/* Each checkpoint has another: it alone has this one, and newer ones alone have one like it each. */
static bool is_anew(const struct scan *s, const struct kind *k)
{
    unsigned n = 0;
    if (!is_lone(s, k))
        return false;
    for (size_t i = s->n; n < ANEW && &s->v[i - 1] != k->of; i--) /* they are sorted by step */
        n += of_run(&s->v[i - 1], k->of) && has_alike(s, &s->v[i - 1], k->name);
    return n == ANEW;
}

const char *kinds_lacks(const struct scan *s, const struct scan_entry *x, const struct scan_entry *y)
{
    const char *name;
    for (size_t i = 0; i < x->sets.n; i++) {
        const struct rank_set *set = &x->sets.v[i];
        struct kind k = {x, set, set->name};
        if (set->zero && set->many && !has(y, &k) && !kinds_random(y, set->name) && !is_anew(s, &k))
            return set->name;
    }
    for (size_t i = 0; (name = usual_lacks(&x->usual, &y->usual, &i));)
        if (!kinds_random(y, name) && !is_anew(s, &(struct kind){x, NULL, name}))
            return name;
    return NULL;
}
