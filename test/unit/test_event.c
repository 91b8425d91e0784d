/* Events: each of them once as a line that is valid JSON with exactly its fields, in UTF-8 whatever it was given; the
 * manual names every event and every field. */
#include "event/event.h"

#include <jansson.h>
#include <stdint.h>

#include "lib/tap.h"

static struct event filled(enum event_type type)
{
    struct event ev = {
        .type = type, .wall_usec = 1795000000123456, .mono = 42, .run_id = "job", .host = "node1", .round = 3};
    memset(&ev.u, 0, sizeof ev.u);
    return ev;
}

static json_t *parsed(const struct event *ev)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    json_error_t error;
    if (event_encode(ev, &b) < 0)
        return NULL;
    bool one_line = b.len && memchr(b.v, '\n', b.len) == b.v + b.len - 1;
    json_t *o = one_line ? json_loadb(b.v, b.len, JSON_REJECT_DUPLICATES, &error) : NULL;
    el_buf_free(&b);
    return o;
}

static bool is_kind(const json_t *v, const char *kind)
{
    if (strstr(kind, "null") && json_is_null(v))
        return true;
    return strncmp(kind, "number", 6) == 0    ? json_is_integer(v)
           : strncmp(kind, "string", 6) == 0  ? json_is_string(v)
           : strncmp(kind, "boolean", 7) == 0 ? json_is_boolean(v)
                                              : json_is_object(v);
}

static void test_each(void)
{
    for (enum event_type t = 0; t < EVENT_TYPES; t++) {
        struct event ev = filled(t);
        json_t *o = parsed(&ev);
        const char *name, *kind;
        unsigned fields = 0, bad = 0;
        for (unsigned i = 0; (name = event_common(i, &kind)); i++, fields++)
            bad += !is_kind(json_object_get(o, name), kind);
        for (unsigned i = 0; (name = event_field(t, i, &kind)); i++, fields++)
            bad += !is_kind(json_object_get(o, name), kind);
        if (!ok(o && !bad && json_object_size(o) == fields, event_name(t)))
            printf("# %u of %u fields are wrong\n", bad, fields);
        for (enum event_type other = 0; other < t; other++)
            if (strcmp(event_name(t), event_name(other)) == 0)
                ok(0, "names are unique");
        json_decref(o);
    }
    is_str(event_name(EVENT_OF_NOTE(NOTE_LOST)), "node_lost", "what the coordinator says keeps its name");
    is_str(event_name(EVENT_OF_NOTE(NOTE_ENDED)), "job_ended", "to the last");
}

static void test_values(void)
{
    struct event ev = filled(EVENT_WORKER_ENDED);
    ev.u.worker_ended = (struct event_worker_ended){
        .rank = UINT64_MAX >> 1, .exit_code = -1, .signal = 9, .signal_name = "SIGKILL", .stopped = true};
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    ok(event_encode(&ev, &b) == 0, "a worker's end");
    is_str(el_buf_cstr(&b),
           "{\"v\":1,\"event\":\"worker_ended\",\"time\":\"2026-11-18T11:06:40.123456Z\",\"mono_us\":42,"
           "\"run_id\":\"job\",\"host\":\"node1\",\"source\":\"agent\",\"round\":3,\"rank\":9223372036854775807,"
           "\"local_rank\":0,\"pid\":0,\"exit_code\":null,\"signal\":9,\"signal_name\":\"SIGKILL\","
           "\"core_dumped\":false,\"stopped\":true,\"elapsed_us\":0}\n",
           "word by word");
    b.len = 0;
    ev.round = 0;
    ev.source = EVENT_COORDINATOR;
    ok(event_encode(&ev, &b) == 0 && strstr(el_buf_cstr(&b), "\"source\":\"coordinator\",\"round\":null,"), "no round");
    el_buf_free(&b);
}

static void test_texts(void)
{
    static char big[EVENT_LINE_MAX + 64];
    struct event ev = filled(EVENT_INCIDENT);
    ev.run_id = "a\"b\\c\n\x01\xff\xc3\xa9";
    ev.u.incident = (struct event_incident){.text = "\xed\xa0\x80 \x1b[31m", .record = "{\"a\":[1,2]}"};
    json_t *o = parsed(&ev);
    is_str(json_string_value(json_object_get(o, "run_id")), "a\"b\\c\n\x01\xef\xbf\xbd\xc3\xa9",
           "strings of strangers: quotes, control bytes, what is no UTF-8");
    ok(json_is_array(json_object_get(json_object_get(o, "record"), "a")), "an object is copied as it is");
    json_decref(o);

    for (size_t i = 0; i + 3 < sizeof big; i += 3)
        memcpy(big + i, "\xe2\x82\xac", 3);
    ev.u.incident.text = big;
    o = parsed(&ev);
    const char *text = json_string_value(json_object_get(o, "text"));
    ok(text && strlen(text) <= EVENT_TEXT_MAX && strlen(text) > EVENT_TEXT_MAX - 3, "a long text is cut");
    ok(text && strcmp(text + strlen(text) - 6, "\xe2\x82\xac\xe2\x80\xa6") == 0, "between characters, and says so");
    json_decref(o);

    memset(big, ' ', sizeof big - 1);
    big[0] = '{';
    big[sizeof big - 2] = '}';
    ev.u.incident.text = "x";
    ev.u.incident.record = big;
    o = parsed(&ev);
    ok(o && json_is_null(json_object_get(o, "record")), "a record that is too long for a line is left out");
    json_decref(o);
}

static void test_memory(void)
{
    struct event ev = filled(EVENT_AGENT_ENDED);
    for (long i = 0; i < 4; i++) {
        struct el_mem mem = EL_MEM_INIT(0);
        struct el_buf b = EL_BUF_INIT(&mem, 0);
        mem.fail_after = i;
        int got = event_encode(&ev, &b);
        ok(got == 0 ? b.len > 0 : b.len == 0, "without memory a line is whole or not there");
        el_buf_free(&b);
        is_num(mem.used_bytes, 0, "and nothing is leaked");
    }
}

static void test_time(void)
{
    static const struct {
        int64_t usec;
        const char *text;
    } v[] = {
        {0, "1970-01-01T00:00:00.000000Z"},
        {-5, "1970-01-01T00:00:00.000000Z"},
        {951782399999999, "2000-02-28T23:59:59.999999Z"},
        {951782400000000, "2000-02-29T00:00:00.000000Z"},
        {951868800000001, "2000-03-01T00:00:00.000001Z"},
        {1735689599000000, "2024-12-31T23:59:59.000000Z"},
        {4107542400000000, "2100-03-01T00:00:00.000000Z"},
        {INT64_MAX, "9999-12-31T23:59:59.999999Z"},
    };
    char text[EVENT_TIME_SIZE];
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        event_time(v[i].usec, text);
        is_str(text, v[i].text, "time");
    }
}

/* man/elrun-events.5 has one ".It Sy name" for each event and a line ".It Va field Pq kind" for each field. */
static void test_manual(void)
{
    static char page[256 << 10];
    char want[128];
    const char *name, *kind;
    FILE *f = fopen("man/elrun-events.5", "r");
    if (!ok(f, "the manual is there"))
        return;
    page[fread(page, 1, sizeof page - 1, f)] = 0;
    fclose(f);
    unsigned events = 0, missing = 0;
    for (enum event_type t = 0; t < EVENT_TYPES; t++) {
        snprintf(want, sizeof want, "\n.It Sy %s\n", event_name(t));
        const char *at = strstr(page, want);
        if (!ok(at, event_name(t)))
            continue;
        const char *end = strstr(at + 1, "\n.It Sy ");
        for (unsigned i = 0; (name = event_field(t, i, &kind)); i++) {
            /* Notes share their fields, which stand once in front of them. */
            bool note = t >= EVENT_NOTE_JOINED;
            snprintf(want, sizeof want, "\n.It Va %s Pq %s\n", name, kind);
            const char *found = strstr(note ? page : at, want);
            if (!found || (!note && end && found > end)) {
                missing++;
                printf("# %s: %s (%s) is missing\n", event_name(t), name, kind);
            }
        }
    }
    for (unsigned i = 0; (name = event_common(i, &kind)); i++) {
        snprintf(want, sizeof want, "\n.It Va %s Pq %s\n", name, kind);
        missing += !strstr(page, want);
    }
    is_num(missing, 0, "every field with its kind");
    for (const char *at = page; (at = strstr(at, "\n.It Sy ")); at++)
        events++;
    is_num(events, EVENT_TYPES, "and no event that does not exist");
}

int main(void)
{
    test_each();
    test_values();
    test_texts();
    test_memory();
    test_time();
    test_manual();
    return done();
}
