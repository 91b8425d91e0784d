/* Base64 with the usual alphabet and padding (RFC 4648, section 4). */
#ifndef UTIL_BASE64_H
#define UTIL_BASE64_H
#include "util/buf.h"

int el_base64_put(struct el_buf *out, const void *bytes, size_t n);

/* n characters, without white space; what they stand for goes to `to`, which has room for n / 4 * 3 bytes.  The number
 * of bytes, or -1: not base64. */
long el_base64_read(const char *text, size_t n, unsigned char *to);

#endif
