#include "util/snip.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 48u /* a longer word is cut, for else little might be left */

static bool snip_is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t';
}

/* Where the last whole word of the first n bytes ends. */
static size_t end_of_words(const char *text, size_t n)
{
    size_t at = n;
    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80) /* not within a character */
        at--;
    size_t least = at > WORD_MAX ? at - WORD_MAX : 0;
    for (size_t k = at + 1; k-- > least + 1;)
        if (snip_is_blank(text[k])) {
            at = k;
            break;
        }
    while (at > 0 && snip_is_blank(text[at - 1]))
        at--;
    return at;
}

const char *el_vsnip(char *to, size_t size, const char *format, va_list ap)
{
    static const char dots[] = "\xe2\x80\xa6"; /* … */
    assert(size >= EL_SNIP_MIN);
    int n = vsnprintf(to, size, format, ap);
    if (n >= 0 && (size_t)n >= size)
        memcpy(to + end_of_words(to, size - sizeof dots), dots, sizeof dots);
    return to;
}

const char *el_snip(char *to, size_t size, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    el_vsnip(to, size, format, ap);
    va_end(ap);
    return to;
}
