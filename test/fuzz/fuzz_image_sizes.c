/* The sizes of a snapshot's parts, as a worker says them: what is read is written again in the same words, and fits a
 * slot. */
#include <stdlib.h>
#include <string.h>

#include "snapshot/image_sizes.h"
#include "snapshot/worker_msg.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static uint64_t header_bytes[WORKER_MSG_PARTS_MAX], bytes[WORKER_MSG_PARTS_MAX];
    static char text[WORKER_MSG_IMAGES_MAX + 1], again[WORKER_MSG_IMAGES_MAX + 1];
    unsigned parts = 1;
    if (size > WORKER_MSG_IMAGES_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    for (const char *at = text; (at = strchr(at, ' ')) && parts < WORKER_MSG_PARTS_MAX; at++)
        parts++;
    if (image_sizes_get(text, parts, header_bytes, bytes))
        return 0;
    if (image_sizes_put(header_bytes, bytes, parts, again) != strlen(text) || strcmp(text, again) != 0)
        abort();
    uint64_t at = 0;
    for (unsigned i = 0; i < parts; i++) {
        if (header_bytes[i] > bytes[i] || image_sizes_bytes(bytes, i) != at || at % IMAGE_SIZES_PAGE)
            abort();
        at = image_sizes_bytes(bytes, i + 1);
        if (at < image_sizes_bytes(bytes, i) + bytes[i])
            abort();
    }
    if (at > WORKER_MSG_BYTES_MAX)
        abort();
    return 0;
}
