#include "snapshot/checksum_thread.h"

#include <errno.h>

#include "ckpt/crc32c.h"

static void sum_next(struct checksum_thread *s)
{
    size_t at = s->next * s->piece, left = s->n - at;
    s->sums[s->next++] = crc32c(0, s->bytes + at, left < s->piece ? left : s->piece);
}

static void *checksum_thread_work(void *arg)
{
    struct checksum_thread *s = arg;
    for (;;) {
        while (sem_wait(&s->more) < 0 && errno == EINTR) {
        }
        if (s->next == s->written) /* called, and nothing was written: that is the end */
            return NULL;
        sum_next(s);
    }
}

void checksum_thread_begin(struct checksum_thread *s, const void *bytes, size_t n, size_t piece, uint32_t *sums)
{
    *s = (struct checksum_thread){.bytes = bytes, .n = n, .piece = piece, .sums = sums};
    if (!sums || n <= piece || sem_init(&s->more, 0, 0) < 0)
        return;
    s->threaded = pthread_create(&s->thread, NULL, checksum_thread_work, s) == 0;
    if (!s->threaded)
        sem_destroy(&s->more);
}

void checksum_thread_written(struct checksum_thread *s)
{
    s->written++;
    if (s->threaded)
        sem_post(&s->more);
    else if (s->sums)
        sum_next(s);
}

void checksum_thread_end(struct checksum_thread *s)
{
    if (!s->threaded)
        return;
    sem_post(&s->more);
    pthread_join(s->thread, NULL);
    sem_destroy(&s->more);
    s->threaded = false;
}
