/* Any bytes as a traceback and, behind 0xff, as the source of it: the place lies inside, and of a line that is not the
 * printed one nothing is known. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "failure/handler.h"
#include "util/buf.h"
#include "util/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct handler_place p;
    struct el_mem mem = EL_MEM_INIT(1 << 20);
    struct el_buf raw = EL_BUF_INIT(&mem, 0);
    enum handler_own own = HANDLER_OWN_UNKNOWN;
    const struct handler_program program = {"train.py", n % 2 == 1, "/w"};
    if (n > 1 << 17 || el_buf_put(&raw, data, n) || !raw.v)
        return 0;
    const char *end = memchr(raw.v, 0xff, n);
    const size_t at = end ? (size_t)(end - raw.v) : n;
    const struct text stack = {raw.v, at}, source = {raw.v + (at < n ? at + 1 : n), at < n ? n - at - 1 : 0};
    p = (struct handler_place){0};
    if (handler_place(stack, "ImportError", &program, &p, &own))
        assert(p.line && p.path[0] && strlen(p.path) < sizeof p.path && strlen(p.words) < sizeof p.words);
    enum handler h = handler_find(source, &p);
    assert(h == HANDLER_UNKNOWN || (p.words[0] && source.n));
    for (p.line = 1; p.line < 9; p.line++) { /* its own first lines, whatever they are */
        size_t from = 0;
        for (unsigned i = 1; i < p.line && from < source.n; from++)
            i += source.p[from] == '\n';
        while (from < source.n && strchr(" \t", source.p[from]) && source.p[from])
            from++;
        const struct text rest = {source.p + from, source.n - from};
        const char *stop = rest.n ? memchr(rest.p, '\n', rest.n) : NULL;
        size_t len = stop ? (size_t)(stop - rest.p) : rest.n;
        text_copy(p.words, sizeof p.words, rest.n ? rest.p : "", len);
        p.module = p.line % 2;
        handler_find(source, &p);
    }
    el_buf_free(&raw);
    assert(!mem.used_bytes);
    return 0;
}
