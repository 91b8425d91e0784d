/* Flat structs as JSON and back: what goes out comes in again, limits hold both ways, errors name the field. */
#include "util/fields.h"

#include <math.h>

#include "lib/tap.h"

#define THING_FIELDS(F, T)                                                                                             \
    F(T, NUM, count, 100, 1)                                                                                           \
    F(T, INT, rank, 7, 0)                                                                                              \
    F(T, HEX, id, 0, 0)                                                                                                \
    F(T, STR, text, 6, 0)                                                                                              \
    F(T, BOOL, good, 0, 0)                                                                                             \
    F(T, REAL, rate, 0, 0)
#define KNOWN_FIELDS(F, T)                                                                                             \
    F(T, INT, gpu, 7, 2)                                                                                               \
    F(T, REAL, value, 0, 2)
struct known {
    KNOWN_FIELDS(EL_FIELD_MEMBER, known)
};
static const struct el_field known_fields[] = {KNOWN_FIELDS(EL_FIELD_ROW, known) EL_FIELD_END};
struct thing {
    THING_FIELDS(EL_FIELD_MEMBER, thing)
};
static const struct el_field fields[] = {THING_FIELDS(EL_FIELD_ROW, thing) EL_FIELD_END};
static const struct el_fields_limit limit = {64, 4};

static const char *put(const struct thing *t)
{
    static char text[256];
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    el_fields_put(&b, fields, t);
    snprintf(text, sizeof text, "%.*s", (int)b.len, b.v);
    el_buf_free(&b);
    return text;
}

static int get(const char *text, struct thing *t, void **tree, struct el_err *e)
{
    *t = (struct thing){0};
    *e = (struct el_err){0};
    return el_fields_get("THING", fields, text, strlen(text), limit, t, tree, e);
}

static void refuses(const char *text, const char *why)
{
    struct thing t;
    struct el_err e;
    void *tree;
    ok(get(text, &t, &tree, &e) < 0, text);
    is_str(e.text, why, "… and says why");
    el_fields_release(&tree);
}

/* What is not known is not 0. */
static void test_known(void)
{
    struct known k = {.gpu = 0, .value = 0};
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    struct el_err e = {0};
    void *tree;
    el_fields_put(&b, known_fields, &k);
    is_str(el_buf_cstr(&b), "{\"gpu\":0,\"value\":0}", "a zero that is known is written");
    ok(el_fields_get("KNOWN", known_fields, b.v, b.len, limit, &k, &tree, &e) == 0 && !k.gpu && !isnan(k.value),
       "… and read");
    el_fields_release(&tree);
    ok(el_fields_get("KNOWN", known_fields, "{}", 2, limit, &k, &tree, &e) == 0 && k.gpu == -1 && isnan(k.value),
       "what is missing is not known");
    el_fields_release(&tree);
    b.len = 0;
    el_fields_put(&b, known_fields, &k);
    is_str(el_buf_cstr(&b), "{}", "… and not written");
    el_buf_free(&b);
}

int main(void)
{
    struct thing in = {.count = 3,
                       .rank = -1,
                       .id = 0xfeedfacecafebeef,
                       .text = "a\"\xc3\xa9",
                       .good = true,
                       .rate = 0.1 + 0.2},
                 out;
    struct el_err e;
    void *tree;
    is_str(
        put(&in),
        "{\"count\":3,\"rank\":-1,\"id\":\"feedfacecafebeef\",\"text\":\"a\\\"\xc3\xa9\",\"good\":true,\"rate\":0.3}",
        "every kind goes out");
    ok(get(put(&in), &out, &tree, &e) == 0 && out.id == in.id && out.rank == -1 && out.good &&
           fabs(out.rate - 0.3) < 1e-9,
       "… and comes in");
    is_str(out.text, in.text, "… with its text");
    el_fields_release(&tree);

    is_str(put(&(struct thing){.count = 0}), "{\"count\":0}", "what may be missing and says nothing is not written");
    is_str(put(&(struct thing){.text = "abcde\xc3\xa9"}), "{\"count\":0,\"text\":\"abcde\"}",
           "a text is cut at a whole character");
    is_str(put(&(struct thing){.text = "a\xff"}), "{\"count\":0,\"text\":\"a\xef\xbf\xbd\"}",
           "a byte that is not UTF-8 is replaced");
    is_str(put(&(struct thing){.rate = NAN}), "{\"count\":0}", "a number that is none is not written");
    is_str(put(&(struct thing){.rate = INFINITY}), "{\"count\":0}", "… nor one without end");

    ok(get("{\"count\":1,\"rate\":2}", &out, &tree, &e) == 0 && fabs(out.rate - 2) < 1e-9,
       "a whole number is a real one too");
    el_fields_release(&tree);
    ok(get("{\"count\":1,\"new\":[1,{}]}", &out, &tree, &e) == 0, "fields of a newer version are passed over");
    el_fields_release(&tree);
    refuses("{}", "THING: \"count\" is missing (a number up to 100)");
    refuses("{\"count\":101}", "THING: \"count\" is out of range (a number up to 100)");
    refuses("{\"count\":1,\"rate\":\"x\"}", "THING: \"rate\" is not a number (a real number)");
    refuses("{\"count\":1,\"text\":\"abcdefg\"}", "THING: \"text\" is too long (a string up to 6)");
    refuses("[]", "THING: JSON, but not an object");
    refuses("{\"count\":1,\"a\":[[[[[1]]]]]}", "THING: more than 64 values, or nested deeper than 4");
    test_known();
    return done();
}
