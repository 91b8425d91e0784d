/* Any bytes as a kernel log: the line that was chosen lies inside and says the same again. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "sys/xid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *text = n ? (const char *)data : "";
    struct xid_event e, again;
    if (!xid_find(text, n, &e))
        return 0;
    assert(e.start + e.size <= n && strlen(e.gpu) < sizeof e.gpu && e.pid >= 0);
    assert(xid_parse(text + e.start, e.size, &again));
    assert(again.number == e.number && again.pid == e.pid && strcmp(again.gpu, e.gpu) == 0);
    return 0;
}
