#include "conf/argv.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool argv_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool argv_is_name(char c)
{
    return argv_is_letter(c) || (c >= '0' && c <= '9');
}

/* Where the words go; a first pass with to == NULL only counts. */
struct writer {
    char *to;
    size_t n;
    char **slot; /* where the next word's address goes; unused when counting */
};

static void argv_put(struct writer *w, const char *s, size_t n)
{
    if (w->to)
        memcpy(w->to + w->n, s, n);
    w->n += n;
}

/* One "$…" of a template: returns its length, and the name's place if it is a placeholder.  As Python's pattern: "$$",
 * "$name", "${name}", else the dollar alone. */
static size_t dollar(const char *s, const char **name, size_t *name_len)
{
    *name = NULL;
    *name_len = 0;
    if (s[1] == '$')
        return 2;
    bool brace = s[1] == '{';
    const char *p = s + (brace ? 2 : 1), *end = p;
    if (argv_is_letter(*p))
        while (argv_is_name(*end))
            end++;
    if (end == p || (brace && *end != '}'))
        return 1;
    *name = p;
    *name_len = (size_t)(end - p);
    return (size_t)(end - s) + brace;
}

/* safe_substitute(local_rank=…), and the 0 behind. */
static void put_template(struct writer *w, const char *s, const char *local_rank)
{
    static const char known[] = "local_rank";
    for (const char *next; (next = strchr(s, '$'));) {
        argv_put(w, s, (size_t)(next - s));
        const char *name;
        size_t name_len, n = dollar(next, &name, &name_len);
        if (name && name_len == sizeof known - 1 && memcmp(name, known, name_len) == 0)
            argv_put(w, local_rank, strlen(local_rank));
        else
            argv_put(w, next, next[1] == '$' ? 1 : n);
        s = next + n;
    }
    argv_put(w, s, strlen(s) + 1);
}

static void put_word(struct writer *w, const char *word, const char *local_rank)
{
    if (w->to)
        *w->slot++ = w->to + w->n;
    if (local_rank)
        put_template(w, word, local_rank);
    else
        argv_put(w, word, strlen(word) + 1);
}

/* torchrun's own words and the program are taken as they are; everything behind goes through the template. */
static void put_all(struct writer *w, const struct argv_plan *plan, const char *local_rank)
{
    if (plan->entry == CONF_PROGRAM) {
        put_word(w, plan->script, NULL);
    } else {
        put_word(w, plan->python, NULL);
        put_word(w, "-u", NULL);
        if (plan->entry == CONF_MODULE)
            put_word(w, "-m", NULL);
        put_word(w, plan->script, local_rank);
    }
    for (char *const *a = plan->args; a && *a; a++)
        put_word(w, *a, local_rank);
}

char **argv_worker(struct el_mem *mem, const struct argv_plan *plan, unsigned local_rank, struct el_err *e)
{
    assert(plan->script && (plan->python || plan->entry == CONF_PROGRAM));
    char rank[16];
    snprintf(rank, sizeof rank, "%u", local_rank);
    size_t words = plan->entry == CONF_PROGRAM ? 1 : plan->entry == CONF_MODULE ? 4 : 3;
    for (char *const *a = plan->args; a && *a; a++)
        words++;
    struct writer count = {NULL, 0, NULL};
    put_all(&count, plan, rank);
    size_t pointers = (words + 1) * sizeof(char *);
    char **argv = el_alloc(mem, pointers + count.n);
    if (!argv) {
        el_fail(e, EL_EXIT_OSERR, "no memory for the arguments of local rank %u (%zu bytes)", local_rank,
                pointers + count.n);
        return NULL;
    }
    struct writer w = {(char *)argv + pointers, 0, argv};
    put_all(&w, plan, rank);
    assert(w.n == count.n && w.slot == argv + words);
    return argv; /* the last pointer is NULL already: the block came zeroed */
}
