/* Protocol vectors as text: "> 05 01 00.." goes to the server, "< 00" comes back; "00.." stands for seven zero bytes
 * that complete a 64-bit number, 'text' for its bytes, # begins a comment. */
#ifndef TEST_LIB_VECTOR_H
#define TEST_LIB_VECTOR_H
#include <stddef.h>

/* Writes the bytes of one line (without its mark) to out; returns how many, or -1 if the line is malformed. */
long vector_bytes(const char *line, char *out, size_t max);

#endif
