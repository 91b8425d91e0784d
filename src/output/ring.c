#include "output/ring.h"

#include <assert.h>
#include <string.h>

int ring_put(struct ring *r, const char *bytes, size_t n)
{
    r->total += n;
    if (n && !r->v && !(r->v = el_alloc(r->mem, RING_BYTES)))
        return -1;
    if (n > RING_BYTES) {
        bytes += n - RING_BYTES;
        n = RING_BYTES;
    }
    if (!n)
        return 0;
    assert(r->at < RING_BYTES);
    size_t first = RING_BYTES - r->at < n ? RING_BYTES - r->at : n;
    memcpy(r->v + r->at, bytes, first);
    memcpy(r->v, bytes + first, n - first);
    r->at = (r->at + n) % RING_BYTES;
    r->len = RING_BYTES - r->len < n ? RING_BYTES : r->len + n;
    return 0;
}

size_t ring_copy(const struct ring *r, char *to)
{
    assert(r->len <= RING_BYTES && (r->len == RING_BYTES || r->at == r->len));
    if (!r->len)
        return 0;
    size_t old = r->len - (r->len == RING_BYTES ? r->at : r->len); /* bytes that stand behind the newest */
    memcpy(to, r->v + r->at, old);
    memcpy(to + old, r->v, r->len - old);
    return r->len;
}

void ring_free(struct ring *r)
{
    el_free(r->mem, r->v);
    r->v = NULL;
    r->len = r->at = 0;
}
