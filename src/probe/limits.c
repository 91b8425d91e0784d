#include "probe/limits.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/json_limit.h"
#include "util/opt.h"
#include "util/parse.h"

enum { VALUES_MAX = 1024, DEPTH_MAX = 2, NAME_ROOM = 64 };

/* --- --checks ----------------------------------------------------------------------------------------------------- */

static int unknown(const char *name, const char *near, struct el_err *e)
{
    char shown[EL_SHOW_MAX];
    el_show(name, shown);
    if (near)
        return el_fail(e, EL_EXIT_USAGE, "check \"%s\" is not known; did you mean %s?", shown, near);
    return el_fail(e, EL_EXIT_USAGE, "check \"%s\" is not known; `elrun help checks` lists them", shown);
}

/* The probe's own findings (a check that hangs) are not for choosing. */
static void set_all(struct check_conf *c, bool on)
{
    for (unsigned i = 0; i < CHECKS; i++)
        c->on[i] = on || check_rows[i].group == CHECK_GROUP_PROBE;
}

static int set_one(struct check_conf *c, const char *name, bool on, struct el_err *e)
{
    int check = check_find(name), group = check_find_group(name);
    if (strcmp(name, "all") == 0) {
        set_all(c, on);
        return 0;
    }
    if (check < 0 && group < 0)
        return unknown(name, check_nearest(name), e);
    if (group == CHECK_GROUP_PROBE || (check >= 0 && check_rows[check].group == CHECK_GROUP_PROBE))
        return el_fail(e, EL_EXIT_USAGE, "%s is always there: it is about the checks themselves", name);
    for (int i = 0; i < CHECKS; i++)
        if (i == check || (int)check_rows[i].group == group)
            c->on[i] = on;
    return 0;
}

int checks_parse(struct check_conf *c, const char *list, struct el_err *e)
{
    const char *at = list;
    char name[NAME_ROOM];
    set_all(c, list[0] == '-');
    for (;;) {
        bool on = *at != '-';
        at += !on;
        const char *end = strchr(at, ',');
        size_t n = end ? (size_t)(end - at) : strlen(at);
        if (!n)
            return el_fail(e, EL_EXIT_USAGE,
                           "want names of checks or groups with a comma between them, such as gpu,ib,-ib_state");
        snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : (int)sizeof name - 1, at);
        if (set_one(c, name, on, e))
            return -1;
        if (!end)
            return 0;
        at = end + 1;
    }
}

/* --- --limits ----------------------------------------------------------------------------------------------------- */

static int limits_take_text(struct check_conf *c, int check, const char *text, struct el_err *e)
{
    uint64_t bytes;
    const struct check_row *row = &check_rows[check];
    char shown[EL_SHOW_MAX];
    if (strcmp(text, "unlimited") == 0) {
        c->limit[check] = CHECK_UNLIMITED;
    } else if (row->unit != CHECK_UNIT_BYTES) {
        return el_fail(e, EL_EXIT_USAGE, "%s: \"%s\": want a number%s%s", row->name, el_show(text, shown),
                       row->unit == CHECK_UNIT_NONE ? "" : ", in ", check_unit_name(row->unit));
    } else if (el_parse_size(text, &bytes)) {
        return el_fail(e, EL_EXIT_USAGE, "%s: \"%s\": want a number of bytes, or a text such as \"8GiB\"", row->name,
                       el_show(text, shown));
    } else {
        c->limit[check] = (double)bytes;
    }
    c->own[check] = false;
    return 0;
}

static int take_limit(struct check_conf *c, int check, const json_t *v, struct el_err *e)
{
    double number = json_number_value(v);
    if (json_is_string(v))
        return limits_take_text(c, check, json_string_value(v), e);
    if (json_is_boolean(v) && check_rows[check].unit == CHECK_UNIT_YES)
        number = json_is_true(v) ? 1 : 0;
    else if (!json_is_number(v) || !isfinite(number) || number < 0)
        return el_fail(e, EL_EXIT_USAGE, "%s: the limit is a number, 0 or more", check_rows[check].name);
    c->limit[check] = number;
    c->own[check] = false;
    return 0;
}

static int take_severity(const char *name, const json_t *v, enum finding_state *to, struct el_err *e)
{
    int state = json_is_string(v) ? finding_state_find(json_string_value(v)) : -1;
    if (state != FINDING_INFO && state != FINDING_WARN && state != FINDING_BAD)
        return el_fail(e, EL_EXIT_USAGE, "%s: \"severity\" is \"info\", \"warn\" or \"bad\"", name);
    *to = (enum finding_state)state;
    return 0;
}

/* The limit in {"limit": …, "severity": …}, or v itself; NULL: none is in it.  -1: something else is. */
static int open_object(const char *name, json_t *v, json_t **limit, enum finding_state *severity, struct el_err *e)
{
    const char *key;
    json_t *of;
    char shown[EL_SHOW_MAX];
    *limit = json_is_object(v) ? NULL : v;
    json_object_foreach(v, key, of)
    {
        if (strcmp(key, "limit") == 0)
            *limit = of;
        else if (strcmp(key, "severity") != 0)
            return el_fail(e, EL_EXIT_USAGE, "%s: \"%s\" is not known; there are \"limit\" and \"severity\"", name,
                           el_show(key, shown));
        else if (take_severity(name, of, severity, e))
            return -1;
    }
    return 0;
}

static const char *metric_name(const void *ctx, size_t i)
{
    (void)ctx;
    return metric_info((enum metric)i)->name;
}

/* What a node measures alone has no limit of its own. */
static int limits_take_metric(struct check_conf *c, const char *name, json_t *v, struct el_err *e)
{
    enum metric m = metric_find(name, strlen(name));
    json_t *limit;
    if (m == METRIC_COUNT) {
        const char *near = check_nearest(name);
        return unknown(name, near ? near : opt_nearest(name, metric_name, NULL, METRIC_COUNT), e);
    }
    if (metric_info(m)->of != METRIC_OF_NODE)
        return el_fail(e, EL_EXIT_USAGE, "%s is measured in pairs: limits are for what a node measures alone", name);
    if (open_object(name, v, &limit, &c->metric_severity[m], e))
        return -1;
    if (limit && (!json_is_number(limit) || !(json_number_value(limit) > 0)))
        return el_fail(e, EL_EXIT_USAGE, "%s: the limit is a number above 0, in %s", name, metric_info(m)->unit);
    if (limit)
        c->metric_milli[m] = metric_milli(json_number_value(limit));
    return 0;
}

static int limits_take(struct check_conf *c, const char *name, json_t *v, struct el_err *e)
{
    int check = check_find(name);
    json_t *limit;
    if (check < 0 && check_find_group(name) >= 0)
        return el_fail(e, EL_EXIT_USAGE, "\"%s\" is a group: limits are for single checks", name);
    if (check < 0)
        return limits_take_metric(c, name, v, e);
    if (json_is_string(v) && strcmp(json_string_value(v), "off") == 0) {
        c->on[check] = false;
        return 0;
    }
    if (open_object(check_rows[check].name, v, &limit, &c->severity[check], e))
        return -1;
    return limit ? take_limit(c, check, limit, e) : 0;
}

int limits_parse(struct check_conf *c, const char *text, size_t n, struct el_err *e)
{
    json_error_t where;
    if (n > LIMITS_FILE_MAX || !json_limit_holds(text, n, VALUES_MAX, DEPTH_MAX))
        return el_fail(e, EL_EXIT_USAGE, "more than limits can be");
    json_t *tree = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where), *v;
    const char *key;
    int bad = 0;
    if (!tree)
        return el_fail(e, EL_EXIT_USAGE, "line %d: not JSON: %.120s", where.line, where.text);
    if (!json_is_object(tree))
        bad = el_fail(e, EL_EXIT_USAGE, "want one JSON object: {\"ib_rate\": 400, …}");
    json_object_foreach(tree, key, v) if (!bad) bad = limits_take(c, key, v, e);
    json_decref(tree);
    return bad ? -1 : 0;
}
