#include "probe/versions.h"

#include <assert.h>
#include <string.h>

static const char *versions_value_of(const struct facts *const *nodes, unsigned i, enum fact fact)
{
    return nodes[i] ? nodes[i]->v[fact] : "";
}

static struct versions_value *versions_find(struct versions_difference *d, const char *value)
{
    for (unsigned i = 0; i < d->n; i++)
        if (strcmp(d->v[i].value, value) == 0)
            return &d->v[i];
    return NULL;
}

/* Insertion keeps the order of first appearance among equals. */
static void versions_sort(struct versions_difference *d)
{
    for (unsigned i = 1; i < d->n; i++)
        for (unsigned j = i; j && d->v[j].nodes > d->v[j - 1].nodes; j--) {
            struct versions_value t = d->v[j];
            d->v[j] = d->v[j - 1];
            d->v[j - 1] = t;
        }
}

bool versions_differ(const struct facts *const *nodes, unsigned n, enum fact fact, struct versions_difference *out)
{
    assert(fact < FACTS);
    *out = (struct versions_difference){.fact = fact};
    bool compared = fact_rows[fact].kind == FACT_KIND_SOFTWARE || fact_rows[fact].kind == FACT_KIND_HARDWARE;
    for (unsigned i = 0; i < n && compared; i++) {
        const char *value = versions_value_of(nodes, i, fact);
        struct versions_value *at = versions_find(out, value);
        if (!value[0])
            continue;
        if (at)
            at->nodes++;
        else if (out->n < VERSIONS_VALUES_MAX)
            out->v[out->n++] = (struct versions_value){.value = value, .nodes = 1, .first = i};
        else
            out->left_out++;
    }
    versions_sort(out);
    return out->n > 1;
}

static void versions_put_names(const struct versions_difference *d, const struct versions_value *v,
                               const struct facts *const *nodes, const char *const *names, unsigned n,
                               struct el_buf *out)
{
    unsigned named = 0;
    for (unsigned i = v->first; i < n && named < VERSIONS_NAMES_MAX; i++)
        if (strcmp(versions_value_of(nodes, i, d->fact), v->value) == 0)
            el_buf_printf(out, "%s%s", named++ ? ", " : "", names[i]);
    if (named < v->nodes)
        el_buf_printf(out, " and %u more", v->nodes - named);
}

void versions_text(const struct versions_difference *d, const struct facts *const *nodes, const char *const *names,
                   unsigned n, struct el_buf *out)
{
    assert(d->n > 1);
    bool majority = d->v[0].nodes > d->v[1].nodes;
    el_buf_printf(out, "%s: ", fact_rows[d->fact].words);
    for (unsigned i = 0; i < d->n; i++) {
        const struct versions_value *v = &d->v[i];
        if (majority && i == 0) {
            el_buf_printf(out, "%s on %u nodes", v->value, v->nodes);
            continue;
        }
        el_buf_printf(out, "%s%s on ", !i ? "" : majority && i == 1 ? ", but " : majority ? ", " : "; ", v->value);
        versions_put_names(d, v, nodes, names, n, out);
    }
    if (d->left_out)
        el_buf_printf(out, "; something else on %u more", d->left_out);
}

unsigned versions_report(const struct facts *const *nodes, const char *const *names, unsigned n, struct el_buf *out)
{
    struct versions_difference d;
    unsigned lines = 0;
    for (unsigned i = 0; i < FACTS; i++) {
        if (!versions_differ(nodes, n, (enum fact)i, &d))
            continue;
        versions_text(&d, nodes, names, n, out);
        el_buf_puts(out, "\n");
        lines++;
    }
    return lines;
}
