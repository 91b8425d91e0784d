/* Any bytes as a failure's record: bounded, clean, and what was read can be written and read again with the same
 * result, under every limit. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "failure/record.h"

static void check(const struct failure *f)
{
    const char *const lines[] = {f->role, f->host, f->message, f->error_file, f->log_file, f->found.message};
    for (unsigned i = 0; i < 6; i++)
        assert(!lines[i] || (!strchr(lines[i], '\n') && !strchr(lines[i], 0x1b)));
    assert(f->end != FAILURE_EXIT || (f->code > 0 && f->code < 256));
    assert(!f->stack || !strchr(f->stack, 0x1b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct el_mem mem = EL_MEM_INIT(16 << 20);
    struct el_buf one = EL_BUF_INIT(&mem, 0), two = EL_BUF_INIT(&mem, 0), small = EL_BUF_INIT(&mem, 0);
    struct el_err e = {0};
    struct record a, b;
    if (record_read(&a, (const char *)data, n, &mem, &e) == 0) {
        check(&a.failure);
        assert(record_write(&a.failure, RECORD_BYTES_MAX, &one) == 0 && one.len <= RECORD_BYTES_MAX);
        assert(record_write(&a.failure, RECORD_BYTES_LEAST, &small) == 0 && small.len <= RECORD_BYTES_LEAST);
        assert(record_read(&b, one.v, one.len, &mem, &e) == 0);
        check(&b.failure);
        assert(record_write(&b.failure, RECORD_BYTES_MAX, &two) == 0);
        assert(two.len == one.len && memcmp(two.v, one.v, one.len) == 0);
        record_free(&b, &mem);
        assert(record_read(&b, small.v, small.len, &mem, &e) == 0);
        record_free(&b, &mem);
    }
    record_free(&a, &mem);
    el_buf_free(&one);
    el_buf_free(&two);
    el_buf_free(&small);
    assert(!mem.used_bytes);
    return 0;
}
