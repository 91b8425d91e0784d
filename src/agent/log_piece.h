/* One piece of a log file, opened and read in a thread of the pool: all of it may block. */
#ifndef AGENT_LOG_PIECE_H
#define AGENT_LOG_PIECE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "control/msg.h"

#define LOG_PIECE_SCAN_BYTES (64u << 10)
#define LOG_PIECE_BACK_BYTES ((off_t)16 << 20) /* the last lines are looked for so far back */
#define LOG_PIECE_ALL_LINES  UINT64_MAX

struct log_piece {
    /* filled by the caller, and changed here when the file is opened */
    const char *path;
    int fd;        /* -1: not open yet */
    off_t at, end; /* where to read; nothing from `end` on is wanted */
    bool watched;  /* inotify says when it grows */
    /* for opening it */
    uint64_t lines; /* begin with the last so many; LOG_PIECE_ALL_LINES */
    bool follow;    /* also what is appended after it was opened */
    int notify;     /* inotify that is to watch it; -1: none */
    /* the result */
    int sys;  /* errno; 0 */
    size_t n; /* fewer than fit, or end reached: this was all for now */
    char bytes[MSG_STREAM_MAX];
    char scan[LOG_PIECE_SCAN_BYTES];
};

void log_piece_read(struct log_piece *p);

#endif
