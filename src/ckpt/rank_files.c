#include "ckpt/rank_files.h"

#include <stdio.h>
#include <string.h>

#include "ckpt/fmt.h"
#include "util/parse.h"
#include "util/sort.h"

enum { BY_STEP_MAX = 1024 };

static bool rank_files_starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static const char *rank_files_last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static const char *rank_files_word_at(const char *s, const char *what)
{
    return memmem(s, strlen(s), what, strlen(what));
}

static size_t rank_files_digits(const char *s)
{
    size_t n = 0;
    while (s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

bool rank_files_take(const char **at, const char *words, uint64_t *number)
{
    if (!rank_files_starts(*at, words))
        return false;
    *at += strlen(words);
    size_t n = rank_files_digits(*at);
    if (!n || n > 6 || el_parse_u64n(*at, n, number))
        return false;
    *at += n;
    return true;
}

enum shard_kind rank_files_shard(const char *name, uint64_t *data, uint64_t *model)
{
    const char *at = rank_files_last_part(name), *zero = rank_files_word_at(at, "zero_pp_rank_");
    *data = 0;
    if (zero && zero - at <= 5)
        at = zero;
    bool ranked = rank_files_take(&at, "zero_pp_rank_", data);
    if (!rank_files_take(&at, ranked ? "_mp_rank_" : "mp_rank_", model))
        return SHARD_NONE;
    if (strcmp(at, "_optim_states.pt") == 0)
        return ranked ? SHARD_OPTIMIZER : SHARD_NONE;
    return strcmp(at, "_model_states.pt") != 0 ? SHARD_NONE : ranked ? SHARD_PARAMETERS : SHARD_MODEL;
}

/* The same kinds of parallel ranks, without the word. */
static const char *const directions[] = {"tp", "mp", "pp", "dp", "ep", "cp", "shard", "part"};

static bool rank_files_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "tp3", "tp_3", "tp-3", behind anything but a letter. */
static bool take_direction(const char *name, const char *last, struct rank_files *to)
{
    for (size_t i = 0; i < sizeof directions / sizeof directions[0]; i++) {
        size_t n = strlen(directions[i]);
        for (const char *at = rank_files_word_at(last, directions[i]); at;
             at = rank_files_word_at(at + 1, directions[i])) {
            const char *number = at + n + (at[n] == '_' || at[n] == '-'), *end = number;
            if ((at > last && rank_files_is_letter(at[-1])) || !rank_files_take(&end, "", &to->number) ||
                (*end != '.' && *end != '_' && *end != '-'))
                continue;
            to->at = (size_t)(number - name);
            to->end = (size_t)(end - name);
            to->from0 = true;
            return true;
        }
    }
    return false;
}

/* "tp_rank_3" is one of those in a direction, "local_rank_3" of a node: their number is not that of all. */
static bool is_of_some(const char *last, const char *rank)
{
    size_t n = (size_t)(rank - last);
    if (n && (rank[-1] == '_' || rank[-1] == '-'))
        n--;
    if (n >= 5 && (strncmp(last + n - 5, "local", 5) == 0))
        return true;
    if (n >= 4 && strncmp(last + n - 4, "node", 4) == 0)
        return true;
    return n >= 2 && last[n - 1] == 'p' && (n == 2 || !rank_files_is_letter(last[n - 3]));
}

/* sure: nothing else is called so.  "rank" may also be that of a matrix, by its name or by its number:
 * lora_rank_64.safetensors. */
static bool is_ranked(const char *name, struct rank_files *to)
{
    static const struct {
        const char *begin, *words;
        bool sure, whole, meta;
    } kinds[] = {
        {"rng_state_", "rng_state_", true, true, false},
        {"random_states_", "random_states_", true, true, false},
        {"consolidated.", "consolidated.", true, false, true},
        {"", "expp_rank_", true, false, false},
        {"layer_", "_expert_", true, false, false},
        {"layer_", "-model_", true, false, false},
        {"", "rank", false, true, false},
        {"", "rank_", false, true, false},
        {"", "rank-", false, true, false},
    };
    const char *last = rank_files_last_part(name);
    uint64_t data, model;
    *to = (struct rank_files){.name = name};
    if (rank_files_shard(name, &data, &model) != SHARD_NONE || rank_files_starts(last, "mp_rank_"))
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *at = rank_files_starts(last, kinds[i].begin) ? rank_files_word_at(last, kinds[i].words) : NULL,
                   *end = at;
        if (!at || !rank_files_take(&end, kinds[i].words, &to->number) || (*end != '.' && *end != '_' && *end != '-') ||
            (!kinds[i].sure && (rank_files_word_at(end, "rank") || rank_files_word_at(last, "lora"))))
            continue;
        to->at = (size_t)(at - name) + strlen(kinds[i].words);
        to->end = (size_t)(end - name);
        to->sure = kinds[i].sure;
        to->whole = kinds[i].whole && !is_of_some(last, at);
        to->meta = kinds[i].meta;
        return true;
    }
    return take_direction(name, last, to);
}

/* Those whose names say how many there are have been looked at: fmt_gaps(). */
static bool is_counted(const struct rank_files *x)
{
    struct fmt_member m;
    return fmt_member(x->name, &m) && m.number_at == x->at;
}

static int same_set(const struct rank_files *x, const struct rank_files *y)
{
    size_t n = x->at < y->at ? x->at : y->at;
    int c = memcmp(x->name, y->name, n);
    if (!c && x->at != y->at)
        c = x->at < y->at ? -1 : 1;
    return c ? c : strcmp(x->name + x->end, y->name + y->end);
}

static int rank_files_by_set(const void *a, const void *b)
{
    const struct rank_files *x = a, *y = b;
    int c = same_set(x, y);
    return c ? c : x->number < y->number ? -1 : x->number > y->number;
}

int rank_files_list(const char *const *names, size_t names_n, struct el_mem *mem, struct rank_files **list, size_t *n,
                    struct el_err *e)
{
    struct rank_files *v = *list = el_alloc(mem, names_n * sizeof *v);
    *n = 0;
    if (!v)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (size_t i = 0; i < names_n; i++) {
        if (fmt_kind(names[i]) == FMT_LEFTOVER || !is_ranked(names[i], &v[*n]) || is_counted(&v[*n]))
            continue;
        v[(*n)++].of = i;
    }
    el_sort(v, *n, sizeof *v, rank_files_by_set);
    return 0;
}

/* --- sets --------------------------------------------------------------------------------------------------------- */

size_t rank_files_set(const struct rank_files *list, size_t n, size_t from, struct rank_set *to)
{
    const struct rank_files *first = &list[from], *last = first;
    *to = (struct rank_set){.zero = first->number == 0};
    for (size_t i = from; i < n && same_set(&list[i], first) == 0; i++) {
        to->n += i == from || list[i].number != last->number;
        last = &list[i];
    }
    to->name = last->name;
    to->at = last->at;
    to->end = last->end;
    to->most = last->number;
    to->many = first->sure || first->from0 || to->n > 1;
    return (size_t)(last - list) + 1;
}

int rank_files_sets(struct rank_sets *s, const char *const *names, size_t names_n, struct el_mem *mem, struct el_err *e)
{
    struct rank_files *list;
    struct rank_set set;
    size_t n, sets = 0;
    *s = (struct rank_sets){0};
    if (rank_files_list(names, names_n, mem, &list, &n, e))
        return -1;
    for (size_t i = 0; i < n; sets++)
        i = rank_files_set(list, n, i, &set);
    s->v = el_alloc(mem, sets * sizeof *s->v);
    for (size_t i = 0; s->v && i < n;) {
        i = rank_files_set(list, n, i, &set);
        const char *name = el_strndup(mem, set.name, strlen(set.name));
        if (!name)
            break;
        s->v[s->n] = set;
        s->v[s->n++].name = name;
    }
    el_free(mem, list);
    return s->v && s->n == sets ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
}

void rank_files_sets_free(struct rank_sets *s, struct el_mem *mem)
{
    for (size_t i = 0; i < s->n; i++)
        el_free(mem, (char *)s->v[i].name);
    el_free(mem, s->v);
    *s = (struct rank_sets){0};
}

/* --- those of another checkpoint ---------------------------------------------------------------------------------- */

static int rank_files_by_name(const void *item, const void *key)
{
    const struct rank_set *a = item, *b = key;
    struct rank_files x = {.name = a->name, .at = a->at, .end = a->end},
                      y = {.name = b->name, .at = b->at, .end = b->end};
    return same_set(&x, &y);
}

static bool is_step(const char *digits, size_t n, int64_t step)
{
    uint64_t v;
    return step >= 0 && n <= 18 && el_parse_u64n(digits, n, &v) == 0 && v == (uint64_t)step;
}

static bool has_step(const struct rank_set *x, int64_t step)
{
    for (size_t i = 0, n; x->name[i]; i += n ? n : 1) {
        n = rank_files_digits(x->name + i);
        if (n && i != x->at && is_step(x->name + i, n, step))
            return true;
    }
    return false;
}

/* One name, but for the member's number and for that of the step. */
static bool alike_by_step(const struct rank_set *x, int64_t x_step, const struct rank_set *y, int64_t y_step)
{
    size_t i = 0, k = 0;
    while (x->name[i] || y->name[k]) {
        size_t n = rank_files_digits(x->name + i), m = rank_files_digits(y->name + k);
        bool here = i == x->at, there = k == y->at;
        bool same = n ? n == m && memcmp(x->name + i, y->name + k, n) == 0 : x->name[i] == y->name[k];
        bool steps = n && m && is_step(x->name + i, n, x_step) && is_step(y->name + k, m, y_step);
        if (here != there || (!here && !same && !steps))
            return false;
        i += n ? n : 1;
        k += m ? m : 1;
    }
    return true;
}

const struct rank_set *rank_files_find(const struct rank_sets *in, int64_t in_step, const struct rank_set *x,
                                       int64_t step)
{
    size_t i = el_first(in->v, in->n, sizeof *in->v, x, rank_files_by_name);
    if (i < in->n && rank_files_by_name(&in->v[i], x) == 0)
        return &in->v[i];
    if (in->n > BY_STEP_MAX || !has_step(x, step))
        return NULL;
    for (i = 0; i < in->n; i++)
        if (alike_by_step(&in->v[i], in_step, x, step))
            return &in->v[i];
    return NULL;
}

bool rank_files_lacks(const struct rank_set *x, const struct rank_set *y)
{
    return (x->zero || y->zero) && (y->n > x->n || y->most > x->most);
}
