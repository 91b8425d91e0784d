#include "ckpt/usual_files.h"

#include <string.h>

#include "ckpt/fmt.h"
#include "ckpt/rank_files.h"
#include "util/sort.h"

static bool usual_files_starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static const char *usual_files_last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static bool usual_files_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* --- which of them count ------------------------------------------------------------------------------------------ */

/* What is written now and then, or for people. */
static bool is_note(const char *last)
{
    static const char *const ends[] = {".txt", ".md",  ".log",  ".out", ".err",  ".csv", ".tsv", ".png", ".jpg",
                                       ".svg", ".gif", ".jpeg", ".pdf", ".html", ".py",  ".sh",  ".swp", ".jsonl"};
    size_t n = strlen(last);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (n > strlen(ends[i]) && strcmp(last + n - strlen(ends[i]), ends[i]) == 0)
            return true;
    return strcmp(last, "latest") == 0 || memmem(last, n, "tfevents", 8) != NULL;
}

static bool is_hidden(const char *name)
{
    bool metadata = strcmp(usual_files_last_part(name), ".metadata") == 0;
    for (const char *at = name; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        if (*at == '.' && !(metadata && at == usual_files_last_part(name)))
            return true;
    return false;
}

static bool usual_files_is_usual(const char *name)
{
    enum fmt_kind kind = fmt_kind(name);
    const char *last = usual_files_last_part(name);
    if (kind == FMT_LEFTOVER || kind == FMT_DCP_DATA || is_hidden(name) || is_note(last))
        return false;
    return kind != FMT_OTHER || last == name;
}

/* --- their order -------------------------------------------------------------------------------------------------- */

static bool is_ranks(const char *name)
{
    return usual_files_starts(name, "mp_rank_") || usual_files_starts(name, "tp_rank_");
}

/* What is in the folder of a rank of Megatron or NeMo counts without the folder, whose form tells which parallel ranks
 * there are; a file of a rank of DeepSpeed without what its stage and its type put in front. */
static const char *usual_files_key_of(const char *name)
{
    uint64_t data, model;
    if (!strchr(name, 'k')) /* no rank: names are compared often */
        return name;
    if (is_ranks(name) && strchr(name, '/'))
        return strchr(name, '/') + 1;
    const char *last = usual_files_last_part(name), *ranks = memmem(last, strlen(last), "mp_rank_", 8);
    return ranks && rank_files_shard(name, &data, &model) != SHARD_NONE ? ranks : name;
}

/* Numbers are all one. */
int usual_files_order(const char *a, const char *b)
{
    a = usual_files_key_of(a);
    b = usual_files_key_of(b);
    while (*a && *b) {
        if (usual_files_is_digit(*a) && usual_files_is_digit(*b)) {
            a += strspn(a, "0123456789");
            b += strspn(b, "0123456789");
        } else if (*a != *b) {
            break;
        } else {
            a++;
            b++;
        }
    }
    char x = usual_files_is_digit(*a) ? '0' : *a, y = usual_files_is_digit(*b) ? '0' : *b;
    return (x > y) - (x < y);
}

static int usual_files_by_name(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    int c = usual_files_order(x, y);
    return c ? c : strcmp(x, y);
}

static int usual_files_with_name(const void *item, const void *name)
{
    return usual_files_order(*(char *const *)item, name);
}

static bool is_one_of_many(const char *name)
{
    struct fmt_member m;
    const char *key = usual_files_key_of(name);
    return key != name || is_ranks(key) || fmt_member(name, &m);
}

/* Of a numbered set one is enough, and of what each rank of a known format has, for that says how many there are: that
 * it is here at all is what counts. */
static size_t usual_files_once_each(const char **v, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (!k || usual_files_order(v[k - 1], v[i]) != 0 || !is_one_of_many(v[i]))
            v[k++] = v[i];
    return k;
}

int usual_files_take(struct usual_files *u, const char *const *names, size_t names_n, struct el_mem *mem,
                     struct el_err *e)
{
    struct rank_files *list;
    size_t ranks, n = 0;
    *u = (struct usual_files){0};
    if (rank_files_list(names, names_n, mem, &list, &ranks, e))
        return -1;
    bool *of_rank = el_alloc(mem, names_n * sizeof *of_rank);
    const char **taken = el_alloc(mem, names_n * sizeof *taken);
    for (size_t i = 0; of_rank && i < names_n; i++)
        of_rank[i] = !usual_files_is_usual(names[i]);
    for (size_t i = 0; of_rank && i < ranks; i++)
        of_rank[list[i].of] = true;
    for (size_t i = 0; of_rank && taken && i < names_n; i++)
        if (!of_rank[i])
            taken[n++] = names[i];
    if (of_rank && taken) {
        el_sort(taken, n, sizeof *taken, usual_files_by_name);
        n = usual_files_once_each(taken, n);
        n = n > USUAL_FILES_MAX ? 0 : n;
        u->v = el_alloc(mem, n * sizeof *u->v);
    }
    for (; u->v && u->n < n; u->n++)
        if (!(u->v[u->n] = el_strndup(mem, taken[u->n], strlen(taken[u->n]))))
            break;
    el_free(mem, taken);
    el_free(mem, of_rank);
    el_free(mem, list);
    return u->v && u->n == n ? 0 : el_fail(e, EL_EXIT_OSERR, "out of memory");
}

void usual_files_free(struct usual_files *u, struct el_mem *mem)
{
    for (size_t i = 0; i < u->n; i++)
        el_free(mem, u->v[i]);
    el_free(mem, u->v);
    *u = (struct usual_files){0};
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

static size_t usual_files_first_of(const struct usual_files *u, const char *name)
{
    return el_first(u->v, u->n, sizeof *u->v, name, usual_files_with_name);
}

size_t usual_files_next(const struct usual_files *u, size_t i)
{
    size_t end = i + 1;
    while (end < u->n && usual_files_order(u->v[end], u->v[i]) == 0)
        end++;
    return end;
}

size_t usual_files_count(const struct usual_files *u, const char *name)
{
    size_t i = usual_files_first_of(u, name);
    return i < u->n && usual_files_order(u->v[i], name) == 0 ? usual_files_next(u, i) - i : 0;
}

bool usual_files_has(const struct usual_files *u, const char *name)
{
    for (size_t i = usual_files_first_of(u, name); i < u->n && usual_files_order(u->v[i], name) == 0; i++)
        if (strcmp(u->v[i], name) == 0)
            return true;
    return false;
}

const char *usual_files_lacks(const struct usual_files *x, const struct usual_files *y, size_t *from)
{
    for (size_t i; (i = *from) < x->n;) {
        *from = usual_files_next(x, i);
        if (*from - i <= usual_files_count(y, x->v[i]))
            continue;
        while (i + 1 < *from && usual_files_has(y, x->v[i]))
            i++;
        return x->v[i];
    }
    return NULL;
}

bool usual_files_kin(const struct usual_files *a, const struct usual_files *b)
{
    for (size_t i = 0; i < a->n; i = usual_files_next(a, i))
        if (usual_files_count(b, a->v[i]))
            return true;
    return false;
}
