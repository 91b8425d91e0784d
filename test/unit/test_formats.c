/* Readers of other people's formats, on bytes made here: zip, pickle, sets of files, pieces of tensors.  What their
 * real writers make is in test/e2e/ckpt.sh. Seen to fail: without each bound of zip_read.c and pickle_read.c, with a
 * gap or an overlap let through. */
#include "ckpt/crc_table.h"
#include "ckpt/fmt.h"
#include "ckpt/pickle_index.h"
#include "ckpt/sniff.h"
#include "lib/tap.h"
#include "util/array.h"
#include "util/buf.h"
#include "util/sort.h"

static struct el_mem mem = EL_MEM_INIT(256u << 20);

static int read_memory(void *ctx, uint64_t at, void *to, size_t n, struct el_err *e)
{
    (void)e;
    memcpy(to, (const char *)ctx + at, n);
    return 0;
}

static void put_le(struct el_buf *out, uint64_t v, unsigned n)
{
    for (; n; n--, v >>= 8)
        el_buf_put(out, &(char){(char)v}, 1);
}

/* --- zip ---------------------------------------------------------------------------------------------------------- */

/* An archive with these members; wide: with the records of Zip64, as torch writes them. */
static void make_zip(struct el_buf *out, const char *const (*members)[2], const size_t *sizes, size_t n, bool wide)
{
    uint64_t at[8];
    for (size_t i = 0; i < n; i++) {
        size_t name = strlen(members[i][0]);
        at[i] = out->len;
        el_buf_put(out, "PK\3\4\0\0\0\0\0\0\0\0\0\0", 14);
        put_le(out, 0, 12); /* the sizes stand in the directory */
        put_le(out, name, 2);
        put_le(out, 5, 2);
        el_buf_puts(out, members[i][0]);
        el_buf_puts(out, "FB\1Z_");
        el_buf_put(out, members[i][1], sizes[i]);
    }
    uint64_t directory = out->len;
    for (size_t i = 0; i < n; i++) {
        size_t name = strlen(members[i][0]);
        el_buf_put(out, "PK\1\2\0\0\0\0\0\0\0\0\0\0\0\0", 16);
        put_le(out, crc_table_run(crc_table_zip, 0, members[i][1], sizes[i]), 4);
        put_le(out, wide ? UINT32_MAX : sizes[i], 4);
        put_le(out, wide ? UINT32_MAX : sizes[i], 4);
        put_le(out, name, 2);
        put_le(out, wide ? 28 : 0, 2);
        put_le(out, 0, 10);
        put_le(out, wide ? UINT32_MAX : at[i], 4);
        el_buf_puts(out, members[i][0]);
        if (wide) {
            put_le(out, 1, 2);
            put_le(out, 24, 2);
            put_le(out, sizes[i], 8);
            put_le(out, sizes[i], 8);
            put_le(out, at[i], 8);
        }
    }
    uint64_t bytes = out->len - directory, end64 = out->len;
    if (wide) {
        el_buf_put(out, "PK\6\6", 4);
        put_le(out, 44, 8);
        put_le(out, 0, 12);
        put_le(out, n, 8);
        put_le(out, n, 8);
        put_le(out, bytes, 8);
        put_le(out, directory, 8);
        el_buf_put(out, "PK\6\7\0\0\0\0", 8);
        put_le(out, end64, 8);
        put_le(out, 1, 4);
    }
    el_buf_put(out, "PK\5\6\0\0\0\0", 8);
    put_le(out, n, 2);
    put_le(out, n, 2);
    put_le(out, wide ? UINT32_MAX : bytes, 4);
    put_le(out, wide ? UINT32_MAX : directory, 4);
    put_le(out, 0, 2);
}

static void test_zip(bool wide)
{
    const char *const members[][2] = {{"a/data.pkl", "pickle"}, {"a/data/0", "0123456789"}, {"a/version", ""}};
    const size_t sizes[] = {6, 10, 0};
    struct el_buf out = EL_BUF_INIT(&mem, 0);
    struct el_err e = {0};
    struct zip z;
    uint64_t at = 0;
    make_zip(&out, members, sizes, 3, wide);
    struct ckpt_bytes file = {out.v, out.len, read_memory};
    ok(zip_open(&z, &mem, &file, &e) == 0 && z.n == 3, e.text);
    const struct zip_member *m = zip_find(&z, "a/data/0");
    ok(m && m == zip_find_end(&z, "/data/0") && !zip_find(&z, "data/0") && m->bytes == 10, "a member");
    ok(zip_place(&z, &file, m, &at, &e) == 0 && memcmp(out.v + at, "0123456789", 10) == 0, "its place");
    ok(zip_check(&z, &file, m, &e) == 0, "its bytes");
    out.v[at] ^= 1;
    ok(zip_check(&z, &file, m, &e) == -1 && strstr(e.text, "a/data/0: bytes") && e.status == CKPT_DAMAGED, e.text);
    out.v[at] ^= 1;
    zip_close(&z);
    unsigned silent = 0, opened = 0;
    for (size_t n = 0; n < out.len; n++) { /* cut off anywhere */
        file.bytes = n;
        e = (struct el_err){0};
        opened += zip_open(&z, &mem, &file, &e) == 0;
        silent += e.status != CKPT_DAMAGED || !strstr(e.text, "truncated");
        zip_close(&z);
    }
    is_num(opened + silent, 0, "truncated anywhere, it is said");
    file.bytes = out.len;
    for (size_t i = 0; i < 8 * out.len; i++) { /* a bit changed anywhere: never a place outside */
        out.v[i / 8] ^= (char)(1 << i % 8);
        e = (struct el_err){0};
        if (zip_open(&z, &mem, &file, &e) == 0)
            for (size_t k = 0; k < z.n; k++)
                silent += zip_place(&z, &file, &z.members[k], &at, &e) == 0 && at + z.members[k].bytes > out.len;
        zip_close(&z);
        out.v[i / 8] ^= (char)(1 << i % 8);
    }
    is_num(silent, 0, "a changed bit never leads outside");
    if (!wide) {
        char *second = memmem(out.v, out.len, "PK\1\2", 4);
        second = memmem(second + 4, out.len - (size_t)(second + 4 - out.v), "PK\1\2", 4);
        memset(second + 42, 0, 4);
        e = (struct el_err){0};
        ok(zip_open(&z, &mem, &file, &e) == -1 && strstr(e.text, "have the same bytes"), e.text);
    }
    el_buf_free(&out);
}

/* One tensor, 1200 times in a list that has a name of 60,000 bytes. */
static void test_long_names(void)
{
    struct el_buf pickle = EL_BUF_INIT(&mem, 0), out = EL_BUF_INIT(&mem, 0);
    struct tensors t = {.mem = &mem};
    struct el_err e = {0};
    struct zip z;
    el_buf_puts(&pickle, "\x80\x02}X");
    put_le(&pickle, 60000, 4);
    for (unsigned i = 0; i < 60000; i++)
        el_buf_puts(&pickle, "k");
    static const char tensor[] = "](ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\n"
                                 "X\1\0\0\0000X\3\0\0\0cpuK\1tQK\0K\1\x85K\1\x85\x89}tRq\0";
    el_buf_put(&pickle, tensor, sizeof tensor - 1);
    for (unsigned i = 1; i < 1200; i++)
        el_buf_put(&pickle, "h", 2);
    el_buf_puts(&pickle, "es.");
    const char *const members[][2] = {{"a/data.pkl", pickle.v}, {"a/data/0", "0123"}};
    const size_t sizes[] = {pickle.len, 4};
    make_zip(&out, members, sizes, 2, true);
    struct ckpt_bytes file = {out.v, out.len, read_memory};
    ok(zip_open(&z, &mem, &file, &e) == 0, "an archive of torch.save");
    ok(fmt_torch_tensors(&t, "f", 0, &file, &z, NULL, &e) == -1 && e.status == CKPT_UNSUPPORTED &&
           strstr(e.text, "the names of its tensors are more than 64 MiB"),
       e.text);
    is_num((long long)t.n, (64 << 20) / 60005, "as many of them as fit");
    zip_close(&z);
    tensors_free(&t);
    el_buf_free(&pickle);
    el_buf_free(&out);
}

/* Each list holds the one before twice: 2^200 of them, in a file of 6 KB. */
static void test_laughs(void)
{
    struct el_buf pickle = EL_BUF_INIT(&mem, 0), out = EL_BUF_INIT(&mem, 0);
    struct tensors t = {.mem = &mem};
    struct el_err e = {0};
    struct zip z;
    el_buf_puts(&pickle, "\x80\x02]q");
    put_le(&pickle, 0, 1);
    for (unsigned i = 1; i < 200; i++) {
        el_buf_puts(&pickle, "](h");
        put_le(&pickle, i - 1, 1);
        el_buf_puts(&pickle, "h");
        put_le(&pickle, i - 1, 1);
        el_buf_puts(&pickle, "eq");
        put_le(&pickle, i, 1);
    }
    el_buf_puts(&pickle, ".");
    const char *const members[][2] = {{"a/data.pkl", pickle.v}};
    make_zip(&out, members, &pickle.len, 1, false);
    struct ckpt_bytes file = {out.v, out.len, read_memory};
    ok(zip_open(&z, &mem, &file, &e) == 0, "an archive of a list of lists");
    ok(fmt_torch_tensors(&t, "f", 0, &file, &z, NULL, &e) == -1 && e.status == CKPT_UNSUPPORTED &&
           strstr(e.text, "in too many places"),
       e.text);
    zip_close(&z);
    tensors_free(&t);
    el_buf_free(&pickle);
    el_buf_free(&out);
}

/* --- torch.save before 1.6 ---------------------------------------------------------------------------------------- */

static void test_old(void)
{
    static const char head[] = "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.";
    static const char object[] =
        "\x80\x02}(X\x0d\0\0\0dp_world_sizeK\4X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n"
        "((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0007X\3\0\0\0cpuK\2NtQK\0K\2\x85K\1\x85"
        "\x89}tRu.\x80\x02]X\1\0\0\0007a.\2\0\0\0\0\0\0\0abcdefgh";
    struct el_buf out = EL_BUF_INIT(&mem, 0);
    struct fmt_counts counts = {0};
    struct tensors t = {.mem = &mem};
    struct el_err e = {0};
    struct sniff s;
    el_buf_put(&out, head, sizeof head - 1);
    el_buf_put(&out, object, sizeof object - 1);
    struct ckpt_bytes file = {out.v, out.len, read_memory};
    sniff(&s, out.v, out.len);
    is_num(s.kind, SNIFF_OLD, "the old format is known by its magic number");
    ok(fmt_old_tensors(&t, "f", &file, &counts, &e) == 0, e.text);
    ok(t.n == 1 && t.v[0]->place == TENSOR_RAW && t.v[0]->bytes == 8 && memcmp(out.v + t.v[0]->at, "abcdefgh", 8) == 0,
       "and its tensor is where it should be");
    is_num((long long)counts.data_ranks, 4, "and a count is read");
    tensors_free(&t);
    unsigned silent = 0, outside = 0;
    for (size_t n = 15; n < out.len; n++) {
        file.bytes = n;
        e = (struct el_err){0};
        silent +=
            fmt_old_tensors(&t, "f", &file, NULL, &e) == 0 || e.status != CKPT_DAMAGED || !strstr(e.text, "truncated");
        tensors_free(&t);
    }
    is_num(silent, 0, "cut off anywhere, it is said");
    file.bytes = out.len;
    for (size_t i = 15 * 8; i < 8 * out.len; i++) { /* a bit changed anywhere: never a place outside */
        out.v[i / 8] ^= (char)(1 << i % 8);
        e = (struct el_err){0};
        fmt_old_tensors(&t, "f", &file, NULL, &e);
        for (size_t k = 0; k < t.n; k++)
            outside += t.v[k]->place != TENSOR_ODD && t.v[k]->at + t.v[k]->bytes > out.len;
        tensors_free(&t);
        out.v[i / 8] ^= (char)(1 << i % 8);
    }
    is_num(outside, 0, "changed anywhere, nothing outside is named");
    el_buf_free(&out);
}

/* --- pickle ------------------------------------------------------------------------------------------------------- */

#define P(text) text, sizeof text - 1

static const struct {
    const char *bytes;
    size_t n;
    int status;
    const char *says;
} pickles[] = {
    {P("\x80\x02N."), 0, ""},
    {P("\x80\x04}\x94(\x8c\x01"
       "a\x94K\x07\x8c\x01"
       "bM\x01\x02u."),
     0, ""},
    {P("\x80\x02]q\x00(h\x00h\x00"
       "e."),
     0, ""},                                            /* a list in itself */
    {P("cos\nsystem\n(X\x02\x00\x00\x00lstR."), 0, ""}, /* a call, of which nothing comes */
    {P(""), CKPT_DAMAGED, "too early"},
    {P("."), CKPT_DAMAGED, "a value is missing"},
    {P("\x80\x09N."), CKPT_UNSUPPORTED, "protocol 9"},
    {P("N"), CKPT_DAMAGED, "too early"},
    {P("X\xff\xff\xff\x7fxx."), CKPT_UNSUPPORTED, "a string of 2147483647 bytes"},
    {P("X\x09\x00\x00\x00xx."), CKPT_DAMAGED, "too early"},
    {P("t."), CKPT_DAMAGED, "a mark is missing"},
    {P("(t(e."), CKPT_DAMAGED, "no container"},
    {P("NNa."), CKPT_DAMAGED, "no container"},
    {P("}Ns."), CKPT_DAMAGED, "a value is missing"},
    {P("}(Nu."), CKPT_DAMAGED, "without a container"},
    {P("h\x07."), CKPT_DAMAGED, "not remembered"},
    {P("Nr\xff\xff\xff\x7f."), CKPT_UNSUPPORTED, "remembers more"},
    {P("\x93."), CKPT_DAMAGED, "a value is missing"},
    {P("NN\x93."), CKPT_DAMAGED, "without a name"},
    {P("(R."), CKPT_DAMAGED, "a value is missing"},
    {P("\0\0\0\0"), CKPT_DAMAGED, "broken at byte 0: 0x00 is no operation"},
    {P("N\x95\2\0\0\0\0\0\0\0."), CKPT_DAMAGED, "too early"}, /* a frame of more than there is */
    {P("N)R."), CKPT_DAMAGED, "a call of what is no class"},
    {P("}]Ns."), CKPT_DAMAGED, "a key that is a container"},
    {P("i1\n2\n."), CKPT_UNSUPPORTED, "operation 0x69 at byte 0"},
    {P("I1\n."), CKPT_UNSUPPORTED, "operation 0x49"},
    {P("\x8b\xff\xff\xff\x7f."), CKPT_UNSUPPORTED, "a number of 2147483647 bytes"},
};

static void test_pickles(void)
{
    for (size_t i = 0; i < COUNT_OF(pickles); i++) {
        struct pickle p;
        struct el_err e = {0};
        pickle_read(&p, &mem, pickles[i].bytes, pickles[i].n, &e);
        is_num(e.status, pickles[i].status, pickles[i].says);
        if (!ok(strstr(e.text, pickles[i].says) != NULL, "says so"))
            printf("# says: %s\n", e.text);
        pickle_free(&p);
    }
}

static void test_pickle_values(void)
{
    static const char bytes[] =
        "\x80\x04}(\x8c\x01i\x8a\x01\xff\x8c\x01jJ\xfe\xff\xff\xff\x8c\x01kI\x8c\x01l\x88\x8c\x01mG"
        "\x3f\xf8\0\0\0\0\0\0\x8c\x01s\x8c\x05torch\x8c\x04Size\x93K\x02K\x03\x86\x85Ru.";
    struct pickle p;
    struct el_err e = {0};
    char copy[sizeof bytes];
    size_t n = sizeof bytes - 1;
    memcpy(copy, bytes, sizeof bytes);
    char *at = memchr(copy, 'I', n); /* no operation of ours: make it NONE */
    *at = 'N';
    ok(pickle_read(&p, &mem, copy, n, &e) == 0, e.text);
    const struct pickle_node *i = pickle_get(p.root, "i"), *j = pickle_get(p.root, "j"), *m = pickle_get(p.root, "m");
    uint64_t size[4];
    ok(i && i->number == -1 && j && j->number == -2, "numbers below 0");
    ok(m && m->kind == PICKLE_FLOAT && m->real > 1.49 && m->real < 1.51, "a float");
    ok(pickle_get(p.root, "l")->kind == PICKLE_BOOL && pickle_get(p.root, "k")->kind == PICKLE_NONE, "True and None");
    ok(pickle_sizes(pickle_get(p.root, "s"), size, 4) == 2 && size[0] == 2 && size[1] == 3, "torch.Size");
    ok(pickle_sizes(pickle_get(p.root, "s"), size, 1) == -1 && pickle_sizes(i, size, 4) == -1, "and what is none");
    ok(!pickle_get(p.root, "z") && !pickle_get(NULL, "z") && !pickle_item(p.root, 0), "what is not there");
    pickle_free(&p);
    char deep[100000];
    memset(deep, ']', sizeof deep);
    memset(deep + 50000, 'a', 49999);
    deep[99999] = '.';
    e = (struct el_err){0};
    ok(pickle_read(&p, &mem, deep, sizeof deep, &e) == 0, "50,000 lists, one in the other, take no stack");
    pickle_free(&p);
    int r = -1;
    for (long k = 0; r; k++) {
        mem.fail_after = k;
        e = (struct el_err){0};
        r = pickle_read(&p, &mem, copy, n, &e);
        if (r && e.status != EL_EXIT_OSERR)
            ok(0, e.text);
        pickle_free(&p);
    }
    mem.fail_after = -1;
    ok(r == 0, "each allocation may fail");
}

/* What a few bytes can ask for many times. */
static void test_pickle_bounds(void)
{
    struct el_buf in = EL_BUF_INIT(&mem, 0);
    struct el_err e = {0};
    struct pickle p;
    unsigned found = 0;
    el_buf_puts(&in, "\x80\x04X");
    put_le(&in, PICKLE_NAME_MAX + 1, 4);
    for (unsigned i = 0; i <= PICKLE_NAME_MAX; i++)
        el_buf_puts(&in, "m");
    el_buf_puts(&in, "\x94X");
    put_le(&in, 1, 4);
    el_buf_puts(&in, "n\x93.");
    ok(pickle_read(&p, &mem, in.v, in.len, &e) == -1 && strstr(e.text, "a global of more than 4096 bytes"), e.text);
    pickle_free(&p);
    in.len = 0;
    el_buf_puts(&in, "}(");
    for (unsigned i = 0; i < PICKLE_SMALL_DICT; i++)
        el_buf_puts(&in, "NN");
    el_buf_puts(&in, "X");
    put_le(&in, 1, 4);
    el_buf_puts(&in, "aNu.");
    e = (struct el_err){0};
    ok(pickle_read(&p, &mem, in.v, in.len, &e) == 0, "a dict that is not small");
    for (unsigned i = 0; i < 2 * PICKLE_SEARCHES_MAX; i++)
        found += pickle_get(p.root, "a") != NULL;
    is_num(found, PICKLE_SEARCHES_MAX, "is searched so often, and no more");
    pickle_free(&p);
    e = (struct el_err){0};
    ok(pickle_read(&p, &mem, "\x80\x02]", 3, &e) == -1 && p.cut, "a pickle that is cut off");
    pickle_free(&p);
    ok(pickle_read(&p, &mem, "\x80\x02t.", 4, &e) == -1 && !p.cut, "is not one that is broken");
    pickle_free(&p);
    el_buf_free(&in);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static void test_names(void)
{
    static const struct {
        const char *names[4];
        size_t n;
        enum ckpt_format format;
    } dirs[] = {
        {{"model.safetensors"}, 1, CKPT_FORMAT_SAFETENSORS},
        {{"config.json", "model-00001-of-00002.safetensors"}, 2, CKPT_FORMAT_HF},
        {{"model.safetensors.index.json"}, 1, CKPT_FORMAT_HF},
        {{".metadata", "__0_0.distcp"}, 2, CKPT_FORMAT_DCP},
        {{".metadata", "__0_0.distcp", "metadata.json", "common.pt"}, 4, CKPT_FORMAT_MEGATRON},
        {{"mp_rank_00/model_optim_rng.pt"}, 1, CKPT_FORMAT_MEGATRON},
        {{"flat_param.00000-00002", "buffers"}, 2, CKPT_FORMAT_ATORCH},
        {{"pytorch_model.bin"}, 1, CKPT_FORMAT_TORCH},
        {{"README", "metadata.json"}, 2, CKPT_FORMAT_NONE},
        {{"mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt"}, 2, CKPT_FORMAT_DEEPSPEED},
        {{"latest", "global_step5/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"}, 2, CKPT_FORMAT_DEEPSPEED},
        {{"global_step5/mp_rank_00_model_states.pt", "model.safetensors", "trainer_state.json"},
         3,
         CKPT_FORMAT_TRAINER},
        {{"net.pth.tar"}, 1, CKPT_FORMAT_TORCH},
        {{"net.th"}, 1, CKPT_FORMAT_TORCH},
        {{"pytorch_model.bin.index.json"}, 1, CKPT_FORMAT_HF},
        {{"model.safetensors.index.fp16.json"}, 1, CKPT_FORMAT_HF},
        {{"tokenizer.index.json", "model.pt.tmp"}, 2, CKPT_FORMAT_NONE},
        {{NULL}, 0, CKPT_FORMAT_NONE},
    };
    for (size_t i = 0; i < COUNT_OF(dirs); i++)
        is_str(ckpt_format_word(fmt_detect(dirs[i].names, dirs[i].n)), ckpt_format_word(dirs[i].format),
               dirs[i].n ? dirs[i].names[0] : "nothing");
}

static void test_members(void)
{
    struct fmt_member m;
    ok(fmt_member("model-00002-of-00005.safetensors", &m) && m.i == 2 && m.n == 5 && m.first == 1, "a member");
    ok(fmt_member("shard-00003-model-00001-of-00001.safetensors", &m) && m.i == 1 && m.n == 1,
       "its last numbers count");
    ok(fmt_member("optim-rank0-of-4.pt", &m) && m.i == 0 && m.n == 4 && m.first == 0, "so are ranks");
    ok(fmt_member("flat_param.00003-00004", &m) && m.i == 3 && m.n == 4 && m.first == 0, "counted from 0");
    ok(fmt_member("shard-00000-of-00004.pt", &m) && m.i == 0 && m.n == 4 && m.first == 0, "and where there is a 0");
    ok(!fmt_member("model-00006-of-00005.safetensors", &m) && !fmt_member("model-1.safetensors", &m),
       "others are none");
    static const struct {
        const char *name;
        unsigned i, n;
        bool sure;
    } worlds[] = {
        {"model_world_size_4_rank_3.pt", 3, 4, true},
        {"actor/optim_world_size_16_rank_10.pt", 10, 16, true},
        {"rank_3_of_4.pt", 3, 4, true},
        {"rank3of4.bin", 3, 4, true},
        {"model.0.of.8.pt", 0, 8, false},
        {"shard_0_of_8.pt", 0, 8, true},
        {"weights_rank-3_world-4.pt", 3, 4, true},
        {"rank3_world_size4.pt", 3, 4, true},
        {"rank_3_of_world_4.pt", 3, 4, true},
        {"state_r3_w4.pt", 3, 4, false},
        {"w8-r0.pt", 0, 8, false},
        {"step100_rank_3_world_4.pt", 3, 4, true},
        {"rank_3_of_4/model.pt", 3, 4, true},
        {"epoch_2/model_rank_1_of_2.pt", 1, 2, true},
    };
    for (size_t i = 0; i < COUNT_OF(worlds); i++)
        ok(fmt_member(worlds[i].name, &m) && m.i == worlds[i].i && m.n == worlds[i].n && m.sure == worlds[i].sure,
           worlds[i].name);
    static const char *const none[] = {"epoch_3_of_10.pt",
                                       "step100_of_1000.pt",
                                       "fold-1-of-5.pt",
                                       "lora_rank_8.pt",
                                       "world_4.pt",
                                       "rank_4_world_4.pt",
                                       "hello_worlds_3_r2.pt",
                                       "rank_3_epoch_4.pt",
                                       "r3-x-w4.pt",
                                       "proof4.pt",
                                       "rank_2_of_world.pt",
                                       "4.pt",
                                       "iter_3_of_9/model.pt",
                                       "model_xr3_xw4.pt",
                                       "of4.pt"};
    for (size_t i = 0; i < COUNT_OF(none); i++)
        ok(!fmt_member(none[i], &m), none[i]);
}

static void note_gap(void *arg, const char *name, const struct fmt_missing *missing, uint64_t total)
{
    char text[FMT_MISSING_TEXT];
    el_buf_printf(arg, "%s: %s of %llu; ", name, fmt_missing_put(missing, text), (unsigned long long)total);
}

static void test_sets(void)
{
    static const char *const set[] = {"a-1-of-3.pt", "a-1-of-4.pt", "a-2-of-4.pt", "a-3-of-3.pt",
                                      "a-3-of-4.pt", "b-2-of-2.pt", "c-1-of-1.pt", "x"};
    static char names[50000][40];
    static const char *many[50000];
    struct el_buf out = EL_BUF_INIT(&mem, 0);
    struct el_err e = {0};
    fmt_gaps(set, COUNT_OF(set), &mem, note_gap, &out, &e);
    is_str(el_buf_cstr(&out), "a-1-of-3.pt: 2 of 3; a-1-of-4.pt: 4 of 4; b-2-of-2.pt: 1 of 2; ",
           "what is missing in each set, also where two of them are mixed");
    out.len = 0;
    static const char *const ranks[] = {
        "best_1of3.pt",
        "lora_r8_w16.pt", /* one of a kind that may be something else */
        "model_r0_w4.pt",
        "model_r1_w4.pt",
        "model_r2_w4.pt",
        "r1_w2.pt",
        "rank_0_of_2.pt",
        "rank_1_of_2.pt",
        "s-0-of-2.pt",
        "s-1-of-2.pt",
        "world_size_2_rank_0.pt",
        "world_size_3_rank_0.pt",
        "world_size_3_rank_2.pt",
        "z_rank_0_of_2.pt.tmp",
    };
    fmt_gaps(ranks, COUNT_OF(ranks), &mem, note_gap, &out, &e);
    is_str(el_buf_cstr(&out),
           "model_r0_w4.pt: 3 of 4; r1_w2.pt: 0 of 2; world_size_2_rank_0.pt: 1 of 2; world_size_3_rank_0.pt: 1 of 3; ",
           "and among ranks");
    out.len = 0;
    static const char *const few[] = {"d-1-of-6.pt",         "d-3-of-6.pt", "d-5-of-6.pt", "d-6-of-6.pt",
                                      "e-2-of-999999999.pt", "f-1-of-6.pt", "f-3-of-6.pt"};
    fmt_gaps(few, COUNT_OF(few), &mem, note_gap, &out, &e);
    is_str(el_buf_cstr(&out),
           "d-1-of-6.pt: 2 and 4 of 6; e-2-of-999999999.pt: 1, 3, 4, 5 and 999999994 more of 999999999; "
           "f-1-of-6.pt: 2, 4, 5 and 6 of 6; ",
           "all that are missing, by number the first");
    out.len = 0;
    for (unsigned i = 0; i < COUNT_OF(many); i++) {
        snprintf(names[i], sizeof names[i], "model-%05u-of-50001.safetensors", i + 1 + (i >= 40000));
        many[i] = names[i];
    }
    fmt_gaps(many, COUNT_OF(many), &mem, note_gap, &out, &e);
    is_str(el_buf_cstr(&out), "model-00001-of-50001.safetensors: 40001 of 50001; ", "and in one of 50,001 files");
    el_buf_free(&out);
}

/* --- pieces ------------------------------------------------------------------------------------------------------- */

static void piece(struct tensors *to, const char *file, const uint64_t *shape, const uint64_t *from,
                  const uint64_t *size)
{
    struct el_err e = {0};
    struct tensor t = {
        .name = "w", .dtype = "F32", .file = file, .rank = 2, .shape = shape, .from = from, .size = size};
    tensors_add(to, &t, &e);
}

/* Rows of 6000 ranks, of which one is there twice and another one is not: as many elements as the whole has. */
static void test_many_pieces(void)
{
    static const uint64_t shape[] = {6000, 5}, row[] = {1, 5}, nothing[] = {0, 5};
    for (uint64_t twice = 0; twice < 2; twice++) {
        struct tensors t = {.mem = &mem};
        struct el_err e = {0};
        for (uint64_t i = 0; i < 6000; i++)
            piece(&t, "a", shape, (uint64_t[]){twice && i == 5000 ? 4000 : i, 0}, row);
        piece(&t, "b", shape, (uint64_t[]){3000, 0}, nothing);
        tensors_sort(&t);
        int r = tensors_cover(&t, 0, t.n, &e);
        ok(twice ? r == -1 && e.status == CKPT_DAMAGED && strstr(e.text, "in a and in a overlap") : r == 0, e.text);
        tensors_free(&t);
    }
}

static void test_pieces(void)
{
    static const uint64_t box[][4] = {{0, 0, 4, 2}, {0, 2, 4, 3}, {4, 0, 2, 5}}; /* from, size: a whole of 6 x 5 */
    static const char *const files[] = {"a", "b", "c"};
    static const uint64_t shape[] = {6, 5}, small[] = {5, 5}, extra[] = {3, 1}, one[] = {1, 1};
    for (unsigned bits = 1; bits < 8; bits++) {
        struct tensors t = {.mem = &mem};
        struct el_err e = {0};
        for (unsigned i = 0; i < 3; i++)
            if (bits >> i & 1)
                piece(&t, files[i], shape, box[i], box[i] + 2);
        tensors_sort(&t);
        int r = tensors_cover(&t, 0, tensors_group(&t, 0), &e);
        ok(bits == 7 ? r == 0 : e.status == CKPT_INCOMPLETE && strstr(e.text, "of its 30 elements"), e.text);
        if (bits == 7) {
            piece(&t, "d", shape, extra, one);
            tensors_sort(&t);
            e = (struct el_err){0};
            ok(tensors_cover(&t, 0, 4, &e) == -1 && e.status == CKPT_DAMAGED && strstr(e.text, "overlap"), e.text);
            ok(tensors_once(&t, 0, 4) == 4, "pieces that differ stay");
        }
        tensors_free(&t);
    }
    test_many_pieces();
    struct tensors t = {.mem = &mem};
    struct el_err e = {0};
    for (unsigned i = 0; i < 3; i++)
        piece(&t, files[i], NULL, box[i], box[i] + 2);
    tensors_sort(&t);
    tensors_infer(&t);
    ok(tensors_cover(&t, 0, 3, &e) == 0 && t.v[2]->shape[0] == 6 && t.v[2]->shape[1] == 5, "a shape that nobody told");
    ok(!tensors_copies(&t, 0, 3), "pieces are no copies");
    tensors_free(&t);
    static const uint64_t at[] = {0, 0};
    for (unsigned i = 0; i < 2; i++)
        piece(&t, files[i], shape, at, shape);
    ok(tensors_copies(&t, 0, 2) && tensors_cover(&t, 0, 2, &e) == -1, "what is whole in each file is");
    ok(tensors_once(&t, 0, 2) == 1 && tensors_cover(&t, 0, 1, &e) == 0,
       "a piece that two ranks have alike counts once");
    e = (struct el_err){0};
    tensors_free(&t);
    piece(&t, "c", small, box[2], box[2] + 2);
    ok(tensors_cover(&t, 0, 1, &e) == -1 && strstr(e.text, "beyond its shape"), e.text);
    tensors_free(&t);
    for (unsigned i = 0; i < 2; i++)
        piece(&t, files[i], shape, NULL, shape);
    e = (struct el_err){0};
    ok(tensors_cover(&t, 0, 1, &e) == 0 && tensors_cover(&t, 0, 2, &e) == -1 && strstr(e.text, "is in a and in b"),
       e.text);
    tensors_free(&t);
    ok(tensors_match("*.bias", "a.b.bias") && tensors_match("?.*", "a.b") && !tensors_match("*.bias", "a.biasx") &&
           tensors_match("a*b*c", "aXbYbZc") && !tensors_match("", "a") && tensors_match("*", ""),
       "patterns");
}

/* A dict of many keys is asked for each of them: how much is looked at does not grow with its square. */
static void test_index(void)
{
    enum { KEYS = 20000 };
    static struct pickle_node key[KEYS], value[KEYS], *items[2 * KEYS];
    static char text[KEYS][16];
    struct pickle_node dict = {.kind = PICKLE_DICT, .items = items, .items_n = 2 * KEYS};
    struct pickle_index x;
    size_t wrong = 0;
    for (size_t i = 0; i < KEYS; i++) {
        size_t n = (size_t)snprintf(text[i], sizeof text[i], "u%zu", i * 7919 % KEYS);
        key[i] = (struct pickle_node){.kind = PICKLE_TEXT, .text = text[i], .text_n = n};
        items[2 * i] = &key[i];
        items[2 * i + 1] = &value[i];
    }
    ok(pickle_index_make(&x, &mem, &dict) == 0, "an index");
    for (size_t i = 0; i < KEYS; i++)
        wrong += pickle_index_get(&x, &key[i]) != &value[i];
    is_num(wrong, 0, "each key has its value");
    ok(x.compared <= (uint64_t)KEYS * 16, "and for none more than 16 of 20,000 are looked at");
    const struct pickle_node none = {.kind = PICKLE_TEXT, .text = "u", .text_n = 1}, empty = {.kind = PICKLE_TEXT};
    ok(!pickle_index_get(&x, &none) && !pickle_index_get(&x, &empty) && !pickle_index_get(&x, NULL),
       "others have none");
    pickle_index_free(&x);
    items[2] = &key[0]; /* the key of the first one, once more */
    ok(pickle_index_make(&x, &mem, &dict) == 0 && pickle_index_get(&x, &key[0]) == &value[0],
       "of equal ones the first");
    pickle_index_free(&x);
    ok(pickle_index_make(&x, &mem, &none) == 0 && !pickle_index_get(&x, &none), "of what is no dict there is nothing");
    pickle_index_free(&x);
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void test_sort(void)
{
    unsigned bad = 0, missed = 0;
    for (unsigned seed = 0; seed < 3000; seed++) {
        int v[8];
        unsigned x = seed, n = seed % 9;
        for (unsigned i = 0; i < n; i++, x = x * 1103515245u + 12345u)
            v[i] = (int)(x >> 16 & 7);
        el_sort(v, n, sizeof *v, ascending);
        for (unsigned i = 1; i < n; i++)
            bad += v[i - 1] > v[i];
        for (int key = -1; key <= 8; key++) {
            size_t i = 0;
            while (i < n && v[i] < key)
                i++;
            missed += el_first(v, n, sizeof *v, &key, ascending) != i;
        }
    }
    is_num(bad, 0, "sorted");
    is_num(missed, 0, "the first that does not come before a key is found, of any number of items and of equal ones");
}

int main(void)
{
    test_zip(false);
    test_zip(true);
    test_long_names();
    test_pickles();
    test_pickle_values();
    test_pickle_bounds();
    test_old();
    test_laughs();
    test_names();
    test_members();
    test_sets();
    test_pieces();
    test_index();
    test_sort();
    is_num(mem.used_bytes, 0, "no memory is left");
    return done();
}
