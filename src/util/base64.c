#include "util/base64.h"

#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int el_base64_put(struct el_buf *out, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    char *to = el_buf_reserve(out, (n + 2) / 3 * 4);
    if (!to)
        return -1;
    for (; n; p += 3) {
        size_t k = n < 3 ? n : 3;
        unsigned v = (unsigned)p[0] << 16 | (k > 1 ? (unsigned)p[1] << 8 : 0) | (k > 2 ? p[2] : 0);
        *to++ = alphabet[v >> 18];
        *to++ = alphabet[v >> 12 & 63];
        *to++ = k > 1 ? alphabet[v >> 6 & 63] : '=';
        *to++ = k > 2 ? alphabet[v & 63] : '=';
        out->len += 4;
        n -= k;
    }
    return 0;
}

static int base64_digit(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

long el_base64_read(const char *text, size_t n, unsigned char *to)
{
    long bytes = 0;
    if (n % 4)
        return -1;
    for (size_t i = 0; i < n; i += 4) {
        int pad = i + 4 == n ? (text[i + 3] == '=') + (text[i + 3] == '=' && text[i + 2] == '=') : 0;
        unsigned v = 0;
        for (int k = 0; k < 4; k++) {
            int d = k < 4 - pad ? base64_digit(text[i + (size_t)k]) : 0;
            if (d < 0)
                return -1;
            v = v << 6 | (unsigned)d;
        }
        if (v & ((1u << 8 * pad) - 1)) /* one value, one spelling */
            return -1;
        for (int k = 0; k < 3 - pad; k++)
            to[bytes++] = (unsigned char)(v >> (16 - 8 * k));
    }
    return bytes;
}
