/* The beginning of the last traceback of a stream, kept when the ring has to give it up: a message of several hundred
 * KiB behind it is no reason to lose its type, its frames and its first line. */
#ifndef OUTPUT_HEAD_H
#define OUTPUT_HEAD_H
#include <stdbool.h>

#include "output/ring.h"
#include "util/time.h"

#define HEAD_BYTES      (32u * 1024u)
#define HEAD_NOTE_BYTES 64u
#define HEAD_JOIN_BYTES (RING_BYTES + HEAD_BYTES + HEAD_NOTE_BYTES) /* what is kept of a stream at most */

struct head {
    struct el_mem *mem;
    char *v; /* NULL until a traceback's beginning leaves the ring */
    size_t len;
    uint64_t from, soon;      /* of what is kept: where it stood; how far the stream had come HEAD_SOON later */
    uint64_t mark, mark_soon; /* of the last traceback seen */
    el_usec mark_at;
    bool marked;
    unsigned matched; /* bytes of a header that the last chunk broke off */
};

/* Called with what the ring is given next. */
void head_put(struct head *h, const struct ring *r, const char *bytes, size_t n, el_usec now);
/* What is known of the stream's end, to[HEAD_JOIN_BYTES]: the ring, and in front of it the beginning of the traceback
 * whose message fills it.  A traceback that was followed by other output is none of these: then the ring alone. */
size_t head_join(const struct head *h, const struct ring *r, char *to);
void head_free(struct head *h); /* can be used again */

/* The same of a text that is whole, such as a log file's last MiB of which the last RING_BYTES are `ring`: the offset
 * of the traceback's first line, -1 if there is none whose message reaches there. */
long head_find(const char *text, size_t n);

#endif
