/* UTF-8, one character at a time. */
#ifndef UTIL_UTF8_H
#define UTIL_UTF8_H
#include <stddef.h>

/* Length of the character at p, of which n > 0 bytes are there; 0 if it is not one: broken, over-long, a surrogate, or
 * beyond U+10FFFF.  Of a text that ends with 0 any n may be given: the 0 continues nothing. */
size_t el_utf8(const char *p, size_t n);

#endif
