#include "util/parse.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/utf8.h"

int el_parse_u64n(const char *s, size_t n, uint64_t *out)
{
    uint64_t v = 0;
    if (!n)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return -1;
        unsigned digit = (unsigned)(s[i] - '0');
        if (v > (UINT64_MAX - digit) / 10)
            return -1;
        v = v * 10 + digit;
    }
    *out = v;
    return 0;
}

int el_parse_u64(const char *s, uint64_t *out)
{
    return el_parse_u64n(s, strlen(s), out);
}

int el_parse_i64(const char *s, int64_t *out)
{
    uint64_t v;
    int minus = *s == '-';
    if (el_parse_u64(s + minus, &v) || v > (uint64_t)INT64_MAX + (minus ? 1 : 0))
        return -1;
    /* -1 - (v - 1) and not -v: the smallest number has no positive twin. */
    *out = minus && v ? -1 - (int64_t)(v - 1) : (int64_t)v;
    return 0;
}

/* The unit behind a time span, in microseconds; 0 if it is none. */
static uint64_t span_unit(const char *s)
{
    static const struct {
        char name[3];
        uint64_t usec;
    } units[] = {{"", 1000000},   {"s", 1000000},     {"us", 1},          {"ms", 1000},
                 {"m", 60000000}, {"h", 3600000000u}, {"d", 86400000000u}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(s, units[i].name) == 0)
            return units[i].usec;
    return 0;
}

static size_t parse_digits(const char *s)
{
    size_t n = 0;
    while (s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

int el_parse_duration(const char *s, el_usec *out)
{
    size_t whole = parse_digits(s), part = 0;
    const char *fraction = s + whole, *end = fraction;
    if (*fraction == '.') {
        part = parse_digits(++fraction);
        end = fraction + part;
    }
    uint64_t unit = span_unit(end), v = 0, rest = unit;
    if ((!whole && !part) || !unit || (whole && el_parse_u64n(s, whole, &v)) || v > (EL_NEVER - 1) / unit)
        return -1;
    v *= unit;
    for (size_t i = 0; i < part; i++) {
        unsigned digit = (unsigned)(fraction[i] - '0');
        if (rest % 10 && digit)
            return -1;
        rest /= 10;
        if (v > EL_NEVER - 1 - digit * rest)
            return -1;
        v += digit * rest;
    }
    *out = v;
    return 0;
}

int el_parse_size(const char *s, uint64_t *out)
{
    static const char letters[] = "KMGT";
    size_t n = parse_digits(s);
    const char *unit = s + n, *letter = *unit ? strchr(letters, *unit) : NULL;
    unsigned shift = letter ? 10 * (unsigned)(letter - letters + 1) : 0;
    uint64_t v;
    if (el_parse_u64n(s, n, &v) || v > UINT64_MAX >> shift)
        return -1;
    unit += letter != NULL;
    if (*unit && strcmp(unit, "B") != 0 && (!letter || strcmp(unit, "iB") != 0))
        return -1;
    *out = v << shift;
    return 0;
}

/* Same word but for the case of ASCII letters; `word` is in lower case. */
static int same_word(const char *s, size_t n, const char *word)
{
    if (strlen(word) != n)
        return 0;
    for (size_t i = 0; i < n; i++)
        if ((s[i] >= 'A' && s[i] <= 'Z' ? s[i] + 32 : s[i]) != word[i])
            return 0;
    return 1;
}

int el_parse_bool(const char *s, size_t n, int *out)
{
    static const char words[][6] = {"0", "1", "false", "true", "f", "t", "no", "yes", "n", "y"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (same_word(s, n, words[i]))
            return *out = (int)(i % 2), 0;
    return -1;
}

const char *el_show_path(const char *s, char *out, size_t room)
{
    static const char hex[] = "0123456789abcdef", more[] = "...";
    size_t used = 0;
    while (*s) {
        size_t n = el_utf8(s, SIZE_MAX);
        unsigned char c = (unsigned char)*s;
        bool plain = n && !el_utf8_steers(s, n);
        if (used + (plain ? n : 4) + sizeof more > room) {
            memcpy(out + used, more, sizeof more);
            return out;
        }
        if (plain) {
            memcpy(out + used, s, n);
        } else {
            n = 1;
            memcpy(out + used, "\\x", 2);
            out[used + 2] = hex[c >> 4];
            out[used + 3] = hex[c & 15];
        }
        used += plain ? n : 4;
        s += n;
    }
    assert(used < room);
    out[used] = 0;
    return out;
}

const char *el_show(const char *s, char out[EL_SHOW_MAX])
{
    return el_show_path(s, out, EL_SHOW_MAX);
}
