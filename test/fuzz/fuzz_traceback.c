/* Any bytes as a worker's stderr: found spans lie inside, texts are clean, the report is valid UTF-8 and its JSON
 * parses. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "failure/summary.h"
#include "util/text.h"
#include "util/utf8.h"

static void check_utf8(const char *p, size_t n)
{
    while (n) {
        size_t len = el_utf8(p, n);
        assert(len && *p != '\033' && *p);
        p += len;
        n -= len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct el_buf raw = EL_BUF_INIT(NULL, 0);
    struct traceback t;
    el_buf_put(&raw, data, n);
    traceback_find(&t, n ? raw.v : "", n); /* bytes that were not cleaned must not hurt either */
    assert(t.start <= t.end && t.end <= n);
    assert(t.start == 0 || raw.v[t.start - 1] == '\n');
    el_buf_free(&raw);

    struct el_mem mem = EL_MEM_INIT(4 << 20);
    struct failure f;
    failure_init(&f);
    f.end = FAILURE_EXIT;
    f.code = 1;
    failure_add_stderr(&f, (const char *)data, n, &mem);
    failure_judge(&f, false, false);
    const struct failure *const all[] = {&f};
    struct failure_report r = {.script = "train.py", .failures = all, .failures_count = 1};
    struct el_buf text = EL_BUF_INIT(&mem, 1 << 20), json = EL_BUF_INIT(&mem, 1 << 20);
    assert(summary_write(&r, &text, &summary_plain, 0) == 0 && summary_json(&r, &json) == 0);
    check_utf8(text.v, text.len);
    json_t *v = json_loadb(json.v, json.len, 0, NULL);
    assert(v);
    json_decref(v);
    el_buf_free(&text);
    el_buf_free(&json);
    failure_free(&f, &mem);
    assert(!mem.used_bytes);
    return 0;
}
