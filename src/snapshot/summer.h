/* Checksums of a file's pieces while it is written: by a thread of its own, one piece behind the writer, so that the
 * disk does not wait for them.  A piece is summed after it was written: the sum is of bytes that nobody changed before.
 */
#ifndef SNAPSHOT_SUMMER_H
#define SNAPSHOT_SUMMER_H
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct summer {
    const char *bytes;
    size_t n, piece;
    uint32_t *sums; /* NULL: nobody asks */
    size_t next;    /* the first piece that is not summed; the thread's while it runs */
    _Atomic size_t written;
    sem_t more;
    pthread_t thread;
    bool threaded;
};

/* sums: a CRC32C for each piece of n bytes, of which the last may be shorter.  Without a thread (none is to be had, or
 * there is one piece only) summer_written() sums. */
void summer_begin(struct summer *s, const void *bytes, size_t n, size_t piece, uint32_t *sums);

/* The next piece is written. */
void summer_written(struct summer *s);

/* Afterwards what was written is summed, and the thread is gone. */
void summer_end(struct summer *s);

#endif
