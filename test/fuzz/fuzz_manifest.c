/* Any bytes as a manifest, as they are and with a right self_crc: bounded, and what is read is written the same. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/crc32c.h"
#include "ckpt/layout.h"
#include "ckpt/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_one(const char *text, size_t n)
{
    struct el_mem mem = EL_MEM_INIT(64u << 20);
    struct el_err e = {0};
    struct manifest m;
    if (manifest_read(&m, &mem, text, n, &e) == 0) {
        struct el_buf out = EL_BUF_INIT(&mem, 0);
        for (size_t i = 0; i < m.files_n; i++) {
            assert(!ckpt_path_fault(m.files[i].name));
            assert(m.files[i].chunks_n == manifest_chunks(m.files[i].size, m.files[i].chunk));
        }
        for (size_t i = 0; i < m.parts_n; i++)
            assert(m.parts[i].file < m.files_n);
        struct manifest again;
        assert(manifest_put(&m, &out, &e) == 0);
        assert(manifest_read(&again, &mem, out.v, out.len, &e) == 0 && again.files_n == m.files_n);
        manifest_free(&again);
        el_buf_free(&out);
    } else {
        assert(e.status && e.text[0]);
    }
    manifest_free(&m);
    assert(!mem.used_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct el_buf text = EL_BUF_INIT(NULL, 0);
    char hex[9];
    read_one((const char *)data, n);
    el_buf_put(&text, data, n);
    el_buf_puts(&text, ",\"self_crc\":\"        \"}\n");
    snprintf(hex, sizeof hex, "%08x", crc32c(0, text.v, text.len));
    memcpy(text.v + text.len - 11, hex, 8);
    read_one(text.v, text.len);
    el_buf_free(&text);
    return 0;
}
