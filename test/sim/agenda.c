/* What is to come in the simulated cluster, by time and then by order of arrival; and what it says when something did
 * not hold. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cluster.h"

void cluster_fail(struct cluster *c, const char *format, ...)
{
    if (c->failed)
        return;
    c->failed = true;
    va_list ap;
    va_start(ap, format);
    char text[160];
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    printf("sim_cluster: seed %llu, step %llu, %.3f s: %s\n", (unsigned long long)c->seed, (unsigned long long)c->steps,
           (double)c->now / 1e6, text);
}

void cluster_note(struct cluster *c, uint32_t who, const char *format, ...)
{
    char *line = c->trace[c->trace_n++ % CLUSTER_TRACE_MAX];
    int n = who == CLUSTER_COORD ? snprintf(line, 40, "%10.6f coord ", (double)c->now / 1e6)
                                 : snprintf(line, 40, "%10.6f %5u ", (double)c->now / 1e6, who);
    va_list ap;
    va_start(ap, format);
    vsnprintf(line + n, sizeof c->trace[0] - (size_t)n, format, ap);
    va_end(ap);
    if (c->verbose)
        puts(line);
}

void cluster_print_failure(const struct cluster *c)
{
    uint64_t first = c->trace_n > CLUSTER_TRACE_MAX ? c->trace_n - CLUSTER_TRACE_MAX : 0;
    for (uint64_t i = first; i < c->trace_n; i++)
        printf("# %s\n", c->trace[i % CLUSTER_TRACE_MAX]);
    printf("# again: sim_cluster --seed %llu --seeds 1 --agents %u%s\n", (unsigned long long)c->seed, c->n,
           c->quiet ? " --quiet" : "");
}

static bool before(const struct cluster *c, size_t a, size_t b)
{
    return c->heap[a].at != c->heap[b].at ? c->heap[a].at < c->heap[b].at : c->heap[a].seq < c->heap[b].seq;
}

static void swap(struct cluster *c, size_t a, size_t b)
{
    __typeof__(c->heap[0]) t = c->heap[a];
    c->heap[a] = c->heap[b];
    c->heap[b] = t;
}

static uint32_t item_new(struct cluster *c)
{
    uint32_t i = c->item_free;
    if (i != UINT32_MAX) {
        c->item_free = (uint32_t)c->item[i].conn;
        return i;
    }
    if (c->items == c->items_room) {
        c->items_room = c->items_room ? 2 * c->items_room : 4096;
        c->item = realloc(c->item, c->items_room * sizeof *c->item);
        if (!c->item)
            abort();
    }
    return c->items++;
}

struct cluster_item *cluster_push(struct cluster *c, el_usec at, enum cluster_kind kind, uint32_t who)
{
    if (c->heap_n == c->heap_room) {
        c->heap_room = c->heap_room ? 2 * c->heap_room : 4096;
        c->heap = realloc(c->heap, c->heap_room * sizeof *c->heap);
        if (!c->heap)
            abort();
    }
    uint32_t i = item_new(c);
    struct cluster_item *it = &c->item[i];
    memset(it, 0, offsetof(struct cluster_item, msg));
    it->msg.type = MSG_NONE;
    it->msg.tree = NULL;
    it->kind = kind;
    it->who = who;
    size_t k = c->heap_n++;
    c->heap[k].at = at < c->now ? c->now : at;
    c->heap[k].seq = c->seq++;
    c->heap[k].item = i;
    for (; k && before(c, k, (k - 1) / 2); k = (k - 1) / 2)
        swap(c, k, (k - 1) / 2);
    return it;
}

uint32_t cluster_pop(struct cluster *c)
{
    uint32_t i = c->heap[0].item;
    c->now = c->heap[0].at;
    swap(c, 0, --c->heap_n);
    for (size_t k = 0;;) {
        size_t l = 2 * k + 1, m = k;
        m = l < c->heap_n && before(c, l, m) ? l : m;
        m = l + 1 < c->heap_n && before(c, l + 1, m) ? l + 1 : m;
        if (m == k)
            return i;
        swap(c, k, m);
        k = m;
    }
}
