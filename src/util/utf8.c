#include "util/utf8.h"

#include <assert.h>

size_t el_utf8(const char *p, size_t n)
{
    assert(n > 0);
    const unsigned char *u = (const unsigned char *)p;
    if (u[0] < 0x80)
        return 1;
    size_t len = u[0] >= 0xc2 && u[0] <= 0xdf   ? 2
                 : u[0] >= 0xe0 && u[0] <= 0xef ? 3
                 : u[0] >= 0xf0 && u[0] <= 0xf4 ? 4
                                                : 0;
    if (!len || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    /* over-long forms, surrogates, beyond U+10FFFF */
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) || (u[0] == 0xf0 && u[1] < 0x90) ||
        (u[0] == 0xf4 && u[1] > 0x8f))
        return 0;
    return len;
}

bool el_utf8_steers(const char *p, size_t len)
{
    const unsigned char *u = (const unsigned char *)p;
    if (len == 1)
        return u[0] < 0x20 || u[0] == 0x7f;
    if (len == 2)
        return u[0] == 0xc2 && u[1] < 0xa0;
    /* U+202A-202E, U+2066-2069 */
    return len == 3 && u[0] == 0xe2 &&
           ((u[1] == 0x80 && u[2] >= 0xaa && u[2] <= 0xae) || (u[1] == 0x81 && u[2] >= 0xa6 && u[2] <= 0xa9));
}
