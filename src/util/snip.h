/* Texts that others have written, in a room of our own. */
#ifndef UTIL_SNIP_H
#define UTIL_SNIP_H
#include <stdarg.h>
#include <stddef.h>

#define EL_SNIP_MIN 24u /* bytes of the room, at least */

/* As snprintf(), but what does not fit ends behind a whole word, with "…": a message that breaks off in the middle of a
 * word, or of a character, looks like one that is broken.  Returns to. */
const char *el_snip(char *to, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
const char *el_vsnip(char *to, size_t size, const char *format, va_list ap) __attribute__((format(printf, 3, 0)));

#endif
