#include "history/goodput.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

void goodput_init(struct goodput *a, el_usec now)
{
    *a = (struct goodput){.began = now, .since = now, .part = ACCOUNT_START};
}

void goodput_enter(struct goodput *a, enum goodput_part part, el_usec now)
{
    assert(part < ACCOUNT_PARTS && now >= a->since);
    a->spent[a->part] += now - a->since;
    a->since = now;
    a->part = part;
}

void goodput_waited(struct goodput *a, el_usec waited, el_usec now)
{
    goodput_enter(a, a->part, now);
    if (waited > a->spent[ACCOUNT_FORM])
        waited = a->spent[ACCOUNT_FORM];
    a->spent[ACCOUNT_FORM] -= waited;
    a->spent[ACCOUNT_WAIT] += waited;
}

void goodput_failed(struct goodput *a, el_usec now)
{
    if (!a->failed_at)
        a->failed_at = now;
}

void goodput_signalled(struct goodput *a, el_usec now)
{
    if (a->failed_at && now - a->failed_at > a->detect)
        a->detect = now - a->failed_at;
}

void goodput_started(struct goodput *a, el_usec now)
{
    if (!a->failed_at)
        return;
    a->restarts++;
    if (now - a->failed_at > a->restart)
        a->restart = now - a->failed_at;
    a->failed_at = 0;
}

char *goodput_duration(el_usec d, char *to, size_t size)
{
    unsigned long long s = d / 1000000;
    if (d < 1000)
        snprintf(to, size, "%lluus", (unsigned long long)d);
    else if (d < 10000)
        snprintf(to, size, "%llu.%llums", (unsigned long long)d / 1000, (unsigned long long)d / 100 % 10);
    else if (d < 1000000)
        snprintf(to, size, "%llums", (unsigned long long)d / 1000);
    else if (s < 60)
        snprintf(to, size, "%llu.%llus", s, (unsigned long long)d / 100000 % 10);
    else if (s < 3600)
        snprintf(to, size, "%llum%02llus", s / 60, s % 60);
    else if (s < 86400)
        snprintf(to, size, "%lluh%02llum", s / 3600, s / 60 % 60);
    else
        snprintf(to, size, "%llud%02lluh", s / 86400, s / 3600 % 24);
    return to;
}

char *goodput_share(el_usec part, el_usec whole, char *to, size_t size)
{
    double exact = whole ? 1000.0 * (double)part / (double)whole : 0;
    unsigned tenths = exact >= 1000 ? 1000 : (unsigned)exact;
    if (whole)
        snprintf(to, size, "%u.%u%%", tenths / 10, tenths % 10);
    else
        snprintf(to, size, "-");
    return to;
}

static size_t more(char *to, size_t size, size_t n, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* What is beyond the size is lost. */
static size_t more(char *to, size_t size, size_t n, const char *fmt, ...)
{
    if (n + 1 >= size)
        return n;
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(to + n, size - n, fmt, ap);
    va_end(ap);
    return len < 0 ? n : n + (size_t)len < size ? n + (size_t)len : size - 1;
}

static struct goodput goodput_at(const struct goodput *a, el_usec now)
{
    struct goodput sum = *a;
    goodput_enter(&sum, a->part, now);
    return sum;
}

static bool steps_known(const struct goodput *a)
{
    return a->steps.any && a->steps.step;
}

static size_t steps_text(const struct goodput *a, el_usec total, char *to, size_t size, size_t n)
{
    char d[2][24];
    el_usec effective, repeated;
    const struct steps_sum *s = &a->steps;
    if (!steps_known(a))
        return n;
    steps_times(s, a->spent[ACCOUNT_RUN], &effective, &repeated);
    n = more(to, size, n, "; effective %s: %llu new step%s of %s", goodput_share(effective, total, d[0], sizeof d[0]),
             (unsigned long long)s->made, s->made == 1 ? "" : "s", goodput_duration(s->step, d[1], sizeof d[1]));
    if (s->wraps)
        return more(to, size, n, " (their numbers begin again within a run: steps made again are not told apart)");
    if (s->again)
        n = more(to, size, n, ", %llu made again (%s)", (unsigned long long)s->again,
                 goodput_duration(repeated, d[0], sizeof d[0]));
    return n;
}

size_t goodput_text(const struct goodput *a, el_usec now, char *to, size_t size)
{
    assert(size > 0);
    static const char *const names[] = {
#define X(name, text, key) text,
        GOODPUT_PART_LIST(X)
#undef X
    };
    struct goodput sum = goodput_at(a, now);
    char d[3][24];
    el_usec total = now - a->began;
    size_t n = more(to, size, 0, "%s:", goodput_duration(total, d[0], sizeof d[0]));
    for (int i = 0, said = 0; i < ACCOUNT_PARTS; i++) {
        if ((i == ACCOUNT_FORM || i == ACCOUNT_WAIT) && !sum.spent[i])
            continue; /* alone, nobody is waited for; and few failures have to pass by themselves */
        n = more(to, size, n, "%s %s %s", said++ ? "," : "", goodput_duration(sum.spent[i], d[0], sizeof d[0]),
                 names[i]);
        if (i == ACCOUNT_RUN)
            n = more(to, size, n, " (%s)", goodput_share(sum.spent[i], total, d[0], sizeof d[0]));
    }
    if (a->restarts)
        n = more(to, size, n, "; %u restart%s: siblings signalled in %s, all up again in %s", a->restarts,
                 a->restarts == 1 ? "" : "s", goodput_duration(a->detect, d[1], sizeof d[1]),
                 goodput_duration(a->restart, d[2], sizeof d[2]));
    return steps_text(&sum, total, to, size, n);
}

static void goodput_put_share(struct el_buf *out, const char *key, el_usec part, el_usec whole)
{
    if (whole)
        el_buf_printf(out, ",\"%s\":%.4f", key, part >= whole ? 1.0 : (double)part / (double)whole);
}

int goodput_json(const struct goodput *a, el_usec now, struct el_buf *out)
{
    static const char *const keys[] = {
#define X(name, text, key) key,
        GOODPUT_PART_LIST(X)
#undef X
    };
    struct goodput sum = goodput_at(a, now);
    const struct steps_sum *s = &sum.steps;
    el_usec total = now - a->began, effective, repeated;
    el_buf_printf(out, "{\"total_usec\":%llu", (unsigned long long)total);
    for (int i = 0; i < ACCOUNT_PARTS; i++)
        el_buf_printf(out, ",\"%s\":%llu", keys[i], (unsigned long long)sum.spent[i]);
    goodput_put_share(out, "running_share", sum.spent[ACCOUNT_RUN], total);
    if (steps_known(&sum)) {
        steps_times(s, sum.spent[ACCOUNT_RUN], &effective, &repeated);
        el_buf_printf(out, ",\"steps_new\":%llu,\"step_usec\":%llu,\"step_highest\":%llu,\"effective_usec\":%llu",
                      (unsigned long long)s->made, (unsigned long long)s->step, (unsigned long long)s->highest,
                      (unsigned long long)effective);
        goodput_put_share(out, "effective_share", effective, total);
        if (!s->wraps)
            el_buf_printf(out, ",\"steps_again\":%llu,\"repeated_usec\":%llu", (unsigned long long)s->again,
                          (unsigned long long)repeated);
    }
    el_buf_printf(out, ",\"restarts\":%u,\"detect_usec\":%llu,\"restart_usec\":%llu}", a->restarts,
                  (unsigned long long)a->detect, (unsigned long long)a->restart);
    return out->full ? -1 : 0;
}
