/* A file of events, whatever it holds: what is read is bounded, what is drawn keeps its width, JSON stays JSON, and
 * nothing that a terminal would act on comes out. */
#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "history/job_history.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static size_t line_at(const char *bytes, size_t n, size_t at)
{
    const char *end = memchr(bytes + at, '\n', n - at);
    return end ? (size_t)(end - bytes) + 1 - at : n - at;
}

static void feed(struct job_history *c, const char *bytes, size_t n)
{
    struct job_history_scan scan = {.at = 0};
    for (size_t at = 0; at < n; at += line_at(bytes, n, at))
        job_history_scan(&scan, bytes + at, line_at(bytes, n, at));
    assert(scan.at == n && scan.begins <= n);
    job_history_file_begin(c, scan.run_id);
    for (size_t at = (size_t)scan.begins, len; at < n; at += len) {
        len = line_at(bytes, n, at);
        job_history_line(c, bytes + at, len - (bytes[at + len - 1] == '\n'));
    }
    job_history_file_end(c, "file", n && bytes[n - 1] != '\n');
}

static void check_text(const struct job_history *c, unsigned columns)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    struct job_history_look look = {
        .line = {.columns = columns, .utf8 = columns & 1}, .style = &summary_plain, .text_columns = columns};
    job_history_text(c, &look, &out);
    assert(!out.len || (!memchr(out.v, '\033', out.len) && !memchr(out.v, 0, out.len)));
    out.len = 0;
    assert(job_history_json(c, &out) == 0);
    json_t *o = json_loadb(out.v, out.len, JSON_REJECT_DUPLICATES, NULL);
    assert(json_is_object(o));
    json_decref(o);
    el_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct el_mem mem = EL_MEM_INIT(8 << 20);
    struct job_history c;
    const char *text = (const char *)data;
    size_t half = size ? data[0] * size / 512 : 0;
    job_history_init(&c, &mem);
    feed(&c, text + half, size - half); /* two nodes: two files */
    feed(&c, text, half);
    job_history_close(&c);
    check_text(&c, size ? data[size - 1] : 80);
    assert(c.faults <= JOB_HISTORY_FAULTS_MAX);
    job_history_free(&c);
    assert(mem.used_bytes == 0);
    return 0;
}
