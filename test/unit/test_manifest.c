/* MANIFEST.json: written, read, the same; any byte that is changed is noticed; what contradicts itself is refused, by
 * name, also with a right self_crc.  Names of steps.
 * Seen to fail: without the check of the text, of the chunks' sum, of names, of duplicates. */
#include <stdio.h>

#include "ckpt/crc32c.h"
#include "ckpt/layout.h"
#include "ckpt/lineage.h"
#include "ckpt/manifest.h"
#include "lib/tap.h"
#include "util/array.h"
#include "util/base64.h"

static struct el_mem mem = EL_MEM_INIT(64u << 20);

static struct manifest sample(struct manifest_file files[2], struct manifest_part parts[3], uint32_t chunks[3])
{
    for (uint32_t i = 0; i < 3; i++)
        chunks[i] = 0x12345678u * (i + 1);
    files[0] =
        (struct manifest_file){"shard-00001-model-00001-of-00002.safetensors", "host1", 9000, 0, 4096, chunks, 3};
    files[1] = (struct manifest_file){"sub/\xc3\xa9 \"x\"", "", 0, 0, 4096, NULL, 0};
    files[0].crc = crc32c_combine(crc32c_combine(chunks[0], chunks[1], 4096), chunks[2], 9000 - 2 * 4096);
    parts[0] = (struct manifest_part){"experts", "ep1", 0};
    parts[1] = (struct manifest_part){"dense", "all", 1};
    parts[2] = (struct manifest_part){"experts", "ep0", 1};
    return (struct manifest){.step = 1200,
                             .layout = "elrun",
                             .run_id = "job \"a\"",
                             .epoch = "7.ab12.3",
                             .nonce = "n0nce",
                             .lineage = 0xfedcba9876543210u,
                             .world = 16,
                             .emergency = true,
                             .layout_id = "L1",
                             .created = 1790000000,
                             .consumed_samples = 123456789012,
                             .files = files,
                             .files_n = 2,
                             .parts = parts,
                             .parts_n = 3};
}

/* The bits are on disks and on other machines: they stay as they are. */
static void test_lineage(void)
{
    ok(lineage_begin(7, 0xab12, 1) == 0xa7229cd732f9d916u, "of a round and an attempt");
    ok(lineage_begin(7, 0xab12, 0) != lineage_begin(7, 0xab12, 1) &&
           lineage_begin(7, 0xab12, 1) != lineage_begin(7, 0xab13, 1) &&
           lineage_begin(7, 0xab12, 1) != lineage_begin(8, 0xab12, 1) &&
           lineage_begin(1, 0xab12, 7) != lineage_begin(7, 0xab12, 1),
       "of each another one");
    ok(lineage_of_epoch("7.ab12.3") == 0x56b99a46940479efu, "of a manifest that has none");
    ok(lineage_of_epoch("7.ab12.4") == lineage_of_epoch("7.ab12.3") &&
           lineage_of_epoch("8.ab12.3") != lineage_of_epoch("7.ab12.3"),
       "two orders in one round are of one, two rounds are not");
    ok(lineage_of_epoch("") == 0 && lineage_of_epoch("x") && lineage_of_epoch("."), "whatever it says");
    struct manifest m = {.epoch = "7.ab12.3"};
    ok(manifest_lineage(&m) == lineage_of_epoch(m.epoch), "it stands in,");
    m.lineage = 5;
    is_num((long)manifest_lineage(&m), 5, "where the manifest has none of its own");
}

static void test_round(void)
{
    struct manifest_file files[2];
    struct manifest_part parts[3];
    uint32_t chunks[3];
    struct manifest m = sample(files, parts, chunks), r;
    struct el_buf out = EL_BUF_INIT(&mem, 0), again = EL_BUF_INIT(&mem, 0);
    struct el_err e = {0};
    ok(manifest_put(&m, &out, &e) == 0 && manifest_read(&r, &mem, out.v, out.len, &e) == 0, e.text);
    ok(r.step == 1200 && r.emergency && r.world == 16 && r.consumed_samples == 123456789012 && r.version == 1,
       "numbers");
    ok(strcmp(r.run_id, "job \"a\"") == 0 && strcmp(r.epoch, "7.ab12.3") == 0 && strcmp(r.nonce, "n0nce") == 0 &&
           strcmp(r.layout_id, "L1") == 0 && !*r.sig && r.lineage == m.lineage,
       "words");
    const struct manifest_file *f = manifest_find(&r, "sub/\xc3\xa9 \"x\"");
    ok(r.files_n == 2 && f && f->size == 0 && f->chunks_n == 0, "a file without bytes");
    f = manifest_find(&r, files[0].name);
    ok(f && f->size == 9000 && f->crc == files[0].crc && memcmp(f->chunks, chunks, sizeof chunks) == 0 &&
           strcmp(f->node, "host1") == 0,
       "a file with three chunks");
    ok(!manifest_find(&r, "other"), "and no other");
    ok(r.parts_n == 3 && strcmp(r.parts[0].part, "dense") == 0 && strcmp(r.parts[2].shard_id, "ep1") == 0 &&
           r.parts[2].file == 0,
       "parts");
    ok(manifest_put(&r, &again, &e) == 0 && again.len == out.len && memcmp(again.v, out.v, out.len) == 0,
       "read and written again it is the same text");
    manifest_free(&r);
    unsigned unnoticed = 0, silent = 0;
    for (size_t i = 0; i < out.len; i++) {
        out.v[i] ^= 1;
        e = (struct el_err){0};
        unnoticed += manifest_read(&r, &mem, out.v, out.len, &e) == 0;
        silent += !e.text[0] || e.status == 0;
        manifest_free(&r);
        out.v[i] ^= 1;
    }
    is_num(unnoticed + silent, 0, "each byte that changes is noticed");
    for (size_t n = 0; n < out.len; n++) {
        e = (struct el_err){0};
        unnoticed += manifest_read(&r, &mem, out.v, n, &e) == 0;
        manifest_free(&r);
    }
    is_num(unnoticed, 0, "each that is missing at the end, too");
    el_buf_free(&out);
    el_buf_free(&again);
}

/* The same text with a right self_crc: what a careful hand, or a bug, makes. */
static void signed_text(const char *head, struct el_buf *out)
{
    el_buf_printf(out, "%s,\"self_crc\":\"        \"}\n", head);
    char hex[9];
    snprintf(hex, sizeof hex, "%08x", crc32c(0, out->v, out->len));
    memcpy(out->v + out->len - 11, hex, 8);
}

#define HEAD  "{\"format\":\"elrun-manifest\",\"version\":1,\"step\":5,\"layout\":\"elrun\",\"files\":["
#define EMPTY "\"size\":0,\"crc32c\":\"00000000\",\"chunk\":4096,\"chunks\":\"\"}"

static const struct {
    const char *head;
    int status;
    const char *says;
} cases[] = {
    {HEAD "]", 0, ""},
    {HEAD "{\"name\":\"a\"," EMPTY "]", 0, ""},
    {HEAD "{\"name\":\"a\"," EMPTY "],\"newer\":[1]", 0, ""},
    {"{\"format\":\"x\",\"version\":1,\"step\":5,\"layout\":\"elrun\",\"files\":[]", CKPT_DAMAGED, "format"},
    {"{\"format\":\"elrun-manifest\",\"version\":2,\"step\":5,\"layout\":\"elrun\",\"files\":[]", CKPT_UNSUPPORTED,
     "version 2"},
    {"{\"format\":\"elrun-manifest\",\"version\":1,\"layout\":\"elrun\",\"files\":[]", CKPT_DAMAGED, "\"step\""},
    {"{\"format\":\"elrun-manifest\",\"version\":1,\"step\":5,\"layout\":\"elrun\"", CKPT_DAMAGED, "no list of files"},
    {HEAD "{" EMPTY "]", CKPT_DAMAGED, "no name"},
    {HEAD "7]", CKPT_DAMAGED, "no name"},
    {HEAD "{\"name\":\"/a\"," EMPTY "]", CKPT_DAMAGED, "absolute"},
    {HEAD "{\"name\":\"../a\"," EMPTY "]", CKPT_DAMAGED, "\"..\""},
    {HEAD "{\"name\":\"MANIFEST.json\"," EMPTY "]", CKPT_DAMAGED, "is the manifest"},
    {HEAD "{\"name\":\"a\"," EMPTY ",{\"name\":\"a\"," EMPTY "]", CKPT_DAMAGED, "named twice"},
    {HEAD "{\"name\":\"a\",\"size\":-1,\"crc32c\":\"00000000\",\"chunk\":4096,\"chunks\":\"\"}]", CKPT_DAMAGED, "size"},
    {HEAD "{\"name\":\"a\",\"size\":0,\"crc32c\":\"0\",\"chunk\":4096,\"chunks\":\"\"}]", CKPT_DAMAGED, "crc32c"},
    {HEAD "{\"name\":\"a\",\"size\":0,\"crc32c\":\"00000000\",\"chunk\":1,\"chunks\":\"\"}]", CKPT_DAMAGED, "chunk"},
    {HEAD "{\"name\":\"a\",\"size\":9,\"crc32c\":\"00000000\",\"chunk\":4096,\"chunks\":\"\"}]", CKPT_DAMAGED,
     "as many checksums"},
    {HEAD "{\"name\":\"a\",\"size\":9223372036854775807,\"crc32c\":\"00000000\",\"chunk\":4096,\"chunks\":\"\"}]",
     CKPT_DAMAGED, "as many checksums"},
    {HEAD "{\"name\":\"a\",\"size\":9,\"crc32c\":\"00000000\",\"chunk\":4096,\"chunks\":\"!!!!!!==\"}]", CKPT_DAMAGED,
     "no base64"},
    {HEAD "{\"name\":\"a\",\"size\":9,\"crc32c\":\"00000000\",\"chunk\":4096,\"chunks\":\"AQAAAA==\"}]", CKPT_DAMAGED,
     "make 00000001, not 00000000"},
    {HEAD "],\"parts\":{\"p\":{\"s\":\"none\"}}", CKPT_DAMAGED, "not listed"},
    {HEAD "[[[[[]]]]]]", CKPT_DAMAGED, "nested"},
};

static void test_cases(void)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct el_buf text = EL_BUF_INIT(&mem, 0);
        struct el_err e = {0};
        struct manifest m;
        signed_text(cases[i].head, &text);
        manifest_read(&m, &mem, text.v, text.len, &e);
        is_num(e.status, cases[i].status, cases[i].says);
        if (!ok(strstr(e.text, cases[i].says) != NULL, cases[i].head))
            printf("# says: %s\n", e.text);
        manifest_free(&m);
        el_buf_free(&text);
    }
}

static void test_names(void)
{
    char name[CKPT_PATH_MAX];
    enum ckpt_layout layout;
    int64_t step;
    ckpt_step_name(CKPT_LAYOUT_ELRUN, 1200, name);
    is_str(name, "step-000001200", "a step");
    ok(ckpt_step_of(name, &layout, &step) && step == 1200 && layout == CKPT_LAYOUT_ELRUN, "and back");
    ckpt_step_name(CKPT_LAYOUT_ELRUN, 123456789012, name);
    ok(ckpt_step_of(name, &layout, &step) && step == 123456789012, "more digits than usual");
    ok(ckpt_step_of("iter_0001200", &layout, &step) && layout == CKPT_LAYOUT_MEGATRON && step == 1200, "Megatron's");
    ok(!ckpt_step_of("step-1200", &layout, &step) && !ckpt_step_of("step-0000001200", &layout, &step) &&
           !ckpt_step_of("iter_0001200_tmp", &layout, &step) && !ckpt_step_of("step-00000120x", &layout, &step),
       "other spellings are other names");
    ckpt_stage_name(CKPT_LAYOUT_ELRUN, 1200, 7, "ab", name);
    is_str(name, ".stage/step-000001200.r7.ab", "a stage");
    ckpt_stage_name(CKPT_LAYOUT_MEGATRON, 1200, 7, "ab", name);
    is_str(name, "iter_0001200_tmp", "that of Megatron's layout");
    ok(ckpt_number_of("checkpoint-500") == 500 && ckpt_number_of("global_step500") == 500 &&
           ckpt_number_of("x") == -1 && ckpt_number_of("9999999999999999") == -1 && ckpt_number_of("7") == 7,
       "numbers of other people's names");
}

static void test_base64(void)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    unsigned char raw[16];
    unsigned wrong = 0;
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        struct el_buf out = EL_BUF_INIT(&mem, 0);
        el_base64_put(&out, pairs[i][0], strlen(pairs[i][0]));
        wrong += strcmp(el_buf_cstr(&out), pairs[i][1]) != 0;
        long n = el_base64_read(pairs[i][1], strlen(pairs[i][1]), raw);
        wrong += n != (long)strlen(pairs[i][0]) || memcmp(raw, pairs[i][0], (size_t)n) != 0;
        el_buf_free(&out);
    }
    is_num(wrong, 0, "RFC 4648");
    ok(el_base64_read("Zg=", 3, raw) < 0 && el_base64_read("Zh==", 4, raw) < 0 && el_base64_read("Z===", 4, raw) < 0 &&
           el_base64_read("Zg==Zg==", 8, raw) < 0,
       "other spellings are refused");
}

int main(void)
{
    test_lineage();
    test_round();
    test_cases();
    test_names();
    test_base64();
    is_num(mem.used_bytes, 0, "no memory is left");
    return done();
}
