#include "probe/check.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/array.h"
#include "util/opt.h"

const struct check_group_row check_groups[CHECK_GROUPS] = {
#define X(id, name, limit_s, again, alone, what) {name, limit_s, again, alone, what},
    CHECK_GROUP_LIST(X)
#undef X
};

const struct check_row check_rows[CHECKS] = {
#define X(id, name, group, unit, rule, limit, severity, what, advice)                                                  \
    {name, CHECK_GROUP_##group, CHECK_UNIT_##unit, CHECK_##rule, limit, FINDING_##severity, what, advice},
    CHECK_LIST(X)
#undef X
};

static const char *const state_names[FINDING_STATES] = {
    [FINDING_OK] = "ok",
    [FINDING_INFO] = "info",
    [FINDING_UNCHECKED] = "unchecked",
    [FINDING_UNDECIDED] = "undecided",
    [FINDING_WARN] = "warn",
    [FINDING_BAD] = "bad",
};

static bool check_same_name(const char *a, const char *b)
{
    for (; *a && (*a == '-' ? '_' : *a) == (*b == '-' ? '_' : *b); a++)
        b++;
    return !*a && !*b;
}

int check_find(const char *name)
{
    for (int i = 0; i < CHECKS; i++)
        if (check_same_name(name, check_rows[i].name))
            return i;
    return -1;
}

int check_find_group(const char *name)
{
    for (int i = 0; i < CHECK_GROUPS; i++)
        if (strcmp(check_groups[i].name, name) == 0)
            return i;
    return -1;
}

static const char *any_name(const void *ctx, size_t i)
{
    (void)ctx;
    return i < CHECKS ? check_rows[i].name : check_groups[i - CHECKS].name;
}

const char *check_nearest(const char *name)
{
    return opt_nearest(name, any_name, NULL, CHECKS + (size_t)CHECK_GROUPS);
}

const char *finding_state_name(enum finding_state s)
{
    assert(s < FINDING_STATES);
    return state_names[s];
}

int finding_state_find(const char *name)
{
    for (int i = 0; i < FINDING_STATES; i++)
        if (strcmp(state_names[i], name) == 0)
            return i;
    return -1;
}

/* --- what is wanted ----------------------------------------------------------------------------------------------- */

void check_conf_init(struct check_conf *c)
{
    for (unsigned i = 0; i < CHECKS; i++) {
        c->on[i] = true;
        c->own[i] = check_rows[i].limit < 0;
        c->limit[i] = check_rows[i].limit;
        c->severity[i] = check_rows[i].severity;
    }
    for (unsigned m = 0; m < METRIC_COUNT; m++) {
        c->metric_milli[m] = 0;
        c->metric_severity[m] = check_rows[CHECK_METRIC].severity;
    }
}

bool check_conf_group(const struct check_conf *c, enum check_group g)
{
    assert(g < CHECK_GROUPS);
    for (unsigned i = 0; i < CHECKS; i++)
        if (c->on[i] && check_rows[i].group == g && check_groups[g].limit_s)
            return true;
    return false;
}

/* --- findings ----------------------------------------------------------------------------------------------------- */

/* What comes from files of the kernel goes to terminals and into JSON. */
static void copy_plain(char *to, size_t room, const char *from)
{
    size_t n = 0;
    for (; from[n] && n + 1 < room; n++)
        to[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : '?';
    to[n] = 0;
}

static void __attribute__((format(printf, 2, 0))) check_say(struct finding *f, const char *fmt, va_list ap)
{
    char text[2 * FINDING_TEXT_MAX];
    vsnprintf(text, sizeof text, fmt, ap);
    copy_plain(f->text, sizeof f->text, text);
}

void finding_say(struct finding *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    check_say(f, fmt, ap);
    va_end(ap);
}

struct finding finding_value(enum check c, const char *on, double value)
{
    assert(c < CHECKS);
    struct finding f = {
        .check = c, .state = FINDING_OK, .has_value = true, .value = value, .limit = check_rows[c].limit};
    copy_plain(f.on, sizeof f.on, on);
    return f;
}

struct finding finding_unchecked(enum check c, const char *on, const char *fmt, ...)
{
    assert(c < CHECKS);
    struct finding f = {.check = c, .state = FINDING_UNCHECKED};
    va_list ap;
    copy_plain(f.on, sizeof f.on, on);
    va_start(ap, fmt);
    check_say(&f, fmt, ap);
    va_end(ap);
    return f;
}

static struct finding *find_same(struct findings *all, const struct finding *f)
{
    for (unsigned i = 0; i < all->n; i++)
        if (all->v[i].check == f->check && strcmp(all->v[i].on, f->on) == 0)
            return &all->v[i];
    return NULL;
}

static struct finding *least_grave(struct findings *all)
{
    struct finding *least = &all->v[0];
    for (unsigned i = 1; i < all->n; i++)
        if (all->v[i].state < least->state)
            least = &all->v[i];
    return least;
}

void findings_put(struct findings *all, const struct finding *f)
{
    struct finding *at = find_same(all, f);
    assert(all->n <= FINDINGS_MAX);
    if (!at && all->n < FINDINGS_MAX) {
        all->v[all->n++] = *f;
        return;
    }
    if (!at) {
        all->left_out++;
        at = least_grave(all);
    }
    if (f->state > at->state)
        *at = *f;
}

enum finding_state findings_worst(const struct findings *all)
{
    enum finding_state worst = FINDING_OK;
    for (unsigned i = 0; i < all->n; i++)
        if (all->v[i].state > worst)
            worst = all->v[i].state;
    return worst;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

static bool is_decided(const struct finding *f)
{
    return f->state == FINDING_UNCHECKED || f->state == FINDING_UNDECIDED || !f->has_value;
}

void check_judge(const struct check_conf *c, struct finding *f)
{
    assert(f->check < CHECKS);
    bool absent = f->state == FINDING_UNCHECKED && f->has_value;
    if (is_decided(f) && !absent)
        return;
    if (!c->own[f->check])
        f->limit = c->limit[f->check];
    bool wrong = check_rows[f->check].rule == CHECK_MIN ? f->value < f->limit : f->value > f->limit;
    if (f->limit < 0) /* its own, and it said none */
        wrong = false;
    if (absent && !wrong)
        return;
    f->state = wrong ? c->severity[f->check] : FINDING_OK;
}

static struct check_count *find_count(struct check_counts *counts, const struct finding *f)
{
    for (unsigned i = 0; i < counts->n; i++)
        if (counts->v[i].check == f->check && strcmp(counts->v[i].on, f->on) == 0)
            return &counts->v[i];
    return NULL;
}

static void check_note(struct check_counts *counts, const struct finding *f)
{
    struct check_count *at = find_count(counts, f);
    if (!at && counts->n == CHECK_COUNTS_MAX) {
        counts->left_out++;
        return;
    }
    if (!at)
        at = &counts->v[counts->n++];
    *at = (struct check_count){.check = f->check, .value = f->value};
    memcpy(at->on, f->on, sizeof at->on);
}

/* Why it cannot be told, or NULL. */
static const char *to_growth(struct check_counts *counts, struct finding *f)
{
    const struct check_count *at = find_count(counts, f);
    if (!at)
        return "was not there when the probe began";
    if (f->value < at->value)
        return "was set back while the probe ran";
    f->value -= at->value;
    return NULL;
}

void checking_take(struct checking *c, bool last, struct finding f)
{
    assert(f.check < CHECKS);
    if (!c->conf.on[f.check])
        return;
    if (check_rows[f.check].rule == CHECK_GROWS && !is_decided(&f)) {
        if (!last) {
            check_note(&c->before, &f);
            return;
        }
        const char *why = to_growth(&c->before, &f);
        if (why)
            f = finding_unchecked(f.check, f.on, "%s", why);
    }
    check_judge(&c->conf, &f);
    if (check_rows[f.check].rule == CHECK_GROWS && f.state == FINDING_OK) {
        f.on[0] = f.text[0] = 0; /* of hundreds of counters that stand still it is enough to say so once */
        f.value = 0;
    }
    findings_put(&c->findings, &f);
}

bool check_metric(const struct check_conf *c, enum metric m, unsigned rail, uint32_t milli, struct finding *f)
{
    char value[METRIC_TEXT_MAX], limit[METRIC_TEXT_MAX], on[FINDING_ON_MAX];
    const struct metric_info *info = metric_info(m);
    uint32_t wanted = c->metric_milli[m];
    if (!wanted || !milli)
        return false;
    bool host = m == METRIC_HOST_MEM || m == METRIC_CPU;
    snprintf(on, sizeof on, host ? "%s" : "%s, GPU %u", info->name, rail);
    *f = finding_value(CHECK_METRIC, on, milli / 1000.0);
    f->limit = wanted / 1000.0;
    f->state = metric_worse(m, milli, wanted) ? c->metric_severity[m] : FINDING_OK;
    finding_say(f, "%s is %s, %s %s is wanted", info->words, metric_text(m, milli, value),
                info->better == METRIC_HIGHER ? "at least" : "at most", metric_text(m, wanted, limit));
    return true;
}

void check_hung(enum check_group g, double after_s, char process_state, uint64_t quota_millis, struct finding *f)
{
    assert(g < CHECK_GROUPS);
    *f = finding_value(CHECK_HANG, check_groups[g].name, after_s);
    f->limit = check_groups[g].limit_s;
    if (process_state == 'D') {
        f->state = FINDING_BAD;
        finding_say(f, "did not end in %.0f s: it waits in the kernel", after_s);
        return;
    }
    f->state = FINDING_UNDECIDED;
    if (quota_millis < 1000)
        finding_say(f, "did not end in %.0f s: its cgroup allows it %u %% of one processor", after_s,
                    (unsigned)(quota_millis / 10));
    else
        finding_say(f, "did not end in %.0f s, and does not wait in the kernel: the host may be overloaded", after_s);
}

void check_crashed(enum check_group g, int signal, int status, struct finding *f)
{
    assert(g < CHECK_GROUPS);
    *f = finding_value(CHECK_CRASH, check_groups[g].name, 0);
    f->state = FINDING_UNDECIDED;
    if (signal > 0)
        finding_say(f, "the check was ended by signal %d", signal);
    else
        finding_say(f, "the check ended with status %d", status);
}
