#include "event/event_read.h"

#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "util/text.h"
#include "util/array.h"
#include "util/json_limit.h"

enum { VALUES_MAX = 1024, DEPTH_MAX = 8 };

enum event_read_kind { KIND_NUM, KIND_OPT, KIND_STR, KIND_FLAG, KIND_OBJ };

struct event_read_field {
    const char *name;
    enum event_read_kind kind;
    size_t offset;
};

#define F(T, field_kind, field) {#field, KIND_##field_kind, offsetof(struct T, field)},
#define X(NAME, name)                                                                                                  \
    static const struct event_read_field name##_fields[] = {EVENT_##name##_FIELDS(F, event_##name){NULL, KIND_NUM, 0}};
EVENT_OWN(X)
X(NOTE, note)
#undef X
#undef F

static const struct event_read_field *const fields_of[] = {
#define X(NAME, name) [EVENT_##NAME] = name##_fields,
    EVENT_OWN(X)
#undef X
#define X(NAME, name) [EVENT_NOTE_##NAME] = note_fields,
        NOTE_LIST(X)
#undef X
};
static_assert(COUNT_OF(fields_of) == EVENT_TYPES, "every event has its fields");

/* --- time --- */

/* So many digits at *at; -1 if they are none. */
static int64_t event_read_digits(const char **at, unsigned n)
{
    int64_t v = 0;
    for (; n > 0; n--, (*at)++) {
        if (**at < '0' || **at > '9')
            return -1;
        v = 10 * v + (**at - '0');
    }
    return v;
}

/* Days since 1970 of a date; the year begins in March, so that the odd day comes last. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t y = year - (month <= 2), m = (month + 9) % 12;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

int64_t event_time_parse(const char *text)
{
    static const struct {
        unsigned digits;
        int64_t least, most;
        char behind;
    } part[] = {{4, 1970, 9999, '-'}, {2, 1, 12, '-'}, {2, 1, 31, 'T'},    {2, 0, 23, ':'},
                {2, 0, 59, ':'},      {2, 0, 59, '.'}, {6, 0, 999999, 'Z'}};
    int64_t v[COUNT_OF(part)];
    for (size_t i = 0; i < COUNT_OF(part); i++) {
        v[i] = event_read_digits(&text, part[i].digits);
        if (v[i] < part[i].least || v[i] > part[i].most || *text++ != part[i].behind)
            return -1;
    }
    return *text ? -1 : (((days_of(v[0], v[1], v[2]) * 24 + v[3]) * 60 + v[4]) * 60 + v[5]) * 1000000 + v[6];
}

/* --- one line --- */

/* A string of the tree in a form that may be printed, in one line; NULL for another kind. */
static const char *event_read_text_of(struct event_read *r, const json_t *v)
{
    if (!json_is_string(v))
        return NULL;
    const char *s = json_string_value(v);
    size_t at = r->texts.len, n = json_string_length(v);
    if (3 * n + 1 > r->texts.cap - at || text_clean(&r->texts, s, n) || el_buf_put(&r->texts, "", 1))
        return NULL;
    for (char *line = r->texts.v + at; (line = strchr(line, '\n'));)
        *line = ' ';
    return r->texts.v + at;
}

static int event_read_append(const char *bytes, size_t n, void *buf)
{
    return el_buf_put(buf, bytes, n);
}

static const char *object_of(struct event_read *r, const json_t *v)
{
    size_t at = r->texts.len;
    if (!json_is_object(v) || json_dump_callback(v, event_read_append, &r->texts, JSON_COMPACT) ||
        el_buf_put(&r->texts, "", 1))
        return NULL;
    return r->texts.v + at;
}

static uint64_t event_read_number_of(const json_t *v)
{
    json_int_t i = json_is_integer(v) ? json_integer_value(v) : 0;
    return i > 0 ? (uint64_t)i : 0;
}

static void event_read_take(struct event_read *r, const struct event_read_field *f, const json_t *v)
{
    void *at = (char *)&r->event.u + f->offset;
    switch (f->kind) {
    case KIND_NUM: *(uint64_t *)at = event_read_number_of(v); break;
    case KIND_OPT:
        *(int64_t *)at = json_is_integer(v) && json_integer_value(v) >= 0 ? json_integer_value(v) : -1;
        break;
    case KIND_STR: *(const char **)at = event_read_text_of(r, v); break;
    case KIND_FLAG: *(bool *)at = json_is_true(v); break;
    case KIND_OBJ: *(const char **)at = object_of(r, v); break;
    }
}

static bool find_type(const char *name, enum event_type *type)
{
    for (unsigned t = 0; name && t < EVENT_TYPES; t++)
        if (strcmp(event_name((enum event_type)t), name) == 0) {
            *type = (enum event_type)t;
            return true;
        }
    return false;
}

static enum event_line event_read_read_tree(struct event_read *r, const json_t *o)
{
    struct event *ev = &r->event;
    const char *name = json_string_value(json_object_get(o, "event"));
    const char *when = json_string_value(json_object_get(o, "time"));
    ev->wall_usec = when ? event_time_parse(when) : -1;
    if (!json_is_integer(json_object_get(o, "v")) || !name || ev->wall_usec < 0)
        return EVENT_LINE_FOREIGN;
    if (json_integer_value(json_object_get(o, "v")) != EVENT_VERSION || !find_type(name, &ev->type))
        return EVENT_LINE_UNKNOWN;
    const char *source = json_string_value(json_object_get(o, "source"));
    ev->source = source && strcmp(source, "coordinator") == 0 ? EVENT_COORDINATOR : EVENT_AGENT;
    ev->mono = event_read_number_of(json_object_get(o, "mono_us"));
    ev->round = event_read_number_of(json_object_get(o, "round"));
    ev->run_id = event_read_text_of(r, json_object_get(o, "run_id"));
    ev->host = event_read_text_of(r, json_object_get(o, "host"));
    for (const struct event_read_field *f = fields_of[ev->type]; f->name; f++)
        event_read_take(r, f, json_object_get(o, f->name));
    return EVENT_LINE_READ;
}

enum event_line event_decode(const char *line, size_t n, struct event_read *out)
{
    memset(out, 0, sizeof *out);
    out->texts = EL_BUF_INIT(NULL, 0);
    if (n > EVENT_LINE_MAX || !n || line[0] != '{' || !json_limit_holds(line, n, VALUES_MAX, DEPTH_MAX))
        return EVENT_LINE_FOREIGN;
    /* Cleaning makes a text at most three times as long, and printing a number ("1e16") four times: all of them have
     * room from the beginning, since pointers to them are kept. */
    if (!el_buf_reserve(&out->texts, 5 * n + 64))
        return EVENT_LINE_FOREIGN;
    out->texts.max = out->texts.cap;
    json_t *o = json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL);
    enum event_line what = json_is_object(o) ? event_read_read_tree(out, o) : EVENT_LINE_FOREIGN;
    json_decref(o);
    if (what != EVENT_LINE_READ)
        event_release(out);
    return what;
}

void event_release(struct event_read *r)
{
    el_buf_free(&r->texts);
}

double event_number(const char *object, const char *name)
{
    json_t *o = object ? json_loads(object, 0, NULL) : NULL;
    double v = json_number_value(json_object_get(o, name));
    json_decref(o);
    return v;
}
