#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "probe/check.h"
#include "util/opt.h"

static const char *const unit_names[CHECK_UNITS] = {
#define X(id, name) name,
    CHECK_UNIT_LIST(X)
#undef X
};

const char *check_unit_name(enum check_unit u)
{
    assert(u < CHECK_UNITS);
    return unit_names[u];
}

static const char *check_text_bytes_text(double value, char *to)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
    unsigned u = 0;
    while (value >= 1024 && u + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        u++;
    }
    snprintf(to, CHECK_VALUE_MAX, value < 10 && u ? "%.1f %s" : "%.0f %s", value, units[u]);
    return to;
}

const char *check_value_text(enum check_unit u, double value, char *to)
{
    bool whole = value >= -9e15 && value <= 9e15 && value == (double)(long long)value;
    assert(u < CHECK_UNITS);
    if (value >= CHECK_UNLIMITED)
        snprintf(to, CHECK_VALUE_MAX, "unlimited");
    else if (u == CHECK_UNIT_YES)
        snprintf(to, CHECK_VALUE_MAX, "%s", value > 0 ? "yes" : "no");
    else if (u == CHECK_UNIT_BYTES)
        check_text_bytes_text(value, to);
    else
        snprintf(to, CHECK_VALUE_MAX, "%.*f%s%s",
                 whole                     ? 0
                 : value < 1 && value > -1 ? 3
                                           : 1,
                 value, u == CHECK_UNIT_NONE || u == CHECK_UNIT_COUNT ? "" : " ",
                 u == CHECK_UNIT_COUNT ? "" : unit_names[u]);
    return to;
}

const char *check_limit_text(enum check c, double limit, char *to)
{
    const struct check_row *row = &check_rows[c];
    size_t room = CHECK_LIMIT_MAX;
    char number[CHECK_VALUE_MAX];
    check_value_text(row->unit, limit, number);
    if (row->unit == CHECK_UNIT_YES || limit >= CHECK_UNLIMITED)
        snprintf(to, room, "%s", row->rule == CHECK_MIN || limit > 0 ? number : "no");
    else if (row->rule != CHECK_MIN && limit == 0) /* NOLINT: a limit is what somebody typed */
        snprintf(to, room, "none");
    else
        snprintf(to, room, "%s %s", row->rule == CHECK_MIN ? "at least" : "at most", number);
    return to;
}

void finding_text(const struct finding *f, struct el_buf *out)
{
    const struct check_row *row = &check_rows[f->check];
    char value[CHECK_VALUE_MAX], limit[CHECK_LIMIT_MAX];
    el_buf_printf(out, "%s%s%s: ", row->name, f->on[0] ? " of " : "", f->on);
    bool judged = f->state != FINDING_UNCHECKED && f->state != FINDING_UNDECIDED && f->has_value;
    if (!judged) {
        const char *word = f->state == FINDING_UNDECIDED   ? "undecided: "
                           : f->state == FINDING_UNCHECKED ? "not checked: "
                                                           : "";
        el_buf_printf(out, "%s%s", word, f->text);
        return;
    }
    if (row->rule == CHECK_GROWS && f->state == FINDING_OK) {
        el_buf_puts(out, "did not grow while the probe ran");
        return;
    }
    el_buf_printf(out, row->rule == CHECK_GROWS ? "grew by %s while the probe ran" : "%s",
                  check_value_text(row->unit, f->value, value));
    if (f->state >= FINDING_WARN || f->state == FINDING_INFO)
        el_buf_printf(out, ", %s expected", check_limit_text(f->check, f->limit, limit));
    if (f->text[0])
        el_buf_printf(out, " (%s)", f->text);
}

/* --- all of them, for the manual ---------------------------------------------------------------------------------- */

static void rule_text(const struct check_row *row, char *to, size_t room)
{
    static const char *const words[] = {[CHECK_MIN] = "below", [CHECK_MAX] = "above", [CHECK_GROWS] = "grows by over"};
    char number[CHECK_VALUE_MAX];
    check_value_text(row->unit, row->limit, number);
    if (row->limit < 0)
        snprintf(to, room, "%s its own limit", words[row->rule]);
    else if (row->unit == CHECK_UNIT_YES)
        snprintf(to, room, row->rule == CHECK_MIN ? "unless yes" : "if yes");
    else if (row->rule == CHECK_MIN && row->limit <= 0)
        snprintf(to, room, "no limit");
    else
        snprintf(to, room, "%s %s", words[row->rule], number);
}

void check_list_text(struct el_buf *out)
{
    enum { NAME_COLUMN = 2, WHAT_COLUMN = 53 };
    char rule[CHECK_VALUE_MAX + 32];
    for (unsigned g = 0; g < CHECK_GROUPS; g++) {
        el_buf_printf(out, "\n%s: ", check_groups[g].name);
        opt_wrap(out, check_groups[g].what, strlen(check_groups[g].name) + 2, NAME_COLUMN);
        for (unsigned i = 0; i < CHECKS; i++) {
            const struct check_row *row = &check_rows[i];
            if (row->group != g)
                continue;
            rule_text(row, rule, sizeof rule);
            el_buf_printf(out, "  %-20s %-4s  %-22s  ", row->name, finding_state_name(row->severity), rule);
            opt_wrap(out, row->what, WHAT_COLUMN, WHAT_COLUMN);
        }
    }
}
