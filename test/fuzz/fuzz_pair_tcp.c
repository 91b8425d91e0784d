/* Any bytes as where a host end is, and as a header of a pair: bounded, and what was read is written the same. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "probe/pair_tcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char text[300], again[300];
    struct pair_id id, same;
    struct pair_header h;
    uint8_t raw[PAIR_HEADER_BYTES];
    size_t len = n < sizeof text - 1 ? n : sizeof text - 1;
    memcpy(text, data, len);
    text[len] = 0;
    if (pair_id_parse(text, &id)) {
        pair_id_text(&id, again, sizeof again);
        assert(pair_id_parse(again, &same) && memcmp(&id.addr, &same.addr, sizeof id.addr) == 0);
        assert(memcmp(id.token, same.token, sizeof id.token) == 0);
    }
    if (n >= PAIR_HEADER_BYTES && pair_header_get(data, &h)) {
        assert(h.bytes <= PAIR_BYTES_MAX && h.bytes % PAIR_BLOCK_BYTES == 0);
        pair_header_put(&h, raw);
        assert(memcmp(raw, data, sizeof raw) == 0);
    }
    return 0;
}
