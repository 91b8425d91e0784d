#include "util/fields.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "util/json_limit.h"
#include "util/scan.h"
#include "util/utf8.h"

static const char *const kind_names[] = {"number", "number or -1", "hex", "string", "boolean", "real number"};

const char *el_field_kind_name(enum el_field_kind kind)
{
    return kind_names[kind];
}

/* --- out --- */

static bool fields_is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* At most limit bytes arrive at the other side: whole characters only. */
static int fields_put_string(struct el_buf *out, const char *text, size_t limit)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = strnlen(text, limit + 1), used = 0;
    int bad = el_buf_put(out, "\"", 1);
    for (size_t i = 0; i < n;) {
        size_t run = i; /* most text needs no look at each byte */
        while (run < n && used + (run - i) < limit && fields_is_plain(s[run]))
            run++;
        if (run > i) {
            bad |= el_buf_put(out, s + i, run - i);
            used += run - i;
            i = run;
            continue;
        }
        unsigned size = (unsigned)el_utf8(text + i, n - i);
        size_t comes = size ? size : 3;
        if (used + comes > limit)
            break;
        if (!size)
            bad |= el_buf_puts(out, "\xef\xbf\xbd");
        else if (s[i] == '"' || s[i] == '\\')
            bad |= el_buf_printf(out, "\\%c", s[i]);
        else if (s[i] < 0x20 || s[i] == 0x7f)
            bad |= el_buf_printf(out, "\\u%04x", (unsigned)s[i]);
        else
            bad |= el_buf_put(out, s + i, size);
        used += comes;
        i += size ? size : 1;
    }
    return bad | el_buf_put(out, "\"", 1);
}

static int fields_put_field(struct el_buf *out, const struct el_field *f, const char *at)
{
    switch (f->kind) {
    case EL_FIELD_NUM: {
        uint64_t v = *(const uint64_t *)(const void *)at;
        assert(v <= f->limit);
        return el_buf_printf(out, "%llu", (unsigned long long)v);
    }
    case EL_FIELD_INT: return el_buf_printf(out, "%lld", (long long)*(const int64_t *)(const void *)at);
    case EL_FIELD_HEX: return el_buf_printf(out, "\"%llx\"", (unsigned long long)*(const uint64_t *)(const void *)at);
    case EL_FIELD_BOOL: return el_buf_puts(out, *(const bool *)(const void *)at ? "true" : "false");
    case EL_FIELD_REAL: return el_buf_printf(out, "%.15g", *(const double *)(const void *)at);
    case EL_FIELD_STR: break;
    }
    const char *text = *(const char *const *)(const void *)at;
    return fields_put_string(out, text ? text : "", f->limit);
}

/* Nothing is said by 0, "" and false, where they may be missing. */
static bool is_silent(const struct el_field *f, const char *at)
{
    int class = f->kind == EL_FIELD_REAL ? fpclassify(*(const double *)(const void *)at) : FP_NORMAL;
    if (class == FP_NAN || class == FP_INFINITE) /* JSON has no word for them */
        return true;
    if (f->must == 2 && f->kind == EL_FIELD_INT)
        return *(const int64_t *)(const void *)at == -1;
    if (f->must)
        return false;
    if (f->kind == EL_FIELD_REAL)
        return class == FP_ZERO;
    if (f->kind == EL_FIELD_BOOL)
        return !*(const bool *)(const void *)at;
    if (f->kind != EL_FIELD_STR)
        return !*(const uint64_t *)(const void *)at;
    const char *text = *(const char *const *)(const void *)at;
    return !text || !*text;
}

int el_fields_put(struct el_buf *out, const struct el_field *fields, const void *from)
{
    const char *base = from;
    int bad = el_buf_puts(out, "{");
    bool first = true;
    for (const struct el_field *f = fields; f->name; f++) {
        if (is_silent(f, base + f->offset))
            continue;
        bad |= el_buf_printf(out, "%s\"%s\":", first ? "" : ",", f->name);
        bad |= fields_put_field(out, f, base + f->offset);
        first = false;
    }
    return bad | el_buf_puts(out, "}");
}

/* --- in --- */

static int refuse_field(const char *name, const struct el_field *f, const char *why, struct el_err *e)
{
    const char *kind = el_field_kind_name(f->kind);
    if (f->limit)
        return el_fail(e, EL_EXIT_PROTOCOL, "%s: \"%s\" %s (a %s up to %llu)", name, f->name, why, kind,
                       (unsigned long long)f->limit);
    return el_fail(e, EL_EXIT_PROTOCOL, "%s: \"%s\" %s (a %s)", name, f->name, why, kind);
}

static int fields_get_number(const char *name, const struct el_field *f, const json_t *v, char *at, struct el_err *e)
{
    if (!json_is_integer(v))
        return refuse_field(name, f, "is not a whole number", e);
    json_int_t n = json_integer_value(v);
    if (n < (f->kind == EL_FIELD_INT ? -1 : 0) || (n > 0 && (uint64_t)n > f->limit))
        return refuse_field(name, f, "is out of range", e);
    if (f->kind == EL_FIELD_INT)
        *(int64_t *)(void *)at = n;
    else
        *(uint64_t *)(void *)at = (uint64_t)n;
    return 0;
}

static int get_string(const char *name, const struct el_field *f, const json_t *v, char *at, struct el_err *e)
{
    if (!json_is_string(v))
        return refuse_field(name, f, "is not a string", e);
    const char *text = json_string_value(v);
    if (f->kind == EL_FIELD_STR) {
        if (json_string_length(v) > f->limit)
            return refuse_field(name, f, "is too long", e);
        *(const char **)(void *)at = text;
        return 0;
    }
    const char *end = text;
    if (!scan_hex(&end, (uint64_t *)(void *)at) || *end || end - text > 16)
        return refuse_field(name, f, "is not 1 to 16 hexadecimal digits", e);
    return 0;
}

static int get_field(const char *name, const struct el_field *f, const json_t *v, char *base, struct el_err *e)
{
    char *at = base + f->offset;
    if (!v && f->must == 1)
        return refuse_field(name, f, "is missing", e);
    if (f->must == 2 && f->kind == EL_FIELD_INT)
        *(int64_t *)(void *)at = -1;
    if (f->must == 2 && f->kind == EL_FIELD_REAL)
        *(double *)(void *)at = NAN;
    if (f->kind == EL_FIELD_STR)
        *(const char **)(void *)at = "";
    if (!v)
        return 0;
    if (f->kind == EL_FIELD_NUM || f->kind == EL_FIELD_INT)
        return fields_get_number(name, f, v, at, e);
    if (f->kind == EL_FIELD_STR || f->kind == EL_FIELD_HEX)
        return get_string(name, f, v, at, e);
    if (f->kind == EL_FIELD_REAL) {
        if (!json_is_number(v))
            return refuse_field(name, f, "is not a number", e);
        *(double *)(void *)at = json_number_value(v);
        return 0;
    }
    if (!json_is_boolean(v))
        return refuse_field(name, f, "is neither true nor false", e);
    *(bool *)(void *)at = json_is_true(v);
    return 0;
}

int el_fields_get(const char *name, const struct el_field *fields, const char *text, size_t n,
                  struct el_fields_limit limit, void *to, void **tree, struct el_err *e)
{
    *tree = NULL;
    if (!json_limit_holds(text, n, limit.values_max, limit.depth_max))
        return el_fail(e, EL_EXIT_PROTOCOL, "%s: more than %u values, or nested deeper than %u", name, limit.values_max,
                       limit.depth_max);
    json_error_t where;
    json_t *object = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
    if (!object)
        return el_fail(e, EL_EXIT_PROTOCOL, "%s: not JSON at byte %d: %s", name, where.position, where.text);
    *tree = object;
    if (!json_is_object(object))
        return el_fail(e, EL_EXIT_PROTOCOL, "%s: JSON, but not an object", name);
    for (const struct el_field *f = fields; f->name; f++)
        if (get_field(name, f, json_object_get(object, f->name), to, e) < 0)
            return -1;
    return 0;
}

void el_fields_release(void **tree)
{
    json_decref(*tree);
    *tree = NULL;
}
