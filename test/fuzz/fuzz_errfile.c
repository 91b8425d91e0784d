/* Any bytes as an error file: bounded, no state left open, and fed in two pieces the same as at once. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "failure/errfile.h"
#include "failure/failure.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct errfile a, b;
    size_t cut = n ? data[0] % (n + 1) : 0;
    errfile_init(&a);
    errfile_feed(&a, (const char *)data, n);
    errfile_end(&a);
    errfile_init(&b);
    errfile_feed(&b, (const char *)data, cut);
    errfile_feed(&b, (const char *)data + cut, n - cut);
    errfile_end(&b);
    assert(a.state == b.state && a.state != ERRFILE_ABSENT && strcmp(a.message, b.message) == 0);
    assert(a.stack.total == b.stack.total && a.timestamp_sec == b.timestamp_sec && a.stack.total <= n * 3);
    if (a.has_object)
        assert(data[a.object_end] == '}');
    struct el_mem mem = EL_MEM_INIT(1 << 20);
    struct failure f;
    failure_init(&f);
    failure_add_file(&f, &a, &mem);
    assert(!f.message || !strchr(f.message, '\n'));
    failure_free(&f, &mem);
    assert(!mem.used_bytes);
    return 0;
}
