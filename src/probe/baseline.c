#include "probe/baseline.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"
#include "util/json_limit.h"
#include "util/parse.h"

enum { VERSION = 1, VALUES_MAX = 512, DEPTH_MAX = 3 };

/* Not the ports that are active: one that is down is what the probe looks for. */
static bool is_key(enum fact f)
{
    return (fact_rows[f].kind == FACT_KIND_HARDWARE || fact_rows[f].kind == FACT_KIND_SIZE) && f != FACT_IB_PORTS;
}

int baseline_encode(const struct baseline *b, struct el_buf *out)
{
    const char *comma = "";
    el_buf_printf(out, "{\n  \"baseline\": %d,\n  \"hardware\": {", VERSION);
    for (unsigned i = 0; i < FACTS; i++) {
        if (!is_key((enum fact)i) || !b->facts.v[i][0])
            continue;
        el_buf_printf(out, "%s\n    \"%s\": ", comma, fact_rows[i].name);
        text_json(out, b->facts.v[i], strlen(b->facts.v[i]));
        comma = ",";
    }
    el_buf_puts(out, "\n  },\n  \"metrics\": {");
    comma = "";
    for (unsigned m = 0; m < METRIC_COUNT; m++) {
        if (!b->milli[m] || metric_info((enum metric)m)->floor_milli < 0)
            continue;
        el_buf_printf(out, "%s\n    \"%s\": %u.%03u", comma, metric_info((enum metric)m)->name, b->milli[m] / 1000,
                      b->milli[m] % 1000);
        comma = ",";
    }
    el_buf_puts(out, "\n  }\n}\n");
    return out->full ? -1 : 0;
}

static int take_facts(struct baseline *b, json_t *hardware, struct el_err *e)
{
    const char *key;
    json_t *v;
    json_object_foreach(hardware, key, v)
    {
        if (!json_is_string(v))
            return el_fail(e, EL_EXIT_CONFIG, "\"hardware\": every value is a string");
        facts_set(&b->facts, key, json_string_value(v));
    }
    return 0;
}

static int take_metrics(struct baseline *b, json_t *metrics, struct el_err *e)
{
    const char *key;
    json_t *v;
    json_object_foreach(metrics, key, v)
    {
        enum metric m = metric_find(key, strlen(key));
        if (!json_is_number(v) || !(json_number_value(v) > 0))
            return el_fail(e, EL_EXIT_CONFIG, "\"metrics\": every value is a number above 0");
        if (m < METRIC_COUNT)
            b->milli[m] = metric_milli(json_number_value(v));
    }
    return 0;
}

static int baseline_take_tree(struct baseline *b, json_t *tree, struct el_err *e)
{
    json_t *version = json_object_get(tree, "baseline"), *hardware = json_object_get(tree, "hardware"),
           *metrics = json_object_get(tree, "metrics");
    if (!json_is_integer(version) || !json_is_object(hardware) || !json_is_object(metrics))
        return el_fail(e, EL_EXIT_CONFIG, "not a baseline: `elrun probe --save-baseline=FILE` makes one");
    if (json_integer_value(version) != VERSION)
        return el_fail(e, EL_EXIT_CONFIG, "a baseline of form %lld; this elrun knows form %d",
                       (long long)json_integer_value(version), VERSION);
    return take_facts(b, hardware, e) || take_metrics(b, metrics, e) ? -1 : 0;
}

int baseline_decode(struct baseline *b, const char *text, size_t n, struct el_err *e)
{
    json_error_t where;
    *b = (struct baseline){.milli = {0}};
    if (n > BASELINE_FILE_MAX || !json_limit_holds(text, n, VALUES_MAX, DEPTH_MAX))
        return el_fail(e, EL_EXIT_CONFIG, "more than a baseline can be");
    json_t *tree = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
    if (!tree)
        return el_fail(e, EL_EXIT_CONFIG, "line %d: not JSON: %.120s", where.line, where.text);
    int bad = baseline_take_tree(b, tree, e);
    json_decref(tree);
    return bad;
}

static const char reference[] = "reference_";

int baseline_lines(const struct baseline *b, struct el_buf *out)
{
    int bad = 0;
    for (unsigned m = 0; m < METRIC_COUNT; m++) {
        char name[64], value[16];
        struct probe_wire w;
        if (!b->milli[m])
            continue;
        wire_init(&w, WIRE_FACT);
        snprintf(name, sizeof name, "%s%s", reference, metric_info((enum metric)m)->name);
        snprintf(value, sizeof value, "%u", b->milli[m]);
        w.u.fact.name = name;
        w.u.fact.value = value;
        bad |= wire_encode(&w, out);
    }
    return bad ? -1 : 0;
}

bool baseline_take(const struct probe_wire *w, uint32_t milli[METRIC_COUNT])
{
    const size_t n = sizeof reference - 1;
    uint64_t value;
    if (w->type != WIRE_FACT || strncmp(w->u.fact.name, reference, n) != 0)
        return false;
    enum metric m = metric_find(w->u.fact.name + n, strlen(w->u.fact.name + n));
    if (m != METRIC_COUNT && !el_parse_u64(w->u.fact.value, &value) && value && value <= UINT32_MAX &&
        (!milli[m] || metric_worse(m, (uint32_t)value, milli[m])))
        milli[m] = (uint32_t)value;
    return true;
}

static bool same_size(const char *a, const char *b)
{
    uint64_t x, y;
    if (el_parse_u64(a, &x) || el_parse_u64(b, &y) || x > UINT32_MAX || y > UINT32_MAX)
        return strcmp(a, b) == 0;
    uint64_t more = x > y ? x : y;
    return (x > y ? x - y : y - x) * 20 <= more;
}

int baseline_fits(const struct baseline *b, const struct facts *here, struct el_err *e)
{
    for (unsigned i = 0; i < FACTS; i++) {
        const char *then = b->facts.v[i], *now = here->v[i];
        if (!is_key((enum fact)i) || !then[0] || !now[0])
            continue;
        bool same = fact_rows[i].kind == FACT_KIND_SIZE ? same_size(then, now) : strcmp(then, now) == 0;
        if (!same)
            return el_fail(e, EL_EXIT_CONFIG, "the baseline is of other hardware: %s: %s there, %s here",
                           fact_rows[i].words, then, now);
    }
    return 0;
}
