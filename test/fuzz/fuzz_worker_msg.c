/* What a worker may send over its socket: whatever is read is written again in the same words. */
#include <stdlib.h>
#include <string.h>

#include "snapshot/worker_msg.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct worker_msg m, again;
    struct el_err e = {0};
    if (worker_msg_decode(data, size, &m, &e) < 0) {
        if (!e.text[0])
            abort();
        return 0;
    }
    struct el_buf once = EL_BUF_INIT(NULL, 0), twice = EL_BUF_INIT(NULL, 0);
    if (worker_msg_encode(&m, &once) == 0) {
        if (worker_msg_decode(once.v, once.len, &again, &e) < 0 || worker_msg_encode(&again, &twice) < 0)
            abort();
        if (once.len != twice.len || memcmp(once.v, twice.v, once.len) != 0)
            abort();
        worker_msg_release(&again);
    }
    worker_msg_release(&m);
    el_buf_free(&once);
    el_buf_free(&twice);
    return 0;
}
