/* The header of safetensors files: every rule of the format from both sides, and what the writer makes is read again.
 * Seen to fail: without each of the checks of safetensors.c, one after another. */
#include <stdint.h>

#include "ckpt/safetensors.h"
#include "lib/tap.h"
#include "util/array.h"

static struct el_mem mem = EL_MEM_INIT(256u << 20);

static int parse(struct safetensors *s, const char *json, uint64_t data_bytes, struct el_err *e)
{
    *e = (struct el_err){0};
    return safetensors_parse(s, &mem, json, strlen(json), SAFETENSORS_PREFIX + strlen(json) + data_bytes, e);
}

static const struct {
    const char *json;
    uint64_t data_bytes;
    int status; /* 0: fine */
    const char *says;
} cases[] = {
    {"{}", 0, 0, ""},
    {"{}   ", 0, 0, ""},
    {"{\"__metadata__\":{}}", 0, 0, ""},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, 0, ""},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[0,0]}}", 0, 0, ""},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1, 0, ""},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"more\":1}}", 1, 0, ""},
    {"{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[2,5]},"
     "\"a\":{\"dtype\":\"U16\",\"shape\":[1],\"data_offsets\":[0,2]}}",
     5, 0, ""},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[5368709120],\"data_offsets\":[0,5368709120]}}", 5368709120, 0, ""},
    {"", 0, CKPT_DAMAGED, "bytes 0-7 are zeros"},
    {" {}", 0, CKPT_DAMAGED, "no '{'"},
    {"{\"a\"", 0, CKPT_DAMAGED, "no JSON object"},
    {"{}{}", 0, CKPT_DAMAGED, "no JSON object"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
     "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}",
     4, CKPT_DAMAGED, "no JSON object"},
    {"{\"\xff\":{}}", 0, CKPT_DAMAGED, "no JSON object"},
    {"{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, CKPT_UNSUPPORTED, "zero byte"},
    {"{\"__metadata__\":{\"k\":\"\\u0000\"}}", 0, CKPT_UNSUPPORTED, "zero byte"},
    {"{\"a\":[[[[]]]]}", 0, CKPT_UNSUPPORTED, "nested"},
    {"{\"__metadata__\":[]}", 0, CKPT_DAMAGED, "__metadata__"},
    {"{\"__metadata__\":{\"k\":1}}", 0, CKPT_DAMAGED, "\"k\" is no string"},
    {"{\"a\":1}", 0, CKPT_DAMAGED, "\"a\" has no dtype"},
    {"{\"a\":{\"shape\":[],\"data_offsets\":[0,4]}}", 4, CKPT_DAMAGED, "\"a\" has no dtype"},
    {"{\"a\":{\"dtype\":\"F99\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, CKPT_UNSUPPORTED, "dtype F99"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, CKPT_DAMAGED, "no shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, CKPT_DAMAGED, "dimension 0"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, CKPT_DAMAGED, "dimension 0"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, CKPT_DAMAGED, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, CKPT_DAMAGED, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, CKPT_DAMAGED, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, CKPT_DAMAGED, "are 4 bytes, its shape"},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, CKPT_DAMAGED, "whole number"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, CKPT_DAMAGED,
     "whole number"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2, CKPT_DAMAGED, "belong to no tensor"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
     3, CKPT_DAMAGED, "\"b\": bytes 114-116 overlap those of another, up to 115"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}", 7, CKPT_DAMAGED,
     "truncated: tensor \"a\" has bytes 61-69, the file ends at 68"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}", 9, CKPT_DAMAGED, "behind the last tensor"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[99999999999999999999],\"data_offsets\":[0,8]}}", 8, CKPT_DAMAGED, "no JSON"},
};

static void test_rules(void)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct safetensors s;
        struct el_err e;
        int r = parse(&s, cases[i].json, cases[i].data_bytes, &e);
        is_num(e.status, cases[i].status, *cases[i].says ? cases[i].says : "fine");
        ok(r == (cases[i].status ? -1 : 0), "returns so");
        if (!ok(strstr(e.text, cases[i].says) != NULL, cases[i].says))
            printf("# says: %s\n", e.text);
        safetensors_free(&s);
        safetensors_free(&s);
    }
    is_num(mem.used_bytes, 0, "nothing is left");
}

static void test_prefix(void)
{
    struct el_err e = {0};
    size_t n = 0;
    ok(safetensors_header_bytes((const unsigned char *)"\x02\0\0\0\0\0\0\0", 10, &n, &e) == 0 && n == 2, "a prefix");
    ok(safetensors_header_bytes((const unsigned char *)"\x03\0\0\0\0\0\0\0", 10, &n, &e) == -1 &&
           e.status == CKPT_DAMAGED,
       "a header beyond the end");
    ok(strstr(e.text, "ends at byte 11, the file at byte 10") != NULL, "says where");
    e = (struct el_err){0};
    ok(safetensors_header_bytes((const unsigned char *)"\xff\xff\xff\xff\xff\xff\xff\xff", 10, &n, &e) == -1 &&
           strstr(e.text, "at most 100000000"),
       "a length that nobody means");
}

static void test_dtypes(void)
{
    unsigned wrong = 0;
    for (unsigned t = 0; t < ST_DTYPES_COUNT; t++)
        wrong += safetensors_dtype_find(safetensors_dtype_name((enum safetensors_dtype)t)) != (enum safetensors_dtype)t;
    is_num(wrong, 0, "each type is found by its name");
    is_num(ST_DTYPES_COUNT, 22, "as many as the format has");
    is_num(safetensors_dtype_find("F128"), ST_DTYPES_COUNT, "another is not");
    is_num(safetensors_dtype_bits(ST_F6_E2M3), 6, "bits");
}

/* Any Unicode, sizes 0, scalars, 5 GiB: built, read again, the same. */
static void test_build(void)
{
    static const uint64_t none[] = {0, 3}, some[] = {2, 3}, big[] = {5ull << 30};
    struct safetensors_tensor v[] = {
        {.name = "b", .dtype = ST_U8, .rank = 1, .shape = big},
        {.name = "\"quoted\\\" \n\t\x01", .dtype = ST_BF16, .rank = 2, .shape = some},
        {.name = "\xe5\xb1\xa4.\xf0\x9f\x94\xa5.\xc3\xa9", .dtype = ST_F64, .rank = 2, .shape = some},
        {.name = "", .dtype = ST_I64, .rank = 0},
        {.name = "empty", .dtype = ST_F32, .rank = 2, .shape = none},
        {.name = "six", .dtype = ST_F6_E3M2, .rank = 1, .shape = (const uint64_t[]){4}},
    };
    const struct safetensors_pair pairs[] = {{"format", "pt"}, {"\xe2\x82\xac", "{\"a\":[]}"}};
    struct el_buf out = EL_BUF_INIT(&mem, 0);
    struct el_err e = {0};
    struct safetensors s;
    el_buf_puts(&out, "12345678"); /* what is there stays */
    ok(safetensors_build(v, COUNT_OF(v), pairs, 2, 4096, &out, &e) == 0, "build");
    is_num((out.len - 8) % 4096, 0, "padded");
    uint64_t data = (5ull << 30) + 12 + 48 + 8 + 3;
    size_t n = 0;
    ok(safetensors_header_bytes((unsigned char *)out.v + 8, out.len - 8 + data, &n, &e) == 0 && n == out.len - 16,
       "its length");
    ok(safetensors_parse(&s, &mem, out.v + 16, n, out.len - 8 + data, &e) == 0, e.text);
    is_num(s.tensors_n, COUNT_OF(v), "as many tensors");
    is_num(s.data_at, 4096, "data begin at 4096");
    is_str(s.tensors[0].name, "", "the widest first, then by name");
    unsigned wrong = 0;
    for (size_t i = 0; i < COUNT_OF(v); i++) {
        const struct safetensors_tensor *t = safetensors_find(&s, v[i].name);
        wrong += !t || t->dtype != v[i].dtype || t->rank != v[i].rank || t->begin != v[i].begin || t->end != v[i].end ||
                 (t->rank && memcmp(t->shape, v[i].shape, t->rank * sizeof *t->shape) != 0);
    }
    is_num(wrong, 0, "each as it was");
    is_str(safetensors_pair(&s, "\xe2\x82\xac"), "{\"a\":[]}", "a pair");
    ok(!safetensors_pair(&s, "x") && !safetensors_find(&s, "x"), "what is not there");
    safetensors_free(&s);
    el_buf_free(&out);
}

static void test_build_refuses(void)
{
    static const uint64_t huge[] = {1ull << 40, 1ull << 40};
    struct safetensors_tensor twice[] = {{.name = "a", .dtype = ST_U8, .rank = 0},
                                         {.name = "a", .dtype = ST_F32, .rank = 0}};
    struct safetensors_tensor same[] = {{.name = "a", .dtype = ST_U8, .rank = 0},
                                        {.name = "a", .dtype = ST_U8, .rank = 0}};
    struct safetensors_tensor reserved[] = {{.name = "__metadata__", .dtype = ST_U8, .rank = 0}};
    struct safetensors_tensor bytes[] = {{.name = "\xff", .dtype = ST_U8, .rank = 0}};
    struct safetensors_tensor large[] = {{.name = "a", .dtype = ST_U8, .rank = 2, .shape = huge}};
    struct safetensors_tensor half[] = {{.name = "a", .dtype = ST_F4, .rank = 0}};
    const struct {
        struct safetensors_tensor *v;
        size_t n;
        const char *says;
    } refused[] = {{twice, 2, "twice"},     {same, 2, "twice"},    {reserved, 1, "cannot be"},
                   {bytes, 1, "cannot be"}, {large, 1, "no size"}, {half, 1, "no size"}};
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct el_buf out = EL_BUF_INIT(&mem, 0);
        struct el_err e = {0};
        ok(safetensors_build(refused[i].v, refused[i].n, NULL, 0, 8, &out, &e) == -1 && strstr(e.text, refused[i].says),
           e.text);
        el_buf_free(&out);
    }
}

struct bytes {
    const char *v;
};

static int read_bytes(void *ctx, uint64_t at, void *to, size_t n, struct el_err *e)
{
    (void)e;
    memcpy(to, ((struct bytes *)ctx)->v + at, n);
    return 0;
}

static void test_many(void)
{
    enum { MANY = 100000 };
    static struct safetensors_tensor v[MANY];
    static char names[MANY][24];
    static const uint64_t shape[] = {2, 0, 3, 1};
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    struct el_err e = {0};
    struct safetensors s;
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "layer.%u.weight", i * 7919 % MANY);
        v[i] = (struct safetensors_tensor){.name = names[i], .dtype = ST_F32, .rank = 4, .shape = shape};
    }
    ok(safetensors_build(v, MANY, NULL, 0, 8, &out, &e) == 0, "100,000 tensors");
    struct bytes b = {out.v};
    struct ckpt_bytes file = {&b, out.len, read_bytes};
    ok(safetensors_read(&s, &mem, &file, &e) == 0 && s.tensors_n == MANY, "are read");
    safetensors_free(&s);
    file.bytes = 7;
    ok(safetensors_read(&s, &mem, &file, &e) == -1 && strstr(e.text, "too few"), "seven bytes are no file");
    el_buf_free(&out);
    char *deep = el_alloc(NULL, 3000000);
    memset(deep, ',', 3000000);
    deep[0] = '{';
    e = (struct el_err){0};
    ok(safetensors_parse(&s, &mem, deep, 3000000, 3000008, &e) == -1 && e.status == CKPT_DAMAGED,
       "commas are no header");
    el_free(NULL, deep);
}

static void test_memory(void)
{
    const char *json =
        "{\"__metadata__\":{\"k\":\"v\"},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    struct safetensors s;
    struct el_err e;
    int r = -1;
    for (long i = 0; r; i++) {
        mem.fail_after = i;
        r = parse(&s, json, 4, &e);
        if (r && e.status != EL_EXIT_OSERR)
            ok(0, e.text);
    }
    mem.fail_after = -1;
    ok(r == 0, "each allocation may fail");
    safetensors_free(&s);
    is_num(mem.used_bytes, 0, "nothing is left of those that did");
}

int main(void)
{
    test_rules();
    test_prefix();
    test_dtypes();
    test_build();
    test_build_refuses();
    test_many();
    test_memory();
    return done();
}
