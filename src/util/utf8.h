/* UTF-8, one character at a time. */
#ifndef UTIL_UTF8_H
#define UTIL_UTF8_H
#include <stdbool.h>
#include <stddef.h>

/* Length of the character at p, of which n > 0 bytes are there; 0 if it is not one: broken, over-long, a surrogate, or
 * beyond U+10FFFF.  Of a text that ends with 0 any n may be given: the 0 continues nothing. */
size_t el_utf8(const char *p, size_t n);

/* Whether the character of len bytes at p steers a terminal instead of being shown there: ASCII and C1 controls (a
 * terminal in UTF-8 obeys U+009B as it does ESC [), and those that turn the direction of what follows. */
bool el_utf8_steers(const char *p, size_t len);

#endif
