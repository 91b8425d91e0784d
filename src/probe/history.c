#include "probe/history.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/array.h"
#include "util/fields.h"

enum { VALUES_MAX = 64, DEPTH_MAX = 4 };

#define LINE_FIELDS(F, T)                                                                                              \
    F(T, NUM, time, INT64_MAX, 1)                                                                                      \
    F(T, STR, node, HISTORY_NODE_MAX, 1)                                                                               \
    F(T, STR, verdict, 16, 1)                                                                                          \
    F(T, STR, reason, HISTORY_REASON_MAX, 0)

struct history_line {
    LINE_FIELDS(EL_FIELD_MEMBER, )
};
static const struct el_field line_fields[] = {LINE_FIELDS(EL_FIELD_ROW, history_line) EL_FIELD_END};

static void history_copy(char *to, size_t room, const char *from)
{
    size_t n = 0;
    for (; from[n] && n + 1 < room; n++)
        to[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : '?';
    to[n] = 0;
}

struct history_entry history_entry(uint64_t time_s, const char *node, bool bad, const char *reason)
{
    struct history_entry h = {.time_s = time_s, .bad = bad};
    history_copy(h.node, sizeof h.node, node);
    history_copy(h.reason, sizeof h.reason, reason);
    return h;
}

int history_encode(const struct history_entry *h, struct el_buf *out)
{
    size_t start = out->len;
    struct history_line line = {
        .time = h->time_s, .node = h->node, .verdict = h->bad ? "bad" : "good", .reason = h->reason};
    if (el_fields_put(out, line_fields, &line) == 0 && el_buf_puts(out, "\n") == 0)
        return 0;
    out->len = start;
    return -1;
}

void history_add(struct history *all, const struct history_entry *h)
{
    assert(all->n <= HISTORY_MAX);
    if (all->n == HISTORY_MAX)
        memmove(all->v, all->v + 1, --all->n * sizeof all->v[0]);
    all->v[all->n++] = *h;
}

static bool parse_line(const char *text, size_t n, struct history_entry *h)
{
    static const struct el_fields_limit limit = {VALUES_MAX, DEPTH_MAX};
    struct history_line line;
    void *tree = NULL;
    bool good = el_fields_get("probe", line_fields, text, n, limit, &line, &tree, NULL) == 0;
    bool bad = good && strcmp(line.verdict, "bad") == 0;
    good = good && (bad || strcmp(line.verdict, "good") == 0);
    if (good)
        *h = history_entry(line.time, line.node, bad, line.reason);
    el_fields_release(&tree);
    return good;
}

void history_parse(struct history *all, const char *text, size_t n)
{
    for (const char *end = n ? text + n : text; text < end;) {
        struct history_entry h;
        const char *nl = memchr(text, '\n', (size_t)(end - text));
        size_t len = nl ? (size_t)(nl - text) : (size_t)(end - text);
        if (len && nl && parse_line(text, len, &h))
            history_add(all, &h);
        else if (len)
            all->broken++;
        text += len + 1;
    }
}

bool history_strange(const struct history *all, const char *folder, char *to, size_t room)
{
    snprintf(to, room, "%.300s/" HISTORY_FILE ": %u line%s and %s left aside", folder, all->broken,
             all->broken == 1 ? " is no verdict of a probe" : "s are no verdicts of probes",
             all->broken == 1 ? "is" : "are");
    return all->broken > 0;
}

static void put_age(struct el_buf *out, uint64_t age_s)
{
    static const struct {
        unsigned span_s;
        const char *one, *many;
    } units[] = {{86400, "day", "days"}, {3600, "hour", "hours"}, {60, "minute", "minutes"}};
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        uint64_t count = age_s / units[i].span_s;
        if (count >= 2 || (count == 1 && i == COUNT_OF(units) - 1)) { /* "26 hours" says more than "1 day" */
            el_buf_printf(out, "%llu %s ago", (unsigned long long)count, count == 1 ? units[i].one : units[i].many);
            return;
        }
    }
    el_buf_puts(out, "just now");
}

unsigned history_text(const struct history *all, const char *node, uint64_t now_s, struct el_buf *out)
{
    char name[HISTORY_NODE_MAX + 1];
    unsigned bad = 0, probes = 0;
    const struct history_entry *newest = NULL;
    history_copy(name, sizeof name, node);
    for (unsigned i = 0; i < all->n; i++) {
        const struct history_entry *h = &all->v[i];
        if (h->time_s > now_s || now_s - h->time_s > HISTORY_SPAN_S || strcmp(h->node, name) != 0)
            continue;
        probes++;
        bad += h->bad;
        if (h->bad && (!newest || h->time_s >= newest->time_s))
            newest = h;
    }
    if (!newest)
        return 0;
    el_buf_printf(out, "failed %u of %u %s within 7 days, last ", bad, probes, probes == 1 ? "probe" : "probes");
    put_age(out, now_s - newest->time_s);
    if (newest->reason[0])
        el_buf_printf(out, ": %s", newest->reason);
    return bad;
}

static const char line_name[] = "history";

void history_line(const char *text, struct probe_wire *w)
{
    wire_init(w, WIRE_FACT);
    w->u.fact.name = line_name;
    w->u.fact.value = text;
}

bool history_take(const struct probe_wire *w, char *to, size_t room)
{
    if (w->type != WIRE_FACT || strcmp(w->u.fact.name, line_name) != 0)
        return false;
    wire_text(to, room, w->u.fact.value);
    return true;
}
