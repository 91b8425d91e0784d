/* The codec, both dialects: feeding byte by byte and at once must say the same, and stay inside the bytes. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(struct kv_bytes a, struct kv_bytes b)
{
    assert(a.n == b.n && (!a.n || !memcmp(a.v, b.v, a.n)));
}

/* Walks the list as the session does. */
static void walk(const struct wire_request *r)
{
    struct kv_bytes list = r->list;
    for (size_t i = 0; i < r->count * (r->op == WIRE_MULTI_SET ? 2 : 1); i++) {
        struct kv_bytes x = wire_next(&list);
        assert(x.n <= (i % 2 ? WIRE_VALUE_MAX : WIRE_KEY_MAX) || r->op == WIRE_MULTI_SET || x.n <= WIRE_KEY_MAX);
    }
    assert(list.n == 0);
}

/* Scans one request that begins at bytes, piece by piece.  Each piece is a block of its own, so that a sanitizer sees
 * every step beyond it. */
static enum wire_scan in_pieces(struct store_wire *w, const char *bytes, size_t n, size_t step, struct wire_request *r,
                                char **block, size_t *length)
{
    for (size_t there = 0;; there += step) {
        size_t now = there < n ? there : n;
        free(*block);
        *block = malloc(now ? now : 1);
        memcpy(*block, bytes, now);
        enum wire_scan scan = wire_scan(w, *block, now, r, length);
        if (scan != WIRE_MORE)
            return scan;
        assert(w->need > now);
        if (now == n)
            return scan;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct store_wire one = {.dialect = data[0] & 1 ? WIRE_LEGACY : WIRE_MODERN}, two = one;
    size_t step = (size_t)data[1] % 17 + 1;
    const char *bytes = (const char *)data + 2;
    size_t n = size - 2;
    char *block = NULL;
    while (n) {
        struct wire_request a = {0}, b = {0};
        size_t length_a = 0, length_b = 0;
        enum wire_scan whole = wire_scan(&one, bytes, n, &a, &length_a);
        enum wire_scan cut = in_pieces(&two, bytes, n, step, &b, &block, &length_b);
        assert(whole == cut && length_a == length_b);
        if (whole != WIRE_WHOLE) {
            assert(one.error == two.error);
            break;
        }
        assert(length_a > 0 && length_a <= n && a.op == b.op && a.number == b.number && a.word == b.word);
        same(a.key, b.key);
        same(a.value, b.value);
        same(a.second, b.second);
        same(a.list, b.list);
        walk(&a);
        bytes += length_a;
        n -= length_a;
    }
    free(block);
    return 0;
}
