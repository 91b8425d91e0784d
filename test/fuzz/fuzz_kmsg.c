/* The kernel's log and the names of cores: whatever stands there, the parsers stay inside, and what they accept is in
 * range and fit to be printed. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sys/corefile.h"
#include "sys/kmsg.h"
#include "sys/proc_sample.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_text(const char *s, size_t room)
{
    size_t n = strnlen(s, room);
    assert(n < room);
    for (size_t i = 0; i < n; i++)
        assert(s[i] >= ' ' && s[i] <= '~');
}

static void records(const char *bytes, size_t n)
{
    static struct kmsg_log log;
    log.n = log.left_out = 0;
    for (const char *end = bytes + n; bytes < end;) {
        const char *nl = memchr(bytes, '\n', (size_t)(end - bytes));
        size_t len = nl ? (size_t)(nl - bytes) : (size_t)(end - bytes);
        kmsg_add(&log, bytes, len);
        bytes += len + 1;
    }
    assert(log.n <= KMSG_FACTS_MAX);
    for (unsigned i = 0; i < log.n; i++) {
        const struct kmsg_fact *f = &log.fact[i];
        assert(f->kind != KMSG_OTHER && f->pid >= 0 && (f->kind == KMSG_XID) == (f->xid != 0));
        assert((f->kind != KMSG_OOM && f->kind != KMSG_CRASH) || f->pid > 0);
        check_text(f->text, sizeof f->text);
        check_text(f->comm, sizeof f->comm);
        check_text(f->device, sizeof f->device);
    }
}

static void cores(const char *text)
{
    static struct corefile c;
    const struct corefile_facts f = {.pid = 7, .uses_pid = text[0] & 1, .signal = 11, .host = "h", .cwd = "/w"};
    corefile_plan(&c, text, &f);
    assert(strlen(c.name) < sizeof c.name && strlen(c.folder) < sizeof c.folder);
    if (c.kind == COREFILE_FILE)
        assert(c.name[0] && !strchr(c.name, '/') && corefile_match(c.name, c.name));
}

static void scenes(const char *text)
{
    struct proc_sample_one one[2] = {{.id = 0}, {.id = 1}};
    const char *half = strchr(text, '\n');
    proc_sample_parse(&one[0], text, half ? half + 1 : "");
    proc_sample_parse(&one[1], text, "");
    check_text(one[0].wchan, sizeof one[0].wchan);
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    proc_sample_text(&out, "rank", one, 2);
    assert(strlen(el_buf_cstr(&out)) < 400);
    el_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    records(text, size);
    cores(text);
    scenes(text);
    free(text);
    return 0;
}
