#include "snapshot/replica_table.h"

#include <stdio.h>
#include <string.h>

#include "util/mem.h"
#include "util/scan.h"
#include "util/sort.h"

#define DIGITS 16u /* of a digest */

/* --- names --- */

void alike_name(struct alike_names *l, const char *shown)
{
    if (l->n++ < ALIKE_NAMED_MAX && l->at < l->size)
        l->at += (size_t)snprintf(l->to + l->at, l->size - l->at, "%s\"%s\"", l->n > 1 ? ", " : "", shown);
}

void alike_names_end(struct alike_names *l)
{
    if (l->n > ALIKE_NAMED_MAX && l->at < l->size)
        snprintf(l->to + l->at, l->size - l->at, " and %zu more", l->n - ALIKE_NAMED_MAX);
}

/* --- out --- */

static int replica_table_by_name(const void *a, const void *b)
{
    const struct alike_row *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->digest < y->digest ? -1 : x->digest > y->digest;
}

char *alike_table(struct alike_row *row, size_t n)
{
    size_t size = 1, at = 0;
    for (size_t i = 0; i < n; i++)
        size += DIGITS + 1 + strlen(row[i].name) + 1;
    char *table = size <= REPLICA_TABLE_MAX ? el_alloc(NULL, size) : NULL;
    if (!table)
        return NULL;
    el_sort(row, n, sizeof *row, replica_table_by_name);
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(table + at, size - at, "%016llx %s\n", (unsigned long long)row[i].digest, row[i].name);
    return table;
}

/* --- in --- */

/* The row at *at, which is moved behind it; false, and nothing is moved: there is none. */
static bool next_row(const char **at, struct alike_row *row)
{
    const char *from = *at;
    uint64_t digest;
    if (!scan_hex(&from, &digest) || *from++ != ' ')
        return false;
    const char *end = strchr(from, '\n');
    if (!end || end == from || (size_t)(end - from) >= sizeof row->name)
        return false;
    row->digest = digest;
    memcpy(row->name, from, (size_t)(end - from));
    row->name[end - from] = 0;
    *at = end + 1;
    return true;
}

/* Tensors whose names are cut, and are shown alike, stay together. */
const char *replica_table_lines(const char *table, const char *after, char *to, size_t size, bool *more)
{
    const char *from = table, *at = table, *whole, *end;
    struct alike_row row = {0};
    char last[EL_SHOW_MAX] = "";
    while (next_row(&at, &row) && strcmp(row.name, after) <= 0)
        from = at;
    for (at = whole = end = from; next_row(&at, &row) && (size_t)(at - from) < size; end = at) {
        whole = strcmp(row.name, last) ? end : whole;
        memcpy(last, row.name, sizeof last);
    }
    *more = *end != 0;
    if (*more && whole > from && strncmp(end + DIGITS + 1, last, strlen(last)) == 0)
        end = whole;
    memcpy(to, from, (size_t)(end - from));
    to[end - from] = 0;
    return to;
}

/* The next row in ascending order, up to a name; NULL: to the end. */
static bool next_up_to(const char **at, struct alike_row *row, const char *bound)
{
    struct alike_row next;
    if (!next_row(at, &next) || strcmp(next.name, row->name) < 0 || (bound && strcmp(next.name, bound) > 0))
        return false;
    *row = next;
    return true;
}

/* The name up to which all is told; NULL: there is no end to it. */
static const char *find_bound(const char *const lines[2], const bool more[2], const char *after, struct alike_row *to)
{
    const char *bound = NULL;
    for (unsigned i = 0; i < 2; i++) {
        struct alike_row last = {0};
        const char *at = lines[i];
        snprintf(last.name, sizeof last.name, "%s", after);
        while (more[i] && next_up_to(&at, &last, NULL))
            ;
        if (more[i] && (!bound || strcmp(last.name, bound) < 0)) {
            *to = last;
            bound = to->name;
        }
    }
    return bound;
}

/* Those that are shown by one name, and have no like on the other side: each that differs is there on both. */
static void name_alone(struct alike_names *found, const char *name, size_t alone[2])
{
    for (size_t n = alone[0] > alone[1] ? alone[0] : alone[1]; n; n--)
        alike_name(found, name);
    alone[0] = alone[1] = 0;
}

bool replica_table_compare(const char *const lines[2], const bool more[2], char after[EL_SHOW_MAX],
                           struct alike_names *found)
{
    struct alike_row end, row[2] = {{0}, {0}};
    const char *at[2] = {lines[0], lines[1]}, *bound = find_bound(lines, more, after, &end);
    bool has[2];
    char name[EL_SHOW_MAX] = "";
    size_t alone[2] = {0, 0};
    for (unsigned i = 0; i < 2; i++) {
        snprintf(row[i].name, sizeof row[i].name, "%s", after);
        has[i] = next_up_to(&at[i], &row[i], bound);
    }
    while (has[0] || has[1]) {
        int order = !has[0] ? 1 : !has[1] ? -1 : replica_table_by_name(&row[0], &row[1]);
        if (strcmp(row[order > 0].name, name) != 0)
            name_alone(found, name, alone);
        memcpy(name, row[order > 0].name, sizeof name);
        alone[order > 0] += order != 0;
        for (unsigned i = 0; i < 2; i++)
            if (i ? order >= 0 : order <= 0)
                has[i] = next_up_to(&at[i], &row[i], bound);
    }
    name_alone(found, name, alone);
    bool goes_on = bound && strcmp(bound, after) > 0;
    if (goes_on)
        memcpy(after, bound, strlen(bound) + 1);
    return !goes_on;
}
