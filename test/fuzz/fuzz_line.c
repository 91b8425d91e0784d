/* Feeding byte by byte equals feeding at once, for lines and for filters; a line without prefix changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "output/filter.h"
#include "output/line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(struct el_buf *a, struct el_buf *b)
{
    if (a->len != b->len || (a->len && memcmp(a->v, b->v, a->len) != 0))
        abort();
}

static void lines(const char *bytes, size_t n, size_t max, const char *prefix)
{
    struct line at_once, by_byte;
    struct el_buf a = EL_BUF_INIT(NULL, 0), b = EL_BUF_INIT(NULL, 0);
    line_init(&at_once, NULL, prefix, max);
    line_init(&by_byte, NULL, prefix, max);
    line_feed(&at_once, bytes, n, &a);
    for (size_t i = 0; i < n; i++)
        line_feed(&by_byte, bytes + i, 1, &b);
    same(&a, &b);
    if (at_once.mid != by_byte.mid)
        abort();
    line_end(&at_once, prefix[0] != 0, &a);
    line_end(&by_byte, prefix[0] != 0, &b);
    same(&a, &b);
    if (!prefix[0] && (a.len != n || (n && memcmp(a.v, bytes, n) != 0)))
        abort();
    if (prefix[0] && a.len && a.v[a.len - 1] != '\n')
        abort();
    line_free(&at_once);
    line_free(&by_byte);
    el_buf_free(&a);
    el_buf_free(&b);
}

static void filters(const char *bytes, size_t n, size_t max)
{
    struct filter f;
    struct filter_stream at_once, by_byte;
    struct el_buf a = EL_BUF_INIT(NULL, 0), b = EL_BUF_INIT(NULL, 0);
    filter_parse(&f, NULL, "ab,,,x");
    filter_stream_init(&at_once, NULL, &f, "[0]:", max);
    filter_stream_init(&by_byte, NULL, &f, "[0]:", max);
    filter_feed(&at_once, bytes, n, &a);
    for (size_t i = 0; i < n; i++)
        filter_feed(&by_byte, bytes + i, 1, &b);
    same(&a, &b);
    filter_end(&at_once, &a);
    filter_end(&by_byte, &b);
    same(&a, &b);
    filter_stream_free(&at_once);
    filter_stream_free(&by_byte);
    filter_free(&f);
    el_buf_free(&a);
    el_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    size_t max = 1u + data[0] % 32u;
    const char *bytes = (const char *)data + 1;
    lines(bytes, size - 1, max, "[0]:");
    lines(bytes, size - 1, max, "");
    filters(bytes, size - 1, max);
    return 0;
}
