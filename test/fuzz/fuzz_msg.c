/* Frames of the control protocol: any bytes are refused or understood; what is understood survives encoding; cut into
 * pieces they mean the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "control/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Encoding what was decoded, and decoding that, gives the same bytes again. */
static void there_and_back(const struct msg *m)
{
    struct el_buf one = EL_BUF_INIT(NULL, 0), two = EL_BUF_INIT(NULL, 0);
    struct msg_decoder d = {.greeted = true};
    struct msg again;
    struct el_err e = {0};
    if (msg_encode(m, &one) < 0)
        abort();
    if (msg_consume(&d, one.v, one.len, &again, &e) != (long)one.len || msg_encode(&again, &two) < 0)
        abort();
    if (one.len != two.len || memcmp(one.v, two.v, one.len) != 0)
        abort();
    msg_release(&again);
    el_buf_free(&one);
    el_buf_free(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct msg_decoder whole = {0}, cut = {0};
    const char *at = (const char *)data;
    while (size) {
        struct msg m, half;
        struct el_err e = {0};
        size_t less = size / 2;
        long k = msg_consume(&cut, at, less, &half, &e);
        if (k > 0)
            msg_release(&half);
        long n = msg_consume(&whole, at, size, &m, &e);
        if (k > 0 && k != n)
            abort();
        if (n <= 0)
            return 0;
        cut = whole;
        if (m.type != MSG_NONE)
            there_and_back(&m);
        msg_release(&m);
        at += n;
        size -= (size_t)n;
    }
    return 0;
}
