#include "ckpt/pickle_index.h"

#include <string.h>

#include "util/sort.h"

struct asked {
    const struct pickle_node *text;
    uint64_t compared;
};

static int pickle_index_compare(const struct pickle_node *a, const struct pickle_node *b)
{
    size_t n = a->text_n < b->text_n ? a->text_n : b->text_n;
    int c = n ? memcmp(a->text, b->text, n) : 0;
    return c ? c : a->text_n < b->text_n ? -1 : a->text_n > b->text_n;
}

static int pickle_index_by_key(const void *a, const void *b)
{
    struct pickle_node *const *x = *(struct pickle_node *const *const *)a, *const *y =
                                                                               *(struct pickle_node *const *const *)b;
    int c = pickle_index_compare(*x, *y);
    return c ? c : x < y ? -1 : x > y; /* in the order of the dict */
}

static int pickle_index_with_key(const void *item, const void *key)
{
    struct asked *asked = *(struct asked *const *)key;
    asked->compared++;
    return pickle_index_compare(**(struct pickle_node *const *const *)item, asked->text);
}

int pickle_index_make(struct pickle_index *x, struct el_mem *mem, const struct pickle_node *dict)
{
    bool any = dict && dict->kind == PICKLE_DICT;
    *x = (struct pickle_index){.mem = mem};
    x->v = el_alloc(mem, (any ? dict->items_n / 2 + 1 : 1) * sizeof *x->v);
    if (!x->v)
        return -1;
    for (size_t i = 0; any && i + 1 < dict->items_n; i += 2)
        if (dict->items[i]->kind == PICKLE_TEXT)
            x->v[x->n++] = &dict->items[i];
    el_sort(x->v, x->n, sizeof *x->v, pickle_index_by_key);
    return 0;
}

void pickle_index_free(struct pickle_index *x)
{
    el_free(x->mem, x->v);
    *x = (struct pickle_index){0};
}

struct pickle_node *pickle_index_get(struct pickle_index *x, const struct pickle_node *text)
{
    struct asked asked = {.text = text}, *key = &asked;
    if (!text || text->kind != PICKLE_TEXT)
        return NULL;
    size_t i = el_first(x->v, x->n, sizeof *x->v, &key, pickle_index_with_key);
    x->compared += asked.compared;
    return i < x->n && pickle_index_compare(*x->v[i], text) == 0 ? x->v[i][1] : NULL;
}
