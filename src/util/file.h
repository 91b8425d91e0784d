/* Small files of the kernel, whole; and what a command prints. */
#ifndef UTIL_FILE_H
#define UTIL_FILE_H
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "util/buf.h"
#include "util/err.h"

/* Reads at most room-1 bytes and ends them with 0; what is longer is cut.  The number of bytes, or -1 and errno (and an
 * empty text). */
ssize_t file_read(const char *path, char *to, size_t room_bytes);

/* The same, of "root" + the formatted path. */
ssize_t file_readf(char *to, size_t room_bytes, const char *root, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Writes the text, which may be empty, out of the process and frees it.  `where` names the stream in the error. */
int file_print(FILE *to, const char *where, struct el_buf *text, struct el_err *e);

/* Takes those of the descriptors 0, 1 and 2 that are closed, so that no socket and no file gets such a number and is
 * printed into: what uses them still gets EBADF, and children find them closed. */
void file_streams_hold(void);

/* As many open files as the system allows: the soft limit becomes the hard one.  *before (may be NULL): what it was,
 * for children: a program that uses select() must not be given descriptors above its set.  -1 and errno if it is
 * refused. */
int file_limit_raise(struct rlimit *before);

#endif
