/* What ranks must have alike in a part: the list of it, its digest, and the names of what differs.
 * Seen to fail: a digest without shapes, one without bytes, a list that need not ascend, a comparison that does not
 * look at what only one side has. */
#include "snapshot/replica_digest.h"

#include <stdio.h>

#include "lib/tap.h"
#include "util/array.h"

#define DATA_MAX 64

/* An image of tensors of one byte each, "a", "b" and so on, or of the shapes that are given. */
struct made {
    struct safetensors st;
    char bytes[1024 + DATA_MAX];
};

static struct el_mem mem = EL_MEM_INIT(1u << 20);

static void make(struct made *m, const char *list, const char *names, const char *shape, const char *data)
{
    char json[1024];
    struct el_err e = {0};
    size_t n = (size_t)snprintf(json, sizeof json, "{");
    if (list)
        n += (size_t)snprintf(json + n, sizeof json - n, "\"__metadata__\":{\"%s\":\"%s\"},", REPLICA_DIGEST_KEY, list);
    for (size_t i = 0; names[i]; i++)
        n += (size_t)snprintf(json + n, sizeof json - n,
                              "%s\"%c\":{\"dtype\":\"U8\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}", i ? "," : "",
                              names[i], shape, i, i + 1);
    n += (size_t)snprintf(json + n, sizeof json - n, "}");
    *m = (struct made){0};
    if (safetensors_parse(&m->st, &mem, json, n, SAFETENSORS_PREFIX + n + strlen(data), &e) < 0)
        ok(false, e.text);
    memcpy(m->bytes + m->st.data_at, data, strlen(data));
}

static uint64_t digest(const char *list, const char *names, const char *shape, const char *data)
{
    struct made m;
    make(&m, list, names, shape, data);
    uint64_t d = replica_digest_digest(&(struct replica_digest_image){&m.st, m.bytes}, NULL);
    safetensors_free(&m.st);
    return d;
}

static size_t differing(const char *a_list, const char *a_names, const char *a_data, const char *b_list,
                        const char *b_names, const char *b_data, char text[128])
{
    struct made a, b;
    make(&a, a_list, a_names, "[1]", a_data);
    make(&b, b_list, b_names, "[1]", b_data);
    size_t n = replica_digest_compare(&(struct replica_digest_image){&a.st, a.bytes},
                                      &(struct replica_digest_image){&b.st, b.bytes}, text, 128);
    safetensors_free(&a.st);
    safetensors_free(&b.st);
    return n;
}

static void test_digest(void)
{
    static const char *const none[] = {"", "3", "0-3", "1,0", "0,0", "0-1,1", "0,", ",0", "0 1", "x", "2-1", "-1"};
    uint64_t d = digest("0-1", "abc", "[1]", "xyz");
    ok(d != 0, "two of three tensors are listed: there is a digest");
    ok(digest("0,1", "abc", "[1]", "xyz") == d, "however they are listed");
    ok(digest("0-1", "abc", "[1]", "xyZ") == d, "the third may be another one");
    ok(digest("0-1", "abd", "[1]", "xyz") == d, "by any name");
    ok(digest("0-1", "abc", "[1]", "xYz") != d, "other bytes: another digest");
    ok(digest("0-1", "acb", "[1]", "xyz") != d, "another name");
    ok(digest("0-1", "abc", "[1,1]", "xyz") != d, "another shape");
    ok(digest("0-2", "abc", "[1]", "xyz") != d, "one tensor more");
    ok(digest(NULL, "abc", "[1]", "xyz") == 0, "no list, no digest");
    for (size_t i = 0; i < COUNT_OF(none); i++)
        ok(digest(none[i], "abc", "[1]", "xyz") == 0, none[i]);
}

static void test_compare(void)
{
    char text[128];
    is_num(differing("0-2", "abc", "xyz", "0-2", "abc", "xyz", text), 0, "alike: none differs");
    is_str(text, "", "and none is named");
    is_num(differing("0-2", "abc", "xyz", "0-2", "abc", "xYz", text), 1, "one differs");
    is_str(text, "\"b\"", "by name");
    is_num(differing("0,2", "abc", "xyz", "0,2", "abc", "xYz", text), 0, "it is not listed: it may");
    is_num(differing("0-2", "abc", "xyz", "0-2", "cab", "zxy", text), 0, "in another order they are alike");
    is_num(differing("0-2", "abc", "xyz", "0-2", "abd", "xyz", text), 2, "one that each side has alone");
    is_str(text, "\"c\", \"d\"", "both are named");
    is_num(differing("0-5", "abcdef", "aaaaaa", "0-4", "abcde", "zzzzz", text), 6, "many");
    is_str(text, "\"a\", \"b\", \"c\" and 3 more", "the first ones are named");
    is_num(differing("0-1", "ab", "xy", "9", "ab", "xy", text), 2, "a list that is none: all that the other one has");
}

int main(void)
{
    test_digest();
    test_compare();
    is_num(mem.used_bytes, 0, "all memory is given back");
    return done();
}
