#include "snapshot/image_sizes.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>

#include "snapshot/worker_msg.h"
#include "util/scan.h"

static_assert(WORKER_MSG_BYTES_MAX < 100000000000000, "14 digits");
static_assert(WORKER_MSG_IMAGES_MAX >= WORKER_MSG_PARTS_MAX * IMAGE_SIZES_ENTRY_MAX, "every list fits its message");

/* A decimal number without zeros in front: one number has one spelling. */
static bool image_sizes_get_number(const char **at, uint64_t *out)
{
    const char *from = *at;
    return scan_u64(at, out) && *out <= WORKER_MSG_BYTES_MAX && (*from != '0' || *at == from + 1);
}

const char *image_sizes_get(const char *text, unsigned parts, uint64_t *header_bytes, uint64_t *bytes)
{
    for (unsigned i = 0; i < parts; i++) {
        if (i && *text++ != ' ')
            return "one entry is needed for each part that was declared";
        if (!image_sizes_get_number(&text, &header_bytes[i]) || *text++ != '/' ||
            !image_sizes_get_number(&text, &bytes[i]))
            return "each entry is two numbers of bytes, HEADER/IMAGE";
        if (header_bytes[i] > bytes[i] || (header_bytes[i] && header_bytes[i] < 8))
            return "a header has 8 bytes at least, and no more than its image";
    }
    if (*text)
        return "one entry is needed for each part that was declared";
    return image_sizes_bytes(bytes, parts) > WORKER_MSG_BYTES_MAX ? "the images are larger than 64 TiB" : NULL;
}

size_t image_sizes_put(const uint64_t *header_bytes, const uint64_t *bytes, unsigned parts, char *to)
{
    size_t n = 0, room = (size_t)parts * IMAGE_SIZES_ENTRY_MAX + 1;
    *to = 0;
    for (unsigned i = 0; i < parts; i++) {
        assert(header_bytes[i] <= WORKER_MSG_BYTES_MAX && bytes[i] <= WORKER_MSG_BYTES_MAX);
        n += (size_t)snprintf(to + n, room - n, "%s%llu/%llu", i ? " " : "", (unsigned long long)header_bytes[i],
                              (unsigned long long)bytes[i]);
    }
    return n;
}

uint64_t image_sizes_bytes(const uint64_t *bytes, unsigned parts)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < parts; i++)
        sum += (bytes[i] + IMAGE_SIZES_PAGE - 1) / IMAGE_SIZES_PAGE * IMAGE_SIZES_PAGE;
    return sum;
}
