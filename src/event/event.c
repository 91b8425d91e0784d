#include "event/event.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"
#include "util/array.h"

enum event_kind { KIND_NUM, KIND_OPT, KIND_STR, KIND_FLAG, KIND_OBJ };

static const char *const kind_names[] = {"number", "number or null", "string or null", "boolean", "object or null"};

struct event_field {
    const char *name;
    enum event_kind kind;
    size_t offset; /* in the event's struct; all of them begin where the union does */
};

/* A last row with name NULL ends each. */
#define F(T, field_kind, field) {#field, KIND_##field_kind, offsetof(struct T, field)},
#define X(NAME, name)                                                                                                  \
    static const struct event_field name##_fields[] = {EVENT_##name##_FIELDS(F, event_##name){NULL, KIND_NUM, 0}};
EVENT_OWN(X)
X(NOTE, note)
#undef X
#undef F

static const struct {
    const char *name;
    const struct event_field *fields;
} rows[] = {
#define X(NAME, name) [EVENT_##NAME] = {#name, name##_fields},
    EVENT_OWN(X)
#undef X
#define X(NAME, name) [EVENT_NOTE_##NAME] = {name, note_fields},
        NOTE_LIST(X)
#undef X
};

static const struct {
    const char *name, *kind;
} common[] = {
    {"v", "number"},      {"event", "string"}, {"time", "string"},   {"mono_us", "number"},
    {"run_id", "string"}, {"host", "string"},  {"source", "string"}, {"round", "number or null"},
};

static_assert(COUNT_OF(rows) == EVENT_TYPES, "every event has its row");

const char *event_name(enum event_type type)
{
    assert(type < EVENT_TYPES);
    return rows[type].name;
}

const char *event_field(enum event_type type, unsigned i, const char **kind)
{
    for (unsigned k = 0; rows[type].fields[k].name; k++)
        if (k == i) {
            *kind = kind_names[rows[type].fields[k].kind];
            return rows[type].fields[k].name;
        }
    return NULL;
}

const char *event_common(unsigned i, const char **kind)
{
    if (i >= COUNT_OF(common))
        return NULL;
    *kind = common[i].kind;
    return common[i].name;
}

/* --- time --- */

/* Days since 1970 to a date of the Gregorian calendar; years begin in March, so that the odd day comes last. */
static void event_date_of(int64_t days, unsigned *year, unsigned *month, unsigned *day)
{
    uint64_t n = (uint64_t)days + 719468; /* since 0000-03-01 */
    uint64_t era = n / 146097, of_era = n % 146097;
    uint64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * years + years / 4 - years / 100);
    uint64_t m = (5 * of_year + 2) / 153; /* 0 = March */
    *day = (unsigned)(of_year - (153 * m + 2) / 5 + 1);
    *month = (unsigned)(m < 10 ? m + 3 : m - 9);
    *year = (unsigned)(years + era * 400 + (*month <= 2));
}

void event_time(int64_t wall_usec, char to[EVENT_TIME_SIZE])
{
    const int64_t last = 253402300799999999; /* 9999-12-31T23:59:59.999999Z */
    unsigned year, month, day;
    int64_t t = wall_usec < 0 ? 0 : wall_usec > last ? last : wall_usec, s = t / 1000000;
    event_date_of(s / 86400, &year, &month, &day);
    int n = snprintf(to, EVENT_TIME_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ", year % 10000, month % 13, day % 32,
                     (unsigned)(s / 3600 % 24), (unsigned)(s / 60 % 60), (unsigned)(s % 60), (unsigned)(t % 1000000));
    assert(n == EVENT_TIME_SIZE - 1);
}

/* --- one line --- */

/* At most EVENT_TEXT_MAX bytes of it, cut between characters. */
static int event_put_text(struct el_buf *out, const char *text)
{
    char cut[EVENT_TEXT_MAX + 1];
    size_t n = strnlen(text, EVENT_TEXT_MAX + 1);
    if (n <= EVENT_TEXT_MAX)
        return text_json(out, text, n);
    text_copy(cut, sizeof cut, text, n);
    return text_json(out, cut, strlen(cut));
}

static int event_put_string(struct el_buf *out, const char *name, const char *text)
{
    int bad = el_buf_printf(out, ",\"%s\":", name);
    return bad | (text ? event_put_text(out, text) : el_buf_puts(out, "null"));
}

static int event_put_field(struct el_buf *out, const struct event_field *f, const void *base, bool objects)
{
    const char *at = (const char *)base + f->offset;
    const char *object = f->kind == KIND_OBJ && objects ? *(const char *const *)(const void *)at : NULL;
    int64_t opt;
    uint64_t num;
    switch (f->kind) {
    case KIND_NUM:
        memcpy(&num, at, sizeof num);
        return el_buf_printf(out, ",\"%s\":%llu", f->name, (unsigned long long)num);
    case KIND_OPT:
        memcpy(&opt, at, sizeof opt);
        if (opt < 0)
            return el_buf_printf(out, ",\"%s\":null", f->name);
        return el_buf_printf(out, ",\"%s\":%lld", f->name, (long long)opt);
    case KIND_STR: return event_put_string(out, f->name, *(const char *const *)(const void *)at);
    case KIND_FLAG: return el_buf_printf(out, ",\"%s\":%s", f->name, *(const bool *)at ? "true" : "false");
    case KIND_OBJ: break;
    }
    return el_buf_printf(out, ",\"%s\":", f->name) | el_buf_puts(out, object ? object : "null");
}

static int event_put_line(struct el_buf *out, const struct event *ev, bool objects)
{
    static const char *const sources[] = {[EVENT_AGENT] = "agent", [EVENT_COORDINATOR] = "coordinator"};
    char when[EVENT_TIME_SIZE];
    event_time(ev->wall_usec, when);
    int bad = el_buf_printf(out, "{\"v\":%d,\"event\":\"%s\",\"time\":\"%s\",\"mono_us\":%llu", EVENT_VERSION,
                            event_name(ev->type), when, (unsigned long long)ev->mono);
    bad |= event_put_string(out, "run_id", ev->run_id ? ev->run_id : "");
    bad |= event_put_string(out, "host", ev->host ? ev->host : "");
    bad |= event_put_string(out, "source", sources[ev->source]);
    bad |= ev->round ? el_buf_printf(out, ",\"round\":%llu", (unsigned long long)ev->round)
                     : el_buf_puts(out, ",\"round\":null");
    for (const struct event_field *f = rows[ev->type].fields; f->name; f++)
        bad |= event_put_field(out, f, &ev->u, objects);
    return bad | el_buf_puts(out, "}\n");
}

int event_encode(const struct event *ev, struct el_buf *out)
{
    assert(ev->type < EVENT_TYPES);
    struct el_buf line = EL_BUF_INIT(out->mem, EVENT_LINE_MAX);
    int bad = event_put_line(&line, ev, true);
    if (bad) { /* without its objects no event comes near the limit */
        line.len = 0;
        line.full = 0;
        bad = event_put_line(&line, ev, false);
    }
    bad = bad || el_buf_put(out, line.v, line.len);
    el_buf_free(&line);
    return bad ? -1 : 0;
}
