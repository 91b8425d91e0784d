#include "util/scan.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

static bool scan_number(const char **at, uint64_t base, uint64_t *out)
{
    const char *p = *at;
    uint64_t v = 0;
    for (; digit_value(*p) < (int)base; p++) {
        uint64_t d = (uint64_t)digit_value(*p);
        if (v > (UINT64_MAX - d) / base)
            return false;
        v = v * base + d;
    }
    if (p == *at)
        return false;
    *at = p;
    *out = v;
    return true;
}

bool scan_u64(const char **at, uint64_t *out)
{
    return scan_number(at, 10, out);
}

bool scan_hex(const char **at, uint64_t *out)
{
    return scan_number(at, 16, out);
}

bool scan_int(const char **at, int *out)
{
    const char *p = *at;
    bool minus = *p == '-';
    uint64_t v;
    if (minus)
        p++;
    if (!scan_number(&p, 10, &v) || v > INT_MAX)
        return false;
    *at = p;
    *out = minus ? -(int)v : (int)v;
    return true;
}

bool scan_span(const char **at, uint64_t *first, uint64_t *last)
{
    const char *p = *at;
    uint64_t a, b;
    if (!scan_u64(&p, &a))
        return false;
    b = a;
    if (*p == '-' && (p++, !scan_u64(&p, &b) || b < a))
        return false;
    *at = p;
    *first = a;
    *last = b;
    return true;
}

void scan_blanks(const char **at)
{
    while (**at == ' ' || **at == '\t')
        ++*at;
}

const char *scan_field(const char *text, const char *key)
{
    size_t n = strlen(key);
    assert(n);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n')
            line++;
        if (strncmp(line, key, n) == 0) {
            line += n;
            scan_blanks(&line);
            return line;
        }
    }
    return NULL;
}

bool scan_line(const char *from, char *to, size_t room_bytes)
{
    assert(room_bytes);
    const char *end = strchr(from, '\n');
    size_t n = end ? (size_t)(end - from) : strlen(from);
    while (n && (from[n - 1] == ' ' || from[n - 1] == '\t' || from[n - 1] == '\r'))
        n--;
    bool fits = n < room_bytes;
    if (!fits)
        n = room_bytes - 1;
    memcpy(to, from, n);
    to[n] = 0;
    return fits;
}
