/* Worker logs on their way to `elrun logs`: bytes to text, and where the last lines begin.  logs_io.c reads the files.
 */
#ifndef AGENT_LOGS_H
#define AGENT_LOGS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/msg.h"

/* Makes of bytes a text of at most MSG_STREAM_MAX bytes that a message carries as it is: what is no UTF-8, and NUL,
 * becomes U+FFFD.  Returns how many bytes were used.  A character that may go on behind them stays, unless this is the
 * `last` that will come. */
size_t logs_text(const char *bytes, size_t n, bool last, char text[MSG_STREAM_MAX + 1]);

/* Goes back over a block by `*lines` ends of lines, which are counted down.  Where the line behind the last of them
 * begins, or SIZE_MAX: further in front of the block.  The newline at the very end of a file ends its last line: leave
 * it out of the last block. */
size_t logs_back(const char *block, size_t n, uint64_t *lines);

/* The beginning of the last `lines` lines of a whole that is at hand. */
size_t logs_last(const char *bytes, size_t n, uint64_t lines);

#endif
