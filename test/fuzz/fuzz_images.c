/* The sizes of a snapshot's parts, as a worker says them: what is read is written again in the same words, and fits a
 * slot. */
#include <stdlib.h>
#include <string.h>

#include "snapshot/images.h"
#include "snapshot/wmsg.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static uint64_t header_bytes[WMSG_PARTS_MAX], bytes[WMSG_PARTS_MAX];
    static char text[WMSG_IMAGES_MAX + 1], again[WMSG_IMAGES_MAX + 1];
    unsigned parts = 1;
    if (size > WMSG_IMAGES_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    for (const char *at = text; (at = strchr(at, ' ')) && parts < WMSG_PARTS_MAX; at++)
        parts++;
    if (images_get(text, parts, header_bytes, bytes))
        return 0;
    if (images_put(header_bytes, bytes, parts, again) != strlen(text) || strcmp(text, again) != 0)
        abort();
    uint64_t at = 0;
    for (unsigned i = 0; i < parts; i++) {
        if (header_bytes[i] > bytes[i] || images_bytes(bytes, i) != at || at % IMAGES_PAGE)
            abort();
        at = images_bytes(bytes, i + 1);
        if (at < images_bytes(bytes, i) + bytes[i])
            abort();
    }
    if (at > WMSG_BYTES_MAX)
        abort();
    return 0;
}
