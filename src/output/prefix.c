#include "output/prefix.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool prefix_is_word(char c, bool first)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (!first && c >= '0' && c <= '9');
}

static size_t word_len(const char *s)
{
    size_t n = 0;
    while (prefix_is_word(s[n], n == 0))
        n++;
    return n;
}

/* The value of a macro; number is room for those that are numbers.  NULL: no such macro. */
static const char *prefix_value_of(const char *name, size_t n, const struct prefix_values *v, char number[16])
{
    if (n == 9 && memcmp(name, "role_name", n) == 0)
        return v->role_name;
    if (n == 8 && memcmp(name, "hostname", n) == 0)
        return v->hostname;
    bool local = n == 10 && memcmp(name, "local_rank", n) == 0;
    if (!local && !(n == 4 && memcmp(name, "rank", n) == 0))
        return NULL;
    snprintf(number, 16, "%u", local ? v->local_rank : v->rank);
    return number;
}

/* At a '$': what it stands for, and how many bytes of the template that is. */
static const char *macro_at(const char *t, const struct prefix_values *v, char number[16], size_t *used)
{
    *used = 1;
    if (t[1] == '$') {
        *used = 2;
        return "$";
    }
    bool braces = t[1] == '{';
    const char *name = t + 1 + braces;
    size_t n = word_len(name);
    const char *value = n && (!braces || name[n] == '}') ? prefix_value_of(name, n, v, number) : NULL;
    if (!value)
        return "$";
    *used = (size_t)(name - t) + n + braces;
    return value;
}

size_t prefix_format(char *to, size_t size, const char *template, const struct prefix_values *v)
{
    assert(size > 0);
    size_t len = 0;
    const char *t = template[0] ? template : PREFIX_DEFAULT;
    while (*t && len + 1 < size) {
        char number[16], one[2] = {*t == '\n' ? ' ' : *t, 0};
        size_t used = 1;
        const char *add = *t == '$' ? macro_at(t, v, number, &used) : one;
        size_t n = strnlen(add, size - 1 - len);
        memcpy(to + len, add, n);
        len += n;
        t += used;
    }
    to[len] = 0;
    return len;
}
