/* Checksums of a file's pieces while it is written: by a thread of its own, one piece behind the writer, so that the
 * disk does not wait for them.  A piece is summed after it was written: the sum is of bytes that nobody changed before.
 */
#ifndef SNAPSHOT_CHECKSUM_THREAD_H
#define SNAPSHOT_CHECKSUM_THREAD_H
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct checksum_thread {
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
 * there is one piece only) checksum_thread_written() sums. */
void checksum_thread_begin(struct checksum_thread *s, const void *bytes, size_t n, size_t piece, uint32_t *sums);

/* The next piece is written. */
void checksum_thread_written(struct checksum_thread *s);

/* Afterwards what was written is summed, and the thread is gone. */
void checksum_thread_end(struct checksum_thread *s);

#endif
