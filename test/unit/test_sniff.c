/* What a file is by its first bytes, what is JSON, where links of a hub's cache lead, and SHA-256.
 * Seen to fail: without each kind, with the size of a pointer left out, with a link that leads out let through. */
#include "ckpt/json_text.h"
#include "ckpt/layout.h"
#include "ckpt/sha256.h"
#include "ckpt/sniff.h"
#include "lib/tap.h"
#include "util/array.h"

#define T(text) text, sizeof text - 1

static const struct {
    const char *head;
    size_t n;
    enum sniff_kind kind;
    const char *says; /* sniff_fail(), where it is a stand-in */
} heads[] = {
    {T(""), SNIFF_EMPTY, "it is empty"},
    {T("\0\0\0\0"), SNIFF_ZEROS, "zeros"},
    {T("\0\0\0\1"), SNIFF_OTHER, NULL},
    {T("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 13476838616\n"), SNIFF_POINTER,
     "a Git LFS pointer stands in the place of the file, which has 13476838616 bytes: `git lfs pull` fetches it"},
    {T("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize x\n"), SNIFF_POINTER,
     "a Git LFS pointer stands in the place of the file: `git lfs pull`"},
    {T("/annex/objects/SHA256E-s5--00.bin\n"), SNIFF_POINTER, "git-annex"},
    {T("# xet version 0\nfilesize = 12\n"), SNIFF_POINTER, "12 bytes"},
    {T("\n<!DOCTYPE HTML><html>"), SNIFF_DOCUMENT, "a web page (HTML) stands in the place of the file: it begins"},
    {T("<html lang=en>"), SNIFF_DOCUMENT, "web page"},
    {T("<?xml version='1.0'?><Error>"), SNIFF_DOCUMENT, "an XML document"},
    {T("Entry not found\nreally"), SNIFF_TEXT, "a text stands in the place of the file: it begins \"Entry not found\""},
    {T("\x1f\x8b\x08\0\0"), SNIFF_PACKED, NULL},
    {T("\x28\xb5\x2f\xfd\0"), SNIFF_PACKED, NULL},
    {T("PK\3\4\0\0"), SNIFF_ZIP, NULL},
    {T("\x80\x02}."), SNIFF_PICKLE, NULL},
    {T("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."), SNIFF_OLD, NULL},
    {T("\x93NUMPY\1\0"), SNIFF_NPY, NULL},
    {T("\x10\0\0\0\0\0\0\0{\"a\":"), SNIFF_SAFETENSORS, NULL},
    {T("\xff\xff\xff\xff\xff\xff\xff\xff"), SNIFF_OTHER, NULL},
    {T("\xe5\xb1\xa4 text"), SNIFF_TEXT, "a text"},
};

static void test_heads(void)
{
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        struct el_err e = {0};
        struct sniff s;
        sniff(&s, heads[i].head, heads[i].n);
        is_num(s.kind, heads[i].kind, heads[i].says ? heads[i].says : "a kind");
        if (!heads[i].says)
            continue;
        sniff_fail(&s, &e);
        if (!ok(e.status == CKPT_DAMAGED && strstr(e.text, heads[i].says), "says so"))
            printf("# says: %s\n", e.text);
    }
    char tar[300] = {'a'};
    struct sniff s;
    memcpy(tar + 257, "ustar", 5);
    sniff(&s, tar, sizeof tar);
    ok(s.kind == SNIFF_PACKED && strcmp(s.what, "a tar archive") == 0, "tar");
    static const char zip[] = "PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0a\0\0\0a/data.pkl";
    sniff(&s, zip, sizeof zip - 1);
    ok(s.kind == SNIFF_ZIP && s.torch, "an archive of torch.save begins with its pickle");
    sniff(&s, zip, sizeof zip - 2);
    ok(s.kind == SNIFF_ZIP && !s.torch, "others do not");
}

static bool is_whole(const char *text, size_t n)
{
    struct json_text x;
    json_text_look(&x, text, n, "n");
    return x.kind == JSON_TEXT_WHOLE;
}

static void test_json(void)
{
    struct json_text x;
    static const char *const whole[] = {"{}",           " {\"a\": [1, {\"b\": NaN}]}\n",
                                        "[\"}\\\"{\"]", "3",
                                        "\"x\"",        "[-Infinity, -0.5e+3, \"\\ud800\\u0000\", null]"};
    static const char *const bad[] = {
        "",    "  ",   "{",  "{\"a\": 1", "{} x",     "[\"]",           "{\"a\": \"b\\\"}", "{\"a\" 1}",   "[1,]",
        "{,}", "[01]", "[}", "nul",       "[\"\1\"]", "[\"\xff    \"]", "Internal",         "{\"a\": tru}"};
    for (size_t i = 0; i < COUNT_OF(whole); i++)
        ok(is_whole(whole[i], strlen(whole[i])), whole[i]);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        ok(!is_whole(bad[i], strlen(bad[i])), bad[i]);
    ok(!is_whole("{}\0\0", 4), "zeros behind it");
    json_text_look(&x, T("{}\n{}\n{"), "n");
    ok(x.kind == JSON_TEXT_LOG && x.at == 3, "one behind the other: a log");
    json_text_look(&x, T("{\"a\": {\"n\": 1}, \"m\": 1, \"n\": null}"), "n");
    ok(x.kind == JSON_TEXT_WHOLE && x.object && !x.number, "a key below, or without a number, is none");
    json_text_look(&x, T("{\"a\": [], \"n\": -1}"), "n");
    ok(x.kind == JSON_TEXT_WHOLE && x.number, "a key with a number");
    json_text_look(&x, T("{\"a\": [1, 2"), "n");
    ok(x.kind == JSON_TEXT_CUT && x.at == 11, "cut off is not broken");
    json_text_look(&x, T(" [1, x]"), "n");
    ok(x.kind == JSON_TEXT_BROKEN && x.begin == 1 && x.at == 5, "where it is broken");
    char deep[1100];
    memset(deep, '[', sizeof deep);
    json_text_look(&x, deep, sizeof deep, "n");
    ok(x.kind == JSON_TEXT_BROKEN && x.at == JSON_TEXT_DEPTH_MAX, "deeper than Python goes");
}

/* Of the standard's own examples, and in pieces of any size. */
static void test_sha256(void)
{
    static const struct {
        const char *text, *hex;
    } sums[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    struct sha256 s;
    char hex[SHA256_HEX];
    for (size_t i = 0; i < COUNT_OF(sums); i++)
        for (size_t piece = 1; piece < 60; piece += 7) {
            size_t n = strlen(sums[i].text);
            sha256_begin(&s);
            for (size_t at = 0; at < n; at += piece)
                sha256_add(&s, sums[i].text + at, n - at < piece ? n - at : piece);
            sha256_end(&s, hex);
            is_str(hex, sums[i].hex, "a sum");
        }
    sha256_begin(&s);
    for (unsigned i = 0; i < 1000; i++) {
        char as[1000];
        memset(as, 'a', sizeof as);
        sha256_add(&s, as, sizeof as);
    }
    sha256_end(&s, hex);
    is_str(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", "of a million letters");
}

static void test_links(void)
{
    static const struct {
        const char *path, *target, *to;
    } links[] = {
        {"models--a/snapshots/0/x", "../../blobs/1", "models--a/blobs/1"},
        {"snapshots/0/sub/x", "../../../blobs/1", "blobs/1"},
        {"snapshots/0/x", "../../../blobs/1", NULL},
        {"snapshots/0/x", "/etc/passwd", NULL},
        {"snapshots/0/x", "", NULL},
        {"snapshots/0/x", "../..", NULL},
        {"x", "./y//z", "y/z"},
        {"x", "..", NULL},
    };
    char to[CKPT_PATH_MAX];
    for (size_t i = 0; i < COUNT_OF(links); i++) {
        bool leads = ckpt_link_path(links[i].path, links[i].target, to);
        is_str(leads ? to : NULL, links[i].to, links[i].target);
    }
    char longest[CKPT_PATH_MAX + 10];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    ok(!ckpt_link_path("x", longest, to), "a target that is too long");
    is_num((long long)ckpt_hub_of("models--a/snapshots/0"), 10, "a hub's cache");
    is_num((long long)ckpt_hub_of("snapshots/0/unet"), 0, "at the root");
    ok(ckpt_hub_of("snapshots/") == SIZE_MAX && ckpt_hub_of("a/b") == SIZE_MAX &&
           ckpt_hub_of("mysnapshots/0") == SIZE_MAX,
       "and what is none");
}

int main(void)
{
    test_heads();
    test_json();
    test_links();
    test_sha256();
    return done();
}
