#include "agent/logs.h"

#include <string.h>

#include "util/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* Bytes that a character with this first byte has: of those that may be the beginning of one. */
static size_t promised(unsigned char first)
{
    return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
}

/* Could the bytes from here to the end become a character if more came? */
static bool logs_is_begun(const char *s, size_t n)
{
    unsigned char first = (unsigned char)s[0];
    if (first > 0xf4 || n >= promised(first))
        return false;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return false;
    return true;
}

size_t logs_text(const char *bytes, size_t n, bool last, char text[MSG_STREAM_MAX + 1])
{
    size_t at = 0, used = 0;
    while (used < n) {
        size_t size = bytes[used] ? el_utf8(bytes + used, n - used) : 0;
        size_t comes = size ? size : sizeof REPLACEMENT - 1;
        if (at + comes > MSG_STREAM_MAX || (!size && !last && logs_is_begun(bytes + used, n - used)))
            break;
        memcpy(text + at, size ? bytes + used : REPLACEMENT, comes);
        at += comes;
        used += size ? size : 1;
    }
    text[at] = 0;
    return used;
}

size_t logs_back(const char *block, size_t n, uint64_t *lines)
{
    for (size_t i = n; i > 0; i--)
        if (block[i - 1] == '\n' && --*lines == 0)
            return i;
    return SIZE_MAX;
}

size_t logs_last(const char *bytes, size_t n, uint64_t lines)
{
    if (!lines || !n)
        return n;
    size_t from = logs_back(bytes, n - (bytes[n - 1] == '\n'), &lines);
    return from == SIZE_MAX ? 0 : from;
}
