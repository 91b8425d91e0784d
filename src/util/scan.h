/* Reading small texts of the kernel: numbers, fields by name, lines.  No locale, no overflow, no allocation. */
#ifndef UTIL_SCAN_H
#define UTIL_SCAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The decimal (or hexadecimal, without 0x) number at *at; moves *at behind it.  False, and nothing is moved, if there
 * is no digit or the number does not fit 64 bits. */
bool scan_u64(const char **at, uint64_t *out);
bool scan_hex(const char **at, uint64_t *out);

/* As scan_u64, with a minus sign allowed; within the range of int. */
bool scan_int(const char **at, int *out);

/* "5", or "3-7" with the ends in order: one span of such lists as the kernel writes.  As scan_u64 else. */
bool scan_span(const char **at, uint64_t *first, uint64_t *last);

/* Moves *at over blanks and tabs. */
void scan_blanks(const char **at);

/* Behind "key" at the start of a line of text, and behind the blanks that follow; NULL if no line starts with it. */
const char *scan_field(const char *text, const char *key);

/* Copies up to the end of the line, trailing white space cut; the copy always ends with 0.  False if it did not fit. */
bool scan_line(const char *from, char *to, size_t room_bytes);

#endif
