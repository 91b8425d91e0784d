/* Checksums behind a writer: the same as without a thread, however the writer and the thread come to run; and of what
 * was written only.  Seen to fail: with a thread that sums a piece before it was written; with one that ends too early.
 */
#include "ckpt/crc32c.h"
#include "snapshot/checksum_thread.h"
#include "lib/tap.h"

enum { PIECE = 512, PIECES = 40, BYTES = (PIECES - 1) * PIECE + 100 };

static char bytes[BYTES];
static uint32_t sums[PIECES];

static uint32_t sum_of(size_t i)
{
    size_t left = BYTES - i * PIECE;
    return crc32c(0, bytes + i * PIECE, left < PIECE ? left : PIECE);
}

/* How many sums are not those of the bytes as they were when checksum_thread_written() was called; of those that were
 * not written, that are there. */
static unsigned run(size_t written, size_t n)
{
    unsigned bad = 0;
    struct checksum_thread s;
    memset(bytes, 1, sizeof bytes);
    memset(sums, 0, sizeof sums);
    checksum_thread_begin(&s, bytes, n, PIECE, sums);
    for (size_t i = 0; i < written; i++) {
        memset(bytes + i * PIECE, (int)i, 100); /* the writer's */
        checksum_thread_written(&s);
    }
    checksum_thread_end(&s);
    for (size_t i = 0; i < PIECES; i++)
        bad += sums[i] != (i < written ? sum_of(i) : 0);
    return bad;
}

int main(void)
{
    unsigned bad = 0;
    for (int i = 0; i < 200; i++)
        bad += run(PIECES, BYTES);
    is_num(bad, 0, "every piece, and the shorter last one");
    is_num(run(7, BYTES), 0, "a writer that stopped");
    is_num(run(0, BYTES), 0, "one that wrote nothing");
    is_num(run(1, PIECE), 0, "one piece");
    struct checksum_thread s;
    checksum_thread_begin(&s, bytes, BYTES, PIECE, NULL);
    checksum_thread_written(&s);
    checksum_thread_end(&s);
    ok(true, "nobody asks");
    return done();
}
